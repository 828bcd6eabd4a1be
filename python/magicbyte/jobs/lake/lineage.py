"""The log that a table continues: up to which offset, of which topic and leader epoch, and without what."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from magicbyte.model import LeaderEpoch
from magicbyte.state import LeaderEpochs

__all__ = [
    "MAX_HOLES",
    "EpochStart",
    "Hole",
    "PartitionState",
    "contradictions",
    "epoch_before",
    "joined",
    "uncovered",
]

MAX_HOLES = 64
"""The number of holes that are remembered for a partition; beyond it, neighbours are joined."""


class EpochStart(NamedTuple):
    """A leader epoch and the offset where it began, as far as the batches tell."""

    epoch: int
    start_offset: int


class Hole(NamedTuple):
    """Offsets that a job passed although their records were lost or unread."""

    start: int
    end: int
    """Exclusive."""


@dataclass(frozen=True)
class PartitionState:
    """The state of a partition in a table."""

    next_offset: int
    """Where the next job starts."""
    topic_id: str | None = None
    """From `partition.metadata`; None if it is not known."""
    leader_epoch: EpochStart | None = None
    """The epoch of the last batch before `next_offset`; None if the batches have none."""
    holes: tuple[Hole, ...] = ()
    """In order, without overlaps."""
    cluster_id: str | None = None
    """From the `meta.properties` beside the partition; None if it is not known."""


def epoch_before(
    end: int, epochs: Sequence[LeaderEpoch], known: EpochStart | None = None
) -> EpochStart | None:
    """The leader epoch of the last batch before an offset.

    Args:
        end: the offset.
        epochs: those of the batches that were read, from any batch on.
        known: the epoch before those batches: it has begun before them, if they continue it.

    """
    begun = [one for one in epochs if one["start_offset"] < end]
    if not begun:
        return known
    last = begun[-1]
    if known is not None and known.epoch == last["epoch"]:
        return EpochStart(known.epoch, min(known.start_offset, last["start_offset"]))
    return EpochStart(last["epoch"], last["start_offset"])


def contradictions(
    state: PartitionState,
    topic_id: str | None,
    cluster_id: str | None,
    epochs: Sequence[LeaderEpoch],
    log_end: int,
) -> Iterator[str]:
    """The reasons why a log cannot be the one that a table continues, judged without reading records.

    Args:
        state: that of the table.
        topic_id: that of the log, None if it is not known.
        cluster_id: likewise; it matters only where one of the topic's ids is not known.
        epochs: of the log's batches, from one before `state.next_offset` on if there is one.
        log_end: the log end offset.

    """
    if state.topic_id is not None and topic_id is not None:
        if state.topic_id != topic_id:
            yield f"the table continues the topic with the id {state.topic_id}, this one has {topic_id}"
    elif None not in (state.cluster_id, cluster_id) and state.cluster_id != cluster_id:
        yield f"the table continues a log of the cluster {state.cluster_id}, this one is of {cluster_id}"
    if log_end < state.next_offset:
        yield f"the log ends before offset {log_end}"
    if state.leader_epoch is None or not epochs:
        return
    epoch, start = state.leader_epoch
    follower = LeaderEpochs([(epoch, start)])
    leader = LeaderEpochs((one["epoch"], one["start_offset"]) for one in epochs)
    agreed = follower.truncation(state.next_offset, leader, log_end).offset
    newest, newest_start = leader.entries[-1]
    if agreed is None:
        yield (
            f"the table ends in leader epoch {epoch} (from offset {start} on), the log's newest is {newest} "
            f"(from offset {newest_start} on)"
        )
    elif agreed < min(state.next_offset, log_end):
        ended = leader.end_offset_for_epoch(epoch, log_end)
        yield (
            f"the table ends in leader epoch {epoch}, which does not reach offset {state.next_offset - 1} in "
            f"the log: by the epochs they agree before offset {agreed if ended is None else ended[1]} at most"
        )


def joined(holes: Iterable[Hole]) -> tuple[Hole, ...]:
    """Holes in order, those that touch each other joined, and at most `MAX_HOLES` of them."""
    merged: list[Hole] = []
    for hole in sorted(hole for hole in holes if hole.start < hole.end):
        if merged and hole.start <= merged[-1].end:
            merged[-1] = Hole(merged[-1].start, max(merged[-1].end, hole.end))
        else:
            merged.append(hole)
    while len(merged) > MAX_HOLES:
        # The neighbours with the fewest offsets between them.
        at = min(range(len(merged) - 1), key=lambda one: merged[one + 1].start - merged[one].end)
        merged[at : at + 2] = [Hole(merged[at].start, merged[at + 1].end)]
    return tuple(merged)


def uncovered(holes: Iterable[Hole], start: int, end: int) -> Iterator[Hole]:
    """The parts of holes outside a range of offsets."""
    for hole in holes:
        for part in (Hole(hole.start, min(hole.end, start)), Hole(max(hole.start, end), hole.end)):
            if part.start < part.end:
                yield part
