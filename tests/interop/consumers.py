"""Real consumers, each of which reads partition 0 of many topics to the end."""

from __future__ import annotations

import asyncio
import subprocess
import time
from collections.abc import Iterable
from typing import Any

import aiokafka
import confluent_kafka
import kafka
from kafka_broker import CLASSES, JAVA
from oracle import BUILT

JAVA_VERSIONS = ("3.9.1", "4.4.0")
SECONDS = 30

Record = tuple[int, bytes | None, bytes | None, list[tuple[str, bytes | None]]]
"""Offset, key, value and headers."""
Read = dict[str, list[Record]]
"""The records of each topic that has any."""


def by_java(
    version: str, bootstrap: str, isolation: str, group: str | None, topics: Iterable[str]
) -> dict[str, list[str]]:
    """For each topic, a line per record in the form that the fixtures' digests use."""
    asked = list(topics)
    quiet = "-Dorg.slf4j.simpleLogger.defaultLogLevel=error"
    path = f"{CLASSES}:{BUILT / f'lib-{version}'}/*"
    command = [*JAVA, quiet, "-cp", path, "Reader", bootstrap, isolation, group or "assign", *asked]
    output = subprocess.run(command, check=True, capture_output=True, text=True, timeout=60).stdout
    lines: dict[str, list[str]] = {}
    for line in output.splitlines():
        topic, _, record = line.partition("\t")
        lines.setdefault(topic, []).append(record)
    assert lines.pop("described") == [f"{len(asked)}\t1"]
    return lines


def by_librdkafka(bootstrap: str, isolation: str, group: str | None, topics: list[str], count: int) -> Read:
    found: Read = {}
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": group or "nobody",
            "isolation.level": isolation,
            "auto.offset.reset": "earliest",
            "fetch.wait.max.ms": 50,
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
            record = message.offset(), message.key(), message.value(), message.headers() or []
            found.setdefault(message.topic(), []).append(record)
    consumer.close()
    return found


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


BY_NAME = {"librdkafka": by_librdkafka, "kafka-python": by_kafka_python, "aiokafka": by_aiokafka}


def _add(found: Read, polled: dict[Any, list[Any]]) -> None:
    for partition, records in polled.items():
        found.setdefault(partition.topic, []).extend(
            (one.offset, one.key, one.value, list(one.headers)) for one in records
        )


def _count(found: Read) -> int:
    return sum(map(len, found.values()))
