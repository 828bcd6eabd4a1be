"""The state of a partition in a table."""

from __future__ import annotations

from dataclasses import dataclass

from magicbyte.jobs.holes import Hole
from magicbyte.jobs.lineage import UNKNOWN, Lineage

__all__ = ["PartitionState"]


@dataclass(frozen=True)
class PartitionState:
    """The state of a partition in a table."""

    next_offset: int
    """Where the next job starts."""
    lineage: Lineage = UNKNOWN
    """That of the log before `next_offset`."""
    holes: tuple[Hole, ...] = ()
    """In order, without overlaps."""
