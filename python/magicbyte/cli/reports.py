"""Printing the reports of jobs: as text, or as JSON."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from magicbyte.cli.exits import exit_code
from magicbyte.cli.tables import print_table
from magicbyte.cli.terminal import print_line
from magicbyte.jobs.find.problems import offsets_text

if TYPE_CHECKING:
    from magicbyte.jobs.clean import CleanReport
    from magicbyte.jobs.publish.carried import Carried
    from magicbyte.jobs.redact_preview import RedactionPreview
    from magicbyte.jobs.rewrite import RewriteReport

__all__ = [
    "print_clean",
    "print_json",
    "print_preview",
    "print_problems",
    "print_report",
    "print_rewrite",
]

_PROBLEMS_SHOWN = 20
Report = TypeVar("Report")


def print_json(document: Any) -> None:
    """Prints one JSON document."""
    for line in json.dumps(document, indent=1).splitlines():
        print_line(line)


def print_report(report: Report, print_text: Callable[[Report], None], *, as_json: bool) -> None:
    """Prints a report as JSON, or as text."""
    if as_json:
        print_json(report)
    else:
        print_text(report)


def print_rewrite(report: RewriteReport, out: str) -> None:
    """Prints what was written."""
    rows = [
        [
            f"{partition['topic']}-{partition['partition']}",
            partition["segments"],
            partition["size"],
            partition["batches"],
            partition["records"],
        ]
        for partition in report["written"]
    ]
    totals = [sum(row[column] for row in rows) for column in range(1, 5)]  # type: ignore[misc]
    print_table([out, "segments", "bytes", "batches", "records"], [*rows, ["total", *totals]])
    for partition in report["written"]:
        lost = ", ".join(f"{count:,} {name.replace('_', ' ')}" for name, count in partition["losses"].items())
        if lost:
            print_line(f"{partition['topic']}-{partition['partition']} lost: {lost}")
    _print_carried(report["written"])
    for problem in report["problems"][:_PROBLEMS_SHOWN]:
        print_line(f"{problem['kind']}  {problem['topic']}-{problem['partition']}: {problem['message']}")


def print_preview(preview: RedactionPreview, *, as_json: bool) -> int:
    """Prints what would be redacted; returns the exit code."""
    total = preview["total"]
    if as_json:
        print_json(preview)
    else:
        rows: list[list[Any]] = []
        for partition in preview["partitions"]:
            offsets = ", ".join(map(str, partition["first_offsets"]))
            more = ", ..." if partition["redacted"] > len(partition["first_offsets"]) else ""
            name = f"{partition['topic']}-{partition['partition']}"
            rows.append([name, partition["records"], partition["redacted"], offsets + more])
        rows.append(["total", total["rows"], preview["redacted"], ""])
        print_table(["dry run", "records", "would be redacted", "first offsets"], rows)
    return exit_code(total["problems"], balanced=total["balanced"])


def print_clean(report: CleanReport, out: str) -> None:
    """Prints what was written, and why the other records were removed."""
    rows = [
        [
            f"{partition['topic']}-{partition['partition']}",
            partition["clean_until"],
            partition["segments"],
            partition["size"],
            partition["batches"],
            *_parts(partition["counts"]),
        ]
        for partition in report["written"]
    ]
    totals = [sum(row[column] for row in rows) for column in range(2, 5)]  # type: ignore[misc]
    rows.append(["total", None, *totals, *_parts(report["counts"])])
    print_table([out, "cleaned until", "segments", "bytes", "batches", *_FATES.values()], rows)
    for other in report["left_out"][:_PROBLEMS_SHOWN]:
        print_line(f"{other['topic']}-{other['partition']} is left out: {other['reason']}")
    if (more := len(report["left_out"]) - _PROBLEMS_SHOWN) > 0:
        print_line(f"... and {more:,} more (--json has all)")
    _print_carried(report["written"])
    for partition in report["written"]:
        for redacted in partition["redacted"]:
            place = f"{partition['topic']}-{partition['partition']}/{redacted['segment']}"
            print_line(
                f"{place} redacted: {redacted['records']:,} records, offsets {_ranges(redacted['ranges'])}"
            )
    if stripped := report["counts"]["stripped_batches"]:
        print_line(f"removed bytes that no reader returns from {stripped:,} batches")
    if check := report["check"]:
        none_left = ", none of the keys left" if report["options"].get("keys") else ""
        print_line(f"checked: {check['files']:,} files, {check['records']:,} records{none_left}")
        for name, where in _ELSEWHERE.items():
            if count := check[name]:  # type: ignore[literal-required]
                print_line(f"keys also occur in {where}: {count:,}")
    for problem in report["problems"][:_PROBLEMS_SHOWN]:
        print_line(f"{problem['kind']}  {problem['topic']}-{problem['partition']}: {problem['message']}")


def _print_carried(written: Sequence[Carried]) -> None:
    """Prints where logs start that begin before, and which partitions have no `partition.metadata`."""
    for partition in written:
        if partition["log_start_offset"] is not None:
            print_line(
                f"{partition['topic']}-{partition['partition']} starts at offset"
                f" {partition['log_start_offset']} by OUT's "
                "log-start-offset-checkpoint, which a broker needs beside it: records before it were deleted"
            )
    without = [
        f"{partition['topic']}-{partition['partition']}"
        for partition in written
        if partition["topic_id"] is None
    ]
    if without:
        more = f" and {len(without) - _PROBLEMS_SHOWN:,} more" if len(without) > _PROBLEMS_SHOWN else ""
        print_line(
            f"no partition.metadata, since the topic's id is unknown: {', '.join(without[:_PROBLEMS_SHOWN])}"
            f"{more}. A KRaft broker sets such a directory aside as stray: give --topic-id"
        )


_ELSEWHERE = {
    "in_keys": "longer keys of other records",
    "in_values": "values of other records",
    "in_headers": "headers of other records",
    "in_names": "names of topics and directories",
}
_FATES = {
    "kept": "kept",
    "superseded": "superseded",
    "expired_tombstones": "tombstones",
    "aborted": "aborted",
    "keyless": "keyless",
    "markers": "markers",
    "redacted": "redacted",
    "nulled": "nulled",
}
_RANGES_SHOWN = 5


def _parts(counts: Mapping[str, Any]) -> list[int]:
    return [counts[name] for name in _FATES]


def _ranges(ranges: Sequence[Sequence[int]]) -> str:
    shown = [f"{first}-{last}" if last > first else f"{first}" for first, last in ranges[:_RANGES_SHOWN]]
    return ", ".join([*shown, *(["..."] if len(ranges) > _RANGES_SHOWN else [])])


def print_problems(problems: Sequence[Mapping[str, Any]], left_out: int) -> None:
    """Prints a line per problem; of many only the first ones."""
    for problem in problems[:_PROBLEMS_SHOWN]:
        place = f"{problem['topic']}-{problem['partition']}"
        if problem["segment"] is not None:
            place = os.path.join(place, problem["segment"])
        if problem["start"] is not None:
            place += (
                f" bytes {problem['start']:,}-{'' if problem['end'] is None else format(problem['end'], ',')}"
            )
        print_line(f"{problem['kind']}  {place}: {problem['message']}{_lost(problem)}")
    more = len(problems[_PROBLEMS_SHOWN:]) + left_out
    if more:
        where = "ingest writes all of them as a table" if left_out else "--json has all"
        print_line(f"... and {more:,} more problems ({where})")


def _lost(problem: Mapping[str, Any]) -> str:
    first, last = problem["first_lost_offset"], problem["last_lost_offset"]
    if first is None or problem["start"] is None:
        return ""
    lost = f"offsets {first:,} to ?" if last is None else offsets_text(first, last, ",")
    return f"; lost: {lost} at most"
