"""The private directory in which a job makes its output, and how the output is published from there.

    WORK/lock                        locked (flock) by the job that is at work
    WORK/magicbyte-ID/...            what one job writes; the ID is new each time
    WORK/magicbyte-ID/whole/NAME     what will be published
    WORK/magicbyte-ID/replaced/NAME  what it takes the place of
    WORK/magicbyte-ID/publishing     the names in the order of their moves, the mark of a whole output last

One job at a time: a second one is refused while the first is alive. What a killed job left is taken back
by the next one: names it had published return into its directory, those it had replaced return to their
place, and its directory is removed. If the mark had moved, its output is whole and stays. Nothing is ever
removed that is not named as above. All lies on one file system, so every step is a rename.

Where a file system has no locks, nothing tells a killed job from one that runs: then the job that finds
WORK there is refused until somebody removes it.
"""

from __future__ import annotations

import errno
import json
import os
import re
import shutil
import uuid
from collections.abc import Sequence

from magicbyte.jobs.failure import JobError, RefusedError

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

__all__ = [
    "OF_VOLUMES",
    "UNFINISHED",
    "Workspace",
    "beside",
    "check_apart",
    "clear",
    "is_unfinished",
    "sync",
    "sync_tree",
    "write_text",
]

UNFINISHED = ".magicbyte-unfinished"
OF_VOLUMES = frozenset({"lost+found"})
"""What a volume has from the day it was formatted: it is empty all the same."""
_LOCK = "lock"
_JOB = re.compile(r"magicbyte-[0-9a-f]{12}")
_JOURNAL = "publishing"
_NO_LOCKS = {errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOTSUP, errno.EINVAL, errno.EBADF}
_NO_SYNC = {errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOTSUP, errno.EBADF, errno.EACCES}


def is_unfinished(name: str) -> bool:
    """Whether a directory of this name holds what jobs have not finished: no partition is named so."""
    return name.startswith(".") and name.endswith(UNFINISHED)


def beside(out: str) -> str:
    """The workspace of an output that is not there yet."""
    parent, name = os.path.split(out)
    return os.path.join(parent, f".{name}{UNFINISHED}")


def clear(work: str, out: str) -> None:
    """Takes back what a killed job left in `work`, if one did.

    Raises:
        RefusedError: a job is at work there.

    """
    if os.path.exists(os.path.join(work, _LOCK)):
        Workspace(work, out).close()


class Workspace:
    """A job's private directory, until it is closed."""

    def __init__(self, work: str, out: str) -> None:
        """Claims `work` for outputs in `out`, and takes back what a killed job left there.

        Raises:
            RefusedError: another job is at work there, it is no directory of ours, or its name is not UTF-8.

        """
        try:
            work.encode()
        except UnicodeEncodeError:
            # Tasks are told in JSON where they write.
            raise RefusedError(f"{out!r} is not UTF-8: choose another output") from None
        self._work = work
        self._out = out
        self._lock = _claim(work, out)
        try:
            for name in filter(_JOB.fullmatch, os.listdir(work)):
                _take_back(os.path.join(work, name), out)
            self.directory = os.path.join(work, f"magicbyte-{uuid.uuid4().hex[:12]}")
            self.whole = os.path.join(self.directory, "whole")
            """Where what will be published has its names."""
            os.makedirs(self.whole)
        except BaseException:
            self._release()
            raise

    def publish_directory(self) -> None:
        """Gives `whole` the output's name, which is free, or an empty directory's: one rename."""
        sync(self.whole)
        try:
            os.rename(self.whole, self._out)
        except OSError as error:
            if os.path.lexists(self._out):
                raise JobError(
                    f"{self._out} came into being while the job ran ({error.strerror}): nothing is published"
                ) from error
            raise
        sync(os.path.dirname(self._out))

    def publish(self, names: Sequence[str], replaced: Sequence[str] = ()) -> None:
        """Moves `names` from `whole` into the output in this order; the last one is the mark of a whole one.

        `replaced` leaves the output before, in this order. After a failure all is as it was.
        """
        old = os.path.join(self.directory, "replaced")
        os.makedirs(old)
        sync(self.whole)
        write_text(os.path.join(self.directory, _JOURNAL), json.dumps(names))
        for name in replaced:
            os.rename(os.path.join(self._out, name), os.path.join(old, name))
        for name in names:
            target = os.path.join(self._out, name)
            if os.path.lexists(target):
                raise JobError(f"{target} came into being while the job ran: nothing is published")
            os.rename(os.path.join(self.whole, name), target)
        sync(self._out)

    def close(self) -> None:
        """Takes back what was not published to its end, removes the directory, lets the next job in."""
        try:
            _take_back(self.directory, self._out)
        finally:
            self._release()

    def _release(self) -> None:
        # The lock goes before the directory: who holds it open already finds another one in its place.
        try:
            if all(name == _LOCK for name in os.listdir(self._work)):
                os.unlink(os.path.join(self._work, _LOCK))
                os.rmdir(self._work)
        except OSError:
            # The next job has come in, or clears away what is left.
            pass
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None


def _claim(work: str, out: str) -> int | None:
    """Makes `work` this job's; returns the lock, or None where there are no locks."""
    path = os.path.join(work, _LOCK)
    while True:
        os.makedirs(os.path.dirname(work), exist_ok=True)
        try:
            os.mkdir(work)
            made = True
        except FileExistsError:
            made = False
        if os.path.islink(work):
            raise RefusedError(f"{work} is a link, but the output would be made there: remove it")
        try:
            foreign = [name for name in os.listdir(work) if name != _LOCK and not _JOB.fullmatch(name)]
            if foreign:
                raise RefusedError(
                    f"{work} is where the output would be made, but {foreign[0]} in it is no job's: "
                    "move it away, or choose another output"
                )
            lock = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o666)
        except FileNotFoundError:
            continue  # a job ended in between
        try:
            is_locked = _is_locked(lock)
            if is_locked is None and not made:
                raise RefusedError(
                    f"another job is writing {out}, or was killed: the file system has no locks to tell. "
                    f"If no job is running, remove {work}"
                )
            if is_locked is False:
                raise RefusedError(
                    f"another job is writing {out}: wait for its end, or choose another output"
                )
            if not os.path.exists(path) or not os.path.samestat(os.fstat(lock), os.stat(path)):
                os.close(lock)
                continue  # it was the lock of a job that ended in between
        except BaseException:
            os.close(lock)
            raise
        if is_locked is None:
            os.close(lock)
            return None
        return lock


def _is_locked(lock: int) -> bool | None:
    """Tries to lock the file; None where the file system cannot."""
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


def _take_back(job: str, out: str) -> None:
    """Undoes a publication that did not come to its end, and removes the job's directory."""
    whole, old = os.path.join(job, "whole"), os.path.join(job, "replaced")
    names = _journal(job)
    if names and os.path.lexists(os.path.join(whole, names[-1])):
        for name in names:
            if not os.path.lexists(os.path.join(whole, name)) and os.path.lexists(os.path.join(out, name)):
                os.rename(os.path.join(out, name), os.path.join(whole, name))
        # The mark of a whole output is the last to return.
        for name in sorted(os.listdir(old), key=lambda name: name == names[-1]):
            os.rename(os.path.join(old, name), os.path.join(out, name))
    shutil.rmtree(job, ignore_errors=True)


def _journal(job: str) -> list[str]:
    """The names that were to move; none if it was not written to its end, or not by us."""
    try:
        with open(os.path.join(job, _JOURNAL), encoding="utf-8") as file:
            names = json.load(file)
    except (FileNotFoundError, ValueError):
        return []
    is_ours = isinstance(names, list) and all(
        isinstance(one, str) and os.path.basename(one) == one for one in names
    )
    return names if is_ours else []


def check_apart(path: str, sources: Sequence[str]) -> None:
    """Raises `RefusedError` if the output and a source lie inside each other, links followed."""
    out = os.path.realpath(path)
    above = {_identity(one) for one in _ancestors(out)} - {None}
    own = _identity(out)
    for source in map(os.path.realpath, sources):
        inside = own is not None and own in map(_identity, _ancestors(source))
        if inside or _identity(source) in above or os.path.commonpath([out, source]) in (out, source):
            raise RefusedError(f"{path} and the source {source} lie inside each other: choose another output")


def _ancestors(path: str) -> list[str]:
    """The path and all directories above it."""
    found = [path]
    while (parent := os.path.dirname(found[-1])) != found[-1]:
        found.append(parent)
    return found


def _identity(path: str) -> tuple[int, int] | None:
    # The same directory may have several names: bind mounts, a file system that ignores case.
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino


def write_text(path: str, text: str) -> None:
    """Writes a new file that lasts."""
    with open(path, "x", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())


def sync_tree(top: str) -> None:
    """Makes all files and names below a directory last."""
    for directory, _, files in os.walk(top):
        for name in files:
            with open(os.path.join(directory, name), "rb") as file:
                os.fsync(file.fileno())
        sync(directory)


def sync(directory: str) -> None:
    """Makes the names in a directory last, where that can be asked for."""
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
