"""Writing merged logs, by their plans."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence

from magicbyte import _core
from magicbyte.jobs.merging.cleaned import cleaner_offset
from magicbyte.jobs.merging.planning import PlannedMerge
from magicbyte.jobs.publish.carried import with_log_end
from magicbyte.jobs.publish.local_partitions import PartitionsOutput
from magicbyte.jobs.rewrite import RewriteTask, Rewritten, Written, run_rewrites, written_of
from magicbyte.jobs.run.engines import Engine
from magicbyte.jobs.run.plan import size_of_chunk
from magicbyte.jobs.run.progress import Progress
from magicbyte.model import ChunkResult, PartitionPlan
from magicbyte.options.rewrite import ConvertOptions

__all__ = ["cleaner_offsets", "is_complete", "write_merges"]


def write_merges(
    merges: Sequence[PlannedMerge],
    output: PartitionsOutput,
    ids: Mapping[str, str],
    engine: Engine,
    options: ConvertOptions,
    progress: Progress,
) -> tuple[list[list[Rewritten]], list[Written]]:
    """Writes the merged logs into `output`, each with the ID of its topic; returns the results of the tasks,
    and the report of each partition. Nothing is published yet.
    """
    targets = [output.target(merge.copies[0].listing) for merge in merges]
    staging = [str(_core.begin_partition(target)) for target in targets]
    tasks = [_tasks_of(merge, directory) for merge, directory in zip(merges, staging, strict=True)]
    rewritten = run_rewrites(tasks, engine, options, progress)
    written = []
    for merge, target, directory, done in zip(merges, targets, staging, rewritten, strict=True):
        plan = _plan_of(merge)
        segments = [segment for task in done for segment in task["segments"]]
        if merge.appended is None:
            segments = with_log_end(plan, segments, directory)
        else:
            # Its name follows the last batch: compaction may have left a gap before the end.
            appended = os.path.join(directory, "appended")
            writer = _core.PartitionWriter(appended, merge.plan["next_offset"])
            writer.append(merge.appended.batch)
            segments += writer.finish()
        one = written_of(target, plan, segments, done, ids.get(plan["topic"]))
        if merge.appended is not None:
            one["records"] += merge.appended.records
            one["batches"] += 1
            one["size"] += len(merge.appended.batch)
        written.append(one)
    return rewritten, written


def cleaner_offsets(merges: Sequence[PlannedMerge]) -> dict[tuple[str, int], int]:
    """The offset up to which a cleaner has cleaned each merged log, for `cleaner-offset-checkpoint`.

    The merged log is as clean as the copy from which its cleaned part is taken. A partition is left out if
    that copy has no checkpoint: the cleaner then begins at the start of the log, which costs time but no
    records.
    """
    offsets = {}
    for merge in merges:
        if (copy := merge.plan["cleaned_copy"]) is None:
            continue
        if offset := cleaner_offset(merge.copies[copy].listing):
            offsets[merge.partition.topic, merge.partition.partition] = min(offset, merge.plan["next_offset"])
    return offsets


def _tasks_of(merge: PlannedMerge, directory: str) -> list[RewriteTask]:
    """A task for each segment."""
    return [
        RewriteTask(
            directory,
            segment["base_offset"],
            tuple(json.dumps(chunk) for chunk in segment["chunks"]),
            sum(map(size_of_chunk, segment["chunks"])),
            merge.plan["segment_bytes"],
        )
        for segment in merge.segments
    ]


def _plan_of(merge: PlannedMerge) -> PartitionPlan:
    """The plan of the copy that leads, with the bounds of the merged log."""
    leader = merge.copies[merge.plan["leader"]].plan
    return {
        **leader,
        "segments": [one for one in leader["segments"] if one["base_offset"] <= merge.log_end],
        "log_start_offset": merge.plan["log_start_offset"],
        "next_offset": merge.log_end,
    }


def is_complete(merge: PlannedMerge, rewritten: Sequence[Rewritten]) -> bool:
    """True if every byte of the plan was written, is before the log's start, or is a problem of a task."""
    planned = sum(size_of_chunk(chunk) for segment in merge.segments for chunk in segment["chunks"])
    results: list[ChunkResult] = [json.loads(text) for task in rewritten for text in task["results"]]
    unwritten = sum(result["deleted_bytes"] + result["quarantined_bytes"] for result in results)
    return planned == unwritten + sum(task["size"] for task in rewritten)
