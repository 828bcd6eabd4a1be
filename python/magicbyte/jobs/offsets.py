"""The job behind `magicbyte offsets`: what each consumer group has committed, and how far behind it is."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase
from functools import partial
from typing import TypedDict

from magicbyte._core import DEFAULT_MAX_DECOMPRESSED_BYTES, Record
from magicbyte.internal_topics.groups import Commit, GroupsState, GroupState
from magicbyte.jobs.engines import Engine
from magicbyte.jobs.failure import RefusedError
from magicbyte.jobs.partitions import list_partitions
from magicbyte.jobs.plan import count_of, plan_partitions
from magicbyte.jobs.progress import NO_PROGRESS, Progress
from magicbyte.jobs.replay import Batch, replay
from magicbyte.model import PartitionListing

__all__ = ["CONSUMER_OFFSETS", "CommittedOffset", "ConsumerGroup", "OffsetsReport", "offsets"]

CONSUMER_OFFSETS = "__consumer_offsets"


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


_Folded = tuple[list[Commit], list[GroupState], int, list[str]]


def offsets(
    sources: Sequence[str],
    engine: Engine,
    *,
    group: str = "*",
    max_decompressed_bytes: int = DEFAULT_MAX_DECOMPRESSED_BYTES,
    progress: Progress = NO_PROGRESS,
) -> OffsetsReport:
    """Reads the `__consumer_offsets` at and below `sources` as a group coordinator does when it starts.

    `group` is a pattern with the wildcards `*`, `?` and `[...]`. The logs that the groups have offsets in are
    scanned, headers only, for their ends.

    Raises:
        RefusedError: if there is no `__consumer_offsets`, or a partition is found twice.

    """
    listings = list_partitions(sources, distinct=True)
    own = [one for one in listings if one["topic"] == CONSUMER_OFFSETS]
    if not own:
        raise RefusedError(
            f"no partition of {CONSUMER_OFFSETS} below {', '.join(sources)}: groups commit there"
        )
    folded: list[_Folded] = engine.map(
        partial(_fold, max_decompressed_bytes=max_decompressed_bytes),
        [one["path"] for one in own],
        name=f"magicbyte offsets: {count_of(len(own), 'partition')}",
        sizes=[sum(segment["size"] for segment in one["segments"]) for one in own],
        progress=progress,
    )
    commits = [one for found, _, _, _ in folded for one in found if fnmatchcase(one.group, group)]
    groups = [one for _, found, _, _ in folded for one in found if fnmatchcase(one.group, group)]
    places = {(one.topic, one.partition) for one in commits}
    ends = _ends([one for one in listings if (one["topic"], one["partition"]) in places], engine, progress)
    return OffsetsReport(
        offsets=sorted((_row(one, ends) for one in commits), key=_sort_key),
        groups=sorted(map(_group, groups), key=lambda one: one["group"]),
        pending=sum(pending for _, _, pending, _ in folded),
        problems=[problem for *_, problems in folded for problem in problems],
    )


def _fold(path: str, max_decompressed_bytes: int) -> _Folded:
    state = GroupsState()

    def apply(batch: Batch, record: Record) -> None:
        producer = batch.producer_id if batch.is_transactional else None
        if not batch.is_control:
            state.replay(record.offset, record.key_bytes, record.value_bytes, producer)
        elif producer is not None and (control := record.control) is not None:
            state.end_transaction(producer, committed=control["type"] == "COMMIT")

    problems = replay(path, apply, max_decompressed_bytes=max_decompressed_bytes)
    return state.commits, list(state.groups.values()), state.pending, problems


_Ends = dict[tuple[str, int], tuple[int | None, int | None]]


def _ends(listings: Sequence[PartitionListing], engine: Engine, progress: Progress) -> _Ends:
    """The log end offset and the last stable offset of each partition."""
    if not listings:
        return {}
    ends: _Ends = {}
    for planned in plan_partitions(listings, engine, progress=progress):
        plan, segments = planned.plan, planned.listing["segments"]
        # A log without batches ends where its last segment begins.
        empty = segments[-1]["base_offset"] if segments else None
        end = empty if plan["next_offset"] is None else plan["next_offset"]
        stable = end if plan["last_stable_offset"] is None else plan["last_stable_offset"]
        ends[plan["topic"], plan["partition"]] = end, stable
    return ends


def _row(commit: Commit, ends: _Ends) -> CommittedOffset:
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
