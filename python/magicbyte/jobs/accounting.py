"""The sum of a job: every byte and every record of its partitions, counted exactly once."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import TypedDict, TypeVar, cast

from magicbyte import _core
from magicbyte.model import PartitionReconciliation, Problem
from magicbyte.jobs.plan import Planned

__all__ = [
    "Answer",
    "Problems",
    "Totals",
    "by_plan",
    "problems_of",
    "reconcile_partitions",
    "reconcile_plans",
    "total_of",
]

T = TypeVar("T")


class Answer(TypedDict):
    """What a task that writes segments returns, whatever else it does."""

    results: list[str]
    """What became of its chunks' bytes and records, for the sum: JSON texts."""
    problems: list[Problem]
    problems_left_out: int
    segments: list[str]
    """What it wrote: JSON texts of the core's `SegmentSummary`. Parsed, they can outweigh the log."""
    batches: int
    """In all segments."""
    size: int
    """Of all segments, in bytes."""


class Problems(TypedDict):
    """What is wrong with the input."""

    problems: list[Problem]
    """The first `LISTED`."""
    problems_left_out: int
    """How many more there are."""


class Totals(TypedDict):
    """Sums over partitions; sizes are bytes. `PartitionReconciliation` says what is what."""

    partitions: int
    segments: int
    size: int
    good_batches: int
    good_bytes: int
    quarantined_bytes: int
    tail_bytes: int
    announced: int
    rows: int
    control: int
    aborted: int
    outside: int
    missing_offsets: int
    lost_offsets: int
    null_timestamps: int
    problems: int
    balanced: bool


def by_plan(plans: Sequence[Planned], of_chunks: Iterable[T]) -> list[list[T]]:
    """Deals out what tasks returned a chunk, in the order of all plans' chunks, to the plans."""
    remaining = iter(of_chunks)
    return [[next(remaining) for _ in planned.plan["chunks"]] for planned in plans]


def reconcile_partitions(plans: Sequence[Planned], results: Iterable[str]) -> list[PartitionReconciliation]:
    """Joins each plan with the results of its chunks, which come in the order of all plans' chunks."""
    return reconcile_plans(plans, by_plan(plans, results))


def reconcile_plans(
    plans: Sequence[Planned], results: Sequence[Sequence[str]]
) -> list[PartitionReconciliation]:
    """Joins each plan with its own results."""
    return [
        cast(PartitionReconciliation, json.loads(_core.reconcile(planned.text, list(own))))
        for planned, own in zip(plans, results, strict=True)
    ]


def problems_of(plans: Sequence[Planned], answers: Sequence[Sequence[Answer]]) -> Problems:
    """A partition after the other: what its plan says, then what its tasks met."""
    found = [
        problem
        for planned, own in zip(plans, answers, strict=True)
        for problems in (planned.plan["problems"], *(one["problems"] for one in own))
        for problem in problems
    ]
    left_out = sum(one["problems_left_out"] for own in answers for one in own)
    listed, more = found[: _core.LISTED], found[_core.LISTED :]
    return Problems(problems=listed, problems_left_out=left_out + len(more))


def total_of(partitions: Sequence[PartitionReconciliation]) -> Totals:
    """Adds up; balanced only if every partition is."""
    return Totals(
        partitions=len(partitions),
        segments=sum(len(one["segments"]) for one in partitions),
        size=sum(one["size"] for one in partitions),
        good_batches=sum(one["good_batches"] for one in partitions),
        good_bytes=sum(one["good_bytes"] for one in partitions),
        quarantined_bytes=sum(one["quarantined_bytes"] for one in partitions),
        tail_bytes=sum(one["tail_bytes"] for one in partitions),
        announced=sum(one["announced"] for one in partitions),
        rows=sum(one["rows"] for one in partitions),
        control=sum(one["control"] for one in partitions),
        aborted=sum(one["aborted"] for one in partitions),
        outside=sum(one["outside"] for one in partitions),
        missing_offsets=sum(one["missing_offsets"] for one in partitions),
        lost_offsets=sum(one["lost_offsets"] for one in partitions),
        null_timestamps=sum(one["null_timestamps"] for one in partitions),
        problems=sum(one["problems"] for one in partitions),
        balanced=all(one["balanced"] for one in partitions),
    )
