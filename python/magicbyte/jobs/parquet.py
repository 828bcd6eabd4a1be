"""Writing tables as Parquet below `TABLE/topic=T/partition=N/`, the layout of Spark's `partitionBy`."""

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
"""How many batches may wait uncombined: each takes some 10 KB besides its rows."""

# Columns with few distinct values, which a dictionary shrinks to almost nothing. For keys and values a
# dictionary is not worth its time.
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
# Columns that mostly grow in small steps: the differences are smaller than the numbers, and faster to write.
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
    """A file that an attempt wrote: a row of the job's manifest."""

    table: str
    topic: str
    partition: int
    path: str
    """Its path before the commit."""
    name: str
    """Its name after the commit, unique in the directory."""
    rows: int
    size: int


def directory_of(table: str, topic: str, partition: int) -> str:
    """The directory of a partition's files, relative to the output, escaped as Spark does."""
    # Kafka's topic names need no escaping, but directories may have any name. One legal name means null.
    escaped = quote(topic, safe="") if topic != _HIVE_NULL else topic.replace("_", "%5F")
    return os.path.join(table, f"topic={escaped}", f"partition={partition}")


def file_schema(schema: pa.Schema) -> pa.Schema:
    """`schema` without the columns that are in directory names."""
    return pa.schema([field for field in schema if field.name not in ("topic", "partition")])


class ParquetFile:
    """A Parquet file that is written as rows arrive, in row groups of bounded size."""

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
        """Appends rows; columns that are not in the file's schema are dropped."""
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
        # Each call of write_table makes a row group, so rows wait until they fill one.
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
        """Releases the handle; harmless after `close`. A file that was not closed is in no manifest."""
        self._writer.close()
