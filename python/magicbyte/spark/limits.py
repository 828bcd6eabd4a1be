"""How much a stream reads at a trigger: `maxOffsetsPerTrigger` and `maxBytesPerTrigger`."""

from __future__ import annotations

import math
from collections.abc import Mapping

from magicbyte.model import Chunk
from magicbyte.spark.offsets import Place
from magicbyte.spark.watch import Log

__all__ = ["asked_chunks", "limit_bytes", "limit_offsets"]


def limit_offsets(begin: Mapping[Place, int], end: Mapping[Place, int], limit: int) -> dict[Place, int]:
    """Lowers ends until about `limit` offsets are left, dealt out by what each partition has.

    As Spark's Kafka source does it: at least one offset a partition, so that none starves.
    """
    waiting = {place: end[place] - begin[place] for place in end}
    total = sum(waiting.values())
    if total <= limit:
        return dict(end)

    def share(offsets: int) -> int:
        part = limit * offsets / total
        return math.ceil(part) if part < 1 else math.floor(part)

    return {place: begin[place] + min(offsets, share(offsets)) for place, offsets in waiting.items()}


def limit_bytes(
    logs: Mapping[Place, Log], begin: Mapping[Place, int], end: Mapping[Place, int], limit: int
) -> dict[Place, int]:
    """Lowers ends until about `limit` bytes of segments are left, in whole chunks of about 4 MiB."""
    waiting = {place: end[place] - begin[place] for place in end}
    total = sum(waiting.values())
    limited = dict(end)
    for place, offsets in waiting.items():
        if offsets == 0:
            continue
        share, size = limit * offsets / total, 0
        for chunk in asked_chunks(logs[place], begin[place], end[place]):
            size += chunk["end"] - chunk["start"]
            if size >= share and chunk["next_offset"] is not None:
                limited[place] = min(end[place], chunk["next_offset"])
                break
    return limited


def asked_chunks(log: Log, begin: int, end: int) -> list[Chunk]:
    """The chunks that can hold offsets of a range (`end` exclusive)."""
    return [
        chunk
        for chunk in log.plan((begin, end)).plan["chunks"]
        if (chunk["next_offset"] is None or chunk["next_offset"] > begin) and chunk["expected_offset"] < end
    ]
