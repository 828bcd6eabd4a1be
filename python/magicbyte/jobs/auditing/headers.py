"""The headers of all batches in a database on disk, which joins them in bounded memory."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from magicbyte import _core
from magicbyte.errors import JobError, RefusedError
from magicbyte.jobs.run.engines import LocalEngine, group_by_size
from magicbyte.jobs.run.plan import Planned, count_of, size_of, target_bytes
from magicbyte.jobs.run.progress import NO_PROGRESS, Progress
from magicbyte.model import PartitionListing, Segment
from magicbyte.options.audit import AuditOptions

if TYPE_CHECKING:
    import duckdb

__all__ = ["HeaderTable", "open_headers"]

_ROWS = 1 << 16
"""The rows to insert at a time, of one segment or several."""
_BYTES_PER_THREAD = 64 << 20
"""DuckDB fails rather than spill if its threads share too little memory."""


@dataclass
class HeaderTable:
    """The table `headers` of a database: a row for each batch of magic 2 with data.

    The columns are those of `_core.BatchHeaders`, and the numbers of the topic, the log and the segment.
    """

    database: duckdb.DuckDBPyConnection
    topics: list[str] = field(default_factory=list)
    """The topics, by their numbers."""
    segments: list[Segment] = field(default_factory=list)
    """The segments, by their numbers."""
    logs: dict[str, int] = field(default_factory=dict)
    """The numbers of logs, by the paths of their directories."""
    batches: int = 0
    """All batches, those without a row included."""
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def survey(
        self, listings: Sequence[PartitionListing], engine: LocalEngine, progress: Progress = NO_PROGRESS
    ) -> list[list[str]]:
        """Adds the headers of all segments, and returns their surveys: see `plan.survey`."""
        self.topics = sorted({listing["topic"] for listing in listings})
        numbers = {topic: number for number, topic in enumerate(self.topics)}
        places: list[tuple[int, int, int]] = []
        for listing in listings:
            log = self.logs.setdefault(listing["path"], len(self.logs))
            for segment in listing["segments"]:
                places.append((numbers[listing["topic"]], log, len(self.segments)))
                self.segments.append(segment)
        sizes = [segment["size"] for segment in self.segments]
        target = target_bytes(size_of(listings), engine.parallelism)
        groups = list(group_by_size(places, sizes, target))
        found = engine.map(
            self._add_all,
            groups,
            name=f"magicbyte headers: {count_of(len(sizes), 'segment')}",
            sizes=[sum(sizes[segment] for _, _, segment in group) for group in groups],
            progress=progress,
        )
        surveys = (text for group in found for text in group)
        return [[next(surveys) for _ in listing["segments"]] for listing in listings]

    def drop_deleted(self, plans: Sequence[Planned]) -> None:
        """Removes the batches that end before their log's start, and those of segments outside the plan."""
        for planned in plans:
            log, start = self.logs[planned.listing["path"]], planned.plan["log_start_offset"]
            if start is not None:
                self.database.execute("DELETE FROM headers WHERE log = ? AND lastOffset < ?", [log, start])

    def _add_all(self, places: Sequence[tuple[int, int, int]]) -> list[str]:
        """Scans segments, in a task; returns their surveys."""
        surveys, waiting, rows = [], [], 0
        with self.database.cursor() as cursor:
            for place in places:
                headers = _core.BatchHeaders(json.dumps(self.segments[place[2]]))
                for columns in headers:
                    waiting.append(_with_place(pa.record_batch(columns), place))
                    rows += waiting[-1].num_rows
                    if rows >= _ROWS:
                        _insert(cursor, waiting)
                        waiting, rows = [], 0
                survey = headers.survey()
                assert survey is not None
                surveys.append(survey)
            if waiting:
                _insert(cursor, waiting)
        batches = sum(json.loads(survey)["batches"] for survey in surveys)
        with self._lock:
            self.batches += batches
        return surveys


def _with_place(rows: pa.RecordBatch, place: tuple[int, int, int]) -> pa.RecordBatch:
    columns = [pa.repeat(pa.scalar(number, pa.int32()), rows.num_rows) for number in place]
    return pa.record_batch([*columns, *rows.columns], names=["topic", "log", "segment", *rows.schema.names])


def _insert(cursor: duckdb.DuckDBPyConnection, waiting: list[pa.RecordBatch]) -> None:
    cursor.register("added", pa.Table.from_batches(waiting))
    try:
        cursor.execute("INSERT INTO headers SELECT * FROM added")
    finally:
        cursor.unregister("added")


_TABLE = """
CREATE TABLE headers (
    topic INTEGER, log INTEGER, segment INTEGER, position BIGINT, size INTEGER, baseOffset BIGINT,
    lastOffset BIGINT, count INTEGER, crc UINTEGER, attributes SMALLINT, baseTimestamp BIGINT,
    maxTimestamp BIGINT, producerId BIGINT, producerEpoch SMALLINT, baseSequence INTEGER,
    nextSequence INTEGER, follows BOOLEAN, followed BOOLEAN
)
"""


@contextmanager
def open_headers(options: AuditOptions, engine: LocalEngine) -> Iterator[HeaderTable]:
    """Opens an empty table in a private directory, which is removed afterwards.

    Raises:
        RefusedError: if there is no directory for it.
        JobError: if the joins need more memory than `memory_limit`, or the disk is full.

    """
    import duckdb

    if options.temp_directory is not None and not os.path.isdir(options.temp_directory):
        raise RefusedError(f"{options.temp_directory}: no such directory")
    with TemporaryDirectory(prefix="magicbyte-audit-", dir=options.temp_directory) as directory:
        threads = max(1, min(engine.parallelism, options.memory_limit // _BYTES_PER_THREAD))
        config: dict[str, Any] = {
            "threads": threads,
            "memory_limit": f"{options.memory_limit}B",
            "temp_directory": os.path.join(directory, "spilled"),
            "preserve_insertion_order": False,
            "autoinstall_known_extensions": False,
            "autoload_known_extensions": False,
            "allow_community_extensions": False,
            "python_enable_replacements": False,
        }
        try:
            with duckdb.connect(os.path.join(directory, "headers.duckdb"), config=config) as database:
                # It would be printed between the lines of a report.
                database.execute("SET enable_progress_bar = false")
                database.execute(_TABLE)
                yield HeaderTable(database)
        except duckdb.OutOfMemoryException:
            limit = options.memory_limit
            raise JobError(f"the joins need more memory than {limit} bytes: raise --memory-limit") from None
        except duckdb.IOException as error:
            raise JobError(f"the headers cannot be kept on disk: {str(error).splitlines()[0]}") from None
