"""Another cluster, which runs, and gets the partitions of a dead one."""

from __future__ import annotations

import re
import shlex
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from cluster import SECONDS, until
from kafka_broker import ALONE, QUICK_RECOVERY, free_ports, java, kraft
from restored_brokers import Restored

__all__ = ["Running", "running"]

SHARING = """share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
"""
OTHER_CLUSTER = "YW5vdGhlci1jbHVzdGVyMQ"


class Running(Restored):
    """Another cluster, which runs. Node 1 is its only controller, so that every broker can stop cleanly."""

    def __init__(self, root: Path, nodes: Sequence[int], version: str) -> None:
        *ports, controller = free_ports(len(nodes) + 1)
        super().__init__(root, dict(zip(nodes, ports, strict=True)), {1: controller})
        self.command = partial(java, log_level="info", version=version)
        for node in nodes:
            settings = kraft(self.ports[node], {node: controller}, node)
            settings = re.sub("voters=.*", f"voters=1@127.0.0.1:{controller}", settings)
            if node != 1:
                settings = re.sub(",controller$|,CONTROLLER://.*", "", settings, flags=re.M)
            log_dirs = ",".join(map(str, self.log_dirs(node)))
            path = self._properties(node)
            path.parent.mkdir(parents=True)
            path.write_text(f"{settings}{ALONE}{QUICK_RECOVERY}{SHARING}log.dirs={log_dirs}\n")
            tool = ("kafka.tools.StorageTool", "format", "-t", OTHER_CLUSTER, "-c", str(path))
            subprocess.run(self.command(*tool), check=True, capture_output=True)

    def _properties(self, node: int) -> Path:
        return self.root / f"b{node}" / "server.properties"

    def log_dirs(self, node: int) -> list[Path]:
        return [self._properties(node).with_name(name) for name in ("d1", "d2")]

    def begin(self) -> None:
        for node in self.ports:
            self.launch(node, self._properties(node))
        for node in self.ports:
            until(lambda node=node: self.answers(node), f"node {node} does not answer")

    def stop(self) -> None:
        for node in sorted(self.ports, reverse=True):
            process = self._processes.pop(node)
            process.terminate()
            process.wait(SECONDS)

    def run(self, commands: Iterable[str]) -> None:
        """Runs commands of Kafka's tools as a person would type them."""
        for command in commands:
            name, *arguments = shlex.split(command, comments=True)
            self.tools.run(name.removesuffix(".sh"), *arguments)

    def create(self, commands: Sequence[str]) -> None:
        """Creates topics, and waits until every broker has the replicas."""
        self.run(commands)
        topics = [shlex.split(command)[shlex.split(command).index("--topic") + 1] for command in commands]
        self.wait_for(topics)
        until(lambda: all(map(self._is_everywhere, topics)), "replicas are missing")

    def _is_everywhere(self, topic: str) -> bool:
        (line,) = (
            line
            for line in self.tools.run("kafka-topics", "--bootstrap-server", self.bootstrap, "--describe")
            if f"Topic: {topic}\tPartition: 0" in line
        )
        replicas = re.search(r"Replicas: ([\d,]+)", line)
        assert replicas is not None
        return all(
            any(
                (log_dir / f"{topic}-0" / "partition.metadata").exists()
                for log_dir in self.log_dirs(int(node))
            )
            for node in replicas[1].split(",")
        )

    def put(self, out: Path, node: int, *options: str) -> subprocess.CompletedProcess[str]:
        """Runs the script that puts the partitions of a broker into its log directories."""
        command = ["sh", str(out / f"broker{node}" / "put.sh"), *options, *map(str, self.log_dirs(node))]
        return subprocess.run(command, capture_output=True, text=True, check=False)


@contextmanager
def running(root: Path, nodes: Sequence[int], version: str) -> Iterator[Running]:
    cluster = Running(root / "target", nodes, version)
    try:
        cluster.begin()
        yield cluster
    finally:
        cluster.close()
