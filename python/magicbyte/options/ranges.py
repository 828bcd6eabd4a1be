"""The records of each partition that are read: ranges of offsets and of timestamps."""

from __future__ import annotations

from dataclasses import dataclass

from magicbyte.options.declare import Options, option
from magicbyte.options.values import OFFSET, TIME

__all__ = ["Ranges"]


@dataclass(frozen=True, kw_only=True)
class Ranges(Options):
    """Ranges of offsets and timestamps (milliseconds); starts are inclusive, ends exclusive.

    A record is in range if both its offset and its timestamp are, wherever in the log it is. One without a
    timestamp is earlier than all others.
    """

    start_offset: int | None = option("The first offset.", default=None, kind=OFFSET)
    end_offset: int | None = option("The end of the offset range, exclusive.", default=None, kind=OFFSET)
    start_timestamp: int | None = option("The start of the time range.", default=None, kind=TIME)
    end_timestamp: int | None = option("The end of the time range, exclusive.", default=None, kind=TIME)

    def bounds(self, _partition: object) -> tuple[int | None, int | None]:
        """The requested offsets of a partition, the end exclusive."""
        return self.start_offset, self.end_offset
