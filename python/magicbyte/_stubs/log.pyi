"""A partition's directory: used by `magicbyte.log`."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Self, final

from magicbyte._stubs.arrow import ArrowStream
from magicbyte._stubs.batches import LegacyBatch, RecordBatch

@final
class PartitionLogCore:
    """A partition's directory."""

    def __new__(cls, path: str, *, include_deleted_records: bool = False) -> Self: ...
    @staticmethod
    def of_listing(listing: str) -> PartitionLogCore:
        """Creates the log of a PartitionListing (JSON), whose files may be in several directories."""
    def listing(self) -> str:
        """The contents of the directory: a PartitionListing as JSON."""
    def verify(self, isolation_level: str, max_decompressed_bytes: int) -> str:
        """Decodes everything and accounts for every byte: a PartitionReconciliation as JSON."""
    def offset_for_timestamp(self, timestamp: int | datetime) -> int | None:
        """The first offset whose record has this timestamp (ms) or a later one."""
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
        check_crcs: bool,
        max_decompressed_bytes: int,
        mode: str,
    ) -> ArrowStream:
        """The selected data records as columns."""
    def batches(
        self,
        *,
        start_offset: int | None,
        end_offset: int | None,
        start_timestamp: int | datetime | None,
        isolation_level: str,
        check_crcs: bool,
        max_decompressed_bytes: int,
        mode: str,
    ) -> LogBatchesCore:
        """The batches that hold the selected records."""

@final
@dataclass(frozen=True, init=False)
class LogBatch:
    """A batch that a read of a log has reached."""

    batch: RecordBatch | LegacyBatch
    """The batch."""
    segment: str
    """The name of its segment."""
    start_offset: int
    """The first offset of the read."""
    end_offset: int
    """The end of the read (exclusive)."""
    is_data: bool
    """True if its records are delivered; not those of control batches and aborted transactions."""

    def __new__(
        cls,
        batch: RecordBatch | LegacyBatch,
        segment: str,
        start_offset: int,
        end_offset: int,
        is_data: bool,
    ) -> Self: ...
    def __iter__(self) -> Iterator[Any]: ...
    def __replace__(self, **changes: Any) -> Self: ...

@final
class LogBatchesCore:
    """Iterates over the batches of one read of a log."""

    def __iter__(self) -> Self: ...
    def __next__(self) -> LogBatch: ...
    def problems(self) -> str:
        """The first `LISTED` problems so far, as JSON."""
    def problems_left_out(self) -> int:
        """The number of further problems."""
    @property
    def end_offset(self) -> int:
        """The end of the read (exclusive): the requested end, or the last stable offset."""
