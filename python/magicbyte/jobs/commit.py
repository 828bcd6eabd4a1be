"""The commit protocol of an output directory.

    OUT/_temporary/<job>/attempts/...   files of all attempts, lost ones included
    OUT/_temporary/<job>/whole/...      the files of successful attempts, moved here by the driver
    OUT/_temporary/<job>/replaced/...   the tables of an output that is overwritten
    OUT/records, batches, problems      moved out of `whole` at the end, each by one rename
    OUT/reconciliation.json, _SUCCESS   the sum, and last the mark of a complete output

All lies on one file system, so every step is a rename. Names that begin with `_` are not seen by
Spark, pyarrow or Hive: before the last step there is no table, and without `_SUCCESS` no whole one.
"""

from __future__ import annotations

import json
import os
import shutil
import uuid
from collections.abc import Iterable, Mapping, Sequence
from types import TracebackType
from typing import Any

from magicbyte.jobs.columns import TABLES
from magicbyte.jobs.failure import RefusedError
from magicbyte.jobs.parquet import DataFile, ParquetFile, directory_of, file_schema
from magicbyte.jobs.partitions import refuse_other_encodings
from magicbyte.jobs.reading import table_schema

__all__ = ["Output", "check_apart"]

_RECONCILIATION = "reconciliation.json"
_SUCCESS = "_SUCCESS"
_TEMPORARY = "_temporary"
_JOB_PREFIX = "magicbyte-"
_OURS = {*TABLES, _RECONCILIATION, _SUCCESS, _TEMPORARY}


class Output:
    """An output directory while a job fills it; as a context it leaves nothing behind on failure."""

    def __init__(self, path: str, sources: Sequence[str], *, overwrite: bool = False) -> None:
        """Claims `path`, or raises `RefusedError` if something is there that would be lost."""
        self.path = os.path.abspath(path)
        check_apart(self.path, sources)
        self._overwrite = _check_free(self.path, overwrite)
        self._created = not os.path.exists(self.path)
        self._job = os.path.join(self.path, _TEMPORARY, _JOB_PREFIX + uuid.uuid4().hex[:12])
        self.staging = os.path.join(self._job, "attempts")
        self._whole = os.path.join(self._job, "whole")
        os.makedirs(self.staging)

    def add(self, files: Iterable[DataFile]) -> None:
        """Takes the files of successful attempts, and no others, into the output."""
        for file in files:
            directory = os.path.join(self._whole, directory_of(file.table, file.topic, file.partition))
            os.makedirs(directory, exist_ok=True)
            os.rename(file.path, os.path.join(directory, file.name))

    def add_empty_tables(self, columns: Sequence[str], topic: str, partition: int) -> None:
        """Gives each table without rows one empty file, so that its schema can be read."""
        for table in TABLES:
            if not os.path.exists(os.path.join(self._whole, table)):
                schema = file_schema(table_schema(table, columns if table == "records" else None))
                directory = os.path.join(self._whole, directory_of(table, topic, partition))
                ParquetFile(os.path.join(directory, "part-empty.parquet"), schema, "none").close()

    def commit(self, reconciliation: Mapping[str, Any]) -> None:
        """Publishes the tables and the reconciliation, `_SUCCESS` last."""
        with open(os.path.join(self._whole, _RECONCILIATION), "w", encoding="utf-8") as file:
            json.dump(reconciliation, file, indent=1)
        if self._overwrite:
            replaced = os.path.join(self._job, "replaced")
            os.makedirs(replaced)
            # The mark goes first: from here to its return nobody may take this for a whole output.
            for name in (_SUCCESS, _RECONCILIATION, *TABLES):
                if os.path.exists(os.path.join(self.path, name)):
                    os.rename(os.path.join(self.path, name), os.path.join(replaced, name))
        for name in (*TABLES, _RECONCILIATION):
            os.rename(os.path.join(self._whole, name), os.path.join(self.path, name))
        with open(os.path.join(self.path, _SUCCESS), "wb"):
            pass
        shutil.rmtree(os.path.join(self.path, _TEMPORARY))

    def __enter__(self) -> Output:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        replaced = os.path.join(self._job, "replaced")
        if error is None or os.path.exists(replaced):
            # Failed in the middle of a swap: both outputs stay on disk, neither looks whole.
            return
        shutil.rmtree(self._job, ignore_errors=True)
        for directory in (os.path.join(self.path, _TEMPORARY), self.path if self._created else None):
            if directory is not None and not os.listdir(directory):
                os.rmdir(directory)


def check_apart(path: str, sources: Sequence[str]) -> None:
    """Raises `RefusedError` if the output and a source lie inside each other."""
    refuse_other_encodings(path)
    out = os.path.realpath(path)
    for source in map(os.path.realpath, sources):
        if os.path.commonpath([out, source]) in (out, source):
            raise RefusedError(f"{path} and the source {source} lie inside each other: choose another output")


def _check_free(path: str, overwrite: bool) -> bool:
    """Returns whether there is an output to replace."""
    if not os.path.lexists(path):
        return False
    if not os.path.isdir(path):
        raise RefusedError(f"{path} exists and is not a directory")
    names = set(os.listdir(path))
    if not names:
        return False
    if not overwrite:
        raise RefusedError(f"{path} exists and is not empty: choose another directory, or add --overwrite")
    if names - _OURS or not _is_output(path):
        foreign = ", ".join(sorted(names - _OURS)[:3]) or "no reconciliation.json"
        raise RefusedError(
            f"{path} is no output of magicbyte ({foreign}) and not overwritten: choose another directory"
        )
    return True


def _is_output(path: str) -> bool:
    """Whether a directory is an output of ours, whole or left behind by a job that died."""
    temporary = os.path.join(path, _TEMPORARY)
    if os.path.isdir(temporary) and all(name.startswith(_JOB_PREFIX) for name in os.listdir(temporary)):
        return True
    try:
        with open(os.path.join(path, _RECONCILIATION), encoding="utf-8") as file:
            return "magicbyte" in json.load(file)
    except (OSError, ValueError):
        return False
