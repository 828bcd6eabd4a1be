"""Copies without a good batch: what tells a log that is empty from one that has lost everything."""

from __future__ import annotations

from magicbyte.jobs.merging.planning import PlannedMerge

__all__ = ["is_lost", "is_outrun", "is_zeroed"]


def is_lost(merge: PlannedMerge, copy: int) -> bool:
    """True if a copy has no good batch, but had some, by its bytes or the broker's checkpoints."""
    account = merge.alignment["copies"][copy]
    if account["last"] is not None:
        return False
    problems = merge.copies[copy].plan["problems"]
    return account["damaged_bytes"] > 0 or any(one["first_lost_offset"] is not None for one in problems)


def is_zeroed(merge: PlannedMerge, copy: int) -> bool:
    """True if a copy has bytes, but nothing that was a batch: of a file that a disk has lost, zeros are left.
    Only a broker that allocates segments before it needs them (`preallocate`) has them in an empty log.
    """
    account = merge.alignment["copies"][copy]
    return account["last"] is None and account["tail_bytes"] > 0


def is_outrun(merge: PlannedMerge, copy: int) -> bool:
    """True if a copy is empty and ends before records of another one, as the log on a new disk does.

    Where retention has emptied a log, the name of its last segment tells that it ends after them.
    """
    copies = merge.alignment["copies"]
    ends = (one["last"][1] + 1 for one in copies if one["last"] is not None)
    return copies[copy]["last"] is None and merge.end_of(copy) < max(ends, default=0)
