"""The differences between two sides of a comparison. Ranges whose digests differ are read again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal, Protocol, TypeAlias, TypedDict

from magicbyte import _core
from magicbyte.jobs.comparing.digest_cache import RANGE_OFFSETS, Digests

__all__ = [
    "DifferingRange",
    "PartitionDiff",
    "Place",
    "Records",
    "compare_partition",
    "only_in",
]

Place: TypeAlias = tuple[str, int]
"""Topic and partition."""

Difference: TypeAlias = Literal["only_in_a", "only_in_b", "differs"]
"""A record, or a partition, that only one side has, or that is another one on each side."""

_RANGES_AT_ONCE = 32
"""The ranges whose records are compared together: memory has a number for each record of them."""


class DifferingRange(TypedDict):
    """Adjacent records that differ in the same way."""

    first_offset: int
    last_offset: int
    records: int
    difference: Difference


class PartitionDiff(TypedDict):
    """A partition that is on one of the sides, or on both."""

    topic: str
    partition: int
    result: Literal["equal", "differs", "only_in_a", "only_in_b"]
    records_a: int | None
    """The number of records, control records included; None if it is only on the other side."""
    records_b: int | None
    differing_records: int
    ranges: list[DifferingRange]
    """The first `LISTED` ranges."""
    ranges_left_out: int


class Records(Protocol):
    """The records of one side, which can be read again."""

    def records(self, place: Place, ranges: Sequence[tuple[int, int]]) -> dict[int, int]:
        """The hashes of the records of increasing ranges of offsets, by offset; the ends are exclusive."""


Compared: TypeAlias = tuple[Records, Place, Digests]
"""A side, the partition there, and the digests of its ranges of `RANGE_OFFSETS` offsets."""


def only_in(side: Literal["a", "b"], place: Place) -> PartitionDiff:
    """The report of a partition that the other side does not have."""
    report = _report(place)
    report["result"] = "only_in_a" if side == "a" else "only_in_b"
    return report


def compare_partition(a: Compared, b: Compared) -> PartitionDiff:
    """Compares a partition with another one. It is reported under the name that it has in `a`."""
    (_, place, left), (_, _, right) = a, b
    report = _report(place)
    report["records_a"] = sum(records for records, _ in left.values())
    report["records_b"] = sum(records for records, _ in right.values())
    for found in _joined(_differences(a, b)):
        report["result"] = "differs"
        report["differing_records"] += found["records"]
        if len(report["ranges"]) < _core.LISTED:
            report["ranges"].append(found)
        else:
            report["ranges_left_out"] += 1
    return report


def _report(place: Place) -> PartitionDiff:
    return PartitionDiff(
        topic=place[0],
        partition=place[1],
        result="equal",
        records_a=None,
        records_b=None,
        differing_records=0,
        ranges=[],
        ranges_left_out=0,
    )


def _differences(in_a: Compared, in_b: Compared) -> Iterator[tuple[int, Difference | None]]:
    """The offsets of the ranges that differ, each with the difference of its record; None for none."""
    (a, place_a, left), (b, place_b, right) = in_a, in_b
    differing = sorted(n for n in left.keys() | right.keys() if left.get(n) != right.get(n))
    for at in range(0, len(differing), _RANGES_AT_ONCE):
        numbers = differing[at : at + _RANGES_AT_ONCE]
        ranges = _ranges(numbers)
        ours, theirs = a.records(place_a, ranges), b.records(place_b, ranges)
        before = differing[at - 1] if at else None
        # The range before each of these is equal, unless it was compared in the step before.
        equal = {start - 1 for start, _ in ranges if before is None or start != (before + 1) * RANGE_OFFSETS}
        for offset in sorted(ours.keys() | theirs.keys() | equal):
            if offset in equal or ours.get(offset) == theirs.get(offset):
                yield offset, None
            elif offset not in theirs:
                yield offset, "only_in_a"
            elif offset not in ours:
                yield offset, "only_in_b"
            else:
                yield offset, "differs"


def _ranges(numbers: Sequence[int]) -> list[tuple[int, int]]:
    """The offsets of ranges with increasing numbers, adjacent ones as one range; the ends are exclusive."""
    ranges: list[tuple[int, int]] = []
    for number in numbers:
        start, end = number * RANGE_OFFSETS, (number + 1) * RANGE_OFFSETS
        if ranges and ranges[-1][1] == start:
            start, _ = ranges.pop()
        ranges.append((start, end))
    return ranges


def _joined(differences: Iterator[tuple[int, Difference | None]]) -> Iterator[DifferingRange]:
    """Joins neighbouring records with the same difference."""
    found: DifferingRange | None = None
    for offset, difference in differences:
        if found is not None and found["difference"] == difference:
            found["last_offset"] = offset
            found["records"] += 1
            continue
        if found is not None:
            yield found
        found = None
        if difference is not None:
            found = DifferingRange(first_offset=offset, last_offset=offset, records=1, difference=difference)
    if found is not None:
        yield found
