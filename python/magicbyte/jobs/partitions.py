"""Finding and listing partition directories: those that contain `%020d.log` files."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from typing import cast

from magicbyte import _core
from magicbyte.errors import CorruptRecordError
from magicbyte.jobs.failure import RefusedError
from magicbyte.jobs.workspace import is_unfinished
from magicbyte.listing import is_segment_file, unread_segments
from magicbyte.model import PartitionListing

__all__ = [
    "find_partitions",
    "list_directory",
    "list_partitions",
    "list_segment_file",
    "refuse_other_encodings",
    "refuse_unread",
]

_LOGGER = logging.getLogger("magicbyte.jobs")
_NOT_UTF8 = "the path is not UTF-8: rename it, or reach it through a link"


def find_partitions(sources: Sequence[str]) -> list[str]:
    """Returns the partition directories at and below `sources`: absolute, sorted, each once.

    Symbolic links are followed, but no directory is entered twice. Directories that may hold a partition
    but cannot be read are included. Output that a job has not finished, or left behind when it was killed,
    is skipped with a warning to the logger `magicbyte.jobs`, unless it is a source itself.
    """
    return sorted(_find(sources))


def _find(sources: Sequence[str]) -> dict[str, str | None]:
    """The paths to list, each with the reason why it cannot be listed, or None."""
    found: dict[str, str | None] = {}
    visited: set[str] = set()
    for source in sources:
        if not os.path.isdir(source):
            raise RefusedError(f"{source} is not a directory")
        refuse_other_encodings(source)
        found.update(_walk(os.path.abspath(source), visited))
    return found


def refuse_other_encodings(path: str) -> None:
    """Refuses a path that is not UTF-8, since plans and summaries are passed on as JSON."""
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
            # A source must be readable; a directory below one only loses its own content.
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
                _warn_unfinished(entry.path)
            elif is_directory:
                waiting.append(entry.path)
            elif why is not None and not is_partition:  # the listing of a partition has these itself
                yield entry.path, why


def _examine(entry: os.DirEntry[str]) -> tuple[bool, str | None]:
    """Whether an entry is a directory, or why that cannot be determined."""
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
    """A path as text, with bytes that are not UTF-8 escaped."""
    return os.fsencode(path).decode("utf-8", "backslashreplace")


@cache
def _warn_unfinished(path: str) -> None:
    _LOGGER.warning("%s is not read: it is unfinished output of a job", _shown(path))


def list_partitions(
    sources: Sequence[str], *, distinct: bool = False, may_be_none: bool = False
) -> list[PartitionListing]:
    """Lists every partition at and below `sources`, ordered by topic, partition and path.

    A directory whose name is not `topic-N` is taken as partition 0 of a topic of that name. The listing of
    one that cannot be read contains only that problem.

    Args:
        sources: directories.
        distinct: refuse two directories for the same partition.
        may_be_none: return an empty list if there is no partition, rather than refuse.

    """
    listings = [_list(path, why) for path, why in _find(sources).items()]
    if not listings and not may_be_none:
        raise RefusedError(f"no Kafka segments (files such as {0:020d}.log) below {', '.join(sources)}")
    listings.sort(key=_sort_key)
    return _distinct(listings) if distinct else listings


def _sort_key(listing: PartitionListing) -> tuple[str, int, str]:
    return listing["topic"], listing["partition"], listing["path"]


def _list(path: str, why: str | None) -> PartitionListing:
    try:
        if why is None:
            return list_directory(path)
    except FileNotFoundError:  # deleted in the meantime
        raise
    except OSError as error:
        why = error.strerror or str(error)
    return cast(PartitionListing, json.loads(_core.unreadable_directory(_shown(path), str(why))))


def _distinct(listings: Sequence[PartitionListing]) -> list[PartitionListing]:
    """One listing for each partition. A listing without segments is merged into the other one."""
    kept: dict[tuple[str, int], PartitionListing] = {}
    for one in sorted(listings, key=lambda one: not one["segments"]):
        other = kept.setdefault((one["topic"], one["partition"]), one)
        if other is one:
            continue
        if one["segments"]:
            # Copies from two brokers hold the same records, which would appear twice in one table.
            raise RefusedError(
                f"{one['topic']}-{one['partition']} is there twice, in {other['path']} and {one['path']}: "
                "read one copy at a time"
            )
        other["ignored"] += one["ignored"]
        other["problems"] += one["problems"]
    return sorted(kept.values(), key=_sort_key)


def refuse_unread(listings: Iterable[PartitionListing]) -> None:
    """Raises an error for the first part of a log that cannot be read: for jobs that stop at damage."""
    for listing in listings:
        for problem in unread_segments(listing):
            path = os.path.join(listing["path"], problem["segment"] or "")
            raise CorruptRecordError(f"{path}: {problem['message']}", problem["kind"])


def list_directory(path: str) -> PartitionListing:
    """Lists one partition directory; its segments are pinned at their current sizes."""
    return cast(PartitionListing, json.loads(_core.list_partition(path)))


def list_segment_file(path: str) -> PartitionListing:
    """Lists a single `.log` or `.checkpoint` file as if it were its whole partition."""
    listing = list_directory(os.path.abspath(path))
    if not listing["segments"]:
        raise RefusedError(f"{path} does not have the name of a segment, such as {0:020d}.log")
    return listing
