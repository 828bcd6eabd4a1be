"""What the tests of the example client share."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Coroutine
from typing import Any

import magicbyte
from asyncio_client import Client, Consumer
from asyncio_client.connection import VERSIONS, Connection
from magicbyte.message import error_name

VERSIONS["CreateTopics"] = (4, 7)
VERSIONS["DeleteRecords"] = (1, 2)
NAMES = itertools.count()


def run(test: Coroutine[Any, Any, None], seconds: float = 60) -> None:
    """Runs a test with asyncio's checks; nothing may be left that failed unseen."""
    unseen: list[str] = []

    async def watched() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, context: unseen.append(str(context)))
        async with asyncio.timeout(seconds):
            await test

    asyncio.run(watched())
    assert not unseen


async def topic(client: Client, partitions: int = 1, **configs: object) -> str:
    """Creates a topic, and waits until it has leaders."""
    name = f"topic-{next(NAMES)}"
    settings = [{"name": key.replace("_", "."), "value": str(value)} for key, value in configs.items()]
    wanted = {
        "name": name,
        "numPartitions": partitions,
        "replicationFactor": 1,
        "assignments": [],
        "configs": settings,
    }
    body = {"topics": [wanted], "timeoutMs": 10_000}
    broker = await client.coordinator(None)
    # A broker that has just started may not count itself yet.
    while (response := await broker.send("CreateTopics", body))["topics"][0]["errorCode"]:
        assert error_name(response["topics"][0]["errorCode"]) == "INVALID_REPLICATION_FACTOR", response
        await asyncio.sleep(0.05)
    while len(await client.partitions(name)) < partitions:
        await asyncio.sleep(0.05)
    for partition in range(partitions):

        async def led(number: int = partition) -> Connection:
            return await client.leader(name, number)

        await client.retry(led)
    return name


async def read(
    client: Client, name: str, start: Any = "earliest", partition: int = 0, **options: Any
) -> list[magicbyte.Record]:
    """All records of a partition from a position on."""
    consumer = Consumer(client, {(name, partition): start}, **options)
    end = await consumer.offset_at(name, partition, "latest")
    found: list[magicbyte.Record] = []
    while await consumer.position(name, partition) < end:
        for fetched in await consumer.poll():
            assert (fetched.topic, fetched.partition) == (name, partition)
            found += fetched.records
    return found


def values(records: list[magicbyte.Record]) -> list[bytes | None]:
    return [record.value_bytes for record in records]


async def raw(client: Client, name: str) -> list[Any]:
    """The batches of a topic as its leader sends them."""
    wanted = [{"partition": 0, "fetchOffset": 0, "partitionMaxBytes": 1 << 26}]
    body = {"maxWaitMs": 0, "topics": [{"topic": name, "partitions": wanted}]}
    response = await (await client.leader(name, 0)).send("Fetch", body)
    return list(
        magicbyte.read_batches(response["responses"][0]["partitions"][0]["records"], allow_partial=True)
    )


async def end_of(client: Client, name: str, partition: int, level: magicbyte.IsolationLevel) -> int:
    return await Consumer(client, {}, isolation_level=level).offset_at(name, partition, "latest")


async def committed(client: Client, name: str, partition: int = 0, *, is_open: bool = False) -> list[bytes]:
    """What a `read_committed` consumer gets, once the markers of transactions that have ended are written."""
    while not is_open and await end_of(client, name, partition, "read_committed") < await end_of(
        client, name, partition, "read_uncommitted"
    ):
        await asyncio.sleep(0.02)
    found = await read(client, name, partition=partition, isolation_level="read_committed")
    return [record.value_bytes or b"" for record in found]
