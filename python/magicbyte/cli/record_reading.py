"""The records that `magicbyte records` prints: ranges, filters, and the last ones of each partition."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from magicbyte import _core
from magicbyte.cli.selection import Selection
from magicbyte.cli.terminal import print_problem
from magicbyte.enums import IsolationLevel
from magicbyte.jobs.run.engines import LocalEngine
from magicbyte.jobs.run.plan import MIB, Planned, Range, plan_partitions, plan_surveyed
from magicbyte.jobs.run.reading import ReadOptions, read_chunk
from magicbyte.model import PartitionListing

__all__ = ["Reader", "Select", "matching"]

Select = Callable[[pa.RecordBatch], pa.RecordBatch]
"""Keeps rows of the table `records`."""

_FIRST_STEP = 1000
"""The least number of offsets in which `--tail` looks for records first."""


def matching(keys: Sequence[bytes], pattern: str | None) -> Select:
    """Keeps the records with one of the keys, if there are any, and with a key or value that matches.

    Raises:
        ValueError: the pattern is not a regular expression.

    """
    row_filter = _core.RowFilter(keys=keys or None, pattern=pattern)

    def select(records: pa.RecordBatch) -> pa.RecordBatch:
        mask = pa.py_buffer(row_filter.mask(records))
        return records.filter(pa.BooleanArray.from_buffers(pa.bool_(), records.num_rows, [None, mask]))

    return select


@dataclass
class Reader:
    """Reads the selected rows in order; reports the problems it meets on standard error and counts them."""

    listings: Sequence[PartitionListing]
    selection: Selection
    isolation_level: IsolationLevel
    options: ReadOptions
    """The columns; without any, rows of `batches` are read."""
    filters: Sequence[Select] = ()
    """Which records in range are selected: all of these keep them."""
    tail: int | None = None
    """Only so many of the last selected records of each partition."""
    problems: int = 0

    def problem(self, message: str) -> None:
        """Reports and counts a problem."""
        self.problems += 1
        print_problem(f"magicbyte: {message}")

    def records(self) -> Iterator[tuple[str, pa.RecordBatch]]:
        """The selected records, each with the name of its topic."""
        options = replace(
            self.options,
            start_timestamp=self.selection.start_timestamp,
            end_timestamp=self.selection.end_timestamp,
        )
        left = self.selection.max_records
        for planned in self._plans():
            if left == 0:
                return
            skipped = 0
            if self.tail is not None:
                planned, skipped = self._tail(planned, options, self.tail)
            for records in self._selected(planned, options):
                chosen = records.slice(min(skipped, records.num_rows), left)
                skipped = max(0, skipped - records.num_rows)
                if chosen.num_rows:
                    yield planned.listing["topic"], chosen
                if left is not None:
                    left -= chosen.num_rows
                    if left == 0:
                        return

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The rows of `batches`, also those out of range."""
        for planned in self._plans():
            yield from self._rows_of("batches", planned, self.options)

    def _plans(self) -> list[Planned]:
        return plan_partitions(
            self.listings, LocalEngine(), isolation_level=self.isolation_level, bounds=self._bounds
        )

    def _bounds(self, planned: Planned) -> Range:
        start = self.selection.start_offset
        if self.selection.start_timestamp is not None:
            first = _core.start_for_timestamp(planned.text, self.selection.start_timestamp)
            start = max(start or 0, (planned.plan["next_offset"] or 0) if first is None else first)
        return start, self.selection.end_offset

    def _selected(
        self, planned: Planned, options: ReadOptions, *, report: bool = True
    ) -> Iterator[pa.RecordBatch]:
        for records in self._rows_of("records", planned, options, report=report):
            chosen = records
            for select in self.filters:
                chosen = select(chosen)
            yield chosen

    def _rows_of(
        self, table: str, planned: Planned, options: ReadOptions, *, report: bool = True
    ) -> Iterator[pa.RecordBatch]:
        for chunk in planned.plan["chunks"]:
            for item in read_chunk(json.dumps(chunk), options):
                if isinstance(item, str):
                    continue
                if item.table == table:
                    yield item.batch
                elif report and item.table == "problems":
                    for row in item.batch.to_pylist():
                        self.problem(f"{row['segment']} at byte {row['start']}: {row['message']}")

    def _tail(self, planned: Planned, options: ReadOptions, count: int) -> tuple[Planned, int]:
        """The plan for the end of the partition, and how many of its selected records precede the last ones.

        Looks for them in ranges of offsets from the end on, each twice as long as the one after it.
        """
        start, end = self._bounds(planned)
        first, high = planned.plan["first_offset"] or 0, planned.plan["next_offset"] or 0
        first = max(first, start or 0)
        high = high if end is None else min(high, end)
        if not self.filters:
            options = replace(options, columns=("offset",))
        low, step, found = high, max(count, _FIRST_STEP), 0
        while low > first and found < count:
            high, low = low, max(first, low - step)
            window = self._part(planned, (low, high))
            found += sum(rows.num_rows for rows in self._selected(window, options, report=False))
            step *= 2
        return self._part(planned, (low, end)), max(0, found - count)

    def _part(self, planned: Planned, offsets: Range) -> Planned:
        return plan_surveyed(
            planned.listing,
            planned.surveys,
            isolation_level=self.isolation_level,
            offsets=offsets,
            chunk_bytes=MIB,
        )
