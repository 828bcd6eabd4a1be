"""What reaches a kind of store: the interface, and what it returns."""

from __future__ import annotations

import errno
from typing import NamedTuple, Protocol

__all__ = ["Backend", "Entry", "TransientError", "changed_error"]


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


def changed_error(path: str) -> OSError:
    """The error of a file that no longer has the version that was listed."""
    return OSError(errno.ESTALE, "it has changed since it was listed", path)
