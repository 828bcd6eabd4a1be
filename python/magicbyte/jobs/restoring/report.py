"""The plan and the report of a restored cluster, and the steps that a person follows next."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypedDict

from magicbyte.internal_topics.metadata.nodes import Voter
from magicbyte.jobs.disks.topics import Unassigned
from magicbyte.jobs.find.cluster import Cluster
from magicbyte.jobs.find.partitions import SkippedDirectory
from magicbyte.jobs.merging.report import MergedPartition
from magicbyte.jobs.restoring.cutting import CutPartition
from magicbyte.jobs.restoring.image import SwitchedOff
from magicbyte.jobs.restoring.moved_positions import MovedPosition
from magicbyte.jobs.restoring.moved_share_positions import MovedSharePosition
from magicbyte.jobs.restoring.nodes import Node
from magicbyte.jobs.restoring.placement import Placed, Placement
from magicbyte.jobs.rewrite import Written
from magicbyte.jobs.run.accounting import Problems

__all__ = [
    "LOST_FEATURES",
    "RestorePlan",
    "RestoreReport",
    "RestoredLogDir",
    "RestoredNode",
    "RestoredPartition",
    "RestoredVoter",
    "next_steps",
    "restored_node",
    "restored_partition",
    "restored_voter",
]

LOST_FEATURES = (
    "with metadata.version, the levels of other features are lost, and these are off; transactional ids of"
    " transaction.version=2, for one, are refused. Before producers start: kafka-features.sh"
    " --bootstrap-server HOST:PORT upgrade --feature transaction.version=2 --feature group.version=1, and"
    " others that the cluster had"
)
"""The step for metadata that has lost `metadata.version`: brokers write all of them in one batch."""
_MIN_ISR = "min.insync.replicas"


class RestoredLogDir(TypedDict):
    """A log directory of a restored node."""

    place: str
    """The directory below the output, or itself if it is restored in place."""
    source: str
    directory_id: str | None
    """None before Kafka 3.7."""
    partitions: int
    is_metadata: bool
    """True for a directory that is for the metadata only (`metadata.log.dir`)."""


class RestoredNode(TypedDict):
    """A node that is restored."""

    node_id: int
    log_dirs: list[RestoredLogDir]
    """The first one has the metadata."""


class RestoredVoter(TypedDict):
    """A controller that votes in the new quorum."""

    node_id: int
    directory_id: str | None
    """None in a static quorum."""
    address: str | None
    """`host:port`; None if nothing tells it."""


class RestoredPartition(TypedDict):
    """A partition in the restored cluster."""

    topic: str
    partition: int
    topic_id: str
    status: Placed
    replicas: list[int]
    isr: list[int]
    leader_epoch: int
    cancelled: list[int]
    """Replicas that were being added: that reassignment is cancelled."""
    places: list[str]
    """The directories below the output, one for each replica that is restored."""


class RestorePlan(Problems):
    """The plan of a restore; nothing is written yet."""

    cluster_id: str | None
    snapshot: str
    """The name of the metadata snapshot."""
    metadata_end_offset: int
    metadata_problems: list[str]
    kraft_version: int
    voters: list[RestoredVoter]
    nodes: list[RestoredNode]
    partitions: list[RestoredPartition]
    merged: list[MergedPartition]
    """The logs of the partitions that have a copy here: what they are made from, and what no copy has."""
    cut: list[CutPartition]
    """The logs that end earlier, as `--until` demands; `merged` has them before that."""
    moved_positions: list[MovedPosition]
    """The positions of groups that are committed again, since they were beyond the end of a log, or the cut
    has left none."""
    moved_share_positions: list[MovedSharePosition]
    """The same for share groups, with what they have done after the end of a log."""
    share_positions_to_reset: list[str]
    """The positions of share groups that a person has to set, since the groups may not have had the partition
    at the cut; `steps` has them, too."""
    switched_off: list[SwitchedOff]
    skipped: list[SkippedDirectory]
    """Directories that no broker had in use: copies of a move between disks, strays, deleted partitions."""
    unassigned: list[Unassigned]
    """Directories that are none of the cluster's partitions."""
    steps: list[str]
    """The steps that a person takes next: settings and commands, in order."""


class RestoreReport(RestorePlan):
    """The content of `reconciliation.json`."""

    magicbyte: str
    sources: list[str]
    options: dict[str, Any]
    balanced: bool
    """True if every byte of the copies is accounted for, and everything that was planned was written."""
    written: list[Written]


def restored_node(node: Node, placements: Iterable[Placement]) -> RestoredNode:
    """The report of a node."""
    used = [place for one in placements for place in one.places]
    return RestoredNode(
        node_id=node.node_id,
        log_dirs=[
            RestoredLogDir(
                place=place,
                source=log_dir.path,
                directory_id=log_dir.directory_id,
                partitions=used.count(place),
                is_metadata=place not in node.data_places,
            )
            for log_dir, place in zip(node.log_dirs, node.places, strict=True)
        ],
    )


def restored_voter(voter: Voter) -> RestoredVoter:
    """The report of a voter."""
    endpoint = next(iter(voter.endpoints), None)
    host = "" if endpoint is None else f"[{endpoint.host}]" if ":" in endpoint.host else endpoint.host
    return RestoredVoter(
        node_id=voter.voter_id,
        directory_id=voter.directory_id,
        address=None if endpoint is None else f"{host}:{endpoint.port}",
    )


def restored_partition(placement: Placement) -> RestoredPartition:
    """The report of a partition."""
    return RestoredPartition(
        topic=placement.topic.name,
        partition=placement.number,
        topic_id=placement.topic.topic_id,
        status=placement.status,
        replicas=placement.state.replicas,
        isr=placement.state.isr,
        leader_epoch=placement.state.leader_epoch,
        cancelled=placement.topic.partitions[placement.number].adding_replicas,
        places=list(placement.places),
    )


def next_steps(
    out: str,
    cluster: Cluster,
    nodes: Mapping[int, Node],
    voters: Sequence[Voter],
    placements: Sequence[Placement],
    changes: Iterable[SwitchedOff],
) -> list[str]:
    """Settings and commands, in order."""
    tools = "--bootstrap-server HOST:PORT"
    return [
        *_settings(out, cluster, nodes, voters),
        "start the nodes; their logs must have neither `treat it as a stray log` nor `below high watermark`",
        f"kafka-metadata-quorum.sh {tools} describe --status",
        f"kafka-topics.sh {tools} --describe --unavailable-partitions",
        *(
            f"to go on with what is left of {one.name}: kafka-leader-election.sh {tools}"
            f" --election-type UNCLEAN --topic {shlex.quote(one.topic.name)} --partition {one.number}"
            for one in placements
            if one.status == "out_of_sync"
        ),
        *(f"{one['until']}: {one['command']}" for one in changes),
        *_min_isr(cluster, placements, tools),
    ]


def _settings(
    out: str, cluster: Cluster, nodes: Mapping[int, Node], voters: Sequence[Voter]
) -> Iterator[str]:
    addresses = [(one, restored_voter(one)["address"] or "HOST:PORT") for one in voters]
    if cluster.state.quorum.kraft_version > 0:
        quorum = f"controller.quorum.bootstrap.servers={','.join(address for _, address in addresses)}"
    else:
        static = ",".join(f"{one.voter_id}@{address}" for one, address in addresses)
        quorum = f"controller.quorum.voters={static}"
    for node in nodes.values():
        log_dirs = ",".join(os.path.join(out, place) for place in node.data_places)
        own = f"node.id={node.node_id} log.dirs={log_dirs}"
        if node.has_metadata_dir:
            own += f" metadata.log.dir={os.path.join(out, node.places[0])}"
        yield f"node {node.node_id}, server.properties: {own} {quorum}"


def _min_isr(cluster: Cluster, placements: Iterable[Placement], tools: str) -> Iterator[str]:
    """Topics to which a producer that waits for all replicas could not write."""
    fewest: dict[str, int] = {}
    for one in placements:
        if one.status == "online":
            fewest[one.topic.name] = min(len(one.state.isr), fewest.get(one.topic.name, len(one.state.isr)))
    for topic, replicas in fewest.items():
        needed = cluster.config(topic, _MIN_ISR) or ""
        if needed.isdecimal() and int(needed) > replicas:
            yield (
                f"{topic} has {_MIN_ISR}={needed} and {replicas} replica{'s' * (replicas > 1)}: add replicas,"
                f" or kafka-configs.sh {tools} --alter --entity-type topics --entity-name"
                f" {shlex.quote(topic)}"
                f" --add-config {_MIN_ISR}={replicas}"
            )
