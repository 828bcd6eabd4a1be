"""The interface of a transactional table for jobs, independent of the table's format."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, cast

import pyarrow as pa
import pyarrow.dataset as ds

from magicbyte.enums import (
    Framing,
    IsolationLevel,
    PartitionBy,
    PayloadType,
    SchemaFormat,
    TableFormat,
    Windows,
)
from magicbyte.errors import JobError, RefusedError
from magicbyte.jobs.ingest import CommittedPartition
from magicbyte.jobs.run.columns import DIGEST_COLUMN, KAFKA_COLUMNS
from magicbyte.jobs.run.sums import TopicPartition
from magicbyte.lake.ranges import OffsetRange, is_within
from magicbyte.lake.state import PartitionState
from magicbyte.schema.decoding import TYPED_COLUMNS
from magicbyte.storage.destination import Destination, destination_of
from magicbyte.storage.paths import is_relative

__all__ = [
    "BATCH_ROWS",
    "COMMIT",
    "DIGESTED",
    "OPTIONS",
    "Commit",
    "ConflictError",
    "LakeFile",
    "TableFile",
    "TableOptions",
    "TableTarget",
    "TransactionalTable",
    "UnsettledError",
    "data_location",
    "dataset_rows",
    "described",
    "library_errors",
    "offsets_after",
]

OPTIONS = "magicbyte.options"
"""The property of a table that holds its `TableOptions`."""
COMMIT = "magicbyte"
"""The property of a commit that describes its job: JSON of a `Commit` without its files."""
DIGESTED = (*KAFKA_COLUMNS, "headers", *TYPED_COLUMNS["key"], *TYPED_COLUMNS["value"], DIGEST_COLUMN)
"""The columns that a digest of records reads, if they are there."""
BATCH_ROWS = 4096
"""The number of rows of a table that are read at a time."""

_COLOUR = re.compile(r"\x1b\[[0-9;]*m")


class UnsettledError(JobError):
    """The log or the table changed while a job was running, so it added nothing: another job may succeed."""


class ConflictError(Exception):
    """Something else has committed to the table since it was loaded, and nothing of ours is in it."""


@dataclass(frozen=True)
class TableTarget:
    """The format, the name and the catalog of a table."""

    format: TableFormat
    name: str
    """The directory or URL of a Delta table, or the identifier of an Iceberg table, `namespace.table`."""
    catalog: str | None = None
    """The name of pyiceberg's catalog; its properties are in pyiceberg's configuration or those below."""
    catalog_properties: Mapping[str, str] = field(default_factory=dict, repr=False)
    partition_by: PartitionBy = "topic"
    """The partitioning of the table's files."""


@dataclass(frozen=True)
class TableOptions:
    """The records that a table holds, and their form: the same for every job that adds to it."""

    isolation_level: IsolationLevel
    start_offset: int | None
    end_offset: int | None
    start_timestamp: int | None
    end_timestamp: int | None
    where: str | None
    key_as: PayloadType
    value_as: PayloadType
    partition_by: PartitionBy
    key_format: SchemaFormat | None = None
    """The format that keys were decoded from."""
    value_format: SchemaFormat | None = None
    messages: tuple[str, ...] = ()
    """The Protobuf messages of values; empty for the first message of the schema."""
    key_framing: Framing = "auto"
    value_framing: Framing = "auto"
    key_windows: Windows = "auto"

    @property
    def is_typed(self) -> bool:
        """True if keys or values are typed."""
        return self.key_format is not None or self.value_format is not None

    @property
    def text(self) -> str:
        """The options as JSON, for the table's properties."""
        return json.dumps(vars(self))

    @classmethod
    def parse(cls, name: str, text: str | None) -> TableOptions:
        """The options of the table `name`.

        Raises:
            RefusedError: if they are absent or of another version.

        """
        try:
            options = cls(**json.loads(text or ""))
            return replace(options, messages=tuple(options.messages))
        except (ValueError, TypeError):
            raise RefusedError(
                f"{name} was not made by magicbyte (its property {OPTIONS} is "
                f"{'absent' if text is None else 'not understood'}): choose another table"
            ) from None

    def check(self, name: str, other: TableOptions) -> None:
        """Raises `RefusedError` if the table `name`, made with these options, cannot get other records."""
        for option, value in vars(self).items():
            if (wanted := getattr(other, option)) != value:
                raise RefusedError(
                    f"{name} was made with {option} {_shown(value)}, not {_shown(wanted)}: "
                    "use the same option, or another table"
                )


def _shown(value: object) -> str:
    if isinstance(value, tuple):
        return ", ".join(value) or "unset"
    return "unset" if value is None else str(value)


@dataclass(frozen=True)
class LakeFile:
    """A data file of a task."""

    path: str
    """The path relative to the directory of the table's data files."""
    topic: str
    day: str | None
    """The day of all its rows, `2024-05-01`; None if there is none, or the table is not partitioned by it."""
    rows: int
    size: int
    statistics: str = "{}"
    """See `file_statistics`."""


class TableFile(Protocol):
    """A data file that is in the table."""

    topic: str
    rows: int
    handle: Any
    """The file as an object of the table's library."""

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Its rows with all columns of the table, in batches of bounded size."""


@dataclass(frozen=True)
class Commit:
    """The changes of one job to a table, in one transaction."""

    job: str
    """A new ID for each job."""
    magicbyte: str
    """The version that wrote it."""
    sources: Sequence[str]
    partitions: Sequence[CommittedPartition]
    files: Sequence[LakeFile]
    schema: pa.Schema
    """The schema of the files. The commit adds to the table what it lacks of this schema."""
    states: Mapping[TopicPartition, PartitionState]
    """The new states of partitions. Other partitions keep their states."""
    before: Mapping[TopicPartition, PartitionState]
    """The states of partitions when the job began."""
    replaced: Sequence[TableFile] = ()
    """Files that are removed from the table: the rows to keep are in `files`."""

    @property
    def description(self) -> dict[str, Any]:
        """The description in the commit, as JSON."""
        return {
            "job": self.job,
            "magicbyte": self.magicbyte,
            "sources": list(self.sources),
            "partitions": list(self.partitions),
        }

    @property
    def summary(self) -> dict[str, Any]:
        """A description that does not grow with the number of partitions, as JSON."""
        return {
            "job": self.job,
            "magicbyte": self.magicbyte,
            "changed_partitions": len(self.partitions),
            "rows": sum(partition["rows"] for partition in self.partitions),
        }


class TransactionalTable(Protocol):
    """A table at one version, until `refresh`."""

    name: str
    data: Destination
    """The directory of its data files."""

    @property
    def version(self) -> int | None:
        """Delta's version or Iceberg's snapshot; None before the first."""

    @property
    def options(self) -> TableOptions:
        """The options that the table was made with."""

    @property
    def column_names(self) -> list[str]:
        """The names of its columns."""

    def file_schema(self, schema: pa.Schema) -> pa.Schema:
        """The schema of new files with these columns. The commit adds what the table lacks of it:
        columns, nested fields, and the width of numbers, as far as the format can. The files also have the
        fields of a column that only the table has.

        Raises:
            RefusedError: if a column cannot get its type, or the format has no such type.

        """

    def states(self, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, PartitionState]:
        """The state of each partition that has been read: according to the commits. If others have
        removed this information, the state is to continue after the largest offset in the table.
        """

    def holds(self, job: str, directory: str) -> bool:
        """True if a job has committed: a commit names it, or a file in its `directory` is in the table."""

    def commit(self, commit: Commit) -> None:
        """Adds the files, and what the table lacks of their schema; afterwards this is the new version.

        Raises:
            UnsettledError: if another commit has changed the schema meanwhile.
            ConflictError: if there was another commit meanwhile that may have added the same records.

        """

    def refresh(self) -> None:
        """Loads the newest version."""

    def rows(
        self, columns: Sequence[str] = DIGESTED, within: Sequence[OffsetRange] | None = None
    ) -> Iterator[pa.RecordBatch]:
        """The rows in batches of bounded size: all rows, or those in the ranges `within`, of which there is
        at least one. They have those of `columns` that exist, by default the columns of digests.
        """

    def files_with(self, ranges: Sequence[OffsetRange]) -> Iterator[TableFile]:
        """The data files that may have rows in one of these ranges, of which there is at least one."""

    def whole_schema(self) -> pa.Schema:
        """The schema of new files that have all columns of the table."""


@contextmanager
def library_errors(name: str) -> Iterator[None]:
    """Turns errors of a table's library, its catalog or its files into one that names the table."""
    try:
        yield
    except (ConflictError, JobError, ModuleNotFoundError):
        raise
    except Exception as error:
        # delta-rs writes for terminals: in colours, and over several lines.
        why = " ".join(_COLOUR.sub("", str(error)).split())
        raise JobError(f"{name}: {why or type(error).__name__}") from error


def data_location(name: str, location: str, options: Mapping[str, str] | None = None) -> Destination:
    """The directory of the table `name`, whose store gets `options` unless it is mounted.

    Raises:
        RefusedError: nothing can be written there.

    """
    try:
        found = destination_of(location, options)
    except ValueError as error:
        raise RefusedError(f"{name} is in {location}: {error}") from None
    if is_relative(location) or not found.is_writable:
        raise RefusedError(f"{name} is in {location}, where nothing can be written: choose another location")
    return found


def dataset_rows(
    dataset: ds.Dataset, columns: Sequence[str], within: Sequence[OffsetRange] | None
) -> Iterator[pa.RecordBatch]:
    """The rows of a dataset for `TransactionalTable.rows`."""
    names = [name for name in dataset.schema.names if name in columns]
    yield from dataset.to_batches(
        names,
        filter=None if within is None else is_within(within),
        batch_size=BATCH_ROWS,
        batch_readahead=4,
        fragment_readahead=2,
    )


def offsets_after(batches: Iterable[pa.RecordBatch]) -> dict[TopicPartition, int]:
    """The offsets after the largest ones of rows with the columns `topic`, `partition` and `offset`."""
    found: dict[TopicPartition, int] = {}
    for batch in batches:
        groups = pa.table(batch).group_by(["topic", "partition"]).aggregate([("offset", "max")])
        for row in groups.to_pylist():
            place = row["topic"], row["partition"]
            found[place] = max(found.get(place, 0), row["offset_max"] + 1)
    return found


def described(text: object) -> dict[str, Any] | None:
    """The description in a commit; None if it is not one of ours."""
    try:
        found = json.loads(text) if isinstance(text, str) else text
    except ValueError:
        return None
    if not isinstance(found, dict) or not isinstance(found.get("job"), str):
        return None
    return cast(dict[str, Any], found)
