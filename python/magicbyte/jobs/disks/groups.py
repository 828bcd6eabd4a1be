"""Groups of every kind, with their positions in the logs."""

from __future__ import annotations

from collections import defaultdict
from typing import TypedDict

from magicbyte._core import LISTED
from magicbyte.jobs.offsets import CommittedOffset, ConsumerGroup, OffsetsReport
from magicbyte.jobs.run.log_ranges import Ends
from magicbyte.jobs.share_offsets import DeliveryBatch, ShareOffset

__all__ = ["ClusterGroup", "Position", "ShareState", "groups_of"]


class ShareState(TypedDict):
    """A share group's state of a partition, with the fields of `ShareOffset`."""

    leader_epoch: int | None
    state_epoch: int | None
    delivery_complete_count: int | None
    state_batches: list[DeliveryBatch] | None
    state_partition: int | None
    state_log: str | None


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
    share_state: ShareState | None
    """None for groups of other types."""


class ClusterGroup(ConsumerGroup):
    """A group and its positions."""

    positions: list[Position]


def groups_of(report: OffsetsReport, ends: Ends) -> list[ClusterGroup]:
    """The groups of the report with their positions. What a share group has not read is no position."""
    positions: dict[str, list[Position]] = defaultdict(list)
    for commit in report["offsets"]:
        positions[commit["group"]].append(_committed(commit, ends))
    for share in report["share_offsets"]:
        if share["start_offset"] is not None:
            positions[share["group"]].append(_shared(share, share["start_offset"], ends))
    groups = {group["group"]: group for group in report["groups"]}
    for name in positions.keys() - groups.keys():
        groups[name] = _without_record(name, "share" if positions[name][0]["share_state"] else "classic")
    return [
        ClusterGroup(**group, positions=sorted(positions[name], key=_place))
        for name, group in sorted(groups.items())
    ]


def _without_record(name: str, type_: str) -> ConsumerGroup:
    """A group that only has positions: of a consumer that is assigned its partitions by hand, or one whose
    records are not here.
    """
    return ConsumerGroup(
        group=name,
        type=type_,
        state="Empty",
        epoch=None,
        assignment_epoch=None,
        protocol_type=None,
        protocol=None,
        members={},
    )


def _place(position: Position) -> tuple[str, int]:
    return position["topic"], position["partition"]


def _committed(commit: CommittedOffset, ends: Ends) -> Position:
    return Position(
        topic=commit["topic"],
        partition=commit["partition"],
        offset=commit["offset"],
        log_start_offset=commit["log_start_offset"],
        log_end_offset=commit["log_end_offset"],
        lag=commit["lag"],
        lost_ahead=commit["lost_ahead"],
        lost_ranges=_lost_ranges(commit, commit["offset"], ends),
        out_of_range=commit["out_of_range"],
        share_state=None,
    )


def _shared(share: ShareOffset, start: int, ends: Ends) -> Position:
    return Position(
        topic=share["topic"],
        partition=share["partition"],
        offset=start,
        log_start_offset=share["log_start_offset"],
        log_end_offset=share["log_end_offset"],
        lag=share["lag"],
        lost_ahead=share["lost_ahead"],
        lost_ranges=_lost_ranges(share, start, ends),
        out_of_range=share["out_of_range"],
        share_state=ShareState(
            leader_epoch=share["leader_epoch"],
            state_epoch=share["state_epoch"],
            delivery_complete_count=share["delivery_complete_count"],
            state_batches=share["state_batches"],
            state_partition=share["state_partition"],
            state_log=share["state_log"],
        ),
    )


def _lost_ranges(row: CommittedOffset | ShareOffset, offset: int, ends: Ends) -> list[tuple[int, int]]:
    log = ends.get((row["topic"], row["partition"]))
    return [] if log is None else log.lost_from(offset)[:LISTED]
