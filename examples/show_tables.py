"""Shows a few rows of each table that `magicbyte ingest` wrote, with pyarrow alone.

Run: python examples/show_tables.py OUT
"""

from __future__ import annotations

import sys
from pathlib import Path

import pyarrow.dataset as ds


def show(out: Path, table: str, columns: list[str], rows: int = 6) -> None:
    """Prints the number of rows of a table and the first of them."""
    dataset = ds.dataset(out / table, partitioning="hive", ignore_prefixes=["_"])
    print(f"\n{table}: {dataset.count_rows()} rows")
    for row in dataset.head(rows, columns=columns).to_pylist():
        print("  ", {name: short(value) for name, value in row.items()})


def short(value: object) -> object:
    """Returns enough of a value to recognise it."""
    if isinstance(value, bytes):
        return value[:24] + b"..." if len(value) > 24 else value
    return value if not isinstance(value, list) else value[:2]


if __name__ == "__main__":
    out = Path(sys.argv[1])
    show(out, "records", ["topic", "partition", "offset", "timestamp", "key", "value"])
    show(out, "batches", ["topic", "baseOffset", "lastOffset", "count", "magic", "compression", "size"])
    show(out, "problems", ["topic", "segment", "kind", "start", "end", "message"])
