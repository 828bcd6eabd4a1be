"""The thirteen names of `aiokafka.record._crecords`, implemented by magicbyte's core.

>>> import magicbyte.compat.aiokafka
>>> magicbyte.compat.aiokafka.install()  # doctest: +SKIP

After `install()`, aiokafka's producers and consumers build and parse batches with these classes, whether
aiokafka was imported before or is imported later. Every codec is available, without cramjam. Signatures,
attributes and exceptions are those of aiokafka 0.14's compiled classes; `docs/dropins.md` lists the
differences.

A record keeps its batch's bytes alive; key, value and headers are copied on access.
"""

from __future__ import annotations

from contextlib import suppress
from importlib import import_module

from magicbyte.compat import _core
from magicbyte.compat._codecs import AIOKAFKA, codec_name, with_checks
from magicbyte.compat._patch import Counts, Patch
from magicbyte.errors import CorruptRecordError, UnsupportedCompressionError

try:
    from aiokafka import codec as _codecs
    from aiokafka.errors import CorruptRecordException, UnsupportedCodecError
except ImportError:
    # Without aiokafka the classes work with our own exceptions and every codec.
    _codecs = None
    CorruptRecordException, UnsupportedCodecError = CorruptRecordError, UnsupportedCompressionError

__all__ = [
    "DefaultRecord",
    "DefaultRecordBatch",
    "DefaultRecordBatchBuilder",
    "DefaultRecordMetadata",
    "LegacyRecord",
    "LegacyRecordBatch",
    "LegacyRecordBatchBuilder",
    "LegacyRecordMetadata",
    "MemoryRecords",
    "check_codec",
    "counts",
    "crc32c_cython",
    "decode_varint_cython",
    "encode_varint_cython",
    "install",
    "size_of_varint_cython",
    "uninstall",
]

DefaultRecord = _core.AiokafkaDefaultRecord
DefaultRecordBatch = _core.AiokafkaDefaultRecordBatch
DefaultRecordBatchBuilder = _core.AiokafkaDefaultRecordBatchBuilder
LegacyRecord = _core.AiokafkaLegacyRecord
LegacyRecordBatch = _core.AiokafkaLegacyRecordBatch
LegacyRecordBatchBuilder = _core.AiokafkaLegacyRecordBatchBuilder
MemoryRecords = _core.AiokafkaMemoryRecords
DefaultRecordMetadata = _core.DefaultRecordMetadata
LegacyRecordMetadata = _core.LegacyRecordMetadata
crc32c_cython = _core.aiokafka_crc32c
decode_varint_cython = _core.aiokafka_decode_varint
encode_varint_cython = _core.aiokafka_encode_varint
size_of_varint_cython = _core.aiokafka_size_of_varint

_NAMES = [name for name in __all__ if name not in ("check_codec", "counts", "install", "uninstall")]
_FUNCTIONS = {
    "calc_crc32c": crc32c_cython,
    "decode_varint": decode_varint_cython,
    "encode_varint": encode_varint_cython,
    "size_of_varint": size_of_varint_cython,
}
_patch = Patch("aiokafka")


def install() -> None:
    """Replaces the original classes, functions and codecs in every module of aiokafka.

    Call it before a producer starts: aiokafka refuses a batch whose class changed while it was being filled.

    Raises:
        ImportError: aiokafka is not installed.

    """
    try:
        modules = [
            import_module(f"aiokafka.record.{name}")
            for name in ("default_records", "legacy_records", "memory_records")
        ]
        util = import_module("aiokafka.record.util")
        producer = import_module("aiokafka.producer.producer").AIOKafkaProducer
    except ImportError as error:
        raise ImportError(
            "magicbyte.compat.aiokafka.install() needs aiokafka: pip install 'aiokafka>=0.14'"
        ) from error
    # aiokafka can be built without its extensions.
    with suppress(ImportError):
        modules.append(import_module("aiokafka.record._crecords"))
    ours = globals()
    pairs = [
        (getattr(module, name), ours[name]) for module in modules for name in _NAMES if hasattr(module, name)
    ]
    pairs += [(getattr(util, name), function) for name, function in _FUNCTIONS.items()]
    table = (producer, "_COMPRESSORS", with_checks(producer._COMPRESSORS))
    _patch.install(pairs, AIOKAFKA, [table])


def uninstall() -> None:
    """Restores the originals."""
    _patch.uninstall()


def counts() -> Counts:
    """The batches and records read and built with these classes in this process."""
    return Counts(_core.counts("aiokafka"))


def check_codec(codec: int, magic: int) -> None:
    """Raises UnsupportedCodecError for a codec that the magic forbids or aiokafka has no library for."""
    name = codec_name(codec, magic)
    if name is None:
        raise UnsupportedCodecError(f"Unknown compression codec {codec:#04x}")
    if _codecs is not None and not getattr(_codecs, f"has_{name}")():
        raise UnsupportedCodecError(f"Libraries for {name} compression codec not found")
