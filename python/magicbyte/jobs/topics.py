"""The job behind `magicbyte topics`: which topics a cluster has, and how their logs are cleaned up.

The source is the cluster's own log, `__cluster_metadata-0`, which every node of a KRaft cluster keeps in its
log directory. Clusters with ZooKeeper have none: `read_topic_config` reads what the user knows.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypedDict

from magicbyte import _core
from magicbyte._core import Record
from magicbyte.errors import Error
from magicbyte.internal_topics.cluster import ClusterState, TopicState
from magicbyte.jobs.failure import RefusedError
from magicbyte.jobs.partitions import list_partitions
from magicbyte.jobs.replay import Batch, replay
from magicbyte.log_dir import META_PROPERTIES, read_meta_properties
from magicbyte.model import PartitionListing

__all__ = [
    "CLUSTER_METADATA",
    "Cluster",
    "Topic",
    "TopicConfigs",
    "TopicPartition",
    "TopicsReport",
    "read_cluster",
    "read_topic_config",
    "topics",
]

CLUSTER_METADATA = "__cluster_metadata"
_COMPACTED = ("__consumer_offsets", "__transaction_state")
"""Kafka creates these with `cleanup.policy=compact`; `__share_group_state` with `delete`."""
_POLICY = "cleanup.policy"
_SYNONYMS = {
    _POLICY: "log.cleanup.policy",
    "delete.retention.ms": "log.cleaner.delete.retention.ms",
    "min.compaction.lag.ms": "log.cleaner.min.compaction.lag.ms",
    "segment.bytes": "log.segment.bytes",
}
"""The broker's config with the default for all topics (`ServerTopicConfigSynonyms`)."""
_SNAPSHOT = re.compile(r"(\d{20})-(\d{10})\.checkpoint")

TopicConfigs = Mapping[str, Mapping[str, str]]
"""Configs by topic and name."""


class TopicPartition(TypedDict):
    """A partition of a topic; None for what only the cluster's metadata tells."""

    partition: int
    leader: int | None
    """The node that leads it; -1 for none."""
    leader_epoch: int | None
    replicas: list[int] | None
    isr: list[int] | None
    here: bool
    """Whether there is a directory of the partition among the sources."""


class Topic(TypedDict):
    """A topic of the cluster."""

    topic: str
    topic_id: str | None
    cleanup_policy: str | None
    """None if it is unknown."""
    policy_from: str | None
    """`file` (the user's), `topic` (its own config), `broker` (the brokers' dynamic config), `kafka` (an
    internal topic, always compacted) or `default` (Kafka's default, unless `server.properties` has another).
    """
    configs: dict[str, str]
    """What was set for the topic, the user's file included."""
    partitions: list[TopicPartition]


class TopicsReport(TypedDict):
    """What `magicbyte topics --json` prints."""

    cluster_metadata: str | None
    """The directory that the topics are from; None if there is none, and directory names are all there is."""
    topics: list[Topic]
    problems: list[str]
    """What could not be read of the cluster's metadata."""


@dataclass(frozen=True)
class Cluster:
    """What is known about the topics of a directory: the cluster's metadata and the user's file."""

    path: str | None = None
    """The directory of the cluster's metadata, if there is one."""
    state: ClusterState = field(default_factory=ClusterState)
    broker_configs: Mapping[str, str] = field(default_factory=dict)
    given: TopicConfigs = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)

    def configs(self, topic: str) -> dict[str, str]:
        """The configs that were set for a topic, the user's before its own."""
        return {**self.state.topic_configs(topic), **self.given.get(topic, {})}

    def config(self, topic: str, name: str) -> str | None:
        """A config that was set for a topic or, as their default, for the brokers."""
        return self.configs(topic).get(name) or self.broker_configs.get(_SYNONYMS.get(name, name))

    def policy(self, topic: str) -> tuple[str | None, str | None]:
        """A topic's `cleanup.policy`, and where it is from: see `Topic.policy_from`."""
        if policy := self.given.get(topic, {}).get(_POLICY):
            return policy, "file"
        if policy := self.state.topic_configs(topic).get(_POLICY):
            return policy, "topic"
        if topic in _COMPACTED:
            return "compact", "kafka"
        if topic not in self.state.names:
            return None, None
        if policy := self.broker_configs.get(_SYNONYMS[_POLICY]):
            return policy, "broker"
        return "delete", "default"


def read_topic_config(path: str | os.PathLike[str]) -> TopicConfigs:
    """Reads a file with topic configs: a JSON object of an object per topic, such as
    `{"orders": {"cleanup.policy": "compact", "segment.bytes": 104857600}}`.

    Raises:
        RefusedError: if it is not such a file.
        OSError: if it cannot be read, or is larger than 64 MiB.

    """
    path = os.fspath(path)
    try:
        document = json.loads(_core.read_sidecar(path))
    except (ValueError, RecursionError) as error:
        raise RefusedError(f"{path} is not JSON: {error}") from None
    if not isinstance(document, dict):
        raise RefusedError(f'{path}: expected an object such as {{"orders": {{"{_POLICY}": "compact"}}}}')
    return {topic: _checked(path, topic, configs) for topic, configs in document.items()}


def _checked(path: str, topic: str, configs: object) -> dict[str, str]:
    if not isinstance(configs, dict):
        raise RefusedError(f'{path}: {topic}: expected an object such as {{"{_POLICY}": "compact"}}')
    checked: dict[str, str] = {}
    for name, value in configs.items():
        if not isinstance(value, str | int) or isinstance(value, bool):
            raise RefusedError(f"{path}: {topic}: {name}: expected text or a number")
        checked[name] = str(value)
    words = [word.strip() for word in checked.get(_POLICY, "delete").split(",")]
    if not {*words} <= {"compact", "delete"}:
        raise RefusedError(f"{path}: {topic}: {_POLICY}: expected compact, delete or both")
    return checked


def read_cluster(listings: Sequence[PartitionListing], given: TopicConfigs | None = None) -> Cluster:
    """Reads the cluster's metadata, if it is among the partitions: the newest snapshot and what follows."""
    path = next((one["path"] for one in listings if one["topic"] == CLUSTER_METADATA), None)
    if path is None:
        return Cluster(given=given or {})
    state = ClusterState()
    problems: list[str] = []

    def apply(batch: Batch, record: Record) -> None:
        if not batch.is_control:
            state.replay(record.value_bytes)

    snapshots = sorted(name for name in os.listdir(path) if _SNAPSHOT.fullmatch(name))
    start = None
    if snapshots:
        # Named after the offset that follows it. Its own offsets start at 0.
        start = int(snapshots[-1][:20])
        snapshot = os.path.join(path, snapshots[-1])
        problems += replay(snapshot, apply)
    problems += replay(path, apply, start_offset=start)
    return Cluster(path, state, state.broker_configs(_node_of(path)), given or {}, problems)


def _node_of(path: str) -> str | None:
    """The node whose log directory this is."""
    try:
        properties = read_meta_properties(os.path.join(os.path.dirname(path), META_PROPERTIES))
    except (Error, OSError):
        return None
    return properties.get("node.id")


def topics(sources: Sequence[str], given: TopicConfigs | None = None) -> TopicsReport:
    """Lists the topics that the cluster's metadata at or below `sources` names; without such metadata, those
    that have directories.

    Raises:
        RefusedError: if there is nothing to read, or a partition is found twice.

    """
    listings = list_partitions(sources, distinct=True)
    cluster = read_cluster(listings, given)
    here: dict[str, list[PartitionListing]] = {}
    for listing in listings:
        here.setdefault(listing["topic"], []).append(listing)
    if cluster.path is None:
        found = [_of_directories(cluster, topic, own) for topic, own in here.items()]
    else:
        found = [_of_cluster(cluster, one, here.get(one.name, [])) for one in cluster.state.topics.values()]
    return TopicsReport(
        cluster_metadata=cluster.path,
        topics=sorted(found, key=lambda one: one["topic"]),
        problems=cluster.problems,
    )


def _of_cluster(cluster: Cluster, topic: TopicState, listings: Sequence[PartitionListing]) -> Topic:
    here = {one["partition"] for one in listings}
    partitions = [
        TopicPartition(
            partition=number,
            leader=one.leader,
            leader_epoch=one.leader_epoch,
            replicas=one.replicas,
            isr=one.isr,
            here=number in here,
        )
        for number, one in sorted(topic.partitions.items())
    ]
    return _topic(cluster, topic.name, topic.topic_id, partitions)


def _of_directories(cluster: Cluster, topic: str, listings: Sequence[PartitionListing]) -> Topic:
    ids = [topic_id for one in listings if (topic_id := _topic_id(one)) is not None]
    partitions = [
        TopicPartition(
            partition=one["partition"], leader=None, leader_epoch=None, replicas=None, isr=None, here=True
        )
        for one in listings
    ]
    return _topic(cluster, topic, next(iter(ids), None), partitions)


def _topic(cluster: Cluster, name: str, topic_id: str | None, partitions: list[TopicPartition]) -> Topic:
    policy, policy_from = cluster.policy(name)
    return Topic(
        topic=name,
        topic_id=topic_id,
        cleanup_policy=policy,
        policy_from=policy_from,
        configs=cluster.configs(name),
        partitions=partitions,
    )


def _topic_id(listing: PartitionListing) -> str | None:
    try:
        data = _core.read_sidecar(os.path.join(listing["path"], "partition.metadata"))
        return _core.partition_metadata(data.decode(errors="replace"))[1]
    except (Error, OSError):
        return None
