"""Clients that produce records to a topic, and consume them: the loops that `clients_cpu.py` measures.

Each takes every key and value as its users would, and fails if a byte is missing.
"""

from __future__ import annotations

import importlib.util
import resource
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from asyncio_client import Client, Consumer, Producer
from client_tables import (
    AIOKAFKA,
    AIOKAFKA_DROPIN,
    CODECS,
    CONFLUENT,
    CONFLUENT_POLL,
    EXAMPLE,
    EXAMPLE_LISTS,
    KAFKA_PYTHON,
    KAFKA_PYTHON_DROPIN,
    KAFKARROW,
)

BATCH_SIZE = 256 << 10
LINGER_MS = 5
MANY = 2000
KEYS = [b"user-%06d" % number for number in range(1000)]
VALUES = [
    (
        b'{"id":%d,"name":"some name %d","amount":%d,"ok":true,"note":"' % (number, number * 7, number * 13)
    ).ljust(99, b"x")
    + b'"}'
    for number in range(1000)
]
PAIRS = list(zip(KEYS, VALUES, strict=True))
RECORD_BYTES = 112


@dataclass
class Job:
    """A topic with one partition that gets `count` records, and the CPU time (us a record) of each work."""

    bootstrap: str
    topic: str
    codec: str
    count: int
    costs: dict[str, float] = field(default_factory=dict)

    def start(self) -> None:
        self._since = self._now()

    def stop(self, work: str) -> None:
        self.costs[work] = 1e6 * (self._now() - self._since) / self.count

    def stop_consuming(self, size: int) -> None:
        self.stop("consume")
        assert size == self.count * RECORD_BYTES, size

    @staticmethod
    def _now() -> float:
        """This process's, user and system, of all threads."""
        usage = resource.getrusage(resource.RUSAGE_SELF)
        return usage.ru_utime + usage.ru_stime


# --- The example client ---------------------------------------------------------------------------


@asynccontextmanager
async def example_producer(job: Job) -> AsyncIterator[Producer]:
    async with (
        Client(job.bootstrap) as client,
        Producer(client, compression=job.codec, batch_size=BATCH_SIZE) as producer,
    ):
        yield producer


async def send(job: Job) -> None:
    async with example_producer(job) as producer:
        job.start()
        for _ in range(job.count // len(PAIRS)):
            for key, value in PAIRS:
                await producer.send(job.topic, 0, value, key)
        await producer.flush()
        job.stop("produce")


async def send_batch(job: Job) -> None:
    async with example_producer(job) as producer:
        job.start()
        now = time.time_ns() // 1_000_000
        for _ in range(job.count // MANY):
            records = [(None, now, key, value) for key, value in PAIRS * (MANY // len(PAIRS))]
            await producer.send_batch(job.topic, 0, records)
        await producer.flush()
        job.stop("produce")


async def poll_records(job: Job) -> None:
    async with Client(job.bootstrap) as client:
        consumer = Consumer(client, {(job.topic, 0): 0})
        found = size = 0
        job.start()
        while found < job.count:
            for fetched in await consumer.poll():
                for record in fetched.records:
                    found += 1
                    size += len(record.key_bytes or b"") + len(record.value_bytes or b"")
        job.stop_consuming(size)


async def poll_columns(job: Job) -> None:
    async with Client(job.bootstrap) as client:
        consumer = Consumer(client, {(job.topic, 0): 0})
        found = size = 0
        job.start()
        while found < job.count:
            for fetched in await consumer.poll():
                batch = pa.record_batch(fetched.records.to_arrow())
                found += batch.num_rows
                size += bytes_of(batch)
        job.stop_consuming(size)


def bytes_of(batch: Any) -> int:
    """The bytes of all keys and values in columns."""
    return sum(pc.sum(pc.binary_length(batch[name])).as_py() for name in ("key", "value"))


# --- aiokafka, kafka-python and their drop-ins ------------------------------------------------------


async def aiokafka_produce(job: Job) -> None:
    from aiokafka import AIOKafkaProducer

    options = {"max_batch_size": BATCH_SIZE, "linger_ms": LINGER_MS, "enable_idempotence": True}
    codec = None if job.codec == "none" else job.codec
    async with AIOKafkaProducer(
        bootstrap_servers=job.bootstrap, compression_type=codec, **options
    ) as producer:
        job.start()
        for _ in range(job.count // len(PAIRS)):
            for key, value in PAIRS:
                await producer.send(job.topic, value, key, partition=0)
        await producer.flush()
        job.stop("produce")


async def aiokafka_consume(job: Job) -> None:
    from aiokafka import AIOKafkaConsumer, TopicPartition

    options = {"auto_offset_reset": "earliest", "enable_auto_commit": False}
    async with AIOKafkaConsumer(bootstrap_servers=job.bootstrap, **options) as consumer:
        consumer.assign([TopicPartition(job.topic, 0)])
        found = size = 0
        job.start()
        while found < job.count:
            for records in (await consumer.getmany(timeout_ms=1000)).values():
                for record in records:
                    found += 1
                    size += len(record.key) + len(record.value)
        job.stop_consuming(size)


async def kafka_python_produce(job: Job) -> None:
    from kafka import KafkaProducer

    options = {"batch_size": BATCH_SIZE, "linger_ms": LINGER_MS}
    codec = None if job.codec == "none" else job.codec
    producer = KafkaProducer(bootstrap_servers=job.bootstrap, compression_type=codec, **options)
    job.start()
    for _ in range(job.count // len(PAIRS)):
        for key, value in PAIRS:
            producer.send(job.topic, value, key, partition=0)
    producer.flush()
    job.stop("produce")
    producer.close()


async def kafka_python_consume(job: Job) -> None:
    from kafka import KafkaConsumer, TopicPartition

    options = {"auto_offset_reset": "earliest", "enable_auto_commit": False}
    consumer = KafkaConsumer(bootstrap_servers=job.bootstrap, **options)
    consumer.assign([TopicPartition(job.topic, 0)])
    found = size = 0
    job.start()
    while found < job.count:
        for records in consumer.poll(1000, max_records=5000).values():
            for record in records:
                found += 1
                size += len(record.key) + len(record.value)
    job.stop_consuming(size)
    consumer.close()


# --- librdkafka, and what stands on it --------------------------------------------------------------


async def librdkafka_produce(job: Job) -> None:
    from confluent_kafka import Producer as ConfluentProducer

    settings = {"batch.size": BATCH_SIZE, "linger.ms": LINGER_MS, "enable.idempotence": True}
    settings |= {"bootstrap.servers": job.bootstrap, "compression.type": job.codec}
    producer = ConfluentProducer({**settings, "queue.buffering.max.messages": 200_000})
    job.start()
    for _ in range(job.count // len(PAIRS)):
        for key, value in PAIRS:
            while True:
                try:
                    producer.produce(job.topic, value, key, partition=0)
                    break
                except BufferError:
                    producer.poll(0.05)
    producer.flush()
    job.stop("produce")


def librdkafka_consumer(job: Job) -> Any:
    from confluent_kafka import Consumer as ConfluentConsumer
    from confluent_kafka import TopicPartition

    settings = {"bootstrap.servers": job.bootstrap, "group.id": job.topic, "enable.auto.commit": False}
    consumer = ConfluentConsumer(settings)
    consumer.assign([TopicPartition(job.topic, 0, 0)])
    return consumer


async def librdkafka_consume(job: Job) -> None:
    consumer = librdkafka_consumer(job)
    found = size = 0
    job.start()
    while found < job.count:
        for message in consumer.consume(5000, 1.0):
            found += 1
            size += len(message.key() or b"") + len(message.value() or b"")
    job.stop_consuming(size)
    consumer.close()


async def librdkafka_poll(job: Job) -> None:
    """One message a call."""
    consumer = librdkafka_consumer(job)
    found = size = 0
    job.start()
    while found < job.count:
        if message := consumer.poll(1.0):
            found += 1
            size += len(message.key() or b"") + len(message.value() or b"")
    job.stop_consuming(size)
    consumer.close()


async def kafkarrow_consume(job: Job) -> None:
    from kafkarrow import ConsumerManager, SourceTopic

    topics = [SourceTopic.from_earliest(job.topic)]
    manager = ConsumerManager(config={"bootstrap.servers": job.bootstrap}, topics=topics)
    found = size = 0
    job.start()
    while found < job.count:
        batch = manager.poll(timeout_ms=1000)
        found += batch.num_rows
        if batch.num_rows:
            size += bytes_of(batch)
    job.stop_consuming(size)


Loop = Callable[[Job], Awaitable[None]]


@dataclass(frozen=True)
class Measured:
    """A client. One that does not produce reads what `send_batch` wrote."""

    consume: Loop
    produce: Loop | None = None
    # The package that it needs, and the module of magicbyte that replaces its classes.
    package: str | None = None
    dropin: str | None = None
    # The wheel of kafkarrow has librdkafka without zstd.
    codecs: tuple[str, ...] = CODECS
    # kafka-python takes ten times as long, and so gets a part of the records.
    share: int = 1

    def takes(self, codec: str) -> bool:
        """True if the client is installed and knows the codec."""
        is_here = self.package is None or importlib.util.find_spec(self.package) is not None
        return is_here and codec in self.codecs


CLIENTS = {
    EXAMPLE: Measured(poll_records, send),
    EXAMPLE_LISTS: Measured(poll_columns, send_batch),
    CONFLUENT: Measured(librdkafka_consume, librdkafka_produce),
    CONFLUENT_POLL: Measured(librdkafka_poll),
    KAFKARROW: Measured(kafkarrow_consume, package="kafkarrow", codecs=("none", "lz4")),
    AIOKAFKA: Measured(aiokafka_consume, aiokafka_produce),
    AIOKAFKA_DROPIN: Measured(aiokafka_consume, aiokafka_produce, dropin="aiokafka"),
    KAFKA_PYTHON: Measured(kafka_python_consume, kafka_python_produce, share=8),
    KAFKA_PYTHON_DROPIN: Measured(kafka_python_consume, kafka_python_produce, dropin="kafka_python", share=8),
}
