"""Logs in an S3 server on this machine, directly and over a slow link: speed, bytes fetched, memory."""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import magicbyte
import processes
import sets
from bench import Bench
from figures import only_ratio
from link import Link, linked
from ratios import Comparison, in_turn
from s3_server import BUCKET, OPTIONS, put_directory, s3_server

PART = "Stores"
MEGABYTES = 500
LINK_MILLISECONDS, LINK_MEGABYTES = 20, 100
LINK = f"{LINK_MILLISECONDS} ms, {LINK_MEGABYTES} MB/s"
MEMORY_MEBIBYTES = 256
LARGE_BATCHES = 160
MEASURED = """
import resource, subprocess, sys, time
start = time.perf_counter()
code = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL).returncode
print(time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
sys.exit(code)
"""
"""What runs a command. It is small: the peak of a process includes the memory of the one that started it."""


@dataclass(frozen=True)
class Used:
    seconds: float
    mebibytes: float
    """The peak of its memory."""


def measure(bench: Bench) -> None:
    with tempfile.TemporaryDirectory(dir=sets.DATA) as scratch:
        home = Path(scratch)
        log = sets.make_log(home / "log", MEGABYTES << 20)
        large = large_batches(home / "large")
        (home / "server").mkdir()
        with s3_server(home / "server") as endpoint:
            put_directory(endpoint, log, "log")
            put_directory(endpoint, large, "large")
            with linked(endpoint, LINK_MILLISECONDS, LINK_MEGABYTES) as link:
                over_the_link(bench, link, size_of(log), size_of(large), home)
            ingest_as_from_files(bench, "s3 on the same cores", endpoint, log, home)
        apart_from_the_server(bench, log, home)


def large_batches(directory: Path) -> Path:
    """A partition with batches of about 1 MiB."""
    partition = directory / "large-0"
    partition.mkdir(parents=True)
    with (partition / f"{0:020d}.log").open("wb") as segment:
        for offset in range(LARGE_BATCHES):
            builder = magicbyte.RecordsBuilder()
            builder.append(offset, 1_700_000_000_000, None, bytes([offset]) * (1 << 20))
            segment.write(builder.build())
    return directory


def size_of(log: Path) -> int:
    return sum(segment.stat().st_size for segment in log.rglob("*.log"))


def over_the_link(bench: Bench, link: Link, log_size: int, large_size: int, home: Path) -> None:
    """Whole commands, each in a process of its own, which has nothing of the log yet."""

    def run(command: str, log: str, *arguments: str) -> Used:
        return command_of(link.endpoint, command, f"s3://{BUCKET}/{log}", *arguments)

    rates = [log_size / run("verify", "log").seconds for _ in range(bench.turns)]
    bench.add(only_ratio(PART, "verify", LINK, "the link", against(rates, LINK_MEGABYTES * 1e6)))
    fetched, memory = [], []
    for _ in range(bench.turns):
        shutil.rmtree(home / "tables", ignore_errors=True)
        link.passed()
        used = run("ingest", "log", str(home / "tables"), "--threads", "1")
        memory.append(MEMORY_MEBIBYTES / used.mebibytes)
        fetched.append(log_size / link.passed().bytes)
    bench.add(only_ratio(PART, "ingest, bytes", LINK, "the bytes of the log", against(fetched, 1)))
    bench.add(only_ratio(PART, "ingest, memory", LINK, f"{MEMORY_MEBIBYTES} MiB", against(memory, 1)))
    link.passed()
    run("explain", "large")
    saved = [large_size / link.passed().bytes]
    bench.add(only_ratio(PART, "explain, bytes", "1 MiB batches", "the bytes of the log", against(saved, 1)))


def against(ours: list[float], bound: float) -> Comparison:
    return Comparison(ours, [bound] * len(ours))


def apart_from_the_server(bench: Bench, log: Path, home: Path) -> None:
    """The job has one core, with the log in S3 as from files: the server has the others."""
    (home / "apart").mkdir()
    processes.pin_to_others()
    try:
        with s3_server(home / "apart") as endpoint:
            put_directory(endpoint, log, "log")
            processes.pin()
            ingest_as_from_files(bench, "s3 on this machine", endpoint, log, home)
    finally:
        processes.unpin()


def ingest_as_from_files(bench: Bench, on: str, endpoint: str, log: Path, home: Path) -> None:
    def way(source: str) -> Callable[[], float]:
        def run() -> float:
            shutil.rmtree(home / "tables", ignore_errors=True)
            return 1 / command_of(endpoint, "ingest", source, str(home / "tables")).seconds

        return run

    rates = in_turn({"s3": way(f"s3://{BUCKET}/log"), "files": way(str(log))}, bench.turns)
    compared = Comparison(rates["s3"], rates["files"])
    bench.add(only_ratio(PART, "ingest, wall", on, "the same job from files", compared))


def command_of(endpoint: str, command: str, source: str, *arguments: str) -> Used:
    """Runs a command to its end."""
    options = {**OPTIONS, "endpoint": endpoint} if source.startswith("s3:") else {}
    given = [f"--storage-option={name}={value}" for name, value in options.items()]
    line = [sys.executable, "-m", "magicbyte", command, *given, source, *arguments]
    # As an installed wheel, it is not compiled by each process.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    done = subprocess.run(
        [sys.executable, "-c", MEASURED, *line], capture_output=True, text=True, env=environment
    )
    if done.returncode:
        raise RuntimeError(f"{command} of {source}: {done.stderr}")
    seconds, kibibytes = map(float, done.stdout.split())
    return Used(seconds, kibibytes / 1024)
