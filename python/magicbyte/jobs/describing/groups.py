"""The groups of a running cluster and their positions, as `kafka-consumer-groups`, `kafka-share-groups` and
`kafka-streams-groups` ask for them: each broker lists and describes the groups that it coordinates.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from magicbyte import _core
from magicbyte.errors import UnsupportedVersionError
from magicbyte.internal_topics.names import CONSUMER_OFFSETS
from magicbyte.jobs.describing.cluster import Description
from magicbyte.jobs.describing.coordinators import MOVING, GroupCoordinators
from magicbyte.message.api_keys import ApiKeys
from magicbyte.message.errors import Errors

__all__ = ["DescribedGroup", "GroupDescriptions", "LivePosition", "SharePosition", "describe_groups"]

_CLASSIC, _SHARE = "classic", "share"
_DESCRIBE = {
    _CLASSIC: ApiKeys.DESCRIBE_GROUPS,
    "consumer": ApiKeys.CONSUMER_GROUP_DESCRIBE,
    _SHARE: ApiKeys.SHARE_GROUP_DESCRIBE,
    "streams": ApiKeys.STREAMS_GROUP_DESCRIBE,
}
_DEAD = "Dead"
"""The state of a group that does not exist, in answers before Kafka 3.8 (KIP-1043)."""
_GROUPS_AT_ONCE = 100
_PATIENCE = 30.0
"""Seconds until a coordinator that is moving or loading counts as a problem."""
_PAUSE = 0.2


class DescribedGroup(NamedTuple):
    """A group as its coordinator sees it; the fields are those of `ConsumerGroup`."""

    group: str
    type: str
    state: str
    epoch: int | None
    assignment_epoch: int | None
    protocol_type: str | None
    protocol: str | None
    members: dict[str, dict[str, str | None]]


class LivePosition(NamedTuple):
    """A committed offset. Its times are only in the log of the coordinator."""

    group: str
    topic: str
    partition: int
    offset: int
    leader_epoch: int | None
    metadata: str
    commit_timestamp: None = None
    expire_timestamp: None = None


class SharePosition(NamedTuple):
    """The position of a share group."""

    group: str
    topic: str
    topic_id: str
    partition: int
    start_offset: int | None
    """None if the group has not read the partition."""
    leader_epoch: int | None
    lag: int | None
    """None before Kafka 4.2, whose brokers do not tell it."""


@dataclass
class GroupDescriptions:
    """The groups of a cluster."""

    groups: list[DescribedGroup] = field(default_factory=list)
    positions: list[LivePosition] = field(default_factory=list)
    share_positions: list[SharePosition] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    """The parts that the cluster does not tell, with the reasons."""


def describe_groups(
    cluster: _core.ClusterReader, description: Description, is_chosen: Callable[[str], bool]
) -> GroupDescriptions:
    """Describes the groups whose names are chosen, and reads their positions.

    Raises:
        OSError: the cluster does not answer or refuses.

    """
    groups = _Groups(cluster, is_chosen)
    topic = description.topics.get(CONSUMER_OFFSETS)
    coordinators = GroupCoordinators(cluster, () if topic is None else topic.partitions)
    leaders = coordinators.leaders()
    brokers = {*description.brokers}
    deadline = time.monotonic() + _PATIENCE
    while True:
        # A leader may have joined the cluster since it was described.
        asked = brokers.union(leader for leader, _ in leaders.values() if leader >= 0)
        left = coordinators.moving(leaders) | groups.describe(sorted(asked))
        # Its groups move to others, or it comes back as a leader.
        brokers -= groups.unreachable
        before, leaders = leaders, coordinators.leaders()
        if leaders != before:
            left["groups of coordinators that change"] = Errors.NOT_COORDINATOR
        if not left:
            break
        if time.monotonic() > deadline:
            groups.found.problems += [f"{of}: {error.name}" for of, error in sorted(left.items())]
            break
        time.sleep(_PAUSE)
    found = groups.found
    for group in found.groups:
        if group.type != _SHARE:
            committed = cluster.committed_offsets(group.group)
            found.positions += [LivePosition(group.group, *position) for position in committed]
    return found


class _Groups:
    def __init__(self, cluster: _core.ClusterReader, is_chosen: Callable[[str], bool]) -> None:
        self._cluster = cluster
        self._is_chosen = is_chosen
        self._done: set[str] = set()
        self.found = GroupDescriptions()
        self.unreachable: set[int] = set()
        """Brokers that have not answered."""

    def describe(self, brokers: Sequence[int]) -> dict[str, Errors]:
        """Asks each broker for its groups; returns the brokers and groups to ask again, with the reasons."""
        left: dict[str, Errors] = {}
        for broker in brokers:
            try:
                self._describe_groups_of(broker, left)
            except (ConnectionError, TimeoutError):
                left[f"groups of broker {broker}"] = Errors.BROKER_NOT_AVAILABLE
                self.unreachable.add(broker)
        return left

    def _describe_groups_of(self, broker: int, left: dict[str, Errors]) -> None:
        listed = self._cluster.describe(ApiKeys.LIST_GROUPS, {}, broker)
        if code := listed["errorCode"]:
            self._failed(f"groups of broker {broker}", Errors(code), left)
        by_type: dict[str, list[str]] = defaultdict(list)
        for one in listed["groups"]:
            name = one["groupId"]
            if name not in self._done and self._is_chosen(name):
                # Brokers before Kafka 3.8 do not tell the type.
                by_type[(one.get("groupType") or _CLASSIC).lower()].append(name)
        for type_, names in by_type.items():
            for start in range(0, len(names), _GROUPS_AT_ONCE):
                self._describe_some(broker, type_, names[start : start + _GROUPS_AT_ONCE], left)

    def _describe_some(self, broker: int, type_: str, names: Sequence[str], left: dict[str, Errors]) -> None:
        api = _DESCRIBE.get(type_)
        if api is None:
            self.found.problems += [f"group {name}: its type {type_!r} is not known" for name in names]
            self._done.update(names)
            return
        asked = "groups" if api == ApiKeys.DESCRIBE_GROUPS else "groupIds"
        shared = self._share_positions(broker, names, left) if type_ == _SHARE else dict.fromkeys(names, ())
        described = self._ask(api, {asked: list(names)}, broker)
        for one in described:
            name = one["groupId"]
            if code := one["errorCode"]:
                self._failed(f"group {name}", Errors(code), left)
            elif name in shared and one["groupState"] != _DEAD:
                self.found.groups.append(_described(one, type_))
                self.found.share_positions += shared[name]
        self._done.update(name for name in names if f"group {name}" not in left)

    def _share_positions(
        self, broker: int, names: Sequence[str], left: dict[str, Errors]
    ) -> Mapping[str, Sequence[SharePosition]]:
        """The positions of share groups by name; a group whose positions cannot be told is left out."""
        asked = [{"groupId": name, "topics": None} for name in names]
        described = self._ask(ApiKeys.DESCRIBE_SHARE_GROUP_OFFSETS, {"groups": asked}, broker)
        found: dict[str, Sequence[SharePosition]] = dict.fromkeys(names, ())
        for group in described:
            name = group["groupId"]
            if code := group["errorCode"]:
                self._failed(f"group {name}", Errors(code), left)
                found.pop(name, None)
            else:
                found[name] = list(self._positions(group))
        return found

    def _ask(self, api: ApiKeys, body: dict[str, Any], broker: int) -> Sequence[Mapping[str, Any]]:
        """The groups in the answer of a broker; none, and a problem, if it does not know the request."""
        try:
            groups: Sequence[Mapping[str, Any]] = self._cluster.describe(api, body, broker)["groups"]
        except UnsupportedVersionError as error:
            self.found.problems.append(str(error))
            return ()
        return groups

    def _positions(self, group: Mapping[str, Any]) -> Iterator[SharePosition]:
        name = group["groupId"]
        for topic in group["topics"]:
            for one in topic["partitions"]:
                if code := one["errorCode"]:
                    place = f"{topic['topicName']}-{one['partitionIndex']}"
                    self.found.problems.append(f"share group {name}, {place}: {Errors(code).name}")
                    continue
                start_offset = _known(one["startOffset"])
                yield SharePosition(
                    group=name,
                    topic=topic["topicName"],
                    topic_id=topic["topicId"],
                    partition=one["partitionIndex"],
                    start_offset=start_offset,
                    leader_epoch=None if start_offset is None else _known(one["leaderEpoch"]),
                    lag=_known(one.get("lag", -1)),
                )

    def _failed(self, of: str, error: Errors, left: dict[str, Errors]) -> None:
        if error in MOVING:
            left[of] = error
        elif error != Errors.GROUP_ID_NOT_FOUND:  # it was deleted since it was listed
            self.found.problems.append(f"{of}: {error.name}")


def _described(one: Mapping[str, Any], type_: str) -> DescribedGroup:
    return DescribedGroup(
        group=one["groupId"],
        type=type_,
        state=one["groupState"],
        epoch=one.get("groupEpoch"),
        assignment_epoch=one.get("assignmentEpoch"),
        protocol_type=one.get("protocolType") or None,
        protocol=one.get("protocolData") or one.get("assignorName") or None,
        members={
            member["memberId"]: {
                "instance_id": member.get("groupInstanceId", member.get("instanceId")),
                "client_id": member["clientId"],
                "client_host": member["clientHost"],
            }
            for member in one["members"]
        },
    )


def _known(number: int) -> int | None:
    return None if number < 0 else number
