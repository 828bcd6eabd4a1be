"""Two Python threads against one, each with half of a set's batches to Arrow."""

import threading
import time
from dataclasses import dataclass

import magicbyte
from bench import Bench
from figures import figure
from loops import arrow_stream, count_rows
from processes import unpin
from ratios import Comparison
from sets import Set

PART = "Two threads"
SETS = ("s1-none", "s1-gzip", "s1-snappy", "s1-lz4", "s1-zstd")
CLOCKS = {"clock": "to Arrow, clock", "busiest": "to Arrow, CPU time of the busier"}


@dataclass(frozen=True)
class Took:
    clock: float
    # CPU seconds of the thread that used most.
    busiest: float


def measure(bench: Bench) -> None:
    unpin()
    for of in bench.chosen(*SETS):
        with bench.guarded(f"{PART}, {of.name}"):
            data = of.path.read_bytes()
            halves = list(split(data))
            one, two = [], []
            for turn in range(bench.turns + 1):
                pair = run([data], of), run(halves, of)
                # The first warms up.
                if turn:
                    one.append(pair[0])
                    two.append(pair[1])
            for clock, work in CLOCKS.items():
                rates = [[of.expected.records / getattr(took, clock) for took in side] for side in (two, one)]
                bench.add(figure(PART, work, of.name, "one thread", Comparison(rates[0], rates[1])))


def split(data: bytes) -> tuple[bytes, bytes]:
    """At the batch border behind the middle."""
    border = next(
        batch.position for batch in magicbyte.read_batches(data) if batch.position >= len(data) // 2
    )
    return data[:border], data[border:]


def run(parts: list[bytes], of: Set) -> Took:
    """A thread a part."""
    counts, busy = [0] * len(parts), [0.0] * len(parts)

    def read(index: int) -> None:
        start = time.thread_time()
        counts[index] = count_rows(arrow_stream(parts[index]))
        busy[index] = time.thread_time() - start

    threads = [threading.Thread(target=read, args=(index,)) for index in range(len(parts))]
    start = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    clock = time.perf_counter() - start
    if sum(counts) != of.expected.records:
        raise RuntimeError(f"{counts} records instead of {of.expected.records}")
    return Took(clock, max(busy))
