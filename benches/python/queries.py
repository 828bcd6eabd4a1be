"""`select count(*), sum(octet_length(value))` over a log, in DuckDB and polars: through magicbyte's Arrow
stream, and through aiokafka's loop into pyarrow.
"""

import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import magicbyte
import pyarrow as pa
import sets
from bench import Bench
from figures import figure
from loops import found_in_rows
from processes import pin
from ratios import Comparison, in_turn
from sets import Set

PART = "Query"
SETS = ("s1-none", "s1-zstd")
Answer = tuple[int, int]
Source = Callable[[], Any]
Query = Callable[[Any], Answer]


def measure(bench: Bench) -> None:
    engines: dict[str, Query] = {}
    with bench.guarded("DuckDB"):
        engines["DuckDB"] = duckdb_query()
    with bench.guarded("polars"):
        engines["polars"] = polars_query()
    pin()
    for of in bench.chosen(*SETS):
        directory = sets.partition(of, f"query-{of.name}")
        rows = found_in_rows(pa.RecordBatchReader.from_stream(magicbyte.PartitionLog(directory)))
        if rows != of.expected:
            raise RuntimeError(f"{rows} instead of {of.expected}")
        expected = (of.expected.records, value_bytes(of))
        for engine, query in engines.items():
            with bench.guarded(f"{PART}, {engine}, {of.name}"):
                compare(bench, engine, query, of, directory, expected)


def compare(bench: Bench, engine: str, query: Query, of: Set, log: Path, expected: Answer) -> None:
    import aiokafka_tables

    def data() -> bytes:
        return (log / f"{0:020d}.log").read_bytes()

    # Both sides give the same columns.
    pairs: dict[str, tuple[Source, Source]] = {
        engine: (
            lambda: magicbyte.PartitionLog(log),
            lambda: aiokafka_tables.all_columns(data()),
        ),
        f"{engine}, only the values": (
            lambda: magicbyte.PartitionLog(log).to_arrow(["value"]),
            lambda: aiokafka_tables.values_only(data()),
        ),
    }
    for work, (ours, peers) in pairs.items():
        timed = {
            "ours": partial(rate, query, ours, expected),
            "peers": partial(rate, query, peers, expected),
        }
        # The first turn warms up.
        rates = {name: turns[1:] for name, turns in in_turn(timed, bench.turns + 1).items()}
        compared = Comparison(rates["ours"], rates["peers"])
        bench.add(figure(PART, work, of.name, aiokafka_tables.NAME, compared))


def rate(query: Query, source: Source, expected: Answer) -> float:
    """Records/s of CPU time, from the file in the page cache to the answer."""
    start = time.process_time()
    answer = query(source())
    elapsed = time.process_time() - start
    if answer != expected:
        raise RuntimeError(f"{answer} instead of {expected}")
    return expected[0] / elapsed


def value_bytes(of: Set) -> int:
    batches = magicbyte.read_batches(of.path.read_bytes())
    return sum(len(value) for batch in batches for value in batch.columns().values)


def duckdb_query() -> Query:
    import duckdb

    def query(log: Any) -> Answer:  # DuckDB finds `log` by its name
        return duckdb.sql("select count(*), sum(octet_length(value)) from log").fetchall()[0]

    return query


def polars_query() -> Query:
    import polars as pl

    return lambda log: pl.DataFrame(log).select(pl.len(), pl.col("value").bin.size().sum()).row(0)
