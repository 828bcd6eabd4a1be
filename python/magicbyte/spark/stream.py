"""The stream reader, which follows growing partition directories.

Bytes after the last whole batch do not count yet, as a broker may be writing them; nor, with
`read_committed`, do records from the first open transaction on. Records above a broker's high watermark wait:
a failover may replace them.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxBytes,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)

from magicbyte import _core
from magicbyte.jobs.find.lineage import UNKNOWN, divergence
from magicbyte.jobs.run.engines import LocalEngine
from magicbyte.jobs.run.plan import Task, tasks_of_chunks
from magicbyte.jobs.run.reading import ReadOptions, Rows, decoded_problems, read_chunk
from magicbyte.model import Chunk, Problem
from magicbyte.schema.registry import StoredRegistry
from magicbyte.spark.limits import chunks_between, limit_bytes, limit_offsets
from magicbyte.spark.losses import Losses
from magicbyte.spark.offsets import TopicPartition, check_named, resolve_start
from magicbyte.spark.options import StreamOptions
from magicbyte.spark.positions import Position, StreamOffset, positions_from_json, positions_to_json
from magicbyte.spark.reader import read_options
from magicbyte.spark.splits import split_tasks
from magicbyte.spark.typed import Decoders, SchemaLookup, decoders_of, with_schemas
from magicbyte.spark.watch import Log, Watch

__all__ = ["MagicbyteStreamReader"]

_LOGGER = logging.getLogger("magicbyte.stream")


@dataclass(frozen=True)
class StreamTask:
    """A task of a micro-batch."""

    task: Task
    schemas: StoredRegistry | None
    """The schemas that the registry has got since the query began."""


class MagicbyteStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads one table of a growing log.

    Spark keeps one in the driver, which plans; executors create their own for `read`.
    """

    def __init__(self, options: StreamOptions, columns: tuple[str, ...], decoders: Decoders = ()) -> None:
        self._options = options
        self._columns = columns
        self._decoders = decoders_of(columns, decoders)
        self._lookup = SchemaLookup(options.read.shape.typed, self._decoders)
        self._watch = Watch(options.read, above_high_watermark=options.above_high_watermark)
        self._logged: set[str] = set()
        self._initial: StreamOffset | None = None
        self._target: dict[TopicPartition, int] | None = None
        self._latest: StreamOffset | None = None
        self._last_trigger = float("-inf")

    def initialOffset(self) -> StreamOffset:
        """Where the options start the query; Spark only asks if there is no checkpoint."""
        logs = self._look()
        starting = self._options.read.starting
        check_named(starting, logs)
        positions = {}
        for partition, log in logs.items():
            offset = resolve_start(starting, log.whole, log.end_offset)
            offset = log.start_offset if offset is None else offset
            positions[partition] = Position(offset, log.lineage.before(offset))
        self._initial = positions_to_json(positions)
        return self._initial

    def getDefaultReadLimit(self) -> ReadLimit:
        """Declares the limits. Spark passes `ReadAllAvailable` only for a trigger without limits."""
        if self._options.max_bytes is not None and self._options.max_offsets is None:
            return ReadMaxBytes(self._options.max_bytes)
        return ReadMaxRows(self._options.max_offsets or (1 << 63) - 1)

    def latestOffset(self, start: StreamOffset, limit: ReadLimit) -> StreamOffset:
        """Where the next micro-batch ends: `start` itself if it must wait."""
        unlimited = isinstance(limit, ReadAllAvailable)
        if start == self._initial and not unlimited:
            # Spark records where batches end, but not where the first one starts, so the first one is
            # empty. Otherwise a query that is killed during it would start again at another offset.
            self._initial = None
            return start
        logs = self._look()
        starts = positions_from_json(start)
        begin = self._begin(starts.keys() | logs.keys(), starts, logs, self._losses())
        end = {partition: self._end(partition, offset, logs) for partition, offset in begin.items()}
        self._latest = _stream_offset(end, starts, logs)
        if not unlimited:
            if self._must_wait(sum(end.values()) - sum(begin.values())):
                return start
            if self._options.max_offsets is not None:
                end = limit_offsets(begin, end, self._options.max_offsets)
            if self._options.max_bytes is not None:
                end = limit_bytes(logs, begin, end, self._options.max_bytes)
        self._last_trigger = time.monotonic()
        return _stream_offset(end, starts, logs)

    def _look(self) -> dict[TopicPartition, Log]:
        logs = self._watch.look()
        self._losses().check_unread(self._watch.unread)
        return logs

    def _losses(self) -> Losses:
        return Losses(fail=self._options.read.fail_on_data_loss, logged=self._logged)

    @staticmethod
    def _begin(
        partitions: Iterable[TopicPartition],
        starts: Mapping[TopicPartition, Position],
        logs: Mapping[TopicPartition, Log],
        losses: Losses,
    ) -> dict[TopicPartition, int]:
        """Where to continue: at the requested offsets, after lost ones, or where the log has diverged from
        what was read. New partitions begin at 0.
        """
        begin = {}
        for partition in partitions:
            start = starts.get(partition, Position())
            offset, log = start.offset, logs.get(partition)
            if log is None:
                losses.report(partition, offset, None, "the partition's directory is gone")
                begin[partition] = offset
                continue
            if (found := divergence(start.lineage, offset, log.lineage)) is not None:
                losses.report_divergence(partition, found.offset, offset - 1, found)
                offset = found.offset
            if offset > log.lineage.end_offset:
                losses.report(partition, log.lineage.end_offset, offset - 1, "the log ends before them")
            elif offset < log.start_offset:
                first = log.start_offset
                losses.report(partition, offset, first - 1, "the log begins after them")
                offset = first
            begin[partition] = offset
        return begin

    def _end(self, partition: TopicPartition, begin: int, logs: Mapping[TopicPartition, Log]) -> int:
        if partition not in logs:
            return begin
        end = logs[partition].end_offset
        if self._target is not None:
            end = min(end, self._target.get(partition, begin))
        return max(begin, end)

    def _must_wait(self, offsets: int) -> bool:
        wanted = self._options.min_offsets
        if wanted is None or self._target is not None:
            return False
        waited = time.monotonic() - self._last_trigger
        return offsets < wanted and waited < self._options.max_delay_seconds

    def prepareForTriggerAvailableNow(self) -> None:
        """Makes the current ends of the logs the ends of the query."""
        self._target = {partition: log.end_offset for partition, log in self._look().items()}

    def reportLatestOffset(self) -> StreamOffset | None:
        """The ends of the logs at the last trigger, regardless of limits."""
        return self._latest

    def partitions(self, start: StreamOffset, end: StreamOffset) -> Sequence[InputPartition]:
        """Plans a micro-batch, possibly again after a restart: the same offsets give the same rows."""
        self._initial = None
        logs = self._look()
        starts, ends = positions_from_json(start), positions_from_json(end)
        partitions = sorted(name for name, end in ends.items() if starts.get(name, Position()) != end)
        losses = self._losses()
        begin = self._begin(partitions, starts, logs, losses)
        chunks: list[Chunk] = []
        for partition in partitions:
            if partition not in logs:
                continue
            log, until = logs[partition], ends[partition].offset
            if (found := divergence(ends[partition].lineage, until, log.lineage)) is not None:
                # The log has diverged since the micro-batch was planned. The next one continues there.
                first = max(found.offset, starts.get(partition, Position()).offset)
                losses.report_divergence(partition, first, until - 1, found)
                until = found.offset
            if until <= begin[partition]:
                continue
            if until > log.lineage.end_offset:
                first = max(begin[partition], log.lineage.end_offset)
                losses.report(partition, first, until - 1, "the log ends before them")
            losses.report_missing_segments(partition, log.whole.plan["problems"], begin[partition], until)
            chunks += chunks_between(log, begin[partition], until)
        read = self._options.read
        tasks = tasks_of_chunks(chunks, LocalEngine().parallelism, read.min_partitions)
        if read.table == "records":
            log_ends = {partition: log.lineage.end_offset for partition, log in logs.items()}
            tasks = split_tasks(tasks, log_ends, read.min_partitions, read.max_records_per_partition)
        added = self._lookup.added() if tasks else None
        rows = losses.rows()
        lost = [rows] if rows.num_rows and self._options.read.table == "problems" else []
        return [InputPartition(value) for value in (*lost, *(StreamTask(task, added) for task in tasks))]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yields Arrow batches of exactly the requested columns."""
        value: Any = partition.value
        if isinstance(value, StreamTask):
            self._options.read.mount(self._options.read.paths)
            options = read_options(
                self._options.read,
                self._columns,
                with_schemas(self._decoders, value.schemas),
                fails_on_unknown_schema=self._options.fail_on_unknown_schema,
            )
            for chunk in value.task.chunks:
                yield from self._decode(chunk, options)
        elif value is not None:
            yield value.select(list(self._columns))

    def _decode(self, chunk: str, options: ReadOptions) -> Iterator[pa.RecordBatch]:
        trimmed = _core.trim_chunk(chunk)
        if trimmed is None:
            return
        table = self._options.read.table
        problems: list[Problem] = []
        for item in read_chunk(trimmed, options):
            if not isinstance(item, Rows):
                continue
            if item.table == "problems":
                found = decoded_problems(item.batch)
                self._losses().check_files(found)
                problems += found
            if item.table == table:
                yield item.batch.select(list(self._columns))
        if problems and table != "problems":
            first = problems[0]
            _LOGGER.warning(
                "%s-%d, %s: %d problems; the first: %s. Read all of them with the option table=problems.",
                first["topic"],
                first["partition"],
                first["segment"],
                len(problems),
                first["message"],
            )


def _stream_offset(
    offsets: Mapping[TopicPartition, int],
    starts: Mapping[TopicPartition, Position],
    logs: Mapping[TopicPartition, Log],
) -> StreamOffset:
    """The offset of the stream with these next offsets.

    A start that did not move stays as it is: to Spark, any change is new data.
    """
    positions = {}
    for partition, offset in offsets.items():
        log, start = logs.get(partition), starts.get(partition)
        lineage = start.lineage if start is not None and start.offset == offset else UNKNOWN
        if log is not None:
            diverged = divergence(lineage, offset, log.lineage) is not None
            lineage = (UNKNOWN if diverged else lineage).or_else(log.lineage.before(offset))
        positions[partition] = Position(offset, lineage)
    return positions_to_json(positions)
