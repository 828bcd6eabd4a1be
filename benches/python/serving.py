"""`magicbyte serve` against a real broker, with the same consumers and files; its start and its memory."""

import json
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import broker
import document
import sets
from bench import Bench
from broker import Broker
from figures import only_ratio
from processes import Family
from ratios import Comparison
from sets import Set

TITLE = PART = "Serving"
DIRECTORY = sets.DATA / "serving"
NODE = DIRECTORY / "broker"
LOGS = NODE / "logs"
TOPIC = "served"
PARTITIONS = 4
SETS = ("s1-none", "s1-zstd")
# The first reads of a connection warm both sides up.
ROUNDS = 5
MANY = 1000
READY_SECONDS = 1
MOST_MEMORY = 50 << 20


@dataclass(frozen=True)
class Took:
    """Wall-clock seconds of the consumer in its best round, and CPU seconds of the server in each."""

    wall: float
    cpu: float


Consumer = Callable[[str, Set], list[float]]


def measure(bench: Bench) -> None:
    took: dict[tuple[str, str], list[tuple[Took, Took]]] = {}
    for of in bench.chosen(*SETS):
        with bench.guarded(f"{PART}, {of.name}"):
            prepare(of)
            with broker.running(NODE) as node, serving(DIRECTORY / "copy") as server:
                for name, consumer in CONSUMERS.items():
                    sides = [
                        tuple(consume(consumer, one, of) for one in (server, node))
                        for _ in range(bench.turns)
                    ]
                    took[name, of.name] = [(ours, theirs) for ours, theirs in sides]
                memory = peak_memory(server.pid)
            for name in CONSUMERS:
                add(bench, took[name, of.name], name, of.name)
            bench.add(only_ratio(PART, "memory", of.name, "50 MiB", against(MOST_MEMORY, [memory])))
    with bench.guarded(f"{PART}, start"):
        directory = many_partitions(bench.manifest.named("s4-none"))
        seconds = [seconds_to_start(directory) for _ in range(bench.turns)]
        ready = against(READY_SECONDS, seconds)
        bench.add(only_ratio(PART, "ready", f"{MANY} partitions", "a second", ready))
    bench.sections[TITLE] = section(bench, took)


def add(bench: Bench, turns: list[tuple[Took, Took]], consumer: str, on: str) -> None:
    for work, clock in (("MB/s", "wall"), ("CPU", "cpu")):
        bench.add(only_ratio(PART, f"{work} to {consumer}", on, "broker", speeds(turns, clock)))


def speeds(turns: list[tuple[Took, Took]], clock: str) -> Comparison:
    ours, theirs = ([1 / getattr(one, clock) for one in side] for side in zip(*turns, strict=True))
    return Comparison(ours, theirs)


def against(allowed: float, used: list[float]) -> Comparison:
    return Comparison([allowed / one for one in used], [1.0] * len(used))


def prepare(of: Set) -> None:
    """The set as each partition of a topic of the broker, and a copy of its directories for us."""
    shutil.rmtree(DIRECTORY, ignore_errors=True)
    with broker.running(NODE) as node:
        arguments = [node.bootstrap_servers, TOPIC, str(PARTITIONS), "0"]
        subprocess.run([*sets.JAVA, "bench.Produce", *arguments], check=True)
    for partition in range(PARTITIONS):
        directory = LOGS / f"{TOPIC}-{partition}"
        for file in directory.iterdir():
            if file.name != "partition.metadata":
                file.unlink()
        shutil.copyfile(of.path, directory / f"{0:020d}.log")
    # The broker makes the indexes, as after a crash.
    (LOGS / ".kafka_cleanshutdown").unlink()
    with broker.running(NODE):
        pass
    for partition in range(PARTITIONS):
        shutil.copytree(LOGS / f"{TOPIC}-{partition}", DIRECTORY / "copy" / f"{TOPIC}-{partition}")


@contextmanager
def serving(directory: Path) -> Iterator[Broker]:
    """The command on these partitions, once clients can connect."""
    serve = [sys.executable, "-m", "magicbyte", "serve", "--json", "--listen", "127.0.0.1:0"]
    command = [*serve, str(directory)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield Broker(json.loads(process.stdout.readline())["bootstrap_servers"], process.pid)
        finally:
            process.terminate()


def consume(consumer: Consumer, server: Broker, of: Set) -> Took:
    family = Family(server.pid)
    before = family.cpu_seconds()
    walls = consumer(server.bootstrap_servers, of)
    return Took(min(walls), (family.cpu_seconds() - before) / len(walls))


def by_java(bootstrap_servers: str, of: Set) -> list[float]:
    numbers = map(str, (PARTITIONS, PARTITIONS * of.expected.records, ROUNDS))
    command = [*sets.JAVA, "bench.Consume", bootstrap_servers, TOPIC, *numbers]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return [int(line) / 1e9 for line in done.stdout.split()]


def by_librdkafka(bootstrap_servers: str, of: Set) -> list[float]:
    """kcat if it is installed, which prints a byte for each record; otherwise its library from Python."""
    return [one_by_librdkafka(bootstrap_servers, of) for _ in range(ROUNDS)]


def one_by_librdkafka(bootstrap_servers: str, of: Set) -> float:
    expected, found = PARTITIONS * of.expected.records, 0
    start = time.perf_counter()
    if kcat := shutil.which("kcat"):
        command = [kcat, "-C", "-b", bootstrap_servers, "-t", TOPIC, "-o", "beginning", "-e", "-q", "-f", "."]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            while read := process.stdout.read(1 << 20):
                found += len(read)
    else:
        import confluent_kafka

        consumer = confluent_kafka.Consumer({"bootstrap.servers": bootstrap_servers, "group.id": "bench"})
        consumer.assign([confluent_kafka.TopicPartition(TOPIC, one, 0) for one in range(PARTITIONS)])
        while found < expected and (read := consumer.consume(10_000, 10)):
            found += len(read)
        consumer.close()
    if found != expected:
        raise RuntimeError(f"{found} records instead of {expected}")
    return time.perf_counter() - start


CONSUMERS: dict[str, Consumer] = {"Java": by_java, "librdkafka": by_librdkafka}


def peak_memory(pid: int) -> int:
    status = Path(f"/proc/{pid}/status").read_text()
    (line,) = (line for line in status.splitlines() if line.startswith("VmHWM:"))
    return int(line.split()[1]) << 10


def many_partitions(of: Set) -> Path:
    """Partitions of the set, hard-linked."""
    directory = DIRECTORY / "many"
    for number in range(MANY):
        link = directory / f"many-{number}" / f"{0:020d}.log"
        if not link.exists():
            link.parent.mkdir(parents=True)
            link.hardlink_to(of.path)
    return directory


def seconds_to_start(directory: Path) -> float:
    start = time.monotonic()
    with serving(directory):
        return time.monotonic() - start


def section(bench: Bench, took: dict[tuple[str, str], list[tuple[Took, Took]]]) -> str:
    lines = [
        document.bullets(
            f"{document.written('make bench')} Turns: {bench.turns}, {ROUNDS} rounds each.",
            f"A topic of {PARTITIONS} partitions in the page cache, read to the end by one consumer: of"
            " `magicbyte serve` and of a broker (4.3.1) on copies of the same files, in turn. The fastest"
            " round counts; the first warm up.",
            "CPU time is that of the server, for each time that the topic is read. `librdkafka` is kcat, or"
            " confluent-kafka where that is not installed.",
        ),
        "",
        "| consumer | data | magicbyte MB/s | broker MB/s | ratio | magicbyte CPU s | broker CPU s | ratio |",
        "|---|---|---:|---:|---:|---:|---:|---:|",
    ]
    for (consumer, on), turns in took.items():
        size = PARTITIONS * bench.manifest.named(on).size / 1e6
        ours, theirs = (min(side, key=lambda one: one.wall) for side in zip(*turns, strict=True))
        cpu = [sorted(one.cpu for one in side)[len(side) // 2] for side in zip(*turns, strict=True)]
        rates = f"{size / ours.wall:.0f} | {size / theirs.wall:.0f} | {speeds(turns, 'wall')}"
        times = f"{cpu[0]:.2f} | {cpu[1]:.2f} | {speeds(turns, 'cpu')}"
        lines.append(f"| {consumer} | {on} | {rates} | {times} |")
    return "\n".join(lines)
