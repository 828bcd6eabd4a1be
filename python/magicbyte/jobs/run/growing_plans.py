"""Plans of partitions that are being surveyed: their first chunks are known before the last survey."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from magicbyte import _core
from magicbyte.errors import JobError
from magicbyte.jobs.run.plan import Planned
from magicbyte.jobs.run.surveys_ahead import PART_BYTES, Surveyed
from magicbyte.model import Chunk, PartitionListing, PlanSegment

__all__ = ["GrowingPlans"]

_Plan = Callable[[PartitionListing, Sequence[str]], Planned]
"""Plans a partition, given the surveys of its segments."""


@dataclass(frozen=True)
class GrowingPlans:
    """Plans partitions as their surveys arrive."""

    plan: _Plan
    check: Callable[[Planned], None]
    """Called with each finished plan; may raise."""
    is_committed: bool
    """True if aborted records are left out: a transaction may be aborted in any later segment."""
    finished: list[Planned] = field(default_factory=list)

    def chunks(self, listings: Sequence[PartitionListing], surveys: Iterator[Surveyed]) -> Iterator[Chunk]:
        """The chunks of all plans, in order."""
        for listing in listings:
            yield from self._chunks_of(listing, surveys)

    def _chunks_of(self, listing: PartitionListing, surveys: Iterator[Surveyed]) -> Iterator[Chunk]:
        found: list[str] = []
        growing = _GrowingPlan(listing, self.plan)
        given: list[Chunk] = []
        new_bytes = 0
        # The order is unknown until all segments are surveyed if files have the names of other files.
        is_in_order = _core.is_in_name_order(json.dumps(listing))
        while len(found) < len(listing["segments"]):
            surveyed = next(surveys)
            new_bytes += surveyed.size
            if new_bytes >= PART_BYTES and is_in_order and not self.is_committed:
                chunks = growing.new_chunks([*found, surveyed.text])
                yield from chunks
                given, new_bytes = [*given, *chunks], 0
            if surveyed.is_whole:
                found.append(surveyed.text)
        planned = self.plan(listing, found)
        self.check(planned)
        self.finished.append(planned)
        first = [_place(chunk) for chunk in planned.plan["chunks"][: len(given)]]
        if first != [_place(chunk) for chunk in given]:
            raise JobError(
                f"{listing['path']}: segments overlap, which showed only at their ends: copy the"
                " partition to a local disk, and read it there"
            )
        yield from planned.plan["chunks"][len(given) :]


class _GrowingPlan:
    """The plan of a partition while its segments are surveyed, one after the other."""

    def __init__(self, listing: PartitionListing, plan: _Plan) -> None:
        self._listing = listing
        self._plan = plan
        self._first = 0
        """The first segment that is still planned. All chunks of earlier segments have been returned."""
        self._given = 0
        """The number of chunks of the other segments that have been returned."""

    def new_chunks(self, surveys: Sequence[str]) -> list[Chunk]:
        """The next final chunks, given the first surveys; the last survey may cover a part of its segment."""
        segments = self._listing["segments"][self._first : len(surveys)]
        begun: PartitionListing = {**self._listing, "segments": segments, "ignored": [], "problems": []}
        plan = self._plan(begun, surveys[self._first :]).plan
        if not plan["segments"]:
            return []
        # The next segment determines the end of a segment.
        last = plan["segments"][-1]
        end = last["path"], last["size"]
        final = [chunk for chunk in plan["chunks"] if (chunk["path"], chunk["end"]) != end]
        new = final[self._given :]
        self._given = len(final)
        self._forget([segment["path"] for segment in plan["segments"] if _has_offsets(segment)], final)
        return new

    def _forget(self, known: Sequence[str], final: Sequence[Chunk]) -> None:
        """Stops planning segments that do not matter for the last one, before the one that it continues."""
        segments = self._listing["segments"]
        while len(known) > 1 and segments[self._first]["path"] != known[-2]:
            path = segments[self._first]["path"]
            self._given -= sum(chunk["path"] == path for chunk in final)
            self._first += 1


def _place(chunk: Chunk) -> tuple[str, int, int, int | None]:
    return chunk["path"], chunk["start"], chunk["end"], chunk["start_offset"]


def _has_offsets(segment: PlanSegment) -> bool:
    """True if the next segment continues the offsets of this one."""
    return segment["last_offset"] is not None and not segment["is_checkpoint"]
