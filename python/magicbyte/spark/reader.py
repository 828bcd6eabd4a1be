"""The batch reader, which plans in the driver and decodes in Spark's tasks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition

from magicbyte import _core
from magicbyte.enums import fails_fast
from magicbyte.jobs.find.partitions import list_partitions, refuse_unread
from magicbyte.jobs.run.columns import INVALID_COLUMNS
from magicbyte.jobs.run.engines import LocalEngine
from magicbyte.jobs.run.plan import (
    Planned,
    Range,
    Task,
    plan_partitions,
    size_of,
    target_bytes,
    tasks_of,
)
from magicbyte.jobs.run.reading import ReadOptions, Rows, plan_problems, read_chunk
from magicbyte.model import PartitionListing
from magicbyte.schema.decoding import TYPED_COLUMNS, window_columns
from magicbyte.spark.histories import HISTORY_TABLES, history_rows
from magicbyte.spark.losses import Losses
from magicbyte.spark.offsets import (
    EARLIEST,
    LATEST,
    check_named,
    check_order,
    log_end,
    log_start,
    resolve_end,
    resolve_start,
)
from magicbyte.spark.options import Options
from magicbyte.spark.paths import expand_paths
from magicbyte.spark.segments import segment_rows
from magicbyte.spark.splits import split_tasks
from magicbyte.spark.typed import Decoders, decoders_of

__all__ = ["MagicbyteReader", "read_options"]


_WHOLE_TABLES = ("records", "batches")
"""The tables that lack rows if a part of the log is missing; other tables report it, or need only headers."""


class MagicbyteReader(DataSourceReader):
    """Reads one table. It is pickled to the executors, so it holds plain data only."""

    def __init__(self, options: Options, columns: tuple[str, ...], decoders: Decoders = ()) -> None:
        self._options = options
        self._columns = columns
        self._decoders = decoders_of(columns, decoders)

    def partitions(self) -> Sequence[InputPartition]:
        """Surveys and plans in threads of the driver; returns one input partition per decode task.

        The value of an input partition is a task, or rows that the driver knows already.
        """
        paths = expand_paths(self._options.paths)
        self._options.mount(paths)
        listings = self._choose(list_partitions(paths, self._options.choice, distinct=True))
        if fails_fast(self._options.mode):
            refuse_unread(listings)
        # The number of executor cores is unknown here, so this machine's is used instead. If that matters,
        # set minPartitions.
        engine = LocalEngine()
        if self._options.table in HISTORY_TABLES:
            return [InputPartition(history_rows(self._options.table, listings, engine))]
        plans = plan_partitions(
            listings,
            engine,
            isolation_level=self._options.isolation_level,
            bounds=self._bounds,
            chunk_bytes=target_bytes(size_of(listings), engine.parallelism, self._options.min_partitions),
        )
        if self._options.table == "segments":
            return [InputPartition(segment_rows(plans))]
        options = self._options
        if options.table in _WHOLE_TABLES:
            for planned in plans:
                self._check_offsets(planned)
        tasks = tasks_of(plans, engine.parallelism, options.min_partitions)
        if options.table == "records":
            ends = {(one.plan["topic"], one.plan["partition"]): one.plan["next_offset"] or 0 for one in plans}
            tasks = split_tasks(tasks, ends, options.min_partitions, options.max_records_per_partition)
        known = []
        if self._options.table == "problems":
            known = [plan_problems(planned.plan) for planned in plans if planned.plan["problems"]]
        return [InputPartition(value) for value in (*known, *tasks)]

    def _choose(self, listings: list[PartitionListing]) -> list[PartitionListing]:
        topics = self._options.topics
        chosen = [listing for listing in listings if topics.take(listing["topic"], listing["partition"])]
        missing = (topics.names or frozenset()) - {one["topic"] for one in chosen}
        partitions = {(one["topic"], one["partition"]) for one in chosen}
        missing |= {f"{topic}-{number}" for topic, number in (topics.partitions or frozenset()) - partitions}
        if missing:
            found = ", ".join(sorted({listing["topic"] for listing in listings}))
            raise ValueError(f"not found below path: {', '.join(sorted(missing))}; topics there: {found}")
        check_named(self._options.starting, partitions)
        check_named(self._options.ending, partitions)
        return chosen

    def _check_offsets(self, planned: Planned) -> None:
        """Checks that the log has the requested offsets: by default, all from its start to its end."""
        losses = Losses(fail=self._options.fail_on_data_loss, logged=set())
        partition = planned.plan["topic"], planned.plan["partition"]
        log_begin, high = log_start(planned), planned.plan["next_offset"]
        log_high = log_end(planned) if high is None else high
        begin = (self._options.starting.offsets or {}).get(partition, EARLIEST)
        end = (self._options.ending.offsets or {}).get(partition, LATEST)
        if begin > log_high:
            losses.report(partition, log_high, begin - 1, "the log ends earlier")
        elif 0 <= begin < log_begin:
            losses.report(partition, begin, log_begin - 1, "the log begins later")
        if end > log_high:
            losses.report(partition, max(begin, log_high), end - 1, "the log ends earlier")
        begin = max(begin, log_begin)
        losses.report_missing_segments(
            partition, planned.plan["problems"], begin, log_high if end == LATEST else end
        )

    def _bounds(self, planned: Planned) -> Range:
        start = resolve_start(self._options.starting, planned, log_end(planned))
        end = resolve_end(self._options.ending, planned)
        if start is not None and end is not None:
            check_order((planned.plan["topic"], planned.plan["partition"]), start, end)
        return start, end

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yields Arrow batches of exactly the requested columns."""
        value: Any = partition.value
        if isinstance(value, Task):
            self._options.mount(self._options.paths)
            yield from self._decode(value)
        elif value is not None:  # None: Spark's stand-in for an empty list of partitions
            yield value.select(list(self._columns))

    def _decode(self, task: Task) -> Iterator[pa.RecordBatch]:
        options = read_options(self._options, self._columns, self._decoders)
        table = self._options.table
        for chunk in map(self._narrowed, task.chunks):
            for item in read_chunk(chunk, options) if chunk is not None else ():
                if isinstance(item, Rows) and item.table == table:
                    yield item.batch.select(list(self._columns))

    def _narrowed(self, chunk: str) -> str | None:
        """The chunk, or only the bytes of its offsets if tasks share chunks; None for none."""
        is_shared = self._options.min_partitions or self._options.max_records_per_partition
        if not is_shared or fails_fast(self._options.mode) or self._options.table != "records":
            return chunk
        return _core.trim_chunk(chunk)


def read_options(
    options: Options, columns: tuple[str, ...], decoders: Decoders, *, fails_on_unknown_schema: bool = False
) -> ReadOptions:
    """The options for decoding chunks to the rows of one table."""
    table = options.table
    return ReadOptions(
        # Rows of `batches` are taken between batches of records. One narrow column of records is enough to
        # keep the rows that wait in memory below one Arrow batch.
        columns=_decoded(options, columns, decoders)
        if table == "records"
        else ("offset",)
        if table == "batches"
        else (),
        batches=table == "batches",
        max_decompressed_bytes=options.max_decompressed_bytes,
        mode=options.mode,
        key_as=options.shape.key_as,
        value_as=options.shape.value_as,
        typed=decoders,
        fails_on_unknown_schema=fails_on_unknown_schema,
    )


def _decoded(options: Options, columns: tuple[str, ...], decoders: Decoders) -> tuple[str, ...]:
    """The columns that the decoder takes: invalid keys come with the keys, and errors name the offset.

    Headers may name the schemas.
    """
    if options.shape.is_binary:
        return columns
    made = {invalid: name for name, invalid in INVALID_COLUMNS.items()}
    made |= {other: name for name, others in TYPED_COLUMNS.items() for other in others}
    made |= dict.fromkeys(window_columns("session"), "key")
    more = ("offset", "headers") if decoders else ("offset",)
    return tuple(dict.fromkeys([*(made.get(name, name) for name in columns), *more]))
