"""The batch reader of a running cluster, which plans ranges of offsets that tasks fetch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition

from magicbyte.jobs.run.reading import Rows, decoded_problems, read_chunk
from magicbyte.lake.ranges import OffsetRange
from magicbyte.spark.cluster import ClusterWatch, ends_of, fetch_range, starts_of
from magicbyte.spark.cluster_options import ClusterOptions
from magicbyte.spark.losses import Losses
from magicbyte.spark.offset_ranges import split_ranges
from magicbyte.spark.offsets import check_named, check_order
from magicbyte.spark.options import Options
from magicbyte.spark.reader import read_options
from magicbyte.spark.typed import Decoders, decoders_of

__all__ = ["ClusterReader"]


class ClusterReader(DataSourceReader):
    """Reads one table of a running cluster. It is pickled to the executors, so it holds plain data only."""

    def __init__(
        self, cluster: ClusterOptions, options: Options, columns: tuple[str, ...], decoders: Decoders = ()
    ) -> None:
        self._cluster = cluster
        self._options = options
        self._columns = columns
        self._decoders = decoders_of(columns, decoders)

    def partitions(self) -> Sequence[InputPartition]:
        """Looks up the offsets. A partition is one task, unless the options ask for more."""
        options = self._options
        watch = ClusterWatch.of(self._cluster, options)
        watch.check_exist()
        logs = watch.look()
        check_named(options.starting, logs)
        check_named(options.ending, logs)
        starts, ends = starts_of(options.starting, logs, watch), ends_of(options.ending, logs, watch)
        losses = self._losses()
        ranges = []
        for name, log in logs.items():
            # A time may be that of a record which a consumer with this isolation level does not get yet.
            is_offset = options.starting.offsets is not None
            check_order(name, starts[name] if is_offset else min(starts[name], log.end_offset), ends[name])
            there = log.start_offset, log.lineage.end_offset
            losses.report_outside(name, (starts[name], ends[name]), there)
            start, end = max(starts[name], there[0]), min(ends[name], there[1])
            ranges.append(OffsetRange(*name, start, end))
        tasks = split_ranges(ranges, options.min_partitions, options.max_records_per_partition)
        return [InputPartition(value) for value in (*losses.rows_of(options.table), *tasks)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yields Arrow batches of exactly the requested columns."""
        value: Any = partition.value
        columns = list(self._columns)
        if isinstance(value, OffsetRange):
            options = read_options(self._options, self._columns, self._decoders)
            table, losses = self._options.table, self._losses()
            for chunk in fetch_range(self._cluster, value, self._options, losses):
                for item in read_chunk(chunk, options):
                    if not isinstance(item, Rows):
                        continue
                    if item.table == table:
                        yield item.batch.select(columns)
                    elif item.table == "problems":
                        losses.report_damage(decoded_problems(item.batch))
            for rows in losses.rows_of(table):
                yield rows.select(columns)
        elif value is not None:  # None: Spark's stand-in for an empty list of partitions
            yield value.select(columns)

    def _losses(self) -> Losses:
        return Losses(fail=self._options.fail_on_data_loss, logged=set())
