"""The builders of the drop-ins."""

from collections.abc import Iterable
from struct import Struct
from typing import ClassVar, Self, final

from typing_extensions import Buffer, disjoint_base

@final
class DefaultRecordMetadata:
    """The result of `append` for a record of magic 2: offset, size in bytes, timestamp in ms."""

    def __new__(cls, offset: int, size: int, timestamp: int) -> Self: ...
    @property
    def offset(self) -> int:
        """The offset passed to `append`."""
    @property
    def size(self) -> int:
        """Size of the record including its length field."""
    @property
    def timestamp(self) -> int:
        """Milliseconds since 1970, as stored."""
    @property
    def crc(self) -> None:
        """None: in magic 2 only the batch has a checksum."""

@final
class LegacyRecordMetadata:
    """The result of `append` for a message of magic 0 or 1: also its CRC-32; timestamp -1 in magic 0."""

    def __new__(cls, offset: int, crc: int, size: int, timestamp: int) -> Self: ...
    @property
    def offset(self) -> int:
        """The offset passed to `append`."""
    @property
    def crc(self) -> int:
        """The message's CRC-32."""
    @property
    def size(self) -> int:
        """Size of the message including its offset and size fields."""
    @property
    def timestamp(self) -> int:
        """Milliseconds since 1970, as stored; -1 in magic 0."""

@disjoint_base
class _DefaultRecordBatchBuilder:
    """Builds one batch of magic 2. Its base offset is 0; the broker assigns the final offset."""

    @property
    def producer_id(self) -> int:
        """The producer's id, -1 for none."""
    @property
    def producer_epoch(self) -> int:
        """The producer's epoch, -1 for none."""
    @property
    def base_sequence(self) -> int:
        """The first record's sequence number, -1 for none."""
    def append(
        self,
        offset: int,
        timestamp: int | None,
        key: Buffer | None,
        value: Buffer | None,
        headers: Iterable[tuple[str, Buffer | None]],
    ) -> DefaultRecordMetadata | None:
        """Appends a record; None if the batch is full. The timestamp is in ms, None for now.

        Raises TypeError or AttributeError for wrong types, ValueError for an offset that exceeds 32 bits.
        """
    def size(self) -> int:
        """Size of the batch: uncompressed until it is built."""
    def build(self) -> bytearray:
        """The finished batch; the same object until the builder changes.

        Raises UnsupportedCodecError for an unknown or unavailable codec.
        """

class AiokafkaDefaultRecordBatchBuilder(_DefaultRecordBatchBuilder):
    """aiokafka's `DefaultRecordBatchBuilder`."""

    def __new__(
        cls,
        magic: int,
        compression_type: int,
        is_transactional: int,
        producer_id: int,
        producer_epoch: int,
        base_sequence: int,
        batch_size: int,
    ) -> Self: ...
    def set_producer_state(self, producer_id: int, producer_epoch: int, base_sequence: int) -> None:
        """Sets the producer's id, epoch and first sequence."""
    def size_in_bytes(
        self,
        offset: int,
        timestamp: int,
        key: Buffer | None,
        value: Buffer | None,
        headers: list[tuple[str, Buffer | None]],
    ) -> int:
        """Size of a record if appended to this batch."""
    @staticmethod
    def size_of(key: Buffer | None, value: Buffer | None, headers: list[tuple[str, Buffer | None]]) -> int:
        """Size of key, value and headers including their lengths."""
    @staticmethod
    def estimate_size_in_bytes(
        key: Buffer | None, value: Buffer | None, headers: list[tuple[str, Buffer | None]]
    ) -> int:
        """Upper bound for the size of a batch with this single record."""

class KafkaPythonDefaultRecordBatchBuilder(_DefaultRecordBatchBuilder):
    """kafka-python's `DefaultRecordBatchBuilder`."""

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
    MAX_RECORD_OVERHEAD: ClassVar[int]
    @property
    def _producer_id(self) -> int:
        """The original's own name for the producer's id."""
    @property
    def _producer_epoch(self) -> int:
        """The original's own name for the producer's epoch."""
    @property
    def _base_sequence(self) -> int:
        """The original's own name for the first sequence number."""
    def __new__(
        cls,
        magic: int,
        compression_type: int,
        is_transactional: object,
        producer_id: int,
        producer_epoch: int,
        base_sequence: int,
        batch_size: int,
    ) -> Self: ...
    def set_producer_state(
        self, producer_id: int, producer_epoch: int, base_sequence: int, is_transactional: object
    ) -> None:
        """Sets the producer; raises AssertionError for a combination that Kafka does not allow."""
    @staticmethod
    def header_size_in_bytes() -> int:
        """Size of a batch without records: 61."""
    @staticmethod
    def size_in_bytes(
        offset_delta: int,
        timestamp_delta: int,
        key: Buffer | None,
        value: Buffer | None,
        headers: Iterable[tuple[str, Buffer | None]],
    ) -> int:
        """Size of a record with these deltas."""
    @staticmethod
    def size_of(
        key: Buffer | None, value: Buffer | None, headers: Iterable[tuple[str, Buffer | None]]
    ) -> int:
        """Size of key, value and headers including their lengths."""
    @staticmethod
    def estimate_size_in_bytes(
        key: Buffer | None, value: Buffer | None, headers: Iterable[tuple[str, Buffer | None]]
    ) -> int:
        """Upper bound for the size of a batch with this single record."""

@disjoint_base
class _LegacyRecordBatchBuilder:
    """Builds one message set. Its first offset is 0; the broker assigns the final offset."""

    CODEC_MASK: ClassVar[int]
    CODEC_GZIP: ClassVar[int]
    CODEC_SNAPPY: ClassVar[int]
    CODEC_LZ4: ClassVar[int]
    def append(
        self,
        offset: int,
        timestamp: int | None,
        key: Buffer | None,
        value: Buffer | None,
        headers: object = None,
    ) -> LegacyRecordMetadata | None:
        """Appends a message; None if the set is full. The timestamp is in ms, None for now.

        Raises TypeError for wrong types, ValueError for an offset that exceeds 32 bits.
        """
    def size(self) -> int:
        """Size of the set: uncompressed until it is built."""
    def build(self) -> bytearray:
        """The finished set; the same object until the builder changes.

        Raises UnsupportedCodecError for an unknown or unavailable codec.
        """

class AiokafkaLegacyRecordBatchBuilder(_LegacyRecordBatchBuilder):
    """aiokafka's `LegacyRecordBatchBuilder`."""

    def __new__(cls, magic: int, compression_type: int, batch_size: int) -> Self: ...
    def size_in_bytes(
        self, offset: object, timestamp: object, key: Buffer | None, value: Buffer | None
    ) -> int:
        """Size of a message with this key and value, including its offset and size fields."""
    @staticmethod
    def record_overhead(magic: int) -> int:
        """Size of a message without offset, size, key and value."""

class KafkaPythonLegacyRecordBatchBuilder(_LegacyRecordBatchBuilder):
    """kafka-python's `LegacyRecordBatchBuilder`."""

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
    def __new__(cls, magic: int, compression_type: int, batch_size: int) -> Self: ...
    def size_in_bytes(
        self,
        offset: object,
        timestamp: object,
        key: Buffer | None,
        value: Buffer | None,
        headers: object = None,
    ) -> int:
        """Size of a message with this key and value, including its offset and size fields."""
    @staticmethod
    def record_size(magic: int, key: Buffer | None, value: Buffer | None) -> int:
        """Size of a message without its offset and size fields."""
    @staticmethod
    def record_overhead(magic: int) -> int:
        """Size of a message without offset, size, key and value."""
    @staticmethod
    def estimate_size_in_bytes(
        magic: int, compression_type: object, key: Buffer | None, value: Buffer | None
    ) -> int:
        """Upper bound for the size of a set with this single message."""
