"""The Spark section of docs/benchmarks.md."""

import os
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from statistics import median

import document
import kafka_source
import kafka_topic
import report
from broker import JARS as BROKER_JARS
from figures import Figure, Run, only_ratio
from kafka_topic import Topic
from machine import cpu, first_line, project_version
from processes import Used
from ratios import Comparison

PART = "Spark"
QUIET_CORES = 0.25
TITLE = "Spark against its own Kafka source"
CLOCKS = {"wall": "wall", "cpu": "CPU"}
# The turns of each way.
Turns = dict[str, list[Used]]


def write(path: Path, run: Run, topic: Topic, warm: Turns, cold: Turns) -> None:
    parts = [head(topic, warm, cold), "", table("warm, one session", warm, topic), ""]
    parts += [table("cold, whole command", cold, topic), "", ratios(warm, cold)]
    facts = [cpu(), f"`make bench-spark`, see {TITLE}"]
    report.publish(path, run, figures(warm, cold), facts, {TITLE: "\n".join(parts)})


def head(topic: Topic, warm: Turns, cold: Turns) -> str:
    jars = ", ".join(jar.stem for jar in sorted(kafka_source.JARS.glob("*.jar")))
    (broker,) = (jar.stem for jar in BROKER_JARS.glob("kafka_2.13-*.jar"))
    rows = topic.records / kafka_topic.batches()
    warm_turns, cold_turns = len(next(iter(warm.values()))), len(next(iter(cold.values())))
    others = median(turn.others for turns in (*warm.values(), *cold.values()) for turn in turns)
    tuned = ", ".join(f"`{name}` {value}" for name, value in kafka_source.TUNED.items())
    return document.bullets(
        f"Written by `make bench-spark` on {datetime.now(UTC):%Y-%m-%d}. A real broker (KRaft) shares the "
        "cores with Spark; magicbyte reads copies of the broker's segments. Page cache warm.",
        f"CPU: {cpu()}; `local[*]`. CPU seconds are those of driver, JVM and Python workers, and of the "
        f"broker where it is read from. Others used {others:.1f} of {os.cpu_count()} cores meanwhile "
        "(median): if that is much, they disturb wall time, and CPU time is the better figure.",
        f"magicbyte {project_version()}, pyspark {version('pyspark')}, pyarrow {version('pyarrow')}, "
        f"{first_line(['java', '--version'])}; broker: {broker}; the Kafka source: {jars}.",
        f"The Kafka source is tuned: {tuned}; Parquet timestamps are TIMESTAMP_MICROS. The driver of the "
        "warm session has 6 GB, that of a whole command Spark's default.",
        f"Data: {topic.records:,} records of 116 bytes (16 B key, 100 B JSON value) in "
        f"{kafka_topic.PARTITIONS} partitions, zstd, {topic.size / 1e6:.0f} MB, {rows:.0f} records a batch. "
        "Rows and the sum of their hashes over all seven columns were equal in both sources and in both "
        "Parquet outputs.",
        f"All ways ran in turn: {warm_turns} warm turns after two of warm-up, {cold_turns} cold ones. "
        "A ratio is the median of the turns' ratios (smallest..largest), above 1 where magicbyte is faster; "
        "seconds are medians (smallest..largest), of all turns.",
        "Ratios are given twice, with the number of turns: over all of them, and over the quiet ones, "
        f"in which others used less than {QUIET_CORES} cores during both runs of the pair.",
        "`magicbyte ingest` also writes `headers` and the tables `batches` and `problems`, and commits at "
        "the end.",
    )


def table(title: str, used: Turns, topic: Topic) -> str:
    lines = [f"| {title} | wall s | CPU s | million records/s |", "|---|---:|---:|---:|"]
    for name, turns in used.items():
        wall, cpu_time = ([turn.wall for turn in turns], [turn.cpu for turn in turns])
        rate = topic.records / median(wall) / 1e6
        lines.append(f"| {name} | {seconds(wall)} | {seconds(cpu_time)} | {rate:.2f} |")
    return "\n".join(lines)


def seconds(turns: list[float]) -> str:
    return f"{median(turns):.2f} ({min(turns):.2f}..{max(turns):.2f})"


def compared(warm: Turns, cold: Turns) -> list[tuple[str, str, str, list[Used], list[Used]]]:
    """Work, data, peer, and the turns of both sides."""
    ingest, source, parquet = warm["magicbyte ingest"], warm["magicbyte source"], "Kafka source to Parquet"
    ready = "ready Arrow batches"
    return [
        ("ingest", "warm", parquet, ingest, warm[parquet]),
        ("source", "warm", "Kafka source", source, warm["Kafka source"]),
        ("source", "warm", ready, source, warm[f"{ready}, data source"]),
        ("source", "warm", f"{ready} in mapInArrow", source, warm[f"{ready}, mapInArrow"]),
        ("whole command", "cold", parquet, cold["magicbyte ingest"], cold[parquet]),
    ]


def figures(warm: Turns, cold: Turns) -> list[Figure]:
    """The figures for the table of floors, over all turns."""
    found = []
    for work, on, peer, ours, peers in compared(warm, cold):
        for clock, name in CLOCKS.items():
            ratio = comparison(list(zip(ours, peers, strict=True)), clock)
            found.append(only_ratio(PART, f"{work}, {name}", on, peer, ratio))
    return found


def ratios(warm: Turns, cold: Turns) -> str:
    lines = ["| what | all turns | quiet turns |", "|---|---:|---:|"]
    for work, on, peer, ours, peers in compared(warm, cold):
        for clock, name in CLOCKS.items():
            pairs = list(zip(ours, peers, strict=True))
            quiet = [pair for pair in pairs if all(one.others < QUIET_CORES for one in pair)]
            cells = " | ".join(
                f"{comparison(some, clock)}, {len(some)}" if some else "none" for some in (pairs, quiet)
            )
            lines.append(f"| {work} against {peer}, {on}, {name} | {cells} |")
    return "\n".join(lines)


def comparison(pairs: list[tuple[Used, Used]], clock: str) -> Comparison:
    """Inverse times, so that above 1 is faster."""
    rates = [[1 / getattr(one, clock) for one in turns] for turns in zip(*pairs, strict=True)]
    return Comparison(rates[0], rates[1])
