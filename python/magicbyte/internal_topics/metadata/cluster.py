"""The fold of the records of `__cluster_metadata` (`MetadataDelta`)."""

from __future__ import annotations

from collections.abc import KeysView
from typing import Any

from magicbyte._core import Record
from magicbyte.errors import InvalidRecordError
from magicbyte.internal_topics.decode import Decoder
from magicbyte.internal_topics.metadata.carried import CarriedRecords
from magicbyte.internal_topics.metadata.configs import (
    BROKER,
    CLUSTER_DEFAULT,
    TOPIC,
    ConfigsState,
    QuotasState,
)
from magicbyte.internal_topics.metadata.nodes import NodesState, QuorumState
from magicbyte.internal_topics.metadata.security import SecurityState
from magicbyte.internal_topics.metadata.topics import TopicsState, TopicState
from magicbyte.internal_topics.names import CLUSTER_METADATA

__all__ = ["ClusterState"]

_MAX_TRANSACTION = 64 << 20
"""Bytes of the records in a metadata transaction. Kafka's controllers write 10,000 records."""
_RECORD = 48
"""Memory of bytes besides their content."""


class ClusterState:
    """Folds metadata records, in offset order, into the state of the cluster.

    The records of a metadata transaction (`BeginTransactionRecord`) count when it ends.
    """

    def __init__(self) -> None:
        self.features: dict[str, int] = {}
        """Levels by feature, such as `metadata.version`."""
        self.nodes = NodesState()
        self.quorum = QuorumState()
        self.configs = ConfigsState()
        self.quotas = QuotasState()
        self.security = SecurityState()
        self.next_producer_id: int | None = None
        """The first producer ID that no broker has been given."""
        self.carried = CarriedRecords()
        self._topics = TopicsState()
        self._transaction: list[bytes] | None = None
        self._transaction_size = 0

    @property
    def topics(self) -> dict[str, TopicState]:
        """The topics that have not been deleted, by id."""
        return self._topics.by_id

    @property
    def names(self) -> KeysView[str]:
        """The topics' names."""
        return self._topics.ids.keys()

    def replay_control(self, record: Record, leader_epoch: int) -> None:
        """Applies a control record of a batch with this leader epoch.

        Raises:
            Error: it does not decode.

        """
        self.quorum.replay(record, leader_epoch)

    def replay(self, value: bytes | None) -> None:
        """Applies a record.

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
                    self._apply(*_decoded(record), record)
            case _ if self._transaction is None:
                self._apply(name, data, value or b"")
            case _ if value is not None:
                self._transaction_size += len(value) + _RECORD
                if self._transaction_size > _MAX_TRANSACTION:
                    self._transaction.clear()
                else:
                    self._transaction.append(value)

    def _apply(self, name: str, data: dict[str, Any], value: bytes) -> None:
        if name == "TOPIC_RECORD" and self._topics.ids.get(data["name"], data["topicId"]) != data["topicId"]:
            # Names are unique, and a controller refuses to load a second topic: the removal was lost.
            self._apply("REMOVE_TOPIC_RECORD", {"topicId": self._topics.ids[data["name"]]}, b"")
        self.carried.replay(name, data, value)
        match name:
            case "FEATURE_LEVEL_RECORD":
                if data["featureLevel"]:
                    self.features[data["name"]] = data["featureLevel"]
                else:
                    self.features.pop(data["name"], None)
            case "PRODUCER_IDS_RECORD":
                self.next_producer_id = data["nextProducerId"]
            case "CONFIG_RECORD":
                self.configs.replay(data)
            case "CLIENT_QUOTA_RECORD":
                self.quotas.replay(data)
            case _:
                if name == "REMOVE_TOPIC_RECORD" and (topic := self.topics.get(data["topicId"])):
                    self.configs.remove(TOPIC, topic.name)
                    self.carried.remove_configs(TOPIC, topic.name)
                self._topics.replay(name, data)
                self.nodes.replay(name, data)
                self.security.replay(name, data)

    def topic_configs(self, topic: str) -> dict[str, str]:
        """The configs that were set for a topic, by name."""
        return self.configs.of(TOPIC, topic)

    def broker_configs(self, broker: str | None) -> dict[str, str]:
        """A broker's dynamic configs, and those of all brokers where it has none of its own; None for only
        the latter. What its `server.properties` says is in no log.
        """
        common = self.configs.of(BROKER, CLUSTER_DEFAULT)
        return common if not broker else common | self.configs.of(BROKER, broker)

    def log_dirs(self, broker: int) -> list[str]:
        """The ids of a broker's log directories, if it tells them (since Kafka 3.7)."""
        registered = self.nodes.brokers.get(broker)
        return [] if registered is None else registered.log_dirs


def _decoded(value: bytes | None) -> tuple[str, dict[str, Any]]:
    decoded = Decoder(CLUSTER_METADATA)(None, value)
    assert isinstance(decoded.value, dict)
    return decoded.name, decoded.value["data"]
