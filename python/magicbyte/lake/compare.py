"""Comparing a table with the log it was made from: counts, offsets and digests of each partition."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from magicbyte.enums import IsolationLevel
from magicbyte.jobs.find.choice import PartitionChoice
from magicbyte.jobs.run.columns import DIGEST_COLUMN
from magicbyte.jobs.run.engines import Engine
from magicbyte.jobs.run.plan import Planned, Range
from magicbyte.jobs.run.sums import MILLIS, NullTimes, RecordSum, RecordSums, TopicPartition
from magicbyte.jobs.verify import ComparedPartition, Comparison, LogSums, TableComparison
from magicbyte.lake.counted_differences import Differences
from magicbyte.lake.differences import LogRows, TableRows, differing_leaves, log_read_options
from magicbyte.lake.losses import holes_in
from magicbyte.lake.read import StoredTable
from magicbyte.lake.table import DIGESTED
from magicbyte.listing import log_start_of
from magicbyte.model import PartitionListing

__all__ = ["LogOfTable"]


class LogOfTable:
    """Reads a log for comparison with a table."""

    def __init__(
        self, table: StoredTable, listings: Sequence[PartitionListing], max_decompressed_bytes: int
    ) -> None:
        self._table = table
        self.options = table.options
        self.read = log_read_options(self.options, max_decompressed_bytes, with_millis=True)
        self._begins: dict[TopicPartition, int] = {}
        self._begin(
            (
                (listing["topic"], listing["partition"]),
                listing["segments"][0]["base_offset"],
                log_start_of(listing),
            )
            for listing in listings
            if listing["segments"]
        )
        states = table.states(list(self._begins))
        self._nexts = {place: state.next_offset for place, state in states.items()}

    @property
    def isolation_level(self) -> IsolationLevel:
        """The isolation level of the table's records."""
        return self.options.isolation_level

    def _begin(self, logs: Iterable[tuple[TopicPartition, int, int | None]]) -> None:
        """Sets where the comparison begins, given the base offset of the first segment and the log start."""
        begins = {place: max(base_offset, start or 0) for place, base_offset, start in logs}
        if self.options.is_typed:
            begins.update(_after_groups(self._table, begins))
        self._begins.update(begins)

    def bounds(self, planned: Planned) -> Range:
        """The offsets that the table should hold."""
        begin = max(self._begins.get(_place(planned), 0), self.options.start_offset or 0)
        return begin or None, self._nexts.get(_place(planned), 0)

    def compare(self, log: LogSums, choice: PartitionChoice, engine: Engine) -> TableComparison:
        """Compares the sums of the log's records with the rows of the table. Where they differ, both are read
        again to find the rows.
        """
        # A broker may have deleted segments since the logs were listed; and a name may be wrong.
        segments = ((planned, planned.plan["segments"]) for planned in log.plans if planned.plan["segments"])
        self._begin(
            (_place(one), own[0]["base_offset"], one.plan["log_start_offset"]) for one, own in segments
        )
        table, older, times = self._scan()
        plans = {_place(planned): planned for planned in log.plans}
        places = sorted({*self._begins, *(place for place in table if choice.includes(*place))})
        compared = []
        for place in places:
            rows, records = table.get(place, RecordSum()), log.sums.get(place, RecordSum())
            found = Differences()
            if place in self._begins and rows != records:
                found = self._differences(plans[place], log, engine)
            found.judge_times(times, log.times, place)
            end = self._end(plans[place]) if place in plans else 0
            compared.append(
                self._partition(place, end, records, rows, older.get(place, RecordSum()).rows, found)
            )
        return TableComparison(
            table=self._table.name,
            equal=all(one["result"] == "equal" for one in compared),
            partitions=compared,
        )

    def _partition(
        self,
        place: TopicPartition,
        end: int,
        log: RecordSum,
        table: RecordSum,
        older_rows: int,
        found: Differences,
    ) -> ComparedPartition:
        begin, next_offset = self._begins.get(place, 0), self._nexts.get(place, 0)
        result: Comparison = "equal"
        if place not in self._begins:
            result = "not_in_log"
        elif found.first is not None:
            result = "differs"
        elif found.unproven:
            result = "unproven"
        elif end > max(next_offset, begin):
            result = "behind" if place in self._nexts else "not_in_table"
        return ComparedPartition(
            topic=place[0],
            partition=place[1],
            result=result,
            start_offset=max(begin, self.options.start_offset or 0),
            next_offset=next_offset,
            log_end=end,
            log_rows=log.rows,
            table_rows=table.rows,
            log_digest=log.hex_digest,
            table_digest=table.hex_digest,
            older_rows=older_rows,
            first_difference=found.first,
            changed_rows=found.changed,
            missing_rows=found.missing,
            first_missing=found.first_missing,
            compacted_rows=found.compacted,
            lost_rows=found.lost,
            unproven_rows=found.unproven,
        )

    def _differences(self, planned: Planned, log: LogSums, engine: Engine) -> Differences:
        place = _place(planned)
        begin, end = self._begins[place], self._nexts.get(place, 0)
        rows = TableRows(self._table, place)
        records = LogRows(planned, self.read, self.options.isolation_level, engine)
        lost = holes_in(log.problems, planned.listing, begin, end)
        leaves = differing_leaves(rows, records, max(begin, self.options.start_offset or 0), end)
        found = Differences()
        for leaf in leaves:
            found.add(leaf, lost, is_typed=rows.is_typed)
        found.judge_compaction(log.absent.get(place, 0))
        return found

    def _end(self, planned: Planned) -> int:
        plan, limit = planned.plan, self.options.end_offset
        end = plan["next_offset"] or 0
        if self.options.isolation_level == "read_committed" and plan["last_stable_offset"] is not None:
            end = plan["last_stable_offset"]
        return end if limit is None else min(end, limit)

    def _scan(self) -> tuple[RecordSums, RecordSums, NullTimes]:
        """Returns the sums of the table's rows, the sums of rows from before the beginning of the log, and
        the null timestamps.
        """
        sums, older, times = RecordSums(), RecordSums(), NullTimes()
        for batch in self._table.rows((*DIGESTED, MILLIS)):
            for rows, is_older in _split(batch, self._begins):
                (older if is_older else sums).add_rows(rows)
                if not is_older:
                    times.add_rows(rows)
        return sums, older, times


def _place(planned: Planned) -> TopicPartition:
    return planned.listing["topic"], planned.listing["partition"]


def _after_groups(
    table: StoredTable, begins: Mapping[TopicPartition, int]
) -> Iterator[tuple[TopicPartition, int]]:
    """Yields an offset to begin at for partitions whose log begins within rows that share a `_digest`.

    The offset is after these rows. They come from one segment, so this is not the log that they were made
    from, but a copy of it.
    """
    if not any(begins.values()):
        return
    older: dict[TopicPartition, int] = {}
    ended: dict[TopicPartition, int] = {}
    ends: dict[TopicPartition, int] = {}
    for batch in table.rows(("topic", "partition", "offset", DIGEST_COLUMN)):
        for place in _places_in(batch):
            begin = begins.get(place, 0)
            here = batch.filter(_is_of(batch, place))
            offsets = here.column("offset")
            marked = offsets.filter(here.column(DIGEST_COLUMN).is_valid())
            _keep(older, place, pc.max(offsets.filter(pc.less(offsets, begin))), max)
            _keep(ended, place, pc.max(marked.filter(pc.less(marked, begin))), max)
            _keep(ends, place, pc.min(marked.filter(pc.greater_equal(marked, begin))), min)
    for place, last in older.items():
        if last > ended.get(place, -1) and place in ends:
            yield place, ends[place] + 1


def _keep(
    found: dict[TopicPartition, int], place: TopicPartition, offset: pa.Scalar, choose: Callable[..., int]
) -> None:
    if offset.is_valid:
        found[place] = choose(found.get(place, offset.as_py()), offset.as_py())


def _is_of(batch: pa.RecordBatch, place: TopicPartition) -> pa.Array:
    topic, partition = place
    return pc.and_(pc.equal(batch.column("topic"), topic), pc.equal(batch.column("partition"), partition))


def _split(
    batch: pa.RecordBatch, begins: Mapping[TopicPartition, int]
) -> Iterator[tuple[pa.RecordBatch, bool]]:
    """The rows whose offsets are in the log or after it, and those from before its beginning."""
    places = _places_in(batch)
    if all(begins.get(place, 0) == 0 for place in places):
        yield batch, False
        return
    is_older = pa.array([False] * batch.num_rows)
    for place in places:
        is_before = pc.less(batch.column("offset"), begins.get(place, 0))
        is_older = pc.or_(is_older, pc.and_(_is_of(batch, place), is_before))
    yield batch.filter(pc.invert(is_older)), False
    yield batch.filter(is_older), True


def _places_in(batch: pa.RecordBatch) -> list[TopicPartition]:
    names = pa.table([batch.column("topic"), batch.column("partition")], names=["topic", "partition"])
    rows = names.group_by(["topic", "partition"]).aggregate([]).to_pylist()
    return [(row["topic"], row["partition"]) for row in rows]
