"""Reads several partitions at once from asyncio.

A file is read and a batch decoded in a thread, without the GIL, so the event loop is free meanwhile:

    python examples/asyncio_reader.py samples
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator

import magicbyte


async def batches(
    log: magicbyte.PartitionLog,
) -> AsyncIterator[magicbyte.RecordBatch | magicbyte.LegacyBatch]:
    """The batches of a log; the next one is read only when it is asked for."""
    under_way = iter(log.batches())
    while (batch := await asyncio.to_thread(next, under_way, None)) is not None:
        yield batch


async def count(log: magicbyte.PartitionLog) -> tuple[str, int, int]:
    """The number of data records and the bytes of their values."""
    records = size = 0
    async for batch in batches(log):
        if batch.is_control:
            continue
        columns = await asyncio.to_thread(batch.columns)
        records += len(columns.values)
        size += sum(len(value) for value in columns.values if value is not None)
    return log.name, records, size


async def main(root: str) -> None:
    """Prints one line for each partition at and below a directory."""
    logs = magicbyte.Log(root, mode="PERMISSIVE").partitions
    for name, records, size in await asyncio.gather(*map(count, logs)):
        print(f"{name:30} {records:>10,} records {size:>14,} bytes of values")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
