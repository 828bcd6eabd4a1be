"""The codecs that each magic allows."""

from __future__ import annotations

from magicbyte.enums import Compression

__all__ = ["codec_name"]

_NAMES = {codec.value: codec.name.lower() for codec in Compression if codec is not Compression.NONE}


def codec_name(codec: int, magic: int) -> str | None:
    """The codec's name, such as `lz4`; None for no codec, or one that this magic does not allow."""
    name = _NAMES.get(codec)
    return None if magic < 2 and name == "zstd" else name
