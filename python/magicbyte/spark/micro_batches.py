"""Micro-batches of growing logs: where each one starts and ends, and which offsets are lost."""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

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
from magicbyte.jobs.find.lineage import UNKNOWN, LogLineage, divergence
from magicbyte.jobs.run.reading import ReadOptions, Rows, decoded_problems, read_chunk
from magicbyte.model import Problem
from magicbyte.schema.registry import StoredRegistry
from magicbyte.spark.limits import limit_offsets
from magicbyte.spark.losses import Losses
from magicbyte.spark.offsets import TopicPartition, check_named
from magicbyte.spark.options import StreamOptions
from magicbyte.spark.positions import Position, StreamOffset, positions_from_json, positions_to_json
from magicbyte.spark.reader import read_options
from magicbyte.spark.typed import Decoders, SchemaLookup, decoders_of, with_schemas

__all__ = ["MicroBatchReader", "PartitionState", "Wanted", "Watching"]


class PartitionState(Protocol):
    """The state of a partition at the time of a look, with offsets as a broker would report them."""

    @property
    def start_offset(self) -> int:
        """The first offset that retention has left."""

    @property
    def end_offset(self) -> int:
        """The end (exclusive) of what can be read."""

    @property
    def lineage(self) -> LogLineage:
        """The lineage up to the last offset of the log, undecided transactions included."""


Log = TypeVar("Log", bound=PartitionState)
Log_co = TypeVar("Log_co", bound=PartitionState, covariant=True)
T = TypeVar("T")


class Watching(Protocol[Log_co]):
    """Looks at the partitions that a stream's options select."""

    unread: list[str]
    """The parts that the last look could not read, with the reasons."""

    def look(self) -> Mapping[TopicPartition, Log_co]:
        """The state of each partition now."""


class Wanted(NamedTuple):
    """The offsets of a partition that a micro-batch has."""

    partition: TopicPartition
    begin: int
    end: int
    """Exclusive."""


@dataclass(frozen=True)
class _StreamTask(Generic[T]):
    """A task of a micro-batch."""

    task: T
    schemas: StoredRegistry | None
    """The schemas that the registry has got since the query began."""


class MicroBatchReader(DataSourceStreamReader, SupportsTriggerAvailableNow, Generic[Log, T]):
    """Reads one table of growing logs.

    Spark keeps one in the driver, which plans; executors create their own for `read`.
    """

    def __init__(
        self, options: StreamOptions, columns: tuple[str, ...], decoders: Decoders, watch: Watching[Log]
    ) -> None:
        self._options = options
        self._columns = columns
        self._decoders = decoders_of(columns, decoders)
        self._lookup = SchemaLookup(options.read.shape.typed, self._decoders)
        self._watch = watch
        self._logged: set[str] = set()
        self._initial: StreamOffset | None = None
        self._target: dict[TopicPartition, int] | None = None
        self._latest: StreamOffset | None = None
        self._last_trigger = float("-inf")

    @abstractmethod
    def _starts(self, logs: Mapping[TopicPartition, Log]) -> Mapping[TopicPartition, int]:
        """The offsets where the options start the query."""

    @abstractmethod
    def _tasks(
        self, wanted: Sequence[Wanted], logs: Mapping[TopicPartition, Log], losses: Losses
    ) -> Sequence[T]:
        """The tasks that read these offsets."""

    @abstractmethod
    def _chunks(self, task: T, losses: Losses) -> Iterator[str | _core.FetchedChunk]:
        """The chunks of a task, in an executor; offsets that are no longer there are losses."""

    @abstractmethod
    def _report(self, problems: Sequence[Problem], losses: Losses) -> None:
        """Logs the damage of a chunk, or raises JobError if it fails the query."""

    def initialOffset(self) -> StreamOffset:
        """Where the options start the query; Spark only asks if there is no checkpoint."""
        logs = self._look()
        check_named(self._options.read.starting, logs)
        starts = self._starts(logs)
        positions = {
            partition: Position(offset, logs[partition].lineage.before(offset))
            for partition, offset in starts.items()
        }
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
        starts = positions_from_json(start)
        logs = self._look_from(starts)
        found = self._begin(starts.keys() | logs.keys(), starts, logs, self._losses())
        begin = self._resumed(found, logs)
        end = {partition: self._end(partition, offset, logs) for partition, offset in begin.items()}
        self._latest = _stream_offset(end, starts, logs)
        if not unlimited:
            if begin == found and self._must_wait(sum(end.values()) - sum(begin.values())):
                return start
            end = self._limited(begin, end, logs)
        self._last_trigger = time.monotonic()
        return _stream_offset(end, starts, logs)

    def _limited(
        self,
        begin: Mapping[TopicPartition, int],
        end: Mapping[TopicPartition, int],
        logs: Mapping[TopicPartition, Log],  # for limits in bytes
    ) -> dict[TopicPartition, int]:
        """Lowers the ends to the limits of a trigger."""
        limit = self._options.max_offsets
        return dict(end) if limit is None else limit_offsets(begin, end, limit)

    def _look(self) -> Mapping[TopicPartition, Log]:
        logs = self._watch.look()
        self._losses().check_unread(self._watch.unread)
        return logs

    def _look_from(self, positions: Mapping[TopicPartition, Position]) -> Mapping[TopicPartition, Log]:
        """Looks at logs that were read up to these positions, or are to be."""
        return self._look()

    def _resumed(
        self,
        begin: Mapping[TopicPartition, int],
        logs: Mapping[TopicPartition, Log],
    ) -> Mapping[TopicPartition, int]:
        """The offsets to continue at: no earlier ones, since files that are gone may be copied again."""
        return begin

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
                losses.report(partition, offset, None, "the partition is gone")
                begin[partition] = offset
                continue
            if (found := divergence(start.lineage, offset, log.lineage)) is not None:
                losses.report_divergence(partition, found.offset, offset - 1, found)
                offset = found.offset
            if offset > log.lineage.end_offset:
                losses.report(partition, log.lineage.end_offset, offset - 1, "the log ends earlier")
            elif offset < log.start_offset:
                first = log.start_offset
                losses.report(partition, offset, first - 1, "the log begins later")
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
        starts, ends = positions_from_json(start), positions_from_json(end)
        logs = self._look_from(ends)
        losses = self._losses()
        wanted = self._wanted(starts, ends, logs, losses)
        tasks = self._tasks(wanted, logs, losses)
        added = self._lookup.added() if tasks else None
        lost = losses.rows_of(self._options.read.table)
        return [InputPartition(value) for value in (*lost, *(_StreamTask(task, added) for task in tasks))]

    def _wanted(
        self,
        starts: Mapping[TopicPartition, Position],
        ends: Mapping[TopicPartition, Position],
        logs: Mapping[TopicPartition, Log],
        losses: Losses,
    ) -> list[Wanted]:
        """The offsets of a micro-batch that the logs have; the others are lost."""
        partitions = sorted(name for name, end in ends.items() if starts.get(name, Position()) != end)
        begin = self._begin(partitions, starts, logs, losses)
        wanted = []
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
                losses.report(partition, first, until - 1, "the log ends earlier")
            wanted.append(Wanted(partition, begin[partition], until))
        return wanted

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yields Arrow batches of exactly the requested columns."""
        value: Any = partition.value
        if isinstance(value, _StreamTask):
            options = read_options(
                self._options.read,
                self._columns,
                with_schemas(self._decoders, value.schemas),
                fails_on_unknown_schema=self._options.fail_on_unknown_schema,
            )
            losses = self._losses()
            for chunk in self._chunks(value.task, losses):
                yield from self._decode(chunk, options, losses)
            for rows in losses.rows_of(self._options.read.table):
                yield rows.select(list(self._columns))
        elif value is not None:
            yield value.select(list(self._columns))

    def _decode(
        self, chunk: str | _core.FetchedChunk, options: ReadOptions, losses: Losses
    ) -> Iterator[pa.RecordBatch]:
        problems: list[Problem] = []
        for item in read_chunk(chunk, options):
            if not isinstance(item, Rows):
                continue
            if item.table == "problems":
                problems += decoded_problems(item.batch)
            if item.table == self._options.read.table:
                yield item.batch.select(list(self._columns))
        if problems:
            self._report(problems, losses)


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
