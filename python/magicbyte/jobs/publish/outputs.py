"""The place that a job writes to: a directory or a store."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from magicbyte.errors import RefusedError
from magicbyte.jobs.publish.local_partitions import LocalPartitions, PartitionsOutput
from magicbyte.storage.destination import Destination, destination_of
from magicbyte.storage.local_directory import LocalDirectory
from magicbyte.storage.stored_directory import StoredDirectory

if TYPE_CHECKING:
    from magicbyte.jobs.publish.local_tables import TablesOutput

__all__ = ["partitions_output", "tables_output"]


def partitions_output(path: str | os.PathLike[str], sources: Sequence[str]) -> PartitionsOutput:
    """Claims `path`, a directory or a URL, for a job that writes partitions.

    Raises:
        RefusedError: it is not empty, it and a source overlap, another job is writing to it, or nothing can
            be written there.

    """
    match _writable(path):
        case LocalDirectory() as directory:
            return LocalPartitions(directory.path, sources)
        case StoredDirectory() as directory:
            from magicbyte.jobs.publish.stored_partitions import StoredPartitions

            return StoredPartitions(directory, sources)


def tables_output(path: str, sources: Sequence[str], *, overwrite: bool) -> TablesOutput:
    """Claims `path`, a directory or a URL, for a job that writes tables.

    Raises:
        RefusedError: content of `path` would be lost, it and a source overlap, another job is writing to it,
            or nothing can be written there.

    """
    match _writable(path):
        case LocalDirectory() as directory:
            # Tables need pyarrow, partitions do not.
            from magicbyte.jobs.publish.local_tables import LocalTables

            return LocalTables(directory.path, sources, overwrite=overwrite)
        case StoredDirectory() as directory:
            from magicbyte.jobs.publish.stored_tables import StoredTables

            return StoredTables(directory, sources, overwrite=overwrite)


def _writable(path: str | os.PathLike[str]) -> Destination:
    try:
        output = destination_of(path)
    except ValueError as error:
        raise RefusedError(str(error)) from None
    if not output.is_writable:
        raise RefusedError(f"{path}: nothing can be written to a web server; choose another output")
    return output
