"""The job of `magicbyte diff`: the partitions, ranges of offsets and records in which two logs differ.

Both sides are reduced to a digest for each range of offsets. Ranges whose digests differ are read again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias, TypedDict

from magicbyte import _core
from magicbyte.errors import RefusedError
from magicbyte.jobs.comparing.differences import PartitionDiff, Place, compare_partition, only_in
from magicbyte.jobs.comparing.digest_cache import DigestCache, Digests
from magicbyte.jobs.comparing.sides import Side
from magicbyte.jobs.find.choice import EVERYTHING, PartitionChoice
from magicbyte.jobs.run.accounting import Problems, listed
from magicbyte.jobs.run.engines import Engine
from magicbyte.jobs.run.progress import NO_PROGRESS, Progress
from magicbyte.options.diff import DiffOptions

__all__ = ["DiffReport", "diff"]


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
    a, b = (Side([source], choice, engine, options.max_decompressed_bytes) for source in sources)
    cache = DigestCache(options.cache, options.max_decompressed_bytes)
    pairs = _pairs(a, b)
    both = [pair for pair in pairs if None not in pair]
    left = a.digests([one for one, _ in both if one is not None], cache, progress)
    right = b.digests([other for _, other in both if other is not None], cache, progress)
    cache.save()
    digests = dict(zip(both, zip(left, right, strict=True), strict=True))
    partitions = [_compared(pair, digests.get(pair), a, b) for pair in pairs]
    problems = [*a.problems, *b.problems]
    return DiffReport(
        magicbyte=_core.__version__,
        equal=all(partition["result"] == "equal" for partition in partitions),
        a=SideReport(source=sources[0], size=a.size, read_bytes=a.read_bytes),
        b=SideReport(source=sources[1], size=b.size, read_bytes=b.read_bytes),
        partitions=partitions,
        **listed(problems, a.problems_left_out + b.problems_left_out),
    )


_Pair: TypeAlias = tuple[Place | None, Place | None]


def _pairs(a: Side, b: Side) -> list[_Pair]:
    if len(a.places) == len(b.places) == 1:
        return [(next(iter(a.places)), next(iter(b.places)))]
    return [
        (place if place in a.places else None, place if place in b.places else None)
        for place in sorted(a.places | b.places)
    ]


def _compared(pair: _Pair, digests: tuple[Digests, Digests] | None, a: Side, b: Side) -> PartitionDiff:
    in_a, in_b = pair
    if in_a is None or in_b is None or digests is None:
        return only_in("b" if in_a is None else "a", in_a or in_b or ("", 0))
    return compare_partition((a, in_a, digests[0]), (b, in_b, digests[1]))
