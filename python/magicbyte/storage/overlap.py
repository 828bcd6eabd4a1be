"""Two names of one place, or of a place within the other."""

from __future__ import annotations

import os
import posixpath
from collections.abc import Sequence
from types import ModuleType

from magicbyte.storage.paths import absolute, is_url, local_path

__all__ = ["overlapping"]

_ALIASES = {"s3a": "s3", "abfss": "az", "abfs": "az", "azure": "az", "adl": "az"}


def overlapping(path: str, others: Sequence[str]) -> str | None:
    """The first of `others` that contains `path` or is within it, if there is one.

    Links are followed. URLs overlap if one begins with the other, host or bucket included; a URL and a local
    path never do.
    """
    if is_url(path):
        place = _normal(path)
        return next((url for url in filter(is_url, others) if _nested(posixpath, place, _normal(url))), None)
    real = os.path.realpath(local_path(path))
    above = {_identity(parent) for parent in _ancestors(real)} - {None}
    identity = _identity(real)
    for other in (os.path.realpath(local_path(other)) for other in others if not is_url(other)):
        is_inside = identity is not None and identity in map(_identity, _ancestors(other))
        if is_inside or _identity(other) in above or _nested(os.path, real, other):
            return other
    return None


def _nested(paths: ModuleType, path: str, other: str) -> bool:
    """True if one path contains the other, by the rules of the module `posixpath` or `os.path`."""
    return paths.commonpath([path, other]) in (path, other)


def _normal(url: str) -> str:
    """A URL as a path: the same path for all names of one place."""
    scheme, _, place = absolute(url).partition("://")
    return posixpath.normpath(f"/{_ALIASES.get(scheme, scheme)}/{place}")


def _ancestors(path: str) -> list[str]:
    """The path and all its parent directories."""
    found = [path]
    while (parent := os.path.dirname(found[-1])) != found[-1]:
        found.append(parent)
    return found


def _identity(path: str) -> tuple[int, int] | None:
    # A directory may have several names: bind mounts, case-insensitive file systems.
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino
