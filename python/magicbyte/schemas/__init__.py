"""Schemas of keys and values: their names (`framing`), where they are (`registry`), `decode` and `encode`."""

from magicbyte.schemas.decoding import ColumnDecoder, decode, latest_of_topic
from magicbyte.schemas.encoding import ColumnEncoder, encode

__all__ = ["ColumnDecoder", "ColumnEncoder", "decode", "encode", "latest_of_topic"]
