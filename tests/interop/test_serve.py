"""Real clients read partition directories through `magicbyte serve`, and get what Kafka's own reader gets."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import aiokafka
import confluent_kafka
import kafka as kafka_python
import magicbyte
import pytest
from kafka_broker import CLASSES, JAVA, Broker, digest, java
from magicbyte.jobs.serve import PROBLEMS_TOPIC, Server
from oracle import BUILT

pytestmark = pytest.mark.interop

ISOLATION = ("read_uncommitted", "read_committed")
Record = tuple[int, bytes | None, bytes | None, list[tuple[str, bytes | None]]]
Read = dict[str, list[Record]]


@pytest.fixture(scope="module")
def server(kafka: Path) -> Iterator[Server]:
    with magicbyte.serve(kafka) as server:
        yield server


@pytest.fixture(scope="module")
def converting(kafka: Path) -> Iterator[Server]:
    """For clients that refuse LZ4 in old message sets."""
    with magicbyte.serve(kafka, to_magic_2=True) as server:
        yield server


def expected(path: Path, isolation_level: str) -> list[Record]:
    log = magicbyte.PartitionLog(path, mode="PERMISSIVE")
    records = log.records(isolation_level=isolation_level)  # type: ignore[arg-type]
    return [
        (one.offset, one.key_bytes, one.value_bytes, [(name, value) for name, value in one.headers])
        for one in records
        if one.control is None
    ]


@pytest.fixture(scope="module")
def logs(kafka: Path) -> dict[str, Read]:
    names = [path.name for path in sorted(kafka.iterdir())]
    return {level: {name: expected(kafka / name, level) for name in names} for level in ISOLATION}


def compare(found: Read, wanted: Read) -> None:
    assert found.keys() == {name for name, records in wanted.items() if records}
    for name, records in found.items():
        assert records == wanted[name], name


def is_complete(found: Read, wanted: Read) -> bool:
    return sum(map(len, found.values())) >= sum(map(len, wanted.values()))


def by_java(
    version: str, server: Server, isolation: str, how: str, topics: Iterable[str]
) -> dict[str, list[str]]:
    jars = BUILT / f"lib-{version}"
    quiet = "-Dorg.slf4j.simpleLogger.defaultLogLevel=error"
    command = [*JAVA, quiet, "-cp", f"{CLASSES}:{jars}/*", "Reader", server.bootstrap_servers, isolation, how]
    output = subprocess.run(
        [*command, *topics], check=True, capture_output=True, text=True, timeout=60
    ).stdout
    lines: dict[str, list[str]] = {}
    for line in output.splitlines():
        topic, _, record = line.partition("\t")
        lines.setdefault(topic, []).append(record)
    assert lines.pop("described") == [f"{len(list(topics))}\t1"]
    return lines


@pytest.mark.parametrize("version", ["3.9.1", "4.4.0"])
@pytest.mark.parametrize("isolation", ISOLATION)
@pytest.mark.parametrize("how", ["assign", "subscribe"])
def test_java(
    server: Server, kafka: Path, logs: dict[str, Read], version: str, isolation: str, how: str
) -> None:
    """The digests are those of Kafka's own reader of the files."""
    topics = list(logs[isolation])
    group = how if how == "assign" else f"java-{version}-{isolation}"
    found = by_java(version, server, isolation, group, topics)
    for name, records in logs[isolation].items():
        lines = found.get(name, [])
        assert [int(line.split("\t")[0]) for line in lines] == [offset for offset, *_ in records], name
        if isolation == "read_uncommitted":
            summary = json.loads((kafka / name / "summary.json").read_text())
            assert (len(lines), digest(lines)) == (summary["dataRecords"], summary["sha256"]), name


@pytest.mark.parametrize("isolation", ISOLATION)
@pytest.mark.parametrize("how", ["assign", "subscribe"])
def test_librdkafka(server: Server, logs: dict[str, Read], isolation: str, how: str) -> None:
    wanted, found = logs[isolation], Read()
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": server.bootstrap_servers,
            "group.id": f"librdkafka-{how}-{isolation}",
            "isolation.level": isolation,
            "auto.offset.reset": "earliest",
            "fetch.wait.max.ms": 50,
        }
    )
    if how == "assign":
        consumer.assign([confluent_kafka.TopicPartition(name, 0, 0) for name in wanted])
    else:
        consumer.subscribe(list(wanted))
    deadline = time.monotonic() + 30
    while not is_complete(found, wanted) and time.monotonic() < deadline:
        for message in consumer.consume(1000, 0.2):
            assert message.error() is None, message.error()
            record = message.offset(), message.key(), message.value(), message.headers() or []
            found.setdefault(message.topic(), []).append(record)
    consumer.close()
    compare(found, wanted)


@pytest.mark.parametrize("isolation", ISOLATION)
@pytest.mark.parametrize("how", ["assign", "subscribe"])
def test_kafka_python(converting: Server, logs: dict[str, Read], isolation: str, how: str) -> None:
    wanted, found = logs[isolation], Read()
    consumer = kafka_python.KafkaConsumer(
        bootstrap_servers=converting.bootstrap_servers,
        group_id=f"kafka-python-{isolation}" if how == "subscribe" else None,
        isolation_level=isolation,
        auto_offset_reset="earliest",
        fetch_max_wait_ms=50,
    )
    if how == "assign":
        partitions = [kafka_python.TopicPartition(name, 0) for name in wanted]
        consumer.assign(partitions)
        consumer.seek_to_beginning(*partitions)
    else:
        consumer.subscribe(list(wanted))
    deadline = time.monotonic() + 30
    while not is_complete(found, wanted) and time.monotonic() < deadline:
        for partition, records in consumer.poll(200, max_records=5000).items():
            found.setdefault(partition.topic, []).extend(
                (one.offset, one.key, one.value, list(one.headers)) for one in records
            )
    consumer.close()
    compare(found, wanted)


@pytest.mark.parametrize("isolation", ISOLATION)
@pytest.mark.parametrize("how", ["assign", "subscribe"])
def test_aiokafka(converting: Server, logs: dict[str, Read], isolation: str, how: str) -> None:
    wanted = logs[isolation]

    async def read() -> Read:
        found: Read = {}
        consumer = aiokafka.AIOKafkaConsumer(
            bootstrap_servers=converting.bootstrap_servers,
            group_id=f"aiokafka-{isolation}" if how == "subscribe" else None,
            isolation_level=isolation,
            auto_offset_reset="earliest",
            fetch_max_wait_ms=50,
        )
        if how == "assign":
            consumer.assign([aiokafka.TopicPartition(name, 0) for name in wanted])
        else:
            consumer.subscribe(list(wanted))
        await consumer.start()
        deadline = time.monotonic() + 30
        while not is_complete(found, wanted) and time.monotonic() < deadline:
            for partition, records in (await consumer.getmany(timeout_ms=200)).items():
                found.setdefault(partition.topic, []).extend(
                    (one.offset, one.key, one.value, list(one.headers)) for one in records
                )
        await consumer.stop()
        return found

    compare(asyncio.run(read()), wanted)


def test_offsets_for_times_are_those_of_a_broker(broker: Broker, kafka: Path, server: Server) -> None:
    names = [
        "v1_none",
        "v2_none",
        "v2_compacted",
        "v2_txn",
        "v2_timestamps",
        "v2_mixed_codecs",
        "v2_logappend",
    ]
    topics = broker.open({name: kafka / name for name in names}, clean=True)
    lines = {
        name: [json.loads(line) for line in (kafka / name / "expected.jsonl").read_text().splitlines()]
        for name in names
    }
    process = subprocess.Popen(
        java("Client", server.bootstrap_servers), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdin is not None
    assert process.stdout is not None
    for name in names:
        times = sorted({line["timestamp"] for line in lines[name] if 0 <= line["timestamp"] < 2**63 - 1})
        asked = sorted({at + more for at in times[:: max(1, len(times) // 8)] for more in (0, 1)})
        process.stdin.write("\t".join(["times", name, *map(str, asked)]) + "\n")
        process.stdin.flush()
        answers = [process.stdout.readline().strip() for _ in asked]
        assert process.stdout.readline() == ".\n"
        pairs = [None if one == "null" else tuple(map(int, one.split())) for one in answers]
        assert pairs == broker.offsets_for_times(topics[name], asked), name
    process.stdin.close()
    process.wait(20)
    broker.kill()


def consumer_of(server: Server, group: str, **settings: Any) -> confluent_kafka.Consumer:
    return confluent_kafka.Consumer(
        {
            "bootstrap.servers": server.bootstrap_servers,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "fetch.wait.max.ms": 50,
            "session.timeout.ms": 6000,
            "heartbeat.interval.ms": 200,
            **settings,
        }
    )


def poll(consumers: Iterable[confluent_kafka.Consumer], until: Any, seconds: float = 20) -> None:
    deadline = time.monotonic() + seconds
    while not until():
        assert time.monotonic() < deadline, "the members did not agree"
        for one in consumers:
            one.poll(0.05)


def test_a_group_of_several_members(kafka: Path, tmp_path: Path) -> None:
    for number in range(6):
        shutil.copytree(kafka / "v2_none", tmp_path / f"orders-{number}")
    with magicbyte.serve(tmp_path) as server:
        members = [consumer_of(server, "billing") for _ in range(3)]
        for one in members:
            one.subscribe(["orders"])
        poll(members, lambda: [len(one.assignment()) for one in members] == [2, 2, 2])
        assigned = [one.partition for member in members for one in member.assignment()]
        assert sorted(assigned) == list(range(6))
        # The others take over what a member leaves.
        members.pop().close()
        poll(members, lambda: [len(one.assignment()) for one in members] == [3, 3])
        place = confluent_kafka.TopicPartition("orders", 4, 17)
        members[0].commit(offsets=[place], asynchronous=False)
        for one in members:
            one.close()
        (committed,) = consumer_of(server, "billing").committed([place], timeout=10)
        assert committed.offset == 17


def test_committed_offsets_of_the_archive(kafka: Path, tmp_path: Path) -> None:
    shutil.copytree(kafka / "consumer_offsets_0", tmp_path / "__consumer_offsets-0")
    shutil.copytree(kafka / "v2_none", tmp_path / "other-0")
    archived = magicbyte.offsets(tmp_path)["offsets"]
    assert archived
    with magicbyte.serve(tmp_path) as server:
        for one in archived:
            place = confluent_kafka.TopicPartition(one["topic"], one["partition"])
            (found,) = consumer_of(server, one["group"]).committed([place], timeout=10)
            assert found.offset == one["offset"], one


def test_damage_is_a_gap_and_is_listed(kafka: Path, tmp_path: Path) -> None:
    shutil.copytree(kafka / "v2_none", tmp_path / "orders-0")
    log = max((tmp_path / "orders-0").glob("*.log"), key=lambda path: path.stat().st_size)
    data = bytearray(log.read_bytes())
    data[len(data) // 2] ^= 0xFF
    log.write_bytes(data)
    with magicbyte.serve(tmp_path) as server:
        wanted = {"orders": expected(tmp_path / "orders-0", "read_uncommitted")}
        found = by_java("4.4.0", server, "read_uncommitted", "assign", ["orders"])
        offsets = [int(line.split("\t")[0]) for line in found["orders"]]
        assert offsets == [offset for offset, *_ in wanted["orders"]]
        assert len(offsets) < json.loads((kafka / "v2_none" / "summary.json").read_text())["dataRecords"]
        (line,) = by_java("4.4.0", server, "read_uncommitted", "assign", [PROBLEMS_TOPIC])[PROBLEMS_TOPIC]
        problem = json.loads(bytes.fromhex(line.split("\t")[4]))
        assert (problem["topic"], problem["segment"], problem["kind"]) == ("orders", log.name, "crc_mismatch")


def test_a_growing_log(kafka: Path, tmp_path: Path) -> None:
    source, target = kafka / "v2_none", tmp_path / "orders-0"
    target.mkdir()
    log = max(source.glob("*.log"), key=lambda path: path.stat().st_size)
    data = log.read_bytes()
    batches = [data[one.position :][: one.size_in_bytes] for one in magicbyte.read_batches(data)]
    grown = target / log.name
    grown.write_bytes(batches[0])
    with magicbyte.serve(tmp_path, follow=True) as server:
        consumer = consumer_of(server, "follower")
        consumer.assign([confluent_kafka.TopicPartition("orders", 0, 0)])
        seen: list[int] = []
        for batch in batches[1:4]:
            with grown.open("ab") as file:
                file.write(batch)
            last = max(one.last_offset for one in magicbyte.read_batches(grown.read_bytes()))
            deadline = time.monotonic() + 10
            while not seen or seen[-1] < last:
                assert time.monotonic() < deadline
                message = consumer.poll(0.1)
                if message is not None:
                    seen.append(message.offset())
        consumer.close()
        assert seen == list(range(seen[0], seen[-1] + 1))


def test_produce_is_refused(server: Server) -> None:
    errors: list[Any] = []
    producer = confluent_kafka.Producer({"bootstrap.servers": server.bootstrap_servers})
    producer.produce("v2_none", b"value", partition=0, on_delivery=lambda error, _: errors.append(error))
    producer.flush(10)
    assert [error.name() for error in errors] == ["POLICY_VIOLATION"]


def test_a_segment_that_is_gone_or_cut(kafka: Path, tmp_path: Path) -> None:
    shutil.copytree(kafka / "v2_none", tmp_path / "orders-0")
    with magicbyte.serve(tmp_path) as server:
        wanted = {"orders": expected(tmp_path / "orders-0", "read_uncommitted")}
        for log in (tmp_path / "orders-0").glob("*.log"):
            os.truncate(log, log.stat().st_size // 2)
        consumer = consumer_of(server, "cut")
        consumer.assign([confluent_kafka.TopicPartition("orders", 0, 0)])
        found: list[Record] = []
        deadline = time.monotonic() + 2
        while time.monotonic() < deadline:
            message = consumer.poll(0.1)
            if message is not None and message.error() is None:
                found.append((message.offset(), message.key(), message.value(), message.headers() or []))
        consumer.close()
        assert set(map(repr, found)) <= set(map(repr, wanted["orders"]))
