"""The task of an ingest into a table: a function from chunks to data files and sums.

It runs in a thread or in a Spark executor, possibly more than once: each attempt writes files with names of
its own, and the driver commits those of one attempt.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from magicbyte import _core
from magicbyte.errors import JobError
from magicbyte.jobs.publish.parquet import ParquetFile, file_name
from magicbyte.jobs.publish.table_files import chunks_by_topic
from magicbyte.jobs.run.plan import DecodeTask, size_of_chunk
from magicbyte.jobs.run.reading import ReadOptions, Rows, decoded_problems, read_chunk
from magicbyte.jobs.run.sums import RecordSums
from magicbyte.lake.delta import DAY
from magicbyte.lake.growth import fitted
from magicbyte.lake.statistics import file_statistics
from magicbyte.lake.table import LakeFile
from magicbyte.model import Problem
from magicbyte.storage.destination import Destination
from magicbyte.storage.local_directory import LocalDirectory

__all__ = ["LakeWriteOptions", "Written", "write_rows", "write_task"]

_OPEN_FILES = 4
"""The maximum number of files that are open at a time: each holds a row group in memory."""
_MOST_FILES = 10_000
_MICROS_PER_DAY = 86_400_000_000
# 0001-01-01 and 9999-12-31.
_FIRST_DAY, _LAST_DAY = -719_162, 2_932_896
_FIRST_MICROS, _LAST_MICROS = _FIRST_DAY * _MICROS_PER_DAY, (_LAST_DAY + 1) * _MICROS_PER_DAY - 1


@dataclass(frozen=True)
class LakeWriteOptions:
    """Options for decoding and writing in a task."""

    read: ReadOptions
    data: Destination
    """The directory of the table's data files."""
    directory: str
    """The job's directory in `data`."""
    schema: pa.Schema
    """The schema of the files."""
    by_day: bool
    """True if each file has rows of one day."""
    codec: str
    bloom_filters: tuple[str, ...]
    file_size: int
    """The target size of a file in bytes."""


@dataclass(frozen=True)
class Written:
    """The result of one attempt at a task."""

    results: tuple[str, ...]
    """The ChunkResult of each chunk, in the task's order, as JSON text."""
    files: tuple[LakeFile, ...]
    sums: RecordSums
    problems: tuple[Problem, ...]
    """The first `LISTED`."""
    problems_left_out: int


def write_task(task: DecodeTask, options: LakeWriteOptions) -> Written:
    """Decodes the chunks of a task and writes their rows as Parquet, in files of one topic each."""
    with _local(options) as (local, finished):
        return _write(task, local, finished)


def write_rows(topic: str, batches: Iterable[pa.RecordBatch], options: LakeWriteOptions) -> list[LakeFile]:
    """Writes rows of one topic that are in the table already, with all of its columns."""
    with _local(options) as (local, finished), _TopicFiles(topic, 0, local, finished) as files:
        for batch in batches:
            files.write(batch.drop_columns([DAY]) if DAY in batch.schema.names else batch)
            files.roll(math.inf)
        return files.close()


@contextmanager
def _local(options: LakeWriteOptions) -> Iterator[tuple[LakeWriteOptions, Callable[[str], None]]]:
    """Options to write to local files, and a function to call with the name of each."""
    with options.data.written_locally(options.file_size) as (directory, finished):
        yield replace(options, data=LocalDirectory(directory)), finished


def _write(task: DecodeTask, options: LakeWriteOptions, finished: Callable[[str], None]) -> Written:
    results: list[str] = []
    files: list[LakeFile] = []
    problems: list[Problem] = []
    left_out = 0
    sums = RecordSums()
    for topic, chunks in chunks_by_topic(task):
        read = 0
        with _TopicFiles(topic, task.number, options, finished) as written:
            for place, chunk in chunks:
                written.roll((task.size_of(topic) - read) / max(1, read))
                read += size_of_chunk(place)
                for item in read_chunk(chunk, options.read):
                    if not isinstance(item, Rows):
                        results.append(item)
                    elif item.table == "records":
                        sums.add_all([item.sums])
                        written.write(item.batch)
                    else:
                        room = _core.LISTED - len(problems)
                        problems += decoded_problems(item.batch.slice(0, room))
                        left_out += max(0, item.batch.num_rows - room)
            files += written.close()
    return Written(tuple(results), tuple(files), sums, tuple(problems), left_out)


class _Share(NamedTuple):
    """Properties that the rows of one file have in common."""

    day: int | None
    """Days since 1970 (UTC), if the table is partitioned by day; None for rows without a day."""
    is_dated: bool
    """True if the years are 1 to 9999: Python's libraries cannot read statistics of other years."""


class _TopicFiles:
    """The files of one attempt for one topic: one at a time for each share of the rows."""

    def __init__(
        self, topic: str, number: int, options: LakeWriteOptions, finished: Callable[[str], None]
    ) -> None:
        self._topic = topic
        self._number = number
        self._options = options
        self._finished = finished
        self._open: dict[_Share, tuple[str, ParquetFile]] = {}
        """The open files, with the one written to last at the end."""
        self._done: list[LakeFile] = []

    def write(self, batch: pa.RecordBatch) -> None:
        for share, rows in _shares(batch, by_day=self._options.by_day):
            if DAY in self._options.schema.names:
                rows = rows.append_column(DAY, pa.repeat(_date(share.day), rows.num_rows))
            elif self._options.by_day and not share.is_dated:
                place = f"{self._topic}-{rows.column('partition')[0]}, offset {rows.column('offset')[0]}"
                raise JobError(
                    f"{place}: the year of the timestamp is not in 1 to 9999, so it has no day: "
                    "partition the table by topic alone"
                )
            self._file(share).write(fitted(rows, self._options.schema))

    def roll(self, left: float) -> None:
        """Ends files that are large enough, unless the next file would be less than half as large.

        `left` is the size of the remaining input, relative to the input that was read.
        """
        sizes = {share: self._size(path) for share, (path, _) in self._open.items()}
        written = sum(sizes.values()) + sum(file.size for file in self._done)
        for share, size in sizes.items():
            if size >= self._options.file_size and 2 * written * left >= self._options.file_size:
                self._finish(share)

    def _size(self, path: str) -> int:
        """The bytes of a file that have been written; a row group may be in memory."""
        local = os.path.join(self._options.data.path, path)
        return os.path.getsize(local) if os.path.exists(local) else 0

    def _file(self, share: _Share) -> ParquetFile:
        if share not in self._open:
            if len(self._open) == _OPEN_FILES:
                self._finish(next(iter(self._open)))
            self._open[share] = self._create(share)
        self._open[share] = self._open.pop(share)
        return self._open[share][1]

    def _create(self, share: _Share) -> tuple[str, ParquetFile]:
        if len(self._done) >= _MOST_FILES:
            raise JobError(
                f"{self._topic}: the timestamps change from day to day so often that a task would write more "
                f"than {_MOST_FILES:,} files: partition the table by topic alone"
            )
        options = self._options
        name = file_name(f"{self._number:05d}", options.codec, self._topic)
        path = os.path.join(options.directory, name)
        file = ParquetFile(
            os.path.join(options.data.path, path),
            options.schema,
            options.codec,
            options.bloom_filters,
            without_statistics=() if share.is_dated else ("timestamp",),
        )
        return path, file

    def _finish(self, share: _Share) -> None:
        path, file = self._open[share]
        size = file.close()
        del self._open[share]
        day = None if share.day is None else str(pc.strftime(_date(share.day), "%Y-%m-%d"))
        statistics = file_statistics(os.path.join(self._options.data.path, path))
        self._done.append(LakeFile(path, self._topic, day, file.rows, size, statistics))
        self._finished(path)

    def close(self) -> list[LakeFile]:
        for share in list(self._open):
            self._finish(share)
        return self._done

    def __enter__(self) -> _TopicFiles:
        return self

    def __exit__(self, *_: object) -> None:
        for _path, file in self._open.values():
            file.release()


def _date(day: int | None) -> pa.Scalar:
    return pa.scalar(day, pa.int32()).cast(pa.date32())


def _shares(batch: pa.RecordBatch, *, by_day: bool) -> Iterator[tuple[_Share, pa.RecordBatch]]:
    micros = batch.column("timestamp").cast(pa.int64())
    least, most = pc.min_max(micros).as_py().values()
    if least is not None and (least < _FIRST_MICROS or most > _LAST_MICROS):
        dated = pc.and_(pc.greater_equal(micros, _FIRST_MICROS), pc.less_equal(micros, _LAST_MICROS))
        is_dated = pc.fill_null(dated, True)
        if (undated := batch.filter(pc.invert(is_dated))).num_rows:
            yield _Share(None, is_dated=False), undated
        batch, micros = batch.filter(is_dated), micros.filter(is_dated)
    if not by_day:
        if batch.num_rows:
            yield _Share(None, is_dated=True), batch
        return
    # Shifted, so that the division, which truncates, rounds down.
    days = pc.subtract(pc.divide(pc.subtract(micros, _FIRST_MICROS), _MICROS_PER_DAY), -_FIRST_DAY)
    for day in pc.unique(days).to_pylist():
        of_day = pc.is_null(days) if day is None else pc.equal(days, day)
        yield _Share(day, is_dated=True), batch.filter(of_day)
