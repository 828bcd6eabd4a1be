"""The job of `magicbyte verify`: decodes every record of every partition and writes nothing."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Literal, Protocol, TypedDict

from magicbyte import _core
from magicbyte.enums import IsolationLevel
from magicbyte.errors import RefusedError
from magicbyte.jobs.certified import CertificateCheck, check_certificate
from magicbyte.jobs.comparing.against import ClusterComparison, compare_with_cluster
from magicbyte.jobs.find.choice import EVERYTHING, PartitionChoice
from magicbyte.jobs.find.log_dirs import LogDirReport, log_dir_reports, note_missing_ids
from magicbyte.jobs.find.partitions import SkippedDirectory, find_inputs
from magicbyte.jobs.indexes import IndexReport, check_indexes
from magicbyte.jobs.run.accounting import Totals, listed, reconcile_partitions, total_of
from magicbyte.jobs.run.decode_partitions import DecodeJob, decode_partitions
from magicbyte.jobs.run.engines import Engine
from magicbyte.jobs.run.live_partitions import live_partitions
from magicbyte.jobs.run.plan import DecodeTask, Planned, Range, all_offsets
from magicbyte.jobs.run.progress import NO_PROGRESS, Progress
from magicbyte.jobs.run.sums import NullTimes, RecordSums, TopicPartition
from magicbyte.live import open_cluster, split_sources
from magicbyte.model import PartitionListing, PartitionReconciliation, Problem
from magicbyte.options.read import VerifyOptions

if TYPE_CHECKING:
    from magicbyte.jobs.run.reading import ReadOptions

__all__ = [
    "ComparedPartition",
    "Comparison",
    "LogSums",
    "TableComparison",
    "TableOfLog",
    "VerifyReport",
    "verify",
]


Comparison = Literal["equal", "behind", "differs", "unproven", "not_in_log", "not_in_table"]
"""`behind`: the table equals the log up to its own end, and the log continues. `unproven`: nothing differs,
but the table does not hold enough of some rows to decide."""


class ComparedPartition(TypedDict):
    """A partition in the log and in the table."""

    topic: str
    partition: int
    result: Comparison
    start_offset: int
    """The start of the comparison: the beginning of the log."""
    next_offset: int
    """The end of the comparison (exclusive): the end of the table."""
    log_end: int
    """The end of the log."""
    log_rows: int
    table_rows: int
    log_digest: str
    """See `RecordSum.hex_digest`."""
    table_digest: str
    older_rows: int
    """Rows of the table from before the beginning of the log, which are not compared."""
    first_difference: int | None
    """The first offset that differs, if the partition does; for typed rows, the first offset of a group."""
    changed_rows: int
    """Rows that the table and the log both have, but that differ."""
    missing_rows: int
    """Records of the log that the table lacks: deleted from the table, or never added."""
    first_missing: int | None
    """The offset of the first missing record."""
    compacted_rows: int
    """Rows of the table whose records the log no longer has, at offsets that compaction has left out."""
    lost_rows: int
    """Rows of the table whose records the log has lost."""
    unproven_rows: int
    """Rows that cannot be compared: their timestamp is null, and the table has no `timestampMillis`, or they
    are typed and compaction has removed other records of their group."""


class TableComparison(TypedDict):
    """The result of a comparison."""

    table: str
    equal: bool
    """True if all partitions are equal."""
    partitions: list[ComparedPartition]


@dataclass(frozen=True)
class LogSums:
    """The result of reading the log."""

    plans: Sequence[Planned]
    sums: RecordSums
    times: NullTimes
    problems: Sequence[Problem]
    absent: Mapping[TopicPartition, int]
    """The number of offsets of each partition that no record has, although nothing is lost there."""


class TableOfLog(Protocol):
    """A table that is compared with the log that it was made from (`magicbyte.lake.compare.LogOfTable`)."""

    read: ReadOptions
    """The fields and records of the log that the table should hold."""

    @property
    def isolation_level(self) -> IsolationLevel:
        """The isolation level of the table's records."""

    def bounds(self, planned: Planned) -> Range:
        """The offsets of a partition that the table should hold."""

    def compare(self, log: LogSums, choice: PartitionChoice, engine: Engine) -> TableComparison:
        """Compares the records of the log with the rows of the table."""


class VerifyReport(TypedDict):
    """The result of a verification."""

    sources: list[str]
    balanced: bool
    total: Totals
    partitions: list[PartitionReconciliation]
    skipped: list[SkippedDirectory]
    log_dirs: list[LogDirReport]
    problems: list[Problem]
    """The first `LISTED` problems."""
    problems_left_out: int
    """The number of problems that are not listed."""
    table: TableComparison | None
    """The comparison with a table, if one was requested."""
    indexes: IndexReport | None
    """The comparison of the indexes, if it was requested."""
    certificate: CertificateCheck | None
    """The comparison with a certificate, if one was given."""
    cluster: ClusterComparison | None
    """The comparison with a running cluster, if it was requested."""


@dataclass(frozen=True)
class _Checked:
    results: list[str]
    problems: list[Problem]
    left_out: int
    sums: RecordSums
    """The sums of the records, if there are columns."""
    times: NullTimes


def _check_task(task: DecodeTask, max_decompressed_bytes: int) -> _Checked:
    return _check_chunks(task.chunks, max_decompressed_bytes)


def _check_chunks(chunks: Iterable[str | _core.FetchedChunk], max_decompressed_bytes: int) -> _Checked:
    """Decodes the records without making columns of them, which needs no Arrow."""
    results: list[str] = []
    problems: list[Problem] = []
    left_out = 0
    for chunk in chunks:
        result, listing = _core.check_chunk(chunk, max_decompressed_bytes)
        results.append(result)
        found = json.loads(listing)
        room = _core.LISTED - len(problems)
        problems += found["problems"][:room]
        left_out += found["problems_left_out"] + len(found["problems"][room:])
    return _Checked(results, problems, left_out, RecordSums(), NullTimes())


def _compare_task(task: DecodeTask, options: ReadOptions) -> _Checked:
    from magicbyte.jobs.run.reading import Rows, decoded_problems, read_chunk

    results: list[str] = []
    problems: list[Problem] = []
    left_out = 0
    sums, times = RecordSums(), NullTimes()
    for chunk in task.chunks:
        for item in read_chunk(chunk, options):
            if isinstance(item, Rows) and item.table == "records":
                sums.add_all([item.sums])
                times.add_rows(item.batch)
            elif isinstance(item, Rows):
                room = _core.LISTED - len(problems)
                problems += decoded_problems(item.batch.slice(0, room))
                left_out += max(0, item.batch.num_rows - room)
            else:
                results.append(item)
    return _Checked(results, problems, left_out, sums, times)


def verify(
    sources: Sequence[str],
    engine: Engine,
    options: VerifyOptions,
    *,
    choice: PartitionChoice = EVERYTHING,
    table: Callable[[Sequence[PartitionListing], int], TableOfLog] | None = None,
    progress: Progress = NO_PROGRESS,
) -> VerifyReport:
    """Checks sizes, CRCs and every record of the partitions at and below `sources`.

    With a `table`, made from the listings and the limit, also compares its rows with the records, which are
    then chosen as those of the table were: by its isolation level, ranges and expression.

    Raises:
        RefusedError: if there is nothing to read, or a partition to compare is found twice.
        OSError: if the cluster to compare with does not answer or refuses.

    """
    max_decompressed_bytes = options.max_decompressed_bytes
    files, clusters = split_sources(sources, None if options.against else options.command_config)
    if clusters and any((options.table, options.indexes, options.certificate, options.against)):
        raise RefusedError(
            "a running cluster is verified by itself: table, indexes, certificate and against compare files"
        )
    # A cluster that refuses is known before the files are read.
    cluster = None if options.against is None else open_cluster(options.against, options.command_config)
    if table is not None:
        from magicbyte.jobs.run.reading import check_column_limit

        check_column_limit("max_decompressed_bytes", max_decompressed_bytes)
    live = live_partitions(clusters, options.command_config, choice, max_decompressed_bytes)
    inputs = find_inputs(files, choice, distinct=table is not None, assigned=True, may_be_none=bool(clusters))
    note_missing_ids(inputs.log_dirs, inputs.listings)
    log = None if table is None else table(inputs.listings, max_decompressed_bytes)
    plans, checked = _decode(inputs.listings, engine, options, log, progress)
    partitions = reconcile_partitions(plans, (text for one in checked for text in one.results))
    log_dirs = log_dir_reports(inputs.log_dirs, [planned.plan for planned in plans], partitions)
    for one in live:
        found = _check_chunks(one.chunks(options.isolation_level), max_decompressed_bytes)
        partitions.append(one.reconciled(found.results, options.isolation_level))
        checked.append(found)
    total = total_of(partitions)
    sums, times = RecordSums(), NullTimes()
    sums.add_all(one.sums for one in checked)
    times.add_all(one.times for one in checked)
    problems = [problem for planned in plans for problem in planned.plan["problems"]]
    problems += [problem for one in checked for problem in one.problems]
    return VerifyReport(
        sources=list(sources),
        balanced=total["balanced"],
        total=total,
        partitions=partitions,
        skipped=inputs.skipped,
        log_dirs=log_dirs,
        **listed(problems, sum(one.left_out for one in checked)),
        table=None
        if log is None
        else log.compare(_log_sums(plans, sums, times, problems, partitions), choice, engine),
        indexes=check_indexes(
            inputs.listings, engine, max_decompressed_bytes=max_decompressed_bytes, progress=progress
        )
        if options.indexes
        else None,
        certificate=None
        if options.certificate is None
        else check_certificate(options.certificate, sources, engine, progress),
        cluster=None
        if cluster is None or options.against is None
        else compare_with_cluster(
            sources, options.against, cluster, engine, choice, max_decompressed_bytes, progress
        ),
    )


def _decode(
    listings: Sequence[PartitionListing],
    engine: Engine,
    options: VerifyOptions,
    log: TableOfLog | None,
    progress: Progress,
) -> tuple[list[Planned], list[_Checked]]:
    """Decodes files, with the columns of a table if it is compared with them."""
    return decode_partitions(
        DecodeJob(
            lambda: (
                partial(_compare_task, options=log.read)
                if log
                else partial(_check_task, max_decompressed_bytes=options.max_decompressed_bytes)
            ),
            "verify",
            lambda checked: checked.results,
            writes_files=False,
        ),
        listings,
        engine,
        isolation_level=log.isolation_level if log else options.isolation_level,
        bounds=log.bounds if log else all_offsets,
        progress=progress,
    )


def _log_sums(
    plans: Sequence[Planned],
    sums: RecordSums,
    times: NullTimes,
    problems: Sequence[Problem],
    partitions: Sequence[PartitionReconciliation],
) -> LogSums:
    absent = {}
    for planned, found in zip(plans, partitions, strict=True):
        begin = min((segment["base_offset"] for segment in planned.listing["segments"]), default=0)
        first = planned.plan["next_offset"] if found["first_offset"] is None else found["first_offset"]
        before = max(0, (first or 0) - begin)
        absent[found["topic"], found["partition"]] = before + found["missing_offsets"] - found["lost_offsets"]
    return LogSums(plans, sums, times, problems, absent)
