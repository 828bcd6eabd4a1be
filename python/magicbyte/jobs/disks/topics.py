"""Topics with their partitions, and the directories that are here of each."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypedDict

from magicbyte.internal_topics.metadata.topics import PartitionState, TopicState
from magicbyte.internal_topics.names import CLUSTER_METADATA
from magicbyte.jobs.disks.copies import Name
from magicbyte.jobs.find.choice import PartitionChoice
from magicbyte.jobs.find.cluster import Cluster
from magicbyte.jobs.find.log_dirs import LogDir
from magicbyte.jobs.run.log_ranges import Ends, LogRange, count_offsets
from magicbyte.jobs.run.plan import Planned
from magicbyte.listing import known_topic_id
from magicbyte.model import DirectoryState, PartitionListing

__all__ = [
    "ClusterPartition",
    "ClusterTopic",
    "Copy",
    "Directories",
    "Unassigned",
    "assign",
    "topic_problems",
    "topics_of",
]


class Copy(TypedDict):
    """A directory of a partition."""

    path: str
    broker_id: int | None
    state: DirectoryState
    log_start_offset: int | None
    """None if it is not read: only current directories are."""
    log_end_offset: int | None
    leader_epoch: int | None
    """The epoch of its last batch."""


class ClusterPartition(TypedDict):
    """A partition; None for values that only the cluster's metadata has."""

    partition: int
    leader: int | None
    """The broker that leads it; -1 for none."""
    leader_epoch: int | None
    partition_epoch: int | None
    replicas: list[int] | None
    isr: list[int] | None
    elr: list[int] | None
    """The eligible leader replicas (KIP-966)."""
    last_known_elr: list[int] | None
    adding_replicas: list[int] | None
    removing_replicas: list[int] | None
    log_start_offset: int | None
    """Of the newest copy here, as are the others; None if there is none."""
    log_end_offset: int | None
    last_stable_offset: int | None
    lost_offsets: int | None
    """Offsets that no copy here has. Damage inside batches is included only ahead of groups."""
    copies: list[Copy]
    """The newest first; empty if no disk with the partition is here."""


class ClusterTopic(TypedDict):
    """A topic."""

    topic: str
    topic_id: str | None
    known_from: str
    """`metadata`, or `directories` if the cluster's metadata is absent or damaged and does not name it."""
    configs: dict[str, str]
    """The configs that were set for it; secret values are `[hidden]`."""
    partitions: list[ClusterPartition]


class Unassigned(TypedDict):
    """A directory that is none of the cluster's partitions."""

    path: str
    topic: str
    partition: int
    topic_id: str | None
    reason: str


@dataclass
class Directories:
    """The directories that are here."""

    of_topics: dict[tuple[str, str | None], dict[int, list[PartitionListing]]] = field(default_factory=dict)
    """Those of the cluster, by the topic's name and id, and by partition; None for an unknown id."""
    unassigned: list[Unassigned] = field(default_factory=list)
    repeated: dict[str, list[str]] = field(default_factory=dict)
    """The ids of topics with the same name, where no metadata tells which is right."""

    @property
    def current(self) -> list[PartitionListing]:
        """The logs that brokers would open."""
        listings = (one for topic in self.of_topics.values() for own in topic.values() for one in own)
        return [one for one in listings if one["state"] == "current"]


def assign(cluster: Cluster, listings: Iterable[PartitionListing], choice: PartitionChoice) -> Directories:
    """Assigns each directory to a topic of the cluster, by the id in its `partition.metadata`, else by name.

    What the metadata does not name becomes a topic of its own if the metadata is absent or not whole.
    """
    by_name = {topic.name: topic for topic in cluster.state.topics.values()}
    knows_all = cluster.path is not None and cluster.metadata.is_whole
    found = Directories()
    for listing in listings:
        name, number = listing["topic"], listing["partition"]
        if name == CLUSTER_METADATA or not choice.includes(name, number) or not _has_files(listing):
            continue
        topic_id, known = known_topic_id(listing), by_name.get(name)
        reason = None
        if listing["state"] == "deleted":
            reason = "the broker was deleting it"
        elif known is not None and topic_id not in (None, known.topic_id):
            reason = f"its topic id is not {known.topic_id}: it is of another cluster or of a deleted topic"
        elif known is None and knows_all:
            reason = "the cluster's metadata does not name the topic: it is of another cluster or was deleted"
        elif known is not None and knows_all and number not in known.partitions:
            reason = "the topic has no such partition"
        if reason is not None:
            found.unassigned.append(
                Unassigned(
                    path=listing["path"], topic=name, partition=number, topic_id=topic_id, reason=reason
                )
            )
            continue
        key = name, topic_id if known is None else known.topic_id
        found.of_topics.setdefault(key, {}).setdefault(number, []).append(listing)
    ids: dict[str, list[str]] = defaultdict(list)
    for name, topic_id in found.of_topics:
        ids[name].append(topic_id or "unknown")
    found.repeated = {name: sorted(own) for name, own in ids.items() if len(own) > 1}
    return found


def _has_files(listing: PartitionListing) -> bool:
    """False for a partition that only a checkpoint or the metadata names."""
    return bool(listing["segments"] or listing["sidecars"] or listing["ignored"])


def topics_of(
    cluster: Cluster,
    found: Directories,
    log_dirs: Sequence[LogDir],
    copies: Mapping[Name, Sequence[Planned]],
    ends: Ends,
    choice: PartitionChoice,
) -> list[ClusterTopic]:
    """The topics of the metadata, and those that only directories name."""
    brokers = {log_dir.path: log_dir.broker_id for log_dir in log_dirs}
    planned = {one.listing["path"]: one for own in copies.values() for one in own}
    topics = []
    known: dict[tuple[str, str | None], TopicState] = {
        (topic.name, topic.topic_id): topic for topic in cluster.state.topics.values()
    }
    for key in {**known, **found.of_topics}:
        (name, topic_id), topic, here = key, known.get(key), found.of_topics.get(key, {})
        numbers = sorted({*here, *(topic.partitions if topic is not None else ())})
        partitions = [
            _partition(
                number,
                _state(topic, number),
                ends.get((name, number)) or LogRange(),
                [_copy(one, brokers, planned.get(one["path"])) for one in here.get(number, ())],
            )
            for number in numbers
            if choice.includes(name, number)
        ]
        if partitions:
            topics.append(
                ClusterTopic(
                    topic=name,
                    topic_id=topic_id,
                    known_from="directories" if topic is None else "metadata",
                    configs=cluster.configs(name),
                    partitions=partitions,
                )
            )
    return sorted(topics, key=lambda one: (one["topic"], one["topic_id"] or ""))


def _state(topic: TopicState | None, number: int) -> PartitionState | None:
    return None if topic is None else topic.partitions.get(number)


def _partition(
    number: int, state: PartitionState | None, log: LogRange, copies: list[Copy]
) -> ClusterPartition:
    def reach(copy: Copy) -> tuple[int, int]:
        epoch, end = copy["leader_epoch"], copy["log_end_offset"]
        return -1 if epoch is None else epoch, -1 if end is None else end

    known = log.end is not None
    return ClusterPartition(
        partition=number,
        leader=None if state is None else state.leader,
        leader_epoch=None if state is None else state.leader_epoch,
        partition_epoch=None if state is None else state.partition_epoch,
        replicas=None if state is None else state.replicas,
        isr=None if state is None else state.isr,
        elr=None if state is None else state.elr,
        last_known_elr=None if state is None else state.last_known_elr,
        adding_replicas=None if state is None else state.adding_replicas,
        removing_replicas=None if state is None else state.removing_replicas,
        log_start_offset=log.start,
        log_end_offset=log.end,
        last_stable_offset=log.last_stable,
        lost_offsets=count_offsets(log.lost) if known else None,
        copies=sorted(copies, key=reach, reverse=True),
    )


def _copy(listing: PartitionListing, brokers: Mapping[str, int | None], planned: Planned | None) -> Copy:
    plan = None if planned is None else planned.plan
    epochs = [] if plan is None else plan["leader_epochs"]
    checkpoints = listing["checkpoints"]
    start = None if checkpoints is None else checkpoints["log_start_offset"]
    bases = [segment["base_offset"] for segment in listing["segments"]]
    end = None if plan is None else plan["next_offset"]
    return Copy(
        path=listing["path"],
        broker_id=brokers.get(os.path.dirname(listing["path"])),
        state=listing["state"],
        log_start_offset=None if plan is None else min(bases, default=None) if start is None else start,
        log_end_offset=max(bases, default=None) if plan is not None and end is None else end,
        leader_epoch=epochs[-1]["epoch"] if epochs else None,
    )


def topic_problems(topics: Iterable[ClusterTopic], found: Directories) -> Iterator[str]:
    """Topics whose directories contradict each other."""
    for name, ids in found.repeated.items():
        yield f"{name} has directories with {len(ids)} topic ids, shown apart: {', '.join(ids)}"
    for topic in topics:
        yield from _on_two_disks(topic["topic"], topic["partitions"])
        yield from _emptied(topic["topic"], topic["partitions"])


def _emptied(topic: str, partitions: Iterable[ClusterPartition]) -> Iterator[str]:
    """Partitions of which every copy here that was in sync is empty, as on a new disk, but others are not."""
    for partition in partitions:
        in_sync = partition["isr"] or partition["elr"] or ()
        ends = {
            copy["path"]: (copy["log_end_offset"], copy["broker_id"] in in_sync, _is_empty(copy))
            for copy in partition["copies"]
            if copy["state"] == "current" and copy["log_end_offset"] is not None
        }
        end = max((own for own, is_in_sync, _ in ends.values() if not is_in_sync), default=0)
        own = {path: one for path, one in ends.items() if one[1]}
        if own and all(is_empty and reached < end for reached, _, is_empty in own.values()):
            yield (
                f"{topic}-{partition['partition']}: {', '.join(own)} was in sync and is empty, but another"
                f" copy reaches {end:,}: its disk may be a new one"
            )


def _is_empty(copy: Copy) -> bool:
    return copy["log_start_offset"] == copy["log_end_offset"]


def _on_two_disks(topic: str, partitions: Iterable[ClusterPartition]) -> Iterator[str]:
    for partition in partitions:
        paths: dict[int, list[str]] = defaultdict(list)
        for copy in partition["copies"]:
            if copy["broker_id"] is not None and copy["state"] == "current":
                paths[copy["broker_id"]].append(copy["path"])
        for broker, own in paths.items():
            if len(own) > 1:
                yield (
                    f"{topic}-{partition['partition']} is in {len(own)} directories of broker {broker}, which"
                    f" does not start on them: {', '.join(own)}"
                )
