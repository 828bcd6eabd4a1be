"""The places of restored partitions, and the replicas that may lead.

All replicas that are restored get the same log, merged from all copies. So they are in sync with each
other, and every one may lead, if a copy that the cluster knew to be in sync was among those that were merged.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from magicbyte.internal_topics.metadata.topics import PartitionState, TopicState
from magicbyte.jobs.merging.planning import PlannedMerge
from magicbyte.jobs.restoring.doubts import HIGHEST_EPOCH, epochs_of, newer_epoch
from magicbyte.jobs.restoring.nodes import Node

__all__ = [
    "Placed",
    "Placement",
    "Placer",
    "electable_copies",
    "in_sync_copies",
    "is_committed",
    "newest_of_brokers",
    "preferred_copy",
]

Placed = Literal["online", "out_of_sync", "missing", "unelectable"]
"""`online`: a replica can lead. `out_of_sync`: only copies that were not in sync are here; they are restored,
but do not lead unless somebody elects one of them. `missing`: no readable copy is here; the partition stays
offline, so that its disk can still be found. `unelectable`: an epoch in the metadata or of all copies is so
high that no election could follow it; nothing is written."""

_LAST_EPOCH = (1 << 31) - 1


@dataclass(frozen=True)
class Placement:
    """A partition in the restored cluster."""

    topic: TopicState
    number: int
    status: Placed
    state: PartitionState
    """For the snapshot: without a leader, and with an epoch above all that the log has."""
    places: tuple[str, ...]
    """The directories in the output, one for each replica that is restored."""

    @property
    def name(self) -> str:
        """`topic-N`."""
        return f"{self.topic.name}-{self.number}"


def in_sync_copies(state: PartitionState, here: Collection[int]) -> list[int]:
    """The replicas among `here` that have all committed records: of the ISR, else of the ELR; if both are
    empty, those that had been in them last (`PartitionChangeBuilder`). Replicas that were being added have
    nothing to say.
    """
    tiers = [state.isr, state.elr]
    if not any(tiers):
        tiers.append(state.last_known_elr)
    present = ([one for one in tier if one in here] for tier in tiers)
    return next(filter(None, present), [])


class Placer:
    """Places partitions, one after another."""

    def __init__(self, nodes: Mapping[int, Node], brokers: Collection[int]) -> None:
        """`brokers` are the nodes that the metadata knows as brokers; the others are only controllers."""
        self._nodes = nodes
        self._brokers = [one for one in nodes if one in brokers] or list(nodes)
        self._partitions: Counter[str] = Counter()
        """The number of partitions by place."""

    def place(
        self, topic: TopicState, number: int, merge: PlannedMerge | None, here: Collection[int]
    ) -> Placement:
        """Places a partition, of which there are copies of the brokers `here`; `merge` is None if there is no
        copy at all.
        """
        old = topic.partitions[number]
        epoch = max([old.leader_epoch, *(() if merge is None else epochs_of(merge))])
        is_unelectable = max(epoch, old.partition_epoch) > HIGHEST_EPOCH
        if is_unelectable:
            merge, epoch = None, old.leader_epoch - 1
        # Hostile metadata may name a replica twice.
        replicas = list(dict.fromkeys(one for one in old.replicas if one not in old.adding_replicas))
        placed = [] if merge is None else [one for one in replicas if one in self._nodes]
        if merge is not None and not placed:
            placed = [self._brokers[number % len(self._brokers)]]
        status: Placed = "out_of_sync"
        if merge is None:
            status = "unelectable" if is_unelectable else "missing"
        if merge is not None and is_committed(old, here, merge):
            status, replicas, isr = "online", placed, placed
        else:
            # A node that is restored without the log would lead with an empty one.
            known = old.isr or old.elr or old.last_known_elr
            isr = [one for one in known if one not in self._nodes]
            replicas = list(dict.fromkeys([*placed, *(isr if placed else replicas)]))
        state = replace(
            old,
            replicas=replicas,
            isr=isr,
            leader=-1,
            leader_epoch=min(epoch + 1, _LAST_EPOCH),
            directories=[],
            removing_replicas=[],
            adding_replicas=[],
            partition_epoch=min(old.partition_epoch + 1, _LAST_EPOCH),
            elr=[],
            last_known_elr=[],
        )
        places = tuple(self._place_on(self._nodes[node], merge) for node in placed)
        return Placement(topic, number, status, state, places)

    def _place_on(self, node: Node, merge: PlannedMerge | None) -> str:
        """The directory where the node has a copy, or the one with the fewest partitions."""
        copies = () if merge is None else merge.partition.listings
        places = [node.place_of(os.path.dirname(listing["path"])) for listing in copies]
        place = next(filter(None, places), None) or min(
            node.data_places, key=lambda one: self._partitions[one]
        )
        self._partitions[place] += 1
        return place


def is_committed(old: PartitionState, here: Collection[int], merge: PlannedMerge) -> bool:
    """True if a copy of the brokers `here` has all committed records."""
    if newer_epoch(merge, old) is not None:
        # The ISR is that of an earlier leader.
        return {*old.replicas} <= {*here}
    return bool(in_sync_copies(old, here))


def electable_copies(merge: PlannedMerge) -> list[int]:
    """The copies whose leader epochs leave room for higher ones."""
    copies = range(len(merge.partition.listings))
    return [copy for copy in copies if all(epoch <= HIGHEST_EPOCH for epoch in epochs_of(merge, copy))]


def newest_of_brokers(
    merge: PlannedMerge, brokers: Sequence[int | None], chosen: Collection[int]
) -> set[int]:
    """The copies of the chosen brokers; `brokers` are those of the copies. Of a disk and its backup, only the
    one that reaches farthest counts: the other one was in sync long ago.
    """
    newest: dict[int, int] = {}
    for copy, broker in enumerate(brokers):
        if broker in chosen and broker is not None:
            best = newest.setdefault(broker, copy)
            if merge.last(copy) > merge.last(best):
                newest[broker] = copy
    return {*newest.values()}


def preferred_copy(merge: PlannedMerge, eligible: Collection[int]) -> int | None:
    """The place of the copy that has to lead: the best that was in sync and has its end. None if that one
    leads anyway, or no copy was in sync.

    Damage before its end is no reason to follow another copy, which may have records that were never
    committed: what is damaged is taken from the others.
    """
    aligned = merge.alignment["copies"]
    candidates = [place for place in sorted(eligible) if _has_end(merge, place)]
    best = max(candidates, key=lambda place: aligned[place]["last"] or (-1, -1), default=None)
    leader = merge.plan["leader"]
    if best is None or aligned[best]["last"] == aligned[leader]["last"]:
        return None
    return best


def _has_end(merge: PlannedMerge, copy: int) -> bool:
    """False if a copy may have had records after the last one that is readable."""
    last = merge.alignment["copies"][copy]["last"]
    if last is None or merge.ends_by_files[copy]:
        return False
    damaged = (one for one in merge.alignment["damages"] if one["copy"] == copy)
    if any(one["first_offset"] > last[1] for one in damaged):
        return False
    problems = (one for one in merge.copies[copy].plan["problems"] if one["first_lost_offset"] is not None)
    ends = (one["last_lost_offset"] for one in problems)
    return all(end is not None and end <= last[1] for end in ends)
