"""`backup` of a real cluster: under load, killed and resumed, and restored with its groups, settings and ACLs."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from operator import itemgetter
from pathlib import Path
from typing import Any

import magicbyte
import pyarrow.parquet as pq
import pytest
from broker_versions import Node
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from kafka_broker import Client, Tools, free_ports
from kafka_versions import NEWEST
from magicbyte.enums import IsolationLevel
from magicbyte.jobs.schemas import open_registry
from magicbyte.options.typed import TypedColumns
from restored_brokers import AUTHORIZER, Restored, acls, ids, read

pytestmark = pytest.mark.interop

TOPICS = {"orders": 3, "payments": 1, "compacted": 1}
FIXTURES = Path(__file__).parents[1] / "data" / "kafka"
SCHEMAS = ("_schemas", "typed")
"""The topic of a schema registry, and one whose values name its schemas."""
GROUP = "billing"
QUOTA = {"producer_byte_rate": 1048576.0}
SETTINGS = f"{AUTHORIZER}group.initial.rebalance.delay.ms=0\nlog.cleaner.backoff.ms=200\n"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    """A broker with topics, transactions, positions of a group, settings, quotas and ACLs."""
    node = Node(tmp_path_factory.mktemp("cluster"), NEWEST, SETTINGS)
    tools = Tools()
    try:
        admin = AdminClient({"bootstrap.servers": node.bootstrap})
        for topic, partitions in TOPICS.items():
            config = {"cleanup.policy": "compact"} if topic == "compacted" else {"retention.ms": "-1"}
            admin.create_topics([NewTopic(topic, partitions, 1, config=config)])[topic].result(60)
        client = Client(node.bootstrap)
        for topic in TOPICS:
            client.ask("transact", topic)
        client.close()
        produce_schemas(node.bootstrap, admin)
        server = ("--bootstrap-server", node.bootstrap)
        allow = ("--add", "--allow-principal", "User:ann", "--operation", "Read", "--topic", "orders")
        tools.run("kafka-acls", *server, *allow)
        quota = ",".join(f"{name}={value}" for name, value in QUOTA.items())
        for entity, config in (
            (("--entity-type", "users", "--entity-name", "ann"), quota),
            (("--entity-type", "users", "--entity-name", "bob"), "SCRAM-SHA-512=[password=s3cret-of-bob]"),
            (("--entity-type", "brokers", "--entity-default"), "log.cleaner.threads=2"),
            (("--entity-type", "groups", "--entity-name", GROUP), "consumer.session.timeout.ms=50000"),
        ):
            tools.run("kafka-configs", *server, "--alter", *entity, "--add-config", config)
        consumer = Consumer({"bootstrap.servers": node.bootstrap, "group.id": GROUP})
        consumer.commit(
            offsets=[TopicPartition("orders", 0, 7), TopicPartition("payments", 0, 3)], asynchronous=False
        )
        consumer.close()
        yield node
    finally:
        tools.close()
        node.close()


def produce_schemas(bootstrap: str, admin: AdminClient) -> None:
    """Produces what a registry and a serializer wrote, as they did."""
    producer = Producer({"bootstrap.servers": bootstrap})
    for topic, fixture in zip(SCHEMAS, ("schemas_topic", "sr_avro"), strict=True):
        policy = {"cleanup.policy": "compact"} if topic == "_schemas" else {"retention.ms": "-1"}
        admin.create_topics([NewTopic(topic, 1, 1, config=policy)])[topic].result(60)
        for line in (FIXTURES / fixture / "expected.jsonl").read_text().splitlines():
            key, value = (
                text and bytes.fromhex(text) for text in itemgetter("key", "value")(json.loads(line))
            )
            producer.produce(topic, value, key, 0)
    assert producer.flush(60) == 0


def typed_values(directory: Path, out: Path) -> tuple[Any, list[Any]]:
    """The subjects that a directory's own `_schemas` has, and the values of a topic that they decode."""
    _, registry = open_registry([str(directory)])
    latest = registry.latest("orders-value").schema.text
    typed = TypedColumns(schema_registry=str(directory), value_format="avro", reader_schema=latest)
    report = magicbyte.ingest(
        directory, out, typed=typed, choice=magicbyte.PartitionChoice(topics=("typed",))
    )
    assert report["balanced"]
    rows = pq.read_table(out / "records").sort_by("offset").column("value").to_pylist()
    assert rows.count(None) == 2, "only tombstones"
    return magicbyte.schemas(directory)["subjects"], rows


@contextmanager
def load(node: Node, topic: str) -> Iterator[None]:
    """A producer that writes all the time, in small batches."""
    stop = threading.Event()
    settings = {"bootstrap.servers": node.bootstrap, "linger.ms": 1, "batch.size": 4000}
    producer = Producer({**settings, "enable.idempotence": True, "compression.type": "lz4"})

    def produce() -> None:
        number = 0
        while not stop.is_set():
            producer.produce(
                topic, os.urandom(200), b"key %d" % (number % 50), partition=number % TOPICS[topic]
            )
            number += 1
            if not number % 50:
                # Not faster than the machine: a queue that is full would be an error.
                producer.poll(0.002)
                while len(producer) > 50_000:
                    producer.poll(0.1)

    thread = threading.Thread(target=produce)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
        producer.flush(60)


def backup(node: Node, out: Path, *options: str, code: int = 0) -> dict[str, object]:
    command = [
        sys.executable,
        "-m",
        "magicbyte",
        "backup",
        f"kafka://{node.bootstrap}",
        str(out),
        "--json",
        *options,
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == code, done.stderr + done.stdout[-2000:]
    report: dict[str, object] = json.loads(done.stdout)
    return report


def is_equal(out: Path, node: Node) -> bool:
    report = magicbyte.verify(out, against=node.bootstrap)
    assert report["balanced"]
    assert not report["problems"]
    assert report["cluster"] is not None
    return report["cluster"]["equal"]


def is_proved(out: Path) -> bool:
    report = magicbyte.verify(out, certificate=out / "backup.json")
    assert report["certificate"] is not None
    return report["certificate"]["equal"]


def positions(bootstrap: str) -> dict[str, int]:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": GROUP})
    places = [TopicPartition("orders", 0), TopicPartition("payments", 0)]
    found = {one.topic: one.offset for one in consumer.committed(places, 60)}
    consumer.close()
    return found


def test_restored(cluster: Node, tmp_path: Path) -> None:
    """A backup becomes a cluster with the same records, ids, settings, ACLs and positions."""
    out = tmp_path / "backup"
    report = backup(cluster, out, "--with-acls")
    assert report["scram_users"] == ["bob SCRAM-SHA-512"]
    assert "s3cret" not in (out / "backup.json").read_text()
    assert is_equal(out, cluster)
    assert is_proved(out)
    of_backup = typed_values(out, tmp_path / "of_backup")
    assert of_backup == typed_values(cluster.logs, tmp_path / "of_cluster")
    tools = Tools()
    of_cluster = (
        read(cluster.bootstrap, [*TOPICS, *SCHEMAS, "__consumer_offsets"]),
        ids(tools, cluster.bootstrap),
        acls(tools, cluster.bootstrap),
        positions(cluster.bootstrap),
    )
    tools.close()
    node = int(str(report["node_id"]))
    ports = free_ports(2)
    restored = Restored(tmp_path / "restored", {node: ports[0]}, {node: ports[1]})
    try:
        plan = magicbyte.restore(out, out=restored.root)
        assert {one["status"] for one in plan["partitions"]} == {"online"}
        assert plan["metadata_problems"] == []
        assert plan["problems"] == []
        restored.start(plan)
        restored.wait_for([*TOPICS, *SCHEMAS, "__consumer_offsets"])
        assert of_cluster == (
            read(restored.bootstrap, [*TOPICS, *SCHEMAS, "__consumer_offsets"]),
            ids(restored.tools, restored.bootstrap),
            acls(restored.tools, restored.bootstrap),
            positions(restored.bootstrap),
        )
        assert positions(restored.bootstrap) == {"orders": 7, "payments": 3}
        report = magicbyte.verify(out, against=restored.bootstrap)
        assert report["cluster"] is not None
        assert report["cluster"]["equal"]
        server = ("--bootstrap-server", restored.bootstrap, "--describe")
        for entity, expected in (
            (("--entity-type", "users", "--entity-name", "ann"), "producer_byte_rate=1048576.0"),
            (("--entity-type", "brokers", "--entity-default"), "log.cleaner.threads=2"),
            (("--entity-type", "groups", "--entity-name", GROUP), "consumer.session.timeout.ms=50000"),
            (("--entity-type", "topics", "--entity-name", "compacted"), "cleanup.policy=compact"),
        ):
            assert expected in "\n".join(restored.tools.run("kafka-configs", *server, *entity))
        # Producers go on, with ids that nobody had.
        client = Client(restored.bootstrap)
        client.ask("transact", "orders")
        client.close()
        assert restored.complaints() == []
        for node_id in restored.ports:
            restored.kill(node_id)
        assert of_backup == typed_values(restored.root, tmp_path / "of_restored")
    finally:
        restored.close()


def test_killed_under_load(cluster: Node, tmp_path: Path) -> None:
    """Runs that are killed at any time are continued: the records are those of the cluster."""
    out = tmp_path / "backup"
    command = [
        sys.executable, "-m", "magicbyte", "backup", f"kafka://{cluster.bootstrap}", str(out),
        "--topic", "orders", "--segment-bytes", "64k",
    ]  # fmt: skip
    generator, killed = random.Random(7), 0
    with load(cluster, "orders"):
        time.sleep(2)
        for _ in range(20):
            process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            time.sleep(generator.uniform(0.2, 1.2))
            process.send_signal(signal.SIGKILL)
            killed += process.wait() == -signal.SIGKILL
    assert killed > 5
    report = backup(cluster, out, "--topic", "orders", "--segment-bytes", "64k")
    assert len(list(out.glob("orders-0/*.log"))) > 5
    assert is_equal(out, cluster)
    assert is_proved(out)
    assert report["findings"] == []
    # Nothing is new.
    again = backup(cluster, out, "--topic", "orders", "--segment-bytes", "64k")
    assert again["copied_bytes"] == 0
    assert again["partitions"] == report["partitions"]


def test_a_cluster_that_changes(cluster: Node, tmp_path: Path) -> None:
    """Records are deleted, a topic is created again, a log is compacted: what a run cannot have is named."""
    out, admin = tmp_path / "backup", AdminClient({"bootstrap.servers": cluster.bootstrap})
    # A test that is run once more finds the topics of the first time.
    names = changing, again, cleaned = [
        f"{name}.{tmp_path.name}" for name in ("changing", "again", "cleaned")
    ]
    compacted = {
        "cleanup.policy": "compact", "segment.ms": "100", "min.cleanable.dirty.ratio": "0.0",
        "min.compaction.lag.ms": "0", "max.compaction.lag.ms": "100",
    }  # fmt: skip
    for name in names:
        config = compacted if name == cleaned else {}
        admin.create_topics([NewTopic(name, 1, 1, config=config)])[name].result(60)
    choice = [option for name in names for option in ("--topic", name)]

    def produce(count: int) -> None:
        producer = Producer({"bootstrap.servers": cluster.bootstrap, "linger.ms": 0})
        for number in range(count):
            for name in names:
                producer.produce(name, b"value %d" % number, b"key %d" % (number % 3), partition=0)
            producer.flush(60)

    produce(20)
    assert backup(cluster, out, *choice)["findings"] == []
    produce(20)
    (place,) = [TopicPartition(changing, 0, 30)]
    admin.delete_records([place])[place].result(60)
    admin.delete_topics([again])[again].result(60)
    time.sleep(1)
    admin.create_topics([NewTopic(again, 1, 1)])[again].result(60)
    time.sleep(1)
    report = backup(cluster, out, *choice, code=1)
    found = {
        (one["topic"], one["found"], one["first_offset"], one["last_offset"]) for one in report["findings"]
    }
    assert found == {(changing, "lost", 20, 29), (again, "recreated", None, None)}
    (aside,) = out.glob(f"{again}-0.*-stray")
    assert magicbyte.PartitionLog(aside).verify().rows == 20
    assert is_proved(out)

    # The cleaner has run, but never over the segment that grows.
    deadline = time.monotonic() + 60
    produce(1)
    while len(list(cluster.logs.glob(f"{cleaned}-0/*.log"))) > 3 and time.monotonic() < deadline:
        time.sleep(0.5)
    backup(cluster, out, "--topic", cleaned)
    kept = magicbyte.PartitionLog(out / f"{cleaned}-0").verify().rows
    backup(cluster, out, "--topic", cleaned, "--full")
    assert magicbyte.PartitionLog(out / f"{cleaned}-0").verify().rows <= kept
    assert magicbyte.verify(out / f"{cleaned}-0", against=cluster.bootstrap)["cluster"]["equal"]
    assert is_proved(out)


def test_a_cut_in_time(cluster: Node, tmp_path: Path) -> None:
    """Every partition ends at the same time, and not after the last stable offset."""
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    admin.create_topics([NewTopic("timed", 2, 1)])["timed"].result(60)
    producer = Producer({"bootstrap.servers": cluster.bootstrap, "transactional.id": "timed", "linger.ms": 0})
    producer.init_transactions(60)
    times = []
    for number in range(10):
        producer.begin_transaction()
        times.append(time.time_ns() // 1_000_000)
        for partition in (0, 1):
            producer.produce("timed", b"%d" % number, partition=partition)
        producer.flush(60)
        # The last transaction stays open.
        if number < 9:
            producer.commit_transaction(60)
        time.sleep(0.05)

    def values(partition: int, isolation_level: IsolationLevel) -> list[int]:
        with magicbyte.PartitionLog(out / f"timed-{partition}") as log:
            return [int(one.value_bytes or b"") for one in log.records(isolation_level=isolation_level)]

    out = tmp_path / "backup"
    backup(cluster, out, "--topic", "timed", "--as-of", str(times[4]))
    for partition in (0, 1):
        assert values(partition, "read_uncommitted") == list(range(4))
        # The marker of the last one may be of a later time.
        assert values(partition, "read_committed") in (list(range(3)), list(range(4)))
    backup(cluster, out, "--topic", "timed", "--as-of", str(times[9] + 10_000))
    for partition in (0, 1):
        committed, everything = values(partition, "read_committed"), values(partition, "read_uncommitted")
        assert committed == everything == list(range(9))
    producer.abort_transaction(60)
    assert backup(cluster, out, "--topic", "timed")["copied_records"] == 4


def test_a_cluster_that_returns_from_an_older_copy(tmp_path: Path) -> None:
    """The broker counts the same leader epochs again, and gives the same offsets to other records."""
    (tmp_path / "cluster").mkdir()
    node, out, copy = Node(tmp_path / "cluster", NEWEST, SETTINGS), tmp_path / "backup", tmp_path / "copy"

    def produce(life: str, count: int) -> None:
        producer = Producer({"bootstrap.servers": node.bootstrap})
        for number in range(count):
            producer.produce("orders", f"{life} {number}".encode(), partition=number % 2)
        assert producer.flush(60) == 0

    try:
        admin = AdminClient({"bootstrap.servers": node.bootstrap})
        admin.create_topics([NewTopic("orders", 3, 1)])["orders"].result(60)
        produce("before", 10)
        node.kill()
        shutil.copytree(node.logs, copy)
        node.start()
        produce("first life", 20)
        first = backup(node, out, "--topic", "orders")
        node.kill()
        shutil.rmtree(node.logs)
        shutil.copytree(copy, node.logs)
        node.start()
        produce("second life", 24)
        report = backup(node, out, "--topic", "orders", code=1)
        epochs = [[one["leader_epochs"] for one in run["partitions"]] for run in (first, report)]
        assert epochs[0] == epochs[1]
        found = sorted((one["partition"], one["found"], one["last_offset"]) for one in report["findings"])
        assert found == [(0, "diverged", 14), (1, "diverged", 14)]
        assert is_equal(out, node)
        assert is_proved(out)
        kept = b"".join(path.read_bytes() for path in out.glob("*-stray/*.log"))
        assert kept.count(b"first life") == 20
        assert backup(node, out, "--topic", "orders")["findings"] == []
    finally:
        node.close()
