"""Problems that are found without reading a segment."""

from __future__ import annotations

from magicbyte.model import Problem

__all__ = ["partition_problem"]


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
