"""`ingest` of real brokers: what the ingest of their directories and Kafka's consumer give, while records arrive, leaders
change and topics are created again."""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import magicbyte
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from broker_versions import Node
from cluster import NODES, QUICK_FAILOVER, Cluster
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from consumers import Record, by_librdkafka
from deltalake import DeltaTable
from kafka_broker import Broker
from magicbyte.enums import IsolationLevel
from magicbyte.jobs.find.choice import PartitionChoice
from magicbyte.jobs.run import live_chunks
from magicbyte.jobs.run.engines import LocalEngine, SparkEngine
from magicbyte.lake.divergence import DivergedError
from pyiceberg.catalog import load_catalog
from test_against import FIXTURES

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.interop

LEVELS: tuple[IsolationLevel, ...] = ("read_uncommitted", "read_committed")
FORMATS = ("parquet", "delta", "iceberg")


class Target:
    """A table of one of the formats."""

    def __init__(self, table_format: str, root: Path) -> None:
        root.mkdir()
        self.format = table_format
        self._catalog = {"type": "sql", "uri": f"sqlite:///{root}/c.db", "warehouse": f"file://{root}/tables"}
        self.name = "kafka.records" if table_format == "iceberg" else str(root / "table")

    @property
    def options(self) -> dict[str, Any]:
        if self.format == "iceberg":
            return {"format": "iceberg", "catalog": "c", "catalog_properties": self._catalog}
        return {"format": self.format}

    def ingest(self, source: str, **given: Any) -> Any:
        return magicbyte.ingest(source, self.name, engine=LocalEngine(2), **self.options, **given)

    def rows(self) -> pa.Table:
        if self.format == "delta":
            table = DeltaTable(self.name).to_pyarrow_table()
        elif self.format == "iceberg":
            table = load_catalog("c", **self._catalog).load_table(self.name).scan().to_arrow()
        else:
            table = pq.read_table(f"{self.name}/records")
        return table.sort_by([(name, "ascending") for name in ("topic", "partition", "offset")])


@pytest.fixture(params=FORMATS)
def target(request: pytest.FixtureRequest, tmp_path: Path) -> Target:
    return Target(request.param, tmp_path / "target")


@pytest.fixture(params=["old", "new"])
def node(request: pytest.FixtureRequest) -> Node:
    """A broker of each version."""
    found: Node = request.getfixturevalue(request.param)
    return found


def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Partitions have many ranges, which end inside batches."""
    monkeypatch.setattr(live_chunks, "_SMALLEST", 1)
    monkeypatch.setattr("magicbyte.jobs.run.plan._SMALLEST_TARGET", 20_000)


def create(bootstrap: str, topic: str, partitions: int = 1, replicas: int = 1) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic(topic, partitions, replicas)])[topic].result(60)
    deadline = time.monotonic() + 60
    while topic not in admin.list_topics(timeout=60).topics and time.monotonic() < deadline:
        time.sleep(0.1)


def produce(bootstrap: str, topic: str, count: int, partitions: int = 1, value: str = "value") -> None:
    """Records of all codecs, in batches of about 100."""
    for codec in ("none", "gzip", "snappy", "lz4", "zstd"):
        producer = Producer({"bootstrap.servers": bootstrap, "compression.type": codec, "batch.size": 4000})
        for number in range(count // 5):
            headers = [("codec", codec.encode())] if number % 3 else []
            content = f"{value} {number} " * 5
            producer.produce(topic, content, f"key {number}", number % partitions, headers=headers)
            producer.poll(0)
        assert producer.flush(120) == 0


def produce_transactions(bootstrap: str, topic: str) -> None:
    """One is committed, one is aborted, and one stays open."""
    for name, ends in (("one", "commit"), ("two", "abort"), ("three", "")):
        settings = {"bootstrap.servers": bootstrap, "log_level": 0, "transaction.timeout.ms": 600_000}
        producer = Producer({**settings, "transactional.id": f"{topic}-{name}"})
        producer.init_transactions(60)
        producer.begin_transaction()
        for number in range(50):
            producer.produce(topic, f"{name} {number}", partition=0)
        producer.flush(60)
        if ends:
            (producer.commit_transaction if ends == "commit" else producer.abort_transaction)(60)
        _OPEN.append(producer)


_OPEN: list[Producer] = []
"""A producer that is deleted may end its transaction."""


def read(rows: pa.Table, topic: str) -> list[Record]:
    """The rows of partition 0 as a consumer's records."""
    return [
        (
            row["offset"],
            row["timestamp"].value // 1000 if hasattr(row["timestamp"], "value") else _millis(row),
            row["key"],
            row["value"],
            [(header["key"], header["value"]) for header in row["headers"] or []],
        )
        for row in rows.to_pylist()
        if (row["topic"], row["partition"]) == (topic, 0)
    ]


def _millis(row: dict[str, Any]) -> int:
    return round(row["timestamp"].timestamp() * 1000)


def log_dir(node: Node, topic: str, copy: Path) -> str:
    """A copy of the directories of a topic, which no longer change."""
    shutil.rmtree(copy, ignore_errors=True)
    copy.mkdir()
    for directory in node.logs.glob(f"{topic}-*"):
        shutil.copytree(directory, copy / directory.name)
    return str(copy)


@pytest.mark.parametrize("level", LEVELS)
def test_fixtures_in_a_real_broker(
    broker: Broker, kafka: Path, tmp_path: Path, level: IsolationLevel, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows and digests of all partitions, in ranges that end inside batches."""
    small_chunks(monkeypatch)
    named = broker.open({name: kafka / name for name in FIXTURES}, clean=True)
    url = f"kafka://{broker.bootstrap}"
    live, files = Target("delta", tmp_path / "live"), Target("delta", tmp_path / "files")
    chosen = PartitionChoice(topics=tuple(named.values()))
    of_cluster = live.ingest(url, choice=chosen, isolation_level=level)
    copies = tmp_path / "copies"
    for name, topic in named.items():
        shutil.copytree(kafka / name, copies / f"{topic}-0")
    of_files = files.ingest(str(copies), isolation_level=level)
    assert of_cluster["balanced"]
    digests = [
        {
            one["topic"]: (one["rows"], one["digest"], one["next_offset"])
            for one in report["commit"]["partitions"]
        }
        for report in (of_cluster, of_files)
    ]
    assert digests[0] == digests[1]
    assert live.rows().equals(files.rows())
    assert live.ingest(url, choice=chosen, isolation_level=level)["commit"]["job"] is None


@pytest.mark.parametrize("level", LEVELS)
def test_runs_with_records_in_between(
    node: Node, target: Target, tmp_path: Path, level: IsolationLevel, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rows are those of Kafka's consumers, and of an ingest of the broker's directories."""
    small_chunks(monkeypatch)
    topic = f"ingest-{target.format}-{level}"
    url = f"kafka://{node.bootstrap}/{topic}"
    create(node.bootstrap, topic, 2)
    for run in range(3):
        produce(node.bootstrap, topic, 2000, 2, value=f"run {run}")
        if run == 1:
            produce_transactions(node.bootstrap, topic)
        report = target.ingest(url, isolation_level=level, **({} if run == 0 else _again(target)))
        assert report["balanced"]
        assert report["commit"] is None or not report["commit"]["problems"]
    rows = target.rows()
    count = len(read(rows, topic))
    of_files = Target(target.format, tmp_path / "files")
    of_files.ingest(log_dir(node, topic, tmp_path / "copy"), isolation_level=level)
    columns = ["topic", "partition", "offset", "timestamp", "key", "value", "headers"]
    assert rows.select(columns).to_pylist() == of_files.rows().select(columns).to_pylist()
    consumed = by_librdkafka(node.bootstrap, level, None, [topic], count)[topic]
    assert read(rows, topic) == consumed[:count]
    # Behind the open transaction, nothing is stable.
    assert any("three" in str(value) for value in rows["value"].to_pylist()) == (level == LEVELS[0])


def _again(target: Target) -> dict[str, Any]:
    """A directory of Parquet files is written anew; a table gets what is new."""
    return {"overwrite": True} if target.format == "parquet" else {}


@pytest.mark.parametrize("table_format", ["delta", "iceberg"])
def test_a_topic_that_is_created_again(node: Node, tmp_path: Path, table_format: str) -> None:
    """Brokers before 2.8 have no topic ids: there, leader epochs and records tell."""
    target, topic = Target(table_format, tmp_path / "table"), f"ingest-again-{table_format}"
    url = f"kafka://{node.bootstrap}/{topic}"
    create(node.bootstrap, topic)
    produce(node.bootstrap, topic, 1000)
    (first,) = target.ingest(url)["commit"]["partitions"]
    assert first["topic_id"] is not None
    assert first["cluster_id"] is not None
    assert first["leader_epoch"]["epoch"] >= 0
    admin = AdminClient({"bootstrap.servers": node.bootstrap})
    admin.delete_topics([topic])[topic].result(60)
    for _ in range(100):
        try:
            create(node.bootstrap, topic)
            break
        except Exception:
            time.sleep(0.2)
    produce(node.bootstrap, topic, 1500, value="second")
    with pytest.raises(DivergedError, match="read of the topic") as raised:
        target.ingest(url)
    assert raised.value.divergences[0].offset == 0
    target.ingest(url, repair=True)
    assert {bytes(one).split()[0] for one in target.rows()["value"].to_pylist()} == {b"second"}


def test_retention_before_the_next_run(new: Node, tmp_path: Path) -> None:
    """DeleteRecords moves the start of the log, also into a batch."""
    topic, target = "ingest-deleted", Target("delta", tmp_path / "table")
    url = f"kafka://{new.bootstrap}/{topic}"
    create(new.bootstrap, topic)
    produce(new.bootstrap, topic, 500)
    target.ingest(url)
    produce(new.bootstrap, topic, 500)
    admin = AdminClient({"bootstrap.servers": new.bootstrap})
    for future in admin.delete_records([TopicPartition(topic, 0, 737)]).values():
        future.result(60)
    report = target.ingest(url)
    (problem,) = report["commit"]["problems"]
    assert (problem["kind"], problem["first_lost_offset"], problem["last_lost_offset"]) == (
        "data_loss",
        500,
        736,
    )
    assert target.rows()["offset"].to_pylist() == [*range(500), *range(737, 1000)]


@pytest.mark.parametrize("table_format", ["parquet", "delta"])
@pytest.mark.parametrize(
    ("start", "lost"),
    [
        (400, [(300, 332), (333, 399)]),
        (320, [(300, 319)]),
        (300, []),
        (180, []),
        (345, [(300, 332), (333, 344)]),
    ],
)
def test_retention_between_two_chunks(
    new: Node,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    table_format: str,
    start: int,
    lost: list[tuple[int, int]],
) -> None:
    """The batch 300..=399 extends into the second chunk, of which all that is lost is named."""
    monkeypatch.setattr(live_chunks, "_SMALLEST", 1)
    monkeypatch.setattr("magicbyte.jobs.run.plan._SMALLEST_TARGET", 3000)
    topic, target = f"ingest-between-{table_format}-{start}", Target(table_format, tmp_path / "table")
    create(new.bootstrap, topic)
    producer = Producer({"bootstrap.servers": new.bootstrap, "linger.ms": 10_000, "batch.num.messages": 100})
    for number in range(1000):
        producer.produce(topic, f"value {number} " * 5, partition=0)
    assert producer.flush(60) == 0
    fetch, chunks = live_chunks.fetch_chunk, []

    def overtaken(chunk: Any, limit: int) -> Any:
        chunks.append((chunk["expected_offset"], chunk["next_offset"]))
        if len(chunks) == 2:
            admin = AdminClient({"bootstrap.servers": new.bootstrap})
            for future in admin.delete_records([TopicPartition(topic, 0, start)]).values():
                future.result(60)
        return fetch(chunk, limit)

    monkeypatch.setattr("magicbyte.jobs.run.reading.fetch_chunk", overtaken)
    report = magicbyte.ingest(
        f"kafka://{new.bootstrap}/{topic}", target.name, engine=LocalEngine(1), **target.options
    )
    assert chunks[:2] == [(0, 333), (333, 666)]
    missing = {offset for first, last in lost for offset in range(first, last + 1)}
    assert target.rows()["offset"].to_pylist() == sorted({*range(1000)} - missing)
    assert report["balanced"]
    assert report["total"]["lost_offsets"] == len(missing)
    assert report["total"]["problems"] == len(lost)
    if table_format == "parquet":
        listed = pq.read_table(f"{target.name}/problems").select(
            ["kind", "firstLostOffset", "lastLostOffset"]
        )
        named = [tuple(one.values()) for one in listed.to_pylist()]
    else:
        names = ("kind", "first_lost_offset", "last_lost_offset")
        named = [tuple(one[name] for name in names) for one in report["commit"]["problems"]]
    assert sorted(named) == [("data_loss", *offsets) for offsets in lost]


@pytest.fixture
def three(tmp_path: Path) -> Iterator[Cluster]:
    cluster = Cluster(tmp_path / "cluster", settings=QUICK_FAILOVER)
    try:
        for one in NODES:
            cluster.start(one)
        cluster.wait()
        yield cluster
    finally:
        cluster.close()


def test_a_leader_is_killed(three: Cluster, tmp_path: Path) -> None:
    """While a stream follows, each node once: every record is in the table, once, in the order of its log."""
    topic, target = "ingest-leaders", Target("delta", tmp_path / "table")
    url = f"kafka://{three.bootstrap}/{topic}"
    create(three.bootstrap, topic, 3, 3)
    stop = threading.Event()

    def follow() -> None:
        stream = magicbyte.ingest_stream(
            url, target.name, engine=LocalEngine(2), interval=0.5, stop=stop, **target.options
        )
        for _ in stream:
            pass

    follower = threading.Thread(target=follow)
    follower.start()
    settings = {"bootstrap.servers": three.bootstrap, "enable.idempotence": True, "acks": "all"}
    producer = Producer({**settings, "message.timeout.ms": 120_000})
    sent = 0
    for victim in NODES:
        for half in range(2):
            for _ in range(3000):
                producer.produce(topic, b"value %d" % sent, partition=sent % 3)
                producer.poll(0)
                sent += 1
            assert producer.flush(120) == 0
            if half == 0:
                three.kill(victim)
        three.start(victim)
        three.wait()
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline and (
        not Path(target.name).exists() or DeltaTable(target.name).to_pyarrow_table().num_rows < sent
    ):
        assert follower.is_alive()
        time.sleep(0.5)
    stop.set()
    follower.join(60)
    rows = target.rows()
    for partition in range(3):
        own = rows.filter(pa.compute.equal(rows["partition"], partition))
        assert own["value"].to_pylist() == [b"value %d" % number for number in range(partition, sent, 3)]
    report = target.ingest(url)
    assert report["commit"]["job"] is None
    assert not report["commit"]["problems"]


def test_executors_of_spark(new: Node, spark: SparkSession, spark_events: Path, tmp_path: Path) -> None:
    """The tasks fetch, with a file of properties that is named in the plan, and no secret of it."""
    topic = "ingest-spark"
    create(new.bootstrap, topic, 4)
    produce(new.bootstrap, topic, 4000, 4)
    config = tmp_path / "client.properties"
    config.write_text("client.id=hunter2-client\n")
    for table_format in FORMATS:
        target = Target(table_format, tmp_path / table_format)
        report = magicbyte.ingest(
            f"kafka://{new.bootstrap}/{topic}",
            target.name,
            engine=SparkEngine(spark),
            command_config=config,
            **target.options,
        )
        assert report["balanced"]
        assert target.rows().num_rows == 4000
        assert "hunter2" not in str(report)
    for path in (*spark_events.rglob("*"), *tmp_path.glob("*/**/*")):
        assert not path.is_file() or b"hunter2" not in path.read_bytes(), path
    config.unlink()
    with pytest.raises(magicbyte.RefusedError, match="No such file"):
        magicbyte.ingest(
            f"kafka://{new.bootstrap}/{topic}",
            tmp_path / "refused",
            engine=SparkEngine(spark),
            command_config=config,
        )
