"""A cluster as text."""

from __future__ import annotations

from magicbyte.cli.cluster_tables import ClusterTable, cluster_tables, figures_of
from magicbyte.cli.html_page import Cell, Value
from magicbyte.cli.tables import print_table
from magicbyte.cli.terminal import plain, print_line
from magicbyte.cli.times import time_text
from magicbyte.jobs.cluster import ClusterReport

__all__ = ["print_cluster", "state_text"]

_ROWS_SHOWN = 50


def print_cluster(report: ClusterReport) -> None:
    """Prints the figures and all tables with rows; of partitions only those that are not whole."""
    print_line(plain(f"cluster {report['cluster_id'] or '(unknown id)'}: {state_text(report)}"))
    for _, title, figure, _ in figures_of(report):
        if figure != "0":
            print_line(f"  {title:<20}{figure:>12}")
    for table in cluster_tables(report):
        _print(table)
    if report["pending_offsets"]:
        print_line()
        print_line(f"{report['pending_offsets']:,} offsets of transactions that had not ended are left out")


def state_text(report: ClusterReport) -> str:
    """The origin of the state, in one line."""
    if not report["metadata"]:
        return "there is no __cluster_metadata, so topics are those that have directories"
    count, end = len(report["metadata"]), report["metadata_end_offset"]
    copies = "1 copy" if count == 1 else f"{count} copies"
    return f"as of {time_text(report['metadata_timestamp'])}, offset {end} of {copies} of its metadata"


def _print(table: ClusterTable) -> None:
    rows = table.rows if table.notable is None else table.notable
    if not rows:
        return
    print_line()
    of = "" if table.notable is None else f" that are not whole: {len(rows):,} of {len(table.rows):,}"
    print_line(f"{table.title}{of}")
    print_table(table.names, [[_text(value) for value in row] for row in rows[:_ROWS_SHOWN]])
    if (more := len(rows) - _ROWS_SHOWN) > 0:
        print_line(f"... and {more:,} more (--json has all)")


def _text(value: Value) -> str | int | None:
    return value.text if isinstance(value, Cell) else value
