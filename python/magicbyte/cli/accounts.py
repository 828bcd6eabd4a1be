"""Printing the reports of jobs that account for every byte and record, and what to do next."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeVar

from magicbyte.cli.inputs import print_ignored, print_log_dirs, print_skipped
from magicbyte.cli.overview import View, print_next, print_overview
from magicbyte.cli.reports import exit_code, print_json, print_problems
from magicbyte.cli.terminal import print_line

if TYPE_CHECKING:
    from magicbyte.jobs.clean import CleanReport
    from magicbyte.jobs.rewrite import RewriteReport
    from magicbyte.jobs.verify import VerifyReport

__all__ = ["print_verified", "print_written", "verify_code"]

WriteReport = TypeVar("WriteReport", "RewriteReport", "CleanReport")


def print_written(
    report: WriteReport,
    out: str,
    print_text: Callable[[WriteReport, str], None],
    view: View,
    *,
    as_json: bool,
) -> int:
    """Prints the report of a job that wrote into `out`; returns the exit code."""
    if as_json:
        print_json(report)
    else:
        print_overview(report["partitions"], report["total"], view)
        print_line()
        print_text(report, out)
        print_ignored(report["partitions"])
        print_skipped(report["skipped"])
        print_next("magicbyte", "verify", out)
    return exit_code(balanced=report["balanced"], problems=report["total"]["problems"])


def print_verified(report: VerifyReport, sources: Sequence[str], view: View) -> None:
    """Prints what was verified."""
    total = report["total"]
    print_overview(report["partitions"], total, view)
    print_problems(report["problems"], report["problems_left_out"])
    print_ignored(report["partitions"])
    print_skipped(report["skipped"])
    print_log_dirs(report["log_dirs"])
    if total["quarantined_bytes"]:
        print_next("magicbyte", "rescue", *sources)
    elif total["problems"]:
        print_next("magicbyte", "explain", *sources)
    else:
        print_next("magicbyte", "ingest", *sources, "tables/")


def verify_code(report: VerifyReport) -> int:
    """The exit code of a verification."""
    problems = report["total"]["problems"] + sum(len(one["problems"]) for one in report["log_dirs"])
    return exit_code(balanced=report["balanced"], problems=problems)
