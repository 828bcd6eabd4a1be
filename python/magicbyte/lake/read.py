"""Tables of any kind, to be compared with a log."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.dataset as ds

from magicbyte.errors import RefusedError
from magicbyte.jobs.find.outputs import RECONCILIATION, SUCCESS
from magicbyte.jobs.run.columns import DIGEST_COLUMN
from magicbyte.jobs.run.sums import TopicPartition
from magicbyte.lake.delta import DeltaTable, is_delta
from magicbyte.lake.iceberg import IcebergTable
from magicbyte.lake.ranges import OffsetRange
from magicbyte.lake.state import PartitionState
from magicbyte.lake.table import DIGESTED, TableOptions, TableTarget, dataset_rows, library_errors
from magicbyte.storage.destination import Destination, destination_of

__all__ = ["StoredTable", "open_stored"]


class StoredTable(Protocol):
    """The part of `TransactionalTable` that Parquet tables have too."""

    name: str

    @property
    def options(self) -> TableOptions:
        """Which records it holds."""

    def states(self, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, PartitionState]:
        """The state of each partition when the table was written."""

    def rows(
        self, columns: Sequence[str] = DIGESTED, within: Sequence[OffsetRange] | None = None
    ) -> Iterator[pa.RecordBatch]:
        """See `TransactionalTable`."""


def open_stored(
    name: str, catalog: str | None = None, properties: Mapping[str, str] | None = None
) -> StoredTable:
    """Opens an Iceberg table if there is a catalog, else the Delta or Parquet table in the directory `name`.

    Raises:
        RefusedError: if there is none, or magicbyte did not write it.

    """
    if catalog is not None:
        return IcebergTable(TableTarget("iceberg", name, catalog, properties or {}))
    directory = destination_of(name)
    if is_delta(directory):
        return DeltaTable(name)
    if directory.read(SUCCESS) is not None and directory.read(RECONCILIATION) is not None:
        return _ParquetTables(name, directory)
    raise RefusedError(
        f"{name} is neither a Delta table nor a complete output of ingest, and there is no catalog"
    )


class _ParquetTables:
    """An output of `ingest --format parquet`."""

    def __init__(self, path: str, directory: Destination) -> None:
        self.name = path
        try:
            self._report: dict[str, Any] = json.loads(directory.read(RECONCILIATION) or b"")
            self._options = TableOptions(
                isolation_level=self._report["isolation_level"],
                **self._report["ranges"],
                where=self._report["where"],
                key_as=self._report["key_as"],
                value_as=self._report["value_as"],
                partition_by="topic",
                key_format=self._report["key_format"],
                value_format=self._report["value_format"],
            )
            self._ends = {
                (partition["topic"], partition["partition"]): _end(partition, self._options)
                for partition in self._report["partitions"]
            }
        except (OSError, ValueError, TypeError, KeyError) as error:
            raise RefusedError(f"{path}: {RECONCILIATION} is not that of an ingest: {error}") from error
        with library_errors(path):
            system, records = directory.below("records").file_system()
            self._records = ds.dataset(records, filesystem=system, format="parquet")
        if self._options.is_typed and DIGEST_COLUMN not in self._records.schema.names:
            raise RefusedError(
                f"{path} has typed keys or values without the column {DIGEST_COLUMN}, by which they are "
                "compared: ingest them with --digest"
            )

    @property
    def options(self) -> TableOptions:
        return self._options

    def states(self, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, PartitionState]:
        return {place: PartitionState(self._ends[place]) for place in partitions if place in self._ends}

    def rows(
        self, columns: Sequence[str] = DIGESTED, within: Sequence[OffsetRange] | None = None
    ) -> Iterator[pa.RecordBatch]:
        with library_errors(self.name):
            yield from dataset_rows(self._records, columns, within)


def _end(partition: dict[str, Any], options: TableOptions) -> int:
    """The offset after what an ingest has read of a partition."""
    end = 0 if partition["last_offset"] is None else partition["last_offset"] + 1
    if options.isolation_level == "read_committed" and partition["last_stable_offset"] is not None:
        end = partition["last_stable_offset"]
    return int(end if options.end_offset is None else min(end, options.end_offset))
