"""The brokers that coordinate the groups of a running cluster, while they change."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping

from magicbyte import _core
from magicbyte.internal_topics.coordinated_keys import partition_of_key
from magicbyte.internal_topics.names import CONSUMER_OFFSETS
from magicbyte.message.api_keys import ApiKeys
from magicbyte.message.errors import Errors

__all__ = ["MOVING", "GroupCoordinators"]

MOVING = frozenset(
    {
        Errors.COORDINATOR_LOAD_IN_PROGRESS,
        Errors.COORDINATOR_NOT_AVAILABLE,
        Errors.NOT_COORDINATOR,
    }
)
"""Errors of coordinators that end by themselves."""
_MAX_ASKED = 10_000
"""The limit for the partitions about which brokers are asked; Kafka's default is 50."""


class GroupCoordinators:
    """The leaders of the partitions of `__consumer_offsets`.

    A broker lists the groups of the partitions that it has loaded. It says nothing of those that it leads and
    has not begun to load (`GroupCoordinatorService.listGroups`): their groups would be missing without an
    error. Asked for a group of such a partition, it answers that it is not the coordinator, also if there is
    no group of that name.
    """

    def __init__(self, cluster: _core.ClusterReader, partitions: Collection[int]) -> None:
        self._cluster = cluster
        self._names = _names(len(partitions)) if partitions else {}

    def leaders(self) -> Mapping[int, tuple[int, int]]:
        """The leader of each partition, -1 for none, and its epoch; -1 for the epoch before Kafka 2.1."""
        if not self._names:
            return {}
        topics = self._cluster.describe(ApiKeys.METADATA, {"topics": [{"name": CONSUMER_OFFSETS}]})["topics"]
        return {
            one["partitionIndex"]: (one["leaderId"], one.get("leaderEpoch", -1))
            for topic in topics
            for one in topic["partitions"]
        }

    def moving(self, leaders: Mapping[int, tuple[int, int]]) -> dict[str, Errors]:
        """The partitions whose groups no broker lists now, with the reasons."""
        found: dict[str, Errors] = {}
        asked: dict[int, dict[str, int]] = defaultdict(dict)
        for partition, name in self._names.items():
            leader, _ = leaders.get(partition, (-1, -1))
            if leader < 0:
                found[_groups_of(partition)] = Errors.COORDINATOR_NOT_AVAILABLE
            else:
                asked[leader][name] = partition
        for leader, partitions in asked.items():
            try:
                answer = self._cluster.describe(ApiKeys.DESCRIBE_GROUPS, {"groups": list(partitions)}, leader)
            except (ConnectionError, TimeoutError):
                found |= {_groups_of(one): Errors.BROKER_NOT_AVAILABLE for one in partitions.values()}
                continue
            for one in answer["groups"]:
                error, name = Errors(one["errorCode"]), one["groupId"]
                if error in MOVING and name in partitions:
                    found[_groups_of(partitions[name])] = error
        return found


def _groups_of(partition: int) -> str:
    return f"groups in {CONSUMER_OFFSETS}-{partition}"


def _names(partitions: int) -> dict[int, str]:
    """The name of a group for each partition, up to a limit; nobody needs to have such a group."""
    found: dict[int, str] = {}
    # The last character of a text is added to its hash, so that one after the other reaches all partitions.
    for character in range(ord("!"), ord("!") + min(partitions, _MAX_ASKED)):
        name = f"magicbyte-{chr(character)}"
        found[partition_of_key(name, partitions)] = name
    return found
