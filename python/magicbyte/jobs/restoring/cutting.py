"""Merged logs that end earlier: at a time or an offset, and at the last stable offset there."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple, TypedDict

from magicbyte import _core
from magicbyte._core import LegacyBatch, ProducerStateManager, RecordBatch
from magicbyte.jobs.merging.planning import PlannedMerge
from magicbyte.jobs.restoring.until import Until
from magicbyte.jobs.run.engines import Engine
from magicbyte.jobs.run.plan import count_of, size_of_chunk
from magicbyte.jobs.run.progress import Progress
from magicbyte.model import Chunk, MergedSegment
from magicbyte.storage.location import locate

__all__ = ["CutPartition", "batches_of", "cut_merges"]

_BLOCK = 4 << 20


class CutPartition(TypedDict):
    """A log that ends earlier than it did."""

    topic: str
    partition: int
    log_end_offset: int
    """The new end (exclusive)."""
    cut_offsets: int
    """Offsets that are cut."""
    before_open_transaction: bool
    """True if a transaction was open at the requested end, so that the log ends at the last stable offset."""
    is_compacted: bool
    """True if compaction may have removed records that the log had then: they do not come back."""


class _Limit(NamedTuple):
    """A requested end: a time (ms) or an offset (exclusive)."""

    time: int | None
    offset: int | None


class _Task(NamedTuple):
    chunks: list[Chunk]
    base_offset: int
    limit: _Limit
    max_decompressed_bytes: int


class _Found(NamedTuple):
    end: int | None
    """The end of the log by the limit; None if no batch is after it."""
    undecided: int | None
    """The first offset of a transaction that is open at that end."""


def cut_merges(
    merges: Sequence[PlannedMerge], until: Until, engine: Engine, progress: Progress
) -> tuple[list[PlannedMerge], list[CutPartition]]:
    """Cuts the merged logs, each at a batch; returns all of them, and what was cut.

    Cost: reads the headers of the logs that have something to cut, up to there.
    """
    limits = {
        place: limit for place, merge in enumerate(merges) if (limit := _limit_of(merge, until)) is not None
    }
    tasks = [
        _Task(_chunks_of(merge), _base_of(merge), limit, merge.max_decompressed_bytes)
        for merge, limit in ((merges[place], limit) for place, limit in limits.items())
    ]
    found = engine.map(
        _find_end,
        tasks,
        name=f"magicbyte cut: {count_of(len(tasks), 'partition')}",
        sizes=[sum(map(size_of_chunk, task.chunks)) for task in tasks],
        progress=progress,
    )
    cut, report = [*merges], []
    for (place, limit), one in zip(limits.items(), found, strict=True):
        merge = merges[place]
        # Without a batch after the limit, the log has lost its tail, or is not that long.
        wanted = limit.offset if one.end is None else one.end
        if wanted is None or wanted >= merge.log_end:
            continue
        end = wanted if one.undecided is None else min(wanted, one.undecided)
        cut[place] = _cut(merge, end)
        report.append(
            CutPartition(
                topic=merge.partition.topic,
                partition=merge.partition.partition,
                log_end_offset=cut[place].log_end,
                cut_offsets=merge.log_end - cut[place].log_end,
                before_open_transaction=end < wanted,
                is_compacted=merge.cleaned_until is not None,
            )
        )
    return cut, report


def _limit_of(merge: PlannedMerge, until: Until) -> _Limit | None:
    """The end of a log; None if it is not before that of the log."""
    if until.time is not None:
        segments = (segment for copy in merge.copies for segment in copy.plan["segments"])
        is_later = any(segment["max_timestamp"] > until.time for segment in segments)
        return _Limit(until.time, None) if is_later else None
    offset = until.offsets.get((merge.partition.topic, merge.partition.partition))
    return None if offset is None or offset >= merge.log_end else _Limit(None, offset)


def _chunks_of(merge: PlannedMerge) -> list[Chunk]:
    return [chunk for segment in merge.plan["segments"] for chunk in segment["chunks"]]


def batches_of(merge: PlannedMerge) -> Iterator[RecordBatch | LegacyBatch]:
    """The batches of a merged log, in order, from the one with its start offset on."""
    start = merge.plan["log_start_offset"] or 0
    for chunk in _chunks_of(merge):
        batches = _batches(chunk, merge.max_decompressed_bytes)
        yield from (batch for batch in batches if batch.last_offset >= start)


def _batches(chunk: Chunk, max_decompressed_bytes: int) -> Iterator[RecordBatch | LegacyBatch]:
    with locate(chunk["path"]).open(_BLOCK) as file:
        file.seek(chunk["start"])
        data = file.read(chunk["end"] - chunk["start"])
    return iter(_core.read_batches(data, max_decompressed_bytes=max_decompressed_bytes))


def _base_of(merge: PlannedMerge) -> int:
    """The first offset that the merged log can have."""
    segments = merge.plan["segments"]
    return segments[0]["base_offset"] if segments else merge.plan["next_offset"]


def _find_end(task: _Task) -> _Found:
    producers = ProducerStateManager()
    next_offset = task.base_offset
    for chunk in task.chunks:
        for batch in _batches(chunk, task.max_decompressed_bytes):
            if (end := _end_before(batch, next_offset, task.limit)) is not None:
                return _Found(end, producers.first_undecided_offset)
            producers.apply(batch)
            next_offset = batch.last_offset + 1
    return _Found(None, producers.first_undecided_offset)


def _end_before(batch: RecordBatch | LegacyBatch, next_offset: int, limit: _Limit) -> int | None:
    """The end of the log if the limit is before the end of this batch; a batch stays whole."""
    if limit.offset is None:
        is_after = limit.time is not None and batch.max_timestamp > limit.time
    else:
        is_after = batch.last_offset >= limit.offset
    if not is_after:
        return None
    # The header of a wrapper has its last offset.
    first = batch.base_offset if isinstance(batch, RecordBatch) else next_offset
    # Between two batches, any offset may be the end.
    return first if limit.offset is None or first < limit.offset else max(limit.offset, next_offset)


def _cut(merge: PlannedMerge, end: int) -> PlannedMerge:
    """The merge without the batches that reach to `end` (exclusive) or beyond."""
    plan = merge.plan
    next_offset = _base_of(merge)
    segments: list[MergedSegment] = []
    for segment in plan["segments"]:
        kept: list[Chunk] = []
        for chunk in segment["chunks"]:
            if chunk["expected_offset"] >= end:
                break
            following = chunk["next_offset"]
            if following is not None and following <= end:
                kept.append(chunk)
                next_offset = following
                continue
            size = 0
            for batch in _batches(chunk, merge.max_decompressed_bytes):
                if batch.last_offset >= end:
                    break
                size, next_offset = size + batch.size_in_bytes, batch.last_offset + 1
            if size:
                kept.append({**chunk, "end": chunk["start"] + size, "next_offset": next_offset})
        if kept:
            segments.append({**segment, "chunks": kept})
    log_end = max(end, _base_of(merge), plan["log_start_offset"] or 0)
    return replace(
        merge, text=json.dumps({**plan, "segments": segments, "next_offset": next_offset}), cut_at=log_end
    )
