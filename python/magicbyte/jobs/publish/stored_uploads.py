"""Uploads of a job to a store, and their removal if the job does not commit.

A job that replaces tables (`--overwrite`) removes the old ones last, so that they are there again if it is
killed:

    OUT/.magicbyte-unfinished/replaced.json   their report and files; written first
    OUT/_SUCCESS                              removed
    OUT/records/part-JOB-...                  the new files, beside the old ones
    OUT/reconciliation.json, OUT/_SUCCESS     of the new tables: from here on they count
    OUT/records/part-...                      the old files are removed
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypedDict

from magicbyte.errors import RefusedError
from magicbyte.jobs.find.outputs import RECONCILIATION, SUCCESS, UNFINISHED
from magicbyte.storage.stored_directory import StoredDirectory

__all__ = ["REPLACED", "JobRecord", "clear_uploads", "remember_replaced"]

_ID = re.compile(r"[0-9a-f]{12}")
REPLACED = f"{UNFINISHED}/replaced.json"


@dataclass(frozen=True)
class JobRecord:
    """The announcement of a job's uploads."""

    job: str
    """A new ID for each job."""
    names: tuple[str, ...] = ()
    """The files and directories in OUT that it uploads."""
    marker: str | None = None
    """The file in OUT that marks the output as complete; None as long as nothing is uploaded."""

    @classmethod
    def parse(cls, found: Any) -> JobRecord:
        """A record from JSON; ValueError for what no job writes, such as names of other directories."""
        record = cls(found["job"], tuple(found["names"]), found["marker"])
        names = (*record.names, record.marker or "none")
        if not _ID.fullmatch(record.job) or not all(map(_is_name, names)):
            raise ValueError(f"{found!r} is not the record of a job")
        return record

    def covers(self, name: str) -> bool:
        """True if the job has uploaded the file, according to these names or the file's own name."""
        is_named = any(name == one or name.startswith(f"{one}/") for one in self.names)
        return is_named or name.rpartition("/")[2].startswith(f"part-{self.job}-")


def _is_name(name: object) -> bool:
    return isinstance(name, str) and bool(name) and "/" not in name and name not in (".", "..", UNFINISHED)


class _Replaced(TypedDict):
    """Tables that are being replaced."""

    report: str
    files: list[str]
    complete: bool


def remember_replaced(output: StoredDirectory, files: Sequence[str]) -> None:
    """Writes down the tables in `output`, which consist of `files`, before a job replaces them."""
    report = output.read(RECONCILIATION) or b""
    data_files = [name for name in files if "/" in name]
    replaced = _Replaced(report=report.decode(), files=data_files, complete=SUCCESS in files)
    output.put(REPLACED, json.dumps(replaced).encode())


def clear_uploads(output: StoredDirectory, record: JobRecord) -> None:
    """Removes the uploads of a job, unless it has committed; then, the files that it has replaced."""
    files = output.files()
    replaced = _replaced(output) if REPLACED in files else None
    is_new = replaced is None or output.read(RECONCILIATION) != replaced["report"].encode()
    if record.marker in files and is_new:
        if replaced is not None:
            output.delete(replaced["files"])
    else:
        output.delete([name for name in files if record.covers(name)])
        if replaced is not None:
            output.put(RECONCILIATION, replaced["report"].encode())
            if replaced["complete"]:
                output.put(SUCCESS, b"")
    if replaced is not None:
        output.delete([REPLACED])


def _replaced(output: StoredDirectory) -> _Replaced:
    try:
        found: _Replaced = json.loads(output.read(REPLACED) or b"")
        parts = [name.split("/") for name in found["files"]]
        if isinstance(found["report"], str) and all(len(part) > 1 and ".." not in part for part in parts):
            return found
    except (ValueError, TypeError, KeyError, AttributeError):
        pass
    raise RefusedError(f"{output.url_of(REPLACED)} is not from a job: remove it, or choose another output")
