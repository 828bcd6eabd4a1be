"""The job of `magicbyte cluster`: what the disks say about the cluster that they are of."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TypedDict

from magicbyte.internal_topics.names import (
    CLUSTER_METADATA,
    CONSUMER_OFFSETS,
    SHARE_GROUP_STATE,
    TRANSACTION_STATE,
)
from magicbyte.jobs.disks.brokers import (
    ClusterBroker,
    MetadataCopyReport,
    Quorum,
    brokers_of,
    one_cluster,
    quorum_of,
    repeated_disks,
)
from magicbyte.jobs.disks.copies import Name, by_name, damage_ahead, joined
from magicbyte.jobs.disks.groups import ClusterGroup, groups_of
from magicbyte.jobs.disks.settings import Settings, settings_of
from magicbyte.jobs.disks.topics import (
    ClusterTopic,
    Directories,
    Unassigned,
    assign,
    topic_problems,
    topics_of,
)
from magicbyte.jobs.disks.transactions import (
    OpenTransaction,
    Transaction,
    open_transactions,
    transactions_of,
)
from magicbyte.jobs.explain import coordinated_transactions
from magicbyte.jobs.find.choice import EVERYTHING, PartitionChoice
from magicbyte.jobs.find.cluster import Cluster, read_cluster
from magicbyte.jobs.find.metadata_log import has_metadata
from magicbyte.jobs.find.partitions import Inputs, find_inputs, list_directory, nothing_found
from magicbyte.jobs.offsets import Place, PositionChoice, offsets_of
from magicbyte.jobs.run.engines import Engine
from magicbyte.jobs.run.log_ranges import Ends, LogRange
from magicbyte.jobs.run.plan import plan_partitions
from magicbyte.jobs.run.progress import NO_PROGRESS, Progress
from magicbyte.jobs.share_offsets import read_share_states
from magicbyte.model import PartitionListing
from magicbyte.options.read import ClusterOptions
from magicbyte.storage.location import locate

__all__ = ["ClusterReport", "cluster", "copies_of_metadata", "findings"]

_CONSULTED = {
    CONSUMER_OFFSETS: "groups",
    TRANSACTION_STATE: "transactional producers",
    SHARE_GROUP_STATE: "share groups",
}
"""The topics that are read as a coordinator reads them, and who writes to them."""


class OfMetadata(TypedDict):
    """The parts of the report that only the cluster's metadata has."""

    metadata: list[MetadataCopyReport]
    """The copies of the cluster's metadata, the newest first; none if topics are known from directories."""
    metadata_end_offset: int | None
    """The end (exclusive) of the metadata that was read."""
    metadata_timestamp: int | None
    """The time (ms) of its last record."""
    quorum: Quorum | None
    settings: Settings | None


class ClusterReport(OfMetadata):
    """The output of `magicbyte cluster --json`."""

    cluster_id: str | None
    brokers: list[ClusterBroker]
    topics: list[ClusterTopic]
    unassigned: list[Unassigned]
    """Directories that are none of the cluster's partitions."""
    groups: list[ClusterGroup]
    pending_offsets: int
    """Offsets committed in transactions that had not ended: in no group."""
    transactions: list[Transaction]
    """According to `__transaction_state`."""
    open_transactions: list[OpenTransaction]
    """According to the logs."""
    problems: list[str]


def cluster(
    sources: Sequence[str],
    engine: Engine,
    options: ClusterOptions,
    *,
    choice: PartitionChoice = EVERYTHING,
    progress: Progress = NO_PROGRESS,
) -> ClusterReport:
    """Describes the cluster whose log directories are at or below `sources`.

    `choice` selects among the topics. All copies of the cluster's metadata are read, of other partitions the
    newest copy counts; `choice.prefer` names the copies to read instead.

    Raises:
        RefusedError: there is nothing to read, or the sources are of several clusters.

    """
    inputs = find_inputs(sources, choice, consult=_CONSULTED, may_be_none=True, assigned=True)
    metadata = copies_of_metadata(inputs)
    if not (inputs.directories or metadata):
        raise nothing_found(sources, [], "partition")
    cluster_id = one_cluster(inputs.log_dirs)
    found = read_cluster(choice.inside(metadata) or metadata)
    directories = assign(found, inputs.directories, choice)
    plans = by_name(plan_partitions(_preferred(directories, choice), engine, progress=progress))
    limit = options.max_decompressed_bytes
    shares = read_share_states(inputs.consulted_partitions(SHARE_GROUP_STATE), found, limit)
    known: dict[Name, LogRange] = {}

    def ends(places: Iterable[Place]) -> Ends:
        positions = _earliest(places)
        damage: Mapping[str, Sequence[tuple[int, int]]] = {}
        if not options.headers_only:
            damage = damage_ahead(plans, positions, engine, max_decompressed_bytes=limit, progress=progress)
        # Directories of several topics of one name have offsets of their own.
        known.update(
            (name, joined(own, damage)) for name, own in plans.items() if name[0] not in directories.repeated
        )
        return known

    offsets = offsets_of(
        inputs.consulted_partitions(CONSUMER_OFFSETS),
        ends,
        engine,
        shares=shares,
        choice=PositionChoice(choice, options.group),
        max_decompressed_bytes=limit,
        progress=progress,
    )
    transactions, transaction_problems = coordinated_transactions(inputs.consulted)
    coordinated = transactions.open_by_producer
    topics = topics_of(found, directories, inputs.log_dirs, plans, known, choice)
    return ClusterReport(
        cluster_id=cluster_id,
        **_of_metadata(found, inputs),
        brokers=brokers_of(found, inputs.log_dirs, inputs.directories),
        topics=topics,
        unassigned=directories.unassigned,
        groups=groups_of(offsets, known),
        pending_offsets=offsets["pending"] or 0,
        transactions=transactions_of(coordinated),
        open_transactions=open_transactions(plans, coordinated, engine, options, progress),
        # The metadata is also read for each directory.
        problems=list(
            dict.fromkeys(
                [
                    *found.problems,
                    *repeated_disks(inputs.log_dirs),
                    *topic_problems(topics, directories),
                    *_directory_problems(inputs, choice),
                    *_groups_elsewhere(topics),
                    *offsets["problems"],
                    *transaction_problems,
                ]
            )
        ),
    )


def copies_of_metadata(inputs: Inputs) -> list[PartitionListing]:
    """The copies of the metadata, those included that are only a snapshot, as before a node's first start."""
    copies = [
        one for one in inputs.directories if one["topic"] == CLUSTER_METADATA and one["state"] == "current"
    ]
    listed = {one["path"] for one in copies}
    for log_dir in inputs.log_dirs:
        path = os.path.join(log_dir.path, f"{CLUSTER_METADATA}-0")
        if path not in listed and locate(path).exists():
            copies.append(list_directory(path))
    return [copy for copy in copies if has_metadata(copy)]


def _preferred(directories: Directories, choice: PartitionChoice) -> list[PartitionListing]:
    """The logs to read: all copies of a partition, or those that the caller prefers."""
    copies: dict[Name, list[PartitionListing]] = defaultdict(list)
    for listing in directories.current:
        copies[listing["topic"], listing["partition"]].append(listing)
    return [one for own in copies.values() for one in choice.inside(own) or own]


def _earliest(positions: Iterable[Place]) -> dict[Name, int]:
    """The first of the positions in each partition."""
    earliest: dict[Name, int] = {}
    for topic, partition, offset in positions:
        name = topic, partition
        earliest[name] = max(0, min(offset, earliest.get(name, offset)))
    return earliest


def _of_metadata(found: Cluster, inputs: Inputs) -> OfMetadata:
    """The parts of the report that only the metadata has."""
    metadata, exists = found.metadata, found.path is not None
    nodes = {log_dir.path: log_dir.broker_id for log_dir in inputs.log_dirs}
    return OfMetadata(
        metadata=[
            MetadataCopyReport(
                path=copy.path,
                node_id=nodes.get(os.path.dirname(copy.path)),
                leader_epoch=copy.leader_epoch,
                last_offset=copy.last_offset,
                snapshot=copy.snapshot,
            )
            for copy in metadata.copies
        ],
        metadata_end_offset=metadata.next_offset if exists else None,
        metadata_timestamp=metadata.last_timestamp,
        quorum=quorum_of(found) if exists else None,
        settings=settings_of(found.state) if exists else None,
    )


def _directory_problems(inputs: Inputs, choice: PartitionChoice) -> Iterator[str]:
    """Files that cannot be read, and partitions that are not where they should be."""
    for log_dir in inputs.log_dirs:
        yield from log_dir.problems
    absent = [listing for log_dir in inputs.log_dirs for listing in log_dir.absent]
    for listing in (*inputs.directories, *absent):
        if not listing["segments"] and choice.includes(listing["topic"], listing["partition"]):
            yield from (problem["message"] for problem in listing["problems"])


def _groups_elsewhere(topics: Iterable[ClusterTopic]) -> Iterator[str]:
    """Partitions of the topics of groups and transactions that are not here: what is in them is unknown."""
    for topic in topics:
        absent = [one["partition"] for one in topic["partitions"] if not one["copies"]]
        if topic["topic"] in _CONSULTED and absent:
            yield (
                f"{len(absent)} of {len(topic['partitions'])} partitions of {topic['topic']} are not here:"
                f" what {_CONSULTED[topic['topic']]} did is known only in part"
            )


def findings(report: ClusterReport) -> int:
    """The number of problems, of positions that are hurt, and of transactions that hang."""
    positions = [one for group in report["groups"] for one in group["positions"]]
    hurt = sum(bool(one["out_of_range"] or one["lost_ahead"]) for one in positions)
    return len(report["problems"]) + hurt + sum(one["hanging"] for one in report["open_transactions"])
