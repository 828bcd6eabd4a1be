"""The records that a command prints: ranges of offsets and times, and a limit."""

from __future__ import annotations

from dataclasses import dataclass

from magicbyte.options.declare import option
from magicbyte.options.ranges import Ranges
from magicbyte.options.values import COUNT

__all__ = ["Selection"]


@dataclass(frozen=True, kw_only=True)
class Selection(Ranges):
    """The records that are printed."""

    max_records: int | None = option("Stop after N records, or N batches.", default=None, kind=COUNT)

    def includes(self, offset: int, timestamp: int) -> bool:
        """True if a record is in range."""
        return (
            (self.start_offset is None or offset >= self.start_offset)
            and (self.end_offset is None or offset < self.end_offset)
            and (self.start_timestamp is None or timestamp >= self.start_timestamp)
            and (self.end_timestamp is None or timestamp < self.end_timestamp)
        )

    def may_include(self, base_offset: int, last_offset: int, max_timestamp: int) -> bool:
        """True if a batch with this header can hold a record in range."""
        return (
            (self.start_offset is None or last_offset >= self.start_offset)
            and (self.end_offset is None or base_offset < self.end_offset)
            and (self.start_timestamp is None or max_timestamp >= self.start_timestamp)
        )

    @property
    def has_times(self) -> bool:
        """True if there is a range of times."""
        return self.start_timestamp is not None or self.end_timestamp is not None

    @property
    def has_ranges(self) -> bool:
        """True if any range is given."""
        return self.start_offset is not None or self.end_offset is not None or self.has_times
