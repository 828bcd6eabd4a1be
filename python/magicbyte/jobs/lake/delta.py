"""Delta tables, by delta-rs (`deltalake`).

Each partition of the log has an application transaction in the table, whose version is the offset to
continue at. Delta refuses a commit if another one has moved one of its application transactions.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from magicbyte.jobs.failure import JobError, RefusedError
from magicbyte.jobs.lake.sums import TopicPartition
from magicbyte.jobs.lake.table import (
    COMMIT,
    OPTIONS,
    Commit,
    ConflictError,
    LakeFile,
    TableOptions,
    dataset_rows,
    described,
    library_errors,
    local_directory,
    offsets_after,
)

if TYPE_CHECKING:
    from deltalake import DeltaTable as Handle

__all__ = ["DAY", "DeltaTable", "is_delta"]

DAY = "day"
"""The column that tables partitioned by day have besides those of `records`: the day of the timestamp."""


def is_delta(path: str) -> bool:
    """Whether the directory holds a Delta table."""
    return os.path.isdir(os.path.join(path, "_delta_log"))


class DeltaTable:
    """See `TransactionalTable`."""

    def __init__(self, path: str) -> None:
        """Opens a table.

        Raises:
            RefusedError: if there is no such table, or it cannot be read.

        """
        self.name = path
        self.data = os.path.abspath(local_directory(path, os.path.abspath(path)))
        self._handle = _open(path)

    @classmethod
    def open_or_create(cls, path: str, schema: pa.Schema, options: TableOptions) -> DeltaTable:
        """Opens a table, or creates it without rows."""
        from deltalake import DeltaTable as Handle
        from deltalake import Schema
        from deltalake.exceptions import DeltaError

        if not is_delta(path):
            _check_free(path)
            by = ["topic"] if options.partition_by == "topic" else ["topic", DAY]
            try:
                Handle.create(
                    path,
                    Schema.from_arrow(_of_table(schema, options)),
                    partition_by=by,
                    configuration={OPTIONS: options.text},
                    raise_if_key_not_exists=False,  # Delta's own keys are not the only ones
                )
            except DeltaError as error:
                if not is_delta(path):  # otherwise another job has just created it
                    raise JobError(f"{path}: {error}") from error
        return cls(path)

    @property
    def version(self) -> int | None:
        """See `TransactionalTable`."""
        return int(self._handle.version())

    @property
    def options(self) -> TableOptions:
        """See `TransactionalTable`."""
        return TableOptions.parse(self.name, self._handle.metadata().configuration.get(OPTIONS))

    @property
    def column_names(self) -> list[str]:
        """See `TransactionalTable`."""
        return [field.name for field in self._handle.schema().fields]

    def file_schema(self, schema: pa.Schema) -> pa.Schema:
        """See `TransactionalTable`."""
        from deltalake import Schema

        wanted = _of_table(schema, self.options)
        types = {field.name: field.type for field in self._handle.schema().fields}
        for field in Schema.from_arrow(wanted).fields:
            if types[field.name] != field.type:
                raise RefusedError(
                    f"{self.name} has the column {field.name} with another type: {types[field.name]}, "
                    f"not {field.type}"
                )
        return wanted

    def add_columns(self, fields: Sequence[pa.Field]) -> None:
        """See `TransactionalTable`."""
        from deltalake import Schema

        with library_errors(self.name):
            self._handle.alter.add_columns(Schema.from_arrow(_nullable(pa.schema(fields))).fields)
        self.refresh()

    def next_offsets(self, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, int]:
        """See `TransactionalTable`."""
        with library_errors(self.name):
            stored = {one: self._handle.transaction_version(_app_id(*one)) for one in partitions}
            found = {one: int(offset) for one, offset in stored.items() if offset is not None}
            if unknown := {topic for topic, partition in partitions if (topic, partition) not in found}:
                # New ones; or the transactions have expired, as delta.setTransactionRetentionDuration says.
                filtered = self._handle.to_pyarrow_dataset().to_batches(
                    ["topic", "partition", "offset"], filter=pc.field("topic").isin(list(unknown))
                )
                found = {**offsets_after(filtered), **found}
        return {one: found[one] for one in partitions if one in found}

    def holds(self, job: str, directory: str) -> bool:
        """See `TransactionalTable`."""
        with library_errors(self.name):
            if any(self._names(entry, job) for entry in self._handle.history()):
                return True
            return any(f"/{directory}/" in uri for uri in self._handle.file_uris())

    def commit(self, commit: Commit) -> None:
        """See `TransactionalTable`."""
        from deltalake import CommitProperties, Schema, Transaction
        from deltalake.exceptions import CommitFailedError

        properties = CommitProperties(
            custom_metadata={COMMIT: commit.description},
            app_transactions=[
                Transaction(_app_id(*one), offset) for one, offset in commit.next_offsets.items()
            ],
        )
        by = self._handle.metadata().partition_columns
        with library_errors(self.name):
            try:
                self._handle.create_write_transaction(
                    [self._action(file, by) for file in commit.files],
                    "append",
                    Schema(self._handle.schema().fields),
                    partition_by=by,
                    commit_properties=properties,
                )
            except CommitFailedError as error:
                raise ConflictError(str(error)) from error
        self.refresh()

    def _action(self, file: LakeFile, by: Sequence[str]) -> Any:
        from deltalake.transaction import AddAction

        values = {"topic": file.topic, DAY: file.day}
        return AddAction(
            file.path,
            file.size,
            {name: values[name] for name in by},
            int(time.time() * 1000),
            True,
            json.dumps(_statistics(os.path.join(self.data, file.path))),
        )

    @staticmethod
    def _names(entry: dict[str, Any], job: str) -> bool:
        ours = described(entry.get(COMMIT))
        return ours is not None and ours["job"] == job

    def refresh(self) -> None:
        """See `TransactionalTable`."""
        self._handle = _open(self.name)

    def rows(self) -> Iterator[pa.RecordBatch]:
        """See `TransactionalTable`."""
        with library_errors(self.name):
            yield from dataset_rows(self._handle.to_pyarrow_dataset())


def _open(path: str) -> Handle:
    from deltalake import DeltaTable as Handle
    from deltalake.exceptions import DeltaError

    try:
        return Handle(path)
    except (DeltaError, OSError) as error:
        raise RefusedError(f"{path} is not a Delta table that can be read: {error}") from error


def _check_free(path: str) -> None:
    """Refuses a directory with files in it, which would be inside the table."""
    if os.path.lexists(path) and not os.path.isdir(path):
        raise RefusedError(f"{path} exists and is not a directory")
    if os.path.isdir(path) and os.listdir(path):
        raise RefusedError(f"{path} is not empty and not a Delta table: choose another directory")


def _app_id(topic: str, partition: int) -> str:
    return f"magicbyte/{topic}-{partition}"


def _nullable(schema: pa.Schema) -> pa.Schema:
    return pa.schema([field.with_nullable(True) for field in schema])


def _of_table(schema: pa.Schema, options: TableOptions) -> pa.Schema:
    found = _nullable(schema)
    return found if options.partition_by == "topic" else found.append(pa.field(DAY, pa.date32()))


def _statistics(path: str) -> dict[str, Any]:
    """A file's statistics as Delta has them: readers skip files by them."""
    footer = pq.read_metadata(path)
    least: dict[str, Any] = {}
    most: dict[str, Any] = {}
    nulls: dict[str, int] = {}
    for name in ("partition", "offset", "timestamp"):
        at = footer.schema.names.index(name)
        found = [footer.row_group(group).column(at).statistics for group in range(footer.num_row_groups)]
        if not all(one is not None and one.has_null_count for one in found):
            continue
        nulls[name] = sum(one.null_count for one in found)
        with_values = [one for one in found if one.has_min_max]
        if with_values and all(one.has_min_max or one.null_count == one.num_values for one in found):
            low, high = min(one.min_raw for one in with_values), max(one.max_raw for one in with_values)
            if name != "timestamp":
                least[name], most[name] = low, high
            else:  # in milliseconds, which these times are
                least[name], most[name] = _time(low // 1000), _time(high // 1000)
    return {"numRecords": footer.num_rows, "minValues": least, "maxValues": most, "nullCount": nulls}


def _time(millis: int) -> str:
    seconds, rest = divmod(millis, 1000)
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}.{rest:03d}Z"
