"""The classes of `kafka.record` (kafka-python), implemented by magicbyte's core.

>>> import magicbyte.compat.kafka_python
>>> magicbyte.compat.kafka_python.install()  # doctest: +SKIP

After `install()`, kafka-python's producers and consumers build and parse batches with these classes,
whether `kafka` was imported before or is imported later. Every codec is available, without python-snappy,
lz4 and zstandard. Signatures, attributes and exceptions are those of kafka-python 3.0; `docs/dropins.md`
lists the differences.

A record keeps its batch's bytes alive; key, value and headers are copied on access.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from importlib import import_module
from typing import TYPE_CHECKING

from magicbyte.compat import _core
from magicbyte.compat._codecs import KAFKA_PYTHON, codec_name, with_checks
from magicbyte.compat._patch import Counts, Patch
from magicbyte.errors import CorruptRecordError, Error, UnsupportedCompressionError, UnsupportedMagicError

if TYPE_CHECKING:
    from typing_extensions import Buffer

try:
    from kafka import codec as _codecs
    from kafka.errors import (
        CorruptRecordError as CorruptRecordException,
    )
    from kafka.errors import (
        IllegalStateError,
        UnsupportedCodecError,
        UnsupportedVersionError,
    )
except ImportError:
    # Without kafka-python the classes work with our own exceptions and every codec.
    _codecs = None
    CorruptRecordException, IllegalStateError = CorruptRecordError, Error
    UnsupportedCodecError, UnsupportedVersionError = UnsupportedCompressionError, UnsupportedMagicError

__all__ = [
    "ControlRecord",
    "DefaultRecord",
    "DefaultRecordBatch",
    "DefaultRecordBatchBuilder",
    "DefaultRecordMetadata",
    "LegacyRecord",
    "LegacyRecordBatch",
    "LegacyRecordBatchBuilder",
    "LegacyRecordMetadata",
    "MemoryRecords",
    "MemoryRecordsBuilder",
    "calc_crc32c",
    "check_codec",
    "counts",
    "decode_varint",
    "encode_varint",
    "install",
    "size_of_varint",
    "uninstall",
]

_CLASSES = __all__[:11]
_FUNCTIONS = ("calc_crc32c", "decode_varint", "encode_varint", "size_of_varint")
DefaultRecordMetadata = _core.DefaultRecordMetadata
ControlRecord = _core.KafkaPythonControlRecord
DefaultRecord = _core.KafkaPythonDefaultRecord
DefaultRecordBatch = _core.KafkaPythonDefaultRecordBatch
DefaultRecordBatchBuilder = _core.KafkaPythonDefaultRecordBatchBuilder
LegacyRecord = _core.KafkaPythonLegacyRecord
LegacyRecordBatch = _core.KafkaPythonLegacyRecordBatch
LegacyRecordBatchBuilder = _core.KafkaPythonLegacyRecordBatchBuilder
MemoryRecords = _core.KafkaPythonMemoryRecords
LegacyRecordMetadata = _core.LegacyRecordMetadata
calc_crc32c = _core.kafka_python_crc32c
decode_varint = _core.kafka_python_decode_varint
encode_varint = _core.kafka_python_encode_varint
size_of_varint = _core.kafka_python_size_of_varint

_patch = Patch("kafka")


class MemoryRecordsBuilder:
    """Builds one batch of any magic, and keeps the result once closed.

    Args:
        magic: 0, 1 or 2.
        compression_type: the codec's number, 0 to 4.
        batch_size: the size in bytes at which the batch is full; a first record is always accepted.
        offset: the first record's offset, relative to the base of the batch.
        transactional: the batch is part of a transaction of its producer (magic 2).
        producer_id: an idempotent producer's id, -1 for none; with `producer_epoch` and `base_sequence`.

    Raises:
        AssertionError: for a combination that Kafka does not allow.

    """

    __slots__ = (
        "_base_sequence",
        "_batch_size",
        "_buffer",
        "_builder",
        "_bytes_written",
        "_magic",
        "_next_offset",
        "_producer_epoch",
        "_producer_id",
    )

    def __init__(
        self,
        magic: int,
        compression_type: int,
        batch_size: int,
        offset: int = 0,
        transactional: bool = False,
        producer_id: int = -1,
        producer_epoch: int = -1,
        base_sequence: int = -1,
    ) -> None:
        _require(magic in (0, 1, 2), "Not supported magic")
        _require(compression_type in (0, 1, 2, 3, 4), "Not valid compression type")
        self._builder: DefaultRecordBatchBuilder | LegacyRecordBatchBuilder
        # Under the original's names, which its callers access.
        self._producer_id: int | None = None
        self._producer_epoch: int | None = None
        self._base_sequence: int | None = None
        if magic == 2:
            has_producer = producer_id != -1
            _require(
                has_producer or not transactional,
                "Cannot write transactional messages without a valid producer ID",
            )
            _require(producer_epoch != -1 or not has_producer, "Invalid negative producer epoch")
            _require(base_sequence != -1 or not has_producer, "Invalid negative sequence number used")
            self._set_producer(producer_id, producer_epoch, base_sequence)
            producer = (producer_id, producer_epoch, base_sequence)
            self._builder = DefaultRecordBatchBuilder(
                magic, compression_type, transactional, *producer, batch_size
            )
        else:
            _require(
                not transactional and producer_id == -1,
                f"Idempotent messages are not supported for magic {magic}",
            )
            self._builder = LegacyRecordBatchBuilder(magic, compression_type, batch_size)
        self._magic = magic
        self._batch_size = batch_size
        self._next_offset = offset
        self._buffer: bytearray | None = None
        self._bytes_written = 0

    def skip(self, offsets_to_skip: int) -> None:
        """Leaves a gap before the next record, as compaction does."""
        self._next_offset += offsets_to_skip

    def append(
        self,
        timestamp: int | None,
        key: Buffer | None,
        value: Buffer | None,
        headers: Iterable[tuple[str, Buffer | None]] | None = None,
    ) -> DefaultRecordMetadata | LegacyRecordMetadata | None:
        """Appends a record (timestamp in ms, None for now); None if the batch is full or closed."""
        if self._buffer is not None:
            return None
        metadata = self._builder.append(
            self._next_offset, timestamp, key, value, [] if headers is None else headers
        )
        if metadata is not None:
            self._next_offset += 1
        return metadata

    def set_producer_state(
        self, producer_id: int, producer_epoch: int, base_sequence: int, is_transactional: bool
    ) -> None:
        """Sets the producer's id, epoch and first sequence; only possible before the batch is closed.

        Raises:
            UnsupportedVersionError: before magic 2.
            IllegalStateError: the batch is closed, so it may have been sent with another sequence.

        """
        if isinstance(self._builder, LegacyRecordBatchBuilder):
            raise UnsupportedVersionError("Producer State requires Message format v2+")
        if self._buffer is not None:
            raise IllegalStateError(
                "Trying to set producer state of an already closed batch. This indicates a bug on the client."
            )
        self._builder.set_producer_state(producer_id, producer_epoch, base_sequence, is_transactional)
        self._set_producer(producer_id, producer_epoch, base_sequence)

    def _set_producer(self, producer_id: int, producer_epoch: int, base_sequence: int) -> None:
        self._producer_id = producer_id
        self._producer_epoch = producer_epoch
        self._base_sequence = base_sequence

    @property
    def producer_id(self) -> int | None:
        """The producer's id, -1 for none; None in magic 0 and 1."""
        return self._producer_id

    @property
    def producer_epoch(self) -> int | None:
        """The producer's epoch, -1 for none; None in magic 0 and 1."""
        return self._producer_epoch

    @property
    def base_sequence(self) -> int | None:
        """The first record's sequence number, -1 for none; None in magic 0 and 1."""
        return self._base_sequence

    def records(self) -> MemoryRecords:
        """The closed batch, for reading."""
        return MemoryRecords(self.buffer())

    def close(self) -> None:
        """Builds the batch. Calling it again, as a retry does, changes nothing."""
        if self._buffer is None:
            self._bytes_written = self._builder.size()
            self._buffer = self._builder.build()

    def size_in_bytes(self) -> int:
        """Size of the batch: uncompressed until it is closed."""
        return self._builder.size() if self._buffer is None else len(self._buffer)

    def compression_rate(self) -> float:
        """Size of the closed batch divided by its uncompressed size."""
        size = len(self.buffer())
        rate = size / self._bytes_written
        # Callers multiply it by the uncompressed size: rounding must not make the product too small.
        return rate if rate * self._bytes_written >= size else math.nextafter(rate, math.inf)

    def is_full(self) -> bool:
        """True if no more records are accepted."""
        return self._buffer is not None or self._builder.size() >= self._batch_size

    def next_offset(self) -> int:
        """The offset of the next record."""
        return self._next_offset

    def buffer(self) -> bytearray:
        """The bytes of the closed batch."""
        if self._buffer is None:
            raise AssertionError
        return self._buffer


def _require(condition: bool, message: str) -> None:
    """Like an assert statement, but also under `python -O`."""
    if not condition:
        raise AssertionError(message)


def install() -> None:
    """Replaces the original classes, functions and codecs in every module of kafka-python.

    Raises:
        ImportError: kafka-python is not installed.

    """
    try:
        modules = [
            import_module(f"kafka.record.{name}")
            for name in ("default_records", "legacy_records", "memory_records")
        ]
        util = import_module("kafka.record.util")
        bases = import_module("kafka.record.abc")
        producer = import_module("kafka.producer.kafka").KafkaProducer
    except ImportError as error:
        raise ImportError(
            "magicbyte.compat.kafka_python.install() needs kafka-python: pip install 'kafka-python>=3.0'"
        ) from error
    ours = globals()
    pairs = [
        (getattr(module, name), ours[name])
        for module in modules
        for name in _CLASSES
        if hasattr(module, name)
    ]
    pairs += [(getattr(util, name), ours[name]) for name in _FUNCTIONS]
    for base, classes in (
        ("ABCRecord", (ControlRecord, DefaultRecord, LegacyRecord)),
        ("ABCRecordBatch", (DefaultRecordBatch, LegacyRecordBatch)),
        ("ABCRecordBatchBuilder", (DefaultRecordBatchBuilder, LegacyRecordBatchBuilder)),
        ("ABCRecords", (MemoryRecords,)),
    ):
        for each in classes:
            getattr(bases, base).register(each)
    table = (producer, "_COMPRESSORS", with_checks(producer._COMPRESSORS))
    _patch.install(pairs, KAFKA_PYTHON, [table])


def uninstall() -> None:
    """Restores the originals."""
    _patch.uninstall()


def counts() -> Counts:
    """The batches and records read and built with these classes in this process."""
    return Counts(_core.counts("kafka_python"))


def check_codec(codec: int, magic: int) -> None:
    """Raises UnsupportedCodecError for a codec that the magic forbids or kafka-python has no library for."""
    name = codec_name(codec, magic)
    if name is None:
        raise UnsupportedCodecError(f"Unrecognized compression type: {codec}")
    if _codecs is not None and not getattr(_codecs, f"has_{name}")():
        raise UnsupportedCodecError(f"Libraries for {name} compression codec not found")
