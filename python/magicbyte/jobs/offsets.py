"""The job of `magicbyte offsets`: the committed offsets and the lag of each consumer group."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import partial
from typing import TypedDict

from magicbyte._core import DEFAULT_MAX_DECOMPRESSED_BYTES
from magicbyte.errors import RefusedError
from magicbyte.internal_topics.groups import Commit, GroupsState, GroupState
from magicbyte.internal_topics.names import CONSUMER_OFFSETS
from magicbyte.jobs.find.choice import EVERYTHING, PartitionChoice
from magicbyte.jobs.find.partitions import find_inputs, list_directory
from magicbyte.jobs.find.problems import lost_ranges
from magicbyte.jobs.find.replay import replay_batches
from magicbyte.jobs.run.engines import Engine
from magicbyte.jobs.run.plan import Planned, count_of, plan_partitions
from magicbyte.jobs.run.progress import NO_PROGRESS, Progress
from magicbyte.model import PartitionListing
from magicbyte.options.read import OffsetsOptions
from magicbyte.storage.location import locate

__all__ = [
    "CommittedOffset",
    "ConsumerGroup",
    "Ends",
    "LogRange",
    "OffsetsReport",
    "count_offsets",
    "log_ends",
    "log_range",
    "offsets",
    "offsets_of",
]


class CommittedOffset(TypedDict):
    """A group's committed offset of a partition. Times are ms since 1970."""

    group: str
    topic: str
    partition: int
    offset: int
    """The offset at which the group continues."""
    leader_epoch: int | None
    metadata: str
    commit_timestamp: int
    expire_timestamp: int | None
    """The time of expiry, only if the consumer chose one (before Kafka 2.1)."""
    log_end_offset: int | None
    """The log end offset of this copy; None if the partition is not in it."""
    last_stable_offset: int | None
    """The offset at which `read_committed` consumers end: `log_end_offset`, or the first open transaction."""
    log_start_offset: int | None
    """The first offset of this copy; None if the partition is not in it, or is empty."""
    lag: int | None
    """Records up to the end of the log, by offsets. Negative if the copy ends before the commit."""
    committed_lag: int | None
    """The same up to the last stable offset."""
    lost_ahead: int | None
    """Offsets from `offset` on that are in no file. Only `verify` finds damage inside files."""
    out_of_range: bool
    """True if the offset is before the start or after the end of this copy: a broker would answer
    OFFSET_OUT_OF_RANGE, and the consumer would start where its `auto.offset.reset` says."""


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
    """The output of `magicbyte offsets --json`."""

    offsets: list[CommittedOffset]
    """The committed offsets, sorted by group, topic and partition."""
    groups: list[ConsumerGroup]
    pending: int
    """Offsets committed in transactions that had not ended: not in `offsets`."""
    problems: list[str]
    """Problems with reading `__consumer_offsets` or the logs' ends."""


@dataclass(frozen=True)
class LogRange:
    """The offsets of a log; None for unknown offsets."""

    start: int | None = None
    end: int | None = None
    """Exclusive."""
    last_stable: int | None = None
    """The offset at which `read_committed` consumers end (exclusive)."""
    lost: Sequence[tuple[int, int]] = ()
    """Ranges of offsets (inclusive) that are in no file."""

    def lost_from(self, offset: int) -> list[tuple[int, int]]:
        """The ranges of lost offsets from this one on."""
        return [(max(first, offset), last) for first, last in self.lost if last >= offset]

    def has_position(self, offset: int) -> bool:
        """False if a broker would answer OFFSET_OUT_OF_RANGE to a consumer that continues at this offset."""
        before = self.start is not None and offset < self.start
        after = self.end is not None and offset > self.end
        return not (before or after)


def count_offsets(ranges: Iterable[tuple[int, int]]) -> int:
    """The number of offsets in ranges (inclusive)."""
    return sum(last + 1 - first for first, last in ranges)


Ends = Mapping[tuple[str, int], LogRange]
"""The offsets of logs, by topic and partition."""

_Folded = tuple[list[Commit], list[GroupState], int, list[str]]


def offsets(
    sources: Sequence[str],
    engine: Engine,
    options: OffsetsOptions,
    *,
    choice: PartitionChoice = EVERYTHING,
    progress: Progress = NO_PROGRESS,
) -> OffsetsReport:
    """Reads the `__consumer_offsets` at and below `sources` as a group coordinator does when it starts.

    `choice` selects among the partitions that have committed offsets, and which copies are read. The batch
    headers of the logs that groups have offsets in are scanned, to find the ends of the logs. Of several
    copies of a partition, the newest one is read, or the one that `choice.prefer` names.

    Raises:
        RefusedError: if there is no `__consumer_offsets`.

    """
    inputs = find_inputs(
        sources, choice, distinct=True, newest=True, consult={CONSUMER_OFFSETS}, may_be_none=True
    )
    if not inputs.consulted:
        raise RefusedError(
            f"no partition of {CONSUMER_OFFSETS} below {', '.join(sources)}: groups commit there"
        )

    def ends(commits: Collection[Commit]) -> Ends:
        places = {(commit.topic, commit.partition) for commit in commits}
        listings = [
            _listed_again(listing)
            for listing in inputs.listings
            if (listing["topic"], listing["partition"]) in places
        ]
        return log_ends(plan_partitions(listings, engine, progress=progress)) if listings else {}

    return offsets_of(
        inputs.consulted,
        ends,
        engine,
        choice=choice,
        group=options.group,
        max_decompressed_bytes=options.max_decompressed_bytes,
        progress=progress,
    )


def _listed_again(listing: PartitionListing) -> PartitionListing:
    """The listing of a partition that a running broker may have appended to since it was listed: groups may
    have committed offsets after that.
    """
    if listing["state"] != "current" or not locate(listing["path"]).is_live:
        return listing
    try:
        return {**list_directory(listing["path"]), "checkpoints": listing["checkpoints"]}
    except OSError:
        return listing  # its directory is gone, as the survey finds


def offsets_of(
    own: Sequence[PartitionListing],
    ends: Callable[[Collection[Commit]], Ends],
    engine: Engine,
    *,
    choice: PartitionChoice = EVERYTHING,
    group: str = "*",
    max_decompressed_bytes: int = DEFAULT_MAX_DECOMPRESSED_BYTES,
    progress: Progress = NO_PROGRESS,
) -> OffsetsReport:
    """Reads `own`, partitions of `__consumer_offsets`; `ends` gets the commits, and returns logs' offsets."""
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
    known = ends(commits)
    return OffsetsReport(
        offsets=sorted((_row(commit, known) for commit in commits), key=_sort_key),
        groups=sorted(map(_group, groups), key=lambda one: one["group"]),
        pending=sum(pending for _, _, pending, _ in folded),
        problems=[problem for *_, problems in folded for problem in problems],
    )


def _fold(path: str, max_decompressed_bytes: int) -> _Folded:
    state = GroupsState()
    problems = replay_batches(path, state.replay, max_decompressed_bytes=max_decompressed_bytes)
    return state.commits, list(state.groups.values()), state.pending, problems


def log_ends(plans: Iterable[Planned]) -> Ends:
    """The range of offsets of each partition."""
    return {(planned.plan["topic"], planned.plan["partition"]): log_range(planned) for planned in plans}


def log_range(planned: Planned) -> LogRange:
    """The range of offsets of a partition."""
    plan, segments = planned.plan, planned.plan["segments"]
    # A log without batches ends where its last segment begins.
    empty = segments[-1]["base_offset"] if segments else None
    end = empty if plan["next_offset"] is None else plan["next_offset"]
    stable = end if plan["last_stable_offset"] is None else plan["last_stable_offset"]
    checkpoints = planned.listing["checkpoints"]
    start = None if checkpoints is None else checkpoints["log_start_offset"]
    if start is None and segments:
        start = segments[0]["base_offset"]
    return LogRange(start, end, stable, lost_ranges(plan["problems"]))


def _row(commit: Commit, ends: Ends) -> CommittedOffset:
    log = ends.get((commit.topic, commit.partition))
    known = log or LogRange()
    start, end, stable = known.start, known.end, known.last_stable
    return CommittedOffset(
        group=commit.group,
        topic=commit.topic,
        partition=commit.partition,
        offset=commit.offset,
        leader_epoch=commit.leader_epoch,
        metadata=commit.metadata,
        commit_timestamp=commit.commit_timestamp,
        expire_timestamp=commit.expire_timestamp,
        log_start_offset=start,
        log_end_offset=end,
        last_stable_offset=stable,
        lag=None if end is None else end - commit.offset,
        committed_lag=None if stable is None else stable - commit.offset,
        lost_ahead=None if log is None else count_offsets(log.lost_from(commit.offset)),
        out_of_range=not known.has_position(commit.offset),
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
