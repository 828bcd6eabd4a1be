"""The job of `magicbyte offsets`: what each consumer group has committed, and how far behind it is."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import partial
from typing import TypedDict

from magicbyte._core import DEFAULT_MAX_DECOMPRESSED_BYTES
from magicbyte.internal_topics.groups import Commit, GroupsState, GroupState
from magicbyte.internal_topics.names import CONSUMER_OFFSETS
from magicbyte.jobs.choice import EVERYTHING, PartitionChoice
from magicbyte.jobs.engines import Engine
from magicbyte.jobs.failure import RefusedError
from magicbyte.jobs.partitions import find_inputs
from magicbyte.jobs.plan import Planned, count_of, plan_partitions
from magicbyte.jobs.progress import NO_PROGRESS, Progress
from magicbyte.jobs.replay import replay_batches
from magicbyte.model import PartitionListing

__all__ = ["CommittedOffset", "ConsumerGroup", "Ends", "OffsetsReport", "log_ends", "offsets", "offsets_of"]


class CommittedOffset(TypedDict):
    """A group's committed offset of a partition. Times are ms since 1970."""

    group: str
    topic: str
    partition: int
    offset: int
    """Where the group continues."""
    leader_epoch: int | None
    metadata: str
    commit_timestamp: int
    expire_timestamp: int | None
    """Only if the consumer chose one (before Kafka 2.1)."""
    log_end_offset: int | None
    """In this copy; None if the partition is not in it."""
    last_stable_offset: int | None
    """Where `read_committed` consumers end: `log_end_offset`, or the first open transaction."""
    lag: int | None
    """Records up to the end of the log, by offsets. Negative if the copy ends before the commit."""
    committed_lag: int | None
    """The same up to the last stable offset."""


class ConsumerGroup(TypedDict):
    """A group, as far as the log tells."""

    group: str
    type: str
    """`classic`, `consumer`, `share` or `streams`."""
    state: str
    """`Empty` or `Stable`: a broker keeps the state of a rebalance in memory."""
    epoch: int | None
    """The group's epoch; a classic group's generation."""
    protocol_type: str | None
    protocol: str | None
    members: dict[str, dict[str, str | None]]
    """`instance_id`, `client_id` and `client_host` by member id."""


class OffsetsReport(TypedDict):
    """What `magicbyte offsets --json` prints."""

    offsets: list[CommittedOffset]
    """By group, topic and partition."""
    groups: list[ConsumerGroup]
    pending: int
    """Offsets committed in transactions that had not ended: not in `offsets`."""
    problems: list[str]
    """What could not be read of `__consumer_offsets`, or of the logs' ends."""


Ends = Mapping[tuple[str, int], tuple[int | None, int | None]]
"""By topic and partition: the log end offset and the last stable offset, None if they are unknown."""

_Folded = tuple[list[Commit], list[GroupState], int, list[str]]


def offsets(
    sources: Sequence[str],
    engine: Engine,
    *,
    choice: PartitionChoice = EVERYTHING,
    group: str = "*",
    max_decompressed_bytes: int = DEFAULT_MAX_DECOMPRESSED_BYTES,
    progress: Progress = NO_PROGRESS,
) -> OffsetsReport:
    """Reads the `__consumer_offsets` at and below `sources` as a group coordinator does when it starts.

    `choice` selects among the partitions that have committed offsets, and which copies are read. `group` is a
    pattern with the wildcards `*`, `?` and `[...]`. The logs that the groups have offsets in are scanned,
    headers only, for their ends.

    Raises:
        RefusedError: if there is no `__consumer_offsets`, or a partition is found twice.

    """
    inputs = find_inputs(sources, choice, distinct=True, consult={CONSUMER_OFFSETS}, may_be_none=True)
    if not inputs.consulted:
        raise RefusedError(
            f"no partition of {CONSUMER_OFFSETS} below {', '.join(sources)}: groups commit there"
        )

    def ends(places: Collection[tuple[str, int]]) -> Ends:
        listings = [one for one in inputs.listings if (one["topic"], one["partition"]) in places]
        return log_ends(plan_partitions(listings, engine, progress=progress)) if listings else {}

    return offsets_of(
        inputs.consulted,
        ends,
        engine,
        choice=choice,
        group=group,
        max_decompressed_bytes=max_decompressed_bytes,
        progress=progress,
    )


def offsets_of(
    own: Sequence[PartitionListing],
    ends: Callable[[Collection[tuple[str, int]]], Ends],
    engine: Engine,
    *,
    choice: PartitionChoice = EVERYTHING,
    group: str = "*",
    max_decompressed_bytes: int = DEFAULT_MAX_DECOMPRESSED_BYTES,
    progress: Progress = NO_PROGRESS,
) -> OffsetsReport:
    """Reads `own`, partitions of `__consumer_offsets`; `ends` tells where the logs of partitions end."""
    folded: list[_Folded] = engine.map(
        partial(_fold, max_decompressed_bytes=max_decompressed_bytes),
        [one["path"] for one in own],
        name=f"magicbyte offsets: {count_of(len(own), 'partition')}",
        sizes=[sum(segment["size"] for segment in one["segments"]) for one in own],
        progress=progress,
    )
    commits = [
        one
        for found, _, _, _ in folded
        for one in found
        if fnmatchcase(one.group, group) and choice.includes(one.topic, one.partition)
    ]
    groups = [one for _, found, _, _ in folded for one in found if fnmatchcase(one.group, group)]
    places = {(one.topic, one.partition) for one in commits}
    known = ends(places)
    return OffsetsReport(
        offsets=sorted((_row(one, known) for one in commits), key=_sort_key),
        groups=sorted(map(_group, groups), key=lambda one: one["group"]),
        pending=sum(pending for _, _, pending, _ in folded),
        problems=[problem for *_, problems in folded for problem in problems],
    )


def _fold(path: str, max_decompressed_bytes: int) -> _Folded:
    state = GroupsState()
    problems = replay_batches(path, state.replay, max_decompressed_bytes=max_decompressed_bytes)
    return state.commits, list(state.groups.values()), state.pending, problems


def log_ends(plans: Iterable[Planned]) -> Ends:
    """The log end offset and the last stable offset of each partition."""
    ends: dict[tuple[str, int], tuple[int | None, int | None]] = {}
    for planned in plans:
        plan, segments = planned.plan, planned.plan["segments"]
        # A log without batches ends where its last segment begins.
        empty = segments[-1]["base_offset"] if segments else None
        end = empty if plan["next_offset"] is None else plan["next_offset"]
        stable = end if plan["last_stable_offset"] is None else plan["last_stable_offset"]
        ends[plan["topic"], plan["partition"]] = end, stable
    return ends


def _row(commit: Commit, ends: Ends) -> CommittedOffset:
    end, stable = ends.get((commit.topic, commit.partition), (None, None))
    return CommittedOffset(
        group=commit.group,
        topic=commit.topic,
        partition=commit.partition,
        offset=commit.offset,
        leader_epoch=commit.leader_epoch,
        metadata=commit.metadata,
        commit_timestamp=commit.commit_timestamp,
        expire_timestamp=commit.expire_timestamp,
        log_end_offset=end,
        last_stable_offset=stable,
        lag=None if end is None else end - commit.offset,
        committed_lag=None if stable is None else stable - commit.offset,
    )


def _sort_key(row: CommittedOffset) -> tuple[str, str, int]:
    return row["group"], row["topic"], row["partition"]


def _group(group: GroupState) -> ConsumerGroup:
    return ConsumerGroup(
        group=group.group,
        type=group.type,
        state=group.state,
        epoch=group.epoch,
        protocol_type=group.protocol_type,
        protocol=group.protocol,
        members=group.members,
    )
