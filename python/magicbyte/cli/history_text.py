"""The history of a partition as text: tables for a terminal, plain columns for a pipe."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from typing import Any

from magicbyte.cli.history_notes import by_notability, name_of, notes_of, time_steps
from magicbyte.cli.tables import print_table
from magicbyte.cli.terminal import plain, print_line
from magicbyte.cli.times import time_text
from magicbyte.jobs.run.progress import format_bytes
from magicbyte.model import PartitionHistory, TransactionHistory

__all__ = ["by_interest", "figures_of", "print_histories", "transaction_count"]

_ROWS_SHOWN = 20
_HISTORIES_SHOWN = 20
_TIME_STEPS = 50


def figures_of(history: PartitionHistory) -> list[tuple[str, str, str]]:
    """The figures at the top of a history: a stable name, a title, and the figure as text."""
    outcomes = history["transaction_counts"]
    first, end = history["first_offset"], history["next_offset"]
    numbers = [
        ("segments", "segments", history["segments"]),
        ("bytes", "bytes", history["bytes"]),
        ("batches", "batches", history["batches"]),
        ("records", "records", history["records"]),
        ("producers", "producers", history["producer_ids"]),
        ("transactions.committed", "committed", outcomes["committed"]),
        ("transactions.aborted", "aborted", outcomes["aborted"]),
        ("transactions.open", "open", outcomes["open"]),
        ("transactions.hanging", "hanging", outcomes["hanging"]),
        ("anomalies", "anomalies", sum(history["anomaly_counts"].values())),
        ("missing_offsets", "missing offsets", history["missing_offsets"]),
        ("steps_back", "steps back in time", history["step_back_count"]),
        ("leader_epochs", "leader epochs", history["leader_epoch_count"]),
        ("problems", "problems", history["problem_count"] + history["skipped_count"]),
    ]
    figures = [(name, title, f"{number:,}") for name, title, number in numbers]
    if history["deleted"]:
        figures.insert(4, ("deleted", "records before the log's start", f"{history['deleted']:,}"))
    if first is not None and end is not None:
        figures.insert(4, ("offsets", "offsets", f"{first:,} to {end - 1:,}"))
    return figures


def by_interest(transactions: Sequence[TransactionHistory]) -> list[TransactionHistory]:
    """Hanging transactions first, then open, aborted and committed transactions; in each group by size."""
    order = {"open": 1, "aborted": 2, "committed": 3}
    return sorted(
        transactions, key=lambda one: (0 if one["hanging"] else order[one["outcome"]], -one["bytes"])
    )


def transaction_count(history: PartitionHistory) -> int:
    """The number of transactions, including transactions that are not listed."""
    counts = history["transaction_counts"]
    return counts["committed"] + counts["aborted"] + counts["open"]


def _outcome(transaction: TransactionHistory) -> str:
    if transaction["hanging"]:
        return "hanging"
    if (name := transaction["transactional_id"]) is not None:
        return f"open, known to the coordinator ({plain(name)}, {transaction['coordinator_state']})"
    return transaction["outcome"]


def print_histories(histories: Sequence[PartitionHistory]) -> None:
    """Prints the notes on all partitions, then the histories of all, or of the notable partitions."""
    shown = list(histories)
    if len(histories) > 1:
        notable = [one for one in by_notability(histories) if notes_of(one)]
        shown = shown if len(histories) <= _HISTORIES_SHOWN else notable[:_HISTORIES_SHOWN]
        _print_notable(histories, notable)
    for history in shown:
        _print_history(history)
    if len(shown) < len(histories):
        more = len(histories) - len(shown)
        print_line(f"{more:,} more partitions: choose with --topic and --partition, or use --json")


def _print_notable(histories: Sequence[PartitionHistory], notable: Sequence[PartitionHistory]) -> None:
    records, size = (sum(one[name] for one in histories) for name in ("records", "bytes"))
    more = "nothing notable" if not notable else f"{len(notable):,} notable:"
    print_line(f"{len(histories):,} partitions, {records:,} records, {format_bytes(size)}; {more}")
    for one in notable[:_ROWS_SHOWN]:
        print_line(f"  {plain(name_of(one)):<30} {', '.join(notes_of(one))}")
    if len(notable) > _ROWS_SHOWN:
        print_line(f"  ... and {len(notable) - _ROWS_SHOWN:,} more")
    print_line()


def _print_over_time(history: PartitionHistory) -> None:
    steps = time_steps(history["bins"], _TIME_STEPS)
    if steps is None or steps.start == steps.end:
        return
    levels = "▁▂▃▄▅▆▇█" if (sys.stdout.encoding or "").lower().startswith("utf") else ".:-=+*#@"
    for title, amounts in (("bytes over time", steps.bytes), ("records over time", steps.records)):
        most = max(amounts)
        if most:
            bars = (levels[math.ceil(one / most * 7)] if one else " " for one in amounts)
            print_line(f"  {title:<20}{''.join(bars)}")
    print_line(f"  {'':<20}{time_text(steps.start)} to {time_text(steps.end)}")


def _print_history(history: PartitionHistory) -> None:
    print_line(f"{name_of(history)}  {history['path']}")
    for _, title, figure in figures_of(history):
        if figure != "0":
            print_line(f"  {title:<20}{figure:>20}")
    _print_over_time(history)
    if history["last_stable_offset"] != history["next_offset"]:
        print_line(f"  {'last stable offset':<20}{history['last_stable_offset']:>20,}")
    _counts("batches by codec", history["codecs"])
    _counts("batches by magic", history["magics"])
    _counts("control batches", {one["kind"]: one["batches"] for one in history["controls"]})
    _counts("anomalies", history["anomaly_counts"])
    producers = sorted(history["producers"], key=lambda one: -one["bytes"])
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
        history["producer_count"],
    )
    _print_rows(
        "transactions",
        ["producer", "epoch", "outcome", "offsets", "marker", "records", "bytes", "last batch"],
        [
            [
                str(one["producer_id"]),
                one["producer_epoch"],
                _outcome(one),
                "-" if one["first_offset"] is None else f"{one['first_offset']}..{one['last_offset']}",
                one["marker_offset"],
                one["records"],
                one["bytes"],
                time_text(one["marker_timestamp"] or one["last_timestamp"]),
            ]
            for one in by_interest(history["transactions"])
        ],
        transaction_count(history),
    )
    _print_rows(
        "leader epochs",
        ["epoch", "from offset"],
        [[one["epoch"], one["start_offset"]] for one in history["leader_epochs"]],
        history["leader_epoch_count"],
    )
    _print_rows(
        "anomalies: a leader would not have appended these",
        ["offset", "producer", "epoch", "sequence", "error", "why"],
        [
            [
                one["offset"],
                str(one["producer_id"]),
                one["producer_epoch"],
                one["sequence"],
                one["kind"],
                one["message"] + (" (may be due to compaction)" if one["compacted"] else ""),
            ]
            for one in history["anomalies"]
        ],
        sum(history["anomaly_counts"].values()),
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
            for one in history["gaps"]
        ],
        history["gap_count"],
    )
    _print_rows(
        "steps back in time",
        ["offset", "time", "before"],
        [
            [one["offset"], time_text(one["timestamp"]), time_text(one["before"])]
            for one in history["steps_back"]
        ],
        history["step_back_count"],
    )
    _print_rows(
        "bytes in no batch",
        ["segment", "from", "to", "size"],
        [
            [one["segment"], one["start"], one["end"], format_bytes(one["end"] - one["start"])]
            for one in history["skipped"]
        ],
        history["skipped_count"],
    )
    _print_rows(
        "problems",
        ["file", "kind", "what"],
        [[one["segment"], one["kind"], one["message"]] for one in history["problems"]],
        history["problem_count"],
    )
    print_line()


def _counts(title: str, counts: dict[str, int]) -> None:
    if counts:
        print_line(f"  {title:<20}" + ", ".join(f"{name}: {number:,}" for name, number in counts.items()))


def _print_rows(title: str, names: list[str], rows: list[list[Any]], total: int | None = None) -> None:
    if not rows:
        return
    print_line()
    shown = [[plain(cell) if isinstance(cell, str) else cell for cell in row] for row in rows[:_ROWS_SHOWN]]
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
