"""The positions of groups in the files' `__consumer_offsets`, compared with those of a running cluster."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import groupby
from typing import Literal, TypedDict

from magicbyte import _core
from magicbyte.jobs.find.choice import PartitionChoice
from magicbyte.jobs.offsets import offsets
from magicbyte.jobs.run.engines import Engine
from magicbyte.jobs.run.progress import NO_PROGRESS, Progress
from magicbyte.options.read import OffsetsOptions

__all__ = ["GroupComparison", "GroupPosition", "compare_groups"]


class GroupPosition(TypedDict):
    """The position of a group in a partition, on both sides."""

    group: str
    topic: str
    partition: int
    result: Literal["equal", "ahead", "behind", "missing"]
    """The cluster's position, seen from that of the files."""
    offset: int
    """The offset at which the group continues, by the files."""
    cluster_offset: int | None
    """The same by the cluster; None if it has no position."""


class GroupComparison(TypedDict):
    """The positions of all groups that have some in the files."""

    equal: int
    """The number of positions that are the same on both sides."""
    ahead: int
    """The number that the cluster has later: no difference, since consumers may have gone on."""
    behind: int
    missing: int
    unread: bool
    """True if `offsets` has problems with the files: some positions may be missing."""
    positions: list[GroupPosition]
    """The first `LISTED` positions that are not equal, sorted by group, topic and partition."""
    positions_left_out: int


def compare_groups(
    sources: Sequence[str],
    cluster: _core.ClusterReader,
    engine: Engine,
    choice: PartitionChoice,
    max_decompressed_bytes: int,
    progress: Progress = NO_PROGRESS,
) -> GroupComparison:
    """Compares committed offsets. Groups that only the cluster has do not count.

    Raises:
        RefusedError: if the sources have no `__consumer_offsets`.
        OSError: if the cluster does not answer or refuses.

    """
    options = OffsetsOptions(max_decompressed_bytes=max_decompressed_bytes)
    report = offsets(sources, engine, options, choice=choice, progress=progress)
    counts: Counter[str] = Counter()
    differing: list[GroupPosition] = []
    for group, positions in groupby(report["offsets"], key=lambda one: one["group"]):
        there = {
            (topic, partition): offset for topic, partition, offset, _, _ in cluster.committed_offsets(group)
        }
        for one in positions:
            now = there.get((one["topic"], one["partition"]))
            result = _result(one["offset"], now)
            counts[result] += 1
            if result != "equal" and len(differing) < _core.LISTED:
                differing.append(
                    GroupPosition(
                        group=group,
                        topic=one["topic"],
                        partition=one["partition"],
                        result=result,
                        offset=one["offset"],
                        cluster_offset=now,
                    )
                )
    return GroupComparison(
        equal=counts["equal"],
        ahead=counts["ahead"],
        behind=counts["behind"],
        missing=counts["missing"],
        unread=bool(report["problems"]),
        positions=differing,
        positions_left_out=counts.total() - counts["equal"] - len(differing),
    )


def _result(offset: int, now: int | None) -> Literal["equal", "ahead", "behind", "missing"]:
    if now is None:
        return "missing"
    if now == offset:
        return "equal"
    return "ahead" if now > offset else "behind"
