"""A partition that has been opened: how its batches and columns are read."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from magicbyte._core import ArrowStream, PartitionLogCore, offset_index, read_sidecar
from magicbyte.enums import DamageMode, IsolationLevel
from magicbyte.table_options import Ranges, TableOptions

if TYPE_CHECKING:
    from magicbyte._core import LogBatch, LogBatchesCore
    from magicbyte.model import PartitionListing, Segment

__all__ = ["LOG_END", "OpenPartition"]

LOG_END = 2**63 - 1
"""The end of a read that ends with the log."""


class OpenPartition(NamedTuple):
    """A partition, and how it is read."""

    core: PartitionLogCore
    listing: PartitionListing
    check_crcs: bool
    max_decompressed_bytes: int
    mode: DamageMode

    def __reduce__(self) -> tuple[Callable[..., OpenPartition], tuple[object, ...]]:
        # The core is not pickled.
        return _reopened, tuple(self)[1:]

    @property
    def name(self) -> str:
        """`topic-N`, as Kafka names the directory."""
        return f"{self.listing['topic']}-{self.listing['partition']}"

    def decoded(self, columns: Sequence[str], options: TableOptions) -> ArrowStream:
        """The stream of these columns of the records in the ranges."""
        ranges = options.ranges
        return self.core.to_arrow(
            columns,
            views=options.views,
            start_offset=ranges.start_offset,
            end_offset=ranges.end_offset,
            start_timestamp=ranges.start_timestamp,
            end_timestamp=ranges.end_timestamp,
            threads=options.threads,
            isolation_level=options.isolation_level,
            check_crcs=self.check_crcs,
            max_decompressed_bytes=self.max_decompressed_bytes,
            mode=self.mode,
        )

    def batches(self, ranges: Ranges, isolation_level: IsolationLevel) -> LogBatchesCore:
        """Iterates over the batches of the ranges, from the first record at the start timestamp on."""
        return self.core.batches(
            start_offset=ranges.start_offset,
            end_offset=ranges.end_offset,
            start_timestamp=ranges.start_timestamp,
            isolation_level=isolation_level,
            check_crcs=self.check_crcs,
            max_decompressed_bytes=self.max_decompressed_bytes,
            mode=self.mode,
        )

    def start_of_last(self, options: TableOptions) -> int:
        """The offset of the first of the last `options.last` data records of the range of offsets.

        Reads the batches of segments from the end on, and decodes few of them.
        """
        missing = options.last or 0
        if not missing:
            return LOG_END
        start, end = options.ranges.start_offset or 0, options.ranges.end_offset
        for segment in reversed(self.listing["segments"]):
            base = max(segment["base_offset"], start)
            if end is not None and base >= end:
                continue
            total = 0
            for first in _starts(segment, base, missing):
                total, last = self._last_batches(Ranges(first, end), missing, options)
                if total >= missing:
                    batch = next(self._data_batches(Ranges(last, end), options))
                    return _offsets(batch)[total - missing]
            missing, end = missing - total, base
        return start

    def _last_batches(self, ranges: Ranges, missing: int, options: TableOptions) -> tuple[int, int]:
        """The number of records in the last batches, and the offset of the first of these batches.

        They are as few as have at least `missing` records, or all.
        """
        batches: deque[tuple[int, int]] = deque()
        total = 0
        for batch in self._data_batches(ranges, options):
            batches.append((max(batch.batch.base_offset, batch.start_offset), _record_count(batch)))
            total += batches[-1][1]
            while total - batches[0][1] >= missing:
                total -= batches.popleft()[1]
        return total, batches[0][0] if batches else 0

    def _data_batches(self, ranges: Ranges, options: TableOptions) -> Iterator[LogBatch]:
        return (batch for batch in self.batches(ranges, options.isolation_level) if batch.is_data)


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


def _reopened(listing: PartitionListing, *options: Any) -> OpenPartition:
    return OpenPartition(PartitionLogCore.of_listing(json.dumps(listing)), listing, *options)


def _record_count(batch: LogBatch) -> int:
    """The number of records in the range; the header is enough if all of them are."""
    content = batch.batch
    if (
        content.magic == 2
        and batch.start_offset <= content.base_offset
        and content.last_offset < batch.end_offset
    ):
        return content.record_count or 0
    return len(_offsets(batch))


def _offsets(batch: LogBatch) -> list[int]:
    offsets = batch.batch.columns().offsets
    return [offset for offset in offsets if batch.start_offset <= offset < batch.end_offset]
