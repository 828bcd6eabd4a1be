"""`select count(*), sum(octet_length(value))` over a log, in DuckDB and polars: through magicbyte's Arrow
stream, and through aiokafka's loop into pyarrow. And polars' filter for the last offsets of a log, against
reading all of its columns.
"""

import shutil
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import limits
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
# The log whose last offsets are asked for: so many copies of a set, one segment each.
TAIL_SET, COPIES, LAST = "s1-zstd", 4, 1000
Answer = tuple[int, int]
Source = Callable[[], Any]
Query = Callable[[Any], Answer]


def measure(bench: Bench) -> None:
    engines: dict[str, Query] = {}
    with bench.guarded("DuckDB"):
        engines["DuckDB"] = duckdb_query()
    with bench.guarded("polars"):
        engines["polars"] = polars_query()
    limits.built()
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
    for of in bench.chosen(TAIL_SET):
        with bench.guarded(f"{PART}, the last offsets"):
            last_offsets(bench, of)


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
        timed[limits.LIMIT] = limits.limit_of(PART, work).way(of)
        # The first turn warms up.
        rates = {name: turns[1:] for name, turns in in_turn(timed, bench.turns + 1).items()}
        for peer, name in ((aiokafka_tables.NAME, "peers"), (limits.LIMIT, limits.LIMIT)):
            bench.add(figure(PART, work, of.name, peer, Comparison(rates["ours"], rates[name])))


def last_offsets(bench: Bench, of: Set) -> None:
    """`filter(offset > end - 1000)` by a lazy frame over a log, and by a frame of all its columns."""
    import polars as pl

    log, end = copies(of, COPIES)
    last = pl.col("offset") >= end - LAST

    def rate(frame: Callable[[], Any]) -> float:
        start = time.process_time()
        rows = frame().lazy().filter(last).select("offset").collect().height
        elapsed = time.process_time() - start
        if rows != LAST:
            raise RuntimeError(f"{rows} rows instead of {LAST}")
        return end / elapsed

    timed = {
        "ours": partial(rate, partial(magicbyte.scan, log)),
        "peers": partial(rate, lambda: pl.DataFrame(magicbyte.PartitionLog(log))),
    }
    rates = {name: turns[1:] for name, turns in in_turn(timed, bench.turns + 1).items()}
    on, compared = f"{end / 1e6:.0f} M records of S1 {of.codec}", Comparison(rates["ours"], rates["peers"])
    bench.add(figure(PART, f"polars, the last {LAST} offsets", on, "reading all columns", compared))


def copies(of: Set, count: int) -> tuple[Path, int]:
    """A partition of copies of the set whose offsets follow each other, and the offset after its last."""
    directory = sets.DATA / f"tail-{of.name}" / "bench-0"
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    data = bytearray(of.path.read_bytes())
    places = [(batch.position, batch.base_offset) for batch in magicbyte.read_batches(bytes(data))]
    for copy in range(count):
        first = copy * of.expected.records
        for position, offset in places:
            # The base offset of a batch is in front of what its CRC covers.
            data[position : position + 8] = (first + offset).to_bytes(8, "big")
        (directory / f"{first:020d}.log").write_bytes(data)
    return directory, count * of.expected.records


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
