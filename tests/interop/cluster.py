"""A cluster of three nodes on loopback, which are killed and started one by one."""

from __future__ import annotations

import json
import re
import socket
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from kafka_broker import CLUSTER, QUICK_RECOVERY, SMALL, Tools, free_ports, java, kraft
from kafka_versions import NEWEST

__all__ = ["NODES", "QUICK_FAILOVER", "SECONDS", "TRANSACTIONS", "Cluster", "until"]

NODES = (1, 2, 3)
SECONDS = 180
"""How long to wait for a cluster on a busy machine."""
TRANSACTIONS = """offsets.topic.replication.factor=3
transaction.state.log.replication.factor=3
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=1
group.initial.rebalance.delay.ms=0
"""
"""Settings for groups and transactions on three nodes."""
QUICK_FAILOVER = """broker.session.timeout.ms=6000
controller.quorum.election.timeout.ms=3000
controller.quorum.fetch.timeout.ms=6000
"""
"""Settings for tests that kill nodes, and in which the leaders may change at any time, as they do on a busy machine."""


def until(condition: Callable[[], bool], what: str) -> None:
    """Waits for a condition; `what` describes its absence."""
    deadline = time.monotonic() + SECONDS
    while not condition():
        assert time.monotonic() < deadline, what
        time.sleep(0.1)


class Cluster:
    """Three KRaft nodes, brokers and controllers, each with `disks` log directories. In the settings, `{node}` is the
    number of the node."""

    def __init__(self, root: Path, disks: int = 1, settings: str = "", version: str = NEWEST) -> None:
        self.root = root
        self._version = version
        self._disks = disks
        self._settings = settings
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

    def run(self, name: str, *arguments: str) -> list[str]:
        """The lines that one of Kafka's tools prints about this cluster."""
        return self.tools.run(name, "--bootstrap-server", self.bootstrap, *arguments)

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
        properties = directory / "server.properties"
        properties.write_text(
            f"{kraft(self.ports[node], self.controllers, node)}{SMALL}{QUICK_RECOVERY}"
            f"log.dirs={','.join(map(str, self.log_dirs(node)))}\nbroker.session.timeout.ms=30000\n"
            "controller.quorum.election.timeout.ms=10000\ncontroller.quorum.fetch.timeout.ms=20000\n"
            f"{self._settings.replace('{node}', str(node))}\n"
        )
        command = java("kafka.tools.StorageTool", "format", "-t", CLUSTER, "-c", version=self._version)
        subprocess.run([*command, str(properties)], check=True, capture_output=True)

    def start(self, node: int) -> None:
        directory = self.root / f"node{node}"
        with (directory / "broker.out").open("ab") as output:
            self._processes[node] = subprocess.Popen(
                java(
                    "kafka.Kafka",
                    str(directory / "server.properties"),
                    log_level="info",
                    version=self._version,
                ),
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

    def create(self, topic: str, replicas: str = "1", *configs: str) -> str:
        """Creates a topic, which keeps old records, on these nodes (`1:2:3`); returns its ID."""
        given = [word for config in ("retention.ms=-1", *configs) for word in ("--config", config)]
        deadline = time.monotonic() + SECONDS
        while True:
            try:
                self.run(
                    "kafka-topics",
                    *("--create", "--topic", topic),
                    *("--replica-assignment", replicas, *given),
                )
                break
            except AssertionError as error:
                # Its port is open before the controller gives a node that was started again any partition.
                if "are fenced" not in str(error) or time.monotonic() > deadline:
                    raise
            time.sleep(0.2)
        metadata = self.logs(int(replicas[0])) / f"{topic}-0" / "partition.metadata"
        until(metadata.exists, f"{metadata} is missing")
        return metadata.read_text().partition("topic_id: ")[2].strip()

    def add_replicas(self, topics: list[str]) -> None:
        """Adds nodes 2 and 3 as replicas."""
        partitions = [{"topic": topic, "partition": 0, "replicas": NODES} for topic in topics]
        plan = self.root / "reassignment.json"
        plan.write_text(json.dumps({"version": 1, "partitions": partitions}))
        self.run(
            "kafka-reassign-partitions",
            *("--reassignment-json-file", str(plan), "--execute"),
        )

    def isr(self, topic: str) -> set[int]:
        (line,) = (
            line for line in self.run("kafka-topics", "--describe", "--topic", topic) if "Isr:" in line
        )
        found = re.search(r"Isr:\s*([\d,]+)", line)
        return {int(node) for node in found[1].split(",")} if found else set()
