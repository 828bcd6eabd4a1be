"""Writing tables as Parquet below `TABLE/topic=T/partition=N/`, as Spark's `partitionBy` lays them."""

from __future__ import annotations

import os
from dataclasses import dataclass
from urllib.parse import quote

import pyarrow as pa
import pyarrow.parquet as pq

__all__ = ["CODECS", "DataFile", "ParquetFile", "directory_of", "file_schema"]

CODECS = ("snappy", "zstd", "lz4", "gzip", "none")

_HIVE_NULL = "__HIVE_DEFAULT_PARTITION__"
_ROW_GROUP_BYTES = 64 << 20
_ROW_GROUP_ROWS = 1 << 20
_MOST_WAITING = 256
"""Batches that wait each by itself: one takes some 10 KB besides its rows."""

# Few distinct values: a dictionary shrinks these to almost nothing. For keys and values it costs
# more time than the codec behind it saves space.
_DICTIONARY = (
    "timestampType",
    "magic",
    "compression",
    "producerId",
    "producerEpoch",
    "isTransactional",
    "leaderEpoch",
    "segment",
    "position",
    "isValid",
    "isControl",
    "controlType",
    "partitionLeaderEpoch",
    "kind",
    "field",
)
# They mostly grow by small steps: differences are faster to write and smaller than the numbers.
_DELTA = (
    "offset",
    "timestamp",
    "timestampMillis",
    "baseOffset",
    "lastOffset",
    "baseTimestamp",
    "maxTimestamp",
)


@dataclass(frozen=True)
class DataFile:
    """One file that an attempt wrote: a row of the job's manifest."""

    table: str
    topic: str
    partition: int
    path: str
    """Where it lies until the commit."""
    name: str
    """The file's name after the commit; unique in its directory."""
    rows: int
    size: int


def directory_of(table: str, topic: str, partition: int) -> str:
    """The directory of a partition's files, relative to the output, escaped as Spark does."""
    # Kafka's topic names need no escaping, but a directory may have any name; one legal name means null.
    escaped = quote(topic, safe="") if topic != _HIVE_NULL else topic.replace("_", "%5F")
    return os.path.join(table, f"topic={escaped}", f"partition={partition}")


def file_schema(schema: pa.Schema) -> pa.Schema:
    """`schema` without the columns that the directories' names hold."""
    return pa.schema([field for field in schema if field.name not in ("topic", "partition")])


class ParquetFile:
    """A Parquet file that is written while its rows arrive, in row groups of bounded size."""

    def __init__(self, path: str, schema: pa.Schema, codec: str) -> None:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        names = set(schema.names)
        delta = {name: "DELTA_BINARY_PACKED" for name in _DELTA if name in names}
        self._schema = schema
        self._writer = pq.ParquetWriter(
            path,
            schema,
            compression=codec,
            use_dictionary=[name for name in _DICTIONARY if name in names],
            column_encoding=delta,
            write_statistics=[*delta],
        )
        self._path = path
        self._waiting: list[pa.RecordBatch] = []
        self._waiting_rows = 0
        self._waiting_bytes = 0
        self.rows = 0

    def write(self, batch: pa.RecordBatch) -> None:
        """Appends rows; columns that are not in the file's schema are left out."""
        batch = batch.select(self._schema.names)
        self.rows += batch.num_rows
        self._waiting.append(batch)
        self._waiting_rows += batch.num_rows
        self._waiting_bytes += batch.nbytes
        if self._waiting_bytes >= _ROW_GROUP_BYTES or self._waiting_rows >= _ROW_GROUP_ROWS:
            self._flush()
        elif len(self._waiting) >= _MOST_WAITING:
            table = pa.Table.from_batches(self._waiting, self._schema).combine_chunks()
            self._waiting = table.to_batches()

    def _flush(self) -> None:
        # Each write_table call makes a row group, so rows wait here until they fill one.
        if self._waiting:
            table = pa.Table.from_batches(self._waiting, self._schema)
            self._writer.write_table(table, row_group_size=_ROW_GROUP_ROWS)
        self._waiting, self._waiting_rows, self._waiting_bytes = [], 0, 0

    def close(self) -> int:
        """Finishes the file; returns its size in bytes."""
        self._flush()
        self._writer.close()
        return os.path.getsize(self._path)

    def release(self) -> None:
        """Lets go of the handle; harmless after `close`. No manifest names what was not closed."""
        self._writer.close()
