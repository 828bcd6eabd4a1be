"""The private directory in which a job prepares its output, and how the output is published from there.

    WORK/lock                        locked (flock) by the running job
    WORK/magicbyte-ID/...            the files of one job; each job has a new ID
    WORK/magicbyte-ID/whole/NAME     what will be published
    WORK/magicbyte-ID/replaced/NAME  what that replaces
    WORK/magicbyte-ID/publishing     the journal: names and identities, in the order of their moves; the last
                                     one marks a complete output

Only one job may run at a time: a second one is refused while the first is alive. If a job is killed, the
next one rolls it back: what it published returns to its directory, what it replaced returns to its place,
and its directory is removed. If the mark has been moved, the output is complete and stays. Whatever others
have put under these names since stays, and the next job is refused. Everything is on one file system, so
every step is a rename.

On a file system without locks, a killed job cannot be distinguished from a running one: a job that finds
WORK there is refused until someone removes it.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import re
import shutil
import stat
import uuid
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from magicbyte.errors import JobError, RefusedError
from magicbyte.jobs.find.outputs import UNFINISHED
from magicbyte.storage.overlap import overlapping

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

__all__ = [
    "OF_VOLUMES",
    "Workspace",
    "beside",
    "check_apart",
    "clear",
    "sync",
    "sync_tree",
    "try_lock",
    "write_text",
]

OF_VOLUMES = frozenset({"lost+found"})
"""Names that every formatted volume has: a volume with nothing else counts as empty."""
_LOCK = "lock"
_JOB = re.compile(r"magicbyte-[0-9a-f]{12}")
_JOURNAL = "publishing"
_NO_LOCKS = {errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOTSUP, errno.EINVAL, errno.EBADF}
_NO_SYNC = {errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOTSUP, errno.EBADF, errno.EACCES}


def beside(out: str) -> str:
    """The workspace of an output that does not exist yet."""
    parent, name = os.path.split(out)
    return os.path.join(parent, f".{name}{UNFINISHED}")


def clear(work: str, out: str) -> None:
    """Rolls back what a killed job left in `work`, if anything.

    Raises:
        RefusedError: if a job is running there.

    """
    if os.path.exists(os.path.join(work, _LOCK)):
        Workspace(work, out).close()


class Workspace:
    """The private directory of a job, until it is closed."""

    def __init__(self, work: str, out: str) -> None:
        """Claims `work` for outputs in `out`, and rolls back what a killed job left there.

        Raises:
            RefusedError: if another job is running there, it holds files that are not ours, others have put
                something where a killed job had published, or its name is not UTF-8.

        """
        try:
            work.encode()
        except UnicodeEncodeError:
            # Tasks get the path in JSON.
            raise RefusedError(f"{out!r} is not UTF-8: choose another output") from None
        self._work = work
        self._out = out
        self._lock = _claim(work, out)
        try:
            for name in filter(_JOB.fullmatch, os.listdir(work)):
                _roll_back(os.path.join(work, name), out)
            self.directory = os.path.join(work, f"magicbyte-{uuid.uuid4().hex[:12]}")
            self.whole = os.path.join(self.directory, "whole")
            """The directory of what will be published, under its final names."""
            os.makedirs(self.whole)
        except BaseException:
            self._release()
            raise

    def publish_directory(self) -> None:
        """Publishes `whole` as the output, whose name is free or that of an empty directory: one rename."""
        sync(self.whole)
        try:
            os.rename(self.whole, self._out)
        except OSError as error:
            if os.path.lexists(self._out):
                raise JobError(
                    f"{self._out} was created while the job ran ({error.strerror}): nothing is published"
                ) from error
            raise
        sync(os.path.dirname(self._out))

    def publish(self, names: Sequence[str], replaced: Sequence[str] = ()) -> None:
        """Moves `names` from `whole` into the output in this order; the last one marks it as complete.

        Before that, the names in `replaced` are removed from the output, in this order. `close` undoes
        everything after a failure.
        """
        old = os.path.join(self.directory, "replaced")
        os.makedirs(old)
        sync(self.whole)
        journal = [_Published(name, _identity_of_tree(os.path.join(self.whole, name))) for name in names]
        write_text(os.path.join(self.directory, _JOURNAL), json.dumps(journal))
        for name in replaced:
            os.rename(os.path.join(self._out, name), os.path.join(old, name))
        for name in names:
            target = os.path.join(self._out, name)
            if os.path.lexists(target):
                raise JobError(f"{target} was created while the job ran: nothing is published")
            os.rename(os.path.join(self.whole, name), target)
        sync(self._out)

    def close(self) -> None:
        """Rolls back an incomplete publication, removes the directory and lets the next job in."""
        try:
            _roll_back(self.directory, self._out)
        finally:
            self._release()

    def _release(self) -> None:
        # The lock is removed before the directory: a job that already has it open will notice that.
        try:
            if all(name == _LOCK for name in os.listdir(self._work)):
                os.unlink(os.path.join(self._work, _LOCK))
                os.rmdir(self._work)
        except OSError:
            # The next job has already started, or will clear up what is left.
            pass
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None


def _claim(work: str, out: str) -> int | None:
    """Claims `work` for this job. Returns the lock, or None if the file system has no locks."""
    path = os.path.join(work, _LOCK)
    while True:
        os.makedirs(os.path.dirname(work), exist_ok=True)
        try:
            os.mkdir(work)
            made = True
        except FileExistsError:
            made = False
        if os.path.islink(work):
            raise RefusedError(f"{work} is a link, but the output would be prepared there: remove it")
        try:
            foreign = [name for name in os.listdir(work) if name != _LOCK and not _JOB.fullmatch(name)]
            if foreign:
                raise RefusedError(
                    f"{work} is where the output would be prepared, but {foreign[0]} in it is not from a "
                    "job: move it away, or choose another output"
                )
            lock = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o666)
        except FileNotFoundError:
            continue  # a job has just ended
        try:
            is_locked = try_lock(lock)
            if is_locked is None and not made:
                raise RefusedError(
                    f"another job is writing {out}, or was killed: without locks in the file system there is "
                    f"no way to tell. If no job is running, remove {work}"
                )
            if is_locked is False:
                raise RefusedError(
                    f"another job is writing {out}: wait until it ends, or choose another output"
                )
            if not os.path.exists(path) or not os.path.samestat(os.fstat(lock), os.stat(path)):
                os.close(lock)
                continue  # it was the lock of a job that has just ended
        except BaseException:
            os.close(lock)
            raise
        if is_locked is None:
            os.close(lock)
            return None
        return lock


def try_lock(lock: int) -> bool | None:
    """Tries to lock the file; None if the file system has no locks."""
    if fcntl is None:
        return None
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        if error.errno not in _NO_LOCKS:
            raise
        return None
    return True


class _Published(NamedTuple):
    """An entry of the journal."""

    name: str
    identity: str
    """See `_identity_of_tree`."""


def _roll_back(job: str, out: str) -> None:
    """Undoes an incomplete publication and removes the job's directory.

    Raises:
        RefusedError: if something else is where the job had published, or where it had taken something away.
            Then nothing is moved.

    """
    whole, old = os.path.join(job, "whole"), os.path.join(job, "replaced")
    journal = _journal(job)
    if journal and os.path.lexists(os.path.join(whole, journal[-1].name)):
        moved = [one for one in journal if not os.path.lexists(os.path.join(whole, one.name))]
        present = [one for one in moved if os.path.lexists(os.path.join(out, one.name))]
        for one in present:
            if _identity_of_tree(os.path.join(out, one.name)) != one.identity:
                raise _not_ours(os.path.join(out, one.name))
        # The mark of a complete output is the last to return.
        replaced = sorted(os.listdir(old), key=lambda name: name == journal[-1].name)
        for name in replaced:
            if name not in {one.name for one in present} and os.path.lexists(os.path.join(out, name)):
                raise _not_ours(os.path.join(out, name))
        for one in present:
            os.rename(os.path.join(out, one.name), os.path.join(whole, one.name))
        for name in replaced:
            os.rename(os.path.join(old, name), os.path.join(out, name))
    shutil.rmtree(job, ignore_errors=True)


def _not_ours(path: str) -> RefusedError:
    return RefusedError(
        f"{path} is not what a job that was killed had left there: move it away, and run the job again"
    )


def _identity_of_tree(path: str) -> str:
    """A digest of a file, or of a directory and all that is below, by inodes, sizes and times: it stays the
    same when that is moved, and no other tree has it.
    """
    digest = hashlib.sha256()
    for name in (path, *_entries(path)):
        status = os.lstat(name)
        # A moved directory may get another time. A new file may get the inode of one that was removed.
        fields = (
            [status.st_ino]
            if stat.S_ISDIR(status.st_mode)
            else [status.st_ino, status.st_size, status.st_mtime_ns]
        )
        digest.update(f"{os.path.relpath(name, path)}\0{fields}\0".encode(errors="surrogateescape"))
    return digest.hexdigest()


def _entries(top: str) -> Iterator[str]:
    for directory, directories, files in os.walk(top):
        directories.sort()
        yield from (os.path.join(directory, name) for name in sorted([*directories, *files]))


def _journal(job: str) -> list[_Published]:
    """The entries of the journal; none if it is incomplete or not ours."""
    try:
        with open(os.path.join(job, _JOURNAL), encoding="utf-8") as file:
            entries = json.load(file)
    except (FileNotFoundError, ValueError):
        return []
    if not isinstance(entries, list):
        return []
    published = [found for entry in entries if (found := _published(entry)) is not None]
    return published if len(published) == len(entries) else []


def _published(entry: object) -> _Published | None:
    match entry:
        case [str(name), str(identity)] if os.path.basename(name) == name:
            return _Published(name, identity)
        # Journals of earlier versions have names only, which nothing that is there now proves to be ours.
        case str(name) if os.path.basename(name) == name:
            return _Published(name, "")
    return None


def check_apart(path: str, sources: Sequence[str]) -> None:
    """Raises `RefusedError` if the output contains a source or the other way round, following links."""
    source = overlapping(path, sources)
    if source is not None:
        raise RefusedError(f"{path} and the source {source} overlap: choose another output")


def write_text(path: str, text: str) -> None:
    """Writes a new file, durably."""
    with open(path, "x", encoding="utf-8", newline="") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())


def sync_tree(top: str) -> None:
    """Makes all files and names below a directory durable."""
    for directory, _, files in os.walk(top):
        for name in files:
            with open(os.path.join(directory, name), "rb") as file:
                os.fsync(file.fileno())
        sync(directory)


def sync(directory: str) -> None:
    """Makes the names in a directory durable, if the system supports that."""
    if os.name != "posix":
        return
    try:
        descriptor = os.open(directory, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    except OSError as error:
        # Some file systems sync files only, and a directory may be writable but not readable.
        if error.errno not in _NO_SYNC:
            raise
