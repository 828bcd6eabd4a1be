"""The description that a running cluster gives of itself: topics, settings, ACLs, quotas, features."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from magicbyte import _core
from magicbyte.errors import UnsupportedVersionError
from magicbyte.internal_topics.metadata.configs import BROKER, CLIENT_METRICS, CLUSTER_DEFAULT, GROUP, TOPIC
from magicbyte.internal_topics.names import is_topic
from magicbyte.jobs.describing.config_resources import describe_configs
from magicbyte.message.api_keys import ApiKeys
from magicbyte.message.errors import Errors

__all__ = ["Description", "Settings", "TopicDescription", "describe_cluster", "describe_settings"]

_NO_ID = "A" * 22
_ID = re.compile(r"[\w.-]{0,100}", re.ASCII)
_ANY, _MATCH_ANY = 1, 1
"""The codes of `ResourceType.ANY`, `AclOperation.ANY` and so on, and of `PatternType.ANY`."""
_DYNAMIC = {1, 2, 3, 7, 8}
"""`ConfigSource` of what was set for a topic, a broker, all brokers, client metrics or a group."""
_HAS_NONE = {Errors.UNSUPPORTED_VERSION, Errors.SECURITY_DISABLED}
"""Errors of brokers that have nothing of the kind: they are too old, or have no authorizer."""
_MECHANISMS = {1: "SCRAM-SHA-256", 2: "SCRAM-SHA-512"}


@dataclass(frozen=True)
class TopicDescription:
    """A topic."""

    name: str
    topic_id: str | None
    """None if the brokers are older than Kafka 2.8."""
    partitions: Mapping[int, PartitionDescription]


@dataclass(frozen=True)
class PartitionDescription:
    """A partition of a topic."""

    leader: int
    """The broker that leads it; -1 for none, or for one that nobody knows."""
    leader_epoch: int
    """-1 if the brokers are older than Kafka 2.1."""
    replicas: Sequence[int]
    isr: Sequence[int]

    @property
    def has_leader(self) -> bool:
        """True if a broker that is there leads it."""
        return self.leader >= 0


@dataclass(frozen=True)
class Description:
    """The brokers and topics of a cluster."""

    cluster_id: str
    brokers: Sequence[int]
    topics: Mapping[str, TopicDescription]
    features: Mapping[str, int]
    """The finalized level of each feature, such as `metadata.version`; empty without KRaft."""
    metadata_end_offset: int
    """The offset after the metadata that the broker has."""


@dataclass
class Settings:
    """Settings that were made at run time."""

    configs: list[tuple[int, str, str, str]] = field(default_factory=list)
    """The type and name of a resource, and the name and value of a config."""
    secret_configs: list[str] = field(default_factory=list)
    """Configs whose values no broker tells."""
    acls: list[dict[str, Any]] = field(default_factory=list)
    """The fields of `AccessControlEntryRecord`, without the id."""
    quotas: list[dict[str, Any]] = field(default_factory=list)
    """The fields of `ClientQuotaRecord`."""
    users: list[str] = field(default_factory=list)
    """Users with SCRAM credentials, which no broker tells."""
    unknown: list[str] = field(default_factory=list)
    """The parts that the cluster does not tell this client, with the reasons."""


class _RefusedRequestError(Exception):
    """A broker's answer is an error."""

    def __init__(self, code: Errors) -> None:
        super().__init__(code.name)
        self.code = code


def describe_cluster(cluster: _core.ClusterReader) -> Description:
    """Describes the brokers, features and those topics that the client may see."""
    metadata = cluster.describe(ApiKeys.METADATA, {"topics": None})
    software = {"clientSoftwareName": "magicbyte", "clientSoftwareVersion": _core.__version__}
    try:
        versions = cluster.describe(ApiKeys.API_VERSIONS, software)
    except ValueError:
        versions = {}  # brokers before Kafka 2.4 are told no names, and have no features
    cluster_id = metadata.get("clusterId") or ""
    if not _ID.fullmatch(cluster_id):
        raise ConnectionError(f"Metadata: {cluster_id[:100]!r} is not the id of a cluster")
    brokers = sorted(broker["nodeId"] for broker in metadata["brokers"])
    topics = {
        topic["name"]: _topic(topic, brokers) for topic in metadata["topics"] if topic["errorCode"] == 0
    }
    return Description(
        cluster_id=cluster_id,
        brokers=brokers,
        topics=topics,
        features={one["name"]: one["maxVersionLevel"] for one in versions.get("finalizedFeatures") or ()},
        # The epoch of the features is the offset of the newest metadata (`MetadataCache.features`).
        metadata_end_offset=max(versions.get("finalizedFeaturesEpoch", -1), -1) + 1,
    )


def _topic(data: Mapping[str, Any], brokers: Sequence[int]) -> TopicDescription:
    """A topic in the answer of a broker, of which directories get names."""
    name, topic_id = data["name"], data.get("topicId", _NO_ID)
    if not is_topic(name):
        raise ConnectionError(f"Metadata: {name[:100]!r} is not the name of a topic")
    partitions = {
        one["partitionIndex"]: PartitionDescription(
            one["leaderId"] if one["leaderId"] in brokers else -1,
            one.get("leaderEpoch", -1),
            one["replicaNodes"],
            one["isrNodes"],
        )
        for one in data["partitions"]
    }
    if any(number < 0 for number in partitions):
        raise ConnectionError(f"Metadata: topic {name} has the partition {min(partitions)}")
    return TopicDescription(name, None if topic_id == _NO_ID else topic_id, partitions)


def describe_settings(
    cluster: _core.ClusterReader, description: Description, topics: Iterable[str]
) -> Settings:
    """Describes the configs of topics, brokers, groups and client metrics, the ACLs, quotas and users."""
    settings = Settings()
    parts: dict[str, Callable[[], None]] = {
        "configs of topics": partial(_topic_configs, cluster, sorted(topics), settings),
        "configs of brokers": partial(_broker_configs, cluster, description.brokers, settings),
        "configs of groups and client metrics": partial(_named_configs, cluster, settings),
        "ACLs": partial(_acls, cluster, settings),
        "client quotas": partial(_quotas, cluster, settings),
        "SCRAM users": partial(_users, cluster, settings),
    }
    for what, describe in parts.items():
        try:
            describe()
        except _RefusedRequestError as error:
            if error.code not in _HAS_NONE:
                settings.unknown.append(f"{what}: {error.code.name}")
        except UnsupportedVersionError:
            pass  # nobody has set what brokers of this version do not have
    return settings


def _check(response: Mapping[str, Any]) -> None:
    if code := response["errorCode"]:
        raise _RefusedRequestError(Errors(code))


def _topic_configs(cluster: _core.ClusterReader, topics: Sequence[str], settings: Settings) -> None:
    _configs(cluster, [(TOPIC, name) for name in topics], None, settings)


def _broker_configs(cluster: _core.ClusterReader, brokers: Sequence[int], settings: Settings) -> None:
    _configs(cluster, [(BROKER, CLUSTER_DEFAULT)], None, settings)
    for broker in brokers:
        try:
            # Only the broker itself knows its own.
            _configs(cluster, [(BROKER, str(broker))], broker, settings)
        except (ConnectionError, TimeoutError) as error:
            # It has left the cluster since, or is about to. The others still know all else.
            settings.unknown.append(f"configs of broker {broker}: {error}")


def _named_configs(cluster: _core.ClusterReader, settings: Settings) -> None:
    listed = cluster.describe(ApiKeys.LIST_CONFIG_RESOURCES, {})
    _check(listed)
    found = [
        (one.get("resourceType", CLIENT_METRICS), one["resourceName"]) for one in listed["configResources"]
    ]
    resources = [one for one in found if one[0] in (CLIENT_METRICS, GROUP)]
    _configs(cluster, resources, None, settings)


def _configs(
    cluster: _core.ClusterReader,
    resources: Sequence[tuple[int, str]],
    broker: int | None,
    settings: Settings,
) -> None:
    for result in describe_configs(cluster, resources, broker):
        kind, name = result["resourceType"], result["resourceName"]
        if code := result["errorCode"]:
            # The client may see those of other resources.
            settings.unknown.append(f"configs of {name or 'all brokers'}: {Errors(code).name}")
            continue
        for config in result["configs"]:
            own = {BROKER: 3 if name == CLUSTER_DEFAULT else 2}.get(kind)
            if config["configSource"] not in ({own} if own else _DYNAMIC - {2, 3}):
                continue
            if config["isSensitive"] or config["value"] is None:
                settings.secret_configs.append(f"{name or 'all brokers'}: {config['name']}")
            else:
                settings.configs.append((kind, name, config["name"], config["value"]))


def _acls(cluster: _core.ClusterReader, settings: Settings) -> None:
    described = cluster.describe(
        ApiKeys.DESCRIBE_ACLS,
        {
            "resourceTypeFilter": _ANY,
            "resourceNameFilter": None,
            "patternTypeFilter": _MATCH_ANY,
            "principalFilter": None,
            "hostFilter": None,
            "operation": _ANY,
            "permissionType": _ANY,
        },
    )
    _check(described)
    settings.acls = [
        {
            "resourceType": resource["resourceType"],
            "resourceName": resource["resourceName"],
            "patternType": resource["patternType"],
            **acl,
        }
        for resource in described["resources"]
        for acl in resource["acls"]
    ]


def _quotas(cluster: _core.ClusterReader, settings: Settings) -> None:
    described = cluster.describe(ApiKeys.DESCRIBE_CLIENT_QUOTAS, {"components": [], "strict": False})
    _check(described)
    settings.quotas = [
        {"entity": entry["entity"], "key": one["key"], "value": one["value"], "remove": False}
        for entry in described["entries"] or ()
        for one in entry["values"]
    ]


def _users(cluster: _core.ClusterReader, settings: Settings) -> None:
    described = cluster.describe(ApiKeys.DESCRIBE_USER_SCRAM_CREDENTIALS, {"users": None})
    _check(described)
    settings.users = sorted(
        f"{user['user']} {_MECHANISMS.get(one['mechanism'], one['mechanism'])}"
        for user in described["results"]
        for one in user["credentialInfos"]
    )
