"""The job of `magicbyte ingest --format delta|iceberg`: what is new in a log becomes one commit.

list -> survey (tasks) -> plan from the table's offsets -> decode and write (tasks) -> commit (driver)
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from functools import cache

import pyarrow as pa

from magicbyte import _core
from magicbyte.errors import JobError, RefusedError
from magicbyte.jobs.find.choice import EVERYTHING, PartitionChoice
from magicbyte.jobs.find.live_listings import find_sources
from magicbyte.jobs.find.log_dirs import log_dir_reports
from magicbyte.jobs.find.partitions import Inputs
from magicbyte.jobs.ingest import (
    CommitReport,
    IngestReport,
    ManifestRow,
    TableSum,
    check_options,
    read_options,
    reported_options,
)
from magicbyte.jobs.internal_tables import InternalTopicsReport
from magicbyte.jobs.publish.workspace import check_apart
from magicbyte.jobs.run.accounting import listed, total_of
from magicbyte.jobs.run.engines import Engine
from magicbyte.jobs.run.high_watermarks import high_watermarks, partitions_above
from magicbyte.jobs.run.progress import NO_PROGRESS, Progress
from magicbyte.jobs.run.reading import HighWatermarks, ReadOptions
from magicbyte.jobs.run.sums import TopicPartition
from magicbyte.jobs.typed import column_decoders
from magicbyte.lake.checked import Checked
from magicbyte.lake.delta import DeltaTable
from magicbyte.lake.growing import GrowingLog
from magicbyte.lake.growth import refuse_types
from magicbyte.lake.iceberg import IcebergTable
from magicbyte.lake.ingest_job import IngestJob
from magicbyte.lake.job_files import JobFiles, LocalJobFiles
from magicbyte.lake.state import PartitionState
from magicbyte.lake.stored_job_files import StoredJobFiles
from magicbyte.lake.table import (
    Commit,
    ConflictError,
    TableOptions,
    TableTarget,
    TransactionalTable,
    UnsettledError,
)
from magicbyte.listing import cluster_id_of, is_live
from magicbyte.options.ingest import IngestOptions
from magicbyte.storage.destination import Destination
from magicbyte.storage.local_directory import LocalDirectory
from magicbyte.storage.stored_directory import StoredDirectory

__all__ = ["ingest_table"]

_ATTEMPTS = 8
"""The number of attempts at a commit, if other jobs commit to the table as well."""
_WAIT_SECONDS = 0.2


def ingest_table(
    sources: Sequence[str],
    target: TableTarget,
    engine: Engine,
    options: IngestOptions,
    progress: Progress = NO_PROGRESS,
    *,
    choice: PartitionChoice = EVERYTHING,
    growing: GrowingLog | None = None,
) -> IngestReport:
    """Adds the records of every partition at and below `sources` that the table does not have yet.

    The table is created if it is not there. A partition is continued at the offset that the table's own
    commits name, so a job that is repeated, or killed and repeated, adds nothing twice.

    Args:
        sources: see `jobs.ingest.ingest`, also for the arguments that are not listed here.
        target: the table.
        engine: where the tasks run.
        options: which records the table has, and how.
        progress: where to report progress.
        choice: which partitions to read.
        growing: for a log that is being written, in which files, or offsets between the files, may be
            missing for a moment: then nothing is added. Otherwise they are problems, as damage is.

    Raises:
        RefusedError: as for `jobs.ingest.ingest`, or if the table was made with other options.
        DivergedError: logs are not those that the table continues; not with `options.repair`.
        UnsettledError: if another job has added the same records meanwhile; for a growing log.
        JobError: if the expression fails for a record.

    """
    check_options(options)
    if options.overwrite:
        raise RefusedError("a table is never overwritten: a job adds to it what is new")
    made = _table_options(options, target)
    inputs = find_sources(sources, options.command_config, choice)
    waits = growing is not None and not growing.above_high_watermark
    marks = high_watermarks(inputs.listings, required=waits)

    @cache
    def read() -> ReadOptions:
        # Called only if there are records, since it queries a registry. This is after the log was listed, so
        # that the registry knows the schemas of all records.
        topics = {listing["topic"] for listing in inputs.listings}
        decoders = column_decoders(options.typed, topics)
        found = read_options(options, decoders, high_watermarks=marks, digests=True)
        refuse_types(target.name, found.records_schema)
        return found

    table = _open(target, lambda: read().records_schema, made)
    check_apart(table.data.path, inputs.paths)
    table.options.check(table.name, made)
    files = _job_files(table.data)
    job = IngestJob(
        table=table,
        directory=files.name,
        listings=inputs.listings,
        clusters=_clusters(inputs),
        engine=engine,
        options=options,
        read=read,
        progress=progress,
        growing=growing,
        limits=marks if waits else {},
        checked=Checked() if growing is None else growing.checked,
    )
    orphans, commit = _run(job, files, sources)
    return _report(target, inputs, marks, job, commit, orphans)


def _clusters(inputs: Inputs) -> dict[str, str | None]:
    """The cluster ids of the directories, or topics of running clusters, that partitions are in."""
    live = (listing for listing in inputs.listings if is_live(listing))
    of_topics = {os.path.dirname(listing["path"]): cluster_id_of(listing) for listing in live}
    return {log_dir.path: log_dir.cluster_id for log_dir in inputs.log_dirs} | of_topics


def _job_files(data: Destination) -> JobFiles:
    match data:
        case LocalDirectory():
            return LocalJobFiles(data.path)
        case StoredDirectory():
            return StoredJobFiles(data)


def _run(job: IngestJob, files: JobFiles, sources: Sequence[str]) -> tuple[list[str], Commit]:
    """Runs a job and commits what is new, if anything. Returns the files that killed jobs had left, and
    the commit.
    """
    table = job.table
    # None: a commit may have these files. They stay, and the next job finds out.
    keep: bool | None = False
    try:
        orphans = files.remove_orphans(table)
        table.refresh()
        commit = job.run(files.job, sources)
        if commit.states:
            files.complete(commit.files)
            keep = None
            moved = _commit(table, commit, job.states, files.name)
            keep = moved is None
            if moved is not None:
                raise UnsettledError(
                    f"{table.name}: another job has changed {moved[0]}-{moved[1]} meanwhile, "
                    "so nothing is added: run it again"
                )
            job.checked.advance(commit.states)
    except UnsettledError:
        keep = False
        raise
    finally:
        files.close(keep=keep)
    return orphans, commit


def _report(
    target: TableTarget,
    inputs: Inputs,
    marks: HighWatermarks,
    job: IngestJob,
    commit: Commit,
    orphans: list[str],
) -> IngestReport:
    options = job.options
    total = total_of(job.partitions)
    total["problems"] += job.other_problems
    added = [file for partition in job.written for file in partition.files]
    rows, size = sum(one.rows for one in added), sum(one.size for one in added)
    return {
        "magicbyte": _core.__version__,
        "format": target.format,
        "sources": list(commit.sources),
        **reported_options(options),
        "balanced": True,
        "total": total,
        "tables": {"records": TableSum(files=len(added), rows=rows, size=size)},
        "partitions": job.partitions,
        "skipped": inputs.skipped,
        "log_dirs": log_dir_reports(inputs.log_dirs, [planned.plan for planned in job.plans], job.partitions),
        "above_high_watermark": partitions_above(
            job.plans, marks, (text for partition in job.written for text in partition.results)
        ),
        "internal_topics": InternalTopicsReport(pending_offsets=0, problems=[], left_out=[]),
        "files": [
            ManifestRow(table="records", topic=one.topic, path=one.path, rows=one.rows, size=one.size)
            for one in added
        ],
        "commit": CommitReport(
            table=job.table.name,
            version=job.table.version,
            job=commit.job if commit.states else None,
            partitions=list(commit.partitions),
            repaired=job.repaired,
            orphans=orphans,
            **listed(job.problems, job.left_out),
        ),
    }


def _table_options(options: IngestOptions, target: TableTarget) -> TableOptions:
    return TableOptions(
        isolation_level=options.isolation_level,
        **asdict(options.ranges),
        where=options.where,
        key_as=options.key_as,
        value_as=options.value_as,
        partition_by=target.partition_by,
        key_format=options.typed.key_format,
        value_format=options.typed.value_format,
        messages=options.typed.messages,
        key_framing=options.typed.key_framing,
        value_framing=options.typed.value_framing,
        key_windows=options.typed.key_windows,
    )


def _open(target: TableTarget, schema: Callable[[], pa.Schema], options: TableOptions) -> TransactionalTable:
    if target.format == "delta":
        return DeltaTable.open_or_create(target.name, schema, options)
    return IcebergTable.open_or_create(target, schema, options)


def _commit(
    table: TransactionalTable,
    commit: Commit,
    before: Mapping[TopicPartition, PartitionState],
    directory: str,
) -> TopicPartition | None:
    """Commits, and tries again if commits that change different partitions come first.

    Returns None, or a partition that another job has changed: then nothing is committed.
    """
    places = list(commit.states)
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
        now = table.states(places)
        if moved := [place for place in places if now.get(place) != before.get(place)]:
            return moved[0]
        if commit.replaced:
            raise UnsettledError(
                f"{table.name}: others have changed the table meanwhile, so nothing is repaired: run it again"
            )
    raise UnsettledError(f"{table.name}: others commit all the time, so this job cannot: {conflict}")
