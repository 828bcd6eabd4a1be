"""The job of `magicbyte ingest`: Kafka segments in, Parquet tables and a reconciliation out.

list -> survey (tasks) -> plan (driver) -> decode and write (tasks) -> reconcile -> commit (driver)
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from functools import partial
from typing import TypedDict

from magicbyte import _core
from magicbyte.enums import IsolationLevel, PayloadType, SchemaFormat, TableFormat
from magicbyte.errors import RefusedError
from magicbyte.jobs.find.choice import EVERYTHING, PartitionChoice
from magicbyte.jobs.find.live_listings import find_sources
from magicbyte.jobs.find.log_dirs import LogDirReport, log_dir_reports
from magicbyte.jobs.find.partitions import SkippedDirectory
from magicbyte.jobs.internal_tables import InternalTopicsReport, write_internal_tables
from magicbyte.jobs.publish.outputs import tables_output
from magicbyte.jobs.publish.parquet import DataFile, ParquetFile, can_write_bloom_filters, file_name
from magicbyte.jobs.publish.table_files import WriteOptions, file_schema
from magicbyte.jobs.run.accounting import Totals, reconcile_partitions, total_of
from magicbyte.jobs.run.columns import KAFKA_COLUMNS, RECORDS_WITH_METADATA, TABLES
from magicbyte.jobs.run.decode_partitions import DecodeJob, decode_partitions
from magicbyte.jobs.run.engines import Engine
from magicbyte.jobs.run.high_watermarks import AboveHighWatermark, high_watermarks, partitions_above
from magicbyte.jobs.run.progress import NO_PROGRESS, Progress
from magicbyte.jobs.run.reading import HighWatermarks, ReadOptions, check_column_limit, plan_problems
from magicbyte.jobs.run.selecting import record_filter
from magicbyte.jobs.typed import column_decoders, refuse_names
from magicbyte.model import LeaderEpoch, PartitionPlan, PartitionReconciliation, Problem
from magicbyte.options.ingest import IngestOptions
from magicbyte.options.typed_rules import broken_rule
from magicbyte.schema.decoding import ColumnDecoder

__all__ = [
    "CommitReport",
    "CommittedPartition",
    "IngestReport",
    "ManifestRow",
    "RepairedRange",
    "TableSum",
    "check_options",
    "ingest",
    "read_options",
    "reported_options",
]


class ManifestRow(TypedDict):
    """A committed file; `path` is relative to the output, `size` is in bytes."""

    table: str
    topic: str | None
    """The topic of all its rows; None if it has rows of several."""
    path: str
    rows: int
    size: int


class TableSum(TypedDict):
    """The sums of one table; `size` is in bytes."""

    files: int
    rows: int
    size: int


class CommittedPartition(TypedDict):
    """The rows of one partition that a job added to a table."""

    topic: str
    partition: int
    start_offset: int
    """The offset that the job started at."""
    next_offset: int
    """The offset that the next job starts at."""
    rows: int
    digest: str
    """The sum of `magicbyte._core.digest_records` over the rows, as 32 hexadecimal digits."""
    topic_id: str | None
    """The ID of the topic that the table continues; None if it is not known."""
    cluster_id: str | None
    """The ID of the cluster, from the broker's `meta.properties`; None if it is not known."""
    leader_epoch: LeaderEpoch | None
    """The leader epoch of the last batch, and where it began; None if the batches have none."""
    holes: list[list[int]]
    """All ranges of offsets, as start and end (exclusive), that were passed although their records were lost
    or unread."""


class RepairedRange(TypedDict):
    """Rows of a table that a job has replaced by the current records of the log."""

    topic: str
    partition: int
    start_offset: int
    end_offset: int
    """The end of the replaced rows (exclusive)."""
    removed_rows: int
    rows: int
    """The number of rows that were added from `start_offset` on: up to `end_offset` for a hole, otherwise up
    to the end of the log."""


class CommitReport(TypedDict):
    """The changes that a job made to a Delta or Iceberg table."""

    table: str
    """The directory or identifier of the table."""
    version: int | None
    """The table's version, or for Iceberg its snapshot; None if it has none yet."""
    job: str | None
    """The ID in the commit; None if there was nothing to add."""
    partitions: list[CommittedPartition]
    """The partitions that the job changed."""
    repaired: list[RepairedRange]
    """The replaced rows, with the option `repair`."""
    orphans: list[str]
    """Directories of killed jobs that were removed, with the data files that they had not committed."""
    problems: list[Problem]
    """The first `LISTED` problems."""
    problems_left_out: int
    """The number of problems that are not listed."""


class ReportedOptions(TypedDict):
    """The options that decide which records there are, and their form."""

    isolation_level: IsolationLevel
    ranges: dict[str, int | None]
    """The fields of `Ranges`."""
    where: str | None
    key_as: PayloadType
    value_as: PayloadType
    key_format: SchemaFormat | None
    value_format: SchemaFormat | None
    schema_registry: str | None
    """The `schema_registry` of the option `typed`."""


class IngestReport(ReportedOptions):
    """The content of `reconciliation.json`."""

    magicbyte: str
    """The version that wrote it."""
    format: TableFormat
    sources: list[str]
    balanced: bool
    """True if the bytes and records of every partition add up, and the files hold exactly the rows that were
    counted."""
    total: Totals
    tables: dict[str, TableSum]
    partitions: list[PartitionReconciliation]
    skipped: list[SkippedDirectory]
    log_dirs: list[LogDirReport]
    above_high_watermark: list[AboveHighWatermark]
    """Partitions whose logs continue above their high watermarks, which only brokers' directories have."""
    internal_topics: InternalTopicsReport
    """A report on the tables `offsets` and `topics`, which exist if their topics are read."""
    files: list[ManifestRow]
    commit: CommitReport | None
    """The commit to a Delta or Iceberg table."""


def check_options(options: IngestOptions) -> None:
    """Raises `RefusedError` for options that this environment does not have, that tables cannot hold, or that
    contradict each other.
    """
    check_column_limit("max_decompressed_bytes", options.max_decompressed_bytes)
    if options.bloom_filter and not can_write_bloom_filters():
        raise RefusedError("bloom filters need pyarrow 24 or newer")
    rule = broken_rule(options.typed, options.typed.formats, options.payloads)
    if rule is not None:
        raise RefusedError(rule)


def reported_options(options: IngestOptions) -> ReportedOptions:
    """The options for a report."""
    return {
        "isolation_level": options.isolation_level,
        "ranges": asdict(options.ranges),
        "where": options.where,
        "key_as": options.key_as,
        "value_as": options.value_as,
        "key_format": options.typed.key_format,
        "value_format": options.typed.value_format,
        "schema_registry": options.typed.schema_registry,
    }


def read_options(
    options: IngestOptions,
    typed: tuple[ColumnDecoder, ...] = (),
    *,
    high_watermarks: HighWatermarks,
    batches: bool = False,
    digests: bool = False,
) -> ReadOptions:
    """Options for decoding the chunks: `batches` adds that table, and `digests` allows a comparison."""
    metadata = options.include_batch_metadata
    return ReadOptions(
        RECORDS_WITH_METADATA if metadata else (*KAFKA_COLUMNS, "headers"),
        batches=batches,
        max_decompressed_bytes=options.max_decompressed_bytes,
        key_as=options.key_as,
        value_as=options.value_as,
        start_timestamp=options.start_timestamp,
        end_timestamp=options.end_timestamp,
        where=None if options.where is None else record_filter(options.where),
        typed=typed,
        digests=digests,
        high_watermarks=high_watermarks,
    )


def ingest(
    sources: Sequence[str],
    out: str,
    engine: Engine,
    options: IngestOptions,
    progress: Progress = NO_PROGRESS,
    *,
    choice: PartitionChoice = EVERYTHING,
) -> IngestReport:
    """Decodes every partition at and below `sources` into Parquet tables in `out`, a directory or URL.

    Raises:
        RefusedError: if there is nothing to read, a partition is found twice, content of `out` would be
            lost, `max_decompressed_bytes` is more than tables can hold, bloom filters need a newer pyarrow,
            the expression is not valid, or typed columns have no schema.
        InvalidSchemaError: if the reader's schema cannot be used.
        JobError: if the expression fails for a record.

    """
    check_options(options)
    if options.repair or options.fail_on_missing:
        raise RefusedError("only Delta and Iceberg tables are repaired, or fail on missing records")
    inputs = find_sources(sources, options.command_config, choice)
    listings = inputs.listings
    decoders = column_decoders(options.typed, {listing["topic"] for listing in listings})
    for decoder in decoders:
        refuse_names(decoder.schema)
    marks = high_watermarks(listings, required=False)
    digests = options.digest and bool(decoders)
    read = read_options(options, decoders, high_watermarks=marks, batches=True, digests=digests)
    with tables_output(out, inputs.paths, overwrite=options.overwrite) as output:
        bloom_filters = ("key",) if options.bloom_filter else ()
        write = WriteOptions(read, output.staging, options.parquet_compression, bloom_filters)
        plans, decoded = decode_partitions(
            DecodeJob(
                lambda: partial(output.decode, options=write), "decode", lambda decoded: decoded.results
            ),
            listings,
            engine,
            isolation_level=options.isolation_level,
            bounds=options.bounds,
            progress=progress,
        )
        staged = _write_plan_problems([planned.plan for planned in plans], write)
        internal = write_internal_tables(inputs, plans, engine, write, progress)
        files = output.add([file for one in decoded for file in one.files], [*staged, *internal.files])
        schemas = {**{table: file_schema(table, read) for table in TABLES}, **internal.schemas}
        results = [text for one in decoded for text in one.results]
        partitions = reconcile_partitions(plans, results)
        report: IngestReport = {
            "magicbyte": _core.__version__,
            "format": "parquet",
            "sources": list(sources),
            **reported_options(options),
            "balanced": all(partition["balanced"] for partition in partitions)
            and _rows_agree(partitions, files),
            "total": total_of(partitions),
            "tables": {table: _sum_of(files, table) for table in schemas},
            "partitions": partitions,
            "skipped": inputs.skipped,
            "log_dirs": log_dir_reports(inputs.log_dirs, [planned.plan for planned in plans], partitions),
            "above_high_watermark": partitions_above(plans, marks, results),
            "internal_topics": internal.report,
            "files": [_manifest_row(file) for file in files],
            "commit": None,
        }
        output.add_empty_tables(schemas)
        output.commit(report)
    return report


def _write_plan_problems(plans: Sequence[PartitionPlan], options: WriteOptions) -> list[DataFile]:
    """Writes the problems of the plans (ignored files, overlaps) into the table `problems`."""
    with_problems = [plan for plan in plans if plan["problems"]]
    if not with_problems:
        return []
    path = os.path.join(options.staging, "problems", file_name("plan", options.codec))
    file = ParquetFile(path, file_schema("problems", options.read), options.codec)
    for plan in with_problems:
        file.write(plan_problems(plan))
    return [DataFile("problems", None, path, file.rows, file.close())]


def _rows_agree(partitions: Sequence[PartitionReconciliation], files: Sequence[DataFile]) -> bool:
    """True if the files of `records` hold exactly the rows that were counted for each partition."""
    written: Counter[tuple[str | None, int]] = Counter()
    for file in files:
        if file.table == "records":
            written.update({(file.topic, partition): rows for partition, rows in file.partitions})
    counted = {(one["topic"], one["partition"]): one["rows"] for one in partitions if one["rows"]}
    return written == counted


def _sum_of(files: Sequence[DataFile], table: str) -> TableSum:
    own = [file for file in files if file.table == table]
    return TableSum(files=len(own), rows=sum(file.rows for file in own), size=sum(file.size for file in own))


def _manifest_row(file: DataFile) -> ManifestRow:
    path = os.path.join(file.table, file.name)
    return ManifestRow(table=file.table, topic=file.topic, path=path, rows=file.rows, size=file.size)
