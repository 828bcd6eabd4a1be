"""Commits to a transactional table, on the terminal: one commit, or the commits of a stream as they come."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from magicbyte.cli.exits import CLEAN, PROBLEMS
from magicbyte.cli.terminal import flush, json_line, print_data, print_line

if TYPE_CHECKING:
    from magicbyte.jobs.ingest import CommitReport, IngestReport, TableSum
    from magicbyte.model import Problem

__all__ = ["print_above", "print_commit", "print_invalid", "print_stream"]


def print_commit(commit: CommitReport, sums: TableSum) -> None:
    """Prints the rows that a table received."""
    from magicbyte.cli.reports import print_problems
    from magicbyte.jobs.run.plan import count_of
    from magicbyte.jobs.run.progress import format_bytes

    print_problems(commit["problems"], commit["problems_left_out"])
    for directory in commit["orphans"]:
        print_line(f"removed {directory}: a killed job had left it there")
    for one in commit["repaired"]:
        place = f"{one['topic']}-{one['partition']}"
        print_line(
            f"repaired {place} from offset {one['start_offset']:,} on:"
            f" {count_of(one['removed_rows'], 'row')} removed, {one['rows']:,} added"
        )
    version = "" if commit["version"] is None else f", version {commit['version']}"
    if commit["job"] is None:
        print_line(f"{commit['table']}{version}: nothing is new")
    else:
        rows, files = count_of(sums["rows"], "row"), count_of(sums["files"], "file")
        partitions = count_of(len(commit["partitions"]), "partition")
        size = format_bytes(sums["size"])
        print_line(f"{commit['table']}{version}: {rows} of {partitions} added in {files}, {size}")


def print_invalid(report: IngestReport) -> None:
    """Prints the number of keys and values that are not valid in their format."""
    total = report["total"]
    for count, payload, names, column in (
        (total["invalid_keys"], report["key_format"] or report["key_as"], "keys", "invalidKey"),
        (total["invalid_values"], report["value_format"] or report["value_as"], "values", "invalidValue"),
    ):
        if count:
            expected = {"json": "JSON", "string": "UTF-8"}.get(payload, f"{payload} of a known schema")
            print_line(f"{count:,} {names} are null: not {expected}; the column {column} has their bytes")
    for count, names in ((total["unframed_keys"], "keys"), (total["unframed_values"], "values")):
        if count:
            print_line(f"{count:,} {names} name no schema")


def print_above(report: IngestReport) -> None:
    """Prints the number of rows that may not be replicated."""
    if rows := sum(one["rows"] for one in report["above_high_watermark"]):
        print_line(
            f"{rows:,} rows are above the high watermark (replication-offset-checkpoint): consumers may never"
            " have seen them, and a failover may replace them"
        )


def print_stream(stream: Iterator[IngestReport], *, as_json: bool) -> int:
    """Prints a line for each commit; returns the exit code. A problem is printed with its first commit."""
    code = CLEAN
    known: list[Problem] = []
    for report in stream:
        commit = report["commit"]
        assert commit is not None
        found = commit["problems"]
        if found or commit["problems_left_out"] or _invalid(report):
            code = PROBLEMS
        if as_json:
            print_data(json_line(report))
        else:
            new = [problem for problem in found if problem not in known]
            print_commit({**commit, "problems": new}, report["tables"]["records"])
            print_invalid(report)
        known = found
        flush()
    return code


def _invalid(report: IngestReport) -> int:
    return report["total"]["invalid_keys"] + report["total"]["invalid_values"]
