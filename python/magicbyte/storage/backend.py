"""The interface to a kind of store, and its return types."""

from __future__ import annotations

import errno
from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol, runtime_checkable
from urllib.parse import quote

__all__ = [
    "ODD_KEY",
    "Backend",
    "Entry",
    "MissingPackageError",
    "TransientError",
    "WritableBackend",
    "changed_error",
    "ignored_entry",
    "is_odd",
]


ODD_KEY = "a key is not a path, so that nothing beside it can be listed"
"""The error of a directory with such a key: the library that lists it then returns nothing."""


class Entry(NamedTuple):
    """A file or directory."""

    name: str
    is_directory: bool
    size: int = 0
    modified_ms: int = 0
    version: str | None = None
    """A value that changes with the content: an ETag, or the time of the last change. None if unknown."""


class TransientError(OSError):
    """A failure that may pass: the request is repeated."""


class MissingPackageError(ModuleNotFoundError):
    """The library for a store is not installed; the message names it."""


class Backend(Protocol):
    """Access to a kind of store. Paths are relative to the host or bucket. Errors have an `errno`."""

    def tree(self, directory: str) -> dict[str, list[Entry]] | None:
        """The entries of a directory and those below it, by path; None if the store lists one at a time."""

    def list(self, directory: str) -> list[Entry]:
        """The entries of a directory."""

    def examine(self, path: str) -> Entry:
        """The entry at a path; FileNotFoundError if there is none."""

    def read(self, path: str, limit: int) -> bytes:
        """A whole file; an OSError with EFBIG if it is larger than `limit`."""

    def read_range(self, path: str, version: str | None, start: int, end: int) -> bytes:
        """A range of a file; an OSError with ESTALE if its version differs."""

    def file_system(self, path: str) -> tuple[Any, str]:
        """The store as a file system of fsspec, and the path in it."""


@runtime_checkable
class WritableBackend(Backend, Protocol):
    """A backend that can also write.

    A tag identifies one version of a file to the store: pass it back unchanged.
    """

    def put_file(self, path: str, source: str) -> None:
        """Writes a file with the content of the local file `source`, in parts if it is large."""

    def get_file(self, path: str, target: str) -> None:
        """Writes the content of a file to the local file `target`."""

    def copy(self, path: str, target: str) -> None:
        """Writes a file with the content of another one in the store, and replaces an existing file."""

    def put(self, path: str, data: bytes) -> None:
        """Writes a small file, and replaces an existing file."""

    def create(self, path: str, data: bytes) -> Any | None:
        """Creates a small file. Returns its tag, or None if the file already exists."""

    def update(self, path: str, data: bytes, tag: Any) -> Any | None:
        """Replaces a small file if it has this tag. Returns its new tag, or None if the tag differs."""

    def read_tagged(self, path: str, limit: int) -> tuple[bytes, Any]:
        """Same as `read`, with the file's tag."""

    def files(self, directory: str) -> dict[str, int]:
        """The sizes of all files below a directory, by their paths relative to it."""

    def delete(self, directory: str, names: Sequence[str]) -> None:
        """Removes files below a directory, and directories that become empty; absent files are fine."""


def is_odd(name: str) -> bool:
    """True if a name cannot be part of a path: it is empty, `.` or `..`, or has a control character."""
    return name in ("", ".", "..") or any(ord(letter) < 0x20 or ord(letter) == 0x7F for letter in name)


def ignored_entry(name: str) -> Entry:
    """The entry of a file or directory with an odd name: a file whose escaped name belongs to no log."""
    return Entry(quote(name, safe="").replace(".", "%2E") or "%", False)


def changed_error(path: str) -> OSError:
    """The error of a file that no longer has the version that was listed."""
    return OSError(errno.ESTALE, "it has changed since it was listed", path)
