"""`magicbyte backup` of one topic, against `kcat -C` into a file.

Records of 112 bytes are produced to one partition of a real broker. Each turn copies them with both, as
processes with their start (Python's compiled files are there after the first turn): `backup` keeps the
batches with offsets, a digest and the settings of the cluster, durably; `kcat` writes the values as lines.
CPU time is that of the process, user and system.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import broker
import sets
from bench import Bench
from figures import only_ratio
from programs import Absent
from ratios import Comparison

sys.path.append(str(sets.PROJECT / "examples"))

from client_loops import Job
from live_cpu import CODECS, produce

PART = "Backup"
RECORDS = 4_000_000


class Cost(NamedTuple):
    """The cost of a process, in seconds."""

    cpu: float
    wall: float


def cost_of(command: Sequence[str], output: Path) -> Cost:
    """Runs a process whose standard output goes to a file."""
    start = time.perf_counter()
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": ""}
    with output.open("wb") as file:
        process = subprocess.Popen(command, stdout=file, stderr=subprocess.DEVNULL, env=environment)
        _, status, usage = os.wait4(process.pid, 0)
    assert status == 0, command
    return Cost(usage.ru_utime + usage.ru_stime, time.perf_counter() - start)


def costs(job: Job, directory: Path, turns: int) -> list[tuple[Cost, Cost]]:
    """The costs of the backup and of `kcat`, of every turn."""
    out, lines = directory / "backup", directory / "lines"
    url = f"kafka://{job.bootstrap}"
    backup = [sys.executable, "-m", "magicbyte", "backup", url, str(out), "--topic", job.topic]
    kcat = ["kcat", "-C", "-q", "-e", "-b", job.bootstrap, "-t", job.topic, "-o", "beginning"]
    found = []
    for _ in range(turns):
        shutil.rmtree(out, ignore_errors=True)
        found.append((cost_of(backup, directory / "report"), cost_of(kcat, lines)))
    return found


def measure(bench: Bench) -> None:
    with tempfile.TemporaryDirectory(dir=sets.DATA) as name, broker.running(Path(name)) as node:
        for codec in CODECS:
            with bench.guarded(f"{PART}, {codec}"):
                if shutil.which("kcat") is None:
                    raise Absent("kcat is not installed")
                job = Job(node.bootstrap_servers, f"backup-{codec}-{time.time_ns()}", codec, RECORDS)
                asyncio.run(produce(job))
                # The first turn warms up.
                turns = costs(job, Path(name), bench.turns + 1)[1:]
                for clock, work in {"cpu": "CPU", "wall": "wall"}.items():
                    rates = [[1 / getattr(cost, clock) for cost in side] for side in zip(*turns, strict=True)]
                    bench.add(only_ratio(PART, work, codec, "kcat", Comparison(*rates)))
