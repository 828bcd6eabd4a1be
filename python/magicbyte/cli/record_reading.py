"""The records that `magicbyte records` prints: ranges, filters, and the last ones of each partition."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from time import monotonic, sleep
from typing import Any, NamedTuple, Protocol

import pyarrow as pa

from magicbyte import _core
from magicbyte.cli.selection import Selection
from magicbyte.cli.terminal import flush, print_problem
from magicbyte.enums import IsolationLevel
from magicbyte.errors import JobError, RefusedError
from magicbyte.jobs.find.problems import offsets_text
from magicbyte.jobs.run.engines import LocalEngine
from magicbyte.jobs.run.live_partitions import LivePartition
from magicbyte.jobs.run.plan import MIB, Planned, Range, plan_partitions, plan_surveyed
from magicbyte.jobs.run.reading import ReadOptions, read_chunk
from magicbyte.model import PartitionListing

__all__ = ["Found", "Reader", "Select", "matching"]

Select = Callable[[pa.RecordBatch], pa.RecordBatch]
"""Keeps rows of the table `records`."""

_FIRST_STEP = 1000
"""The least number of offsets in which `--tail` looks for records first."""
_FOLLOW_SECONDS = 0.2
"""The time between two looks for new records."""
_DISCOVER_SECONDS = 10.0
"""The time between two looks for new partitions."""
_LOOKS = 10
"""The number of looks until a log counts as shorter: a new leader of an old version may not know its end."""


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


class Part(Protocol):
    """A range of offsets of a partition."""

    @property
    def topic(self) -> str:
        """The topic."""

    @property
    def offsets(self) -> tuple[int, int]:
        """The first offset and the end (exclusive) of what is there."""

    def chunks(self) -> Iterable[str | _core.FetchedChunk]:
        """The chunks of the range, for `read_chunk`."""

    def within(self, start: int, end: int | None) -> Part:
        """A smaller range."""


@dataclass(frozen=True)
class _FilePart:
    """A range of offsets of a partition with files; None leaves its end open."""

    planned: Planned
    isolation_level: IsolationLevel
    start: int | None
    end: int | None

    @property
    def topic(self) -> str:
        return self.planned.listing["topic"]

    @property
    def offsets(self) -> tuple[int, int]:
        first, end = self.planned.plan["first_offset"] or 0, self.planned.plan["next_offset"] or 0
        return max(first, self.start or 0), end if self.end is None else min(end, self.end)

    def chunks(self) -> Iterable[str]:
        return map(json.dumps, self.planned.plan["chunks"])

    def within(self, start: int, end: int | None) -> _FilePart:
        planned = plan_surveyed(
            self.planned.listing,
            self.planned.surveys,
            isolation_level=self.isolation_level,
            offsets=(start, end),
            chunk_bytes=MIB,
        )
        return replace(self, planned=planned, start=start, end=end)


@dataclass(frozen=True)
class _LivePart:
    """A range of offsets of a partition of a running cluster."""

    live: LivePartition
    isolation_level: IsolationLevel
    offsets: tuple[int, int]

    @property
    def topic(self) -> str:
        return self.live.topic

    def chunks(self) -> Iterable[_core.FetchedChunk]:
        fetched = self.live.chunks(self.isolation_level, *self.offsets)
        (start, end), (first, log_end) = self.offsets, fetched.offsets
        if start < min(first, end):
            lost = offsets_text(start, min(first, end) - 1)
            raise JobError(f"{self.live.path}: {lost}: deleted before they were read")
        if start < end and log_end < end:
            raise JobError(_shorter(self.live, log_end, end))
        return fetched

    def within(self, start: int, end: int | None) -> _LivePart:
        return replace(self, offsets=(start, self.offsets[1] if end is None else end))


class Found(NamedTuple):
    """The partitions that a command reads."""

    listings: Sequence[PartitionListing]
    """The partitions with files."""
    live: Sequence[LivePartition]
    """The partitions of running clusters."""
    live_again: Callable[[], Sequence[LivePartition]]
    """Looks for the partitions of running clusters once more."""


@dataclass
class Reader:
    """Reads the selected rows in order; reports the problems it meets on standard error and counts them."""

    found: Found
    selection: Selection
    isolation_level: IsolationLevel
    options: ReadOptions
    """The columns; without any, rows of `batches` are read."""
    filters: Sequence[Select] = ()
    """Which records in range are selected: all of these keep them."""
    tail: int | None = None
    """Only so many of the last selected records of each partition."""
    follow: bool = False
    """True to go on with the new records of running clusters, without an end."""
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
        for part, skipped in chain(self._first_parts(options), self._new_parts() if self.follow else ()):
            if left == 0:
                return
            for records in self._selected(part, options):
                chosen = records.slice(min(skipped, records.num_rows), left)
                skipped = max(0, skipped - records.num_rows)
                if chosen.num_rows:
                    yield part.topic, chosen
                if left is not None:
                    left -= chosen.num_rows
                    if left == 0:
                        return

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The rows of `batches`, also those out of range."""
        for part in self._parts():
            yield from self._rows_of("batches", part, self.options)

    def _first_parts(self, options: ReadOptions) -> Iterator[tuple[Part, int]]:
        """The parts that are there now, each with the number of its selected records to pass over."""
        for part in self._parts():
            yield (part, 0) if self.tail is None else self._tail(part, options, self.tail)

    def _new_parts(self) -> Iterator[tuple[Part, int]]:
        """Yields the parts that running clusters have got since, again and again.

        Raises:
            JobError: a log ends before what was read of it.

        """
        discovered = monotonic()
        while True:
            flush()
            sleep(_FOLLOW_SECONDS)
            if monotonic() - discovered >= _DISCOVER_SECONDS:
                discovered = monotonic()
                for part in self._new_partitions():
                    yield part, 0
            for live, position in list(self._ends.items()):
                end = self._end(live, position)
                start = max(position, self.selection.start_offset or 0)
                self._ends[live] = end
                if start < end:
                    yield _LivePart(live, self.isolation_level, (start, end)), 0

    def _end(self, live: LivePartition, position: int) -> int:
        """The end of a log that was read up to a position."""
        for _ in range(_LOOKS):
            _, end = live.reader.offsets(None, None, self.isolation_level)
            if end >= position:
                return end
            sleep(_FOLLOW_SECONDS)
        raise JobError(_shorter(live, end, position))

    def _new_partitions(self) -> Iterator[Part]:
        """The partitions that were not there before."""
        known = {live.path for live in self._ends}
        try:
            found = self.found.live_again()
        except (OSError, RefusedError):
            return  # the next read of a known partition waits for the brokers, or tells what is wrong
        for live in found:
            if live.path not in known:
                yield self._first_live_part(live)

    def _parts(self) -> Iterator[Part]:
        plans = plan_partitions(
            self.found.listings, LocalEngine(), isolation_level=self.isolation_level, bounds=self._bounds
        )
        for planned in plans:
            yield _FilePart(planned, self.isolation_level, *self._bounds(planned))
        self._ends: dict[LivePartition, int] = {}
        for live in self.found.live:
            yield self._first_live_part(live)

    def _first_live_part(self, live: LivePartition) -> _LivePart:
        start, end = self.selection.start_offset, self.selection.end_offset
        part = _LivePart(live, self.isolation_level, live.reader.offsets(start, end, self.isolation_level))
        self._ends[live] = part.offsets[1]
        if self.selection.start_timestamp is None:
            return part
        first = live.reader.offset_for_timestamp(self.selection.start_timestamp)
        return part.within(max(part.offsets[0], part.offsets[1] if first is None else first), None)

    def _bounds(self, planned: Planned) -> Range:
        start = self.selection.start_offset
        if self.selection.start_timestamp is not None:
            first = _core.start_for_timestamp(planned.text, self.selection.start_timestamp)
            start = max(start or 0, (planned.plan["next_offset"] or 0) if first is None else first)
        return start, self.selection.end_offset

    def _selected(self, part: Part, options: ReadOptions, *, report: bool = True) -> Iterator[pa.RecordBatch]:
        for records in self._rows_of("records", part, options, report=report):
            chosen = records
            for select in self.filters:
                chosen = select(chosen)
            yield chosen

    def _rows_of(
        self, table: str, part: Part, options: ReadOptions, *, report: bool = True
    ) -> Iterator[pa.RecordBatch]:
        for chunk in part.chunks():
            for item in read_chunk(chunk, options):
                if isinstance(item, str):
                    continue
                if item.table == table:
                    yield item.batch
                elif report and item.table == "problems":
                    for row in item.batch.to_pylist():
                        self.problem(f"{_place_of(row)}: {_message_of(row)}")

    def _tail(self, part: Part, options: ReadOptions, count: int) -> tuple[Part, int]:
        """The end of a part, and how many of its selected records precede the last ones.

        Looks for them in ranges of offsets from the end on, each twice as long as the one after it.
        """
        first, high = part.offsets
        if not self.filters:
            options = replace(options, columns=("offset",))
        low, step, found = high, max(count, _FIRST_STEP), 0
        while low > first and found < count:
            high, low = low, max(first, low - step)
            window = part.within(low, high)
            found += sum(rows.num_rows for rows in self._selected(window, options, report=False))
            step *= 2
        return part.within(low, self.selection.end_offset), max(0, found - count)


def _shorter(live: LivePartition, end: int, position: int) -> str:
    return (
        f"{live.path}: the log ended at offset {position} before, and ends at {end} now: it was truncated, or"
        " the topic was created again"
    )


def _message_of(problem: Mapping[str, Any]) -> str:
    """The message of a problem without the byte at its end, which its place has."""
    byte = f"byte {problem['start']}"
    return re.sub(rf" \({byte}\)$|, {byte}(?=\)$)", "", problem["message"])


def _place_of(problem: Mapping[str, Any]) -> str:
    """The place of a problem: a partition's file and a byte, or the offsets of what was fetched."""
    name = f"{problem['topic']}-{problem['partition']}"
    if problem["segment"]:
        return f"{name}/{problem['segment']} at byte {problem['start']}"
    first, last = problem["firstLostOffset"], problem["lastLostOffset"]
    return name if first is None else f"{name}, {offsets_text(first, first if last is None else last)}"
