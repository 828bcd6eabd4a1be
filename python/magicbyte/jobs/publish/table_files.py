"""The decode task of `ingest`: a function from chunks and options to files and their manifest rows.

It runs in a thread or in a Spark executor, possibly more than once for the same task: each attempt writes
files with names of its own and returns them to the driver, which commits those of one attempt.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from types import TracebackType

import pyarrow as pa

from magicbyte.jobs.publish.parquet import CODECS, DataFile, ParquetFile, file_name, json_column
from magicbyte.jobs.run.plan import DecodeTask
from magicbyte.jobs.run.reading import ReadOptions, Rows, read_chunk, table_schema
from magicbyte.model import Chunk

__all__ = ["Decoded", "WriteOptions", "chunks_by_topic", "decode_task", "file_schema"]


@dataclass(frozen=True)
class WriteOptions:
    """Options for decoding and writing in a task."""

    read: ReadOptions
    staging: str
    """The directory of the files before the commit, on the file system of the output."""
    codec: str = CODECS[0]
    """Parquet compression, one of `parquet.CODECS`."""
    bloom_filters: tuple[str, ...] = ()
    """Columns of `records` with bloom filters."""


@dataclass(frozen=True)
class Decoded:
    """The result of one attempt at a task."""

    results: tuple[str, ...]
    """The ChunkResult of each chunk, in the task's order, as JSON text."""
    files: tuple[DataFile, ...]


def file_schema(table: str, options: ReadOptions) -> pa.Schema:
    """The schema of a table's files: that of its rows, with JSON columns marked as such."""
    if table != "records":
        return table_schema(table)
    schema = options.records_schema
    for name, payload in (("key", options.key_as), ("value", options.value_as)):
        if payload == "json" and name in schema.names and (json_type := json_column()) is not None:
            schema = schema.set(schema.get_field_index(name), pa.field(name, json_type))
    return schema


def decode_task(task: DecodeTask, options: WriteOptions) -> Decoded:
    """Decodes the chunks of a task and writes their rows as Parquet, one file per topic and table.

    Rows are written as they arrive: memory stays below one row group per table, whatever the task's size.
    """
    results: list[str] = []
    files: list[DataFile] = []
    for topic, chunks in chunks_by_topic(task):
        with _TopicFiles(topic, task.number, options) as tables:
            for place, chunk in chunks:
                for item in read_chunk(chunk, options.read):
                    if isinstance(item, Rows):
                        tables.write(item, place["partition"])
                    else:
                        results.append(item)
            files.extend(tables.close())
    return Decoded(tuple(results), tuple(files))


def chunks_by_topic(task: DecodeTask) -> Iterator[tuple[str, Iterator[tuple[Chunk, str]]]]:
    """The topics of a task, each with its chunks, parsed and as JSON text. Iterate over the chunks first."""
    parsed: Iterator[tuple[Chunk, str]] = ((json.loads(chunk), chunk) for chunk in task.chunks)
    yield from groupby(parsed, lambda one: one[0]["topic"])


class _TopicFiles:
    """The files of one attempt for one topic: one per table, opened at its first row."""

    def __init__(self, topic: str, number: int, options: WriteOptions) -> None:
        self._topic = topic
        self._number = number
        self._options = options
        self._open: dict[str, tuple[str, ParquetFile]] = {}
        self._rows: dict[str, Counter[int]] = {}
        """The number of rows, by table and partition."""

    def write(self, rows: Rows, partition: int) -> None:
        if rows.batch.num_rows == 0:
            return
        if rows.table not in self._open:
            self._open[rows.table] = self._create(rows.table)
            self._rows[rows.table] = Counter()
        self._open[rows.table][1].write(rows.batch)
        self._rows[rows.table][partition] += rows.batch.num_rows

    def _create(self, table: str) -> tuple[str, ParquetFile]:
        options, is_records = self._options, table == "records"
        name = file_name(f"{self._number:05d}", options.codec, self._topic)
        path = os.path.join(options.staging, table, name)
        schema = file_schema(table, options.read)
        return path, ParquetFile(path, schema, options.codec, options.bloom_filters if is_records else ())

    def close(self) -> Iterator[DataFile]:
        for table, (path, file) in self._open.items():
            size = file.close()
            yield DataFile(table, self._topic, path, file.rows, size, tuple(self._rows[table].items()))

    def __enter__(self) -> _TopicFiles:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for _, file in self._open.values():
            file.release()
