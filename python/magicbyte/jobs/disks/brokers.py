"""Brokers with their disks, and the quorum, compared with the directories that are here."""

from __future__ import annotations

import os
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import TypedDict

from magicbyte.errors import RefusedError
from magicbyte.internal_topics.metadata.nodes import BrokerState, Endpoint
from magicbyte.internal_topics.names import CLUSTER_METADATA
from magicbyte.jobs.find.cluster import Cluster
from magicbyte.jobs.find.log_dirs import LogDir
from magicbyte.model import PartitionListing

__all__ = [
    "ClusterBroker",
    "Controller",
    "Disk",
    "MetadataCopyReport",
    "Quorum",
    "brokers_of",
    "one_cluster",
    "quorum_of",
    "repeated_disks",
]


class Disk(TypedDict):
    """A log directory of a broker."""

    directory_id: str | None
    """None before Kafka 3.7."""
    path: str | None
    """None if the directory is not among the sources."""
    registered: bool | None
    """True if the cluster's metadata names the directory; None if it names no directory of the broker."""
    clean_shutdown: bool | None
    """True if the broker had shut down cleanly; None if the directory is not here."""
    partitions: int
    """The number of partitions that have a directory here."""
    assigned: int | None
    """The number of replicas that the cluster's metadata places in it; None if it names no directory of the
    broker."""


class ClusterBroker(TypedDict):
    """A broker; None for values that only the cluster's metadata has."""

    broker_id: int
    rack: str | None
    endpoints: list[str]
    """Listeners, such as `PLAINTEXT://kafka-1:9092`."""
    fenced: bool | None
    in_controlled_shutdown: bool | None
    replicas: int
    """The number of its replicas, according to the cluster's metadata."""
    leads: int
    """The number of partitions that it leads."""
    disks: list[Disk]


class Controller(TypedDict):
    """A controller."""

    controller_id: int
    endpoints: list[str]
    is_voter: bool
    directory_id: str | None
    """The id of a voter's metadata directory; None in a static quorum."""


class Quorum(TypedDict):
    """The controllers and their leader."""

    leader: int | None
    """None if there was none, or nothing tells it."""
    leader_epoch: int | None
    kraft_version: int
    """1 if the voters are in the log, so that they can change (KIP-853)."""
    controllers: list[Controller]


class MetadataCopyReport(TypedDict):
    """A copy of the cluster's metadata."""

    path: str
    node_id: int | None
    leader_epoch: int
    """The epoch of the last good batch; -1 if there is none."""
    last_offset: int
    """The offset of the last good record; -1 if there is none."""
    snapshot: str | None
    """The name of its newest snapshot."""


def one_cluster(log_dirs: Iterable[LogDir]) -> str | None:
    """The cluster of the directories; None if they do not tell.

    Raises:
        RefusedError: they are of several clusters.

    """
    paths: dict[str, list[str]] = defaultdict(list)
    for log_dir in log_dirs:
        if log_dir.cluster_id is not None:
            paths[log_dir.cluster_id].append(log_dir.path)
    if len(paths) > 1:
        named = "; ".join(f"{cluster}: {', '.join(own)}" for cluster, own in sorted(paths.items()))
        raise RefusedError(
            f"the sources belong to {len(paths)} clusters, but only one can be read at a time: {named}"
        )
    return next(iter(paths), None)


def repeated_disks(log_dirs: Iterable[LogDir]) -> Iterator[str]:
    """A problem for each directory id that is there several times, as when a disk and its copy are given."""
    paths: dict[tuple[int | None, str], list[str]] = defaultdict(list)
    for log_dir in log_dirs:
        if log_dir.directory_id is not None:
            paths[log_dir.broker_id, log_dir.directory_id].append(log_dir.path)
    for (broker, directory), own in paths.items():
        if len(own) > 1:
            yield (
                f"the sources have {len(own)} copies of directory {directory} of broker {broker}:"
                f" {', '.join(own)}"
            )


def brokers_of(
    cluster: Cluster, log_dirs: Sequence[LogDir], directories: Iterable[PartitionListing]
) -> list[ClusterBroker]:
    """The brokers that the metadata names, and those that directories here are of."""
    state = cluster.state
    partitions = [topic.partitions.values() for topic in state.topics.values()]
    replicas = Counter(broker for own in partitions for one in own for broker in one.replicas)
    leads = Counter(one.leader for own in partitions for one in own)
    assigned = Counter(
        (broker, directory)
        for own in partitions
        for one in own
        if len(one.directories) == len(one.replicas)
        for broker, directory in zip(one.replicas, one.directories, strict=True)
    )
    here = Counter(
        os.path.dirname(one["path"])
        for one in directories
        if one["state"] == "current" and one["segments"] and one["topic"] != CLUSTER_METADATA
    )
    own_dirs: dict[int, list[LogDir]] = defaultdict(list)
    only_controllers = {*state.nodes.controllers, *_voters(cluster)} - {*state.nodes.brokers}
    for log_dir in log_dirs:
        node = log_dir.broker_id
        if node is not None and (here[log_dir.path] or node not in only_controllers):
            own_dirs[node].append(log_dir)
    return [
        _broker(
            broker,
            state.nodes.brokers.get(broker),
            _disks(broker, state.log_dirs(broker), own_dirs[broker], here, assigned),
            replicas=replicas[broker],
            leads=leads[broker],
        )
        for broker in sorted({*state.nodes.brokers, *replicas, *own_dirs})
    ]


def _broker(
    broker: int, state: BrokerState | None, disks: list[Disk], *, replicas: int, leads: int
) -> ClusterBroker:
    return ClusterBroker(
        broker_id=broker,
        rack=None if state is None else state.rack,
        endpoints=[] if state is None else _urls(state.endpoints),
        fenced=None if state is None else state.fenced,
        in_controlled_shutdown=None if state is None else state.in_controlled_shutdown,
        replicas=replicas,
        leads=leads,
        disks=disks,
    )


def _disks(
    broker: int,
    registered: Sequence[str],
    log_dirs: Sequence[LogDir],
    here: Counter[str],
    assigned: Counter[tuple[int, str]],
) -> list[Disk]:
    found = [
        Disk(
            directory_id=one.directory_id,
            path=one.path,
            registered=one.directory_id in registered if registered else None,
            clean_shutdown=one.clean_shutdown,
            partitions=here[one.path],
            assigned=assigned[broker, one.directory_id or ""] if registered else None,
        )
        for one in sorted(log_dirs, key=lambda one: one.path)
    ]
    known = {one.directory_id for one in log_dirs}
    missing = [
        Disk(
            directory_id=directory,
            path=None,
            registered=True,
            clean_shutdown=None,
            partitions=0,
            assigned=assigned[broker, directory],
        )
        for directory in registered
        if directory not in known
    ]
    return found + missing


def quorum_of(cluster: Cluster) -> Quorum:
    """The controllers and voters."""
    state = cluster.state
    voters = {voter.voter_id: voter for voter in state.quorum.voters}
    controllers = []
    for controller in sorted({*state.nodes.controllers, *voters}):
        registered, voter = state.nodes.controllers.get(controller), voters.get(controller)
        endpoints = registered.endpoints if registered else voter.endpoints if voter else []
        controllers.append(
            Controller(
                controller_id=controller,
                endpoints=_urls(endpoints),
                is_voter=voter is not None,
                directory_id=None if voter is None else voter.directory_id,
            )
        )
    return Quorum(
        leader=state.quorum.leader,
        leader_epoch=state.quorum.leader_epoch,
        kraft_version=state.quorum.kraft_version,
        controllers=controllers,
    )


def _voters(cluster: Cluster) -> list[int]:
    return [voter.voter_id for voter in cluster.state.quorum.voters]


def _urls(endpoints: Iterable[Endpoint]) -> list[str]:
    return [f"{one.name}://{one.host}:{one.port}" for one in endpoints]
