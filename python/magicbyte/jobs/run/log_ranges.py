"""The offsets of logs, with which the positions of groups are compared."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from magicbyte.jobs.find.problems import lost_ranges
from magicbyte.jobs.run.plan import Planned

__all__ = ["Ends", "LogRange", "count_offsets", "log_ends", "log_range"]


@dataclass(frozen=True)
class LogRange:
    """The offsets of a log; None for unknown offsets."""

    start: int | None = None
    end: int | None = None
    """Exclusive."""
    last_stable: int | None = None
    """The offset at which `read_committed` consumers end (exclusive)."""
    lost: Sequence[tuple[int, int]] = ()
    """Ranges of offsets (inclusive) that are in no file."""
    has_files: bool = True
    """False for the log of a running cluster, of which `lost` is unknown."""

    def lost_from(self, offset: int) -> list[tuple[int, int]]:
        """The ranges of lost offsets from this one on."""
        return [(max(first, offset), last) for first, last in self.lost if last >= offset]

    def lost_ahead(self, offset: int) -> int | None:
        """The number of lost offsets from this one on; None if it is unknown."""
        return count_offsets(self.lost_from(offset)) if self.has_files else None

    def has_position(self, offset: int) -> bool:
        """False if a broker would answer OFFSET_OUT_OF_RANGE to a consumer that continues at this offset."""
        before = self.start is not None and offset < self.start
        after = self.end is not None and offset > self.end
        return not (before or after)


Ends = Mapping[tuple[str, int], LogRange]
"""The offsets of logs, by topic and partition."""


def count_offsets(ranges: Iterable[tuple[int, int]]) -> int:
    """The number of offsets in ranges (inclusive)."""
    return sum(last + 1 - first for first, last in ranges)


def log_ends(plans: Iterable[Planned]) -> Ends:
    """The range of offsets of each partition."""
    return {(planned.plan["topic"], planned.plan["partition"]): log_range(planned) for planned in plans}


def log_range(planned: Planned) -> LogRange:
    """The range of offsets of a partition."""
    plan, segments = planned.plan, planned.plan["segments"]
    # A log without batches ends where its last segment begins.
    empty = segments[-1]["base_offset"] if segments else None
    end = empty if plan["next_offset"] is None else plan["next_offset"]
    stable = end if plan["last_stable_offset"] is None else plan["last_stable_offset"]
    checkpoints = planned.listing["checkpoints"]
    start = None if checkpoints is None else checkpoints["log_start_offset"]
    if start is None and segments:
        start = segments[0]["base_offset"]
    return LogRange(start, end, stable, lost_ranges(plan["problems"]))
