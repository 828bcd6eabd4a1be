"""A cluster of three nodes is killed, and comes back: on one node, as the survivor of its quorum, and as it was."""

from __future__ import annotations

import re
import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import magicbyte
import pytest
from cluster import NODES, SECONDS, Cluster
from kafka_broker import (
    ALONE,
    CLUSTER,
    QUICK_RECOVERY,
    SMALL,
    Client,
    Tools,
    digest,
    free_ports,
    java,
    kraft,
)
from kafka_versions import JUDGES
from magicbyte import _core
from raw_client import RawClient

pytestmark = pytest.mark.interop

AUTHORIZER = """authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer
super.users=User:ANONYMOUS
"""
SETTINGS = f"""{AUTHORIZER}offsets.topic.replication.factor=3
transaction.state.log.replication.factor=3
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=1
group.initial.rebalance.delay.ms=0
"""
REPLICATED = {"orders": "1:2:3", "payments": "2:3:1"}
TOPICS = {**REPLICATED, "solo": "3"}
READ = (*TOPICS, "__consumer_offsets")
GROUP = "billing"
COMPLAINTS = re.compile(
    "treat it as a stray log|below high watermark|Skipping batch|conflicting entries|marked as failed"
)


@dataclass
class Dead:
    """The disks of a cluster, and what it had said before it was killed."""

    roots: dict[int, list[Path]]
    records: dict[str, str]
    positions: set[str]
    ids: dict[str, str]
    acls: list[str]


def read(bootstrap: str, topics: Sequence[str]) -> dict[str, str]:
    """The digests of the records of each topic, at both isolation levels."""
    client = Client(bootstrap)
    try:
        return {
            f"{topic} {level}": digest(client.ask("read", topic, level))
            for topic in topics
            for level in ("read_uncommitted", "read_committed")
        }
    finally:
        client.close()


def positions(tools: Tools, bootstrap: str) -> set[str]:
    lines = tools.run(
        "kafka-consumer-groups", "--bootstrap-server", bootstrap, "--describe", "--group", GROUP
    )
    return {" ".join(line.split()[:4]) for line in lines if line.startswith(GROUP)}


def ids(tools: Tools, bootstrap: str) -> dict[str, str]:
    lines = "\n".join(tools.run("kafka-topics", "--bootstrap-server", bootstrap, "--describe"))
    return dict(re.findall(r"Topic: (\S+)\tTopicId: (\S+)", lines))


def acls(tools: Tools, bootstrap: str) -> list[str]:
    lines = tools.run("kafka-acls", "--bootstrap-server", bootstrap, "--list")
    return sorted(line.strip() for line in lines if line.strip())


def until(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + SECONDS
    while not condition():
        assert time.monotonic() < deadline, what
        time.sleep(0.2)


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
            unclean = ("--config", "unclean.leader.election.enable=true") if topic == "payments" else ()
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
        # The transactions that were left open are aborted on the first start after 60 s; until then, equal.
        said = (
            read(cluster.bootstrap, READ),
            positions(tools, cluster.bootstrap),
            ids(tools, cluster.bootstrap),
            acls(tools, cluster.bootstrap),
        )
        for node in NODES:
            cluster.kill(node)
        yield Dead({node: cluster.log_dirs(node) for node in NODES}, *said)
    finally:
        cluster.close()


class Restored:
    """Nodes that start on what was restored, with static voters or those of the snapshot."""

    def __init__(self, root: Path, ports: Mapping[int, int], controllers: Mapping[int, int]) -> None:
        self.root, self.ports, self.controllers = root, ports, controllers
        self.command: Callable[..., list[str]] = partial(java, log_level="info")
        self._processes: dict[int, subprocess.Popen[bytes]] = {}
        self.tools = Tools()

    @property
    def bootstrap(self) -> str:
        return ",".join(f"127.0.0.1:{port}" for port in self.ports.values())

    def start(self, report: Any) -> None:
        quorum = {one["node_id"]: self.controllers[one["node_id"]] for one in report["voters"]}
        for node in report["nodes"]:
            log_dirs = ",".join(str(self.root / one["place"]) for one in node["log_dirs"])
            number = node["node_id"]
            settings = kraft(self.ports[number], quorum, number)
            if report["kraft_version"]:
                servers = ",".join(f"127.0.0.1:{port}" for port in quorum.values())
                settings = re.sub(
                    "controller.quorum.voters=.*", f"controller.quorum.bootstrap.servers={servers}", settings
                )
            properties = self.root.parent / f"server{number}.properties"
            properties.write_text(f"{settings}{SMALL}{QUICK_RECOVERY}{AUTHORIZER}log.dirs={log_dirs}\n")
            self.launch(number, properties)

    def launch(self, node: int, properties: Path) -> None:
        with self.output(node).open("ab") as output:
            self._processes[node] = subprocess.Popen(
                self.command("kafka.Kafka", str(properties)), stdout=output, stderr=subprocess.STDOUT
            )

    def kill(self, node: int) -> None:
        process = self._processes.pop(node)
        process.kill()
        process.wait(60)

    def answers(self, node: int) -> bool:
        assert self._processes[node].poll() is None, self.tail()
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.ports[node])) == 0

    def output(self, node: int) -> Path:
        return self.root.parent / f"broker{node}.out"

    def wait_for(self, topics: Sequence[str]) -> None:
        """Waits until each topic has a leader."""
        for topic in topics:
            until(lambda topic=topic: self.leads(topic), f"{topic} has no leader:\n{self.tail()}")

    def leads(self, topic: str) -> bool:
        for node, process in self._processes.items():
            assert process.poll() is None, self.tail()
            with suppress(OSError):
                client = RawClient(self.ports[node])
                code, *_ = client.list_offset(topic, -1, committed=False)
                client.close()
                if not code:
                    return True
        return False

    def tail(self) -> str:
        return "\n".join(self.output(node).read_text(errors="replace")[-3000:] for node in self._processes)

    def complaints(self) -> list[str]:
        return [
            line
            for node in self._processes
            for line in self.output(node).read_text(errors="replace").splitlines()
            if COMPLAINTS.search(line)
        ]

    def close(self) -> None:
        self.tools.close()
        for node in [*self._processes]:
            self.kill(node)


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


def start(restored: Restored, dead: Dead, disks_of: Sequence[int], **options: Any) -> Any:
    """Restores the disks of these nodes, and starts them; returns the report."""
    sources = [root for node in disks_of for root in dead.roots[node]]
    report = magicbyte.restore(sources, out=restored.root, **options)
    assert report["balanced"]
    assert report["problems"] == []
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
    assert not restored.leads("solo")
    assert not list(restored.root.rglob("solo-0"))
    assert restored.complaints() == []


def test_what_could_lose_records_stays_offline(dead: Dead, restored: Restored, tmp_path: Path) -> None:
    """The disk with `solo` is lost, and the only copy of `orders` was not in sync."""
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
    sources = replace(dead, roots={3: disks})
    report = start(restored, sources, (3,), voters=(f"3@127.0.0.1:{restored.controllers[3]}",))
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
    records = {name: value for name, value in dead.records.items() if name.split()[0] in REPLICATED}
    assert read(restored.bootstrap, list(REPLICATED)) == records
    assert restored.complaints() == []


def test_three_nodes_as_they_were(dead: Dead, restored: Restored) -> None:
    voters = [f"{node}@127.0.0.1:{port}" for node, port in restored.controllers.items()]
    report = start(restored, dead, NODES, voters=voters)
    assert {one["status"] for one in report["partitions"]} == {"online"}
    restored.wait_for(READ)
    assert read(restored.bootstrap, READ) == dead.records
    assert positions(restored.tools, restored.bootstrap) == dead.positions

    def in_sync() -> bool:
        lines = restored.tools.run("kafka-topics", "--bootstrap-server", restored.bootstrap, "--describe")
        found = {}
        for line in lines:
            if match := re.search(r"Topic: (\S+)\s+Partition: 0\s.*Isr: ([\d,]*)", line):
                found[match[1]] = {*match[2].split(",")}
        return all(found[topic] == {"1", "2", "3"} for topic in REPLICATED)

    until(in_sync, "replicas are not in sync")
    assert restored.complaints() == []


def test_a_quorum_in_the_log_of_the_version_before(restored: Restored) -> None:
    """One node of a dynamic quorum goes on with its own voter, at its old address."""
    restored.command = _before
    restored.ports = {1: restored.ports[1]}
    old = restored.root.parent / "old"
    properties = restored.root.parent / "server.properties"
    controller = restored.controllers[1]
    settings = kraft(restored.ports[1], {1: controller})
    dynamic = f"controller.quorum.bootstrap.servers=127.0.0.1:{controller}"
    settings = re.sub("controller.quorum.voters=.*", dynamic, settings)
    properties.write_text(f"{settings}{ALONE}log.dirs={old}/d1,{old}/d2\n")
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
    records = read(restored.bootstrap, topics)
    restored.kill(1)

    report = magicbyte.restore(old, out=restored.root)
    assert (report["balanced"], report["problems"], report["kraft_version"]) == (True, [], 1)
    assert {one["status"] for one in report["partitions"]} == {"online"}
    restored.start(report)
    restored.wait_for(topics)
    assert read(restored.bootstrap, topics) == records
    status = restored.tools.run(
        "kafka-metadata-quorum", "--bootstrap-server", restored.bootstrap, "describe", "--status"
    )
    directory = report["nodes"][0]["log_dirs"][0]["directory_id"]
    assert any("CurrentVoters" in line and str(directory) in line for line in status)
    assert restored.complaints() == []


def _before(*arguments: str) -> list[str]:
    return java(*arguments, log_level="info", version=JUDGES[-1])
