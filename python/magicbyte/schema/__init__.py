"""Schemas of keys and values: their names (`framing`), where they are (`registry`), `decode` and `encode`."""

from magicbyte.schema.decoding import ColumnDecoder, decode, latest_of_topic
from magicbyte.schema.encoding import ColumnEncoder, encode

__all__ = ["ColumnDecoder", "ColumnEncoder", "decode", "encode", "latest_of_topic"]
