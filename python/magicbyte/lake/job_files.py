"""The data files of one job, apart from those of others until they are committed.

    DATA/magicbyte-ID/part-...        the files of one job; each job has a new ID
    DATA/_magicbyte/ID.lock           locked (flock) by that job while it runs

Files are written where they stay, since a commit names them. Readers see only what the table's commits name,
so files of a killed job are never taken for output. The next job removes them: a lock that is there and
free belongs to a killed job, and if no commit holds that job, its files are in no version. Jobs that
run at the same time do not disturb each other.

On a file system without locks, a killed job cannot be distinguished from a running one: its files stay.
"""

from __future__ import annotations

import os
import re
import shutil
import uuid
from collections.abc import Iterable
from contextlib import suppress
from typing import Protocol

from magicbyte.jobs.publish.workspace import sync_tree, try_lock
from magicbyte.jobs.publish.written_sizes import check_local_size
from magicbyte.lake.table import LakeFile, TransactionalTable

__all__ = ["JobFiles", "LocalJobFiles", "directory_name"]

_LOCKS = "_magicbyte"
_LOCK = re.compile(r"([0-9a-f]{12})\.lock")


def directory_name(job: str) -> str:
    """The name of a job's directory below that of the data files."""
    return f"magicbyte-{job}"


class JobFiles(Protocol):
    """The directory of one job. Close it: files that are not committed are removed then."""

    job: str
    """The ID of the job."""
    name: str
    """The directory's name below that of the table's data files."""

    def complete(self, files: Iterable[LakeFile]) -> None:
        """Keeps exactly these files, durably, so that they can be committed.

        Raises:
            JobError: if a file is missing or has another size.

        """

    def close(self, *, keep: bool | None) -> None:
        """Ends the job: `keep` its files if they are committed, remove them if they are not.

        None if that is not known: the next job finds out.
        """

    def remove_orphans(self, table: TransactionalTable) -> list[str]:
        """Removes what killed jobs have left; returns the directories."""


class LocalJobFiles(JobFiles):
    """A directory of a local or mounted file system."""

    def __init__(self, data: str) -> None:
        """Claims a new directory below `data`, the directory of the table's data files."""
        self._data = data
        self._lock_path, self._lock = _new_lock(os.path.join(data, _LOCKS))
        self.job = os.path.basename(self._lock_path).partition(".")[0]
        self.name = directory_name(self.job)
        self.path = os.path.join(data, self.name)
        os.mkdir(self.path)

    def complete(self, files: Iterable[LakeFile]) -> None:
        """See `JobFiles.complete`."""
        wanted = {os.path.basename(file.path): file for file in files}
        for name in os.listdir(self.path):
            if name not in wanted:
                os.unlink(os.path.join(self.path, name))  # of an attempt that failed
        for name, file in wanted.items():
            check_local_size(os.path.join(self.path, name), file.size, "nothing is committed")
        sync_tree(self.path)

    def close(self, *, keep: bool | None) -> None:
        """See `JobFiles.close`."""
        try:
            if keep is False:
                shutil.rmtree(self.path, ignore_errors=True)
            elif keep:
                with suppress(OSError):  # not empty
                    os.rmdir(self.path)
            if keep is not None:
                os.unlink(self._lock_path)
                with suppress(OSError):  # others are running
                    os.rmdir(os.path.dirname(self._lock_path))
        finally:
            os.close(self._lock)

    def remove_orphans(self, table: TransactionalTable) -> list[str]:
        """See `JobFiles.remove_orphans`."""
        locks = os.path.join(self._data, _LOCKS)
        removed = []
        for found in filter(None, map(_LOCK.fullmatch, _names_in(locks))):
            path, job = os.path.join(locks, found.group()), found.group(1)
            try:
                lock = os.open(path, os.O_RDWR)
            except FileNotFoundError:
                continue  # its job has just ended
            try:
                if not try_lock(lock):
                    continue
                # The job is dead: whether it has committed will not change, but it may have just now.
                table.refresh()
                directory = directory_name(job)
                if not table.holds(job, directory) and os.path.isdir(os.path.join(self._data, directory)):
                    shutil.rmtree(os.path.join(self._data, directory))
                    removed.append(directory)
                with suppress(FileNotFoundError):
                    os.unlink(path)
            finally:
                os.close(lock)
        return removed


def _new_lock(directory: str) -> tuple[str, int]:
    while True:
        try:
            os.makedirs(directory, exist_ok=True)
        except FileExistsError:
            if os.path.lexists(directory):
                raise  # a file
            continue  # another job has removed it meanwhile
        path = os.path.join(directory, f"{uuid.uuid4().hex[:12]}.lock")
        try:
            lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o666)
        except FileNotFoundError:
            continue  # another job has just ended
        # A job that cleans up may have taken it for a killed job's.
        if try_lock(lock) is not False and os.path.exists(path):
            return path, lock
        os.close(lock)


def _names_in(directory: str) -> list[str]:
    try:
        return sorted(os.listdir(directory))
    except FileNotFoundError:
        return []
