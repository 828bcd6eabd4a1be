"""A directory in a store, to which a job writes, or which it reads as a whole."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from magicbyte.storage.mounts import mount, store_of
from magicbyte.storage.options import StorageOptions
from magicbyte.storage.paths import absolute

__all__ = ["Destination"]

_MAX_SMALL = 256 << 20
"""The largest file that is read whole: reports."""


class Destination:
    """A directory in a store; names are relative to it.

    Processes of a job may pass it on: its store has to be mounted in each of them.
    """

    def __init__(self, url: str) -> None:
        """Mounts the store, if it is not mounted yet.

        Raises:
            ValueError: for a URL that nothing reaches.
            ModuleNotFoundError: if the library that reaches it is missing.

        """
        self.url = absolute(url)
        mount([self.url])

    @property
    def is_writable(self) -> bool:
        """Whether anything can be written there: not to web servers."""
        return store_of(self.url).is_writable

    def url_of(self, name: str) -> str:
        """The URL of a file."""
        return f"{self.url}/{name}"

    def put_file(self, name: str, source: str) -> None:
        """Writes a file with the content of a local one, in parts if it is large."""
        url = self.url_of(name)
        store_of(url).write(url, lambda backend, path: backend.put_file(path, source))

    def put(self, name: str, data: bytes) -> None:
        """Writes a small file, whatever was there."""
        url = self.url_of(name)
        store_of(url).write(url, lambda backend, path: backend.put(path, data))

    def create(self, name: str, data: bytes) -> Any | None:
        """Writes a small file if there is none yet: its tag, or None if there is another one.

        `data` must be unlike what others write: if an answer was lost, the file's content shows whose it is.
        """
        url = self.url_of(name)
        tag = store_of(url).write(url, lambda backend, path: backend.create(path, data))
        return self._tag_of(name, data) if tag is None else tag

    def update(self, name: str, data: bytes, tag: Any) -> Any | None:
        """Writes a small file if the one that is there has this tag; its new tag, else None. See `create`."""
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
        """When the files directly in the directory were last written: milliseconds of the store's clock."""
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
        """Removes files; absent ones are fine."""
        if names:
            store_of(self.url).write(self.url, lambda backend, path: backend.delete(path, names))
