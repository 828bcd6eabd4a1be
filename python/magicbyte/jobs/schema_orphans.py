"""Schemas that a log names and a registry does not have, for `magicbyte schemas lint --logs`."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from itertools import accumulate
from typing import NamedTuple, get_args

import pyarrow as pa

from magicbyte.internal_topics.names import INTERNAL_TOPICS
from magicbyte.jobs.find.choice import EVERYTHING, PartitionChoice
from magicbyte.jobs.find.partitions import find_inputs
from magicbyte.jobs.orphans.column_names import ColumnNames, KnownSchemas
from magicbyte.jobs.orphans.named_schemas import Column
from magicbyte.jobs.orphans.rule import Orphans
from magicbyte.jobs.run.engines import LocalEngine
from magicbyte.jobs.run.plan import count_of
from magicbyte.jobs.run.progress import NO_PROGRESS, Progress, Step, format_bytes
from magicbyte.log import PartitionLog
from magicbyte.model.listings import PartitionListing, Problem
from magicbyte.schema.lint import LintFinding
from magicbyte.schema.registry import StoredRegistry

__all__ = ["LogFindings", "orphaned_ids"]


class LogFindings(NamedTuple):
    """The names in a log that lead nowhere."""

    findings: list[LintFinding]
    notes: list[str]
    """The parts that were not examined, and what is too uncertain for a finding."""
    examined: dict[str, int]
    """The number of records that were examined, by topic."""


def orphaned_ids(
    registry: StoredRegistry,
    sources: Sequence[str],
    problems: list[Problem],
    choice: PartitionChoice = EVERYTHING,
    progress: Progress = NO_PROGRESS,
) -> LogFindings:
    """The schemas that keys and values name and the registry does not have, by the rule in `orphans/rule.py`.

    All records are examined, except those of Kafka's own topics; of a partition with several copies, those of
    the newest one. What cannot be read is added to `problems`.

    Raises:
        RefusedError: if there is no partition.
        OSError: if a source cannot be read.

    """
    found = LogFindings([], [], {})
    topics: dict[str, list[PartitionListing]] = defaultdict(list)
    inputs = find_inputs(sources, choice, distinct=True, newest=True)
    for listing in inputs.listings:
        topics[listing["topic"]].append(listing)
    if copies := sum(one["state"] in choice.states for one in inputs.skipped):
        found.notes.append(f"not examined: {count_of(copies, 'older copy', 'older copies')} of partitions")
    if internal := sorted(INTERNAL_TOPICS.intersection(topics)):
        found.notes.append(f"not examined, since they are Kafka's own: {', '.join(internal)}")
    chosen = sorted((topic, own) for topic, own in topics.items() if topic not in internal)
    sizes = [segment["size"] for _, own in chosen for listing in own for segment in listing["segments"]]
    name = f"magicbyte schemas lint: {count_of(len(sizes), 'segment')}, {format_bytes(sum(sizes))}"
    schemas = KnownSchemas(registry)
    with progress.step(name, sum(sizes)) as step:
        done = 0
        for topic, own in chosen:
            columns = [ColumnNames(schemas, column) for column in get_args(Column)]
            found.examined[topic] = 0
            for listing in own:
                found.examined[topic] += _read(listing, columns, problems, step, done)
                done += sum(segment["size"] for segment in listing["segments"])
                step.done(done)
            for names in columns:
                orphans = Orphans(topic, names)
                found.findings.extend(orphans.findings())
                found.notes.extend(orphans.notes())
    return found


def _read(
    listing: PartitionListing,
    columns: Sequence[ColumnNames],
    problems: list[Problem],
    step: Step,
    done: int,
) -> int:
    """Adds a partition to the columns. Returns its records; `done` are the bytes of the step before it."""
    sizes = [segment["size"] for segment in listing["segments"]]
    files = [segment["file"] for segment in listing["segments"]]
    starts = dict(zip(files, accumulate(sizes, initial=done), strict=False))
    stream = PartitionLog.of_listing(listing, mode="PERMISSIVE").to_arrow(
        ["segment", "position", "key", "value", "headers"], threads=LocalEngine().parallelism
    )
    records = 0
    for batch in pa.RecordBatchReader.from_stream(stream):
        if batch.num_rows:
            records += batch.num_rows
            for column in columns:
                column.add(batch)
            segment, position = (batch.column(name)[-1].as_py() for name in ("segment", "position"))
            step.done(starts.get(segment, done) + position)
    problems += stream.problems
    return records
