"""`cost` against `verify` on the same log, and `advise` on 10 GB against the two minutes that it may take."""

import os
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import limits
from bench import Bench
from figures import figure, only_ratio
from magicbyte import field_costs, verify
from magicbyte.jobs.run.engines import LocalEngine
from processes import pin, unpin
from ratios import Comparison, in_turn
from sets import DATA, Set, partition

PART = "Laboratory"
SETS = ("s1-none", "s1-zstd", "s2-none")
ADVISED = "s1-lz4"
LOG_BYTES = 10_000_000_000
SECONDS = 120
MOST_MEMORY = 1 << 30


def measure(bench: Bench) -> None:
    limits.built()
    pin()
    for of in bench.chosen(*SETS):
        with bench.guarded(f"{PART}, {of.name}"):
            directory = str(partition(of, "laboratory"))
            jobs = {"cost": field_costs, "verify": verify}
            ways = {name: partial(rate, job, directory, of) for name, job in jobs.items()}
            ways[limits.LIMIT] = limits.limit_of(PART, "cost").way(of)
            # The first turn warms up.
            rates = {name: turns[1:] for name, turns in in_turn(ways, bench.turns + 1).items()}
            for peer in ("verify", limits.LIMIT):
                bench.add(figure(PART, "cost", of.name, peer, Comparison(rates["cost"], rates[peer])))
    unpin()
    for of in bench.chosen(ADVISED):
        with bench.guarded(f"{PART}, advise"):
            directory = large_log(of.path, LOG_BYTES)
            speeds = [SECONDS / seconds_of_advice(directory) for _ in range(min(bench.turns, 2))]
            allowed = Comparison(speeds, [1.0] * len(speeds))
            bench.add(only_ratio(PART, "advise, wall", "10 GB", "two minutes", allowed))


def rate(job, directory: str, of: Set) -> float:
    """Records/s of CPU time."""
    start = time.process_time()
    report = job(directory, engine=LocalEngine())
    elapsed = time.process_time() - start
    if not report["balanced"]:
        raise RuntimeError(f"{job.__name__} is not balanced")
    return of.expected.records / elapsed


def large_log(segment: Path, size: int) -> Path:
    """As many partitions as it takes, each with the segment, hard-linked: it takes no room."""
    directory = DATA / "large"
    for number in range(-(-size // segment.stat().st_size)):
        link = directory / f"large-{number}" / f"{0:020d}.log"
        link.parent.mkdir(parents=True, exist_ok=True)
        link.unlink(missing_ok=True)
        link.hardlink_to(segment)
    return directory


def seconds_of_advice(directory: Path) -> float:
    """Wall-clock time of the command on all cores; fails if it takes too much memory."""
    start = time.monotonic()
    command = [sys.executable, "-m", "magicbyte", "advise", "--json", str(directory)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    elapsed = time.monotonic() - start
    process.returncode = os.waitstatus_to_exitcode(status)
    peak = used.ru_maxrss << 10
    if process.returncode or peak > MOST_MEMORY:
        raise RuntimeError(f"advise: exit code {process.returncode}, {peak >> 20} MiB")
    print(f"advise: {elapsed:.0f} s, {peak >> 20} MiB", flush=True)
    return elapsed
