"""A partition's story as text: tables for a terminal, plain columns for a pipe."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from magicbyte.cli.report import print_table, time_text
from magicbyte.cli.terminal import plain, print_line
from magicbyte.jobs.progress import format_bytes
from magicbyte.model import PartitionHistory, TransactionHistory

__all__ = ["by_interest", "facts_of", "print_story", "transactions_of"]

_SHOWN = 20


def facts_of(story: PartitionHistory) -> list[tuple[str, str, str]]:
    """The figures at the head of a story: a stable name, a title, and the figure as text."""
    outcomes = story["transaction_counts"]
    first, end = story["first_offset"], story["next_offset"]
    numbers = [
        ("segments", "segments", story["segments"]),
        ("bytes", "bytes", story["bytes"]),
        ("batches", "batches", story["batches"]),
        ("records", "records", story["records"]),
        ("producers", "producers", story["producer_ids"]),
        ("transactions.committed", "committed", outcomes["committed"]),
        ("transactions.aborted", "aborted", outcomes["aborted"]),
        ("transactions.open", "open", outcomes["open"]),
        ("transactions.hanging", "hanging", outcomes["hanging"]),
        ("anomalies", "anomalies", sum(story["anomaly_counts"].values())),
        ("missing_offsets", "missing offsets", story["missing_offsets"]),
        ("steps_back", "steps back in time", story["step_back_count"]),
        ("leader_epochs", "leader epochs", story["leader_epoch_count"]),
        ("problems", "problems", story["problem_count"] + story["skipped_count"]),
    ]
    facts = [(name, title, f"{number:,}") for name, title, number in numbers]
    if first is not None and end is not None:
        facts.insert(4, ("offsets", "offsets", f"{first:,} to {end - 1:,}"))
    return facts


def by_interest(transactions: Sequence[TransactionHistory]) -> list[TransactionHistory]:
    """Hanging ones first, then open, aborted, committed; inside each the largest first."""
    order = {"open": 1, "aborted": 2, "committed": 3}
    return sorted(
        transactions, key=lambda one: (0 if one["hanging"] else order[one["outcome"]], -one["bytes"])
    )


def transactions_of(story: PartitionHistory) -> int:
    """How many transactions there are, those that are not listed among them."""
    counts = story["transaction_counts"]
    return counts["committed"] + counts["aborted"] + counts["open"]


def print_story(story: PartitionHistory) -> None:
    """Prints the story of a partition."""
    print_line(f"{story['topic']}-{story['partition']}  {story['path']}")
    for _, title, figure in facts_of(story):
        if figure != "0":
            print_line(f"  {title:<20}{figure:>20}")
    if story["last_stable_offset"] != story["next_offset"]:
        print_line(f"  {'last stable offset':<20}{story['last_stable_offset']:>20,}")
    _counts("codecs", story["codecs"])
    _counts("magics", story["magics"])
    _counts("control batches", {one["kind"]: one["batches"] for one in story["controls"]})
    _counts("anomalies", story["anomaly_counts"])
    producers = sorted(story["producers"], key=lambda one: -one["bytes"])
    _print_rows(
        "producers",
        [
            "producer",
            "epoch",
            "batches",
            "records",
            "bytes",
            "offsets",
            "sequences",
            "committed",
            "aborted",
            "anomalies",
        ],
        [
            [
                str(one["producer_id"]),
                one["producer_epoch"],
                one["batches"],
                one["records"],
                one["bytes"],
                f"{one['first_offset']}..{one['last_offset']}",
                f"{one['first_sequence']}..{one['last_sequence']}",
                one["committed"],
                one["aborted"],
                one["duplicates"] + one["refused"],
            ]
            for one in producers
        ],
        story["producer_count"],
    )
    _print_rows(
        "transactions",
        ["producer", "epoch", "outcome", "offsets", "marker", "records", "bytes", "last heard of"],
        [
            [
                str(one["producer_id"]),
                one["producer_epoch"],
                "hanging" if one["hanging"] else one["outcome"],
                "-" if one["first_offset"] is None else f"{one['first_offset']}..{one['last_offset']}",
                one["marker_offset"],
                one["records"],
                one["bytes"],
                time_text(one["marker_timestamp"] or one["last_timestamp"]),
            ]
            for one in by_interest(story["transactions"])
        ],
        transactions_of(story),
    )
    _print_rows(
        "leader epochs",
        ["epoch", "from offset"],
        [[one["epoch"], one["start_offset"]] for one in story["leader_epochs"]],
        story["leader_epoch_count"],
    )
    _print_rows(
        "anomalies: a leader had not appended these",
        ["offset", "producer", "epoch", "sequence", "error", "why"],
        [
            [
                one["offset"],
                str(one["producer_id"]),
                one["producer_epoch"],
                one["sequence"],
                one["kind"],
                one["message"] + (" (compacted in between)" if one["compacted"] else ""),
            ]
            for one in story["anomalies"]
        ],
        sum(story["anomaly_counts"].values()),
    )
    _print_rows(
        "missing offsets",
        ["offsets", "missing", "where"],
        [
            [
                f"{one['first_offset']}..{one['last_offset']}",
                one["missing"],
                "in a batch" if one["inside"] else "between batches",
            ]
            for one in story["gaps"]
        ],
        story["gap_count"],
    )
    _print_rows(
        "steps back in time",
        ["offset", "time", "before"],
        [
            [one["offset"], time_text(one["timestamp"]), time_text(one["before"])]
            for one in story["steps_back"]
        ],
        story["step_back_count"],
    )
    _print_rows(
        "bytes in no batch",
        ["segment", "from", "to", "size"],
        [
            [one["segment"], one["start"], one["end"], format_bytes(one["end"] - one["start"])]
            for one in story["skipped"]
        ],
        story["skipped_count"],
    )
    _print_rows(
        "problems",
        ["file", "kind", "what"],
        [[one["segment"], one["kind"], one["message"]] for one in story["problems"]],
        story["problem_count"],
    )
    print_line()


def _counts(title: str, counts: dict[str, int]) -> None:
    if counts:
        print_line(f"  {title:<20}" + ", ".join(f"{name} {number:,}" for name, number in counts.items()))


def _print_rows(title: str, names: list[str], rows: list[list[Any]], total: int | None = None) -> None:
    if not rows:
        return
    print_line()
    shown = [[plain(cell) if isinstance(cell, str) else cell for cell in row] for row in rows[:_SHOWN]]
    if sys.stdout.isatty():
        _print_rich(title, names, shown)
    else:
        print_line(title)
        print_table(names, shown)
    total = len(rows) if total is None else total
    if total > len(shown):
        print_line(f"... and {total - len(shown):,} more")


def _print_rich(title: str, names: list[str], rows: list[list[Any]]) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD)
    for index, name in enumerate(names):
        numeric = all(isinstance(row[index], int) or row[index] is None for row in rows)
        table.add_column(name, justify="right" if numeric else "left")
    colours = {"hanging": "bold red", "open": "yellow", "aborted": "magenta", "committed": "green"}
    for row in rows:
        cells = ["-" if cell is None else f"{cell:,}" if isinstance(cell, int) else str(cell) for cell in row]
        table.add_row(*(Text(cell, style=colours.get(cell, "")) for cell in cells))
    Console().print(table)
