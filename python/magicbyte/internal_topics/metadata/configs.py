"""Dynamic configs and client quotas (`ConfigurationsDelta`, `ClientQuotasDelta`)."""

from __future__ import annotations

from typing import Any

__all__ = [
    "BROKER",
    "CLIENT_METRICS",
    "CLUSTER_DEFAULT",
    "GROUP",
    "TOPIC",
    "ConfigsState",
    "QuotaEntity",
    "QuotasState",
]

TOPIC, BROKER, CLIENT_METRICS, GROUP = 2, 4, 16, 32
"""`ConfigResource.Type`."""
CLUSTER_DEFAULT = ""
"""The broker whose configs are the defaults of all."""

QuotaEntity = tuple[tuple[str, str | None], ...]
"""Pairs of an entity type (`user`, `client-id` or `ip`) and a name; None stands for the default."""


class ConfigsState:
    """The dynamic configs of all resources. Secret values are `[hidden]`."""

    def __init__(self) -> None:
        self._by_resource: dict[tuple[int, str], dict[str, str]] = {}

    def replay(self, data: dict[str, Any]) -> None:
        """Applies a `ConfigRecord`."""
        resource = data["resourceType"], data["resourceName"]
        configs = self._by_resource.setdefault(resource, {})
        if data["value"] is None:
            configs.pop(data["name"], None)
            if not configs:
                del self._by_resource[resource]
        else:
            configs[data["name"]] = data["value"]

    def remove(self, resource_type: int, name: str) -> None:
        """Removes the configs of a resource that was deleted."""
        self._by_resource.pop((resource_type, name), None)

    def of(self, resource_type: int, name: str) -> dict[str, str]:
        """The configs that were set for a resource, by name."""
        return self._by_resource.get((resource_type, name), {})

    def of_type(self, resource_type: int) -> dict[str, dict[str, str]]:
        """The configs of every resource of a type that has some, by its name."""
        return {
            name: configs for (type_, name), configs in self._by_resource.items() if type_ == resource_type
        }


class QuotasState:
    """The client quotas: values by key, such as `producer_byte_rate`, of each entity."""

    def __init__(self) -> None:
        self.by_entity: dict[QuotaEntity, dict[str, float]] = {}

    def replay(self, data: dict[str, Any]) -> None:
        """Applies a `ClientQuotaRecord`."""
        entity = tuple(sorted((one["entityType"], one["entityName"]) for one in data["entity"]))
        quotas = self.by_entity.setdefault(entity, {})
        if data["remove"]:
            quotas.pop(data["key"], None)
            if not quotas:
                del self.by_entity[entity]
        else:
            quotas[data["key"]] = data["value"]
