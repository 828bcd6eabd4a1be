"""Histories as an HTML page."""

from __future__ import annotations

from collections.abc import Sequence

from magicbyte.cli.history_charts import charts
from magicbyte.cli.history_notes import by_notability, name_of, notes_of
from magicbyte.cli.history_text import by_interest, figures_of, transaction_count
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
        *_tables(history),
        "</section>\n",
    ]
    return "".join(parts)


_BAD = {"transactions.hanging", "anomalies", "problems"}


def _tables(history: PartitionHistory) -> list[str]:
    producers = sorted(history["producers"], key=lambda one: -one["bytes"])
    return [
        card(
            "Transactions",
            "hanging and open ones first, then the largest",
            ["producer", "epoch", "outcome", "offsets", "marker", "records", "bytes", "first batch", "end"],
            [
                [
                    _id(one["producer_id"]),
                    _id(one["producer_epoch"]),
                    _outcome("hanging" if one["hanging"] else one["outcome"]),
                    _range(one["first_offset"], one["last_offset"]),
                    one["marker_offset"],
                    one["records"],
                    one["bytes"],
                    time_text(one["first_timestamp"]),
                    time_text(one["marker_timestamp"]),
                ]
                for one in by_interest(history["transactions"])
            ],
            transaction_count(history),
        ),
        card(
            "Producers",
            "one row per epoch, the largest first",
            [
                "producer",
                "epoch",
                "batches",
                "records",
                "bytes",
                "offsets",
                "sequences",
                "anomalies",
                "last batch",
            ],
            [
                [
                    _id(one["producer_id"]),
                    _id(one["producer_epoch"]),
                    one["batches"],
                    one["records"],
                    one["bytes"],
                    _range(one["first_offset"], one["last_offset"]),
                    _range(one["first_sequence"], one["last_sequence"])
                    if one["first_sequence"] >= 0
                    else None,
                    one["duplicates"] + one["refused"],
                    time_text(one["last_timestamp"]),
                ]
                for one in producers
            ],
            history["producer_count"],
        ),
        card(
            "Anomalies",
            "a leader would not have appended these batches from their producers",
            ["offset", "producer", "epoch", "sequence", "error", "why"],
            [
                [
                    one["offset"],
                    _id(one["producer_id"]),
                    _id(one["producer_epoch"]),
                    one["sequence"],
                    one["kind"],
                    one["message"] + (" (may be due to compaction)" if one["compacted"] else ""),
                ]
                for one in history["anomalies"]
            ],
            sum(history["anomaly_counts"].values()),
        ),
        card(
            "Leader epochs",
            "where each leader started to write",
            ["epoch", "from offset"],
            [[_id(one["epoch"]), one["start_offset"]] for one in history["leader_epochs"]],
            history["leader_epoch_count"],
        ),
        card(
            "Missing offsets",
            "removed by compaction, or left out by a broker",
            ["offsets", "missing", "where"],
            [
                [
                    _range(one["first_offset"], one["last_offset"]),
                    one["missing"],
                    "in a batch" if one["inside"] else "between batches",
                ]
                for one in history["gaps"]
            ],
            history["gap_count"],
        ),
        card(
            "Steps back in time",
            "batches whose largest timestamp is smaller than an earlier one",
            ["offset", "time", "largest before"],
            [
                [one["offset"], time_text(one["timestamp"]), time_text(one["before"])]
                for one in history["steps_back"]
            ],
            history["step_back_count"],
        ),
        card(
            "Control batches",
            "by the type of their first record",
            ["type", "batches"],
            [[one["kind"], one["batches"]] for one in history["controls"]],
        ),
        card(
            "Bytes in no batch",
            "damage, or a tail after the last batch",
            ["segment", "from", "to", "where"],
            [
                [one["segment"], one["start"], one["end"], "tail" if one["is_tail"] else "between batches"]
                for one in history["skipped"]
            ],
            history["skipped_count"],
        ),
        card(
            "Problems",
            "of the directory and its sidecars",
            ["file", "kind", "what"],
            [[one["segment"], one["kind"], one["message"]] for one in history["problems"]],
            history["problem_count"],
        ),
    ]


def _range(first: int | None, last: int | None) -> str | None:
    return None if first is None else f"{first:,} to {last:,}"


def _id(number: int) -> Cell:
    """Ids and epochs are not grouped by thousands."""
    return Cell(str(number), "n")


def _outcome(name: str) -> Cell:
    return Cell(name, name)
