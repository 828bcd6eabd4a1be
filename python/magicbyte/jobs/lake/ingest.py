"""The job of `magicbyte ingest --format delta|iceberg`: what is new in a log becomes one commit.

list -> survey (tasks) -> plan from the table's offsets -> decode and write (tasks) -> commit (driver)
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from functools import cache, partial

import pyarrow as pa

from magicbyte import _core
from magicbyte.enums import PartitionBy
from magicbyte.jobs.accounting import reconcile_partitions, total_of
from magicbyte.jobs.choice import EVERYTHING, PartitionChoice
from magicbyte.jobs.columns import RECORDS_WITH_METADATA
from magicbyte.jobs.decode_partitions import decode_partitions
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
from magicbyte.jobs.lake.growth import refuse_types
from magicbyte.jobs.lake.iceberg import IcebergTable
from magicbyte.jobs.lake.job_files import JobFiles, LocalJobFiles
from magicbyte.jobs.lake.stored_job_files import StoredJobFiles
from magicbyte.jobs.lake.sums import RecordSum, RecordSums, TopicPartition
from magicbyte.jobs.lake.table import (
    Commit,
    ConflictError,
    TableOptions,
    TableTarget,
    TransactionalTable,
    UnsettledError,
)
from magicbyte.jobs.lake.write import LakeWriteOptions, Written, write_task
from magicbyte.jobs.log_dirs import log_dir_reports
from magicbyte.jobs.partitions import find_inputs
from magicbyte.jobs.plan import LARGEST_TARGET, DecodeTask, Planned, Range, Surveyor, survey
from magicbyte.jobs.problems import partition_problem
from magicbyte.jobs.progress import NO_PROGRESS, Progress
from magicbyte.jobs.reading import ReadOptions
from magicbyte.jobs.typed import column_decoders
from magicbyte.jobs.workspace import check_apart
from magicbyte.listing import log_start_of
from magicbyte.model import PartitionListing, PartitionPlan, PartitionReconciliation, Problem
from magicbyte.storage.paths import is_url

__all__ = ["EndsBeforeTableError", "ingest_table"]

_ATTEMPTS = 8
"""At a commit, if others commit to the table as well."""
_WAIT_SECONDS = 0.2
_LOG_PER_FILE = 8
"""How many times the size of a file a task reads at most: as much as the rows may be smaller than the log."""
_MOST = 1 << 63

Offsets = Mapping[TopicPartition, int]


class EndsBeforeTableError(RefusedError):
    """The log ends before the table does: it is another log, or was truncated, or another job has added what
    came after it was listed.
    """


def ingest_table(
    sources: Sequence[str],
    target: TableTarget,
    engine: Engine,
    options: IngestOptions,
    progress: Progress = NO_PROGRESS,
    *,
    partition_by: PartitionBy = "topic",
    choice: PartitionChoice = EVERYTHING,
    surveyor: Surveyor = survey,
    whole: bool = False,
) -> IngestReport:
    """Adds the records of every partition at and below `sources` that the table does not have yet.

    The table is created if it is not there. A partition is continued at the offset that the table's own
    commits name, so a job that is repeated, or killed and repeated, adds nothing twice.

    Args:
        sources: as for `jobs.ingest.ingest`, as the arguments that are not here.
        target: the table.
        engine: where the tasks run.
        options: which records the table has, and how.
        progress: where to report progress.
        partition_by: how the table's files are partitioned.
        choice: which partitions to read.
        surveyor: what surveys the segments.
        whole: for a log that is being written: its last batch may be there in part, and nothing is added if
            a file, or offsets between the files, are missing. Otherwise they are problems, as damage is.

    Raises:
        RefusedError: as `jobs.ingest.ingest`; if the table was made otherwise.
        EndsBeforeTableError: the table holds offsets beyond the end of a log.
        UnsettledError: if another job has added the same records meanwhile; for `whole`.
        JobError: if the expression fails for a record.

    """
    check_options(options)
    if options.overwrite:
        raise RefusedError("a table is never overwritten: a job adds to it what is new")
    made = _table_options(options, partition_by)
    inputs = find_inputs(sources, choice, distinct=True, assigned=True)

    @cache
    def read() -> ReadOptions:
        # Only if there are records, since a registry is asked; and after the log was listed, so that it knows
        # the schemas of all of them.
        topics = {one["topic"] for one in inputs.listings}
        found = read_options(options, column_decoders(options.typed, topics), digests=True)
        refuse_types(target.name, found.records_schema)
        return found

    table = _open(target, lambda: read().records_schema, made)
    check_apart(table.data, inputs.paths)
    table.options.check(table.name, made)
    files: JobFiles = StoredJobFiles(table.data) if is_url(table.data) else LocalJobFiles(table.data)
    keep: bool | None = False
    try:
        orphans = files.remove_orphans(table)
        table.refresh()
        starts = table.next_offsets([(one["topic"], one["partition"]) for one in inputs.listings])
        gaps = [gap for one in inputs.listings for gap in _gap(one, starts, options)]
        ends: dict[TopicPartition, int] = {}
        schema = pa.schema([])

        def find_end(planned: Planned) -> None:
            ends[_place(planned.plan)] = _end(planned, starts, options, table.name)

        def begin() -> Callable[[DecodeTask], Written]:
            nonlocal schema
            _refuse_empty_columns(table, read().records_schema)
            schema = table.file_schema(read().records_schema)
            write = LakeWriteOptions(
                read(),
                table.data,
                files.name,
                schema,
                partition_by == "day",
                options.codec,
                ("key",) if options.bloom_filter else (),
                options.target_file_size,
            )
            return partial(write_task, options=write)

        plans, written = decode_partitions(
            begin,
            [_from_offset(one, starts) for one in inputs.listings],
            engine,
            verb="ingest",
            surveyor=surveyor,
            isolation_level=options.isolation_level,
            bounds=lambda planned: _bounds(planned, starts, options),
            check=find_end,
            most_task_bytes=max(LARGEST_TARGET, _LOG_PER_FILE * options.target_file_size),
            progress=progress,
        )
        problems = [*gaps, *(problem for one in plans for problem in one.plan["problems"])]
        problems += [problem for one in written for problem in one.problems]
        left_out = sum(one.problems_left_out for one in written)
        sums = RecordSums()
        sums.add_all(one.sums for one in written)
        partitions = reconcile_partitions(plans, (text for one in written for text in one.results))
        if whole:
            problems = list(_without_ends(problems, partitions))
            _refuse_losses(table.name, problems, left_out, starts)
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
            schema=schema,
        )
        if commit.partitions:
            files.complete(commit.files)
            keep = None
            moved = _commit(table, commit, starts, files.name)
            keep = moved is None
            if moved is not None:
                raise UnsettledError(
                    f"{table.name}: another job has added records of {moved[0]}-{moved[1]} meanwhile, "
                    "so nothing is added: run it again"
                )
    finally:
        files.close(keep=keep)
    rows = sum(file.rows for file in commit.files)
    left_out += len(problems[_core.LISTED :])
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
        key_format=options.typed.key_format,
        value_format=options.typed.value_format,
        schema_registry=options.typed.schema_registry,
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
        key_format=options.typed.key_format,
        value_format=options.typed.value_format,
        messages=options.typed.messages,
    )


def _open(target: TableTarget, schema: Callable[[], pa.Schema], options: TableOptions) -> TransactionalTable:
    if target.format == "delta":
        return DeltaTable.open_or_create(target.name, schema, options)
    return IcebergTable.open_or_create(target, schema, options)


def _refuse_empty_columns(table: TransactionalTable, schema: pa.Schema) -> None:
    """Refuses to leave columns of ours empty; those of typed keys and values are the same in every job."""
    known = RECORDS_WITH_METADATA
    if missing := [name for name in table.column_names if name in known and name not in schema.names]:
        raise RefusedError(
            f"{table.name} has the columns {', '.join(missing)}, which would be null in new rows: "
            "add --include-batch-metadata, or choose another table"
        )


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
    begin = max(listing["segments"][0]["base_offset"], log_start_of(listing) or 0)
    begin = min(begin, options.ranges.end_offset or _MOST)
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
        raise EndsBeforeTableError(
            f"{table} holds {topic}-{partition} up to offset {start - 1}, but this log ends before {end}: it "
            "is another log, or was truncated; leave it out (--exclude), or choose another table"
        )
    if options.isolation_level == "read_committed" and plan["last_stable_offset"] is not None:
        end = min(end, plan["last_stable_offset"])
    return max(start, min(end, options.ranges.end_offset or end))


_LOSSES = (
    "data_loss",
    "directory_unreadable",
    "file_missing",
    "file_truncated",
    "file_unreadable",
    "partial_batch",
)
"""Kinds of problems: bytes of the log that were not read, or are not there."""


def _without_ends(
    problems: Iterable[Problem], partitions: Sequence[PartitionReconciliation]
) -> Iterator[Problem]:
    """Leaves out what is no problem in a log that is being written: bytes at its end that may become a batch,
    and index entries of batches that were appended after it was listed.
    """
    ends = {(one["topic"], one["partition"]): one["segments"][-1] for one in partitions if one["segments"]}
    for one in problems:
        last, segment = ends.get((one["topic"], one["partition"])), one["segment"]
        if last is not None and segment is not None:
            tail = last["tail"]
            if tail is not None and (segment, one["start"]) == (last["file"], tail["start"]):
                continue
            if one["kind"] == "index_beyond_log" and segment.startswith(last["file"].removesuffix("log")):
                continue
        yield one


def _refuse_losses(table: str, problems: Iterable[Problem], left_out: int, starts: Offsets) -> None:
    """Raises UnsettledError for records that are not in the log's files, or in files that cannot be read."""
    if left_out:
        raise UnsettledError(f"{table}: nothing is added, since there are too many problems to list them all")
    for one in problems:
        place, segment, last = (one["topic"], one["partition"]), one["segment"], one["last_lost_offset"]
        is_log = segment is None or _core.is_segment_file(segment)
        is_lost = one["kind"] in _LOSSES and is_log
        is_lost |= one["kind"] == "missing_segment" and (last is None or last >= starts.get(place, 0))
        if is_lost:
            name = f"{one['topic']}-{one['partition']}" + (f"/{segment}" if segment else "")
            raise UnsettledError(
                f"{table}: nothing is added, since {name} is not whole: {one['message']}; without --follow, "
                "what is lost is left out and named, and then this can go on"
            )


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
    raise UnsettledError(f"{table.name}: others commit all the time, so this job cannot: {conflict}")
