"""The batch reader, which plans in the driver and decodes in Spark's tasks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition

from magicbyte.enums import fails_fast
from magicbyte.jobs.columns import INVALID_COLUMNS
from magicbyte.jobs.engines import LocalEngine
from magicbyte.jobs.partitions import list_partitions, refuse_unread
from magicbyte.jobs.plan import Planned, Range, Task, plan_partitions, tasks_of
from magicbyte.jobs.reading import ReadOptions, Rows, plan_problems, read_chunk
from magicbyte.model import PartitionListing
from magicbyte.schemas.decoding import TYPED_COLUMNS
from magicbyte.spark.histories import HISTORY_TABLES, history_rows
from magicbyte.spark.offsets import check_named, resolve_end, resolve_start
from magicbyte.spark.options import Options
from magicbyte.spark.paths import expand_paths
from magicbyte.spark.segments import segment_rows
from magicbyte.spark.typed import Decoders, decoders_of

__all__ = ["MagicbyteReader", "read_options"]


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
            tasks=self._options.min_partitions,
        )
        if self._options.table == "segments":
            return [InputPartition(segment_rows(plans))]
        tasks = tasks_of(plans, engine.parallelism, self._options.min_partitions)
        known = []
        if self._options.table == "problems":
            known = [plan_problems(planned.plan) for planned in plans if planned.plan["problems"]]
        return [InputPartition(value) for value in (*known, *tasks)]

    def _choose(self, listings: list[PartitionListing]) -> list[PartitionListing]:
        topics = self._options.topics
        chosen = [one for one in listings if topics.take(one["topic"], one["partition"])]
        missing = (topics.names or frozenset()) - {one["topic"] for one in chosen}
        partitions = {(one["topic"], one["partition"]) for one in chosen}
        missing |= {f"{topic}-{number}" for topic, number in (topics.partitions or frozenset()) - partitions}
        if missing:
            found = ", ".join(sorted({one["topic"] for one in listings}))
            raise ValueError(f"not found below path: {', '.join(sorted(missing))}; topics there: {found}")
        check_named(self._options.starting, partitions)
        check_named(self._options.ending, partitions)
        return chosen

    def _bounds(self, planned: Planned) -> Range:
        return resolve_start(self._options.starting, planned), resolve_end(self._options.ending, planned)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yields Arrow batches of exactly the requested columns."""
        value: Any = partition.value
        if isinstance(value, Task):
            self._options.mount(expand_paths(self._options.paths))
            yield from self._decode(value)
        elif value is not None:  # None: Spark's stand-in for an empty list of partitions
            yield value.select(list(self._columns))

    def _decode(self, task: Task) -> Iterator[pa.RecordBatch]:
        options = read_options(self._options, self._columns, self._decoders)
        for chunk in task.chunks:
            for item in read_chunk(chunk, options):
                if isinstance(item, Rows) and item.table == self._options.table:
                    yield item.batch.select(list(self._columns))


def read_options(options: Options, columns: tuple[str, ...], decoders: Decoders) -> ReadOptions:
    """How chunks are decoded for the rows of one table."""
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
    )


def _decoded(options: Options, columns: tuple[str, ...], decoders: Decoders) -> tuple[str, ...]:
    """The columns that the decoder takes: invalid keys come with the keys, and errors name the offset.

    Headers may name the schemas.
    """
    if options.shape.is_binary:
        return columns
    made = {invalid: name for name, invalid in INVALID_COLUMNS.items()}
    made |= {other: name for name, others in TYPED_COLUMNS.items() for other in others}
    more = ("offset", "headers") if decoders else ("offset",)
    return tuple(dict.fromkeys([*(made.get(name, name) for name in columns), *more]))
