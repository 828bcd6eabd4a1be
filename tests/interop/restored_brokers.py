"""Brokers that start on what was restored, and what a cluster says of its records, topics and ACLs."""

from __future__ import annotations

import re
import socket
import subprocess
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from cluster import until
from kafka_broker import QUICK_RECOVERY, SMALL, Client, Tools, digest, java, kraft
from raw_client import RawClient

AUTHORIZER = """authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer
super.users=User:ANONYMOUS
"""
COMPLAINTS = re.compile(
    "treat it as a stray log|below high watermark|Skipping batch|conflicting entries|marked as failed"
)


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


def ids(tools: Tools, bootstrap: str) -> dict[str, str]:
    lines = "\n".join(tools.run("kafka-topics", "--bootstrap-server", bootstrap, "--describe"))
    return dict(re.findall(r"Topic: (\S+)\tTopicId: (\S+)", lines))


def acls(tools: Tools, bootstrap: str) -> list[str]:
    lines = tools.run("kafka-acls", "--bootstrap-server", bootstrap, "--list")
    return sorted(line.strip() for line in lines if line.strip())


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
            own = node["log_dirs"]
            log_dirs = ",".join(str(self.root / one["place"]) for one in own if not one["is_metadata"])
            number = node["node_id"]
            settings = kraft(self.ports[number], quorum, number)
            if own[0]["is_metadata"]:
                settings += f"metadata.log.dir={self.root / own[0]['place']}\n"
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
