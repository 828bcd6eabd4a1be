"""Shared code of `magicbyte convert`, `recover` and `merge`: writes partitions in a form that a broker opens.

list -> survey (tasks) -> plan (driver) -> read, convert, write segments (tasks) -> sidecars (driver)

Everything is written in a private directory and published at the end (`publish/local_partitions.py`): a job
that is killed leaves nothing that looks complete, and the next one cleans up. The sources are only read.
"""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any, TypedDict, cast

from magicbyte import _core
from magicbyte.jobs.find.choice import EVERYTHING, PartitionChoice
from magicbyte.jobs.find.partitions import SkippedDirectory, find_inputs
from magicbyte.jobs.publish.carried import (
    Carried,
    carried_ids,
    carried_start,
    log_start_checkpoint,
    with_log_end,
)
from magicbyte.jobs.publish.certificate import certifier
from magicbyte.jobs.publish.outputs import partitions_output
from magicbyte.jobs.run.accounting import SegmentsWritten, Totals, problems_of, reconcile_plans, total_of
from magicbyte.jobs.run.engines import Engine, group_by_size
from magicbyte.jobs.run.moving import ATTEMPTS, doubted_by_results, look_again
from magicbyte.jobs.run.plan import Planned, count_of, plan_partitions
from magicbyte.jobs.run.progress import NO_PROGRESS, Progress, format_bytes
from magicbyte.model import Chunk, PartitionPlan, PartitionReconciliation, Problem
from magicbyte.options.rewrite import ConvertOptions

__all__ = ["RewriteReport", "RewriteTask", "Rewritten", "Written", "rewrite", "run_rewrites", "written_of"]


class Written(Carried):
    """The output for one partition."""

    records: int
    batches: int
    size: int
    """Bytes of all segments."""
    segments: int
    losses: dict[str, int]
    """Losses of data that the target magic cannot represent, by kind."""


class RewriteReport(TypedDict):
    """The content of `reconciliation.json`."""

    magicbyte: str
    sources: list[str]
    options: dict[str, Any]
    balanced: bool
    """True if the sources add up, and every record of a good batch was written or is among the losses."""
    total: Totals
    partitions: list[PartitionReconciliation]
    skipped: list[SkippedDirectory]
    written: list[Written]
    problems: list[Problem]
    """The first `LISTED` problems."""
    problems_left_out: int


class Rewritten(SegmentsWritten):
    """The result of a task."""

    records: int
    losses: dict[str, int]


@dataclass(frozen=True)
class RewriteTask:
    """Neighbouring chunks of one partition, and the directory for their segments."""

    directory: str
    base_offset: int
    """The base offset of the first segment that is written."""
    chunks: tuple[str, ...]
    size: int
    """Bytes of the chunks."""
    segment_bytes: int
    """The maximum size of a segment that is written."""


Cuts = dict[tuple[str, int], tuple[str, int]]
"""The segment and the position at which to stop reading, by topic and partition."""


def rewrite(
    sources: Sequence[str],
    out: str,
    engine: Engine,
    options: ConvertOptions,
    *,
    cuts: Cuts | None = None,
    choice: PartitionChoice = EVERYTHING,
    progress: Progress = NO_PROGRESS,
    command: Sequence[str] | None = None,
) -> RewriteReport:
    """Rewrites every partition at and below `sources` into `out`, which gets a directory for each.

    Segments have fixed borders, so the same input gives the same bytes on every engine. With `command`, the
    output gets a certificate, which names it.

    Raises:
        RefusedError: if there is nothing to read, a partition is found twice, or `out` is not empty.

    """
    inputs = find_inputs(sources, choice, distinct=True)
    listings = inputs.listings
    ids = carried_ids(inputs, options.topic_ids)
    with partitions_output(out, inputs.paths) as directory:
        plans = plan_partitions(listings, engine, chunk_bytes=options.segment_bytes, progress=progress)
        staging = [str(_core.begin_partition(directory.target(listing))) for listing in listings]
        rewritten: list[list[Rewritten]] = [[] for _ in listings]
        waiting = list(range(len(plans)))
        for attempts_left in reversed(range(ATTEMPTS)):
            # Each attempt has its own directory, so that segments of earlier attempts do not count.
            kept = [_cut(planned, cuts or {}) for planned in plans]
            tasks = [
                list(_tasks_of(plans[number], kept[number][0], staging[number], options.segment_bytes))
                for number in waiting
            ]
            done = run_rewrites(tasks, engine, options, progress)
            for number, of_partition in zip(waiting, done, strict=True):
                rewritten[number] = of_partition
            if not attempts_left:
                break
            waiting = [number for number in waiting if _plan_again(plans, number, rewritten, engine, options)]
            if not waiting:
                break
        results = [
            [result for task in of_partition for result in task["results"]]
            + [_core.set_aside(chunk, "truncated") for chunk in dropped]
            for of_partition, (_, dropped) in zip(rewritten, kept, strict=True)
        ]
        written = [
            _finish(directory.target(one.listing), path, one, of_partition, ids, cuts or {})
            for one, path, of_partition in zip(plans, staging, rewritten, strict=True)
        ]
        partitions = reconcile_plans(plans, results)
        report = RewriteReport(
            magicbyte=_core.__version__,
            sources=list(sources),
            options={name: value for name, value in asdict(options).items() if value not in (None, {})},
            balanced=all(map(_adds_up, partitions, written)),
            total=total_of(partitions),
            partitions=partitions,
            skipped=inputs.skipped,
            written=written,
            **problems_of(plans, rewritten),
        )
        certify = certifier(command, report, (one.listing for one in plans), engine, progress)
        directory.commit(report, log_start_checkpoint(written), certify=certify)
    return report


def run_rewrites(
    tasks: Sequence[Sequence[RewriteTask]], engine: Engine, options: ConvertOptions, progress: Progress
) -> list[list[Rewritten]]:
    """Runs the tasks of each partition. The segment size is that of the task."""
    flat = [task for of_partition in tasks for task in of_partition]
    size = format_bytes(sum(task.size for task in flat))
    results = iter(
        engine.map(
            partial(_rewrite_task, options=options),
            flat,
            name=f"magicbyte rewrite: {count_of(len(flat), 'task')}, {size}",
            sizes=[task.size for task in flat],
            progress=progress,
        )
    )
    return [[cast(Rewritten, json.loads(next(results))) for _ in of_partition] for of_partition in tasks]


def _plan_again(
    plans: list[Planned],
    number: int,
    rewritten: Sequence[Sequence[Rewritten]],
    engine: Engine,
    options: ConvertOptions,
) -> bool:
    """Plans a partition again if damage was found in files that a broker has changed meanwhile."""
    before = plans[number]
    accounts = (json.loads(text) for task in rewritten[number] for text in task["results"])
    now = look_again(before.listing, doubted_by_results(accounts))
    if now is before.listing:
        return False
    (plans[number],) = plan_partitions([now], engine, chunk_bytes=options.segment_bytes)
    return True


def _cut(planned: Planned, cuts: Cuts) -> tuple[list[Chunk], list[str]]:
    """The chunks to read, and the chunks or parts of chunks after the cut, as JSON text."""
    chunks = planned.plan["chunks"]
    cut = cuts.get((planned.plan["topic"], planned.plan["partition"]))
    if cut is None:
        return chunks, []
    segment, position = cut
    places = (i for i, one in enumerate(chunks) if one["segment"] == segment and one["end"] > position)
    if (index := next(places, None)) is None:  # deleted by a broker meanwhile
        return chunks, []
    kept, dropped = chunks[:index], chunks[index + 1 :]
    whole = chunks[index]
    if position > whole["start"]:
        kept.append(cast(Chunk, {**whole, "end": position, "next_offset": None}))
    return kept, [json.dumps(one) for one in ({**whole, "start": position}, *dropped)]


def _tasks_of(
    planned: Planned, chunks: Sequence[Chunk], directory: str, target: int
) -> Iterator[RewriteTask]:
    sizes = [chunk["end"] - chunk["start"] for chunk in chunks]
    # A log starts with its first segment, also if that is empty.
    starts = [segment["base_offset"] for segment in planned.plan["segments"]]
    for group in group_by_size(chunks, sizes, target):
        expected = group[0]["expected_offset"]
        yield RewriteTask(
            directory,
            min(expected, *starts) if group[0] is chunks[0] else expected,
            tuple(json.dumps(chunk) for chunk in group),
            sum(chunk["end"] - chunk["start"] for chunk in group),
            target,
        )


def _rewrite_task(task: RewriteTask, options: ConvertOptions) -> str:
    # Each attempt has its own directory: the driver uses that of the attempt whose result it gets.
    directory = os.path.join(task.directory, f"attempt-{uuid.uuid4().hex[:12]}")
    return _core.rewrite_chunks(
        list(task.chunks),
        directory,
        task.base_offset,
        magic=options.magic,
        compression=options.codec,
        level=options.level,
        rebatch=options.packed_bytes,
        leader_epoch=options.leader_epoch,
        max_decompressed_bytes=options.max_decompressed_bytes,
        segment_bytes=task.segment_bytes,
        segment_ms=options.segment_ms,
        index_interval_bytes=options.index_interval_bytes,
    )


def _finish(
    target: str,
    directory: str,
    planned: Planned,
    rewritten: Sequence[Rewritten],
    ids: Mapping[str, str],
    cuts: Cuts,
) -> Written:
    plan = planned.plan
    cut, _ = cuts.get((plan["topic"], plan["partition"]), (None, None))
    segments = [segment for task in rewritten for segment in task["segments"]]
    segments = with_log_end(plan, segments, directory, cut)
    return written_of(target, plan, segments, rewritten, ids.get(plan["topic"]))


def written_of(
    target: str,
    plan: PartitionPlan,
    segments: Sequence[str],
    rewritten: Sequence[Rewritten],
    topic_id: str | None,
) -> Written:
    """Completes the partition `target` from the summaries of its segments."""
    if segments:
        _core.finish_partition(target, segments, topic_id=topic_id)
    return Written(
        topic=plan["topic"],
        partition=plan["partition"],
        topic_id=topic_id,
        log_start_offset=carried_start(plan, target),
        records=sum(task["records"] for task in rewritten),
        batches=sum(task["batches"] for task in rewritten),
        size=sum(task["size"] for task in rewritten),
        segments=len(segments),
        losses={
            name: total
            for name in (rewritten[0]["losses"] if rewritten else ())
            if (total := sum(task["losses"][name] for task in rewritten))
        },
    )


def _adds_up(source: PartitionReconciliation, written: Written) -> bool:
    read = source["announced"] - source["outside"] - source["deleted"]
    # Magic 0 and 1 have no control batches.
    dropped = source["control"] if "control_batches" in written["losses"] else 0
    return source["balanced"] and written["records"] == read - dropped
