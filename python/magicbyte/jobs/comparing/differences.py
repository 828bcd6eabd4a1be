"""The differences between two sides of a comparison. Ranges whose digests differ are read again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal, Protocol, TypeAlias, TypedDict

from magicbyte import _core
from magicbyte.jobs.comparing.digest_cache import Digests

__all__ = [
    "RANGE_OFFSETS",
    "DifferingRange",
    "PartitionDiff",
    "Place",
    "Records",
    "compare_partition",
    "only_in",
]

RANGE_OFFSETS = 4096
"""The offsets of a range with a digest."""

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

    def records(self, place: Place, start: int, end: int) -> dict[int, int]:
        """The hashes of the records of a range, by offset; `end` is exclusive."""


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
    differing = {number for number in left.keys() | right.keys() if left.get(number) != right.get(number)}
    for first, last in _adjacent(sorted(differing)):
        start, end = first * RANGE_OFFSETS, (last + 1) * RANGE_OFFSETS
        if first - 1 not in differing:
            yield start - 1, None  # the range before is equal
        ours, theirs = a.records(place_a, start, end), b.records(place_b, start, end)
        for offset in sorted(ours.keys() | theirs.keys()):
            if offset not in theirs:
                yield offset, "only_in_a"
            elif offset not in ours:
                yield offset, "only_in_b"
            else:
                yield offset, None if ours[offset] == theirs[offset] else "differs"


def _adjacent(numbers: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Groups increasing numbers into runs of adjacent ones: the first and the last of each."""
    at = 0
    while at < len(numbers):
        end = at + 1
        while end < len(numbers) and numbers[end] == numbers[end - 1] + 1 and end - at < _RANGES_AT_ONCE:
            end += 1
        yield numbers[at], numbers[end - 1]
        at = end


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
