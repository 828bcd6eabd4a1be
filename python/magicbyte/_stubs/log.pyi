"""A partition's directory: used by `magicbyte.log`."""

from collections.abc import Sequence
from datetime import datetime
from typing import Self, final

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
class LogBatchesCore:
    """Iterates over (batch, segment file, start offset, end offset (exclusive), is data)."""

    def __iter__(self) -> Self: ...
    def __next__(self) -> tuple[RecordBatch | LegacyBatch, str, int, int, bool]: ...
    def problems(self) -> str:
        """The first `LISTED` problems so far, as JSON."""
    def problems_left_out(self) -> int:
        """The number of further problems."""
    @property
    def end_offset(self) -> int:
        """The end of the read (exclusive): the requested end, or the last stable offset."""
