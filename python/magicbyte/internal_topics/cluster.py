"""The topics and configs that the records of `__cluster_metadata` add up to (`TopicsDelta`,
`ConfigurationsDelta`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from magicbyte.errors import InvalidRecordError
from magicbyte.internal_topics.decode import DECODERS

__all__ = ["ClusterState", "PartitionState", "TopicState"]

_TOPIC, _BROKER = 2, 4
"""`ConfigResource.Type`."""
_CLUSTER_DEFAULT = ""
"""The broker whose configs are the defaults of all."""
_NO_LEADER_CHANGE = -2
_MAX_TRANSACTION = 64 << 20
"""Bytes of the records in a metadata transaction. Kafka's controllers write 10,000 records."""
_RECORD = 48
"""Memory of bytes besides their content."""


@dataclass
class PartitionState:
    """A partition as the controller sees it."""

    replicas: list[int]
    isr: list[int]
    leader: int
    """-1 for none."""
    leader_epoch: int
    directories: list[str]
    """The id of each replica's log directory, in the order of the replicas; empty before Kafka 3.7."""


@dataclass
class TopicState:
    """A topic that has not been deleted."""

    name: str
    topic_id: str
    partitions: dict[int, PartitionState] = field(default_factory=dict)


class ClusterState:
    """Folds metadata records, in offset order, into topics and configs.

    The records of a metadata transaction (`BeginTransactionRecord`) count when it ends.
    """

    def __init__(self) -> None:
        self.topics: dict[str, TopicState] = {}
        """By topic id."""
        self.names: set[str] = set()
        """The topics' names."""
        self.log_dirs: dict[int, list[str]] = {}
        """The ids of the log directories of each broker that tells them (since Kafka 3.7)."""
        self._configs: dict[tuple[int, str], dict[str, str]] = {}
        self._transaction: list[bytes] | None = None
        self._transaction_size = 0

    def replay(self, value: bytes | None) -> None:
        """Applies a record of `__cluster_metadata`.

        Raises:
            LookupError: its type is unknown.
            Error: it does not decode.

        """
        name, data = _decoded(value)
        match name:
            case "BEGIN_TRANSACTION_RECORD":
                self._transaction, self._transaction_size = [], 0
            case "ABORT_TRANSACTION_RECORD":
                self._transaction = None
            case "END_TRANSACTION_RECORD":
                records, self._transaction = self._transaction or [], None
                if self._transaction_size > _MAX_TRANSACTION:
                    raise InvalidRecordError(
                        f"the metadata transaction that ends here has more than {_MAX_TRANSACTION:,} bytes:"
                        " its records are left out"
                    )
                for record in records:
                    self._apply(*_decoded(record))
            case _ if self._transaction is None:
                self._apply(name, data)
            case _ if value is not None:
                self._transaction_size += len(value) + _RECORD
                if self._transaction_size > _MAX_TRANSACTION:
                    self._transaction.clear()
                else:
                    self._transaction.append(value)

    def _apply(self, name: str, data: dict[str, Any]) -> None:
        match name:
            case "TOPIC_RECORD":
                self.topics[data["topicId"]] = TopicState(data["name"], data["topicId"])
                self.names.add(data["name"])
            case "REMOVE_TOPIC_RECORD":
                topic = self.topics.pop(data["topicId"], None)
                if topic is not None:
                    self.names.discard(topic.name)
                    self._configs.pop((_TOPIC, topic.name), None)
            case "PARTITION_RECORD":
                if topic := self.topics.get(data["topicId"]):
                    topic.partitions[data["partitionId"]] = PartitionState(
                        data["replicas"],
                        data["isr"],
                        data["leader"],
                        data["leaderEpoch"],
                        data.get("directories") or [],
                    )
            case "PARTITION_CHANGE_RECORD":
                topic = self.topics.get(data["topicId"])
                partition = topic.partitions.get(data["partitionId"]) if topic else None
                if partition is not None:
                    _change(partition, data)
            case "REGISTER_BROKER_RECORD" | "BROKER_REGISTRATION_CHANGE_RECORD":
                if directories := data.get("logDirs"):
                    self.log_dirs[data["brokerId"]] = directories
            case "UNREGISTER_BROKER_RECORD":
                self.log_dirs.pop(data["brokerId"], None)
            case "CONFIG_RECORD":
                configs = self._configs.setdefault((data["resourceType"], data["resourceName"]), {})
                if data["value"] is None:
                    configs.pop(data["name"], None)
                else:
                    configs[data["name"]] = data["value"]

    def topic_configs(self, topic: str) -> dict[str, str]:
        """The configs that were set for a topic, by name."""
        return self._configs.get((_TOPIC, topic), {})

    def broker_configs(self, broker: str | None) -> dict[str, str]:
        """A broker's dynamic configs, and those of all brokers where it has none of its own; None for only
        the latter. What its `server.properties` says is in no log.
        """
        common = self._configs.get((_BROKER, _CLUSTER_DEFAULT), {})
        return common if not broker else common | self._configs.get((_BROKER, broker), {})


def _decoded(value: bytes | None) -> tuple[str, dict[str, Any]]:
    decode = DECODERS["metadata"]
    assert decode is not None
    decoded = decode(None, value)
    assert isinstance(decoded.value, dict)
    return decoded.name, decoded.value["data"]


def _change(partition: PartitionState, data: dict[str, Any]) -> None:
    """Applies what a record changes (`PartitionRegistration.merge`); absent fields stay as they are."""
    if data.get("replicas") is not None:
        partition.replicas = data["replicas"]
    if data.get("isr") is not None:
        partition.isr = data["isr"]
    if data.get("directories") is not None:
        partition.directories = data["directories"]
    leader = data.get("leader", _NO_LEADER_CHANGE)
    if leader != _NO_LEADER_CHANGE:
        partition.leader = leader
        partition.leader_epoch += 1
