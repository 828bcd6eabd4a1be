"""Problems that are found without reading a segment."""

from __future__ import annotations

from collections.abc import Iterable

from magicbyte.model import Problem

__all__ = ["lost_ranges", "offsets_text", "partition_problem"]


def offsets_text(first: int, last: int, spec: str = "") -> str:
    """A range of offsets (both inclusive) in a message; `spec` is the format of its numbers.

    >>> offsets_text(3, 3), offsets_text(1000, 1999, ",")
    ('offset 3', 'offsets 1,000 to 1,999')
    """
    if first == last:
        return f"offset {first:{spec}}"
    return f"offsets {first:{spec}} to {last:{spec}}"


def partition_problem(
    topic: str,
    partition: int,
    kind: str,
    message: str,
    *,
    first_lost_offset: int | None = None,
    last_lost_offset: int | None = None,
) -> Problem:
    """A problem of a partition as a whole: it has no segment, byte position or batch."""
    return Problem(
        topic=topic,
        partition=partition,
        segment=None,
        kind=kind,
        start=None,
        end=None,
        base_offset=None,
        record_index=None,
        field=None,
        first_lost_offset=first_lost_offset,
        last_lost_offset=last_lost_offset,
        message=message,
    )


def lost_ranges(problems: Iterable[Problem]) -> list[tuple[int, int]]:
    """The offsets that may be lost (first and last, inclusive), in order, each offset once."""
    union: list[tuple[int, int]] = []
    for first, last in sorted(filter(None, map(_lost_range, problems))):
        if union and first <= union[-1][1] + 1:
            union[-1] = union[-1][0], max(last, union[-1][1])
        else:
            union.append((first, last))
    return union


def _lost_range(problem: Problem) -> tuple[int, int] | None:
    first, last = problem["first_lost_offset"], problem["last_lost_offset"]
    return None if first is None or last is None or last < first else (first, last)
