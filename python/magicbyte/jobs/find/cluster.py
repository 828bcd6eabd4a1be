"""Information about a cluster's topics, from the cluster's own log and from the user.

The log is `__cluster_metadata-0`, which every node of a KRaft cluster keeps in its log directory. Clusters
with ZooKeeper have no such log.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from magicbyte import _core
from magicbyte.errors import Error, RefusedError
from magicbyte.internal_topics.metadata.cluster import ClusterState
from magicbyte.internal_topics.names import CONSUMER_OFFSETS, TRANSACTION_STATE
from magicbyte.jobs.find.metadata_log import FoldedMetadata, fold_metadata
from magicbyte.log_dir import META_PROPERTIES, read_meta_properties, read_server_properties
from magicbyte.model import PartitionListing
from magicbyte.options.shared import ConfigFiles

__all__ = ["DEFAULT_POLICY", "Cluster", "GivenConfigs", "TopicConfigs", "read_cluster", "read_configs"]

_COMPACTED = (CONSUMER_OFFSETS, TRANSACTION_STATE)
"""Kafka creates these with `cleanup.policy=compact`; `__share_group_state` with `delete`."""
_POLICY = "cleanup.policy"
DEFAULT_POLICY = "delete"
"""Kafka's default of `log.cleanup.policy` (`ServerLogConfigs.LOG_CLEANUP_POLICY_DEFAULT`)."""
_SYNONYMS = {
    _POLICY: "log.cleanup.policy",
    "delete.retention.ms": "log.cleaner.delete.retention.ms",
    "min.compaction.lag.ms": "log.cleaner.min.compaction.lag.ms",
    "segment.bytes": "log.segment.bytes",
    "retention.ms": "log.retention.ms",
    "retention.bytes": "log.retention.bytes",
    "preallocate": "log.preallocate",
}
"""The broker's config with the default for all topics (`ServerTopicConfigSynonyms`)."""

TopicConfigs = Mapping[str, Mapping[str, str]]
"""Configs by topic and name."""


@dataclass(frozen=True)
class GivenConfigs:
    """Configs that the user gives."""

    topics: TopicConfigs = field(default_factory=dict)
    server_properties: Mapping[str, str] | None = None
    """The brokers' file; None if it is unknown."""


@dataclass(frozen=True)
class Cluster:
    """Information about the topics of a directory, from the cluster's metadata and the user's files."""

    metadata: FoldedMetadata = field(default_factory=FoldedMetadata)
    broker_configs: Mapping[str, str] = field(default_factory=dict)
    """The dynamic configs of the brokers."""
    given: GivenConfigs = field(default_factory=GivenConfigs)

    @property
    def path(self) -> str | None:
        """The directory of the newest copy of the cluster's metadata, if there is one."""
        return self.metadata.path

    @property
    def state(self) -> ClusterState:
        """What the metadata adds up to."""
        return self.metadata.state

    @property
    def problems(self) -> list[str]:
        """Problems with reading the metadata."""
        return self.metadata.problems

    def configs(self, topic: str) -> dict[str, str]:
        """The configs that were set for a topic, the user's before its own."""
        return {**self.state.topic_configs(topic), **self.given.topics.get(topic, {})}

    def config(self, topic: str, name: str) -> str | None:
        """A config that was set for a topic or, as their default, for the brokers."""
        configs = self.configs(topic)
        return configs[name] if name in configs else self._of_brokers(name)[0]

    def _of_brokers(self, name: str) -> tuple[str | None, str]:
        """The default of a topic's config for the brokers, and its origin, as in `Topic.policy_from`."""
        synonym = _SYNONYMS.get(name, name)
        if synonym in self.broker_configs:
            return self.broker_configs[synonym], "broker"
        if self.given.server_properties is None:
            return None, "default"
        return self.given.server_properties.get(synonym), "server.properties"

    def policy(self, topic: str) -> tuple[str | None, str | None]:
        """A topic's `cleanup.policy`, and its origin: see `jobs.topics.Topic.policy_from`.

        An empty policy is valid, too: a topic with it keeps everything (KIP-1161).
        """
        for configs, source in (
            (self.given.topics.get(topic, {}), "file"),
            (self.state.topic_configs(topic), "topic"),
        ):
            if _POLICY in configs:
                return configs[_POLICY], source
        if topic in _COMPACTED:
            return "compact", "kafka"
        if topic not in self.state.names:
            return None, None  # it may have a config of its own
        policy, source = self._of_brokers(_POLICY)
        if policy is None and source == "server.properties":
            policy = DEFAULT_POLICY  # the broker's, since its file has no other
        return policy, source


def read_configs(options: ConfigFiles) -> GivenConfigs:
    """Reads the files that the user gives.

    Raises:
        RefusedError: if one is not such a file.
        OSError: if one cannot be read, or is larger than 64 MiB.

    """
    topics, server = options.topic_config, options.server_properties
    try:
        properties = None if server is None else read_server_properties(server)
    except Error as error:
        raise RefusedError(str(error)) from None
    return GivenConfigs({} if topics is None else _read_topic_config(topics), properties)


def _read_topic_config(path: str | os.PathLike[str]) -> TopicConfigs:
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


def read_cluster(
    copies: PartitionListing | Sequence[PartitionListing] | None, given: GivenConfigs | None = None
) -> Cluster:
    """Reads the copies of the cluster's metadata, if there are any: see `fold_metadata`."""
    given = given or GivenConfigs()
    if not copies:
        return Cluster(given=given)
    folded = fold_metadata(copies if isinstance(copies, Sequence) else [copies])
    return Cluster(folded, folded.state.broker_configs(_node_of(folded.copies[0].path)), given)


def _node_of(metadata: str) -> str | None:
    """The node that has this copy of the metadata."""
    try:
        properties = read_meta_properties(os.path.join(os.path.dirname(metadata), META_PROPERTIES))
    except (Error, OSError):
        return None
    return properties.get("node.id")
