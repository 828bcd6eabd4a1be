"""Survey, plan and decode, one after the other or, for a store, at the same time.

The data that a survey reads from a store is kept for decoding, and most of the time is spent waiting for it.
So threads of this process decode the surveyed data while the rest is fetched.
"""

from __future__ import annotations

import json
import os
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import groupby
from typing import TypeVar

from magicbyte import _core
from magicbyte.enums import IsolationLevel
from magicbyte.errors import JobError
from magicbyte.jobs.run.arriving_tasks import ArrivingTask, ArrivingTasks
from magicbyte.jobs.run.engines import Engine, LocalEngine
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
    survey,
    survey_again,
    target_bytes,
    task_name,
    tasks_of,
    tasks_of_chunks,
)
from magicbyte.jobs.run.progress import NO_PROGRESS, Progress, format_bytes
from magicbyte.jobs.run.surveys_ahead import PART_BYTES, Surveyed, SurveysAhead
from magicbyte.model import Chunk, ChunkResult, PartitionListing, PlanSegment
from magicbyte.storage.paths import is_url

__all__ = ["SMALL_TASK", "decode_partitions"]

SMALL_TASK = 16 * MIB
"""The bytes of a task that writes no files; see `decode_partitions`."""

R = TypeVar("R")

_CHUNK_BYTES = 8 * MIB
_KEPT = 2048 * MIB
"""The limit for the bytes of all tasks that are decoded at a time: that of the kept ranges of a store."""


def decode_partitions(
    begin: Callable[[], Callable[[DecodeTask], R]],
    listings: Sequence[PartitionListing],
    engine: Engine,
    *,
    verb: str,
    accounts_of: Callable[[R], Iterable[str]] = lambda _: (),
    surveyor: Surveyor = survey,
    isolation_level: IsolationLevel = "read_uncommitted",
    bounds: Bounds = all_offsets,
    narrow: Narrow = everything_of,
    check: Callable[[Planned], None] = lambda _: None,
    most_task_bytes: int = LARGEST_TARGET,
    stored_task_bytes: int | None = None,
    progress: Progress = NO_PROGRESS,
) -> tuple[list[Planned], list[R]]:
    """Plans the partitions, and runs tasks over all of their chunks.

    Where a broker has changed files before they were decoded, the partition is listed and planned again, and
    new tasks replace those with its chunks (`jobs.moving`).

    Args:
        begin: called before the first task, if there is one; returns the function of a task.
        listings: the partitions, with the sizes of their files.
        engine: runs the tasks.
        verb: names the tasks.
        accounts_of: the `ChunkResult` of each chunk of a task, as JSON text. Without this function,
            nothing is decoded again.
        surveyor: the survey function. Any function other than `survey` runs before anything is decoded.
        isolation_level: which records are delivered.
        bounds: the requested offsets of each partition, by its name alone.
        narrow: see `plan_partitions`.
        check: called with each plan, once it is there; may raise.
        most_task_bytes: the maximum number of bytes that a task reads.
        stored_task_bytes: the maximum number of bytes that a task reads from a store. The last tasks begin
            when everything has been fetched, so smaller tasks end sooner. But tasks that write files should
            not write files that are too small.
        progress: where to report progress.

    Returns: the plan of each listing, and the result of each task, in the order of all plans' chunks.

    """
    segments = [segment for listing in listings for segment in listing["segments"]]
    if (
        isinstance(engine, LocalEngine)
        and surveyor is survey
        and any(is_url(segment["path"]) for segment in segments)
    ):
        size = sum(segment["size"] for segment in segments)
        task_bytes = stored_task_bytes or min(
            target_bytes(size, engine.parallelism, most=most_task_bytes), _KEPT // (engine.parallelism + 1)
        )
        planner = _Planner(isolation_level, bounds, check, min(task_bytes, _CHUNK_BYTES))
        stored = _decode_arriving(begin, listings, engine, verb, planner, task_bytes, progress)
        return planner.plans, stored
    chunk_bytes = target_bytes(sum(segment["size"] for segment in segments), engine.parallelism)
    plans = plan_partitions(
        listings,
        engine,
        surveyor=surveyor,
        isolation_level=isolation_level,
        bounds=bounds,
        narrow=narrow,
        chunk_bytes=chunk_bytes,
        progress=progress,
    )
    for planned in plans:
        check(planned)
    decoded: list[tuple[Task, R]] = []
    function: Callable[[DecodeTask], R] | None = None
    number = 0
    for attempt in range(ATTEMPTS):
        kept, tasks = _rest(plans, decoded, number, engine.parallelism, most_task_bytes)
        number += len(tasks)
        if tasks:
            function = function or begin()
            results = engine.map(
                function,
                tasks,
                name=task_name(verb, tasks),
                sizes=[task.size for task in tasks],
                progress=progress,
            )
            decoded = _in_order(plans, [*kept, *zip(tasks, results, strict=True)])
        else:
            decoded = kept
        if attempt + 1 == ATTEMPTS:
            break
        accounts = (json.loads(text) for _, result in decoded for text in accounts_of(result))
        again = _planned_again(plans, accounts, engine, isolation_level, bounds, narrow, chunk_bytes)
        if not again:
            break
        for index, planned in again.items():
            check(planned)
            plans[index] = planned
    return plans, [result for _, result in decoded]


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
    texts = (json.dumps(chunk) for one in plans for chunk in one.plan["chunks"])
    places = {text: place for place, text in enumerate(texts)}
    return sorted(decoded, key=lambda one: places[one[0].chunks[0]])


def _planned_again(
    plans: Sequence[Planned],
    accounts: Iterable[ChunkResult],
    engine: Engine,
    isolation_level: IsolationLevel,
    bounds: Bounds,
    narrow: Narrow,
    chunk_bytes: int,
) -> dict[int, Planned]:
    """New plans for partitions with damage in files that have changed since they were listed, by place."""
    by_directory: dict[str, list[ChunkResult]] = defaultdict(list)
    for one in accounts:
        by_directory[os.path.dirname(one["path"])].append(one)
    again = {}
    for index, planned in enumerate(plans):
        directories = {os.path.dirname(one["path"]) for one in planned.listing["segments"]}
        results = [one for directory in directories for one in by_directory[directory]]
        now = narrow(look_again(planned.listing, doubted_by_results(results)))
        if now != planned.listing:
            (again[index],) = plan_partitions(
                [now],
                engine,
                surveyor=partial(_survey_changed, planned),
                isolation_level=isolation_level,
                bounds=bounds,
                narrow=narrow,
                chunk_bytes=chunk_bytes,
            )
    return again


def _survey_changed(
    before: Planned, listings: Sequence[PartitionListing], engine: Engine, _: Progress
) -> list[list[str]]:
    return [survey_again(before, one, engine) for one in listings]


def _decode_arriving(
    begin: Callable[[], Callable[[DecodeTask], R]],
    listings: Sequence[PartitionListing],
    engine: LocalEngine,
    verb: str,
    planner: _Planner,
    task_bytes: int,
    progress: Progress,
) -> list[R]:
    segments = [segment for listing in listings for segment in listing["segments"]]
    sizes = Counter[str]()
    for segment in segments:
        sizes[segment["topic"]] += segment["size"]

    def tasks() -> Iterator[tuple[Callable[[DecodeTask], R], ArrivingTask]]:
        function = None
        for task in ArrivingTasks(planner.chunks(listings, iter(surveys)), task_bytes, sizes):
            function = function or begin()
            yield function, task

    # One more than the threads that decode: while a segment begins or ends, the others are fetched.
    with SurveysAhead(segments, engine.parallelism + 1) as surveys:
        return engine.map_arriving(
            lambda item: item[0](item[1]),
            tasks(),
            name=f"magicbyte {verb}: {count_of(len(segments), 'segment')}, {format_bytes(sizes.total())}",
            size=sizes.total(),
            size_of=lambda item: item[1].size,
            stop=surveys.stop,
            progress=progress,
        )


@dataclass(frozen=True)
class _Planner:
    """Plans partitions as their surveys arrive."""

    isolation_level: IsolationLevel
    bounds: Bounds
    check: Callable[[Planned], None]
    chunk_bytes: int
    plans: list[Planned] = field(default_factory=list)

    def chunks(self, listings: Sequence[PartitionListing], surveys: Iterator[Surveyed]) -> Iterator[Chunk]:
        """The chunks of all plans, in order."""
        for listing in listings:
            yield from self._chunks_of(listing, surveys)

    def _chunks_of(self, listing: PartitionListing, surveys: Iterator[Surveyed]) -> Iterator[Chunk]:
        found: list[str] = []
        growing = _GrowingPlan(listing, self)
        given: list[Chunk] = []
        new_bytes = 0
        # The order is unknown until all segments are surveyed if files have the names of other files.
        is_in_order = _core.is_in_name_order(json.dumps(listing))
        while len(found) < len(listing["segments"]):
            surveyed = next(surveys)
            new_bytes += surveyed.size
            # A transaction may be aborted in any later segment.
            if new_bytes >= PART_BYTES and self.isolation_level == "read_uncommitted" and is_in_order:
                chunks = growing.new_chunks([*found, surveyed.text])
                yield from chunks
                given, new_bytes = [*given, *chunks], 0
            if surveyed.is_whole:
                found.append(surveyed.text)
        planned = self.plan(listing, found)
        self.check(planned)
        self.plans.append(planned)
        first = [_place(chunk) for chunk in planned.plan["chunks"][: len(given)]]
        if first != [_place(chunk) for chunk in given]:
            raise JobError(
                f"{listing['path']}: segments overlap, which showed only at their ends: copy the"
                " partition to a local disk, and read it there"
            )
        yield from planned.plan["chunks"][len(given) :]

    def plan(self, listing: PartitionListing, surveys: Sequence[str]) -> Planned:
        """Plans a partition."""
        return plan_within(
            listing,
            surveys,
            isolation_level=self.isolation_level,
            bounds=self.bounds,
            chunk_bytes=self.chunk_bytes,
        )


class _GrowingPlan:
    """The plan of a partition while its segments are surveyed, one after the other."""

    def __init__(self, listing: PartitionListing, planner: _Planner) -> None:
        self._listing = listing
        self._planner = planner
        self._first = 0
        """The first segment that is still planned. All chunks of earlier segments have been returned."""
        self._given = 0
        """The number of chunks of the other segments that have been returned."""

    def new_chunks(self, surveys: Sequence[str]) -> list[Chunk]:
        """The next final chunks, given the first surveys; the last survey may cover a part of its segment."""
        segments = self._listing["segments"][self._first : len(surveys)]
        begun: PartitionListing = {**self._listing, "segments": segments, "ignored": [], "problems": []}
        plan = self._planner.plan(begun, surveys[self._first :]).plan
        if not plan["segments"]:
            return []
        # The next segment determines the end of a segment.
        last = plan["segments"][-1]
        end = last["path"], last["size"]
        final = [chunk for chunk in plan["chunks"] if (chunk["path"], chunk["end"]) != end]
        new = final[self._given :]
        self._given = len(final)
        self._forget([one["path"] for one in plan["segments"] if _has_offsets(one)], final)
        return new

    def _forget(self, known: Sequence[str], final: Sequence[Chunk]) -> None:
        """Stops planning segments that do not matter for the last one, before the one that it continues."""
        segments = self._listing["segments"]
        while len(known) > 1 and segments[self._first]["path"] != known[-2]:
            path = segments[self._first]["path"]
            self._given -= sum(chunk["path"] == path for chunk in final)
            self._first += 1


def _place(chunk: Chunk) -> tuple[str, int, int, int | None]:
    return chunk["path"], chunk["start"], chunk["end"], chunk["start_offset"]


def _has_offsets(segment: PlanSegment) -> bool:
    """True if the next segment continues the offsets of this one."""
    return segment["last_offset"] is not None and not segment["is_checkpoint"]
