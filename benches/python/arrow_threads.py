"""Two threads against one, from a set's batches to Arrow: a stream's own threads, and two Python threads."""

import threading
import time
from functools import partial

import magicbyte
import pyarrow as pa
from bench import Bench
from figures import figure
from loops import arrow_stream, count_rows
from ratios import Comparison, in_turn
from sets import Set

PART = "Two threads"
SETS = ("s1-none", "s1-gzip", "s1-snappy", "s1-lz4", "s1-zstd")
# A pass takes a few hundredths of a second, and two cores are seldom both idle.
TURNS_EACH, ROUNDS = 5, 10


def measure(bench: Bench) -> None:
    for of in bench.chosen(*SETS):
        with bench.guarded(f"{PART}, {of.name}"):
            data = of.path.read_bytes()
            halves = split(data)
            ways = {
                "of a stream, clock": (partial(clock, data, of, 2), partial(clock, data, of, 1)),
                "of Python, CPU time": (partial(cpu_time, halves, of), partial(cpu_time, [data], of)),
            }
            for work, (two, one) in ways.items():
                # The first turn warms up.
                turns = TURNS_EACH * bench.turns
                timed = in_turn({"2": two, "1": one}, turns + 1, ROUNDS)
                rates = {name: each[1:] for name, each in timed.items()}
                bench.add(figure(PART, work, of.name, "one thread", Comparison(rates["2"], rates["1"])))


def clock(data: bytes, of: Set, threads: int) -> float:
    """Records/s by the clock."""
    start = time.perf_counter()
    stream = magicbyte.read_batches(data).to_arrow(threads=threads)
    count = count_rows(pa.RecordBatchReader.from_stream(stream))
    return rate(count, of, time.perf_counter() - start)


def split(data: bytes) -> list[bytes]:
    """Splits at the first batch border after the middle."""
    border = next(
        batch.position for batch in magicbyte.read_batches(data) if batch.position >= len(data) // 2
    )
    return [data[:border], data[border:]]


def cpu_time(parts: list[bytes], of: Set) -> float:
    """Records/s with one thread for each part, by the CPU time of the busiest thread."""
    counts, busy = [0] * len(parts), [0.0] * len(parts)

    def read(index: int) -> None:
        start = time.thread_time()
        counts[index] = count_rows(arrow_stream(parts[index]))
        busy[index] = time.thread_time() - start

    threads = [threading.Thread(target=read, args=(index,)) for index in range(len(parts))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return rate(sum(counts), of, max(busy))


def rate(count: int, of: Set, seconds: float) -> float:
    if count != of.expected.records:
        raise RuntimeError(f"{count} records instead of {of.expected.records}")
    return count / seconds
