"""A directory in a store that a job writes to, or reads as a whole."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from tempfile import TemporaryDirectory
from typing import Any

from magicbyte.storage.mounts import is_mounted, mount, store_of
from magicbyte.storage.options import StorageOptions
from magicbyte.storage.paths import absolute, is_directory

__all__ = ["StoredDirectory"]

_MAX_SMALL = 256 << 20
"""The maximum size of a file that is read whole, such as a report."""
_UPLOADS = 4
"""The maximum number of files that are uploaded at a time."""


class StoredDirectory:
    """A directory in a store; names are relative to it.

    Processes of a job may pass it on: its store has to be mounted in each of them.
    """

    noun = "URL"

    def __init__(self, url: str, options: Mapping[str, str] | None = None) -> None:
        """Mounts the store with `options`, if it is not mounted yet.

        Raises:
            ValueError: for a URL of an unknown kind.
            ModuleNotFoundError: if the library that reaches it is missing.

        """
        self.path = absolute(url)
        mount([self.path], None if is_mounted(self.path) else options)

    @property
    def is_writable(self) -> bool:
        """True if the store can be written: a web server cannot."""
        return store_of(self.path).is_writable

    def url_of(self, name: str) -> str:
        """The URL of a file."""
        return f"{self.path}/{name}"

    def below(self, name: str) -> StoredDirectory:
        """A directory in this one."""
        return StoredDirectory(self.url_of(name))

    def has_directory(self, name: str) -> bool:
        """True if a directory is there."""
        return is_directory(self.url_of(name))

    def is_empty(self) -> bool:
        """True if no file is below it."""
        return not self.files()

    @contextmanager
    def written_locally(self, max_bytes: int) -> Iterator[tuple[str, Callable[[str], None]]]:
        """A local directory for files of this one, and the function to call with the name of each.

        The files are uploaded and removed whenever they have `max_bytes`, and at the end.
        """
        with TemporaryDirectory(prefix="magicbyte-") as local:
            waiting: dict[str, str] = {}

            def upload() -> None:
                self.put_files(waiting)
                for path in waiting.values():
                    os.remove(path)
                waiting.clear()

            def finished(name: str) -> None:
                waiting[name] = os.path.join(local, name)
                if sum(map(os.path.getsize, waiting.values())) >= max_bytes:
                    upload()

            yield local, finished
            upload()

    def put_file(self, name: str, source: str) -> None:
        """Writes a file with the content of a local file, in parts if it is large."""
        url = self.url_of(name)
        store_of(url).write(url, lambda backend, path: backend.put_file(path, source))

    def put_files(self, files: Mapping[str, str]) -> None:
        """Writes files, several at a time; `files` has the local path of each content, by name."""
        with ThreadPoolExecutor(_UPLOADS, thread_name_prefix="magicbyte-upload") as pool:
            try:
                for _ in pool.map(self.put_file, files.keys(), files.values()):
                    pass
            except BaseException:
                pool.shutdown(cancel_futures=True)
                raise

    def get_file(self, name: str, target: str) -> None:
        """Writes the content of a file to a local file."""
        url = self.url_of(name)
        store_of(url).write(url, lambda backend, path: backend.get_file(path, target))

    def copy(self, name: str, target: str) -> None:
        """Writes a file with the content of another one, and replaces an existing file."""
        top, url = store_of(self.path), self.url_of(name)
        top.write(
            url,
            lambda backend, path: backend.copy(path, f"{path.removesuffix(name)}{target}"),
        )

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
        """The store as a file system of fsspec, and the directory's path in it: for pyarrow."""
        return store_of(self.path).file_system(self.path)

    def read_tagged(self, name: str) -> tuple[bytes, Any] | None:
        """A small file and its tag; None if it is not there."""
        url = self.url_of(name)
        try:
            return store_of(url).write(url, lambda backend, path: backend.read_tagged(path, _MAX_SMALL))
        except FileNotFoundError:
            return None

    def files(self) -> dict[str, int]:
        """The sizes of all files by name; none if there is no such directory."""
        return store_of(self.path).write(self.path, lambda backend, path: backend.files(path))

    def modified(self) -> dict[str, int]:
        """The last write of each file directly in the directory: milliseconds of the store's clock."""
        try:
            entries = store_of(self.path).list(self.path)
        except FileNotFoundError:
            return {}
        return {entry.name: entry.modified_ms for entry in entries if not entry.is_directory}

    @property
    def options(self) -> StorageOptions:
        """The store's options, for libraries that reach it themselves."""
        return store_of(self.path).options

    def delete(self, names: Sequence[str]) -> None:
        """Removes files; absent files are fine."""
        if names:
            store_of(self.path).write(self.path, lambda backend, path: backend.delete(path, names))
