"""Logs as brokers append what producers send, with batches that a producer put into another topic."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from magicbyte import Compression, RecordsBuilder, TimestampType
from magicbyte.broker import AppendConfig, AppendValidator

START = 1_700_000_000_000


@dataclass
class Topic:
    """A topic and the logs of its partitions."""

    name: str
    value: Callable[[int], bytes]
    """The value of the nth record."""
    config: AppendConfig = field(default_factory=AppendConfig)
    partitions: int = 2
    headers: dict[str, bytes] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.validator = AppendValidator(self.config)
        self.logs = [bytearray() for _ in range(self.partitions)]
        self.ends = [0] * self.partitions

    def append(self, partition: int, batch: bytes, now: int) -> tuple[str, int, int, int]:
        """Appends a batch as the leader does; returns its topic, partition, and first and last offset."""
        info = self.validator.validate(batch, next_offset=self.ends[partition], now=now)
        first, self.ends[partition] = self.ends[partition], info.last_offset + 1
        self.logs[partition] += info.records
        return self.name, partition, first, info.last_offset


@dataclass
class Producer:
    """A producer, with a sequence for each partition if it is idempotent."""

    producer_id: int = -1
    compression: str = "none"

    def __post_init__(self) -> None:
        self.sequences = Counter[tuple[str, int]]()
        self.records = 0

    def batch(self, topic: Topic, partition: int, count: int, now: int) -> bytes:
        """The next batch for a partition."""
        place = topic.name, partition
        idempotent = self.producer_id >= 0
        builder = RecordsBuilder(
            compression=self.compression,
            producer_id=self.producer_id,
            producer_epoch=0 if idempotent else -1,
            base_sequence=self.sequences[place] if idempotent else -1,
        )
        for index in range(count):
            self.records += 1
            value = topic.value(self.records)
            builder.append(index, now - count + index, b"%d" % (self.records % 97), value, topic.headers)
        self.sequences[place] += count
        return builder.build()


class Cluster:
    """Topics, and producers that write to all of them."""

    def __init__(self, topics: list[Topic], producers: list[Producer], seed: int = 1) -> None:
        self.topics, self.producers = topics, producers
        self.random = random.Random(seed)
        self.now = START
        self.planted: dict[tuple[str, int, int, int], tuple[str, int, int, int]] = {}
        """The misrouted batches, and where they belong."""

    def produce(
        self, batches: int, *, misrouted: int = 0, loses_original: bool = False, **chosen: Any
    ) -> Cluster:
        """Produces to random partitions; so many of the batches also go to a partition of another topic."""
        wrong = set(self.random.sample(range(batches // 20, batches), misrouted))
        for number in range(batches):
            self.now += self.random.randrange(1, 40)
            producer = chosen.get("producer") or self.random.choice(self.producers)
            topic = chosen.get("topic") or self.random.choice(self.topics)
            partition = self.random.randrange(topic.partitions)
            batch = producer.batch(topic, partition, self.random.randrange(1, 6), self.now)
            if number not in wrong:
                topic.append(partition, batch, self.now + 3)
                continue
            other = chosen.get("into") or self.random.choice([one for one in self.topics if one is not topic])
            place = other.append(self.random.randrange(other.partitions), batch, self.now + 2)
            original = None if loses_original else topic.append(partition, batch, self.now + 3)
            self.planted[place] = original or (topic.name, partition, -1, -1)
        return self

    def write(self, directory: Path, *, segment_batches: int | None = None) -> Path:
        """Writes the logs as a log directory, each of one segment."""
        for topic in self.topics:
            for partition, log in enumerate(topic.logs):
                path = directory / f"{topic.name}-{partition}"
                path.mkdir(parents=True)
                (path / f"{0:020}.log").write_bytes(bytes(log))
        return directory


def many_topics(count: int = 20) -> list[Topic]:
    """Topics with values of their own: a fifth has LogAppendTime, two fifths a codec, a fifth both."""
    configs = [
        AppendConfig(),
        AppendConfig(message_timestamp_type=TimestampType.LOG_APPEND_TIME),
        AppendConfig(compression=Compression.ZSTD),
        AppendConfig(compression=Compression.LZ4, message_timestamp_type=TimestampType.LOG_APPEND_TIME),
        AppendConfig(compression=Compression.NONE),
    ]
    return [
        Topic(f"topic{n}", value=lambda i, n=n: _value(n, i), config=configs[n % len(configs)])
        for n in range(count)
    ]


def _value(topic: int, number: int) -> bytes:
    """Four kinds of values, each with the topic's own fields, prefix or schema id."""
    if topic % 4 == 0:
        return b'{"id":%d,"field%d":"%d"}' % (number, topic, number * 7)
    if topic % 4 == 1:
        return b"\0\0\0\0" + bytes([100 + topic]) + b"%d" % number
    if topic % 4 == 2:
        return b"%c%c%c: %d" % (97 + topic, 98 + topic, 99 + topic, number)
    return bytes([200 + topic, 7, topic]) + number.to_bytes(8, "big")


def many_producers() -> list[Producer]:
    """Idempotent producers and others, with and without compression."""
    return [
        Producer(4001, "none"),
        Producer(4002, "lz4"),
        Producer(4003, "zstd"),
        Producer(-1, "none"),
        Producer(-1, "gzip"),
    ]


def places(report: Any, *strengths: str) -> dict[tuple[str, int, int, int], Any]:
    """The findings of a report by topic, partition, first and last offset."""
    found = defaultdict(list)
    for one in report["misrouted"]:
        if not strengths or one["strength"] in strengths:
            found[one["topic"], one["partition"], one["first_offset"], one["last_offset"]].append(one)
    assert all(len(own) == 1 for own in found.values())
    return {place: own[0] for place, own in found.items()}
