"""The differences between a table and a log, counted by what they mean."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from magicbyte.jobs.run.holes import Hole
from magicbyte.jobs.run.sums import NullTimes, TopicPartition
from magicbyte.lake.differences import Leaf

__all__ = ["Differences"]


@dataclass
class Differences:
    """Rows of one partition. Compaction and rows that cannot be compared are no differences."""

    first: int | None = None
    """The first offset that differs."""
    changed: int = 0
    missing: int = 0
    """Only the log has them."""
    first_missing: int | None = None
    compacted: int = 0
    """Only the table has them, and no loss explains that."""
    first_compacted: int | None = None
    lost: int = 0
    """Only the table has them: the log has lost them."""
    unproven: int = 0

    def add(self, leaf: Leaf, lost: Sequence[Hole], *, is_typed: bool) -> None:
        """Adds a small range that differs, given the ranges that the log has lost."""
        for offset in sorted(leaf.table.keys() | leaf.log.keys()):
            if offset not in leaf.table:
                self.missing += 1
                self.first_missing = offset if self.first_missing is None else self.first_missing
                self._differ_at(offset)
            elif offset not in leaf.log:
                if any(hole.start <= offset < hole.end for hole in lost):
                    self.lost += 1
                    self._differ_at(offset)
                else:
                    self.compacted += 1
                    if self.first_compacted is None:
                        self.first_compacted = offset
            elif leaf.table[offset] != leaf.log[offset]:
                self.changed += 1
                self._differ_at(offset)
            elif is_typed:
                self.unproven += 1  # the digest is that of all rows of the group

    def judge_compaction(self, absent: int) -> None:
        """Takes rows that only the table has for differences if the log leaves out fewer offsets."""
        if self.first_compacted is not None and self.compacted > absent:
            self._differ_at(self.first_compacted)

    def judge_times(self, table: NullTimes, log: NullTimes, place: TopicPartition) -> None:
        """Compares the timestamps that are out of range in microseconds, and null in the table."""
        if unknown := table.unknown.get(place, 0):
            self.unproven += unknown
        elif not self.compacted and table.digests.get(place) != log.digests.get(place):
            self.changed += 1
            self._differ_at(log.first.get(place, table.first.get(place, 0)))

    def _differ_at(self, offset: int) -> None:
        self.first = offset if self.first is None else min(self.first, offset)
