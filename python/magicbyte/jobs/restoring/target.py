"""Another running cluster as the place of a restore: the topics that it can take, and their replicas."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from os import PathLike, fsdecode
from typing import Literal, TypedDict

from magicbyte.errors import RefusedError
from magicbyte.internal_topics.metadata.configs import TOPIC
from magicbyte.internal_topics.metadata.topics import TopicState
from magicbyte.internal_topics.names import INTERNAL_TOPICS
from magicbyte.jobs.describing.config_resources import describe_configs
from magicbyte.live import open_cluster
from magicbyte.storage.location import cluster_of

__all__ = ["Target", "TargetTopic", "decide_topics", "read_target"]

_OF_OLD_BROKERS = ("leader.replication.throttled.replicas", "follower.replication.throttled.replicas")
"""Configs that name brokers of the old cluster."""
_OF_TIERED_STORAGE = ("remote.", "local.retention.")
"""Configs of segments in tiered storage, which are not restored."""


class TargetTopic(TypedDict):
    """A topic of the dead cluster, and what becomes of it in the target."""

    topic: str
    result: Literal["accepted", "missing", "refused"]
    """`missing`: it has to be created there first. `refused`: see the reason."""
    reason: str | None
    """Of an accepted topic, the configs that it does not have as they were."""
    command: str | None
    """The command that creates a missing topic, with its partitions and configs, or gives an accepted one the
    configs that it had: restored records may be older than the target keeps them.
    """


@dataclass(frozen=True)
class _Topic:
    """A topic of the target."""

    topic_id: str | None
    replicas: Mapping[int, Sequence[int]]
    """The brokers of each partition, the preferred leader first."""
    configs: Mapping[str, str | None] | None
    """The configs in force; None if they are not shown to this client."""


@dataclass(frozen=True)
class Target:
    """A running cluster, as of one moment."""

    tool_options: str
    """The arguments with which Kafka's tools reach it."""
    cluster_id: str
    brokers: Sequence[int]
    topics: Mapping[str, _Topic]
    ends: Mapping[tuple[str, int], int]
    """The end offsets of the partitions that were asked for."""


def read_target(
    bootstrap_servers: str, command_config: str | PathLike[str] | None, topics: Sequence[TopicState]
) -> Target:
    """Reads what the target knows about topics of these names.

    Raises:
        RefusedError: an address or a property is invalid, or the target has no cluster id.
        OSError: the target does not answer or refuses.

    """
    reader = open_cluster(bootstrap_servers, command_config)
    cluster_id, brokers, found = reader.metadata()
    if cluster_id is None:
        raise RefusedError(
            f"{bootstrap_servers}: the cluster has no id: its brokers are older than Kafka 0.10.1"
        )
    names = {one.name for one in topics}
    resources = [(TOPIC, name) for name, _, _ in found if name in names]
    configs = {
        result["resourceName"]: {config["name"]: config["value"] for config in result["configs"]}
        for result in describe_configs(reader, resources)
        if result["errorCode"] == 0
    }
    there = {
        name: _Topic(topic_id, replicas, configs.get(name))
        for name, topic_id, replicas in found
        if name in names
    }
    places = [(name, number) for name, topic in there.items() for number in topic.replicas]
    ends = (end for _, end in reader.offsets(places, "read_uncommitted"))
    url = cluster_of(bootstrap_servers)
    servers = bootstrap_servers if url is None else url.bootstrap_servers
    tool_options = f"--bootstrap-server {shlex.quote(servers)}"
    if command_config is not None:
        tool_options += f" --command-config {shlex.quote(fsdecode(command_config))}"
    return Target(tool_options, cluster_id, sorted(brokers), there, dict(zip(places, ends, strict=True)))


def decide_topics(
    topics: Sequence[TopicState], configs: Mapping[str, Mapping[str, str]], target: Target
) -> list[TargetTopic]:
    """Decides which topics can be restored into the target; `configs` are those of each topic."""
    decided = []
    for topic in topics:
        there = target.topics.get(topic.name)
        if topic.name in INTERNAL_TOPICS:
            result = _refused(topic, "the target has its own")
        elif there is None:
            command = _create(topic, configs.get(topic.name, {}), target)
            result = TargetTopic(
                topic=topic.name, result="missing", reason="the target does not have it", command=command
            )
        elif reason := _objection(topic, there, target.ends):
            result = _refused(topic, reason)
        else:
            result = _accepted(topic, there, configs.get(topic.name, {}), target)
        decided.append(result)
    return decided


def _accepted(topic: TopicState, there: _Topic, configs: Mapping[str, str], target: Target) -> TargetTopic:
    result = TargetTopic(topic=topic.name, result="accepted", reason=None, command=None)
    had = _carried(configs)
    if there.configs is None:
        if had:
            result["reason"] = "the target does not show its configs to this client: compare them yourself"
        return result
    differing = {name: value for name, value in had.items() if there.configs.get(name) != value}
    if differing:
        named = ", ".join(
            f"{name} is {there.configs.get(name) or 'unknown'} and was {value}"
            for name, value in differing.items()
        )
        added = ",".join(f"{name}=[{value}]" for name, value in differing.items())
        result["reason"] = f"in the target, {named}"
        result["command"] = (
            f"kafka-configs.sh {target.tool_options} --alter --topic {shlex.quote(topic.name)}"
            f" --add-config {shlex.quote(added)}"
        )
    return result


def _refused(topic: TopicState, reason: str) -> TargetTopic:
    return TargetTopic(topic=topic.name, result="refused", reason=reason, command=None)


def _objection(topic: TopicState, there: _Topic, ends: Mapping[tuple[str, int], int]) -> str | None:
    """The reason for which a topic of the target cannot take the partitions of a topic."""
    if there.topic_id is None:
        return "the brokers of the target are older than Kafka 2.8, and have no topic ids"
    if there.replicas.keys() != topic.partitions.keys():
        here = _partitions(len(topic.partitions))
        return f"the target's has {_partitions(len(there.replicas))}, and this one {here}"
    for number in sorted(there.replicas):
        if end := ends[topic.name, number]:
            return (
                f"{topic.name}-{number} of the target is not empty: it has had records up to offset {end - 1}"
            )
    return None


def _partitions(number: int) -> str:
    return f"{number:,} partition{'s' * (number != 1)}"


def _create(topic: TopicState, configs: Mapping[str, str], target: Target) -> str:
    """The command that creates a topic as it was, as far as the target has brokers."""
    replicas = max((len(one.replicas) for one in topic.partitions.values()), default=1)
    words = [
        f"kafka-topics.sh {target.tool_options} --create --topic {shlex.quote(topic.name)}",
        f"--partitions {len(topic.partitions)} --replication-factor {min(replicas, len(target.brokers))}",
    ]
    words += (f"--config {shlex.quote(f'{name}={value}')}" for name, value in _carried(configs).items())
    return " ".join(words)


def _carried(configs: Mapping[str, str]) -> dict[str, str]:
    """The configs of a topic that it has in another cluster, too."""
    return {
        name: value
        for name, value in sorted(configs.items())
        if name not in _OF_OLD_BROKERS and not name.startswith(_OF_TIERED_STORAGE)
    }
