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

    segment = log / f"{0:020d}.log"
    ways = {
        "magicbyte": lambda: magicbyte.PartitionLog(log),
        aiokafka_tables.ALL: lambda: aiokafka_tables.all_columns(segment.read_bytes()),
        aiokafka_tables.VALUES: lambda: aiokafka_tables.values_only(segment.read_bytes()),
    }
    timed = {name: partial(rate, query, source, expected) for name, source in ways.items()}
    for way in timed.values():
        way()
    rates = in_turn(timed, bench.turns)
    for name in (aiokafka_tables.ALL, aiokafka_tables.VALUES):
        bench.add(figure(PART, engine, of.name, name, Comparison(rates["magicbyte"], rates[name])))


def rate(query: Query, source: Callable[[], Any], expected: Answer) -> float:
    """Records/s of the process's CPU time, from the file in the page cache to the answer."""
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
