"""Outputs that are put into a cluster of three brokers: served as they are, and taken by followers."""

from __future__ import annotations

import json
import re
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from kafka_broker import JARS, Client, Tools, digest, free_ports, java
from magicbyte import RecordsBuilder, commands
from magicbyte.log_dir import LOG_START_OFFSET_CHECKPOINT, format_offset_checkpoint, read_offset_checkpoint

if not JARS.is_dir():
    pytest.skip("the jars of a broker are not there", allow_module_level=True)

pytestmark = pytest.mark.interop

NODES = (1, 2, 3)
SECONDS = 180
"""How long to wait for a cluster on a busy machine."""


class Cluster:
    """Three KRaft nodes, brokers and controllers. Topics begin on node 1 alone."""

    def __init__(self, root: Path) -> None:
        self.root = root
        ports = free_ports(2 * len(NODES))
        self.ports = dict(zip(NODES, ports, strict=False))
        self.controllers = dict(zip(NODES, ports[len(NODES) :], strict=True))
        self._processes: dict[int, subprocess.Popen[bytes]] = {}
        for node in NODES:
            self._format(node)
        self.tools = Tools()

    @property
    def bootstrap(self) -> str:
        return ",".join(f"127.0.0.1:{port}" for port in self.ports.values())

    def logs(self, node: int) -> Path:
        return self.root / f"node{node}" / "logs"

    def output(self, node: int) -> str:
        return (self.root / f"node{node}" / "broker.out").read_text(errors="replace")

    def _format(self, node: int) -> None:
        directory = self.root / f"node{node}"
        directory.mkdir(parents=True)
        voters = ",".join(f"{one}@127.0.0.1:{port}" for one, port in self.controllers.items())
        properties = directory / "server.properties"
        properties.write_text(
            f"""process.roles=broker,controller
node.id={node}
controller.quorum.voters={voters}
listeners=PLAINTEXT://127.0.0.1:{self.ports[node]},CONTROLLER://127.0.0.1:{self.controllers[node]}
advertised.listeners=PLAINTEXT://127.0.0.1:{self.ports[node]}
controller.listener.names=CONTROLLER
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT
log.dirs={self.logs(node)}
num.network.threads=1
num.io.threads=2
background.threads=2
num.recovery.threads.per.data.dir=1
offsets.topic.num.partitions=1
log.cleaner.dedupe.buffer.size=4000000
auto.create.topics.enable=false
broker.session.timeout.ms=30000
controller.quorum.election.timeout.ms=10000
controller.quorum.fetch.timeout.ms=20000
"""
        )
        command = java("kafka.tools.StorageTool", "format", "-t", "bWFnaWNieXRlLXRlc3RzMQ", "-c")
        subprocess.run([*command, str(properties)], check=True, capture_output=True)

    def start(self, node: int) -> None:
        directory = self.root / f"node{node}"
        with (directory / "broker.out").open("ab") as output:
            self._processes[node] = subprocess.Popen(
                java("kafka.Kafka", str(directory / "server.properties"), log_level="info"),
                stdout=output,
                stderr=subprocess.STDOUT,
            )

    def wait(self) -> None:
        """Waits for all ports."""
        deadline = time.monotonic() + SECONDS
        for node, port in self.ports.items():
            while True:
                with socket.socket() as probe:
                    if probe.connect_ex(("127.0.0.1", port)) == 0:
                        break
                assert self._processes[node].poll() is None, self.output(node)[-2000:]
                assert time.monotonic() < deadline, f"node {node} did not start"
                time.sleep(0.1)

    def kill(self, node: int) -> None:
        if (process := self._processes.pop(node, None)) is not None:
            process.kill()
            process.wait(60)

    def close(self) -> None:
        self.tools.close()
        for node in NODES:
            self.kill(node)

    def create(self, topic: str) -> str:
        """Creates a topic on node 1 alone, which keeps old records; returns its ID."""
        self.tools.run(
            "kafka-topics",
            *("--bootstrap-server", self.bootstrap, "--create", "--topic", topic),
            *("--replica-assignment", "1", "--config", "retention.ms=-1"),
        )
        metadata = self.logs(1) / f"{topic}-0" / "partition.metadata"
        deadline = time.monotonic() + SECONDS
        while not metadata.exists():
            assert time.monotonic() < deadline
            time.sleep(0.1)
        return metadata.read_text().partition("topic_id: ")[2].strip()

    def add_replicas(self, topics: list[str]) -> None:
        """Adds nodes 2 and 3 as replicas."""
        partitions = [{"topic": topic, "partition": 0, "replicas": NODES} for topic in topics]
        plan = self.root / "reassignment.json"
        plan.write_text(json.dumps({"version": 1, "partitions": partitions}))
        self.tools.run(
            "kafka-reassign-partitions",
            *("--bootstrap-server", self.bootstrap, "--reassignment-json-file", str(plan), "--execute"),
        )

    def isr(self, topic: str) -> set[int]:
        (line,) = (
            line
            for line in self.tools.run(
                "kafka-topics", "--bootstrap-server", self.bootstrap, "--describe", "--topic", topic
            )
            if "Isr:" in line
        )
        found = re.search(r"Isr:\s*([\d,]+)", line)
        return {int(node) for node in found[1].split(",")} if found else set()


def batch(*offsets: int, epoch: int) -> bytes:
    builder = RecordsBuilder(partition_leader_epoch=epoch)
    for offset in offsets:
        builder.append(offset, 1_700_000_000_000 + offset, b"k%d" % offset, b"v%d" % offset)
    return builder.build()


EPOCHS = {"orders": 4, "compacted": -1, "redacted": -1}
"""The leader epochs of what is recovered, and none in what is cleaned."""
START = 5


def sources(root: Path, kafka: Path) -> dict[str, Path]:
    """By topic: messages of magic 1, and logs that start within a batch."""
    old = root / "old" / "old-0"
    shutil.copytree(kafka / "v1_gzip", old, ignore=shutil.ignore_patterns("rebuilt", "*.json*"))
    for name, epoch in EPOCHS.items():
        directory = root / name / f"{name}-0"
        directory.mkdir(parents=True)
        data = batch(0, 1, epoch=epoch) + batch(*range(2, 10), epoch=epoch) + batch(10, epoch=-1)
        (directory / f"{0:020}.log").write_bytes(data)
        (root / name / LOG_START_OFFSET_CHECKPOINT).write_text(format_offset_checkpoint({(name, 0): START}))
    return {name: root / name for name in ("old", *EPOCHS)}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    nodes = Cluster(tmp_path_factory.mktemp("cluster"))
    try:
        for node in NODES:
            nodes.start(node)
        nodes.wait()
        yield nodes
    finally:
        nodes.close()


def test_followers_take_what_is_written(cluster: Cluster, tmp_path: Path, kafka: Path) -> None:
    given = sources(tmp_path, kafka)
    ids = {topic: cluster.create(topic) for topic in given}
    cluster.kill(1)
    out = {topic: tmp_path / f"{topic}-out" for topic in given}
    commands.convert(given["old"], out["old"], topic_ids={"": ids["old"]})
    commands.recover(given["orders"], out["orders"], leader_epoch=0, topic_ids={"": ids["orders"]})
    commands.compact(given["compacted"], out["compacted"], all=True, topic_ids={"": ids["compacted"]})
    commands.redact(given["redacted"], out["redacted"], keys=[b"k7"], topic_ids={"": ids["redacted"]})
    starts: dict[tuple[str, int], int] = {}
    for topic, directory in out.items():
        shutil.rmtree(cluster.logs(1) / f"{topic}-0")
        shutil.copytree(directory / f"{topic}-0", cluster.logs(1) / f"{topic}-0")
        if (checkpoint := directory / LOG_START_OFFSET_CHECKPOINT).exists():
            starts |= read_offset_checkpoint(checkpoint)
    assert starts == {(topic, 0): START for topic in EPOCHS}
    (cluster.logs(1) / LOG_START_OFFSET_CHECKPOINT).write_text(format_offset_checkpoint(starts))
    cluster.start(1)
    cluster.wait()
    cluster.add_replicas(list(given))
    deadline = time.monotonic() + SECONDS
    waiting = set(given)
    while waiting:
        assert time.monotonic() < deadline, f"{waiting} have not three in-sync replicas"
        waiting = {topic for topic in waiting if cluster.isr(topic) != {*NODES}}
    client = Client(cluster.bootstrap)
    try:
        read = {topic: client.ask("read", topic, "read_uncommitted") for topic in given}
    finally:
        client.close()
    known = json.loads((kafka / "v1_gzip" / "summary.json").read_text())
    assert digest(read["old"]) == known["sha256"]
    assert {topic: len(read[topic]) for topic in EPOCHS} == {"orders": 6, "compacted": 6, "redacted": 5}
    complaints = re.compile("treat it as a stray log|Skipping batch|conflicting entries|marked as failed")
    for node in NODES:
        assert complaints.findall(cluster.output(node)) == []
        # The copy of each follower is that of the leader.
        for topic in given:
            assert segments(cluster.logs(node) / f"{topic}-0") == segments(out[topic] / f"{topic}-0")


def segments(directory: Path) -> bytes:
    return b"".join(path.read_bytes() for path in sorted(directory.glob("*.log")))
