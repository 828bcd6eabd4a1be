"""The lineage of a log: its topic, its cluster, and the leaders that wrote it.

An offset names a record within one lineage only. After a failover, a new leader may write other records at
offsets that were read before; a topic that is deleted and created again begins at offset 0 once more. Whoever
continues at an offset therefore keeps a `Lineage` beside it, and asks `divergence` first.

>>> log = LogLineage("u1m", None, epochs=(EpochStart(0, 0), EpochStart(1, 110)), end_offset=190)
>>> log.before(190).leader_epoch
EpochStart(epoch=1, start_offset=110)
>>> divergence(Lineage("u1m", EpochStart(0, 0)), 150, log).offset
110
"""

from __future__ import annotations

import bisect
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from magicbyte.model import PartitionPlan
from magicbyte.state import LeaderEpochs

__all__ = ["UNKNOWN", "Divergence", "EpochStart", "Lineage", "LogLineage", "divergence", "epochs_of"]


class EpochStart(NamedTuple):
    """A leader epoch and the offset where it began, as far as the batches tell."""

    epoch: int
    start_offset: int


@dataclass(frozen=True)
class Lineage:
    """The identity of the log before an offset. None is unknown: nothing is concluded from it."""

    topic_id: str | None = None
    """From `partition.metadata`."""
    leader_epoch: EpochStart | None = None
    """The epoch of the last record before the offset. Batches of magic 0 and 1 have none."""
    cluster_id: str | None = None
    """From the `meta.properties` beside the partition. Counts only where a topic's ID is unknown."""

    def or_else(self, other: Lineage) -> Lineage:
        """Fills in from `other`, a lineage beside the same offset, what is unknown here."""
        return Lineage(
            self.topic_id or other.topic_id,
            self.leader_epoch or other.leader_epoch,
            self.cluster_id or other.cluster_id,
        )


UNKNOWN = Lineage()
"""The lineage of what was read without keeping any."""


@dataclass(frozen=True)
class LogLineage:
    """The lineage of a log as it is now: of all of it, or from a batch before the offset in question on."""

    topic_id: str | None
    cluster_id: str | None
    epochs: tuple[EpochStart, ...]
    """Both numbers strictly increase."""
    end_offset: int
    """Exclusive."""

    def before(self, next_offset: int, known: Lineage = UNKNOWN) -> Lineage:
        """The lineage to keep beside an offset.

        Args:
            next_offset: the offset. Beyond the log's end, no record is before it.
            known: the lineage of an earlier offset that this log continues.

        """
        begun = [epoch for epoch in self.epochs if epoch.start_offset < next_offset <= self.end_offset]
        last = begun[-1] if begun else None
        before = known.leader_epoch
        if last is not None and before is not None and last.epoch == before.epoch:
            last = min(last, before)  # it has begun before the batches that were read
        return Lineage(self.topic_id, last, self.cluster_id).or_else(known)


@dataclass(frozen=True)
class Divergence:
    """The place where a log stops being the one that was read."""

    offset: int
    """The first offset that may hold another record than the one that was read."""
    reason: str
    """The two lineages."""

    def __str__(self) -> str:
        return f"{self.reason}: it diverges at offset {self.offset}"


def epochs_of(plan: PartitionPlan, checkpoint: Iterable[tuple[int, int]]) -> tuple[EpochStart, ...]:
    """The epochs of a log.

    Compaction may have left no batch of an epoch, which then only the `checkpoint` (the pairs of
    `leader-epoch-checkpoint`) knows. Where the two contradict each other, the batches are right.
    """
    batches = [(entry["epoch"], entry["start_offset"]) for entry in plan["leader_epochs"]]
    known = [epoch for epoch, _ in batches]

    def agrees(epoch: int, start: int) -> bool:
        place = bisect.bisect_left(known, epoch)
        after = batches[place][1] if place < len(batches) else plan["next_offset"] or 0
        return (batches[place - 1][1] if place else -1) < start < after

    added = {epoch: start for epoch, start in checkpoint if agrees(epoch, start)}
    entries = LeaderEpochs(sorted((dict(batches) | added).items())).entries
    return tuple(EpochStart(*entry) for entry in entries)


def divergence(continued: Lineage, next_offset: int, log: LogLineage) -> Divergence | None:
    """The place where a log diverges from what was read before `next_offset` (exclusive); None if it
    continues that.

    Epochs are judged by Kafka's rule for followers (OffsetsForLeaderEpoch). A log that only ends earlier, or
    begins later, does not diverge, and nothing diverges from what was not read.
    """
    if next_offset == 0:
        return None
    if (origin := _other_origin(continued, log)) is not None:
        before, now = origin
        return Divergence(
            0,
            f"offsets before {next_offset} were read of {before}, and the log is of {now}",
        )
    if continued.leader_epoch is None or not log.epochs:
        return None
    epoch, start = continued.leader_epoch
    epochs = LeaderEpochs(log.epochs)
    answer = epochs.end_offset_for_epoch(epoch, log.end_offset)
    if answer is None:
        # The log ends in an earlier epoch: either it is only shorter, or another leader went on.
        offset = start
        has = f"no epoch above {log.epochs[-1].epoch} before its end at offset {log.end_offset}"
    else:
        ended, end = answer
        offset = end if ended == epoch else min(end, start)
        has = f"epoch {ended} up to offset {end - 1}, and then epoch {epochs.next_epoch(epoch)}"
    if offset >= min(next_offset, log.end_offset):
        return None
    return Divergence(
        offset,
        f"offsets before {next_offset} were read, the last ones of leader epoch {epoch}, which began at "
        f"offset {start}, and the log has {has}",
    )


def _other_origin(continued: Lineage, log: LogLineage) -> tuple[str, str] | None:
    """The origins of the records that were read and of the log, if these are known to be different."""
    if continued.topic_id is not None and log.topic_id is not None:
        before, now, what = continued.topic_id, log.topic_id, "topic"
    elif continued.cluster_id is not None and log.cluster_id is not None:
        before, now, what = continued.cluster_id, log.cluster_id, "cluster"
    else:
        return None
    return None if before == now else (f"the {what} {before}", f"the {what} {now}")
