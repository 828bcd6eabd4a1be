"""The decode task of `ingest`: a function from chunks and options to files and their manifest rows.

It runs in a thread or in a Spark executor, possibly more than once for the same task: each attempt writes
files with names of its own and returns them to the driver, which commits those of one attempt.
"""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from types import TracebackType

from magicbyte.jobs.parquet import DataFile, ParquetFile, directory_of, file_schema
from magicbyte.jobs.plan import Task
from magicbyte.jobs.reading import ReadOptions, Rows, read_chunk, table_schema

__all__ = ["Decoded", "WriteOptions", "decode_task"]


@dataclass(frozen=True)
class WriteOptions:
    """How a task decodes, and where it writes."""

    read: ReadOptions
    staging: str
    """The directory of the files before the commit, on the file system of the output."""
    codec: str = "snappy"
    """Parquet compression, one of `parquet.CODECS`."""


@dataclass(frozen=True)
class Decoded:
    """The result of one attempt at a task."""

    results: tuple[str, ...]
    """The ChunkResult of each chunk, in the task's order, as JSON text."""
    files: tuple[DataFile, ...]


def decode_task(task: Task, options: WriteOptions) -> Decoded:
    """Decodes the chunks of a task and writes their rows as Parquet, one file per partition and table.

    Rows are written as they arrive: memory stays below one row group per table, whatever the task's size.
    """
    name = f"part-{task.number:05d}-{uuid.uuid4().hex[:12]}.{options.codec}.parquet"
    results: list[str] = []
    files: list[DataFile] = []
    for (topic, partition), chunks in groupby(task.chunks, _partition_of):
        with _PartitionFiles(topic, partition, name, options) as tables:
            for chunk in chunks:
                for item in read_chunk(chunk, options.read):
                    if isinstance(item, Rows):
                        tables.write(item)
                    else:
                        results.append(item)
            files.extend(tables.close())
    return Decoded(tuple(results), tuple(files))


def _partition_of(chunk: str) -> tuple[str, int]:
    fields = json.loads(chunk)
    return fields["topic"], fields["partition"]


class _PartitionFiles:
    """The files of one attempt for one partition: one per table, opened at its first row."""

    def __init__(self, topic: str, partition: int, name: str, options: WriteOptions) -> None:
        self._topic = topic
        self._partition = partition
        self._name = name
        self._options = options
        self._open: dict[str, ParquetFile] = {}

    def write(self, rows: Rows) -> None:
        if rows.batch.num_rows == 0:
            return
        if rows.table not in self._open:
            columns = self._options.read.columns if rows.table == "records" else None
            schema = file_schema(table_schema(rows.table, columns))
            self._open[rows.table] = ParquetFile(self._path(rows.table), schema, self._options.codec)
        self._open[rows.table].write(rows.batch)

    def _path(self, table: str) -> str:
        directory = directory_of(table, self._topic, self._partition)
        return os.path.join(self._options.staging, directory, self._name)

    def close(self) -> Iterator[DataFile]:
        for table, file in self._open.items():
            size = file.close()
            path = self._path(table)
            yield DataFile(table, self._topic, self._partition, path, self._name, file.rows, size)

    def __enter__(self) -> _PartitionFiles:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for file in self._open.values():
            file.release()
