"""Every other file system (`hdfs://`, `sftp://`, `dbfs://`, ...), through fsspec."""

from __future__ import annotations

import errno
import random
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime
from importlib.util import find_spec
from tempfile import TemporaryDirectory
from typing import Any

import fsspec

from magicbyte.storage.backend import Entry, MissingPackageError, changed_error
from magicbyte.storage.options import StorageOptions

__all__ = ["FileSystem"]

_TIMES = ("mtime", "modified", "LastModified", "last_modified", "created")
_PART = ".part"
"""A suffix for the name of a file while it is written."""
_OF_HADOOP = ("hdfs://", "viewfs://")
_ATTEMPTS = 10
"""The number of attempts to write a file whose directory other processes remove."""
_PAUSE_SECONDS = 0.01
"""The maximum pause after the first of these attempts; it grows with each."""
_TAGS = ("ETag", "etag", "e_tag", "version")


class FileSystem:
    """A file system that fsspec knows."""

    def __init__(self, url: str, options: StorageOptions) -> None:
        self._url = url
        if url.startswith(_OF_HADOOP) and find_spec("hdfs_native") is None:
            raise MissingPackageError(f"{url} needs the package hdfs-native")
        try:
            self._system, top = fsspec.core.url_to_fs(url + "/", **options)
        except ImportError as error:  # of the package that reaches it
            raise MissingPackageError(f"{url}: {error}") from None
        self._top = str(top).rstrip("/")

    def tree(self, directory: str) -> dict[str, list[Entry]] | None:
        """See `Backend.tree`."""
        return None

    def list(self, directory: str) -> list[Entry]:
        """See `Backend.list`."""
        path = self._path(directory)
        with _with_errno(path):
            # Drops the cache of earlier listings, whoever made them.
            self._system.invalidate_cache()
            rows = self._system.ls(path, detail=True)
        return [_entry_of(row) for row in rows if str(row["name"]).rstrip("/") != path.rstrip("/")]

    def examine(self, path: str) -> Entry:
        """See `Backend.examine`."""
        return _entry_of(self._info(path))

    def read(self, path: str, limit: int) -> bytes:
        """See `Backend.read`."""
        size = self._info(path)["size"] or 0
        if size > limit:
            raise OSError(errno.EFBIG, f"{size} bytes exceed the limit of {limit}", path)
        with _with_errno(path):
            return bytes(self._system.cat_file(self._path(path)))

    def read_range(self, path: str, version: str | None, start: int, end: int) -> bytes:
        """See `Backend.read_range`: the version is examined after the bytes were read."""
        with _with_errno(path):
            data = bytes(self._system.cat_file(self._path(path), start=start, end=end))
        if version is not None and _entry_of(self._info(path)).version != version:
            raise changed_error(path)
        return data

    def file_system(self, path: str) -> tuple[Any, str]:
        """See `Backend.file_system`."""
        return self._system, self._path(path)

    def put_file(self, path: str, source: str) -> None:
        """See `WritableBackend.put_file`."""
        target = self._path(path)
        with _with_errno(path):
            self._in_its_directory(target, lambda: self._system.put_file(source, target))

    def get_file(self, path: str, target: str) -> None:
        """See `WritableBackend.get_file`."""
        with _with_errno(path):
            self._system.get_file(self._path(path), target)

    def copy(self, path: str, target: str) -> None:
        """See `WritableBackend.copy`: through this machine, since not every file system copies."""
        with TemporaryDirectory(prefix="magicbyte-") as local:
            self.get_file(path, f"{local}/file")
            self.put_file(target, f"{local}/file")

    def put(self, path: str, data: bytes) -> None:
        """See `WritableBackend.put`."""
        target = self._path(path)
        with _with_errno(path):
            self._in_its_directory(target, lambda: self._system.pipe_file(target + _PART, data))
            # Not every file system replaces a file, and HDFS does not say so.
            with suppress(Exception):
                self._system.mv(target + _PART, target)
            if self._system.exists(target + _PART):
                self._system.pipe_file(target, data)
                self._system.rm_file(target + _PART)

    def create(self, path: str, data: bytes) -> Any | None:
        """See `WritableBackend.create`. Without an exclusive mode, two calls may succeed at once."""
        target = self._path(path)
        with _with_errno(path):
            try:
                self._in_its_directory(target, lambda: self._system.pipe_file(target, data, mode="create"))
            except FileExistsError:
                return None
            except (NotImplementedError, TypeError, ValueError):
                if self._system.exists(target):
                    return None
                self._system.pipe_file(target, data)
        return data

    def update(self, path: str, data: bytes, tag: Any) -> Any | None:
        """See `WritableBackend.update`: the content is the tag. Two may succeed at once."""
        try:
            with _with_errno(path):
                if bytes(self._system.cat_file(self._path(path))) != tag:
                    return None
        except FileNotFoundError:
            return None
        self.put(path, data)
        return data

    def read_tagged(self, path: str, limit: int) -> tuple[bytes, Any]:
        """See `WritableBackend.read_tagged`."""
        data = self.read(path, limit)
        return data, data

    def files(self, directory: str) -> dict[str, int]:
        """See `WritableBackend.files`."""
        top = self._path(directory)
        with _with_errno(directory):
            self._system.invalidate_cache()
            try:
                rows = self._system.find(top, detail=True)
            except FileNotFoundError:
                return {}
        found = {name.removeprefix(top).lstrip("/"): row["size"] or 0 for name, row in rows.items()}
        return {name: size for name, size in found.items() if name}

    def delete(self, directory: str, names: Sequence[str]) -> None:
        """See `WritableBackend.delete`."""
        for name in names:
            # Includes files that a killed process has left from `put`.
            for path in (self._path(f"{directory}/{name}"), self._path(f"{directory}/{name}{_PART}")):
                with suppress(FileNotFoundError), _with_errno(name):
                    self._system.rm_file(path)
        parents = {name.rpartition("/")[0] for name in names} - {""}
        above = {parent[:end] for parent in parents for end in _ends(parent)}
        for parent in sorted(above, key=len, reverse=True):
            with suppress(Exception):  # not empty, or the file system has no directories
                self._system.rmdir(self._path(f"{directory}/{parent}"))

    def _in_its_directory(self, target: str, write: Callable[[], object]) -> None:
        """Writes a file, and again if its directory, still empty, was removed: see `delete`."""
        for attempt in range(_ATTEMPTS):
            try:
                with suppress(FileExistsError):  # removed by another process while this one looks at it
                    self._system.makedirs(target.rpartition("/")[0], exist_ok=True)
                write()
                return
            except FileNotFoundError:
                if attempt == _ATTEMPTS - 1:
                    raise
                # Two that remove and create it in step would go on to do so.
                time.sleep(random.random() * _PAUSE_SECONDS * (attempt + 1))

    def _info(self, path: str) -> dict[str, Any]:
        with _with_errno(path):
            self._system.invalidate_cache()
            info: dict[str, Any] = self._system.info(self._path(path))
            return info

    def _path(self, path: str) -> str:
        return f"{self._top}/{path}" if path else self._top or "/"


def _entry_of(row: dict[str, Any]) -> Entry:
    name = str(row["name"]).rstrip("/").rpartition("/")[2]
    if row["type"] == "directory":
        return Entry(name, True)
    modified = next((_milliseconds(row[key]) for key in _TIMES if row.get(key) is not None), 0)
    tag = next((row[key] for key in _TAGS if row.get(key) is not None), modified)
    size = row["size"] or 0
    # Without a tag or a time, only a change of size is visible.
    return Entry(name, False, size, modified, f"{tag}-{size}")


def _ends(path: str) -> list[int]:
    """The positions where the names in a path end."""
    return [at for at, letter in enumerate(path) if letter == "/"] + [len(path)]


def _milliseconds(time: object) -> int:
    if isinstance(time, datetime):
        return int(time.timestamp() * 1000)
    return int(time * 1000) if isinstance(time, int | float) else 0


@contextmanager
def _with_errno(path: str) -> Iterator[None]:
    """Gives errors of the file system a number and a message."""
    try:
        yield
    except FileNotFoundError:
        raise FileNotFoundError(errno.ENOENT, "there is no such file or directory", path) from None
    except PermissionError as error:
        raise PermissionError(errno.EACCES, error.strerror or str(error), path) from None
    except OSError as error:
        raise OSError(error.errno or errno.EIO, error.strerror or str(error), path) from None
    except Exception as error:  # libraries raise what they like
        raise OSError(errno.EIO, f"{type(error).__name__}: {error}", path) from None
