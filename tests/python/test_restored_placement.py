"""`restore`: which copy of a partition leads, and where its replicas are."""

from __future__ import annotations

from pathlib import Path

import pytest
from dead_clusters import (
    BROKER_CONFIG,
    LOG,
    ORDERS,
    TOPIC_CONFIG,
    UNCLEAN,
    World,
    only,
    state_of,
)
from magicbyte.internal_topics.metadata.topics import PartitionState
from magicbyte.jobs.restoring.placement import in_sync_copies
from metadata_records import (
    config,
    ints,
    partition,
    partition_change,
    topic,
)
from replicas import batches, flip, offsets_of, replica


def test_a_partition_without_a_copy_stays_offline(tmp_path: Path) -> None:
    world = World(tmp_path, [topic("orders", 1), partition(1, 0, [1, 2]), partition(1, 1, [2, 3])])
    world.put(1, LOG)
    report = world.restore(1, voters=["1@h:1"])
    first, second = report["partitions"]
    assert (first["status"], first["isr"]) == ("online", [1])
    assert (second["status"], second["replicas"], second["isr"]) == ("missing", [2, 3], [2, 3])
    assert second["places"] == []
    assert state_of(tmp_path).topics[second["topic_id"]].partitions[1].replicas == [2, 3]


def test_a_node_without_its_disk_does_not_lead_an_empty_log(tmp_path: Path) -> None:
    world = World(tmp_path, [topic("orders", 1), partition(1, 0, [1])])
    report = world.restore()
    assert (only(report)["status"], only(report)["replicas"], only(report)["isr"]) == ("missing", [1], [])


def test_a_lost_replica_is_made_anew(tmp_path: Path) -> None:
    world = World(tmp_path, [topic("orders", 1), partition(1, 0, [1, 2])])
    world.put(2, LOG)
    report = world.restore()
    assert only(report)["isr"] == [1, 2]
    assert offsets_of(tmp_path / "out/node1/logs1") == [*range(200)]


def test_copies_that_were_not_in_sync_do_not_lead(tmp_path: Path) -> None:
    world = World(tmp_path, [topic("orders", 1), partition(1, 0, [1, 2, 3], isr=[3])])
    for node in (1, 2):
        world.put(node, LOG)
    report = world.restore(1, 2, voters=["1@h:1", "2@h:2"])
    assert only(report)["status"] == "out_of_sync"
    assert (only(report)["replicas"], only(report)["isr"]) == ([1, 2, 3], [3])
    assert offsets_of(tmp_path / "out/node2/logs1") == [*range(200)]
    assert sum("UNCLEAN" in step for step in report["steps"]) == 1


def test_copies_that_were_not_in_sync_where_the_isr_lost_its_disk(tmp_path: Path) -> None:
    """The node of the ISR is restored and gets a copy, too, but nobody knows that it is complete."""
    world = World(tmp_path, [topic("orders", 1), partition(1, 0, [1, 2], isr=[2])])
    world.put(1, LOG)
    report = world.restore()
    assert only(report)["status"] == "out_of_sync"
    assert (only(report)["replicas"], only(report)["isr"]) == ([1, 2], [])
    assert offsets_of(tmp_path / "out/node2/logs1") == [*range(200)]


def test_the_log_of_the_isr_counts_and_not_the_longest(tmp_path: Path) -> None:
    """A leader that was replaced had records that nobody else had, and the next one has written nothing."""
    world = World(tmp_path, [topic("orders", 1), partition(1, 0, [1, 2, 3], isr=[2, 3])])
    world.put(1, [*LOG, *batches(200, 240, epoch=3)])
    for node in (2, 3):
        world.put(node, LOG)
    report = world.restore()
    assert {(one["reason"], one["last_offset"]) for one in report["merged"][0]["left_out"]} == {
        ("past_the_end", 239)
    }
    for node in (1, 2, 3):
        assert offsets_of(tmp_path / "out" / f"node{node}/logs1") == [*range(200)]


def test_a_damaged_end_of_the_isr_is_taken_from_others(tmp_path: Path) -> None:
    world = World(tmp_path, [topic("orders", 1), partition(1, 0, [1, 2], isr=[2])])
    world.put(1, LOG)
    world.put(2, LOG)
    flip(world.log_dirs[2], [19])
    report = world.restore()
    assert report["merged"][0]["lost"] == []
    assert offsets_of(tmp_path / "out/node2/logs1") == [*range(200)]


@pytest.mark.parametrize("isr", [[2], [2, 3]])
def test_damage_before_the_end_of_the_isr_lets_no_other_copy_lead(tmp_path: Path, isr: list[int]) -> None:
    """Else records that were never committed would come back."""
    world = World(tmp_path, [topic("orders", 1), partition(1, 0, [1, 2, 3], isr=isr)])
    world.put(1, [*LOG, *batches(200, 240, epoch=3)])
    for node in isr:
        world.put(node, LOG)
    flip(world.log_dirs[2], [3])
    report = world.restore()
    assert {one["reason"] for one in report["merged"][0]["left_out"]} == {"past_the_end"}
    assert report["merged"][0]["lost"] == []
    assert offsets_of(tmp_path / "out/node2/logs1") == [*range(200)]


def test_a_whole_copy_of_the_isr_leads_where_another_lost_its_end(tmp_path: Path) -> None:
    world = World(tmp_path, [topic("orders", 1), partition(1, 0, [1, 2, 3], isr=[2, 3])])
    world.put(1, [*LOG, *batches(200, 240, epoch=3)])
    for node in (2, 3):
        world.put(node, LOG)
    flip(world.log_dirs[2], [19])
    world.restore()
    assert offsets_of(tmp_path / "out/node2/logs1") == [*range(200)]


def test_the_end_of_the_isr_that_its_checkpoint_knows_is_taken_from_others(tmp_path: Path) -> None:
    world = World(tmp_path, [topic("orders", 1), partition(1, 0, [1, 2], isr=[2])])
    world.put(1, LOG)
    world.put(2, LOG[:10])
    high_watermark(world.log_dirs[2], 200)
    report = world.restore()
    assert report["merged"][0]["lost"] == []
    assert offsets_of(tmp_path / "out/node2/logs1") == [*range(200)]


def high_watermark(log_dir: Path, offset: int) -> None:
    (log_dir / "replication-offset-checkpoint").write_text(f"0\n1\norders 0 {offset}\n")


def test_an_empty_file_of_a_log_that_had_records_stays_offline(tmp_path: Path) -> None:
    """As after a crash of the file system: with an empty log, groups would jump."""
    world = World(tmp_path, [topic("orders", 1), partition(1, 0, [1, 2], isr=[1])])
    world.put(1, [b""])
    high_watermark(world.log_dirs[1], 200)
    assert only(world.restore(out=None))["status"] == "missing"
    world.put(2, LOG[:5])
    assert only(world.restore())["status"] == "out_of_sync"


def test_an_empty_log_at_its_high_watermark_is_online(tmp_path: Path) -> None:
    world = World(tmp_path, [topic("orders", 1), partition(1, 0, [1])])
    replica(world.log_dirs[1], {700: []})
    high_watermark(world.log_dirs[1], 700)
    assert only(world.restore())["status"] == "online"


def test_a_lost_branch_never_leads(tmp_path: Path) -> None:
    world = World(tmp_path, [topic("orders", 1), partition(1, 0, [1, 2], isr=[1, 2])])
    world.put(1, [*ORDERS[0], *batches(100, 300, epoch=3, value="lost")])
    world.put(2, [*ORDERS[0], *batches(100, 160, epoch=5)])
    report = world.restore()
    assert {one["reason"] for one in report["merged"][0]["left_out"]} == {"diverged"}
    for node in (1, 2):
        assert offsets_of(tmp_path / "out" / f"node{node}/logs1") == [*range(160)]


def test_a_replica_that_was_being_added(tmp_path: Path) -> None:
    adding = partition_change(1, 0, {2: ints([1, 2]), 4: ints([2])})
    world = World(tmp_path, [topic("orders", 1), partition(1, 0, [1]), adding])
    world.put(1, LOG)
    world.put(2, LOG[:5])
    report = world.restore()
    assert only(report)["cancelled"] == [2]
    assert (only(report)["replicas"], only(report)["isr"]) == ([1], [1])
    alone = world.restore(2, out=None, voters=["2@h:1"])
    assert (only(alone)["status"], only(alone)["isr"]) == ("out_of_sync", [1])


@pytest.mark.parametrize(
    ("isr", "elr", "last", "here", "expected"),
    [
        ([1, 2], [], [], {1, 2, 3}, [1, 2]),
        ([1], [2], [], {2, 3}, [2]),
        ([1], [2], [3], {3}, []),
        ([], [2], [3], {3}, []),
        ([], [], [3], {1, 3}, [3]),
        ([], [], [], {1, 2, 3}, []),
        ([1], [], [], set(), []),
    ],
)
def test_which_copies_are_in_sync(
    isr: list[int], elr: list[int], last: list[int], here: set[int], expected: list[int]
) -> None:
    state = PartitionState([1, 2, 3], isr, -1, 0, [], elr=elr, last_known_elr=last)
    assert in_sync_copies(state, here) == expected


def test_unclean_election_is_switched_off(tmp_path: Path) -> None:
    records = [
        topic("orders", 1),
        partition(1, 0, [1]),
        config(TOPIC_CONFIG, "orders", UNCLEAN, "true"),
        config(BROKER_CONFIG, "", UNCLEAN, "true"),
        config(TOPIC_CONFIG, "other", UNCLEAN, "false"),
    ]
    world = World(tmp_path, records)
    world.put(1, LOG)
    report = world.restore()
    assert [one["setting"] for one in report["switched_off"]] == [
        "eligible.leader.replicas.version=1",
        f"orders: {UNCLEAN}=true",
        f"all brokers: {UNCLEAN}=true",
    ]
    assert all(any(one["command"] in step for step in report["steps"]) for one in report["switched_off"])
    configs = state_of(tmp_path).configs
    assert configs.of(TOPIC_CONFIG, "orders") == configs.of(BROKER_CONFIG, "") == {}
    assert configs.of(TOPIC_CONFIG, "other") == {UNCLEAN: "false"}


def test_min_isr_that_cannot_be_met_is_named(tmp_path: Path) -> None:
    records = [
        topic("orders", 1),
        partition(1, 0, [1, 2]),
        config(TOPIC_CONFIG, "orders", "min.insync.replicas", "2"),
    ]
    world = World(tmp_path, records)
    world.put(1, LOG)
    report = world.restore(1, out=None, voters=["1@h:1"])
    assert any("min.insync.replicas=2 and 1 replica:" in step for step in report["steps"])
    assert not any("min.insync" in step for step in world.restore(out=None)["steps"])


@pytest.mark.parametrize(("data", "status"), [(b"", "online"), (bytes(5000), "out_of_sync")])
def test_empty_logs_are_restored(tmp_path: Path, data: bytes, status: str) -> None:
    world = World(tmp_path, [topic("orders", 1), partition(1, 0, [1, 2])])
    for node in (1, 2):
        world.put(node, [data])
    report = world.restore()
    assert report["balanced"]
    assert only(report)["status"] == status
    for node in (1, 2):
        assert offsets_of(tmp_path / "out" / f"node{node}/logs1") == []


def test_a_log_of_which_nothing_is_readable_stays_offline(tmp_path: Path) -> None:
    world = World(tmp_path, [topic("orders", 1), partition(1, 0, [1, 2]), partition(1, 1, [1, 2])])
    world.put(1, [b"garbage" * 1000])
    world.put(2, [])
    world.put(2, LOG, "orders-1")
    report = world.restore()
    first, second = report["partitions"]
    assert (first["status"], first["replicas"], first["isr"], first["places"]) == ("missing", [1, 2], [], [])
    assert second["status"] == "online"
    assert report["balanced"]
    assert report["problems"]
    assert not list((tmp_path / "out").rglob("orders-0"))


def test_a_ruined_copy_of_the_isr_vouches_for_nothing(tmp_path: Path) -> None:
    world = World(tmp_path, [topic("orders", 1), partition(1, 0, [1, 2], isr=[1])])
    world.put(1, [b"garbage" * 1000])
    world.put(2, LOG)
    assert only(world.restore())["status"] == "out_of_sync"


def test_a_log_that_expired_keeps_its_end(tmp_path: Path) -> None:
    """A broker would assign offsets a second time."""
    world = World(tmp_path, [topic("orders", 1), partition(1, 0, [1])])
    replica(world.log_dirs[1], {700: []})
    world.restore()
    assert [path.name for path in (tmp_path / "out/node1/logs1/orders-0").glob("*.log")] == [f"{700:020}.log"]


# Copies without records


def test_an_empty_copy_that_was_in_sync_does_not_lead_beside_records(tmp_path: Path) -> None:
    """The disk of the only leader was replaced: what was committed is not known."""
    world = World(tmp_path, [topic("orders", 1), partition(1, 0, [1, 2, 3], isr=[1])])
    empty = world.put(1, [])
    for node in (2, 3):
        world.put(node, LOG)
    report = world.restore()
    assert (only(report)["status"], only(report)["isr"]) == ("out_of_sync", [])
    assert offsets_of(tmp_path / "out/node2/logs1") == [*range(200)]
    (problem,) = report["metadata_problems"]
    assert f"orders-0: {empty} was in sync and is empty" in problem
    assert sum("UNCLEAN" in step for step in report["steps"]) == 1


@pytest.mark.parametrize(
    ("isr", "elr", "empty", "full", "status"),
    [
        ([1, 2], [], [1], [3], "out_of_sync"),
        ([1, 2], [], [1], [2, 3], "online"),
        ([], [1], [1], [2], "out_of_sync"),
        ([1, 2, 3], [], [1, 2], [3], "online"),
        ([1, 2, 3], [], [1, 2, 3], [], "online"),
        ([1], [], [1], [], "online"),
        ([2], [], [1], [2], "online"),
        ([1], [2], [1], [2], "online"),  # the ELR has all committed records, too
    ],
)
def test_which_empty_copies_count(
    tmp_path: Path, isr: list[int], elr: list[int], empty: list[int], full: list[int], status: str
) -> None:
    world = World(tmp_path, [topic("orders", 1), partition(1, 0, [1, 2, 3], isr=isr, elr=elr)])
    for node in empty:
        world.put(node, [])
    for node in full:
        world.put(node, LOG)
    report = world.restore()
    assert only(report)["status"] == status
    assert bool(report["metadata_problems"]) == (status != "online")


def test_an_empty_copy_is_no_proof_where_the_metadata_lags(tmp_path: Path) -> None:
    """All replicas are there, but the one that is empty may have had the last epoch."""
    world = World(tmp_path, [topic("orders", 1), partition(1, 0, [1, 2], epoch=2)])
    world.put(1, [])
    world.put(2, LOG)
    assert only(world.restore())["status"] == "out_of_sync"


def test_a_log_that_retention_has_emptied_was_in_sync(tmp_path: Path) -> None:
    """It ends where its empty segment begins, after the records that only a lagging copy still has."""
    world = World(tmp_path, [topic("orders", 1), partition(1, 0, [1, 2], isr=[1])])
    replica(world.log_dirs[1], {500: []})
    world.put(2, LOG)
    report = world.restore()
    assert (only(report)["status"], report["metadata_problems"]) == ("online", [])
    assert report["merged"][0]["log_end_offset"] == 500
    assert (tmp_path / f"out/node1/logs1/orders-0/{500:020}.log").read_bytes() == b""


@pytest.mark.parametrize("in_place", [False, True])
def test_a_copy_of_zeros_does_not_lead(tmp_path: Path, in_place: bool) -> None:
    world = World(tmp_path, [topic("orders", 1), partition(1, 0, [1])])
    zeros = world.put(1, [bytes(5000)])
    report = world.restore(**({"out": None, "in_place": True} if in_place else {}))
    assert (only(report)["status"], only(report)["isr"]) == ("out_of_sync", [])
    (problem,) = report["metadata_problems"]
    assert f"orders-0: {zeros} was in sync and has bytes, but no batch" in problem


def test_zeros_beside_records_do_not_count(tmp_path: Path) -> None:
    world = World(tmp_path, [topic("orders", 1), partition(1, 0, [1, 2], isr=[1])])
    world.put(1, [bytes(5000)])
    world.put(2, LOG)
    assert only(world.restore())["status"] == "out_of_sync"


@pytest.mark.parametrize(
    "setting", [(TOPIC_CONFIG, "orders", "preallocate"), (BROKER_CONFIG, "", "log.preallocate")]
)
def test_a_preallocated_log_is_empty(tmp_path: Path, setting: tuple[int, str, str]) -> None:
    records = [topic("orders", 1), partition(1, 0, [1]), config(*setting, "true")]
    world = World(tmp_path, records)
    world.put(1, [bytes(5000)])
    report = world.restore()
    assert (only(report)["status"], report["metadata_problems"]) == ("online", [])
