"""The end of a log in a backup and the holes in it, after a run that was killed or when somebody has taken a
part of it away. Batches that the cluster does not have any more are never removed.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple, cast

from magicbyte import _core
from magicbyte.jobs.backing_up.kept_log import (
    EVERYTHING,
    SEGMENT,
    KeptLog,
    has_good_batch,
    truncate,
    walk,
)
from magicbyte.jobs.backing_up.manifest import BackedUpPartition, CopiedBatches
from magicbyte.jobs.publish.certificate import CertifiedFile
from magicbyte.jobs.publish.workspace import sync

__all__ = ["FoundInLog", "OfCluster", "open_log"]

_LOST = "files of the backup that had these offsets are missing or damaged, and the cluster deleted them"
Gap = tuple[int, int]


class FoundInLog(NamedTuple):
    """A finding, see `BackupFinding`."""

    found: str
    message: str
    offsets: tuple[int, int] | None = None
    aside: str | None = None


@dataclass(frozen=True)
class OfCluster:
    """The part of a log that the cluster has."""

    start_offset: int
    end_offset: int | None
    """The cut of this run, if it is that of a time."""


def open_log(
    log: KeptLog,
    entry: BackedUpPartition | None,
    files: Mapping[str, CertifiedFile],
    cluster: OfCluster,
    aside: str,
) -> list[FoundInLog]:
    """Finds the end of a log in its directory; returns what is not as the last manifest says.

    Bytes that the manifest counts are taken as they are. All others are those of a run that was killed:
    batch by batch their CRCs are checked, and the rest from the first one that is not whole is cut off, as
    are batches that begin at the cut of this run or later.

    Where counted bytes are missing, the log ends if the cluster still has those offsets, and what comes after
    them is moved aside. Offsets that the cluster has not any more are lost; all that follows stays.

    Args:
        log: the log, which is empty so far.
        entry: the partition in the manifest of the last run that was complete.
        files: the files of that manifest.
        cluster: what can be copied again.
        aside: the directory for what is not a part of the log.

    """
    counted = _counted(log, files) if entry is not None else {}
    found: list[FoundInLog] = []
    if entry is not None and not counted:
        log.lost = [(first, last) for first, last in entry["lost"]]
    elif entry is not None:
        log.take(entry)
        found += _set_aside_foreign(log, counted, aside)
        sizes = log.segments()
        if log.active_segment not in sizes:
            log.active_segment = None
        if any(sizes.get(segment, -1) < size for segment, size in counted.items()):
            found += _open_incomplete(log, counted, cluster.start_offset, aside)
    found += _recover(log, counted, cluster, aside)
    if os.path.isdir(aside):
        sync(aside)
        sync(log.directory)
    return found


def _counted(log: KeptLog, files: Mapping[str, CertifiedFile]) -> dict[int, int]:
    """The sizes of the segments that a manifest counts, by their base offsets, in order."""
    found = {}
    for name, file in files.items():
        directory, _, base = name.rpartition("/")
        if directory == log.name and (match := SEGMENT.fullmatch(base)):
            found[int(match[1])] = file["size"]
    return dict(sorted(found.items()))


def _set_aside_foreign(log: KeptLog, counted: Mapping[int, int], aside: str) -> list[FoundInLog]:
    """Moves away segments that no run has written: a log grows at its end."""
    foreign = [one for one in log.segments() if one < max(counted) and one not in counted]
    if not foreign:
        return []
    for segment in foreign:
        log.move_rest(segment, 0, segment, aside)
    names = ", ".join(os.path.basename(log.path_of(segment)) for segment in foreign[: _core.LISTED])
    name = os.path.basename(aside)
    return [FoundInLog("changed", f"no run has written {names}: kept in {name}", aside=name)]


def _open_incomplete(log: KeptLog, counted: dict[int, int], start: int, aside: str) -> list[FoundInLog]:
    """Opens a log that has not all bytes that a manifest counts, and for which the cluster starts here."""
    transactions, end = log.open_transactions, log.next_offset
    gaps = _gaps(log, counted, aside)
    lost = [(first, min(last, start - 1)) for first, last in gaps if first < start]
    again = next((max(first, start) for first, last in gaps if last >= start), None)
    if again is not None:
        # What follows is copied again with them: after a compaction, it may not be the same.
        log.cut_at(again, aside)
        # Where not even a batch is, it ends earlier.
        again = end = log.next_offset
        lost = [(first, min(last, end - 1)) for first, last in lost if first < end]
    segments = [segment for segment, size in log.segments().items() if size and segment < end]
    _count_again(log, segments, gaps)
    if again is None and not _ends_at(gaps, end):
        log.open_transactions = transactions
    else:
        log.active_segment = None
        if _ends_at(lost, end):
            log.open_transactions = []
    if not segments:
        log.first_offset = None
    elif min(counted) not in segments:
        log.first_offset = segments[0]
    log.lost = sorted({*log.lost, *lost})
    message = "files of the backup are missing or shorter than they were"
    if again is not None:
        message += f": it is copied again from offset {again:,} on"
    name = _name_of(aside)
    if name is not None:
        message += f"; what was there is kept in {name}"
    return [
        FoundInLog("incomplete", message, aside=name),
        *(FoundInLog("lost", _LOST, offsets) for offsets in lost),
    ]


def _gaps(log: KeptLog, counted: dict[int, int], aside: str) -> list[Gap]:
    """The offsets (first, last) of segments that are missing or short. Short ones end with a whole batch
    afterwards.
    """
    gaps: list[Gap] = []
    sizes, ends = log.segments(), [*counted, log.next_offset][1:]
    for (segment, whole), end in zip(counted.items(), ends, strict=True):
        size, first = sizes.get(segment, 0), segment
        if size >= whole:
            continue
        if size:
            position, found = walk(log.path_of(segment), (0, segment, EVERYTHING))
            first = found["next_offset"]
            if position < size:
                log.move_rest(segment, position, first, aside)
        elif segment in sizes:
            os.unlink(log.path_of(segment))
        log.rewritten.setdefault(segment, [])
        if gaps and gaps[-1][1] == first - 1:
            first = gaps.pop()[0]
        if first < end:
            gaps.append((first, end - 1))
    return gaps


def _ends_at(gaps: list[Gap], end: int) -> bool:
    return bool(gaps) and gaps[-1][1] == end - 1


def _name_of(aside: str) -> str | None:
    return os.path.basename(aside) if os.path.isdir(aside) else None


def _count_again(log: KeptLog, segments: list[int], gaps: list[Gap]) -> None:
    """Counts what a log has up to its end, and finds the transactions that are open there."""
    log.batches = log.records = 0
    log.open_transactions = []
    for segment in segments:
        if any(last == segment - 1 for _, last in gaps):
            # As after a loss, see `KeptLog.go_on_at`.
            log.open_transactions = []
        _, found = walk(log.path_of(segment), (0, segment, log.next_offset), log)
        log.batches += found["batches"]
        log.records += found["records"]
        log.open_transactions = found["open_transactions"]


def _recover(log: KeptLog, counted: Mapping[int, int], cluster: OfCluster, aside: str) -> list[FoundInLog]:
    """Adds the whole batches that no manifest counts, and cuts off the rest. If good batches are in it, it is
    kept aside: they may be the only copy by now.
    """
    newest = max(counted, default=-1)
    limit = EVERYTHING if cluster.end_offset is None else max(cluster.end_offset, log.next_offset)
    found: list[FoundInLog] = []
    is_over, gap = False, None
    first_kept: int | None = None
    for segment, size in log.segments().items():
        start = counted.get(segment, 0)
        if segment < newest or (segment == newest and (size <= start or segment != log.active_segment)):
            continue
        if gap is not None and segment <= cluster.start_offset:
            if log.first_offset is not None:
                found.append(FoundInLog("lost", _LOST, (gap, segment - 1)))
            log.go_on_at(segment)
        is_over = is_over or (gap is not None and segment > cluster.start_offset)
        gap = None
        if is_over:
            if _remove_rest(log, segment, 0, (segment, limit), aside) and first_kept is None:
                first_kept = segment
            continue
        position = _add_whole(log, segment, start, limit)
        first = max(log.next_offset, segment)
        if position == size != 0:
            continue
        if position < size and first < cluster.start_offset:
            gap = first
            log.move_rest(segment, position, first, aside)
            name = _name_of(aside)
            message = (
                f"batches from offset {first:,} on are damaged, and the cluster deleted them: see {name}"
            )
            found.append(FoundInLog("incomplete", message, aside=name))
            continue
        is_over = position < size
        if _remove_rest(log, segment, position, (first, limit), aside) and first_kept is None:
            first_kept = first
    if first_kept is not None:
        name = _name_of(aside)
        message = (
            f"batches from offset {first_kept:,} on are damaged: they are copied again. What was there is"
            f" kept in {name}"
        )
        found.append(FoundInLog("incomplete", message, aside=name))
    return found


def _remove_rest(log: KeptLog, segment: int, position: int, bounds: tuple[int, int], aside: str) -> bool:
    """Removes what is in a segment from a position on, or moves it aside, and returns True then. `bounds` are
    the next offset, and the offset from which on nothing has to stay.
    """
    path, (first, limit) = log.path_of(segment), bounds
    if has_good_batch(path, position, limit):
        log.move_rest(segment, position, first, aside)
        return True
    if position == 0:
        os.unlink(path)
    else:
        truncate(path, position)
    return False


def _add_whole(log: KeptLog, segment: int, position: int, limit: int) -> int:
    """Adds the whole batches from a position of a segment on; returns the position after them."""
    path, open_ = log.path_of(segment), log.open_as_tuples()
    position, text = _core.whole_batches(path, position, log.next_offset, limit, open_)
    found = cast(CopiedBatches, json.loads(text))
    if found["batches"]:
        if log.first_offset is None:
            log.next_offset = segment
        log.add({**found, "active_segment": segment})
    return position
