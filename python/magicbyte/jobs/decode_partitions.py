"""Survey, plan and decode, one after the other or, for a store, at the same time.

What a survey reads of a store is kept for the decoding, and most of the time passes with waiting for it. So
threads of this process decode what has been surveyed while the rest is fetched.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from typing import TypeVar

from magicbyte import _core
from magicbyte.enums import IsolationLevel
from magicbyte.jobs.engines import Engine, LocalEngine
from magicbyte.jobs.plan import (
    MIB,
    Bounds,
    Planned,
    Task,
    all_offsets,
    count_of,
    plan_partitions,
    plan_within,
    target_bytes,
    task_name,
    tasks_of,
    tasks_of_size,
)
from magicbyte.jobs.progress import NO_PROGRESS, Progress, format_bytes
from magicbyte.model import Chunk, PartitionListing, Segment
from magicbyte.storage.paths import is_url

__all__ = ["SMALL_TASK", "decode_partitions"]

SMALL_TASK = 16 * MIB
"""The bytes of a task that writes no files, see `decode_partitions`."""

R = TypeVar("R")

_AHEAD_BYTES = 32 * MIB
"""How far the survey is ahead of the decoding: not so far that what is fetched always needs new space."""
_MOST_AHEAD_BYTES = 2048 * MIB
"""How far it is ahead while the decoding waits for it, so that no thread is idle: no further than ranges of a
store are kept (`src/log/storage/range_cache.rs`)."""
_CHUNK_BYTES = 8 * MIB
_PART_BYTES = 256 * MIB
"""How much of a partition is surveyed before its plan is looked at."""


def decode_partitions(
    function: Callable[[Task], R],
    listings: Sequence[PartitionListing],
    engine: Engine,
    *,
    verb: str,
    isolation_level: IsolationLevel = "read_uncommitted",
    bounds: Bounds = all_offsets,
    stored_task_bytes: int | None = None,
    progress: Progress = NO_PROGRESS,
) -> tuple[list[Planned], list[R]]:
    """Plans the partitions, and runs tasks over all of their chunks.

    Args:
        function: what a task does.
        listings: the partitions, with the sizes of their files.
        engine: where it runs.
        verb: what the tasks are called.
        isolation_level: which records are delivered.
        bounds: the requested offsets of each partition, by its name alone.
        stored_task_bytes: the most that a task reads of a store. The last ones begin when all of it has been
            fetched, so smaller ones end sooner; but those that write files should not write too small ones.
        progress: where to report progress.

    Returns: the plan of each listing, and the result of each task, in the order of all plans' chunks.

    """
    segments = [segment for listing in listings for segment in listing["segments"]]
    if isinstance(engine, LocalEngine) and any(is_url(segment["path"]) for segment in segments):
        size = sum(segment["size"] for segment in segments)
        task_bytes = stored_task_bytes or target_bytes(size, engine.parallelism)
        planner = _Planner(isolation_level, bounds, min(task_bytes, _CHUNK_BYTES))
        results = _decode_arriving(function, listings, engine, verb, planner, task_bytes, progress)
        return planner.plans, results
    plans = plan_partitions(
        listings, engine, isolation_level=isolation_level, bounds=bounds, progress=progress
    )
    tasks = tasks_of(plans, engine.parallelism)
    results = engine.map(
        function,
        tasks,
        name=task_name(verb, tasks),
        sizes=[task.size for task in tasks],
        progress=progress,
    )
    return plans, results


def _decode_arriving(
    function: Callable[[Task], R],
    listings: Sequence[PartitionListing],
    engine: LocalEngine,
    verb: str,
    planner: _Planner,
    task_bytes: int,
    progress: Progress,
) -> list[R]:
    segments = [segment for listing in listings for segment in listing["segments"]]
    size = sum(segment["size"] for segment in segments)
    # One more than threads that decode: while a segment begins or ends, the others are fetched.
    threads = engine.parallelism + 1
    with ThreadPoolExecutor(threads, thread_name_prefix="magicbyte-survey") as pool:
        surveys = _survey_ahead(segments, pool, threads)
        tasks = tasks_of_size(planner.chunks(listings, surveys), task_bytes)
        try:
            return engine.map_arriving(
                function,
                ((task, task.size) for task in tasks),
                name=f"magicbyte {verb}: {count_of(len(segments), 'segment')}, {format_bytes(size)}",
                size=size,
                progress=progress,
            )
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise


def _survey(segment: Segment) -> str:
    return _core.survey_segment(json.dumps(segment), to_decode=True)


def _survey_ahead(segments: Sequence[Segment], pool: ThreadPoolExecutor, threads: int) -> Iterator[str]:
    """The surveys of the segments, in order; the pool's threads make those of the next ones meanwhile."""
    rest = deque(segments)
    under_way: deque[tuple[int, Future[str]]] = deque()
    ahead = 0

    def begin() -> None:
        nonlocal ahead
        segment = rest.popleft()
        under_way.append((segment["size"], pool.submit(_survey, segment)))
        ahead += segment["size"]

    while rest or under_way:
        while rest and ahead < _AHEAD_BYTES:
            begin()
        size, first = under_way[0]
        while not first.done():
            running = [survey for _, survey in under_way if not survey.done()]
            if rest and len(running) < threads and ahead + rest[0]["size"] <= _MOST_AHEAD_BYTES:
                begin()
            else:
                wait(running, return_when=FIRST_COMPLETED)
        under_way.popleft()
        yield first.result()
        ahead -= size


@dataclass(frozen=True)
class _Planner:
    """Plans partitions as their surveys arrive."""

    isolation_level: IsolationLevel
    bounds: Bounds
    chunk_bytes: int
    plans: list[Planned] = field(default_factory=list)

    def chunks(self, listings: Sequence[PartitionListing], surveys: Iterator[str]) -> Iterator[Chunk]:
        """The chunks of all plans, in order."""
        for listing in listings:
            yield from self._chunks_of(listing, surveys)

    def _chunks_of(self, listing: PartitionListing, surveys: Iterator[str]) -> Iterator[Chunk]:
        found: list[str] = []
        given, surveyed = 0, 0
        for segment in listing["segments"]:
            found.append(next(surveys))
            surveyed += segment["size"]
            # A transaction may be aborted in any later segment.
            if surveyed >= _PART_BYTES and self.isolation_level == "read_uncommitted":
                final = self._final_chunks(listing, found)
                yield from final[given:]
                given, surveyed = len(final), 0
        planned = self._plan(listing, found)
        self.plans.append(planned)
        yield from planned.plan["chunks"][given:]

    def _final_chunks(self, listing: PartitionListing, surveys: Sequence[str]) -> list[Chunk]:
        """The first chunks of a plan, given its first surveys. How a segment ends, the next one tells."""
        begun: PartitionListing = {**listing, "segments": listing["segments"][: len(surveys)]}
        plan = self._plan(begun, surveys).plan
        last = plan["segments"][-1]["path"]
        return [chunk for chunk in plan["chunks"] if chunk["path"] != last]

    def _plan(self, listing: PartitionListing, surveys: Sequence[str]) -> Planned:
        return plan_within(
            listing,
            surveys,
            isolation_level=self.isolation_level,
            bounds=self.bounds,
            chunk_bytes=self.chunk_bytes,
        )
