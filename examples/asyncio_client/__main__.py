"""Sends a transaction that is committed and one that is aborted, and prints what the topic then has."""

from __future__ import annotations

import asyncio
import sys
from contextlib import suppress

from . import Client, Consumer, Producer


async def main(bootstrap_servers: str, topic: str) -> None:
    """Runs the example."""
    async with Client(bootstrap_servers) as client:
        async with Producer(client, transactional_id=topic, compression="zstd") as producer:
            async with producer.transaction():
                for number in range(3):
                    await producer.send(topic, 0, b"committed %d" % number)
            with suppress(ValueError):
                async with producer.transaction():
                    await producer.send(topic, 0, b"aborted")
                    raise ValueError("the block fails")
        end = await Consumer(client, {}).offset_at(topic, 0, "latest")
        consumer = Consumer(client, {(topic, 0): "earliest"}, isolation_level="read_committed")
        while await consumer.position(topic, 0) < end:
            for fetched in await consumer.poll():
                for record in fetched.records:
                    print(record.offset, record.value_bytes)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
