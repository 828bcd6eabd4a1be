"""Tables for notebooks, which show what `_repr_html_` of an object returns."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from itertools import islice

__all__ = ["table"]

_SHOWN = 50
"""Rows of a table."""


def table(caption: str, header: Sequence[str], rows: Iterable[Sequence[object]], *, left_out: int = 0) -> str:
    """An HTML table of the first 50 rows; all text is escaped. `left_out` further rows are only counted."""
    rows = iter(rows)
    shown = [header, *islice(rows, _SHOWN)]
    lines = [
        f"<tr>{''.join(f'<{tag}>{escape(_text(cell))}</{tag}>' for cell in row)}</tr>"
        for tag, row in zip(["th", *["td"] * (len(shown) - 1)], shown, strict=True)
    ]
    left_out = max(left_out, 0) + sum(1 for _ in rows)
    if left_out:
        lines.append(f'<tr><td colspan="{len(header)}">and {left_out:,} more</td></tr>')
    return f"<table><caption>{escape(caption)}</caption>{''.join(lines)}</table>"


def _text(cell: object) -> str:
    return f"{cell:,}" if isinstance(cell, int) and not isinstance(cell, bool) else str(cell)
