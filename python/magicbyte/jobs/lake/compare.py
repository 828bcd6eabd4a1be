"""Comparing a table with the log it was made from: counts, offsets and digests of each partition."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Literal, TypedDict

import pyarrow as pa
import pyarrow.compute as pc

from magicbyte.jobs.choice import PartitionChoice
from magicbyte.jobs.columns import DIGEST_COLUMN, KAFKA_COLUMNS
from magicbyte.jobs.lake.read import StoredTable
from magicbyte.jobs.lake.sums import RecordSum, RecordSums, TopicPartition
from magicbyte.jobs.plan import Planned, Range
from magicbyte.jobs.reading import ReadOptions
from magicbyte.jobs.selecting import record_filter
from magicbyte.listing import log_start_of
from magicbyte.model import PartitionListing

__all__ = ["ComparedPartition", "Comparison", "LogOfTable", "TableComparison"]

Comparison = Literal["equal", "behind", "differs", "not_in_log", "not_in_table"]
"""`behind`: the table equals the log as far as it goes, and the log goes on."""


class ComparedPartition(TypedDict):
    """A partition in the log and in the table."""

    topic: str
    partition: int
    result: Comparison
    start_offset: int
    """What is compared begins here: where the log begins."""
    next_offset: int
    """What is compared ends before this offset: where the table ends."""
    log_end: int
    """Where the log ends."""
    log_rows: int
    table_rows: int
    log_digest: str
    """See `RecordSum.hex_digest`."""
    table_digest: str
    older_rows: int
    """Rows of the table from before the beginning of the log, which are not compared."""


class TableComparison(TypedDict):
    """What a comparison found."""

    table: str
    equal: bool
    """Whether all partitions are."""
    partitions: list[ComparedPartition]


class LogOfTable:
    """How the log is read so that it can be compared with a table."""

    def __init__(
        self, table: StoredTable, listings: Sequence[PartitionListing], max_decompressed_bytes: int
    ) -> None:
        self._table = table
        self.options = table.options
        self.read = ReadOptions(
            (*KAFKA_COLUMNS, "headers"),
            max_decompressed_bytes=max_decompressed_bytes,
            key_as=self.options.key_as,
            value_as=self.options.value_as,
            start_timestamp=self.options.start_timestamp,
            end_timestamp=self.options.end_timestamp,
            where=None if self.options.where is None else record_filter(self.options.where),
            digests=True,
        )
        self._begins = {
            (one["topic"], one["partition"]): max(one["segments"][0]["base_offset"], log_start_of(one) or 0)
            for one in listings
            if one["segments"]
        }
        if self.options.is_typed:
            self._begins.update(_after_groups(table, self._begins))
        self._nexts = table.next_offsets(list(self._begins))

    def bounds(self, planned: Planned) -> Range:
        """The offsets that the table should hold."""
        begin = max(self._begins.get(_place(planned), 0), self.options.start_offset or 0)
        return begin or None, self._nexts.get(_place(planned), 0)

    def compare(self, plans: Sequence[Planned], log: RecordSums, choice: PartitionChoice) -> TableComparison:
        """Compares the sums of the log's records with the rows of the table."""
        table, older = self._scan()
        ends = {_place(one): self._end(one) for one in plans}
        places = sorted({*self._begins, *(place for place in table if choice.includes(*place))})
        compared = [
            self._partition(
                place,
                ends.get(place, 0),
                log.get(place, RecordSum()),
                table.get(place, RecordSum()),
                older.get(place, RecordSum()).rows,
            )
            for place in places
        ]
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
    ) -> ComparedPartition:
        begin, next_offset = self._begins.get(place, 0), self._nexts.get(place, 0)
        result: Comparison = "equal"
        if place not in self._begins:
            result = "not_in_log"
        elif log != table:
            result = "differs"
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
        )

    def _end(self, planned: Planned) -> int:
        plan, limit = planned.plan, self.options.end_offset
        end = plan["next_offset"] or 0
        if self.options.isolation_level == "read_committed" and plan["last_stable_offset"] is not None:
            end = plan["last_stable_offset"]
        return end if limit is None else min(end, limit)

    def _scan(self) -> tuple[RecordSums, RecordSums]:
        """The sums of the table's rows, and of those from before the beginning of the log."""
        sums, older = RecordSums(), RecordSums()
        for batch in self._table.rows():
            for rows, is_older in _split(batch, self._begins):
                (older if is_older else sums).add_rows(rows)
        return sums, older


def _place(planned: Planned) -> TopicPartition:
    return planned.listing["topic"], planned.listing["partition"]


def _after_groups(
    table: StoredTable, begins: Mapping[TopicPartition, int]
) -> Iterator[tuple[TopicPartition, int]]:
    """Where to begin in partitions whose log begins within rows that share a `_digest`: after them.

    Such rows are of one segment, so this is not the log that they were made from, but a copy of it.
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
