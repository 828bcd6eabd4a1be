"""Aligned columns, and what the rows of partitions are called."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from magicbyte.cli.terminal import plain, print_line

__all__ = ["labels_of", "print_table"]


def print_table(names: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """Prints aligned columns: the first to the left, the others to the right."""
    names = [plain(name) for name in names]
    cells = [[_cell(value) for value in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(names, *cells, strict=True)]
    for row in (names, *cells):
        first, *others = (
            cell.ljust(width) if column == 0 else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        print_line("  ".join((first, *others)).rstrip())


def _cell(value: Any) -> str:
    if value is None:
        return "-"
    return f"{value:,}" if isinstance(value, int) else plain(str(value))


def labels_of(partitions: Sequence[Mapping[str, Any]]) -> list[str]:
    """The name of each partition, `topic-N`; the path if there are several of that name."""
    names = [f"{one['topic']}-{one['partition']}" for one in partitions]
    copies = Counter(names)
    return [name if copies[name] == 1 else one["path"] for name, one in zip(names, partitions, strict=True)]
