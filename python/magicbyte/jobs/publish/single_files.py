"""Outputs of a single file, which replace their earlier version and nothing else: pages, caches, offsets."""

from __future__ import annotations

import os
from collections.abc import Sequence

from magicbyte.errors import RefusedError
from magicbyte.jobs.publish.workspace import check_apart

__all__ = ["check_replaceable"]


def check_replaceable(path: str, start: str, kind: str, sources: Sequence[str] = ()) -> None:
    """Refuses to write a file where other data would be lost, or among the sources, which are only read.

    Args:
        path: the local path of the file.
        start: the text with which every file of this kind begins, and no other file does.
        kind: its name in messages, such as `a page of magicbyte explain`.
        sources: what the command reads.

    Raises:
        RefusedError: if the path is a source or below one, its directory does not exist, something other
            than a regular file is there, or a file that does not begin with `start`, not even with a part of
            it as after a full disk.

    """
    check_apart(path, sources)
    if not os.path.lexists(path):
        directory = os.path.dirname(path) or os.curdir
        if not os.path.isdir(directory):
            raise RefusedError(f"{directory} does not exist, or is not a directory")
        return
    if not os.path.isfile(path):
        raise RefusedError(f"{path} is not a regular file: choose another name")
    expected = start.encode()
    with open(path, "rb") as file:
        # An empty file has nothing to lose.
        if not expected.startswith(file.read(len(expected))):
            raise RefusedError(f"{path} exists and is not {kind}: choose another name")
