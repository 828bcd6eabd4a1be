"""Aligned columns, and the names of the rows of partitions."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from magicbyte.cli.terminal import is_terminal, plain, print_line

__all__ = ["fitting_table", "labels_of", "print_table"]


def fitting_table(names: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """Prints a table; on a terminal, only the first columns that fit, and the number of the rest."""
    if not is_terminal():
        return print_table(names, rows)
    room, fitting = shutil.get_terminal_size().columns + 2, 0
    for column, name in enumerate(names):
        room -= max(len(plain(name)), *(len(_cell(row[column])) for row in rows)) + 2
        if room < 0 and column:
            break
        fitting += 1
    print_table(names[:fitting], [row[:fitting] for row in rows])
    if fitting < len(names):
        print_line(f"more on a wider terminal, or in a pipe: {', '.join(names[fitting:])}")
    return None


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
    names = [f"{partition['topic']}-{partition['partition']}" for partition in partitions]
    copies = Counter(names)
    return [name if copies[name] == 1 else one["path"] for name, one in zip(names, partitions, strict=True)]
