"""Writing tables as Parquet: flat directories of files, each with rows of one topic.

Topic and partition are columns of every file. In Hive's layout (`topic=T/partition=N/`) they would only be in
the directories' names: pyarrow and pandas refuse files that have them too, and a topic `007` would come back
as the number 7.
"""

from __future__ import annotations

import os
import re
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.parquet as pq

__all__ = ["CODECS", "DataFile", "ParquetFile", "can_write_bloom_filters", "file_name", "json_column"]

CODECS = ("zstd", "snappy", "lz4", "gzip", "none")
"""Parquet compression, the default first."""

_LONGEST_LABEL = 100
_ROW_GROUP_BYTES = 32 << 20
_COLUMN_CHUNK_BYTES = 16 << 10
"""The minimum bytes of a column in a row group: the writer keeps a kilobyte about each until it closes."""
_ROW_GROUP_ROWS = 1 << 20
_MOST_WAITING = 256
"""The maximum number of batches that wait uncombined: each takes some 10 KB besides its rows."""

# Columns with few distinct values, which a dictionary shrinks to almost nothing. For keys and values a
# dictionary is not worth its time.
_DICTIONARY = (
    "topic",
    "partition",
    "timestampType",
    "magic",
    "compression",
    "producerId",
    "producerEpoch",
    "isTransactional",
    "leaderEpoch",
    "segment",
    "position",
    "_schema_id",
    "_key_schema_id",
    "_error",
    "_key_error",
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
# The columns of `_DELTA` have statistics, too: readers skip row groups by them.
_STATISTICS = ("topic", "partition")
_FALSE_POSITIVES = 0.01
"""The rate of false positives of a bloom filter, which takes about 10 bits per row."""


@dataclass(frozen=True)
class DataFile:
    """A file that an attempt wrote: a row of the job's manifest."""

    table: str
    topic: str | None
    """The topic of all rows; None for tables about all topics."""
    path: str
    """Its path before the commit."""
    rows: int
    size: int
    partitions: tuple[tuple[int, int], ...] = ()
    """The number of rows of each partition of the topic."""

    @property
    def name(self) -> str:
        """Its name, also after the commit: unique in the table's directory."""
        return os.path.basename(self.path)


def file_name(part: str, codec: str, topic: str | None = None) -> str:
    """A new name for a file, such as `part-00003-0f1e2d3c4b5a-orders.zstd.parquet`.

    The topic in it is for people: characters that Kafka's topics cannot have are replaced, and a long name
    is cut.
    """
    label = "" if topic is None else "-" + re.sub(r"[^A-Za-z0-9._-]", "_", topic)[:_LONGEST_LABEL]
    return f"part-{part}-{uuid.uuid4().hex[:12]}{label}.{codec}.parquet"


def can_write_bloom_filters() -> bool:
    """True if this version of pyarrow (24 or later) can write bloom filters."""
    return int(pa.__version__.partition(".")[0]) >= 24


def json_column() -> pa.DataType | None:
    """The type of columns with Parquet's logical type JSON; None if this pyarrow has none (before 19)."""
    return pa.json_(pa.string()) if hasattr(pa, "json_") else None


class ParquetFile:
    """A Parquet file that is written as rows arrive, in row groups of bounded size."""

    def __init__(
        self,
        path: str,
        schema: pa.Schema,
        codec: str,
        bloom_filters: Sequence[str] = (),
        *,
        without_statistics: Sequence[str] = (),
    ) -> None:
        """`bloom_filters` are columns that readers search for single values."""
        os.makedirs(os.path.dirname(path), exist_ok=True)
        self._path = path
        self._schema = schema
        self._codec = codec
        self._bloom_filters = bloom_filters
        self._without_statistics = without_statistics
        self._writer: pq.ParquetWriter | None = None
        self._waiting: list[pa.RecordBatch] = []
        self._waiting_rows = 0
        self._waiting_bytes = 0
        self._row_group_bytes = max(_ROW_GROUP_BYTES, _leaves(schema) * _COLUMN_CHUNK_BYTES)
        self.rows = 0

    def write(self, batch: pa.RecordBatch) -> None:
        """Appends rows; columns that are not in the file's schema are dropped, and text may become JSON."""
        columns = [_typed(batch.column(field.name), field.type) for field in self._schema]
        batch = pa.RecordBatch.from_arrays(columns, schema=self._schema)
        self.rows += batch.num_rows
        self._waiting.append(batch)
        self._waiting_rows += batch.num_rows
        self._waiting_bytes += batch.nbytes
        if self._waiting_bytes >= self._row_group_bytes or self._waiting_rows >= _ROW_GROUP_ROWS:
            self._flush()
        elif len(self._waiting) >= _MOST_WAITING:
            table = pa.Table.from_batches(self._waiting, self._schema).combine_chunks()
            self._waiting = table.to_batches()

    def _flush(self) -> None:
        # Each call of write_table makes a row group, so rows wait until they fill one.
        with _naming(self._path):
            if self._writer is None:
                self._writer = self._open()
            if self._waiting:
                table = pa.Table.from_batches(self._waiting, self._schema)
                self._writer.write_table(table, row_group_size=_ROW_GROUP_ROWS)
        self._waiting, self._waiting_rows, self._waiting_bytes = [], 0, 0

    def _open(self) -> pq.ParquetWriter:
        names = set(self._schema.names)
        delta = {name: "DELTA_BINARY_PACKED" for name in _DELTA if name in names}
        options = {}
        if self._bloom_filters:
            # The filter of every row group has the size that suits the first, which is the largest.
            distinct = max(1, min(self._waiting_rows, _ROW_GROUP_ROWS))
            filters = {name: {"ndv": distinct, "fpp": _FALSE_POSITIVES} for name in self._bloom_filters}
            options["bloom_filter_options"] = filters
        return pq.ParquetWriter(
            self._path,
            self._schema,
            compression=self._codec,
            use_dictionary=[name for name in _DICTIONARY if name in names],
            column_encoding=delta,
            write_statistics=[
                name
                for name in (*delta, *_STATISTICS)
                if name in names and name not in self._without_statistics
            ],
            # The default pool keeps much more than it has given out.
            memory_pool=pa.system_memory_pool(),
            **options,
        )

    def close(self) -> int:
        """Finishes the file; returns its size in bytes."""
        self._flush()
        self.release()
        return os.path.getsize(self._path)

    def release(self) -> None:
        """Releases the handle; harmless after `close`. A file that was not closed is in no manifest."""
        if self._writer is not None:
            with _naming(self._path):
                self._writer.close()


@contextmanager
def _naming(path: str) -> Iterator[None]:
    """Adds the path to errors of the system, which pyarrow raises without one."""
    try:
        yield
    except OSError as error:
        if error.filename is not None or error.errno is None:
            raise
        raise OSError(error.errno, os.strerror(error.errno), path) from error


def _leaves(of: pa.Schema | pa.DataType) -> int:
    """The number of columns that Parquet has for a schema or a type."""
    if isinstance(of, pa.Schema):
        return sum(_leaves(field.type) for field in of)
    children = [of.field(at) for at in range(of.num_fields)] if pa.types.is_nested(of) else []
    return sum(_leaves(child.type) for child in children) or 1


def _typed(column: pa.Array, data_type: pa.DataType) -> pa.Array:
    if isinstance(data_type, pa.BaseExtensionType) and column.type == data_type.storage_type:
        return data_type.wrap_array(column)
    return column
