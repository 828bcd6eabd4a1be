"""Positions of groups in logs that are cut: those beyond the end move to it, and none is lost."""

from __future__ import annotations

import struct
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple, TypedDict

from magicbyte._core import RecordsBuilder
from magicbyte.internal_topics.groups import Commit, GroupsState
from magicbyte.internal_topics.names import CONSUMER_OFFSETS, SHARE_GROUP_STATE
from magicbyte.internal_topics.share_groups import SharePartitions
from magicbyte.jobs.merging.planning import Appended, PlannedMerge
from magicbyte.jobs.restoring.cutting import CutPartition, batches_of

__all__ = [
    "MovedPosition",
    "commits_of",
    "move_positions",
    "share_positions_to_reset",
    "share_starts",
]

_KEY_VERSION, _VALUE_VERSION = 1, 3
"""The versions of `OffsetCommitKey` and `OffsetCommitValue` that brokers since 2.1 read."""
_NO_EPOCH = -1
_RESET = "reset it when the cluster runs (kafka-share-groups.sh --reset-offsets)"

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
            changed[place] = _with_commits(merge, moved)
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
    state = GroupsState()
    for batch in batches_of(merge):
        deque(state.replay(batch), 0)  # what does not decode is skipped by the coordinator, too
    return {_key(one): one for one in state.commits}


def _with_commits(merge: PlannedMerge, moved: Sequence[_Moved]) -> PlannedMerge:
    epoch, time = 0, 0
    for batch in batches_of(merge):
        epoch, time = max(batch.partition_leader_epoch or 0, epoch), batch.max_timestamp
    builder = RecordsBuilder(base_offset=merge.log_end, partition_leader_epoch=epoch)
    for commit, offset in moved:
        builder.append(None, time, *_record(commit, offset))
    return replace(merge, appended=Appended(builder.build(), len(moved)))


def _record(commit: Commit, offset: int) -> tuple[bytes, bytes]:
    """The key and value of a committed offset (`OffsetCommitKey`, `OffsetCommitValue`)."""
    key = struct.pack(">h", _KEY_VERSION) + _text(commit.group) + _text(commit.topic)
    value = struct.pack(">hqi", _VALUE_VERSION, offset, _NO_EPOCH) + _text(commit.metadata)
    return key + struct.pack(">i", commit.partition), value + struct.pack(">q", commit.commit_timestamp)


def _text(text: str) -> bytes:
    data = text.encode()
    return struct.pack(">h", len(data)) + data


def share_positions_to_reset(
    whole: Sequence[PlannedMerge],
    merges: Sequence[PlannedMerge],
    cut: Sequence[CutPartition],
    names: Mapping[str, str],
) -> Iterator[str]:
    """The share groups that a person has to reset: their start offset is beyond the end of a log, or the cut
    has left none. `whole` are the merges before the cut; `names` has the names of topics by id.
    """
    if not cut:
        return
    ends, states = ends_of(cut), share_starts(merges)
    for (group, topic_id, partition), start in states.items():
        place = names.get(topic_id, ""), partition
        if start > ends.get(place, start):
            yield (
                f"share group {group} is at offset {start:,} of {place[0]}-{partition}, which ends at"
                f" {ends[place]:,}: {_RESET}"
            )
    for (group, topic_id, partition), start in share_starts(whole).items():
        if (group, topic_id, partition) not in states and topic_id in names:
            yield (
                f"share group {group} has no position in {names[topic_id]}-{partition} at the cut: it had"
                " read nothing then, or brokers have deleted its records since. Without one, it starts where"
                f" share.auto.offset.reset says; its last position was {start:,}: {_RESET}"
            )


def share_starts(merges: Iterable[PlannedMerge]) -> dict[tuple[str, str, int], int]:
    """The start offset of each share group, topic ID and partition, if it has one."""
    state = SharePartitions()
    for merge in merges:
        if merge.partition.topic == SHARE_GROUP_STATE:
            for batch in batches_of(merge):
                if not batch.is_control:
                    for record in batch:
                        state.replay(record.key_bytes, record.value_bytes)
    return {
        (one.group, one.topic_id, one.partition): one.start_offset
        for one in state.states
        if one.start_offset is not None
    }
