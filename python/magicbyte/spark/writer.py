"""The writer: `df.write.format("magicbyte")` creates partitions that a broker opens."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage

from magicbyte.jobs.write_rows import COLUMNS, Part, RowsOptions, commit_rows, staging_in, write_rows
from magicbyte.spark.declared import WriteOptions
from magicbyte.spark.given import Given, OptionError, names_of
from magicbyte.spark.session_zone import with_session_zone

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

__all__ = ["WRITE_OPTIONS", "MagicbyteWriter", "Written"]

WRITE_OPTIONS = names_of(WriteOptions)
_TYPES = {
    "topic": {"string"},
    "partition": {"int"},
    "offset": {"bigint"},
    "timestamp": {"timestamp", "timestamp_ntz", "bigint"},
    "key": {"binary", "string", "void"},
    "value": {"binary", "string"},
    "headers": {"array<struct<key:string,value:binary>>", "void"},
}


@dataclass
class Written(WriterCommitMessage):
    """The output of one task."""

    parts: Sequence[Part]


class MagicbyteWriter(DataSourceArrowWriter):
    """Writes segments in tasks; the driver joins them and adds the sidecars.

    The columns are those of Spark's Kafka sink (`value`, and optionally `key`, `headers`, `topic`,
    `partition`), and optionally `offset` and `timestamp`. Without `offset`, the rows of each partition are
    numbered from 0 in order, so all rows of a partition must be in one task. Without `timestamp`, rows have
    the time of the job; where it is NULL, the record has no timestamp, as in the table that it came from.
    One without a time zone (TIMESTAMP_NTZ) is that of the session, as in Spark's own cast.
    The option `topicIds` has the topics' IDs for `partition.metadata`, without which a KRaft broker sets a
    partition aside.
    """

    def __init__(self, options: Mapping[str, str], schema: StructType, overwrite: bool) -> None:
        given = Given(options, WRITE_OPTIONS).read(WriteOptions)
        if overwrite:
            raise OptionError("mode overwrite is not supported: a log is not replaced; write to another path")
        if given.path is None:
            raise OptionError("the option path is missing: the directory to write partitions to")
        _check_columns(schema)
        self._path = given.path
        self._options = RowsOptions(
            topic=given.topic,
            compression=given.compression,
            level=given.level,
            batch_bytes=given.batch_bytes,
            segment_bytes=given.segment_bytes,
            # The time of rows without that column, as a producer would set it.
            timestamp=int(time.time() * 1000),
        )
        self._topic_ids = given.topic_ids
        self._staging = staging_in(self._path)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Written:
        """Writes the rows of a task."""
        return Written(write_rows(map(with_session_zone, iterator), self._staging, self._options))

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """Publishes the partitions, in the driver, when all tasks are done."""
        parts = [part for message in messages if isinstance(message, Written) for part in message.parts]
        try:
            commit_rows(self._path, self._staging, parts, self._topic_ids)
        finally:
            shutil.rmtree(self._staging, ignore_errors=True)

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """Removes everything, in the driver, after a task has failed."""
        shutil.rmtree(self._staging, ignore_errors=True)


def _check_columns(schema: StructType) -> None:
    for field in schema.fields:
        types = _TYPES.get(field.name)
        if types is None:
            raise OptionError(f"column {field.name} is not part of a record: expected {', '.join(COLUMNS)}")
        if field.dataType.simpleString() not in types:
            found = field.dataType.simpleString()
            raise OptionError(f"column {field.name} is {found}: expected {' or '.join(sorted(types))}")
    if "value" not in schema.fieldNames():
        raise OptionError("column value is missing")
