"""The option `path`: a directory, several separated by commas, or patterns with `*`."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Iterable

__all__ = ["expand_paths"]


def expand_paths(paths: Iterable[str]) -> list[str]:
    """Returns the directories that the option names; each pattern must match at least one."""
    return [match for path in paths for match in _expand(_local(path))]


def _expand(path: str) -> list[str]:
    if os.path.exists(path):
        # The name of an existing file is taken literally, whatever characters it contains.
        return [path]
    if "," in path:
        return [match for part in path.split(",") for match in _expand(_local(part.strip()))]
    matches = sorted(filter(os.path.isdir, glob.glob(path)))
    if not matches:
        raise FileNotFoundError(f"path {path}: no such directory")
    return matches


def _local(path: str) -> str:
    scheme = re.match(r"([A-Za-z][A-Za-z0-9+.-]+):", path)
    if scheme is None:
        return path
    if scheme[1] != "file":
        raise ValueError(
            f"path {path}: {scheme[1]} is not supported, only directories of a mounted file system"
        )
    return re.sub(r"^file:(//)?(?=/)", "", path)
