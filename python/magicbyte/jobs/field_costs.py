"""The job of `magicbyte stats --fields`: the bytes of partitions by field, and in other formats."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from functools import partial
from typing import TypedDict, cast

from magicbyte import _core
from magicbyte.jobs.find.choice import EVERYTHING, PartitionChoice
from magicbyte.jobs.find.partitions import SkippedDirectory, find_inputs
from magicbyte.jobs.run.accounting import Totals, by_plan, listed, reconcile_plans, total_of
from magicbyte.jobs.run.decode_partitions import DecodeJob, decode_partitions
from magicbyte.jobs.run.engines import Engine
from magicbyte.jobs.run.plan import DecodeTask
from magicbyte.jobs.run.progress import NO_PROGRESS, Progress
from magicbyte.lab import ChunkCost, CostReport
from magicbyte.model import Problem

__all__ = ["FieldCosts", "PartitionCost", "field_costs"]


class PartitionCost(TypedDict):
    """The costs of a partition."""

    path: str
    topic: str
    partition: int
    cost: CostReport


class FieldCosts(TypedDict):
    """The costs of all partitions, together and one by one."""

    total: CostReport
    topics: dict[str, CostReport]
    partitions: list[PartitionCost]
    account: Totals
    """The sums of the input. They include data that is not in the costs: quarantined bytes and tails."""
    skipped: list[SkippedDirectory]
    problems: list[Problem]
    """The first `LISTED` problems."""
    problems_left_out: int
    """The number of problems that are not listed."""
    balanced: bool


def _cost_task(task: DecodeTask, max_decompressed_bytes: int) -> list[str]:
    return [_core.chunk_cost(chunk, max_decompressed_bytes=max_decompressed_bytes) for chunk in task.chunks]


def field_costs(
    sources: Sequence[str],
    engine: Engine,
    *,
    max_decompressed_bytes: int = _core.DEFAULT_MAX_DECOMPRESSED_BYTES,
    choice: PartitionChoice = EVERYTHING,
    progress: Progress = NO_PROGRESS,
) -> FieldCosts:
    """Adds up the bytes of all partitions at and below `sources`, field by field. Every record is decoded.

    Raises:
        RefusedError: if there is nothing to read.

    """
    inputs = find_inputs(sources, choice)
    plans, task_results = decode_partitions(
        DecodeJob(
            lambda: partial(_cost_task, max_decompressed_bytes=max_decompressed_bytes),
            "stats",
            lambda texts: (json.dumps(json.loads(text)["result"]) for text in texts),
            writes_files=False,
        ),
        inputs.listings,
        engine,
        progress=progress,
    )
    of_plans = by_plan(plans, (text for texts in task_results for text in texts))
    chunks = [[cast(ChunkCost, json.loads(text)) for text in texts] for texts in of_plans]
    results = [[json.dumps(chunk["result"]) for chunk in own] for own in chunks]
    account = total_of(reconcile_plans(plans, results))
    by_topic: dict[str, list[str]] = {}
    for planned, texts in zip(plans, of_plans, strict=True):
        by_topic.setdefault(planned.plan["topic"], []).extend(texts)
    problems = [problem for planned in plans for problem in planned.plan["problems"]]
    problems += [problem for own in chunks for chunk in own for problem in chunk["problems"]]
    left_out = sum(chunk["problems_left_out"] for own in chunks for chunk in own)
    return FieldCosts(
        total=_report(text for texts in of_plans for text in texts),
        topics={topic: _report(texts) for topic, texts in sorted(by_topic.items())},
        partitions=[
            PartitionCost(
                path=planned.plan["path"],
                topic=planned.plan["topic"],
                partition=planned.plan["partition"],
                cost=_report(texts),
            )
            for planned, texts in zip(plans, of_plans, strict=True)
        ],
        account=account,
        skipped=inputs.skipped,
        **listed(problems, left_out),
        balanced=account["balanced"],
    )


def _report(chunks: Iterable[str]) -> CostReport:
    return cast(CostReport, json.loads(_core.cost_report(list(chunks))))
