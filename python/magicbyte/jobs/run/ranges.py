"""Which records of each partition are read: ranges of offsets and of timestamps."""

from __future__ import annotations

from dataclasses import dataclass

from magicbyte.jobs.run.plan import Planned, Range

__all__ = ["EVERY_RECORD", "Ranges"]


@dataclass(frozen=True)
class Ranges:
    """Ranges of offsets and timestamps (milliseconds); starts are inclusive, ends exclusive.

    A record is in range if both its offset and its timestamp are, wherever in the log it is. One without a
    timestamp is earlier than all others.
    """

    start_offset: int | None = None
    end_offset: int | None = None
    start_timestamp: int | None = None
    end_timestamp: int | None = None

    def bounds(self, _planned: Planned) -> Range:
        """The requested offsets of a partition."""
        return self.start_offset, self.end_offset


EVERY_RECORD = Ranges()
