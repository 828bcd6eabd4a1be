"""Records as JSON lines, from batches in memory: by magicbyte, and by polars from the same columns."""

import io
import time
from functools import partial

import magicbyte
import pyarrow as pa
from bench import Bench
from figures import figure
from magicbyte._core import LineWriter
from processes import pin
from ratios import Comparison, in_turn
from sets import Set

PART = "Lines"
SETS = ("s1-none", "s1-zstd", "s2-none")
# polars cannot write headers: a list of structs with bytes.
COLUMNS = ["offset", "timestamp", "timestampType", "key", "value"]
PEER = "polars write_ndjson"


def measure(bench: Bench) -> None:
    pin()
    for of in bench.chosen(*SETS):
        with bench.guarded(f"{PART}, {of.name}"):
            data = of.path.read_bytes()
            ways = {"ours": partial(rate, ours, data, of), "peers": partial(rate, polars_lines, data, of)}
            # The first turn warms up.
            rates = {name: turns[1:] for name, turns in in_turn(ways, bench.turns + 1).items()}
            bench.add(figure(PART, "JSON lines", of.name, PEER, Comparison(rates["ours"], rates["peers"])))


def ours(data: bytes) -> int:
    """Decodes and writes batch by batch; returns the number of lines."""
    writer = LineWriter()
    stream = magicbyte.read_batches(data).to_arrow(COLUMNS)
    return sum(writer.lines(batch).count(b"\n") for batch in pa.RecordBatchReader.from_stream(stream))


def polars_lines(data: bytes) -> int:
    """The same stream through polars, keys and values as text; returns the number of lines."""
    import polars as pl

    frame = pl.DataFrame(magicbyte.read_batches(data).to_arrow(COLUMNS))
    text = frame.with_columns(pl.col("key", "value").cast(pl.String, strict=False))
    out = io.BytesIO()
    text.write_ndjson(out)
    return out.getvalue().count(b"\n")


def rate(work, data: bytes, of: Set) -> float:
    """Records/s of CPU time."""
    start = time.process_time()
    count = work(data)
    elapsed = time.process_time() - start
    if count != of.expected.records:
        raise RuntimeError(f"{count} lines instead of {of.expected.records}")
    return count / elapsed
