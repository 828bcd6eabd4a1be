"""Plans: the chunks of a partition."""

from __future__ import annotations

from typing import TypedDict

from magicbyte.enums import IsolationLevel
from magicbyte.model.listings import IgnoredFile, LeaderEpoch, Problem, Segment

__all__ = [
    "Chunk",
    "PartitionPlan",
    "PlanSegment",
]


class Chunk(TypedDict):
    """A byte range of one segment, cut at batch borders: the input of one decode task.

    Pass it back to `ChunkDecoder` unchanged.
    """

    path: str
    segment: str
    topic: str
    partition: int
    size: int
    """The size of the segment when it was listed."""
    version: str
    """The version of the segment."""
    start: int
    end: int
    expected_offset: int
    """The smallest offset that the first batch can have."""
    max_offset: int
    """The largest offset that the segment can hold."""
    next_offset: int | None
    """The smallest offset that can follow the chunk, if anything follows."""
    log_start_offset: int | None
    """Records before this offset were deleted: a broker does not return them."""
    start_offset: int | None
    """Records before this offset are outside the requested range."""
    end_offset: int | None
    """Records from this offset on are outside the requested range."""
    aborted: list[tuple[int, int, int]]
    """(producer id, first offset, last offset) of each aborted transaction that reaches into the chunk;
    empty unless the plan is for `read_committed`."""


class PlanSegment(Segment):
    """A segment of a plan, with the results of its survey."""

    first_offset: int | None
    last_offset: int | None
    max_timestamp: int
    batches: int
    transactional: list[tuple[int, int]]


class PartitionPlan(TypedDict):
    """The chunks to decode, in offset order, and the facts known before decoding."""

    path: str
    topic: str
    partition: int
    isolation_level: IsolationLevel
    chunks: list[Chunk]
    segments: list[PlanSegment]
    ignored: list[IgnoredFile]
    """Includes overlapping segments."""
    problems: list[Problem]
    first_offset: int | None
    """The offset of the first batch, or the log's start if that is greater."""
    next_offset: int | None
    """The offset after the last offset in the log: Kafka's log end offset."""
    last_stable_offset: int | None
    """The start of the first open transaction, or `next_offset`."""
    log_start_offset: int | None
    """The log's start, if records before it are left out."""
    aborted: list[tuple[int, int, int]]
    """(producer id, first offset, last offset) of every aborted transaction."""
    leader_epochs: list[LeaderEpoch]
    """According to the batches."""
