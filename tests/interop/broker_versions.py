"""Brokers of the oldest and the newest version that the example client is tested with."""

from __future__ import annotations

import socket
import subprocess
import time
from pathlib import Path

from kafka_broker import JAVA, ROOT, free_ports
from oracle import MESSAGES

OLD, NEW = "2.8.2", MESSAGES
BROKERS = ROOT / "target" / "brokers"

COMMON = """
offsets.topic.replication.factor=1
offsets.topic.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=1
log.cleaner.dedupe.buffer.size=4000000
num.network.threads=1
num.io.threads=2
auto.create.topics.enable=false
"""


class Node:
    """A broker of its own. The old one has a ZooKeeper beside it, the new one is its own controller."""

    def __init__(self, root: Path, version: str) -> None:
        if not (BROKERS / version).is_dir():
            raise FileNotFoundError(f"{BROKERS / version} is missing: make target/brokers/fetched")
        self.port, self._second_port = free_ports(2)
        self._root, self._version = root, version
        self._zookeeper: subprocess.Popen[bytes] | None = None
        self._broker: subprocess.Popen[bytes] | None = None
        listener = f"127.0.0.1:{self.port}"
        if version == OLD:
            self._start_zookeeper()
            special = f"broker.id=1\nzookeeper.connect=127.0.0.1:{self._second_port}\nlisteners=PLAINTEXT://{listener}"
        else:
            controller = f"127.0.0.1:{self._second_port}"
            special = f"""process.roles=broker,controller
node.id=1
controller.quorum.voters=1@{controller}
controller.listener.names=CONTROLLER
listeners=PLAINTEXT://{listener},CONTROLLER://{controller}
advertised.listeners=PLAINTEXT://{listener}
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT
broker.session.timeout.ms=1500
broker.heartbeat.interval.ms=200"""
        (root / "server.properties").write_text(f"{special}\nlog.dirs={root / 'logs'}{COMMON}")
        if version != OLD:
            format_logs = ("kafka.tools.StorageTool", "format", "-t", "bWFnaWNieXRlLXRlc3RzMQ", "-c")
            assert self._java(*format_logs, str(root / "server.properties")).wait(60) == 0, self.log()
        self.start()

    @property
    def bootstrap(self) -> str:
        """The address for clients."""
        return f"127.0.0.1:{self.port}"

    def start(self) -> None:
        """Starts the broker, and waits for its port."""
        self._broker = self._java("kafka.Kafka", str(self._root / "server.properties"))
        self._wait(self._broker, self.port)

    def kill(self) -> None:
        """Kills the broker, as with kill -9."""
        assert self._broker is not None
        self._broker.kill()
        self._broker.wait(60)

    def close(self) -> None:
        """Ends all processes."""
        self.kill()
        if self._zookeeper is not None:
            self._zookeeper.kill()
            self._zookeeper.wait(60)

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
        self._wait(self._zookeeper, self._second_port)

    def _java(self, *arguments: str) -> subprocess.Popen[bytes]:
        with (self._root / "output").open("ab") as output:
            command = [*JAVA, "-cp", f"{BROKERS / self._version}/*", *arguments]
            return subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT)

    def _wait(self, process: subprocess.Popen[bytes], port: int) -> None:
        deadline = time.monotonic() + 60
        while True:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    return
            if process.poll() is not None or time.monotonic() > deadline:
                self.close()
                raise RuntimeError(f"Kafka {self._version} did not start:\n{self.log()}")
            time.sleep(0.05)
