"""The rows in which a table and a log differ, found by digests of ranges of offsets.

A range is split into buckets, whose digests are added up on both sides in one pass. Buckets that differ are
split again, until a bucket is so small that its rows are compared one by one. So memory is bounded, and after
two or three passes the differences are known. In a table with typed keys or values, only groups of rows have
digests that can be compared: there the buckets end where groups do.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from magicbyte import _core
from magicbyte.enums import IsolationLevel
from magicbyte.jobs.run.columns import DIGEST_COLUMN, KAFKA_COLUMNS
from magicbyte.jobs.run.engines import Engine
from magicbyte.jobs.run.plan import DecodeTask, Planned, plan_surveyed, task_name, tasks_of
from magicbyte.jobs.run.reading import ReadOptions, Rows, read_chunk
from magicbyte.jobs.run.selecting import record_filter
from magicbyte.jobs.run.sums import MILLIS, RecordSum, RecordSums, TopicPartition
from magicbyte.lake.ranges import OffsetRange

if TYPE_CHECKING:
    from magicbyte.lake.read import StoredTable
    from magicbyte.lake.table import TableOptions

__all__ = [
    "Leaf",
    "LogRows",
    "TableRows",
    "differing_leaves",
    "digests_of_log",
    "digests_of_rows",
    "log_read_options",
]

_BUCKETS = 256
_LEAF_OFFSETS = 4096
"""The offsets of a bucket whose rows are compared one by one."""

R = TypeVar("R")

_ROWS_AT_ONCE = 64

Sums = dict[int, RecordSum]
"""The sums of buckets, by their place among the ends."""


@dataclass(frozen=True)
class Leaf:
    """The rows of a small range that differs: for each offset a digest, which can be compared with that of
    the same offset on the other side.
    """

    table: dict[int, int]
    log: dict[int, int]
    follows_agreement: bool
    """True if rows agree between this leaf and the leaf before it."""


def log_read_options(
    options: TableOptions, max_decompressed_bytes: int, *, with_millis: bool = False
) -> ReadOptions:
    """Options for reading the records of the log that a table with these options should hold."""
    return ReadOptions(
        (*KAFKA_COLUMNS, "headers", *([MILLIS] if with_millis else [])),
        max_decompressed_bytes=max_decompressed_bytes,
        key_as=options.key_as,
        value_as=options.value_as,
        start_timestamp=options.start_timestamp,
        end_timestamp=options.end_timestamp,
        where=None if options.where is None else record_filter(options.where),
        digests=True,
    )


class TableRows:
    """The rows of one partition in a table."""

    def __init__(self, table: StoredTable, place: TopicPartition) -> None:
        self.place = place
        self.is_typed = table.options.is_typed
        self._table = table

    def last_offset(self, end: int) -> int | None:
        """The largest offset before `end`. Statistics of files make looking near the end cheap."""
        span = _LEAF_OFFSETS
        while end > 0:
            offsets = [
                pc.max(batch.column("offset")).as_py()
                for batch in self._rows(max(0, end - span), end, ("topic", "partition", "offset"))
                if batch.num_rows
            ]
            if offsets:
                return int(max(offsets))
            if span >= end:
                return None
            span *= _BUCKETS
        return None

    def group_start(self, offset: int) -> int:
        """The start of the group of typed rows with this offset; in other tables, the offset itself."""
        if not self.is_typed:
            return offset
        span = _LEAF_OFFSETS
        while True:
            start = max(0, offset - span)
            if markers := list(self._markers(start, offset)):
                return max(markers) + 1
            if start == 0:
                return 0
            span *= _BUCKETS

    def group_end(self, offset: int, limit: int) -> int:
        """The end of the group of typed rows that contains the offset before this one, at most `limit`; in
        other tables, the offset itself.
        """
        if not self.is_typed or offset >= limit:
            return offset
        return min((marker + 1 for marker in self._markers(max(0, offset - 1), limit)), default=limit)

    def sums(self, start: int, ends: Sequence[int]) -> Sums:
        """The sums of buckets; `ends` are exclusive."""
        return _added(_bucket_sums(batch, ends) for batch in self._rows(start, ends[-1]))

    def digests(self, start: int, end: int) -> dict[int, int]:
        """The digests of the rows in a range, by offset."""
        return dict(pair for batch in self._rows(start, end) for pair in digests_of_rows(batch))

    def offsets(self, start: int, end: int) -> set[int]:
        """The offsets of the rows in a range."""
        columns = ("topic", "partition", "offset")
        return {
            one for batch in self._rows(start, end, columns) for one in batch.column("offset").to_pylist()
        }

    def ends(self, start: int, end: int) -> list[int]:
        """The ends of the buckets of a range. A range that is not split has one bucket."""
        if self.is_typed:
            ends = _thinned(sorted(marker + 1 for marker in self._markers(start, end)))
            return ends if ends and ends[-1] == end else [*ends, end]
        if end - start <= _LEAF_OFFSETS:
            return [end]
        width = -(-(end - start) // _BUCKETS)
        return [min(end, start + width * (at + 1)) for at in range(-(-(end - start) // width))]

    def _rows(self, start: int, end: int, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        within = [OffsetRange(*self.place, start, end)]
        return self._table.rows(within=within) if columns is None else self._table.rows(columns, within)

    def _markers(self, start: int, end: int) -> Iterator[int]:
        """The last offsets of groups of typed rows."""
        for batch in self._rows(start, end, ("topic", "partition", "offset", DIGEST_COLUMN)):
            marked = batch.column(DIGEST_COLUMN).is_valid()
            yield from batch.column("offset").filter(marked).to_pylist()


@dataclass(frozen=True)
class LogRows:
    """The records of one partition in a log, as a table has them."""

    planned: Planned
    read: ReadOptions
    isolation_level: IsolationLevel
    engine: Engine

    def sums(self, start: int, ends: Sequence[int]) -> Sums:
        """See `TableRows`."""
        function = partial(_sums_of_task, ends=tuple(ends), read=self.read)
        return _added(_map([self._within(start, ends[-1])], function, self.engine))

    def digests(self, start: int, end: int) -> dict[int, int]:
        """See `TableRows`."""
        found = digests_of_log([self._within(start, end)], self.read, self.engine)
        return found[0] if found else {}

    def _within(self, start: int, end: int) -> Planned:
        return plan_surveyed(
            self.planned.listing,
            self.planned.surveys,
            isolation_level=self.isolation_level,
            offsets=(start, end),
            chunk_bytes=1,
        )


def digests_of_log(plans: Sequence[Planned], read: ReadOptions, engine: Engine) -> list[dict[int, int]]:
    """The digests of the records that each plan delivers, by offset."""
    found: dict[TopicPartition, dict[int, int]] = defaultdict(dict)
    for part in _map(plans, partial(_digests_of_task, read=read), engine):
        for (topic, partition, offset), digest in part.items():
            found[topic, partition][offset] = digest
    return [found[planned.listing["topic"], planned.listing["partition"]] for planned in plans]


def _map(plans: Sequence[Planned], function: Callable[[DecodeTask], R], engine: Engine) -> list[R]:
    if not (tasks := tasks_of(plans, engine.parallelism)):
        return []
    return engine.map(function, tasks, name=task_name("compare", tasks), sizes=[task.size for task in tasks])


def differing_leaves(table: TableRows, log: LogRows, start: int, end: int) -> Iterator[Leaf]:
    """The small ranges in which rows differ, in the order of their offsets."""
    return _Search(table, log).leaves(start, end)


class _Search:
    def __init__(self, table: TableRows, log: LogRows) -> None:
        self._table = table
        self._log = log
        self._agrees = False

    def leaves(self, start: int, end: int) -> Iterator[Leaf]:
        if start >= end:
            return
        ends = self._table.ends(start, end)
        if len(ends) == 1:
            yield self._leaf(start, end)
            return
        table, log = self._table.sums(start, ends), self._log.sums(start, ends)
        for at, stop in enumerate(ends):
            begin = ends[at - 1] if at else start
            if table.get(at) != log.get(at):
                yield from self.leaves(begin, stop)
            elif at in table:
                self._agrees = True

    def _leaf(self, start: int, end: int) -> Leaf:
        agrees, self._agrees = self._agrees, False
        if not self._table.is_typed:
            return Leaf(self._table.digests(start, end), self._log.digests(start, end), agrees)
        # One group: only the sum of all its rows can be compared.
        offsets = self._table.offsets(start, end)
        records = self._log.digests(start, end).keys()
        is_equal = self._table.sums(start, [end]) == self._log.sums(start, [end])
        differs = offsets == records and not is_equal
        return Leaf(dict.fromkeys(offsets, 0), dict.fromkeys(records, int(differs)), agrees)


def _sums_of_task(task: DecodeTask, ends: tuple[int, ...], read: ReadOptions) -> Sums:
    return _added(_bucket_sums(batch, ends) for batch in _batches(task, read))


def _digests_of_task(task: DecodeTask, read: ReadOptions) -> dict[tuple[str, int, int], int]:
    return {
        (str(batch.column("topic")[0]), batch.column("partition")[0].as_py(), offset): digest
        for batch in _batches(task, read)
        for offset, digest in digests_of_rows(batch)
    }


def _batches(task: DecodeTask, read: ReadOptions) -> Iterator[pa.RecordBatch]:
    for chunk in task.chunks:
        for item in read_chunk(chunk, replace(read, digests=False)):
            if isinstance(item, Rows) and item.table == "records":
                yield item.batch


def _bucket_sums(batch: pa.RecordBatch, ends: Sequence[int]) -> Sums:
    """The sums of the rows of a batch, all of one partition."""
    batch, offsets = _ordered(batch)
    found: Sums = {}
    at = 0
    while at < len(offsets):
        bucket = bisect_right(ends, offsets[at])
        stop = bisect_left(offsets, ends[bucket], at)
        found[bucket] = _sum(batch.slice(at, stop - at))
        at = stop
    return found


def digests_of_rows(batch: pa.RecordBatch) -> Iterator[tuple[int, int]]:
    """The offset and the digest of each row of a batch, all of one partition."""
    at = batch.schema.get_field_index("partition")
    for start in range(0, batch.num_rows, _ROWS_AT_ONCE):
        rows = batch.slice(start, _ROWS_AT_ONCE)
        # Sums are those of partitions, so each row becomes one: its number is not in the digest.
        numbers = pa.array(range(rows.num_rows), pa.int32())
        for _, _, _, offset, _, digest in _core.digest_records(rows.set_column(at, "partition", numbers)):
            yield offset, digest


def _ordered(batch: pa.RecordBatch) -> tuple[pa.RecordBatch, list[int]]:
    offsets = batch.column("offset").to_pylist()
    ordered = sorted(offsets)
    return (batch if ordered == offsets else batch.sort_by("offset")), ordered


def _sum(rows: pa.RecordBatch) -> RecordSum:
    sums = RecordSums()
    sums.add_rows(rows)
    (found,) = sums.values()
    return found


def _added(parts: Iterable[Sums]) -> Sums:
    found: Sums = {}
    for part in parts:
        for bucket, one in part.items():
            found.setdefault(bucket, RecordSum()).add(one)
    return found


def _thinned(ends: list[int]) -> list[int]:
    """At most `_BUCKETS` of the ends, including the last one."""
    step = -(-len(ends) // _BUCKETS) or 1
    return ends[::-1][::step][::-1]
