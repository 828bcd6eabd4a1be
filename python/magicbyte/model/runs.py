"""Runs of batches in files of any kind."""

from __future__ import annotations

from typing import TypedDict

__all__ = ["BatchMark", "BatchRun", "FoundRuns", "ProducerRun"]


class BatchMark(TypedDict):
    """What tells a batch from all others: replicas of a partition agree in it."""

    offset: int
    """The offset in its header: the last one of a legacy wrapper."""
    epoch: int
    """Its leader epoch; -1 in magic 0 and 1."""
    crc: int


class ProducerRun(TypedDict):
    """The batches of one producer in a run."""

    producer_id: int
    first_epoch: int
    first_sequence: int
    last_epoch: int
    next_sequence: int
    """The sequence that follows its last batch."""


class BatchRun(TypedDict):
    """Batches of one log, end to end in a file, with rising offsets."""

    start: int
    end: int
    batches: int
    first_offset: int
    last_offset: int
    gaps: int
    """Offsets between the batches that are in none: they were compacted away."""
    first_epoch: int
    """The leader epoch of the first batch; -1 in magic 0 and 1."""
    last_epoch: int
    max_timestamp: int
    is_value: bool
    """True if the run is a value of a damaged record: its length is written right before it."""
    marks: list[BatchMark]
    """Those of the first and the last batch, and some others."""
    producers: list[ProducerRun]
    """The first producers."""


class FoundRuns(TypedDict):
    """The runs in a file."""

    size: int
    runs: list[BatchRun]
    is_cut: bool
    """True if the file has more runs than were asked for."""
    unreadable: str | None
    """The reason why the file could not be read to its end, if it could not."""
