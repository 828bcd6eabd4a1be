"""The job behind `magicbyte ingest`: Kafka segments in, Parquet tables and a reconciliation out.

list -> survey (tasks) -> plan (driver) -> decode and write (tasks) -> reconcile -> commit (driver)
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypedDict

from magicbyte import _core
from magicbyte.enums import IsolationLevel
from magicbyte.jobs.accounting import Totals, reconcile_partitions, total_of
from magicbyte.jobs.choice import EVERYTHING, PartitionChoice
from magicbyte.jobs.columns import KAFKA_COLUMNS, RECORDS_WITH_METADATA, TABLES
from magicbyte.jobs.commit import TablesOutput
from magicbyte.jobs.decode import Decoded, WriteOptions, decode_task
from magicbyte.jobs.engines import Engine
from magicbyte.jobs.log_dirs import LogDirReport, log_dir_reports
from magicbyte.jobs.parquet import DataFile, ParquetFile, directory_of, file_schema
from magicbyte.jobs.partitions import SkippedDirectory, find_inputs
from magicbyte.jobs.plan import plan_partitions, task_name, tasks_of
from magicbyte.jobs.progress import NO_PROGRESS, Progress
from magicbyte.jobs.reading import ReadOptions, check_column_limit, plan_problems, table_schema
from magicbyte.model import PartitionPlan, PartitionReconciliation

__all__ = ["IngestOptions", "IngestReport", "ManifestRow", "TableSum", "ingest"]


@dataclass(frozen=True)
class IngestOptions:
    """The options of an ingest."""

    isolation_level: IsolationLevel = "read_uncommitted"
    """`read_committed` leaves out aborted records and ends at the last stable offset."""
    batch_metadata: bool = False
    """Whether to add `columns.BATCH_METADATA` to the table `records`."""
    codec: str = "snappy"
    """Parquet compression, one of `parquet.CODECS`."""
    max_decompressed_bytes: int = _core.DEFAULT_MAX_DECOMPRESSED_BYTES
    """The limit for one batch after decompression, at most 1 GiB; larger batches are quarantined."""
    overwrite: bool = False
    """Whether to replace an earlier output, once the job is done."""

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the files of `records`; topic and partition are in the directory names."""
        columns = RECORDS_WITH_METADATA if self.batch_metadata else (*KAFKA_COLUMNS, "headers")
        return tuple(name for name in columns if name not in ("topic", "partition"))


class ManifestRow(TypedDict):
    """A committed file; `path` is relative to the output, `size` is in bytes."""

    table: str
    path: str
    rows: int
    size: int


class TableSum(TypedDict):
    """The sums of one table; `size` is in bytes."""

    files: int
    rows: int
    size: int


class IngestReport(TypedDict):
    """The content of `reconciliation.json`."""

    magicbyte: str
    """The version that wrote it."""
    sources: list[str]
    isolation_level: IsolationLevel
    balanced: bool
    """Whether the bytes and records of every partition add up, and the files hold exactly the rows that were
    counted."""
    total: Totals
    tables: dict[str, TableSum]
    partitions: list[PartitionReconciliation]
    skipped: list[SkippedDirectory]
    log_dirs: list[LogDirReport]
    files: list[ManifestRow]


def ingest(
    sources: Sequence[str],
    out: str,
    engine: Engine,
    options: IngestOptions,
    progress: Progress = NO_PROGRESS,
    *,
    choice: PartitionChoice = EVERYTHING,
) -> IngestReport:
    """Decodes every partition at and below `sources` into Parquet tables in the directory `out`.

    Raises:
        RefusedError: if there is nothing to read, a partition is found twice, content of `out` would be
            lost, or `max_decompressed_bytes` is more than tables can hold.

    """
    check_column_limit("max_decompressed_bytes", options.max_decompressed_bytes)
    inputs = find_inputs(sources, choice, distinct=True)
    listings = inputs.listings
    with TablesOutput(out, inputs.paths, overwrite=options.overwrite) as output:
        plans = plan_partitions(listings, engine, isolation_level=options.isolation_level, progress=progress)
        read = ReadOptions(options.columns, True, options.max_decompressed_bytes)
        write = WriteOptions(read, output.staging, options.codec)
        tasks = tasks_of(plans, engine.parallelism)
        decoded: list[Decoded] = engine.map(
            partial(decode_task, options=write),
            tasks,
            name=task_name("decode", tasks),
            sizes=[task.size for task in tasks],
            progress=progress,
        )
        files = [file for one in decoded for file in one.files]
        files += [file for one in plans for file in _write_plan_problems(one.plan, write)]
        partitions = reconcile_partitions(plans, (text for one in decoded for text in one.results))
        report = IngestReport(
            magicbyte=_core.__version__,
            sources=list(sources),
            isolation_level=options.isolation_level,
            balanced=all(one["balanced"] for one in partitions) and _rows_agree(partitions, files),
            total=total_of(partitions),
            tables={table: _sum_of(files, table) for table in TABLES},
            partitions=partitions,
            skipped=inputs.skipped,
            log_dirs=log_dir_reports(inputs.log_dirs, [one.plan for one in plans], partitions),
            files=[_manifest_row(file) for file in files],
        )
        output.add(files)
        output.add_empty_tables(options.columns, listings[0]["topic"], listings[0]["partition"])
        output.commit(report)
    return report


def _write_plan_problems(plan: PartitionPlan, options: WriteOptions) -> Iterable[DataFile]:
    """Writes the problems of a plan (ignored files, overlaps) into the table `problems`."""
    if not plan["problems"]:
        return
    topic, partition = plan["topic"], plan["partition"]
    name = f"part-plan.{options.codec}.parquet"
    path = f"{options.staging}/{directory_of('problems', topic, partition)}/{name}"
    file = ParquetFile(path, file_schema(table_schema("problems")), options.codec)
    file.write(plan_problems(plan))
    yield DataFile("problems", topic, partition, path, name, file.rows, file.close())


def _rows_agree(partitions: Sequence[PartitionReconciliation], files: Sequence[DataFile]) -> bool:
    """Whether each partition's files of `records` hold exactly the rows that were counted."""
    written: Counter[tuple[str, int]] = Counter()
    for file in files:
        if file.table == "records":
            written[file.topic, file.partition] += file.rows
    return all(written[one["topic"], one["partition"]] == one["rows"] for one in partitions)


def _sum_of(files: Sequence[DataFile], table: str) -> TableSum:
    own = [file for file in files if file.table == table]
    return TableSum(files=len(own), rows=sum(file.rows for file in own), size=sum(file.size for file in own))


def _manifest_row(file: DataFile) -> ManifestRow:
    path = f"{directory_of(file.table, file.topic, file.partition)}/{file.name}"
    return ManifestRow(table=file.table, path=path, rows=file.rows, size=file.size)
