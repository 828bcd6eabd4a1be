"""Merges of the copies of a partition."""

from __future__ import annotations

from typing import Literal, TypeAlias, TypedDict

from magicbyte.model.listings import Problem
from magicbyte.model.plans import Chunk

__all__ = [
    "AlignedCopy",
    "Alignment",
    "Damage",
    "LeftOut",
    "LeftOutReason",
    "MergePlan",
    "MergedCopy",
    "MergedRange",
    "MergedSegment",
    "Run",
    "Share",
]

LeftOutReason: TypeAlias = Literal["diverged", "past_the_end", "cleaned", "differs"]
"""`diverged`: a follower would truncate them. `past_the_end`: they continue the log after the end of the copy
that was preferred. `cleaned`: the cleaned part of a compacted log is taken from another copy. `differs`: the
merged log has other batches at their offsets."""


class Share(TypedDict):
    """The bytes of one copy that hold a run of batches."""

    copy: int
    """The copy: its place among those that were aligned."""
    segment: int
    """The segment: its place in the plan of the copy."""
    start: int
    end: int


class Run(TypedDict):
    """Adjacent good batches that the same copies have, byte for byte."""

    shares: list[Share]
    first_offset: int
    next_offset: int
    leader_epoch: int
    batches: int
    content: int
    """A hash of the ends and CRCs of its batches."""


class Damage(Share):
    """Bytes of a copy that are not good batches, and the offsets that they may have held."""

    first_offset: int
    next_offset: int | None
    """The offset of the next good batch; None if nothing follows."""
    leader_epoch: int | None
    """Set if only the leader epoch of a batch is wrong: the epoch of the batches on both sides."""


class AlignedCopy(TypedDict):
    """The account of a copy: each byte counts once."""

    good_bytes: int
    damaged_bytes: int
    tail_bytes: int
    """Zeros or an incomplete batch at the end of the log."""
    overlapping_bytes: int
    """Batches whose offsets an earlier segment of the copy has."""
    last: tuple[int, int] | None
    """Leader epoch and offset of the last good record."""
    problems: list[Problem]
    problems_left_out: int


class Alignment(TypedDict):
    """The copies of a partition, read side by side."""

    runs: list[Run]
    damages: list[Damage]
    copies: list[AlignedCopy]


class MergedRange(Share):
    """Adjacent batches of the merged log, and where they come from."""

    first_offset: int
    last_offset: int
    batches: int


class LeftOut(TypedDict):
    """Adjacent batches of a copy that are not in the merged log."""

    copy: int
    first_offset: int
    last_offset: int
    leader_epoch: int
    """The leader epoch of the first batch."""
    batches: int
    size: int
    reason: LeftOutReason


class MergedCopy(TypedDict):
    """The good bytes of a copy by their use."""

    used_bytes: int
    same_bytes: int
    """Bytes that the merged log takes from another copy, which has the same."""
    left_out_bytes: int


class MergedSegment(TypedDict):
    """A segment of the merged log."""

    base_offset: int
    chunks: list[Chunk]


class MergePlan(TypedDict):
    """The plan of a merged log."""

    leader: int
    cleaned_copy: int | None
    """The copy from which the cleaned part of a compacted log is taken."""
    cleaned_until: int | None
    """The end (exclusive) of that part."""
    segments: list[MergedSegment]
    segment_bytes: int
    """The maximum size of a segment to write."""
    ranges: list[MergedRange]
    holes: list[tuple[int, int]]
    """First and last offsets that no copy has."""
    left_out: list[LeftOut]
    copies: list[MergedCopy]
    log_start_offset: int | None
    next_offset: int
