"""Arrow columns, through Arrow's C data interface."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, Self, final

CONSUMED_COLUMNS: Final[list[str]]
"""The columns that a Kafka consumer sees of a record."""

@final
class ArrowStream:
    """Records as columns, for any Arrow consumer: pyarrow, polars, DuckDB, pandas.

    Each consumer gets a new stream; memory is bounded regardless of the input's size.
    """

    def __arrow_c_schema__(self) -> object: ...
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """A stream from the beginning; cheap until its first batch is requested.

        A requested schema is used if all its columns and types are ours, and otherwise ignored: the
        interface leaves the cast to the consumer.
        """
    def __iter__(self) -> ArrowBatches: ...
    @property
    def fields(self) -> list[tuple[str, str]]:
        """The names and Arrow types of the columns."""
    def problems(self) -> str:
        """The problems so far of the last stream over a log, as JSON: see `PartitionLog.problems`."""
    def problems_left_out(self) -> int:
        """The number of further problems: see `PartitionLog.problems_left_out`."""
    @property
    def counts(self) -> ReadCounts:
        """The sums so far of the last stream over a log."""
    @property
    def end_offset(self) -> int | None:
        """The end of the last stream over a log (exclusive): see `PartitionLog.end_offset`."""

@final
@dataclass(frozen=True, init=False)
class ReadCounts:
    """The sums of one read of a partition, so far.

    Bytes of segments that are in none of the sums were not read: they are outside of the request, or not yet
    reached.
    """

    batches: int
    """Batches that were read, including control batches and those of aborted transactions."""
    good_bytes: int
    """Their bytes."""
    quarantined_bytes: int
    """Bytes that could not be read."""
    tail_bytes: int
    """Bytes after the last batches."""
    rows: int
    """Records delivered."""

    def __new__(
        cls, batches: int, good_bytes: int, quarantined_bytes: int, tail_bytes: int, rows: int
    ) -> Self: ...
    def __iter__(self) -> Iterator[Any]: ...
    def __replace__(self, **changes: Any) -> Self: ...

@final
class ArrowBatches:
    """Iterates over the batches of an `ArrowStream`; errors are those of `magicbyte.errors`."""

    def __iter__(self) -> Self: ...
    def __next__(self) -> ArrowBatch: ...

def chain_streams(streams: Sequence[ArrowStream], requested_schema: object | None = None) -> object:
    """The capsule of an Arrow stream with the batches of these streams, one stream after the other.

    Each is opened when the one before has ended. `ArrowStream.__arrow_c_stream__` describes the schema.

    Raises:
        ValueError: if there are no streams, or their columns differ.

    """

@final
class ArrowBatch:
    """One Arrow record batch; `pyarrow.record_batch(batch)` takes it without a copy."""

    @property
    def num_rows(self) -> int:
        """The number of rows."""
    def __len__(self) -> int: ...
    def __arrow_c_schema__(self) -> object: ...
    def __arrow_c_array__(self, requested_schema: object | None = None) -> tuple[object, object]: ...

@final
class ArrowSchema:
    """An Arrow schema."""

    def __arrow_c_schema__(self) -> object: ...

def arrow_schema(
    table: str,
    columns: Sequence[str] | None = None,
    *,
    key_as: str = "binary",
    value_as: str = "binary",
) -> ArrowSchema:
    """The Arrow schema of the table `records` (with these columns), `batches` or `problems`.

    `key_as` and `value_as` are as in ChunkDecoder.
    """

def digest_rows(data: object, width: int) -> list[tuple[str, int, list[tuple[int, int, int]], list[int]]]:
    """Digests rows of the table `records` by ranges of `width` offsets, as `digest_chunk` does the records
    that they were made of.

    Returns topic, partition, digests and offsets for each partition in each record batch of `data`, any
    object with Arrow's PyCapsule interface. A digest is the number of a range (an offset divided by `width`),
    the rows in it, and the sum of their hashes modulo 2**128. A null key or value counts as its bytes in
    `invalidKey` or `invalidValue`, and a null timestamp as that in `timestampMillis`, if there are these
    columns. The offsets are those of rows whose timestamp is in no column: they have the hash of no record.

    Raises:
        InvalidRecordError: a topic, partition or offset is null.
        ValueError: a column is missing or has another type, as typed keys and values have.

    """

def digest_records(data: object) -> list[tuple[str, int, int, int, int, int]]:
    """Counts and digests of rows of the table `records`, to compare a table with its log.

    Returns topic, partition, number of rows, first offset, last offset and digest of each partition in each
    record batch of `data`, any object with Arrow's PyCapsule interface. The digest is the sum of the rows'
    128-bit XXH3 hashes modulo 2**128: the order of the rows does not matter, and the digest of several
    batches is the sum of theirs. A hash covers offset, timestamp in ms, timestamp type, key, value and
    headers; a null key or value counts as its bytes in `invalidKey` or `invalidValue`. The digest finds rows
    that were changed, lost or duplicated, but does not withstand a deliberate search for rows with the same
    sum.

    Rows with the column `_digest` have typed keys or values. The hash covers their non-null cells, by name:
    neither new fields nor the order of fields nor the width of numbers matter, and an empty list counts as
    null. The content of `_digest`, 16 bytes (big-endian) or null, is added: a writer of rows sets it so that
    their digest equals the digest of the original records.

    Raises:
        InvalidRecordError: a topic, partition or offset is null.
        ValueError: a column is missing or has another type; a digest does not have 16 bytes.

    """
