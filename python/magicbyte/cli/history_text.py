"""The history of a partition as text: tables for a terminal, plain columns for a pipe."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence

from magicbyte.cli.history_notes import by_notability, name_of, notes_of, time_steps
from magicbyte.cli.history_tables import HistoryTable, HistoryValue, Id, Outcome, Span, history_tables
from magicbyte.cli.tables import print_table
from magicbyte.cli.terminal import plain, print_line
from magicbyte.cli.times import time_text
from magicbyte.jobs.run.progress import format_bytes
from magicbyte.model import PartitionHistory

__all__ = ["figures_of", "print_histories"]

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
    records, size = (sum(history[name] for history in histories) for name in ("records", "bytes"))
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
    _counts("anomalies", history["anomaly_counts"])
    for table in history_tables(history):
        _print_table(table)
    print_line()


def _counts(title: str, counts: dict[str, int]) -> None:
    if counts:
        print_line(f"  {title:<20}" + ", ".join(f"{name}: {number:,}" for name, number in counts.items()))


def _print_table(table: HistoryTable) -> None:
    if not table.rows:
        return
    print_line()
    title = f"{table.title.lower()}: {table.about}"
    shown = [[_cell(value) for value in row] for row in table.rows[:_ROWS_SHOWN]]
    if sys.stdout.isatty():
        _print_rich(title, table.names, shown)
    else:
        print_line(title)
        print_table(table.names, shown)
    if table.count > len(shown):
        print_line(f"... and {table.count - len(shown):,} more")


def _cell(value: HistoryValue) -> int | str | None:
    match value:
        case Id(number):
            return str(number)
        case Span(first, last):
            return f"{first}..{last}"
        case Outcome(_, text) | str(text):
            return plain(text)
    return value


def _print_rich(title: str, names: Sequence[str], rows: Sequence[Sequence[int | str | None]]) -> None:
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
