"""Schemas of keys and values: how bytes name them (`framing`), where they are (`registry`), and `decode`."""

from magicbyte.schemas.decoding import ColumnDecoder, decode, latest_of_topic

__all__ = ["ColumnDecoder", "decode", "latest_of_topic"]
