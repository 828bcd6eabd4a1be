"""The file of `audit --offsets-out` and `redact --offsets`: ranges of offsets of partitions, in JSON.

It is shaped like the file of `kafka-delete-records.sh --offset-json-file`, with ranges for its `offset`:

>>> from magicbyte.jobs.find.offset_ranges import parse_offsets
>>> parse_offsets('{"version": 1, "partitions": [{"topic": "a", "partition": 0, "ranges": [[7, 9], [8, 12]]}'
...     ']}')
{('a', 0): [(7, 12)]}
"""

from __future__ import annotations

import json
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from magicbyte import bounded_json
from magicbyte.errors import RefusedError
from magicbyte.model import PartitionListing
from magicbyte.storage.replacing import replacing

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = [
    "OFFSETS_START",
    "OffsetRange",
    "Ranges",
    "merged",
    "offsets_in",
    "parse_offsets",
    "refuse_unknown",
    "write_offsets",
]

_VERSION = 1
OFFSETS_START = f'{{"version": {_VERSION}, "partitions": ['
"""The start of a file that `write_offsets` has written."""
_MAX_OFFSET = (1 << 63) - 1
_MANY_RANGES = 64
"""The ranges that are compared one by one with all offsets of a batch; of more, each offset is looked up."""

Ranges: TypeAlias = Sequence[tuple[int, int]]
"""The first and last offset (inclusive) of each range, in order, without overlaps."""


class OffsetRange(NamedTuple):
    """Offsets of a partition."""

    topic: str
    partition: int
    first_offset: int
    last_offset: int
    """Inclusive."""


def parse_offsets(text: str) -> dict[tuple[str, int], Ranges]:
    """The ranges of each partition.

    Raises:
        RefusedError: if the text is not such a document.

    """
    try:
        document = bounded_json.loads(text)
        if document["version"] != _VERSION:
            raise RefusedError(f"version {document['version']!r}: expected {_VERSION}")
        found: dict[tuple[str, int], list[tuple[int, int]]] = defaultdict(list)
        for partition in document["partitions"]:
            place = _text(partition["topic"]), _offset(partition["partition"])
            found[place] += [(_offset(first), _offset(last)) for first, last in partition["ranges"]]
        return {place: merged(ranges) for place, ranges in found.items()}
    except (ValueError, RecursionError, KeyError, TypeError) as error:
        expected = '{"version": 1, "partitions": [{"topic": "orders", "partition": 0, "ranges": [[7, 9]]}]}'
        raise RefusedError(f"no file of offsets ({error}): expected {expected}") from None


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is no topic")
    return value


def _offset(value: Any) -> int:
    if type(value) is not int or not 0 <= value <= _MAX_OFFSET:
        raise ValueError(f"{value!r} is no offset")
    return value


def merged(ranges: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """The ranges in order, with those that overlap or touch joined.

    Raises:
        ValueError: if a range ends before it begins.

    """
    joined: list[tuple[int, int]] = []
    for first, last in sorted(ranges):
        if last < first:
            raise ValueError(f"the range {first} to {last} ends before it begins")
        if joined and first <= joined[-1][1] + 1:
            joined[-1] = joined[-1][0], max(joined[-1][1], last)
        else:
            joined.append((first, last))
    return joined


def offsets_in(offsets: pa.Int64Array, ranges: Ranges) -> pa.BooleanArray:
    """Booleans that say which of the offsets are in one of the ranges."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if not len(offsets):
        return pa.array([], pa.bool_())
    extremes = pc.min_max(offsets).as_py()
    start = bisect_left(ranges, extremes["min"], key=lambda one: one[1])
    end = bisect_right(ranges, extremes["max"], start, key=lambda one: one[0])
    if end - start > _MANY_RANGES:
        # One pass over the offsets, not one for each range.
        firsts = [first for first, _ in ranges[start:end]]
        nearest = (start + bisect_right(firsts, offset) - 1 for offset in offsets.to_pylist())
        found = [
            at >= start and offset <= ranges[at][1]
            for at, offset in zip(nearest, offsets.to_pylist(), strict=True)
        ]
        return pa.array(found, pa.bool_())
    inside = pa.repeat(pa.scalar(False), len(offsets))
    for first, last in ranges[start:end]:
        inside = pc.or_(inside, pc.and_(pc.greater_equal(offsets, first), pc.less_equal(offsets, last)))
    return inside


def refuse_unknown(offsets: Mapping[tuple[str, int], Ranges], listings: Iterable[PartitionListing]) -> None:
    """Raises `RefusedError` if there are offsets of a partition that is not read."""
    read = {(listing["topic"], listing["partition"]) for listing in listings}
    for topic, partition in sorted({*offsets} - read):
        raise RefusedError(
            f"there are offsets of {topic}-{partition}, which is not among the partitions read"
        )


def write_offsets(path: str, ranges: Iterable[OffsetRange]) -> None:
    """Writes ranges, which are sorted by partition, in place of the file."""
    with replacing(path) as file:
        file.write(OFFSETS_START)
        by_partition = groupby(ranges, lambda one: (one.topic, one.partition))
        for number, ((topic, partition), own) in enumerate(by_partition):
            file.write(",\n" if number else "\n")
            found = [[one.first_offset, one.last_offset] for one in own]
            json.dump({"topic": topic, "partition": partition, "ranges": found}, file)
        file.write("\n]}\n")
