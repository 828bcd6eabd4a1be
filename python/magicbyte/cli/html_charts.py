"""The parts that charts are made of: inline SVG, 1000 units wide, in the colours of the page's style."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from typing import NamedTuple

from magicbyte.cli.terminal import plain

__all__ = ["LEFT", "PLOT", "Chart", "label", "line", "rect", "svg", "text"]

_WIDTH = 1000
LEFT = 78
"""Where the plot begins; labels are to the left of it."""
_RIGHT = 12
PLOT = _WIDTH - LEFT - _RIGHT
"""The width of the plot."""


class Chart(NamedTuple):
    """A chart with its caption; `legend` names the colours."""

    title: str
    text: str
    svg: str
    legend: list[str]


def svg(height: float, name: str, parts: Iterable[str]) -> str:
    """A picture of these parts; `name` is read aloud where it cannot be seen."""
    name = escape(plain(name))
    return (
        f'<svg viewBox="0 0 {_WIDTH} {height}" role="img" aria-label="{name}">'
        f"<title>{name}</title>{''.join(parts)}</svg>"
    )


def rect(
    x: float, y: float, width: float, height: float, colour: str, title: str = "", extra: str = ""
) -> str:
    """A rectangle with a tooltip; `extra` are attributes."""
    inside = f"<title>{escape(plain(title))}</title>" if title else ""
    return (
        f'<rect x="{x:.1f}" y="{y:.1f}" width="{max(width, 1.5):.1f}" height="{max(height, 0):.1f}" '
        f'fill="var(--{colour})"{extra}>{inside}</rect>'
    )


def line(y: float) -> str:
    """A line of the grid."""
    return f'<line x1="{LEFT}" x2="{_WIDTH - _RIGHT}" y1="{y:.1f}" y2="{y:.1f}" stroke="var(--grid)"/>'


def text(x: float, y: float, words: str, anchor: str, kind: str = "") -> str:
    """Words that start or end at `x`, or have it in the middle."""
    of = f' class="{kind}"' if kind else ""
    return f'<text{of} x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(plain(words))}</text>'


def label(y: float, words: str) -> str:
    """A label of the vertical axis."""
    return text(LEFT - 8, y + 4, words, "end")
