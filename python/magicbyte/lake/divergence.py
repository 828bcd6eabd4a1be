"""The offset at which a log diverges from the log that its table continues.

    topic ID and leader epochs -> contents of the last rows -> if they contradict: the first rows that differ

An offset belongs to a log. After a failover that rewrote the end of a partition, or once a topic was deleted
and created again, the same offsets have other records.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from magicbyte.enums import IsolationLevel
from magicbyte.errors import RefusedError
from magicbyte.jobs.find.lineage import EpochStart, LogLineage, divergence
from magicbyte.jobs.run.columns import DIGEST_COLUMN
from magicbyte.jobs.run.engines import Engine
from magicbyte.jobs.run.plan import MIB, Planned, plan_partitions, plan_surveyed, survey
from magicbyte.jobs.run.sums import TopicPartition
from magicbyte.lake.checked import Checked
from magicbyte.lake.differences import (
    LogRows,
    TableRows,
    differing_leaves,
    digests_of_log,
    digests_of_rows,
    log_read_options,
)
from magicbyte.lake.ranges import OffsetRange, scans
from magicbyte.lake.state import PartitionState
from magicbyte.lake.table import DIGESTED, TransactionalTable
from magicbyte.listing import first_offset_of, is_live, known_topic_id
from magicbyte.model import LeaderEpoch, PartitionListing

__all__ = ["DivergedError", "Divergence", "LineageCheck"]

_LAST_ROWS = 16
"""The rows at the end of a partition in a table that are compared with the log."""
_LAST_OFFSETS = 4096
"""The range of offsets that mostly contains these rows."""
_MODULUS = 1 << 128
_NAMED = 20


@dataclass(frozen=True)
class Divergence:
    """A partition whose log is not the one that the table continues."""

    topic: str
    partition: int
    offset: int
    """The first row to replace. Rows before it agree with the log, as far as the log still has them."""
    next_offset: int
    """The end of the table's rows."""
    reasons: tuple[str, ...]
    agrees: bool
    """True if all rows that the log still has agree with it: the same records, in another log."""

    def __str__(self) -> str:
        where = f"{self.topic}-{self.partition}: {'; '.join(self.reasons)}. "
        if self.agrees and self.offset == self.next_offset:
            return f"{where}The records agree up to offset {self.offset}, where the table ends."
        return f"{where}They diverge at offset {self.offset}, the table ends before {self.next_offset}."


class DivergedError(RefusedError):
    """Logs are not those that the table continues: they were truncated, or written again from some offset on,
    or the topic was created again, or they were restored elsewhere.
    """

    def __init__(self, table: str, divergences: Sequence[Divergence]) -> None:
        self.divergences = tuple(divergences)
        named = " ".join(map(str, divergences[:_NAMED]))
        more = len(divergences) - _NAMED
        super().__init__(
            f"{table} continues another log, so nothing is added. {named} "
            + (f"So do {more} more partitions. " if more > 0 else "")
            + "--repair replaces the rows from there on by those of the log; "
            "or leave the partition out (--exclude)"
        )


@dataclass(frozen=True)
class _Tail:
    """The last rows of a partition in a table."""

    digests: dict[int, int]
    """Digests by offset. For typed rows, only the sum is known: the last row has it."""
    is_group: bool

    def differs(self, log: Mapping[int, int]) -> bool:
        """True if the log has other records at these offsets. Records that it no longer has prove nothing."""
        if self.is_group:
            is_same = self.digests.keys() == log.keys()
            return is_same and (sum(self.digests.values()) - sum(log.values())) % _MODULUS != 0
        return any(log.get(offset, digest) != digest for offset, digest in self.digests.items())


class LineageCheck:
    """Compares the logs that a table continues with the logs that are there."""

    def __init__(
        self,
        table: TransactionalTable,
        states: Mapping[TopicPartition, PartitionState],
        engine: Engine,
        max_decompressed_bytes: int,
        clusters: Mapping[str, str | None],
    ) -> None:
        """`clusters` are the cluster ids of brokers' directories."""
        self._table = table
        self._clusters = clusters
        self._states = states
        self._engine = engine
        self._isolation_level: IsolationLevel = table.options.isolation_level
        self._read = log_read_options(table.options, max_decompressed_bytes)

    def divergences(
        self,
        listings: Sequence[PartitionListing],
        plans: Sequence[Planned],
        ends: Mapping[TopicPartition, int],
        checked: Checked,
    ) -> list[Divergence]:
        """The partitions that diverge.

        Args:
            listings: the whole of each log.
            plans: plans of the same logs, from the segment with the offset to continue at.
            ends: the log end offsets.
            checked: partitions that did not diverge: those that have only grown are not read again. Updated.

        """
        suspects: list[tuple[PartitionListing, list[str]]] = []
        waiting: list[tuple[PartitionListing, Planned, PartitionState]] = []
        for listing, planned in zip(listings, plans, strict=True):
            state = self._states.get(_place(listing))
            if state is None:
                checked.add(listing, planned, PartitionState(0))
            elif first_offset_of(listing) is not None and not checked.holds(listing, planned, state):
                waiting.append((listing, planned, state))
        tails = self._tails(
            {_place(listing): min(state.next_offset, ends[_place(listing)]) for listing, _, state in waiting}
        )
        segments = [self._tail_plan(listing, planned, tails) for listing, planned, _ in waiting]
        logs = digests_of_log([one for one in segments if one is not None], self._read, self._engine)
        of_log = iter(logs)
        for (listing, planned, state), segment in zip(waiting, segments, strict=True):
            place = _place(listing)
            log = LogLineage(
                known_topic_id(listing),
                self._clusters.get(os.path.dirname(listing["path"])),
                _epochs(segment, planned),
                ends[place],
            )
            found = list(_contradictions(state, log))
            if segment is not None and tails[place].differs(next(of_log)):
                found.append("the last rows of the table are not those of the log")
            if found:
                suspects.append((listing, found))
            else:
                checked.add(listing, planned, state)
        return [self._divergence(listing, found, ends[_place(listing)]) for listing, found in suspects]

    def _divergence(self, listing: PartitionListing, reasons: list[str], log_end: int) -> Divergence:
        """Finds where a log diverges, by its contents."""
        place = _place(listing)
        state = self._states[place]
        (planned,) = plan_partitions(
            [listing], self._engine, isolation_level=self._isolation_level, chunk_bytes=MIB
        )
        rows = TableRows(self._table, place)
        log = LogRows(planned, self._read, self._isolation_level, self._engine)
        begin = planned.plan["first_offset"] or 0
        end = min(state.next_offset, log_end)
        found = _first_conflict(rows, log, begin, end)
        topic_id = known_topic_id(listing)
        known_id = state.lineage.topic_id
        is_other_topic = None not in (known_id, topic_id) and known_id != topic_id
        # No row of another topic stays, not even one older than its log, unless the log was restored.
        offset = end if found is None else 0 if is_other_topic else found
        if is_other_topic and found is None and begin >= end:
            offset = 0
        return Divergence(
            *place,
            offset=rows.group_start(offset),
            next_offset=state.next_offset,
            reasons=tuple(reasons),
            agrees=found is None and offset == end,
        )

    def _tail_plan(
        self, listing: PartitionListing, planned: Planned, tails: Mapping[TopicPartition, _Tail]
    ) -> Planned | None:
        """A plan of the last rows' offsets, for files in the segment that should have the last one."""
        tail = tails.get(_place(listing))
        if tail is None:
            return None
        first, last = min(tail.digests), max(tail.digests)
        if is_live(listing):
            return plan_surveyed(
                listing, (), isolation_level=self._isolation_level, offsets=(first, last + 1), chunk_bytes=1
            )
        bases = [at for at, one in enumerate(listing["segments"]) if one["base_offset"] <= last]
        if not bases:
            return None
        segment = listing["segments"][bases[-1]]
        if not tail.is_group:
            first = max(first, segment["base_offset"])
        surveys = dict(
            zip((one["path"] for one in planned.listing["segments"]), planned.surveys, strict=True)
        )
        part: PartitionListing = {**listing, "segments": [segment], "problems": [], "ignored": []}
        text = surveys.get(segment["path"]) or survey([part], self._engine)[0][0]
        return plan_surveyed(
            part, [text], isolation_level=self._isolation_level, offsets=(first, last + 1), chunk_bytes=1
        )

    def _tails(self, limits: Mapping[TopicPartition, int]) -> dict[TopicPartition, _Tail]:
        """The last rows before these offsets of each partition that has rows."""
        span = _LAST_OFFSETS if self._table.options.is_typed else _LAST_ROWS
        windows = [OffsetRange(*place, max(0, end - span), end) for place, end in limits.items() if end > 0]
        found: dict[TopicPartition, _Tail] = {}
        for scan in scans(windows):
            found.update(self._within(scan))
        for place, end in limits.items():
            if place not in found and end > 0:
                rows = TableRows(self._table, place)
                if (last := rows.last_offset(end)) is not None:
                    start = rows.group_start(last) if rows.is_typed else max(0, last + 1 - _LAST_ROWS)
                    found.update(self._within([OffsetRange(*place, start, last + 1)], whole=True))
        return found

    def _within(
        self, scan: Sequence[OffsetRange], *, whole: bool = False
    ) -> Iterator[tuple[TopicPartition, _Tail]]:
        """The last rows in ranges; `whole`: the range is a group of typed rows."""
        is_typed = self._table.options.is_typed
        digests: dict[TopicPartition, dict[int, int]] = {}
        markers: dict[TopicPartition, list[int]] = {}
        for batch in self._table.rows(DIGESTED, scan):
            for place, rows in _by_place(batch):
                digests.setdefault(place, {}).update(digests_of_rows(rows))
                if is_typed:
                    marked = rows.filter(rows.column(DIGEST_COLUMN).is_valid())
                    markers.setdefault(place, []).extend(marked.column("offset").to_pylist())
        starts = {one.place: one.start for one in scan}
        for place, found in digests.items():
            if not is_typed:
                yield place, _Tail(found, is_group=False)
            elif whole or starts[place] == 0 or len(markers[place]) > 1:
                before = max((marker for marker in markers[place] if marker < max(found)), default=-1)
                yield place, _Tail({key: one for key, one in found.items() if key > before}, is_group=True)


def _first_conflict(table: TableRows, log: LogRows, begin: int, end: int) -> int | None:
    """The first offset from which on the log and the table have different records.

    Records of the log that the table lacks count if they are the last ones before such an offset: elsewhere
    somebody may have deleted the rows, or an earlier job could not read them.
    """
    missing: int | None = None
    for leaf in differing_leaves(table, log, begin, end):
        if leaf.follows_agreement:
            missing = None
        for offset, digest in sorted(leaf.log.items()):
            if offset not in leaf.table:
                missing = offset if missing is None else missing
            elif leaf.table[offset] == digest:
                missing = None
            else:
                return offset if missing is None else missing
    return None


def _by_place(batch: pa.RecordBatch) -> Iterator[tuple[TopicPartition, pa.RecordBatch]]:
    """The rows of each partition in a batch of one topic."""
    for partition in pc.unique(batch.column("partition")).to_pylist():
        rows = batch.filter(pc.equal(batch.column("partition"), partition))
        yield (str(rows.column("topic")[0]), partition), rows


def _contradictions(state: PartitionState, log: LogLineage) -> Iterator[str]:
    """The reasons why a log cannot be the one that a table continues, judged without reading records."""
    if (found := divergence(state.lineage, state.next_offset, log)) is not None:
        yield found.reason
    if log.end_offset < state.next_offset:
        yield f"the log ends before offset {log.end_offset}"


def _epochs(segment: Planned | None, planned: Planned) -> tuple[EpochStart, ...]:
    """The epochs of the segment with the table's last row, and of the segments from the table's end on."""
    found: list[LeaderEpoch] = [] if segment is None else list(segment.plan["leader_epochs"])
    newest = found[-1]["epoch"] if found else -1
    found += (epoch for epoch in planned.plan["leader_epochs"] if epoch["epoch"] > newest)
    return tuple(EpochStart(one["epoch"], one["start_offset"]) for one in found)


def _place(listing: PartitionListing) -> TopicPartition:
    return listing["topic"], listing["partition"]
