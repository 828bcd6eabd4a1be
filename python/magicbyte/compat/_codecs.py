"""Which codecs a batch can have."""

from __future__ import annotations

from magicbyte.enums import Compression

__all__ = ["codec_name"]

_NAMES = {codec.value: codec.name.lower() for codec in Compression if codec is not Compression.NONE}


def codec_name(codec: int, magic: int) -> str | None:
    """The codec's name, such as `lz4`; None for a number that batches of this magic compress nothing with."""
    name = _NAMES.get(codec)
    return None if magic < 2 and name == "zstd" else name
