"""Paths that may be URLs."""

from __future__ import annotations

import os
import re
from typing import TypeAlias

from magicbyte import _core
from magicbyte.errors import RefusedError

__all__ = [
    "AnyPath",
    "absolute",
    "is_directory",
    "is_relative",
    "is_stored",
    "is_url",
    "local_path",
    "mount_point",
    "split_paths",
]

AnyPath: TypeAlias = "str | bytes | os.PathLike[str] | os.PathLike[bytes]"
"""A path as Python's own functions take it; bytes are decoded as file names are (`os.fsdecode`)."""

_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://([^/]*)")
_FILE = re.compile(r"^file:(//(localhost)?)?(?=/)")


def is_url(path: AnyPath) -> bool:
    """True if a path is a URL, such as `s3://bucket/kafka-logs`, but not a file URL (`file:/...`)."""
    return _URL.match(local_path(path)) is not None


def is_stored(path: str | os.PathLike[str]) -> bool:
    """True if a path is a URL, an archive or inside an archive, so that the core has to examine it."""
    return _core.is_stored(path)


def local_path(path: AnyPath) -> str:
    """The path as text; for a file URL, the path of the file.

    Raises:
        RefusedError: if the path is empty. It would be the working directory, but nearly always is a variable
            of a shell that is not set.

    """
    text = _FILE.sub("", os.fsdecode(path))
    if not text:
        raise RefusedError("a path is empty: expected a file, a directory or a URL")
    return text


def absolute(path: AnyPath) -> str:
    """The absolute path; a URL without slashes at its end."""
    path = local_path(path)
    return path.rstrip("/") if is_url(path) else os.path.abspath(path)


def is_relative(path: str) -> bool:
    """True if a path depends on the working directory."""
    return not is_url(path) and not os.path.isabs(local_path(path))


def split_paths(text: str) -> list[str]:
    """The paths of a list that is separated by commas.

    A comma is part of the name of an existing file, which becomes absolute, or of a single URL.

    Raises:
        ValueError: for a scheme without `//`.

    """
    path = local_path(text)
    scheme = re.match(r"([A-Za-z][A-Za-z0-9+.-]+):", path)
    if scheme is not None and not is_url(path):
        raise ValueError(f"path {path}: expected {scheme[1]}://...")
    pieces = path.split(",")
    if is_url(path) and not any(map(is_url, pieces[1:])):
        return [path]
    if os.path.exists(path):
        return [os.path.abspath(path)]
    if len(pieces) == 1:
        return [path]
    return [each for piece in pieces for each in split_paths(piece.strip())]


def mount_point(url: str) -> str:
    """The start of a URL: its scheme and host, or bucket.

    Raises:
        ValueError: it contains a password or a query, which would appear in every message.

    """
    match = _URL.match(url)
    if match is None:
        raise ValueError(f"{url} is not a URL")
    host = match[2]
    if ":" in host.rpartition("@")[0]:
        scheme, place = match[1], host.rpartition("@")[2]
        raise ValueError(f"{scheme}://...@{place}: pass the password as a storage option, not in the URL")
    if "?" in url or "#" in url:
        raise ValueError(
            f"{re.split('[?#]', url)[0]}: a URL with a query or fragment is not read, since it would appear"
            " in messages; pass credentials as storage options"
        )
    return match[0]


def is_directory(path: str | os.PathLike[str]) -> bool:
    """True if a path is a directory or an archive. False if nothing is there."""
    if not is_stored(path):
        return os.path.isdir(path)
    try:
        return _core.is_directory(path)
    except FileNotFoundError:
        return False
