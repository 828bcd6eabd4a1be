"""Framing a buffer into batches."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any, ClassVar, Literal, Self, SupportsIndex, final, overload

from magicbyte._stubs.arrow import ArrowBatch, ArrowStream
from magicbyte._stubs.records import Record, RecordIterator
from magicbyte.columns import Columns
from magicbyte.enums import Compression, TimestampType
from typing_extensions import Buffer, disjoint_base

def read_batches(
    buffer: Buffer,
    *,
    check_crcs: bool = True,
    max_decompressed_bytes: int = ...,
    allow_partial: bool = False,
) -> Batches:
    """Frames `buffer` into batches of mixed magics, without decompressing anything yet.

    A `bytes` object is shared; any other C-contiguous buffer is copied once, since it could change. The
    iterator raises framing errors. A wrong CRC or a bad record is raised only when a batch's records,
    columns or Arrow form are requested, so that its header can still be inspected.

    An incomplete batch at the end raises `NeedMoreBytesError`, after all others.
    With `allow_partial`, as for the response to a fetch, it ends the iteration: `remaining` and `needed`
    say what is left.
    """

def unpickle_batch(
    data: Buffer, position: int, check_crcs: bool, max_decompressed_bytes: int
) -> RecordBatch | LegacyBatch:
    """Creates a batch from its bytes, its position, and how it is read, as `pickle` stores it.

    Raises `Error` if the bytes are not exactly one batch.
    """

@final
class Batches:
    """An iterator over the batches in a buffer, and an Arrow stream of all its data records."""

    @property
    def remaining(self) -> int:
        """Bytes not framed yet: at the end, those of an incomplete last batch (normal in a fetch)."""
    @property
    def needed(self) -> int:
        """The minimum number of bytes missing from the next batch; 0 if it is complete or there is none."""
    def __iter__(self) -> Self: ...
    def __next__(self) -> RecordBatch | LegacyBatch: ...
    def to_arrow(
        self,
        columns: Sequence[str] | None = None,
        *,
        views: bool = False,
        start_offset: int | None = None,
        end_offset: int | None = None,
        start_timestamp: int | datetime | None = None,
        end_timestamp: int | datetime | None = None,
        threads: int = 1,
    ) -> ArrowStream:
        """The data records of the whole buffer as columns, regardless of what was iterated before.

        Like `PartitionLog.to_arrow`, but without topic, partition and segment, which a buffer does not
        have. Ranges are compared with a batch's header once its CRC is verified, then with each record;
        message sets of magic 0 and 1 are always decoded. Raises ValueError for invalid columns or threads;
        damage ends the stream with an error.
        """
    def __arrow_c_schema__(self) -> object: ...
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """The stream of `to_arrow()`, or of the requested columns and types if all of them are ours."""

@disjoint_base
class _Batch:
    """The common part of both kinds of batch; None where a magic has no such field.

    A batch cannot change. It can be pickled, with its position and with how it is read, and matched by
    position as `repr` shows it.
    """

    __match_args__: ClassVar[tuple[str, ...]]

    @property
    def magic(self) -> int:
        """0, 1 or 2."""
    @property
    def base_offset(self) -> int:
        """Offset of the first record; reading it decompresses a compressed legacy batch."""
    @property
    def last_offset(self) -> int:
        """Offset of the batch's original last record (inclusive), even if compaction removed it."""
    @property
    def next_offset(self) -> int:
        """`last_offset + 1`: where a consumer continues."""
    @property
    def position(self) -> int:
        """Byte position of the batch in its input or segment."""
    @property
    def size_in_bytes(self) -> int:
        """Size of the whole batch, including the offset and length fields."""
    @property
    def crc(self) -> int:
        """The stored checksum: CRC-32C in magic 2, CRC-32 of the outer message in magic 0 and 1."""
    def is_valid(self) -> bool:
        """True if the checksum is correct. Never raises."""
    @property
    def compression(self) -> Compression:
        """The codec. Raises UnsupportedCompressionError for the numbers 5 to 7."""
    @property
    def timestamp_type(self) -> TimestampType:
        """The clock that set the timestamps."""
    @property
    def base_timestamp(self) -> int | None:
        """The timestamp (ms) that the records' deltas are relative to."""
    @property
    def max_timestamp(self) -> int:
        """The maximum timestamp (ms), or the append time; -1 for none."""
    @property
    def delete_horizon_ms(self) -> int | None:
        """The time (ms) from which tombstones or the marker may be removed, if the cleaner set it."""
    @property
    def partition_leader_epoch(self) -> int | None:
        """Epoch of the leader that appended the batch; not covered by the CRC."""
    @property
    def record_count(self) -> int | None:
        """The header's record count; None for a compressed legacy batch until it is decompressed."""
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
        """The last record's sequence number, -1 for none; wraps from 2**31 - 1 to 0."""
    @property
    def is_transactional(self) -> bool:
        """True if the batch is part of a transaction."""
    @property
    def is_control(self) -> bool:
        """True if the batch holds a control record, which consumers do not receive."""
    def __iter__(self) -> RecordIterator:
        """Verifies the CRC, decompresses and checks every record, then iterates over them."""
    def __len__(self) -> int:
        """The number of records; decodes the batch, as `__getitem__` does, unless that has been done."""
    def __reversed__(self) -> Iterator[Record]:
        """The records from the last one to the first; each is made when it is reached."""
    def __reduce__(self) -> tuple[Any, ...]: ...
    def __copy__(self) -> Self: ...
    def __deepcopy__(self, memo: object, /) -> Self: ...
    def __bool__(self) -> Literal[True]:
        """True even without records, so that a test for None decodes nothing."""
    @overload
    def __getitem__(self, index: SupportsIndex, /) -> Record:
        """The record with this index, or the records of a slice.

        The first access decodes the batch, which keeps its records in memory from then on.
        """
    @overload
    def __getitem__(self, index: slice, /) -> list[Record]: ...
    def columns(self) -> Columns:
        """All records as four lists; keys and values are copied."""
    def to_bytes(self) -> bytes:
        """A copy of the batch's bytes."""
    def to_arrow(self, columns: Sequence[str] | None = None, *, views: bool = False) -> ArrowBatch:
        """The records as columns, by default offset timestamp (ms) timestampType key value headers.

        Like `Batches.to_arrow`, but for this batch alone and including control records. A call takes
        microseconds, so read many small batches as one stream instead.
        """
    def __arrow_c_schema__(self) -> object: ...
    def __arrow_c_array__(self, requested_schema: object | None = None) -> tuple[object, object]: ...
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...

@final
class RecordBatch(_Batch):
    """A batch of magic 2."""

@final
class LegacyBatch(_Batch):
    """One outermost message of magic 0 or 1, with the messages inside it."""
