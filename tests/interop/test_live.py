"""Real brokers as a source: partitions of all fixtures, transactions, old versions, and a broker that is killed."""

from __future__ import annotations

import io
import json
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import magicbyte
import polars as pl
import pyarrow as pa
import pytest
from broker_versions import Node, fresh
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic
from kafka_broker import Broker
from kafka_versions import NEWEST
from magicbyte import Log, PartitionLog
from magicbyte.cli import record_reading
from magicbyte.cli.record_reading import Found, Reader
from magicbyte.cli.selection import Selection
from magicbyte.enums import IsolationLevel
from magicbyte.errors import JobError, RefusedError
from magicbyte.jobs.find.choice import PartitionChoice
from magicbyte.jobs.run.live_partitions import LivePartition, live_partitions
from magicbyte.jobs.run.reading import ReadOptions
from magicbyte.storage.location import cluster_of
from secure_broker import SecureBroker
from test_against import FIXTURES

pytestmark = pytest.mark.interop

COLUMNS = [
    "offset",
    "timestamp",
    "timestampType",
    "key",
    "value",
    "headers",
    "magic",
    "compression",
    "producerId",
]
LEVELS: tuple[IsolationLevel, ...] = ("read_uncommitted", "read_committed")


def test_fixtures_in_a_real_broker(broker: Broker, kafka: Path) -> None:
    """The broker has opened the partitions: the rows, and the accounts, are those of the directories."""
    named = broker.open({name: kafka / name for name in FIXTURES}, clean=True)
    live = Log(f"kafka://{broker.bootstrap}", PartitionChoice(topics=tuple(named.values())))
    assert len(live) == len(FIXTURES)
    for name, topic in named.items():
        log, of_files = live.partition(topic), PartitionLog(kafka / name)
        for level in LEVELS:
            expected = pa.table(of_files.to_arrow(COLUMNS, isolation_level=level))
            assert pa.table(log.to_arrow(COLUMNS, isolation_level=level)).equals(expected), (name, level)
            account, of_directory = log.verify(level), of_files.verify(level)
            assert account.balanced
            assert (account.rows, account.aborted) == (of_directory.rows, of_directory.aborted), (name, level)
        if name != "v2_compacted_txn":
            # A broker looks only into the first segment whose largest timestamp is late enough, also where
            # compaction has left nothing but markers there.
            assert log.offset_for_timestamp(0) == of_files.offset_for_timestamp(0), name


@pytest.fixture(params=["old", "new"])
def node(request: pytest.FixtureRequest) -> Node:
    """A broker of each version."""
    found: Node = request.getfixturevalue(request.param)
    return found


def test_old_and_new_brokers(node: Node) -> None:
    """Several partitions and codecs, with more bytes than an answer has, as frames and by commands."""
    count, partitions = 60_000, 3
    for codec in ("none", "zstd"):
        topic = f"live-{codec}"
        produce(node.bootstrap, topic, count, codec, partitions)
        log = Log(f"kafka://{node.bootstrap}/{topic}")
        assert len(log) == partitions
        for one in log:
            table = pa.table(one.to_arrow(["offset", "key", "value"]))
            assert table["offset"].to_pylist() == list(range(count // partitions))
            expected = [value(number) for number in range(one.partition, count, partitions)]
            assert table["value"].to_pylist() == expected
            last = pa.table(one.to_arrow(["offset"], last=1234))["offset"].to_pylist()
            assert last == list(range(count // partitions))[-1234:]
        frame = magicbyte.scan(log).filter(pl.col.offset < 5, pl.col.partition == 1).collect()
        assert frame["offset"].to_list() == [0, 1, 2, 3, 4]
        report = magicbyte.verify(f"kafka://{node.bootstrap}/{topic}")
        assert report["balanced"]
        assert report["total"]["rows"] == count
        assert magicbyte.stats(f"kafka://{node.bootstrap}/{topic}")["total"]["codecs"].keys() == {codec}


def test_many_partitions(node: Node) -> None:
    """A whole log in order."""
    topic, partitions, each = "live-many", 300, 40
    produce(node.bootstrap, topic, partitions * each, "none", partitions)
    stream = Log(f"kafka://{node.bootstrap}/{topic}").to_arrow(["partition", "offset", "value"])
    table = pa.table(stream)
    assert table["partition"].to_pylist() == [one for one in range(partitions) for _ in range(each)]
    assert table["offset"].to_pylist() == [*range(each)] * partitions
    expected = [value(offset * partitions + one) for one in range(partitions) for offset in range(each)]
    assert table["value"].to_pylist() == expected


def value(number: int) -> bytes:
    return b"value %d " % number * 20


def produce(bootstrap: str, topic: str, count: int, codec: str = "none", partitions: int = 1) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    if topic not in admin.list_topics(timeout=60).topics:
        admin.create_topics([NewTopic(topic, partitions, 1)])[topic].result(60)
    settings = {"bootstrap.servers": bootstrap, "compression.type": codec, "enable.idempotence": True}
    producer = Producer({**settings, "batch.size": 100_000, "queue.buffering.max.messages": 500_000})
    for number in range(count):
        producer.produce(topic, value(number), b"key %d" % number, partition=number % partitions)
        producer.poll(0)
    assert producer.flush(120) == 0


def test_records_that_arrive(new: Node) -> None:
    """`records --follow` prints what is produced after it has begun, and ends with enough."""
    produce(new.bootstrap, "live-follow", 10)
    program = [
        sys.executable,
        "-m",
        "magicbyte",
        "records",
        f"kafka://{new.bootstrap}/live-follow",
        "--follow",
    ]
    options = ["--tail", "2", "--max-records", "12", "-f", "%o\n"]
    with subprocess.Popen([*program, *options], stdout=subprocess.PIPE) as process:
        lines = process.stdout
        assert isinstance(lines, io.BufferedReader)
        assert [lines.readline() for _ in range(2)] == [b"8\n", b"9\n"]
        produce(new.bootstrap, "live-follow", 10)
        assert lines.read().split() == [b"%d" % offset for offset in range(10, 20)]
        assert process.wait(60) == 0


def followed(url: str, **selection: Any) -> Iterator[tuple[int, list[int]]]:
    """The partitions and offsets that `records --follow` reads, some at a time, when they are asked for."""
    cluster = cluster_of(url)
    assert cluster is not None

    def look() -> list[LivePartition]:
        return live_partitions([cluster], None, PartitionChoice(), 1 << 20)

    options = ReadOptions(("partition", "offset"))
    reader = Reader(Found([], look(), look), Selection(**selection), "read_uncommitted", options, follow=True)
    for _, records in reader.records():
        yield records["partition"][0].as_py(), records["offset"].to_pylist()


def delete_records(bootstrap: str, topic: str, before: int) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.delete_records([TopicPartition(topic, 0, before)])[TopicPartition(topic, 0)].result(60)


def create_again(bootstrap: str, topic: str, count: int) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.delete_topics([topic])[topic].result(60)
    deadline = time.monotonic() + 60
    while topic in admin.list_topics(timeout=60).topics:
        assert time.monotonic() < deadline
        time.sleep(0.1)
    produce(bootstrap, topic, count)


@pytest.mark.parametrize("between", ["looks", "a look and its fetch"])
def test_retention_overtakes_a_reader_that_follows(
    new: Node, between: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = fresh("live-overtaken")
    produce(new.bootstrap, topic, 100)
    read = followed(f"kafka://{new.bootstrap}/{topic}")
    assert next(read) == (0, [*range(100)])
    produce(new.bootstrap, topic, 100)
    if between == "looks":
        delete_records(new.bootstrap, topic, 150)
    else:
        fetch = LivePartition.chunks

        def overtaken(*given: Any) -> Any:
            delete_records(new.bootstrap, topic, 150)
            return fetch(*given)

        monkeypatch.setattr(LivePartition, "chunks", overtaken)
    with pytest.raises(JobError, match=rf"{topic}/0: offsets 100 to 149: deleted before they were read"):
        next(read)


@pytest.mark.parametrize("count", [40, 140])
def test_a_topic_that_is_followed_is_created_again(new: Node, count: int) -> None:
    topic = fresh("live-again")
    produce(new.bootstrap, topic, 100)
    read = followed(f"kafka://{new.bootstrap}/{topic}")
    assert next(read) == (0, [*range(100)])
    create_again(new.bootstrap, topic, count)
    with pytest.raises((JobError, OSError), match=rf"{topic}.*created again"):
        next(read)


def test_partitions_that_are_added_while_a_topic_is_followed(
    new: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(record_reading, "_DISCOVER_SECONDS", 0.5)
    topic = fresh("live-added")
    produce(new.bootstrap, topic, 10)
    read = followed(f"kafka://{new.bootstrap}/{topic}")
    assert next(read) == (0, [*range(10)])
    admin = AdminClient({"bootstrap.servers": new.bootstrap})
    admin.create_partitions([NewPartitions(topic, 2)])[topic].result(60)
    for turn in range(2):
        produce(new.bootstrap, topic, 20, partitions=2)
        expected = {0: [*range(10 * turn + 10, 10 * turn + 20)], 1: [*range(10 * turn, 10 * turn + 10)]}
        assert dict(next(read) for _ in range(2)) == expected


def test_follow_from_an_offset_that_is_not_there_yet(new: Node) -> None:
    topic = fresh("live-from")
    produce(new.bootstrap, topic, 10)
    read = followed(f"kafka://{new.bootstrap}/{topic}", start_offset=15)
    producing = threading.Timer(1, produce, (new.bootstrap, topic, 10))
    producing.start()
    assert next(read) == (0, [*range(15, 20)])
    producing.join()


def test_times(new: Node) -> None:
    """The broker's own index finds them."""
    topic = "live-times"
    produce(new.bootstrap, topic, 0)
    producer = Producer({"bootstrap.servers": new.bootstrap})
    for number in range(1000):
        producer.produce(topic, b"x", timestamp=1_700_000_000_000 + number // 10 * 1000)
    assert producer.flush(60) == 0
    log = PartitionLog(f"kafka://{new.bootstrap}/{topic}/0")
    moment = 1_700_000_050_000
    assert log.offset_for_timestamp(moment) == 500
    assert next(iter(log.records(start_timestamp=moment))).offset == 500
    ranges: Any = {"start_timestamp": moment, "end_timestamp": moment + 2000}
    assert pa.table(log.to_arrow(["offset"], **ranges))["offset"].to_pylist() == list(range(500, 520))
    assert log.offset_for_timestamp(moment + 100_000) is None


@pytest.fixture
def mortal(tmp_path: Path) -> Iterator[Node]:
    """A broker that may be killed."""
    node = Node(tmp_path, NEWEST)
    yield node
    node.close()


def test_a_broker_is_killed_in_between(mortal: Node) -> None:
    """The reader waits for the broker to come back; nothing is missing, and nothing comes twice."""
    count = 100_000
    produce(mortal.bootstrap, "live-killed", count)
    log = PartitionLog(f"kafka://{mortal.bootstrap}/live-killed/0")
    # The data is on disk before the broker is killed, so it has the same end when it is back.
    time.sleep(1)
    records = iter(log.records())
    offsets = [next(records).offset for _ in range(100)]
    mortal.kill()
    back = threading.Thread(target=mortal.start)
    back.start()
    offsets += [record.offset for record in records]
    back.join()
    assert offsets == list(range(count))


def test_a_broker_is_killed_while_a_log_is_read(mortal: Node) -> None:
    """The same for many partitions, which are fetched ahead."""
    topic, partitions, each = "live-killed-log", 20, 10_000
    produce(mortal.bootstrap, topic, partitions * each, "none", partitions)
    reader = pa.RecordBatchReader.from_stream(
        Log(f"kafka://{mortal.bootstrap}/{topic}").to_arrow(["partition", "offset"])
    )
    time.sleep(1)
    batches = [reader.read_next_batch() for _ in range(3)]
    mortal.kill()
    back = threading.Thread(target=mortal.start)
    back.start()
    table = pa.Table.from_batches([*batches, *reader])
    back.join()
    assert table["partition"].to_pylist() == [one for one in range(partitions) for _ in range(each)]
    assert table["offset"].to_pylist() == [*range(each)] * partitions


def test_users_and_certificates(tmp_path_factory: pytest.TempPathFactory) -> None:
    """`kafkas://` is TLS, and the properties have the user; the password is in no message."""
    secure = SecureBroker(tmp_path_factory.mktemp("secure") / "root")
    try:
        url = f"kafkas://127.0.0.1:{secure.ports['SASL_SSL']}"
        config = secure.properties("SASL_SSL", mechanism="PLAIN")
        with pytest.raises(RefusedError, match="the cluster has no topics"):
            Log(url, command_config=config)
        wrong = secure.properties("SASL_SSL", mechanism="PLAIN", password="not the password")
        with pytest.raises(PermissionError, match="does not accept the user") as raised:
            Log(url, command_config=wrong)
        assert "not the password" not in str(raised.value)
        # Without the CA, the certificate is nobody's.
        with pytest.raises(PermissionError, match="certificate"):
            Log(url)
    finally:
        secure.broker.kill()


def test_json_lines_of_groups(new: Node) -> None:
    """Kafka's own topics are decoded as from files."""
    from confluent_kafka import Consumer

    produce(new.bootstrap, "live-groups", 10)
    consumer = Consumer(
        {"bootstrap.servers": new.bootstrap, "group.id": "readers", "auto.offset.reset": "earliest"}
    )
    consumer.subscribe(["live-groups"])
    assert consumer.consume(10, 60)
    consumer.commit(asynchronous=False)
    consumer.close()
    command = [sys.executable, "-m", "magicbyte", "records", f"kafka://{new.bootstrap}/__consumer_offsets"]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    keys = [json.loads(line)["key"] for line in done.stdout.splitlines()]
    assert "readers" in json.dumps(keys), keys
