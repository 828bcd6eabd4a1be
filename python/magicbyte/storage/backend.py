"""What reaches a kind of store: the interface, and what it returns."""

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
"""In the error of a directory, of which the library that lists it gives nothing then."""


class Entry(NamedTuple):
    """A file or directory."""

    name: str
    is_directory: bool
    size: int = 0
    modified_ms: int = 0
    version: str | None = None
    """What changes with the content: an ETag, or the time of the last change. None if unknown."""


class TransientError(OSError):
    """A failure that may pass: the request is repeated."""


class MissingPackageError(ModuleNotFoundError):
    """What reaches a store is not installed; the message says what that is."""


class Backend(Protocol):
    """What reaches a kind of store. Paths are relative to the host or bucket. Errors have an `errno`."""

    def tree(self, directory: str) -> dict[str, list[Entry]] | None:
        """The entries of all directories at and below one, by path; None if the store lists one at a time."""

    def list(self, directory: str) -> list[Entry]:
        """The entries of a directory."""

    def examine(self, path: str) -> Entry:
        """What is at a path; FileNotFoundError if nothing is."""

    def read(self, path: str, limit: int) -> bytes:
        """A whole file; an OSError with EFBIG if it is larger than `limit`."""

    def read_range(self, path: str, version: str | None, start: int, end: int) -> bytes:
        """A range of a file; an OSError with ESTALE if its version is another."""

    def file_system(self, path: str) -> tuple[Any, str]:
        """The store as a file system of fsspec, and the path in it."""


@runtime_checkable
class WritableBackend(Backend, Protocol):
    """One that can write, too.

    A tag is what a store needs to know one version of a file: pass it back unchanged.
    """

    def put_file(self, path: str, source: str) -> None:
        """Writes a file with the content of the local file `source`, in parts if it is large."""

    def put(self, path: str, data: bytes) -> None:
        """Writes a small file, whatever was there."""

    def create(self, path: str, data: bytes) -> Any | None:
        """Writes a small file if there is none yet; its tag, or None if there is one."""

    def update(self, path: str, data: bytes, tag: Any) -> Any | None:
        """Writes a small file if the one that is there has this tag; its new tag, or None if it has not."""

    def read_tagged(self, path: str, limit: int) -> tuple[bytes, Any]:
        """As `read`, with the file's tag."""

    def files(self, directory: str) -> dict[str, int]:
        """The sizes of all files below a directory, by their paths relative to it."""

    def delete(self, directory: str, names: Sequence[str]) -> None:
        """Removes files below a directory, with the directories that become empty; absent ones are fine."""


def is_odd(name: str) -> bool:
    """Whether a name cannot be part of a path: it is empty, `.` or `..`, or has a control character."""
    return name in ("", ".", "..") or any(ord(letter) < 0x20 or ord(letter) == 0x7F for letter in name)


def ignored_entry(name: str) -> Entry:
    """The entry of a file or directory with an odd name: a file whose name, escaped, is none of a log's."""
    return Entry(quote(name, safe="").replace(".", "%2E") or "%", False)


def changed_error(path: str) -> OSError:
    """The error of a file that no longer has the version that was listed."""
    return OSError(errno.ESTALE, "it has changed since it was listed", path)
