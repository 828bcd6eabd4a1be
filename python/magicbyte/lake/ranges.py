"""Ranges of offsets of partitions in a table."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import reduce
from itertools import groupby
from operator import or_
from typing import NamedTuple

import pyarrow.compute as pc

from magicbyte.jobs.run.sums import TopicPartition

__all__ = ["OffsetRange", "Partitions", "by_offsets", "is_within", "scans"]

_CONDITIONS_PER_SCAN = 32


class OffsetRange(NamedTuple):
    """Offsets of one partition."""

    topic: str
    partition: int
    start: int
    end: int
    """Exclusive."""

    @property
    def place(self) -> TopicPartition:
        """The partition."""
        return self.topic, self.partition


class Partitions(NamedTuple):
    """The same offsets of several partitions."""

    topic: str
    partitions: tuple[int, ...]
    start: int
    end: int
    """Exclusive."""


def by_offsets(ranges: Iterable[OffsetRange]) -> list[Partitions]:
    """Groups ranges with the same offsets: partitions that grow alike become one condition."""
    found: dict[tuple[str, int, int], list[int]] = {}
    for one in ranges:
        found.setdefault((one.topic, one.start, one.end), []).append(one.partition)
    return [Partitions(topic, tuple(of), start, end) for (topic, start, end), of in found.items()]


def is_within(ranges: Sequence[OffsetRange]) -> pc.Expression:
    """Selects rows in one of the ranges, of which there is at least one."""
    topic, partition, offset = (pc.field(name) for name in ("topic", "partition", "offset"))
    return reduce(
        or_,
        (
            (topic == one.topic)
            & partition.isin(list(one.partitions))
            & (offset >= one.start)
            & (offset < one.end)
            for one in by_offsets(ranges)
        ),
    )


def scans(ranges: Iterable[OffsetRange]) -> Iterator[list[OffsetRange]]:
    """Ranges that one scan of a table looks for: of one topic, and with so few different offsets that
    planning does not take longer than reading.
    """
    for _, of_topic in groupby(sorted(ranges), key=lambda one: one.topic):
        different = by_offsets(of_topic)
        for at in range(0, len(different), _CONDITIONS_PER_SCAN):
            yield [
                OffsetRange(one.topic, partition, one.start, one.end)
                for one in different[at : at + _CONDITIONS_PER_SCAN]
                for partition in one.partitions
            ]
