"""The committed offsets and the groups that the records of `__consumer_offsets` add up to
(`OffsetMetadataManager`, `GroupMetadataManager`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from magicbyte import _core
from magicbyte._core import LegacyBatch, RecordBatch
from magicbyte.errors import Error
from magicbyte.internal_topics.decode import Decoder
from magicbyte.internal_topics.names import CONSUMER_OFFSETS

__all__ = ["Commit", "GroupState", "GroupsState", "ShareTopic"]

_NEW_PROTOCOLS = {"ConsumerGroup": "consumer", "ShareGroup": "share", "StreamsGroup": "streams"}
_CLASSIC_GROUP = "GroupMetadata"
_SHARE_TOPICS = "ShareGroupStatePartitionMetadata"
_KINDS = {"Metadata", "TargetAssignmentMetadata", "MemberMetadata"}
"""The records of the new protocols that count here, after their prefix."""


@dataclass(frozen=True)
class Commit:
    """A group's committed offset of a partition."""

    group: str
    topic: str
    partition: int
    offset: int
    leader_epoch: int | None
    """The leader epoch of the last consumed record; None if the consumer did not send it."""
    metadata: str
    commit_timestamp: int
    """The time of the commit, in ms."""
    expire_timestamp: int | None
    """The expiry time in ms, if the consumer chose it (before Kafka 2.1); None for the broker's retention."""
    record_offset: int
    """The offset of the commit in its partition of `__consumer_offsets`."""


@dataclass
class GroupState:
    """A group, as far as the log tells: a broker keeps the state of a rebalance in memory."""

    group: str
    type: str
    """`classic`, `consumer`, `share` or `streams`."""
    epoch: int | None = None
    """The group's epoch; a classic group's generation."""
    assignment_epoch: int | None = None
    """The epoch of the last assignment; None for a classic group."""
    protocol_type: str | None = None
    """The protocol type of a classic group, such as `consumer` or `connect`."""
    protocol: str | None = None
    """The assignor that a classic group has chosen."""
    members: dict[str, dict[str, str | None]] = field(default_factory=dict)
    """The members by id: `instance_id`, `client_id`, `client_host`."""

    @property
    def state(self) -> str:
        """`Empty` without members, else `Stable`."""
        return "Stable" if self.members else "Empty"


class ShareTopic(NamedTuple):
    """A topic whose state a share group has in `__share_group_state`."""

    topic_id: str
    name: str
    partitions: list[int]


class GroupsState:
    """Folds the batches of a partition of `__consumer_offsets`, in offset order."""

    def __init__(self) -> None:
        self.groups: dict[str, GroupState] = {}
        """The groups by name."""
        self.share_topics: dict[str, list[ShareTopic]] = {}
        """The initialized topics of share groups, by group."""
        self._offsets = _core.CommittedOffsets()

    @property
    def commits(self) -> list[Commit]:
        """The committed offsets, by group, topic and partition. Offsets that a broker has deleted, because
        they expired or for another reason, are not included.
        """
        return [
            Commit(
                group=group,
                topic=topic,
                partition=partition,
                offset=offset,
                leader_epoch=None if leader_epoch < 0 else leader_epoch,
                metadata=metadata,
                commit_timestamp=commit_timestamp,
                expire_timestamp=None if expire_timestamp < 0 else expire_timestamp,
                record_offset=record_offset,
            )
            for (
                group,
                topic,
                partition,
                offset,
                leader_epoch,
                metadata,
                commit_timestamp,
                expire_timestamp,
                record_offset,
            ) in sorted(self._offsets.commits)
        ]

    @property
    def pending(self) -> int:
        """The number of offsets in transactions that had not ended."""
        return self._offsets.pending

    def replay(self, batch: RecordBatch | LegacyBatch) -> Iterator[tuple[int, Error]]:
        """Applies a batch, and yields offset and error of the records that do not decode. Types of records of
        later versions of Kafka are skipped, as Kafka does.

        Raises:
            Error: the batch does not decode.

        """
        others, errors = self._offsets.replay(batch)
        yield from errors
        for offset, key, value in others:
            try:
                self._apply(key, value)
            except LookupError:
                continue
            except Error as error:
                yield offset, error

    def _apply(self, key: bytes | None, value: bytes | None) -> None:
        name, of, data = Decoder(CONSUMER_OFFSETS).of_coordinator(key, value)
        if name == _CLASSIC_GROUP:
            self._classic_group(of["group"], data)
        elif name == _SHARE_TOPICS:
            self.share_topics[of["groupId"]] = [
                ShareTopic(one["topicId"], one["topicName"], one["partitions"])
                for one in (data["initializedTopics"] if data else ())
            ]
        else:
            self._new_group(name, of, data)

    def _classic_group(self, group: str, data: dict[str, Any] | None) -> None:
        if data is None:
            if group in self.groups and self.groups[group].type == "classic":
                del self.groups[group]
            return
        self.groups[group] = GroupState(
            group,
            "classic",
            epoch=data["generation"],
            protocol_type=data["protocolType"] or None,
            protocol=data["protocol"],
            members={member["memberId"]: _member(member, "groupInstanceId") for member in data["members"]},
        )

    def _new_group(self, name: str, named: dict[str, Any], data: dict[str, Any] | None) -> None:
        prefix = next((one for one in _NEW_PROTOCOLS if name.startswith(one)), None)
        kind = name.removeprefix(prefix or "")
        if prefix is None or kind not in _KINDS:
            return
        group, type_ = named["groupId"], _NEW_PROTOCOLS[prefix]
        if data is None and (group not in self.groups or self.groups[group].type != type_):
            return
        if kind == "Metadata" and data is None:
            del self.groups[group]
            return
        if group not in self.groups or self.groups[group].type != type_:
            # A group that has moved to the new protocol.
            self.groups[group] = GroupState(group, type_)
        if kind == "Metadata":
            self.groups[group].epoch = data["epoch"] if data else None
        elif kind == "TargetAssignmentMetadata":
            self.groups[group].assignment_epoch = data["assignmentEpoch"] if data else None
        elif data is None:
            self.groups[group].members.pop(named["memberId"], None)
        else:
            self.groups[group].members[named["memberId"]] = _member(data, "instanceId")


def _member(data: dict[str, Any], instance: str) -> dict[str, str | None]:
    return {
        "instance_id": data.get(instance),
        "client_id": data["clientId"],
        "client_host": data["clientHost"],
    }
