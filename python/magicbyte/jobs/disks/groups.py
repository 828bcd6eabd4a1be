"""Groups of every kind, with their positions in the logs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import TypedDict

from magicbyte._core import LISTED, LegacyBatch, Record, RecordBatch
from magicbyte.internal_topics.share_groups import SharePartition, SharePartitions
from magicbyte.jobs.find.replay import replay
from magicbyte.jobs.offsets import (
    CommittedOffset,
    ConsumerGroup,
    Ends,
    LogRange,
    OffsetsReport,
    count_offsets,
)
from magicbyte.model import PartitionListing

__all__ = ["ClusterGroup", "Position", "groups_of", "share_partitions"]


class Position(TypedDict):
    """A group's position in a partition."""

    topic: str
    partition: int
    offset: int
    """The offset at which the group continues; the start offset of a share group."""
    log_start_offset: int | None
    """Of the newest copy here, as are the others; None if there is none."""
    log_end_offset: int | None
    lag: int | None
    """Records up to the end of the log, by offsets, without those that a share group has already done."""
    lost_ahead: int | None
    """Offsets from `offset` on that no copy here has; None if there is no copy."""
    lost_ranges: list[tuple[int, int]]
    """Those offsets (inclusive), at most the first `LISTED` ranges."""
    out_of_range: bool
    """True if `offset` is before the start or after the end of the log: the group would start where its
    `auto.offset.reset` says."""


class ClusterGroup(ConsumerGroup):
    """A group and its positions."""

    positions: list[Position]


def share_partitions(
    listings: Iterable[PartitionListing], max_decompressed_bytes: int
) -> tuple[list[SharePartition], list[str]]:
    """The positions of share groups in these partitions of `__share_group_state`, and problems."""
    state, problems = SharePartitions(), []

    def apply(batch: RecordBatch | LegacyBatch, record: Record) -> None:
        if not batch.is_control:
            state.replay(record.key_bytes, record.value_bytes)

    for listing in listings:
        problems += replay(listing["path"], apply, max_decompressed_bytes=max_decompressed_bytes)
    return state.states, problems


def groups_of(
    report: OffsetsReport,
    shares: Iterable[SharePartition],
    topics: Mapping[str, str],
    ends: Ends,
) -> list[ClusterGroup]:
    """The groups of the report and those of `shares`; `topics` has the names of topics by id."""
    positions: dict[str, list[Position]] = defaultdict(list)
    for commit in report["offsets"]:
        positions[commit["group"]].append(_committed(commit, ends))
    for share in shares:
        if share.start_offset is not None:
            # Without its topic's name, the position still counts: the id names it.
            topic = topics.get(share.topic_id, share.topic_id)
            positions[share.group].append(_shared(share, topic, share.start_offset, ends))
    groups = {group["group"]: group for group in report["groups"]}
    for name in positions.keys() - groups.keys():
        groups[name] = _without_record(name)
    return [
        ClusterGroup(**group, positions=sorted(positions[name], key=_place))
        for name, group in sorted(groups.items())
    ]


def _without_record(name: str) -> ConsumerGroup:
    """A group that only commits, as of a consumer that is assigned its partitions by hand."""
    return ConsumerGroup(
        group=name, type="classic", state="Empty", epoch=None, protocol_type=None, protocol=None, members={}
    )


def _place(position: Position) -> tuple[str, int]:
    return position["topic"], position["partition"]


def _committed(commit: CommittedOffset, ends: Ends) -> Position:
    log = ends.get((commit["topic"], commit["partition"]))
    return Position(
        topic=commit["topic"],
        partition=commit["partition"],
        offset=commit["offset"],
        log_start_offset=commit["log_start_offset"],
        log_end_offset=commit["log_end_offset"],
        lag=commit["lag"],
        lost_ahead=commit["lost_ahead"],
        lost_ranges=[] if log is None else log.lost_from(commit["offset"])[:LISTED],
        out_of_range=commit["out_of_range"],
    )


def _shared(share: SharePartition, topic: str, start: int, ends: Ends) -> Position:
    log = ends.get((topic, share.partition))
    known = log or LogRange()
    lost: Sequence[tuple[int, int]] = [] if log is None else log.lost_from(start)
    return Position(
        topic=topic,
        partition=share.partition,
        offset=start,
        log_start_offset=known.start,
        log_end_offset=known.end,
        lag=None if known.end is None else known.end - start - (share.delivery_complete or 0),
        lost_ahead=None if log is None else count_offsets(lost),
        lost_ranges=list(lost[:LISTED]),
        out_of_range=not known.has_position(start),
    )
