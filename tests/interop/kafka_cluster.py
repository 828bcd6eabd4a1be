"""A real cluster of several KRaft nodes on loopback."""

from __future__ import annotations

import json
import re
import socket
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

from kafka_broker import Tools, free_ports, java

__all__ = ["SECONDS", "Cluster"]

SECONDS = 180
"""How long to wait for a cluster on a busy machine."""


class Cluster:
    """KRaft nodes, each a broker and a controller. Topics begin on node 1 alone."""

    def __init__(
        self, root: Path, nodes: Sequence[int] = (1, 2, 3), disks: int = 1, settings: str = ""
    ) -> None:
        self.root = root
        self.nodes = nodes
        self._disks = disks
        self._settings = settings
        ports = free_ports(2 * len(nodes))
        self.ports = dict(zip(nodes, ports, strict=False))
        self.controllers = dict(zip(nodes, ports[len(nodes) :], strict=True))
        self._processes: dict[int, subprocess.Popen[bytes]] = {}
        for node in nodes:
            self._format(node)
        self.tools = Tools()

    @property
    def bootstrap(self) -> str:
        return ",".join(f"127.0.0.1:{port}" for port in self.ports.values())

    def logs(self, node: int) -> Path:
        """The only log directory of a node, or the first one."""
        return self.log_dirs(node)[0]

    def log_dirs(self, node: int) -> list[Path]:
        """The log directories of a node."""
        names = ["logs", *(f"logs{number}" for number in range(2, self._disks + 1))]
        return [self.root / f"node{node}" / name for name in names]

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
log.dirs={",".join(map(str, self.log_dirs(node)))}
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
{self._settings}
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
        for node in self.nodes:
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
        """Makes every node a replica."""
        partitions = [{"topic": topic, "partition": 0, "replicas": self.nodes} for topic in topics]
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
