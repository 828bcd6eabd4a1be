"""The option `path`: a directory, several separated by commas, or patterns with `*`."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Iterable

from magicbyte.storage.paths import is_url, local_path

__all__ = ["absolute_paths", "expand_paths"]


def absolute_paths(paths: Iterable[str]) -> list[str]:
    """Takes lists apart, and makes paths absolute, as Spark's file sources do in the driver: the directories
    of executors are others.
    """
    return [each for path in paths for each in _absolute(_local(path))]


def _absolute(path: str) -> list[str]:
    if is_url(path) and not any(map(is_url, path.split(",")[1:])):
        return [path]
    if os.path.exists(path):
        # The name of an existing file is taken literally, whatever characters it contains.
        return [os.path.abspath(path)]
    if "," in path:
        return [each for part in path.split(",") for each in _absolute(_local(part.strip()))]
    return [path if os.path.isabs(path) else os.path.join(glob.escape(os.getcwd()), path)]


def expand_paths(paths: Iterable[str]) -> list[str]:
    """Returns the directories and URLs of `absolute_paths`; each pattern must match at least one."""
    return [match for path in paths for match in _expand(path)]


def _expand(path: str) -> list[str]:
    if is_url(path) or os.path.exists(path):
        return [path]
    matches = sorted(filter(os.path.isdir, glob.glob(path)))
    if not matches:
        raise FileNotFoundError(f"path {path}: no such directory")
    return matches


def _local(path: str) -> str:
    path = local_path(path)
    scheme = re.match(r"([A-Za-z][A-Za-z0-9+.-]+):", path)
    if scheme is not None and not is_url(path):
        raise ValueError(f"path {path}: expected {scheme[1]}://...")
    return path
