"""The committed offsets and the groups that the records of `__consumer_offsets` add up to
(`OffsetMetadataManager`, `GroupMetadataManager`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from magicbyte.internal_topics.decode import DECODERS

__all__ = ["Commit", "GroupState", "GroupsState"]

_NEW_PROTOCOLS = {"ConsumerGroup": "consumer", "ShareGroup": "share", "StreamsGroup": "streams"}
_OFFSET_COMMITS = ("OffsetCommit", "LegacyOffsetCommit")
_CLASSIC_GROUP = "GroupMetadata"


@dataclass(frozen=True)
class Commit:
    """A group's committed offset of a partition."""

    group: str
    topic: str
    partition: int
    offset: int
    leader_epoch: int | None
    """The leader epoch of the last consumed record; None if the consumer did not say."""
    metadata: str
    commit_timestamp: int
    """In ms."""
    expire_timestamp: int | None
    """In ms, if the consumer chose one (before Kafka 2.1); None for the broker's retention."""
    record_offset: int
    """Where the commit is in its partition of `__consumer_offsets`."""


@dataclass
class GroupState:
    """A group, as far as the log tells: a broker keeps the state of a rebalance in memory."""

    group: str
    type: str
    """`classic`, `consumer`, `share` or `streams`."""
    epoch: int | None = None
    """The group's epoch; a classic group's generation."""
    protocol_type: str | None = None
    """Of a classic group, such as `consumer` or `connect`."""
    protocol: str | None = None
    """The assignor that a classic group has chosen."""
    members: dict[str, dict[str, str | None]] = field(default_factory=dict)
    """By member id: `instance_id`, `client_id`, `client_host`."""

    @property
    def state(self) -> str:
        """`Empty` without members, else `Stable`."""
        return "Stable" if self.members else "Empty"


class GroupsState:
    """Folds the records of a partition of `__consumer_offsets`, in offset order.

    A broker loads them in the same way: offsets committed in a transaction count from its COMMIT marker on,
    unless a later record has set the same offset before.
    """

    def __init__(self) -> None:
        self.groups: dict[str, GroupState] = {}
        """By name."""
        self._commits: dict[tuple[str, str, int], Commit] = {}
        self._pending: dict[int, dict[tuple[str, str, int], Commit]] = {}
        self._open: dict[tuple[str, str, int], set[int]] = {}
        """The producers with a pending offset."""

    @property
    def commits(self) -> list[Commit]:
        """The committed offsets, by group, topic and partition. What a broker has deleted, because it
        expired or for another reason, is not there.
        """
        return [self._commits[place] for place in sorted(self._commits)]

    @property
    def pending(self) -> int:
        """How many offsets belong to transactions that had not ended."""
        return sum(map(len, self._pending.values()))

    def replay(self, offset: int, key: bytes | None, value: bytes | None, producer_id: int | None) -> None:
        """Applies a record; `producer_id` is that of a transaction, None for a record outside of one.

        Raises:
            LookupError: its type is unknown.
            Error: it does not decode.

        """
        decode = DECODERS["offsets"]
        assert decode is not None
        decoded = decode(key, value)
        if decoded.name is None or decoded.key is None:
            return
        named = decoded.key["data"]
        data = decoded.value["data"] if isinstance(decoded.value, dict) else None
        if decoded.name in _OFFSET_COMMITS:
            self._commit(offset, named, data, producer_id)
        elif decoded.name == _CLASSIC_GROUP:
            self._classic_group(named["group"], data)
        else:
            self._new_group(decoded.name, named, data)

    def end_transaction(self, producer_id: int, *, committed: bool) -> None:
        """Applies the marker of a producer's transaction."""
        for place, commit in self._pending.pop(producer_id, {}).items():
            self._open[place].discard(producer_id)
            existing = self._commits.get(place)
            if committed and (existing is None or commit.record_offset > existing.record_offset):
                self._commits[place] = commit

    def _commit(
        self, offset: int, named: dict[str, Any], data: dict[str, Any] | None, producer_id: int | None
    ) -> None:
        place = named["group"], named["topic"], named["partition"]
        if data is None:
            self._commits.pop(place, None)
            for producer in self._open.pop(place, ()):
                del self._pending[producer][place]
            return
        epoch, expires = data.get("leaderEpoch", -1), data.get("expireTimestamp", -1)
        commit = Commit(
            *place,
            offset=data["offset"],
            leader_epoch=None if epoch < 0 else epoch,
            metadata=data["metadata"],
            commit_timestamp=data["commitTimestamp"],
            expire_timestamp=None if expires < 0 else expires,
            record_offset=offset,
        )
        if producer_id is None:
            self._commits[place] = commit
        else:
            self._pending.setdefault(producer_id, {})[place] = commit
            self._open.setdefault(place, set()).add(producer_id)

    def _classic_group(self, group: str, data: dict[str, Any] | None) -> None:
        if data is None:
            if group in self.groups and self.groups[group].type == "classic":
                del self.groups[group]
            return
        self.groups[group] = GroupState(
            group,
            "classic",
            data["generation"],
            data["protocolType"] or None,
            data["protocol"],
            {one["memberId"]: _member(one, "groupInstanceId") for one in data["members"]},
        )

    def _new_group(self, name: str, named: dict[str, Any], data: dict[str, Any] | None) -> None:
        prefix = next((one for one in _NEW_PROTOCOLS if name.startswith(one)), None)
        kind = name.removeprefix(prefix or "")
        if prefix is None or kind not in ("Metadata", "MemberMetadata"):
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
