"""`magicbyte restore --target`: which topics another cluster can take, and what its brokers get.

`magicbyte serve` plays the target, with empty partitions; real clusters are in the interop tests.
"""

from __future__ import annotations

import json
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import magicbyte
import pytest
from conftest import Cli
from dead_clusters import (
    BROKER_CONFIG,
    LOG,
    TOPIC_CONFIG,
    World,
    commit,
    directory_id,
    only,
    share_state,
)
from magicbyte import RefusedError, _core
from magicbyte.log_dir import CLEAN_SHUTDOWN, read_offset_checkpoint
from metadata_records import config, partition, topic
from replicas import TIME, batch, batches, content, flip, offsets_of, replica

ID = "BBBBBBBBBBBBBBBBBBBBBQ"
"""The id of the topics in the target."""


class Target:
    """A cluster with one broker, 0, that is played by a server."""

    def __init__(self, root: Path) -> None:
        self.log_dirs = [root / "target" / name for name in ("d1", "d2")]
        for log_dir in self.log_dirs:
            log_dir.mkdir(parents=True)
            # `Properties.store` writes a comment, and `#` before the time.
            (log_dir / "meta.properties").write_text(
                "#\n#now\nversion=1\r\ncluster.id=magicbyte-serve\nnode.id=0\n"
            )
            (log_dir / CLEAN_SHUTDOWN).write_text('{"version":0,"brokerEpoch":7}')

    def create(self, name: str, data: list[bytes] | None = None, disk: int = 0) -> Path:
        return replica(self.log_dirs[disk], {0: data or []}, name=name, topic_id=ID) / name

    def put(self, out: Path, *options: str, disks: int = 2) -> subprocess.CompletedProcess[str]:
        command = ["sh", str(out / "broker0" / "put.sh"), *options, *map(str, self.log_dirs[:disks])]
        return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.fixture
def world(tmp_path: Path) -> World:
    records = [topic("orders", 1), *(partition(1, number, [1, 2, 3], epoch=5) for number in (0, 1))]
    records.append(config(TOPIC_CONFIG, "orders", "retention.ms", "-1"))
    made = World(tmp_path, records)
    for node in (1, 2, 3):
        made.put(node, LOG)
        made.put(node, batches(50, 90, epoch=5), name="orders-1")
    return made


@pytest.fixture
def target(tmp_path: Path) -> Target:
    return Target(tmp_path)


def restore(world: World, target: Target, **options: Any) -> Any:
    with magicbyte.serve(target.log_dirs, listen="127.0.0.1:0") as server:
        given = {"out": world.root / "out", "target": server.bootstrap_servers, **options}
        return magicbyte.restore(list(world.log_dirs.values()), **given)


def test_configs_that_the_target_does_not_have(world: World, target: Target) -> None:
    """A broker would delete restored records that are older than it keeps those of the topic."""
    target.create("orders-0")
    target.create("orders-1")
    with magicbyte.serve(target.log_dirs, listen="127.0.0.1:0") as server:
        given = {"out": world.root / "out", "target": f"kafka://{server.bootstrap_servers}"}
        report = magicbyte.restore(list(world.log_dirs.values()), **given)
    (told,) = (one for one in report["topics"] if one["topic"] == "orders")
    assert (told["result"], told["reason"]) == (
        "accepted",
        "in the target, retention.ms is unknown and was -1",
    )
    assert report["steps"][0] == told["command"]
    assert "kafka://" not in told["command"]
    assert told["command"].endswith("--alter --topic orders --add-config 'retention.ms=[-1]'")


def test_the_brokers_get_partitions_with_the_ids_of_the_target(world: World, target: Target) -> None:
    target.create("orders-0")
    target.create("orders-1", disk=1)
    before = content(world.root)
    report = restore(world, target)
    assert (report["balanced"], report["problems"], report["target_cluster_id"]) == (
        True,
        [],
        "magicbyte-serve",
    )
    assert [(one["topic"], one["result"]) for one in report["topics"]] == [("orders", "accepted")]
    assert [(one["status"], one["replicas"], one["places"]) for one in report["partitions"]] == [
        ("restored", [0], ["broker0"])
    ] * 2
    place = world.root / "out" / "broker0"
    assert offsets_of(place) == [*range(200)]
    assert offsets_of(place, "orders-1") == [*range(50, 90)]
    for name, epochs in (("orders-0", "0 0"), ("orders-1", "0 50")):
        assert ID in (place / name / "partition.metadata").read_text()
        assert (place / name / "leader-epoch-checkpoint").read_text() == f"0\n1\n{epochs}\n"
        log = magicbyte.PartitionLog(place / name)
        assert {one.partition_leader_epoch for one in log.batches()} == {0}
    ends = {("orders", 0): 200, ("orders", 1): 90}
    assert read_offset_checkpoint(place / "recovery-point-offset-checkpoint") == ends
    assert read_offset_checkpoint(place / "replication-offset-checkpoint") == ends
    assert {name: data for name, data in content(world.root).items() if not name.startswith("out/")} == before
    assert json.loads((world.root / "out" / "reconciliation.json").read_text()) == json.loads(
        json.dumps(report)
    )


def test_producers_are_forgotten_but_for_open_transactions(tmp_path: Path, target: Target) -> None:
    """Other producers get these ids: a broker would drop their first batches as duplicates."""
    world = World(tmp_path, [topic("orders", 1), partition(1, 0, [1])])
    ended = [{"producer_id": 7, "producer_epoch": 0, "base_sequence": 0}]
    transaction = {"producer_id": 8, "producer_epoch": 2, "base_sequence": 0, "is_transactional": True}
    world.put(
        1, [batch(0, **ended[0]), batch(10, **transaction), batch(20, **{**ended[0], "base_sequence": 10})]
    )
    target.create("orders-0")
    report = restore(world, target)
    (open_transaction,) = report["open_transactions"]
    assert open_transaction == {
        "topic": "orders",
        "partition": 0,
        "producer_id": 8,
        "first_offset": 10,
    }
    (snapshot,) = (tmp_path / "out" / "broker0" / "orders-0").glob("*.snapshot")
    (kept,) = _core.producer_snapshot(snapshot.read_bytes())
    assert (kept.producer_id, kept.producer_epoch, kept.last_sequence, kept.last_offset) == (8, 0, -1, -1)
    assert kept.current_txn_first_offset == 10
    assert any("abort --topic orders --partition 0 --start-offset 10" in step for step in report["steps"])


@pytest.mark.parametrize("data", [b"", b"\0\1" + bytes(8), b"\0\2" + bytes(60)])
def test_a_damaged_snapshot_is_named(tmp_path: Path, data: bytes) -> None:
    snapshot = tmp_path / f"{5:020}.snapshot"
    snapshot.write_bytes(data)
    with pytest.raises(magicbyte.Error, match=snapshot.name):
        _core.forget_producers(tmp_path)
    assert snapshot.read_bytes() == data


def test_the_command_creates_what_the_target_lacks(world: World, target: Target) -> None:
    records = [topic("a b", 2), topic("new", 3), *(partition(3, number, [2, 3]) for number in range(3))]
    records += [
        config(TOPIC_CONFIG, "new", "cleanup.policy", "compact,delete"),
        config(TOPIC_CONFIG, "new", "remote.storage.enable", "true"),
        config(TOPIC_CONFIG, "new", "leader.replication.throttled.replicas", "0:1"),
        config(BROKER_CONFIG, "1", "log.cleaner.threads", "2"),
    ]
    other = World(world.root / "other", records)
    target.create("orders-0")
    report = restore(other, target, out=None)
    (new,) = (one for one in report["topics"] if one["topic"] == "new")
    assert new["result"] == "missing"
    assert new["command"].partition("--create ")[2] == (
        "--topic new --partitions 3 --replication-factor 1 --config cleanup.policy=compact,delete"
    )
    assert report["steps"] == [*(one["command"] for one in report["topics"]), "give the command again"]


@pytest.mark.parametrize(
    ("there", "reason"),
    [
        ({"orders-0": []}, "the target's has 1 partition, and this one 2 partitions"),
        ({f"orders-{number}": [] for number in range(3)}, "the target's has 3 partitions"),
        (
            {"orders-0": [], "orders-1": batches(0, 20)},
            "orders-1 of the target is not empty: it has had records up to offset 19",
        ),
        (
            {"orders-0": batches(0, 20), "orders-1": []},
            "orders-0 of the target is not empty: it has had records up to offset 19",
        ),
    ],
)
def test_topics_that_do_not_fit_are_refused(
    world: World, target: Target, there: dict[str, list[bytes]], reason: str
) -> None:
    for name, data in there.items():
        target.create(name, data)
    plans: list[Any] = []
    with pytest.raises(RefusedError, match="the target can take none of the topics"):
        restore(world, target, planned=plans.append)
    ((orders,),) = (plan["topics"] for plan in plans)
    assert (orders["result"], orders["command"]) == ("refused", None)
    assert orders["reason"].startswith(reason)
    assert not (world.root / "out").exists()


@pytest.mark.parametrize(
    ("nodes", "status"), [((1,), "out_of_sync"), ((1, 2), "out_of_sync"), ((1, 2, 3), "restored")]
)
def test_an_isr_that_is_older_than_the_logs_is_not_believed(
    tmp_path: Path, target: Target, nodes: tuple[int, ...], status: str
) -> None:
    """A later leader may have gone on without the replicas of the last ISR that is known."""
    world = World(tmp_path, [topic("orders", 1), partition(1, 0, [1, 2, 3], isr=[1], epoch=2)])
    for node in nodes:
        world.put(node, LOG)
    target.create("orders-0")
    report = restore(world, target)
    assert only(report)["status"] == status
    assert offsets_of(world.root / "out/broker0") == [*range(200)]
    (problem,) = report["metadata_problems"]
    assert "has leader epoch 3, the metadata 2" in problem


def test_an_isr_that_is_as_new_as_the_logs_is_believed(tmp_path: Path, target: Target) -> None:
    world = World(tmp_path, [topic("orders", 1), partition(1, 0, [1, 2, 3], isr=[1], epoch=3)])
    world.put(1, LOG)
    target.create("orders-0")
    report = restore(world, target)
    assert only(report)["status"] == "restored"
    assert report["metadata_problems"] == []


def test_a_partition_without_a_copy_stays_empty(world: World, target: Target) -> None:
    for node in (1, 2, 3):
        shutil.rmtree(world.log_dirs[node] / "orders-1")
    for number in (0, 1):
        target.create(f"orders-{number}")
    report = restore(world, target)
    assert [one["status"] for one in report["partitions"]] == ["restored", "missing"]
    assert not (world.root / "out" / "broker0" / "orders-1").exists()


@pytest.mark.parametrize("given", [{"nodes": (1,)}, {"voters": ("1@localhost:9093",)}])
def test_nodes_and_voters_are_those_of_the_target(
    world: World, target: Target, given: dict[str, Any]
) -> None:
    target.create("orders-0")
    with pytest.raises(RefusedError, match="nodes and voters are those of the target"):
        restore(world, target, **given)


def test_a_target_that_is_not_one(world: World, tmp_path: Path) -> None:
    roots = list(world.log_dirs.values())
    with pytest.raises(RefusedError, match="no port"):
        magicbyte.restore(roots, target="no port")
    with pytest.raises(RefusedError, match="command_config is for another cluster"):
        magicbyte.restore(roots, command_config=tmp_path / "client.properties")


# --- put.sh -----------------------------------------------------------------------------------


@pytest.fixture
def out(world: World, target: Target) -> Path:
    target.create("orders-0")
    target.create("orders-1", disk=1)
    restore(world, target)
    return world.root / "out"


def state(target: Target) -> dict[str, Any]:
    return {
        f"{log_dir}/{name}": data for log_dir in target.log_dirs for name, data in content(log_dir).items()
    }


def test_partitions_are_put_where_the_empty_ones_are(target: Target, out: Path) -> None:
    for log_dir in target.log_dirs:
        (log_dir / "replication-offset-checkpoint").write_text("0\n2\norders 0 0\nothers 3 77\n")
    before, made = state(target), content(out)
    assert target.put(out, "--check").returncode == 0
    assert state(target) == before
    for _ in range(2):  # the second run changes nothing
        done = target.put(out)
        assert (done.returncode, done.stderr) == (0, "")
        assert offsets_of(target.log_dirs[0]) == [*range(200)]
        assert offsets_of(target.log_dirs[1], "orders-1") == [*range(50, 90)]
        first, second = (
            read_offset_checkpoint(one / "replication-offset-checkpoint") for one in target.log_dirs
        )
        assert first == {("orders", 0): 200, ("others", 3): 77}
        assert second == {("orders", 0): 0, ("orders", 1): 90, ("others", 3): 77}
        assert {path.name for log_dir in target.log_dirs for path in log_dir.glob("*.put")} == set()
    assert content(out) == made


@pytest.mark.parametrize("name", [".orders", "_-1", "-", "..x", "a.b-c_d"])
def test_every_legal_name_is_put(tmp_path: Path, target: Target, name: str) -> None:
    """`Topic.validate` takes them all, such as one that is hidden for a shell."""
    world = World(tmp_path, [topic(name, 1), partition(1, 0, [1], epoch=5)])
    world.put(1, LOG, name=f"{name}-0")
    target.create(f"{name}-0")
    restore(world, target)
    assert target.put(world.root / "out", "--check").returncode == 0
    done = target.put(world.root / "out")
    assert (done.returncode, done.stderr) == (0, "")
    assert offsets_of(target.log_dirs[0], f"{name}-0") == [*range(200)]


@pytest.mark.parametrize("stage", ["copying", "removed", "first"])
def test_an_interrupted_run_is_finished_by_the_next(target: Target, out: Path, stage: str) -> None:
    there, copy = target.log_dirs[0] / "orders-0", target.log_dirs[0] / "orders-0.put"
    if stage == "copying":
        copy.mkdir()
        (copy / f"{0:020}.log").write_bytes(b"half")
    else:
        shutil.copytree(out / "broker0" / "orders-0", copy)
        shutil.rmtree(there)
        if stage == "first":
            copy.rename(there)
    assert target.put(out).returncode == 0
    assert offsets_of(target.log_dirs[0]) == [*range(200)]
    assert offsets_of(target.log_dirs[1], "orders-1") == [*range(50, 90)]
    assert not copy.exists()


def test_what_does_not_fit_is_refused_before_anything_changes(target: Target, out: Path) -> None:
    first, second = target.log_dirs

    def refuses(message: str, disks: int = 2) -> None:
        before = state(target)
        done = target.put(out, disks=disks)
        assert done.returncode == 1
        assert message in done.stderr
        assert state(target) == before

    refuses("orders-1 is in none of", disks=1)
    refuses("expected the directories", disks=0)
    (second / CLEAN_SHUTDOWN).unlink()
    refuses("the broker is running, or was killed")
    (second / CLEAN_SHUTDOWN).touch()
    log = second / "orders-1" / f"{0:020}.log"
    log.write_bytes(batch(0))
    refuses("has records")
    log.write_bytes(b"")
    metadata = second / "orders-1" / "partition.metadata"
    metadata.write_text("version: 0\ntopic_id: CCCCCCCCCCCCCCCCCCCCCQ\n")
    refuses("it was created again")
    metadata.write_text(f"version: 0\ntopic_id: {ID}\n")
    properties = first / "meta.properties"
    for wrong in ("node.id=1", "cluster.id=other"):
        good = properties.read_text()
        name = wrong.partition("=")[0]
        properties.write_text(
            "".join(f"{wrong if line.startswith(name) else line}\n" for line in good.splitlines())
        )
        refuses(f"{name} is {wrong.partition('=')[2]}")
        properties.write_text(good)
    properties.unlink()
    refuses("no meta.properties")


def test_an_end_that_is_not_believed_is_printed(cli: Cli, world: World, served: str) -> None:
    checkpoint = f"0\n1\norders 0 {1 << 40}\n"
    (world.log_dirs[1] / "replication-offset-checkpoint").write_text(checkpoint)
    roots = [str(one) for one in world.log_dirs.values()]
    printed = cli("restore", *roots, "--target", served, "--dry-run", code=None)
    assert "not believed, since no lost segment reaches so far" in printed


def test_share_groups_get_their_start_offsets(tmp_path: Path, target: Target) -> None:
    records = [
        topic("orders", 1),
        topic("__share_group_state", 2),
        partition(1, 0, [1]),
        partition(2, 0, [1]),
    ]
    world = World(tmp_path, records)
    world.put(1, LOG)
    world.put(1, [share_state(20)], "__share_group_state-0", topic_id=directory_id(2))
    target.create("other-0")
    assert restore(world, target, out=None)["share_groups"] == []
    target.create("orders-0")
    report = restore(world, target)
    assert (report["groups"], report["share_groups"]) == ([], ["sharing"])
    out = world.root / "out"
    assert (out / "share-positions-1.csv").read_text() == "orders,0,20\n"
    (step,) = (one for one in report["steps"] if one.startswith("kafka-share-groups.sh"))
    words = shlex.split(step, comments=True)
    assert words[words.index("--group") + 1 :] == [
        *("sharing", "--reset-offsets", "--from-file", str(out / "share-positions-1.csv"), "--execute")
    ]


def test_positions_are_those_of_the_merged_log(tmp_path: Path, target: Target) -> None:
    """The newest copy has lost the position of one group, which another copy has."""
    names = ("orders", "__consumer_offsets")
    records = [part for number, name in enumerate(names, 1) for part in _topic(name, number)]
    world = World(tmp_path, records)
    commits = [committed("billing", 40, 0), committed("audit", 70, 1)]
    for node, data in ((1, commits[:1]), (2, commits)):
        world.put(node, LOG)
        world.put(node, data, "__consumer_offsets-0", topic_id=directory_id(2))
    flip(world.log_dirs[2], [0], name="__consumer_offsets-0")
    target.create("orders-0")
    report = restore(world, target)
    assert report["groups"] == ["audit", "billing"]
    positions = (tmp_path / "out/positions.csv").read_text()
    assert positions == "audit,orders,0,70\nbilling,orders,0,40\n"
    assert {one["topic"] for one in report["written"]} == {"orders"}


def _topic(name: str, number: int) -> list[bytes]:
    return [topic(name, number), partition(number, 0, [1, 2])]


def committed(group: str, position: int, offset: int) -> bytes:
    builder = magicbyte.RecordsBuilder(partition_leader_epoch=3)
    builder.append(offset, TIME + offset, *commit(group, position))
    return builder.build()


def zookeeper(root: Path, broker: int, topic_id: str | None) -> Path:
    """A log directory of a broker with ZooKeeper: without metadata, and before 2.8 without ids of topics."""
    root.mkdir()
    (root / "meta.properties").write_text(f"version=0\nbroker.id={broker}\ncluster.id=old\n")
    replica(root, {0: LOG}, topic_id=topic_id)
    replica(root, {0: [committed("billing", 40, 0)]}, name="__consumer_offsets-0", topic_id=None)
    return root


@pytest.mark.parametrize("topic_id", [None, directory_id(1)])
def test_the_disks_of_a_cluster_with_zookeeper(tmp_path: Path, target: Target, topic_id: str | None) -> None:
    disks = [zookeeper(tmp_path / f"z{broker}", broker, topic_id) for broker in (1, 2)]
    flip(disks[0], [3])
    with pytest.raises(RefusedError, match=r"those of a cluster with ZooKeeper can be restored into another"):
        magicbyte.restore(disks, out=tmp_path / "itself")
    target.create("other-0")
    with magicbyte.serve(target.log_dirs, listen="127.0.0.1:0") as server:
        plan: Any = magicbyte.restore(disks, target=server.bootstrap_servers)
    assert [(one["topic"], one["result"]) for one in plan["topics"]] == [
        ("__consumer_offsets", "refused"),
        ("orders", "missing"),
    ]
    target.create("orders-0")
    with magicbyte.serve(target.log_dirs, listen="127.0.0.1:0") as server:
        report: Any = magicbyte.restore(disks, target=server.bootstrap_servers, out=tmp_path / "out")
    assert report["balanced"]
    assert only(report)["status"] == "restored"
    assert offsets_of(tmp_path / "out/broker0") == [*range(200)]
    assert ID in (tmp_path / "out/broker0/orders-0/partition.metadata").read_text()
    assert (tmp_path / "out/positions.csv").read_text() == "billing,orders,0,40\n"
    (told,) = report["metadata_problems"]
    assert "the sources have no metadata, as those of a cluster with ZooKeeper" in told


def test_two_topics_of_one_name_without_metadata(tmp_path: Path, target: Target) -> None:
    disks = [zookeeper(tmp_path / f"z{broker}", broker, directory_id(broker)) for broker in (1, 2)]
    target.create("orders-0")
    refused = pytest.raises(RefusedError, match="nothing tells which topic orders is right")
    with magicbyte.serve(target.log_dirs, listen="127.0.0.1:0") as server, refused:
        magicbyte.restore(disks, target=server.bootstrap_servers)


# --- the command ------------------------------------------------------------------------------


@pytest.fixture
def served(world: World, target: Target) -> Iterator[str]:
    target.create("orders-0")
    target.create("orders-1")
    with magicbyte.serve(target.log_dirs, listen="127.0.0.1:0") as server:
        yield server.bootstrap_servers


def test_the_command_prints_the_steps(cli: Cli, world: World, served: str) -> None:
    roots = [str(one) for one in world.log_dirs.values()]
    printed = cli("restore", *roots, "--target", served, "--dry-run")
    assert "nothing was written" in printed
    out = world.root / "out"
    printed = cli("restore", *roots, "--target", served, "--out", str(out), "--certify")
    for step in (
        "stop broker 0",
        "sh broker0/put.sh --check LOG_DIR...",
        f"magicbyte verify {out} --against {served}",
        "openssl dgst",
    ):
        assert step in printed.replace("\n", " ")
    assert cli.json("verify", "--certificate", str(out / "certificate.json"), str(out))["certificate"][
        "equal"
    ]
