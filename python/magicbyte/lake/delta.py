"""Delta tables, by delta-rs (`deltalake`).

The state of each partition of the log is kept in application transactions of the table, whose versions are
numbers: `magicbyte/TOPIC-PARTITION` is the offset to continue at, and `delta_state.py` has the others. They
outlive checkpoints, and Delta refuses a commit if another commit has moved one of them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from magicbyte.errors import JobError, RefusedError
from magicbyte.jobs.run.sums import TopicPartition
from magicbyte.lake.delta_history import last_restore, read_at
from magicbyte.lake.delta_state import changed_numbers, restore_of, state_of
from magicbyte.lake.growth import grown, inner_types, plain_schema
from magicbyte.lake.ranges import OffsetRange, is_within, scans
from magicbyte.lake.state import PartitionState
from magicbyte.lake.table import (
    COMMIT,
    DIGESTED,
    OPTIONS,
    Commit,
    ConflictError,
    LakeFile,
    TableFile,
    TableOptions,
    data_location,
    dataset_rows,
    described,
    library_errors,
    offsets_after,
)
from magicbyte.storage.destination import Destination, destination_of
from magicbyte.storage.paths import absolute

if TYPE_CHECKING:
    from deltalake import DeltaTable as Handle
    from deltalake import Schema

__all__ = ["DAY", "DeltaTable", "is_delta"]

DAY = "day"
"""The column that tables partitioned by day have besides those of `records`: the day of the timestamp."""
_NO_TOPIC = "/"
"""A string that is not the name of any topic."""


def is_delta(directory: Destination) -> bool:
    """True if a directory holds a Delta table."""
    return directory.has_directory("_delta_log")


class DeltaTable:
    """See `TransactionalTable`."""

    def __init__(self, path: str) -> None:
        """Opens a table.

        Raises:
            RefusedError: if there is no such table, or it cannot be read.

        """
        self.name = path
        self.data = data_location(path, absolute(path))
        self._handle = _open(path, self.data)

    @classmethod
    def open_or_create(cls, path: str, schema: Callable[[], pa.Schema], options: TableOptions) -> DeltaTable:
        """Opens a table, or creates it without rows."""
        from deltalake import DeltaTable as Handle
        from deltalake.exceptions import DeltaError

        directory = destination_of(path)
        if not is_delta(directory):
            _check_free(path, directory)
            by = ["topic"] if options.partition_by == "topic" else ["topic", DAY]
            try:
                Handle.create(
                    path,
                    _delta_schema(path, _of_table(schema(), options)),
                    partition_by=by,
                    configuration={OPTIONS: options.text},
                    raise_if_key_not_exists=False,  # Delta's own keys are not the only ones
                    storage_options=_storage_options(directory),
                )
            except DeltaError as error:
                if not is_delta(directory):  # otherwise another job has just created it
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
        wanted = grown(self.name, self._schema, _of_table(schema, self.options), widens=False)
        _delta_schema(self.name, _union(self._schema, wanted))
        return wanted

    @cached_property
    def _dataset(self) -> ds.FileSystemDataset:
        return self._handle.to_pyarrow_dataset()

    @property
    def _schema(self) -> pa.Schema:
        return plain_schema(pa.schema(self._handle.schema().to_arrow()))

    def states(self, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, PartitionState]:
        """See `TransactionalTable`."""
        with library_errors(self.name):
            number = self._handle.transaction_version
            stored = {one: state_of(number, *one) for one in partitions if not self._is_restored(one)}
            found = {one: state for one, state in stored.items() if state is not None}
            if unknown := {topic for topic, partition in partitions if (topic, partition) not in found}:
                # The partitions are new, the transactions expired (delta.setTransactionRetentionDuration), or
                # they are those of other rows, since the table was restored.
                filtered = self._dataset.to_batches(
                    ["topic", "partition", "offset"], filter=pc.field("topic").isin(list(unknown))
                )
                after = offsets_after(filtered)
                found = {**{place: PartitionState(end) for place, end in after.items()}, **found}
        return {one: found[one] for one in partitions if one in found}

    @cached_property
    def _last_restore(self) -> int:
        return last_restore(self._handle)

    def _is_restored(self, partition: TopicPartition) -> bool:
        """True if the table was restored to an earlier version after the state of a partition was written."""
        known = self._last_restore
        return known > 0 and restore_of(self._handle.transaction_version, *partition) < known

    def holds(self, job: str, directory: str) -> bool:
        """See `TransactionalTable`."""
        with library_errors(self.name):
            if any(self._names(entry, job) for entry in self._handle.history()):
                return True
            return any(f"/{directory}/" in uri for uri in self._handle.file_uris())

    def commit(self, commit: Commit) -> None:
        """See `TransactionalTable`."""
        from deltalake import CommitProperties, Transaction
        from deltalake.exceptions import CommitFailedError

        version, restored = int(self._handle.version()), self._last_restore
        before = {place: state for place, state in commit.before.items() if not self._is_restored(place)}
        properties = CommitProperties(
            custom_metadata={COMMIT: {**commit.description, **read_at(version, restored)}},
            # delta-rs sees no conflict in a commit that has moved the rows of replaced files elsewhere.
            max_commit_retries=0 if commit.replaced else None,
            app_transactions=[
                Transaction(app_id, number)
                for place, state in commit.states.items()
                for app_id, number in changed_numbers(*place, before.get(place), state, restored)
            ],
        )
        by = self._handle.metadata().partition_columns
        with library_errors(self.name):
            there = self._schema
            schema = _union(there, grown(self.name, there, commit.schema, widens=False))
            grows = schema != there
            try:
                if grows:
                    self._prepare(schema)
                if grows and commit.replaced:
                    # Files can only be removed by a commit that leaves the schema alone: new columns, which
                    # are null everywhere, come first.
                    self._write([], schema, by, None)
                    self.refresh()
                    grows = False
                self._write(
                    [
                        *(self._action(file, by) for file in commit.files),
                        *(_removal(file.handle) for file in commit.replaced),
                    ],
                    schema if grows else None,
                    by,
                    properties,
                )
            except CommitFailedError as error:
                raise ConflictError(str(error)) from error
        self.refresh()

    def _write(self, actions: list[Any], grown_to: pa.Schema | None, by: list[str], properties: Any) -> None:
        """Commits actions. A commit may change the schema if it replaces rows: here those of a topic without
        rows.
        """
        grows = grown_to is not None
        self._handle.create_write_transaction(
            actions,
            "overwrite" if grows else "append",
            _delta_schema(self.name, grown_to) if grown_to is not None else self._handle.schema(),
            partition_by=by,
            partition_filters=[("topic", "=", _NO_TOPIC)] if grows else None,
            commit_properties=properties,
        )

    def _prepare(self, schema: pa.Schema) -> None:
        """Adds the feature of the table that timestamps without a time zone need.

        Raises:
            ConflictError: if it was added: other jobs may have committed before that.

        """
        from deltalake import TableFeatures

        if "timestampNtz" in (self._handle.protocol().writer_features or ()):
            return
        if any(pa.types.is_timestamp(one) and one.tz is None for one in inner_types(schema)):
            self._handle.alter.add_feature(
                TableFeatures.TimestampWithoutTimezone, allow_protocol_versions_increase=True
            )
            raise ConflictError("the table got the feature timestampNtz")

    def _action(self, file: LakeFile, by: Sequence[str]) -> Any:
        from deltalake.transaction import AddAction

        values = {"topic": file.topic, DAY: file.day}
        return AddAction(
            file.path,
            file.size,
            {name: values[name] for name in by},
            int(time.time() * 1000),
            True,
            file.statistics,
        )

    @staticmethod
    def _names(entry: dict[str, Any], job: str) -> bool:
        ours = described(entry.get(COMMIT))
        return ours is not None and ours["job"] == job

    def refresh(self) -> None:
        """See `TransactionalTable`."""
        self._handle = _open(self.name, self.data)
        for cached in ("_dataset", "_last_restore"):
            self.__dict__.pop(cached, None)

    def rows(
        self, columns: Sequence[str] = DIGESTED, within: Sequence[OffsetRange] | None = None
    ) -> Iterator[pa.RecordBatch]:
        """See `TransactionalTable`."""
        with library_errors(self.name):
            yield from dataset_rows(self._dataset, columns, within)

    def files_with(self, ranges: Sequence[OffsetRange]) -> Iterator[TableFile]:
        """See `TransactionalTable`."""
        with library_errors(self.name):
            actions = pa.table(self._handle.get_add_actions(flatten=False)).to_pylist()
            by_path = {one["path"]: one for one in actions}
            dataset = self._dataset
            for scan in scans(ranges):
                for fragment in dataset.get_fragments(filter=is_within(scan)):
                    if (action := by_path.pop(fragment.path, None)) is not None:
                        yield _DeltaFile(action, fragment, dataset)

    def whole_schema(self) -> pa.Schema:
        """See `TransactionalTable`."""
        return self._schema


class _DeltaFile:
    """See `TableFile`."""

    def __init__(self, action: dict[str, Any], fragment: ds.Fragment, dataset: ds.FileSystemDataset) -> None:
        self.handle = action
        self.topic = str(action["partition"]["topic"])
        self.rows = int(action["num_records"])
        self._fragment = fragment
        self._dataset = dataset

    def batches(self) -> Iterator[pa.RecordBatch]:
        """See `TableFile`."""
        of_file = ds.FileSystemDataset(
            [self._fragment], self._dataset.schema, self._dataset.format, self._dataset.filesystem
        )
        yield from dataset_rows(of_file, self._dataset.schema.names, None)


def _removal(action: dict[str, Any]) -> Any:
    """The action that removes a file from the table."""
    from deltalake.transaction import RemoveAction

    values = {name: None if value is None else str(value) for name, value in action["partition"].items()}
    return RemoveAction(action["path"], True, int(time.time() * 1000), action["size_bytes"], values)


def _open(path: str, directory: Destination) -> Handle:
    from deltalake import DeltaTable as Handle
    from deltalake.exceptions import DeltaError

    try:
        return Handle(path, storage_options=_storage_options(directory))
    except (DeltaError, OSError) as error:
        raise RefusedError(f"{path} is not a Delta table that can be read: {error}") from error


def _storage_options(directory: Destination) -> dict[str, str] | None:
    """The options of a store. delta-rs reaches the same stores by the same library as obstore."""
    return None if directory.options is None else dict(directory.options)


def _check_free(path: str, directory: Destination) -> None:
    """Refuses a directory with files in it, which would be inside the table."""
    try:
        is_free = directory.is_empty()
    except NotADirectoryError:
        raise RefusedError(f"{path} exists and is not a directory") from None
    if not is_free:
        raise RefusedError(f"{path} is not empty and not a Delta table: choose another {directory.noun}")


def _of_table(schema: pa.Schema, options: TableOptions) -> pa.Schema:
    found = plain_schema(schema)
    return found if options.partition_by == "topic" else found.append(pa.field(DAY, pa.date32()))


def _union(there: pa.Schema, added: pa.Schema) -> pa.Schema:
    """The columns of the table with the types and columns that are added."""
    types = {field.name: field.type for fields in (there, added) for field in fields}
    return pa.schema(list(types.items()))


def _delta_schema(table: str, schema: pa.Schema) -> Schema:
    """The schema as delta-rs takes it. Raises RefusedError if two names differ only in case."""
    from deltalake import Schema

    try:
        return Schema.from_arrow(schema)
    except Exception as error:  # it has no class of its own, and a stack in its text
        raise RefusedError(f"{table} cannot have these columns: {str(error).splitlines()[0]}") from error
