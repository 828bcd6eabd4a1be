"""The lineage of a log: its topic, and the leaders that wrote it.

An offset names a record within one lineage only. After a failover, a new leader may write other records at
offsets that were read before; a topic that is deleted and created again begins at offset 0 once more. Whoever
continues at an offset therefore keeps a `Lineage` beside it, and asks `divergence` first.

>>> log = LogLineage("u1m", epochs=((0, 0), (1, 110)), end_offset=190)
>>> log.before(190)
Lineage(topic_id='u1m', epoch=1, epoch_start=110)
>>> divergence(Lineage("u1m", epoch=0, epoch_start=0), 150, log).offset
110
"""

from __future__ import annotations

import bisect
from collections.abc import Iterable
from dataclasses import dataclass

from magicbyte.model import PartitionPlan
from magicbyte.state import LeaderEpochs

__all__ = ["UNKNOWN", "Divergence", "Lineage", "LogLineage", "divergence", "epochs_of"]


@dataclass(frozen=True)
class Lineage:
    """What is kept beside an offset. None is unknown: nothing is concluded from it."""

    topic_id: str | None = None
    epoch: int | None = None
    """The leader epoch of the last record before the offset. Batches of magic 0 and 1 have none."""
    epoch_start: int | None = None
    """The offset where that epoch began; known if `epoch` is."""

    def or_else(self, other: Lineage) -> Lineage:
        """Fills in from `other`, a lineage beside the same offset, what is unknown here."""
        topic_id = other.topic_id if self.topic_id is None else self.topic_id
        epochs = other if self.epoch is None else self
        return Lineage(topic_id, epochs.epoch, epochs.epoch_start)


UNKNOWN = Lineage()
"""The lineage of what was read without keeping any."""


@dataclass(frozen=True)
class LogLineage:
    """The lineage of a whole log, as it is now."""

    topic_id: str | None
    epochs: tuple[tuple[int, int], ...]
    """(epoch, start offset) pairs, both strictly increasing."""
    end_offset: int
    """Exclusive."""

    def before(self, next_offset: int) -> Lineage:
        """The lineage to keep beside an offset; beyond the log's end, no record is before it."""
        if next_offset > self.end_offset:
            return Lineage(self.topic_id)
        epochs = LeaderEpochs(self.epochs)
        epoch = epochs.epoch_for_offset(next_offset - 1)
        return Lineage(self.topic_id, epoch, None if epoch is None else dict(self.epochs)[epoch])


@dataclass(frozen=True)
class Divergence:
    """Where a log stops being the one that was read."""

    offset: int
    """The first offset that may hold another record than the one that was read."""
    message: str
    """What was read, and what the log has instead."""


def epochs_of(plan: PartitionPlan, checkpoint: Iterable[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    """The epochs of a log, as (epoch, start offset) pairs.

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
    return tuple(LeaderEpochs(sorted((dict(batches) | added).items())).entries)


def divergence(continued: Lineage, next_offset: int, log: LogLineage) -> Divergence | None:
    """Where a log diverges from what was read before `next_offset` (exclusive); None if it continues it.

    By Kafka's rule for followers (OffsetsForLeaderEpoch). A log that only ends earlier, or begins later, does
    not diverge, and nothing diverges from what was not read.
    """
    if next_offset == 0:
        return None
    if None not in (continued.topic_id, log.topic_id) and continued.topic_id != log.topic_id:
        return Divergence(
            0,
            f"offsets before {next_offset} were read of the topic {continued.topic_id}, and the log is of "
            f"the topic {log.topic_id}: it diverges at offset 0",
        )
    if continued.epoch is None or continued.epoch_start is None or not log.epochs:
        return None
    epochs = LeaderEpochs(log.epochs)
    answer = epochs.end_offset_for_epoch(continued.epoch, log.end_offset)
    if answer is None:
        # The log ends in an earlier epoch: either it is only shorter, or another leader went on.
        offset = continued.epoch_start
        has = f"no epoch above {log.epochs[-1][0]} before its end at offset {log.end_offset}"
    else:
        epoch, end = answer
        offset = end if epoch == continued.epoch else min(end, continued.epoch_start)
        has = f"epoch {epoch} up to offset {end - 1}, and then epoch {epochs.next_epoch(continued.epoch)}"
    if offset >= min(next_offset, log.end_offset):
        return None
    return Divergence(
        offset,
        f"offsets before {next_offset} were read, the last ones of leader epoch {continued.epoch}, which "
        f"began at offset {continued.epoch_start}, and the log has {has}: it diverges at offset {offset}",
    )
