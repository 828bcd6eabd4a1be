"""Draws the account of a report of `magicbyte verify --json` as a picture, which it prints.

usage: scripts/account_svg.py REPORT
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

WIDTH, LEFT, ROW, TOP = 760, 130, 30, 76
BAR = WIDTH - LEFT - 190
BYTES = {"good": "#4f9d69", "quarantined": "#c0392b", "tail": "#d8a24a"}


def main() -> int:
    """Prints the picture; returns the exit code."""
    print(picture(json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))))
    return 0


def picture(report: dict[str, Any]) -> str:
    """A bar for the bytes of each partition, and the two sums."""
    partitions = sorted(report["partitions"], key=lambda one: str(one["topic"]))
    largest = max(one["size"] for one in partitions)
    height = TOP + ROW * len(partitions) + 20
    total = report["total"]
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img"'
        ' font-family="sans-serif" font-size="14">',
        f"<title>{escape(sum_of_bytes(total))}; {escape(sum_of_records(total))}</title>",
        f'<rect width="{WIDTH}" height="{height}" fill="#fff"/>',
        text(16, 28, sum_of_bytes(total)),
        text(16, 52, sum_of_records(total)),
    ]
    for number, one in enumerate(partitions):
        y = TOP + ROW * number
        lines.append(text(16, y + 15, f"{one['topic']}-{one['partition']}"))
        x = float(LEFT)
        for name, color in BYTES.items():
            width = BAR * one[f"{name}_bytes"] / largest
            if width:
                lines.append(f'<rect x="{x:.1f}" y="{y}" width="{width:.1f}" height="20" fill="{color}"/>')
            x += width
        lost = f", {one['lost_offsets']} offsets lost" if one["lost_offsets"] else ""
        lines.append(text(x + 8, y + 15, f"{one['rows']} rows{lost}"))
    return "\n".join([*lines, "</svg>"])


def text(x: float, y: float, content: str) -> str:
    """A line of text."""
    return f'<text x="{x:.1f}" y="{y}" fill="#222">{escape(content)}</text>'


def sum_of_bytes(total: dict[str, Any]) -> str:
    """The bytes, as `verify` prints them."""
    parts = " + ".join(f"{total[f'{name}_bytes']:,} {name}" for name in BYTES)
    return f"{total['size']:,} bytes = {parts}"


def sum_of_records(total: dict[str, Any]) -> str:
    """The records, as `verify` prints them."""
    parts = " + ".join(f"{total[name]:,} {name}" for name in ("rows", "control", "aborted"))
    return f"{total['announced']:,} records = {parts}"


if __name__ == "__main__":
    sys.exit(main())
