"""The store that a URL names, as the core calls it."""

from __future__ import annotations

import errno
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, TypeVar

from magicbyte.storage.backend import Entry, TransientError, WritableBackend
from magicbyte.storage.backends import backend_of
from magicbyte.storage.options import StorageOptions

__all__ = ["RemoteStore"]

R = TypeVar("R")

_FETCHES = 32
"""The number of ranges of one store that are read at a time."""
_ATTEMPTS = 5
_FIRST_WAIT_SECONDS = 0.1
_MAX_DIRECTORIES = 100_000
"""The maximum number of directories that are listed one by one, each by a request, before a job begins."""
_MAX_WITHOUT_FILES = 100
"""The maximum number of consecutive directories without a file: a server can invent directories."""


class RemoteStore:
    """Serves the URLs that begin with `prefix`."""

    def __init__(self, prefix: str, options: StorageOptions) -> None:
        self._prefix = prefix
        self.options = options
        self._lock = threading.Lock()
        self._pool: ThreadPoolExecutor | None = None
        self._listed: dict[str, list[Entry]] | None = None
        self._users = 0
        """The number of users of `_listed`."""
        self._requested = self._without_files = 0
        """Counts of directories listed one by one within `listed_once`, and of the last without files."""
        self._backend = self._cleaned(prefix, lambda: backend_of(prefix, options))

    def list(self, directory: str) -> list[Entry]:
        """The files and directories directly below a directory."""
        key = self._key(directory)
        listed = self._listed
        if listed is not None and key in listed:
            return listed[key]
        if listed is not None and self._requested >= _MAX_DIRECTORIES:
            raise OSError(errno.ELOOP, f"more than {_MAX_DIRECTORIES} directories", directory)
        if listed is not None and self._without_files >= _MAX_WITHOUT_FILES:
            why = f"{_MAX_WITHOUT_FILES} directories in a row have no file: give one further down"
            raise OSError(errno.ELOOP, why, directory)
        entries = self._repeated(directory, lambda: self._backend.list(key))
        if listed is not None:
            listed[key] = entries
            self._requested += 1
            has_files = any(not entry.is_directory for entry in entries)
            self._without_files = 0 if has_files else self._without_files + 1
        return entries

    def examine(self, path: str) -> Entry:
        """The entry at a path."""
        key = self._key(path)
        listed = self._listed
        if not key or (listed is not None and key in listed):
            return Entry(key.rpartition("/")[2], True)
        return self._repeated(path, lambda: self._backend.examine(key))

    def read(self, path: str, limit: int) -> bytes:
        """A whole file of at most `limit` bytes."""
        return self._repeated(path, lambda: self._backend.read(self._key(path), limit))

    def fetch(self, path: str, version: str | None, start: int, end: int) -> Future[bytes]:
        """Starts to read a range of a file."""
        with self._lock:
            if self._pool is None:
                self._pool = ThreadPoolExecutor(_FETCHES, thread_name_prefix="magicbyte-fetch")
            return self._pool.submit(self._read_range, path, version, start, end)

    def _read_range(self, path: str, version: str | None, start: int, end: int) -> bytes:
        def read() -> bytes:
            data = self._backend.read_range(self._key(path), version, start, end)
            if len(data) != end - start:
                raise TransientError(errno.EIO, f"{len(data)} bytes came for the range {start}..{end}")
            return data

        return self._repeated(path, read)

    @contextmanager
    def listed_once(self, directory: str) -> Iterator[None]:
        """Lists no directory twice within the block; `directory` and the directories below it come first."""
        with self._lock:
            self._users += 1
            if self._listed is None:
                self._listed = {}
                self._requested = self._without_files = 0
        try:
            key = self._key(directory.rstrip("/"))
            tree = self._repeated(directory, lambda: self._backend.tree(key))
            if tree and self._listed is not None:
                self._listed.update(tree)
            yield
        finally:
            with self._lock:
                self._users -= 1
                if not self._users:
                    self._listed = None

    @property
    def is_writable(self) -> bool:
        """True if `write` is possible."""
        return isinstance(self._backend, WritableBackend)

    def write(self, path: str, request: Callable[[WritableBackend, str], R]) -> R:
        """Makes a request that writes or prepares a write, given the path below host or bucket."""
        backend = self._backend
        if not isinstance(backend, WritableBackend):
            raise OSError(errno.EROFS, "web servers are only read", path)
        return self._repeated(path, lambda: request(backend, self._key(path)))

    def file_system(self, path: str) -> tuple[Any, str]:
        """The store as a file system of fsspec, and the path of a URL in it."""
        return self._cleaned(path, lambda: self._backend.file_system(self._key(path)))

    def _key(self, path: str) -> str:
        return path.removeprefix(self._prefix).strip("/")

    def _repeated(self, path: str, request: Callable[[], R]) -> R:
        """Repeats a request after a transient failure."""
        wait = _FIRST_WAIT_SECONDS
        for _ in range(_ATTEMPTS - 1):
            try:
                return self._cleaned(path, request)
            except TransientError:
                time.sleep(wait)
                wait *= 4
        return self._cleaned(path, request)

    def _cleaned(self, path: str, request: Callable[[], R]) -> R:
        """Raises errors without secrets, and with their path."""
        try:
            return request()
        except OSError as error:
            why = self.options.redacted(error.strerror or str(error))
            kind = TransientError if isinstance(error, TransientError) else OSError
            raised = kind(error.errno or errno.EIO, why, path)
        except (ValueError, ModuleNotFoundError) as error:
            raise type(error)(self.options.redacted(str(error))) from None
        # Not chained: the original may contain secrets.
        raise raised from None
