"""The stores that serve URLs in this process. A job mounts them in all of its processes."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from os import PathLike
from typing import NamedTuple

from magicbyte import _core
from magicbyte.storage.location import refuse_cluster
from magicbyte.storage.options import StorageOptions
from magicbyte.storage.paths import AnyPath, is_url, mount_point
from magicbyte.storage.remote import RemoteStore

__all__ = ["Mount", "is_mounted", "listed_once", "mount", "mount_storage", "mounted", "remount", "store_of"]


class Mount(NamedTuple):
    """A mounted store, as it is passed to the processes of a job."""

    prefix: str
    options: StorageOptions


_LOCK = threading.Lock()
_STORES: dict[str, tuple[Mount, RemoteStore]] = {}


def mount_storage(url: str, options: Mapping[str, str] | None = None) -> None:
    """Sets the access to URLs of one host, bucket or container in this process and in jobs that it starts.

    Needed only for options: without them, credentials and endpoints come from the environment. The options
    are those of obstore for `s3://`, `gs://`, `az://`, `http://` and `https://`, and those of the fsspec file
    system for everything else. Needs `pip install 'magicbyte[cloud]'`.

    >>> from magicbyte import PartitionLog, mount_storage
    >>> mount_storage("memory://", {})

    Args:
        url: a URL; only its scheme and host count.
        options: such as `{"region": "eu-west-1", "access_key_id": ..., "secret_access_key": ...}`. Their
            values appear in no message, plan or report.

    Raises:
        ValueError: for a path that is not a URL, or an option that does not exist.
        ModuleNotFoundError: if obstore or fsspec is missing.

    """
    if not is_url(url):
        raise ValueError(f"{url} is not a URL")
    _mount(mount_point(url), StorageOptions(options))


def mount(paths: Iterable[AnyPath], options: Mapping[str, str] | None = None) -> None:
    """Mounts the stores of the URLs among `paths`; local paths need none.

    A store that is already mounted is kept, unless `options` are given and differ from its own.

    Raises:
        RefusedError: for a running cluster, which has no files.
        ValueError: for a URL that cannot be read.
        ModuleNotFoundError: if the library that reaches it is missing.

    """
    for path in paths:
        if is_url(path):
            refuse_cluster(path)
            _mount(mount_point(os.fsdecode(path)), None if options is None else StorageOptions(options))


def _mount(prefix: str, options: StorageOptions | None) -> None:
    with _LOCK:
        known = _STORES.get(prefix)
        if known is not None and (options is None or known[0].options == options):
            return
        one = Mount(prefix, options or StorageOptions())
        store = RemoteStore(prefix, one.options)
        _core.mount_store(prefix, store)
        _STORES[prefix] = one, store


def mounted() -> tuple[Mount, ...]:
    """The stores that are mounted in this process."""
    with _LOCK:
        return tuple(one for one, _ in _STORES.values())


def remount(mounts: Iterable[Mount]) -> None:
    """Mounts in this process the stores of another process."""
    for one in mounts:
        _mount(one.prefix, one.options)


def is_mounted(url: str) -> bool:
    """True if the store of a URL is mounted in this process."""
    with _LOCK:
        return mount_point(url) in _STORES


def store_of(url: str) -> RemoteStore:
    """The store that is mounted for a URL."""
    with _LOCK:
        return _STORES[mount_point(url)][1]


@contextmanager
def listed_once(paths: Iterable[str | PathLike[str]]) -> Iterator[None]:
    """Within the block, directories at and below the URLs among `paths` are listed once."""
    with ExitStack() as stack:
        for path in paths:
            if is_url(path):
                stack.enter_context(store_of(str(path)).listed_once(str(path)))
        yield
