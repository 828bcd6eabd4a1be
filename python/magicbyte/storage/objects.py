"""Object stores, through obstore."""

from __future__ import annotations

import asyncio
import errno
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import obstore
from obstore import exceptions
from obstore.store import from_url

from magicbyte.storage.backend import ODD_KEY, Entry, TransientError, changed_error
from magicbyte.storage.options import StorageOptions

if TYPE_CHECKING:
    from obstore import ObjectMeta

__all__ = [
    "ObjectStore",
    "as_os_errors",
    "client_options",
    "entry_of",
    "read_object",
    "read_object_range",
    "retry_config",
]

_CLIENT = {
    "allow_http",
    "allow_invalid_certificates",
    "connect_timeout",
    "http1_only",
    "http2_only",
    "pool_idle_timeout",
    "pool_max_idle_per_host",
    "proxy_ca_certificate",
    "proxy_excludes",
    "proxy_url",
    "randomize_addresses",
    "read_timeout",
    "root_certificate",
    "timeout",
    "user_agent",
}
_RETRY = {"max_retries", "retry_timeout"}
_MAX_OBJECTS = "max_objects"
"""The storage option for the maximum number of objects in a listing."""
_DEFAULT_MAX_OBJECTS = 500_000
_OURS = _CLIENT | _RETRY | {_MAX_OBJECTS}
_LISTING_SECONDS = 60
"""The time limit for the listing of one directory."""
_INVALID_PATH = "object with invalid path"
"""A part of obstore's message for a listing with a key that is not a path."""
_REMEDY = "remove the object, or give a directory further down"
_PAGE = 1000
_PART_BYTES = 8 << 20
_PARTS = 3
"""The number of parts of a file that are uploaded at a time: each part is in memory."""


class ObjectStore:
    """A bucket or container."""

    def __init__(self, url: str, options: StorageOptions) -> None:
        self._url = url
        self._options = options
        config: Any = {name: value for name, value in options.items() if name not in _OURS}
        self._max_objects = int(options.get(_MAX_OBJECTS, _DEFAULT_MAX_OBJECTS))
        with as_os_errors(url):
            self._store: Any = from_url(
                url,
                config=config,
                client_options=client_options(options),
                retry_config=retry_config(options),
            )

    def tree(self, directory: str) -> dict[str, list[Entry]] | None:
        """See `Backend.tree`: one request for a thousand objects.

        None if a key is not a path: listing one by one then fails only for the directory with that key.
        """
        found: dict[str, dict[str, Entry]] = defaultdict(dict)
        try:
            for one in self._objects(directory):
                _add(found, directory, one)
        except OSError as error:
            if ODD_KEY not in str(error.strerror):
                raise
            return None
        return {path: list(entries.values()) for path, entries in found.items()}

    def _objects(self, directory: str) -> Iterator[ObjectMeta]:
        """All objects below a directory. A store may name one page after another without end."""
        count = 0
        with as_os_errors(directory):
            for page in obstore.list(self._store, directory or None, chunk_size=_PAGE):
                count += len(page)
                if count > self._max_objects:
                    why = (
                        f"more than {self._max_objects} objects are below it: give a directory further down,"
                        f" or the storage option {_MAX_OBJECTS}"
                    )
                    raise OSError(errno.EFBIG, why, directory)
                yield from page

    def list(self, directory: str) -> list[Entry]:
        """See `Backend.list`."""
        # In a separate thread, since the caller's may run an event loop.
        with as_os_errors(directory), ThreadPoolExecutor(1) as pool:
            result = pool.submit(asyncio.run, self._list_with_delimiter(directory)).result()
        files = {entry.name: entry for entry in map(entry_of, result["objects"])}
        for path in result["common_prefixes"]:
            name = path.rpartition("/")[2]
            files[name] = Entry(name, True)
        if not files:
            raise FileNotFoundError(errno.ENOENT, "there is nothing below it", directory)
        return list(files.values())

    async def _list_with_delimiter(self, directory: str) -> Any:
        listing = obstore.list_with_delimiter_async(self._store, directory or None)
        try:
            return await asyncio.wait_for(listing, _LISTING_SECONDS)
        except TimeoutError:
            why = f"its listing has no end within {_LISTING_SECONDS} s"
            raise OSError(errno.ETIMEDOUT, why, directory) from None

    def examine(self, path: str) -> Entry:
        """See `Backend.examine`: a path with objects below it is a directory."""
        try:
            with as_os_errors(path):
                return entry_of(obstore.head(self._store, path))
        except FileNotFoundError:
            try:
                if next(self._objects(path), None) is None:
                    raise FileNotFoundError(errno.ENOENT, "there is nothing below it", path) from None
            except OSError as error:
                if ODD_KEY not in str(error.strerror):
                    raise
            return Entry(path.rpartition("/")[2], True)

    def read(self, path: str, limit: int) -> bytes:
        """See `Backend.read`."""
        return read_object(self._store, path, limit)

    def read_range(self, path: str, version: str | None, start: int, end: int) -> bytes:
        """See `Backend.read_range`."""
        return read_object_range(self._store, path, version, start, end)

    def file_system(self, path: str) -> tuple[Any, str]:
        """See `Backend.file_system`."""
        from obstore.fsspec import FsspecStore

        scheme, _, bucket = self._url.partition("://")
        protocol: Any = {"s3a": "s3", "azure": "az", "adl": "az"}.get(scheme.lower(), scheme.lower())
        options: Any = {name: value for name, value in self._options.items() if name not in _OURS}
        system = FsspecStore(
            protocol,
            **options,
            client_options=client_options(self._options),
            retry_config=retry_config(self._options),
        )
        return system, f"{bucket}/{path}"

    def put_file(self, path: str, source: str) -> None:
        """See `WritableBackend.put_file`."""
        with as_os_errors(path):
            obstore.put(self._store, path, Path(source), chunk_size=_PART_BYTES, max_concurrency=_PARTS)

    def get_file(self, path: str, target: str) -> None:
        """See `WritableBackend.get_file`."""
        with as_os_errors(path), open(target, "wb") as file:
            for part in obstore.get(self._store, path).stream(min_chunk_size=_PART_BYTES):
                file.write(part)

    def copy(self, path: str, target: str) -> None:
        """See `WritableBackend.copy`: the store copies."""
        with as_os_errors(path):
            obstore.copy(self._store, path, target)

    def put(self, path: str, data: bytes) -> None:
        """See `WritableBackend.put`."""
        with as_os_errors(path):
            obstore.put(self._store, path, data, use_multipart=False)

    def create(self, path: str, data: bytes) -> Any | None:
        """See `WritableBackend.create`. Where the store has no conditions, two may succeed at once."""
        with as_os_errors(path):
            try:
                return _tag_of(obstore.put(self._store, path, data, mode="create", use_multipart=False))
            except exceptions.AlreadyExistsError:
                return None
            except (exceptions.NotSupportedError, NotImplementedError):
                pass
            try:
                obstore.head(self._store, path)
            except FileNotFoundError:
                return _tag_of(obstore.put(self._store, path, data, use_multipart=False))
            return None

    def update(self, path: str, data: bytes, tag: Any) -> Any | None:
        """See `WritableBackend.update`. Where the store has no conditions, two may succeed at once."""
        with as_os_errors(path):
            try:
                return _tag_of(obstore.put(self._store, path, data, mode=tag, use_multipart=False))
            except (exceptions.PreconditionError, FileNotFoundError):
                return None
            except (exceptions.NotSupportedError, NotImplementedError):
                pass
            try:
                if _tag_of(obstore.head(self._store, path)) != tag:
                    return None
            except FileNotFoundError:
                return None
            return _tag_of(obstore.put(self._store, path, data, use_multipart=False))

    def read_tagged(self, path: str, limit: int) -> tuple[bytes, Any]:
        """See `WritableBackend.read_tagged`."""
        with as_os_errors(path):
            result = obstore.get(self._store, path)
            return _whole(result, path, limit), _tag_of(result.meta)

    def files(self, directory: str) -> dict[str, int]:
        """See `WritableBackend.files`: one request for a thousand objects."""
        top = f"{directory}/" if directory else ""
        return {one["path"].removeprefix(top): one["size"] for one in self._objects(directory)}

    def delete(self, directory: str, names: Sequence[str]) -> None:
        """See `WritableBackend.delete`."""
        with as_os_errors(directory):
            for start in range(0, len(names), _PAGE):
                paths = [f"{directory}/{name}" for name in names[start : start + _PAGE]]
                try:
                    obstore.delete(self._store, paths)
                except FileNotFoundError:  # not of S3; the others may still be there
                    for path in paths:
                        with suppress(FileNotFoundError):
                            obstore.delete(self._store, path)


def _tag_of(meta: Any) -> Any:
    return {name: meta[name] for name in ("e_tag", "version") if meta.get(name) is not None}


def read_object(store: Any, path: str, limit: int) -> bytes:
    """A whole object; see `Backend.read`."""
    with as_os_errors(path):
        return _whole(obstore.get(store, path), path, limit)


def _whole(result: Any, path: str, limit: int) -> bytes:
    size = result.meta["size"]
    if size > limit:
        raise OSError(errno.EFBIG, f"{size} bytes exceed the limit of {limit}", path)
    return bytes(result.bytes())


def read_object_range(store: Any, path: str, version: str | None, start: int, end: int) -> bytes:
    """See `Backend.read_range`: the version comes from the response with the bytes."""
    with as_os_errors(path):
        result = obstore.get(store, path, options={"range": (start, end)})
        if version is not None and _version_of(result.meta) != version:
            raise changed_error(path)
        return result.bytes()  # type: ignore[return-value]  # a buffer, which is all that is needed


def _add(found: dict[str, dict[str, Entry]], top: str, one: ObjectMeta) -> None:
    """Adds an object, and the directories between it and `top`."""
    entry, path = entry_of(one), one["path"].rpartition("/")[0]
    if not found[path].get(entry.name, entry).is_directory:
        found[path][entry.name] = entry
    while path != top and path:
        parent, _, name = path.rpartition("/")
        known = found[parent].get(name)
        if known is not None and known.is_directory:
            return
        found[parent][name] = Entry(name, True)
        path = parent


def entry_of(meta: ObjectMeta) -> Entry:
    """An object as an entry of its directory."""
    modified: datetime = meta["last_modified"]
    name = meta["path"].rpartition("/")[2]
    return Entry(name, False, meta["size"], int(modified.timestamp() * 1000), _version_of(meta))


def _version_of(meta: ObjectMeta) -> str:
    """The ETag, or the time of the last change. Listings and responses may write either differently."""
    tag = meta.get("e_tag")
    return tag.removeprefix("W/").strip('"') if tag else str(int(meta["last_modified"].timestamp()))


def client_options(options: Mapping[str, str]) -> Any:
    """The options of the HTTP client among the storage options."""
    return {
        name: {"true": True, "false": False}.get(value.lower(), value)
        for name, value in options.items()
        if name in _CLIENT
    }


def retry_config(options: Mapping[str, str]) -> Any:
    """The retry settings among the storage options; None without any."""
    config: dict[str, Any] = {}
    if "max_retries" in options:
        config["max_retries"] = int(options["max_retries"])
    if "retry_timeout" in options:
        config["retry_timeout"] = timedelta(seconds=float(options["retry_timeout"].removesuffix("s")))
    return config or None


@contextmanager
def as_os_errors(path: str) -> Iterator[None]:
    """Turns obstore's errors into OSErrors."""
    try:
        yield
    except Exception as error:
        # Its FileNotFoundError is the builtin one.
        if not isinstance(error, exceptions.BaseError) and getattr(error, "errno", 0) is not None:
            raise
        why = _what_happened(error)
        if _INVALID_PATH in why:
            key = why.partition('"')[2].rpartition('" ')[0] or why
            why = f"{ODD_KEY}: {key}; {_REMEDY}"
        if isinstance(error, exceptions.UnknownConfigurationKeyError):
            raise ValueError(f"storage option: {why}") from None
        if isinstance(error, exceptions.NotFoundError | FileNotFoundError):
            raise FileNotFoundError(errno.ENOENT, why, path) from None
        if isinstance(error, exceptions.PermissionDeniedError | exceptions.UnauthenticatedError):
            raise PermissionError(errno.EACCES, why, path) from None
        if isinstance(error, exceptions.NotSupportedError):
            raise OSError(errno.ENOTSUP, why, path) from None
        if isinstance(error, exceptions.PreconditionError):
            raise changed_error(path) from None
        # The library does the retries, except for a response that breaks off.
        if "response body" in why or "body" in why:
            raise TransientError(errno.EIO, why, path) from None
        raise OSError(errno.EIO, why, path) from None


def _what_happened(error: Exception) -> str:
    """The message without the library's debugging output, and with only the code of the server's document."""
    message, _, document = str(error).partition("\n\nDebug source")[0].partition("<?xml")
    code = re.search(r"<Code>(\w+)</Code>", document)
    return " ".join(f"{message}{code[1] if code else ''}".split()).rstrip(": ")
