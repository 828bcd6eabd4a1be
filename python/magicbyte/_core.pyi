"""The compiled core: Kafka's record format, the segment directory and Arrow columns, in Rust.

Import the public names from `magicbyte`. The functions of the job layer at the end of this file
(`list_partition` .. `reconcile`) exchange JSON texts whose shapes are the TypedDicts of
`magicbyte.jobs.model`.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from struct import Struct
from typing import Any, ClassVar, Final, Literal, Self, SupportsInt, final

from typing_extensions import Buffer, disjoint_base

from magicbyte.columns import Columns
from magicbyte.convert import Losses
from magicbyte.enums import Compression, TimestampType

__all__ = [
    "DEFAULT_MAX_DECOMPRESSED_BYTES",
    "LISTED",
    "MAX_COLUMN_PAYLOAD",
    "AbortedFilter",
    "AiokafkaDefaultRecord",
    "AiokafkaDefaultRecordBatch",
    "AiokafkaDefaultRecordBatchBuilder",
    "AiokafkaLegacyRecord",
    "AiokafkaLegacyRecordBatch",
    "AiokafkaLegacyRecordBatchBuilder",
    "AiokafkaMemoryRecords",
    "AppendValidatorCore",
    "ArrowBatch",
    "ArrowSchema",
    "ArrowStream",
    "Batches",
    "ChunkDecoder",
    "Converter",
    "DefaultRecordMetadata",
    "InternalError",
    "KafkaPythonControlRecord",
    "KafkaPythonDefaultRecord",
    "KafkaPythonDefaultRecordBatch",
    "KafkaPythonDefaultRecordBatchBuilder",
    "KafkaPythonLegacyRecord",
    "KafkaPythonLegacyRecordBatch",
    "KafkaPythonLegacyRecordBatchBuilder",
    "KafkaPythonMemoryRecords",
    "KeySet",
    "LeaderEpochs",
    "LegacyBatch",
    "LegacyRecordMetadata",
    "LogBatchesCore",
    "PartitionLogCore",
    "PartitionSimulatorCore",
    "PartitionWriter",
    "ProducerState",
    "Record",
    "RecordBatch",
    "RecordIterator",
    "RecordsBuilder",
    "RescuerCore",
    "RowsWriter",
    "VerificationGuard",
    "_Batch",
    "_DefaultRecordBatch",
    "_DefaultRecordBatchBuilder",
    "_LegacyRecordBatch",
    "_LegacyRecordBatchBuilder",
    "_MemoryRecords",
    "__version__",
    "aiokafka_crc32c",
    "aiokafka_decode_varint",
    "aiokafka_encode_varint",
    "aiokafka_size_of_varint",
    "arrow_schema",
    "begin_partition",
    "check_produce_request",
    "check_segment",
    "collect_aborted_transactions",
    "compact_group",
    "compat_counts",
    "crc32c",
    "decode_varint",
    "decompress",
    "encode_varint",
    "finish_partition",
    "index_keys",
    "kafka_python_crc32c",
    "kafka_python_decode_varint",
    "kafka_python_encode_varint",
    "kafka_python_size_of_varint",
    "leader_epoch_checkpoint",
    "list_partition",
    "log_facts",
    "offset_for_timestamp",
    "offset_index",
    "partition_metadata",
    "plan_compaction",
    "plan_partition",
    "plan_redaction",
    "producer_snapshot",
    "read_batches",
    "read_sidecar",
    "rebuild_sidecars",
    "reconcile",
    "redact_group",
    "reduce_keys",
    "rewrite_chunks",
    "set_aside",
    "set_last_offset",
    "set_max_timestamp",
    "set_partition_leader_epoch",
    "survey_segment",
    "tell_segment",
    "tell_story",
    "time_index",
    "transaction_index",
    "trim_chunk",
    "unreadable_directory",
]
__version__: Final[str]
DEFAULT_MAX_DECOMPRESSED_BYTES: Final[int]
"""The default cap on what one batch may decompress to: 256 MiB."""
MAX_COLUMN_PAYLOAD: Final[int]
"""Columns take batches that decompress to no more: 1 GiB. Arrow counts bytes in 32 bits."""
LISTED: Final[int]
"""Reports list so many findings of a kind, 1000, and count all of them."""

class InternalError(RuntimeError):
    """A defect of magicbyte: its Rust code panicked. Please report it, with its message.

    The objects concerned can be used on; a stream of Arrow batches has ended. Not a
    `magicbyte.Error`: nothing is known about the bytes that were read.
    """

def crc32c(data: Buffer, value: int = 0) -> int:
    """CRC-32C (Castagnoli) of `data` in hardware, continuing the checksum `value`."""

def encode_varint(n: int) -> bytes:
    """The zigzag varint of a 64-bit integer: 1 to 10 bytes. Raises OverflowError beyond 64 bits."""

def decode_varint(data: Buffer, position: int = 0) -> tuple[int, int]:
    """The zigzag varint (64-bit) at `position`: its value and the position behind it.

    Raises InvalidRecordError if the data ends inside it or it has more than 10 bytes.
    """

def read_batches(
    buffer: Buffer,
    *,
    check_crcs: bool = True,
    max_decompressed_bytes: int = ...,
) -> Batches:
    """Frames `buffer` into batches of mixed magics; decompresses nothing yet.

    A `bytes` object is shared, any other buffer is copied once, since it could change. Framing
    errors are raised by the iterator; a wrong CRC or a bad record by the batch, when its records,
    columns or Arrow form are asked for, so that its header can be looked at all the same.
    """

@final
class Batches:
    """An iterator of the batches in a buffer, and an Arrow stream of all its data records."""

    @property
    def remaining(self) -> int:
        """Bytes not framed yet: at the end, those of a cut last batch (normal in a fetch)."""
    @property
    def needed(self) -> int:
        """How many bytes the next batch lacks at least; 0 when it is whole or nothing is there."""
    def __iter__(self) -> Self: ...
    def __next__(self) -> RecordBatch | LegacyBatch: ...
    def to_arrow(
        self,
        columns: Sequence[str] | None = None,
        *,
        views: bool = False,
        start_offset: int | None = None,
        end_offset: int | None = None,
        start_timestamp: int | None = None,
        end_timestamp: int | None = None,
        threads: int = 1,
    ) -> ArrowStream:
        """The data records of the whole buffer as columns, whatever was iterated before.

        As `PartitionLog.to_arrow`, without topic, partition and segment, which a buffer does not know.
        Ranges are judged by a batch's header once its CRC holds, then record by record; message sets of
        magic 0 and 1 are always decoded. Raises ValueError for columns or threads that cannot be;
        damage ends the stream with an error.
        """
    def __arrow_c_schema__(self) -> object: ...
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """The stream of `to_arrow()`, or of the columns and types asked for, if they are ours."""

@final
class ArrowStream:
    """Records as columns, for any Arrow consumer: pyarrow, polars, DuckDB, pandas.

    Gives a fresh stream to each; memory is bounded whatever the input's size.
    """

    def __arrow_c_schema__(self) -> object: ...
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """A stream from the beginning; cheap until its first batch is asked for.

        A requested schema is given where all its columns and types are ours, else passed over: the
        interface leaves the rest to the consumer.
        """
    def problems(self) -> str:
        """What the last stream over a log left out so far, as JSON: see `PartitionLog.problems`."""
    def problems_left_out(self) -> int:
        """How many more it left out: see `PartitionLog.problems_left_out`."""
    @property
    def end_offset(self) -> int | None:
        """Where the last stream over a log ends (exclusive): see `PartitionLog.end_offset`."""

@disjoint_base
class _Batch:
    """What both kinds of batch have; None where a magic has no such field."""

    @property
    def magic(self) -> int:
        """0, 1 or 2."""
    @property
    def base_offset(self) -> int:
        """Offset of the first record; a compressed legacy batch is decompressed for it."""
    @property
    def last_offset(self) -> int:
        """Offset of the last record that was ever in the batch (inclusive): survives compaction."""
    @property
    def next_offset(self) -> int:
        """`last_offset + 1`: where a consumer goes on."""
    @property
    def position(self) -> int:
        """Byte position of the batch in its input or segment."""
    @property
    def size_in_bytes(self) -> int:
        """Bytes of the whole batch, offset and length fields included."""
    @property
    def crc(self) -> int:
        """The stored checksum: CRC-32C of magic 2, CRC-32 of the outer message before."""
    def is_valid(self) -> bool:
        """Whether the checksum holds. Never raises."""
    @property
    def compression(self) -> Compression:
        """The codec. Raises UnsupportedCompressionError for the numbers 5 to 7."""
    @property
    def timestamp_type(self) -> TimestampType:
        """Whose clock the timestamps are."""
    @property
    def base_timestamp(self) -> int | None:
        """The time (ms) that the records' deltas count from."""
    @property
    def max_timestamp(self) -> int:
        """The largest timestamp (ms), or the append time; -1 for none."""
    @property
    def delete_horizon_ms(self) -> int | None:
        """When (ms) tombstones or the marker may go, if the cleaner set that."""
    @property
    def partition_leader_epoch(self) -> int | None:
        """Epoch of the leader that appended the batch; outside the CRC."""
    @property
    def record_count(self) -> int | None:
        """Records the header announces; None for a compressed legacy batch until it was decompressed."""
    @property
    def producer_id(self) -> int | None:
        """The producer's id, -1 for none."""
    @property
    def producer_epoch(self) -> int | None:
        """The producer's epoch, -1 for none."""
    @property
    def base_sequence(self) -> int | None:
        """The first record's sequence number, -1 for none."""
    @property
    def last_sequence(self) -> int | None:
        """The last record's sequence number, -1 for none; after 2**31 - 1 comes 0."""
    @property
    def is_transactional(self) -> bool:
        """Whether the batch belongs to a transaction."""
    @property
    def is_control(self) -> bool:
        """Whether it holds a control record, which consumers do not get."""
    def __iter__(self) -> RecordIterator:
        """Checks the CRC, decompresses and checks every record, then iterates them."""
    def columns(self) -> Columns:
        """All records as four lists; keys and values are copied."""
    def to_bytes(self) -> bytes:
        """The batch as it stands, copied."""
    def to_arrow(self, columns: Sequence[str] | None = None, *, views: bool = False) -> ArrowBatch:
        """The records as columns, by default offset timestamp (ms) timestampType key value headers.

        As `Batches.to_arrow`, for this batch alone, control records included. A call costs microseconds,
        so small batches are better read as one stream.
        """
    def __arrow_c_schema__(self) -> object: ...
    def __arrow_c_array__(self, requested_schema: object | None = None) -> tuple[object, object]: ...
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...

@final
class RecordBatch(_Batch):
    """A batch of magic 2."""

@final
class LegacyBatch(_Batch):
    """One outermost message of magic 0 or 1, with what is inside."""

@final
class RecordIterator:
    """Iterates the records of one batch."""

    def __iter__(self) -> Self: ...
    def __next__(self) -> Record: ...
    def __length_hint__(self) -> int: ...

@final
class Record:
    """One record. Views keep its whole batch alive and never change; `*_bytes` copy."""

    @property
    def offset(self) -> int:
        """Absolute offset in the partition."""
    @property
    def timestamp(self) -> int:
        """Milliseconds since 1970; -1 for none."""
    @property
    def timestamp_type(self) -> TimestampType:
        """Whose clock the timestamp is."""
    @property
    def key(self) -> memoryview | None:
        """The key as a read-only view; None for null."""
    @property
    def value(self) -> memoryview | None:
        """The value as a read-only view; None for null."""
    @property
    def key_bytes(self) -> bytes | None:
        """The key, copied: for small keys faster than a view."""
    @property
    def value_bytes(self) -> bytes | None:
        """The value, copied: for small values faster than a view."""
    @property
    def headers(self) -> list[tuple[str, memoryview | None]]:
        """The headers in order, duplicates kept; bytes of a key that are no UTF-8 as surrogate escapes."""
    @property
    def headers_raw(self) -> list[tuple[bytes, bytes | None]]:
        """The headers in order, as bytes, copied."""
    def last_header(self, key: str | Buffer, /) -> tuple[str, memoryview | None] | None:
        """The last header with this key, as `headers` has it; None if there is none (Java's lastHeader).

        A str stands for its UTF-8, surrogate escapes for the bytes they came from.
        """
    def headers_for(self, key: str | Buffer, /) -> list[tuple[str, memoryview | None]]:
        """The headers with this key in order (Java's `Headers.headers(key)`)."""
    @property
    def sequence(self) -> int | None:
        """The producer's sequence number, -1 for none; None for magic 0 and 1."""
    @property
    def attributes(self) -> int:
        """The record's own attributes byte, 0 to 255."""
    @property
    def control(self) -> dict[str, Any] | None:
        """For a record of a control batch: its `type` and payload. Raises Error if it is malformed."""

_Headers = Iterable[tuple[str | Buffer, Buffer | None]]
_RecordTuple = (
    tuple[int, int, Buffer | None, Buffer | None]
    | tuple[int, int, Buffer | None, Buffer | None, _Headers | None]
)

@final
class RecordsBuilder:
    """Builds one batch after another; contexts and buffers are kept between them.

    Uncompressed and snappy batches are the bytes Kafka writes for the same records; of the other
    codecs, frames that Kafka reads. Keys, values and header values are any object with the buffer
    protocol over bytes (`bytes` is the fastest), or None for null.

    Args:
        magic: 2, or 1 or 0: a message for each record, or one wrapper if compressed.
        compression: the codec; zstd needs magic 2.
        level: gzip -1 or 1 to 9, zstd -131072 to 22, lz4 1 to 17, of which 9 is Kafka's fast compressor and
            all others are high compression; None for Kafka's default.
        producer_id: an idempotent producer's id, -1 for none; with `producer_epoch` and
            `base_sequence`, which goes on behind each batch built (-1 in control batches).
        is_transactional: the batch belongs to a transaction of its producer.
        is_control: the batch holds control records; keys are checked to be theirs.
        partition_leader_epoch: epoch of the leader that appends the batch, -1 for none.
        delete_horizon_ms: when (ms) tombstones or the marker may go.
        timestamp_type: follows from `magic` and `log_append_time`; an error if it contradicts them.
        log_append_time: the broker's time (ms), which stands for every record's own.
        base_offset: offset of the first batch, if it begins before its first record.
        max_size_in_bytes: the most a batch may have; compressed ones are judged by the estimate.

    Raises:
        Error: for options that Kafka does not combine (`kind` is "invalid_options"), or with the
            subclasses UnsupportedMagicError and UnsupportedCompressionError.

    """

    def __new__(
        cls,
        magic: int = 2,
        compression: int = 0,
        level: int | None = None,
        *,
        producer_id: int = ...,
        producer_epoch: int = ...,
        base_sequence: int = ...,
        is_transactional: bool = False,
        is_control: bool = False,
        partition_leader_epoch: int = ...,
        delete_horizon_ms: int | None = None,
        timestamp_type: int | None = None,
        log_append_time: int | None = None,
        base_offset: int | None = None,
        max_size_in_bytes: int | None = None,
    ) -> Self: ...
    def append(
        self,
        offset: int,
        timestamp: int,
        key: Buffer | None = None,
        value: Buffer | None = None,
        headers: _Headers | None = None,
    ) -> None:
        """Appends one record: its absolute offset, and its timestamp in ms (-1 for none).

        Offsets rise from one to the next, within 2**31 - 1 of the base; gaps are kept. A header key
        that is a str is written as UTF-8, surrogate escapes as the bytes they stand for.

        Raises InvalidRecordError or LimitExceededError with `record_index` and `field`; the batch is
        then as it was before.
        """
    def append_many(self, records: Iterable[_RecordTuple | Record]) -> None:
        """Appends tuples (offset, timestamp, key, value) with or without headers, or records.

        Raises as `append` for the first that is refused; those before it stay in the batch.
        """
    def append_arrow(self, data: object, *, offset: int = 0, timestamp: int = ...) -> int:
        """Appends the rows of Arrow data in one call; returns how many. Nothing is copied on the way.

        Args:
            data: Anything with `__arrow_c_array__` or `__arrow_c_stream__`: a record batch, a table, a
                polars frame. Columns by name: `value` and, where they are there, `key` (binary or text),
                `offset` (int64), `timestamp` (int64 ms or a timestamp), `headers` (list of key and
                value).
            offset: Of the first row, if there is no such column; the next rows go on from it.
            timestamp: In milliseconds, of rows without one.

        Raises:
            Error: As `append`; the rows before it were appended.
        """
    def has_room_for(
        self,
        timestamp: int,
        key: Buffer | None = None,
        value: Buffer | None = None,
        headers: _Headers | None = None,
    ) -> bool:
        """Whether one more record keeps within `max_size_in_bytes`: as in Kafka, always for the first."""
    @property
    def estimated_size_in_bytes(self) -> int:
        """Bytes of the batch if built now: exact if uncompressed, else from the ratio so far."""
    @property
    def record_count(self) -> int:
        """How many records the batch has so far."""
    def build(self) -> bytes:
        """The finished batch, empty if there are no records; the builder begins the next.

        Releases the GIL.
        """
    def empty_batch(self, last_offset: int, max_timestamp: int) -> bytes:
        """What compaction keeps of a batch whose records are all gone: 61 bytes, magic 2 only.

        It begins at the `base_offset` given and ends at `last_offset` (inclusive).
        """

# --- magicbyte.convert ---

@final
class Converter:
    """Converts batches again and again; codec contexts and buffers are kept between calls.

    Every method takes whole batches, one after another, and gives new `bytes`: all of them, or an error
    that names the byte, the batch and the record. Releases the GIL; calls from several threads wait for
    each other.

    Args:
        compression: the codec to write; None keeps each batch's, at Kafka's default level.
        level: of `compression`, as in `RecordsBuilder`; None for Kafka's default.
        max_decompressed_bytes: refuses a batch that decompresses to more.

    Raises:
        UnsupportedCompressionError: for a codec or level that cannot be written.
        Error: for a level without a codec (`kind` is "invalid_options").

    """

    def __new__(
        cls,
        compression: int | None = None,
        level: int | None = None,
        *,
        max_decompressed_bytes: int = ...,
    ) -> Self: ...
    def up_convert(self, data: Buffer) -> bytes:
        """Writes every batch as magic 2, by the rules of Kafka 4's cleaner, but drops nothing.

        A compressed wrapper becomes one batch, as does an uncompressed message. Magic 0 has no timestamps:
        they are -1 afterwards. Batches of magic 2 keep all they have but their codec.
        """
    def down_convert(self, data: Buffer, magic: int) -> tuple[bytes, Losses]:
        """Writes every batch as magic 0 or 1, as brokers up to 3.9 did (`RecordsUtil.downConvert`).

        Control batches and batches without records are left out; headers, producers and transactions go:
        the losses count that. A batch whose magic is not larger keeps all it has but its codec.

        Raises UnsupportedCompressionError where zstd would be written.
        """
    def recompress(self, data: Buffer) -> bytes:
        """Compresses the records of every batch anew, as bytes: all else of a batch stays.

        From none to a codec and back gives the same bytes. A compressed message of magic 0 or 1 becomes
        its single messages without a codec, and a single one gets a wrapper with one.
        """
    def merge(self, data: Buffer) -> bytes:
        """Writes consecutive batches of magic 2 as one, with the codec of the first or the converter's.

        Raises Error (`kind` "invalid_options") for what cannot be one batch: other flags, producers, leader
        epochs, append times or delete horizons, a gap in a producer's sequences, control batches, batches
        without records.
        """
    def split(self, data: Buffer, max_size_in_bytes: int) -> bytes:
        """Writes every batch of magic 2 as several of at most this size before compression.

        A larger record gets a batch of its own. Control batches stay as they are. Sequences go on.
        """
    def rebatch(self, data: Buffer, max_size_in_bytes: int) -> bytes:
        """Packs records tightly into batches of magic 2 of at most this size before compression.

        Only what no producer, transaction or cleaner has marked is packed; all else is converted as
        `up_convert` does, in its place.
        """
    def assign_offsets(self, batch: Buffer, base_offset: int) -> bytes:
        """Writes one batch of magic 0 with offsets from `base_offset` on, as brokers did for producers.

        Those inside a wrapper are absolute, so that it is compressed anew. All other batches are moved by
        `set_last_offset`.
        """

def set_last_offset(batch: Buffer, last_offset: int) -> bytes:
    """As `magicbyte.convert.set_last_offset`."""

def set_partition_leader_epoch(data: Buffer, epoch: int) -> bytes:
    """As `magicbyte.convert.set_partition_leader_epoch`."""

def set_max_timestamp(data: Buffer, timestamp_type: int, max_timestamp: int) -> bytes:
    """As `magicbyte.convert.set_max_timestamp`."""

# --- below magicbyte.log ---

@final
class PartitionLogCore:
    """A partition's directory."""

    def __new__(cls, path: str) -> Self: ...
    def listing(self) -> str:
        """What is in the directory, as JSON."""
    def verify(self, isolation_level: str, max_decompressed_bytes: int) -> str:
        """Decodes everything and accounts for every byte; JSON."""
    def offset_for_timestamp(self, timestamp: int) -> int | None:
        """The first offset whose record has this timestamp (ms) or a later one."""
    def to_arrow(
        self,
        columns: Sequence[str] | None,
        *,
        views: bool,
        start_offset: int | None,
        end_offset: int | None,
        start_timestamp: int | None,
        end_timestamp: int | None,
        threads: int,
        isolation_level: str,
        check_crcs: bool,
        max_decompressed_bytes: int,
        skip_damage: bool,
    ) -> ArrowStream:
        """The data records that are asked for as columns."""
    def batches(
        self,
        *,
        start_offset: int | None,
        end_offset: int | None,
        start_timestamp: int | None,
        isolation_level: str,
        check_crcs: bool,
        max_decompressed_bytes: int,
        skip_damage: bool,
    ) -> LogBatchesCore:
        """The batches that hold what is asked for."""

@final
class LogBatchesCore:
    """Iterates (batch, segment file, start offset, end offset (exclusive), is data)."""

    def __iter__(self) -> Self: ...
    def __next__(self) -> tuple[RecordBatch | LegacyBatch, str, int, int, bool]: ...
    def problems(self) -> str:
        """What was left out so far, as JSON: the first `LISTED`."""
    def problems_left_out(self) -> int:
        """How many more were left out."""
    @property
    def end_offset(self) -> int:
        """Nothing is read from this offset on: what was asked for, or the last stable offset."""

@final
class RescuerCore:
    """Iterates a segment's quarantined ranges: (position, data, kind, message, repair, suspects).

    A repair is (batch, first byte changed, what was changed, chance of another cause, whether it counts as
    proven), a suspect (offset, timestamp, key, value, headers).
    """

    def __new__(cls, survey: str, *, max_decompressed_bytes: int = ...) -> Self: ...
    def __iter__(self) -> Self: ...
    def __next__(
        self,
    ) -> tuple[
        int,
        bytes,
        str,
        str,
        tuple[bytes, int, str, float, bool] | None,
        list[tuple[int, int, bytes | None, bytes | None, list[tuple[str, bytes | None]]]],
    ]: ...

# --- the files beside a segment, for `magicbyte dump` ---

def read_sidecar(path: str | PathLike[str]) -> bytes:
    """The content of an index, snapshot or checkpoint file, in memory.

    Raises OSError if it cannot be read, is no regular file, or is larger than 64 MiB.
    """

def offset_index(data: bytes, base_offset: int, *, check: bool = True) -> list[tuple[int, int]]:
    """The entries of an `.index`, (offset, position); the zero tail is left out.

    Raises Error if the size or the order is wrong; without `check` shows what is there.
    """

def time_index(data: bytes, base_offset: int, *, check: bool = True) -> list[tuple[int, int]]:
    """The entries of a `.timeindex`, (timestamp in ms, offset); as `offset_index`."""

def transaction_index(data: bytes) -> list[tuple[int, int, int, int, int]]:
    """The entries of a `.txnindex`: version, producer id, first, last (inclusive), last stable offset."""

def collect_aborted_transactions(
    data: bytes, start: int, end: int
) -> tuple[list[tuple[int, int, int, int, int]], bool]:
    """The entries of a `.txnindex` that a fetch of offsets from `start` to `end` (exclusive) has to know.

    And whether no later segment can have more (`TransactionIndex.collectAbortedTxns`).
    """

def producer_snapshot(data: bytes) -> list[tuple[int, int, int, int, int, int, int, int | None]]:
    """The producers of a `.snapshot`.

    Producer id, epoch, last sequence, last offset, offset delta, timestamp (ms), coordinator epoch,
    first offset of the open transaction. Raises Error or, for a wrong CRC, CorruptRecordError.
    """

def leader_epoch_checkpoint(text: str) -> list[tuple[int, int]]:
    """The lines of a `leader-epoch-checkpoint`: epoch, start offset."""

def partition_metadata(text: str) -> tuple[int, str]:
    """What `partition.metadata` says: version, topic id."""

def decompress(compression: int, magic: int, payload: Buffer, *, max_decompressed_bytes: int = ...) -> bytes:
    """A batch's payload, decompressed with the codec of this number as Kafka does it for `magic`."""

# --- the job layer: JSON in, JSON out (magicbyte.jobs.model) ---

def list_partition(path: str | PathLike[str], *, include_checkpoints: bool = False) -> str:
    """Lists a partition's directory, or a single segment file: a PartitionListing.

    Raises OSError if it cannot be listed, or its path is not UTF-8.
    """

def unreadable_directory(path: str | PathLike[str], why: str) -> str:
    """The PartitionListing of a directory that cannot be listed: its problem, and nothing to read."""

def survey_segment(segment: str) -> str:
    """Scans the batch headers of a Segment: a Survey."""

def tell_segment(segment: str) -> str:
    """A segment's survey and its part of the story, by its batch headers: JSON in and out."""

def tell_story(
    listing: str,
    stories: Sequence[str],
    *,
    now: int,
    max_transaction_timeout_ms: int,
    bins: int,
    listed: int,
) -> str:
    """Folds the stories of a listing's segments: JSON in and out (`jobs/explain.py` has its shape)."""

def plan_partition(
    listing: str,
    surveys: Sequence[str],
    *,
    isolation_level: str = "read_uncommitted",
    start_offset: int | None = None,
    end_offset: int | None = None,
    chunk_bytes: int = ...,
) -> str:
    """Folds the Surveys of a listing's segments, in any order, into a PartitionPlan."""

def offset_for_timestamp(plan: str, timestamp: int) -> int | None:
    """The first offset whose record has this timestamp (ms) or a later one."""

def trim_chunk(chunk: str) -> str | None:
    """Narrows a Chunk to the bytes of its offsets asked for and the damage between; None: there are none.

    Ranges of offsets that follow one another give ranges of bytes that do. What stands behind the
    last good batch of the log is in none: it may still be written.
    """

def reconcile(plan: str, results: Sequence[str]) -> str:
    """Joins the ChunkResults of a plan, in any order, into a PartitionReconciliation."""

@final
class ArrowBatch:
    """One Arrow record batch; `pyarrow.record_batch(batch)` takes it without a copy."""

    @property
    def num_rows(self) -> int:
        """How many rows it has."""
    def __len__(self) -> int: ...
    def __arrow_c_schema__(self) -> object: ...
    def __arrow_c_array__(self, requested_schema: object | None = None) -> tuple[object, object]: ...

@final
class ChunkDecoder:
    """Decodes one Chunk of a plan into Arrow batches of the table `records`, as Spark takes them."""

    def __new__(
        cls,
        chunk: str,
        *,
        columns: Sequence[str],
        max_batch_bytes: int = ...,
        max_batch_rows: int = ...,
        max_decompressed_bytes: int = ...,
        batches_table: bool = True,
        check_crcs: bool = True,
        fail_fast: bool = False,
    ) -> Self: ...
    @property
    def bytes_read(self) -> int:
        """How far the chunk was read, in bytes."""
    def __iter__(self) -> Self: ...
    def __next__(self) -> ArrowBatch: ...
    def take_batches(self) -> ArrowBatch | None:
        """Rows of the table `batches` since the last call, or None."""
    def take_problems(self) -> ArrowBatch | None:
        """Rows of the table `problems` since the last call, or None."""
    @property
    def checksum(self) -> int:
        """A checksum of the batches so far: another reader of the same file has it, too."""
    def result(self) -> str:
        """The accounts of the chunk, complete once the iterator is at its end."""

def arrow_schema(table: str, columns: Sequence[str] | None = None) -> ArrowSchema:
    """The Arrow schema of `records` (with these columns), `batches` or `problems`."""

@final
class ArrowSchema:
    """An Arrow schema."""

    def __arrow_c_schema__(self) -> object: ...

def begin_partition(target: str | PathLike[str]) -> Path:
    """Makes the hidden directory in which the partition `target` is written, and gives its path.

    Only one writer of a target can be at work.

    Raises:
        ValueError: The directory is there, as of another writer or of one that was killed: nothing tells
            which, so it is the caller's to remove.
        FileExistsError: The target is there already, and is not an empty directory.
    """

@final
class PartitionWriter:
    """Writes batches of one partition into segments with their `.index` and `.timeindex`.

    `directory` (made if it is not there) is the one of `begin_partition` or, for one of several
    tasks, one inside it; `base_offset` the first offset of the log or of the task's part. The other
    names are Kafka's topic configs; without `segment_ms` no segment ends by time.
    """

    def __new__(
        cls,
        directory: str | PathLike[str],
        base_offset: int = 0,
        *,
        segment_bytes: int = ...,
        segment_ms: int | None = None,
        index_interval_bytes: int = ...,
        segment_index_bytes: int = ...,
    ) -> Self: ...
    @property
    def next_offset(self) -> int:
        """The smallest offset the next batch can have."""
    def append(self, data: Buffer) -> int:
        """Appends the whole batches that `data` consists of; returns how many.

        Raises:
            Error: Names the first batch that is damaged, out of order or larger than a segment;
                those before it were appended, and the writer can go on.
            OSError: A file could not be written; the writer cannot go on.
        """
    def finish(self) -> list[str]:
        """Closes the last segment, syncs it, and gives the SegmentSummaries for `finish_partition`."""

def finish_partition(
    target: str | PathLike[str],
    summaries: Sequence[str],
    *,
    topic_id: str | None = None,
    epochs_of: str | PathLike[str] | None = None,
) -> None:
    """Makes the partition `target` of the segments in these SegmentSummaries, in any order.

    Writes what spans segments (`.txnindex`, `.snapshot`, `leader-epoch-checkpoint`), and
    `partition.metadata` for a topic id; syncs; gives the directory its name at the end. With `epochs_of`, a
    directory, the leader epochs go on from its checkpoint.

    Raises:
        ValueError: Segments overlap, are elsewhere or not as their summary says; no topic id.
        FileExistsError: The target is there already.
    """

def rebuild_sidecars(
    directory: str | PathLike[str],
    *,
    index_interval_bytes: int = ...,
    expired_until: int | None = None,
    dry_run: bool = False,
) -> str:
    """Rebuilds a partition's sidecars from its segments, in place: as a broker after a crash.

    Producers last heard of at or before `expired_until` (ms) are forgotten between segments, as a
    broker's clock has it. The report is a list of RebuiltFile: file, change, size.

    Raises:
        Error: Bytes that are no sound batch; a tail behind the last batch is left out.
    """

def rewrite_chunks(
    chunks: list[str],
    directory: str | PathLike[str],
    base_offset: int,
    *,
    magic: int | None = None,
    compression: int | None = None,
    level: int | None = None,
    rebatch: int | None = None,
    leader_epoch: int | None = None,
    max_decompressed_bytes: int = ...,
    segment_bytes: int = ...,
    segment_ms: int | None = None,
    index_interval_bytes: int = ...,
) -> str:
    """Reads neighbouring chunks of a partition, converts their batches, writes them as segments.

    The first segment has this base offset. Returns JSON: `results`, a ChunkResult a chunk as text, the
    first `problems` and `problems_left_out`, `segments` for `finish_partition` with their `batches` and
    `size`, the `records` written, `losses`.

    Raises:
        ValueError: Options that exclude each other, or a level the codec does not have.
        Error: A batch larger than a segment.
        OSError: A file could not be read or written.
    """

def set_aside(chunk: str, reason: str) -> str:
    """The ChunkResult of a chunk that is not read."""

@final
class RowsWriter:
    """Writes the rows of one partition as segments: for `df.write.format("magicbyte")`.

    `directory` is one for `finish_partition`; `timestamp` (ms) that of rows without one.
    """

    def __new__(
        cls,
        directory: str | PathLike[str],
        *,
        compression: int = 0,
        level: int | None = None,
        batch_bytes: int = ...,
        timestamp: int = ...,
        segment_bytes: int = ...,
    ) -> Self: ...
    def append(self, data: object) -> None:
        """Appends the rows of Arrow data; see `RecordsBuilder.append_arrow`.

        Raises ValueError that names the row: offsets that do not rise, a null header key.
        """
    def finish(self) -> tuple[list[str], int, int | None, int]:
        """Closes the last segment: SegmentSummaries, rows, first offset, the offset behind the last."""

# --- drop-ins: magicbyte.compat.aiokafka and magicbyte.compat.kafka_python ---

def compat_counts(client: str) -> tuple[int, int, int, int]:
    """Batches and records read, batches and records built by the drop-in since the process began."""

def aiokafka_crc32c(data: Buffer) -> int:
    """CRC-32C (Castagnoli) of `data` in hardware."""

def kafka_python_crc32c(memview: Buffer) -> int:
    """CRC-32C (Castagnoli) of `memview` in hardware."""

def aiokafka_decode_varint(buffer: Buffer, pos: int = 0) -> tuple[int, int]:
    """The zigzag varint (64-bit) at `pos`: its value and the position behind it.

    Raises ValueError for more than 10 bytes, IndexError if the buffer ends before.
    """

def kafka_python_decode_varint(buffer: Buffer, pos: int = 0) -> tuple[int, int]:
    """As `aiokafka_decode_varint`, but for the error's text."""

def aiokafka_encode_varint(value: SupportsInt, write: Callable[[int], object]) -> int:
    """Calls `write` with each byte of the zigzag varint of a 64-bit integer; returns their number."""

def kafka_python_encode_varint(value: int, write: Callable[[int], object]) -> int:
    """As `aiokafka_encode_varint`, but of integers only."""

def aiokafka_size_of_varint(value: SupportsInt) -> int:
    """Bytes of the zigzag varint of a 64-bit integer: 1 to 10."""

def kafka_python_size_of_varint(value: int) -> int:
    """As `aiokafka_size_of_varint`, but of integers only."""

@final
class DefaultRecordMetadata:
    """What `append` gives for a record of magic 2: offset, size in bytes, timestamp in ms."""

    def __new__(cls, offset: int, size: int, timestamp: int) -> Self: ...
    @property
    def offset(self) -> int:
        """The offset that was given."""
    @property
    def size(self) -> int:
        """Bytes of the record with its length field."""
    @property
    def timestamp(self) -> int:
        """Milliseconds since 1970, as stored."""
    @property
    def crc(self) -> None:
        """None: magic 2 has one for the batch."""

@final
class LegacyRecordMetadata:
    """What `append` gives for a message of magic 0 or 1: also its CRC-32; timestamp -1 in magic 0."""

    def __new__(cls, offset: int, crc: int, size: int, timestamp: int) -> Self: ...
    @property
    def offset(self) -> int:
        """The offset that was given."""
    @property
    def crc(self) -> int:
        """The message's CRC-32."""
    @property
    def size(self) -> int:
        """Bytes of the message with offset and size."""
    @property
    def timestamp(self) -> int:
        """Milliseconds since 1970, as stored; -1 in magic 0."""

@final
class AiokafkaDefaultRecord:
    """A record of magic 2; key, value and headers are copied when asked for."""

    def __new__(
        cls,
        offset: int,
        timestamp: int,
        timestamp_type: int,
        key: bytes | None,
        value: bytes | None,
        headers: list[tuple[str, bytes | None]],
    ) -> Self: ...
    @property
    def offset(self) -> int:
        """Absolute offset in the partition."""
    @property
    def timestamp(self) -> int:
        """Milliseconds since 1970; -1 for none."""
    @property
    def timestamp_type(self) -> int:
        """0 for CreateTime, 1 for LogAppendTime."""
    @property
    def key(self) -> bytes | None:
        """The key, copied; None for null."""
    @property
    def value(self) -> bytes | None:
        """The value, copied; None for null."""
    @property
    def headers(self) -> list[tuple[str, bytes | None]]:
        """The headers in order, duplicates kept: (str, bytes or None)."""
    @property
    def checksum(self) -> None:
        """None: magic 2 has one for the batch."""

@final
class AiokafkaLegacyRecord:
    """A message of magic 0 or 1; key and value are copied when asked for."""

    def __new__(
        cls, offset: int, timestamp: int, attributes: int, key: bytes | None, value: bytes | None, crc: int
    ) -> Self: ...
    @property
    def offset(self) -> int:
        """Absolute offset in the partition."""
    @property
    def timestamp(self) -> int | None:
        """Milliseconds since 1970, or None."""
    @property
    def timestamp_type(self) -> Literal[0, 1] | None:
        """0, 1, or None without timestamp."""
    @property
    def key(self) -> bytes | None:
        """The key, copied; None for null."""
    @property
    def value(self) -> bytes | None:
        """The value, copied; None for null."""
    @property
    def headers(self) -> list[tuple[str, bytes | None]]:
        """An empty list: there were none before magic 2."""
    @property
    def checksum(self) -> int:
        """The message's stored CRC-32."""

@final
class KafkaPythonDefaultRecord:
    """A record of magic 2; key, value and headers are copied when asked for.

    The size is not taken from the arguments but from the record that they make.
    """

    def __new__(
        cls,
        size_in_bytes: int,
        offset: int,
        timestamp: int,
        timestamp_type: int,
        key: Buffer | None,
        value: Buffer | None,
        headers: Iterable[tuple[str, Buffer | None]],
    ) -> Self: ...
    @property
    def offset(self) -> int:
        """Absolute offset in the partition."""
    @property
    def timestamp(self) -> int:
        """Milliseconds since 1970; -1 for none."""
    @property
    def timestamp_type(self) -> int:
        """0 for CreateTime, 1 for LogAppendTime."""
    @property
    def key(self) -> bytes | None:
        """The key, copied; None for null."""
    @property
    def value(self) -> bytes | None:
        """The value, copied; None for null."""
    @property
    def headers(self) -> list[tuple[str, bytes | None]]:
        """The headers in order, duplicates kept: (str, bytes or None)."""
    @property
    def checksum(self) -> None:
        """None: magic 2 has one for the batch."""
    @property
    def size_in_bytes(self) -> int:
        """Bytes of the record behind its length field."""
    def validate_crc(self) -> bool:
        """True: magic 2 has a checksum for the batch only."""

@final
class KafkaPythonControlRecord:
    """A record of a control batch. The size is that of the record that the other arguments make."""

    def __new__(
        cls,
        size_in_bytes: int,
        offset: int,
        timestamp: int,
        timestamp_type: int,
        key: Buffer | None,
        value: Buffer | None,
        headers: Iterable[tuple[str, Buffer | None]],
    ) -> Self: ...
    @property
    def offset(self) -> int:
        """Absolute offset in the partition."""
    @property
    def timestamp(self) -> int:
        """Milliseconds since 1970; -1 for none."""
    @property
    def timestamp_type(self) -> int:
        """0 for CreateTime, 1 for LogAppendTime."""
    @property
    def key(self) -> bytes | None:
        """The key, copied; None for null."""
    @property
    def value(self) -> bytes | None:
        """The value, copied; None for null."""
    @property
    def headers(self) -> list[tuple[str, bytes | None]]:
        """The headers in order, duplicates kept: (str, bytes or None)."""
    @property
    def checksum(self) -> None:
        """None: magic 2 has one for the batch."""
    @property
    def size_in_bytes(self) -> int:
        """Bytes of the record behind its length field."""
    @property
    def version(self) -> int:
        """The version in the key."""
    @property
    def type(self) -> int:
        """0 for an abort marker, 1 for a commit marker."""
    @property
    def abort(self) -> bool:
        """Whether it is an abort marker."""
    @property
    def commit(self) -> bool:
        """Whether it is a commit marker."""
    def validate_crc(self) -> bool:
        """True: magic 2 has a checksum for the batch only."""

@final
class KafkaPythonLegacyRecord:
    """A message of magic 0 or 1; key and value are copied when asked for.

    `crc` is compared with that of the message that the arguments make, `crc_bytes` is not used.
    """

    def __new__(
        cls,
        magic: int,
        offset: int,
        timestamp: int | None,
        timestamp_type: int | None,
        key: Buffer | None,
        value: Buffer | None,
        crc: int,
        crc_bytes: object,
    ) -> Self: ...
    @property
    def offset(self) -> int:
        """Absolute offset in the partition."""
    @property
    def timestamp(self) -> int | None:
        """Milliseconds since 1970; None in magic 0."""
    @property
    def timestamp_type(self) -> Literal[0, 1] | None:
        """0, 1, or None in magic 0."""
    @property
    def key(self) -> bytes | None:
        """The key, copied; None for null."""
    @property
    def value(self) -> bytes | None:
        """The value, copied; None for null."""
    @property
    def headers(self) -> list[tuple[str, bytes | None]]:
        """An empty list: there were none before magic 2."""
    @property
    def checksum(self) -> int:
        """The message's stored CRC-32."""
    @property
    def magic(self) -> int:
        """0 or 1."""
    @property
    def size_in_bytes(self) -> int:
        """Bytes of the message with offset and size."""
    def validate_crc(self) -> bool:
        """Whether the message's own CRC-32 holds."""

@disjoint_base
class _MemoryRecords:
    """The batches of a fetched buffer. `bytes` are shared, any other buffer is copied once."""

    def size_in_bytes(self) -> int:
        """Bytes of the whole buffer."""
    def has_next(self) -> bool:
        """Whether `next_batch` gives a batch, or an error."""
    def next_batch(self) -> Any:
        """The next batch, a view; None at the end, or if the batch is cut.

        Raises CorruptRecordException for a size or magic that no batch has.
        """
    def valid_bytes(self) -> int:
        """Bytes of the whole batches at the start of the buffer."""
    def __iter__(self) -> Self: ...
    def __next__(self) -> Any: ...

class AiokafkaMemoryRecords(_MemoryRecords):
    """aiokafka's `MemoryRecords`; takes `bytes` only."""

    def __new__(cls, bytes_data: bytes) -> Self: ...

class KafkaPythonMemoryRecords(_MemoryRecords):
    """kafka-python's `MemoryRecords`."""

    LENGTH_OFFSET: ClassVar[int]
    LOG_OVERHEAD: ClassVar[int]
    MAGIC_OFFSET: ClassVar[int]
    MIN_SLICE: ClassVar[int]
    def __new__(cls, bytes_data: Buffer) -> Self: ...
    def next(self) -> Any:
        """As `__next__`."""

@disjoint_base
class _DefaultRecordBatch:
    """A batch of magic 2, and an iterator of its records.

    Header facts cost a load. Iterating decodes the whole batch, then makes an object a record; records
    before a bad one come first, then CorruptRecordException. The CRC is checked by `validate_crc` only.
    """

    CODEC_MASK: ClassVar[int]
    CODEC_NONE: ClassVar[int]
    CODEC_GZIP: ClassVar[int]
    CODEC_SNAPPY: ClassVar[int]
    CODEC_LZ4: ClassVar[int]
    CODEC_ZSTD: ClassVar[int]
    @property
    def base_offset(self) -> int:
        """Offset that the deltas of the records count from."""
    @property
    def magic(self) -> int:
        """The magic byte, signed."""
    @property
    def crc(self) -> int:
        """The stored CRC-32C; `validate_crc` compares it."""
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
        """Whether the batch belongs to a transaction."""
    @property
    def is_control_batch(self) -> bool:
        """Whether the batch holds control records."""
    @property
    def last_offset_delta(self) -> int:
        """From the base offset to the last offset (inclusive)."""
    @property
    def first_timestamp(self) -> int:
        """The timestamp (ms) that the records' deltas count from."""
    @property
    def max_timestamp(self) -> int:
        """The largest timestamp, in ms since 1970; -1 for none."""
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
        """One behind the last offset, which outlives compaction."""
    def validate_crc(self) -> bool:
        """Whether the CRC-32C holds. Raises AssertionError once the batch was iterated."""
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
        """As `__next__`."""
    @property
    def size_in_bytes(self) -> int:
        """What the length field says, with offset and length."""
    @property
    def leader_epoch(self) -> int:
        """Epoch of the leader that appended the batch, -1 for none."""
    @property
    def last_offset(self) -> int:
        """Offset of the last record that was ever in the batch (inclusive)."""
    def has_producer_id(self) -> bool:
        """Whether a producer id is set: above -1."""
    @property
    def has_sequence(self) -> bool:
        """Whether a base sequence is set: not -1."""
    @property
    def last_sequence(self) -> int:
        """The last record's sequence number, -1 for none; after 2**31 - 1 comes 0."""
    @property
    def records_count(self) -> int:
        """Records the header announces."""

@disjoint_base
class _LegacyRecordBatch:
    """One outermost message of magic 0 or 1; each iteration decodes it anew."""

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
        """One behind the message's own offset, which for a wrapper is the last one inside."""
    def validate_crc(self) -> bool:
        """Whether the outer CRC-32 holds. aiokafka's then checks the inner ones where they are read."""
    def __iter__(self) -> RecordIterator: ...

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
        """The message's own offset: for a wrapper the last one inside."""
    @property
    def size_in_bytes(self) -> int:
        """Bytes of the message with offset and size."""
    @property
    def timestamp_type(self) -> Literal[0, 1] | None:
        """0 for CreateTime, 1 for LogAppendTime, None in magic 0."""
    @property
    def compression_type(self) -> int:
        """The codec's number, 0 to 7."""
    @property
    def magic(self) -> int:
        """0 or 1."""

@disjoint_base
class _DefaultRecordBatchBuilder:
    """Builds one batch of magic 2, whose base offset is 0: the broker moves it."""

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

        Raises TypeError or AttributeError for wrong types, ValueError for an offset beyond 32 bits.
        """
    def size(self) -> int:
        """Bytes of the batch: before it is built, uncompressed."""
    def build(self) -> bytearray:
        """The finished batch; the same object until something is appended or set.

        Raises UnsupportedCodecError.
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
        """Bytes a record would take in this batch."""
    @staticmethod
    def size_of(key: Buffer | None, value: Buffer | None, headers: list[tuple[str, Buffer | None]]) -> int:
        """Bytes of key, value and headers with their lengths."""
    @staticmethod
    def estimate_size_in_bytes(
        key: Buffer | None, value: Buffer | None, headers: list[tuple[str, Buffer | None]]
    ) -> int:
        """The most bytes a batch with this one record has."""

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
    def _producer_id(self) -> int: ...
    @property
    def _producer_epoch(self) -> int: ...
    @property
    def _base_sequence(self) -> int: ...
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
        """Raises AssertionError for what Kafka does not combine."""
    @staticmethod
    def header_size_in_bytes() -> int:
        """Bytes of a batch without records: 61."""
    @staticmethod
    def size_in_bytes(
        offset_delta: int,
        timestamp_delta: int,
        key: Buffer | None,
        value: Buffer | None,
        headers: Iterable[tuple[str, Buffer | None]],
    ) -> int:
        """Bytes of a record with these deltas."""
    @staticmethod
    def size_of(
        key: Buffer | None, value: Buffer | None, headers: Iterable[tuple[str, Buffer | None]]
    ) -> int:
        """Bytes of key, value and headers with their lengths."""
    @staticmethod
    def estimate_size_in_bytes(
        key: Buffer | None, value: Buffer | None, headers: Iterable[tuple[str, Buffer | None]]
    ) -> int:
        """The most bytes a batch with this one record has."""

@disjoint_base
class _LegacyRecordBatchBuilder:
    """Builds one message set, whose first offset is 0: the broker moves it."""

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

        Raises TypeError for wrong types, ValueError for an offset beyond 32 bits.
        """
    def size(self) -> int:
        """Bytes of the set: before it is built, uncompressed."""
    def build(self) -> bytearray:
        """The finished set; the same object until something is appended.

        Raises UnsupportedCodecError.
        """

class AiokafkaLegacyRecordBatchBuilder(_LegacyRecordBatchBuilder):
    """aiokafka's `LegacyRecordBatchBuilder`."""

    def __new__(cls, magic: int, compression_type: int, batch_size: int) -> Self: ...
    def size_in_bytes(
        self, offset: object, timestamp: object, key: Buffer | None, value: Buffer | None
    ) -> int:
        """Bytes of a message with this key and value, offset and size included."""
    @staticmethod
    def record_overhead(magic: int) -> int:
        """Bytes of a message without offset, size, key and value."""

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
        """Bytes of a message with this key and value, offset and size included."""
    @staticmethod
    def record_size(magic: int, key: Buffer | None, value: Buffer | None) -> int:
        """Bytes of a message without offset and size."""
    @staticmethod
    def record_overhead(magic: int) -> int:
        """Bytes of a message without offset, size, key and value."""
    @staticmethod
    def estimate_size_in_bytes(
        magic: int, compression_type: object, key: Buffer | None, value: Buffer | None
    ) -> int:
        """The most bytes a set with this one message has."""

@final
class AbortedFilter:
    """Which batches of a fetch a consumer with `read_committed` gets; see `magicbyte.state`."""

    def __new__(cls, aborted: Sequence[tuple[int, int]]) -> Self: ...
    def admit(self, batch: RecordBatch | LegacyBatch) -> str:
        """What happens to the next batch: `deliver`, `aborted` or `control`."""

@final
class LeaderEpochs:
    """Leader epochs; see `magicbyte.state.LeaderEpochs`."""

    def __new__(cls, entries: Sequence[tuple[int, int]] = ...) -> Self: ...
    @property
    def entries(self) -> list[tuple[int, int]]: ...
    def assign(self, epoch: int, start_offset: int) -> None: ...
    def truncate_from_start(self, start_offset: int) -> None: ...
    def truncate_from_end(self, end_offset: int) -> None: ...
    def epoch_for_offset(self, offset: int) -> int | None: ...
    def previous_epoch(self, epoch: int) -> int | None: ...
    def next_epoch(self, epoch: int) -> int | None: ...
    def end_offset_for_epoch(self, epoch: int, log_end_offset: int) -> tuple[int, int] | None: ...
    def truncation(
        self, log_end_offset: int, leader: LeaderEpochs, leader_end_offset: int
    ) -> tuple[int | None, list[tuple[int, tuple[int, int] | None]]]: ...

@final
class VerificationGuard:
    """Stands for one verification of a transaction; a new one verifies nothing."""

    def __new__(cls) -> Self: ...

@final
class ProducerState:
    """Producer state; see `magicbyte.state.ProducerState`."""

    def __new__(cls, snapshots: Mapping[int, bytes] = ..., *, expiration_ms: int = 86_400_000) -> Self: ...
    def check(
        self,
        batch: RecordBatch | LegacyBatch,
        *,
        origin: str = "client",
        transaction_version: int = 0,
        guard: VerificationGuard | None = None,
    ) -> tuple[str, str, tuple[int, int, int, int, int] | None]: ...
    def apply(self, batch: RecordBatch | LegacyBatch) -> tuple[int, int, int, bool, int] | None: ...
    def apply_together(
        self, batches: Sequence[RecordBatch | LegacyBatch]
    ) -> list[tuple[int, int, int, bool, int]]: ...
    def start_verification(
        self, producer_id: int, sequence: int, epoch: int, supports_epoch_bump: bool, now: int
    ) -> VerificationGuard: ...
    def producers(
        self,
    ) -> list[tuple[int, int, int, int, int | None, list[tuple[int, int, int, int, int]]]]: ...
    @property
    def first_unstable_offset(self) -> int | None: ...
    @property
    def first_undecided_offset(self) -> int | None: ...
    @property
    def oldest_transaction_timestamp(self) -> int | None: ...
    @property
    def end_offset(self) -> int: ...
    def set_high_watermark(self, offset: int) -> None: ...
    def set_end_offset(self, offset: int) -> None: ...
    def take_snapshot(self) -> int | None: ...
    def snapshots(self) -> dict[int, bytes]: ...
    def truncate_and_reload(self, log_start_offset: int, log_end_offset: int, now: int) -> None: ...
    def set_log_start_offset(self, offset: int) -> None: ...
    def truncate_fully_and_start_at(self, offset: int) -> None: ...
    def remove_expired_producers(self, now: int) -> None: ...
    def delete_snapshots_before(self, offset: int) -> None: ...
    def remove_stray_snapshots(self, segment_base_offsets: Sequence[int]) -> None: ...

# The fields of `magicbyte.broker.AppendInfo` behind the records.
_AppendInfo = tuple[int | None, int, int, int, int | None, int, int]

@final
class AppendValidatorCore:
    """`magicbyte.broker.AppendValidator` without its dataclasses: the config is a mapping of all fields."""

    def __new__(cls, config: dict[str, int | bool | None]) -> Self: ...
    def validate(
        self, records: Buffer, origin_number: int, next_offset: int, leader_epoch: int, now: int
    ) -> tuple[bytes, _AppendInfo] | None:
        """What is stored, and the fields of `AppendInfo` behind it; None if there is no whole batch.

        Raises:
            AppendError: The append is refused.
        """

def check_produce_request(records: Buffer, version: int) -> None:
    """What a broker checks of a produce request's records before a partition sees them.

    Raises:
        AppendError: The request is refused.
    """

@final
class PartitionSimulatorCore:
    """`magicbyte.broker.PartitionSimulator` without its dataclasses.

    Appends give the fields of `AppendInfo` behind the records, and whether the batch is a duplicate.
    All but the properties and `elect_leader` raise AppendError.
    """

    def __new__(cls, config: dict[str, int | bool | None]) -> Self: ...
    def produce(self, records: Buffer, version: int) -> tuple[_AppendInfo, bool]: ...
    def append(self, records: Buffer, origin_number: int) -> tuple[_AppendInfo, bool]: ...
    def end_transaction(
        self,
        producer_id: int,
        producer_epoch: int,
        committed: bool,
        coordinator_epoch: int,
        transaction_version: int,
    ) -> tuple[_AppendInfo, bool]: ...
    def fetch(
        self, offset: int, max_bytes: int, isolation_level: str
    ) -> tuple[bytes, int, int, int, list[tuple[int, int]]]:
        """Records, high watermark, last stable offset, log start, aborted: (producer id, first offset)."""

    def list_offset(self, timestamp: int, isolation_level: str) -> tuple[int, int, int] | None:
        """Timestamp, offset, leader epoch; -1 is the latest, -2 the earliest, -3 the largest timestamp."""

    def elect_leader(self) -> int: ...
    def truncate(self, offset: int) -> None: ...
    def delete_records(self, before_offset: int) -> int: ...
    def producers(self) -> list[tuple[int, int, int, int, int, int, int | None]]:
        """The fields of `magicbyte.broker.ProducerState`."""

    def set_now(self, now: int) -> None: ...
    @property
    def now(self) -> int: ...
    @property
    def leader_epoch(self) -> int: ...
    @property
    def log_start_offset(self) -> int: ...
    @property
    def last_stable_offset(self) -> int: ...
    @property
    def log_end_offset(self) -> int: ...

def plan_compaction(
    plan: str,
    listing: str,
    *,
    now: int,
    delete_retention_ms: int = ...,
    min_compaction_lag_ms: int = 0,
    until_offset: int | None = None,
    all: bool = False,
    first_dirty_offset: int | None = None,
    segment_bytes: int = ...,
    segment_index_bytes: int = ...,
) -> str:
    """Decides what is cleaned of a log and how segments are grouped, as a Compaction of `jobs.clean`.

    `plan` is of the whole log, `listing` its directory's; times are ms. Whole segments are cleaned, not
    beyond the last stable offset nor `until_offset`, and the last one only with `all`.
    """

def plan_redaction(plan: str) -> str:
    """The Compaction that writes every segment of a log by itself."""

def index_keys(
    chunks: list[str],
    directory: str | PathLike[str] | None = None,
    *,
    seed: int = 0,
    memory: int = ...,
    parts: int = 16,
    max_decompressed_bytes: int = ...,
    fail_fast: bool = False,
) -> str:
    """The first pass over a run of CleanerChunks: an IndexedKeys.

    With a directory their keys go to files in it, a file a part of the hash, from a map of `memory`
    bytes. `seed` is random, the same for all tasks of a log.

    Raises:
        Error: With `fail_fast`, the first damage.
        OSError: A file could not be read or written.
    """

def reduce_keys(
    files: Sequence[str], directory: str | PathLike[str], *, seed: int, memory: int = ...
) -> list[Path]:
    """Reduces the files of one part of the hash to sorted lists of the places of last records."""

def log_facts(
    producers: list[str], groups: list[tuple[int, int]], *, expired_until: int | None = None
) -> list[str]:
    """What a log says about producers and transactions, for each group of offsets (first, last).

    `producers` are those of each IndexedKeys, in offset order; producers last heard of at `expired_until`
    (ms) or before are forgotten.
    """

def compact_group(
    group: str,
    indexed: list[str],
    facts: str,
    directory: str | PathLike[str],
    *,
    lists: Sequence[str],
    clean_until: int,
    now: int,
    delete_retention_ms: int,
    max_decompressed_bytes: int = ...,
    index_interval_bytes: int = ...,
    fail_fast: bool = False,
) -> str:
    """The second pass over a group of segments: written as one, without what is superseded or expired.

    Returns JSON: `results`, a ChunkResult a chunk as text, the first `problems` and `problems_left_out`,
    `segments` for `finish_partition` with their `batches` and `size`, `counts`, `redacted`.

    Raises:
        Error: With `fail_fast`, the first damage, or a batch that could only be copied.
        ValueError: The files are not what they were in the first pass.
        OSError: A file could not be read or written.
    """

@final
class KeySet:
    """Keys to be forgotten: about a hundred bytes of memory a key, besides the keys."""

    def __new__(cls, keys: list[bytes]) -> Self: ...
    def find(self, data: Buffer) -> int | None:
        """Where one of the keys first occurs in `data`; looks for those of eight bytes that are not zero."""

def redact_group(
    group: str,
    indexed: list[str],
    facts: str,
    directory: str | PathLike[str],
    *,
    keys: KeySet,
    tombstones: bool,
    clean_until: int,
    max_decompressed_bytes: int = ...,
    index_interval_bytes: int = ...,
    fail_fast: bool = False,
) -> str:
    """As `compact_group`, without the records that have one of these keys, or that `indexed` selects.

    A chunk's `selected` are pairs of a batch's position and runs of records in it, first and last number,
    in order. With `tombstones` they stay without value and headers. Besides, `matched` says which keys
    were found: a bit a key, 64 in a number.
    """

def check_segment(
    path: str | PathLike[str], keys: KeySet, *, tombstones: bool, max_decompressed_bytes: int = ...
) -> str:
    """Reads a segment that `redact_group` wrote: what is there that should not be.

    Returns JSON: `leaks`, how many places hold one of the keys or bytes that no reader shows, with
    `first_leaks`; `in_keys`, `in_values` and `in_headers`, how many records hold one of the keys elsewhere.

    Raises:
        OSError: The file could not be read.
    """
