"""The configs of the topics of a running cluster, with their origins (DescribeConfigs)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from magicbyte import _core
from magicbyte.errors import UnsupportedVersionError
from magicbyte.internal_topics.metadata.configs import TOPIC
from magicbyte.jobs.describing.config_resources import describe_configs
from magicbyte.message.errors import Errors

__all__ = ["DescribedConfigs", "describe_topic_configs"]

_ORIGINS = {1: "topic", 2: "broker", 3: "broker", 4: "server.properties", 5: "default"}
"""The origins of configs in force by `ConfigSource`, in the words of `Topic.policy_from`."""
_UNKNOWN = -1
"""The source in answers of brokers before Kafka 1.1, which only tell defaults apart."""
_POLICY = "cleanup.policy"


@dataclass(frozen=True)
class DescribedConfigs:
    """The configs of a topic."""

    own: Mapping[str, str]
    """The configs that were set for the topic itself."""
    policy: str | None = None
    """The cleanup policy in force."""
    policy_from: str | None = None
    """See `Topic.policy_from`."""


def describe_topic_configs(
    cluster: _core.ClusterReader, topics: Sequence[str]
) -> tuple[dict[str, DescribedConfigs], list[str]]:
    """The configs of topics by name, and the reasons why those of others are unknown.

    Raises:
        OSError: the cluster does not answer or refuses.

    """
    found: dict[str, DescribedConfigs] = {}
    problems: list[str] = []
    try:
        for result in describe_configs(cluster, [(TOPIC, name) for name in topics]):
            if code := result["errorCode"]:
                problems.append(f"configs of topic {result['resourceName']}: {Errors(code).name}")
            else:
                found[result["resourceName"]] = _described(result["configs"])
    except UnsupportedVersionError as error:
        return {}, [f"configs of topics: {error}"]
    return found, problems


def _described(configs: Sequence[Mapping[str, Any]]) -> DescribedConfigs:
    origins = {config["name"]: _origin(config) for config in configs}
    values = {config["name"]: config["value"] for config in configs if config["value"] is not None}
    own = {name: value for name, value in values.items() if origins[name] == "topic"}
    return DescribedConfigs(own, values.get(_POLICY), origins.get(_POLICY))


def _origin(config: Mapping[str, Any]) -> str | None:
    source = config.get("configSource", _UNKNOWN)
    if source == _UNKNOWN:
        # As Kafka's Admin client reads them (`DescribeConfigsResponse`).
        return "default" if config.get("isDefault") else "topic"
    return _ORIGINS.get(source)
