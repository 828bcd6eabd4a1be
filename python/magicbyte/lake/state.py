"""The state of a partition in a table."""

from __future__ import annotations

from dataclasses import dataclass

from magicbyte.jobs.find.lineage import UNKNOWN, Lineage
from magicbyte.jobs.run.holes import Hole

__all__ = ["PartitionState"]


@dataclass(frozen=True)
class PartitionState:
    """The state of a partition in a table."""

    next_offset: int
    """The offset that the next job starts at."""
    lineage: Lineage = UNKNOWN
    """The lineage of the log before `next_offset`."""
    holes: tuple[Hole, ...] = ()
    """In order, without overlaps."""
