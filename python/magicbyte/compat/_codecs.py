"""The clients' codec functions, implemented by magicbyte's core, and the codecs that each magic allows.

After `install()` they are the functions of `aiokafka.codec` and `kafka.codec`, so that no other package is
needed for a codec. They write what Kafka writes, and read what it reads.

A payload is any contiguous buffer, the result is `bytes`. Encoders raise ValueError for a level that the
codec does not have. Decoders raise `magicbyte.InvalidRecordError` for damage, and
`magicbyte.LimitExceededError` for more than 256 MiB of content.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from magicbyte import _core as core
from magicbyte.compat import _core
from magicbyte.enums import Compression

if TYPE_CHECKING:
    from typing_extensions import Buffer

__all__ = ["AIOKAFKA", "KAFKA_PYTHON", "codec_name", "with_checks"]

_NAMES = {codec.value: codec.name.lower() for codec in Compression if codec is not Compression.NONE}


def codec_name(codec: int, magic: int) -> str | None:
    """The codec's name, such as `lz4`; None for no codec, or one that this magic does not allow."""
    name = _NAMES.get(codec)
    return None if magic < 2 and name == "zstd" else name


def has_codec() -> bool:
    """True: every codec is part of magicbyte."""
    return True


def gzip_encode(payload: Buffer, compresslevel: int | None = None) -> bytes:
    """A gzip stream; level 1 to 9, by default 9 as in the clients."""
    return _core.compress("gzip", 2, payload, compresslevel or 9)


def gzip_decode(payload: Buffer) -> bytes:
    """The content of one or more gzip members."""
    return core.decompress("gzip", 2, payload)


def snappy_encode(
    payload: Buffer, xerial_compatible: bool = True, xerial_blocksize: int = 32 * 1024
) -> bytes:
    """Snappy in xerial chunks of `xerial_blocksize` bytes before compression, or as one raw block."""
    return _core.compress_snappy(payload, xerial_blocksize if xerial_compatible else None)


def snappy_decode(payload: Buffer) -> bytes:
    """The content of xerial chunks, or of one raw block."""
    return core.decompress("snappy", 2, payload)


def lz4_encode(payload: Buffer, level: int = 9) -> bytes:
    """An LZ4 frame of independent blocks; level 1 to 17, of which 9 is Kafka's fast compressor."""
    return _core.compress("lz4", 2, payload, level)


def lz4_encode_frame(payload: Buffer, compression_level: int = 0) -> bytes:
    """Same as `lz4_encode`, but with the argument of `lz4.frame.compress`: 0 is the fast compressor."""
    return _core.compress("lz4", 2, payload, compression_level or None)


def lz4_decode(payload: Buffer) -> bytes:
    """The content of an LZ4 frame of independent blocks."""
    return core.decompress("lz4", 2, payload)


def lz4_encode_old_kafka(payload: Buffer) -> bytes:
    """An LZ4 frame with the header checksum that brokers of 0.8 and 0.9 expect (KAFKA-3160)."""
    return _core.compress("lz4", 0, payload)


def lz4_decode_old_kafka(payload: Buffer) -> bytes:
    """The content of an LZ4 frame, whatever its header checksum."""
    return core.decompress("lz4", 0, payload)


def zstd_encode(payload: Buffer, level: int | None = None) -> bytes:
    """A zstd frame; level -131072 to 22, by default 3."""
    return _core.compress("zstd", 2, payload, level)


def zstd_decode(payload: Buffer) -> bytes:
    """The content of zstd frames."""
    return core.decompress("zstd", 2, payload)


# By their names in the clients' modules.
_SHARED: Mapping[str, Callable[..., Any]] = {
    **{f"has_{name}": has_codec for name in _NAMES.values()},
    "gzip_decode": gzip_decode,
    "gzip_encode": gzip_encode,
    "lz4_decode": lz4_decode,
    "snappy_decode": snappy_decode,
    "snappy_encode": snappy_encode,
    "zstd_decode": zstd_decode,
    "zstd_encode": zstd_encode,
}
AIOKAFKA: Mapping[str, Callable[..., Any]] = {**_SHARED, "lz4_encode": lz4_encode}
KAFKA_PYTHON: Mapping[str, Callable[..., Any]] = {
    **_SHARED,
    "lz4_decode_old_kafka": lz4_decode_old_kafka,
    "lz4_encode": lz4_encode_frame,
    "lz4_encode_old_kafka": lz4_encode_old_kafka,
}


def with_checks(compressors: Mapping[Any, tuple[Any, Any]]) -> dict[Any, tuple[Any, Any]]:
    """A producer's table of codecs (name to check and number) with our checks; `None` is no codec."""
    return {name: (has_codec if name else check, number) for name, (check, number) in compressors.items()}
