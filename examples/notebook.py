"""Asks a directory of partitions what notebooks ask: how much is where, what came last, and what was lost.

Run: python examples/notebook.py DIRECTORY (needs polars and duckdb)
"""

from __future__ import annotations

import sys

import duckdb
import magicbyte
import polars as pl


def main(directory: str) -> None:
    """Prints the answers."""
    log = magicbyte.Log(directory, mode="PERMISSIVE")
    stream = log.to_arrow(threads=2)
    frame = magicbyte.scan(stream)

    sizes = pl.col("value").bin.size().sum().alias("bytes")
    print(frame.group_by("topic", "partition").agg(pl.len().alias("records"), sizes).sort("topic").collect())

    # Only the partitions of one topic are opened, and of them only the batches of one time range.
    since = pl.lit("2023-11-14").str.to_datetime(time_zone="UTC")
    late = frame.filter(pl.col("topic") == "clicks", pl.col("timestamp") >= since)
    print(late.select("offset", "timestamp", pl.col("key").cast(pl.String)).head(5).collect())

    # DuckDB hands its conditions to the frame.
    print(
        duckdb.sql(
            """select topic, max("offset") from frame where "offset" >= 100 group by all order by all"""
        )
    )

    print(pl.DataFrame(log.to_arrow(["topic", "offset", "timestamp"], last=1)))
    lost = sum(account.quarantined_bytes for account in stream.accounts)
    print(f"{len(stream.problems)} problems, {lost} bytes left out")


if __name__ == "__main__":
    main(sys.argv[1])
