"""The example client against real brokers, old and new, and `magicbyte.serve`."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import magicbyte
import pytest
from asyncio_client import Client, Consumer, KafkaError, Producer
from asyncio_client.producer import IN_FLIGHT, MAX_EPOCH, QUEUED, Identity
from broker_versions import Node
from confluent_kafka import Consumer as ConfluentConsumer
from confluent_kafka import TopicPartition
from example_client import committed, raw, read, run, topic, values
from kafka_broker import Client as KafkaClients
from kafka_versions import NEWEST, OLD

pytestmark = pytest.mark.interop

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module", params=[NEWEST, OLD])
def node(request: pytest.FixtureRequest) -> Node:
    found: Node = request.getfixturevalue("new" if request.param == NEWEST else "old")
    return found


@pytest.fixture(scope="module")
def kafka_clients(new: Node) -> Iterator[KafkaClients]:
    clients = KafkaClients(new.bootstrap)
    yield clients
    clients.close()


# --- Producing and consuming ----------------------------------------------------------------------


def test_every_codec(node: Node, new: Node, kafka_clients: KafkaClients) -> None:
    """Our consumer, kafka-clients and librdkafka read what was sent."""
    count, base = 3000, 1_700_000_000_000
    topics: dict[str, str] = {}

    async def produce() -> None:
        async with Client(node.bootstrap) as client:
            for codec in CODECS:
                name = topics[codec] = await topic(client)
                async with Producer(client, compression=codec, batch_size=4096) as producer:
                    for number in range(count):
                        key = None if number % 7 == 0 else b"key %d" % number
                        value = None if number % 11 == 0 else b"value %d" % number
                        headers = [("trace", b"%d" % number), ("none", None)] if number % 5 == 0 else None
                        await producer.send(name, 0, value, key, headers, base + number)
                records = await read(client, name)
                assert [record.offset for record in records] == list(range(count))
                assert [record.timestamp for record in records] == list(range(base, base + count))
                assert values(records)[:12] == [None, *(b"value %d" % n for n in range(1, 11)), None]
                assert list(records[5].headers) == [("trace", b"5"), ("none", None)]
                batches = await raw(client, name)
                assert {batch.compression.name.lower() for batch in batches} == {codec}
                assert len(batches) > 3
                assert all(batch.size_in_bytes < 8192 for batch in batches)

    run(produce())
    for name in topics.values():
        assert librdkafka(node, name, count) == [
            None if n % 11 == 0 else b"value %d" % n for n in range(count)
        ]
        if node is new:
            lines = [line.split("\t") for line in kafka_clients.ask("read", name, "read_uncommitted")]
            assert [(int(line[0]), int(line[1])) for line in lines] == [(n, base + n) for n in range(count)]
            assert lines[5][5] == f"{b'trace'.hex()}={b'5'.hex()};{b'none'.hex()}=null;"


def librdkafka(node: Node, name: str, count: int) -> list[bytes | None]:
    settings = {"bootstrap.servers": node.bootstrap, "group.id": name, "enable.auto.commit": False}
    consumer = ConfluentConsumer(settings)
    consumer.assign([TopicPartition(name, 0, 0)])
    found: list[bytes | None] = []
    deadline = time.monotonic() + 20
    while len(found) < count and time.monotonic() < deadline:
        found += [message.value() for message in consumer.consume(count - len(found), 1.0)]
    consumer.close()
    return found


def test_many_partitions_and_tasks(new: Node) -> None:
    """Tasks that send at once share batches; partitions do not wait for each other."""

    async def test() -> None:
        async with Client(new.bootstrap) as client:
            name = await topic(client, partitions=5)
            async with Producer(client, batch_size=500) as producer:

                async def send(task: int) -> None:
                    for number in range(400):
                        await producer.send(name, number % 5, b"%d-%d" % (task, number))
                        if number % 50 == 0:
                            await asyncio.sleep(0)

                await asyncio.gather(*map(send, range(4)))
                await producer.flush()
                assert all(not queue.batches for queue in producer._queues.values())
            consumer = Consumer(client, {(name, number): 0 for number in range(5)})
            found: dict[int, list[bytes | None]] = {number: [] for number in range(5)}
            while sum(map(len, found.values())) < 1600:
                for fetched in await consumer.poll():
                    found[fetched.partition] += [record.value_bytes for record in fetched.records]
            for task in range(4):
                for partition in range(5):
                    sent = [b"%d-%d" % (task, number) for number in range(partition, 400, 5)]
                    prefix = b"%d-" % task
                    assert [value for value in found[partition] if value and value.startswith(prefix)] == sent

    run(test())


def test_linger_and_memory(new: Node) -> None:
    async def test() -> None:
        async with Client(new.bootstrap) as client:
            name = await topic(client)
            async with Producer(client, linger=2) as producer:
                for number in range(10):
                    await producer.send(name, 0, b"%d" % number)
                    await asyncio.sleep(0.005)
                while not (batches := await raw(client, name)):
                    await asyncio.sleep(0.05)
                assert [batch.record_count for batch in batches] == [10]
                await producer.send(name, 0, b"flushed at once")
                start = time.monotonic()
                await producer.flush()
                assert time.monotonic() - start < 2
                largest = 0
                for _ in range(3000):
                    await producer.send(name, 0, bytes(5000))
                    largest = max(largest, len(producer._queues[name, 0].batches))
                assert IN_FLIGHT <= largest <= QUEUED
                await producer.flush()
                batch = [(None, 5, None, b"%d" % number) for number in range(100)]
                await producer.send_batch(name, 0, batch)
                await producer.send_batch(name, 0, batch)
                await producer.flush()
            assert [batch.record_count for batch in (await raw(client, name))[-2:]] == [100, 100]

    run(test())


def test_large_records(node: Node) -> None:
    """A record larger than a batch and than a response; one that the topic refuses, without loss of others."""

    async def test() -> None:
        async with Client(node.bootstrap) as client:
            name = await topic(client, max_message_bytes=3_000_000)
            sent = [b"small", bytes(2_500_000), b"small too", bytes(50_000)]
            async with Producer(client) as producer:
                for value in sent:
                    await producer.send(name, 0, value)
            assert values(await read(client, name, max_partition_bytes=1000)) == sent

            name = await topic(client, max_message_bytes=20_000)
            refusals = 0
            async with Producer(client, batch_size=1000) as producer:
                for number in range(3000):
                    value = b"%d" % number if number != 1500 else bytes(30_000)
                    with suppress(KafkaError):
                        await producer.send(name, 0, value)
                        continue
                    refusals += 1
                    await producer.send(name, 0, value)
                await producer.flush()
                assert refusals == 1
                # The gap in the sequence was closed by a new epoch (KIP-360).
                assert producer._queues[name, 0].identity.epoch == producer._identity.epoch + 1
                await producer.send(name, 0, b"after")
            expected = [b"%d" % number for number in range(3000) if number != 1500]
            assert values(await read(client, name)) == [*expected, b"after"]
            batches = await raw(client, name)
            assert {batch.producer_epoch for batch in batches} == {0, 1}

    run(test())


def test_the_first_batch_is_refused(new: Node) -> None:
    """Nothing may overtake it, although the leader does not know the producer yet."""

    async def test() -> None:
        async with Client(new.bootstrap) as client:
            name = await topic(client, max_message_bytes=20_000)
            async with Producer(client, batch_size=100) as producer:
                for number in range(-1, 20):
                    await producer.send(name, 0, b"%d" % number if number >= 0 else bytes(30_000))
                with pytest.raises(KafkaError, match="MESSAGE_TOO_LARGE"):
                    await producer.flush()
            assert values(await read(client, name)) == [b"%d" % number for number in range(20)]

    run(test())


def test_the_last_epoch(new: Node) -> None:
    """After the last epoch, the producer gets another id."""

    async def test() -> None:
        async with Client(new.bootstrap) as client:
            name = await topic(client, max_message_bytes=20_000)
            async with Producer(client) as producer:
                producer._identity = Identity(producer._identity.producer_id, MAX_EPOCH)
                await producer.send(name, 0, b"before")
                await producer.flush()
                await producer.send(name, 0, bytes(30_000))
                with pytest.raises(KafkaError, match="MESSAGE_TOO_LARGE"):
                    await producer.flush()
                await producer.send(name, 0, b"after")
                await producer.flush()
                assert producer._queues[name, 0].identity.producer_id != producer._identity.producer_id
            assert values(await read(client, name)) == [b"before", b"after"]

    run(test())


def test_positions(node: Node) -> None:
    """Positions inside of batches, times, and offsets that are out of range."""

    async def test() -> None:
        async with Client(node.bootstrap) as client:
            name = await topic(client)
            async with Producer(client) as producer:
                for number in range(100):
                    await producer.send(name, 0, b"%d" % number, timestamp=5000 + number)
            assert values(await read(client, name, 42)) == [b"%d" % number for number in range(42, 100)]
            consumer = Consumer(client, {(name, 0): "latest"}, max_wait=0)
            assert await consumer.poll() == []
            assert consumer.positions == {(name, 0): 100}
            assert await consumer.offset_at(name, 0, 5042) == 42
            assert await consumer.offset_at(name, 0, 6000) == -1

            removal = {"name": name, "partitions": [{"partitionIndex": 0, "offset": 30}]}
            leader = await client.leader(name, 0)
            await leader.send("DeleteRecords", {"topics": [removal], "timeoutMs": 10_000})
            for position in (5, 101):
                with pytest.raises(
                    KafkaError, match=f"Fetch of {name}-0 at offset {position}: OFFSET_OUT_OF_RANGE"
                ):
                    await Consumer(client, {(name, 0): position}).poll()
            found = await read(client, name, 5, auto_offset_reset="earliest")
            assert [record.offset for record in found] == list(range(30, 100))
            assert await read(client, name, 101, auto_offset_reset="latest") == []

    run(test())


def test_errors_of_the_caller(new: Node) -> None:
    async def test() -> None:
        async with Client(new.bootstrap, retry_timeout=0.5) as impatient, Client(new.bootstrap) as client:
            with pytest.raises(KafkaError, match="Metadata of nothing: UNKNOWN_TOPIC_OR_PARTITION"):
                await impatient.partitions("nothing")
            name = await topic(client)
            with pytest.raises(KafkaError, match=f"{name}-7: UNKNOWN_TOPIC_OR_PARTITION"):
                async with Producer(impatient) as producer:
                    await producer.send(name, 7, b"v")
            with pytest.raises(KafkaError, match="INVALID_TOPIC_EXCEPTION"):
                await Consumer(client, {("no topic!", 0): 0}).poll()
            async with Producer(client) as producer:
                with pytest.raises(RuntimeError, match="transactional_id"):
                    async with producer.transaction():
                        pass
                with pytest.raises(TypeError):
                    await producer.send(name, 0, 5)  # type: ignore[arg-type]
                await producer.send("no\ud800text", 0, b"v")
                with pytest.raises(ValueError, match="surrogates"):
                    await producer.flush()
                await producer.send(name, 0, b"goes on")
            async with Producer(client, transactional_id="alone") as producer:
                with pytest.raises(RuntimeError, match=r"within transaction\(\)"):
                    await producer.send(name, 0, b"v")
            assert values(await read(client, name)) == [b"goes on"]
        with pytest.raises(OSError, match=r"127\.0\.0\.1"):
            async with Client("127.0.0.1:1", retry_timeout=0.2) as client:
                await client.partitions("t")

    run(test())


# --- Transactions ---------------------------------------------------------------------------------


def test_transactions(node: Node, new: Node, kafka_clients: KafkaClients) -> None:
    """Committed, aborted, empty and interleaved ones, read by us and by kafka-clients."""
    names: list[str] = []

    async def test() -> None:
        async with Client(node.bootstrap) as client:
            name = await topic(client, partitions=2)
            names.append(name)
            options: dict[str, Any] = {"compression": "lz4", "batch_size": 500}
            async with (
                Producer(client, transactional_id=f"a-{name}", **options) as first,
                Producer(client, transactional_id=f"b-{name}", **options) as second,
                Producer(client, **options) as plain,
            ):
                before = first._identity
                expected: list[bytes] = []
                for number in range(8):
                    commits = number % 3 != 1
                    with pytest.raises(ZeroDivisionError) if not commits else _nothing():
                        async with first.transaction():
                            for one in range(60):
                                await first.send(name, one % 2, b"a%d-%d" % (number, one))
                            async with second.transaction():
                                for one in range(60):
                                    await second.send(name, one % 2, b"b%d-%d" % (number, one))
                                await first.flush()
                            await plain.send(name, 0, b"plain %d" % number)
                            await plain.flush()
                            if not commits:
                                1 / 0  # noqa: B018
                    expected += [b"b%d-%d" % (number, one) for one in range(60)] + [b"plain %d" % number]
                    expected += [b"a%d-%d" % (number, one) for one in range(60)] * commits
                    async with first.transaction():
                        pass
                # Version 2 of transactions has an epoch for each (KIP-890).
                bumps = first._identity.epoch - before.epoch
                assert bumps == (8 if node is new else 0)
                assert bool(first._newest) == (node is not new)
            found = [*await committed(client, name), *await committed(client, name, 1)]
            assert sorted(found) == sorted(expected)
            for sender in (b"a", b"b"):
                for rest in (0, 1):
                    mine = [
                        value
                        for value in found
                        if value.startswith(sender) and int(value.split(b"-")[1]) % 2 == rest
                    ]
                    assert mine == sorted(
                        mine, key=lambda value: [int(part) for part in value[1:].split(b"-")]
                    )
            assert len(await read(client, name)) > len(
                await read(client, name, isolation_level="read_committed")
            )

    run(test())
    if node is new:
        lines = [line.split("\t") for line in kafka_clients.ask("read", names[0], "read_committed")]
        count = sum(1 for line in lines if bytes.fromhex(line[4]).startswith(b"a"))
        assert count == 5 * 30


@asynccontextmanager
async def _open(client: Client, name: str) -> AsyncIterator[Producer]:
    """A producer whose transaction is open."""
    async with Producer(client, transactional_id=f"open-{name}") as producer, producer.transaction():
        await producer.send(name, 0, b"open")
        await producer.flush()
        yield producer


class _nothing:
    def __enter__(self) -> None: ...

    def __exit__(self, *_: object) -> None: ...


def test_open_and_fenced_transactions(node: Node) -> None:
    async def test() -> None:
        async with Client(node.bootstrap) as client:
            name = await topic(client)
            async with Producer(client) as plain:
                await plain.send(name, 0, b"before")
                await plain.flush()
                async with _open(client, name):
                    await plain.send(name, 0, b"behind")
                    await plain.flush()
                    # A transaction that is open hides what comes after it.
                    assert await committed(client, name, is_open=True) == [b"before"]
                    assert values(await read(client, name)) == [b"before", b"open", b"behind"]
            assert await committed(client, name) == [b"before", b"open", b"behind"]

            older = Producer(client, transactional_id=f"fenced-{name}")
            newer = Producer(client, transactional_id=f"fenced-{name}")
            with pytest.raises(KafkaError, match=r"PRODUCER_FENCED|INVALID_PRODUCER_EPOCH"):
                await fenced(name, older, newer)
            assert (await committed(client, name))[3:] == [b"of the newer one"]

    run(test())


async def fenced(name: str, older: Producer, newer: Producer) -> None:
    async with older, older.transaction():
        await older.send(name, 0, b"of the older one")
        await older.flush()
        async with newer, newer.transaction():
            await newer.send(name, 0, b"of the newer one")
        await older.send(name, 0, b"too late")


def test_a_batch_of_a_transaction_is_refused(node: Node) -> None:
    """The transaction is aborted, and the next one works."""

    async def test() -> None:
        async with Client(node.bootstrap) as client:
            name = await topic(client, max_message_bytes=20_000)
            async with Producer(client, transactional_id=f"refused-{name}", batch_size=1000) as producer:
                for refused in (False, True, False, True, True, False):
                    with pytest.raises(KafkaError, match="MESSAGE_TOO_LARGE") if refused else _nothing():
                        async with producer.transaction():
                            for number in range(200):
                                await producer.send(name, 0, b"%d" % number)
                                if refused and number == 100:
                                    await producer.send(name, 0, bytes(30_000))
            assert await committed(client, name) == [b"%d" % number for number in range(200)] * 3

    run(test())


def test_the_program(new: Node) -> None:
    names: list[str] = []

    async def create() -> None:
        async with Client(new.bootstrap) as client:
            names.append(await topic(client))

    run(create())
    command = [sys.executable, "-m", "asyncio_client", new.bootstrap, names[0]]
    printed = subprocess.run(
        command, cwd=ROOT / "examples", check=True, capture_output=True, text=True, timeout=60
    ).stdout
    assert [line.split(maxsplit=1)[1] for line in printed.splitlines()] == [
        f"b'committed {n}'" for n in range(3)
    ]


# --- A broker that is killed ----------------------------------------------------------------------


@pytest.mark.parametrize("transactional", [False, True])
def test_a_killed_broker(new: Node, transactional: bool) -> None:
    """Nothing is lost, nothing is there twice, and the order is kept; a consumer goes on where it was."""

    async def test() -> None:
        async with Client(new.bootstrap) as client:
            name = await topic(client)
            consumer = Consumer(client, {(name, 0): 0}, isolation_level="read_committed", max_wait=0.02)
            found: list[bytes | None] = []
            sent: list[bytes] = []
            stop = asyncio.Event()

            async def consume() -> None:
                while not stop.is_set() or len(found) < len(sent):
                    for fetched in await consumer.poll():
                        found.extend(record.value_bytes for record in fetched.records)

            async def produce() -> None:
                transactional_id = f"killed-{name}" if transactional else None
                async with Producer(client, transactional_id=transactional_id, batch_size=300) as producer:
                    while not stop.is_set() or len(sent) % 100:
                        async with producer.transaction() if transactional else no_transaction():
                            for _ in range(100):
                                sent.append(b"%d" % len(sent))
                                await producer.send(name, 0, sent[-1])
                        await asyncio.sleep(0)

            tasks = [asyncio.create_task(consume()), asyncio.create_task(produce())]

            async def progress(count: int) -> None:
                while len(found) < count:
                    await asyncio.sleep(0.01)
                    assert not any(task.done() for task in tasks), [task for task in tasks if task.done()]

            await progress(1000)
            await asyncio.to_thread(new.kill)
            before = len(sent)
            await asyncio.sleep(0.3)
            await asyncio.to_thread(new.start)
            await progress(before + 1000)
            stop.set()
            await asyncio.gather(*tasks)
            assert found == sent
            assert await committed(client, name) == sent

    run(test())


@asynccontextmanager
async def no_transaction() -> AsyncIterator[None]:
    yield


# --- magicbyte.serve ------------------------------------------------------------------------------


def test_serve() -> None:
    """A read-only broker: consuming works, producing is refused with the names of Kafka's errors."""

    async def test(address: str) -> None:
        async with Client(address) as client:
            for name in ("orders", "payments"):
                log = magicbyte.PartitionLog(ROOT / "samples" / f"{name}-0", mode="PERMISSIVE")
                expected = list(log.records(isolation_level="read_committed"))
                found = await read(client, name, isolation_level="read_committed")
                assert [(one.offset, one.value_bytes) for one in found] == [
                    (one.offset, one.value_bytes) for one in expected
                ]
                assert found
            with pytest.raises(
                KafkaError, match=r"InitProducerId: UNSUPPORTED_VERSION \(the broker does not have it\)"
            ):
                async with Producer(client):
                    pass

    with magicbyte.serve(ROOT / "samples", listen="127.0.0.1:0") as server:
        run(test(server.bootstrap_servers))
