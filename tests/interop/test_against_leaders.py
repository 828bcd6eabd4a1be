"""A running cluster is read while its leaders change: nothing is read twice or left out without a name."""

from __future__ import annotations

import itertools
import json
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import magicbyte
import pytest
from cluster import NODES, SECONDS, Cluster, until
from confluent_kafka import Producer
from magicbyte import _core
from magicbyte.jobs.find.choice import PartitionChoice
from magicbyte.wire import Exchanges
from wire_recorder import WireRecorder

pytestmark = pytest.mark.interop

SETTINGS = """
broker.session.timeout.ms=2000
broker.heartbeat.interval.ms=300
controller.quorum.election.timeout.ms=1000
controller.quorum.fetch.timeout.ms=2000
offsets.topic.replication.factor=3
broker.rack=rack{node}
replica.selector.class=org.apache.kafka.common.replica.RackAwareReplicaSelector
"""
VALUE = b"a value that is not compressed " * 10
Digests = list[tuple[int, int, int]]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    cluster = Cluster(tmp_path_factory.mktemp("leaders"), settings=SETTINGS)
    try:
        for node in NODES:
            cluster.start(node)
        cluster.wait()
        yield cluster
    finally:
        cluster.close()


def leader(cluster: Cluster, topic: str) -> int | None:
    """The leader of partition 0."""
    lines = cluster.run("kafka-topics", "--describe", "--topic", topic)
    (line,) = (line for line in lines if "Partition: 0" in line)
    word = line.partition("Leader: ")[2].split()[0]
    return None if word == "none" else int(word)


def produce(cluster: Cluster, topic: str, numbers: Sequence[int], acks: str = "all") -> None:
    """Produces the numbers in order, in batches of ten, exactly once."""
    settings = {"bootstrap.servers": cluster.bootstrap, "acks": acks, "batch.num.messages": 10}
    producer = Producer({**settings, "enable.idempotence": acks == "all", "linger.ms": 5})
    for number in numbers:
        producer.produce(topic, VALUE, b"%d" % number, partition=0)
    assert producer.flush(SECONDS) == 0


class Reading:
    """A range of partition 0 of a topic, which is fetched by one client while the cluster changes."""

    def __init__(
        self, cluster: Cluster, topic: str, end: int, root: Path, pool: ThreadPoolExecutor, rack: str
    ) -> None:
        self._capture = root / f"{topic}.pcap"
        config = root / "client.properties"
        config.write_text(f"client.rack={rack}\n")
        node = cluster.ports[NODES[0]]
        self._recorder = WireRecorder(str(self._capture), ("127.0.0.1", 0), ("127.0.0.1", node))
        host, port = self._recorder.address
        reader = _core.ClusterReader(f"{host}:{port},{cluster.bootstrap}", config)
        ranges = [(topic, 0, 0, end)]
        self.result: Future[Any] = pool.submit(reader.digest, ranges, 1, "read_uncommitted", 1 << 20)

    def has_read(self, records: int) -> None:
        """Waits until so many records were sent to the client: their values alone are as long."""
        until(lambda: self._capture.stat().st_size > records * len(VALUE), f"{records} records are not read")

    def senders(self) -> list[int]:
        """The ports that sent records, in their order, after the end."""
        self.close()
        fetches = [one for one in Exchanges([self._capture]) if one.api == "Fetch" and one.response_frame]
        ports = [
            int((one.server or "").rpartition(":")[2])
            for one in fetches
            if any(records.data for records in one.record_sets())
        ]
        return [port for port, _ in itertools.groupby(ports)]

    def close(self) -> None:
        self._recorder.close()


@contextmanager
def reading(cluster: Cluster, topic: str, end: int, root: Path, rack: str = "") -> Iterator[Reading]:
    with ThreadPoolExecutor(1) as pool:
        read = Reading(cluster, topic, end, root, pool, rack)
        try:
            yield read
        finally:
            read.close()


def digests(found: Any) -> Digests:
    """The records of the only range, which has no damage."""
    ((_, _, _, ranges, _, errors, left_out),) = found
    assert (errors, left_out) == ([], 0)
    return list(ranges)


def reassign(cluster: Cluster, topic: str, replicas: Sequence[int]) -> None:
    plan = cluster.root / "plan.json"
    partitions = [{"topic": topic, "partition": 0, "replicas": list(replicas)}]
    plan.write_text(json.dumps({"version": 1, "partitions": partitions}))
    cluster.run("kafka-reassign-partitions", "--reassignment-json-file", str(plan), "--execute")
    until(lambda: leader(cluster, topic) in replicas, "the reassignment does not end")


def test_leaders_that_change(cluster: Cluster, tmp_path: Path) -> None:
    """One reader, three leaders: the first is killed, the next loses the election, the last is replaced."""
    cluster.create("moving", "2:3:1")
    with reading(cluster, "moving", 400, tmp_path) as read:
        produce(cluster, "moving", range(100))
        read.has_read(100)
        cluster.kill(2)
        until(lambda: leader(cluster, "moving") == 3, "no other leader")
        produce(cluster, "moving", range(100, 200))
        read.has_read(200)
        cluster.start(2)
        until(lambda: cluster.isr("moving") == {1, 2, 3}, "the killed replica does not come back")
        election = ("--election-type", "preferred", "--topic", "moving", "--partition", "0")
        cluster.run("kafka-leader-election", *election)
        until(lambda: leader(cluster, "moving") == 2, "no preferred leader")
        produce(cluster, "moving", range(200, 300))
        read.has_read(300)
        reassign(cluster, "moving", [1])
        produce(cluster, "moving", range(300, 400))
        found = digests(read.result.result(SECONDS))
    assert [(offset, records) for offset, records, _ in found] == [(offset, 1) for offset in range(400)]
    shutil.copytree(cluster.logs(1) / "moving-0", tmp_path / "logs" / "moving-0")
    comparison = magicbyte.verify(tmp_path / "logs", against=cluster.bootstrap)["cluster"]
    assert comparison is not None
    assert comparison["equal"], comparison
    again = _core.ClusterReader(cluster.bootstrap).digest(
        [("moving", 0, 0, 400)], 1, "read_uncommitted", 1 << 20
    )
    assert digests(again) == found


def test_the_closest_replica(cluster: Cluster, tmp_path: Path) -> None:
    """A client in a rack reads from the replica there, and from the leader while that one is down."""
    cluster.create("near", "2:3")
    produce(cluster, "near", range(100))
    until(lambda: cluster.isr("near") == {2, 3}, "the replicas are not in sync")

    def senders(end: int, meanwhile: Callable[[], None] = lambda: None) -> list[int]:
        root = tmp_path / str(time.monotonic_ns())
        root.mkdir()
        with reading(cluster, "near", end, root, rack="rack3") as read:
            read.has_read(100)
            meanwhile()
            found = digests(read.result.result(SECONDS))
            assert [(offset, records) for offset, records, _ in found] == [
                (offset, 1) for offset in range(end)
            ]
            return read.senders()

    # The replica learns a little later that all replicas have the records.
    until(lambda: senders(100) == [cluster.ports[3]], "the replica is not asked")

    def kill() -> None:
        cluster.kill(3)
        produce(cluster, "near", range(100, 200))

    assert senders(200, kill) == [cluster.ports[3], cluster.ports[2]]
    cluster.start(3)
    until(lambda: cluster.isr("near") == {2, 3}, "the killed replica does not come back")


def test_an_unclean_election_is_named(cluster: Cluster, tmp_path: Path) -> None:
    """The new leader has other records at offsets that were read: no offset is read a second time."""
    cluster.create("unclean", "2:3", "unclean.leader.election.enable=true", "min.insync.replicas=1")
    produce(cluster, "unclean", range(100))
    cluster.kill(3)
    until(lambda: cluster.isr("unclean") == {2}, "the killed replica stays in sync")
    produce(cluster, "unclean", range(100, 150))
    with reading(cluster, "unclean", 200, tmp_path) as read:
        read.has_read(150)
        cluster.kill(2)
        cluster.start(3)
        until(lambda: leader(cluster, "unclean") == 3, "no unclean leader")
        produce(cluster, "unclean", range(1000, 1100))
        with pytest.raises(
            ConnectionError, match=r"unclean-0: the log was truncated: offsets 100 to 150 \(exc"
        ):
            read.result.result(SECONDS)
    cluster.start(2)


def test_a_backup_without_a_leader(cluster: Cluster, tmp_path: Path) -> None:
    """While a broker dies, the rest is backed up; what has to be left out is named, and taken up later."""
    for topic, replicas in (("alone", "2"), ("kept", "1:2:3")):
        cluster.create(topic, replicas)
    producer = Producer({"bootstrap.servers": cluster.bootstrap, "acks": "all"})

    def produce(*topics: str) -> None:
        for topic in topics:
            for number in range(10):
                producer.produce(topic, b"value %d" % number)
        assert producer.flush(60) == 0

    def backup() -> Any:
        url, choice = f"kafka://{cluster.bootstrap}", PartitionChoice(topics=("alone", "kept"))
        return magicbyte.backup(url, tmp_path / "backup", choice=choice)

    produce("alone", "kept")
    assert backup()["copied_records"] == 20
    produce("alone", "kept")
    cluster.kill(2)
    report = backup()
    assert [(one["topic"], one["found"]) for one in report["findings"]] == [("alone", "unavailable")]
    assert all("configs of broker 2" in one for one in report["unknown_settings"])
    assert {one["topic"]: one["records"] for one in report["partitions"]} == {"alone": 10, "kept": 20}
    cluster.start(2)
    cluster.wait()
    until(
        lambda: "Leader: 2" in "".join(cluster.run("kafka-topics", "--describe", "--topic", "alone")),
        "leader",
    )
    report = backup()
    assert (report["copied_records"], report["findings"]) == (10, [])
    verified = magicbyte.verify(tmp_path / "backup", certificate=tmp_path / "backup" / "backup.json")
    assert verified["certificate"] is not None
    assert verified["certificate"]["equal"]
