"""The option `path`: a directory, several separated by commas, or patterns with `*`."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable

from magicbyte.storage.location import are_fetched, locate
from magicbyte.storage.paths import is_relative, split_paths

__all__ = ["absolute_paths", "expand_paths"]


def absolute_paths(paths: Iterable[str]) -> list[str]:
    """Takes lists apart, and makes paths absolute, as Spark's file sources do in the driver: the directories
    of executors are others.
    """
    here = glob.escape(os.getcwd())
    pieces = [piece for path in paths for piece in split_paths(path)]
    return [os.path.join(here, piece) if is_relative(piece) else piece for piece in pieces]


def expand_paths(paths: Iterable[str]) -> list[str]:
    """Returns the directories and URLs of `absolute_paths`; each pattern must match at least one."""
    return [match for path in paths for match in _expand(path)]


def _expand(path: str) -> list[str]:
    # A store is asked when it is listed.
    if are_fetched([path]) or locate(path).exists():
        return [path]
    matches = sorted(filter(os.path.isdir, glob.glob(path)))
    if not matches:
        raise FileNotFoundError(f"path {path}: no such directory")
    return matches
