"""The job of `magicbyte redact --dry-run`: reports the records that would be redacted. Writes nothing.

list -> survey (tasks) -> plan (driver) -> decode and select (tasks) -> reconcile
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypedDict, cast

import pyarrow as pa
import pyarrow.compute as pc

from magicbyte.enums import fails_fast
from magicbyte.jobs.find.choice import EVERYTHING, PartitionChoice
from magicbyte.jobs.find.offset_ranges import refuse_unknown
from magicbyte.jobs.find.partitions import find_inputs, refuse_unread
from magicbyte.jobs.redact import RowSelection, numbered_keys, selection_of, unmatched_runs
from magicbyte.jobs.run.accounting import Totals, by_plan, reconcile_partitions, total_of
from magicbyte.jobs.run.engines import Engine
from magicbyte.jobs.run.plan import Task, plan_partitions, task_name, tasks_of
from magicbyte.jobs.run.progress import NO_PROGRESS, Progress
from magicbyte.jobs.run.reading import ReadOptions, read_chunk
from magicbyte.jobs.run.selecting import MAX_DECOMPRESSED_BYTES
from magicbyte.model import Chunk
from magicbyte.options.redact import RedactOptions

__all__ = ["PreviewedPartition", "RedactionPreview", "preview_redaction"]

_FIRST_OFFSETS = 10


class PreviewedPartition(TypedDict):
    """The records of a partition that would be redacted."""

    topic: str
    partition: int
    records: int
    """All data records that would be read."""
    redacted: int
    first_offsets: list[int]
    """The offsets of the first ten redacted records."""


class RedactionPreview(TypedDict):
    """The effects of a redaction, and the state of its input."""

    partitions: list[PreviewedPartition]
    redacted: int
    unmatched_keys: list[tuple[int, int]]
    """The same field as in the report of a redaction."""
    total: Totals


class _Found(TypedDict):
    """The result of a chunk."""

    result: str
    redacted: int
    first_offsets: list[int]
    keys: list[int]
    """The numbers of the keys that were found, among the distinct keys."""


def preview_redaction(
    sources: Sequence[str],
    engine: Engine,
    options: RedactOptions,
    progress: Progress = NO_PROGRESS,
    *,
    choice: PartitionChoice = EVERYTHING,
) -> RedactionPreview:
    """Finds the records that `redact_partitions` would redact; needs pyarrow.

    Batches that can be read but not rewritten, because their offsets do not rise, are counted here; a
    redaction leaves them out.

    Raises:
        RefusedError: if nothing is selected, there is nothing to read, the expression is invalid, or a
            partition is found twice, or there are offsets of a partition that is not read.
        JobError: if the expression fails for a record.
        Error: for the first bad batch, with FAILFAST.

    """
    selection = selection_of(options)
    look = _Look(options, selection)
    listings = find_inputs(sources, choice, distinct=True).listings
    refuse_unknown(selection.offsets, listings)
    if fails_fast(options.mode):
        refuse_unread(listings)
    plans = plan_partitions(listings, engine, progress=progress)
    tasks = tasks_of(plans, engine.parallelism)
    sizes = [task.size for task in tasks]
    found = engine.map(look, tasks, name=task_name("look", tasks), sizes=sizes, progress=progress)
    chunks = [one for of_task in found for one in of_task]
    seen = {number for chunk in chunks for number in chunk["keys"]}
    partitions = reconcile_partitions(plans, (chunk["result"] for chunk in chunks))
    previewed = [
        PreviewedPartition(
            topic=sums["topic"],
            partition=sums["partition"],
            records=sums["rows"],
            redacted=sum(one["redacted"] for one in own),
            first_offsets=[offset for one in own for offset in one["first_offsets"]][:_FIRST_OFFSETS],
        )
        for sums, own in zip(partitions, by_plan(plans, chunks), strict=True)
    ]
    return RedactionPreview(
        partitions=previewed,
        redacted=sum(one["redacted"] for one in previewed),
        unmatched_keys=unmatched_runs(numbered_keys(options.keys), seen),
        total=total_of(partitions),
    )


@dataclass(frozen=True)
class _Look:
    """Reads the chunks of a task and keeps counts and the first offsets."""

    options: RedactOptions
    selection: RowSelection

    def __call__(self, task: Task) -> list[_Found]:
        return [self._chunk(cast(Chunk, json.loads(text))) for text in task.chunks]

    def _chunk(self, chunk: Chunk) -> _Found:
        # Aborted records are redacted like all others.
        chunk["aborted"] = []
        options = ReadOptions(
            tuple(dict.fromkeys(("key", *self.selection.columns))),
            max_decompressed_bytes=min(self.options.max_decompressed_bytes, MAX_DECOMPRESSED_BYTES),
            mode=self.options.mode,
        )
        keys = pa.array(list(numbered_keys(self.options.keys)), pa.binary())
        found = _Found(result="", redacted=0, first_offsets=[], keys=[])
        seen: set[int] = set()
        for item in read_chunk(json.dumps(chunk), options):
            if isinstance(item, str):
                found["result"] = item
            elif item.table == "records":
                numbers = pc.index_in(item.batch.column("key"), value_set=keys)
                hits = pc.or_(numbers.is_valid(), self.selection.mask(item.batch, chunk))
                found["redacted"] += hits.true_count
                seen.update(pc.unique(numbers.drop_null()).to_pylist())
                if (missing := _FIRST_OFFSETS - len(found["first_offsets"])) > 0:
                    offsets = item.batch.column("offset").filter(hits)
                    found["first_offsets"] += offsets.slice(0, missing).to_pylist()
        found["keys"] = sorted(seen)
        return found
