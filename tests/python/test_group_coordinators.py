"""Groups of a running cluster while the partitions of `__consumer_offsets` change their leaders.

A real coordinator is between two states for some milliseconds, so that a test cannot hold it there; this one
plays its answers. `tests/interop/test_live_admin.py` kills a real one.
"""

from __future__ import annotations

from typing import Any, cast

import pytest
from magicbyte._core import ClusterReader
from magicbyte.internal_topics.coordinated_keys import partition_of_key
from magicbyte.internal_topics.names import CONSUMER_OFFSETS
from magicbyte.jobs.describing import groups
from magicbyte.jobs.describing.cluster import Description, PartitionDescription, TopicDescription
from magicbyte.jobs.describing.coordinators import GroupCoordinators
from magicbyte.jobs.describing.groups import GroupDescriptions, describe_groups
from magicbyte.message.api_keys import ApiKeys
from magicbyte.message.errors import Errors

PARTITIONS = 50
GROUPS = ("billing", "audit")


class Moving:
    """Two brokers. The leader of the partition of `billing` begins to load it after `asked` questions."""

    def __init__(self, asked: int, error: Errors = Errors.NOT_COORDINATOR) -> None:
        self.asked = asked
        self.error = error
        self.moved = partition_of_key("billing", PARTITIONS)
        self.leaders = {number: (number % 2, 4) for number in range(PARTITIONS)}
        self.dead: set[int] = set()
        self.changes: list[tuple[int, int]] = []
        """Leaders and epochs of that partition, one after the other."""

    def describe(self, api: ApiKeys, body: Any, broker: int | None = None) -> dict[str, Any]:
        if api == ApiKeys.METADATA:
            if self.changes:
                self.leaders[self.moved] = self.changes.pop(0)
            partitions = [
                {"partitionIndex": number, "leaderId": leader, "leaderEpoch": epoch}
                for number, (leader, epoch) in self.leaders.items()
            ]
            return {"topics": [{"name": CONSUMER_OFFSETS, "partitions": partitions}]}
        assert broker is not None
        if broker in self.dead:
            raise ConnectionError(f"the cluster has no broker {broker}")
        if api == ApiKeys.LIST_GROUPS:
            listed = [{"groupId": name} for name in GROUPS if not self.error_of(name, broker)]
            return {"errorCode": 0, "groups": listed}
        assert api == ApiKeys.DESCRIBE_GROUPS
        return {"groups": [self.described(name, broker) for name in body["groups"]]}

    def described(self, name: str, broker: int) -> dict[str, Any]:
        error = self.error_of(name, broker)
        if partition_of_key(name, PARTITIONS) == self.moved:
            self.asked -= 1
        state = "Empty" if name in GROUPS and not error else "Dead"
        return {"errorCode": int(error), "groupId": name, "groupState": state, "members": []}

    def error_of(self, name: str, broker: int) -> Errors:
        partition = partition_of_key(name, PARTITIONS)
        if self.leaders[partition][0] != broker:
            return Errors.NOT_COORDINATOR
        return self.error if partition == self.moved and self.asked > 0 else Errors.NONE

    def committed_offsets(self, group: str) -> list[tuple[str, int, int, int | None, str]]:
        return [("orders", 0, len(group), None, "")]


def described(cluster: Moving) -> GroupDescriptions:
    partitions = {number: PartitionDescription(0, 0, [0, 1], [0, 1]) for number in range(PARTITIONS)}
    topics = {CONSUMER_OFFSETS: TopicDescription(CONSUMER_OFFSETS, None, partitions)}
    description = Description("", [0, 1], topics, {}, 0)
    return describe_groups(cast("ClusterReader", cluster), description, lambda name: True)


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(groups, "_PAUSE", 0.001)
    monkeypatch.setattr(groups, "_PATIENCE", 0.05)


@pytest.mark.parametrize("asked", range(4))
@pytest.mark.parametrize("error", [Errors.NOT_COORDINATOR, Errors.COORDINATOR_LOAD_IN_PROGRESS])
def test_a_leader_that_has_not_begun_to_load(asked: int, error: Errors) -> None:
    found = described(Moving(asked, error))
    assert found.problems == []
    assert sorted(one.group for one in found.groups) == sorted(GROUPS)
    assert sorted(one.group for one in found.positions) == sorted(GROUPS)


@pytest.mark.parametrize("error", [Errors.NOT_COORDINATOR, Errors.COORDINATOR_LOAD_IN_PROGRESS])
def test_a_leader_that_never_loads(error: Errors) -> None:
    cluster = Moving(1_000_000, error)
    found = described(cluster)
    assert [one.group for one in found.groups] == ["audit"]
    assert found.problems == [f"groups in __consumer_offsets-{cluster.moved}: {error.name}"]


def test_no_leader() -> None:
    cluster = Moving(0)
    cluster.leaders[cluster.moved] = (-1, 4)
    found = described(cluster)
    assert [one.group for one in found.groups] == ["audit"]
    assert found.problems == [f"groups in __consumer_offsets-{cluster.moved}: COORDINATOR_NOT_AVAILABLE"]


def test_a_leader_that_changes_while_brokers_list() -> None:
    cluster = Moving(0)
    before = cluster.leaders[cluster.moved][0]
    cluster.changes = [(before, 4), (1 - before, 5), (1 - before, 5)]
    found = described(cluster)
    assert found.problems == []
    assert sorted(one.group for one in found.groups) == sorted(GROUPS)


def test_a_leader_that_joins() -> None:
    cluster = Moving(0)
    before = cluster.leaders[cluster.moved][0]
    cluster.changes = [(before, 4), (2, 5), (2, 5)]
    found = described(cluster)
    assert found.problems == []
    assert sorted(one.group for one in found.groups) == sorted(GROUPS)


def test_a_broker_that_leaves() -> None:
    """Another one leads its partitions, after a while."""
    cluster = Moving(0)
    before = cluster.leaders[cluster.moved][0]
    for partition, (leader, epoch) in cluster.leaders.items():
        if leader == before and partition != cluster.moved:
            cluster.leaders[partition] = (1 - before, epoch + 1)
    cluster.dead = {before}
    cluster.changes = [(before, 4), (before, 4), (-1, 5), (1 - before, 6), (1 - before, 6)]
    found = described(cluster)
    assert found.problems == []
    assert sorted(one.group for one in found.groups) == sorted(GROUPS)


def test_a_broker_that_does_not_answer() -> None:
    """It leads partitions for as long as it is waited for."""
    cluster = Moving(0)
    dead = cluster.leaders[cluster.moved][0]
    cluster.dead = {dead}
    found = described(cluster)
    assert "billing" not in [one.group for one in found.groups]
    assert f"groups of broker {dead}: BROKER_NOT_AVAILABLE" in found.problems
    assert f"groups in __consumer_offsets-{cluster.moved}: BROKER_NOT_AVAILABLE" in found.problems


def test_leaders_that_change_for_ever() -> None:
    cluster = Moving(0)
    before = cluster.leaders[cluster.moved][0]
    cluster.changes = [(before, epoch) for epoch in range(10_000)]
    assert described(cluster).problems == ["groups of coordinators that change: NOT_COORDINATOR"]


@pytest.mark.parametrize("code", [Errors.GROUP_AUTHORIZATION_FAILED, Errors.GROUP_ID_NOT_FOUND])
def test_other_errors_about_the_groups_that_nobody_has(code: Errors) -> None:
    class Refusing(Moving):
        def described(self, name: str, broker: int) -> dict[str, Any]:
            one = super().described(name, broker)
            return one if name in GROUPS else one | {"errorCode": int(code)}

    found = described(Refusing(0))
    assert found.problems == []
    assert len(found.groups) == len(GROUPS)


@pytest.mark.parametrize("partitions", [*range(1, 120), 997, 10_000])
def test_there_is_a_name_for_each_partition(partitions: int) -> None:
    coordinators = GroupCoordinators(cast("ClusterReader", Moving(0)), range(partitions))
    nobody = coordinators.moving({})
    assert len(nobody) == partitions


def test_a_hostile_number_of_partitions() -> None:
    coordinators = GroupCoordinators(cast("ClusterReader", Moving(0)), range(10_000_000))
    assert len(coordinators.moving({})) == 10_000
