"""The commands for the disks of a broken cluster, wall clock.

`merge` of three replicas against `verify` of all three, `diff` against `verify` of both sides, and `cluster`
of a real broker's log directory with 1,000 partitions.
"""

import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import broker
import magicbyte
import sets
from bench import Bench
from figures import only_ratio
from ratios import Comparison, in_turn

sys.path.append(str(sets.PROJECT / "examples"))

from client_loops import Job
from live_cpu import PARTITIONS, produce_to_all

PART = "Replicas"
MEGABYTES = 300
REPLICAS = 3
RECORDS = 200_000
CLUSTER_SECONDS = 3


def measure(bench: Bench) -> None:
    with tempfile.TemporaryDirectory(dir=sets.DATA) as name:
        with bench.guarded(f"{PART}, logs"):
            logs(bench, Path(name))
        with bench.guarded(f"{PART}, cluster"):
            cluster(bench, Path(name) / "broker")


def logs(bench: Bench, scratch: Path) -> None:
    first, *others = (scratch / f"replica{number}" for number in range(REPLICAS))
    sets.make_log(first, MEGABYTES << 20)
    for other in others:
        shutil.copytree(first, other)
    replicas, out = (first, *others), scratch / "merged"

    def merge() -> Any:
        shutil.rmtree(out, ignore_errors=True)
        return magicbyte.merge(replicas, out=out)

    def verify() -> Any:
        return magicbyte.verify(first)

    def is_balanced(report: Any) -> bool:
        return bool(report["balanced"])

    ways = {
        "merge": rate(merge, is_balanced),
        "verify of all": rate(verify, is_balanced, REPLICAS),
        "diff": rate(lambda: magicbyte.diff([first, others[0]]), lambda report: report["equal"]),
        "verify of both": rate(verify, is_balanced, 2),
    }
    # The first turn warms up.
    rates = {way: turns[1:] for way, turns in in_turn(ways, bench.turns + 1).items()}
    for ours, peer in (("merge", "verify of all"), ("diff", "verify of both")):
        compared = Comparison(rates[ours], rates[peer])
        bench.add(only_ratio(PART, f"{ours}, wall", f"{MEGABYTES} MB each", peer, compared))


def rate(run: Callable[[], Any], is_right: Callable[[Any], bool], times: int = 1) -> Callable[[], float]:
    """A way that does something so many times, in runs a second."""

    def measured() -> float:
        start = time.perf_counter()
        reports = [run() for _ in range(times)]
        took = time.perf_counter() - start
        assert all(map(is_right, reports))
        return 1 / took

    return measured


def cluster(bench: Bench, directory: Path) -> None:
    with broker.running(directory) as node:
        produce_to_all(Job(node.bootstrap_servers, "many", "none", RECORDS))

    def is_right(report: Any) -> bool:
        return sum(len(topic["partitions"]) for topic in report["topics"]) >= PARTITIONS

    way = rate(lambda: magicbyte.cluster(directory / "logs"), is_right)
    rates = [way() * CLUSTER_SECONDS for _ in range(bench.turns)]
    on, promised = f"{PARTITIONS} partitions", f"{CLUSTER_SECONDS} seconds"
    bench.add(only_ratio(PART, "cluster, wall", on, promised, Comparison(rates, [1.0] * len(rates))))
