"""A cluster of three nodes is killed, and comes back: on one node, as the survivor of its quorum, and as it was."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import confluent_kafka
import magicbyte
import pytest
from cluster import NODES, SECONDS, TRANSACTIONS, Cluster, until
from kafka_broker import (
    ALONE,
    CLUSTER,
    Client,
    Tools,
    free_ports,
    java,
    kraft,
)
from kafka_versions import JUDGES
from magicbyte import _core
from raw_client import RawClient
from restored_brokers import AUTHORIZER, Restored, acls, ids, read
from running_target import Running, running

pytestmark = pytest.mark.interop

SETTINGS = f"""{AUTHORIZER}{TRANSACTIONS}share.coordinator.state.topic.replication.factor=3
share.coordinator.state.topic.min.isr=1
share.coordinator.state.topic.num.partitions=2
"""
REPLICATED = {"orders": "1:2:3", "payments": "2:3:1"}
TOPICS = {**REPLICATED, "solo": "3"}
READ = (*TOPICS, "__consumer_offsets")
GROUP, SHARE_GROUP = "billing", "sharing"


UNCLEAN = "unclean.leader.election.enable"


@dataclass
class Dead:
    """The disks of a cluster, and what it had said before it was killed."""

    roots: dict[int, list[Path]]
    records: dict[str, str]
    positions: set[str]
    share_positions: set[str]
    ids: dict[str, str]
    acls: list[str]


def positions(tools: Tools, bootstrap: str) -> set[str]:
    lines = tools.run(
        "kafka-consumer-groups", "--bootstrap-server", bootstrap, "--describe", "--group", GROUP
    )
    return {" ".join(line.split()[:4]) for line in lines if line.startswith(GROUP)}


def share_positions(tools: Tools, bootstrap: str) -> set[str]:
    """Group, topic, partition, start offset and lag of the share group."""
    describe = ("--describe", "--group", SHARE_GROUP, "--offsets", "--verbose")
    lines = tools.run("kafka-share-groups", "--bootstrap-server", bootstrap, *describe)
    words = (line.split() for line in lines if line.startswith(SHARE_GROUP))
    return {" ".join([*one[:3], *one[4:]]) for one in words}


def share(tools: Tools, bootstrap: str, records: int) -> list[str]:
    """Gives the share group some records of `orders`."""
    limits = ("--max-messages", str(records), "--timeout-ms", "60000")
    group = ("--topic", "orders", "--group", SHARE_GROUP)
    return tools.run("kafka-console-share-consumer", "--bootstrap-server", bootstrap, *group, *limits)


@pytest.fixture(scope="module")
def dead(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Dead]:
    cluster = Cluster(tmp_path_factory.mktemp("cluster"), disks=2, settings=SETTINGS)
    tools = cluster.tools
    server = ("--bootstrap-server", cluster.bootstrap)
    try:
        for node in NODES:
            cluster.start(node)
        cluster.wait()
        for topic, replicas in TOPICS.items():
            unclean = ("--config", f"{UNCLEAN}=true") if topic == "payments" else ()
            tools.run(
                "kafka-topics",
                *server,
                "--create",
                "--topic",
                topic,
                "--replica-assignment",
                replicas,
                *unclean,
            )
        client = Client(cluster.bootstrap)
        for topic in TOPICS:
            client.ask("transact", topic)
        client.close()
        allow = ("--add", "--allow-principal", "User:ann", "--operation", "Read", "--topic", "orders")
        tools.run("kafka-acls", *server, *allow)
        user = ("--entity-type", "users", "--entity-name", "ann")
        secret = "SCRAM-SHA-512=[iterations=4096,password=s3cret-of-ann]"
        tools.run("kafka-configs", *server, "--alter", *user, "--add-config", secret)
        for topic, position in (("orders", "7"), ("payments", "3")):
            reset = ("--reset-offsets", "--to-offset", position, "--execute", "--topic", f"{topic}:0")
            tools.run("kafka-consumer-groups", *server, "--group", GROUP, *reset)
        for topic, position in (("orders", "4"), ("payments", "9")):
            reset = ("--reset-offsets", "--to-offset", position, "--execute", "--topic", f"{topic}:0")
            tools.run("kafka-share-groups", *server, "--group", SHARE_GROUP, *reset)
        share(tools, cluster.bootstrap, 3)
        # The transactions that were left open are aborted on the first start after 60 s; until then, equal.
        said = (
            read(cluster.bootstrap, READ),
            positions(tools, cluster.bootstrap),
            share_positions(tools, cluster.bootstrap),
            ids(tools, cluster.bootstrap),
            acls(tools, cluster.bootstrap),
        )
        for node in NODES:
            cluster.kill(node)
        yield Dead({node: cluster.log_dirs(node) for node in NODES}, *said)
    finally:
        cluster.close()


@pytest.fixture
def restored(tmp_path: Path) -> Iterator[Restored]:
    ports = free_ports(2 * len(NODES))
    nodes = Restored(
        tmp_path / "out",
        dict(zip(NODES, ports, strict=False)),
        dict(zip(NODES, ports[len(NODES) :], strict=True)),
    )
    try:
        yield nodes
    finally:
        nodes.close()


def start(
    restored: Restored, dead: Dead, disks_of: Sequence[int], *, damaged: bool = False, **options: Any
) -> Any:
    """Restores the disks of these nodes, and starts them; returns the report."""
    sources = [root for node in disks_of for root in dead.roots[node]]
    report = magicbyte.restore(sources, out=restored.root, **options)
    assert report["balanced"]
    assert bool(report["problems"]) == damaged
    assert report["metadata_problems"] == []
    restored.ports = {one["node_id"]: restored.ports[one["node_id"]] for one in report["nodes"]}
    restored.start(report)
    return report


def test_everything_on_one_node(dead: Dead, restored: Restored) -> None:
    voter = f"1@127.0.0.1:{restored.controllers[1]}"
    report = start(restored, dead, NODES, nodes=(1,), voters=(voter,))
    assert {one["status"] for one in report["partitions"]} == {"online"}
    assert [one["setting"].partition("=")[0] for one in report["switched_off"]] == [
        "eligible.leader.replicas.version",
        "payments: unclean.leader.election.enable",
    ]
    restored.wait_for(READ)
    assert read(restored.bootstrap, READ) == dead.records
    assert positions(restored.tools, restored.bootstrap) == dead.positions
    assert share_positions(restored.tools, restored.bootstrap) == dead.share_positions
    assert ids(restored.tools, restored.bootstrap) == dead.ids
    assert acls(restored.tools, restored.bootstrap) == dead.acls
    # Producers go on, with ids that nobody had.
    client = Client(restored.bootstrap)
    client.ask("transact", "orders")
    client.close()
    assert restored.complaints() == []


def test_the_survivor_of_a_quorum_goes_on_alone(dead: Dead, restored: Restored) -> None:
    report = start(restored, dead, (1,), voters=(f"1@127.0.0.1:{restored.controllers[1]}",))
    status = {one["topic"]: one["status"] for one in report["partitions"]}
    assert status["solo"] == "missing"
    assert {status[topic] for topic in REPLICATED} == {"online"}
    topics = [*REPLICATED, "__consumer_offsets"]
    restored.wait_for(topics)
    records = {name: value for name, value in dead.records.items() if name.split()[0] in topics}
    assert read(restored.bootstrap, topics) == records
    assert positions(restored.tools, restored.bootstrap) == dead.positions
    assert share_positions(restored.tools, restored.bootstrap) == dead.share_positions
    assert not restored.leads("solo")
    assert not list(restored.root.rglob("solo-0"))
    assert restored.complaints() == []


def test_what_could_lose_records_stays_offline(dead: Dead, restored: Restored, tmp_path: Path) -> None:
    """The disk with `solo` is lost, and the only copy of `orders` was not in sync. The last batch of `payments` is
    damaged: its offsets are not given again.
    """
    disks = [Path(shutil.copytree(root, tmp_path / f"disk{n}")) for n, root in enumerate(dead.roots[3])]
    for disk in disks:
        shutil.rmtree(disk / "solo-0", ignore_errors=True)
    isr = {"partitionId": 0, "topicId": dead.ids["orders"], "isr": [1, 2]}
    (segment,) = disks[0].glob("__cluster_metadata-0/*.log")
    *_, last = magicbyte.read_batches(segment.read_bytes())
    builder = magicbyte.RecordsBuilder(
        base_offset=last.last_offset + 1, partition_leader_epoch=last.partition_leader_epoch
    )
    builder.append(None, last.max_timestamp, None, _core.encode_metadata_record(5, 2, isr))
    with segment.open("ab") as file:
        file.write(builder.build())
    lost = damage_last_batch(disks, "payments")
    sources = replace(dead, roots={3: disks})
    voter = f"3@127.0.0.1:{restored.controllers[3]}"
    report = start(restored, sources, (3,), damaged=True, voters=(voter,))
    (payments,) = (one for one in report["merged"] if one["topic"] == "payments")
    assert payments["lost"] == [(lost.base_offset, lost.last_offset)]
    status = {
        one["topic"]: (one["status"], one["isr"]) for one in report["partitions"] if not one["partition"]
    }
    assert status["solo"] == ("missing", [])
    assert status["orders"] == ("out_of_sync", [1, 2])
    restored.wait_for(["payments"])
    time.sleep(1)
    assert not restored.leads("solo")
    assert not restored.leads("orders")
    election = ("--election-type", "UNCLEAN", "--topic", "orders", "--partition", "0")
    restored.tools.run("kafka-leader-election", "--bootstrap-server", restored.bootstrap, *election)
    restored.wait_for(["orders"])
    records = {name: value for name, value in dead.records.items() if name.split()[0] == "orders"}
    assert read(restored.bootstrap, ["orders"]) == records
    client = RawClient(restored.ports[3])
    end = lost.last_offset + 1
    assert client.list_offset("payments", -1, committed=False)[:3] == (0, -1, end)
    builder = magicbyte.RecordsBuilder()
    builder.append(0, 1, None, b"new")
    assert client.produce("payments", builder.build())["base_offset"] == end
    # A consumer that stands in what is lost goes on with the new record.
    fetched = client.fetch("payments", lost.base_offset, 1 << 20, committed=False)
    client.close()
    (new,) = magicbyte.read_batches(fetched["records"])
    assert (fetched["code"], new.base_offset) == (0, end)
    assert restored.complaints() == []


def damage_last_batch(disks: Sequence[Path], topic: str) -> Any:
    """Flips bits in the last batch of a topic's only segment; returns the batch as it was."""
    (segment,) = (path for disk in disks for path in disk.glob(f"{topic}-0/*.log"))
    data = bytearray(segment.read_bytes())
    *_, last = magicbyte.read_batches(bytes(data))
    data[last.position + 64] ^= 0xFF
    segment.write_bytes(data)
    return last


def test_the_logs_as_they_were(dead: Dead, restored: Restored, tmp_path: Path) -> None:
    """They end earlier, and the group that was beyond the end continues there."""
    ends = {f"{topic}-0": end for topic, end in (("orders", 6), ("payments", 20))}
    offsets = tmp_path / "offsets.json"
    offsets.write_text(json.dumps(ends))
    voter = f"1@127.0.0.1:{restored.controllers[1]}"
    report = start(restored, dead, NODES, nodes=(1,), voters=(voter,), until=offsets)
    cut = {one["topic"]: one["log_end_offset"] for one in report["cut"]}
    assert cut["orders"] <= 6
    assert 6 < cut["payments"] <= 20
    restored.wait_for(READ)
    client = RawClient(restored.ports[1])
    for topic, end in cut.items():
        for committed in (False, True):
            assert client.list_offset(topic, -1, committed=committed)[:3] == (0, -1, end)
    client.close()
    solo = {name: value for name, value in dead.records.items() if name.startswith("solo ")}
    assert read(restored.bootstrap, ["solo"]) == solo
    assert positions(restored.tools, restored.bootstrap) == {
        f"{GROUP} orders 0 {cut['orders']}",
        f"{GROUP} payments 0 3",
    }
    assert share_positions(restored.tools, restored.bootstrap) == {
        f"{SHARE_GROUP} orders 0 {min(7, cut['orders'])} 0",
        f"{SHARE_GROUP} payments 0 9 {cut['payments'] - 9}",
    }
    # Producers with the old transactional ids go on.
    consumer = Client(restored.bootstrap)
    consumer.ask("transact", "orders")
    consumer.close()
    # The share group gets new records, at offsets of which it had acknowledged other ones.
    assert len(share(restored.tools, restored.bootstrap, 2)) == 2
    assert restored.complaints() == []


def test_three_nodes_as_they_were(dead: Dead, restored: Restored) -> None:
    voters = [f"{node}@127.0.0.1:{port}" for node, port in restored.controllers.items()]
    report = start(restored, dead, NODES, voters=voters)
    assert {one["status"] for one in report["partitions"]} == {"online"}
    _are_as_before(restored, dead)


def _are_as_before(restored: Restored, dead: Dead) -> None:
    """All three nodes have what the cluster had, and the replicas get in sync."""
    restored.wait_for(READ)
    assert read(restored.bootstrap, READ) == dead.records
    assert positions(restored.tools, restored.bootstrap) == dead.positions
    assert share_positions(restored.tools, restored.bootstrap) == dead.share_positions

    def in_sync() -> bool:
        lines = restored.tools.run("kafka-topics", "--bootstrap-server", restored.bootstrap, "--describe")
        found = {}
        for line in lines:
            if match := re.search(r"Topic: (\S+)\s+Partition: 0\s.*Isr: ([\d,]*)", line):
                found[match[1]] = {*match[2].split(",")}
        return all(found[topic] == {"1", "2", "3"} for topic in REPLICATED)

    until(in_sync, "replicas are not in sync")
    assert restored.complaints() == []


def test_the_disks_themselves(dead: Dead, restored: Restored, tmp_path: Path) -> None:
    """One copy is damaged, and its broker gets the log again; a restore that was taken back left no trace."""
    disks = [
        Path(shutil.copytree(root, tmp_path / f"b{node}" / root.name))
        for node in NODES
        for root in dead.roots[node]
    ]
    (damaged,) = (log for log in tmp_path.glob("b2/*/orders-0"))
    (segment,) = damaged.glob("*.log")
    data = bytearray(segment.read_bytes())
    data[70] ^= 0xFF
    segment.write_bytes(data)
    before = {path: path.read_bytes() for disk in disks for path in disk.rglob("*") if path.is_file()}
    voters = [f"{node}@127.0.0.1:{port}" for node, port in restored.controllers.items()]
    magicbyte.restore(disks, in_place=True, voters=voters)
    magicbyte.restore(disks, undo=True)
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before
    report: Any = magicbyte.restore(disks, in_place=True, voters=voters)
    assert not damaged.exists()
    isr = {one["topic"]: one["isr"] for one in report["partitions"] if not one["partition"]}
    assert {topic: isr[topic] for topic in TOPICS} == {"orders": [1, 3], "payments": [2, 3, 1], "solo": [3]}
    restored.start(report)
    until(lambda: all(map(restored.answers, NODES)), "nodes do not answer")
    with pytest.raises(magicbyte.RefusedError, match="is in use: a broker has locked"):
        magicbyte.restore(disks, in_place=True, voters=voters)
    _are_as_before(restored, dead)
    assert first_offsets(restored.bootstrap) == {"orders": 7, "payments": 3}
    for node in NODES:
        restored.kill(node)
    with pytest.raises(magicbyte.RefusedError, match="a node has started on it since"):
        magicbyte.restore(disks, undo=True)


def test_a_quorum_in_the_log_of_the_version_before(restored: Restored) -> None:
    """One node of a dynamic quorum goes on with its own voter, at its old address; its metadata has a directory
    of its own.
    """
    restored.command = _before
    restored.ports = {1: restored.ports[1]}
    old = restored.root.parent / "old"
    properties = restored.root.parent / "server.properties"
    controller = restored.controllers[1]
    settings = kraft(restored.ports[1], {1: controller})
    dynamic = f"controller.quorum.bootstrap.servers=127.0.0.1:{controller}"
    settings = re.sub("controller.quorum.voters=.*", dynamic, settings)
    disks = f"log.dirs={old}/d1,{old}/d2\nmetadata.log.dir={old}/metadata\n"
    properties.write_text(f"{settings}{ALONE}{disks}")
    tool = ("kafka.tools.StorageTool", "format", "--standalone", "-t", CLUSTER, "-c", str(properties))
    subprocess.run(_before(*tool), check=True, capture_output=True)
    restored.launch(1, properties)
    topics = ("orders", "payments")
    until(lambda: restored.answers(1), "the node does not answer")
    client = Client(restored.bootstrap)
    client.ask("create", *(f"{topic} retention.ms=-1" for topic in topics))
    for topic in topics:
        client.ask("transact", topic)
    client.close()
    restored.kill(1)
    earlier = shutil.copytree(old / "metadata", restored.root.parent / "earlier" / "metadata")
    restored.launch(1, properties)
    restored.wait_for(topics)
    now = int(time.time() * 1000)
    client = Client(restored.bootstrap)
    client.ask("transact", "orders")
    client.close()
    records = read(restored.bootstrap, topics)
    restored.kill(1)
    for disk in ("d1", "d2"):
        shutil.copytree(old / disk, earlier.parent / disk)

    report = magicbyte.restore(old, out=restored.root)
    assert (report["balanced"], report["problems"], report["kraft_version"]) == (True, [], 1)
    assert {one["status"] for one in report["partitions"]} == {"online"}
    places = [(one["place"], one["is_metadata"]) for one in report["nodes"][0]["log_dirs"]]
    assert places == [("node1/metadata", True), ("node1/logs1", False), ("node1/logs2", False)]
    restored.start(report)
    restored.wait_for(topics)
    assert read(restored.bootstrap, topics) == records
    status = restored.tools.run(
        "kafka-metadata-quorum", "--bootstrap-server", restored.bootstrap, "describe", "--status"
    )
    directory = report["nodes"][0]["log_dirs"][0]["directory_id"]
    assert any("CurrentVoters" in line and str(directory) in line for line in status)
    restored.kill(1)
    # And on the old disks themselves.
    restored.start(magicbyte.restore(old, in_place=True))
    restored.wait_for(topics)
    assert read(restored.bootstrap, topics) == records
    restored.kill(1)
    _the_logs_then(restored, earlier.parent, now)
    assert restored.complaints() == []


def _the_logs_then(restored: Restored, disks: Path, now: int) -> None:
    """The metadata is older than the logs, and has lost its features; the logs are as they were at a time."""
    version = magicbyte.cluster(disks)["settings"]["features"]["metadata.version"]
    for path in (disks / "metadata" / "__cluster_metadata-0").iterdir():
        if path.suffix in (".log", ".checkpoint"):
            path.write_bytes(_without_features(path.read_bytes()))
    with pytest.raises(magicbyte.RefusedError, match=r"has no metadata\.version"):
        magicbyte.restore(disks)
    restored.root = restored.root.with_name("then")
    report: Any = magicbyte.restore(disks, out=restored.root, until=now, metadata_version=version)
    assert report["balanced"]
    assert any("is older than the logs of" in problem for problem in report["metadata_problems"])
    cut = {one["topic"] for one in report["cut"]}
    assert "orders" in cut
    assert {one["status"] for one in report["partitions"]} == {"online"}
    written = shutil.copytree(restored.root, restored.root.with_name("written"))
    restored.start(report)
    topics = ("orders", "payments")
    restored.wait_for(topics)
    choice = magicbyte.PartitionChoice(topics=topics)
    verified = magicbyte.verify(written, against=restored.bootstrap, choice=choice)
    assert verified["cluster"] is not None
    assert verified["cluster"]["equal"]
    orders = magicbyte.PartitionLog(next(written.rglob("orders-0")))
    assert 0 < max(batch.max_timestamp for batch in orders.batches()) <= now
    assert any("upgrade --feature transaction.version=2" in step for step in report["steps"])
    feature = ("upgrade", "--feature", "transaction.version=2")
    restored.tools.run("kafka-features", "--bootstrap-server", restored.bootstrap, *feature)
    client = Client(restored.bootstrap)
    client.ask("transact", "orders")
    client.close()


def _without_features(data: bytes) -> bytes:
    """Metadata with damage in every batch that has a `FeatureLevelRecord`."""
    damaged = bytearray(data)
    for batch in magicbyte.read_batches(data):
        if not batch.is_control and any(record.value_bytes[1:2] == b"\x0c" for record in batch):
            damaged[batch.position + batch.size_in_bytes - 1] ^= 0xFF
    return bytes(damaged)


def _before(*arguments: str) -> list[str]:
    return java(*arguments, log_level="info", version=JUDGES[-1])


def created(report: Any, *topics: str) -> list[str]:
    """The commands that create topics which the target lacks."""
    return [one["command"] for one in report["topics"] if one["command"] and one["topic"] in topics]


@pytest.mark.parametrize(("nodes", "version"), [(NODES, JUDGES[0]), ((1,), JUDGES[-1])])
def test_another_running_cluster(dead: Dead, tmp_path: Path, nodes: Sequence[int], version: str) -> None:
    sources = [root for node in NODES for root in dead.roots[node]]
    out = tmp_path / "out"
    with running(tmp_path, nodes, version) as target:
        plan = magicbyte.restore(sources, target=target.bootstrap)
        assert {one["topic"] for one in plan["topics"] if one["result"] == "missing"} == {*TOPICS}
        target.create(created(plan, *TOPICS))
        configs = ("--bootstrap-server", target.bootstrap, "--topic", "payments")
        target.tools.run("kafka-configs", *configs, "--alter", "--delete-config", UNCLEAN)
        report = magicbyte.restore(sources, target=target.bootstrap, out=out)
        assert {one["topic"]: one["reason"] for one in report["topics"] if one["result"] == "accepted"} == {
            **dict.fromkeys(TOPICS),
            "payments": f"in the target, {UNCLEAN} is false and was true",
        }
        assert {one["status"] for one in report["partitions"]} == {"restored"}
        assert (report["balanced"], report["problems"]) == (True, [])
        assert [one["topic"] for one in report["open_transactions"]] == ["solo"]
        assert "no .kafka_cleanshutdown" in target.put(out, 1).stderr
        target.stop()
        for node in nodes:
            assert target.put(out, node, "--check").returncode == 0
            assert target.put(out, node).returncode == 0, target.put(out, node).stderr
        target.begin()
        target.wait_for([*TOPICS])
        assert read(target.bootstrap, [*TOPICS]) == {
            name: value for name, value in dead.records.items() if name.split()[0] in TOPICS
        }
        choice = magicbyte.PartitionChoice(topics=tuple(TOPICS))
        for files in (sources, out):
            verified = magicbyte.verify(files, against=target.bootstrap, choice=choice)
            assert verified["problems"] == []
            assert verified["cluster"] is not None
            assert verified["cluster"]["equal"]
        target.run(step for step in report["steps"] if step.startswith("kafka-"))
        assert f"{UNCLEAN}=true" in " ".join(target.tools.run("kafka-configs", *configs, "--describe"))
        assert positions(target.tools, target.bootstrap) == dead.positions
        # What the group had acknowledged after its start offset comes again.
        starts = {line.rpartition(" ")[0] for line in dead.share_positions}
        now = share_positions(target.tools, target.bootstrap)
        assert {line.rpartition(" ")[0] for line in now} == starts
        assert first_offsets(target.bootstrap) == {"orders": 7, "payments": 3}
        # Producers go on, with ids that others had in the old cluster; nothing of theirs is dropped.
        if len(nodes) == 1:
            give_out_ids(target.ports[1], out / "broker1" / "orders-0")
        for topic in TOPICS:
            client = Client(target.bootstrap)
            before = len(client.ask("read", topic, "read_committed"))
            client.ask("transact", topic)
            assert len(client.ask("read", topic, "read_committed")) > before
            client.close()
        until(lambda: all(_in_sync(target, topic) for topic in TOPICS), "replicas are not in sync")
        assert target.complaints() == []


def give_out_ids(port: int, log: Path) -> None:
    """The next producer of the broker gets the id of the first transactional one in a log."""
    ids = (one.producer_id for one in magicbyte.PartitionLog(log).batches() if one.is_transactional)
    wanted = next(ids)
    client = RawClient(port)
    while wanted > 0 and client.init_producer_id() < wanted - 1:
        pass
    client.close()


def first_offsets(bootstrap: str) -> dict[str, int]:
    """Where a consumer of the old group goes on, which would fail rather than jump."""
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": GROUP,
            "auto.offset.reset": "error",
            "enable.auto.commit": False,
            "isolation.level": "read_uncommitted",
        }
    )
    consumer.subscribe([*REPLICATED])
    found: dict[str, int] = {}
    deadline = time.monotonic() + SECONDS
    while found.keys() != REPLICATED.keys():
        assert time.monotonic() < deadline, found
        if (message := consumer.poll(1)) is not None:
            assert message.error() is None, message.error()
            found.setdefault(str(message.topic()), message.offset() or 0)
    consumer.close()
    return found


def _in_sync(target: Running, topic: str) -> bool:
    describe = ("--bootstrap-server", target.bootstrap, "--describe", "--topic", topic)
    (line,) = (line for line in target.tools.run("kafka-topics", *describe) if "Isr: " in line)
    replicas, isr = ({*found[1].split(",")} for found in re.finditer(r"(?:Replicas|Isr): ([\d,]+)", line))
    return replicas == isr
