"""The ends that copies of a log are known to have had, by what is left beside and after their good batches.

A broker that starts on a shorter log assigns the lost offsets again: positions of groups and the numbers of
producers would then speak of other records. An empty segment at the end keeps it (`LogLoader`), and consumers
that stand before it go on there (`LocalLog`).
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterable, Iterator
from contextlib import suppress
from io import BufferedReader
from itertools import pairwise
from typing import BinaryIO, NamedTuple

from magicbyte import _core
from magicbyte.errors import Error
from magicbyte.jobs.run.plan import Planned
from magicbyte.log_dir import (
    RECOVERY_POINT_OFFSET_CHECKPOINT,
    REPLICATION_OFFSET_CHECKPOINT,
)
from magicbyte.model import AlignedCopy, Damage, PartitionListing
from magicbyte.partition_files import LEADER_EPOCH_CHECKPOINT
from magicbyte.storage.location import locate

__all__ = [
    "LARGEST_STEP",
    "KnownEnd",
    "committed_end",
    "ends_by_files",
    "ends_by_refused_batches",
    "ends_by_torn_bytes",
]

LARGEST_STEP = 1 << 31
"""The most offsets that a segment holds. A number that is farther from the last good record is not believed,
since a log that ends at the last of all offsets takes no records anymore."""

_HEADER = struct.Struct(">qiibiHi")
"""The header of a batch of magic 2 up to its `lastOffsetDelta`."""
_LENGTH_AT = 12
"""`batchLength` counts the bytes after this position."""
_SMALLEST_LENGTHS = (14, 22, 49)
"""The smallest `batchLength` by magic."""
_MAGIC = 2
_BLOCK = 1 << 20
_INDEX_BLOCK = 24 << 10
"""A multiple of the entries of both kinds of indexes, 8 and 12 bytes."""
_MOST_INDEX_BLOCKS = (64 << 20) // _INDEX_BLOCK
_NAMING = ("index", "timeindex", "snapshot")
"""Files that are named for an offset that the log had reached."""


class KnownEnd(NamedTuple):
    """An offset (exclusive) that a log had reached, and how that is known."""

    offset: int
    source: str
    is_assumed: bool = False
    """True if it counts only where nothing tells the end."""


def committed_end(listing: PartitionListing) -> KnownEnd | None:
    """The high watermark that the broker wrote: all replicas that were in sync had reached it."""
    checkpoints = listing["checkpoints"]
    if checkpoints is None or checkpoints["high_watermark"] is None:
        return None
    path = os.path.join(os.path.dirname(listing["path"]), REPLICATION_OFFSET_CHECKPOINT)
    return KnownEnd(checkpoints["high_watermark"], path)


def ends_by_files(planned: Planned) -> Iterator[KnownEnd]:
    """The ends of a copy by the files beside its segments and by its broker's checkpoints, in any order.

    A last segment that is missing or unreadable is assumed to be as long as the longest other one.
    """
    yield from _ends_that_files_tell(planned)
    bases = [one["base_offset"] for one in planned.plan["segments"]]
    for problem in planned.plan["problems"]:
        first = problem["first_lost_offset"]
        if first is not None and problem["last_lost_offset"] is None:
            borders = sorted({*bases, first})
            longest = max((end - begin for begin, end in pairwise(borders)), default=1)
            path = os.path.join(planned.listing["path"], problem["segment"] or "")
            source = f"{path} is lost, and assumed to be as long as the longest other segment"
            yield KnownEnd(first + longest, source, is_assumed=True)


def _ends_that_files_tell(planned: Planned) -> Iterator[KnownEnd]:
    listing = planned.listing
    directory = listing["path"]
    if (committed := committed_end(listing)) is not None:
        yield committed
    checkpoints = listing["checkpoints"]
    if checkpoints is not None and checkpoints["recovery_point"] is not None:
        path = os.path.join(os.path.dirname(directory), RECOVERY_POINT_OFFSET_CHECKPOINT)
        yield KnownEnd(checkpoints["recovery_point"], path)
    if epochs := listing["leader_epochs"]:
        path = os.path.join(directory, LEADER_EPOCH_CHECKPOINT)
        yield KnownEnd(epochs[-1]["start_offset"], path)
    last = max((one["base_offset"] for one in planned.plan["segments"]), default=0)
    for sidecar in listing["sidecars"]:
        name, _, kind = sidecar["file"].partition(".")
        if kind in _NAMING and name.isdecimal() and int(name) >= last:
            path = os.path.join(directory, sidecar["file"])
            yield KnownEnd(_end_in(path, int(name), kind), path)


def _end_in(path: str, base_offset: int, kind: str) -> int:
    """The end by an index, or by the name of the file, which is all that a snapshot of producers tells."""
    end = base_offset
    with suppress(Error, OSError):  # the listing reports it
        if kind == "index":
            entries = _core.offset_index(_entries_in(path), base_offset, check=False)
            end = max((one.offset + 1 for one in entries), default=end)
        elif kind == "timeindex":
            times = _core.time_index(_entries_in(path), base_offset, check=False)
            end = max((one.offset + 1 for one in times if one.timestamp >= 0), default=end)
    return max(end, base_offset)


def _entries_in(path: str) -> bytes:
    """An index up to the first block without entries: a broker allocates the file before it needs it."""
    blocks: list[bytes] = []
    with locate(path).open(_INDEX_BLOCK) as file:
        while len(blocks) < _MOST_INDEX_BLOCKS and (block := file.read(_INDEX_BLOCK)).strip(b"\0"):
            blocks.append(block)
    return b"".join(blocks)


def ends_by_torn_bytes(
    planned: Planned, account: AlignedCopy, damages: Iterable[Damage]
) -> Iterator[KnownEnd]:
    """The ends of a copy by the bytes after its last good batch; `damages` are those of the copy.

    A torn batch tells its last offset if its header is left. Other bytes than zeros stand for one offset
    each: records take more, unless they are compressed more than sevenfold.
    """
    segments = planned.plan["segments"]
    end = 0 if account["last"] is None else account["last"][1] + 1
    places = [
        (one["segment"], one["start"], one["end"])
        for one in damages
        if one["next_offset"] is None and one["leader_epoch"] is None
    ]
    if account["tail_bytes"] and segments:
        size = segments[-1]["size"]
        places.append((len(segments) - 1, size - account["tail_bytes"], size))
    for number, start, stop in sorted(places):
        path, begin = segments[number]["path"], max(end, segments[number]["base_offset"])
        end = _torn_end(path, start, stop, begin)
        if number + 1 < len(segments):
            end = min(end, segments[number + 1]["base_offset"])
        elif end > begin:
            yield KnownEnd(end, f"bytes {start}-{stop} of {path}, which are no good batches")


def ends_by_refused_batches(planned: Planned, damages: Iterable[Damage]) -> Iterator[KnownEnd]:
    """The end of a copy by its whole batches that no log can have after those before them, since their leader
    epochs are lower; `damages` are those of the copy. They are not written, but a broker had read them.
    """
    ends = [
        (one["next_offset"], one["segment"], one["start"])
        for one in damages
        if one["next_offset"] is not None
    ]
    if ends:
        offset, segment, start = max(ends)
        path = planned.plan["segments"][segment]["path"]
        yield KnownEnd(offset, f"the batch at position {start} of {path}, which is left out")


def _torn_end(path: str, start: int, stop: int, end: int) -> int:
    if not path.endswith(".log"):
        return end  # a compressed segment: its positions are those of its content
    with suppress(OSError), locate(path).open(_BLOCK) as file:
        while start < stop:
            file.seek(start)
            header = file.read(min(_HEADER.size, stop - start))
            found = _next_of_header(header, end)
            if found is None:
                return min(end + _bytes_with_content(file, start, stop), end + LARGEST_STEP)
            start, end = start + found[0], found[1]
    return end


def _next_of_header(header: bytes, end: int) -> tuple[int, int] | None:
    """The size of a batch and the offset after it; None if the bytes are not the header of a batch that can
    follow a log with this end.
    """
    if len(header) < _HEADER.size:
        return None
    base, length, _, magic, _, _, delta = _HEADER.unpack(header)
    if magic != _MAGIC:
        # A message, or a wrapper, whose offset is the last one in it.
        delta = 0
    is_header = 0 <= magic <= _MAGIC and length >= _SMALLEST_LENGTHS[magic] and delta >= 0
    if not is_header or not 0 <= base - end < LARGEST_STEP - delta:
        return None
    return length + _LENGTH_AT, base + delta + 1


def _bytes_with_content(file: BinaryIO | BufferedReader, start: int, stop: int) -> int:
    """The number of bytes up to the last one that is not zero."""
    file.seek(start)
    read = size = 0
    while block := file.read(min(_BLOCK, stop - start - read)):
        if content := len(block.rstrip(b"\0")):
            size = read + content
        read += len(block)
    return size
