"""Printing the reports of jobs: as text, or as JSON."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from magicbyte.cli.exits import CLEAN, FAILED, PROBLEMS
from magicbyte.cli.inputs import print_skipped
from magicbyte.cli.terminal import plain, print_line
from magicbyte.jobs.accounting import Totals
from magicbyte.jobs.clean import CleanReport
from magicbyte.jobs.rewrite import RewriteReport
from magicbyte.model import PartitionReconciliation

if TYPE_CHECKING:
    from magicbyte.jobs.redact_preview import RedactionPreview

__all__ = [
    "exit_code",
    "labels_of",
    "print_clean",
    "print_json",
    "print_preview",
    "print_problems",
    "print_reconciliation",
    "print_rewrite",
    "print_table",
    "print_written",
]

_PROBLEMS_SHOWN = 20
WriteReport = TypeVar("WriteReport", RewriteReport, CleanReport)


def exit_code(*, balanced: bool, problems: int) -> int:
    """The exit code of a job that finished."""
    if not balanced:
        return FAILED
    return PROBLEMS if problems else CLEAN


def print_written(
    report: WriteReport, out: str, print_text: Callable[[WriteReport, str], None], *, as_json: bool
) -> int:
    """Prints the report of a job that wrote into `out`; returns the exit code."""
    if as_json:
        print_json(report)
    else:
        print_text(report, out)
        print_skipped(report["skipped"])
    return exit_code(balanced=report["balanced"], problems=report["total"]["problems"])


def print_json(document: Any) -> None:
    """Prints one JSON document."""
    for line in json.dumps(document, indent=1).splitlines():
        print_line(line)


def print_table(names: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """Prints aligned columns: the first to the left, the others to the right."""
    names = [plain(name) for name in names]
    cells = [[_cell(value) for value in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(names, *cells, strict=True)]
    for row in (names, *cells):
        first, *others = (
            cell.ljust(width) if column == 0 else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        print_line("  ".join((first, *others)).rstrip())


def _cell(value: Any) -> str:
    if value is None:
        return "-"
    return f"{value:,}" if isinstance(value, int) else plain(str(value))


def labels_of(partitions: Sequence[Mapping[str, Any]]) -> list[str]:
    """The name of each partition, `topic-N`; the path if there are several of that name."""
    names = [f"{one['topic']}-{one['partition']}" for one in partitions]
    copies = Counter(names)
    return [name if copies[name] == 1 else one["path"] for name, one in zip(names, partitions, strict=True)]


def print_reconciliation(partitions: Sequence[PartitionReconciliation], total: Totals) -> None:
    """Prints a line per partition, and the sums of bytes and of records."""
    labels = labels_of(partitions)
    rows = [[label, len(one["segments"]), *_sums(one)] for label, one in zip(labels, partitions, strict=True)]
    rows.append(["total", total["segments"], *_sums(total)])
    print_table(["partition", "segments", *_SUMS.values()], rows)
    print_line()
    parts = total["good_bytes"], total["quarantined_bytes"], total["tail_bytes"]
    print_line(
        f"bytes    {total['size']:,} = {parts[0]:,} good + {parts[1]:,} quarantined + {parts[2]:,} tail"
    )
    print_line(
        f"records  {total['announced']:,} = {total['rows']:,} rows + {total['control']:,} control"
        f" + {total['aborted']:,} aborted + {total['outside']:,} outside the range"
    )


def print_rewrite(report: RewriteReport, out: str) -> None:
    """Prints what was read, and what was written."""
    print_reconciliation(report["partitions"], report["total"])
    print_line()
    rows = [
        [f"{one['topic']}-{one['partition']}", one["segments"], one["size"], one["batches"], one["records"]]
        for one in report["written"]
    ]
    totals = [sum(row[column] for row in rows) for column in range(1, 5)]  # type: ignore[misc]
    print_table([out, "segments", "bytes", "batches", "records"], [*rows, ["total", *totals]])
    for one in report["written"]:
        lost = ", ".join(f"{count:,} {name.replace('_', ' ')}" for name, count in one["losses"].items())
        if lost:
            print_line(f"{one['topic']}-{one['partition']} lost: {lost}")
    for problem in report["problems"][:_PROBLEMS_SHOWN]:
        print_line(f"{problem['kind']}  {problem['topic']}-{problem['partition']}: {problem['message']}")


def print_preview(preview: RedactionPreview, *, as_json: bool) -> int:
    """Prints what would be redacted; returns the exit code."""
    total = preview["total"]
    if as_json:
        print_json(preview)
    else:
        rows: list[list[Any]] = []
        for one in preview["partitions"]:
            offsets = ", ".join(map(str, one["first_offsets"]))
            more = ", ..." if one["redacted"] > len(one["first_offsets"]) else ""
            name = f"{one['topic']}-{one['partition']}"
            rows.append([name, one["records"], one["redacted"], offsets + more])
        rows.append(["total", total["rows"], preview["redacted"], ""])
        print_table(["dry run", "records", "would be redacted", "first offsets"], rows)
    return exit_code(balanced=total["balanced"], problems=total["problems"])


def print_clean(report: CleanReport, out: str) -> None:
    """Prints what was read, what was written, and why the other records were removed."""
    print_reconciliation(report["partitions"], report["total"])
    print_line()
    rows = [
        [
            f"{one['topic']}-{one['partition']}",
            one["clean_until"],
            one["segments"],
            one["size"],
            one["batches"],
            *_parts(one["counts"]),
        ]
        for one in report["written"]
    ]
    totals = [sum(row[column] for row in rows) for column in range(2, 5)]  # type: ignore[misc]
    rows.append(["total", None, *totals, *_parts(report["counts"])])
    print_table([out, "cleaned until", "segments", "bytes", "batches", *_FATES.values()], rows)
    for other in report["left_out"][:_PROBLEMS_SHOWN]:
        print_line(f"{other['topic']}-{other['partition']} is left out: {other['reason']}")
    if (more := len(report["left_out"]) - _PROBLEMS_SHOWN) > 0:
        print_line(f"... and {more:,} more (--json has all)")
    for one in report["written"]:
        for redacted in one["redacted"]:
            place = f"{one['topic']}-{one['partition']}/{redacted['segment']}"
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


_SUMS = {
    "size": "bytes",
    "good_batches": "batches",
    "rows": "rows",
    "control": "control",
    "aborted": "aborted",
    "quarantined_bytes": "quarantined",
    "tail_bytes": "tail",
    "missing_offsets": "missing offsets",
    "lost_offsets": "lost offsets",
    "problems": "problems",
}


def _sums(sums: Mapping[str, Any]) -> list[int]:
    return [sums[name] for name in _SUMS]


def print_problems(problems: Sequence[Mapping[str, Any]], left_out: int) -> None:
    """Prints a line per problem; of many only the first ones."""
    for one in problems[:_PROBLEMS_SHOWN]:
        place = f"{one['topic']}-{one['partition']}"
        if one["segment"] is not None:
            place += f"/{one['segment']}"
        if one["start"] is not None:
            place += f" bytes {one['start']:,}-{'' if one['end'] is None else format(one['end'], ',')}"
        print_line(f"{one['kind']}  {place}: {one['message']}{_lost(one)}")
    more = len(problems[_PROBLEMS_SHOWN:]) + left_out
    if more:
        where = "ingest writes all of them as a table" if left_out else "--json has all"
        print_line(f"... and {more:,} more problems ({where})")


def _lost(problem: Mapping[str, Any]) -> str:
    first, last = problem["first_lost_offset"], problem["last_lost_offset"]
    if first is None or problem["start"] is None:
        return ""
    return f"; lost: offsets {first:,} to {'?' if last is None else format(last, ',')} at most"
