"""The stream of `magicbyte ingest --follow`: one commit of a table for all that is new, again and again.

look at the log -> what `ingest_table` does -> pause

There is no other checkpoint than the table's own commits, so a stream may end at any moment.
"""

from __future__ import annotations

import logging
import random
import threading
import time
from collections.abc import Iterator, Sequence

from magicbyte.errors import RefusedError
from magicbyte.jobs.find.choice import EVERYTHING, PartitionChoice
from magicbyte.jobs.find.live_listings import ChangedLogError
from magicbyte.jobs.ingest import IngestReport
from magicbyte.jobs.run.engines import Engine
from magicbyte.jobs.run.high_watermarks import waiting_message
from magicbyte.jobs.run.progress import NO_PROGRESS, Progress
from magicbyte.lake.divergence import DivergedError
from magicbyte.lake.growing import GrowingLog
from magicbyte.lake.ingest import ingest_table
from magicbyte.lake.losses import HOLE
from magicbyte.lake.table import TableTarget, UnsettledError
from magicbyte.options.ingest import FollowOptions, IngestOptions

__all__ = ["ingest_stream"]

_LOGGER = logging.getLogger("magicbyte.jobs")

_ATTEMPTS = 5
_PAUSE_SECONDS = 0.2
"""Before the second attempt, and twice as long before each further one: a broker renames files in less time,
and mounted file systems show changes late."""


_PASSING = (
    DivergedError,
    FileNotFoundError,
    UnsettledError,
    ChangedLogError,
    ConnectionError,
    TimeoutError,
)
"""Most likely a broker has just rolled or deleted a segment, another job has added records, or the leaders of
a running cluster change.
"""


def ingest_stream(
    sources: Sequence[str],
    target: TableTarget,
    engine: Engine,
    options: IngestOptions,
    progress: Progress = NO_PROGRESS,
    *,
    following: FollowOptions,
    choice: PartitionChoice = EVERYTHING,
    stop: threading.Event | None = None,
) -> Iterator[IngestReport]:
    """Adds what is new to a table at every look until `stop` is set; yields each commit's report,
    and before the first one a report of the table's holes, if there are any.

    Only segments that have changed are surveyed. A look that finds nothing new commits nothing, and one that
    meets a change of the log or another writer of the table is repeated. Records above a broker's high
    watermark wait, unless `following` says otherwise: a failover may replace them.

    Raises:
        RefusedError, JobError: as `ingest_table`, after several attempts if another one may help; so if
            records are lost, because their segments were deleted before they were read, or are missing or
            unreadable.
        FileNotFoundError: a directory or file is missing.
        ConnectionError, TimeoutError: a cluster cannot be read, after several attempts.

    """
    if options.repair:
        raise RefusedError("a repair is one run: a stream can go on after it")
    growing = GrowingLog(following.above_high_watermark)
    has_said = False
    failures = 0
    warned = False
    stop = stop or threading.Event()
    while not stop.is_set():
        started = time.monotonic()
        try:
            report = ingest_table(sources, target, engine, options, progress, choice=choice, growing=growing)
        except _PASSING:
            failures += 1
            if failures == _ATTEMPTS:
                raise
            _pause(random.uniform(1, 2) * _PAUSE_SECONDS * 2 ** (failures - 1), stop)
            continue
        failures = 0
        above = report["above_high_watermark"]
        waiting = {(one["topic"], one["partition"]): one["high_watermark"] for one in above}
        if waiting and not following.above_high_watermark and not warned:
            warned = True
            _LOGGER.warning("%s", waiting_message(waiting, "--above-high-watermark"))
        commit = report["commit"]
        # Holes of earlier jobs are said once, even if there is nothing to add.
        has_holes = commit is not None and any(problem["kind"] == HOLE for problem in commit["problems"])
        if commit is not None and (commit["job"] is not None or (has_holes and not has_said)):
            has_said = True
            yield report
        _pause(started + following.seconds - time.monotonic(), stop)


def _pause(seconds: float, stop: threading.Event) -> None:
    """In pieces: a signal that arrives just before a wait begins is handled when it ends."""
    end = time.monotonic() + seconds
    while (rest := end - time.monotonic()) > 0 and not stop.is_set():
        stop.wait(min(rest, 1))
