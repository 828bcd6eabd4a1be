"""Partitions whose logs were compared with their table: what has only grown since needs no second look."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from magicbyte.jobs.find.lineage import EpochStart, LogLineage
from magicbyte.jobs.run.kept_surveys import SegmentState, segment_state
from magicbyte.jobs.run.plan import Planned
from magicbyte.jobs.run.sums import TopicPartition
from magicbyte.lake.state import PartitionState
from magicbyte.listing import LivePartitionListing, high_watermark_of, is_live
from magicbyte.model import PartitionListing, Survey

__all__ = ["Checked"]


@dataclass(frozen=True)
class _Agreement:
    """A log and the state of its table at the time of a comparison."""

    state: PartitionState
    """Without its holes, which are no part of the comparison."""
    segments: tuple[SegmentState, ...]
    """Of a running cluster, what stands for them."""
    surveys: Mapping[str, str]
    """Survey texts by path, of the segments that were surveyed."""

    def holds_for(self, now: _Agreement) -> bool:
        """True if the table is the same, and the log the same or longer."""
        if now.state != self.state:
            return False
        if now.segments == self.segments:
            return True
        before = {path: (path, *other) for path, *other in self.segments}
        rest = [segment for segment in now.segments if segment[0] in before]
        is_appended = now.segments[: len(rest)] == tuple(rest)
        has_last = bool(rest) and rest[-1][0] == self.segments[-1][0]
        return (
            is_appended
            and has_last
            and all(one == before[one[0]] or self._has_grown(one[0], now) for one in rest)
        )

    def _has_grown(self, path: str, now: _Agreement) -> bool:
        """True if the file has only got new batches after those that it had."""
        if path not in self.surveys or path not in now.surveys:
            return False
        before: Survey = json.loads(self.surveys[path])
        after: Survey = json.loads(now.surveys[path])
        return after["continues"] is not None and after["continues"] == before["last_batch"]


class Checked:
    """The comparisons of a stream, from one look to the next."""

    def __init__(self) -> None:
        self._agreements: dict[TopicPartition, _Agreement] = {}

    def holds(self, listing: PartitionListing, planned: Planned, state: PartitionState) -> bool:
        """True if an earlier comparison of this partition still proves that its log continues the table."""
        place = listing["topic"], listing["partition"]
        before, now = self._agreements.get(place), _agreement(listing, planned, state)
        if before is None or not before.holds_for(now):
            return False
        self._agreements[place] = now
        return True

    def add(self, listing: PartitionListing, planned: Planned, state: PartitionState) -> None:
        """Notes that a log continues the table."""
        self._agreements[listing["topic"], listing["partition"]] = _agreement(listing, planned, state)

    def advance(self, states: Mapping[TopicPartition, PartitionState]) -> None:
        """Notes that the table has got the rest of these logs, as they were at the last comparison."""
        for place, state in states.items():
            if (before := self._agreements.get(place)) is not None:
                self._agreements[place] = replace(before, state=replace(state, holes=()))


def _agreement(listing: PartitionListing, planned: Planned, state: PartitionState) -> _Agreement:
    paths = (segment["path"] for segment in planned.listing["segments"])
    segments = _lineage(listing, state) if is_live(listing) else map(segment_state, listing["segments"])
    return _Agreement(
        replace(state, holes=()),
        tuple(segments),
        dict(zip(paths, planned.surveys, strict=True)),
    )


def _lineage(listing: LivePartitionListing, state: PartitionState) -> Iterator[SegmentState]:
    """The topic and the leader epoch of the table's last record, as the cluster knows them: as long as they
    stay, its log has only grown.
    """
    epochs = tuple(EpochStart(one["epoch"], one["start_offset"]) for one in listing["leader_epochs"])
    high_watermark = high_watermark_of(listing)
    log = LogLineage(listing["topic_id"], listing["cluster_id"], epochs, high_watermark)
    lineage = log.before(state.next_offset)
    if lineage.topic_id is None or lineage.leader_epoch is None:
        # It may be another log: no state is equal to this one.
        yield listing["path"], high_watermark, time.monotonic_ns(), ""
    else:
        yield listing["path"], 0, 0, f"{lineage.topic_id} {lineage.leader_epoch}"
