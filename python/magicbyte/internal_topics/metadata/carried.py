"""The records that a snapshot of the state takes over byte for byte (`MetadataImage.write`)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any

__all__ = ["CarriedRecords"]

_Key = tuple[Any, ...]


def _entity(entity: list[dict[str, Any]]) -> _Key:
    return tuple(
        sorted((one["entityType"], one["entityName"] is None, one["entityName"] or "") for one in entity)
    )


_KEYS: dict[str, Callable[[dict[str, Any]], _Key]] = {
    "FEATURE_LEVEL_RECORD": lambda data: (data["name"],),
    "TOPIC_RECORD": lambda data: (data["topicId"],),
    "CONFIG_RECORD": lambda data: (data["resourceType"], data["resourceName"], data["name"]),
    "ACCESS_CONTROL_ENTRY_RECORD": lambda data: (data["id"],),
    "CLIENT_QUOTA_RECORD": lambda data: (_entity(data["entity"]), data["key"]),
    "USER_SCRAM_CREDENTIAL_RECORD": lambda data: (data["name"], data["mechanism"]),
    "DELEGATION_TOKEN_RECORD": lambda data: (data["tokenId"],),
    "PRODUCER_IDS_RECORD": lambda _: (),
}
"""The fields that identify the subject of each type of record, in the order of a snapshot."""
_REMOVALS = {
    "REMOVE_TOPIC_RECORD": "TOPIC_RECORD",
    "REMOVE_ACCESS_CONTROL_ENTRY_RECORD": "ACCESS_CONTROL_ENTRY_RECORD",
    "REMOVE_USER_SCRAM_CREDENTIAL_RECORD": "USER_SCRAM_CREDENTIAL_RECORD",
    "REMOVE_DELEGATION_TOKEN_RECORD": "DELEGATION_TOKEN_RECORD",
}


class CarriedRecords:
    """The last record about each thing that was not removed. Brokers and controllers
    register again, and partitions are placed again, so they have none.
    """

    def __init__(self) -> None:
        self._by_type: dict[str, dict[_Key, bytes]] = {name: {} for name in _KEYS}
        self._configs: dict[_Key, set[_Key]] = defaultdict(set)
        """The configs that each resource has or had."""

    def replay(self, name: str, data: dict[str, Any], value: bytes) -> None:
        """Applies a record, whose decoded fields are `data`; records of other types change nothing."""
        if kind := _REMOVALS.get(name):
            self._by_type[kind].pop(_KEYS[kind](data), None)
        elif name in _KEYS:
            records, key = self._by_type[name], _KEYS[name](data)
            if name == "CONFIG_RECORD":
                self._configs[key[:2]].add(key)
            if data.get("remove") or data.get("value", "") is None or data.get("featureLevel") == 0:
                records.pop(key, None)
            else:
                records[key] = value

    def remove_configs(self, resource_type: int, name: str) -> None:
        """Removes the configs of a resource that was deleted."""
        for key in self._configs.pop((resource_type, name), ()):
            self._by_type["CONFIG_RECORD"].pop(key, None)

    def of(self, name: str) -> Iterator[tuple[_Key, bytes]]:
        """The records of a type, such as `CONFIG_RECORD`, each with what it is about."""
        return iter(self._by_type[name].items())
