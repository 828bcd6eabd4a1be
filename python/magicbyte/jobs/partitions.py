"""Finding partition directories: those that hold `%020d.log` files."""

from __future__ import annotations

import json
import logging
import os
import re
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import pairwise
from typing import cast

from magicbyte import _core
from magicbyte.jobs.failure import RefusedError
from magicbyte.jobs.model import PartitionListing
from magicbyte.jobs.workspace import is_unfinished

__all__ = ["find_partitions", "is_segment_file", "list_partitions", "list_segment_file"]

_LOGGER = logging.getLogger("magicbyte.jobs")
_SEGMENT_FILE = re.compile(r"\d{20}\.log")


def is_segment_file(name: str) -> bool:
    """Whether a file name is that of a segment: twenty digits, the base offset, and `.log`."""
    return _SEGMENT_FILE.fullmatch(name) is not None


def find_partitions(sources: Sequence[str]) -> list[str]:
    """Returns the partition directories at and below `sources`: absolute, sorted, each once.

    Symbolic links are followed, but no directory is entered twice. Below a source, what a job has not
    finished (or left behind when it was killed) is not read; the log `magicbyte.jobs` names it.
    """
    found: set[str] = set()
    visited: set[str] = set()
    for source in sources:
        if not os.path.isdir(source):
            raise RefusedError(f"{source} is not a directory")
        found.update(_walk(os.path.abspath(source), visited))
    return sorted(found)


def _walk(top: str, visited: set[str]) -> Iterator[str]:
    for directory, subdirectories, files in os.walk(top, followlinks=True, onerror=_raise):
        real = os.path.realpath(directory)
        if real in visited:
            subdirectories.clear()
            continue
        visited.add(real)
        for name in filter(is_unfinished, subdirectories):
            _tell_unfinished(os.path.join(directory, name))
        subdirectories[:] = sorted(name for name in subdirectories if not is_unfinished(name))
        if any(map(is_segment_file, files)):
            yield directory


@cache
def _tell_unfinished(path: str) -> None:
    _LOGGER.warning("%s is not read: a job has not finished it", path)


def _raise(error: OSError) -> None:
    # os.walk would skip a directory that cannot be read: its records would be missing silently.
    raise error


def list_partitions(
    sources: Sequence[str], *, distinct: bool = False, may_be_none: bool = False
) -> list[PartitionListing]:
    """Lists every partition at and below `sources`, in the order of topic, partition and path.

    A directory whose name is not `topic-N` is taken as partition 0 of a topic of that name.
    `distinct` refuses two directories for the same partition; without `may_be_none` there must be one.
    """
    listings = [list_directory(path) for path in find_partitions(sources)]
    if not listings and not may_be_none:
        raise RefusedError(f"no Kafka segments (files such as {0:020d}.log) below {', '.join(sources)}")
    listings.sort(key=lambda one: (one["topic"], one["partition"], one["path"]))
    if distinct:
        _refuse_twins(listings)
    return listings


def _refuse_twins(listings: Sequence[PartitionListing]) -> None:
    # Copies from two brokers hold the same records: side by side in one table they would count twice.
    for one, other in pairwise(listings):
        if (one["topic"], one["partition"]) == (other["topic"], other["partition"]):
            raise RefusedError(
                f"{one['topic']}-{one['partition']} is there twice, in {one['path']} and {other['path']}: "
                "read one copy at a time"
            )


def list_directory(path: str) -> PartitionListing:
    """Lists one partition directory; its segments are pinned at their present sizes."""
    return cast(PartitionListing, json.loads(_core.list_partition(path)))


def list_segment_file(path: str) -> PartitionListing:
    """Lists a single `.log` or `.checkpoint` file as if it were all of its partition."""
    listing = list_directory(os.path.abspath(path))
    if not listing["segments"]:
        raise RefusedError(f"{path} is not named as a segment is, such as {0:020d}.log")
    return listing
