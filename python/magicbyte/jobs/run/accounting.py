"""The sums of a job: every byte and every record of its partitions, counted exactly once."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import TypedDict, TypeVar, cast

from magicbyte import _core
from magicbyte.jobs.run.plan import Planned
from magicbyte.listing import is_live
from magicbyte.model import PartitionReconciliation, Problem

__all__ = [
    "Problems",
    "SegmentsWritten",
    "Totals",
    "by_plan",
    "first_listed",
    "listed",
    "problems_of",
    "reconcile_partitions",
    "reconcile_plans",
    "total_of",
]

T = TypeVar("T")


class SegmentsWritten(TypedDict):
    """The result of a task that writes segments."""

    results: list[str]
    """The `ChunkResult` of each chunk, as JSON text."""
    problems: list[Problem]
    problems_left_out: int
    segments: list[str]
    """The core's `SegmentSummary` of each segment, as JSON text: parsed, it can be larger than the log."""
    batches: int
    size: int
    """Bytes of all segments."""


class Problems(TypedDict):
    """The problems of the input."""

    problems: list[Problem]
    """The first `LISTED` problems."""
    problems_left_out: int
    """The number of problems that are not listed."""


class Totals(TypedDict):
    """Sums over partitions; sizes are bytes. See `PartitionReconciliation`."""

    partitions: int
    segments: int
    size: int
    good_batches: int
    good_bytes: int
    deleted_bytes: int
    quarantined_bytes: int
    tail_bytes: int
    outside_bytes: int
    announced: int
    rows: int
    control: int
    aborted: int
    outside: int
    deleted: int
    missing_offsets: int
    lost_offsets: int
    null_timestamps: int
    invalid_keys: int
    invalid_values: int
    unframed_keys: int
    unframed_values: int
    problems: int
    balanced: bool


def by_plan(plans: Sequence[Planned], of_chunks: Iterable[T]) -> list[list[T]]:
    """Distributes the results of chunks, given in the order of all plans' chunks, to their plans."""
    remaining = iter(of_chunks)
    return [[next(remaining) for _ in planned.plan["chunks"]] for planned in plans]


def reconcile_partitions(plans: Sequence[Planned], results: Iterable[str]) -> list[PartitionReconciliation]:
    """Reconciles each plan with the results of its chunks, given in the order of all plans' chunks."""
    return reconcile_plans(plans, by_plan(plans, results))


def reconcile_plans(
    plans: Sequence[Planned], results: Sequence[Sequence[str]]
) -> list[PartitionReconciliation]:
    """Reconciles each plan with the results of its chunks."""
    return [_reconcile(planned, list(own)) for planned, own in zip(plans, results, strict=True)]


def _reconcile(planned: Planned, results: list[str]) -> PartitionReconciliation:
    if not is_live(planned.listing):
        return cast(PartitionReconciliation, json.loads(_core.reconcile(planned.text, results)))
    plan = planned.plan
    text = _core.reconcile_fetched(json.dumps(planned.listing), plan["isolation_level"], results)
    account: PartitionReconciliation = json.loads(text)
    # Those of neighbouring chunks; see `lost_between`.
    lost = [(one["first_lost_offset"] or 0, one["last_lost_offset"] or 0) for one in plan["problems"]]
    return {
        **account,
        "last_stable_offset": plan["last_stable_offset"],
        "problems": account["problems"] + len(lost),
        "lost_offsets": account["lost_offsets"] + sum(last + 1 - first for first, last in lost),
    }


def problems_of(plans: Sequence[Planned], written: Sequence[Sequence[SegmentsWritten]]) -> Problems:
    """The problems of each plan and of its tasks, partition by partition."""
    found = [
        problem
        for planned, own in zip(plans, written, strict=True)
        for problems in (planned.plan["problems"], *(one["problems"] for one in own))
        for problem in problems
    ]
    left_out = sum(one["problems_left_out"] for own in written for one in own)
    return listed(found, left_out)


def listed(problems: Sequence[Problem], left_out: int = 0) -> Problems:
    """The first `LISTED` problems, and the number of the others: `left_out` were left out before."""
    first, left_out = first_listed(problems, left_out)
    return Problems(problems=first, problems_left_out=left_out)


def first_listed(findings: Sequence[T], left_out: int = 0) -> tuple[list[T], int]:
    """The same for findings of any kind."""
    first = list(findings[: _core.LISTED])
    return first, left_out + len(findings) - len(first)


def total_of(partitions: Sequence[PartitionReconciliation]) -> Totals:
    """Adds up the partitions' sums; balanced only if every partition is."""
    return Totals(
        partitions=len(partitions),
        segments=sum(len(partition["segments"]) for partition in partitions),
        size=sum(partition["size"] for partition in partitions),
        good_batches=sum(partition["good_batches"] for partition in partitions),
        good_bytes=sum(partition["good_bytes"] for partition in partitions),
        quarantined_bytes=sum(partition["quarantined_bytes"] for partition in partitions),
        tail_bytes=sum(partition["tail_bytes"] for partition in partitions),
        deleted_bytes=sum(partition["deleted_bytes"] for partition in partitions),
        outside_bytes=sum(partition["outside_bytes"] for partition in partitions),
        announced=sum(partition["announced"] for partition in partitions),
        rows=sum(partition["rows"] for partition in partitions),
        control=sum(partition["control"] for partition in partitions),
        aborted=sum(partition["aborted"] for partition in partitions),
        outside=sum(partition["outside"] for partition in partitions),
        deleted=sum(partition["deleted"] for partition in partitions),
        missing_offsets=sum(partition["missing_offsets"] for partition in partitions),
        lost_offsets=sum(partition["lost_offsets"] for partition in partitions),
        null_timestamps=sum(partition["null_timestamps"] for partition in partitions),
        invalid_keys=sum(partition["invalid_keys"] for partition in partitions),
        invalid_values=sum(partition["invalid_values"] for partition in partitions),
        unframed_keys=sum(partition["unframed_keys"] for partition in partitions),
        unframed_values=sum(partition["unframed_values"] for partition in partitions),
        problems=sum(partition["problems"] for partition in partitions),
        balanced=all(partition["balanced"] for partition in partitions),
    )
