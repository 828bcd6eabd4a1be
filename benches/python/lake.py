"""Ingest into Delta and Iceberg tables against the same ingest into plain Parquet, wall clock, in threads."""

import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import magicbyte
import sets
from bench import Bench
from figures import only_ratio
from magicbyte.enums import TableFormat
from ratios import Comparison, in_turn

PART = "Tables"
MEGABYTES = 400


def measure(bench: Bench) -> None:
    with tempfile.TemporaryDirectory(dir=sets.DATA) as scratch:
        source = sets.make_log(Path(scratch) / "log", MEGABYTES << 20)
        ways = {one: way(source, Path(scratch), one) for one in ("parquet", "delta", "iceberg")}
        for warm in ways.values():
            warm()
        rates = in_turn(ways, bench.turns)
    for one in ("delta", "iceberg"):
        compared = Comparison(rates[one], rates["parquet"])
        bench.add(only_ratio(PART, "ingest, wall", one, "plain Parquet", compared))


def way(source: Path, scratch: Path, table_format: TableFormat) -> Callable[[], float]:
    """An ingest of everything into a new table, in runs a second."""
    home = scratch / table_format
    catalog = {"type": "sql", "uri": f"sqlite:///{home}/catalog.db", "warehouse": f"file://{home}"}

    def run() -> float:
        shutil.rmtree(home, ignore_errors=True)
        home.mkdir()
        place = {"catalog": "bench", "catalog_properties": catalog} if table_format == "iceberg" else {}
        out = "bench.records" if place else str(home / "table")
        start = time.perf_counter()
        report = magicbyte.ingest(source, out, format=table_format, **place)
        took = time.perf_counter() - start
        assert report["balanced"]
        return 1 / took

    return run
