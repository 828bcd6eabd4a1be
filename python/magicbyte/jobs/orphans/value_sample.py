"""A sample of values by the schemas that they name, in bounded memory."""

from __future__ import annotations

import heapq
from collections import Counter, defaultdict
from itertools import count
from typing import NamedTuple

from magicbyte.jobs.orphans.named_schemas import SchemaName

__all__ = ["SampledValue", "ValueSample"]

_OVERHEAD = 200
"""Bytes that a value takes besides its own."""


class SampledValue(NamedTuple):
    """A key or value, and the headers of its record."""

    data: bytes
    headers: list[tuple[str, bytes | None]]

    @property
    def size(self) -> int:
        """The bytes that it takes."""
        headers = sum(len(key) + len(content or b"") + _OVERHEAD for key, content in self.headers)
        return len(self.data) + headers + _OVERHEAD


class ValueSample:
    """Values of each name, in so many bytes for all of them: the largest are dropped to make room."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._seen: Counter[SchemaName] = Counter()
        self._order = count()
        # A heap, the largest value first.
        self._values: list[tuple[int, int, SchemaName, SampledValue]] = []
        self._bytes = 0

    def seen(self, name: SchemaName) -> int:
        """The values of a name that were added, dropped or not."""
        return self._seen[name]

    def add(self, name: SchemaName, value: SampledValue) -> None:
        """Adds a value."""
        self._seen[name] += 1
        heapq.heappush(self._values, (-value.size, next(self._order), name, value))
        self._bytes += value.size
        while self._bytes > self._max_bytes:
            self._bytes += heapq.heappop(self._values)[0]

    def by_name(self) -> dict[SchemaName, list[SampledValue]]:
        """The values that were kept, in the order in which they were added."""
        found: dict[SchemaName, list[SampledValue]] = defaultdict(list)
        for _, _, name, value in sorted(self._values, key=lambda one: one[1]):
            found[name].append(value)
        return found
