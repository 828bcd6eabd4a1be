"""The report of a merge: which bytes came from where, what no copy has, and what was left out."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any, TypedDict

from magicbyte import _core
from magicbyte.jobs.find.partitions import SkippedDirectory
from magicbyte.jobs.find.problems import partition_problem
from magicbyte.jobs.merging.planning import PlannedMerge
from magicbyte.jobs.rewrite import Written
from magicbyte.jobs.run.accounting import Problems, listed
from magicbyte.jobs.run.plan import Planned
from magicbyte.model import LeftOutReason, Problem

__all__ = [
    "CopyAccount",
    "LeftOutRange",
    "MergeReport",
    "MergedPartition",
    "SourceRange",
    "has_losses",
    "merged_partition",
    "problems_of_merges",
]


class CopyAccount(TypedDict):
    """A copy, and what became of its bytes; `size` is the sum of the others."""

    path: str
    leader_epoch: int | None
    """The leader epoch of the last good batch; -1 for magic 0 and 1, None if there is no good batch."""
    next_offset: int | None
    """The offset after the last good batch."""
    diverged_at: int | None
    """The first offset that a follower of the merged log would truncate."""
    size: int
    """Bytes of the segments."""
    used_bytes: int
    same_bytes: int
    """Bytes that another copy has, too, from which they were taken."""
    left_out_bytes: int
    """Batches of another branch, and segments that end before the log's start."""
    damaged_bytes: int
    tail_bytes: int
    overlapping_bytes: int


class SourceRange(TypedDict):
    """Adjacent batches of the merged log, and the bytes that they are copied from."""

    path: str | None
    """The segment; None for batches that were repaired."""
    start: int
    end: int
    first_offset: int
    last_offset: int
    batches: int


class LeftOutRange(TypedDict):
    """Adjacent batches of a copy that are not in the merged log."""

    path: str
    first_offset: int
    last_offset: int
    leader_epoch: int
    batches: int
    size: int
    reason: LeftOutReason


class MergedPartition(TypedDict):
    """The merge of a partition's copies."""

    topic: str
    partition: int
    topic_id: str | None
    leader: str
    """The copy that leads: that of `prefer`, or the one whose last batch has the highest epoch and offset."""
    leader_epoch: int | None
    log_start_offset: int | None
    """The log's start, if a copy has records before it, which are not written."""
    next_offset: int
    """The offset after the last batch."""
    log_end_offset: int
    """The offset that the next batch gets. It is after `next_offset` if the log is known to have had more: an
    empty segment ends it then, so that no offset is assigned again."""
    known_from: str | None
    """The proof of that: a file, or a group's position."""
    not_believed: list[str]
    """Files that name an end so far away that no lost segment explains it."""
    cleaned_until: int | None
    """The end (exclusive) of the cleaned part of a compacted log, which is taken from one copy."""
    cleaned_copy: str | None
    copies: list[CopyAccount]
    ranges: list[SourceRange]
    """The first `LISTED` ranges."""
    ranges_left_out: int
    lost: list[tuple[int, int]]
    """First and last offsets that no copy has: the first `LISTED` ranges."""
    lost_left_out: int
    lost_offsets: int
    repaired_batches: int
    left_out: list[LeftOutRange]
    """The first `LISTED` ranges."""
    left_out_left_out: int
    balanced: bool
    """True if every byte of the copies is accounted for."""


def has_losses(partition: MergedPartition) -> bool:
    """True if offsets are lost, or batches are left out for another reason than that a copy was cleaned."""
    left_out = any(one["reason"] != "cleaned" for one in partition["left_out"])
    return partition["lost_offsets"] > 0 or left_out


class MergeReport(Problems):
    """The content of `reconciliation.json`."""

    magicbyte: str
    sources: list[str]
    options: dict[str, Any]
    balanced: bool
    """True if every byte of the copies is accounted for, and everything that was planned was written."""
    partitions: list[MergedPartition]
    skipped: list[SkippedDirectory]
    written: list[Written]
    """Empty if nothing was to be written."""


def merged_partition(merge: PlannedMerge) -> MergedPartition:
    """The report of one partition."""
    plan, partition = merge.plan, merge.partition
    holes = merge.lost
    ranges = _source_ranges(merge)
    left_out = [
        LeftOutRange(
            path=merge.copies[one["copy"]].listing["path"],
            first_offset=one["first_offset"],
            last_offset=one["last_offset"],
            leader_epoch=one["leader_epoch"],
            batches=one["batches"],
            size=one["size"],
            reason=one["reason"],
        )
        for one in plan["left_out"]
        if one["copy"] < len(partition.listings)
    ]
    copies = [_copy_account(merge, number, left_out) for number in range(len(partition.listings))]
    last = merge.alignment["copies"][plan["leader"]]["last"]
    cleaned = plan["cleaned_copy"]
    repairs = len(partition.listings)
    return MergedPartition(
        topic=partition.topic,
        partition=partition.partition,
        topic_id=partition.topic_id,
        leader=copies[plan["leader"]]["path"],
        leader_epoch=None if last is None else last[0],
        log_start_offset=plan["log_start_offset"],
        next_offset=plan["next_offset"],
        log_end_offset=merge.log_end,
        known_from=next((one.source for one in merge.known_ends if one.offset == merge.log_end), None),
        not_believed=[
            f"{one.source}: offset {one.offset:,}" for one in merge.known_ends if one.offset > merge.log_end
        ],
        cleaned_until=merge.cleaned_until,
        cleaned_copy=None if cleaned is None else copies[cleaned]["path"],
        copies=copies,
        ranges=ranges[: _core.LISTED],
        ranges_left_out=max(0, len(ranges) - _core.LISTED),
        lost=holes[: _core.LISTED],
        lost_left_out=max(0, len(holes) - _core.LISTED),
        lost_offsets=sum(last - first + 1 for first, last in holes),
        repaired_batches=sum(one["batches"] for one in plan["ranges"] if one["copy"] == repairs),
        left_out=left_out[: _core.LISTED],
        left_out_left_out=max(0, len(left_out) - _core.LISTED),
        balanced=all(map(_adds_up, copies)),
    )


def _source_ranges(merge: PlannedMerge) -> list[SourceRange]:
    def path(copy: int, segment: int) -> str | None:
        if copy == len(merge.partition.listings):
            return None
        return merge.copies[copy].plan["segments"][segment]["path"]

    return [
        SourceRange(
            path=path(one["copy"], one["segment"]),
            start=one["start"],
            end=one["end"],
            first_offset=one["first_offset"],
            last_offset=one["last_offset"],
            batches=one["batches"],
        )
        for one in merge.ranges
    ]


def _copy_account(merge: PlannedMerge, number: int, left_out: Sequence[LeftOutRange]) -> CopyAccount:
    planned = merge.copies[number]
    aligned, merged = merge.alignment["copies"][number], merge.plan["copies"][number]
    path = planned.listing["path"]
    last, deleted = aligned["last"], merge.deleted_bytes(number)
    diverged = (
        one["first_offset"] for one in left_out if one["path"] == path and one["reason"] == "diverged"
    )
    return CopyAccount(
        path=path,
        leader_epoch=None if last is None else last[0],
        next_offset=None if last is None else last[1] + 1,
        diverged_at=min(diverged, default=None),
        size=sum(segment["size"] for segment in planned.plan["segments"]),
        used_bytes=merged["used_bytes"] - deleted,
        same_bytes=merged["same_bytes"],
        left_out_bytes=merged["left_out_bytes"] + deleted,
        damaged_bytes=aligned["damaged_bytes"],
        tail_bytes=aligned["tail_bytes"],
        overlapping_bytes=aligned["overlapping_bytes"],
    )


def _adds_up(copy: CopyAccount) -> bool:
    good = copy["used_bytes"] + copy["same_bytes"] + copy["left_out_bytes"]
    return copy["size"] == good + copy["damaged_bytes"] + copy["tail_bytes"] + copy["overlapping_bytes"]


def problems_of_merges(merges: Sequence[PlannedMerge], written: Sequence[Problems]) -> Problems:
    """The problems of all copies, and of reading them again."""
    found: list[Problem] = []
    left_out = 0
    for merge in merges:
        found += _starts_that_differ(merge)
        for planned in merge.copies[: len(merge.partition.listings)]:
            directory = planned.listing["path"]
            found += [_in(directory, problem) for problem in planned.plan["problems"]]
        for planned, aligned in zip(merge.copies, merge.alignment["copies"], strict=True):
            directory = planned.listing["path"]
            found += [_in(directory, problem) for problem in aligned["problems"]]
            left_out += aligned["problems_left_out"]
    for task in written:
        found += task["problems"]
        left_out += task["problems_left_out"]
    return listed(found, left_out)


def _starts_that_differ(merge: PlannedMerge) -> Iterator[Problem]:
    """Copies that have records before the start of the merged log, which another copy decides."""
    plan, own = merge.plan, merge.copies[: len(merge.partition.listings)]
    starts = [plan["log_start_offset"]]
    if (cleaned := plan["cleaned_copy"]) is not None:
        starts.append(_start_of(own[cleaned]))
    start = max((start for start in starts if start is not None), default=None)
    for planned in own:
        begin = _start_of(planned)
        if start is not None and begin is not None and begin < start:
            yield partition_problem(
                merge.partition.topic,
                merge.partition.partition,
                "log_starts_differ",
                f"{planned.listing['path']} begins at offset {begin:,}, but another copy at {start:,}: "
                "the records before that are not in the merged log",
                first_lost_offset=begin,
                last_lost_offset=start - 1,
            )


def _start_of(planned: Planned) -> int | None:
    """The first offset of a copy, unless it has no segments; a checkpoint beyond its end is wrong."""
    plan = planned.plan
    bases = [segment["base_offset"] for segment in plan["segments"] if not segment["is_checkpoint"]]
    written, end = plan["log_start_offset"], plan["next_offset"]
    if written is not None and (end is None or written <= end):
        return max(written, min(bases, default=written))
    return min(bases, default=None)


def _in(directory: str, problem: Problem) -> Problem:
    """A problem whose file is named with its directory, since each copy has a file of that name."""
    segment = problem["segment"]
    return problem if segment is None else {**problem, "segment": os.path.join(directory, segment)}
