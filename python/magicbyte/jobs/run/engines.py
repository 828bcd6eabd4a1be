"""Engines, which run the tasks of a job: threads of this process, or Spark.

A task is a plain function of its argument, so every engine gives the same result. Spark may run a task
more than once (a retry, a speculative attempt), but returns the result of only one attempt.
"""

from __future__ import annotations

import errno
import os
import threading
import uuid
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar, cast

from magicbyte.errors import Error, JobError
from magicbyte.jobs.run.progress import NO_PROGRESS, Progress, Step
from magicbyte.storage.encryption_keys import EncryptionKey, add_keys, known_keys
from magicbyte.storage.mounts import Mount, mounted, remount

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

__all__ = ["Engine", "LocalEngine", "SparkEngine", "group_by_size"]

T = TypeVar("T")
R = TypeVar("R")

_POLL_SECONDS = 0.2
_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EROFS}
_STAGE_NAME = "callSite.short"


class Engine(Protocol):
    """Runs a function over items, in parallel."""

    @property
    def parallelism(self) -> int:
        """The number of tasks that run at the same time."""

    @property
    def overlapping(self) -> LocalEngine | None:
        """The engine itself if its tasks run in this process, and may wait for other threads of it."""

    def map(
        self,
        function: Callable[[T], R],
        items: Sequence[T],
        *,
        name: str,
        sizes: Sequence[int],
        progress: Progress = NO_PROGRESS,
    ) -> list[R]:
        """Applies `function` to each item, one task per item. Results are in the order of the items.

        `name` describes the tasks, `sizes` are the bytes that each item stands for. The first failure is
        raised; tasks that are already running may finish first.
        """


def _available_cores() -> int:
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on Linux
        return os.cpu_count() or 1


class LocalEngine:
    """Threads of this process: the core releases the GIL while it decodes."""

    def __init__(self, threads: int | None = None) -> None:
        self._threads = threads or _available_cores()

    @property
    def parallelism(self) -> int:
        """See `Engine.parallelism`."""
        return self._threads

    @property
    def overlapping(self) -> LocalEngine:
        """See `Engine.overlapping`."""
        return self

    def map(
        self,
        function: Callable[[T], R],
        items: Sequence[T],
        *,
        name: str,
        sizes: Sequence[int],
        progress: Progress = NO_PROGRESS,
    ) -> list[R]:
        """See `Engine.map`."""
        return self.map_arriving(
            lambda number: function(items[number]),
            (number for number in range(len(items))),
            name=name,
            size=sum(sizes),
            size_of=sizes.__getitem__,
            ahead=1,
            progress=progress,
        )

    def map_arriving(
        self,
        function: Callable[[T], R],
        items: Generator[T],
        *,
        name: str,
        size: int,
        size_of: Callable[[T], int],
        ahead: int = 0,
        progress: Progress = NO_PROGRESS,
    ) -> list[R]:
        """Like `map`, with items that are produced while the tasks run.

        Args:
            function: the function of a task.
            items: an item for each task; closed after a failure, so that tasks that wait for what it produces
                can stop waiting.
            name: describes the tasks.
            size: the bytes of all items.
            size_of: the bytes of an item whose task has ended.
            ahead: the number of items to take before there is a thread for them.
            progress: where to report progress.

        """
        results: list[Future[R]] = []
        running: dict[Future[R], T] = {}
        finished = 0

        def finish() -> None:
            nonlocal finished
            done, _ = wait(running, return_when=FIRST_COMPLETED)
            for future in done:
                future.result()
                finished += size_of(running.pop(future))
                step.done(finished)

        # The items end before the pool does: those that wait for surveys must not start more of them.
        with (
            progress.step(name, size) as step,
            ThreadPoolExecutor(self._threads, thread_name_prefix="magicbyte") as pool,
            closing(items),
        ):
            try:
                for item in items:
                    future = pool.submit(function, item)
                    results.append(future)
                    running[future] = item
                    while len(running) >= self._threads + ahead:
                        finish()
                while running:
                    finish()
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                raise
        return [future.result() for future in results]


class SparkEngine:
    """Tasks of a Spark session, on a cluster or embedded in this process (`local[*]`)."""

    overlapping = None

    def __init__(self, session: SparkSession | Callable[[], SparkSession]) -> None:
        """Takes a session, or a function that starts one when the engine is first used."""
        self._session = session

    @cached_property
    def _context(self) -> SparkContext:
        return (self._session() if callable(self._session) else self._session).sparkContext

    @property
    def parallelism(self) -> int:
        """See `Engine.parallelism`: the cores of the session's executors, unless configured otherwise."""
        return self._context.defaultParallelism

    def map(
        self,
        function: Callable[[T], R],
        items: Sequence[T],
        *,
        name: str,
        sizes: Sequence[int],
        progress: Progress = NO_PROGRESS,
    ) -> list[R]:
        """See `Engine.map`. Spark's UI shows `name` as the description of the job and as its stage."""
        if not items:
            return []
        group = f"magicbyte-{uuid.uuid4().hex}"
        self._context.setJobGroup(group, name)
        self._context.setLocalProperty(_STAGE_NAME, name)
        try:
            with (
                progress.step(name, sum(sizes)) as step,
                _polling(self._context, group, sum(sizes), step, progress.visible),
            ):
                rdd = self._context.parallelize(items, numSlices=len(items)).map(
                    _Catching(function, mounted(), known_keys())
                )
                # `collect` would name the stage after this line.
                results = self._context.runJob(rdd, list)
        finally:
            # The session may be the caller's: do not label jobs that are not ours.
            for key in ("spark.jobGroup.id", "spark.job.description", _STAGE_NAME):
                self._context.setLocalProperty(key, None)  # type: ignore[arg-type]
        for result in results:
            if isinstance(result, _Failed):
                raise result.error
        return cast(list[R], results)


@dataclass(frozen=True)
class _Failed:
    error: Exception


@dataclass(frozen=True)
class _Catching(Generic[T, R]):
    """Returns errors caused by the input or a full disk as results.

    Spark would retry the task, and then wrap the error in a long message.
    """

    function: Callable[[T], R]
    mounts: tuple[Mount, ...]
    """The stores that the driver reads from."""
    keys: tuple[EncryptionKey, ...]

    def __call__(self, item: T) -> R | _Failed:
        try:
            remount(self.mounts)
            add_keys(self.keys)
            return self.function(item)
        except (Error, JobError) as error:
            return _Failed(error)
        except OSError as error:
            if error.errno not in _FULL:
                raise
            return _Failed(JobError(str(error)))


@contextmanager
def _polling(context: SparkContext, group: str, size: int, step: Step, visible: bool) -> Iterator[None]:
    """Reports the progress of a group of jobs to `step`, from Spark's count of finished tasks."""
    if not visible:
        yield
        return
    stop = threading.Event()
    poller = threading.Thread(target=_poll, args=(context, group, size, step, stop), daemon=True)
    poller.start()
    try:
        yield
    finally:
        stop.set()
        poller.join()


def _poll(context: SparkContext, group: str, size: int, step: Step, stop: threading.Event) -> None:
    tracker = context.statusTracker()
    while not stop.wait(_POLL_SECONDS):
        jobs = [tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup(group)]
        stages = [tracker.getStageInfo(stage) for job in jobs if job for stage in job.stageIds]
        tasks = sum(stage.numTasks for stage in stages if stage)
        if tasks:
            step.done(size * sum(stage.numCompletedTasks for stage in stages if stage) // tasks)


def group_by_size(items: Iterable[T], sizes: Iterable[int], target: int) -> Iterator[list[T]]:
    """Groups neighbours of up to `target` bytes together, so that tiny segments do not get a task each."""
    group: list[T] = []
    filled = 0
    for item, size in zip(items, sizes, strict=True):
        if group and filled + size > target:
            yield group
            group, filled = [], 0
        group.append(item)
        filled += size
    if group:
        yield group
