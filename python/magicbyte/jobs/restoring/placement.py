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

from magicbyte.errors import RefusedError
from magicbyte.internal_topics.metadata.topics import PartitionState, TopicState
from magicbyte.jobs.merging.planning import PlannedMerge
from magicbyte.jobs.restoring.nodes import Node

__all__ = ["Placed", "Placement", "Placer", "in_sync_copies", "preferred_copy"]

Placed = Literal["online", "out_of_sync", "missing"]
"""`online`: a replica can lead. `out_of_sync`: only copies that were not in sync are here; they are restored,
but do not lead unless somebody elects one of them. `missing`: no readable copy is here; the partition stays
offline, so that its disk can still be found."""

_MAX_EPOCH = (1 << 31) - (1 << 16)
"""Epochs still have to increase, with every election."""


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

        Raises:
            RefusedError: its leader epoch is at the end of the range.

        """
        old = topic.partitions[number]
        # Hostile metadata may name a replica twice.
        replicas = list(dict.fromkeys(one for one in old.replicas if one not in old.adding_replicas))
        placed = [] if merge is None else [one for one in replicas if one in self._nodes]
        if merge is not None and not placed:
            placed = [self._brokers[number % len(self._brokers)]]
        status: Placed = "missing" if merge is None else "out_of_sync"
        if in_sync_copies(old, here) and merge is not None:
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
            leader_epoch=_epoch_above(old, merge, f"{topic.name}-{number}"),
            directories=[],
            removing_replicas=[],
            adding_replicas=[],
            partition_epoch=old.partition_epoch + 1,
            elr=[],
            last_known_elr=[],
        )
        places = tuple(self._place_on(self._nodes[node], merge) for node in placed)
        return Placement(topic, number, status, state, places)

    def _place_on(self, node: Node, merge: PlannedMerge | None) -> str:
        """The directory where the node has a copy, or the one with the fewest partitions."""
        copies = () if merge is None else merge.partition.listings
        places = [node.place_of(os.path.dirname(listing["path"])) for listing in copies]
        place = next(filter(None, places), None) or min(node.places, key=lambda one: self._partitions[one])
        self._partitions[place] += 1
        return place


def _epoch_above(old: PartitionState, merge: PlannedMerge | None, name: str) -> int:
    """An epoch above that of the metadata and of every batch."""
    epochs = [old.leader_epoch]
    if merge is not None:
        epochs += [one["epoch"] for copy in merge.copies for one in copy.plan["leader_epochs"]]
        epochs += [run["leader_epoch"] for run in merge.alignment["runs"]]
    if max(epochs) > _MAX_EPOCH:
        raise RefusedError(f"{name} has the leader epoch {max(epochs)}: no higher ones would be left")
    return max(epochs) + 1


def preferred_copy(merge: PlannedMerge, eligible: Sequence[bool]) -> int | None:
    """The place of the copy that has to lead: the best that was in sync and has its end. None if that one
    leads anyway, or no copy was in sync.

    Damage before its end is no reason to follow another copy, which may have records that were never
    committed: what is damaged is taken from the others.
    """
    aligned = merge.alignment["copies"]
    candidates = [
        place for place, is_eligible in enumerate(eligible) if is_eligible and _has_end(merge, place)
    ]
    best = max(candidates, key=lambda place: aligned[place]["last"] or (-1, -1), default=None)
    leader = merge.plan["leader"]
    if best is None or aligned[best]["last"] == aligned[leader]["last"]:
        return None
    return best


def _has_end(merge: PlannedMerge, copy: int) -> bool:
    """False if a copy may have had records after the last one that is readable."""
    last = merge.alignment["copies"][copy]["last"]
    if last is None:
        return False
    damaged = (one for one in merge.alignment["damages"] if one["copy"] == copy)
    if any(one["next_offset"] is None and one["first_offset"] > last[1] for one in damaged):
        return False
    problems = (one for one in merge.copies[copy].plan["problems"] if one["first_lost_offset"] is not None)
    ends = (one["last_lost_offset"] for one in problems)
    return all(end is not None and end <= last[1] for end in ends)
