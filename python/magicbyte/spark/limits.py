"""Limits for the input of a stream per trigger: `maxOffsetsPerTrigger` and `maxBytesPerTrigger`."""

from __future__ import annotations

import math
from collections.abc import Mapping

from magicbyte.model import Chunk
from magicbyte.spark.offsets import TopicPartition
from magicbyte.spark.watch import Log

__all__ = ["chunks_between", "limit_bytes", "limit_offsets"]


def limit_offsets(
    begin: Mapping[TopicPartition, int], end: Mapping[TopicPartition, int], limit: int
) -> dict[TopicPartition, int]:
    """Lowers the ends so that about `limit` offsets are left, in proportion to what each partition has.

    Each partition gets at least one offset, as in Spark's Kafka source, so that none is starved.
    """
    waiting = {partition: end[partition] - begin[partition] for partition in end}
    total = sum(waiting.values())
    if total <= limit:
        return dict(end)

    def share(offsets: int) -> int:
        part = limit * offsets / total
        return math.ceil(part) if part < 1 else math.floor(part)

    return {
        partition: begin[partition] + min(offsets, share(offsets)) for partition, offsets in waiting.items()
    }


def limit_bytes(
    logs: Mapping[TopicPartition, Log],
    begin: Mapping[TopicPartition, int],
    end: Mapping[TopicPartition, int],
    limit: int,
) -> dict[TopicPartition, int]:
    """Lowers the ends so that about `limit` bytes of segments are left, in whole chunks of about 4 MiB."""
    waiting = {partition: end[partition] - begin[partition] for partition in end}
    total = sum(waiting.values())
    limited = dict(end)
    for partition, offsets in waiting.items():
        if offsets == 0:
            continue
        share, size = limit * offsets / total, 0
        for chunk in chunks_between(logs[partition], begin[partition], end[partition]):
            size += chunk["end"] - chunk["start"]
            if size >= share and chunk["next_offset"] is not None:
                limited[partition] = min(end[partition], chunk["next_offset"])
                break
    return limited


def chunks_between(log: Log, begin: int, end: int) -> list[Chunk]:
    """The chunks that may hold offsets from `begin` to `end` (exclusive)."""
    return [
        chunk
        for chunk in log.plan((begin, end)).plan["chunks"]
        if (chunk["next_offset"] is None or chunk["next_offset"] > begin) and chunk["expected_offset"] < end
    ]
