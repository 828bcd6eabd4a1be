"""Positions of groups in logs that are cut: those beyond the end move to it, and none is lost."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import NamedTuple, TypedDict

from magicbyte._core import RecordsBuilder, encode_coordinator_record
from magicbyte.errors import Error
from magicbyte.internal_topics.groups import Commit, GroupsState
from magicbyte.internal_topics.names import CONSUMER_OFFSETS
from magicbyte.jobs.merging.planning import Appended, PlannedMerge
from magicbyte.jobs.restoring.cutting import CutPartition, batches_of

__all__ = [
    "MovedPosition",
    "commits_of",
    "ends_of",
    "groups_of",
    "move_positions",
    "tail_of",
    "with_records",
]

_OFFSET_COMMIT, _VALUE_VERSION = 1, 3
"""The type of the record, and the version of `OffsetCommitValue` that brokers since 2.1 read."""

Ends = Mapping[tuple[str, int], int]


class MovedPosition(TypedDict):
    """A group's position that is committed again."""

    group: str
    topic: str
    partition: int
    before: int
    """The position that it had: at the cut, or later if the cut has left none."""
    offset: int
    """The same, but at most the end of the log."""


class _Moved(NamedTuple):
    commit: Commit
    offset: int


def ends_of(cut: Sequence[CutPartition]) -> Ends:
    """The new end of each log that is cut."""
    return {(one["topic"], one["partition"]): one["log_end_offset"] for one in cut}


def move_positions(
    whole: Sequence[PlannedMerge], merges: Sequence[PlannedMerge], cut: Sequence[CutPartition]
) -> tuple[list[PlannedMerge], list[MovedPosition]]:
    """Appends commits to the merged `__consumer_offsets`; `whole` are the merges before the cut. Groups that
    were beyond the end of a log continue there, so that they get the new records. Compaction may have removed
    the positions that groups had then: without a later one, they would jump.
    """
    ends, report, changed = ends_of(cut), list[MovedPosition](), [*merges]
    for place, (before, merge) in enumerate(zip(whole, merges, strict=True)):
        if not cut or merge.partition.topic != CONSUMER_OFFSETS:
            continue
        if moved := sorted(_moved(before, merge, ends), key=lambda one: _key(one.commit)):
            changed[place] = with_records(merge, tail_of(merge), [_record(*one) for one in moved])
            report += (
                MovedPosition(
                    group=commit.group,
                    topic=commit.topic,
                    partition=commit.partition,
                    before=commit.offset,
                    offset=offset,
                )
                for commit, offset in moved
            )
    return changed, report


def _moved(before: PlannedMerge, merge: PlannedMerge, ends: Ends) -> Iterator[_Moved]:
    """The positions of a partition of `__consumer_offsets` that have to be committed again."""
    commits = commits_of(merge)
    for key, commit in commits.items():
        end = ends.get(key[1:], commit.offset)
        if commit.offset > end:
            yield _Moved(commit, end)
    if merge is not before:
        for key, commit in commits_of(before).items():
            if key not in commits:
                yield _Moved(commit, min(commit.offset, ends.get(key[1:], commit.offset)))


def _key(commit: Commit) -> tuple[str, str, int]:
    return commit.group, commit.topic, commit.partition


def commits_of(merge: PlannedMerge) -> dict[tuple[str, str, int], Commit]:
    """The committed offsets in a merged partition of `__consumer_offsets`."""
    return {_key(one): one for one in groups_of([merge]).commits}


def groups_of(merges: Iterable[PlannedMerge]) -> GroupsState:
    """The state that merged partitions of `__consumer_offsets` add up to, without what does not decode."""
    state = GroupsState()
    for merge in merges:
        for batch in batches_of(merge):
            with suppress(Error):
                deque(state.replay(batch), 0)
    return state


def _record(commit: Commit, offset: int) -> tuple[bytes, bytes]:
    """The key and value of a committed offset."""
    key = {"group": commit.group, "topic": commit.topic, "partition": commit.partition}
    value = {"offset": offset, "metadata": commit.metadata, "commitTimestamp": commit.commit_timestamp}
    return encode_coordinator_record(CONSUMER_OFFSETS, _OFFSET_COMMIT, _VALUE_VERSION, key, value)


class Tail(NamedTuple):
    """The end of a merged log."""

    epoch: int
    """The highest leader epoch."""
    time: int
    """The time (ms) of the last batch."""


def tail_of(merge: PlannedMerge) -> Tail:
    """Reads the end of a merged log off all of its batches."""
    tail = Tail(0, 0)
    for batch in batches_of(merge):
        tail = Tail(max(batch.partition_leader_epoch or 0, tail.epoch), batch.max_timestamp)
    return tail


def with_records(merge: PlannedMerge, tail: Tail, records: Sequence[tuple[bytes, bytes]]) -> PlannedMerge:
    """A merge whose log goes on with records, as keys and values."""
    builder = RecordsBuilder(base_offset=merge.log_end, partition_leader_epoch=tail.epoch)
    for key, value in records:
        builder.append(None, tail.time, key, value)
    return replace(merge, appended=Appended(builder.build(), len(records)))
