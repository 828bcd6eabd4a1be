"""The directory that an ingest writes tables to, and its commit protocol.

    OUT/_temporary/                     the workspace: one job at a time, see `jobs/publish/workspace.py`
    OUT/_temporary/<job>/attempts/...   files of all attempts, failed ones included
    OUT/_temporary/<job>/whole/...      the files of successful attempts, moved here by the driver
    OUT/_temporary/<job>/replaced/...   the tables of an output that is being overwritten
    OUT/records, batches, problems, ... moved out of `whole` at the end, by one rename each
    OUT/reconciliation.json, _SUCCESS   the sums, and last the mark of a complete output

Everything is on one file system, so every step is a rename. Spark, pyarrow and Hive ignore names that
begin with `_`: before the last step they see no table, and without `_SUCCESS` the output is incomplete.
If a job is killed between these steps, the next job undoes them. `stored_tables.py` is for stores.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from types import TracebackType
from typing import Any, Protocol

import pyarrow as pa

from magicbyte.errors import RefusedError
from magicbyte.jobs.find.outputs import RECONCILIATION, SUCCESS
from magicbyte.jobs.find.partitions import refuse_other_encodings
from magicbyte.jobs.publish.parquet import DataFile, ParquetFile
from magicbyte.jobs.publish.table_files import Decoded, WriteOptions, decode_task
from magicbyte.jobs.publish.workspace import (
    OF_VOLUMES,
    Workspace,
    beside,
    check_apart,
    clear,
    sync_tree,
    write_text,
)
from magicbyte.jobs.publish.written_sizes import check_local_size
from magicbyte.jobs.run.columns import INTERNAL_TABLES, TABLES
from magicbyte.jobs.run.plan import DecodeTask

__all__ = [
    "ALL_TABLES",
    "LocalTables",
    "TablesOutput",
    "check_replaced",
    "foreign_file",
    "write_empty_tables",
]

ALL_TABLES = (*TABLES, *INTERNAL_TABLES)
_TEMPORARY = "_temporary"
_EMPTY = "part-empty.parquet"
_EMPTY_FILE = re.compile(r"part-([0-9a-f]{12}-)?empty\.parquet")
"""The name of a file without rows; in a store, it contains the ID of the job."""
_PUBLISHED = (*ALL_TABLES, RECONCILIATION, SUCCESS)


class Decode(Protocol):
    """A task of an ingest."""

    def __call__(self, task: DecodeTask, options: WriteOptions) -> Decoded:
        """Decodes the chunks of the task, and writes their rows."""


class TablesOutput(AbstractContextManager["TablesOutput"], Protocol):
    """The destination of an ingest's tables; as a context manager, it cleans up on failure."""

    staging: str
    """The directory for files that the driver writes."""
    decode: Decode
    """The function of a task: `decode_task`, and the step that brings its files to the place that `add`
    expects."""

    def add(self, files: Sequence[DataFile], staged: Sequence[DataFile] = ()) -> list[DataFile]:
        """Adds files to the output, which gets no others. Returns the added files.

        Args:
            files: files of successful attempts.
            staged: files that the driver has written to `staging`.

        """

    def add_empty_tables(self, schemas: Mapping[str, pa.Schema]) -> None:
        """Gives each of these tables that has no rows an empty file, so that its schema can be read."""

    def commit(self, reconciliation: Mapping[str, Any]) -> None:
        """Publishes the tables and the reconciliation, `_SUCCESS` last.

        Raises:
            JobError: if a file that was added is missing or has another size.

        """


class LocalTables(TablesOutput):
    """An output in a directory."""

    decode = staticmethod(decode_task)

    def __init__(self, path: str, sources: Sequence[str], *, overwrite: bool = False) -> None:
        """Claims `path`.

        Raises:
            RefusedError: if content of `path` would be lost, it and a source overlap, or another
                job is writing to it.

        """
        self.path = os.path.abspath(path)
        refuse_other_encodings(self.path)
        check_apart(self.path, sources)
        check_apart(beside(self.path), sources)
        # A job that writes partitions may be about to publish its output under this name.
        clear(beside(self.path), self.path)
        temporary = os.path.join(self.path, _TEMPORARY)
        if not os.path.isdir(temporary):
            _check_free(self.path, overwrite)
        self._created = not os.path.exists(self.path)
        self._files: list[DataFile] = []
        self._workspace = Workspace(temporary, self.path)
        try:
            # Checked again, since the workspace has just undone what a killed job had published.
            self._replaced = _check_free(self.path, overwrite)
            self.staging = os.path.join(self._workspace.directory, "attempts")
            os.mkdir(self.staging)
        except BaseException:
            self._close()
            raise

    def add(self, files: Sequence[DataFile], staged: Sequence[DataFile] = ()) -> list[DataFile]:
        """See `TablesOutput.add`."""
        added = [*files, *staged]
        for file in added:
            path = self._path_of(file)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            os.rename(file.path, path)
        self._files += added
        return added

    def _path_of(self, file: DataFile) -> str:
        return os.path.join(self._workspace.whole, file.table, file.name)

    def add_empty_tables(self, schemas: Mapping[str, pa.Schema]) -> None:
        """See `TablesOutput.add_empty_tables`."""
        whole = self._workspace.whole
        missing = {table: schema for table, schema in schemas.items() if table not in os.listdir(whole)}
        write_empty_tables(whole, missing, _EMPTY)

    def commit(self, reconciliation: Mapping[str, Any]) -> None:
        """See `TablesOutput.commit`."""
        for file in self._files:
            check_local_size(self._path_of(file), file.size)
        whole = self._workspace.whole
        write_text(os.path.join(whole, RECONCILIATION), json.dumps(reconciliation, indent=1))
        write_text(os.path.join(whole, SUCCESS), "")
        sync_tree(whole)
        # The old mark is removed first: until the new one is there, the output must not look complete.
        names = [name for name in _PUBLISHED if os.path.exists(os.path.join(whole, name))]
        self._workspace.publish(names, self._replaced)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._close()

    def _close(self) -> None:
        self._workspace.close()
        if self._created:
            with suppress(OSError):  # not empty
                os.rmdir(self.path)


def write_empty_tables(directory: str, schemas: Mapping[str, pa.Schema], name: str) -> None:
    """Writes a file without rows for each table."""
    for table, schema in schemas.items():
        ParquetFile(os.path.join(directory, table, name), schema, "none").close()


def _check_free(path: str, overwrite: bool) -> list[str]:
    """Returns the names that the output will replace, the mark of a complete output first."""
    if not os.path.lexists(path):
        return []
    if not os.path.isdir(path):
        raise RefusedError(f"{path} exists and is not a directory")
    names = set(os.listdir(path)) - {_TEMPORARY} - OF_VOLUMES
    return check_replaced(path, names, lambda: _foreign_file(path), overwrite=overwrite)


def check_replaced(
    path: str, names: set[str], foreign: Callable[[], str | None], *, overwrite: bool
) -> list[str]:
    """Returns the names that an output at `path` will replace, the mark of a complete output first.

    Raises:
        RefusedError: there is something, and `overwrite` is not given, or not all of it is an output of ours.

    """
    if not names:
        return []
    if not overwrite:
        raise RefusedError(f"{path} exists and is not empty: choose another directory, or add --overwrite")
    other = next(iter(sorted(names - set(_PUBLISHED))), None) or foreign()
    if other is not None:
        raise RefusedError(
            f"{path} is not an output of magicbyte ({other}), so it is not overwritten: "
            "choose another directory"
        )
    return [name for name in reversed(_PUBLISHED) if name in names]


def _foreign_file(path: str) -> str | None:
    try:
        with open(os.path.join(path, RECONCILIATION), "rb") as file:
            report: bytes | None = file.read()
    except FileNotFoundError:
        report = None
    except OSError:
        report = b""
    files = (
        os.path.relpath(os.path.join(directory, name), path)
        for table in ALL_TABLES
        for directory, _, names in os.walk(os.path.join(path, table))
        for name in names
    )
    return foreign_file(report, files)


def foreign_file(report: bytes | None, files: Iterable[str]) -> str | None:
    """The first of the tables' files that is not in the report of an output, or why there is no report."""
    if report is None:
        return f"no {RECONCILIATION}"
    try:
        ours = {file["path"] for file in json.loads(report)["files"]}
    except (ValueError, TypeError, KeyError):
        return f"{RECONCILIATION} is not ours"
    return next(
        (file for file in files if file not in ours and not _EMPTY_FILE.fullmatch(os.path.basename(file))),
        None,
    )
