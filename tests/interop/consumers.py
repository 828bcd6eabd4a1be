"""Real consumers, each of which reads partition 0 of many topics to the end."""

from __future__ import annotations

import asyncio
import functools
import io
import os
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import aiokafka
import confluent_kafka
import kafka
import magicbyte
import pytest
from kafka_broker import BROKERS, JAVA
from kafka_versions import BUILDS, NEWEST, OLD
from oracle import BUILT

JAVA_VERSIONS = (OLD, BUILDS, NEWEST)
SECONDS = 30

Header = tuple[str, bytes | None]
Record = tuple[int, int, bytes | None, bytes | None, list[Header]]
"""Offset, timestamp or -1, key, value and headers."""
Read = dict[str, list[Record]]
"""The records of each topic that has any."""


def by_log(directory: Path, isolation: str) -> list[Record]:
    """The records that clients of a partition should get, by our own reader, which Kafka's classes judge elsewhere."""
    log = magicbyte.PartitionLog(directory, mode="PERMISSIVE")
    return [
        (
            one.offset,
            one.timestamp,
            one.key_bytes,
            one.value_bytes,
            [(name, value if value is None else bytes(value)) for name, value in one.headers],
        )
        for one in log.records(isolation_level=isolation)  # type: ignore[arg-type]
        if one.control is None
    ]


def by_java(
    version: str,
    bootstrap: str,
    isolation: str,
    group: str | None,
    topics: Iterable[str],
    *,
    properties: Iterable[str] = (),
) -> dict[str, list[str]]:
    """For each topic, a line per record in the form that the fixtures' digests use."""
    asked = list(topics)
    given = ["-Dorg.slf4j.simpleLogger.defaultLogLevel=error", *(f"-D{one}" for one in properties)]
    path = f"{BROKERS / NEWEST / 'classes.jar'}:{BUILT / f'lib-{version}'}/*"
    command = [*JAVA, *given, "-cp", path, "Reader", bootstrap, isolation, group or "assign", *asked]
    output = subprocess.run(command, check=True, capture_output=True, text=True, timeout=60).stdout
    lines: dict[str, list[str]] = {}
    for line in output.splitlines():
        topic, _, record = line.partition("\t")
        lines.setdefault(topic, []).append(record)
    assert lines.pop("listed") == [f"{len(asked)}\t1"]
    return lines


def by_librdkafka(
    bootstrap: str, isolation: str, group: str | None, topics: list[str], count: int, **settings: Any
) -> Read:
    found: Read = {}
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": group or "nobody",
            "isolation.level": isolation,
            "auto.offset.reset": "earliest",
            "fetch.wait.max.ms": 50,
            **settings,
        }
    )
    if group is None:
        consumer.assign([confluent_kafka.TopicPartition(name, 0, 0) for name in topics])
    else:
        consumer.subscribe(topics)
    deadline = time.monotonic() + SECONDS
    while _count(found) < count and time.monotonic() < deadline:
        for message in consumer.consume(1000, 0.2):
            assert message.error() is None, message.error()
            found.setdefault(message.topic(), []).append(of_librdkafka(message))
    consumer.close()
    return found


def of_librdkafka(message: confluent_kafka.Message) -> Record:
    """A record of a message."""
    kind, timestamp = message.timestamp()
    if kind == confluent_kafka.TIMESTAMP_NOT_AVAILABLE:
        timestamp = -1
    return message.offset(), timestamp, message.key(), message.value(), message.headers() or []


def by_kafka_python(bootstrap: str, isolation: str, group: str | None, topics: list[str], count: int) -> Read:
    found: Read = {}
    consumer = kafka.KafkaConsumer(
        bootstrap_servers=bootstrap,
        group_id=group,
        isolation_level=isolation,
        auto_offset_reset="earliest",
        fetch_max_wait_ms=50,
    )
    if group is None:
        partitions = [kafka.TopicPartition(name, 0) for name in topics]
        consumer.assign(partitions)
        consumer.seek_to_beginning(*partitions)
    else:
        consumer.subscribe(topics)
    deadline = time.monotonic() + SECONDS
    while _count(found) < count and time.monotonic() < deadline:
        _add(found, consumer.poll(200, max_records=5000))
    consumer.close()
    return found


def by_aiokafka(bootstrap: str, isolation: str, group: str | None, topics: list[str], count: int) -> Read:
    found: Read = {}

    async def read() -> None:
        consumer = aiokafka.AIOKafkaConsumer(
            bootstrap_servers=bootstrap,
            group_id=group,
            isolation_level=isolation,
            auto_offset_reset="earliest",
            fetch_max_wait_ms=50,
        )
        if group is None:
            consumer.assign([aiokafka.TopicPartition(name, 0) for name in topics])
        else:
            consumer.subscribe(topics)
        await consumer.start()
        deadline = time.monotonic() + SECONDS
        while _count(found) < count and time.monotonic() < deadline:
            _add(found, await consumer.getmany(timeout_ms=200))
        await consumer.stop()

    asyncio.run(read())
    return found


def by_kcat(bootstrap: str, isolation: str, group: str | None, topics: list[str], count: int) -> Read:
    """kcat ends by itself, wherever it finds the end. It consumes several topics as a member of a group only."""
    settings = {"isolation.level": isolation, "fetch.wait.max.ms": "50", "auto.offset.reset": "earliest"}
    command = ["kcat", "-b", bootstrap, "-e", "-q", "-f", r"%t %o %T %K %S\n%k%s%h" + KCAT_END.decode()]
    command += [word for name, value in settings.items() for word in ("-X", f"{name}={value}")]

    def run(*arguments: str) -> bytes:
        done = subprocess.run([*command, *arguments], check=True, capture_output=True, timeout=60)
        assert done.stderr == b""
        return done.stdout

    if group is not None:
        return _parse_kcat(run("-G", group, *topics))
    # They mostly wait.
    with ThreadPoolExecutor(16) as pool:
        outputs = pool.map(lambda topic: run("-C", "-t", topic, "-p", "0", "-o", "beginning"), topics)
        return _parse_kcat(b"".join(outputs))


KCAT_END = b"(end of the record)"


def _parse_kcat(output: bytes) -> Read:
    found: Read = {}
    left = io.BytesIO(output)
    while head := left.readline():
        topic, offset, timestamp, *sizes = head.decode().split()
        parts = [None if size < 0 else left.read(size) for size in map(int, sizes)]
        end = output.index(KCAT_END, left.tell())
        headers = left.read(end - left.tell())
        left.seek(end + len(KCAT_END))
        found.setdefault(topic, []).append(_printed(int(offset), int(timestamp), *parts, headers))
    return found


def as_printed_by_kcat(record: Record) -> Record:
    """Headers are one text, and each value ends before its first zero byte."""
    offset, timestamp, key, value, headers = record
    shown = ((name.encode(), b"NULL" if of is None else of.partition(b"\0")[0]) for name, of in headers)
    return _printed(offset, timestamp, key, value, b",".join(b"%b=%b" % pair for pair in shown))


def _printed(offset: int, timestamp: int, key: bytes | None, value: bytes | None, headers: bytes) -> Record:
    # For no timestamp, kcat prints 0 or -1.
    return offset, max(timestamp, 0), key, value, [("", headers)] if headers else []


ONLY_THIS_GO = {**os.environ, "GOTOOLCHAIN": "local"}
GO_SOURCES = Path(__file__).parent / "clients" / "franz-go"


@functools.cache
def _franz_go() -> Path:
    """The program. It is put into its place when it is whole, since another process may be running it."""
    program = BUILT / "franz-go"
    with tempfile.TemporaryDirectory(dir=BUILT) as directory:
        new = Path(directory) / program.name
        subprocess.run(["go", "build", "-o", str(new), "."], check=True, cwd=GO_SOURCES, env=ONLY_THIS_GO)
        return new.replace(program)


def by_franz_go(bootstrap: str, isolation: str, group: str | None, topics: list[str], count: int) -> Read:
    """The program is built when it is first needed; without Go, the test is skipped."""
    needed = re.search(r"^go (\d+)\.(\d+)", (GO_SOURCES / "go.mod").read_text(), re.MULTILINE)
    assert needed is not None
    if (go := _go_version()) < tuple(map(int, needed.groups())):
        pytest.skip(
            f"franz-go needs Go {'.'.join(needed.groups())} or newer (found: {'.'.join(map(str, go)) or 'none'})"
        )
    command = [str(_franz_go()), bootstrap, isolation, group or "assign", str(count), *topics]
    output = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, timeout=60).stdout
    return _of_lines(output)


@functools.cache
def _confluent_rust() -> Path:
    """The program, which is built when it is first needed."""
    manifest = Path(__file__).parent / "clients" / "confluent-rust" / "Cargo.toml"
    target = BUILT / "confluent-rust"
    command = ["cargo", "build", "--quiet", "--locked", "--manifest-path", manifest, "--target-dir", target]
    subprocess.run(command, check=True)
    return target / "debug" / "confluent-rust"


def by_confluent_rust(bootstrap: str, isolation: str, group: str, topics: list[str], count: int) -> Read:
    """By Confluent's client in Rust, which knows only the new group protocol, and no old message sets."""
    command = [str(_confluent_rust()), bootstrap, isolation, group, str(count), *topics]
    output = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, timeout=120).stdout
    return _of_lines(output)


def _of_lines(output: str) -> Read:
    found: Read = {}
    for line in output.splitlines():
        topic, _, record = line.partition("\t")
        found.setdefault(topic, []).append(of_line(record))
    return found


def as_read_by_franz_go(record: Record) -> Record:
    """Timestamps are nanoseconds of 64 bits."""
    offset, timestamp, *others = record
    low = timestamp * 1_000_000 % 2**64
    return offset, (low - 2**64 if low >= 2**63 else low) // 1_000_000, *others


def _go_version() -> tuple[int, ...]:
    if shutil.which("go") is None:
        return ()
    asked = ["go", "env", "GOVERSION"]
    shown = subprocess.run(asked, check=True, capture_output=True, text=True, env=ONLY_THIS_GO).stdout
    return tuple(map(int, re.findall(r"\d+", shown)))


def of_line(line: str) -> Record:
    """A record of a line in the form that the fixtures' digests use."""
    offset, timestamp, _, key, value, headers = line.split("\t")
    pairs = (pair.split("=") for pair in headers.split(";")[:-1])
    named = [(bytes.fromhex(name).decode(), _of_hex(of)) for name, of in pairs]
    return int(offset), int(timestamp), _of_hex(key), _of_hex(value), named


def _of_hex(text: str) -> bytes | None:
    return None if text == "null" else bytes.fromhex(text)


Reads = Callable[[str, str, str | None, list[str], int], Read]
BY_NAME: dict[str, Reads] = {
    "librdkafka": by_librdkafka,
    "kcat": by_kcat,
    "kafka-python": by_kafka_python,
    "aiokafka": by_aiokafka,
    "franz-go": by_franz_go,
}
AS_SEEN: dict[str, Callable[[Record], Record]] = {"kcat": as_printed_by_kcat, "franz-go": as_read_by_franz_go}
"""What some clients make of a record."""
READS_OLD_LZ4 = {"librdkafka", "kcat"}
"""The others refuse LZ4 in old message sets."""


def _add(found: Read, polled: dict[Any, list[Any]]) -> None:
    for partition, records in polled.items():
        found.setdefault(partition.topic, []).extend(
            (one.offset, one.timestamp, one.key, one.value, list(one.headers)) for one in records
        )


def _count(found: Read) -> int:
    return sum(map(len, found.values()))
