"""A real broker read by Spark: our source, and Spark's own Kafka source with the same options."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from broker_versions import Node, fresh
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic
from kafka_broker import Broker
from magicbyte.errors import JobError
from magicbyte.spark import cluster
from magicbyte.spark.cluster_reader import ClusterReader
from magicbyte.spark.cluster_stream import ClusterStreamReader
from magicbyte.spark.options import parse_options, parse_stream_options
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException, StreamingQueryException
from pyspark.sql import functions as sql
from secure_broker import PASSWORD, SecureBroker
from test_against import FIXTURES

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming import StreamingQuery

pytestmark = pytest.mark.interop
pytest.importorskip("pyspark", minversion="4.2")

LEVELS = ("read_uncommitted", "read_committed")
FORMATS = ("kafka", "magicbyte")
# Spark's source fails at timestamps that microseconds cannot hold.
READABLE = [name for name in FIXTURES if name != "v2_timestamps"]
START = 1_700_000_000_000


def frame(spark: SparkSession, source: str, bootstrap: str, **options: Any) -> DataFrame:
    named = {"kafka.bootstrap.servers": bootstrap, **options}
    return spark.read.format(source).options(**{name: str(value) for name, value in named.items()}).load()


def rows(frame: DataFrame) -> list[Any]:
    return sorted(frame.collect(), key=lambda row: (row.topic, row.partition, row.offset))


def create(bootstrap: str, topic: str, partitions: int = 1) -> str:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    # The records have old timestamps.
    settings = {"retention.ms": "-1"}
    admin.create_topics([NewTopic(topic, partitions, 1, config=settings)])[topic].result(60)
    return topic


def produce(bootstrap: str, topic: str, numbers: range, partitions: int = 1) -> None:
    settings = {"bootstrap.servers": bootstrap, "compression.type": "zstd", "enable.idempotence": True}
    producer = Producer(settings)
    for number in numbers:
        value, key = json.dumps({"number": number}), f"key {number}" if number % 7 else None
        headers = [("trace", b"%d" % number), ("none", None)] if number % 3 else None
        at = START + number * 1000
        producer.produce(topic, value, key, number % partitions, timestamp=at, headers=headers)
    assert producer.flush(60) == 0


@pytest.mark.parametrize("level", LEVELS)
def test_fixtures_in_a_real_broker(spark: SparkSession, broker: Broker, kafka: Path, level: str) -> None:
    """Rows and schema are those of Spark's source, for every partition and with all eight columns."""
    named = broker.open({name: kafka / name for name in READABLE}, clean=True)
    options = {
        "subscribe": ",".join(named.values()),
        "includeHeaders": "true",
        "kafka.isolation.level": level,
    }
    theirs, ours = (frame(spark, source, broker.bootstrap, **options) for source in FORMATS)
    assert ours.schema == theirs.schema
    assert ours.drop("headers").schema == frame(spark, "kafka", broker.bootstrap, subscribe="x").schema
    # The time of a record without one is null, in place of -1 ms.
    no_time = sql.unix_millis("timestamp") == -1
    expected = rows(theirs.withColumn("timestamp", sql.when(~no_time, sql.col("timestamp"))))
    assert len(expected) > 5_000
    assert rows(ours) == expected


@pytest.fixture(scope="module")
def orders(new: Node) -> str:
    """A topic of three partitions with 3,000 records."""
    topic = create(new.bootstrap, "spark-orders", 3)
    produce(new.bootstrap, topic, range(3000), 3)
    return topic


BY_OFFSET = {"0": 100, "1": -2, "2": 999}
BEYOND = {"0": 1001, "1": -2, "2": 0}


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"startingOffsets": "earliest", "endingOffsets": "latest"},
        {"startingOffsets": BY_OFFSET},
        {"startingOffsets": BY_OFFSET, "endingOffsets": {"0": 500, "1": 7, "2": -1}},
        {"startingTimestamp": START + 1_000_000},
        {"startingTimestamp": START + 1_000_000, "endingTimestamp": START + 1_100_000},
        {"startingOffsetsByTimestamp": {"0": START + 99_000, "1": START, "2": START + 2_000_000}},
        {"endingOffsetsByTimestamp": {"0": START + 99_000, "1": START, "2": START + 9_000_000_000}},
        {"startingTimestamp": START + 9_000_000_000, "startingOffsetsByTimestampStrategy": "latest"},
        {"minPartitions": 7},
        {"maxRecordsPerPartition": 130},
        {"subscribePattern": "spark-ord.*"},
        {"subscribePattern": "rk-ord"},
        {"subscribePattern": " ^spark-or "},
        {"subscribePattern": "nothing.*"},
        {"assign": [0, 2]},
        {"startingOffsets": {"0": 20, "1": 30, "2": 40}, "endingOffsets": {"0": 20, "1": 31, "2": 40}},
    ],
)
def test_options(spark: SparkSession, new: Node, orders: str, options: dict[str, Any]) -> None:
    """Every option gives the rows that it gives with Spark's source."""
    given = {} if {"subscribePattern", "assign"} & options.keys() else {"subscribe": orders}
    for name, value in options.items():
        given[name] = value if isinstance(value, str | int) else json.dumps({orders: value})
    theirs, ours = (frame(spark, source, new.bootstrap, includeHeaders="true", **given) for source in FORMATS)
    assert rows(ours) == rows(theirs)
    if "minPartitions" in options:
        assert ours.rdd.getNumPartitions() >= options["minPartitions"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"subscribe": "spark-absent"}, "has no spark-absent"),
        ({"startingOffsets": '{"spark-orders":{"0":1}}'}, "must name exactly the partitions"),
        (
            {"startingOffsets": BEYOND, "failOnDataLoss": "false"},
            "0: the query starts at offset 1001, after its",
        ),
        (
            {"startingOffsets": BEYOND, "endingOffsets": {"0": 1000, "1": -1, "2": 0}},
            "0: the query starts at offset 1001, after",
        ),
        ({"startingTimestamp": START + 10_000, "endingTimestamp": START}, "the query starts at offset"),
        ({"startingTimestamp": START + 9_000_000_000}, "has no record at or after"),
    ],
)
def test_both_sources_refuse(
    spark: SparkSession, new: Node, orders: str, options: dict[str, Any], message: str
) -> None:
    given = {"subscribe": orders}
    given |= {
        name: json.dumps({orders: value}) if isinstance(value, dict) else value
        for name, value in options.items()
    }
    with pytest.raises((PySparkException, Py4JJavaError)):
        frame(spark, "kafka", new.bootstrap, **given).count()
    with pytest.raises(Exception, match=message):
        frame(spark, "magicbyte", new.bootstrap, **given).count()


class Stream:
    """A query from a topic to Parquet, which goes on from its checkpoint when it is started again."""

    def __init__(self, spark: SparkSession, directory: Path, bootstrap: str, **options: Any) -> None:
        self._spark, self._directory = spark, directory
        self._options = {
            "kafka.bootstrap.servers": bootstrap,
            "startingOffsets": "earliest",
            "includeHeaders": "true",
            **options,
        }

    def start(self, source: str = "magicbyte", **more: Any) -> StreamingQuery:
        trigger = more.pop("trigger", {"availableNow": True})
        options = {name: str(value) for name, value in {**self._options, **more}.items()}
        writer = self._spark.readStream.format(source).options(**options).load().writeStream
        writer = writer.format("parquet").option("checkpointLocation", str(self._directory / "checkpoint"))
        return writer.trigger(**trigger).start(str(self._directory / "out"))

    def run(self, source: str = "magicbyte", **more: Any) -> StreamingQuery:
        query = self.start(source, **more)
        query.awaitTermination()
        return query

    def rows(self) -> list[Any]:
        return rows(self._spark.read.parquet(str(self._directory / "out")))

    def wait_for(self, query: StreamingQuery, count: int) -> None:
        """Waits until the query has delivered so many rows."""
        deadline = time.monotonic() + 120
        while sum(progress.numInputRows for progress in query.recentProgress) < count:
            assert query.isActive, query.exception()
            assert time.monotonic() < deadline
            time.sleep(0.2)


@pytest.mark.parametrize("level", LEVELS)
def test_a_stream_that_is_restarted(spark: SparkSession, new: Node, tmp_path: Path, level: str) -> None:
    """Each record comes once, over restarts, with new partitions; an open transaction waits if it should."""
    topic = create(new.bootstrap, fresh(f"spark-stream-{level}"), 2)
    produce(new.bootstrap, topic, range(500), 2)
    stream = Stream(spark, tmp_path, new.bootstrap, subscribe=topic, **{"kafka.isolation.level": level})
    query = stream.run(maxOffsetsPerTrigger=120)
    sizes = [progress.numInputRows for progress in query.recentProgress]
    assert max(sizes) <= 121
    last = json.loads(query.recentProgress[-1].sources[0].endOffset)
    assert last == {topic: {"0": 250, "1": 250}}
    assert len(stream.rows()) == 500
    admin = AdminClient({"bootstrap.servers": new.bootstrap})
    admin.create_partitions([NewPartitions(topic, 3)])[topic].result(60)
    writer = Producer({"bootstrap.servers": new.bootstrap, "transactional.id": topic})
    writer.init_transactions(60)
    for commits in (True, False):
        writer.begin_transaction()
        for number in range(100):
            writer.produce(topic, b"%d" % number, partition=number % 3)
        writer.flush(60)
        stream.run()
        waits = level == "read_committed"
        assert len(stream.rows()) == (500 if waits else 600) + (0 if commits else 100)
        writer.commit_transaction(60) if commits else writer.abort_transaction(60)
        stream.run()
    options = {"subscribe": topic, "kafka.isolation.level": level, "includeHeaders": "true"}
    assert stream.rows() == rows(frame(spark, "kafka", new.bootstrap, **options))


def test_a_checkpoint_of_sparks_source_goes_on(spark: SparkSession, new: Node, tmp_path: Path) -> None:
    """Another format is all that changes; back to Spark's source, too."""
    topic = create(new.bootstrap, fresh("spark-switched"), 2)
    stream = Stream(spark, tmp_path, new.bootstrap, subscribe=topic)
    for turn, source in enumerate(("kafka", "magicbyte", "kafka", "magicbyte")):
        produce(new.bootstrap, topic, range(turn * 100, turn * 100 + 100), 2)
        stream.run(source)
    assert sorted(json.loads(row.value)["number"] for row in stream.rows()) == list(range(400))


def test_a_running_stream(spark: SparkSession, new: Node, tmp_path: Path) -> None:
    """Records arrive, and topics that a pattern matches."""
    create(new.bootstrap, "spark-running-0")
    stream = Stream(spark, tmp_path, new.bootstrap, subscribePattern="spark-running-.*")
    query = stream.start(trigger={"processingTime": "100 milliseconds"})
    try:
        for turn in range(2):
            topic = f"spark-running-{turn}"
            if turn:
                create(new.bootstrap, topic)
            produce(new.bootstrap, topic, range(50))
            stream.wait_for(query, 50 * (turn + 1))
    finally:
        query.stop()
    assert len(stream.rows()) == 100


def delete_records(bootstrap: str, topic: str, before: int) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for future in admin.delete_records([TopicPartition(topic, 0, before)]).values():
        future.result(60)


def test_retention_overtakes_a_stream(spark: SparkSession, new: Node, tmp_path: Path) -> None:
    topic = create(new.bootstrap, fresh("spark-retained"))
    produce(new.bootstrap, topic, range(100))
    stream = Stream(spark, tmp_path, new.bootstrap, subscribe=topic)
    stream.run()
    produce(new.bootstrap, topic, range(100, 200))
    delete_records(new.bootstrap, topic, 150)
    with pytest.raises(StreamingQueryException, match=rf"{topic}-0: offsets 100 to 149 cannot be read"):
        stream.run()
    stream.run(failOnDataLoss="false")
    assert [row.offset for row in stream.rows()] == [*range(100), *range(150, 200)]
    lost = {"subscribe": topic, "startingOffsets": json.dumps({topic: {"0": 20}})}
    for source in FORMATS:
        with pytest.raises(Exception, match=r"data loss|failOnDataLoss|may have been missed|out of range"):
            frame(spark, source, new.bootstrap, **lost).count()
        assert frame(spark, source, new.bootstrap, failOnDataLoss="false", **lost).count() == 50


def delete(bootstrap: str, topic: str) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.delete_topics([topic])[topic].result(60)
    while topic in admin.list_topics(timeout=60).topics:
        time.sleep(0.1)


@pytest.mark.parametrize("seen_gone", [True, False])
def test_a_topic_that_is_created_again(
    spark: SparkSession, new: Node, tmp_path: Path, seen_gone: bool
) -> None:
    """With failOnDataLoss=false, a stream goes on where Spark's source does: at the end of a shorter log, or
    at the start of a topic that was gone in between.
    """
    topic, other = (fresh(f"spark-again-{name}") for name in ("a", "b"))
    for one in (topic, other):
        create(new.bootstrap, one)
    produce(new.bootstrap, topic, range(100))
    options = {"subscribePattern": f"{topic}|{other}", "failOnDataLoss": "false"}
    streams = {source: Stream(spark, tmp_path / source, new.bootstrap, **options) for source in FORMATS}

    def run() -> None:
        for source, stream in streams.items():
            stream.run(source)

    run()
    delete(new.bootstrap, topic)
    if seen_gone:
        produce(new.bootstrap, other, range(5))
        run()
    create(new.bootstrap, topic)
    produce(new.bootstrap, topic, range(1000, 1040))
    run()
    produce(new.bootstrap, topic, range(1040, 1120))
    run()
    theirs, ours = (streams[source].rows() for source in FORMATS)
    assert [row[:5] for row in ours] == [row[:5] for row in theirs]
    numbers = {json.loads(row.value)["number"] for row in ours if row.topic == topic}
    assert numbers == {*range(100), *range(1000 if seen_gone else 1040, 1120)}


@pytest.mark.parametrize("fail", ["true", "false"])
def test_retention_overtakes_a_task(new: Node, fail: str, caplog: pytest.LogCaptureFixture) -> None:
    """Offsets that are deleted after the first answers are named, or left out with a warning."""
    topic, count, start = create(new.bootstrap, fresh(f"spark-overtaken-{fail}")), 20_000, 19_000
    producer = Producer({"bootstrap.servers": new.bootstrap, "queue.buffering.max.messages": count})
    for _ in range(count):
        producer.produce(topic, bytes(1000), partition=0)
    assert producer.flush(120) == 0
    given = {"kafka.bootstrap.servers": new.bootstrap, "subscribe": topic, "failOnDataLoss": fail}
    options = parse_options(given)
    assert options.cluster is not None
    reader = ClusterReader(options.cluster, options, ("offset",))
    (task,) = reader.partitions()
    batches = reader.read(task)
    offsets = next(batches)["offset"].to_pylist()
    delete_records(new.bootstrap, topic, start)
    message = rf"{topic}-0: offsets \d+ to {start - 1} cannot be read: the log begins later"
    if fail == "true":
        with pytest.raises(JobError, match=message):
            list(batches)
        return
    for batch in batches:
        offsets += batch["offset"].to_pylist()
    assert [after for before, after in pairwise(offsets) if after != before + 1] == [start]
    assert (offsets[0], offsets[-1]) == (0, count - 1)
    assert re.search(message, caplog.text)


class Overtaken:
    """A reader of a partition, before whose first fetch records are deleted."""

    def __init__(self, bootstrap: str, topic: str, reader: Any) -> None:
        self._bootstrap, self._topic, self._reader = bootstrap, topic, reader

    def fetch(self, **given: Any) -> Any:
        delete_records(self._bootstrap, self._topic, 40)
        return self._reader.fetch(**given)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._reader, name)


@pytest.fixture
def overtaken(new: Node, monkeypatch: pytest.MonkeyPatch) -> str:
    """A topic of 100 records; its log begins at offset 40 when a task fetches for the first time."""
    topic = create(new.bootstrap, fresh("spark-overtaken-first"))
    produce(new.bootstrap, topic, range(100))
    connected = cluster.connect

    def connect(*given: Any) -> Any:
        partition = connected(*given).partition
        return SimpleNamespace(partition=lambda *place: Overtaken(new.bootstrap, topic, partition(*place)))

    monkeypatch.setattr(cluster, "connect", connect)
    return topic


def test_retention_overtakes_the_first_fetch(new: Node, overtaken: str) -> None:
    """The start of the log may move right before a task begins to fetch."""
    options = parse_options({"kafka.bootstrap.servers": new.bootstrap, "subscribe": overtaken})
    assert options.cluster is not None
    reader = ClusterReader(options.cluster, options, ("offset",))
    (task,) = reader.partitions()
    message = rf"{overtaken}-0: offsets 0 to 39 cannot be read: the log begins later"
    with pytest.raises(JobError, match=message):
        list(reader.read(task))


LOST_COLUMNS = ("topic", "partition", "kind", "firstLostOffset", "lastLostOffset")


@pytest.mark.parametrize("kind", ["batch", "stream"])
def test_what_a_task_loses_is_a_problem(new: Node, overtaken: str, kind: str) -> None:
    """The table `problems` has what only a task notices."""
    given = {
        "kafka.bootstrap.servers": new.bootstrap,
        "subscribe": overtaken,
        "startingOffsets": "earliest",
        "failOnDataLoss": "false",
        "table": "problems",
    }
    reader: ClusterReader | ClusterStreamReader
    if kind == "batch":
        options = parse_options(given)
        assert options.cluster is not None
        reader = ClusterReader(options.cluster, options, LOST_COLUMNS)
        (task,) = reader.partitions()
    else:
        stream_options = parse_stream_options(given)
        assert stream_options.read.cluster is not None
        reader = ClusterStreamReader(stream_options.read.cluster, stream_options, LOST_COLUMNS)
        (task,) = reader.partitions({overtaken: {"0": 0}}, {overtaken: {"0": 100}})
    found = [row for batch in reader.read(task) for row in batch.to_pylist()]
    assert found == [dict(zip(LOST_COLUMNS, (overtaken, 0, "data_loss", 0, 39), strict=True))]


@pytest.fixture(scope="module")
def secure(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecureBroker]:
    found = SecureBroker(tmp_path_factory.mktemp("secure") / "root")
    yield found
    found.broker.kill()


def test_security(spark: SparkSession, secure: SecureBroker, spark_events: Path, tmp_path: Path) -> None:
    """The options of Spark's source for TLS and SASL work; no plan, event, checkpoint or error has a secret."""
    bootstrap = f"127.0.0.1:{secure.ports['SASL_SSL']}"
    module = "org.apache.kafka.common.security.plain.PlainLoginModule"
    jaas = f'{module} required username="alice" password="{PASSWORD}";'
    options = {
        "kafka.security.protocol": "SASL_SSL",
        "kafka.sasl.mechanism": "PLAIN",
        "kafka.sasl.jaas.config": jaas,
        "kafka.ssl.truststore.type": "PEM",
        "kafka.ssl.truststore.location": str(secure.ca),
    }
    client = {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "PLAIN",
        "sasl.username": "alice",
        "sasl.password": PASSWORD,
        "ssl.ca.location": str(secure.ca),
        "bootstrap.servers": bootstrap,
    }
    admin, producer = AdminClient(client), Producer(client)
    admin.create_topics([NewTopic("spark-secure", 1, 1)])["spark-secure"].result(60)
    producer.produce("spark-secure", b"value")
    assert producer.flush(60) == 0
    ours = frame(spark, "magicbyte", bootstrap, subscribe="spark-secure", **options)
    found = rows(ours)
    plans = ours._jdf.queryExecution()
    texts = plans.toString() + plans.optimizedPlan().toJSON() + plans.executedPlan().toJSON()
    assert "magicbyte" in texts
    query = Stream(spark, tmp_path, bootstrap, subscribe="spark-secure", **options).run()
    assert query.lastProgress is not None
    texts += query.lastProgress.json
    wrong = {**options, "kafka.sasl.jaas.config": jaas.replace("hunter2", "hunter3")}
    with pytest.raises(Exception, match="does not accept the user") as caught:
        frame(spark, "magicbyte", bootstrap, subscribe="spark-secure", **wrong).count()
    texts += str(caught.value)
    kept = [path for root in (spark_events, tmp_path) for path in root.rglob("*") if path.is_file()]
    written = b"".join(path.read_bytes() for path in kept)
    assert b"magicbyte" in written
    for secret in (PASSWORD, "hunter3"):
        assert secret not in texts
        assert secret.encode() not in written
    assert found == rows(frame(spark, "kafka", bootstrap, subscribe="spark-secure", **options))
