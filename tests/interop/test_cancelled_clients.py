"""The example client when its callers are cancelled: nothing is lost, nothing is there twice, and it goes on."""

from __future__ import annotations

import asyncio
import itertools
import random
from collections.abc import Iterator
from contextlib import suppress

import pytest
from asyncio_client import Client, Consumer, KafkaError, Producer
from asyncio_client.producer import MAX_EPOCH, Identity
from broker_versions import Node
from example_client import committed, raw, read, run, topic, values
from kafka_versions import NEWEST, OLD

pytestmark = pytest.mark.interop


@pytest.fixture(scope="module", params=[NEWEST, OLD])
def node(request: pytest.FixtureRequest) -> Node:
    found: Node = request.getfixturevalue("new" if request.param == NEWEST else "old")
    return found


def moments(seed: int) -> Iterator[float]:
    """Seconds until a caller is cancelled: none, a few milliseconds, or about as long as the work takes."""
    chance = random.Random(seed)
    while True:
        yield chance.choice((0, chance.uniform(0, 0.005), chance.uniform(0, 0.03)))


# --- send and flush -------------------------------------------------------------------------------


def test_a_cancelled_flush(node: Node) -> None:
    """What it waited for is sent nevertheless: with the linger running, with batches under way, or at once."""

    async def test() -> None:
        async with Client(node.bootstrap) as client:
            name = await topic(client)
            sent: list[bytes] = []
            async with Producer(client, batch_size=200, linger=0.002) as producer:
                for seconds, _ in zip(moments(1), range(60), strict=False):
                    for _ in range(50):
                        sent.append(b"%d" % len(sent))
                        await producer.send(name, 0, sent[-1])
                    with suppress(TimeoutError):
                        async with asyncio.timeout(seconds):
                            await producer.flush()
                await producer.flush()
                assert values(await read(client, name)) == sent
                assert producer._queues[name, 0].identity == producer._identity, "no epoch was begun"

    run(test())


def test_a_flush_that_is_cancelled_while_the_broker_is_away(new: Node) -> None:
    async def test() -> None:
        async with Client(new.bootstrap) as client:
            name = await topic(client)
            sent = [b"%d" % number for number in range(200)]
            async with Producer(client, batch_size=300) as producer:
                for value in sent[:100]:
                    await producer.send(name, 0, value)
                await asyncio.to_thread(new.kill)
                for value in sent[100:]:
                    await producer.send(name, 0, value)
                for _ in range(3):
                    with pytest.raises(TimeoutError):
                        async with asyncio.timeout(0.1):
                            await producer.flush()
                await asyncio.to_thread(new.start)
            assert values(await read(client, name)) == sent

    run(test())


def test_a_cancelled_send(node: Node) -> None:
    """It takes no record, and others go on."""

    async def test() -> None:
        async with Client(node.bootstrap) as client:
            name = await topic(client)
            sent: list[bytes] = []
            cancelled = 0
            async with Producer(client, batch_size=100) as producer:
                for seconds, number in zip(moments(2), range(200), strict=False):
                    values_ = [b"%d-%d" % (number, one) for one in range(60)]

                    async def send(values_: list[bytes] = values_) -> None:
                        for value in values_:
                            await producer.send(name, 0, value)
                            sent.append(value)

                    try:
                        async with asyncio.timeout(seconds / 3):
                            await send()
                    except TimeoutError:
                        cancelled += 1
            assert cancelled > 10
            assert values(await read(client, name)) == sent

    run(test())


@pytest.mark.parametrize("cancels", [True, False])
def test_leaving_with_an_error(new: Node, cancels: bool) -> None:
    """No task is left; what arrived is the beginning of what was sent."""

    async def test() -> None:
        async with Client(new.bootstrap) as client:
            name = await topic(client)
            before = asyncio.all_tasks()
            sent = [b"%d" % number for number in range(500)]

            async def produce() -> None:
                async with Producer(client, batch_size=50) as producer:
                    for value in sent:
                        await producer.send(name, 0, value)
                    if not cancels:
                        1 / 0  # noqa: B018
                    await asyncio.sleep(5)

            with pytest.raises(TimeoutError if cancels else ZeroDivisionError):
                await asyncio.wait_for(produce(), 0.01 if cancels else None)
            assert asyncio.all_tasks() == before
            found = values(await read(client, name))
            assert found == sent[: len(found)]

    run(test())


# --- Transactions ---------------------------------------------------------------------------------


def test_cancelled_transactions(node: Node) -> None:
    """At whatever moment: each is there as a whole or not at all, and the next one has its own records only."""

    async def test() -> None:
        async with Client(node.bootstrap) as client:
            name = await topic(client)
            ended: list[int] = []
            sets = {number: [b"%d-%d" % (number, one) for one in range(100)] for number in range(60)}
            async with Producer(client, transactional_id=f"cancelled-{name}", batch_size=200) as producer:

                async def transact(number: int) -> None:
                    async with producer.transaction():
                        for value in sets[number]:
                            await producer.send(name, 0, value)
                        if number % 3 == 0:
                            await producer.flush()
                    ended.append(number)

                for seconds, number in zip(moments(3), sets, strict=False):
                    with suppress(TimeoutError):
                        async with asyncio.timeout(seconds if number % 5 else None):
                            await transact(number)
            found = await committed(client, name)
            there = list(dict.fromkeys(int(value.split(b"-")[0]) for value in found))
            assert found == [value for number in there for value in sets[number]]
            assert set(ended) <= set(there)
            assert len(there) < 60, "some were cancelled"

    run(test())


def test_a_cancelled_block(node: Node) -> None:
    """It is aborted before the cancellation is raised, and the next transaction can begin."""

    async def test() -> None:
        async with Client(node.bootstrap) as client:
            name = await topic(client)
            async with Producer(client, transactional_id=f"block-{name}", batch_size=100) as producer:

                async def transact() -> None:
                    async with producer.transaction():
                        for number in range(50):
                            await producer.send(name, 0, b"aborted %d" % number)
                        await asyncio.sleep(5)

                with pytest.raises(TimeoutError):
                    await asyncio.wait_for(transact(), 0.05)
                async with producer.transaction():
                    await producer.send(name, 0, b"committed")
            assert await committed(client, name) == [b"committed"]

    run(test())


def test_no_record_misses_the_end(node: Node) -> None:
    """Other tasks that send while a transaction ends belong to it, or are refused."""

    async def test() -> None:
        async with Client(node.bootstrap) as client:
            name = await topic(client)
            taken: list[bytes] = []
            async with Producer(client, transactional_id=f"tasks-{name}", batch_size=100) as producer:

                async def send() -> None:
                    for number in itertools.count():
                        await producer.send(name, 0, b"%d" % number)
                        taken.append(b"%d" % number)
                        await asyncio.sleep(0)

                for _ in range(5):
                    async with producer.transaction():
                        task = asyncio.create_task(send())
                        await asyncio.sleep(0.02)
                    with pytest.raises(RuntimeError, match=r"within transaction\(\)"):
                        await task
            assert await committed(client, name) == taken

    run(test())


# --- Batches that are refused ---------------------------------------------------------------------


def test_a_refused_list(new: Node) -> None:
    """`send_batch` takes all records or none, and the sequence goes on."""

    async def test() -> None:
        async with Client(new.bootstrap) as client:
            name = await topic(client)
            good = [(None, 5, None, b"%d" % number) for number in range(3)]
            refused = [(*good, (None, 5, None, 7)), ((None, 5, 7, None),), (*good, None), (*good, (1 << 70,))]

            def fails() -> Iterator[tuple[None, int, None, bytes]]:
                yield from good
                raise ZeroDivisionError

            async with Producer(client, linger=0.02) as producer:
                for records in refused:
                    await producer.send(name, 0, b"before", timestamp=5)
                    with pytest.raises((TypeError, ValueError, OverflowError)):
                        await producer.send_batch(name, 0, records)  # type: ignore[arg-type]
                with pytest.raises(ZeroDivisionError):
                    await producer.send_batch(name, 0, fails())
                await producer.send_batch(name, 0, good)
                await producer.send(name, 0, b"after", timestamp=5)
                await producer.flush()
                assert producer._queues[name, 0].identity == producer._identity, "no epoch was begun"
            expected = [b"before"] * len(refused) + [b"0", b"1", b"2", b"after"]
            assert values(await read(client, name)) == expected

    run(test())


def test_refusals_under_another_producer_id(new: Node) -> None:
    """The leader does not know the new id, so nothing may overtake its first batch, which is refused too."""

    async def test() -> None:
        async with Client(new.bootstrap) as client:
            name = await topic(client, max_message_bytes=20_000)
            async with Producer(client, batch_size=100) as producer:
                producer._identity = Identity(producer._identity.producer_id, MAX_EPOCH)
                await producer.send(name, 0, b"before")
                await producer.flush()
                for value in (bytes(30_000), bytes(30_000), *(b"%d" % number for number in range(20))):
                    await producer.send(name, 0, value)
                with pytest.raises(KafkaError, match="MESSAGE_TOO_LARGE"):
                    await producer.flush()
            assert values(await read(client, name)) == [b"before", *(b"%d" % number for number in range(20))]

    run(test())


def test_too_few_replicas(old: Node) -> None:
    """An error that might pass, but does not within `retry_timeout`: all batches are given up, and others go on."""

    async def test() -> None:
        async with Client(old.bootstrap, retry_timeout=0.5) as impatient, Client(old.bootstrap) as client:
            name = await topic(client, min_insync_replicas=2)
            async with Producer(impatient, batch_size=100) as producer:
                for number in range(50):
                    await producer.send(name, 0, b"%d" % number)
                with pytest.raises(KafkaError, match="NOT_ENOUGH_REPLICAS"):
                    await producer.flush()
                await producer.flush()
            assert await raw(client, name) == []

    run(test())


# --- Consuming ------------------------------------------------------------------------------------


def test_cancelled_polls(node: Node) -> None:
    """The positions move with what was returned."""

    async def test() -> None:
        async with Client(node.bootstrap) as client:
            name = await topic(client, partitions=2)
            sent = [b"%d" % number for number in range(2000)]
            async with Producer(client, batch_size=200) as producer:
                for number, value in enumerate(sent):
                    await producer.send(name, number % 2, value)
            positions: dict[tuple[str, int], int] = {(name, 0): 0, (name, 1): 0}
            consumer = Consumer(client, positions, max_partition_bytes=500, max_wait=0.02)
            found: dict[int, list[bytes | None]] = {0: [], 1: []}
            cancelled = 0
            for seconds in moments(4):
                try:
                    async with asyncio.timeout(seconds):
                        fetched = await consumer.poll()
                except TimeoutError:
                    cancelled += 1
                    continue
                for part in fetched:
                    found[part.partition] += values(list(part.records))
                if sum(map(len, found.values())) >= len(sent):
                    break
            assert cancelled > 5
            assert found == {0: sent[::2], 1: sent[1::2]}

    run(test())


def test_a_poll_that_is_cancelled_while_the_broker_is_away(new: Node) -> None:
    async def test() -> None:
        async with Client(new.bootstrap) as client:
            name = await topic(client)
            async with Producer(client) as producer:
                await producer.send(name, 0, b"before")
                await producer.flush()
                consumer = Consumer(client, {(name, 0): 1}, max_wait=5)
                waiting = asyncio.create_task(consumer.poll())
                await asyncio.sleep(0.1)
                waiting.cancel()
                await asyncio.to_thread(new.kill)
                for _ in range(3):
                    with pytest.raises(TimeoutError):
                        async with asyncio.timeout(0.1):
                            await consumer.poll()
                await asyncio.to_thread(new.start)
                await producer.send(name, 0, b"after")
                while not (fetched := await consumer.poll()):
                    pass
                assert values(list(fetched[0].records)) == [b"after"]

    run(test())
