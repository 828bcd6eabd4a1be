"""Survey and fold: from listed partitions to the chunks that decode tasks read.

The survey runs in the engine's tasks and reads batch headers only; the fold (`plan_partition`) runs
in the driver and joins a partition's surveys in the order of offsets.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import cast

from magicbyte import _core
from magicbyte.jobs.engines import Engine, group_by_size
from magicbyte.model import Chunk, PartitionListing, PartitionPlan, Segment
from magicbyte.jobs.progress import NO_PROGRESS, Progress, format_bytes

__all__ = [
    "Bounds",
    "Planned",
    "Range",
    "Task",
    "all_offsets",
    "count_of",
    "fold",
    "plan_partitions",
    "survey",
    "task_name",
    "tasks_of",
    "tasks_of_chunks",
]

MIB = 1 << 20
_SMALLEST_TARGET = 4 * MIB
_LARGEST_TARGET = 128 * MIB
_TASKS_PER_SLOT = 3
"""More tasks than slots, so that a slow one at the end does not leave the other slots idle."""

Range = tuple[int | None, int | None]
"""First offset asked for, and the one behind the last; None: no limit."""


@dataclass(frozen=True)
class Planned:
    """One partition after the fold."""

    listing: PartitionListing
    surveys: tuple[str, ...]
    """Of the listing's segments, in their order: the core's JSON texts."""
    text: str
    """The plan as the core's JSON text."""

    @cached_property
    def plan(self) -> PartitionPlan:
        """The plan, parsed."""
        return cast(PartitionPlan, json.loads(self.text))


Bounds = Callable[[Planned], Range]
"""Given a partition's unlimited plan: which of its offsets are asked for."""


def all_offsets(_planned: Planned) -> Range:
    """Asks for the whole partition."""
    return None, None


@dataclass(frozen=True)
class Task:
    """What one decode task reads: chunks in the order of partitions and offsets."""

    number: int
    chunks: tuple[str, ...]
    """Each as the JSON text that `ChunkDecoder` takes."""
    size: int


def target_bytes(size: int, parallelism: int, tasks: int | None = None) -> int:
    """How many bytes a task should read: enough tasks for all slots, none of them tiny.

    `tasks` asks for about that many, however small they get.
    """
    if tasks:
        return max(1, min(_LARGEST_TARGET, size // tasks))
    share = size // (_TASKS_PER_SLOT * max(1, parallelism))
    return max(_SMALLEST_TARGET, min(_LARGEST_TARGET, share))


def _survey_segments(segments: list[Segment]) -> list[str]:
    return [_core.survey_segment(json.dumps(segment)) for segment in segments]


def survey(
    listings: Sequence[PartitionListing], engine: Engine, progress: Progress = NO_PROGRESS
) -> list[list[str]]:
    """Scans the headers of all segments; for each listing, the surveys of its segments."""
    segments = [segment for listing in listings for segment in listing["segments"]]
    sizes = [segment["size"] for segment in segments]
    target = target_bytes(sum(sizes), engine.parallelism)
    groups = group_by_size(segments, sizes, target)
    answers = engine.map(
        _survey_segments,
        groups,
        name=f"magicbyte survey: {count_of(len(segments), 'segment')}",
        sizes=[sum(segment["size"] for segment in group) for group in groups],
        progress=progress,
    )
    surveys: Iterator[str] = (text for answer in answers for text in answer)
    return [[next(surveys) for _ in listing["segments"]] for listing in listings]


def plan_partitions(
    listings: Sequence[PartitionListing],
    engine: Engine,
    *,
    isolation_level: str = "read_uncommitted",
    bounds: Bounds = all_offsets,
    tasks: int | None = None,
    chunk_bytes: int | None = None,
    progress: Progress = NO_PROGRESS,
) -> list[Planned]:
    """Surveys and folds; returns one plan a listing.

    Args:
        listings: the partitions; their files' sizes are pinned there.
        engine: where the survey runs.
        isolation_level: `read_uncommitted` or `read_committed`.
        bounds: which offsets of each partition are asked for.
        tasks: cut finely enough for about so many tasks.
        chunk_bytes: cut into pieces of this size, whatever the engine.
        progress: where to show how far the survey is.

    """
    size = sum(segment["size"] for listing in listings for segment in listing["segments"])
    chunk_bytes = chunk_bytes or target_bytes(size, engine.parallelism, tasks)

    plans = []
    for listing, surveys in zip(listings, survey(listings, engine, progress), strict=True):
        planned = fold(listing, surveys, isolation_level=isolation_level, chunk_bytes=chunk_bytes)
        asked = bounds(planned)
        if asked != (None, None):
            planned = fold(
                listing, surveys, isolation_level=isolation_level, asked=asked, chunk_bytes=chunk_bytes
            )
        plans.append(planned)
    return plans


def fold(
    listing: PartitionListing,
    surveys: Sequence[str],
    *,
    isolation_level: str,
    asked: Range = (None, None),
    chunk_bytes: int,
) -> Planned:
    """Joins the surveys of a listing's segments into a plan, its chunks at least `chunk_bytes` long."""
    start, end = asked
    text = _core.plan_partition(
        json.dumps(listing),
        surveys,
        isolation_level=isolation_level,
        start_offset=start,
        end_offset=end,
        chunk_bytes=chunk_bytes,
    )
    return Planned(listing, tuple(surveys), text)


def tasks_of(plans: Sequence[Planned], parallelism: int, tasks: int | None = None) -> list[Task]:
    """Groups the chunks of all plans into tasks of like size, in order."""
    return tasks_of_chunks([chunk for one in plans for chunk in one.plan["chunks"]], parallelism, tasks)


def tasks_of_chunks(chunks: Sequence[Chunk], parallelism: int, tasks: int | None = None) -> list[Task]:
    """Groups neighbouring chunks into tasks of like size."""
    sizes = [chunk["end"] - chunk["start"] for chunk in chunks]
    groups = group_by_size(chunks, sizes, target_bytes(sum(sizes), parallelism, tasks))
    return [
        Task(
            number,
            tuple(json.dumps(chunk) for chunk in group),
            sum(chunk["end"] - chunk["start"] for chunk in group),
        )
        for number, group in enumerate(groups)
    ]


def task_name(verb: str, tasks: Sequence[Task]) -> str:
    """What Spark's UI and the progress bar call a step: `magicbyte decode: 12 tasks, 1.2 GiB`."""
    size = format_bytes(sum(task.size for task in tasks))
    return f"magicbyte {verb}: {count_of(len(tasks), 'task')}, {size}"


def count_of(number: int, noun: str) -> str:
    """`1 task`, `2 tasks`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
