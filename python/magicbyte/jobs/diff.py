"""The job of `magicbyte diff`: the partitions, ranges of offsets and records in which two logs differ.

Both sides are reduced to a digest for each range of offsets. Ranges whose digests differ are read again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal, TypeAlias, TypedDict

from magicbyte import _core
from magicbyte.errors import RefusedError
from magicbyte.jobs.comparing.digest_cache import RANGE_OFFSETS, DigestCache, Digests
from magicbyte.jobs.comparing.sides import Side
from magicbyte.jobs.find.choice import EVERYTHING, PartitionChoice
from magicbyte.jobs.run.accounting import Problems, listed
from magicbyte.jobs.run.engines import Engine
from magicbyte.jobs.run.progress import NO_PROGRESS, Progress
from magicbyte.options.diff import DiffOptions

__all__ = ["DiffReport", "DifferingRange", "PartitionDiff", "diff"]

Difference: TypeAlias = Literal["only_in_a", "only_in_b", "differs"]
"""A record, or a partition, that only one side has, or that is another one on each side."""

_Place: TypeAlias = tuple[str, int]
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


class SideReport(TypedDict):
    """One side of the comparison."""

    source: str
    size: int
    """Bytes of the segments that were compared."""
    read_bytes: int
    """Bytes whose records were read; the digests of the others were in the cache."""


class DiffReport(Problems):
    """The comparison of two logs."""

    magicbyte: str
    equal: bool
    a: SideReport
    b: SideReport
    partitions: list[PartitionDiff]


def diff(
    sources: Sequence[str],
    engine: Engine,
    options: DiffOptions,
    progress: Progress = NO_PROGRESS,
    *,
    choice: PartitionChoice = EVERYTHING,
) -> DiffReport:
    """Compares the records of two sources, partition by partition.

    Partitions are paired by name. If there is one on each side, these two are compared, whatever their names.

    Raises:
        RefusedError: if there are not two sources, one has nothing to read, or has a partition twice.

    """
    if len(sources) != 2:
        raise RefusedError(f"two sources are compared, not {len(sources)}")
    a, b = (Side(source, choice, engine, options.max_decompressed_bytes) for source in sources)
    cache = DigestCache(options.cache, options.max_decompressed_bytes)
    pairs = _pairs(a, b)
    both = [pair for pair in pairs if None not in pair]
    left = a.digests([one for one, _ in both if one is not None], cache, progress)
    right = b.digests([other for _, other in both if other is not None], cache, progress)
    cache.save()
    digests = dict(zip(both, zip(left, right, strict=True), strict=True))
    partitions = [_partition(pair, digests.get(pair), a, b) for pair in pairs]
    problems = [*a.problems, *b.problems]
    return DiffReport(
        magicbyte=_core.__version__,
        equal=all(partition["result"] == "equal" for partition in partitions),
        a=SideReport(source=a.source, size=a.size, read_bytes=a.read_bytes),
        b=SideReport(source=b.source, size=b.size, read_bytes=b.read_bytes),
        partitions=partitions,
        **listed(problems, a.problems_left_out + b.problems_left_out),
    )


_Pair: TypeAlias = tuple[_Place | None, _Place | None]


def _pairs(a: Side, b: Side) -> list[_Pair]:
    if len(a.places) == len(b.places) == 1:
        return [(next(iter(a.places)), next(iter(b.places)))]
    return [
        (place if place in a.places else None, place if place in b.places else None)
        for place in sorted(a.places | b.places)
    ]


def _partition(pair: _Pair, digests: tuple[Digests, Digests] | None, a: Side, b: Side) -> PartitionDiff:
    topic, partition = pair[0] or pair[1] or ("", 0)
    report = PartitionDiff(
        topic=topic,
        partition=partition,
        result="equal",
        records_a=None,
        records_b=None,
        differing_records=0,
        ranges=[],
        ranges_left_out=0,
    )
    if digests is None or pair[0] is None or pair[1] is None:
        report["result"] = "only_in_b" if pair[0] is None else "only_in_a"
        return report
    left, right = digests
    report["records_a"] = sum(records for records, _ in left.values())
    report["records_b"] = sum(records for records, _ in right.values())
    for found in _joined(_differences(left, right, pair[0], pair[1], a, b)):
        report["result"] = "differs"
        report["differing_records"] += found["records"]
        if len(report["ranges"]) < _core.LISTED:
            report["ranges"].append(found)
        else:
            report["ranges_left_out"] += 1
    return report


def _differences(
    left: Digests, right: Digests, in_a: _Place, in_b: _Place, a: Side, b: Side
) -> Iterator[tuple[int, Difference | None]]:
    """The offsets of the ranges that differ, each with the difference of its record; None for none."""
    differing = sorted(n for n in left.keys() | right.keys() if left.get(n) != right.get(n))
    for at in range(0, len(differing), _RANGES_AT_ONCE):
        numbers = differing[at : at + _RANGES_AT_ONCE]
        ranges = _ranges(numbers)
        ours, theirs = a.records(in_a, ranges), b.records(in_b, ranges)
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
