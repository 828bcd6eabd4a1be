"""The log of a partition in a backup: a directory whose batches end where a run has ended, or was killed."""

from __future__ import annotations

import base64
import json
import os
import re
import shutil
import stat
import struct
import uuid
from dataclasses import dataclass, field
from typing import Any, cast

from magicbyte import _core
from magicbyte.errors import Error, RefusedError
from magicbyte.jobs.backing_up.manifest import (
    BackedUpPartition,
    CopiedBatches,
    DamagedBatch,
    LastRecord,
    OpenTransaction,
    write_file,
)
from magicbyte.jobs.publish.workspace import sync
from magicbyte.partition_files import (
    LEADER_EPOCH_CHECKPOINT,
    PARTITION_METADATA,
    format_leader_epochs,
    format_partition_metadata,
)

__all__ = [
    "EVERYTHING",
    "SEGMENT",
    "KeptLog",
    "aside_name",
    "check_directory",
    "check_file",
    "deleted_name",
    "future_name",
    "has_good_batch",
    "truncate",
    "walk",
]

SEGMENT = re.compile(r"(\d{20})\.log")
EVERYTHING = (1 << 63) - 1
"""An offset after all others."""
_BLOCK_BYTES = 1 << 20
_NO_ID = "A" * 22
_PREFIX = struct.Struct(">qi")
"""An offset, and the number of bytes that follow: how batches of all magics begin."""
_MAGIC_2 = 2
_MAX_NAME = 255
"""The maximum length of a directory's name."""


@dataclass
class KeptLog:
    """The log of a partition, as far as it was copied."""

    directory: str
    topic: str
    partition: int
    topic_id: str | None
    first_offset: int | None = None
    """None if it has no batch yet."""
    next_offset: int = 0
    active_segment: int | None = None
    """The base offset of the segment that grows."""
    batches: int = 0
    records: int = 0
    leader_epochs: list[tuple[int, int]] = field(default_factory=list)
    max_producer_id: int = -1
    lost: list[tuple[int, int]] = field(default_factory=list)
    open_transactions: list[OpenTransaction] = field(default_factory=list)
    damaged: list[DamagedBatch] = field(default_factory=list)
    last_record: LastRecord | None = None
    log_start_offset: int = 0
    is_known: bool = False
    """True if a manifest has it: what the cluster has deleted since is lost."""
    rewritten: dict[int, list[str]] = field(default_factory=dict)
    """The segments that have been cut since the last manifest, or are about to grow again, by their base
    offsets, and the files that have what was cut off, in its order.
    """

    @property
    def place(self) -> tuple[str, int]:
        """Topic and partition."""
        return self.topic, self.partition

    @property
    def name(self) -> str:
        """`topic-N`."""
        return f"{self.topic}-{self.partition}"

    def create(self) -> None:
        """Makes the directory, which tells the topic's id before it has a batch.

        Raises:
            RefusedError: there is something else.

        """
        check_directory(self.directory)
        os.makedirs(self.directory, exist_ok=True)
        for name in os.listdir(self.directory):
            if name in (PARTITION_METADATA, LEADER_EPOCH_CHECKPOINT) or SEGMENT.fullmatch(name):
                check_file(os.path.join(self.directory, name))
        path = os.path.join(self.directory, PARTITION_METADATA)
        if self.topic_id is not None and not os.path.exists(path):
            write_file(path, format_partition_metadata(self.topic_id))

    def take(self, entry: BackedUpPartition) -> None:
        """Takes the state that a manifest has."""
        self.is_known = True
        self.first_offset = entry["first_offset"] if entry["batches"] else None
        self.next_offset, self.active_segment = entry["next_offset"], entry["active_segment"]
        self.batches, self.records = entry["batches"], entry["records"]
        self.leader_epochs = [(epoch, offset) for epoch, offset in entry["leader_epochs"]]
        self.max_producer_id = entry["max_producer_id"]
        self.lost = [(first, last) for first, last in entry["lost"]]
        self.open_transactions = list(entry["open_transactions"])
        self.damaged = list(entry["damaged"])
        self.last_record = entry.get("last_record")

    def add(self, copied: CopiedBatches) -> None:
        """Adds batches that were appended."""
        if copied["batches"] and self.first_offset is None:
            self.first_offset = self.next_offset
        self.next_offset = copied["next_offset"]
        self.active_segment = copied["active_segment"]
        self.batches += copied["batches"]
        self.records += copied["records"]
        for epoch, offset in copied["leader_epochs"]:
            if not self.leader_epochs or self.leader_epochs[-1][0] < epoch:
                self.leader_epochs.append((epoch, offset))
        self.max_producer_id = max(self.max_producer_id, copied["max_producer_id"])
        self.open_transactions = copied["open_transactions"]
        self.damaged = (self.damaged + copied["damaged"])[: _core.LISTED]
        self.last_record = copied["last_record"] or self.last_record

    def go_on_at(self, offset: int) -> None:
        """Leaves out offsets before this one; the next batch begins a segment.

        They are lost, unless the log begins here.
        """
        if self.first_offset is not None or self.is_known:
            self.lost.append((self.next_offset, offset - 1))
        self.next_offset = offset
        self.active_segment = None
        # As for a follower that has to begin again (`UnifiedLog.truncateFullyAndStartAt`).
        self.open_transactions = []

    def segments(self) -> dict[int, int]:
        """The sizes of the segments by their base offsets, in order."""
        found = {}
        for name in sorted(os.listdir(self.directory)):
            if match := SEGMENT.fullmatch(name):
                found[int(match[1])] = os.path.getsize(os.path.join(self.directory, name))
        return found

    def segments_from(self, offset: int) -> dict[int, int]:
        """The sizes of the segments that may have batches of this offset or later."""
        segments = self.segments()
        first = max((base for base in segments if base <= offset), default=offset)
        return {base: size for base, size in segments.items() if base >= first}

    def path_of(self, segment: int) -> str:
        """The path of a segment, by its base offset."""
        return os.path.join(self.directory, f"{segment:020}.log")

    def write_epochs(self) -> None:
        """Writes `leader-epoch-checkpoint`."""
        content = format_leader_epochs(self.leader_epochs)
        path = os.path.join(self.directory, LEADER_EPOCH_CHECKPOINT)
        if not os.path.exists(path) or _core.read_sidecar(path) != content:
            write_file(path, content)

    def complete(self) -> None:
        """Writes a first segment if there is none: a log has at least one."""
        if not self.segments():
            with open(self.path_of(self.next_offset), "xb"):
                self.active_segment = self.next_offset

    @property
    def last_stable_offset(self) -> int:
        """The end (exclusive) of what a `read_committed` consumer gets of the log as it is now."""
        return min((one["first_offset"] for one in self.open_transactions), default=self.next_offset)

    def range_to(self, end: int) -> tuple[str, int, int, int, str, int | None, list[tuple[int, int, bool]]]:
        """The range that is copied next, up to `end` (exclusive), as compiled functions take it."""
        return (
            *self.place,
            self.next_offset,
            end,
            self.directory,
            self.active_segment,
            self.open_as_tuples(),
        )

    def open_as_tuples(self) -> list[tuple[int, int, bool]]:
        """The open transactions, as compiled functions take them."""
        return _as_tuples(self.open_transactions)

    def cut_at(self, offset: int, aside: str, *, is_stable: bool = False) -> int:
        """Moves the batches from this offset on into the directory `aside`; returns their bytes.

        With `is_stable`, no transaction is open there, and segments before it are not read.
        """
        moved, end = 0, None
        last_record: LastRecord | None = None
        self.open_transactions = []
        segments = self.segments_from(offset) if is_stable else self.segments()
        if before := [segment for segment in self.segments() if segment not in segments]:
            self.active_segment = before[-1]
        for segment, size in segments.items():
            position = 0
            if end is None:
                position, found = walk(self.path_of(segment), (0, min(segment, offset), offset), self)
                self.open_transactions = found["open_transactions"]
                last_record = found["last_record"] or last_record
                if position == size:
                    self.active_segment = segment
                    continue
                # What is not even a batch is copied again.
                end = found["next_offset"] if position else min(segment, offset)
            _, rest = walk(self.path_of(segment), (position, max(segment, end), EVERYTHING))
            self.batches -= rest["batches"]
            self.records -= rest["records"]
            if position:
                self.active_segment = segment
            self.move_rest(segment, position, end, aside)
            moved += size - position
        if moved:
            sync(aside)
            sync(self.directory)
        self.leader_epochs = [one for one in self.leader_epochs if one[1] < offset]
        self.damaged = [one for one in self.damaged if one["first_offset"] < offset]
        self.next_offset = offset if end is None else min(offset, end)
        if self.last_record is not None and self.last_record["offset"] >= self.next_offset:
            self.last_record = last_record
        if not self.segments():
            self.first_offset = self.active_segment = None
        if self.active_segment is not None:
            self.rewritten.setdefault(self.active_segment, [])
        return moved

    def move_rest(self, segment: int, position: int, next_offset: int, aside: str) -> None:
        """Moves a segment from a position on, or all of it, into the directory `aside`, where what begins
        within a segment gets the name of its offset.
        """
        if not os.path.isdir(aside):
            os.makedirs(aside)
            if self.topic_id is not None:
                shutil.copy(os.path.join(self.directory, PARTITION_METADATA), aside)
        path = self.path_of(segment)
        rest = os.path.join(aside, f"{next_offset if position else segment:020}.log")
        if position == 0:
            os.rename(path, rest)
        else:
            _copy_rest(path, position, rest)
            sync(aside)
            sync(os.path.dirname(aside))
            truncate(path, position)
        self.rewritten.setdefault(segment, []).insert(0, rest)

    def entry(self, replicas: list[int]) -> BackedUpPartition:
        """The partition in the manifest."""
        return BackedUpPartition(
            topic=self.topic,
            partition=self.partition,
            topic_id=self.topic_id,
            replicas=replicas,
            first_offset=self.next_offset if self.first_offset is None else self.first_offset,
            log_start_offset=self.log_start_offset,
            next_offset=self.next_offset,
            active_segment=self.active_segment,
            size=sum(self.segments().values()),
            batches=self.batches,
            records=self.records,
            leader_epochs=self.leader_epochs,
            max_producer_id=self.max_producer_id,
            open_transactions=self.open_transactions,
            lost=self.lost,
            damaged=self.damaged,
            last_record=self.last_record,
        )


def walk(path: str, bounds: tuple[int, int, int], log: KeptLog | None = None) -> tuple[int, CopiedBatches]:
    """Adds up the batches of a segment, also those whose CRCs do not hold, since the cluster may have sent
    them like that: unlike `_core.whole_batches`, it ends only where no batch follows.

    Args:
        path: the segment.
        bounds: the position, and the offsets (inclusive and exclusive) between which batches begin.
        log: the log with the transactions that are open there, or None for none.

    """
    position, next_offset, end_offset = bounds
    sums = cast(CopiedBatches, {"batches": 0, "records": 0, "next_offset": next_offset})
    sums["open_transactions"] = [] if log is None else log.open_transactions
    sums["last_record"] = None
    while True:
        position, text = _core.whole_batches(
            path, position, sums["next_offset"], end_offset, _as_tuples(sums["open_transactions"])
        )
        found = cast(CopiedBatches, json.loads(text))
        found["batches"] += sums["batches"]
        found["records"] += sums["records"]
        found["last_record"] = found["last_record"] or sums["last_record"]
        sums = found
        damaged = _batch_at(path, position)
        if damaged is None or not sums["next_offset"] <= _first_of(damaged) < end_offset:
            return position, sums
        after = position + damaged.size_in_bytes
        if after < os.path.getsize(path):
            # The damage may be that of its offsets or its size.
            following = _batch_at(path, after)
            if following is None or _first_of(following) <= damaged.last_offset:
                return position, sums
        position = after
        sums["next_offset"] = damaged.last_offset + 1
        sums["batches"] += 1
        sums["records"] += damaged.record_count if damaged.magic == _MAGIC_2 else 1


def _first_of(batch: Any) -> int:
    """The offset from which on a batch counts: those of magic 0 and 1 have their last one in the header."""
    return cast(int, batch.base_offset if batch.magic == _MAGIC_2 else batch.last_offset)


def _batch_at(path: str, position: int) -> Any:
    """The batch at a position, whether its CRC holds or not; None if there is none."""
    with open(path, "rb") as file:
        file.seek(position)
        header = file.read(_PREFIX.size)
        if len(header) < _PREFIX.size:
            return None
        _, size = _PREFIX.unpack(header)
        if not 0 < size <= os.fstat(file.fileno()).st_size - position - _PREFIX.size:
            return None
        data = header + file.read(size)
    try:
        return next(iter(_core.read_batches(data)), None)
    except Error:
        return None


def has_good_batch(path: str, position: int, end_offset: int) -> bool:
    """True if one of the batches at a position begins before this offset (exclusive), and its CRC holds."""
    while (batch := _batch_at(path, position)) is not None and _first_of(batch) < end_offset:
        if batch.is_valid():
            return True
        position += batch.size_in_bytes
    return False


def truncate(path: str, size: int) -> None:
    """Cuts off the end of a file."""
    with open(path, "r+b") as file:
        file.truncate(size)
        os.fsync(file.fileno())


def _copy_rest(path: str, position: int, target: str) -> None:
    with open(path, "rb") as source, open(target, "xb") as file:
        source.seek(position)
        shutil.copyfileobj(source, file, _BLOCK_BYTES)
        file.flush()
        os.fsync(file.fileno())


def _as_tuples(transactions: list[OpenTransaction]) -> list[tuple[int, int, bool]]:
    """Open transactions, as compiled functions take them."""
    return [(one["producer_id"], one["first_offset"], one["is_overlapped"]) for one in transactions]


def check_directory(path: str) -> None:
    """Raises RefusedError if there is something that is not a directory of the backup itself."""
    if os.path.islink(path):
        raise RefusedError(f"{path} is a symbolic link: a backup writes only below its own directory")
    if os.path.lexists(path) and not os.path.isdir(path):
        raise RefusedError(f"{path} is {_kind_of(path)}: expected a directory, which the backup has made")


def check_file(path: str) -> None:
    """Raises RefusedError if there is something that is not a file of the backup itself."""
    if os.path.lexists(path) and not stat.S_ISREG(os.lstat(path).st_mode):
        raise RefusedError(f"{path} is {_kind_of(path)}: expected a file, which the backup has written")


def _kind_of(path: str) -> str:
    mode = os.lstat(path).st_mode
    if stat.S_ISLNK(mode):
        return "a symbolic link"
    if stat.S_ISDIR(mode):
        return "a directory"
    return "a file" if stat.S_ISREG(mode) else "a special file"


def aside_name(name: str, topic_id: str | None = None) -> str:
    """The name for a log that is not a part of the cluster, as Kafka has it for logs that a broker was not
    assigned: `topic-N.ID-stray`. The ID is the topic's, or a new one.
    """
    return _renamed(name, topic_id or _new_id(), "stray")


def future_name(name: str, topic_id: str | None) -> str:
    """The name for a copy that is not whole yet, as Kafka has it for a copy on another disk."""
    return _renamed(name, topic_id or _NO_ID, "future")


def deleted_name(name: str, topic_id: str | None) -> str:
    """The name for a log that is about to be removed, as Kafka has it."""
    return _renamed(name, topic_id or _NO_ID, "delete")


def _renamed(name: str, topic_id: str, state: str) -> str:
    """The name of a log's directory in a state (`UnifiedLog.logDirNameWithSuffixCappedLength`)."""
    suffix = f".{base64.urlsafe_b64decode(topic_id + '==').hex()}-{state}"
    topic, _, number = name.rpartition("-")
    return f"{topic[: _MAX_NAME - len(number) - 1 - len(suffix)]}-{number}{suffix}"


def _new_id() -> str:
    return base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
