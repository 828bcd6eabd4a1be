"""The job behind `magicbyte verify`: decodes every record of every partition and writes nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypedDict

from magicbyte import _core
from magicbyte.enums import IsolationLevel
from magicbyte.jobs.accounting import Totals, reconcile_partitions, total_of
from magicbyte.jobs.choice import EVERYTHING, PartitionChoice
from magicbyte.jobs.engines import Engine
from magicbyte.jobs.log_dirs import LogDirReport, log_dir_reports
from magicbyte.jobs.partitions import SkippedDirectory, find_inputs
from magicbyte.jobs.plan import Task, plan_partitions, task_name, tasks_of
from magicbyte.jobs.progress import NO_PROGRESS, Progress
from magicbyte.jobs.reading import ReadOptions, Rows, decoded_problems, read_chunk
from magicbyte.model import PartitionReconciliation, Problem

__all__ = ["VerifyReport", "verify"]


class VerifyReport(TypedDict):
    """The result of a verification."""

    sources: list[str]
    balanced: bool
    total: Totals
    partitions: list[PartitionReconciliation]
    skipped: list[SkippedDirectory]
    log_dirs: list[LogDirReport]
    problems: list[Problem]
    """The first `LISTED`."""
    problems_left_out: int
    """How many more there are."""


@dataclass(frozen=True)
class _Checked:
    results: list[str]
    problems: list[Problem]
    left_out: int


def _check_task(task: Task, options: ReadOptions) -> _Checked:
    results: list[str] = []
    problems: list[Problem] = []
    left_out = 0
    for chunk in task.chunks:
        for item in read_chunk(chunk, options):
            if isinstance(item, Rows):
                room = _core.LISTED - len(problems)
                problems += decoded_problems(item.batch.slice(0, room))
                left_out += max(0, item.batch.num_rows - room)
            else:
                results.append(item)
    return _Checked(results, problems, left_out)


def verify(
    sources: Sequence[str],
    engine: Engine,
    *,
    isolation_level: IsolationLevel = "read_uncommitted",
    max_decompressed_bytes: int,
    choice: PartitionChoice = EVERYTHING,
    progress: Progress = NO_PROGRESS,
) -> VerifyReport:
    """Checks sizes, CRCs and every record of the partitions at and below `sources`.

    Raises:
        RefusedError: if there is nothing to read.

    """
    inputs = find_inputs(sources, choice, assigned=True)
    plans = plan_partitions(inputs.listings, engine, isolation_level=isolation_level, progress=progress)
    tasks = tasks_of(plans, engine.parallelism)
    checked = engine.map(
        partial(_check_task, options=ReadOptions(max_decompressed_bytes=max_decompressed_bytes)),
        tasks,
        name=task_name("verify", tasks),
        sizes=[task.size for task in tasks],
        progress=progress,
    )
    partitions = reconcile_partitions(plans, (text for one in checked for text in one.results))
    total = total_of(partitions)
    problems = [problem for one in plans for problem in one.plan["problems"]]
    problems += [problem for one in checked for problem in one.problems]
    return VerifyReport(
        sources=list(sources),
        balanced=total["balanced"],
        total=total,
        partitions=partitions,
        skipped=inputs.skipped,
        log_dirs=log_dir_reports(inputs.log_dirs, [one.plan for one in plans], partitions),
        problems=problems[: _core.LISTED],
        problems_left_out=sum(one.left_out for one in checked) + len(problems[_core.LISTED :]),
    )
