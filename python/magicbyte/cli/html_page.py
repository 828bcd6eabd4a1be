"""Reports as one HTML page: no script, nothing loaded from elsewhere, every name escaped."""

from __future__ import annotations

import os
import uuid
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import NamedTuple

from magicbyte.cli.html_charts import Chart
from magicbyte.cli.terminal import plain
from magicbyte.jobs.find.outputs import UNFINISHED
from magicbyte.jobs.publish.single_files import check_replaceable
from magicbyte.jobs.publish.workspace import sync, write_text

__all__ = [
    "Cell",
    "Value",
    "card",
    "check_page",
    "document",
    "facts",
    "figure",
    "text_of",
    "write_page",
]

_ROWS_SHOWN = 50

_STYLE = """
:root { color-scheme: light dark;
  --page: #f6f7f9; --card: #ffffff; --ink: #1c2430; --soft: #5b6676; --line: #dde2ea; --grid: #e9edf2;
  --committed: #2f9e6e; --aborted: #c2478f; --open: #c98a14; --hanging: #d63b3b; --accent: #2f6fd6;
  --none: #93a1b5; --gzip: #8a63d2; --snappy: #d98032; --lz4: #2f9ea8; --zstd: #2f6fd6; --unknown: #d63b3b;
  --names: #d98032; --values: #93a1b5; }
@media (prefers-color-scheme: dark) { :root {
  --page: #11151c; --card: #1a202a; --ink: #e6eaf1; --soft: #9aa6b8; --line: #2d3644; --grid: #252d39;
  --committed: #4cc38f; --aborted: #e477b6; --open: #e8b04a; --hanging: #ff7070; --accent: #6fa3f5;
  --none: #71809a; --gzip: #ab8bea; --snappy: #f0a05c; --lz4: #56c3cc; --zstd: #6fa3f5;
  --unknown: #ff7070; --names: #f0a05c; --values: #71809a; } }
* { box-sizing: border-box; }
body { margin: 0; padding: 2rem 1rem 4rem; background: var(--page); color: var(--ink);
  font: 15px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif; }
main { max-width: 70rem; margin: 0 auto; }
h1 { font-size: 1.7rem; margin: 0; overflow-wrap: anywhere; } h2 { font-size: 1.05rem; margin: 0 0 .15rem; }
p, dl { margin: 0; } ul { margin: 0; padding-left: 1.2rem; } .path, .soft { color: var(--soft); }
.path { overflow-wrap: anywhere; margin-bottom: 1.2rem; } li { overflow-wrap: anywhere; }
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
th { color: var(--soft); font-weight: 500; white-space: nowrap; }
td { overflow-wrap: anywhere; } td:first-child { min-width: 6.5rem; }
.n { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
.committed { color: var(--committed); } .aborted { color: var(--aborted); } .open { color: var(--open); }
.hanging { color: var(--hanging); font-weight: 600; }
footer { color: var(--soft); font-size: .85rem; }
@media print { body { background: #fff; padding: 0; } .card, .facts div { break-inside: avoid; } }
"""


class Cell(NamedTuple):
    """A cell of a table that is not plain text or a number."""

    text: str
    kind: str = ""
    """The class of the cell: `n` for a figure, or the name of a colour."""
    link: str = ""


Value = Cell | str | int | None
"""The content of a table cell. Numbers are grouped by thousands; None is shown as `-`."""


def _head(command: str) -> str:
    """The start of each page of a command, and of no other file."""
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta name="generator" content="magicbyte {command}">\n'
    )


def document(command: str, title: str, body: str, footer: str) -> str:
    """The page of a command. `body` and `footer` are HTML."""
    return (
        f'{_head(command)}<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{text_of(title)} - magicbyte {command}</title>\n<style>{_STYLE}</style>\n</head>\n"
        f"<body>\n<main>\n{body}<footer>{footer}</footer>\n</main>\n</body>\n</html>\n"
    )


def check_page(path: Path, command: str, sources: Sequence[str] = ()) -> None:
    """Raises `RefusedError` if the path is a file other than a page of this command, or is among the sources.
    A pipe or a terminal gets the page as it is.
    """
    if path.is_file() or not path.exists():
        check_replaceable(str(path), _head(command), f"a page of magicbyte {command}", sources)


def write_page(path: Path, command: str, page: str) -> None:
    """Writes a `document`, completely or not at all.

    Raises:
        RefusedError: the path is a file other than a page of this command.

    """
    if path.exists() and not path.is_file():
        # A pipe or a terminal cannot be replaced.
        path.write_text(page, encoding="utf-8")
        return
    target = os.path.realpath(path)
    directory = os.path.dirname(target)
    beside = os.path.join(directory, f".{uuid.uuid4().hex[:12]}{UNFINISHED}")
    try:
        write_text(beside, page)
        check_page(path, command)
        os.replace(beside, target)
    except BaseException:
        Path(beside).unlink(missing_ok=True)
        raise
    sync(directory)


def text_of(text: str) -> str:
    """Any text as HTML, with invisible characters shown."""
    return escape(plain(text))


def facts(figures: Sequence[tuple[str, str, str, bool]]) -> str:
    """Figures as tiles, each with its key, its title, its text, and True if it is bad news."""
    tiles = "".join(
        f"<div{' class=bad' if bad else ''}><dt>{title}</dt>"
        f'<dd data-figure="{key}">{text_of(figure)}</dd></div>\n'
        for key, title, figure, bad in figures
    )
    return f'<dl class="facts">\n{tiles}</dl>\n'


def figure(chart: Chart) -> str:
    """A chart with its caption and legend."""
    items = "".join(f'<span><i style="background:var(--{name})"></i>{name}</span>' for name in chart.legend)
    legend = f'<div class="legend">{items}</div>\n' if items else ""
    return (
        f'<figure class="card">\n<h2>{chart.title}</h2>\n<p class="soft">{escape(chart.text)}</p>\n'
        f"{chart.svg}\n{legend}</figure>\n"
    )


def card(
    title: str,
    text: str,
    names: Sequence[str],
    rows: Sequence[Sequence[Value]],
    total: int | None = None,
    *,
    most: int = _ROWS_SHOWN,
) -> str:
    """A table of the first `most` rows, with the number of rows in `total`; nothing if there are none."""
    if not rows:
        return ""
    total = len(rows) if total is None else total
    shown = rows[:most]
    numeric = [all(_is_figure(row[at]) for row in shown) for at in range(len(names))]
    head = "".join(
        f'<th scope="col"{" class=n" if number else ""}>{name}</th>'
        for name, number in zip(names, numeric, strict=True)
    )
    body = "".join(
        "<tr>" + "".join(_cell(*one) for one in zip(row, numeric, strict=True)) + "</tr>\n" for row in shown
    )
    more = f"{', ' if text else ''}{len(shown):,} of {total:,}" if total > len(shown) else ""
    about = f'<p class="soft">{text}{more}</p>\n' if text or more else ""
    heading = f"<h2>{title}</h2>\n" if title else ""
    return (
        f'<section class="card">\n{heading}{about}<div class="scroll">'
        f"<table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{body}</tbody>\n</table></div>\n</section>\n"
    )


def _is_figure(value: Value) -> bool:
    return value.kind == "n" if isinstance(value, Cell) else isinstance(value, int | None)


def _cell(value: Value, numeric: bool) -> str:
    if isinstance(value, int):
        value = Cell(f"{value:,}", "n")
    elif not isinstance(value, Cell):
        value = Cell("-" if value is None else value, "n" if numeric else "")
    text = text_of(value.text)
    if value.link:
        text = f'<a href="{escape(value.link)}">{text}</a>'
    return f'<td class="{value.kind}">{text}</td>' if value.kind else f"<td>{text}</td>"
