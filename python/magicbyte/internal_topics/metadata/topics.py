"""Topics and partitions (`TopicsDelta`)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

__all__ = ["PartitionState", "TopicState", "TopicsState"]

_NO_LEADER_CHANGE = -2


@dataclass
class PartitionState:
    """A partition as the controller sees it (`PartitionRegistration`)."""

    replicas: list[int]
    isr: list[int]
    leader: int
    """-1 for none."""
    leader_epoch: int
    directories: list[str]
    """The id of each replica's log directory, in the order of the replicas; empty before Kafka 3.7."""
    removing_replicas: list[int] = field(default_factory=list)
    adding_replicas: list[int] = field(default_factory=list)
    partition_epoch: int = 0
    elr: list[int] = field(default_factory=list)
    """The eligible leader replicas: not in the ISR, but with every committed record (KIP-966)."""
    last_known_elr: list[int] = field(default_factory=list)
    """Former members of the ISR and ELR, which an unclean election would try first."""

    def merge(self, data: dict[str, Any]) -> None:
        """Applies a `PartitionChangeRecord`; absent fields stay as they are."""
        for name, attribute in _CHANGES.items():
            if data.get(name) is not None:
                setattr(self, attribute, data[name])
        leader = data.get("leader", _NO_LEADER_CHANGE)
        if leader != _NO_LEADER_CHANGE:
            self.leader = leader
            self.leader_epoch += 1
        self.partition_epoch += 1


_CHANGES = {
    "replicas": "replicas",
    "isr": "isr",
    "removingReplicas": "removing_replicas",
    "addingReplicas": "adding_replicas",
    "directories": "directories",
    "eligibleLeaderReplicas": "elr",
    "lastKnownElr": "last_known_elr",
}


@dataclass
class TopicState:
    """A topic that has not been deleted."""

    name: str
    topic_id: str
    partitions: dict[int, PartitionState] = field(default_factory=dict)


class TopicsState:
    """The topics that have not been deleted."""

    def __init__(self) -> None:
        self.by_id: dict[str, TopicState] = {}
        self.ids: dict[str, str] = {}
        """The id of each topic by its name."""

    def replay(self, name: str, data: dict[str, Any]) -> None:
        """Applies a record of a topic or partition; records of other types change nothing."""
        match name:
            case "TOPIC_RECORD":
                self.by_id[data["topicId"]] = TopicState(data["name"], data["topicId"])
                self.ids[data["name"]] = data["topicId"]
            case "REMOVE_TOPIC_RECORD":
                if topic := self.by_id.pop(data["topicId"], None):
                    self.ids.pop(topic.name, None)
            case "PARTITION_RECORD":
                if topic := self.by_id.get(data["topicId"]):
                    topic.partitions[data["partitionId"]] = _partition(data)
            case "PARTITION_CHANGE_RECORD":
                topic = self.by_id.get(data["topicId"])
                partition = topic.partitions.get(data["partitionId"]) if topic else None
                if partition is not None:
                    partition.merge(data)
            case "CLEAR_ELR_RECORD":
                self._clear_elr(data["topicName"])

    def _clear_elr(self, name: str) -> None:
        """Clears the ELR of a topic's partitions; an empty name stands for all topics."""
        for topic in self.by_id.values():
            if name in ("", topic.name):
                for partition in topic.partitions.values():
                    if partition.elr or partition.last_known_elr:
                        partition.merge({"eligibleLeaderReplicas": [], "lastKnownElr": []})


def _partition(data: dict[str, Any]) -> PartitionState:
    return PartitionState(
        data["replicas"],
        data["isr"],
        data["leader"],
        data["leaderEpoch"],
        data.get("directories") or [],
        data["removingReplicas"],
        data["addingReplicas"],
        data["partitionEpoch"],
        data.get("eligibleLeaderReplicas") or [],
        data.get("lastKnownElr") or [],
    )
