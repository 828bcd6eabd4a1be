"""Real clients read partition directories through `magicbyte serve`, and get what Kafka's own reader gets."""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import confluent_kafka
import magicbyte
import pytest
from consumers import (
    AS_SEEN,
    BY_NAME,
    JAVA_VERSIONS,
    READS_OLD_LZ4,
    Read,
    Record,
    by_java,
    by_log,
    of_librdkafka,
    of_line,
)
from kafka_broker import digest
from kafka_versions import NEWEST
from magicbyte.jobs.serve import PROBLEMS_TOPIC, Server

pytestmark = pytest.mark.interop

ISOLATION = ("read_uncommitted", "read_committed")


@pytest.fixture(scope="module")
def server(kafka: Path) -> Iterator[Server]:
    with magicbyte.serve(kafka) as server:
        yield server


@pytest.fixture(scope="module")
def converting(kafka: Path) -> Iterator[Server]:
    """For clients that refuse LZ4 in old message sets."""
    with magicbyte.serve(kafka, to_magic_2=True) as server:
        yield server


@pytest.fixture(scope="module")
def logs(kafka: Path) -> dict[str, Read]:
    return {
        level: {path.name: by_log(path, level) for path in sorted(kafka.iterdir())} for level in ISOLATION
    }


@pytest.mark.parametrize("version", JAVA_VERSIONS)
@pytest.mark.parametrize("isolation", ISOLATION)
@pytest.mark.parametrize("how", ["assign", "subscribe"])
def test_java(
    server: Server, kafka: Path, logs: dict[str, Read], version: str, isolation: str, how: str
) -> None:
    """The digests are those of Kafka's own reader of the files."""
    topics = list(logs[isolation])
    group = None if how == "assign" else f"java-{version}-{isolation}"
    found = by_java(version, server.bootstrap_servers, isolation, group, topics)
    for name, records in logs[isolation].items():
        lines = found.get(name, [])
        assert [of_line(line) for line in lines] == records, name
        if isolation == "read_uncommitted":
            summary = json.loads((kafka / name / "summary.json").read_text())
            assert (len(lines), digest(lines)) == (summary["dataRecords"], summary["sha256"]), name


@pytest.mark.parametrize("client", BY_NAME)
@pytest.mark.parametrize("isolation", ISOLATION)
@pytest.mark.parametrize("how", ["assign", "subscribe"])
def test_other_clients(
    server: Server, converting: Server, logs: dict[str, Read], client: str, isolation: str, how: str
) -> None:
    wanted = logs[isolation]
    group = None if how == "assign" else f"{client}-{isolation}"
    bootstrap = (server if client in READS_OLD_LZ4 else converting).bootstrap_servers
    count = sum(map(len, wanted.values()))
    found = BY_NAME[client](bootstrap, isolation, group, list(wanted), count)
    assert found.keys() == {name for name, records in wanted.items() if records}
    for name, records in found.items():
        as_seen = AS_SEEN.get(client)
        assert records == (list(map(as_seen, wanted[name])) if as_seen else wanted[name]), name


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


def poll(consumers: Iterable[confluent_kafka.Consumer], until: Any, seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not until():
        assert time.monotonic() < deadline, "the members did not agree"
        for one in consumers:
            one.poll(0.05)


def test_a_group_of_several_members(kafka: Path, tmp_path: Path) -> None:
    for number in range(6):
        shutil.copytree(kafka / "v2_none", tmp_path / f"orders-{number}")
    with magicbyte.serve(tmp_path) as server:
        # Otherwise closing commits the positions.
        settings: dict[str, Any] = {"enable.auto.commit": False}
        members = [consumer_of(server, "billing", **settings) for _ in range(3)]
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
        (committed,) = consumer_of(server, "billing").committed([place], timeout=60)
        assert committed.offset == 17


def test_committed_offsets_of_the_archive(kafka: Path, tmp_path: Path) -> None:
    shutil.copytree(kafka / "consumer_offsets_0", tmp_path / "__consumer_offsets-0")
    shutil.copytree(kafka / "v2_none", tmp_path / "other-0")
    archived = magicbyte.offsets(tmp_path)["offsets"]
    assert archived
    with magicbyte.serve(tmp_path) as server:
        for one in archived:
            place = confluent_kafka.TopicPartition(one["topic"], one["partition"])
            (found,) = consumer_of(server, one["group"]).committed([place], timeout=60)
            assert found.offset == one["offset"], one


def test_damage_is_a_gap_and_is_listed(kafka: Path, tmp_path: Path) -> None:
    shutil.copytree(kafka / "v2_none", tmp_path / "orders-0")
    log = max((tmp_path / "orders-0").glob("*.log"), key=lambda path: path.stat().st_size)
    data = bytearray(log.read_bytes())
    data[len(data) // 2] ^= 0xFF
    log.write_bytes(data)
    with magicbyte.serve(tmp_path) as server:
        wanted = {"orders": by_log(tmp_path / "orders-0", "read_uncommitted")}
        found = by_java(NEWEST, server.bootstrap_servers, "read_uncommitted", None, ["orders"])
        offsets = [int(line.split("\t")[0]) for line in found["orders"]]
        assert offsets == [offset for offset, *_ in wanted["orders"]]
        assert len(offsets) < json.loads((kafka / "v2_none" / "summary.json").read_text())["dataRecords"]
        problems = by_java(NEWEST, server.bootstrap_servers, "read_uncommitted", None, [PROBLEMS_TOPIC])
        (line,) = problems[PROBLEMS_TOPIC]
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
            deadline = time.monotonic() + 60
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
    producer.flush(60)
    assert [error.name() for error in errors] == ["POLICY_VIOLATION"]


def test_a_segment_that_is_gone_or_cut(kafka: Path, tmp_path: Path) -> None:
    shutil.copytree(kafka / "v2_none", tmp_path / "orders-0")
    with magicbyte.serve(tmp_path) as server:
        wanted = {"orders": by_log(tmp_path / "orders-0", "read_uncommitted")}
        for log in (tmp_path / "orders-0").glob("*.log"):
            os.truncate(log, log.stat().st_size // 2)
        consumer = consumer_of(server, "cut")
        consumer.assign([confluent_kafka.TopicPartition("orders", 0, 0)])
        found: list[Record] = []
        deadline = time.monotonic() + 2
        while time.monotonic() < deadline:
            message = consumer.poll(0.1)
            if message is not None and message.error() is None:
                found.append(of_librdkafka(message))
        consumer.close()
        assert set(map(repr, found)) <= set(map(repr, wanted["orders"]))
