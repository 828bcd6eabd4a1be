"""The directory that an ingest writes tables to, and its commit protocol.

    OUT/_temporary/                     the workspace: one job at a time, see `jobs/workspace.py`
    OUT/_temporary/<job>/attempts/...   files of all attempts, failed ones included
    OUT/_temporary/<job>/whole/...      the files of successful attempts, moved here by the driver
    OUT/_temporary/<job>/replaced/...   the tables of an output that is being overwritten
    OUT/records, batches, problems, ... moved out of `whole` at the end, by one rename each
    OUT/reconciliation.json, _SUCCESS   the sums, and last the mark of a complete output

Everything is on one file system, so every step is a rename. Spark, pyarrow and Hive ignore names that
begin with `_`: before the last step they see no table, and without `_SUCCESS` the output is incomplete.
If a job is killed between these steps, the next job undoes them.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from types import TracebackType
from typing import Any

import pyarrow as pa

from magicbyte.jobs.columns import INTERNAL_TABLES, TABLES
from magicbyte.jobs.failure import JobError, RefusedError
from magicbyte.jobs.parquet import DataFile, ParquetFile
from magicbyte.jobs.partitions import refuse_other_encodings
from magicbyte.jobs.workspace import OF_VOLUMES, Workspace, beside, check_apart, clear, sync_tree, write_text

__all__ = ["RECONCILIATION", "TablesOutput", "is_complete"]

RECONCILIATION = "reconciliation.json"
"""The name of the file with the report of an ingest."""
_SUCCESS = "_SUCCESS"
_TEMPORARY = "_temporary"
_EMPTY = "part-empty.parquet"
_PUBLISHED = (*TABLES, *INTERNAL_TABLES, RECONCILIATION, _SUCCESS)


def is_complete(path: str) -> bool:
    """Whether the directory holds a complete output."""
    return os.path.exists(os.path.join(path, _SUCCESS)) and os.path.exists(os.path.join(path, RECONCILIATION))


class TablesOutput:
    """An output directory while a job writes to it; as a context manager it cleans up on failure."""

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

    def add(self, files: Iterable[DataFile]) -> None:
        """Adds files of successful attempts to the output; no other files get there."""
        for file in files:
            path = self._path_of(file)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            os.rename(file.path, path)
            self._files.append(file)

    def _path_of(self, file: DataFile) -> str:
        return os.path.join(self._workspace.whole, file.table, file.name)

    def add_empty_tables(self, schemas: Mapping[str, pa.Schema]) -> None:
        """Gives each of these tables that has no rows an empty file, so that its schema can be read."""
        for table, schema in schemas.items():
            directory = os.path.join(self._workspace.whole, table)
            if not os.path.exists(directory):
                ParquetFile(os.path.join(directory, _EMPTY), schema, "none").close()

    def commit(self, reconciliation: Mapping[str, Any]) -> None:
        """Publishes the tables and the reconciliation, `_SUCCESS` last.

        Raises:
            JobError: if a file that was added is missing or has another size.

        """
        for file in self._files:
            _check_size(self._path_of(file), file.size)
        whole = self._workspace.whole
        write_text(os.path.join(whole, RECONCILIATION), json.dumps(reconciliation, indent=1))
        write_text(os.path.join(whole, _SUCCESS), "")
        sync_tree(whole)
        # The old mark is removed first: until the new one is there, the output must not look complete.
        names = [name for name in _PUBLISHED if os.path.exists(os.path.join(whole, name))]
        self._workspace.publish(names, self._replaced)

    def __enter__(self) -> TablesOutput:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._close()

    def _close(self) -> None:
        self._workspace.close()
        if self._created:
            with suppress(OSError):  # not empty
                os.rmdir(self.path)


def _check_size(path: str, size: int) -> None:
    found = os.path.getsize(path) if os.path.exists(path) else None
    if found != size:
        state = "is gone" if found is None else f"has {found:,} bytes now"
        raise JobError(f"{path} was written with {size:,} bytes and {state}: nothing is published")


def _check_free(path: str, overwrite: bool) -> list[str]:
    """Returns the names that the output will replace, the mark of a complete output first."""
    if not os.path.lexists(path):
        return []
    if not os.path.isdir(path):
        raise RefusedError(f"{path} exists and is not a directory")
    names = set(os.listdir(path)) - {_TEMPORARY} - OF_VOLUMES
    if not names:
        return []
    if not overwrite:
        raise RefusedError(f"{path} exists and is not empty: choose another directory, or add --overwrite")
    foreign = next(iter(sorted(names - set(_PUBLISHED))), None) or _foreign_file(path)
    if foreign is not None:
        raise RefusedError(
            f"{path} is not an output of magicbyte ({foreign}), so it is not overwritten: "
            "choose another directory"
        )
    return [name for name in reversed(_PUBLISHED) if name in names]


def _foreign_file(path: str) -> str | None:
    """A file that is not in the manifest of an output, or why there is no manifest."""
    try:
        with open(os.path.join(path, RECONCILIATION), encoding="utf-8") as file:
            report = json.load(file)
        ours = {one["path"] for one in report["files"]}
    except FileNotFoundError:
        return f"no {RECONCILIATION}"
    except (OSError, ValueError, TypeError, KeyError):
        return f"{RECONCILIATION} is not ours"
    for table in (*TABLES, *INTERNAL_TABLES):
        for directory, _, files in os.walk(os.path.join(path, table)):
            for name in files:
                file_path = os.path.relpath(os.path.join(directory, name), path)
                if name != _EMPTY and file_path not in ours:
                    return file_path
    return None
