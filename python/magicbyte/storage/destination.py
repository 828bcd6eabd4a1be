"""A directory that a job writes to, or reads as a whole: local, or in a store."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TypeAlias

from magicbyte.storage.local_directory import LocalDirectory
from magicbyte.storage.location import refuse_cluster
from magicbyte.storage.paths import is_url
from magicbyte.storage.stored_directory import StoredDirectory

__all__ = ["Destination", "destination_of"]

Destination: TypeAlias = LocalDirectory | StoredDirectory


def destination_of(path: str | os.PathLike[str], options: Mapping[str, str] | None = None) -> Destination:
    """The directory at a path, or at a URL, whose store is mounted with `options` if it is not mounted yet.

    Raises:
        RefusedError: for a running cluster.
        ValueError: for a URL of an unknown kind.
        ModuleNotFoundError: if the library that reaches the store is missing.

    """
    refuse_cluster(path)
    return StoredDirectory(os.fspath(path), options) if is_url(path) else LocalDirectory(path)
