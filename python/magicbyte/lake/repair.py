"""The part of a table that `ingest --repair` replaces by what its log has now."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from magicbyte.jobs.run.holes import Hole, uncovered
from magicbyte.jobs.run.sums import TopicPartition
from magicbyte.lake.differences import TableRows
from magicbyte.lake.divergence import Divergence
from magicbyte.lake.ranges import OffsetRange
from magicbyte.lake.state import PartitionState
from magicbyte.lake.table import TransactionalTable
from magicbyte.listing import first_offset_of
from magicbyte.model import PartitionListing

__all__ = ["MAX_OFFSET", "Repair", "plan_repair", "segments_for"]

MAX_OFFSET = (1 << 63) - 1


@dataclass(frozen=True)
class Repair:
    """The plan of a repair, before the log is read again."""

    divergences: Mapping[TopicPartition, Divergence] = field(default_factory=dict)
    fills: Mapping[TopicPartition, Sequence[OffsetRange]] = field(default_factory=dict)
    """The ranges that are read again because of holes: with the groups of typed rows that they are in."""
    acknowledged: Mapping[TopicPartition, Sequence[Hole]] = field(default_factory=dict)
    """Holes from before the beginning of the log, which nothing can fill."""

    def start(self, place: TopicPartition, state: PartitionState | None) -> int | None:
        """Where a partition is continued; None for one that the table does not have."""
        if (found := self.divergences.get(place)) is not None:
            return found.offset
        return None if state is None else state.next_offset

    @property
    def replaced(self) -> list[OffsetRange]:
        """The ranges from the first offset that diverges on."""
        return [OffsetRange(*place, one.offset, MAX_OFFSET) for place, one in self.divergences.items()]


def plan_repair(
    table: TransactionalTable,
    listings: Iterable[PartitionListing],
    states: Mapping[TopicPartition, PartitionState],
    divergences: Iterable[Divergence],
) -> Repair:
    """Plans what to replace and what to read again."""
    diverging = {(divergence.topic, divergence.partition): divergence for divergence in divergences}
    fills: dict[TopicPartition, list[OffsetRange]] = {}
    acknowledged: dict[TopicPartition, list[Hole]] = {}
    for listing in listings:
        place = listing["topic"], listing["partition"]
        state = states.get(place)
        begin = first_offset_of(listing)
        if state is None or not state.holes or begin is None:
            continue
        end = diverging[place].offset if place in diverging else state.next_offset
        lost = list(uncovered(state.holes, begin, MAX_OFFSET))
        rows = TableRows(table, place)
        ranges: list[OffsetRange] = []
        for hole in uncovered(uncovered(state.holes, 0, begin), end, MAX_OFFSET):
            start, stop = rows.group_start(hole.start), rows.group_end(hole.end, end)
            if start < begin:
                start = hole.start  # the log no longer has all of the group
            if ranges and start < ranges[-1].end:
                start = ranges.pop().start
            ranges.append(OffsetRange(*place, start, stop))
        if lost:
            acknowledged[place] = lost
        if ranges:
            fills[place] = ranges
    return Repair(diverging, fills, acknowledged)


def segments_for(listing: PartitionListing, wanted: OffsetRange) -> PartitionListing:
    """The partition with the segments that may have these offsets, and the next one, which tells whether
    the offsets before it are complete.
    """
    segments = listing["segments"]
    first = max((at for at, one in enumerate(segments) if one["base_offset"] <= wanted.start), default=0)
    end = next((at + 1 for at, one in enumerate(segments) if one["base_offset"] >= wanted.end), len(segments))
    return {**listing, "segments": segments[first:end]}
