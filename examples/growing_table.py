"""Ingests a growing log into a Delta table, and proves after each step that the table equals the log.

Run: python examples/growing_table.py DIRECTORY (needs deltalake)
"""

from __future__ import annotations

import sys
from pathlib import Path

import magicbyte
from deltalake import DeltaTable

BATCHES, RECORDS = 3, 4


def append(segment: Path, base_offset: int) -> None:
    """Appends a batch to a segment, as a broker does."""
    builder = magicbyte.RecordsBuilder(compression="zstd")
    for offset in range(base_offset, base_offset + RECORDS):
        builder.append(offset, 1_700_000_000_000 + offset, f"key-{offset % 3}", f"value {offset}")
    with open(segment, "ab") as file:
        file.write(builder.build())


def main(directory: Path) -> None:
    """Grows the log, and the table with it."""
    log, table = directory / "log", directory / "records"
    (log / "orders-0").mkdir(parents=True)
    for number in range(BATCHES):
        append(log / "orders-0" / f"{0:020d}.log", number * RECORDS)
        commit = magicbyte.ingest(log, table, format="delta")["commit"]
        compared = magicbyte.verify(log, table=table)["table"]
        assert commit is not None
        assert compared is not None
        for one in commit["partitions"]:
            added = f"{one['topic']}-{one['partition']} from offset {one['start_offset']}: {one['rows']} rows"
            print(f"version {commit['version']}: {added}, equal: {compared['equal']}")
    print(f"{DeltaTable(str(table)).count()} rows in all")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
