"""Finding and listing the directories of partitions, with what a broker's own files say about them."""

from __future__ import annotations

import json
import logging
import os
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cache
from typing import TypedDict, cast

from magicbyte import _core
from magicbyte.errors import CorruptRecordError, RefusedError
from magicbyte.internal_topics.names import INTERNAL_TOPICS
from magicbyte.jobs.find.assignments import add_assigned
from magicbyte.jobs.find.choice import EVERYTHING, PartitionChoice
from magicbyte.jobs.find.log_dirs import LogDir, is_log_dir, read_log_dir, read_log_starts
from magicbyte.jobs.find.outputs import COMPLETE, UNFINISHED, is_unfinished
from magicbyte.jobs.find.reach import reach
from magicbyte.jobs.find.remote_segments import join_remote
from magicbyte.jobs.find.retention import excuse_what_a_broker_deleted
from magicbyte.listing import is_live, unread_segments
from magicbyte.model import DirectoryState, PartitionListing
from magicbyte.storage.foreign_files import foreign_below, no_segment
from magicbyte.storage.location import Location, cluster_of, locate
from magicbyte.storage.mounts import listed_once, mount
from magicbyte.storage.paths import absolute

__all__ = [
    "Inputs",
    "SkippedDirectory",
    "enumerated",
    "find_inputs",
    "find_log_dirs",
    "find_partitions",
    "list_directory",
    "list_partitions",
    "list_segment_file",
    "nothing_found",
    "refuse_other_encodings",
    "refuse_unread",
    "without_copies",
]

_LOGGER = logging.getLogger("magicbyte.jobs")
_NOT_UTF8 = "the path is not UTF-8: rename it, or reach it through a link"
_NAMED = 10
"""The maximum number of names in a message."""
_LISTING_THREADS = 16


class SkippedDirectory(TypedDict):
    """A partition's directory that is not read, because of its state or because another copy is preferred."""

    path: str
    topic: str
    partition: int
    state: DirectoryState
    segments: int
    size: int
    """Bytes of its segments."""


@dataclass(frozen=True)
class Inputs:
    """The input of a job, pinned at the sizes that the files have now."""

    sources: tuple[str, ...]
    """The paths as the caller gave them."""
    listings: list[PartitionListing]
    """The partitions, ordered by topic, partition and path."""
    skipped: list[SkippedDirectory]
    log_dirs: list[LogDir]
    """The brokers' directories among the sources and below them."""
    consulted: list[PartitionListing] = field(default_factory=list)
    """The partitions of the topics to consult, chosen or not."""
    directories: list[PartitionListing] = field(default_factory=list)
    """All partitions that have a directory, chosen or not."""

    @property
    def paths(self) -> list[str]:
        """Everything that is read: an output must be apart from it."""
        segments = {segment["path"] for listing in self.listings for segment in listing["segments"][:1]}
        directories = {listing["path"] for listing in self.listings if not is_live(listing)}
        directories |= set(map(os.path.dirname, segments))
        return [*self.sources, *sorted(directories)]

    def consulted_partitions(self, topic: str) -> list[PartitionListing]:
        """The partitions of a topic that was to be consulted."""
        return [listing for listing in self.consulted if listing["topic"] == topic]

    def consulted_partition(self, topic: str) -> PartitionListing | None:
        """The partition of a topic of one partition that was to be consulted, if it is there."""
        return next(iter(self.consulted_partitions(topic)), None)


@dataclass
class _Found:
    directories: dict[str, str | None] = field(default_factory=dict)
    """The paths to list, each with the reason why it cannot be listed, or None."""
    files: list[str] = field(default_factory=list)
    """Sources that are single segments."""
    log_dirs: list[str] = field(default_factory=list)


def find_partitions(sources: Sequence[str]) -> list[str]:
    """Returns the partition directories at and below `sources`: absolute, sorted, each once.

    Symbolic links are followed, but no directory is entered twice under the same name. Directories that may
    hold a partition but cannot be read are included. Output that a job has not finished, or left over when it
    was killed, is skipped with a warning to the logger `magicbyte.jobs`. What is below a hidden directory or
    one of the system, such as `.snapshot` or `lost+found`, is skipped without one. Sources themselves are
    always read.
    """
    return sorted(_find(sources).directories)


def find_log_dirs(sources: Sequence[str]) -> list[str]:
    """Returns the brokers' directories at and below `sources`: absolute, each once."""
    return _find(sources).log_dirs


def _find(sources: Sequence[str]) -> _Found:
    found = _Found()
    visited: set[tuple[str, str]] = set()
    for source in map(locate, sources):
        refuse_other_encodings(source.path)
        source.check_exists()
        if source.is_directory():
            _walk(source.absolute(), visited, found)
        else:
            found.files.append(source.path)
    return found


def refuse_other_encodings(path: str) -> None:
    """Refuses a path that is not UTF-8, since plans and summaries are passed on as JSON."""
    path = absolute(path)
    if _shown(path) != path:
        raise RefusedError(f"{_shown(path)}: {_NOT_UTF8}")


def _walk(top: Location, visited: set[tuple[str, str]], found: _Found) -> None:
    waiting = [top]
    while waiting:
        directory = waiting.pop()
        # For a broker, two names of one log are two partitions.
        identity, name = directory.identity, os.path.basename(directory.path)
        place = identity, name if _PARTITION.fullmatch(name) else os.path.basename(identity)
        if place in visited:
            continue
        visited.add(place)
        try:
            entries = directory.entries()
        except OSError as error:
            why = directory.why_unread(error)
            # A source must be readable; a directory below one only loses its own content.
            if directory is top or why is None:
                raise
            if isinstance(error, FileNotFoundError):  # deleted in the meantime
                continue
            found.directories[directory.path] = why
            continue
        path, names = directory.path, {entry.name for entry in entries}
        if directory.shows_unfinished and UNFINISHED in names:
            if not COMPLETE.intersection(names):
                _warn_unfinished(path)
                continue
            entries = [entry for entry in entries if entry.name != UNFINISHED]  # of a job that has ended
        holds_log = _core.is_partition(os.path.basename(path), list(names))
        if holds_log:
            found.directories[path] = None if _shown(path) == path else _NOT_UTF8
        elif is_log_dir(names):
            found.log_dirs.append(path)
        for entry in entries:
            below = directory.below(entry.name)
            if entry.is_directory and is_unfinished(entry.name):
                _warn_unfinished(below.path)
            elif entry.is_directory:
                if not _is_set_aside(entry.name):
                    waiting.append(below)
                elif _core.is_partition(entry.name, _names_in(below)):
                    found.directories[below.path] = None
            elif entry.why is not None and not holds_log:  # the listing of a partition has these itself
                found.directories[below.path] = entry.why


_PARTITION = re.compile(r".+-\d+", re.DOTALL)
_SYSTEM_DIRECTORIES = frozenset(
    {
        "lost+found",
        "@eaDir",
        "#recycle",
        "#snapshot",
        "~snapshot",
        "$RECYCLE.BIN",
        "System Volume Information",
    }
)
"""Directories that file systems and storage appliances keep in every volume."""


def _is_set_aside(name: str) -> bool:
    """True if a directory is hidden or of the system, such as `.snapshot` or `.Trash-1000`.

    Logs below it are copies. A topic may begin with a dot, so the directory itself may be a partition.
    """
    return name.startswith(".") or name in _SYSTEM_DIRECTORIES


def _names_in(directory: Location) -> list[str]:
    try:
        return directory.names()
    except OSError as error:
        if directory.why_unread(error) is None:
            raise
        return []  # nobody may read what is in lost+found


def _shown(path: str) -> str:
    """A path as text, with bytes that are not UTF-8 escaped."""
    return os.fsencode(path).decode("utf-8", "backslashreplace")


@cache
def _warn_unfinished(path: str) -> None:
    _LOGGER.warning("%s is not read: it is unfinished output of a job", _shown(path))


def list_partitions(
    sources: Sequence[str],
    choice: PartitionChoice = EVERYTHING,
    *,
    distinct: bool = False,
    may_be_none: bool = False,
) -> list[PartitionListing]:
    """The listings of `find_inputs`."""
    return find_inputs(sources, choice, distinct=distinct, may_be_none=may_be_none).listings


def find_inputs(
    sources: Sequence[str],
    choice: PartitionChoice = EVERYTHING,
    *,
    distinct: bool = False,
    may_be_none: bool = False,
    newest: bool = False,
    consult: Collection[str] = (),
    assigned: bool = False,
) -> Inputs:
    """Finds and lists every partition at and below `sources`.

    A directory whose name is not `topic-N` is taken as partition 0 of a topic of that name. Segments in
    tiered storage and those that the broker still has are one partition, if both are there (`join_remote`).
    The listing of a partition that cannot be read contains only that problem. In a broker's directory, each
    listing gets the values of the broker's checkpoints. A partition that these name but that has no directory
    gets a listing with that problem.

    Args:
        sources: directories, and segment files of any name, each of which is read as a partition of its own.
        choice: which partitions to read.
        distinct: refuse two directories for the same partition, unless `choice.prefer` names one. Of Kafka's
            own topics, the newest copy is read.
        newest: of all topics, read the newest copy rather than refuse.
        may_be_none: return no listings if there is no partition, rather than refuse.
        consult: topics that the job needs to know, whether or not it reads them: their partitions are in
            `Inputs.consulted`, one copy of each.
        assigned: also give a listing, with that problem, to a partition that the cluster's metadata assigns
            to a broker among the sources and that has no directory.

    Raises:
        RefusedError: for the reasons above, or if a source is missing or is not a segment.
        OSError: if a source cannot be listed.

    """
    mount(sources)
    with listed_once(sources):
        found = _find(sources)
        all_listings = join_remote(_list_all(found.directories))
        all_listings += [list_segment_file(file, choice) for file in found.files]
        log_dirs = [read_log_dir(path, all_listings) for path in found.log_dirs]
        _note_log_starts(all_listings, found.log_dirs, choice)
        excuse_what_a_broker_deleted(log_dirs, all_listings)
    if assigned:
        add_assigned(log_dirs, all_listings, one_disk=choice.one_disk)
    directories = list(all_listings)
    all_listings += [listing for log_dir in log_dirs for listing in log_dir.absent]
    chosen = [one for one in all_listings if choice.includes(one["topic"], one["partition"])]
    if not chosen and not may_be_none:
        of_topics = sorted(
            {(one["topic"], one["partition"]) for one in all_listings if choice.includes_topic(one["topic"])}
        )
        if of_topics:
            names = enumerated([f"{topic}-{number}" for topic, number in of_topics])
            raise RefusedError(f"no partition is chosen; there are {names}")
        raise nothing_found(sources, [one["topic"] for one in all_listings], "partition")
    themselves = {absolute(source) for source in sources}

    def is_read(one: PartitionListing) -> bool:
        return one["state"] in choice.states or one["path"] in themselves

    listings = [one for one in chosen if is_read(one)]
    skipped = [one for one in chosen if not is_read(one)]
    consulted = [one for one in all_listings if one["topic"] in consult and is_read(one)]
    listings.sort(key=_sort_key)
    if distinct:
        listings, others = _distinct(listings, choice, newest=newest)
        skipped += others
    skipped.sort(key=_sort_key)
    if skipped and not listings and not may_be_none:
        one = skipped[0]
        raise RefusedError(
            f"only logs that are not in use are chosen, such as {one['path']}:"
            f" --include-{one['state']} reads it"
        )
    return Inputs(
        sources=tuple(sources),
        listings=listings,
        skipped=list(map(_skipped, skipped)),
        log_dirs=log_dirs,
        consulted=_one_of_each(consulted, choice),
        directories=directories,
    )


def nothing_found(sources: Sequence[str], found: Iterable[str], what: str) -> RefusedError:
    """The refusal of a job without any partition or topic to read, given the topics that are there."""
    topics = sorted({*found})
    if not topics:
        foreign = foreign_below(sources)
        why = "" if foreign is None else f"; {foreign}"
        return RefusedError(f"no Kafka segments (files such as {0:020d}.log) below {', '.join(sources)}{why}")
    return RefusedError(f"no {what} is chosen; there are partitions of {enumerated(topics)}")


def enumerated(names: Sequence[str]) -> str:
    """The first names, and the number of the others."""
    more = f" and {len(names) - _NAMED:,} more" if len(names) > _NAMED else ""
    return f"{', '.join(names[:_NAMED])}{more}"


def _one_of_each(listings: Sequence[PartitionListing], choice: PartitionChoice) -> list[PartitionListing]:
    """The preferred copy of each partition that has segments."""
    with_segments = [listing for listing in listings if listing["segments"]]
    return [
        _preferred(copies, choice, newest=copies[0]["topic"] in INTERNAL_TOPICS)
        for copies in _by_name(with_segments)
    ]


def _skipped(listing: PartitionListing) -> SkippedDirectory:
    return SkippedDirectory(
        path=listing["path"],
        topic=listing["topic"],
        partition=listing["partition"],
        state=listing["state"],
        segments=len(listing["segments"]),
        size=sum(segment["size"] for segment in listing["segments"]),
    )


def _sort_key(listing: PartitionListing) -> tuple[str, int, str]:
    return listing["topic"], listing["partition"], listing["path"]


def _list_all(directories: Mapping[str, str | None]) -> list[PartitionListing]:
    """Lists directories, several at once: if they are not in memory, most of the time is spent waiting."""
    with ThreadPoolExecutor(_LISTING_THREADS, thread_name_prefix="magicbyte-list") as pool:
        listings = pool.map(_list, directories.keys(), directories.values())
        return [listing for listing in listings if listing is not None]


def _list(path: str, why: str | None) -> PartitionListing | None:
    try:
        if why is None:
            return list_directory(path)
    except FileNotFoundError:
        _LOGGER.warning("%s is not read: it was deleted after it was found", path)
        return None
    except OSError as error:
        why = locate(path).why_unread(error)
        if why is None:  # a failing store does not make the log damaged
            raise
    return cast(PartitionListing, json.loads(_core.unreadable_directory(_shown(path), why)))


def _distinct(
    listings: Sequence[PartitionListing], choice: PartitionChoice, *, newest: bool
) -> tuple[list[PartitionListing], list[PartitionListing]]:
    """One listing for each partition, and the others; those without segments are merged into the first."""
    kept, left_out = [], []
    for copies in _by_name(listings):
        one = _preferred(copies, choice, newest=newest or copies[0]["topic"] in INTERNAL_TOPICS)
        for other in copies:
            if other is one:
                kept.append(one)
            elif other["segments"]:
                left_out.append(other)
            else:
                one["ignored"] += other["ignored"]
                one["problems"] += other["problems"]
    return kept, left_out


def _by_name(listings: Iterable[PartitionListing]) -> list[list[PartitionListing]]:
    """The copies of each partition."""
    by_name: dict[tuple[str, int], list[PartitionListing]] = defaultdict(list)
    for listing in listings:
        by_name[listing["topic"], listing["partition"]].append(listing)
    return list(by_name.values())


def _preferred(
    copies: Sequence[PartitionListing], choice: PartitionChoice, *, newest: bool
) -> PartitionListing:
    with_segments = [copy for copy in copies if copy["segments"]]
    if len(with_segments) < 2:
        return [*with_segments, *copies][0]
    if newest and len(preferred := choice.inside(with_segments)) != 1:
        return max(preferred or with_segments, key=reach)
    return choice.preferred(with_segments)


def without_copies(listings: Sequence[PartitionListing], choice: PartitionChoice) -> list[PartitionListing]:
    """The listings with one copy of each partition, as records are read: twice, nothing tells them apart.

    The copy is chosen as by `find_inputs` with `distinct`. A source that is a single segment stays: the
    caller names each file, and several may be parts of one log.

    Raises:
        RefusedError: if there are copies of a partition, and `choice.prefer` does not name one of them.

    """
    left_out: set[str] = set()
    for copies in _by_name(filter(_is_log, listings)):
        if len(copies) > 1:
            newest = copies[0]["topic"] in INTERNAL_TOPICS and all(copy["segments"] for copy in copies)
            read = _preferred(copies, choice, newest=newest) if newest else choice.preferred(copies)
            left_out |= {copy["path"] for copy in copies} - {read["path"]}
    return [listing for listing in listings if listing["path"] not in left_out]


def _is_log(listing: PartitionListing) -> bool:
    """True for a directory with segments and for a partition of a running cluster, which has none."""
    if cluster_of(listing["path"]) is not None:
        return True
    return bool(listing["segments"]) and listing["segments"][0]["path"] != listing["path"]


def refuse_unread(listings: Iterable[PartitionListing]) -> None:
    """Raises an error for the first part of a log that cannot be read: for jobs that stop at damage."""
    for listing in listings:
        for problem in unread_segments(listing):
            path = os.path.join(listing["path"], problem["segment"] or "")
            raise CorruptRecordError(f"{path}: {problem['message']}", problem["kind"])


def _note_log_starts(
    listings: Sequence[PartitionListing], log_dirs: Collection[str], choice: PartitionChoice
) -> None:
    read_log_starts([listing for listing in listings if listing["checkpoints"] is None], log_dirs)
    for listing in listings:
        listing["include_deleted_records"] = choice.include_deleted_records


def list_directory(path: str) -> PartitionListing:
    """Lists one partition directory; its segments are pinned at their current sizes."""
    return cast(PartitionListing, json.loads(_core.list_partition(path)))


def list_segment_file(path: str, choice: PartitionChoice = EVERYTHING) -> PartitionListing:
    """Lists a single file, which may have any name, as if it were its whole partition."""
    listing = list_directory(absolute(path))
    _note_log_starts([listing], (), choice)
    if not listing["segments"]:
        raise no_segment(path)
    return listing
