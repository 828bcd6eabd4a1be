"""A real Kafka broker on loopback that opens existing partition directories."""

from __future__ import annotations

import hashlib
import os
import random
import re
import shutil
import socket
import subprocess
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from java_temporary import IN_TEMPORARY
from kafka_versions import NEWEST

ROOT = Path(__file__).parents[2]
BROKERS = ROOT / "target" / "kafka-broker"
"""A directory for each version, with its jars and what is compiled with them."""

# Small and quick to start: the serial collector, and only the first compiler.
JAVA = [
    os.path.join(os.environ["JAVA_HOME"], "bin", "java") if "JAVA_HOME" in os.environ else "java",
    "-Xmx384m",
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-Djava.net.preferIPv4Stack=true",
    IN_TEMPORARY,
]
# An archive that does not fit is not used, and then the output is still that of the program alone.
QUIET = ["-Xlog:cds=off", "-Xlog:cds+dynamic=off"]
SIDECARS = (".index", ".timeindex", ".txnindex", ".snapshot")
LEVELS = re.compile(r"\b(WARN|ERROR|FATAL)\b")
WORDS = re.compile("corrupt|exception|invalid|truncat|could not|rebuild", re.IGNORECASE)
# Logged for every log with a producer snapshot, needed or not.
ROUTINE = re.compile("Reloading from producer snapshot and rebuilding producer state")
# The settings of a broker that is small and quick to start, and of one that is alone.
SMALL = """num.network.threads=1
num.io.threads=2
offsets.topic.num.partitions=1
log.cleaner.dedupe.buffer.size=4000000
auto.create.topics.enable=false
"""
ALONE = f"""{SMALL}offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=1
"""
QUICK_RECOVERY = "background.threads=2\nnum.recovery.threads.per.data.dir=1\n"
CLUSTER = "bWFnaWNieXRlLXRlc3RzMQ"
# Nothing expires by age, and recovery writes index entries as densely as in the fixtures.
TOPIC = (
    "retention.ms=-1 retention.bytes=-1 index.interval.bytes=256 segment.index.bytes=65536 "
    "internal.segment.bytes=16384"
)


def java(*arguments: str, log_level: str = "error", version: str = NEWEST) -> list[str]:
    """The command line that runs one of Kafka's classes or ours."""
    if not (BROKERS / version).is_dir():
        raise FileNotFoundError(f"{BROKERS / version} is missing: make target/kafka-broker/{version}/built")
    level = f"-Dorg.slf4j.simpleLogger.defaultLogLevel={log_level}"
    archive = archive_of(version)
    shared = [f"-XX:SharedArchiveFile={archive}", *QUIET] if archive.exists() else []
    path = f"{BROKERS / version / 'classes.jar'}:{BROKERS / version / 'jars'}/*"
    return [*JAVA, *shared, level, "-cp", path, *arguments]


def archive_of(version: str) -> Path:
    """The classes of a broker as the JVM keeps them, for quicker starts (archive_classes.py)."""
    return BROKERS / version / "classes.jsa"


class Client:
    """Kafka's own clients of one broker, in a process that is asked line by line."""

    def __init__(self, bootstrap: str, version: str = NEWEST) -> None:
        command = java("Client", bootstrap, version=version)
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(self, *words: str) -> list[str]:
        """The lines of the answer."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write("\t".join(words) + "\n")
        self._process.stdin.flush()
        answer: list[str] = []
        for line in self._process.stdout:
            line = line.rstrip("\n")
            if line == ".":
                return answer
            if line.startswith("! "):
                raise RuntimeError(f"{words[0]} {words[1]}: {line[2:]}")
            answer.append(line)
        raise RuntimeError(f"{words[0]}: the client ended")

    def offsets_for_times(self, topic: str, timestamps: Iterable[int]) -> list[tuple[int, int] | None]:
        """For each timestamp, offset and timestamp of the first record that is not older."""
        answers = self.ask("times", topic, *map(str, timestamps))
        pairs = (None if line == "null" else line.split() for line in answers)
        return [pair and (int(pair[0]), int(pair[1])) for pair in pairs]

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(60)


class Tools:
    """Kafka's own tools, by the names of their scripts, in one process."""

    _CLASSES = {
        "kafka-acls": "org.apache.kafka.tools.AclCommand",
        "kafka-features": "org.apache.kafka.tools.FeatureCommand",
        "kafka-configs": "org.apache.kafka.tools.ConfigCommand",
        "kafka-metadata-quorum": "org.apache.kafka.tools.MetadataQuorumCommand",
        "kafka-share-groups": "org.apache.kafka.tools.consumer.group.ShareGroupCommand",
        "kafka-console-producer": "org.apache.kafka.tools.ConsoleProducer",
        "kafka-console-share-consumer": "org.apache.kafka.tools.consumer.ConsoleShareConsumer",
        "kafka-transactions": "org.apache.kafka.tools.TransactionsCommand",
        "kafka-topics": "org.apache.kafka.tools.TopicCommand",
        "kafka-reassign-partitions": "org.apache.kafka.tools.reassign.ReassignPartitionsCommand",
        "kafka-leader-election": "org.apache.kafka.tools.LeaderElectionCommand",
        "kafka-get-offsets": "org.apache.kafka.tools.GetOffsetShell",
        "kafka-groups": "org.apache.kafka.tools.GroupsCommand",
        "kafka-consumer-groups": "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand",
        "kafka-streams-groups": "org.apache.kafka.tools.streams.StreamsGroupCommand",
        "kafka-cluster": "org.apache.kafka.tools.ClusterTool",
        "kafka-log-dirs": "org.apache.kafka.tools.LogDirsCommand",
        "kafka-console-consumer": "org.apache.kafka.tools.consumer.ConsoleConsumer",
    }

    def __init__(self, version: str = NEWEST) -> None:
        self._version = version
        command = java("Tools", version=version)
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    @classmethod
    def class_of(cls, name: str, version: str) -> str:
        """The main class of a tool."""
        if name == "kafka-configs" and version == "4.3.1":
            return "kafka.admin.ConfigCommand"  # until 4.4
        return cls._CLASSES[name]

    def run(self, name: str, *arguments: str) -> list[str]:
        """The lines that a tool prints; bytes that are no UTF-8 are escaped."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        main_class = self.class_of(name, self._version)
        self._process.stdin.write(("\t".join((main_class, *arguments)) + "\n").encode())
        self._process.stdin.flush()
        lines: list[str] = []
        for line in self._process.stdout:
            text = line.decode(errors="backslashreplace").rstrip("\n")
            if text.startswith("exit status "):
                assert text == "exit status 0", (name, arguments, text, lines)
                return lines
            lines.append(text)
        raise RuntimeError(f"{name}: the process ended")

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(60)


def kraft(port: int, controllers: Mapping[int, int], node: int = 1) -> str:
    """The settings of a node that is also a controller, given the ports of all controllers by node."""
    voters = ",".join(f"{number}@127.0.0.1:{controller}" for number, controller in controllers.items())
    return f"""process.roles=broker,controller
node.id={node}
controller.quorum.voters={voters}
controller.listener.names=CONTROLLER
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controllers[node]}
advertised.listeners=PLAINTEXT://127.0.0.1:{port}
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT
"""


class Broker:
    """One KRaft node. The topics are created once; each `open` puts other files into their directories."""

    def __init__(self, root: Path, topics: int = 24, settings: str = "", version: str = NEWEST) -> None:
        self.root = root
        self.settings = settings
        self.version = version
        self.logs = root / "logs"
        self.output = root / "broker.out"
        self.port, self.controller = free_ports(2)
        self.topics = [f"given{number}" for number in range(topics)]
        self._process: subprocess.Popen[bytes] | None = None
        self._client: Client | None = None
        self._template = root / "template"
        self._log_start = 0
        self._make_template()

    @property
    def bootstrap(self) -> str:
        """The address for clients."""
        return f"127.0.0.1:{self.port}"

    @property
    def client(self) -> Client:
        """A client of the node, which ends with it."""
        if self._client is None:
            self._client = Client(self.bootstrap)
        return self._client

    def open(self, partitions: Mapping[str, Path], *, clean: bool) -> dict[str, str]:
        """Starts with these directories as partition 0 of topics; returns the topic for each name.

        With `clean`, the broker assumes a clean shutdown and trusts the sidecars that it finds. Otherwise it
        checks every batch and rebuilds all of them.
        """
        self.kill()
        shutil.rmtree(self.logs, ignore_errors=True)
        shutil.copytree(self._template, self.logs)
        if not clean:
            (self.logs / ".kafka_cleanshutdown").unlink()
        named = dict(zip(partitions, self.topics, strict=False))
        assert len(named) == len(partitions), "more partitions than topics"
        for name, topic in named.items():
            directory = self.logs / f"{topic}-0"
            for file in directory.iterdir():
                if file.name != "partition.metadata":
                    file.unlink()
            for file in partitions[name].iterdir():
                if file.is_file() and file.name != "partition.metadata":
                    shutil.copyfile(file, directory / file.name)
        self.start()
        return named

    def start(self) -> None:
        """Starts the node, and waits for its port."""
        self._log_start = self.output.stat().st_size if self.output.exists() else 0
        with self.output.open("ab") as output:
            self._process = subprocess.Popen(
                java(
                    "kafka.Kafka",
                    str(self.root / "server.properties"),
                    log_level="info",
                    version=self.version,
                ),
                stdout=output,
                stderr=subprocess.STDOUT,
            )
        deadline = time.monotonic() + 60
        while True:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", self.port)) == 0:
                    return
            if self._process.poll() is not None or time.monotonic() > deadline:
                self.kill()
                raise RuntimeError("the broker did not start:\n" + "\n".join(self.log()[-20:]))
            time.sleep(0.05)

    def stop(self) -> None:
        """Shuts down cleanly: the broker trims indexes and writes snapshots."""
        self._close_client()
        if self._process is not None:
            self._process.terminate()
            self._process.wait(60)
            self._process = None

    def kill(self) -> None:
        """Kills the broker, as with kill -9."""
        self._close_client()
        if self._process is not None:
            self._process.kill()
            self._process.wait(60)
            self._process = None

    def log(self) -> list[str]:
        """The broker's output since its last start."""
        with self.output.open("rb") as output:
            output.seek(self._log_start)
            return output.read().decode(errors="replace").splitlines()

    def complaints(self) -> list[str]:
        """Unusual messages of the broker about logs and partitions."""

        def complains(line: str) -> bool:
            return not ROUTINE.search(line) and (
                ("given" in line and WORDS.search(line) is not None)
                or (LEVELS.search(line) is not None and (".log." in line or "given" in line))
            )

        return [line for line in self.log() if complains(line)]

    def sidecars(self, topic: str) -> dict[str, bytes]:
        """The current sidecars of a topic; trimmed after a stop."""
        directory = self.logs / f"{topic}-0"
        files = (file for file in directory.iterdir() if file.name.endswith(SIDECARS))
        return {file.name: file.read_bytes() for file in files}

    def create_topics(self, topics: Mapping[str, str]) -> None:
        """Creates topics with one partition, given names and settings."""
        self.client.ask("create", *(f"{name} {settings}" for name, settings in topics.items()))

    def read(self, topic: str, isolation_level: str = "read_uncommitted") -> list[str]:
        """What a consumer gets: one line per record, in the form that the fixtures' digests use."""
        return self.client.ask("read", topic, isolation_level)

    def transact(self, topic: str) -> None:
        """Two transactional producers and an idempotent one write; one transaction is left open."""
        self.client.ask("transact", topic)

    def producers(self, topic: str) -> list[tuple[int, ...]]:
        """The broker's producers: id, epoch, last sequence, last timestamp, coordinator epoch, and the first
        offset of the open transaction or -1."""
        return [tuple(map(int, line.split())) for line in self.client.ask("producers", topic)]

    def offsets_for_times(self, topic: str, timestamps: Iterable[int]) -> list[tuple[int, int] | None]:
        """For each timestamp, offset and timestamp of the first record that is not older."""
        return self.client.offsets_for_times(topic, timestamps)

    def _close_client(self) -> None:
        if self._client is not None:
            self._client.close()
            self._client = None

    def _make_template(self) -> None:
        """Formats the node, and creates the topics in it."""
        self.root.mkdir(parents=True, exist_ok=True)
        properties = self.root / "server.properties"
        properties.write_text(
            f"{kraft(self.port, {1: self.controller})}{ALONE}{QUICK_RECOVERY}"
            f"log.dirs={self.logs}\n{self.settings}\n"
        )
        command = java("kafka.tools.StorageTool", "format", "-t", CLUSTER, "-c", version=self.version)
        subprocess.run([*command, str(properties)], check=True, capture_output=True)
        self.start()
        self.client.ask("create", *(f"{topic} {TOPIC}" for topic in self.topics))
        deadline = time.monotonic() + 60
        while not all((self.logs / f"{topic}-0" / "partition.metadata").exists() for topic in self.topics):
            assert time.monotonic() < deadline, "the topics' directories did not appear"
            time.sleep(0.05)
        self.stop()
        shutil.copytree(self.logs, self._template)


def dump_log(*arguments: str, files: Sequence[Path]) -> str:
    """The output of Kafka's DumpLogSegments for these files."""
    command = java("org.apache.kafka.tools.DumpLogSegments", *arguments, "--files", ",".join(map(str, files)))
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def digest(lines: Iterable[str]) -> str:
    """The sha256 of records, as in the fixtures."""
    return hashlib.sha256("".join(line + "\n" for line in lines).encode()).hexdigest()


_GIVEN: set[int] = set()


def free_ports(count: int) -> list[int]:
    """Ports that stay free while a broker is restarted: connections get none of these, nor does another process
    of the tests."""
    worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    first = 10_000 + 1000 * (worker % 10)
    candidates = [port for port in range(first, first + 1000) if port not in _GIVEN]
    random.shuffle(candidates)
    found: list[int] = []
    for port in candidates:
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        found.append(port)
        if len(found) == count:
            _GIVEN.update(found)
            return found
    raise RuntimeError("no port is free")
