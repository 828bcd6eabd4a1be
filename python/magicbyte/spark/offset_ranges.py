"""Ranges of offsets as tasks: `minPartitions` and `maxRecordsPerPartition` for a running cluster."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator

from magicbyte.lake.ranges import OffsetRange

__all__ = ["split_ranges"]


def split_ranges(
    ranges: Iterable[OffsetRange], min_partitions: int | None, max_records: int | None
) -> list[OffsetRange]:
    """Divides ranges into tasks of at most `max_records` offsets, then into at least `min_partitions` tasks.

    Empty ranges are left out. Spark's source does the same (`KafkaOffsetRangeCalculator`); a range of one
    offset cannot be divided.
    """
    tasks = [one for one in ranges if one.start < one.end]
    if max_records is not None:
        parts = [-(-(one.end - one.start) // max_records) for one in tasks]
        tasks = [part for one, count in zip(tasks, parts, strict=True) for part in _divided(one, count)]
    if min_partitions is None or not tasks:
        return tasks
    # Each further part goes to the range whose parts are the largest.
    counts = [1] * len(tasks)
    largest: list[tuple[float, int]]
    largest = [(one.start - one.end, number) for number, one in enumerate(tasks)]
    heapq.heapify(largest)
    for _ in range(min_partitions - len(tasks)):
        size, number = largest[0]
        if size >= -1:
            break
        counts[number] += 1
        one = tasks[number]
        heapq.heapreplace(largest, ((one.start - one.end) / counts[number], number))
    return [part for one, count in zip(tasks, counts, strict=True) for part in _divided(one, count)]


def _divided(whole: OffsetRange, parts: int) -> Iterator[OffsetRange]:
    """Divides a range into so many parts, whose sizes differ by one offset at most."""
    start, size = whole.start, whole.end - whole.start
    for part in range(parts):
        yield whole._replace(start=start + size * part // parts, end=start + size * (part + 1) // parts)
