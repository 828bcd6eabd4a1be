"""The job of `magicbyte verify`: decodes every record of every partition and writes nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, TypedDict

from magicbyte import _core
from magicbyte.enums import IsolationLevel
from magicbyte.jobs.accounting import Totals, reconcile_partitions, total_of
from magicbyte.jobs.choice import EVERYTHING, PartitionChoice
from magicbyte.jobs.decode_partitions import SMALL_TASK, decode_partitions
from magicbyte.jobs.engines import Engine
from magicbyte.jobs.indexes import IndexReport, check_indexes
from magicbyte.jobs.lake.sums import NullTimes, RecordSums
from magicbyte.jobs.log_dirs import LogDirReport, log_dir_reports, note_missing_ids
from magicbyte.jobs.partitions import SkippedDirectory, find_inputs
from magicbyte.jobs.plan import DecodeTask, Planned, all_offsets
from magicbyte.jobs.progress import NO_PROGRESS, Progress
from magicbyte.jobs.reading import ReadOptions, Rows, check_column_limit, decoded_problems, read_chunk
from magicbyte.model import PartitionListing, PartitionReconciliation, Problem

if TYPE_CHECKING:
    from magicbyte.jobs.lake.compare import LogOfTable, LogSums, TableComparison
    from magicbyte.jobs.lake.read import StoredTable

__all__ = ["VerifyReport", "verify"]


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


@dataclass(frozen=True)
class _Checked:
    results: list[str]
    problems: list[Problem]
    left_out: int
    sums: RecordSums
    """The sums of the records, if there are columns."""
    times: NullTimes


def _check_task(task: DecodeTask, options: ReadOptions) -> _Checked:
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
    *,
    isolation_level: IsolationLevel = "read_uncommitted",
    max_decompressed_bytes: int,
    choice: PartitionChoice = EVERYTHING,
    table: StoredTable | None = None,
    indexes: bool = False,
    progress: Progress = NO_PROGRESS,
) -> VerifyReport:
    """Checks sizes, CRCs and every record of the partitions at and below `sources`.

    With a `table`, also compares its rows with the records, which are then chosen as those of the table were:
    by its isolation level, ranges and expression. With `indexes`, compares the indexes with the segments.

    Raises:
        RefusedError: if there is nothing to read, or a partition to compare is found twice.

    """
    if table is not None:
        check_column_limit("max_decompressed_bytes", max_decompressed_bytes)
    inputs = find_inputs(sources, choice, distinct=table is not None, assigned=True)
    note_missing_ids(inputs.log_dirs, inputs.listings)
    log = None if table is None else _log_of(table, inputs.listings, max_decompressed_bytes)
    plans, checked = decode_partitions(
        lambda: partial(
            _check_task,
            options=log.read if log else ReadOptions(max_decompressed_bytes=max_decompressed_bytes),
        ),
        inputs.listings,
        engine,
        verb="verify",
        accounts_of=lambda checked: checked.results,
        isolation_level=log.options.isolation_level if log else isolation_level,
        bounds=log.bounds if log else all_offsets,
        stored_task_bytes=SMALL_TASK,
        progress=progress,
    )
    partitions = reconcile_partitions(plans, (text for one in checked for text in one.results))
    total = total_of(partitions)
    sums, times = RecordSums(), NullTimes()
    sums.add_all(one.sums for one in checked)
    times.add_all(one.times for one in checked)
    problems = [problem for one in plans for problem in one.plan["problems"]]
    problems += [problem for one in checked for problem in one.problems]
    return VerifyReport(
        sources=list(sources),
        balanced=total["balanced"],
        total=total,
        partitions=partitions,
        skipped=inputs.skipped,
        log_dirs=log_dir_reports(inputs.log_dirs, [one.plan for one in plans], partitions),
        problems=problems[: _core.LISTED],
        problems_left_out=sum(one.left_out for one in checked) + len(problems[_core.LISTED :]),
        table=None
        if log is None
        else log.compare(_log_sums(plans, sums, times, problems, partitions), choice, engine),
        indexes=check_indexes(
            inputs.listings, engine, max_decompressed_bytes=max_decompressed_bytes, progress=progress
        )
        if indexes
        else None,
    )


def _log_sums(
    plans: Sequence[Planned],
    sums: RecordSums,
    times: NullTimes,
    problems: Sequence[Problem],
    partitions: Sequence[PartitionReconciliation],
) -> LogSums:
    from magicbyte.jobs.lake.compare import LogSums

    absent = {}
    for planned, found in zip(plans, partitions, strict=True):
        begin = min((one["base_offset"] for one in planned.listing["segments"]), default=0)
        first = planned.plan["next_offset"] if found["first_offset"] is None else found["first_offset"]
        before = max(0, (first or 0) - begin)
        absent[found["topic"], found["partition"]] = before + found["missing_offsets"] - found["lost_offsets"]
    return LogSums(plans, sums, times, problems, absent)


def _log_of(
    table: StoredTable, listings: Sequence[PartitionListing], max_decompressed_bytes: int
) -> LogOfTable:
    # Its libraries take longer to load than a small log to verify.
    from magicbyte.jobs.lake.compare import LogOfTable

    return LogOfTable(table, listings, max_decompressed_bytes)
