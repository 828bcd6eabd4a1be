"""Writing in Python against aiokafka: loops in turn in one process, over the same rows."""

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import limits
import magicbyte
import pyarrow as pa
from bench import Bench
from figures import figure
from processes import pin
from ratios import Comparison, in_turn
from sets import Set

PART = "Write in Python"
SETS = ("s1-none",)
OURS = ("append", "append_many", "append_arrow")
Row = tuple[int, int, bytes | None, bytes | None]
# A pass takes a tenth of a second.
TURNS_EACH, ROUNDS = 5, 3
# Builds one batch.
Build = Callable[[list[Row]], Any]


def measure(bench: Bench) -> None:
    import aiokafka_loops

    limits.built()
    pin()
    for of in bench.chosen(*SETS):
        with bench.guarded(f"{PART}, {of.name}"):
            batches = rows_of(of)
            ways = our_ways(batches)
            for way in ways.values():
                check(way, batches, lambda data: rows_read(aiokafka_loops.batches(data)))
            check(aiokafka_loops.build, batches, lambda data: rows_read(magicbyte.read_batches(data)))
            ways[aiokafka_loops.NAME] = aiokafka_loops.build
            timed = {name: partial(rate, way, batches, of.expected.records) for name, way in ways.items()}
            timed[limits.LIMIT] = limits.BUILDING.way(of)
            rates = in_turn(timed, TURNS_EACH * bench.turns, ROUNDS)
            for name in OURS:
                for peer in (aiokafka_loops.NAME, limits.LIMIT):
                    bench.add(figure(PART, name, of.name, peer, Comparison(rates[name], rates[peer])))


def rows_of(of: Set) -> list[list[Row]]:
    """The rows of each batch, with offsets from 0 as aiokafka needs them, and as a producer sends them."""
    rows = [
        [(index, r.timestamp, r.key_bytes, r.value_bytes) for index, r in enumerate(batch)]
        for batch in magicbyte.read_batches(of.path.read_bytes())
    ]
    if sum(map(len, rows)) != of.expected.records:
        raise RuntimeError(f"{sum(map(len, rows))} records instead of {of.expected.records}")
    return rows


def our_ways(batches: list[list[Row]]) -> dict[str, Build]:
    builder = magicbyte.RecordsBuilder()

    def append(rows: list[Row]) -> bytes:
        append = builder.append
        for offset, timestamp, key, value in rows:
            append(offset, timestamp, key, value)
        return builder.build()

    def append_many(rows: list[Row]) -> bytes:
        builder.append_many(rows)
        return builder.build()

    # Made before the clock starts, as the lists are.
    tables = {id(rows): table_of(rows) for rows in batches}

    def append_arrow(rows: list[Row]) -> bytes:
        builder.append_arrow(tables[id(rows)])
        return builder.build()

    return {"append": append, "append_many": append_many, "append_arrow": append_arrow}


def table_of(rows: list[Row]) -> pa.RecordBatch:
    """The rows as Arrow columns."""
    names = ("offset", "timestamp", "key", "value")
    columns = [pa.array(column) for column in zip(*rows, strict=True)]
    return pa.record_batch(columns, names=list(names))


def check(build: Build, batches: list[list[Row]], read: Callable[[bytes], list[Row]]) -> None:
    """Checks that the other side reads every record unchanged."""
    for rows in batches:
        if read(bytes(build(rows))) != rows:
            raise RuntimeError("different records were written")


def rows_read(batches: Any) -> list[Row]:
    return [(r.offset, r.timestamp, content(r.key), content(r.value)) for batch in batches for r in batch]


def content(field: Any) -> bytes | None:
    return None if field is None else bytes(field)


def rate(build: Build, batches: list[list[Row]], records: int) -> float:
    # CPU time, since other processes may share the core.
    start = time.process_time()
    for rows in batches:
        build(rows)
    return records / (time.process_time() - start)
