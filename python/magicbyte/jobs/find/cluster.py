"""Information about a cluster's topics, from the cluster's own log and from the user.

The log is `__cluster_metadata-0`, which every node of a KRaft cluster keeps in its log directory. Clusters
with ZooKeeper have no such log.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from magicbyte import _core
from magicbyte._core import Record
from magicbyte.errors import Error, RefusedError
from magicbyte.internal_topics.cluster import ClusterState
from magicbyte.internal_topics.names import CONSUMER_OFFSETS, TRANSACTION_STATE
from magicbyte.jobs.find.replay import Batch, replay
from magicbyte.log_dir import META_PROPERTIES, read_meta_properties
from magicbyte.model import PartitionListing

__all__ = ["Cluster", "TopicConfigs", "read_cluster", "read_topic_config"]

_COMPACTED = (CONSUMER_OFFSETS, TRANSACTION_STATE)
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


@dataclass(frozen=True)
class Cluster:
    """Information about the topics of a directory, from the cluster's metadata and the user's file."""

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
        configs = self.configs(topic)
        return configs[name] if name in configs else self.broker_configs.get(_SYNONYMS.get(name, name))

    def policy(self, topic: str) -> tuple[str | None, str | None]:
        """A topic's `cleanup.policy`, and its origin: see `jobs.topics.Topic.policy_from`.

        An empty policy is valid, too: a topic with it keeps everything (KIP-1161).
        """
        for configs, source in (
            (self.given.get(topic, {}), "file"),
            (self.state.topic_configs(topic), "topic"),
        ):
            if _POLICY in configs:
                return configs[_POLICY], source
        if topic in _COMPACTED:
            return "compact", "kafka"
        if topic not in self.state.names:
            return None, None
        policy = self.broker_configs.get(_SYNONYMS[_POLICY])
        return policy, "default" if policy is None else "broker"


def read_topic_config(path: str | os.PathLike[str]) -> TopicConfigs:
    """Reads a file with topic configs: a JSON object with an object for each topic, such as
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
    policy = checked.get(_POLICY, "").strip()
    if policy and not {word.strip() for word in policy.split(",")} <= {"compact", "delete"}:
        raise RefusedError(f"{path}: {topic}: {_POLICY}: expected compact, delete, both or nothing")
    return checked


def read_cluster(listing: PartitionListing | None, given: TopicConfigs | None = None) -> Cluster:
    """Reads a copy of the cluster's metadata, if there is one: the newest snapshot and what follows."""
    if listing is None:
        return Cluster(given=given or {})
    path = listing["path"]
    state = ClusterState()
    problems: list[str] = []

    def apply(batch: Batch, record: Record) -> None:
        if not batch.is_control:
            state.replay(record.value_bytes)

    snapshots = sorted(name for name in os.listdir(path) if _SNAPSHOT.fullmatch(name))
    start = None
    if snapshots:
        # A snapshot is named after the offset that follows it. Its own offsets start at 0.
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
