"""The kind of a store, from its URL."""

from __future__ import annotations

from typing import TYPE_CHECKING

from magicbyte.storage.backend import Backend, MissingPackageError

if TYPE_CHECKING:
    from magicbyte.storage.options import StorageOptions

__all__ = ["backend_of"]

_OBJECTS = {"s3", "s3a", "gs", "az", "adl", "azure", "abfs", "abfss"}
_WEB = {"http", "https"}


def backend_of(url: str, options: StorageOptions) -> Backend:
    """The backend for the store at `url`: obstore for object stores and web servers, fsspec for the rest.

    Raises:
        MissingPackageError: the library is missing.
        ValueError: the store has no such option, or no library reads such URLs.

    """
    scheme = url.partition(":")[0].lower()
    try:
        if scheme in _WEB:
            from magicbyte.storage.web import WebServer

            return WebServer(url, options)
        if scheme in _OBJECTS:
            from magicbyte.storage.objects import ObjectStore

            return ObjectStore(url, options)
        from magicbyte.storage.file_systems import FileSystem

        return FileSystem(url, options)
    except ModuleNotFoundError as error:
        if error.name in ("obstore", "fsspec"):
            raise MissingPackageError(
                f"{scheme}:// needs {error.name}: pip install 'magicbyte[cloud]'"
            ) from None
        raise
