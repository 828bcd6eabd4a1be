"""The ceiling of Spark with Arrow: rows that only have to be passed on, from an existing Arrow batch.

Spark's workers import this module too.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.pandas.types import from_arrow_schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType


@dataclass(frozen=True)
class Ready:
    """One batch in a file, passed on repeatedly."""

    file: Path
    rows: int
    """The number of rows in all."""
    tasks: int

    def schema(self) -> "StructType":
        return from_arrow_schema(self._batch().schema)

    def of_task(self, task: int) -> Iterator[pa.RecordBatch]:
        batch = self._batch()
        rows = self.rows * (task + 1) // self.tasks - self.rows * task // self.tasks
        for _ in range(rows // batch.num_rows):
            yield batch
        yield batch.slice(0, rows % batch.num_rows)

    def _batch(self) -> pa.RecordBatch:
        return pa.ipc.open_file(self.file).get_batch(0)


def of_data_source(session: "SparkSession", ready: Ready) -> "DataFrame":
    """With a Python data source, like magicbyte's."""
    session.dataSource.register(ReadyArrow)
    options = {"file": str(ready.file), "rows": str(ready.rows), "tasks": str(ready.tasks)}
    return session.read.format("ready_arrow").options(**options).load()


def of_map_in_arrow(session: "SparkSession", ready: Ready) -> "DataFrame":
    """With the older `mapInArrow`, over partitions that contain only their number."""
    tasks = session.range(0, ready.tasks, numPartitions=ready.tasks)
    return tasks.mapInArrow(partial(_map_in_arrow, ready), ready.schema())


def _map_in_arrow(ready: Ready, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for task in batch.column("id").to_pylist():
            yield from ready.of_task(task)


class ReadyArrow(DataSource):
    @classmethod
    def name(cls) -> str:
        return "ready_arrow"

    def schema(self) -> "StructType":
        return self._ready().schema()

    def reader(self, schema: "StructType") -> "ReadyArrowReader":
        return ReadyArrowReader(self._ready())

    def _ready(self) -> Ready:
        options = self.options
        return Ready(Path(options["file"]), int(options["rows"]), int(options["tasks"]))


class ReadyArrowReader(DataSourceReader):
    def __init__(self, ready: Ready) -> None:
        self._ready = ready

    def partitions(self) -> list[InputPartition]:
        return [InputPartition(task) for task in range(self._ready.tasks)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        yield from self._ready.of_task(partition.value)
