"""`__consumer_offsets`: the committed offsets that its records add up to, and its records as Kafka's tool
prints them, against the rate that was promised.
"""

import json
import os
import struct
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from random import Random

import magicbyte
import sets
from bench import Bench
from figures import figure
from magicbyte import _core
from magicbyte.jobs.offsets import offsets_of
from magicbyte.jobs.run.engines import LocalEngine
from processes import pin
from ratios import Comparison

PART = "Internal topics"
PROMISED = 10_000_000 / 60
PEER = "10 M records a minute"
RECORDS = 500_000
GROUPS, TOPICS, PARTITIONS = 200, 10, 10
# Consumers commit the offsets of all their partitions at once, or single ones.
SETS = {"10 commits a batch": 10, "1 commit a batch": 1}


def measure(bench: Bench) -> None:
    pin()
    for on, commits in SETS.items():
        with bench.guarded(f"{PART}, {on}"):
            directory, places = log(commits)
            for work, way in {"committed offsets": partial(folded, places), "dump": dumped}.items():
                # The first turn warms up.
                rates = [rate(partial(way, directory)) for _ in range(bench.turns + 1)][1:]
                bench.add(figure(PART, work, on, PEER, Comparison(rates, [PROMISED] * len(rates))))


def rate(way: Callable[[], None]) -> float:
    """Records/s of CPU time."""
    start = cpu_time()
    way()
    return RECORDS / (cpu_time() - start)


def cpu_time() -> float:
    """Of this process, and of those that it has started."""
    used = os.times()
    return used.user + used.system + used.children_user + used.children_system


def folded(places: int, directory: Path) -> None:
    """As the jobs do that need the committed offsets, without the ends of the logs."""
    listing = json.loads(_core.list_partition(directory))
    report = offsets_of([listing], lambda _: {}, LocalEngine())
    if len(report["offsets"]) != places or report["problems"]:
        raise RuntimeError(f"{len(report['offsets'])} offsets instead of {places}")


def dumped(directory: Path) -> None:
    command = [sys.executable, "-m", "magicbyte", "dump", str(directory)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE)
    lines = done.stdout.count(b'key: {"type":"1"')
    if lines != RECORDS:
        raise RuntimeError(f"{lines} records instead of {RECORDS}")


def log(commits: int) -> tuple[Path, int]:
    """A partition with batches of as many commits; returns it with the number of committed offsets."""
    random, places, batches = Random(1), set(), []
    for offset in range(0, RECORDS, commits):
        builder = magicbyte.RecordsBuilder()
        for at in range(offset, offset + commits):
            place = random.randrange(GROUPS), random.randrange(TOPICS), random.randrange(PARTITIONS)
            places.add(place)
            group, topic, partition = place
            key = (
                b"\0\1"
                + string(f"group-{group:04}")
                + string(f"topic-{topic}")
                + struct.pack(">i", partition)
            )
            value = struct.pack(">hqi", 3, at * 7, 3) + string("") + struct.pack(">q", 1_700_000_000_000 + at)
            builder.append(at, 1_700_000_000_000 + at, key, value)
        batches.append(builder.build())
    directory = sets.DATA / f"offsets-{commits}" / "__consumer_offsets-0"
    directory.mkdir(parents=True, exist_ok=True)
    (directory / f"{0:020d}.log").write_bytes(b"".join(batches))
    return directory, len(places)


def string(text: str) -> bytes:
    return struct.pack(">h", len(text)) + text.encode()
