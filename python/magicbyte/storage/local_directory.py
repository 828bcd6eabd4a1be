"""A local directory that a job writes to, or reads as a whole."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from magicbyte.storage.options import StorageOptions
from magicbyte.storage.paths import absolute

__all__ = ["LocalDirectory"]


class LocalDirectory:
    """A directory of the local file system; names are relative to it."""

    noun = "directory"
    is_writable = True
    options: StorageOptions | None = None

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = absolute(path)

    def below(self, name: str) -> LocalDirectory:
        """A directory in this one."""
        return LocalDirectory(os.path.join(self.path, name))

    def has_directory(self, name: str) -> bool:
        """True if a directory is there."""
        return os.path.isdir(os.path.join(self.path, name))

    def is_empty(self) -> bool:
        """True if it has no entries, or does not exist.

        Raises:
            NotADirectoryError: for a file, or a link that leads nowhere.

        """
        try:
            return not os.listdir(self.path)
        except FileNotFoundError:
            if os.path.lexists(self.path):
                raise NotADirectoryError(errno.ENOTDIR, "it is not a directory", self.path) from None
            return True

    def read(self, name: str) -> bytes | None:
        """A small file; None if it is not there."""
        try:
            with open(os.path.join(self.path, name), "rb") as file:
                return file.read()
        except (FileNotFoundError, NotADirectoryError):
            return None

    def file_system(self) -> tuple[None, str]:
        """None for the local file system, and the directory's path in it: for pyarrow."""
        return None, self.path

    @contextmanager
    def written_locally(self, max_bytes: int) -> Iterator[tuple[str, Callable[[str], None]]]:
        """See `StoredDirectory.written_locally`: files are written where they stay."""
        yield self.path, lambda _name: None
