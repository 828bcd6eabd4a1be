"""Which records a dump prints."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Selection"]


@dataclass(frozen=True)
class Selection:
    """Ranges of offsets and times (milliseconds); starts are inclusive, ends exclusive."""

    start_offset: int | None = None
    end_offset: int | None = None
    start_timestamp: int | None = None
    end_timestamp: int | None = None
    max_records: int | None = None

    def takes(self, offset: int, timestamp: int) -> bool:
        """Whether a record is in range."""
        return (
            (self.start_offset is None or offset >= self.start_offset)
            and (self.end_offset is None or offset < self.end_offset)
            and (self.start_timestamp is None or timestamp >= self.start_timestamp)
            and (self.end_timestamp is None or timestamp < self.end_timestamp)
        )

    def may_take(self, base_offset: int, last_offset: int, max_timestamp: int) -> bool:
        """Whether a batch can hold a record in range, as far as its header says."""
        return (
            (self.start_offset is None or last_offset >= self.start_offset)
            and (self.end_offset is None or base_offset < self.end_offset)
            and (self.start_timestamp is None or max_timestamp >= self.start_timestamp)
        )

    @property
    def limited(self) -> bool:
        """Whether there is any range."""
        limits = (self.start_offset, self.end_offset, self.start_timestamp, self.end_timestamp)
        return any(limit is not None for limit in limits)
