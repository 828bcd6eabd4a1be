"""Printing the reports of jobs that account for every byte and record, and what to do next."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeVar

from magicbyte.cli.differences import print_compared
from magicbyte.cli.exits import exit_code
from magicbyte.cli.inputs import print_unread
from magicbyte.cli.overview import View, print_next, print_overview
from magicbyte.cli.reports import print_json, print_problems
from magicbyte.cli.terminal import print_line
from magicbyte.jobs.publish.certificate import CERTIFICATE
from magicbyte.jobs.run.plan import count_of
from magicbyte.storage.paths import is_stored

if TYPE_CHECKING:
    from magicbyte.jobs.certified import CertificateCheck
    from magicbyte.jobs.clean import CleanReport
    from magicbyte.jobs.indexes import IndexReport
    from magicbyte.jobs.rewrite import RewriteReport
    from magicbyte.jobs.verify import ComparedPartition, TableComparison, VerifyReport

__all__ = ["print_signing", "print_verified", "print_written", "verify_code"]

_FILES_SHOWN = 20
_PARTITIONS_SHOWN = 20
WriteReport = TypeVar("WriteReport", "RewriteReport", "CleanReport")


def print_written(
    report: WriteReport,
    out: str,
    print_text: Callable[[WriteReport, str], None],
    view: View,
    *,
    certified: bool,
) -> int:
    """Prints the report of a job that wrote into `out`; returns the exit code."""
    if view.as_json:
        print_json(report)
    else:
        print_overview(report["partitions"], report["total"], view)
        print_line()
        print_text(report, out)
        print_unread(report["partitions"], report["skipped"])
        if certified:
            print_signing(out)
        print_next("magicbyte", "verify", out)
    return exit_code(report["total"]["problems"], balanced=report["balanced"])


def print_signing(out: str) -> None:
    """Prints how to sign the certificate in `out`, and how to check it."""
    certificate = f"{out.rstrip('/')}/{CERTIFICATE}"
    sign = ["openssl", "dgst", "-sha256", "-sign", "key.pem", "-out", f"{certificate}.sig", certificate]
    if not is_stored(out):
        print_line(f"sign the certificate:  {shlex.join(sign)}")
    print_line(
        f"check the certificate:  {shlex.join(['magicbyte', 'verify', '--certificate', certificate, out])}"
    )


def print_verified(report: VerifyReport, sources: Sequence[str], view: View) -> None:
    """Prints what was verified."""
    total = report["total"]
    print_overview(report["partitions"], total, view)
    print_problems(report["problems"], report["problems_left_out"])
    print_unread(report["partitions"], report["skipped"], report["log_dirs"])
    if report["indexes"] is not None:
        _print_indexes(report["indexes"])
    if report["certificate"] is not None:
        _print_certificate(report["certificate"])
    if report["cluster"] is not None:
        print_compared(report["cluster"])
    if report["table"] is not None:
        _print_table(report["table"])
    elif total["quarantined_bytes"]:
        print_next("magicbyte", "rescue", *sources)
    elif total["problems"]:
        print_next("magicbyte", "explain", *sources)
    else:
        print_next("magicbyte", "ingest", *sources, "tables/")


def verify_code(report: VerifyReport) -> int:
    """The exit code of a verification."""
    compared = [] if report["table"] is None else report["table"]["partitions"]
    is_equal = all(one["result"] != "differs" for one in compared)
    problems = sum(one["result"] != "equal" for one in compared)
    if report["indexes"] is not None:
        problems += len(report["indexes"]["mismatches"])
    if report["certificate"] is not None:
        problems += len(report["certificate"]["differences"])
    problems += report["total"]["problems"] + sum(len(log_dir["problems"]) for log_dir in report["log_dirs"])
    if report["cluster"] is not None:
        problems += not report["cluster"]["equal"]
        is_equal &= not report["cluster"]["differs"]
    return exit_code(problems, balanced=report["balanced"] and is_equal)


def _print_indexes(report: IndexReport) -> None:
    """Prints a line for each difference between an index and its segment, and their number."""
    mismatches, left_out = report["mismatches"], report["mismatches_left_out"]
    for mismatch in mismatches:
        fields = " ".join(f"{name}: {value}" for name, value in mismatch.items() if name != "file")
        print_line(f"{mismatch['file']}: {fields}")
    if left_out:
        print_line(f"... and {left_out:,} more")
    compared = f"{report['compared']:,} index{'' if report['compared'] == 1 else 'es'} compared"
    print_line(f"{compared}, {count_of(len(mismatches) + left_out, 'difference')}")


def _print_certificate(check: CertificateCheck) -> None:
    """Prints a line for each file that is not as certified, and a verdict."""
    for one in check["differences"][:_FILES_SHOWN]:
        print_line(f"{one['found']}  {one['file']}")
    if (more := len(check["differences"]) - _FILES_SHOWN) > 0:
        print_line(f"... and {more:,} more (--json has all)")
    files = count_of(len(check["certificate"]["outputs"]), "file")
    verdict = "is as it says" if check["equal"] else "is not as it says"
    print_line(f"{check['file']}: the output {verdict}, {files} compared")


def _print_table(comparison: TableComparison) -> None:
    """Prints how a table compares with the log, and a line for each partition that is not equal."""
    partitions = comparison["partitions"]
    rows = count_of(sum(partition["table_rows"] for partition in partitions), "row")
    equal = sum(partition["result"] == "equal" for partition in partitions)
    verdict = "equals the log" if comparison["equal"] else "does not equal the log"
    print_line(
        f"{comparison['table']} {verdict}: {rows} compared,"
        f" {equal:,} of {count_of(len(partitions), 'partition')} equal"
    )
    different = [partition for partition in partitions if partition["result"] != "equal"]
    for one in different[:_PARTITIONS_SHOWN]:
        print_line(f"{one['topic']}-{one['partition']}: {_difference(one)}")
    if len(different) > _PARTITIONS_SHOWN:
        print_line(f"... and {len(different) - _PARTITIONS_SHOWN:,} more (--json has all)")
    if compacted := sum(
        partition["compacted_rows"] for partition in partitions if partition["result"] != "differs"
    ):
        print_line(
            f"{count_of(compacted, 'row')} of the table are no longer in the log: compacted, or removed there"
        )
    if older := sum(partition["older_rows"] for partition in partitions):
        print_line(f"{count_of(older, 'row')} of the table from before the log's beginning not compared")


def _difference(one: ComparedPartition) -> str:
    if one["result"] == "behind":
        return f"equal up to offset {one['next_offset']:,}, and the log goes on to {one['log_end']:,}"
    if one["result"] == "not_in_log":
        return f"the table has {count_of(one['table_rows'], 'row')}, and there is no such log"
    if one["result"] == "not_in_table":
        return f"the log ends at offset {one['log_end']:,}, and the table has nothing of it"
    if one["result"] == "unproven":
        return (
            f"{count_of(one['unproven_rows'], 'row')} cannot be compared: the timestamp is null (out of"
            " range), or compaction has removed other records of a group of typed rows"
        )
    first = f"the first difference is at offset {one['first_difference']:,}"
    only = [
        f"{count_of(one['missing_rows'], 'row')} only in the log (deleted from the table, or never"
        f" added), the first at offset {one['first_missing']:,}"
        if one["missing_rows"]
        else "",
        f"{count_of(one['changed_rows'], 'row')} not the same" if one["changed_rows"] else "",
        f"{count_of(one['compacted_rows'], 'row')} only in the table" if one["compacted_rows"] else "",
        f"{count_of(one['lost_rows'], 'row')} that the log has lost" if one["lost_rows"] else "",
    ]
    return f"{first}: {'; '.join(filter(None, only))}"
