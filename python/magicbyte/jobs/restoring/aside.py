"""Changes of log directories in place: a journal first, then renames, which can be finished or undone.

    LOGS/                          a log directory of a node
    .LOGS.magicbyte-restore/       beside it, on the same file system
        new/NAME                   what will be there
        old/NAME                   what was there
        journal.json               the renames in all log directories, in order; the same beside each of them
        restored.json              the journal, once everything is done

Nothing in a log directory changes before the journal is beside all of them. Each rename is done if its target
is there. So a job that was killed is finished by doing all of them again, and undone by doing them backwards.
`meta.properties` is the first to go and the last to return: until then, no node starts on the directory
(`MetaPropertiesEnsemble`).
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import shutil
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from typing import Any, TypedDict

from magicbyte.errors import RefusedError
from magicbyte.jobs.find.outputs import RECONCILIATION
from magicbyte.jobs.publish.workspace import sync, sync_tree, try_lock, write_text
from magicbyte.log_dir import META_PROPERTIES

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

__all__ = [
    "Change",
    "ChangedFile",
    "Journal",
    "changed_files",
    "changed_log_dirs",
    "in_use_by_none",
    "journal_of",
    "prepare",
]

_SUFFIX = ".magicbyte-restore"
_JOURNAL, _DONE = "journal.json", "restored.json"
_OLD, _NEW = "old", "new"
_LOCK = ".lock"
"""The file that a broker has locked while it runs (`LogManager.lockLogDirs`)."""


@dataclass(frozen=True)
class Change:
    """A file or directory of a log directory that is moved aside, replaced, or new."""

    log_dir: str
    name: str
    """Its path in the log directory."""
    files: Mapping[str, bytes]
    """The files that will be there, by their path in it, `""` for a file itself. Empty to move it aside."""
    reason: str


class ChangedFile(TypedDict):
    """A file that is not as it was."""

    path: str
    aside: str | None
    """The file that has its old bytes; None if there was none."""
    size_before: int | None
    size: int | None
    """None if there is none now."""
    sha256: str | None
    """The digest of its bytes now."""
    reason: str


def aside_of(log_dir: str) -> str:
    """The directory beside a log directory for what is moved."""
    parent, name = os.path.split(os.path.realpath(log_dir))
    return os.path.join(parent, f".{name}{_SUFFIX}")


def changed_files(changes: Iterable[Change]) -> Iterator[ChangedFile]:
    """Every file that the changes concern, before they are made."""
    for change in changes:
        path, aside = os.path.join(change.log_dir, change.name), _aside(change, _OLD)
        before = {name: os.path.getsize(_below(path, name)) for name in _files_below(path)}
        for name in sorted({*before, *change.files}):
            data = change.files.get(name)
            yield ChangedFile(
                path=_below(path, name),
                aside=_below(aside, name) if name in before else None,
                size_before=before.get(name),
                size=None if data is None else len(data),
                sha256=None if data is None else _digest(data),
                reason=change.reason,
            )


def _aside(change: Change, kind: str) -> str:
    return os.path.join(aside_of(change.log_dir), kind, change.name)


def _files_below(path: str) -> list[str]:
    """The files at or below a path, `""` for itself."""
    if not os.path.isdir(path) or os.path.islink(path):
        return [""] if os.path.lexists(path) else []
    walked = ((top, names) for top, _, names in os.walk(path))
    return [os.path.relpath(os.path.join(top, name), path) for top, names in walked for name in names]


def _below(path: str, name: str) -> str:
    """A file at (`""`) or below a path."""
    return os.path.join(path, name) if name else path


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


@dataclass(frozen=True)
class Journal:
    """The renames of one restore."""

    log_dirs: list[str]
    renames: list[tuple[str, str]]
    """Absolute paths, from and to, in order."""
    digests: dict[str, dict[str, str]]
    """The SHA-256 of each new file, by the path of the change and the path in it."""

    @property
    def is_done(self) -> bool:
        """True if all changes are made."""
        return all(os.path.exists(os.path.join(one, _DONE)) for one in self.asides)

    @property
    def asides(self) -> list[str]:
        """The directories beside the log directories."""
        return list(map(aside_of, self.log_dirs))

    def concerns(self, log_dir: str) -> bool:
        """True for a log directory that the restore has changed."""
        return aside_of(log_dir) in self.asides

    def report(self) -> Any:
        """The report of the job that wrote the journal.

        Raises:
            RefusedError: it is damaged.

        """
        path = os.path.join(self.asides[0], RECONCILIATION)
        try:
            with open(path, "rb") as file:
                report = json.load(file)
            if not isinstance(report["options"], dict):
                raise TypeError("options")
        except (LookupError, OSError, RecursionError, TypeError, ValueError) as error:
            raise RefusedError(f"{path} is damaged ({error!r}): take the restore back (--undo)") from error
        return report

    def finish(self) -> None:
        """Makes all changes that are not made yet.

        Raises:
            RefusedError: something else is where a file is to be, or a rename is not possible.

        """
        self._check_places()
        with _half_done():
            for source, target in self.renames:
                _rename(source, target)
            for aside in self.asides:
                _rename_if_there(os.path.join(aside, _JOURNAL), os.path.join(aside, _DONE))

    def undo(self) -> None:
        """Takes all changes back, and removes what is beside the log directories.

        Raises:
            RefusedError: a node has started since, something else is where a file was, or a rename is not
                possible.

        """
        self.check_untouched()
        with _half_done():
            for aside in self.asides:
                _rename_if_there(os.path.join(aside, _DONE), os.path.join(aside, _JOURNAL))
            for source, target in reversed(self.renames):
                _rename(target, source)
        for aside in self.asides:
            _remove(aside)

    def check_untouched(self) -> None:
        """Refuses if a new file that is in its place is not as it was written.

        Raises:
            RefusedError: a node has started since, or somebody else has changed something.

        """
        origins = {target: source for source, target in self.renames}
        for path, digests in self.digests.items():
            if os.path.lexists(origins[path]):
                continue
            found = {name: _digest_of(_below(path, name)) for name in _files_below(path)}
            if found != digests:
                raise RefusedError(
                    f"{path} is not as it was restored: a node has started on it since, which appends to logs"
                    f" and truncates them. What it replaced is still in {self.asides[0]}"
                )
        self._check_places()

    def _check_places(self) -> None:
        """Refuses if somebody has put something where a file is to return, or has taken one away: a rename
        would be taken for done, and what is aside would be removed as if it were not needed.
        """
        waiting: dict[str, set[str]] = defaultdict(set)
        below_asides = tuple(f"{aside}{os.sep}" for aside in self.asides)
        for source, target in self.renames:
            path, aside = (target, source) if source.startswith(below_asides) else (source, target)
            waiting[path].add(aside)
        for path, asides in waiting.items():
            # One of its places is empty at any time.
            if sum(map(os.path.lexists, (path, *asides))) == len(asides):
                continue
            what = "is there again" if os.path.lexists(path) else "is gone"
            raise RefusedError(
                f"{path} {what} since it was restored, and not by this job, which changes nothing now. Aside"
                f" there is {' and '.join(sorted(filter(os.path.lexists, asides))) or 'nothing of it'}"
            )


def _digest_of(path: str) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextmanager
def _half_done() -> Iterator[None]:
    """Tells what is left if a rename is not possible."""
    try:
        yield
    except OSError as error:
        raise RefusedError(
            f"{error}: the log directories are half restored, and no node starts on those without"
            f" {META_PROPERTIES}. Once the reason is gone, the same command goes on; --undo takes all back"
        ) from error


def _rename(source: str, target: str) -> None:
    if os.path.lexists(target):
        return
    os.rename(source, target)
    sync(os.path.dirname(source))
    sync(os.path.dirname(target))


def _rename_if_there(source: str, target: str) -> None:
    if os.path.lexists(source):
        _rename(source, target)


def _remove(aside: str) -> None:
    """Removes an aside; the journal goes first, since without it nothing was changed."""
    journal = os.path.join(aside, _JOURNAL)
    if os.path.lexists(journal):
        os.unlink(journal)
        sync(aside)
    shutil.rmtree(aside)
    sync(os.path.dirname(aside))


def prepare(log_dirs: Sequence[str], changes: Sequence[Change], report: Mapping[str, Any]) -> Journal:
    """Writes all that is new beside the log directories, and the journal last.

    Raises:
        RefusedError: a log directory is a mount point, so that nothing beside it is on its file system.
        OSError: something cannot be written. Then nothing is left.

    """
    try:
        return _prepare(log_dirs, changes, report)
    except BaseException:
        for aside in filter(os.path.isdir, map(aside_of, log_dirs)):
            _remove(aside)
        raise


def _prepare(log_dirs: Sequence[str], changes: Sequence[Change], report: Mapping[str, Any]) -> Journal:
    renames, digests = [], {}
    for log_dir in log_dirs:
        _make_aside(log_dir)
    for change in changes:
        path, old, new = os.path.join(change.log_dir, change.name), _aside(change, _OLD), _aside(change, _NEW)
        if os.path.lexists(path):
            os.makedirs(os.path.dirname(old), exist_ok=True)
            renames.append((path, old))
        if change.files:
            for name, data in change.files.items():
                _write(_below(new, name), data)
            renames.append((new, path))
            digests[path] = {name: _digest(data) for name, data in change.files.items()}
        _check_device(path, aside_of(change.log_dir))
    properties = [
        (os.path.join(one, META_PROPERTIES), os.path.join(aside_of(one), _OLD, META_PROPERTIES))
        for one in log_dirs
    ]
    back = [(target, source) for source, target in properties]
    journal = Journal(list(log_dirs), [*properties, *renames, *back], digests)
    text, first = json.dumps(asdict(journal), indent=1), aside_of(log_dirs[0])
    with _named(first):
        write_text(os.path.join(first, RECONCILIATION), json.dumps(report, indent=1))
    for log_dir in log_dirs:
        _own(log_dir, aside_of(log_dir))
        sync_tree(aside_of(log_dir))
    for aside in map(aside_of, log_dirs):
        with _named(aside):
            write_text(os.path.join(aside, f"{_JOURNAL}.new"), text)
        os.rename(os.path.join(aside, f"{_JOURNAL}.new"), os.path.join(aside, _JOURNAL))
        sync(aside)
    return journal


def _make_aside(log_dir: str) -> None:
    aside = aside_of(log_dir)
    # It gets the credentials that are in the metadata.
    os.mkdir(aside, 0o700)
    os.mkdir(os.path.join(aside, _OLD))
    os.mkdir(os.path.join(aside, _NEW))
    # The only way to learn that a rename is possible, without one: bind mounts have the same device.
    probe = os.path.join(aside, "probe")
    try:
        os.link(os.path.join(log_dir, META_PROPERTIES), probe)
    except OSError as error:
        if error.errno == errno.EXDEV:
            raise RefusedError(
                f"{log_dir} is a mount point, and what it has could only be moved to another disk: use --out"
            ) from None
    else:
        os.unlink(probe)


def _check_device(path: str, aside: str) -> None:
    """Refuses what no rename can move: a partition that is a mount point, or in a link to another disk."""
    directory = os.path.dirname(path)
    if os.stat(directory).st_dev != os.stat(aside).st_dev:
        raise RefusedError(
            f"{directory} is on another disk than {aside}, to which it would have to be moved: use --out"
        )
    if os.path.ismount(path):
        raise RefusedError(f"{path} is a mount point, which cannot be moved: use --out")


def _own(log_dir: str, aside: str) -> None:
    """Gives what is new to the owner of the log directory, as whom its broker runs."""
    owner = os.stat(log_dir)
    if (owner.st_uid, owner.st_gid) != (os.geteuid(), os.getegid()):
        for top, directories, files in os.walk(os.path.join(aside, _NEW)):
            for name in (*directories, *files):
                os.chown(os.path.join(top, name), owner.st_uid, owner.st_gid)


def _write(path: str, data: bytes) -> None:
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with _named(path), open(path, "xb") as file:
        file.write(data)


@contextmanager
def _named(path: str) -> Iterator[None]:
    """Names the file in an error that does not: a full disk does not say which one it is."""
    try:
        yield
    except OSError as error:
        error.filename = error.filename or path
        raise


def changed_log_dirs(sources: Iterable[str]) -> list[str]:
    """The log directories at, beside and below `sources` that have something beside them."""
    found = []
    for aside in sorted({*_asides_of(sources)}):
        parent, name = os.path.split(aside)
        found.append(os.path.join(parent, name.removeprefix(".").removesuffix(_SUFFIX)))
    return list(filter(os.path.isdir, found))


def _asides_of(sources: Iterable[str]) -> Iterator[str]:
    for source in map(os.path.abspath, sources):
        if os.path.isdir(aside_of(source)):
            yield aside_of(source)
        for top, directories, _ in os.walk(source):
            yield from (os.path.join(top, name) for name in directories if name.endswith(_SUFFIX))
            directories[:] = [name for name in directories if not name.endswith(_SUFFIX)]


def journal_of(log_dirs: Sequence[str]) -> Journal | None:
    """The journal of a restore that has changed these log directories, or may have. What a job left that was
    killed before that is removed.

    Raises:
        RefusedError: it also has others, or somebody has removed a journal, or it is damaged.

    """
    asides = {aside_of(one) for one in log_dirs}
    journals = _read_all(sorted(filter(os.path.isdir, asides)))
    for aside, journal in journals.items():
        if not os.path.isdir(aside):
            continue  # it was removed with another one
        if journal is None:
            _check_empty(aside)
            shutil.rmtree(aside)
            continue
        others = [one for one in journal.log_dirs if aside_of(one) not in asides]
        if others:
            raise RefusedError(f"{aside} is of a restore that also changed {others[0]}: give it, too")
        # The journal is written beside all of them before the first change, and removed after the last.
        if all(journals.get(aside_of(one)) == journal for one in journal.log_dirs):
            return journal
        incomplete = list(filter(os.path.isdir, map(aside_of, journal.log_dirs)))
        for one in incomplete:
            _check_empty(one)
        for one in incomplete:
            _remove(one)
    return None


def _check_empty(aside: str) -> None:
    """Refuses to remove what was moved aside, which is there only while there is a journal."""
    old = os.path.join(aside, _OLD)
    for top, directories, files in os.walk(old):
        links = [name for name in directories if os.path.islink(os.path.join(top, name))]
        for name in (*files, *links):
            raise RefusedError(
                f"{os.path.join(top, name)} was moved aside by a restore whose journal is no longer beside"
                f" all its log directories: move what is in {old} back, or remove {aside} if nothing of it is"
                " needed"
            )


def _read_all(asides: Iterable[str]) -> dict[str, Journal | None]:
    """The journals beside log directories, in order; None where there is none. A damaged one is that of the
    others, if these are equal and name its log directory.

    Raises:
        RefusedError: one is damaged, and nothing else tells what was in it.

    """
    found: dict[str, Journal | None] = {}
    damaged: dict[str, ValueError] = {}
    for aside in asides:
        found[aside] = None
        try:
            found[aside] = _read(aside)
        except ValueError as error:
            damaged[aside] = error
    for aside, reason in damaged.items():
        others = [one for one in found.values() if one is not None and aside in one.asides]
        if not others or any(one != others[0] for one in others):
            raise RefusedError(
                f"{reason}, and no other log directory that was restored with it has the same journal: give"
                f" them, too. What was moved aside is in {os.path.join(aside, _OLD)}"
            )
        found[aside] = others[0]
    return found


def _read(aside: str) -> Journal | None:
    """Reads the journal beside a log directory.

    Raises:
        ValueError: it is damaged, or not the journal of a restore of that log directory.

    """
    for name in (_JOURNAL, _DONE):
        path = os.path.join(aside, name)
        try:
            with open(path, "rb") as file:
                journal = _journal_of_json(json.load(file))
        except FileNotFoundError:
            continue
        except (AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:
            raise ValueError(f"{path} is damaged: {error!r}") from error
        if aside not in journal.asides:
            raise ValueError(f"{path} is damaged: it does not name the log directory beside it")
        return journal
    return None


def _journal_of_json(fields: Any) -> Journal:
    """The journal in a document.

    Raises:
        ValueError: it renames something that is in none of its log directories.
        AttributeError, LookupError, TypeError: it has not the form of a journal; ValueError, too.

    """
    renames = [(source, target) for source, target in fields["renames"]]
    digests = {path: dict(files) for path, files in fields["digests"].items()}
    journal = Journal(list(fields["log_dirs"]), renames, digests)
    roots = dict(zip(journal.log_dirs, journal.asides, strict=True))
    for pair in renames:
        if not any(_leads_aside(pair, root, aside) for root, aside in roots.items()):
            raise ValueError(f"a rename from {pair[0]} to {pair[1]} is none of a restore")
    if not digests.keys() <= {target for _, target in renames}:
        raise ValueError("it has digests of files that it does not move")
    return journal


def _leads_aside(pair: tuple[str, str], log_dir: str, aside: str) -> bool:
    """True for a file of a log directory and its place aside, in any order."""
    for inside, outside in (pair, pair[::-1]):
        name = inside.removeprefix(f"{log_dir}{os.sep}")
        places = [os.path.join(aside, kind, name) for kind in (_OLD, _NEW)]
        if name != inside and outside in places and not {"", ".", ".."} & {*name.split(os.sep)}:
            return True
    return False


@contextmanager
def in_use_by_none(log_dirs: Iterable[str]) -> Iterator[None]:
    """Keeps brokers and other jobs off the log directories.

    Raises:
        RefusedError: one of them uses one of the directories.

    """
    if fcntl is None:
        raise RefusedError("nothing tells here whether a broker is running: use --out")
    with ExitStack() as opened:
        for log_dir in log_dirs:
            directory = os.open(log_dir, os.O_RDONLY)
            opened.callback(os.close, directory)
            if try_lock(directory) is False:
                raise RefusedError(f"{log_dir}: another job is restoring it: wait until it ends")
            path = os.path.join(log_dir, _LOCK)
            if os.path.exists(path) and not _is_read_only(path):
                file = opened.enter_context(open(path, "rb+"))
                try:
                    # Java's locks are these, not those of flock.
                    fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except (BlockingIOError, PermissionError):
                    raise RefusedError(
                        f"{log_dir} is in use: a broker has locked {path}. Stop it first"
                    ) from None
        yield


def _is_read_only(path: str) -> bool:
    """True on a file system that nobody can write to, so that no broker runs on it, and no lock is needed."""
    return bool(os.statvfs(path).f_flag & os.ST_RDONLY)
