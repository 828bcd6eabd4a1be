"""A broker that cannot start says so, and no process is left."""

from __future__ import annotations

import socket
import subprocess
from pathlib import Path

import broker_versions
import pytest
from broker_versions import Node
from kafka_versions import NEWEST, OLD

pytestmark = pytest.mark.interop


@pytest.mark.parametrize(("version", "place"), [(OLD, 0), (OLD, 1), (NEWEST, 0)])
def test_a_port_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str, place: int) -> None:
    """That of the broker, or of the ZooKeeper, which is started before it."""
    started: list[subprocess.Popen[bytes]] = []
    java = Node._java

    def noted(self: Node, *arguments: str) -> subprocess.Popen[bytes]:
        started.append(java(self, *arguments))
        return started[-1]

    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # and does not listen
        ports = broker_versions.free_ports(2)
        ports[place] = taken.getsockname()[1]
        monkeypatch.setattr(broker_versions, "free_ports", lambda _: ports)
        monkeypatch.setattr(Node, "_java", noted)
        with pytest.raises(RuntimeError, match=f"Kafka {version} did not start"):
            Node(tmp_path, version)
    assert started
    assert all(process.poll() is not None for process in started)
