"""Histories as one HTML page: no script, nothing loaded from elsewhere, every name escaped."""

from __future__ import annotations

import os
import uuid
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any

from magicbyte.cli.history_charts import charts
from magicbyte.cli.history_notes import by_notability, name_of, notes_of
from magicbyte.cli.history_text import by_interest, figures_of, transaction_count
from magicbyte.cli.terminal import plain
from magicbyte.cli.times import time_text
from magicbyte.jobs.failure import RefusedError
from magicbyte.jobs.workspace import UNFINISHED, sync, write_text
from magicbyte.model import PartitionHistory

__all__ = ["check_replaceable", "history_page", "write_page"]

_HEAD = (
    '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
    '<meta name="generator" content="magicbyte explain">\n'
)
"""What a page begins with, and no other file."""

_ROWS_SHOWN = 50
_HISTORIES_SHOWN = 20
_PARTITIONS_SHOWN = 1000
_CHECKED = "Reconstructed from batch headers; all CRCs and records were checked."
_NOT_CHECKED = "Reconstructed from batch headers; CRCs and records were not checked."

_STYLE = """
:root { color-scheme: light dark;
  --page: #f6f7f9; --card: #ffffff; --ink: #1c2430; --soft: #5b6676; --line: #dde2ea; --grid: #e9edf2;
  --committed: #2f9e6e; --aborted: #c2478f; --open: #c98a14; --hanging: #d63b3b; --accent: #2f6fd6;
  --none: #93a1b5; --gzip: #8a63d2; --snappy: #d98032; --lz4: #2f9ea8; --zstd: #2f6fd6; --unknown: #d63b3b; }
@media (prefers-color-scheme: dark) { :root {
  --page: #11151c; --card: #1a202a; --ink: #e6eaf1; --soft: #9aa6b8; --line: #2d3644; --grid: #252d39;
  --committed: #4cc38f; --aborted: #e477b6; --open: #e8b04a; --hanging: #ff7070; --accent: #6fa3f5;
  --none: #71809a; --gzip: #ab8bea; --snappy: #f0a05c; --lz4: #56c3cc; --zstd: #6fa3f5;
  --unknown: #ff7070; } }
* { box-sizing: border-box; }
body { margin: 0; padding: 2rem 1rem 4rem; background: var(--page); color: var(--ink);
  font: 15px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif; }
main { max-width: 70rem; margin: 0 auto; }
h1 { font-size: 1.7rem; margin: 0; overflow-wrap: anywhere; } h2 { font-size: 1.05rem; margin: 0 0 .15rem; }
p, dl { margin: 0; } .path, .soft { color: var(--soft); }
.path { overflow-wrap: anywhere; margin-bottom: 1.2rem; }
a { color: var(--accent); }
.history { margin-bottom: 4rem; }
.facts { display: grid; grid-template-columns: repeat(auto-fill, minmax(9.5rem, 1fr)); gap: .6rem; }
.facts div, .card { background: var(--card); border: 1px solid var(--line); border-radius: .6rem; }
.facts div { padding: .55rem .8rem; } .facts dt { color: var(--soft); font-size: .8rem; }
.facts dd { margin: 0; font-size: 1.15rem; font-weight: 600; font-variant-numeric: tabular-nums; }
.facts .bad dd { color: var(--hanging); }
.card { padding: 1rem 1.1rem; margin-top: .9rem; } .card > .soft { font-size: .87rem; margin-bottom: .5rem; }
figure { margin: 0; } svg { display: block; width: 100%; height: auto; }
svg text { font: 11px system-ui, sans-serif; fill: var(--soft); } svg .strong { fill: var(--ink); }
.legend { display: flex; flex-wrap: wrap; gap: .2rem 1rem;
  font-size: .82rem; color: var(--soft); margin-top: .3rem; }
.legend i { display: inline-block; width: .8em; height: .8em; border-radius: .2em; margin-right: .4em; }
.scroll { overflow-x: auto; } table { border-collapse: collapse; width: 100%; font-size: .87rem; }
th, td { text-align: left; padding: .28rem .8rem .28rem 0; vertical-align: top;
  border-bottom: 1px solid var(--grid); }
th { color: var(--soft); font-weight: 500; white-space: nowrap; } td { overflow-wrap: anywhere; }
.n { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
.committed { color: var(--committed); } .aborted { color: var(--aborted); } .open { color: var(--open); }
.hanging { color: var(--hanging); font-weight: 600; }
footer { color: var(--soft); font-size: .85rem; }
@media print { body { background: #fff; padding: 0; } .card, .facts div { break-inside: avoid; } }
"""


def history_page(histories: Sequence[PartitionHistory], *, verified: bool = False) -> str:
    """The page of the histories: what is notable about each, and the histories of the 20 most notable ones.

    Tables show their first 50 rows and how many there are, that of the partitions its first 1000.
    """
    ordered = by_notability(histories)
    names = [name_of(one) for one in ordered[:_HISTORIES_SHOWN]]
    title = name_of(ordered[0]) if len(ordered) == 1 else f"{len(ordered):,} partitions"
    return "".join(
        (
            _HEAD,
            '<meta name="viewport" content="width=device-width, initial-scale=1">\n',
            f"<title>{_text(title)} - magicbyte explain</title>\n<style>{_STYLE}</style>\n</head>\n",
            "<body>\n<main>\n",
            _overview(title, ordered) if len(ordered) > 1 else "",
            *(_history(at, *one) for at, one in enumerate(zip(names, ordered, strict=False))),
            f"<footer>{_text(_CHECKED if verified else _NOT_CHECKED)} Offsets are inclusive, times are UTC; ",
            "<code>magicbyte explain --json</code> has more.</footer>\n</main>\n</body>\n</html>\n",
        )
    )


def _overview(title: str, ordered: Sequence[PartitionHistory]) -> str:
    """A row for each partition; those whose history is on the page are links to it."""
    rows = []
    for at, one in enumerate(ordered[:_PARTITIONS_SHOWN]):
        name = _text(name_of(one))
        cells = [
            f'<a href="#p{at}">{name}</a>' if at < _HISTORIES_SHOWN else name,
            _text(", ".join(notes_of(one))),
            *(f"{one[key]:,}" for key in ("records", "bytes", "batches", "segments")),
        ]
        kinds = ["", "", *[" class=n"] * 4]
        rows.append("".join(f"<td{kind}>{cell}</td>" for kind, cell in zip(kinds, cells, strict=True)))
    names = ["partition", "notable", "records", "bytes", "batches", "segments"]
    head = "".join(
        f'<th scope="col"{" class=n" if at > 1 else ""}>{name}</th>' for at, name in enumerate(names)
    )
    body = "\n".join(f"<tr>{row}</tr>" for row in rows)
    left_out = len(ordered) - len(rows)
    more = f"<p class=soft>and {left_out:,} more</p>" if left_out else ""
    return (
        f'<section class="history">\n<h1>{_text(title)}</h1>\n<section class="card">\n<div class="scroll">'
        f"<table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody>\n</table>"
        f"</div>{more}</section>\n</section>\n"
    )


def check_replaceable(path: Path) -> None:
    """Raises `RefusedError` if the path is a file other than a page of `magicbyte explain`."""
    if path.is_file():
        with path.open("rb") as file:
            # An empty file has nothing to lose.
            if file.read(len(_HEAD)) not in (_HEAD.encode(), b""):
                raise RefusedError(
                    f"{path} exists and is not a page of magicbyte explain: choose another name"
                )


def write_page(path: Path, histories: Sequence[PartitionHistory], *, verified: bool = False) -> None:
    """Writes the page, completely or not at all.

    Raises:
        RefusedError: the path is a file other than a page of `magicbyte explain`.

    """
    text = history_page(histories, verified=verified)
    if path.exists() and not path.is_file():
        # A pipe or a terminal cannot be replaced.
        path.write_text(text, encoding="utf-8")
        return
    target = os.path.realpath(path)
    directory = os.path.dirname(target)
    beside = os.path.join(directory, f".{uuid.uuid4().hex[:12]}{UNFINISHED}")
    try:
        write_text(beside, text)
        check_replaceable(path)
        os.replace(beside, target)
    except BaseException:
        Path(beside).unlink(missing_ok=True)
        raise
    sync(directory)


def _text(text: str) -> str:
    return escape(plain(text))


def _history(at: int, name: str, history: PartitionHistory) -> str:
    path, now = _text(history["path"]), time_text(history["now"])
    parts = [
        f'<section class="history" id="p{at}">\n<h1>{_text(name)}</h1>\n',
        f'<p class="path">{path}, as of {now}</p>\n',
    ]
    parts.append('<dl class="facts">\n')
    for key, title, figure in figures_of(history):
        bad = key in _BAD and figure != "0"
        parts.append(
            f'<div{" class=bad" if bad else ""}><dt>{title}</dt><dd data-figure="{key}">{figure}</dd></div>\n'
        )
    parts.append("</dl>\n")
    parts += [
        f'<figure class="card">\n<h2>{one.title}</h2>\n<p class="soft">{escape(one.text)}</p>\n{one.svg}\n'
        f"{_legend(one.legend)}</figure>\n"
        for one in charts(history)
    ]
    parts += _tables(history)
    parts.append("</section>\n")
    return "".join(parts)


_BAD = {"transactions.hanging", "anomalies", "problems"}


def _legend(names: Sequence[str]) -> str:
    items = "".join(f'<span><i style="background:var(--{name})"></i>{name}</span>' for name in names)
    return f'<div class="legend">{items}</div>\n' if items else ""


def _tables(history: PartitionHistory) -> list[str]:
    producers = sorted(history["producers"], key=lambda one: -one["bytes"])
    return [
        _table(
            "Transactions",
            "hanging and open ones first, then the largest",
            ["producer", "epoch", "outcome", "offsets", "marker", "records", "bytes", "first batch", "end"],
            [
                [
                    one["producer_id"],
                    one["producer_epoch"],
                    "hanging" if one["hanging"] else one["outcome"],
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
        _table(
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
                    one["producer_id"],
                    one["producer_epoch"],
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
        _table(
            "Anomalies",
            "a leader would not have appended these batches from their producers",
            ["offset", "producer", "epoch", "sequence", "error", "why"],
            [
                [
                    one["offset"],
                    one["producer_id"],
                    one["producer_epoch"],
                    one["sequence"],
                    one["kind"],
                    one["message"] + (" (may be due to compaction)" if one["compacted"] else ""),
                ]
                for one in history["anomalies"]
            ],
            sum(history["anomaly_counts"].values()),
        ),
        _table(
            "Leader epochs",
            "where each leader started to write",
            ["epoch", "from offset"],
            [[one["epoch"], one["start_offset"]] for one in history["leader_epochs"]],
            history["leader_epoch_count"],
        ),
        _table(
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
        _table(
            "Steps back in time",
            "batches whose largest timestamp is smaller than an earlier one",
            ["offset", "time", "largest before"],
            [
                [one["offset"], time_text(one["timestamp"]), time_text(one["before"])]
                for one in history["steps_back"]
            ],
            history["step_back_count"],
        ),
        _table(
            "Control batches",
            "by the type of their first record",
            ["type", "batches"],
            [[one["kind"], one["batches"]] for one in history["controls"]],
        ),
        _table(
            "Bytes in no batch",
            "damage, or a tail after the last batch",
            ["segment", "from", "to", "where"],
            [
                [one["segment"], one["start"], one["end"], "tail" if one["is_tail"] else "between batches"]
                for one in history["skipped"]
            ],
            history["skipped_count"],
        ),
        _table(
            "Problems",
            "of the directory and its sidecars",
            ["file", "kind", "what"],
            [[one["segment"], one["kind"], one["message"]] for one in history["problems"]],
            history["problem_count"],
        ),
    ]


def _range(first: int | None, last: int | None) -> str | None:
    return None if first is None else f"{first:,} to {last:,}"


def _table(title: str, text: str, names: list[str], rows: list[list[Any]], total: int | None = None) -> str:
    if not rows:
        return ""
    total = len(rows) if total is None else total
    shown = rows[:_ROWS_SHOWN]
    numeric = [all(isinstance(row[at], int | None) for row in shown) for at in range(len(names))]
    head = "".join(
        f'<th scope="col"{" class=n" if number else ""}>{name}</th>'
        for name, number in zip(names, numeric, strict=True)
    )
    body = "".join(
        "<tr>" + "".join(_cell(*one) for one in zip(names, row, numeric, strict=True)) + "</tr>\n"
        for row in shown
    )
    more = f", {len(shown):,} of {total:,}" if total > len(shown) else ""
    return (
        f'<section class="card">\n<h2>{title}</h2>\n<p class="soft">{text}{more}</p>\n<div class="scroll">'
        f"<table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{body}</tbody>\n</table></div>\n</section>\n"
    )


def _cell(name: str, value: Any, numeric: bool) -> str:
    if value is None:
        return f"<td{' class=n' if numeric else ''}>-</td>"
    if isinstance(value, int):
        # Ids are not grouped by thousands.
        return f"<td class=n>{value if name in ('producer', 'epoch') else f'{value:,}'}</td>"
    kind = f' class="{value}"' if name == "outcome" else ""
    return f"<td{kind}>{_text(value)}</td>"
