"""The answers of a running cluster about the configs of resources (DescribeConfigs)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from magicbyte import _core
from magicbyte.message.api_keys import ApiKeys

__all__ = ["describe_configs"]

_RESOURCES_AT_ONCE = 500


def describe_configs(
    cluster: _core.ClusterReader, resources: Sequence[tuple[int, str]], broker: int | None = None
) -> Iterator[Mapping[str, Any]]:
    """Yields the answer for each resource, which is a type (`ConfigResource.Type`) and a name. Any broker is
    asked, or this one. The error codes in the answers are not checked.

    Raises:
        UnsupportedVersionError: the brokers are older than Kafka 0.11.
        OSError: the cluster does not answer or refuses.

    """
    for start in range(0, len(resources), _RESOURCES_AT_ONCE):
        asked = [
            {"resourceType": kind, "resourceName": name, "configurationKeys": None}
            for kind, name in resources[start : start + _RESOURCES_AT_ONCE]
        ]
        yield from cluster.describe(ApiKeys.DESCRIBE_CONFIGS, {"resources": asked}, broker)["results"]
