"""The sums of a job: every byte and every record of its partitions, counted exactly once."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import TypedDict, TypeVar, cast

from magicbyte import _core
from magicbyte.jobs.run.plan import Planned
from magicbyte.model import PartitionReconciliation, Problem

__all__ = [
    "Problems",
    "SegmentsWritten",
    "Totals",
    "by_plan",
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
    return [
        cast(PartitionReconciliation, json.loads(_core.reconcile(planned.text, list(own))))
        for planned, own in zip(plans, results, strict=True)
    ]


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
    first = list(problems[: _core.LISTED])
    return Problems(problems=first, problems_left_out=left_out + len(problems) - len(first))


def total_of(partitions: Sequence[PartitionReconciliation]) -> Totals:
    """Adds up the partitions' sums; balanced only if every partition is."""
    return Totals(
        partitions=len(partitions),
        segments=sum(len(one["segments"]) for one in partitions),
        size=sum(one["size"] for one in partitions),
        good_batches=sum(one["good_batches"] for one in partitions),
        good_bytes=sum(one["good_bytes"] for one in partitions),
        quarantined_bytes=sum(one["quarantined_bytes"] for one in partitions),
        tail_bytes=sum(one["tail_bytes"] for one in partitions),
        deleted_bytes=sum(one["deleted_bytes"] for one in partitions),
        outside_bytes=sum(one["outside_bytes"] for one in partitions),
        announced=sum(one["announced"] for one in partitions),
        rows=sum(one["rows"] for one in partitions),
        control=sum(one["control"] for one in partitions),
        aborted=sum(one["aborted"] for one in partitions),
        outside=sum(one["outside"] for one in partitions),
        deleted=sum(one["deleted"] for one in partitions),
        missing_offsets=sum(one["missing_offsets"] for one in partitions),
        lost_offsets=sum(one["lost_offsets"] for one in partitions),
        null_timestamps=sum(one["null_timestamps"] for one in partitions),
        invalid_keys=sum(one["invalid_keys"] for one in partitions),
        invalid_values=sum(one["invalid_values"] for one in partitions),
        unframed_keys=sum(one["unframed_keys"] for one in partitions),
        unframed_values=sum(one["unframed_values"] for one in partitions),
        problems=sum(one["problems"] for one in partitions),
        balanced=all(one["balanced"] for one in partitions),
    )
