"""The job of `magicbyte offsets`: the positions and the lag of each group."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import partial
from typing import NamedTuple, TypedDict

from magicbyte._core import DEFAULT_MAX_DECOMPRESSED_BYTES, ClusterReader
from magicbyte.errors import RefusedError
from magicbyte.internal_topics.groups import Commit, GroupsState, GroupState, ShareTopic
from magicbyte.internal_topics.names import CLUSTER_METADATA, CONSUMER_OFFSETS, SHARE_GROUP_STATE
from magicbyte.jobs.describing.cluster import Description, describe_cluster
from magicbyte.jobs.describing.groups import DescribedGroup, LivePosition, SharePosition, describe_groups
from magicbyte.jobs.find.choice import EVERYTHING, PartitionChoice
from magicbyte.jobs.find.cluster import read_cluster
from magicbyte.jobs.find.partitions import Inputs, find_inputs, list_directory
from magicbyte.jobs.find.replay import replay_batches
from magicbyte.jobs.run.engines import Engine
from magicbyte.jobs.run.log_ranges import Ends, LogRange, log_ends
from magicbyte.jobs.run.plan import count_of, plan_partitions
from magicbyte.jobs.run.progress import NO_PROGRESS, Progress
from magicbyte.jobs.share_offsets import (
    ShareOffset,
    ShareStates,
    live_share_offset,
    read_share_states,
    with_log,
)
from magicbyte.live import only_cluster, open_cluster
from magicbyte.model import PartitionListing
from magicbyte.options.read import OffsetsOptions
from magicbyte.storage.location import ClusterUrl, locate

__all__ = [
    "CommittedOffset",
    "ConsumerGroup",
    "OffsetsReport",
    "Place",
    "PositionChoice",
    "csv_lines",
    "offsets",
    "offsets_of",
]


@dataclass(frozen=True)
class PositionChoice:
    """The positions to report."""

    partitions: PartitionChoice = EVERYTHING
    group: str = "*"
    """The name of a group, or a pattern with `*`."""
    as_of: int | None = None
    """The state at this time (ms); by default the latest: see `replay`."""

    def includes(self, group: str, topic: str, partition: int) -> bool:
        """True if the position of this group in this partition is one of them."""
        return self.includes_group(group) and self.partitions.includes(topic, partition)

    def includes_group(self, group: str) -> bool:
        """True if the group is one whose positions are reported."""
        return fnmatchcase(group, self.group)


EVERY_POSITION = PositionChoice()

Place = tuple[str, int, int]
"""A topic, a partition, and the offset at which a group continues."""


class CommittedOffset(TypedDict):
    """A group's committed offset of a partition. Times are ms since 1970."""

    group: str
    topic: str
    partition: int
    offset: int
    """The offset at which the group continues."""
    leader_epoch: int | None
    metadata: str
    commit_timestamp: int | None
    """None for a running cluster, which does not tell it."""
    expire_timestamp: int | None
    """The time of expiry, only if the consumer chose one (before Kafka 2.1); None for a running cluster."""
    log_end_offset: int | None
    """The log end offset of this copy, or the high watermark of a running cluster; None if the partition is
    not there."""
    last_stable_offset: int | None
    """The offset at which `read_committed` consumers end: `log_end_offset`, or the first open transaction."""
    log_start_offset: int | None
    """The first offset of this copy; None if the partition is not in it, or is empty."""
    lag: int | None
    """Records up to the end of the log, by offsets. Negative if the copy ends before the commit."""
    committed_lag: int | None
    """The same up to the last stable offset."""
    lost_ahead: int | None
    """Offsets from `offset` on that are in no file. Only `verify` finds damage inside files. None for a
    running cluster."""
    out_of_range: bool
    """True if the offset is before the start or after the end of this copy: a broker would answer
    OFFSET_OUT_OF_RANGE, and the consumer would start where its `auto.offset.reset` says."""


class ConsumerGroup(TypedDict):
    """A group, as far as the log or a running cluster tells."""

    group: str
    type: str
    """`classic`, `consumer`, `share` or `streams`."""
    state: str
    """`Empty` or `Stable`: a broker keeps the state of a rebalance in memory. A running cluster tells any
    state."""
    epoch: int | None
    """The group's epoch; a classic group's generation, which a running cluster does not tell."""
    assignment_epoch: int | None
    """The epoch of the last assignment; None for a classic group."""
    protocol_type: str | None
    protocol: str | None
    members: dict[str, dict[str, str | None]]
    """`instance_id`, `client_id` and `client_host` by member id."""


class OffsetsReport(TypedDict):
    """The output of `magicbyte offsets --json`."""

    offsets: list[CommittedOffset]
    """The committed offsets, sorted by group, topic and partition."""
    share_offsets: list[ShareOffset]
    """The positions of share groups, in the same order."""
    groups: list[ConsumerGroup]
    pending: int | None
    """Offsets committed in transactions that had not ended: not in `offsets`. None for a running cluster."""
    problems: list[str]
    """Problems with reading `__consumer_offsets`, `__share_group_state` or the logs' ends, or what a running
    cluster does not tell."""


class _Folded(NamedTuple):
    """The state of a partition of `__consumer_offsets`."""

    commits: list[Commit]
    groups: list[GroupState]
    share_topics: dict[str, list[ShareTopic]]
    pending: int
    problems: list[str]


def offsets(
    sources: Sequence[str],
    engine: Engine,
    options: OffsetsOptions,
    *,
    choice: PartitionChoice = EVERYTHING,
    progress: Progress = NO_PROGRESS,
) -> OffsetsReport:
    """Reads the `__consumer_offsets` and `__share_group_state` at and below `sources` as their coordinators
    do when they start.

    `choice` selects among the partitions that have positions, and which copies are read. The batch headers
    of the logs that groups have positions in are scanned, to find the ends of the logs. Of several copies of
    a partition, the newest one is read, or the one that `choice.prefer` names. A running cluster is asked for
    all of this.

    Raises:
        RefusedError: if there is no `__consumer_offsets`, or no group that matches.
        OSError: if a running cluster does not answer or refuses.

    """
    url = only_cluster(sources, options.command_config)
    if url is not None:
        report = _offsets_of_cluster(url, options, choice)
    else:
        report = _offsets_of_files(sources, engine, options, choice, progress)
    found = report["groups"] or report["offsets"] or report["share_offsets"]
    # Where something could not be read, the group may be.
    if options.group != EVERY_POSITION.group and not found and not report["problems"]:
        where = "" if choice == EVERYTHING else " and has positions in the partitions chosen"
        raise RefusedError(f"no group matches {options.group!r}{where}")
    return report


def _offsets_of_files(
    sources: Sequence[str],
    engine: Engine,
    options: OffsetsOptions,
    choice: PartitionChoice,
    progress: Progress,
) -> OffsetsReport:
    consult = {CONSUMER_OFFSETS, SHARE_GROUP_STATE, CLUSTER_METADATA}
    inputs = find_inputs(sources, choice, distinct=True, newest=True, consult=consult, may_be_none=True)
    own = inputs.consulted_partitions(CONSUMER_OFFSETS)
    shares = _share_states(inputs, options.max_decompressed_bytes)
    if not (own or shares.here):
        raise RefusedError(
            f"no partition of {CONSUMER_OFFSETS} or {SHARE_GROUP_STATE} below {', '.join(sources)}: the"
            " positions of groups are there"
        )

    def ends(positions: Collection[Place]) -> Ends:
        places = {(topic, partition) for topic, partition, _ in positions}
        listings = [
            _listed_again(listing)
            for listing in inputs.listings
            if (listing["topic"], listing["partition"]) in places
        ]
        return log_ends(plan_partitions(listings, engine, progress=progress)) if listings else {}

    return offsets_of(
        own,
        ends,
        engine,
        shares=shares,
        choice=PositionChoice(choice, options.group),
        max_decompressed_bytes=options.max_decompressed_bytes,
        progress=progress,
    )


def _share_states(inputs: Inputs, max_decompressed_bytes: int) -> ShareStates:
    """The state of share groups. The metadata has the names of topics; a broker needs it, but many sources
    have none.
    """
    listings = inputs.consulted_partitions(SHARE_GROUP_STATE)
    if not listings:
        return ShareStates()
    cluster = read_cluster(inputs.consulted_partition(CLUSTER_METADATA))
    return read_share_states(listings, cluster, max_decompressed_bytes)


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
    ends: Callable[[Collection[Place]], Ends],
    engine: Engine,
    *,
    shares: ShareStates | None = None,
    choice: PositionChoice = EVERY_POSITION,
    max_decompressed_bytes: int = DEFAULT_MAX_DECOMPRESSED_BYTES,
    progress: Progress = NO_PROGRESS,
) -> OffsetsReport:
    """Reads `own`, partitions of `__consumer_offsets`; `ends` gets the positions, and returns logs' offsets.

    Without `shares`, the positions of share groups are left out.
    """
    folded = engine.map(
        partial(_fold, as_of=choice.as_of, max_decompressed_bytes=max_decompressed_bytes),
        [one["path"] for one in own],
        name=f"magicbyte offsets: {count_of(len(own), 'partition')}",
        sizes=[sum(segment["size"] for segment in one["segments"]) for one in own],
        progress=progress,
    )
    chosen = choice.includes
    commits = [one for of in folded for one in of.commits if chosen(one.group, one.topic, one.partition)]
    groups = [one for of in folded for one in of.groups if choice.includes_group(one.group)]
    problems = [problem for of in folded for problem in of.problems]
    rows: list[ShareOffset] = []
    if shares is not None:
        initialized = {name: topics for of in folded for name, topics in of.share_topics.items()}
        every = list(shares.rows(initialized))
        rows = [row for row in every if chosen(row["group"], row["topic"], row["partition"])]
        problems += [*shares.problems, *shares.damage(every)]
    known = ends(
        [
            *((one.topic, one.partition, one.offset) for one in commits),
            *((row["topic"], row["partition"], row["start_offset"] or 0) for row in rows),
        ]
    )
    return OffsetsReport(
        offsets=sorted((_row(commit, known) for commit in commits), key=_sort_key),
        share_offsets=[with_log(row, known) for row in rows],
        groups=sorted(map(_group, groups), key=lambda one: one["group"]),
        pending=sum(of.pending for of in folded),
        problems=problems,
    )


def _fold(path: str, as_of: int | None, max_decompressed_bytes: int) -> _Folded:
    state = GroupsState()
    problems = replay_batches(path, state.replay, as_of=as_of, max_decompressed_bytes=max_decompressed_bytes)
    groups = list(state.groups.values())
    return _Folded(state.commits, groups, state.share_topics, state.pending, problems)


def _offsets_of_cluster(url: ClusterUrl, options: OffsetsOptions, choice: PartitionChoice) -> OffsetsReport:
    reader = open_cluster(url.cluster, options.command_config)
    description = describe_cluster(reader)
    chosen = PositionChoice(choice, options.group)
    found = describe_groups(reader, description, chosen.includes_group)

    def includes(one: LivePosition | SharePosition) -> bool:
        return url.includes(one.topic, one.partition) and chosen.includes(one.group, one.topic, one.partition)

    positions = [one for one in found.positions if includes(one)]
    shared = [one for one in found.share_positions if includes(one)]
    places = {(one.topic, one.partition) for one in positions} | {
        (one.topic, one.partition) for one in shared
    }
    ends, problems = _ends_of_cluster(reader, description, places)
    states = description.topics.get(SHARE_GROUP_STATE)
    rows = [live_share_offset(one, None if states is None else len(states.partitions)) for one in shared]
    return OffsetsReport(
        offsets=sorted((_row(one, ends) for one in positions), key=_sort_key),
        share_offsets=[with_log(row, ends) for row in sorted(rows, key=_sort_key)],
        groups=sorted(map(_group, found.groups), key=lambda one: one["group"]),
        pending=None,
        problems=[*found.problems, *problems],
    )


def _ends_of_cluster(
    reader: ClusterReader, description: Description, places: Collection[tuple[str, int]]
) -> tuple[Ends, list[str]]:
    """The offsets of the logs in a running cluster, and which of them nobody can tell."""
    leaders = {
        (name, number): partition.leader
        for name, topic in description.topics.items()
        for number, partition in topic.partitions.items()
    }
    led = sorted(place for place in places if leaders.get(place, -1) >= 0)
    bounds = reader.offsets(led, "read_uncommitted") if led else []
    stable = reader.offsets(led, "read_committed") if led else []
    ends = {
        place: LogRange(start, end, last_stable, has_files=False)
        for place, (start, end), (_, last_stable) in zip(led, bounds, stable, strict=True)
    }
    without = sorted(place for place in places if leaders.get(place) == -1)
    return ends, [
        f"{topic}-{partition} has no leader: its log's end is unknown" for topic, partition in without
    ]


def _row(commit: Commit | LivePosition, ends: Ends) -> CommittedOffset:
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
        lost_ahead=None if log is None else log.lost_ahead(commit.offset),
        out_of_range=not known.has_position(commit.offset),
    )


def _sort_key(row: CommittedOffset | ShareOffset) -> tuple[str, str, int]:
    return row["group"], row["topic"], row["partition"]


def _group(group: GroupState | DescribedGroup) -> ConsumerGroup:
    return ConsumerGroup(
        group=group.group,
        type=group.type,
        state=group.state,
        epoch=group.epoch,
        assignment_epoch=group.assignment_epoch,
        protocol_type=group.protocol_type,
        protocol=group.protocol,
        members=group.members,
    )


def csv_lines(offsets: Iterable[tuple[str, str, int, int]]) -> Iterator[str]:
    """The lines that `ConsumerGroupCommand` parses, of groups, topics, partitions and offsets: without a
    header, quoted where it is necessary.
    """
    for row in offsets:
        line = io.StringIO()
        csv.writer(line, lineterminator="").writerow(row)
        yield line.getvalue()
