"""`restore`: the disks of a dead cluster become directories on which its nodes start."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import magicbyte
import pytest
from click.testing import CliRunner
from conftest import Cli
from dead_clusters import (
    LOG,
    SETTINGS,
    TOPIC_CONFIG,
    UNCLEAN,
    World,
    directory_id,
    only,
    state_of,
)
from magicbyte import RefusedError, _core
from magicbyte.cli.app import app
from magicbyte.log_dir import format_offset_checkpoint, read_offset_checkpoint
from metadata_records import (
    batches as metadata_batches,
)
from metadata_records import (
    broker,
    config,
    feature,
    frame,
    partition,
    producer_ids,
    quota,
    remove_topic,
    topic,
    topic_id,
    write_meta,
)
from replicas import batches, content, flip, offsets_of, replica


@pytest.fixture
def world(tmp_path: Path) -> World:
    made = World(tmp_path, [topic("orders", 1), partition(1, 0, [1, 2, 3]), *SETTINGS])
    for node in (1, 2, 3):
        made.put(node, LOG)
    return made


def test_every_node_gets_the_same_log(world: World) -> None:
    before = content(world.root)
    report = world.restore()
    assert report["balanced"]
    assert only(report)["status"] == "online"
    assert (only(report)["replicas"], only(report)["isr"]) == ([1, 2, 3], [1, 2, 3])
    for node in (1, 2, 3):
        place = world.root / "out" / f"node{node}" / "logs1"
        assert offsets_of(place) == [*range(200)]
        assert (place / "meta.properties").read_bytes() == (
            world.log_dirs[node] / "meta.properties"
        ).read_bytes()
        assert directory_id(1) in (place / "orders-0" / "partition.metadata").read_text()
        assert {path.name for path in (place / "__cluster_metadata-0").iterdir()} == {report["snapshot"]}
        assert not (place / ".kafka_cleanshutdown").exists()
    assert {name: data for name, data in content(world.root).items() if not name.startswith("out/")} == before
    assert json.loads((world.root / "out" / "reconciliation.json").read_text()) == json.loads(
        json.dumps(report)
    )


def test_replicas_do_not_share_files(world: World) -> None:
    world.restore()
    logs = [world.root / "out" / f"node{node}/logs1/orders-0/{0:020}.log" for node in (1, 2)]
    assert logs[0].stat().st_ino != logs[1].stat().st_ino


def test_the_snapshot_goes_on_where_the_metadata_ended(world: World) -> None:
    report = world.restore()
    end = 2 + 2 + 2 + len(SETTINGS)
    assert report["snapshot"] == f"{end:020}-{1:010}.checkpoint"
    path = world.root / "out/node1/logs1/__cluster_metadata-0" / report["snapshot"]
    data = path.read_bytes()
    read = list(magicbyte.read_batches(data))
    assert [batch.is_control for batch in read] == [True, False, True]
    assert [record.offset for batch in read for record in batch] == [*range(3 + 3 + len(SETTINGS) + 1)]
    kinds = [int.from_bytes(record.key_bytes[2:4]) for batch in read if batch.is_control for record in batch]
    assert kinds == [3, 5, 6, 4]  # header, KRaft version, voters, footer
    records = [record.value_bytes for record in read[1]]
    assert records[0] == feature("metadata.version", 25)
    assert records[1] == topic("orders", 1)
    assert records[3:] == SETTINGS


def test_the_state_is_the_old_one_but_for_leaders(world: World) -> None:
    world.restore()
    state = state_of(world.root)
    (orders,) = state.topics.values()
    found = orders.partitions[0]
    assert (found.leader, found.replicas, found.isr) == (-1, [1, 2, 3], [1, 2, 3])
    assert found.leader_epoch == 4  # above that of the last batch
    assert found.partition_epoch == 8
    assert found.directories == ["A" * 22] * 3
    assert state.features == {"metadata.version": 25}
    assert state.next_producer_id == 7000
    assert [one.name for one in state.security.scram_users.values()] == ["ann"]
    assert state.topic_configs("orders") == {"retention.ms": "-1"}
    assert [one.voter_id for one in state.quorum.voters] == [1, 2, 3]
    assert [one.directory_id for one in state.quorum.voters] == [directory_id(node) for node in (1, 2, 3)]


def test_what_was_removed_does_not_come_back(tmp_path: Path) -> None:
    records = [
        topic("gone", 2),
        config(TOPIC_CONFIG, "gone", "retention.ms", "1"),
        *SETTINGS,
        remove_topic(2),
        config(TOPIC_CONFIG, "orders", "retention.ms", None),
        quota({"user": "ann"}, "producer_byte_rate", 0.0, remove=True),
        frame(19, topic_id(9) + b"\0"),
        feature("eligible.leader.replicas.version", 0),
    ]
    world = World(tmp_path, records)
    report = world.restore()
    state = state_of(tmp_path)
    assert (state.topics, state.security.acls, state.quotas.by_entity) == ({}, {}, {})
    assert state.topic_configs("gone") == state.topic_configs("orders") == {}
    assert report["switched_off"] == []


@pytest.mark.parametrize(("of_metadata", "expected"), [(2, 4), (7, 8)])
def test_the_epoch_is_above_those_of_the_metadata_and_of_batches(
    tmp_path: Path, of_metadata: int, expected: int
) -> None:
    records = [topic("orders", 1), partition(1, 0, [1], epoch=of_metadata)]
    world = World(tmp_path, records)
    # Nothing is written with the last epoch of the file, which is not in the restored one either.
    world.put(1, LOG, epochs=[(0, 0), (3, 100), (11, 200)])
    assert only(world.restore())["leader_epoch"] == expected
    assert "11" not in (tmp_path / "out/node1/logs1/orders-0/leader-epoch-checkpoint").read_text().split()


def test_everything_on_one_node(world: World) -> None:
    world.restore(nodes=[2], voters=["2@kafka-2:9093"])
    assert sorted(path.name for path in (world.root / "out").iterdir()) == ["node2", "reconciliation.json"]
    state = state_of(world.root, 2)
    assert next(iter(state.topics.values())).partitions[0].isr == [2]
    (voter,) = state.quorum.voters
    assert (voter.voter_id, voter.directory_id) == (2, directory_id(2))
    assert [(one.name, one.host, one.port) for one in voter.endpoints] == [("CONTROLLER", "kafka-2", 9093)]


def test_an_ipv6_address(world: World) -> None:
    report = world.restore(nodes=[1], voters=["1@[::1]:9093"])
    assert report["voters"][0]["address"] == "[::1]:9093"
    assert state_of(world.root).quorum.voters[0].endpoints[0].host == "::1"


def test_a_partition_of_other_nodes_is_placed_where_there_is_room(tmp_path: Path) -> None:
    world = World(tmp_path, [topic("orders", 1), *(partition(1, number, [3]) for number in range(4))])
    for number in range(4):
        world.put(3, LOG, f"orders-{number}")
    report = world.restore(nodes=[1, 2], voters=["1@h:1"])
    assert [one["replicas"] for one in report["partitions"]] == [[1], [2], [1], [2]]
    assert all(one["status"] == "online" for one in report["partitions"])


def test_copies_that_were_not_in_use_are_left_out_and_named(world: World) -> None:
    for suffix in ("future", "stray"):
        name = f"orders-0.{'0' * 32}-{suffix}"
        shutil.copytree(world.log_dirs[1] / "orders-0", world.log_dirs[1] / name)
    report = world.restore()
    assert {one["state"] for one in report["skipped"]} == {"future", "stray"}
    assert len(report["merged"][0]["copies"]) == 3


def test_directories_of_other_topics_are_left_out_and_named(world: World) -> None:
    world.put(1, LOG, "other-0")
    report = world.restore()
    (one,) = report["unassigned"]
    assert one["topic"] == "other"


def test_two_disks_keep_their_partitions(tmp_path: Path) -> None:
    world = World(tmp_path, [topic("orders", 1), partition(1, 0, [1]), partition(1, 1, [1])])
    second = tmp_path / "b1-second"
    write_meta(second, 1, directory_id(77))
    world.put(1, LOG)
    replica(second, {0: LOG}, name="orders-1")
    report = magicbyte.restore([*world.log_dirs.values(), second], out=tmp_path / "out")
    node = report["nodes"][0]
    assert [(one["place"], one["directory_id"], one["partitions"]) for one in node["log_dirs"]] == [
        ("node1/logs1", directory_id(1), 1),
        ("node1/logs2", directory_id(77), 1),
    ]
    assert offsets_of(tmp_path / "out/node1/logs2", "orders-1") == [*range(200)]
    assert not (tmp_path / "out/node1/logs2/__cluster_metadata-0").exists()


def test_deleted_records_do_not_come_back(world: World, cli: Cli) -> None:
    for log_dir in world.log_dirs.values():
        (log_dir / "log-start-offset-checkpoint").write_text("0\n1\norders 0 55\n")
    world.restore()
    shown = cli("restore", *world.log_dirs.values())
    assert "records before offset 55 are left out" in shown
    place = world.root / "out/node3/logs1"
    assert read_offset_checkpoint(place / "log-start-offset-checkpoint") == {("orders", 0): 55}


def test_a_static_quorum_has_no_voters_in_the_snapshot(tmp_path: Path) -> None:
    world = World(tmp_path, [topic("orders", 1), partition(1, 0, [1])], dynamic=False)
    world.put(1, LOG)
    report = world.restore(1, voters=["1@kafka-1:9093"])
    assert report["kraft_version"] == 0
    assert "controller.quorum.voters=1@kafka-1:9093" in report["steps"][0]
    data = (tmp_path / "out/node1/logs1/__cluster_metadata-0" / report["snapshot"]).read_bytes()
    kinds = [
        int.from_bytes(one.key_bytes[2:4])
        for batch in magicbyte.read_batches(data)
        if batch.is_control
        for one in batch
    ]
    assert kinds == [3, 4]
    with pytest.raises(RefusedError, match="nothing tells the voters"):
        world.restore(out=None)


def test_partitions_without_directories_of_old_versions(tmp_path: Path) -> None:
    world = World(tmp_path, [feature("metadata.version", 14), topic("orders", 1), partition(1, 0, [1])])
    world.put(1, LOG)
    world.restore()
    assert next(iter(state_of(tmp_path).topics.values())).partitions[0].directories == []


def test_the_same_bytes_again(world: World) -> None:
    world.restore()
    first = content(world.root / "out")
    shutil.rmtree(world.root / "out")
    world.restore()
    assert content(world.root / "out") == first


def test_nothing_is_written_before_the_plan_is_read(world: World) -> None:
    class StopError(Exception):
        pass

    def stop(plan: Any) -> None:
        assert plan["snapshot"]
        raise StopError

    with pytest.raises(StopError):
        world.restore(planned=stop)
    assert not (world.root / "out").exists()
    assert world.restore(out=None)["written"] == []
    assert not (world.root / "out").exists()


@pytest.mark.parametrize("deadly", [1, 2, 4, 5])
def test_a_killed_run_is_repeated_to_the_same_bytes(world: World, deadly: int) -> None:
    """It is killed before one of its renames, into a directory that existed; nothing else publishes."""
    world.restore()
    whole = content(world.root / "out")
    shutil.rmtree(world.root / "out")
    (world.root / "out").mkdir()
    code = f"""
import os, signal, sys, magicbyte
rename, calls = os.rename, 0
def counted(*arguments):
    global calls
    calls += 1
    if calls == {deadly}:
        os.kill(os.getpid(), signal.SIGKILL)
    rename(*arguments)
os.rename = counted
magicbyte.restore(sys.argv[2:], out=sys.argv[1])
"""
    command = [sys.executable, "-c", code, world.root / "out", *world.log_dirs.values()]
    assert subprocess.run(command, check=False).returncode == -signal.SIGKILL
    assert not (world.root / "out/reconciliation.json").exists()
    world.restore()
    assert content(world.root / "out") == whole


def test_an_empty_directory_is_filled(world: World) -> None:
    (world.root / "out").mkdir()
    world.restore()
    assert offsets_of(world.root / "out/node1/logs1") == [*range(200)]
    with pytest.raises(RefusedError, match="not empty"):
        world.restore()


@pytest.mark.parametrize(
    ("nodes", "options", "message"),
    [
        ((1,), {}, "voters that are not restored, nodes 2, 3"),
        ((1, 2, 3), {"nodes": [9]}, "no directory of node 9"),
        ((1, 2, 3), {"nodes": [1], "voters": ["2@h:1"]}, "voters that are not restored, node 2"),
        ((1, 2, 3), {"voters": [f"1@h:1:{directory_id(5)}"]}, "voter 1 has the directory"),
        ((1, 2, 3), {"out": "s3://bucket/out"}, "local directories only"),
    ],
)
def test_refusals(world: World, nodes: tuple[int, ...], options: dict[str, Any], message: str) -> None:
    with pytest.raises(RefusedError, match=message):
        world.restore(*nodes, **options)
    assert not (world.root / "out").exists()


def test_other_clusters_and_no_metadata_are_refused(world: World) -> None:
    shutil.rmtree(world.log_dirs[1] / "__cluster_metadata-0")
    with pytest.raises(RefusedError, match="no __cluster_metadata-0"):
        world.restore(1)
    write_meta(world.log_dirs[2], 2, directory_id(2), cluster="other")
    with pytest.raises(RefusedError, match="2 clusters"):
        world.restore()


@pytest.mark.parametrize(
    "text", ["", "1", "1@h", "1@h:0", "1@h:65536", "x@h:1", "1@h:1:short", "1@h:1,1@h:2"]
)
def test_voters_are_checked(world: World, text: str) -> None:
    done = CliRunner().invoke(
        app, ["restore", str(world.root), "--dry-run", "--voters", text], standalone_mode=False
    )
    assert done.exception is not None
    assert "is not a voter" in str(done.exception) or "named twice" in str(done.exception)


def test_records_are_encoded_as_they_were_read() -> None:
    data = {
        "partitionId": 7,
        "topicId": "AAAAAAAAAAAAAAAAAAAAAQ",
        "replicas": [1, 2],
        "isr": [2],
        "leader": 2,
        "leaderEpoch": 3,
        "partitionEpoch": 4,
        "directories": ["AAAAAAAAAAAAAAAAAAAABQ"] * 2,
        "eligibleLeaderReplicas": [1],
    }
    encoded = _core.encode_metadata_record(3, 2, data)
    _, name, _, version, decoded = _core.decode_record("__cluster_metadata", None, encoded)
    assert (name, version, decoded) == (
        "PartitionRecord",
        2,
        {**data, "removingReplicas": [], "addingReplicas": []},
    )
    voter = {"voterId": 1, "endpoints": [{"name": "C", "host": "h", "port": 1}]}
    value = _core.encode_data("VotersRecord", 0, {"voters": [voter]})
    assert _core.decode_data("VotersRecord", bytes(2) + value)["voters"][0]["endpoints"] == voter["endpoints"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((999, 0, {}), "no record of type 999"),
        ((-1, 0, {}), "no record of type -1"),
        ((3, 99, {}), "version 99"),
        ((3, 0, {"directories": []}), "directories"),
        ((3, 1, {"isr": "x"}), "isr"),
        ((3, 1, {"leader": 1 << 31}), "leader"),
        ((3, 1, {"topicId": "short"}), "topicId"),
    ],
)
def test_records_that_cannot_be_encoded(arguments: Any, message: str) -> None:
    with pytest.raises(magicbyte.Error, match=message):
        _core.encode_metadata_record(*arguments)


@pytest.mark.parametrize(("name", "version"), [("NoData", 0), ("VotersRecord", 9), ("VotersRecord", -1)])
def test_data_that_cannot_be_encoded(name: str, version: int) -> None:
    with pytest.raises(magicbyte.Error):
        _core.encode_data(name, version, {})


def test_damage_of_the_metadata_is_a_problem(tmp_path: Path) -> None:
    world = World(tmp_path, [topic("orders", 1), partition(1, 0, [1]), *SETTINGS, broker(1, [])])
    for log_dir in world.log_dirs.values():
        path = log_dir / "__cluster_metadata-0" / f"{0:020}.log"
        data = bytearray(path.read_bytes())
        at = next(one.position for one in magicbyte.read_batches(bytes(data)) if one.base_offset == 4)
        data[at + 66] ^= 3
        data[at + 68] ^= 3
        path.write_bytes(data)
    world.put(1, LOG)
    report = world.restore()
    problems = report["metadata_problems"]
    assert any("no readable copy of __cluster_metadata has offset" in one for one in problems)
    assert any("orders" in one and "not restored" in one for one in problems)


def test_the_command_prints_the_plan_first(world: World) -> None:
    def run(*arguments: str) -> tuple[int, str]:
        sources = list(map(str, world.log_dirs.values()))
        done = CliRunner().invoke(app, ["restore", *sources, *arguments], standalone_mode=False)
        assert done.exception is None
        return done.return_value, done.stdout

    code, text = run("--dry-run")
    assert code == 0
    assert "1 of 1 partitions can lead" in text
    assert "nothing was written" in text
    assert "server.properties" in text
    code, text = run("--out", str(world.root / "out"))
    assert code == 0
    assert text.index("partitions can lead") < text.index("restored into")
    code, text = run("--json", "--dry-run", "--nodes", "1", "--voters", "1@h:1")
    assert json.loads(text)["options"]["nodes"] == [1]


def test_a_topic_whose_removal_was_lost_does_not_come_back(tmp_path: Path) -> None:
    """A controller refuses to load two topics of one name."""
    old = [topic("orders", 1), partition(1, 0, [1]), config(TOPIC_CONFIG, "orders", "retention.ms", "1")]
    world = World(tmp_path, [*old, topic("orders", 2), partition(2, 0, [1])])
    world.put(1, LOG, topic_id=directory_id(2))
    report = world.restore()
    assert (only(report)["topic_id"], only(report)["status"]) == (directory_id(2), "online")
    state = state_of(tmp_path)
    assert {*state.topics} == {directory_id(2)}
    assert state.topic_configs("orders") == {}
    assert state.names == {"orders"}


def test_a_partition_whose_record_was_lost_is_named(tmp_path: Path) -> None:
    world = World(tmp_path, [topic("orders", 1), partition(1, 0, [1])])
    for log_dir in world.log_dirs.values():
        path = log_dir / "__cluster_metadata-0" / f"{0:020}.log"
        later = metadata_batches([producer_ids(1)], start=99, epoch=2)
        path.write_bytes(b"".join([path.read_bytes(), *later]))
    world.put(1, LOG)
    world.put(1, LOG, "orders-7")
    named = [one for one in world.restore()["metadata_problems"] if "not restored" in one]
    assert len(named) == 1
    assert named[0].startswith("orders-7 ")


def test_a_directory_of_an_unknown_node_is_named(tmp_path: Path) -> None:
    world = World(tmp_path, [topic("orders", 1), partition(1, 0, [1])])
    world.put(1, LOG)
    (world.log_dirs[1] / "meta.properties").unlink()
    report = world.restore(voters=["3@h:1"])
    assert only(report)["status"] == "out_of_sync"
    assert any(one.startswith(f"{world.log_dirs[1]}: no meta") for one in report["metadata_problems"])


def test_a_replica_that_is_named_twice(tmp_path: Path) -> None:
    world = World(tmp_path, [topic("orders", 1), partition(1, 0, [1, 1, 2])])
    world.put(1, LOG)
    assert only(world.restore())["replicas"] == [1, 2]


def test_long_names_that_begin_alike_are_repaired(tmp_path: Path) -> None:
    names = ["a" * 60 + end for end in "xy"]
    records = [topic(name, number) for number, name in enumerate(names, 1)]
    world = World(tmp_path, [*records, partition(1, 0, [1]), partition(2, 0, [1])])
    for number, name in enumerate(names, 1):
        world.put(1, LOG, f"{name}-0", topic_id=directory_id(number))
        flip(world.log_dirs[1], [3], bits=1, name=f"{name}-0")
    assert [one["lost"] for one in world.restore()["merged"]] == [[], []]
    merged = magicbyte.merge([world.log_dirs[1]], out=None)
    assert [one["lost"] for one in merged["partitions"] if one["topic"] in names] == [[], []]


def test_a_name_that_is_no_topic_gets_into_no_command(tmp_path: Path) -> None:
    records = [topic("a; b", 1), partition(1, 0, [1], isr=[2]), config(TOPIC_CONFIG, "a; b", UNCLEAN, "true")]
    world = World(tmp_path, records)
    world.put(1, LOG, "a; b-0")
    report = world.restore(out=None)
    assert not [one for one in report["steps"] if "a; b" in one]
    assert any("'a; b', which is no name of a topic" in one for one in report["metadata_problems"])


def test_brokers_do_not_delete_what_is_in_tiered_storage(tmp_path: Path) -> None:
    """They delete segments of epochs before the first one of the log (`RLMExpirationTask`)."""
    tiered = config(TOPIC_CONFIG, "orders", "remote.storage.enable", "true")
    world = World(tmp_path, [topic("orders", 1), partition(1, 0, [1]), tiered])
    world.put(1, LOG)
    report = world.restore()
    assert "orders: remote.storage.enable=true" in [one["setting"] for one in report["switched_off"]]
    assert state_of(tmp_path).topic_configs("orders") == {}
    (step,) = (one for one in report["steps"] if "remote.storage" in one)
    assert "tiered storage" in step
    assert "in sync" not in step


def test_what_is_only_in_tiered_storage_is_named(tmp_path: Path) -> None:
    records = [
        topic("orders", 1),
        partition(1, 0, [1]),
        config(TOPIC_CONFIG, "orders", "remote.storage.enable", "true"),
    ]
    world = World(tmp_path, records)
    replica(world.log_dirs[1], {500: batches(500, 600, epoch=3)}, epochs=[(0, 0), (2, 100), (3, 300)])
    report = world.restore()
    assert any("tiered storage" in one for one in report["metadata_problems"])


def test_a_certificate_of_every_node(world: World) -> None:
    out = world.root / "out"
    voter = magicbyte.options.restore.GivenVoter(1, "h", 9093)
    world.restore(nodes=(1,), voters=(voter,), certify=True)
    certificate = json.loads((out / "certificate.json").read_text())
    written = {path.relative_to(out).as_posix() for path in out.rglob("*") if path.is_file()}
    assert certificate["outputs"].keys() == written - {"certificate.json"}
    assert certificate["inputs"].keys() == {str(path) for path in world.root.glob("b*/*/*.log")}
    assert certificate["command"][-5:] == ["--nodes", "1", "--voters", "1@h:9093", "--certify"]
    checked = magicbyte.verify(out, certificate=out / "certificate.json")["certificate"]
    assert checked is not None
    assert checked["equal"]


def test_the_cleaner_goes_on_where_it_was(tmp_path: Path) -> None:
    compact = config(TOPIC_CONFIG, "orders", "cleanup.policy", "compact")
    made = World(tmp_path, [topic("orders", 1), partition(1, 0, [1, 2, 3]), compact])
    for node, log_dir in made.log_dirs.items():
        made.put(node, LOG)
        (log_dir / "cleaner-offset-checkpoint").write_text(format_offset_checkpoint({("orders", 0): 100}))
    made.restore()
    for node in (1, 2, 3):
        path = tmp_path / "out" / f"node{node}" / "logs1" / "cleaner-offset-checkpoint"
        assert read_offset_checkpoint(path) == {("orders", 0): 100}


@pytest.mark.parametrize(("names", "code"), [((), 0), (("other-0",), 1)])
def test_a_directory_that_is_no_part_of_the_cluster(
    world: World, cli: Cli, names: Sequence[str], code: int
) -> None:
    for name in names:
        world.put(1, LOG, name)
    cli("restore", *world.log_dirs.values(), "--dry-run", code=code)


def test_the_losses_of_a_single_copy_have_its_name(tmp_path: Path, cli: Cli) -> None:
    """Its last batches are lost without a trace in the file, and only a checkpoint knows of them."""
    made = World(tmp_path, [topic("orders", 1), partition(1, 0, [1])])
    made.put(1, LOG[:10])
    (made.log_dirs[1] / "replication-offset-checkpoint").write_text("0\n1\norders 0 200\n")
    lines = cli("restore", made.log_dirs[1], "--dry-run", "--voters", "1@h:1", code=1).splitlines()
    lost = lines.index("  lost: no copy has offsets 100 to 199")
    assert lines[lost - 1] == f"orders-0: its only copy here is {made.log_dirs[1] / 'orders-0'}"


def test_a_partition_that_stays_offline_has_no_next_offset(world: World, cli: Cli) -> None:
    flip(world.log_dirs[1], range(20))
    (world.log_dirs[1] / "replication-offset-checkpoint").write_text("0\n1\norders 0 200\n")
    printed = cli("restore", world.log_dirs[1], "--voters", "1@h:1", "--dry-run", code=1)
    assert "orders-0 stays offline" in printed
    assert "it had reached offset 200" in printed
    assert "next offset" not in printed
