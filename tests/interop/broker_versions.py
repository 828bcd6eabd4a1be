"""Brokers of old versions and of the newest one, for clients."""

from __future__ import annotations

import socket
import subprocess
import time
import uuid
from pathlib import Path

from kafka_broker import ALONE, CLUSTER, free_ports, java, kraft
from kafka_versions import OLD, OLDEST


def fresh(name: str) -> str:
    """A name of a topic that is free if the test runs again."""
    return f"{name}-{uuid.uuid4().hex[:6]}"


class Node:
    """A broker of its own. An old one has a ZooKeeper beside it, a new one is its own controller."""

    def __init__(self, root: Path, version: str, settings: str = "") -> None:
        self.port, self._second_port = free_ports(2)
        self._root, self._version = root, version
        self.logs = root / "logs"
        self._zookeeper: subprocess.Popen[bytes] | None = None
        self._probe: socket.socket | None = None
        self._broker: subprocess.Popen[bytes] | None = None
        has_zookeeper = version in (OLD, OLDEST)
        if has_zookeeper:
            self._start_zookeeper()
            special = (
                f"broker.id=1\nzookeeper.connect=127.0.0.1:{self._second_port}\n"
                f"listeners=PLAINTEXT://{self.bootstrap}\n"
            )
        else:
            special = (
                f"{kraft(self.port, {1: self._second_port})}"
                "broker.session.timeout.ms=1500\nbroker.heartbeat.interval.ms=200\n"
            )
        (root / "server.properties").write_text(f"{special}{ALONE}{settings}log.dirs={self.logs}\n")
        if not has_zookeeper:
            format_logs = ("kafka.tools.StorageTool", "format", "-t", CLUSTER, "-c")
            assert self._java(*format_logs, str(root / "server.properties")).wait(60) == 0, self.log()
        self.start()

    @property
    def bootstrap(self) -> str:
        """The address for clients."""
        return f"127.0.0.1:{self.port}"

    def start(self) -> None:
        """Starts the broker, and waits for its port."""
        self._broker = self._java("kafka.Kafka", str(self._root / "server.properties"))
        self._connected(self._broker, self.port).close()

    def kill(self) -> None:
        """Kills the broker, as with kill -9."""
        _kill(self._broker)

    def close(self) -> None:
        """Ends all processes that were started."""
        _kill(self._broker)
        _kill(self._zookeeper)
        if self._probe is not None:
            self._probe.close()

    def log(self) -> str:
        """The last lines of the output."""
        return "\n".join((self._root / "output").read_text(errors="replace").splitlines()[-20:])

    def _start_zookeeper(self) -> None:
        settings = self._root / "zookeeper.properties"
        settings.write_text(
            f"dataDir={self._root / 'zookeeper'}\nclientPort={self._second_port}\n"
            "clientPortAddress=127.0.0.1\nadmin.enableServer=false\n"
        )
        self._zookeeper = self._java("org.apache.zookeeper.server.quorum.QuorumPeerMain", str(settings))
        # ZooKeeper opens its port before its database. If a client of version 3.4 leaves in between, the
        # server never forgets that connection: it reads from it, and logs that, for as long as it lives.
        self._probe = self._connected(self._zookeeper, self._second_port)

    def _java(self, *arguments: str) -> subprocess.Popen[bytes]:
        with (self._root / "output").open("ab") as output:
            command = java(*arguments, log_level="info", version=self._version)
            return subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT)

    def _connected(self, process: subprocess.Popen[bytes], port: int) -> socket.socket:
        """A connection to a process, once it listens."""
        deadline = time.monotonic() + 60
        while True:
            try:
                return socket.create_connection(("127.0.0.1", port))
            except ConnectionRefusedError:
                if process.poll() is not None or time.monotonic() > deadline:
                    self.close()
                    raise RuntimeError(f"Kafka {self._version} did not start:\n{self.log()}") from None
            time.sleep(0.05)


def _kill(process: subprocess.Popen[bytes] | None) -> None:
    if process is not None:
        process.kill()
        process.wait(60)
