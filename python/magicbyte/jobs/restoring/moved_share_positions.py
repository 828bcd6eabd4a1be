"""Positions of share groups: in logs that are cut, and for another cluster."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cache, partial
from typing import Any, TypeAlias, TypedDict

from magicbyte._core import encode_coordinator_record
from magicbyte.errors import Error
from magicbyte.internal_topics.names import CONSUMER_OFFSETS, SHARE_GROUP_STATE
from magicbyte.internal_topics.share_groups import DELIVERY_STATES, SharePartition, SharePartitions
from magicbyte.jobs.merging.planning import PlannedMerge
from magicbyte.jobs.restoring.cutting import CutPartition, batches_of
from magicbyte.jobs.restoring.moved_positions import ends_of, groups_of, tail_of, with_records

__all__ = ["RESET_SINCE", "MovedSharePosition", "MovedSharePositions", "move_share_positions", "share_starts"]

RESET_SINCE = "Kafka 4.4"
"""The version of kafka-share-groups.sh since which it takes offsets. Its brokers may be older."""
_SHARE_SNAPSHOT, _VALUE_VERSION = 0, 0
_UNKNOWN = -1
_MAX_INT32 = (1 << 31) - 1
_DONE = frozenset(number for number, name in DELIVERY_STATES.items() if name in ("ACKNOWLEDGED", "ARCHIVED"))

_Place: TypeAlias = tuple[str, str, int]
"""A share group, the id of a topic, and a partition."""


class MovedSharePosition(TypedDict):
    """A share group's position that is written again."""

    group: str
    topic: str
    partition: int
    before: int
    """The start offset that it had: at the cut, or later if the cut has left none."""
    offset: int
    """The same, but at most the end of the log."""
    forgotten_offsets: int
    """Offsets after the end of the log of which the group had begun the delivery: others get them."""


@dataclass
class MovedSharePositions:
    """The logs of `__share_group_state` after a cut."""

    merges: list[PlannedMerge]
    moved: list[MovedSharePosition] = field(default_factory=list)
    to_reset: list[str] = field(default_factory=list)
    """The positions that a person has to set, as steps."""


def move_share_positions(
    whole: Sequence[PlannedMerge],
    merges: Sequence[PlannedMerge],
    cut: Sequence[CutPartition],
    names: Mapping[str, str],
) -> MovedSharePositions:
    """Appends snapshots to the merged `__share_group_state`, as `move_positions` does commits: what a group
    had done after the end of a log is forgotten, so that it gets the new records there.

    `whole` are the merges before the cut; `names` has the names of topics by id.
    """
    found = MovedSharePositions([*merges])
    if not cut:
        return found
    ends, initialized = ends_of(cut), cache(partial(_initialized, merges))
    for number, (before, merge) in enumerate(zip(whole, merges, strict=True)):
        if merge.partition.topic != SHARE_GROUP_STATE:
            continue
        states = _states(merge)
        lost = {} if merge is before else {at: one for at, one in _states(before).items() if at not in states}
        changed = list[SharePartition]()
        for place, state in sorted((states | lost).items()):
            topic = names.get(state.topic_id)
            if topic is None:
                continue
            end = ends.get((topic, state.partition))
            if place in lost and place not in initialized():
                if state.start_offset is not None:
                    found.to_reset.append(_reset(state, topic, end))
            elif place in lost or (end is not None and _end_of(state) > end):
                changed.append(state if end is None else _cut(state, end))
                found.moved.append(_moved(state, changed[-1], topic))
        if changed:
            tail = tail_of(merge)
            found.merges[number] = with_records(merge, tail, [_record(one, tail.time) for one in changed])
    return found


def share_starts(merges: Iterable[PlannedMerge]) -> dict[_Place, int]:
    """The start offset of each share group, topic ID and partition, if it has one."""
    return {
        place: state.start_offset
        for merge in merges
        if merge.partition.topic == SHARE_GROUP_STATE
        for place, state in _states(merge).items()
        if state.start_offset is not None
    }


def _states(merge: PlannedMerge) -> dict[_Place, SharePartition]:
    state = SharePartitions()
    for batch in batches_of(merge):
        if not batch.is_control:
            with suppress(Error):  # the batch does not decode
                for record in batch:
                    with suppress(Error, LookupError):  # the coordinator does not know it either
                        state.replay(record.key_bytes, record.value_bytes)
    return {(one.group, one.topic_id, one.partition): one for one in state.states}


def _initialized(merges: Iterable[PlannedMerge]) -> set[_Place]:
    """The partitions that share groups know of, according to the merged `__consumer_offsets`. A coordinator
    that does not know of one may refuse to begin it anew where a state of it is left.
    """
    groups = groups_of(one for one in merges if one.partition.topic == CONSUMER_OFFSETS)
    return {
        (group, topic.topic_id, partition)
        for group, topics in groups.share_topics.items()
        for topic in topics
        for partition in topic.partitions
    }


def _end_of(state: SharePartition) -> int:
    """The first offset of which the state says nothing."""
    start = _UNKNOWN if state.start_offset is None else state.start_offset
    return max(start, *(one.last_offset + 1 for one in state.state_batches), 0)


def _cut(state: SharePartition, end: int) -> SharePartition:
    """The state without what it says of a log after its new end."""
    batches = [
        one._replace(last_offset=min(one.last_offset, end - 1))
        for one in state.state_batches
        if one.first_offset < end
    ]
    start = state.start_offset
    return replace(state, start_offset=None if start is None else min(start, end), state_batches=batches)


def _moved(before: SharePartition, after: SharePartition, topic: str) -> MovedSharePosition:
    start, offset = (_UNKNOWN if one.start_offset is None else one.start_offset for one in (before, after))
    sizes = [
        sum(batch.last_offset - batch.first_offset + 1 for batch in one.state_batches)
        for one in (before, after)
    ]
    return MovedSharePosition(
        group=before.group,
        topic=topic,
        partition=before.partition,
        before=start,
        offset=offset,
        forgotten_offsets=sizes[0] - sizes[1],
    )


def _record(state: SharePartition, time: int) -> tuple[bytes, bytes]:
    """The key and value of the next snapshot of a state (`ShareCoordinatorShard`)."""
    key = {"groupId": state.group, "topicId": state.topic_id, "partition": state.partition}
    start = _UNKNOWN if state.start_offset is None else state.start_offset
    done = sum(
        one.last_offset - max(one.first_offset, start) + 1
        for one in state.state_batches
        if one.delivery_state in _DONE and one.last_offset >= start
    )
    value: dict[str, Any] = {
        "snapshotEpoch": min((state.snapshot_epoch or 0) + 1, _MAX_INT32),
        "stateEpoch": _UNKNOWN if state.state_epoch is None else state.state_epoch,
        "leaderEpoch": _UNKNOWN if state.leader_epoch is None else state.leader_epoch,
        "startOffset": start,
        "deliveryCompleteCount": done if done <= _MAX_INT32 else _UNKNOWN,
        "createTimestamp": time,
        "writeTimestamp": time,
        "stateBatches": [
            {
                "firstOffset": one.first_offset,
                "lastOffset": one.last_offset,
                "deliveryState": one.delivery_state,
                "deliveryCount": one.delivery_count,
            }
            for one in state.state_batches
        ],
    }
    return encode_coordinator_record(SHARE_GROUP_STATE, _SHARE_SNAPSHOT, _VALUE_VERSION, key, value)


def _reset(state: SharePartition, topic: str, end: int | None) -> str:
    start = state.start_offset or 0
    offset = start if end is None else min(start, end)
    return (
        f"share group {state.group} did not have {topic}-{state.partition} at the cut, or brokers have"
        " deleted that record since: it starts where share.auto.offset.reset says. For its last position:"
        f" kafka-share-groups.sh ({RESET_SINCE}) --group {shlex.quote(state.group)} --reset-offsets"
        f" --to-offset {offset} --topic {shlex.quote(f'{topic}:{state.partition}')} --execute"
    )
