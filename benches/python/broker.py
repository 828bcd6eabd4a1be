"""A private Kafka broker (KRaft, loopback) whose directories outlive it."""

import base64
import os
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from sets import PROJECT

JARS = PROJECT / "target" / "bench-java" / "broker"
CLUSTER = base64.urlsafe_b64encode(b"magicbyte-bench1").decode().rstrip("=")
JAVA = ["java", "-Xms1g", "-Xmx1g", "-XX:+UseG1GC", "-Dorg.slf4j.simpleLogger.logFile=System.out"]
STARTED = "Kafka Server started"
START_SECONDS = 60


@dataclass(frozen=True)
class Broker:
    bootstrap_servers: str
    pid: int


@contextmanager
def running(directory: Path) -> Iterator[Broker]:
    """Starts a broker on `directory`; after the block it has shut down, and its files are complete."""
    copy_jars("broker-pom.xml", JARS)
    directory.mkdir(parents=True, exist_ok=True)
    port, controller = _free_ports(2)
    properties = directory / "server.properties"
    properties.write_text(_properties(directory / "logs", port, controller))
    java = [*JAVA, "-cp", f"{JARS}/*"]
    output = directory / "broker.out"
    with output.open("w") as out:
        if not (directory / "logs" / "meta.properties").exists():
            format_logs = ["kafka.tools.StorageTool", "format", "-t", CLUSTER, "-c", str(properties)]
            subprocess.run([*java, *format_logs], stdout=out, stderr=out, check=True)
        process = subprocess.Popen([*java, "kafka.Kafka", str(properties)], stdout=out, stderr=out)
    try:
        _wait(process, output)
        yield Broker(f"127.0.0.1:{port}", process.pid)
    finally:
        process.terminate()
        process.wait()


def copy_jars(pom: str, into: Path) -> None:
    """Fetches the dependencies of a POM in benches/java."""
    if not into.exists():
        command = ["mvn", "-q", "-B", "-f", str(PROJECT / "benches" / "java" / pom)]
        command += ["dependency:copy-dependencies", "-DincludeScope=runtime", f"-DoutputDirectory={into}"]
        subprocess.run(command, check=True)


def _wait(process: "subprocess.Popen[bytes]", output: Path) -> None:
    end = time.monotonic() + START_SECONDS
    while STARTED not in output.read_text():
        if process.poll() is not None or time.monotonic() > end:
            raise RuntimeError(f"the broker did not start: see {output}")
        time.sleep(0.1)


def _free_ports(count: int) -> list[int]:
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


def _properties(logs: Path, port: int, controller: int) -> str:
    return f"""\
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
controller.listener.names=CONTROLLER
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=PLAINTEXT://127.0.0.1:{port}
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT
log.dirs={os.fspath(logs)}
log.retention.hours=-1
log.retention.bytes=-1
num.network.threads=3
num.io.threads=8
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
"""
