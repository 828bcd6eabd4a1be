"""Histories as an HTML page."""

from __future__ import annotations

from collections.abc import Sequence

from magicbyte.cli.history_charts import charts
from magicbyte.cli.history_notes import by_notability, name_of, notes_of
from magicbyte.cli.history_tables import HistoryTable, HistoryValue, Id, Outcome, Span, history_tables
from magicbyte.cli.history_text import figures_of
from magicbyte.cli.html_page import Cell, Value, card, document, facts, figure, text_of
from magicbyte.cli.times import time_text
from magicbyte.model import PartitionHistory

__all__ = ["history_page"]

_HISTORIES_SHOWN = 20
_PARTITIONS_SHOWN = 1000
_CHECKED = "Reconstructed from batch headers; all CRCs and records were checked."
_NOT_CHECKED = "Reconstructed from batch headers; CRCs and records were not checked."


def history_page(histories: Sequence[PartitionHistory], *, verified: bool = False) -> str:
    """The page of the histories: what is notable about each, and the histories of the 20 most notable ones.

    Tables show their first 50 rows and how many there are, that of the partitions its first 1000.
    """
    ordered = by_notability(histories)
    names = [name_of(one) for one in ordered[:_HISTORIES_SHOWN]]
    title = name_of(ordered[0]) if len(ordered) == 1 else f"{len(ordered):,} partitions"
    body = "".join(
        (
            _overview(title, ordered) if len(ordered) > 1 else "",
            *(_history(at, *one) for at, one in enumerate(zip(names, ordered, strict=False))),
        )
    )
    footer = (
        f"{_CHECKED if verified else _NOT_CHECKED} Offsets are inclusive, times are UTC; "
        "<code>magicbyte explain --json</code> has more."
    )
    return document("explain", title, body, footer)


def _overview(title: str, ordered: Sequence[PartitionHistory]) -> str:
    """A row for each partition; those whose history is on the page are links to it."""
    rows: list[list[Value]] = [
        [
            Cell(name_of(one), link=f"#p{at}" if at < _HISTORIES_SHOWN else ""),
            ", ".join(notes_of(one)),
            one["records"],
            one["bytes"],
            one["batches"],
            one["segments"],
        ]
        for at, one in enumerate(ordered[:_PARTITIONS_SHOWN])
    ]
    names = ["partition", "notable", "records", "bytes", "batches", "segments"]
    table = card("", "", names, rows, len(ordered), most=_PARTITIONS_SHOWN)
    return f'<section class="history">\n<h1>{text_of(title)}</h1>\n{table}</section>\n'


def _history(at: int, name: str, history: PartitionHistory) -> str:
    path, now = text_of(history["path"]), time_text(history["now"])
    parts = [
        f'<section class="history" id="p{at}">\n<h1>{text_of(name)}</h1>\n',
        f'<p class="path">{path}, as of {now}</p>\n',
        facts([(key, title, text, key in _BAD and text != "0") for key, title, text in figures_of(history)]),
        *map(figure, charts(history)),
        *map(_card, history_tables(history)),
        "</section>\n",
    ]
    return "".join(parts)


_BAD = {"transactions.hanging", "anomalies", "problems"}


def _card(table: HistoryTable) -> str:
    rows = [[_cell(value) for value in row] for row in table.rows]
    return card(table.title, table.about, table.names, rows, table.count)


def _cell(value: HistoryValue) -> Value:
    match value:
        case Id(number):
            return Cell(str(number), "n")
        case Span(first, last):
            return f"{first:,} to {last:,}"
        case Outcome(name, text):
            return Cell(text, name)
    return value
