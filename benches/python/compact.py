"""Compaction against Kafka's own cleaner, with the same logs and the same memory for keys."""

import random
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import document
import magicbyte
import programs
import sets
from bench import Bench
from figures import only_ratio
from magicbyte import Compression, RecordsBuilder, _core
from processes import pin
from ratios import Comparison

DIRECTORY = sets.DATA / "compact"
KAFKA = "4.3.1"
BROKER = sets.PROJECT / "target" / "kafka-broker" / KAFKA
TITLE = PART = "Compacting"
# Each turn takes long, because the logs are large.
MOST_TURNS = 3
NOW = 1_800_000_000_000
BATCH = 100
VALUE = 100


@dataclass(frozen=True)
class Log:
    """A log of `records` records over `keys` keys of 16 bytes, in batches of 100."""

    name: str
    records: int
    keys: int
    codec: int
    memory: int
    """Bytes for the map of keys, on both sides."""
    value: int = VALUE

    @property
    def path(self) -> Path:
        return DIRECTORY / f"{self.name}-0"


LOGS = [
    Log("updates-none", 2_000_000, 200_000, 0, 128 << 20),
    Log("updates-lz4", 2_000_000, 200_000, 3, 128 << 20),
    Log("updates-zstd", 2_000_000, 200_000, 4, 128 << 20),
    Log("distinct", 10_000_000, 10_000_000, 0, 64 << 20, 8),
]


@dataclass(frozen=True)
class Took:
    """CPU and wall-clock seconds of one compaction, and its peak memory in bytes, or 0 if not measured."""

    cpu: float
    wall: float
    peak: int = 0


def measure(bench: Bench) -> None:
    program = programs.ours("compact")
    subprocess.run(["make", "-s", f"target/kafka-broker/{KAFKA}/built"], cwd=sets.PROJECT, check=True)
    for log in LOGS:
        if not log.path.exists():
            write(log)
    pin()
    turns = min(bench.turns, MOST_TURNS)
    took = {}
    for log in LOGS:
        with bench.guarded(f"{PART}, {log.name}"):
            took[log] = [turn(log, program) for _ in range(turns)]
            bench.add(only_ratio(PART, "", log.name, "Kafka's cleaner", speeds(took[log], "cpu")))
    bench.sections[TITLE] = section(took, turns)


def speeds(turns: list[tuple[Took, Took]], clock: str) -> Comparison:
    ours, theirs = ([1 / getattr(one, clock) for one in side] for side in zip(*turns, strict=True))
    return Comparison(ours, theirs)


def write(log: Log) -> None:
    """Writes the log in segments of 128 MiB; the last one holds one record, as after a broker has rolled."""
    shutil.rmtree(log.path, ignore_errors=True)
    shutil.rmtree(writer_directory(log), ignore_errors=True)
    writer = _core.PartitionWriter(_core.begin_partition(log.path), 0, segment_bytes=128 << 20)
    builder = RecordsBuilder(2, log.codec)
    for number, records in enumerate(batches(log)):
        builder.append_many(records)
        writer.append(builder.build())
        if number % 1000 == 0:
            print(f"\r{log.name}: {number * BATCH:,}", end="", flush=True)
    summaries = writer.finish()
    last = _core.PartitionWriter(writer_directory(log), log.records, segment_bytes=128 << 20)
    builder.append(log.records, NOW, b"last", b"")
    last.append(builder.build())
    _core.finish_partition(log.path, summaries + last.finish())
    print()


def writer_directory(log: Log) -> Path:
    return log.path.with_name(f".{log.path.name}.magicbyte-unfinished")


def batches(log: Log) -> Iterator[list[tuple[int, int, bytes, bytes]]]:
    chance = random.Random(log.name)
    # As many keys as records: each once. Otherwise a random key each time.
    step = 7_368_787
    for first in range(0, log.records, BATCH):
        places = range(first, first + BATCH)
        numbers = [
            place * step % log.keys if log.keys == log.records else chance.randrange(log.keys)
            for place in places
        ]
        half = log.value // 2
        yield [
            (place, NOW - 10**6, b"key-%012d" % number, chance.randbytes(half) + b"v" * (log.value - half))
            for place, number in zip(places, numbers, strict=True)
        ]


def turn(log: Log, program: Path) -> tuple[Took, Took]:
    """Compacts a fresh copy with ours and with Kafka's; both must leave the same amount of data."""
    target = DIRECTORY / "out-0"
    shutil.rmtree(target, ignore_errors=True)
    command = [program, log.path, target, str(log.memory), str(NOW)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    cpu_time, wall, kept, peak = map(int, done.stdout.split())
    ours = Took(cpu_time / 1e9, wall / 1e9, peak)
    left = sum(file.stat().st_size for file in target.glob("*.log"))

    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(log.path, target)
    words = [target, NOW, log.memory, 86_400_000, "-", "segment.bytes=1073741824"]
    answer = java("\t".join(map(str, words))).split()
    theirs = Took(int(answer[4]) / 1e9, int(answer[5]) / 1e9)
    also_left = sum(file.stat().st_size for file in target.glob("*.log"))
    also_kept = sum(batch.record_count or 0 for batch in magicbyte.PartitionLog(target).batches())
    if kept != also_kept or (log.codec == Compression.NONE and left != also_left):
        raise RuntimeError(f"{log.name}: {kept} records, {left} bytes; Kafka: {also_kept}, {also_left}")
    shutil.rmtree(target)
    return ours, theirs


def java(line: str) -> str:
    """Runs Kafka's cleaner in a JVM of its own; the JIT compilers' time does not count."""
    command = ["java", "-Xmx2g", "-XX:+UseSerialGC", "-Dorg.slf4j.simpleLogger.defaultLogLevel=error"]
    command += ["-cp", f"{BROKER}/classes:{BROKER}/jars/*", "Cleaning"]
    done = subprocess.run(command, input=line + "\n", check=True, capture_output=True, text=True)
    return done.stdout.strip()


def section(took: dict[Log, list[tuple[Took, Took]]], turns: int) -> str:
    lines = [
        document.bullets(
            f"{document.written('make bench')} Turns: {turns}.",
            "`compact_partition` against Kafka's own `Cleaner` (4.3.1) on the same log, with one thread each"
            " and the same memory for the map of keys. Time is CPU time: of our whole process, including"
            " indexes and the header scan; of Kafka's cleaner thread alone, without its JVM's other threads.",
            "Keys have 16 bytes, batches 100 records. `updates` has 200,000 keys and values of 100 bytes,"
            " `distinct` 10,000,000 keys and values of 8 bytes: its keys do not fit into 64 MiB, so Kafka"
            " makes several rounds over the log, and we spill to files.",
            "Both leave the same records, and the same size if nothing is compressed.",
        ),
        "",
        "| log | records | memory | magicbyte s | Kafka s | ratio | on the clock | peak memory |",
        "|---|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for log, turns_of in took.items():
        times, walls = speeds(turns_of, "cpu"), speeds(turns_of, "wall")
        ours, theirs = (sorted(one) for one in zip(*((o.cpu, t.cpu) for o, t in turns_of), strict=True))
        middle = len(ours) // 2
        peak = max(o.peak for o, _ in turns_of)
        lines.append(
            f"| {log.name} | {log.records:,} | {log.memory >> 20} MiB | {ours[middle]:.2f} |"
            f" {theirs[middle]:.2f} | {times} | {walls} | {peak >> 20} MiB |"
        )
    return "\n".join(lines)
