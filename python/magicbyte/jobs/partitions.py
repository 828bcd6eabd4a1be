"""Finding partition directories: those that hold `%020d.log` files."""

from __future__ import annotations

import json
import logging
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from typing import cast

from magicbyte import _core
from magicbyte.errors import CorruptRecordError
from magicbyte.jobs.failure import RefusedError
from magicbyte.model import PartitionListing, Problem
from magicbyte.jobs.workspace import is_unfinished

__all__ = [
    "find_partitions",
    "is_segment_file",
    "list_partitions",
    "list_segment_file",
    "refuse_other_encodings",
    "refuse_unread",
    "unread_names",
]

_LOGGER = logging.getLogger("magicbyte.jobs")
_SEGMENT_FILE = re.compile(r"\d{20}\.log")
_NOT_UTF8 = "the path is not UTF-8: rename it, or reach it through a link"


def is_segment_file(name: str) -> bool:
    """Whether a file name is that of a segment: twenty digits, the base offset, and `.log`."""
    return _SEGMENT_FILE.fullmatch(name) is not None


def find_partitions(sources: Sequence[str]) -> list[str]:
    """Returns the partition directories at and below `sources`: absolute, sorted, each once.

    Symbolic links are followed, but no directory is entered twice. What may be such a directory and cannot
    be looked into is among them. Below a source, what a job has not finished (or left behind when it was
    killed) is not read; the log `magicbyte.jobs` names it.
    """
    return sorted(_find(sources))


def _find(sources: Sequence[str]) -> dict[str, str | None]:
    """What there is to list, each with the reason why it cannot be, if there is one."""
    found: dict[str, str | None] = {}
    visited: set[str] = set()
    for source in sources:
        if not os.path.isdir(source):
            raise RefusedError(f"{source} is not a directory")
        refuse_other_encodings(source)
        found.update(_walk(os.path.abspath(source), visited))
    return found


def refuse_other_encodings(path: str) -> None:
    """Refuses a path that is not UTF-8: plans and summaries travel as JSON."""
    path = os.path.abspath(path)
    if _shown(path) != path:
        raise RefusedError(f"{_shown(path)}: {_NOT_UTF8}")


def _walk(top: str, visited: set[str]) -> Iterator[tuple[str, str | None]]:
    waiting = [top]
    while waiting:
        directory = waiting.pop()
        real = os.path.realpath(directory)
        if real in visited:
            continue
        visited.add(real)
        try:
            with os.scandir(directory) as scan:
                entries = list(scan)
        except OSError as error:
            # What was named must be readable; what lies below it costs only itself.
            if directory == top or isinstance(error, FileNotFoundError):
                raise
            yield directory, str(error.strerror)
            continue
        is_partition = any(is_segment_file(entry.name) for entry in entries)
        if is_partition:
            yield directory, None if _shown(directory) == directory else _NOT_UTF8
        for entry in entries:
            is_directory, why = _examine(entry)
            if is_directory and is_unfinished(entry.name):
                _tell_unfinished(entry.path)
            elif is_directory:
                waiting.append(entry.path)
            elif why is not None and not is_partition:  # the listing of a partition names these
                yield entry.path, why


def _examine(entry: os.DirEntry[str]) -> tuple[bool, str | None]:
    """Whether it is a directory, or why nobody can tell."""
    try:
        if entry.is_dir():
            return True, None
        if entry.is_symlink():
            entry.stat()
    except FileNotFoundError:
        return False, "it is a symbolic link that leads nowhere"
    except OSError as error:
        return False, str(error.strerror)
    return False, None


def _shown(path: str) -> str:
    """A path as text; bytes that are not UTF-8 are escaped."""
    return os.fsencode(path).decode("utf-8", "backslashreplace")


@cache
def _tell_unfinished(path: str) -> None:
    _LOGGER.warning("%s is not read: a job has not finished it", _shown(path))


def list_partitions(
    sources: Sequence[str], *, distinct: bool = False, may_be_none: bool = False
) -> list[PartitionListing]:
    """Lists every partition at and below `sources`, in the order of topic, partition and path.

    A directory whose name is not `topic-N` is taken as partition 0 of a topic of that name. One that
    cannot be listed has nothing but its problem. `distinct` refuses two directories for the same
    partition; without `may_be_none` there must be one.
    """
    listings = [_list(path, why) for path, why in _find(sources).items()]
    if not listings and not may_be_none:
        raise RefusedError(f"no Kafka segments (files such as {0:020d}.log) below {', '.join(sources)}")
    listings.sort(key=_place_and_path)
    return _distinct(listings) if distinct else listings


def _place_and_path(listing: PartitionListing) -> tuple[str, int, str]:
    return listing["topic"], listing["partition"], listing["path"]


def _list(path: str, why: str | None) -> PartitionListing:
    try:
        if why is None:
            return list_directory(path)
    except FileNotFoundError:  # not there any more
        raise
    except OSError as error:
        why = error.strerror or str(error)
    return cast(PartitionListing, json.loads(_core.unreadable_directory(_shown(path), str(why))))


def _distinct(listings: Sequence[PartitionListing]) -> list[PartitionListing]:
    """A listing a partition. One with nothing to read leaves its problems to the other."""
    kept: dict[tuple[str, int], PartitionListing] = {}
    for one in sorted(listings, key=lambda one: not one["segments"]):
        other = kept.setdefault((one["topic"], one["partition"]), one)
        if other is one:
            continue
        if one["segments"]:
            # Copies from two brokers hold the same records: side by side in one table they would count
            # twice.
            raise RefusedError(
                f"{one['topic']}-{one['partition']} is there twice, in {other['path']} and {one['path']}: "
                "read one copy at a time"
            )
        other["ignored"] += one["ignored"]
        other["problems"] += one["problems"]
    return sorted(kept.values(), key=_place_and_path)


def unread_names(listing: PartitionListing) -> list[Problem]:
    """The problems of a listing that mean that a part of the log is not read: not those of sidecars."""
    return [
        problem
        for problem in listing["problems"]
        if problem["segment"] is None or is_segment_file(problem["segment"])
    ]


def refuse_unread(listings: Iterable[PartitionListing]) -> None:
    """Raises for the first part of a log that is not read: what a job does that stops at damage."""
    for listing in listings:
        for problem in unread_names(listing):
            path = os.path.join(listing["path"], problem["segment"] or "")
            raise CorruptRecordError(f"{path}: {problem['message']}", problem["kind"])


def list_directory(path: str) -> PartitionListing:
    """Lists one partition directory; its segments are pinned at their present sizes."""
    return cast(PartitionListing, json.loads(_core.list_partition(path)))


def list_segment_file(path: str) -> PartitionListing:
    """Lists a single `.log` or `.checkpoint` file as if it were all of its partition."""
    listing = list_directory(os.path.abspath(path))
    if not listing["segments"]:
        raise RefusedError(f"{path} is not named as a segment is, such as {0:020d}.log")
    return listing
