"""`restore`: directories and metadata that contradict each other are decided, and the reason is named."""

from __future__ import annotations

import shutil
import struct
from pathlib import Path
from typing import Any

import magicbyte
import pytest
from conftest import Cli
from dead_clusters import LOG, SETTINGS, TOPIC_CONFIG, World, directory_id, only, state_of
from magicbyte import RefusedError
from magicbyte.log_dir import format_offset_checkpoint
from metadata_records import batches as metadata_batches
from metadata_records import (
    broker,
    config,
    feature,
    frame,
    partition,
    partition_change,
    producer_ids,
    topic,
    topic_id,
    write_meta,
)
from replicas import batches, flip, offsets_of, replica

HIGHEST = (1 << 31) - 1
PAIR = [topic("orders", 1), topic("lat", 2), partition(1, 0, [1]), partition(2, 0, [1])]


def problem(report: Any, text: str) -> str:
    """The only problem of the metadata that has this text."""
    (one,) = (one for one in report["metadata_problems"] if text in one)
    return str(one)


# Metadata that lags


@pytest.mark.parametrize("isr", [[1], [1, 2]])
def test_an_isr_of_an_earlier_leader_is_not_believed(tmp_path: Path, isr: list[int]) -> None:
    """A later leader went on without node 1."""
    world = World(tmp_path, [topic("orders", 1), partition(1, 0, [1, 2], isr=isr, epoch=3)])
    world.put(1, [*LOG, *batches(200, 300, epoch=3)])
    world.put(2, [*LOG, *batches(200, 240, epoch=5)])
    report = world.restore()
    assert only(report)["status"] == "online"
    assert only(report)["leader_epoch"] == 6
    assert offsets_of(tmp_path / "out/node1/logs1") == [*range(240)]
    assert "orders-0" in problem(report, "leader epoch 5, the metadata 3")


@pytest.mark.parametrize("has_id", [True, False])
def test_brokers_that_were_migrated_from_zookeeper(tmp_path: Path, has_id: bool) -> None:
    """They keep the old form of their meta.properties, which a controller of KRaft does not have."""
    brokers = [broker(node, [topic_id(node)]) for node in (1, 2)]
    world = World(tmp_path, [*brokers, topic("orders", 1), partition(1, 0, [1, 2])], dynamic=False)
    for node in (1, 2):
        own = f"directory.id={directory_id(node)}\n" if has_id else ""
        text = f"broker.id={node}\nversion=0\ncluster.id=abc\n{own}"
        (world.log_dirs[node] / "meta.properties").write_text(text)
        world.put(node, LOG)
    report = world.restore(voters=["3@localhost:9093"])
    assert only(report)["replicas"] == [1, 2]
    for node in (1, 2):
        assert offsets_of(tmp_path / f"out/node{node}/logs1") == [*range(200)]


def test_records_of_a_later_version_are_named(tmp_path: Path, cli: Cli) -> None:
    """They have settings that nobody can restore."""
    later = [frame(99, b"\1\2\0"), frame(98, b"\1\2\0"), frame(99, b"\1\2\0")]
    world = World(tmp_path, [topic("orders", 1), partition(1, 0, [1]), *later, *SETTINGS])
    world.put(1, LOG)
    found = [one for one in world.restore()["metadata_problems"] if "unknown type" in one]
    assert found == [f"records of the unknown type {number} are left out" for number in (99, 98)]
    shown = cli("cluster", world.log_dirs[1], code=1)
    assert shown.count("unknown type 99") == 1


def test_a_replica_is_not_here_and_the_isr_is_outdated(tmp_path: Path) -> None:
    world = World(tmp_path, [topic("orders", 1), partition(1, 0, [1, 2, 3], epoch=2)])
    for node in (1, 2):
        world.put(node, LOG)
    report = world.restore()
    assert only(report)["status"] == "out_of_sync"
    assert only(report)["isr"] == []
    assert problem(report, "older than the logs of 1 partition,")
    assert any("UNCLEAN" in step for step in report["steps"])


def test_an_epoch_that_only_a_checkpoint_has_is_evidence_too(tmp_path: Path) -> None:
    world = World(tmp_path, [topic("orders", 1), partition(1, 0, [1, 2], epoch=3)])
    world.put(1, LOG, epochs=[(0, 0), (3, 100), (9, 200)])
    assert only(world.restore())["status"] == "out_of_sync"


def test_metadata_that_does_not_lag_is_not_doubted(tmp_path: Path) -> None:
    world = World(tmp_path, [topic("orders", 1), partition(1, 0, [1, 2, 3], epoch=3)])
    world.put(1, LOG, epochs=[(0, 0), (3, 100)])
    report = world.restore()
    assert (only(report)["status"], report["metadata_problems"]) == ("online", [])


def test_a_lone_survivor_that_lagged(tmp_path: Path) -> None:
    """Its copy of the metadata ends before the other one's."""
    world = World(tmp_path, [topic("orders", 1), partition(1, 0, [1, 2], epoch=3), *SETTINGS])
    for node in (1, 2):
        world.put(node, [*LOG, *batches(200, 210, epoch=6)])
    report = world.restore(1, voters=["1@h:1"])
    assert problem(report, "older than the logs")
    assert problem(report, "1,000,000 producer ids from 7,000 on are skipped: brokers may have got more")
    assert state_of(tmp_path).next_producer_id == 7000 + 1_000_000


def test_the_last_producer_id_leaves_nothing_to_skip(tmp_path: Path) -> None:
    last = (1 << 63) - 1
    world = World(tmp_path, [topic("orders", 1), partition(1, 0, [1], epoch=1), producer_ids(last)])
    world.put(1, LOG)
    world.restore()
    assert state_of(tmp_path).next_producer_id == last


@pytest.mark.parametrize("number", [5, 1])
def test_topics_that_the_metadata_does_not_know(tmp_path: Path, number: int) -> None:
    world = World(tmp_path, [topic("orders", 1), partition(1, 0, [1])])
    world.put(1, LOG)
    name = "later" if number == 5 else "orders"
    world.put(1, LOG, f"{name}-7", topic_id=directory_id(5))
    report = world.restore()
    assert directory_id(5) in problem(report, "ids of 1 topic on the disks")
    assert [one["topic_id"] for one in report["unassigned"]] == [directory_id(5)]


def test_many_partitions_are_one_problem(tmp_path: Path) -> None:
    records = [topic("orders", 1), *(partition(1, number, [1], epoch=1) for number in range(30))]
    world = World(tmp_path, records)
    for number in range(30):
        world.put(1, LOG, f"orders-{number}")
    assert problem(world.restore(), "the logs of 30 partitions")


# Names that no controller gives


@pytest.mark.parametrize("name", ["../evil", "", ".", "..", "a/b", "a b", "a\0b", "ä", "a" * 250])
def test_a_topic_that_cannot_be_is_left_out(tmp_path: Path, name: str) -> None:
    records = [topic(name, 2), partition(2, 0, [1]), config(TOPIC_CONFIG, name, "retention.ms", "1")]
    world = World(tmp_path, [topic("orders", 1), partition(1, 0, [1]), *records])
    world.put(1, LOG)
    report = world.restore()
    assert only(report)["topic"] == "orders"
    assert problem(report, f"a topic {name!r}, which is no name of a topic")
    state = state_of(tmp_path)
    assert [one.name for one in state.topics.values()] == ["orders"]
    assert state.topic_configs(name) == {}


def test_a_partition_that_cannot_be_is_left_out(tmp_path: Path) -> None:
    records = [topic("orders", 1), partition(1, -1, [1]), partition(1, 0, [1]), partition(1, HIGHEST, [1])]
    world = World(tmp_path, records)
    world.put(1, LOG)
    report = world.restore()
    assert [one["partition"] for one in report["partitions"]] == [0, HIGHEST]
    assert problem(report, "a partition -1 of 'orders'")
    assert sorted(state_of(tmp_path).topics[directory_id(1)].partitions) == [0, HIGHEST]


# Leader epochs that leave no room


def test_one_batch_with_the_highest_epoch_decides_only_its_partition(tmp_path: Path) -> None:
    world = World(tmp_path, PAIR)
    world.put(1, [*LOG, *batches(200, 210, epoch=HIGHEST)])
    world.put(1, LOG, "lat-0", topic_id=directory_id(2))
    report = world.restore()
    status = {one["topic"]: one for one in report["partitions"]}
    assert {name: one["status"] for name, one in status.items()} == {"orders": "unelectable", "lat": "online"}
    assert (status["orders"]["places"], status["orders"]["isr"]) == ([], [])
    assert report["balanced"]
    assert not list((tmp_path / "out").rglob("orders-0"))
    assert state_of(tmp_path).topics[directory_id(1)].partitions[0].leader_epoch == 3


def test_another_copy_goes_on_without_it(tmp_path: Path) -> None:
    world = World(tmp_path, [topic("orders", 1), partition(1, 0, [1, 2])])
    world.put(1, [*LOG, *batches(200, 210, epoch=HIGHEST)])
    world.put(2, LOG)
    report = world.restore()
    assert (only(report)["status"], only(report)["leader_epoch"]) == ("online", 4)
    assert offsets_of(tmp_path / "out/node1/logs1") == [*range(200)]
    assert str(world.log_dirs[1]) in problem(report, "no election could come")


def test_the_epoch_of_the_metadata_itself_leaves_no_room(tmp_path: Path) -> None:
    world = World(tmp_path, [topic("orders", 1), partition(1, 0, [1], epoch=HIGHEST)])
    world.put(1, LOG)
    report = world.restore()
    assert (only(report)["status"], only(report)["leader_epoch"]) == ("unelectable", HIGHEST)


def partition_at(number: int, offset: int, value: int) -> bytes:
    """A `PartitionRecord` of node 1 with another number at this place after its leader."""
    record = bytearray(partition(number, 0, [1]))
    at = record.index(struct.pack(">iii", 1, 3, 7)) + offset
    record[at : at + 4] = struct.pack(">i", value)
    return bytes(record)


def test_a_partition_epoch_that_leaves_no_room(tmp_path: Path) -> None:
    world = World(tmp_path, [topic("orders", 1), topic("lat", 2), partition_at(1, 8, HIGHEST), PAIR[3]])
    world.put(1, LOG)
    world.put(1, LOG, "lat-0", topic_id=directory_id(2))
    status = {one["topic"]: one["status"] for one in world.restore()["partitions"]}
    assert status == {"orders": "unelectable", "lat": "online"}


def test_an_election_after_the_highest_epoch(tmp_path: Path) -> None:
    elected = partition_change(1, 0, {1: struct.pack(">i", 1)})
    world = World(tmp_path, [topic("orders", 1), partition(1, 0, [1], epoch=HIGHEST), elected])
    assert only(world.restore())["status"] == "unelectable"


def test_the_command_says_why_it_stays_offline(tmp_path: Path, cli: Cli) -> None:
    world = World(tmp_path, [topic("orders", 1), partition(1, 0, [1])])
    world.put(1, batches(0, 50, epoch=HIGHEST))
    shown = cli("restore", *world.log_dirs.values(), "--dry-run", code=1)
    assert "orders-0 stays offline: an epoch of it is so high" in shown


# metadata.version


@pytest.fixture
def unversioned(tmp_path: Path) -> World:
    world = World(tmp_path, [topic("orders", 1), partition(1, 0, [1])])
    for log_dir in world.log_dirs.values():
        (log_dir / "__cluster_metadata-0" / f"{0:020}.log").write_bytes(
            b"".join(metadata_batches([topic("orders", 1), partition(1, 0, [1])], epoch=1))
        )
    world.put(1, LOG)
    return world


def test_metadata_without_a_version_is_refused(unversioned: World) -> None:
    with pytest.raises(RefusedError, match=r"no metadata\.version"):
        unversioned.restore(voters=["1@h:1"])
    assert not (unversioned.root / "out").exists()


def test_the_version_is_given(unversioned: World) -> None:
    report = unversioned.restore(voters=["1@h:1"], metadata_version=25)
    assert report["steps"][-1].startswith("with metadata.version, the levels of other features are lost")
    state = state_of(unversioned.root)
    assert state.features == {"metadata.version": 25}
    assert next(iter(state.topics.values())).partitions[0].directories == ["A" * 22]


def test_the_version_is_given_where_a_metadata_transaction_is_open(unversioned: World) -> None:
    records = [topic("orders", 1), partition(1, 0, [1]), frame(23, b"\0"), topic("other", 2)]
    for log_dir in unversioned.log_dirs.values():
        path = log_dir / "__cluster_metadata-0" / f"{0:020}.log"
        path.write_bytes(b"".join(metadata_batches(records, epoch=1)))
    unversioned.restore(voters=["1@h:1"], metadata_version=25)
    state = state_of(unversioned.root)
    assert (state.features, [*state.names]) == ({"metadata.version": 25}, ["orders"])


def test_a_version_that_contradicts_the_metadata_is_refused(tmp_path: Path) -> None:
    world = World(tmp_path, [topic("orders", 1), partition(1, 0, [1])])
    with pytest.raises(RefusedError, match="says 26"):
        world.restore(metadata_version=26)
    report = world.restore(metadata_version=25)
    assert not any("features are lost" in step for step in report["steps"])
    assert state_of(tmp_path).features == {"metadata.version": 25}


def test_a_version_that_was_removed_counts_as_none(tmp_path: Path) -> None:
    world = World(tmp_path, [topic("orders", 1), feature("metadata.version", 0)])
    with pytest.raises(RefusedError, match="metadata-version"):
        world.restore(out=None)


# A disk and its backup


def backup(world: World, *, node: int = 1) -> Path:
    return Path(shutil.copytree(world.log_dirs[node], world.root / f"backup{node}"))


def test_a_disk_and_its_backup_are_named(tmp_path: Path) -> None:
    world = World(tmp_path, [topic("orders", 1), partition(1, 0, [1])])
    world.put(1, LOG)
    copy = backup(world)
    report = magicbyte.restore([*world.log_dirs.values(), copy], out=tmp_path / "out")
    assert str(copy) in problem(report, f"copies of directory {directory_id(1)} of broker 1")
    assert len(report["nodes"][0]["log_dirs"]) == 1
    assert offsets_of(tmp_path / "out/node1/logs1") == [*range(200)]


def test_an_old_backup_does_not_lead(tmp_path: Path) -> None:
    """It is whole, and the disk is damaged at its end: what the disk has after the backup comes back."""
    world = World(tmp_path, [topic("orders", 1), partition(1, 0, [1])])
    world.put(1, LOG[:12])
    copy = backup(world)
    shutil.rmtree(world.log_dirs[1] / "orders-0")
    world.put(1, LOG)
    flip(world.log_dirs[1], [3, 19])
    report = magicbyte.restore([*world.log_dirs.values(), copy], out=tmp_path / "out")
    (merged,) = report["merged"]
    assert (merged["lost"], merged["log_end_offset"], merged["left_out"]) == ([(190, 199)], 200, [])


def test_a_disk_and_its_backup_without_directory_ids(tmp_path: Path) -> None:
    world = World(tmp_path, [topic("orders", 1), partition(1, 0, [1])], dynamic=False)
    world.put(1, LOG)
    meta = world.log_dirs[1] / "meta.properties"
    meta.write_text("".join(line for line in meta.read_text().splitlines(True) if "directory.id" not in line))
    copy = backup(world)
    report = magicbyte.restore([world.log_dirs[1], copy], out=tmp_path / "out", nodes=[1], voters=["1@h:1"])
    assert str(copy / "orders-0") in problem(report, "1 partition of node 1, such as orders-0,")


def test_one_directory_of_two_nodes(tmp_path: Path) -> None:
    world = World(tmp_path, [topic("orders", 1), partition(1, 0, [1, 2])])
    world.put(1, LOG)
    write_meta(world.log_dirs[2], 2, directory_id(1))
    report = world.restore(voters=["1@h:1"])
    assert problem(report, f"directory {directory_id(1)} is of 2 nodes, 1, 2")


def test_two_disks_of_a_node_are_no_contradiction(tmp_path: Path) -> None:
    world = World(tmp_path, PAIR)
    world.put(1, LOG)
    second = tmp_path / "b1-second"
    write_meta(second, 1, directory_id(77))
    replica(second, {0: LOG}, name="lat-0", topic_id=directory_id(2))
    report = magicbyte.restore([*world.log_dirs.values(), second], out=tmp_path / "out")
    assert report["metadata_problems"] == []


# metadata.log.dir


def separated(tmp_path: Path, records: list[bytes]) -> list[Path]:
    """The directories of a node: one for the metadata, one for partitions."""
    world = World(tmp_path, records)
    data = tmp_path / "data"
    write_meta(data, 1, directory_id(77))
    replica(data, {0: LOG}, topic_id=directory_id(1))
    return [world.log_dirs[1], data]


@pytest.mark.parametrize("registered", [(), (77,)])
def test_a_directory_for_the_metadata_only(tmp_path: Path, registered: tuple[int, ...]) -> None:
    records = [topic("orders", 1), partition(1, 0, [1]), broker(1, [topic_id(one) for one in registered])]
    report = magicbyte.restore(separated(tmp_path, records), out=tmp_path / "out", voters=["1@h:1"])
    assert [(one["place"], one["is_metadata"]) for one in report["nodes"][0]["log_dirs"]] == [
        ("node1/metadata", True),
        ("node1/logs1", False),
    ]
    assert report["voters"][0]["directory_id"] == directory_id(1)
    out = tmp_path / "out/node1"
    assert (out / "metadata/__cluster_metadata-0" / report["snapshot"]).exists()
    assert directory_id(1) in (out / "metadata/meta.properties").read_text()
    assert offsets_of(out / "logs1") == [*range(200)]
    assert (
        f"log.dirs={tmp_path}/out/node1/logs1 metadata.log.dir={tmp_path}/out/node1/metadata"
        in (report["steps"][0])
    )


def test_a_partition_is_not_placed_where_the_metadata_is(tmp_path: Path) -> None:
    records = [*PAIR[:3], partition(2, 0, [2])]
    sources = separated(tmp_path, records)
    other = tmp_path / "b2"
    replica(other, {0: LOG}, name="lat-0", topic_id=directory_id(2))
    report = magicbyte.restore([*sources, other], out=tmp_path / "out", nodes=[1], voters=["1@h:1"])
    places = {one["topic"]: one["places"] for one in report["partitions"]}
    assert places == {"orders": ["node1/logs1"], "lat": ["node1/logs1"]}


def test_a_registered_log_dir_without_partitions_stays_one(tmp_path: Path) -> None:
    records = [topic("orders", 1), partition(1, 0, [1]), broker(1, [topic_id(1), topic_id(77)])]
    report = magicbyte.restore(separated(tmp_path, records), out=tmp_path / "out", voters=["1@h:1"])
    assert [one["place"] for one in report["nodes"][0]["log_dirs"]] == ["node1/logs1", "node1/logs2"]


def test_the_only_directory_of_a_node_is_for_everything(tmp_path: Path) -> None:
    world = World(tmp_path, [topic("orders", 1), partition(1, 0, [1])])
    world.put(2, LOG)
    report = world.restore()
    assert [one["place"] for one in report["nodes"][0]["log_dirs"]] == ["node1/logs1"]
    assert offsets_of(tmp_path / "out/node1/logs1") == [*range(200)]


def test_what_was_restored_is_restored_again(tmp_path: Path) -> None:
    records = [topic("orders", 1), partition(1, 0, [1])]
    magicbyte.restore(separated(tmp_path, records), out=tmp_path / "out", voters=["1@h:1"])
    again = magicbyte.restore([tmp_path / "out"], out=tmp_path / "again")
    assert [one["place"] for one in again["nodes"][0]["log_dirs"]] == ["node1/metadata", "node1/logs1"]


# Partitions without their directory


@pytest.mark.parametrize("isr", [[1], [1, 2]])
def test_a_directory_without_a_log_is_not_led(tmp_path: Path, isr: list[int]) -> None:
    world = World(tmp_path, [topic("orders", 1), partition(1, 0, [1, 2], isr=isr)])
    directory = world.log_dirs[1] / "orders-0"
    directory.mkdir()
    (directory / "partition.metadata").write_text(f"version: 0\ntopic_id: {directory_id(1)}\n")
    report = world.restore()
    assert (only(report)["status"], only(report)["isr"], only(report)["places"]) == ("missing", [], [])


def test_an_empty_log_of_which_other_files_know_more_is_not_led(tmp_path: Path) -> None:
    world = World(tmp_path, [topic("orders", 1), partition(1, 0, [1])])
    (world.put(1, [b""]) / f"{200:020}.snapshot").write_bytes(b"")
    assert only(world.restore())["status"] == "missing"


def test_an_empty_log_of_which_a_checkpoint_of_another_node_knows_more_is_not_led(tmp_path: Path) -> None:
    world = World(tmp_path, [topic("orders", 1), partition(1, 0, [1, 2])])
    for node in (1, 2):
        world.put(node, [b""])
    text = format_offset_checkpoint({("orders", 0): 200})
    (world.log_dirs[2] / "replication-offset-checkpoint").write_text(text)
    assert only(world.restore())["status"] == "missing"


def test_a_wrong_epoch_between_right_ones_is_repaired(tmp_path: Path) -> None:
    """No CRC covers it. It is no evidence that the metadata is old, either."""
    world = World(tmp_path, [topic("orders", 1), partition(1, 0, [1, 2])])
    log = [*LOG[:15], *batches(150, 160, epoch=HIGHEST), *LOG[16:]]
    world.put(1, log)
    report = world.restore()
    assert only(report)["status"] == "online"
    assert report["merged"][0]["repaired_batches"] == 1
    assert report["metadata_problems"] == []
    assert offsets_of(tmp_path / "out/node1/logs1") == [*range(200)]


def test_a_checkpoint_with_the_highest_epoch_is_not_believed(tmp_path: Path) -> None:
    world = World(tmp_path, [topic("orders", 1), partition(1, 0, [1, 2])])
    world.put(1, LOG, epochs=[(0, 0), (3, 100), (HIGHEST, 200)])
    report = world.restore()
    assert (only(report)["status"], report["metadata_problems"]) == ("online", [])
