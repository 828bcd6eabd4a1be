"""Surveying and planning: from listed partitions to the chunks that decode tasks read.

The survey runs in the engine's tasks and reads only batch headers. Planning runs in the driver: it joins
the surveys of a partition in offset order.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol, cast

from magicbyte import _core
from magicbyte.enums import IsolationLevel
from magicbyte.jobs.run.engines import Engine, group_by_size
from magicbyte.jobs.run.live_chunks import plan_live
from magicbyte.jobs.run.moving import ATTEMPTS, doubted_by_plan, look_again, of_each_segment
from magicbyte.jobs.run.progress import NO_PROGRESS, Progress, format_bytes
from magicbyte.listing import is_live
from magicbyte.model import Chunk, PartitionListing, PartitionPlan, Segment

__all__ = [
    "LARGEST_TARGET",
    "MIB",
    "Bounds",
    "DecodeTask",
    "Narrow",
    "Planned",
    "Range",
    "Surveyor",
    "Task",
    "all_offsets",
    "count_of",
    "everything_of",
    "plan_partitions",
    "plan_surveyed",
    "plan_within",
    "size_of",
    "size_of_chunk",
    "survey",
    "survey_again",
    "target_bytes",
    "task_name",
    "tasks_of",
    "tasks_of_chunks",
]

MIB = 1 << 20
_SMALLEST_TARGET = 4 * MIB
LARGEST_TARGET = 128 * MIB
"""The maximum bytes that a task reads, unless its job says otherwise."""
_TASKS_PER_SLOT = 3
"""More tasks than slots, so that a slow last task does not leave the other slots idle."""

Range = tuple[int | None, int | None]
"""The first offset that is requested and the end (exclusive); None for no limit."""


@dataclass(frozen=True)
class Planned:
    """A partition and its plan."""

    listing: PartitionListing
    surveys: tuple[str, ...]
    """The surveys of the listing's segments, in the same order, as JSON text."""
    text: str
    """The plan as JSON text."""

    @cached_property
    def plan(self) -> PartitionPlan:
        """The plan, parsed."""
        return cast(PartitionPlan, json.loads(self.text))


Bounds = Callable[[Planned], Range]
"""Returns the requested offsets of a partition, given the plan for all of it."""


def all_offsets(_planned: Planned) -> Range:
    """Requests the whole partition."""
    return None, None


Narrow = Callable[[PartitionListing], PartitionListing]
"""Returns the part of a listing that a job reads."""


def everything_of(listing: PartitionListing) -> PartitionListing:
    """Reads all segments."""
    return listing


class DecodeTask(Protocol):
    """The input of one decode task."""

    @property
    def number(self) -> int:
        """Its place among all tasks."""

    @property
    def chunks(self) -> Iterable[str]:
        """The chunks as JSON text for `ChunkDecoder`, by partition and offset. Can be iterated once."""

    def size_of(self, topic: str) -> int:
        """The bytes of the task's chunks of a topic."""


@dataclass(frozen=True)
class Task:
    """A `DecodeTask` whose chunks are all known."""

    number: int
    chunks: tuple[str, ...]
    size: int
    """Bytes of all chunks."""

    def size_of(self, topic: str) -> int:
        """See `DecodeTask`."""
        return self._sizes[topic]

    @cached_property
    def _sizes(self) -> Counter[str]:
        sizes = Counter[str]()
        for text in self.chunks:
            chunk: Chunk = json.loads(text)
            sizes[chunk["topic"]] += size_of_chunk(chunk)
        return sizes


def target_bytes(size: int, parallelism: int, tasks: int | None = None, most: int = LARGEST_TARGET) -> int:
    """The bytes that a task should read, so that there are enough tasks for all slots but no tiny ones.

    `tasks` requests about that many tasks, however small they get; no task gets more than `most` bytes.
    """
    if tasks:
        return max(1, min(most, size // tasks))
    share = size // (_TASKS_PER_SLOT * max(1, parallelism))
    return max(_SMALLEST_TARGET, min(most, share))


def size_of(listings: Iterable[PartitionListing]) -> int:
    """The bytes of all segments of partitions, and of running clusters, as far as they tell."""
    return sum(
        listing["size"] if is_live(listing) else sum(segment["size"] for segment in listing["segments"])
        for listing in listings
    )


def _survey_segments(segments: list[tuple[Segment, str | None]]) -> list[str]:
    return [_survey_segment(segment, before) for segment, before in segments]


def _survey_segment(segment: Segment, before: str | None) -> str:
    text = json.dumps(segment)
    if before is not None and json.loads(before)["segment"]["size"] < segment["size"]:
        return _core.survey_segment(text, before)
    return _core.survey_segment(text)


def survey(
    listings: Sequence[PartitionListing],
    engine: Engine,
    progress: Progress = NO_PROGRESS,
    before: Mapping[str, str] | None = None,
) -> list[list[str]]:
    """Scans the headers of all segments. Returns the surveys of each listing's segments, as JSON text.

    `before` has earlier surveys by path: if a segment has only grown, only the new part is scanned.
    """
    segments = [segment for listing in listings for segment in listing["segments"]]
    known = before or {}
    sizes = [segment["size"] for segment in segments]
    target = target_bytes(sum(sizes), engine.parallelism)
    pairs = ((segment, known.get(segment["path"])) for segment in segments)
    groups = list(group_by_size(pairs, sizes, target))
    results = engine.map(
        _survey_segments,
        groups,
        name=f"magicbyte survey: {count_of(len(segments), 'segment')}",
        sizes=[sum(segment["size"] for segment, _ in group) for group in groups],
        progress=progress,
    )
    surveys: Iterator[str] = (text for result in results for text in result)
    return [[next(surveys) for _ in listing["segments"]] for listing in listings]


Surveyor = Callable[[Sequence[PartitionListing], Engine, Progress], list[list[str]]]
"""A replacement for `survey`."""


def plan_partitions(
    listings: Sequence[PartitionListing],
    engine: Engine,
    *,
    surveyor: Surveyor = survey,
    isolation_level: IsolationLevel = "read_uncommitted",
    bounds: Bounds = all_offsets,
    narrow: Narrow = everything_of,
    chunk_bytes: int | None = None,
    progress: Progress = NO_PROGRESS,
) -> list[Planned]:
    """Surveys and plans; returns one plan for each listing.

    A partition with problems is listed and planned again while its files change (`jobs.moving`), so that the
    plan's listing may be later than the given one.

    Args:
        listings: the partitions, with the sizes of their files.
        engine: where the survey runs.
        surveyor: the survey function.
        isolation_level: which records are delivered.
        bounds: the requested offsets of each partition.
        narrow: returns the part to read of a partition that is listed again.
        chunk_bytes: the size of chunks: by default that of a task of the engine.
        progress: where to report the survey's progress.

    """
    chunk_bytes = chunk_bytes or target_bytes(size_of(listings), engine.parallelism)

    def plan(listing: PartitionListing, surveys: Sequence[str]) -> Planned:
        return plan_within(
            listing, surveys, isolation_level=isolation_level, bounds=bounds, chunk_bytes=chunk_bytes
        )

    plans = list(map(plan, listings, surveyor(listings, engine, progress)))
    for number, planned in enumerate(plans):
        for _ in range(ATTEMPTS):
            doubted = doubted_by_plan(planned.plan["problems"], map(json.loads, planned.surveys[-1:]))
            now = narrow(look_again(planned.listing, doubted))
            if now == planned.listing:
                break
            planned = plan(now, survey_again(planned, now, engine))
        plans[number] = planned
    return plans


def survey_again(planned: Planned, now: PartitionListing, engine: Engine) -> list[str]:
    """The surveys of a listing that is later than that of a plan: only of segments that have changed."""
    paths = (segment["path"] for segment in planned.listing["segments"])
    before = dict(zip(paths, planned.surveys, strict=True))
    return of_each_segment(
        planned.listing, planned.surveys, now, lambda changed: survey([changed], engine, before=before)[0]
    )


def plan_within(
    listing: PartitionListing,
    surveys: Sequence[str],
    *,
    isolation_level: IsolationLevel,
    bounds: Bounds,
    chunk_bytes: int,
) -> Planned:
    """Plans the requested offsets of a partition; for the arguments see `plan_partitions`."""
    planned = plan_surveyed(listing, surveys, isolation_level=isolation_level, chunk_bytes=chunk_bytes)
    offsets = bounds(planned)
    if offsets == (None, None):
        return planned
    return plan_surveyed(
        listing, surveys, isolation_level=isolation_level, offsets=offsets, chunk_bytes=chunk_bytes
    )


def plan_surveyed(
    listing: PartitionListing,
    surveys: Sequence[str],
    *,
    isolation_level: IsolationLevel,
    offsets: Range = (None, None),
    chunk_bytes: int,
) -> Planned:
    """Joins the surveys of a listing's segments into a plan, with chunks of at least `chunk_bytes`.

    A running cluster has told its offsets when it was listed, and has no surveys.
    """
    if is_live(listing):
        plan = plan_live(listing, isolation_level, offsets, chunk_bytes)
        return Planned(listing, (), json.dumps(plan))
    start, end = offsets
    text = _core.plan_partition(
        json.dumps(listing),
        surveys,
        isolation_level=isolation_level,
        start_offset=start,
        end_offset=end,
        chunk_bytes=chunk_bytes,
    )
    return Planned(listing, tuple(surveys), text)


def tasks_of(
    plans: Sequence[Planned], parallelism: int, tasks: int | None = None, most: int = LARGEST_TARGET
) -> list[Task]:
    """Groups the chunks of all plans into tasks of similar size, in order; see `target_bytes`."""
    chunks = [chunk for planned in plans for chunk in planned.plan["chunks"]]
    return tasks_of_chunks(chunks, parallelism, tasks, most)


def tasks_of_chunks(
    chunks: Sequence[Chunk], parallelism: int, tasks: int | None = None, most: int = LARGEST_TARGET
) -> list[Task]:
    """Groups neighbouring chunks into tasks of similar size; see `target_bytes`."""
    sizes = [size_of_chunk(chunk) for chunk in chunks]
    target = target_bytes(sum(sizes), parallelism, tasks, most)
    return [
        Task(number, tuple(json.dumps(chunk) for chunk in group), sum(map(size_of_chunk, group)))
        for number, group in enumerate(group_by_size(chunks, sizes, target))
    ]


def size_of_chunk(chunk: Chunk) -> int:
    """The bytes of a chunk."""
    return chunk["end"] - chunk["start"]


def task_name(verb: str, tasks: Sequence[Task]) -> str:
    """The name of a step in Spark's UI and the progress bar: `magicbyte decode: 12 tasks, 1.2 GiB`."""
    size = format_bytes(sum(task.size for task in tasks))
    return f"magicbyte {verb}: {count_of(len(tasks), 'task')}, {size}"


def count_of(number: int, noun: str, plural: str = "") -> str:
    """`1 task`, `2 tasks`."""
    return f"{number:,} {noun if number == 1 else plural or f'{noun}s'}"
