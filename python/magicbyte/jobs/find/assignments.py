"""Partitions that a broker should have, according to the cluster's metadata (`PartitionRegistration`)."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from magicbyte.errors import Error
from magicbyte.internal_topics.metadata.cluster import ClusterState
from magicbyte.internal_topics.metadata.topics import PartitionState
from magicbyte.internal_topics.names import CLUSTER_METADATA
from magicbyte.jobs.find.cluster import Cluster, read_cluster
from magicbyte.jobs.find.log_dirs import LogDir, absent_partition
from magicbyte.jobs.find.reach import reach
from magicbyte.model import PartitionListing

__all__ = ["add_assigned", "metadata_of"]

_NAMED = 10
"""The maximum number of partitions that a message names."""
_RESERVED = "A" * 20
"""The prefix of ids that stand for no particular directory (`DirectoryId`): 15 bytes of zeros."""


def add_assigned(
    log_dirs: Sequence[LogDir], listings: Sequence[PartitionListing], *, one_disk: bool = False
) -> None:
    """Adds to the directories of each broker the partitions that it should have but that are missing.

    Replicas on other brokers are not missing, and neither are those in a directory of the broker that is not
    among `log_dirs`: that directory is a problem itself, unless `one_disk` says that it is left out on
    purpose. Without a copy of the cluster's metadata in `listings`, nothing is known.
    """
    brokers: dict[tuple[str, int], list[LogDir]] = defaultdict(list)
    for log_dir in log_dirs:
        if log_dir.cluster_id is not None and log_dir.broker_id is not None:
            brokers[log_dir.cluster_id, log_dir.broker_id].append(log_dir)
    clusters: dict[str, Cluster] = {}
    for (_, broker), own in brokers.items():
        metadata = metadata_of(own, log_dirs, listings)
        if metadata is None:
            continue
        path = metadata["path"]
        try:
            if path not in clusters:
                clusters[path] = read_cluster(metadata)
                own[0].problems.extend(clusters[path].problems)
        except (Error, OSError) as error:
            own[0].problems.append(f"{path}: {error}")
            continue
        _add_assigned_to(broker, own, clusters[path].state, listings)
        if not one_disk:
            own[0].problems.extend(_absent_log_dirs(broker, own, clusters[path].state))


def metadata_of(
    own: Sequence[LogDir], log_dirs: Sequence[LogDir], listings: Sequence[PartitionListing]
) -> PartitionListing | None:
    """The newest copy of the metadata among a broker's own directories, else among those of its cluster."""
    of_cluster = [log_dir for log_dir in log_dirs if log_dir.cluster_id == own[0].cluster_id]
    return _newest_metadata(listings, own) or _newest_metadata(listings, of_cluster)


def _newest_metadata(
    listings: Iterable[PartitionListing], log_dirs: Iterable[LogDir]
) -> PartitionListing | None:
    paths = {os.path.join(log_dir.path, f"{CLUSTER_METADATA}-0") for log_dir in log_dirs}
    copies = [listing for listing in listings if listing["path"] in paths and listing["segments"]]
    return max(copies, key=reach, default=None)


def _add_assigned_to(
    broker: int, own: Sequence[LogDir], state: ClusterState, listings: Iterable[PartitionListing]
) -> None:
    paths = {one.path for one in own}
    # A broker has each partition once, in any of its directories.
    there = {
        (listing["topic"], listing["partition"])
        for listing in listings
        if os.path.dirname(listing["path"]) in paths
    }
    there |= {(one["topic"], one["partition"]) for log_dir in own for one in log_dir.absent}
    by_id = {one.directory_id: one for one in own}
    all_are_here = {*state.log_dirs(broker)} <= {*by_id}
    claim = f"__cluster_metadata assigns the partition to this broker ({broker})"
    for topic in state.topics.values():
        for number, partition in sorted(topic.partitions.items()):
            if broker not in partition.replicas or (topic.name, number) in there:
                continue
            directory = _directory_of(broker, partition)
            # Without the id of its directory, it is missing only if the broker has no other directories.
            place = (own[0] if all_are_here else None) if directory is None else by_id.get(directory)
            if place is None:
                own[0].elsewhere.append((topic.name, number))
            else:
                place.absent.append(absent_partition(place.path, (topic.name, number), None, claim))


def _absent_log_dirs(broker: int, own: Sequence[LogDir], state: ClusterState) -> Iterator[str]:
    """A problem for each directory that the broker has registered and that is not among `own`."""
    registered, here = state.log_dirs(broker), {one.directory_id for one in own}
    if None in here:
        return  # a directory without an ID may be any of them
    held: dict[str | None, list[str]] = defaultdict(list)
    for topic in state.topics.values():
        for number, partition in topic.partitions.items():
            if broker in partition.replicas:
                held[_directory_of(broker, partition)].append(f"{topic.name}-{number}")
    for directory in registered:
        if directory not in here:
            names = sorted(held[directory])
            listed = ", ".join(names[:_NAMED]) + (", ..." if len(names) > _NAMED else "")
            yield (
                f"broker {broker} has {len(registered)} directories (__cluster_metadata), and {directory} is "
                f"not among the sources, with {len(names)} partitions{f' ({listed})' if names else ''}; "
                "--one-disk leaves it out"
            )


def _directory_of(broker: int, partition: PartitionState) -> str | None:
    """The id of the directory in which a broker has its replica; None if the metadata does not name it."""
    index = partition.replicas.index(broker)
    if len(partition.directories) != len(partition.replicas):
        return None
    directory = partition.directories[index]
    return None if directory.startswith(_RESERVED) else directory
