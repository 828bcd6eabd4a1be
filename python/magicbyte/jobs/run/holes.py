"""Holes: offsets that a job passed without their records."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import NamedTuple

__all__ = ["MAX_HOLES", "Hole", "joined", "uncovered"]

MAX_HOLES = 64
"""The number of holes that are kept of a partition; beyond it, neighbours are joined."""


class Hole(NamedTuple):
    """A range of offsets whose records were lost, unread or not decoded."""

    start: int
    end: int
    """Exclusive."""


def joined(holes: Iterable[Hole]) -> tuple[Hole, ...]:
    """Holes in order, those that touch each other joined, and at most `MAX_HOLES` of them."""
    merged: list[Hole] = []
    for hole in sorted(hole for hole in holes if hole.start < hole.end):
        if merged and hole.start <= merged[-1].end:
            merged[-1] = Hole(merged[-1].start, max(merged[-1].end, hole.end))
        else:
            merged.append(hole)
    if len(merged) <= MAX_HOLES:
        return tuple(merged)
    # The widest gaps stay gaps.
    gaps = [after.start - before.end for before, after in pairwise(merged)]
    kept = sorted(sorted(range(len(gaps)), key=gaps.__getitem__)[len(gaps) - MAX_HOLES + 1 :])
    starts = [0, *(gap + 1 for gap in kept)]
    ends = [*kept, len(merged) - 1]
    return tuple(Hole(merged[at].start, merged[to].end) for at, to in zip(starts, ends, strict=True))


def uncovered(holes: Iterable[Hole], start: int, end: int) -> Iterator[Hole]:
    """The parts of holes outside a range of offsets."""
    for hole in holes:
        for part in (Hole(hole.start, min(hole.end, start)), Hole(max(hole.start, end), hole.end)):
            if part.start < part.end:
                yield part
