"""The job of `magicbyte ingest --format delta|iceberg`: what is new in a log becomes one commit.

list -> survey (tasks) -> plan from the table's offsets -> decode and write (tasks) -> commit (driver)
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from functools import partial

import pyarrow as pa

from magicbyte import _core
from magicbyte.enums import PartitionBy
from magicbyte.jobs.accounting import reconcile_partitions, total_of
from magicbyte.jobs.choice import EVERYTHING, PartitionChoice
from magicbyte.jobs.columns import INVALID_COLUMNS, RECORDS_WITH_METADATA
from magicbyte.jobs.engines import Engine
from magicbyte.jobs.failure import JobError, RefusedError
from magicbyte.jobs.ingest import (
    CommitReport,
    CommittedPartition,
    IngestOptions,
    IngestReport,
    ManifestRow,
    TableSum,
    check_options,
    read_options,
)
from magicbyte.jobs.internal_tables import InternalTopicsReport
from magicbyte.jobs.lake.delta import DeltaTable
from magicbyte.jobs.lake.iceberg import IcebergTable
from magicbyte.jobs.lake.job_files import JobFiles, remove_orphans
from magicbyte.jobs.lake.sums import RecordSum, RecordSums, TopicPartition
from magicbyte.jobs.lake.table import (
    Commit,
    ConflictError,
    TableOptions,
    TableTarget,
    TransactionalTable,
)
from magicbyte.jobs.lake.write import LakeWriteOptions, Written, write_task
from magicbyte.jobs.log_dirs import log_dir_reports
from magicbyte.jobs.partitions import find_inputs
from magicbyte.jobs.plan import Planned, Range, plan_partitions, task_name, tasks_of
from magicbyte.jobs.problems import partition_problem
from magicbyte.jobs.progress import NO_PROGRESS, Progress
from magicbyte.jobs.workspace import check_apart
from magicbyte.model import PartitionListing, PartitionPlan, PartitionReconciliation, Problem

__all__ = ["ingest_table"]

_ATTEMPTS = 8
"""At a commit, if others commit to the table as well."""
_WAIT_SECONDS = 0.2
_MOST = 1 << 63

Offsets = Mapping[TopicPartition, int]


def ingest_table(
    sources: Sequence[str],
    target: TableTarget,
    engine: Engine,
    options: IngestOptions,
    progress: Progress = NO_PROGRESS,
    *,
    partition_by: PartitionBy = "topic",
    choice: PartitionChoice = EVERYTHING,
) -> IngestReport:
    """Adds the records of every partition at and below `sources` that the table does not have yet.

    The table is created if it is not there. A partition is continued at the offset that the table's own
    commits name, so a job that is repeated, or killed and repeated, adds nothing twice.

    Raises:
        RefusedError: as `jobs.ingest.ingest`; if the table was made otherwise, or holds offsets beyond the
            end of a log.
        JobError: if the expression fails for a record, or another job has added the same records meanwhile.

    """
    check_options(options)
    if options.overwrite:
        raise RefusedError("a table is never overwritten: a job adds to it what is new")
    if options.typed:
        raise RefusedError(
            "typed keys and values are only written as plain Parquet: without their bytes, nothing proves "
            "that the table equals the log"
        )
    read = read_options(options)
    made = _table_options(options, partition_by)
    inputs = find_inputs(sources, choice, distinct=True, assigned=True)
    table = _open(target, read.records_schema, made)
    check_apart(table.data, inputs.paths)
    table.options.check(table.name, made)
    _grow(table, read.records_schema)
    files = JobFiles(table.data)
    keep: bool | None = False
    try:
        orphans = remove_orphans(table)
        table.refresh()
        starts = table.next_offsets([(one["topic"], one["partition"]) for one in inputs.listings])
        gaps = [gap for one in inputs.listings for gap in _gap(one, starts, options)]
        plans = plan_partitions(
            [_from_offset(one, starts) for one in inputs.listings],
            engine,
            isolation_level=options.isolation_level,
            bounds=lambda planned: _bounds(planned, starts, options),
            progress=progress,
        )
        ends = {_place(one.plan): _end(one, starts, options, table.name) for one in plans}
        write = LakeWriteOptions(
            read,
            table.data,
            files.name,
            table.file_schema(read.records_schema),
            partition_by == "day",
            options.codec,
            ("key",) if options.bloom_filter else (),
        )
        tasks = tasks_of(plans, engine.parallelism)
        written: list[Written] = engine.map(
            partial(write_task, options=write),
            tasks,
            name=task_name("ingest", tasks),
            sizes=[task.size for task in tasks],
            progress=progress,
        )
        sums = RecordSums()
        sums.add_all(one.sums for one in written)
        partitions = reconcile_partitions(plans, (text for one in written for text in one.results))
        balanced = all(one["balanced"] for one in partitions) and _rows_agree(partitions, sums, written)
        if not balanced:
            raise JobError(
                f"{table.name}: the sum of bytes and records does not add up: nothing is committed"
            )
        commit = Commit(
            job=files.job,
            magicbyte=_core.__version__,
            sources=list(sources),
            partitions=[
                CommittedPartition(
                    topic=topic,
                    partition=partition,
                    start_offset=starts.get((topic, partition), 0),
                    next_offset=end,
                    rows=sums.get((topic, partition), RecordSum()).rows,
                    digest=sums.get((topic, partition), RecordSum()).hex_digest,
                )
                for (topic, partition), end in ends.items()
                if end > starts.get((topic, partition), 0)
            ],
            files=[file for one in written for file in one.files],
        )
        if commit.partitions:
            files.complete(commit.files)
            keep = None
            moved = _commit(table, commit, starts, files.name)
            keep = moved is None
            if moved is not None:
                raise JobError(
                    f"{table.name}: another job has added records of {moved[0]}-{moved[1]} meanwhile, "
                    "so nothing is added: run it again"
                )
    finally:
        files.close(keep=keep)
    rows = sum(file.rows for file in commit.files)
    problems = [*gaps, *(problem for one in plans for problem in one.plan["problems"])]
    problems += [problem for one in written for problem in one.problems]
    left_out = sum(one.problems_left_out for one in written) + len(problems[_core.LISTED :])
    total = total_of(partitions)
    total["problems"] += len(gaps)
    return IngestReport(
        magicbyte=_core.__version__,
        format=target.format,
        sources=list(sources),
        isolation_level=options.isolation_level,
        ranges=asdict(options.ranges),
        where=options.where,
        key_as=options.key_as,
        value_as=options.value_as,
        key_format=None,
        value_format=None,
        schema_registry=None,
        balanced=balanced,
        total=total,
        tables={
            "records": TableSum(
                files=len(commit.files), rows=rows, size=sum(one.size for one in commit.files)
            )
        },
        partitions=partitions,
        skipped=inputs.skipped,
        log_dirs=log_dir_reports(inputs.log_dirs, [one.plan for one in plans], partitions),
        internal_topics=InternalTopicsReport(pending_offsets=0, problems=[]),
        files=[
            ManifestRow(table="records", topic=one.topic, path=one.path, rows=one.rows, size=one.size)
            for one in commit.files
        ],
        commit=CommitReport(
            table=table.name,
            version=table.version,
            job=commit.job if commit.partitions else None,
            partitions=list(commit.partitions),
            orphans=orphans,
            problems=problems[: _core.LISTED],
            problems_left_out=left_out,
        ),
    )


def _table_options(options: IngestOptions, partition_by: PartitionBy) -> TableOptions:
    return TableOptions(
        isolation_level=options.isolation_level,
        **asdict(options.ranges),
        where=options.where,
        key_as=options.key_as,
        value_as=options.value_as,
        partition_by=partition_by,
    )


def _open(target: TableTarget, schema: pa.Schema, options: TableOptions) -> TransactionalTable:
    if target.format == "delta":
        return DeltaTable.open_or_create(target.name, schema, options)
    return IcebergTable.open_or_create(target, schema, options)


def _grow(table: TransactionalTable, schema: pa.Schema) -> None:
    """Adds columns that the table does not have; refuses to leave columns of ours empty."""
    names = table.column_names
    known = {*RECORDS_WITH_METADATA, *INVALID_COLUMNS.values()}
    if missing := [name for name in names if name in known and name not in schema.names]:
        raise RefusedError(
            f"{table.name} has the columns {', '.join(missing)}, which would be null in new rows: "
            "add --include-batch-metadata, or choose another table"
        )
    if new := [field for field in schema if field.name not in names]:
        table.add_columns(new)


def _place(plan: PartitionPlan | PartitionListing) -> TopicPartition:
    return plan["topic"], plan["partition"]


def _from_offset(listing: PartitionListing, starts: Offsets) -> PartitionListing:
    """The partition without the segments before the one that holds the offset to start at."""
    start = starts.get(_place(listing), 0)
    segments = listing["segments"]
    first = max((at for at, one in enumerate(segments) if one["base_offset"] <= start), default=0)
    return {**listing, "segments": segments[first:]}


def _gap(listing: PartitionListing, starts: Offsets, options: IngestOptions) -> Iterator[Problem]:
    """The offsets between the table and the log, if the log begins after them by now."""
    start = starts.get(_place(listing))
    if start is None or not listing["segments"]:
        return
    begin = min(listing["segments"][0]["base_offset"], options.ranges.end_offset or _MOST)
    if begin > max(start, options.ranges.start_offset or 0):
        topic, partition = _place(listing)
        yield partition_problem(
            topic,
            partition,
            "data_loss",
            f"the table ends before offset {start}, and the log begins at {begin}: "
            "what was between them is in neither",
            first_lost_offset=start,
            last_lost_offset=begin - 1,
        )


def _bounds(planned: Planned, starts: Offsets, options: IngestOptions) -> Range:
    start = max(starts.get(_place(planned.plan), 0), options.ranges.start_offset or 0)
    return start or None, options.ranges.end_offset


def _end(planned: Planned, starts: Offsets, options: IngestOptions, table: str) -> int:
    """The offset that the next job starts at."""
    plan = planned.plan
    topic, partition = _place(plan)
    start = starts.get((topic, partition), 0)
    bases = [one["base_offset"] for one in planned.listing["segments"]]
    end = max(plan["next_offset"] or 0, *bases, 0)
    if bases and end < start:
        raise RefusedError(
            f"{table} holds {topic}-{partition} up to offset {start - 1}, but this log ends before {end}: it "
            "is another log, or was truncated; leave it out (--exclude), or choose another table"
        )
    if options.isolation_level == "read_committed" and plan["last_stable_offset"] is not None:
        end = min(end, plan["last_stable_offset"])
    return max(start, min(end, options.ranges.end_offset or end))


def _rows_agree(
    partitions: Sequence[PartitionReconciliation], sums: RecordSums, written: Sequence[Written]
) -> bool:
    """Whether the files hold exactly the rows of each partition that were counted."""
    counted = {(one["topic"], one["partition"]): one["rows"] for one in partitions if one["rows"]}
    in_files = sum(file.rows for one in written for file in one.files)
    return counted == {place: one.rows for place, one in sums.items()} and in_files == sum(counted.values())


def _commit(
    table: TransactionalTable, commit: Commit, starts: Offsets, directory: str
) -> TopicPartition | None:
    """Commits, again if others that add different records come first.

    Returns None, or a partition of which another job has added records: then nothing is committed.
    """
    places = list(commit.next_offsets)
    for attempt in range(_ATTEMPTS):
        try:
            table.commit(commit)
            return None
        except ConflictError as error:
            conflict = error
        except JobError:
            # The answer may have been lost after the commit.
            table.refresh()
            if table.holds(commit.job, directory):
                return None
            raise
        time.sleep(random.uniform(0, _WAIT_SECONDS * (attempt + 1)))
        table.refresh()
        now = table.next_offsets(places)
        if moved := [place for place in places if now.get(place) != starts.get(place)]:
            return moved[0]
    raise JobError(f"{table.name}: others commit all the time, so this job cannot: {conflict}")
