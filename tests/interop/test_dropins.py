"""Producers and consumers of aiokafka and kafka-python with the drop-ins, against a real broker."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import kafka
import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka import TopicPartition as AioPartition
from kafka_broker import Broker
from magicbyte.compat import aiokafka as aiokafka_dropin
from magicbyte.compat import kafka_python as kafka_python_dropin

pytestmark = pytest.mark.interop

CODECS = (None, "gzip", "snappy", "lz4", "zstd")
COUNT = 300
# Timestamp, key, value, headers; and as consumed, with the offset first.
Sent = tuple[int, bytes | None, bytes | None, list[tuple[str, bytes | None]]]
Got = tuple[int, int, bytes | None, bytes | None, list[tuple[str, bytes | None]]]


def records(first: int = 0, count: int = COUNT, null: bytes | None = None) -> list[Sent]:
    """`null` stands for a null header value: kafka-python sends none, and uses an empty value instead."""
    return [
        (
            1_700_000_000_000 + number,
            None if number % 7 == 0 else b"key %d" % number,
            None if number % 7 == 3 else b"value %d " % number * (number % 40 + 1),
            [("trace", b"%d" % number), ("trace", null), ("é", b"")] if number % 3 == 0 else [],
        )
        for number in range(first, first + count)
    ]


# --- aiokafka -------------------------------------------------------------------------------------


async def _aiokafka_produce(bootstrap: str, topic: str, codec: str | None, sent: list[Sent]) -> None:
    producer = AIOKafkaProducer(bootstrap_servers=bootstrap, compression_type=codec, linger_ms=5)
    async with producer:
        futures = [
            await producer.send(topic, value, key, partition=0, timestamp_ms=at, headers=headers)
            for at, key, value, headers in sent
        ]
        await asyncio.gather(*futures)


async def _aiokafka_consume(bootstrap: str, topic: str, count: int, isolation: str) -> list[Got]:
    consumer = AIOKafkaConsumer(
        bootstrap_servers=bootstrap, auto_offset_reset="earliest", isolation_level=isolation, group_id=None
    )
    got: list[Got] = []
    async with consumer:
        consumer.assign([AioPartition(topic, 0)])
        while len(got) < count:
            fetched = await asyncio.wait_for(consumer.getmany(timeout_ms=1000), 20)
            for messages in fetched.values():
                got += [(m.offset, m.timestamp, m.key, m.value, list(m.headers)) for m in messages]
    return got


async def _aiokafka_transactions(bootstrap: str, topic: str) -> None:
    producer = AIOKafkaProducer(bootstrap_servers=bootstrap, transactional_id=f"aiokafka-{topic}")
    async with producer:
        for first, commits in ((0, True), (100, False), (200, True)):
            await producer.begin_transaction()
            for at, key, value, headers in records(first, 20):
                await producer.send(topic, value, key, partition=0, timestamp_ms=at, headers=headers)
            await (producer.commit_transaction() if commits else producer.abort_transaction())


# --- kafka-python ---------------------------------------------------------------------------------


def _kafka_python_produce(bootstrap: str, topic: str, codec: str | None, sent: list[Sent]) -> None:
    producer = kafka.KafkaProducer(bootstrap_servers=bootstrap, compression_type=codec, linger_ms=5)
    futures = [
        producer.send(topic, value, key, headers, partition=0, timestamp_ms=at)
        for at, key, value, headers in sent
    ]
    producer.flush(30)
    for future in futures:
        future.get(10)
    producer.close()


def _kafka_python_consume(bootstrap: str, topic: str, count: int, isolation: str) -> list[Got]:
    consumer = kafka.KafkaConsumer(
        bootstrap_servers=bootstrap, auto_offset_reset="earliest", isolation_level=isolation, group_id=None
    )
    consumer.assign([kafka.TopicPartition(topic, 0)])
    got: list[Got] = []
    for _ in range(60):
        for messages in consumer.poll(timeout_ms=500).values():
            got += [(m.offset, m.timestamp, m.key, m.value, list(m.headers)) for m in messages]
        if len(got) >= count:
            break
    consumer.close()
    return got


def _kafka_python_transactions(bootstrap: str, topic: str) -> None:
    producer = kafka.KafkaProducer(bootstrap_servers=bootstrap, transactional_id=f"kafka-python-{topic}")
    producer.init_transactions()
    for first, commits in ((0, True), (100, False), (200, True)):
        producer.begin_transaction()
        for at, key, value, headers in records(first, 20, b""):
            producer.send(topic, value, key, headers, partition=0, timestamp_ms=at)
        producer.flush(30)
        if commits:
            producer.commit_transaction()
        else:
            producer.abort_transaction()
    producer.close()


# --- both -----------------------------------------------------------------------------------------


class Library:
    """A client library, its drop-in, and its own topics."""

    def __init__(
        self,
        dropin: Any,
        first_topic: int,
        null: bytes | None,
        produce: Callable[[str, str, str | None, list[Sent]], Any],
        consume: Callable[[str, str, int, str], Any],
        transactions: Callable[[str, str], Any],
    ) -> None:
        self.dropin = dropin
        self.first_topic = first_topic
        self.null = null
        self._do = (produce, consume, transactions)

    def produce(self, *arguments: Any) -> None:
        _finished(self._do[0](*arguments))

    def consume(self, *arguments: Any) -> list[Got]:
        got: list[Got] = _finished(self._do[1](*arguments))
        return got

    def transactions(self, *arguments: Any) -> None:
        _finished(self._do[2](*arguments))


def _finished(result: Any) -> Any:
    return asyncio.run(result) if asyncio.iscoroutine(result) else result


LIBRARIES = {
    "aiokafka": Library(
        aiokafka_dropin, 0, None, _aiokafka_produce, _aiokafka_consume, _aiokafka_transactions
    ),
    "kafka-python": Library(
        kafka_python_dropin, 10, b"", _kafka_python_produce, _kafka_python_consume, _kafka_python_transactions
    ),
}


@pytest.fixture(scope="module")
def running(broker: Broker) -> Broker:
    """The broker with empty topics."""
    broker.open({}, clean=True)
    return broker


@pytest.fixture(params=LIBRARIES)
def library(request: pytest.FixtureRequest) -> Iterator[Library]:
    found = LIBRARIES[request.param]
    yield found
    found.dropin.uninstall()


@pytest.mark.parametrize("codec", CODECS)
def test_round_trip(running: Broker, library: Library, codec: str | None) -> None:
    topic = running.topics[library.first_topic + CODECS.index(codec)]
    sent = records(null=library.null)
    library.dropin.install()
    before = library.dropin.counts()
    library.produce(running.bootstrap, topic, codec, sent)
    got = library.consume(running.bootstrap, topic, COUNT, "read_uncommitted")
    after = library.dropin.counts()
    assert got == [(offset, *each) for offset, each in enumerate(sent)]
    # Only our code ran.
    for name in ("records_built", "records_read"):
        assert after[name] - before[name] == COUNT, name
    assert after["batches_built"] > before["batches_built"]
    # The originals read what the drop-in builds, the drop-in what they build, and Kafka's consumer reads
    # both.
    library.dropin.uninstall()
    assert library.consume(running.bootstrap, topic, COUNT, "read_uncommitted") == got
    library.produce(running.bootstrap, topic, codec, sent)
    original = library.consume(running.bootstrap, topic, 2 * COUNT, "read_uncommitted")
    assert library.dropin.counts() == after
    library.dropin.install()
    assert library.consume(running.bootstrap, topic, 2 * COUNT, "read_uncommitted") == original
    assert len(running.read(topic)) == 2 * COUNT


def test_transactions(running: Broker, library: Library) -> None:
    topic = running.topics[library.first_topic + len(CODECS)]
    library.dropin.install()
    before = library.dropin.counts()
    library.transactions(running.bootstrap, topic)
    committed = library.consume(running.bootstrap, topic, 40, "read_committed")
    everything = library.consume(running.bootstrap, topic, 60, "read_uncommitted")
    assert library.dropin.counts()["records_built"] - before["records_built"] == 60
    first, aborted, last = (records(start, 20, library.null) for start in (0, 100, 200))
    assert [got[1:] for got in committed] == first + last
    assert [got[1:] for got in everything] == first + aborted + last
    library.dropin.uninstall()
    assert library.consume(running.bootstrap, topic, 40, "read_committed") == committed
    assert len(running.read(topic, "read_committed")) == 40
