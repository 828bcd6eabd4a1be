"""Survey, plan and decode, one after the other or, for a store, at the same time.

The data that a survey reads from a store is kept for decoding, and most of the time is spent waiting for it.
So threads of this process decode the surveyed data while the rest is fetched.
"""

from __future__ import annotations

import json
import os
from collections import Counter, defaultdict
from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import groupby
from typing import Generic, TypeVar

from magicbyte.enums import IsolationLevel
from magicbyte.jobs.find.live_listings import refuse_changed
from magicbyte.jobs.run.accounting import by_plan
from magicbyte.jobs.run.arriving_tasks import ArrivingTask, ArrivingTasks
from magicbyte.jobs.run.engines import Engine, LocalEngine
from magicbyte.jobs.run.growing_plans import GrowingPlans
from magicbyte.jobs.run.live_chunks import lost_between
from magicbyte.jobs.run.moving import ATTEMPTS, doubted_by_results, look_again
from magicbyte.jobs.run.plan import (
    LARGEST_TARGET,
    MIB,
    Bounds,
    DecodeTask,
    Narrow,
    Planned,
    Surveyor,
    Task,
    all_offsets,
    count_of,
    everything_of,
    plan_partitions,
    plan_within,
    size_of,
    survey,
    survey_again,
    target_bytes,
    task_name,
    tasks_of,
    tasks_of_chunks,
)
from magicbyte.jobs.run.progress import NO_PROGRESS, Progress, format_bytes
from magicbyte.jobs.run.surveys_ahead import SurveysAhead
from magicbyte.listing import is_live
from magicbyte.model import ChunkResult, PartitionListing
from magicbyte.storage.location import are_fetched

__all__ = ["DecodeJob", "decode_partitions"]

R = TypeVar("R")

_PlanAgain = Callable[[Planned, Iterable[ChunkResult]], Planned | None]
"""Given a plan and the results of its chunks, returns a new plan if files with damage have changed since."""

_SMALL_TASK = 16 * MIB
_CHUNK_BYTES = 8 * MIB
_KEPT = 2048 * MIB
"""The limit for the bytes of all tasks that are decoded at a time: that of the kept ranges of a store."""


@dataclass(frozen=True)
class DecodeJob(Generic[R]):
    """The tasks of a job that decodes."""

    begin: Callable[[], Callable[[DecodeTask], R]]
    """Called before the first task, if there is one; returns the function of a task."""
    verb: str
    """Names the tasks."""
    accounts_of: Callable[[R], Iterable[str]] = lambda _: ()
    """The `ChunkResult` of each chunk of a task, as JSON text. Without this function, nothing is decoded
    again."""
    check: Callable[[Planned], None] = lambda _: None
    """Called with each plan, once it is there; may raise."""
    most_task_bytes: int = LARGEST_TARGET
    """The maximum number of bytes that a task reads."""
    writes_files: bool = True
    """False lets tasks that read from a store be small. The last tasks begin when everything has been
    fetched, so they end sooner; but files would be too small."""

    @cached_property
    def function(self) -> Callable[[DecodeTask], R]:
        """The function of a task; the job has begun."""
        return self.begin()


def decode_partitions(
    job: DecodeJob[R],
    listings: Sequence[PartitionListing],
    engine: Engine,
    *,
    surveyor: Surveyor | None = None,
    isolation_level: IsolationLevel = "read_uncommitted",
    bounds: Bounds = all_offsets,
    narrow: Narrow = everything_of,
    progress: Progress = NO_PROGRESS,
) -> tuple[list[Planned], list[R]]:
    """Plans the partitions, and runs tasks over all of their chunks.

    Where a broker has changed files before they were decoded, the partition is listed and planned again, and
    new tasks replace those with its chunks (`jobs.moving`).

    Args:
        job: the tasks.
        listings: the partitions, with the sizes of their files.
        engine: runs the tasks.
        surveyor: a replacement for `survey`, which runs before anything is decoded.
        isolation_level: which records are delivered.
        bounds: the requested offsets of each partition, by its name alone.
        narrow: see `plan_partitions`.
        progress: where to report progress.

    Returns: the plan of each listing, and the result of each task, in the order of all plans' chunks.

    """
    segments = [segment for listing in listings for segment in listing["segments"]]
    overlapping = engine.overlapping
    live = [listing for listing in listings if is_live(listing)]
    if surveyor is None and overlapping and not live and are_fetched(one["path"] for one in segments):
        return _decode_arriving(job, listings, overlapping, isolation_level, bounds, progress)
    chunk_bytes = target_bytes(size_of(listings), engine.parallelism)

    def plan(
        listings: Sequence[PartitionListing], surveyor: Surveyor, progress: Progress = NO_PROGRESS
    ) -> list[Planned]:
        return plan_partitions(
            listings,
            engine,
            surveyor=surveyor,
            isolation_level=isolation_level,
            bounds=bounds,
            narrow=narrow,
            chunk_bytes=chunk_bytes,
            progress=progress,
        )

    def plan_again(planned: Planned, results: Iterable[ChunkResult]) -> Planned | None:
        now = narrow(look_again(planned.listing, doubted_by_results(results)))
        if now == planned.listing:
            return None
        return plan([now], lambda now, *_: [survey_again(planned, one, engine) for one in now])[0]

    plans = plan(listings, surveyor or survey, progress)
    decoded = _decode_planned(job, plans, engine, plan_again, progress)
    refuse_changed(live)
    return _with_losses_between(job, plans, decoded) if live else plans, decoded


def _with_losses_between(job: DecodeJob[R], plans: list[Planned], decoded: Iterable[R]) -> list[Planned]:
    """The plans, those of running clusters with the losses that no task could name."""
    results = by_plan(plans, (text for one in decoded for text in job.accounts_of(one)))
    named = []
    for planned, own in zip(plans, results, strict=True):
        lost = lost_between(planned.plan, own) if is_live(planned.listing) else []
        plan = {**planned.plan, "problems": [*planned.plan["problems"], *lost]}
        named.append(replace(planned, text=json.dumps(plan)) if lost else planned)
    return named


def _decode_planned(
    job: DecodeJob[R],
    plans: list[Planned],
    engine: Engine,
    plan_again: _PlanAgain,
    progress: Progress,
) -> list[R]:
    """Decodes all chunks, and those of partitions that are planned again, whose plans it replaces."""
    for planned in plans:
        job.check(planned)
    decoded: list[tuple[Task, R]] = []
    number = 0
    for attempt in range(ATTEMPTS):
        decoded, tasks = _rest(plans, decoded, number, engine.parallelism, job.most_task_bytes)
        number += len(tasks)
        if tasks:
            results = engine.map(
                job.function,
                tasks,
                name=task_name(job.verb, tasks),
                sizes=[task.size for task in tasks],
                progress=progress,
            )
            decoded = _in_order(plans, [*decoded, *zip(tasks, results, strict=True)])
        if attempt + 1 == ATTEMPTS or not _replace_changed(job, plans, decoded, plan_again):
            break
    return [result for _, result in decoded]


def _rest(
    plans: Sequence[Planned], decoded: Sequence[tuple[Task, R]], number: int, parallelism: int, most: int
) -> tuple[list[tuple[Task, R]], list[Task]]:
    """Tasks whose chunks are all still planned, with their results, and new tasks for the other chunks."""
    if not decoded:
        return [], tasks_of(plans, parallelism, most=most)
    chunks = [chunk for one in plans for chunk in one.plan["chunks"]]
    texts = [json.dumps(chunk) for chunk in chunks]
    planned = set(texts)
    kept = [(task, result) for task, result in decoded if planned.issuperset(task.chunks)]
    done = {text for task, _ in kept for text in task.chunks}
    runs = groupby(zip(chunks, texts, strict=True), key=lambda one: one[1] in done)
    new = [
        task
        for is_done, run in runs
        if not is_done
        for task in tasks_of_chunks([chunk for chunk, _ in run], parallelism, most=most)
    ]
    return kept, [replace(task, number=number + index) for index, task in enumerate(new)]


def _in_order(plans: Sequence[Planned], decoded: Iterable[tuple[Task, R]]) -> list[tuple[Task, R]]:
    """Tasks in the order of the plans' chunks."""
    texts = (json.dumps(chunk) for planned in plans for chunk in planned.plan["chunks"])
    places = {text: place for place, text in enumerate(texts)}
    return sorted(decoded, key=lambda one: places[one[0].chunks[0]])


def _replace_changed(
    job: DecodeJob[R],
    plans: list[Planned],
    decoded: Sequence[tuple[Task, R]],
    plan_again: _PlanAgain,
) -> bool:
    """Replaces the plans of partitions with damage in files that have changed; False if there are none."""
    by_directory: dict[str, list[ChunkResult]] = defaultdict(list)
    for result in (json.loads(text) for _, results in decoded for text in job.accounts_of(results)):
        by_directory[os.path.dirname(result["path"])].append(result)
    is_changed = False
    for index, planned in enumerate(plans):
        directories = {os.path.dirname(segment["path"]) for segment in planned.listing["segments"]}
        results = [result for directory in directories for result in by_directory[directory]]
        if (again := plan_again(planned, results)) is not None:
            job.check(again)
            plans[index], is_changed = again, True
    return is_changed


def _decode_arriving(
    job: DecodeJob[R],
    listings: Sequence[PartitionListing],
    engine: LocalEngine,
    isolation_level: IsolationLevel,
    bounds: Bounds,
    progress: Progress,
) -> tuple[list[Planned], list[R]]:
    """Surveys, plans and decodes at the same time."""
    segments = [segment for listing in listings for segment in listing["segments"]]
    sizes = Counter[str]()
    for segment in segments:
        sizes[segment["topic"]] += segment["size"]
    target = target_bytes(sizes.total(), engine.parallelism, most=job.most_task_bytes)
    task_bytes = min(target, _KEPT // (engine.parallelism + 1)) if job.writes_files else _SMALL_TASK
    chunk_bytes = min(task_bytes, _CHUNK_BYTES)
    plan = partial(plan_within, isolation_level=isolation_level, bounds=bounds, chunk_bytes=chunk_bytes)
    plans = GrowingPlans(plan, job.check, isolation_level == "read_committed")

    def tasks() -> Generator[tuple[Callable[[DecodeTask], R], ArrivingTask]]:
        # One more than the threads that decode: while a segment begins or ends, the others are fetched.
        with SurveysAhead(segments, engine.parallelism + 1) as surveys:
            for task in ArrivingTasks(plans.chunks(listings, iter(surveys)), task_bytes, sizes):
                yield job.function, task

    results = engine.map_arriving(
        lambda item: item[0](item[1]),
        tasks(),
        name=f"magicbyte {job.verb}: {count_of(len(segments), 'segment')}, {format_bytes(sizes.total())}",
        size=sizes.total(),
        size_of=lambda item: item[1].size,
        progress=progress,
    )
    return plans.finished, results
