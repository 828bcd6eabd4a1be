"""The sources of a command: the partitions, segments and sidecars that the paths name."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from magicbyte.cli.exits import CLEAN, PROBLEMS
from magicbyte.cli.terminal import print_problem
from magicbyte.files.sidecars import is_sidecar
from magicbyte.jobs.find.choice import EVERYTHING, PartitionChoice
from magicbyte.jobs.find.partitions import list_partitions, list_segment_file, refuse_other_encodings
from magicbyte.listing import unread_segments
from magicbyte.storage.paths import is_directory, is_url

if TYPE_CHECKING:
    from magicbyte.model import PartitionListing

__all__ = ["files_of", "partitions_of", "readable", "segments_only"]


def readable(sources: Sequence[str]) -> tuple[str, ...]:
    """The sources, all of them with names in UTF-8.

    Raises:
        RefusedError: a name is in another encoding.

    """
    for source in sources:
        refuse_other_encodings(source)
    return tuple(sources)


def segments_only(sources: Sequence[str]) -> tuple[str, ...]:
    """The sources, none of them a sidecar.

    Raises:
        RefusedError: a name is not in UTF-8.
        UsageError: a file is a sidecar.

    """
    for source in readable(sources):
        if is_sidecar(source) and not is_directory(source):
            raise click.UsageError(
                f"{source} is not a segment; `magicbyte dump` prints the files beside segments"
            )
    return tuple(sources)


def partitions_of(
    sources: Sequence[str], choice: PartitionChoice = EVERYTHING
) -> tuple[list[PartitionListing], int]:
    """The chosen partitions at and below the sources, each directory once, and the exit code.

    A source that cannot be read is reported on standard error and makes the exit code 1.
    """
    found, code = _found(sources, choice)
    for listing in found:
        for problem in unread_segments(listing):
            code = PROBLEMS
            path = os.path.join(listing["path"], problem["segment"] or "")
            print_problem(f"magicbyte: {path}: {problem['message']}")
    return found, code


def _found(sources: Sequence[str], choice: PartitionChoice) -> tuple[list[PartitionListing], int]:
    directories: list[str] = []
    listings: list[PartitionListing] = []
    seen: set[str] = set()
    code = CLEAN
    for source in sources:
        try:
            if is_directory(source):
                below = list_partitions([source], choice)
                listings += [listing for listing in below if listing["path"] not in seen]
                seen.update(listing["path"] for listing in below)
                directories.append(source)
            else:
                listings.append(list_segment_file(source, choice))
        except OSError as error:
            code = PROBLEMS
            print_problem(f"magicbyte: {error}")
    if len(directories) > 1 and any(listing["state"] == "remote" for listing in listings):
        # One directory may have the local segments of a partition, and another directory its remote segments.
        joined = {one["path"]: one for one in list_partitions(directories, choice)}
        others = [
            listing for listing in listings if listing["state"] != "remote" or listing["path"] in joined
        ]
        listings = [joined.get(other["path"], other) for other in others]
    return listings, code


def files_of(sources: Sequence[str], choice: PartitionChoice = EVERYTHING) -> tuple[list[str], int]:
    """Files as they are given and the segments of directories, and the exit code as in `partitions_of`.

    Like Kafka's tool, paths begin with the source as it was given.
    """
    files = []
    code = CLEAN
    for source in sources:
        if is_directory(source):
            listings, unread = partitions_of([source], choice)
            code = max(code, unread)
            paths = [segment["path"] for listing in listings for segment in listing["segments"]]
            files += [_below(source, path) for path in paths]
        else:
            files.append(source)
    return files, code


def _below(source: str, path: str) -> str:
    return path if is_url(source) else os.path.join(source, os.path.relpath(path, source))
