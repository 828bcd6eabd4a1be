"""Contradictions between the directories, and between them and the metadata, each with its decision."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

from magicbyte.internal_topics.metadata.topics import PartitionState
from magicbyte.jobs.disks.brokers import repeated_disks
from magicbyte.jobs.disks.topics import Directories, Unassigned
from magicbyte.jobs.find.cluster import Cluster
from magicbyte.jobs.find.log_dirs import LogDir
from magicbyte.jobs.merging.planning import PlannedMerge
from magicbyte.jobs.restoring.amendments import SKIPPED_IDS
from magicbyte.jobs.restoring.producer_ids import HighestId
from magicbyte.model import PartitionListing

__all__ = [
    "HIGHEST_EPOCH",
    "epochs_of",
    "newer_epoch",
    "older_than_the_disks",
    "producer_ids_in_doubt",
    "repeated_directories",
]

HIGHEST_EPOCH = (1 << 31) - (1 << 16)
"""The highest leader epoch that is believed: they still have to increase, with every election."""


def newer_epoch(merge: PlannedMerge, state: PartitionState) -> tuple[int, str] | None:
    """The highest leader epoch of a partition's copies, and the copy that has it, if the metadata does not
    know that leader. Elections go through the metadata (`PartitionChangeBuilder`), so it is older than
    the copy.
    """
    newest = None
    for copy, _ in enumerate(merge.partition.listings):
        listing = merge.copies[copy].listing
        checkpoint = (one["epoch"] for one in listing["leader_epochs"])
        for epoch in (*epochs_of(merge, copy), *checkpoint):
            if state.leader_epoch < epoch <= HIGHEST_EPOCH and (newest is None or epoch > newest[0]):
                newest = epoch, listing["path"]
    return newest


def epochs_of(merge: PlannedMerge, copy: int | None = None) -> Iterator[int]:
    """The leader epochs of the good batches of a copy, or of all."""
    for run in merge.alignment["runs"]:
        if copy is None or any(share["copy"] == copy for share in run["shares"]):
            yield run["leader_epoch"]


def older_than_the_disks(
    cluster: Cluster, newer: Mapping[str, tuple[int, str]], unassigned: Sequence[Unassigned]
) -> Iterator[str]:
    """The evidence that the metadata is older than the disks, as a backup or the copy of a node that lagged
    is; `newer` has the partitions whose copies have newer leader epochs.
    """
    end = f"the metadata, which ends at offset {cluster.metadata.next_offset:,},"
    if newer:
        name, (epoch, path) = min(newer.items())
        state = next(
            partition
            for topic in cluster.state.topics.values()
            for number, partition in topic.partitions.items()
            if f"{topic.name}-{number}" == name
        )
        yield (
            f"{end} is older than the logs of {_count(len(newer), 'partition')}, such as {name}: {path} has"
            f" leader epoch {epoch}, the metadata {state.leader_epoch}. Later changes of topics and settings"
            " are lost. Who was in sync is unknown: the copy with the last leader epoch leads if all replicas"
            " are here, else the partition stays offline"
        )
    known = {topic.name: topic for topic in cluster.state.topics.values()}
    foreign: dict[str, Unassigned] = {}
    for one in unassigned:
        topic = known.get(one["topic"])
        if one["topic_id"] is not None and (topic is None or topic.topic_id != one["topic_id"]):
            foreign.setdefault(one["topic"], one)
    if foreign:
        first = foreign[min(foreign)]
        topic = known.get(first["topic"])
        of_metadata = "" if topic is None else f", in the metadata {topic.topic_id}"
        yield (
            f"{end} does not have the ids of {_count(len(foreign), 'topic')} on the disks, such as"
            f" {first['topic']}: {first['topic_id']} in {first['path']}{of_metadata}. They were deleted"
            " before or created after it, and are not restored: to have them, give newer metadata"
        )


def producer_ids_in_doubt(cluster: Cluster, is_outdated: bool, highest: HighestId) -> str | None:
    """The reason for which producer ids are skipped, or None. `is_outdated` is true of metadata that is older
    than the disks; `highest` is the highest id of the logs.
    """
    following = cluster.state.next_producer_id
    first = max(following or 0, highest.producer_id + 1)
    skipped = f"{SKIPPED_IDS:,} producer ids from {first:,} on are skipped"
    if highest.producer_id >= (following or 0):
        known = "knows no id" if following is None else f"only knows those before {following:,}"
        return f"{skipped}: the metadata {known}, but {highest.path} has {highest.producer_id:,}"
    if is_outdated or cluster.metadata.problems or not cluster.metadata.is_whole:
        return f"{skipped}: brokers may have got more than the metadata tells"
    return None


def repeated_directories(log_dirs: Sequence[LogDir], directories: Directories) -> Iterator[str]:
    """Directories that are given several times, as a disk and its backup, and what becomes of them."""
    decided = "their copies are merged into one directory, and the one that reaches farthest counts"
    yield from (f"{problem}: {decided}" for problem in repeated_disks(log_dirs))
    nodes: dict[str, set[int]] = defaultdict(set)
    for one in log_dirs:
        if one.directory_id is not None and one.broker_id is not None:
            nodes[one.directory_id].add(one.broker_id)
    for directory_id, own in nodes.items():
        if len(own) > 1:
            yield (
                f"directory {directory_id} is of {len(own)} nodes, {', '.join(map(str, sorted(own)))}: one of"
                " them is a copy of the other's disk, and its partitions count as those of both"
            )
    yield from _in_several_places(log_dirs, directories.current)


def _in_several_places(log_dirs: Sequence[LogDir], listings: Iterable[PartitionListing]) -> Iterator[str]:
    """Partitions that one node has in directories of different ids, or without any: a broker refuses them."""
    by_path = {one.path: one for one in log_dirs}
    places: dict[tuple[int, str], dict[str, str]] = defaultdict(dict)
    for listing in listings:
        log_dir = by_path.get(os.path.dirname(listing["path"]))
        if log_dir is not None and log_dir.broker_id is not None and listing["segments"]:
            key = log_dir.broker_id, f"{listing['topic']}-{listing['partition']}"
            places[key].setdefault(log_dir.directory_id or log_dir.path, listing["path"])
    several = {key: list(own.values()) for key, own in places.items() if len(own) > 1}
    for node in sorted({node for node, _ in several}):
        names = sorted(name for one, name in several if one == node)
        paths = several[node, names[0]]
        yield (
            f"{_count(len(names), 'partition')} of node {node}, such as {names[0]}, are in several"
            f" directories: {', '.join(sorted(paths))}. They are merged into the first one, and the copy that"
            " reaches farthest counts"
        )


def _count(number: int, thing: str) -> str:
    return f"{number:,} {thing}{'s' * (number > 1)}"
