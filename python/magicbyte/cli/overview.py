"""The table of a job's input: a row for each topic or partition, those with problems first."""

from __future__ import annotations

import shlex
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeVar, cast

from magicbyte.cli.options import Json
from magicbyte.cli.tables import labels_of, print_table
from magicbyte.cli.terminal import is_terminal, plain, print_line
from magicbyte.jobs.run.progress import format_bytes
from magicbyte.options.declare import option
from magicbyte.options.values import COUNT, OneOf

if TYPE_CHECKING:
    from magicbyte.jobs.run.accounting import Totals
    from magicbyte.model import PartitionReconciliation

__all__ = [
    "View",
    "first_rows",
    "print_left_out",
    "print_next",
    "print_overview",
    "rows_by",
]

_Sums = Mapping[str, Any]
Row = TypeVar("Row", bound=Mapping[str, Any])

_ROWS = 20
_STARTED = time.monotonic()
_COLUMNS = {
    "rows": "rows",
    "size": "bytes",
    "problems": "problems",
    "quarantined_bytes": "quarantined",
    "lost_offsets": "lost offsets",
    "partitions": "partitions",
    "good_batches": "batches",
    "segments": "segments",
    "aborted": "aborted",
    "control": "control",
    "outside": "outside",
    "deleted": "deleted",
    "tail_bytes": "tail",
    "outside_bytes": "bytes outside",
    "deleted_bytes": "bytes deleted",
    "missing_offsets": "missing offsets",
}
"""The columns by importance: a narrow terminal shows the first columns."""
_ALWAYS = ("rows", "size", "good_batches", "segments")
"""Columns that are shown even if they are 0 in all rows."""
_BYTES = {"size", "quarantined_bytes", "tail_bytes", "outside_bytes", "deleted_bytes"}
_SORTS: dict[str, Callable[[_Sums], Any]] = {
    "problems": lambda one: (-one["problems"], one["balanced"]),
    "name": lambda one: 0,
    "bytes": lambda one: -one["size"],
    "records": lambda one: -one["rows"],
}


@dataclass(frozen=True, kw_only=True)
class View(Json):
    """The form of a report: JSON, or a table with some rows in some order."""

    by: Literal["topic", "partition"] | None = option(
        "The kind of rows in the table.",
        default=None,
        default_text="partition; topic if there are more than 20",
        kind=OneOf({"topic": "topic", "partition": "partition"}),
    )
    sort: str = option(
        "The order of the table: most problems, bytes or records first, or by name.",
        default="problems",
        kind=OneOf({name: name for name in _SORTS}),
    )
    top: int = option("The number of rows of the table to print; 0 for all.", default=_ROWS, kind=COUNT)


def print_overview(
    partitions: Sequence[PartitionReconciliation], total: Totals, view: View | None = None
) -> None:
    """Prints the table with its totals, and the sums of bytes and of records."""
    view = view or View()
    by = rows_by(view, len(partitions))
    labels = labels_of(partitions)
    rows = [_of_partition(label, one) for label, one in zip(labels, partitions, strict=True)]
    if by == "topic":
        rows = _by_topic([partition["topic"] for partition in partitions], rows)
    shown = first_rows(rows, view)
    _print_rows(by, [*shown, {"name": "total", **total}], total)
    print_left_out(by, len(rows) - len(shown))
    print_line()
    deleted = (
        f" + {total['deleted']:,} before the log's start, which a broker does not return"
        if total["deleted"]
        else ""
    )
    deleted_bytes = f" + {total['deleted_bytes']:,} deleted" if total["deleted_bytes"] else ""
    outside = f" + {total['outside_bytes']:,} outside the range" if total["outside_bytes"] else ""
    print_line(
        f"bytes    {total['size']:,} = {total['good_bytes']:,} good"
        f" + {total['quarantined_bytes']:,} quarantined + {total['tail_bytes']:,} tail"
        f"{outside}{deleted_bytes}"
    )
    print_line(
        f"records  {total['announced']:,} = {total['rows']:,} rows + {total['control']:,} control"
        f" + {total['aborted']:,} aborted + {total['outside']:,} outside the range{deleted}"
    )
    if is_terminal():
        seconds = time.monotonic() - _STARTED
        print_line(f"time     {seconds:.1f} s, {format_bytes(round(total['size'] / seconds))}/s")


def rows_by(view: View, partitions: int) -> Literal["topic", "partition"]:
    """The kind of rows, given the number of partitions."""
    return view.by or ("partition" if partitions <= _ROWS else "topic")


def first_rows(rows: Sequence[Row], view: View) -> Sequence[Row]:
    """The rows to print, in their order; they have `rows`, `size`, `problems` and `balanced`."""
    return sorted(rows, key=_SORTS[view.sort])[: view.top or None]


def print_left_out(by: str, count: int) -> None:
    """Prints the number of rows that were left out, if any."""
    if count:
        print_line(f"... and {count:,} more {by}s (--top 0 prints all)")


def print_next(*command: str) -> None:
    """Suggests the next command, on a terminal only."""
    if is_terminal():
        print_line(f"next: {shlex.join(command)}")


def _of_partition(label: str, one: PartitionReconciliation) -> dict[str, Any]:
    sums = cast(_Sums, one)
    counts = {name: sums[name] for name in _COLUMNS if name not in ("partitions", "segments")}
    return {
        "name": label,
        "partitions": 1,
        "segments": len(one["segments"]),
        "balanced": one["balanced"],
        **counts,
    }


def _by_topic(topics: Sequence[str], rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    sums: dict[str, dict[str, Any]] = {}
    for topic, row in zip(topics, rows, strict=True):
        one = sums.setdefault(topic, {"name": topic, "balanced": True, **dict.fromkeys(_COLUMNS, 0)})
        for name in _COLUMNS:
            one[name] += row[name]
        one["balanced"] = one["balanced"] and row["balanced"]
    return list(sums.values())


def _print_rows(by: str, rows: Sequence[_Sums], total: Totals) -> None:
    sums = cast(_Sums, total)
    columns = [name for name in _COLUMNS if name in _ALWAYS or sums[name]]
    if by == "partition":
        columns.remove("partitions")
    if is_terminal():
        _print_colours(by, rows, columns)
        return
    columns.sort(key=list(_PIPE_ORDER).index)
    cells = [[row["name"], *(row[name] for name in columns)] for row in rows]
    print_table([by, *(_COLUMNS[name] for name in columns)], cells)


_PIPE_ORDER = (
    "partitions",
    "segments",
    "size",
    "good_batches",
    "rows",
    "control",
    "aborted",
    "outside",
    "deleted",
    "quarantined_bytes",
    "tail_bytes",
    "outside_bytes",
    "deleted_bytes",
    "missing_offsets",
    "lost_offsets",
    "problems",
)
"""The columns without a terminal: all of them, with addends next to each other."""


def _print_colours(by: str, rows: Sequence[_Sums], columns: Sequence[str]) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    def text(one: _Sums, name: str) -> str:
        return format_bytes(one[name]) if name in _BYTES else f"{one[name]:,}"

    room = shutil.get_terminal_size().columns - max(len(plain(row["name"])) for row in rows) - 4
    fitting = []
    for name in columns:
        width = max(len(_COLUMNS[name]), *(len(text(row, name)) for row in rows)) + 3
        if width > room:
            break
        room -= width
        fitting.append(name)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column(by, overflow="fold")
    for name in fitting:
        table.add_column(_COLUMNS[name], justify="right", no_wrap=True)
    for one in rows:
        style = "bold" if one is rows[-1] else "red" if one["problems"] or not one["balanced"] else ""
        cells = [plain(one["name"]), *(text(one, name) for name in fitting)]
        table.add_row(*(Text(cell, style=style) for cell in cells))
    Console().print(table)
