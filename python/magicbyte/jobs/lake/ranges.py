"""Ranges of offsets of partitions in a table."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import reduce
from itertools import groupby
from operator import or_
from typing import NamedTuple

import pyarrow.compute as pc

from magicbyte.jobs.lake.sums import TopicPartition

__all__ = ["OffsetRange", "is_within", "scans"]

_RANGES_PER_SCAN = 32


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


def is_within(ranges: Sequence[OffsetRange]) -> pc.Expression:
    """Whether a row is in one of the ranges, of which there is at least one."""
    topic, partition, offset = (pc.field(name) for name in ("topic", "partition", "offset"))
    return reduce(
        or_,
        (
            (topic == one.topic) & (partition == one.partition) & (offset >= one.start) & (offset < one.end)
            for one in ranges
        ),
    )


def scans(ranges: Iterable[OffsetRange]) -> Iterator[list[OffsetRange]]:
    """Ranges that one scan of a table looks for: of one topic, and not so many that planning takes longer
    than reading.
    """
    for _, of_topic in groupby(sorted(ranges), key=lambda one: one.topic):
        waiting = list(of_topic)
        for at in range(0, len(waiting), _RANGES_PER_SCAN):
            yield waiting[at : at + _RANGES_PER_SCAN]
