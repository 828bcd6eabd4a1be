"""More and smaller tasks on request: `minPartitions` and `maxRecordsPerPartition`, as Spark's Kafka source.

Chunks end at batches that a survey has found, some megabytes apart. To split further, two tasks read the same
chunk and deliver different offsets of it (`KafkaOffsetRangeCalculator`).
"""

from __future__ import annotations

import heapq
import json
from collections.abc import Iterable, Mapping, Sequence

from magicbyte.jobs.run.plan import Task, size_of_chunk
from magicbyte.model import Chunk
from magicbyte.spark.offsets import TopicPartition

__all__ = ["split_tasks"]

Ends = Mapping[TopicPartition, int]


def split_tasks(
    tasks: Sequence[Task], ends: Ends, min_partitions: int | None, max_records: int | None
) -> list[Task]:
    """Splits tasks until each has at most `max_records` offsets, and then until there are `min_partitions`.

    `ends` are the ends (exclusive) of the logs: nothing follows their last chunks. A task with one offset
    cannot be split.
    """
    groups: list[list[Chunk]] = [[json.loads(text) for text in task.chunks] for task in tasks]
    if max_records is not None:
        groups = [part for group in groups for part in _limited(group, ends, max_records)]
    if min_partitions is not None and len(groups) < min_partitions:
        groups = _halved(groups, ends, min_partitions)
    return [
        Task(number, tuple(map(json.dumps, group)), sum(map(size_of_chunk, group)))
        for number, group in enumerate(groups)
    ]


def _offsets(chunk: Chunk, ends: Ends) -> range:
    """The offsets that are requested of a chunk."""
    end = chunk["next_offset"]
    if end is None:
        end = ends.get((chunk["topic"], chunk["partition"]), chunk["expected_offset"])
    first = max(chunk["expected_offset"], chunk["start_offset"] or 0)
    return range(first, max(first, end if chunk["end_offset"] is None else min(end, chunk["end_offset"])))


def _between(chunk: Chunk, first: int, end: int | None) -> Chunk:
    return {**chunk, "start_offset": first, "end_offset": end}


def _limited(group: Iterable[Chunk], ends: Ends, most: int) -> list[list[Chunk]]:
    """Splits a task so that no part has more than `most` offsets of a partition."""
    parts: list[list[Chunk]] = []
    place, room = None, 0
    for chunk in group:
        offsets = _offsets(chunk, ends)
        if place != (chunk["topic"], chunk["partition"]):
            place = chunk["topic"], chunk["partition"]
            parts.append([])
            room = most
        while len(offsets) > room:
            if room:
                parts[-1].append(_between(chunk, offsets.start, offsets.start + room))
            offsets = offsets[room:]
            chunk = _between(chunk, offsets.start, chunk["end_offset"])
            parts.append([])
            room = most
        parts[-1].append(chunk)
        room -= len(offsets)
    return parts


def _halved(groups: Sequence[list[Chunk]], ends: Ends, wanted: int) -> list[list[Chunk]]:
    """Halves the part with the most offsets again and again."""

    def size(group: Iterable[Chunk]) -> int:
        return sum(len(_offsets(chunk, ends)) for chunk in group)

    # The places keep the order of the log: halves of (1,) are (1, 0) and (1, 1).
    parts: list[tuple[int, tuple[int, ...], list[Chunk]]]
    parts = [(-size(group), (number,), group) for number, group in enumerate(groups)]
    heapq.heapify(parts)
    while parts and len(parts) < wanted and -parts[0][0] > 1:
        _, place, group = heapq.heappop(parts)
        for half, part in enumerate(_halves(group, ends)):
            heapq.heappush(parts, (-size(part), (*place, half), part))
    return [group for _, _, group in sorted(parts, key=lambda part: part[1])]


def _halves(group: list[Chunk], ends: Ends) -> tuple[list[Chunk], list[Chunk]]:
    if len(group) > 1:
        return group[: len(group) // 2], group[len(group) // 2 :]
    (chunk,) = group
    offsets = _offsets(chunk, ends)
    middle = offsets[len(offsets) // 2]
    return [_between(chunk, offsets.start, middle)], [_between(chunk, middle, chunk["end_offset"])]
