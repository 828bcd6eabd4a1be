"""Iceberg tables in any catalog, by `pyiceberg`.

The states of the log's partitions are one property of the table (`iceberg_state.py`), which changes in the
same transaction as the data.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from magicbyte.errors import JobError, RefusedError
from magicbyte.jobs.run.sums import TopicPartition
from magicbyte.lake.growth import grown, plain_schema
from magicbyte.lake.iceberg_state import STATE, description, packed_states, stored_states
from magicbyte.lake.ranges import OffsetRange, by_offsets, scans
from magicbyte.lake.state import PartitionState
from magicbyte.lake.table import (
    BATCH_ROWS,
    COMMIT,
    DIGESTED,
    OPTIONS,
    Commit,
    ConflictError,
    TableFile,
    TableOptions,
    TableTarget,
    UnsettledError,
    data_location,
    library_errors,
    offsets_after,
)

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog
    from pyiceberg.expressions import BooleanExpression
    from pyiceberg.table import DataScan, FileScanTask, Table, Transaction

__all__ = ["IcebergTable"]

_RETRIES = "commit.retry.num-retries"
_METRICS = {
    "write.metadata.metrics.default": "none",
    **{
        f"write.metadata.metrics.column.{name}": "full"
        for name in ("topic", "partition", "offset", "timestamp", "timestampMillis")
    },
}
"""Statistics of the columns that readers skip files by; those of keys and values would only be large."""
_FIELD_ID = b"PARQUET:field_id"
_STORAGE = {
    "s3.endpoint": "endpoint",
    "s3.access-key-id": "access_key_id",
    "s3.secret-access-key": "secret_access_key",
    "s3.session-token": "session_token",
    "s3.region": "region",
}
"""pyiceberg's names of storage options."""


class IcebergTable:
    """See `TransactionalTable`."""

    def __init__(self, target: TableTarget) -> None:
        """Opens a table.

        Raises:
            RefusedError: if there is no such table, or the catalog cannot be read.

        """
        from pyiceberg.exceptions import NoSuchTableError

        self.name = target.name
        self._catalog = _catalog(target)
        with library_errors(self.name):
            try:
                self._table: Table = self._catalog.load_table(target.name)
            except NoSuchTableError as error:
                raise RefusedError(f"{target.name} is not in the catalog {target.catalog}") from error
        location = self._table.location()
        directory = data_location(self.name, location, _storage_options(self._table.io.properties))
        self.data = directory.below("data")
        self._data_uri = f"{location.rstrip('/')}/data"

    @classmethod
    def open_or_create(
        cls, target: TableTarget, schema: Callable[[], pa.Schema], options: TableOptions
    ) -> IcebergTable:
        """Opens a table, or creates it and its namespace."""
        namespace = target.name.rpartition(".")[0]
        if not namespace:
            raise RefusedError(f"{target.name} is not the identifier of a table: expected namespace.table")
        catalog = _catalog(target)
        with library_errors(target.name):
            if not catalog.table_exists(target.name):
                catalog.create_namespace_if_not_exists(namespace)
                _create(catalog, target.name, schema(), options)
        return cls(target)

    @property
    def version(self) -> int | None:
        """See `TransactionalTable`."""
        snapshot = self._table.current_snapshot()
        return None if snapshot is None else snapshot.snapshot_id

    @property
    def options(self) -> TableOptions:
        """See `TransactionalTable`."""
        return TableOptions.parse(self.name, self._table.properties.get(OPTIONS))

    @property
    def column_names(self) -> list[str]:
        """See `TransactionalTable`."""
        return [field.name for field in self._table.schema().fields]

    def file_schema(self, schema: pa.Schema) -> pa.Schema:
        """See `TransactionalTable`. The fields have the IDs that they have in the table."""
        wanted = grown(
            self.name, plain_schema(self._table.schema().as_arrow()), plain_schema(schema), widens=True
        )
        return self._with_ids(self._table.transaction(), wanted)

    def _with_ids(self, transaction: Transaction, schema: pa.Schema) -> pa.Schema:
        """Lets the table grow to a schema in a transaction; returns it with the IDs that its fields get."""
        schema = plain_schema(schema)
        with transaction.update_schema() as update:
            update.union_by_name(schema)
        fields = transaction.table_metadata.schema().as_arrow()
        return pa.schema([_with_ids(field, fields.field(field.name)) for field in schema])

    def states(self, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, PartitionState]:
        """See `TransactionalTable`."""
        from pyiceberg.expressions import In

        found = stored_states(self._table)
        if unknown := {topic for topic, partition in partitions if (topic, partition) not in found}:
            # New ones; or others have rolled the table back, or expired snapshots of an earlier version.
            with library_errors(self.name):
                scan = self._table.scan(
                    In("topic", unknown), selected_fields=("topic", "partition", "offset")
                )
                after = offsets_after(scan.to_arrow_batch_reader())
            found = {**{place: PartitionState(end) for place, end in after.items()}, **found}
        return {one: found[one] for one in partitions if one in found}

    def holds(self, job: str, directory: str) -> bool:
        """See `TransactionalTable`."""
        descriptions = map(description, self._table.snapshots())
        if any(one is not None and one["job"] == job for one in descriptions):
            return True
        with library_errors(self.name):
            return any(f"/{directory}/" in task.file.file_path for task in self._table.scan().plan_files())

    def commit(self, commit: Commit) -> None:
        """See `TransactionalTable`."""
        from pyiceberg.exceptions import CommitFailedException

        # pyiceberg would repeat the commit on top of another one, which may have added the same records.
        self._table.metadata.properties[_RETRIES] = "0"
        with library_errors(self.name):
            try:
                with self._table.transaction() as transaction:
                    schema = self._with_ids(transaction, commit.schema)
                    if not schema.equals(commit.schema, check_metadata=True):
                        raise UnsettledError(f"{self.name}: another job has changed the schema meanwhile")
                    transaction.set_properties(
                        {STATE: packed_states(commit.job, {**stored_states(self._table), **commit.states})}
                    )
                    paths = [f"{self._data_uri}/{file.path}" for file in commit.files]
                    summary = {COMMIT: json.dumps(commit.summary)}
                    if commit.replaced:
                        self._replace(transaction, commit.replaced, paths, summary)
                    else:
                        # Their names are new.
                        transaction.add_files(paths, summary, check_duplicate_files=False)
            except CommitFailedException as error:
                raise ConflictError(str(error)) from error
        self.refresh()

    def _replace(
        self,
        transaction: Transaction,
        replaced: Sequence[TableFile],
        paths: list[str],
        summary: dict[str, str],
    ) -> None:
        """Adds and removes files in one snapshot."""
        from pyiceberg.io.pyarrow import parquet_files_to_data_files

        with transaction.update_snapshot(summary).overwrite() as update:
            for file in replaced:
                update.delete_data_file(file.handle)
            for data_file in parquet_files_to_data_files(
                self._table.io, transaction.table_metadata, iter(paths)
            ):
                update.append_data_file(data_file)

    def refresh(self) -> None:
        """See `TransactionalTable`."""
        with library_errors(self.name):
            self._table = self._catalog.load_table(self.name)

    def rows(
        self, columns: Sequence[str] = DIGESTED, within: Sequence[OffsetRange] | None = None
    ) -> Iterator[pa.RecordBatch]:
        """See `TransactionalTable`."""
        names = tuple(name for name in self.column_names if name in columns)
        with library_errors(self.name):
            scan = self._table.scan(selected_fields=names)
            yield from _bounded(scan if within is None else scan.filter(_is_within(within)))

    def files_with(self, ranges: Sequence[OffsetRange]) -> Iterator[TableFile]:
        """See `TransactionalTable`."""
        with library_errors(self.name):
            known = set()
            for scan in scans(ranges):
                for task in self._table.scan(_is_within(scan)).plan_files():
                    if task.file.file_path not in known:
                        known.add(task.file.file_path)
                        yield _IcebergFile(task, self._table)

    def whole_schema(self) -> pa.Schema:
        """See `TransactionalTable`."""
        fields = self._table.schema().as_arrow()
        return pa.schema([_with_ids(one, fields.field(one.name)) for one in plain_schema(fields)])


class _IcebergFile:
    """See `TableFile`."""

    def __init__(self, task: FileScanTask, table: Table) -> None:
        self.handle = task.file
        self.topic = str(task.file.partition[0])
        self.rows = task.file.record_count
        self._task = task
        self._table = table

    def batches(self) -> Iterator[pa.RecordBatch]:
        """See `TableFile`. Rows that others have deleted are left out."""
        from pyiceberg.expressions import AlwaysTrue
        from pyiceberg.io.pyarrow import ArrowScan

        scan = ArrowScan(self._table.metadata, self._table.io, self._table.schema(), AlwaysTrue())
        for batch in scan.to_record_batches([self._task]):
            for start in range(0, batch.num_rows, BATCH_ROWS):
                yield batch.slice(start, BATCH_ROWS)


def _bounded(scan: DataScan) -> Iterator[pa.RecordBatch]:
    for batch in scan.to_arrow_batch_reader():
        for start in range(0, batch.num_rows, BATCH_ROWS):
            yield batch.slice(start, BATCH_ROWS)


def _is_within(ranges: Sequence[OffsetRange]) -> BooleanExpression:
    from pyiceberg.expressions import AlwaysFalse, And, EqualTo, GreaterThanOrEqual, In, LessThan, Or

    return Or(
        AlwaysFalse(),
        AlwaysFalse(),
        *(
            And(
                EqualTo("topic", one.topic),
                In("partition", one.partitions),
                GreaterThanOrEqual("offset", one.start),
                LessThan("offset", one.end),
            )
            for one in by_offsets(ranges)
        ),
    )


def _storage_options(properties: Mapping[str, Any]) -> dict[str, str]:
    """The options of the table's store among the properties of the catalog, and what it has lent."""
    found = {name: str(properties[key]) for key, name in _STORAGE.items() if properties.get(key) is not None}
    if found.get("endpoint", "").startswith("http://"):
        found["allow_http"] = "true"
    return found


def _catalog(target: TableTarget) -> Catalog:
    from pyiceberg.catalog import load_catalog

    try:
        with library_errors(f"the catalog {target.catalog}"):
            return load_catalog(target.catalog, **target.catalog_properties)
    except JobError as error:
        raise RefusedError(
            f"{error}: it cannot be opened; its properties are in pyiceberg's "
            "configuration (~/.pyiceberg.yaml, PYICEBERG_CATALOG__NAME__URI), or given by --catalog-property"
        ) from error


def _create(catalog: Catalog, name: str, schema: pa.Schema, options: TableOptions) -> None:
    from pyiceberg.exceptions import TableAlreadyExistsError
    from pyiceberg.transforms import DayTransform

    properties = {OPTIONS: options.text, **_METRICS}
    creation = catalog.create_table_transaction(name, plain_schema(schema), properties=properties)
    try:
        with creation as transaction, transaction.update_spec() as spec:
            spec.add_identity("topic")
            if options.partition_by == "day":
                spec.add_field("timestamp", DayTransform(), "timestamp_day")
    except TableAlreadyExistsError:
        pass  # another job has just created it


def _with_ids(field: pa.Field, there: pa.Field) -> pa.Field:
    """The field with the IDs that it and the fields inside it have in the table."""
    data_type = field.type
    if pa.types.is_list(data_type):
        data_type = pa.list_(_with_ids(data_type.value_field, there.type.value_field))
    elif pa.types.is_map(data_type):
        key = _with_ids(data_type.key_field, there.type.key_field)
        data_type = pa.map_(key, _with_ids(data_type.item_field, there.type.item_field))
    elif pa.types.is_struct(data_type):
        data_type = pa.struct([_with_ids(inside, there.type.field(inside.name)) for inside in data_type])
    return pa.field(field.name, data_type, field.nullable, {_FIELD_ID: there.metadata[_FIELD_ID]})
