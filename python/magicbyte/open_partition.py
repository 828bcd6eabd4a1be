"""A partition that has been opened: how its batches and columns are read."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from magicbyte._core import (
    ArrowStream,
    LegacyBatch,
    LogBatches,
    PartitionReader,
    RecordBatch,
    offset_index,
    read_sidecar,
)
from magicbyte.enums import DamageMode, IsolationLevel
from magicbyte.listing import log_start_of
from magicbyte.table_options import Ranges, TableOptions

if TYPE_CHECKING:
    from magicbyte.model import PartitionListing, Segment

__all__ = ["LOG_END", "OpenPartition"]

LOG_END = 2**63 - 1
"""The end of a read that ends with the log."""


class OpenPartition(NamedTuple):
    """A partition, and how it is read."""

    reader: PartitionReader
    listing: PartitionListing
    mode: DamageMode

    @property
    def name(self) -> str:
        """`topic-N`, as Kafka names the directory."""
        return f"{self.listing['topic']}-{self.listing['partition']}"

    def decoded(self, columns: Sequence[str], options: TableOptions) -> ArrowStream:
        """The stream of these columns of the records in the ranges."""
        ranges = options.ranges
        return self.reader.to_arrow(
            columns,
            views=options.views,
            start_offset=ranges.start_offset,
            end_offset=ranges.end_offset,
            start_timestamp=ranges.start_timestamp,
            end_timestamp=ranges.end_timestamp,
            threads=options.threads,
            isolation_level=options.isolation_level,
        )

    def batches(
        self, ranges: Ranges, isolation_level: IsolationLevel, *, data_only: bool = False
    ) -> LogBatches:
        """Iterates over the batches of the ranges, from the first record at the start timestamp on."""
        return self.reader.batches(
            start_offset=ranges.start_offset,
            end_offset=ranges.end_offset,
            start_timestamp=ranges.start_timestamp,
            isolation_level=isolation_level,
            data_only=data_only,
        )

    def start_of_last(self, options: TableOptions) -> int:
        """The offset of the first of the last `options.last` data records of the range of offsets.

        Reads the batches of segments from the end on, and decodes few of them.
        """
        missing = options.last or 0
        if not missing:
            return LOG_END
        start = max(options.ranges.start_offset or 0, log_start_of(self.listing) or 0)
        end = options.ranges.end_offset
        for segment in reversed(self.listing["segments"]):
            base = max(segment["base_offset"], start)
            if end is not None and base >= end:
                continue
            total = 0
            for first in _starts(segment, base, missing):
                total, last = self._last_batches(Ranges(first, end), missing, options)
                if total >= missing:
                    batches = self.batches(Ranges(last, end), options.isolation_level, data_only=True)
                    return _offsets(next(batches), last, _end_of(batches))[total - missing]
            missing, end = missing - total, base
        return start

    def _last_batches(self, ranges: Ranges, missing: int, options: TableOptions) -> tuple[int, int]:
        """The number of records in the last batches, and the offset of the first of these batches.

        They are as few as have at least `missing` records, or all.
        """
        counts: deque[tuple[int, int]] = deque()
        total = 0
        batches = self.batches(ranges, options.isolation_level, data_only=True)
        start, end = ranges.start_offset or 0, _end_of(batches)
        for batch in batches:
            counts.append((max(batch.base_offset, start), _record_count(batch, start, end)))
            total += counts[-1][1]
            while total - counts[0][1] >= missing:
                total -= counts.popleft()[1]
            # A segment that overlaps this one yields no record twice.
            start = batch.next_offset
        return total, counts[0][0] if counts else 0


def _starts(segment: Segment, base: int, records: int) -> list[int]:
    """Offsets from which to count the records of a segment: near its end, if an index knows it, and its base.

    The index is only a hint. A start that is too late has too few records, and every start can be read.
    """
    path = segment["path"].removesuffix(".log") + ".index"
    try:
        entries = offset_index(read_sidecar(path), segment["base_offset"], check=False)
    except (OSError, ValueError):
        entries = []
    near = entries[-1].offset - records if entries else base
    return [near, base] if near > base else [base]


def _end_of(batches: LogBatches) -> int:
    return LOG_END if batches.end_offset is None else batches.end_offset


def _record_count(batch: RecordBatch | LegacyBatch, start: int, end: int) -> int:
    """The number of records in the range; the header is enough if all of them are."""
    if batch.magic == 2 and start <= batch.base_offset and batch.last_offset < end:
        return batch.record_count or 0
    return len(_offsets(batch, start, end))


def _offsets(batch: RecordBatch | LegacyBatch, start: int, end: int) -> list[int]:
    return [offset for offset in batch.columns().offsets if start <= offset < end]
