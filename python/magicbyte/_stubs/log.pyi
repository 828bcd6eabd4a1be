"""A partition's log: used by `magicbyte.log`."""

from collections.abc import Sequence
from datetime import datetime
from typing import Self, final

from magicbyte._stubs.arrow import ArrowStream
from magicbyte._stubs.batches import LegacyBatch, RecordBatch
from magicbyte._stubs.records import Record
from magicbyte._stubs.steps import FetchedChunks
from magicbyte.model import Problem

def list_log(path: str, *, include_deleted_records: bool = False) -> str:
    """Lists a partition's directory, or one of its segments: a PartitionListing as JSON.

    It has the log's start, which is read from the broker's checkpoint in the directory above.
    """

@final
class PartitionReader:
    """Reads the records of a partition, in one way: the same limits, and the same treatment of damage."""

    def __new__(cls, listing: str, check_crcs: bool, max_decompressed_bytes: int, mode: str) -> Self: ...
    def __getnewargs__(self) -> tuple[str, bool, int, str]: ...
    def listing(self) -> str:
        """The partition's files as a PartitionListing in JSON; a partition of a running cluster has none."""
    def offsets(
        self, start_offset: int | None, end_offset: int | None, isolation_level: str
    ) -> tuple[int, int]:
        """The part of a range of offsets (the end is exclusive) that the log of a running cluster has now.

        Errors are those of `fetch`.
        """
    def fetch(
        self,
        *,
        start_offset: int | None,
        end_offset: int | None,
        isolation_level: str,
        part: tuple[int | None, int | None] = ...,
    ) -> FetchedChunks:
        """Fetches a range of offsets (the end is exclusive) of a running cluster, as far as its log has them.

        With a `part` of this range, only the batches that end in it: a batch that extends behind its end is
        one of the next part. So parts that are neighbours give each batch once.

        Raises TypeError for a partition with files, and OSError if the cluster does not answer or refuses.
        """
    @property
    def max_decompressed_bytes(self) -> int:
        """The limit for one batch, stored or decompressed, in bytes."""
    def verify(self, isolation_level: str) -> str:
        """Decodes everything and accounts for every byte: a PartitionReconciliation as JSON."""
    def offset_for_timestamp(self, timestamp: int | datetime) -> int | None:
        """The first offset whose record has this timestamp (ms) or a later one; None without one."""
    def to_arrow(
        self,
        columns: Sequence[str] | None,
        *,
        views: bool,
        start_offset: int | None,
        end_offset: int | None,
        start_timestamp: int | datetime | None,
        end_timestamp: int | datetime | None,
        last: int | None,
        threads: int,
        isolation_level: str,
    ) -> ArrowStream:
        """The selected data records as columns."""
    def batches(
        self,
        *,
        start_offset: int | None,
        end_offset: int | None,
        start_timestamp: int | datetime | None,
        isolation_level: str,
    ) -> LogBatches:
        """The batches with the selected records; with read_committed none of aborted transactions."""
    def records(
        self,
        *,
        start_offset: int | None,
        end_offset: int | None,
        start_timestamp: int | datetime | None,
        isolation_level: str,
    ) -> LogRecords:
        """The selected data records."""

@final
class LogBatches:
    """The batches of one read of a log, with its problems; see `PartitionLog.batches`."""

    def __iter__(self) -> Self: ...
    def __next__(self) -> RecordBatch | LegacyBatch: ...
    @property
    def problems(self) -> list[Problem]:
        """The data skipped so far in PERMISSIVE mode, torn tails included: the first 1000 byte ranges."""
    @property
    def problems_left_out(self) -> int:
        """The number of further problems."""
    @property
    def end_offset(self) -> int | None:
        """The end of the read (exclusive): the requested end, or for `read_committed` the last stable
        offset, where the earliest open transaction begins. None: at the end of the log.
        """

@final
class LogRecords:
    """The data records of one read of a log, with its problems; see `PartitionLog.records`.

    Threads that share it get each record once.
    """

    def __iter__(self) -> Self: ...
    def __next__(self) -> Record: ...
    @property
    def problems(self) -> list[Problem]:
        """The data skipped so far in PERMISSIVE mode, torn tails included: the first 1000 byte ranges, and
        the first 1000 batches whose records do not decode.
        """
    @property
    def problems_left_out(self) -> int:
        """The number of further problems."""
    @property
    def end_offset(self) -> int | None:
        """The end of the read (exclusive), as in `LogBatches`."""
