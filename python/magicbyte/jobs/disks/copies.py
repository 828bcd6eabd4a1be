"""The copies of partitions: how far each reaches, and which offsets none of them has."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import partial

from magicbyte import _core
from magicbyte.jobs.find.problems import lost_ranges
from magicbyte.jobs.run.engines import Engine
from magicbyte.jobs.run.log_ranges import LogRange, log_range
from magicbyte.jobs.run.plan import (
    DecodeTask,
    Planned,
    count_of,
    plan_surveyed,
    target_bytes,
    tasks_of,
)
from magicbyte.jobs.run.progress import Progress
from magicbyte.model import PartitionPlan, Problem
from magicbyte.state import LeaderEpochs

__all__ = ["Name", "by_name", "common_ranges", "damage_ahead", "joined"]

_LAST = (1 << 63) - 1
Name = tuple[str, int]
"""Topic and partition."""


def by_name(plans: Iterable[Planned]) -> dict[Name, list[Planned]]:
    """The plans of the copies of each partition, the newest copy first."""
    copies: dict[Name, list[Planned]] = defaultdict(list)
    for planned in plans:
        copies[planned.plan["topic"], planned.plan["partition"]].append(planned)
    return {name: _newest_first(plans) for name, plans in copies.items()}


def _newest_first(plans: Iterable[Planned]) -> list[Planned]:
    """Orders the copies of a partition by the leader epoch and offset of their last batch (see `reach`)."""

    def reach(planned: Planned) -> tuple[int, int]:
        plan = planned.plan
        epochs, end = plan["leader_epochs"], plan["next_offset"]
        return epochs[-1]["epoch"] if epochs else -1, -1 if end is None else end

    return sorted(plans, key=reach, reverse=True)


def joined(copies: Sequence[Planned], damage: Mapping[str, Sequence[tuple[int, int]]]) -> LogRange:
    """The offsets of a partition, given its copies, the newest first, and the lost ranges of their paths that
    reading has found: those of the newest copy, without what another copy of the same lineage has.
    """
    newest = copies[0]
    log = log_range(newest)
    lost = _union([*log.lost, *damage.get(newest.listing["path"], ())])
    for other in copies[1:]:
        end = _equal_until(other.plan, newest.plan)
        own = log_range(other)
        if own.start is None or end is None:
            continue
        damaged = damage.get(other.listing["path"], ())
        lost = common_ranges(lost, _union([(0, own.start - 1), *own.lost, *damaged, (end, _LAST)]))
    return LogRange(log.start, log.end, log.last_stable, lost)


def _equal_until(plan: PartitionPlan, newest: PartitionPlan) -> int | None:
    """The end (exclusive) of what a copy has of the newest copy's lineage; None if nothing proves any."""
    end, newest_end = plan["next_offset"], newest["next_offset"]
    if end is None or newest_end is None:
        return None
    own, other = (
        LeaderEpochs([(one["epoch"], one["start_offset"]) for one in epochs])
        for epochs in (plan["leader_epochs"], newest["leader_epochs"])
    )
    if not own.entries and not other.entries:
        return min(end, newest_end)  # messages of magic 0 and 1 have no epochs
    return own.truncation(end, other, newest_end).offset


def common_ranges(left: Sequence[tuple[int, int]], right: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """The offsets that are in both of two unions of ranges (inclusive)."""
    common, at, behind = [], 0, 0
    while at < len(left) and behind < len(right):
        first, last = max(left[at][0], right[behind][0]), min(left[at][1], right[behind][1])
        if first <= last:
            common.append((first, last))
        if left[at][1] <= right[behind][1]:
            at += 1
        else:
            behind += 1
    return common


def _union(ranges: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Ranges in order, each offset once."""
    united: list[tuple[int, int]] = []
    for first, last in sorted(one for one in ranges if one[0] <= one[1]):
        if united and first <= united[-1][1] + 1:
            united[-1] = united[-1][0], max(last, united[-1][1])
        else:
            united.append((first, last))
    return united


def damage_ahead(
    copies: Mapping[Name, Sequence[Planned]],
    positions: Mapping[Name, int],
    engine: Engine,
    *,
    max_decompressed_bytes: int,
    progress: Progress,
) -> dict[str, list[tuple[int, int]]]:
    """Decodes every copy from the earliest position on; returns the lost ranges by the copy's path."""
    plans, paths, ends = [], {}, {}
    for name, position in positions.items():
        for planned in copies.get(name, ()):
            size = sum(segment["size"] for segment in planned.listing["segments"])
            rest = plan_surveyed(
                planned.listing,
                planned.surveys,
                isolation_level="read_uncommitted",
                offsets=(position, None),
                chunk_bytes=target_bytes(size, engine.parallelism),
            )
            plans.append(rest)
            path = planned.listing["path"]
            ends[path] = planned.plan["next_offset"] or 0
            paths.update({segment["path"]: path for segment in planned.listing["segments"]})
    tasks = tasks_of(plans, engine.parallelism)
    found = engine.map(
        partial(_damage, max_decompressed_bytes=max_decompressed_bytes),
        tasks,
        name=f"magicbyte cluster: {count_of(len(plans), 'log')} ahead of groups",
        sizes=[task.size for task in tasks],
        progress=progress,
    )
    problems: dict[str, list[Problem]] = defaultdict(list)
    for segment, problem in (pair for pairs in found for pair in pairs):
        path = paths[segment]
        if problem["last_lost_offset"] is None and problem["first_lost_offset"] is not None:
            problem["last_lost_offset"] = ends[path] - 1  # no good batch follows
        problems[path].append(problem)
    return {path: lost_ranges(own) for path, own in problems.items()}


def _damage(task: DecodeTask, max_decompressed_bytes: int) -> list[tuple[str, Problem]]:
    """The problems of the chunks of a task, each with the path of its segment."""
    found = []
    for chunk in task.chunks:
        _, problems = _core.check_chunk(chunk, max_decompressed_bytes)
        segment = json.loads(chunk)["path"]
        found += [(segment, problem) for problem in json.loads(problems)["problems"]]
    return found
