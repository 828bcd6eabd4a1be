"""The compiled core: Kafka's record format, the segment directory and Arrow columns, in Rust.

Import the public names from `magicbyte`. The functions of the job layer at the end of this file
(`list_partition` .. `reconcile`) exchange JSON texts whose shapes are the TypedDicts of
`magicbyte.jobs.model`.
"""

from collections.abc import Sequence
from typing import Any, Final, Self, final

from typing_extensions import Buffer, disjoint_base

from magicbyte.columns import Columns
from magicbyte.enums import Compression, TimestampType

__all__ = [
    "DEFAULT_MAX_DECOMPRESSED_BYTES",
    "ArrowBatch",
    "ArrowSchema",
    "Batches",
    "ChunkDecoder",
    "LegacyBatch",
    "LogBatchesCore",
    "PartitionLogCore",
    "Record",
    "RecordBatch",
    "RecordIterator",
    "_Batch",
    "__version__",
    "arrow_schema",
    "crc32c",
    "decode_varint",
    "encode_varint",
    "list_partition",
    "offset_for_timestamp",
    "plan_partition",
    "read_batches",
    "reconcile",
    "survey_segment",
    "trim_chunk",
]
__version__: Final[str]
DEFAULT_MAX_DECOMPRESSED_BYTES: Final[int]
"""The default cap on what one batch may decompress to: 256 MiB."""

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
    def __arrow_c_schema__(self) -> object: ...
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """A fresh stream over the whole buffer; cheap until its first batch is asked for."""

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
    def to_arrow(self) -> ArrowBatch:
        """The records, copied into the columns offset timestamp (ms) timestampType key value headers."""
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
    @property
    def sequence(self) -> int | None:
        """The producer's sequence number, -1 for none; None for magic 0 and 1."""
    @property
    def attributes(self) -> int:
        """The record's own attributes byte, 0 to 255."""
    @property
    def control(self) -> dict[str, Any] | None:
        """For a record of a control batch: its `type` and payload. Raises Error if it is malformed."""

# --- below magicbyte.log ---

@final
class PartitionLogCore:
    def __new__(cls, path: str) -> Self: ...
    def listing(self) -> str: ...
    def verify(self, isolation_level: str) -> str: ...
    def offset_for_timestamp(self, timestamp: int) -> int | None: ...
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
    ) -> LogBatchesCore: ...

@final
class LogBatchesCore:
    """Iterates (batch, segment file, start offset, end offset (exclusive), is data)."""

    def __iter__(self) -> Self: ...
    def __next__(self) -> tuple[RecordBatch | LegacyBatch, str, int, int, bool]: ...
    def problems(self) -> str: ...
    @property
    def end_offset(self) -> int: ...

# --- the job layer: JSON in, JSON out (magicbyte.jobs.model) ---

def list_partition(path: str, *, include_checkpoints: bool = False) -> str:
    """Lists a partition's directory, or a single segment file: a PartitionListing."""

def survey_segment(segment: str) -> str:
    """Scans the batch headers of a Segment: a Survey."""

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
    def num_rows(self) -> int: ...
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
    def bytes_read(self) -> int: ...
    def __iter__(self) -> Self: ...
    def __next__(self) -> ArrowBatch: ...
    def take_batches(self) -> ArrowBatch | None: ...
    def take_problems(self) -> ArrowBatch | None: ...
    def result(self) -> str: ...

def arrow_schema(table: str, columns: Sequence[str] | None = None) -> ArrowSchema:
    """The Arrow schema of `records` (with these columns), `batches` or `problems`."""

@final
class ArrowSchema:
    def __arrow_c_schema__(self) -> object: ...
