"""The batches that the drop-ins read."""

from collections.abc import Iterator
from struct import Struct
from typing import Any, ClassVar, Literal, Self

from typing_extensions import Buffer, disjoint_base

@disjoint_base
class _MemoryRecords:
    """The batches in a fetched buffer. A `bytes` object is shared; any other buffer is copied once."""

    def size_in_bytes(self) -> int:
        """Size of the whole buffer."""
    def has_next(self) -> bool:
        """True if `next_batch` would return a batch or raise."""
    def next_batch(self) -> Any:
        """The next batch as a view; None at the end, or if the batch is incomplete.

        Raises CorruptRecordException for an invalid size or magic.
        """
    def valid_bytes(self) -> int:
        """Size of the complete batches at the start of the buffer."""
    def __iter__(self) -> Self: ...
    def __next__(self) -> Any: ...

class AiokafkaMemoryRecords(_MemoryRecords):
    """aiokafka's `MemoryRecords`; accepts only `bytes`."""

    def __new__(cls, bytes_data: bytes) -> Self: ...

class KafkaPythonMemoryRecords(_MemoryRecords):
    """kafka-python's `MemoryRecords`."""

    LENGTH_OFFSET: ClassVar[int]
    LOG_OVERHEAD: ClassVar[int]
    MAGIC_OFFSET: ClassVar[int]
    MIN_SLICE: ClassVar[int]
    def __new__(cls, bytes_data: Buffer) -> Self: ...
    def next(self) -> Any:
        """Same as `__next__`."""

@disjoint_base
class _DefaultRecordBatch:
    """A batch of magic 2, and an iterator over its records.

    Header fields are read on access. Iteration decodes the whole batch first, then creates one object
    for each record; records before a bad one are returned before CorruptRecordException is raised. Only
    `validate_crc` checks the CRC.
    """

    CODEC_MASK: ClassVar[int]
    CODEC_NONE: ClassVar[int]
    CODEC_GZIP: ClassVar[int]
    CODEC_SNAPPY: ClassVar[int]
    CODEC_LZ4: ClassVar[int]
    CODEC_ZSTD: ClassVar[int]
    @property
    def base_offset(self) -> int:
        """The offset that the records' deltas are relative to."""
    @property
    def magic(self) -> int:
        """The magic byte, signed."""
    @property
    def crc(self) -> int:
        """The stored CRC-32C; `validate_crc` checks it."""
    @property
    def attributes(self) -> int:
        """All 16 bits, signed."""
    @property
    def compression_type(self) -> int:
        """The codec's number, 0 to 7."""
    @property
    def timestamp_type(self) -> Literal[0, 1]:
        """0 for CreateTime, 1 for LogAppendTime."""
    @property
    def is_transactional(self) -> bool:
        """True if the batch is part of a transaction."""
    @property
    def is_control_batch(self) -> bool:
        """True if the batch holds control records."""
    @property
    def last_offset_delta(self) -> int:
        """The last offset (inclusive) minus the base offset."""
    @property
    def first_timestamp(self) -> int:
        """The timestamp (ms) that the records' deltas are relative to."""
    @property
    def max_timestamp(self) -> int:
        """The maximum timestamp, in ms since 1970; -1 for none."""
    @property
    def producer_id(self) -> int:
        """The producer's id, -1 for none."""
    @property
    def producer_epoch(self) -> int:
        """The producer's epoch, -1 for none."""
    @property
    def base_sequence(self) -> int:
        """The first record's sequence number, -1 for none."""
    @property
    def next_offset(self) -> int:
        """One past the last offset, which compaction preserves."""
    def validate_crc(self) -> bool:
        """True if the CRC-32C is correct. Raises AssertionError once iteration has started."""
    def __iter__(self) -> Self: ...
    def __next__(self) -> Any: ...

class AiokafkaDefaultRecordBatch(_DefaultRecordBatch):
    """aiokafka's `DefaultRecordBatch`."""

    def __new__(cls, buffer: Buffer) -> Self: ...

class KafkaPythonDefaultRecordBatch(_DefaultRecordBatch):
    """kafka-python's `DefaultRecordBatch`."""

    HEADER_STRUCT: ClassVar[Struct]
    CODEC_MASK: ClassVar[int]
    CODEC_NONE: ClassVar[int]
    CODEC_GZIP: ClassVar[int]
    CODEC_SNAPPY: ClassVar[int]
    CODEC_LZ4: ClassVar[int]
    CODEC_ZSTD: ClassVar[int]
    TIMESTAMP_TYPE_MASK: ClassVar[int]
    TRANSACTIONAL_MASK: ClassVar[int]
    CONTROL_MASK: ClassVar[int]
    ATTRIBUTES_OFFSET: ClassVar[int]
    CRC_OFFSET: ClassVar[int]
    AFTER_LEN_OFFSET: ClassVar[int]
    LOG_APPEND_TIME: ClassVar[int]
    CREATE_TIME: ClassVar[int]
    NO_PRODUCER_ID: ClassVar[int]
    NO_SEQUENCE: ClassVar[int]
    MAX_INT: ClassVar[int]
    def __new__(cls, buffer: Buffer) -> Self: ...
    def next(self) -> Any:
        """Same as `__next__`."""
    @property
    def size_in_bytes(self) -> int:
        """Size according to the length field, including the offset and length fields."""
    @property
    def leader_epoch(self) -> int:
        """Epoch of the leader that appended the batch, -1 for none."""
    @property
    def last_offset(self) -> int:
        """Offset of the batch's original last record (inclusive), even if compaction removed it."""
    def has_producer_id(self) -> bool:
        """True if a producer id is set: above -1."""
    @property
    def has_sequence(self) -> bool:
        """True if a base sequence is set: not -1."""
    @property
    def last_sequence(self) -> int:
        """The last record's sequence number, -1 for none; wraps from 2**31 - 1 to 0."""
    @property
    def records_count(self) -> int:
        """The header's record count."""

@disjoint_base
class _LegacyRecordBatch:
    """One outermost message of magic 0 or 1; each iteration decodes it again."""

    RECORD_OVERHEAD_V0: ClassVar[int]
    RECORD_OVERHEAD_V1: ClassVar[int]
    CODEC_MASK: ClassVar[int]
    CODEC_GZIP: ClassVar[int]
    CODEC_SNAPPY: ClassVar[int]
    CODEC_LZ4: ClassVar[int]
    is_control_batch: ClassVar[bool]
    is_transactional: ClassVar[bool]
    producer_id: ClassVar[int | None]
    @property
    def next_offset(self) -> int:
        """One past the message's own offset; the offset of a wrapper is that of its last inner message."""
    def validate_crc(self) -> bool:
        """True if the outer CRC-32 is correct. In aiokafka, iteration then also checks the inner CRCs."""
    def __iter__(self) -> Iterator[Any]: ...

class AiokafkaLegacyRecordBatch(_LegacyRecordBatch):
    """aiokafka's `LegacyRecordBatch`."""

    def __new__(cls, buffer: Buffer, magic: int) -> Self: ...

class KafkaPythonLegacyRecordBatch(_LegacyRecordBatch):
    """kafka-python's `LegacyRecordBatch`."""

    HEADER_STRUCT_V0: ClassVar[Struct]
    HEADER_STRUCT_V1: ClassVar[Struct]
    CODEC_NONE: ClassVar[int]
    TIMESTAMP_TYPE_MASK: ClassVar[int]
    LOG_OVERHEAD: ClassVar[int]
    CRC_OFFSET: ClassVar[int]
    MAGIC_OFFSET: ClassVar[int]
    RECORD_OVERHEAD_V0: ClassVar[int]
    RECORD_OVERHEAD_V1: ClassVar[int]
    KEY_OFFSET_V0: ClassVar[int]
    KEY_OFFSET_V1: ClassVar[int]
    KEY_LENGTH: ClassVar[int]
    VALUE_LENGTH: ClassVar[int]
    LOG_APPEND_TIME: ClassVar[int]
    CREATE_TIME: ClassVar[int]
    NO_TIMESTAMP: ClassVar[int]
    def __new__(cls, buffer: Buffer, magic: int) -> Self: ...
    @property
    def base_offset(self) -> int:
        """The message's own offset; the offset of a wrapper is that of its last inner message."""
    @property
    def size_in_bytes(self) -> int:
        """Size of the message including its offset and size fields."""
    @property
    def timestamp_type(self) -> Literal[0, 1] | None:
        """0 for CreateTime, 1 for LogAppendTime, None in magic 0."""
    @property
    def compression_type(self) -> int:
        """The codec's number, 0 to 7."""
    @property
    def magic(self) -> int:
        """0 or 1."""
