"""The cluster's metadata, folded from a snapshot and the log after it, of which several nodes have copies.

The copies of a committed log are equal byte for byte, as far as they go. So a batch that one of them has lost
is taken from another one, and a batch with one flipped bit is repaired, if its checksum proves the repair.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice

from magicbyte import _core
from magicbyte._core import LISTED, RecordBatch
from magicbyte.damage import rescue
from magicbyte.errors import Error
from magicbyte.internal_topics.metadata.cluster import ClusterState
from magicbyte.jobs.find.problems import offsets_text
from magicbyte.jobs.find.quorum_state import QuorumFile, read_quorum_file
from magicbyte.jobs.find.reach import reach
from magicbyte.log import PartitionLog
from magicbyte.model import PartitionListing

__all__ = ["FoldedMetadata", "MetadataCopy", "fold_metadata", "has_metadata"]

_SNAPSHOT = re.compile(r"(\d{20})-(\d{10})\.checkpoint")
_SNAPSHOT_FOOTER = 4
"""`ControlRecordType`."""


@dataclass(frozen=True)
class MetadataCopy:
    """A copy of the metadata log."""

    path: str
    leader_epoch: int
    """The epoch of the last good batch; -1 if there is none."""
    last_offset: int
    """The offset of the last good record; -1 if there is none."""
    snapshot: str | None
    """The name of its newest snapshot."""


@dataclass
class FoldedMetadata:
    """The state that the copies add up to."""

    copies: list[MetadataCopy] = field(default_factory=list)
    """The newest first: it decides where others contradict it."""
    state: ClusterState = field(default_factory=ClusterState)
    snapshot: str | None = None
    """The path of the snapshot that was read."""
    next_offset: int = 0
    """The offset after the last record that was read."""
    last_timestamp: int | None = None
    """The timestamp (ms) of the last record that was read."""
    lost: list[tuple[int, int]] = field(default_factory=list)
    """Offsets (inclusive) that are in no readable copy."""
    is_whole: bool = True
    """False if records may be missing that the newest copy had: then topics may be, too."""
    problems: list[str] = field(default_factory=list)
    """Damage, repaired or not, and contradictions."""

    @property
    def path(self) -> str | None:
        """The directory of the newest copy; None if there are no copies."""
        return self.copies[0].path if self.copies else None


def has_metadata(listing: PartitionListing) -> bool:
    """True if a listing of `__cluster_metadata-0` has a log or a snapshot."""
    return bool(listing["segments"]) or bool(_snapshots(listing))


def fold_metadata(listings: Sequence[PartitionListing]) -> FoldedMetadata:
    """Folds one or several copies of `__cluster_metadata-0`: the newest complete snapshot and what follows.

    The copy with the highest leader epoch and offset is read, and the others where it is damaged.

    Raises:
        OSError: a directory cannot be listed.

    """
    ranked = sorted(((_reach(one), one) for one in listings), key=lambda pair: pair[0], reverse=True)
    folded = FoldedMetadata(
        [MetadataCopy(one["path"], *reached, next(iter(_snapshots(one)), None)) for reached, one in ranked]
    )
    _fold_snapshot(folded, [one for _, one in ranked])
    sources = [_Source(one["path"]) for _, one in ranked if one["segments"]]
    for other in sources[1:]:
        other.compare(sources[0], folded)
    if sources:
        _fold_log(folded, sources)
        if sources[0].is_torn_at(folded.next_offset):
            folded.is_whole = False
    for source in sources:
        folded.problems += source.problems
    _add_quorum_files(folded)
    return folded


def _snapshots(listing: PartitionListing) -> list[str]:
    """The names of the snapshots in a directory, the newest first."""
    names = (one["file"] for one in listing["ignored"])
    return sorted(filter(_SNAPSHOT.fullmatch, names), reverse=True)


def _reach(listing: PartitionListing) -> tuple[int, int]:
    """The leader epoch and the last offset of a copy, of which nothing but a snapshot may be left."""
    of_snapshots = [(int(name[21:31]), int(name[:20]) - 1) for name in _snapshots(listing)]
    return max([reach(listing), *of_snapshots])


def _fold_snapshot(folded: FoldedMetadata, listings: Sequence[PartitionListing]) -> None:
    """Folds the newest snapshot that is whole; else the newest, unless the log has all that it has."""
    candidates = [os.path.join(listing["path"], name) for listing in listings for name in _snapshots(listing)]
    # A stable sort: of equal names, that of the newest copy comes first.
    candidates.sort(key=os.path.basename, reverse=True)
    partial: FoldedMetadata | None = None
    for path in candidates:
        trial = FoldedMetadata(folded.copies, snapshot=path)
        complete = _fold_file(trial)
        folded.problems += trial.problems
        if complete:
            break
        folded.problems.append(f"{path}: the snapshot is not whole")
        partial = partial or trial
    else:
        starts = [listing["segments"][0]["base_offset"] for listing in listings if listing["segments"]]
        if partial is None or (0 in starts and not _is_bootstrap(partial)):
            return
        trial = partial
        folded.is_whole = False
    folded.state, folded.snapshot, folded.last_timestamp = trial.state, trial.snapshot, trial.last_timestamp
    folded.is_whole &= trial.is_whole
    # A snapshot is named after the offset that follows it. Its own offsets start at 0.
    folded.next_offset = int(os.path.basename(trial.snapshot or "")[:20])


def _is_bootstrap(partial: FoldedMetadata) -> bool:
    """True for the snapshot that a node is formatted with since Kafka 4.4 (KIP-1170): no log has it."""
    return os.path.basename(partial.snapshot or "").startswith(f"{0:020}-{0:010}")


def _fold_file(trial: FoldedMetadata) -> bool:
    """Folds a snapshot; returns whether nothing of it is missing."""
    assert trial.snapshot is not None
    source, has_footer = _Source(trial.snapshot), False
    for batch in source.batches(0):
        has_footer = batch.is_control and any(
            (record.key_bytes or b"")[2:4] == bytes([0, _SNAPSHOT_FOOTER]) for record in batch
        )
        if batch.base_offset > trial.next_offset:
            return False
        _apply(trial, trial.snapshot, batch)
    trial.problems += source.problems
    return has_footer


def _fold_log(folded: FoldedMetadata, sources: Sequence[_Source]) -> None:
    start = folded.next_offset
    for batch in _united(sources, start, None, None):
        if batch.base_offset > folded.next_offset:
            lost = folded.next_offset, batch.base_offset - 1
            folded.lost.append(lost)
            folded.is_whole = False
            folded.problems.append(
                f"no readable copy of __cluster_metadata has {offsets_text(*lost)}: its changes are unknown"
            )
        _apply(folded, folded.path, batch, start)


def _united(
    sources: Sequence[_Source], start: int, end: int | None, max_epoch: int | None
) -> Iterator[RecordBatch]:
    """The batches of the first source, and those of the others where it has none, in offset order."""
    first, others = sources[0], sources[1:]
    position, epoch = start, -1
    for batch in first.batches(start, end):
        if batch.last_offset < position or (end is not None and batch.last_offset >= end):
            continue
        next_epoch = batch.partition_leader_epoch or 0
        if next_epoch < epoch or (max_epoch is not None and next_epoch > max_epoch):
            continue  # of another branch
        if others and batch.base_offset > position:
            yield from _united(others, position, batch.base_offset, next_epoch)
        yield batch
        position, epoch = batch.last_offset + 1, next_epoch
    if others and end is not None and position < end:
        yield from _united(others, position, end, max_epoch)


def _apply(folded: FoldedMetadata, place: str | None, batch: RecordBatch, start: int = 0) -> None:
    """Applies the records of a batch from `start` on; `place` is for messages."""
    folded.next_offset = batch.last_offset + 1
    folded.last_timestamp = batch.max_timestamp
    try:
        for record in batch:
            if record.offset < start:
                continue
            try:
                if batch.is_control:
                    folded.state.replay_control(record, batch.partition_leader_epoch or 0)
                else:
                    folded.state.replay(record.value_bytes)
            except LookupError as error:
                # Of a later version of Kafka: the brokers of this one would not start.
                problem = f"records of the unknown type {error.args[0]} are left out"
                if problem not in folded.problems:
                    _leave_out(folded, problem)
            except Error as error:
                _leave_out(folded, f"{place}: offset {record.offset}: {error}")
    except Error as error:
        _leave_out(folded, f"{place}: {error}")


def _leave_out(folded: FoldedMetadata, problem: str) -> None:
    folded.is_whole = False
    if len(folded.problems) < LISTED:
        folded.problems.append(problem)


class _Source:
    """A directory or file with batches of metadata, its proven repairs included."""

    def __init__(self, path: str) -> None:
        self.problems: list[str] = []
        self._path = path
        self._end: int | None = None
        self._damaged_ends: set[int | None] = set()
        """The first offset that may be lost of each damaged range that no good batch follows."""

    def is_torn_at(self, end: int) -> bool:
        """True if damage at the end of the log is neither repaired nor followed by a good batch."""
        return any(first is None or first >= end for first in self._damaged_ends)

    def compare(self, other: _Source, folded: FoldedMetadata) -> None:
        """Ends this source where it stops being equal to the other one, if it has anything else after that.

        That is after the last equal batch: where the other one lost batches, the branch may begin earlier
        than the first batch that differs.
        """
        others = other.batches(folded.next_offset)
        theirs, equal_until = next(others, None), folded.next_offset
        for batch in self.batches(folded.next_offset):
            while theirs is not None and theirs.base_offset < batch.base_offset:
                theirs = next(others, None)
            if theirs is None:
                return
            if theirs.base_offset != batch.base_offset:
                continue
            if _identity(theirs) != _identity(batch):
                self._end = equal_until
                folded.problems.append(
                    f"{self._path} differs from {other._path} at offset {batch.base_offset}, with leader"
                    f" epoch {batch.partition_leader_epoch} in place of {theirs.partition_leader_epoch}: it"
                    f" is not read from offset {equal_until} on"
                )
                return
            equal_until = batch.last_offset + 1

    def batches(self, start: int, end: int | None = None) -> Iterator[RecordBatch]:
        """The good and the repaired batches with offsets from `start` to `end` (exclusive), in order."""
        end = self._end if end is None else end if self._end is None else min(end, self._end)
        log = PartitionLog(self._path, mode="PERMISSIVE")
        found = log.batches(start, end_offset=end)
        position = start
        for batch in found:
            if not isinstance(batch, RecordBatch):
                continue  # there was no Raft before magic 2
            if batch.base_offset > position:
                yield from self._repaired(position, batch.base_offset)
            yield batch
            position = batch.last_offset + 1
        if found.problems:
            known = {*self.problems}
            named = (f"{self._path}/{one['segment']}: {one['message']}" for one in found.problems)
            self.problems += [problem for problem in named if problem not in known]
            self._damaged_ends |= {
                one["first_lost_offset"] for one in found.problems if one["last_lost_offset"] is None
            }
            yield from self._repaired(position, end)

    def _repaired(self, start: int, end: int | None) -> Iterator[RecordBatch]:
        for batch in self._repairs:
            if start <= batch.base_offset and (end is None or batch.last_offset < end):
                yield batch

    @cached_property
    def _repairs(self) -> list[RecordBatch]:
        """Batches whose repair is proven, at most `LISTED`, in offset order."""
        repairs: list[RecordBatch] = []
        for found in islice(rescue(self._path), LISTED):
            if found.repair is None or not found.repair.is_proven:
                continue
            batches = _core.read_batches(found.repair.batch)
            repairs += [batch for batch in batches if isinstance(batch, RecordBatch)]
            place = f"{found.segment} bytes {found.start}-{found.end}"
            self.problems.append(f"{place}: read with a repair that its CRC proves: {found.repair.change}")
        return sorted(repairs, key=lambda batch: batch.base_offset)


def _identity(batch: RecordBatch) -> tuple[int, int | None, int]:
    return batch.last_offset, batch.partition_leader_epoch, batch.crc


def _add_quorum_files(folded: FoldedMetadata) -> None:
    """Adds the leader and the static voters of `quorum-state`, where the log does not tell them."""
    quorum = folded.state.quorum
    files: list[QuorumFile] = []
    for copy in folded.copies:
        try:
            if (file := read_quorum_file(copy.path)) is not None:
                files.append(file)
        except (Error, OSError) as error:
            folded.problems.append(str(error))
    newest = max(files, key=lambda one: one.leader_epoch, default=None)
    if newest is not None:
        quorum.add_file(newest.leader, newest.leader_epoch, newest.voters)
