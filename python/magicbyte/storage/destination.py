"""A directory in a store that a job writes to, or reads as a whole."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from magicbyte.storage.mounts import mount, store_of
from magicbyte.storage.options import StorageOptions
from magicbyte.storage.paths import absolute

__all__ = ["Destination"]

_MAX_SMALL = 256 << 20
"""The maximum size of a file that is read whole, such as a report."""


class Destination:
    """A directory in a store; names are relative to it.

    Processes of a job may pass it on: its store has to be mounted in each of them.
    """

    def __init__(self, url: str) -> None:
        """Mounts the store, if it is not mounted yet.

        Raises:
            ValueError: for a URL of an unknown kind.
            ModuleNotFoundError: if the library that reaches it is missing.

        """
        self.url = absolute(url)
        mount([self.url])

    @property
    def is_writable(self) -> bool:
        """True if the store can be written: a web server cannot."""
        return store_of(self.url).is_writable

    def url_of(self, name: str) -> str:
        """The URL of a file."""
        return f"{self.url}/{name}"

    def put_file(self, name: str, source: str) -> None:
        """Writes a file with the content of a local file, in parts if it is large."""
        url = self.url_of(name)
        store_of(url).write(url, lambda backend, path: backend.put_file(path, source))

    def put(self, name: str, data: bytes) -> None:
        """Writes a small file, and replaces an existing file."""
        url = self.url_of(name)
        store_of(url).write(url, lambda backend, path: backend.put(path, data))

    def create(self, name: str, data: bytes) -> Any | None:
        """Creates a small file. Returns its tag, or None if another file exists.

        `data` must be unique to the writer: if a response was lost, the file's content shows who wrote it.
        """
        url = self.url_of(name)
        tag = store_of(url).write(url, lambda backend, path: backend.create(path, data))
        return self._tag_of(name, data) if tag is None else tag

    def update(self, name: str, data: bytes, tag: Any) -> Any | None:
        """Replaces a small file if it has this tag. Returns its new tag, otherwise None. See `create`."""
        url = self.url_of(name)
        new = store_of(url).write(url, lambda backend, path: backend.update(path, data, tag))
        return self._tag_of(name, data) if new is None else new

    def _tag_of(self, name: str, data: bytes) -> Any | None:
        found = self.read_tagged(name)
        return found[1] if found is not None and found[0] == data else None

    def read(self, name: str) -> bytes | None:
        """A small file; None if it is not there."""
        url = self.url_of(name)
        try:
            return store_of(url).read(url, _MAX_SMALL)
        except FileNotFoundError:
            return None

    def file_system(self) -> tuple[Any, str]:
        """The store as a file system of fsspec, and the directory's path in it: for libraries."""
        return store_of(self.url).file_system(self.url)

    def read_tagged(self, name: str) -> tuple[bytes, Any] | None:
        """A small file and its tag; None if it is not there."""
        url = self.url_of(name)
        try:
            return store_of(url).write(url, lambda backend, path: backend.read_tagged(path, _MAX_SMALL))
        except FileNotFoundError:
            return None

    def files(self) -> dict[str, int]:
        """The sizes of all files by name; none if there is no such directory."""
        return store_of(self.url).write(self.url, lambda backend, path: backend.files(path))

    def modified(self) -> dict[str, int]:
        """The last write of each file directly in the directory: milliseconds of the store's clock."""
        try:
            entries = store_of(self.url).list(self.url)
        except FileNotFoundError:
            return {}
        return {one.name: one.modified_ms for one in entries if not one.is_directory}

    @property
    def options(self) -> StorageOptions:
        """The store's options, for libraries that reach it themselves."""
        return store_of(self.url).options

    def delete(self, names: Sequence[str]) -> None:
        """Removes files; absent files are fine."""
        if names:
            store_of(self.url).write(self.url, lambda backend, path: backend.delete(path, names))
