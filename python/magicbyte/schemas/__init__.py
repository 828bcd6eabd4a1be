"""Schemas of keys and values: how bytes name them (`framing`), where they are (`registry`), and `decode`."""

from magicbyte.schemas.decoding import decode

__all__ = ["decode"]
