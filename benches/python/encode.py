"""Encoding against kafka-clients and aiokafka, and `convert` against the codecs it uses. Writes its
sections of docs/benchmarks.md.

    python benches/python/encode.py [--turns 5] [--sets s1-gzip,s4]
"""

import argparse
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import document
import magicbyte
import programs
import pyarrow as pa
import sets
from aiokafka.record.default_records import DefaultRecordBatchBuilder  # type: ignore[import-untyped]
from processes import pin
from programs import Program
from ratios import Comparison, millions
from sets import JAVA, Set

CODECS = {"s1": ("none", "gzip", "snappy", "lz4", "zstd"), "s4": ("lz4", "zstd")}
FLOORS = {"s1-none": 2.0, "s4-lz4": 2.5, "s4-zstd": 2.5}
PYTHON_FLOORS = {"append": 1.8, "append_many": None, "append_arrow": 4.0}
CONVERT_FLOOR = 0.8
TWO_THREADS_FLOOR = 1.6
UNLIMITED = 1 << 30


@dataclass(frozen=True)
class Encoded:
    """Rates, and the bytes of both sides."""

    rates: Comparison
    our_size: int
    peers_size: int


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--sets", default="", help="how the names begin: s1-gzip,s4 (default: all)")
    parser.add_argument("--output", type=Path, default=sets.PROJECT / "docs" / "benchmarks.md")
    arguments = parser.parse_args()
    of = {one.name: one for one in sets.prepare().sets}
    program, converter = programs.example("bench_encode"), programs.example("bench_convert")
    converted = convert(converter, of["s1v1-gzip"], arguments.turns)
    pin()
    rust: dict[str, Encoded] = {}
    for shape, codecs in CODECS.items():
        for codec in codecs:
            name = f"{shape}-{codec}"
            if name.startswith(tuple(arguments.sets.split(","))):
                rust[name] = compare(program, codec, of[f"{shape}-none"], arguments.turns)
                print(f"{name}: {rust[name].rates} x kafka-clients", flush=True)
    python = compare_loops(of["s1-none"], arguments.turns)
    for loop, comparison in python.items():
        print(f"{loop}: {comparison} x aiokafka", flush=True)
    sections: dict[str, str | None] = {
        "Encoding": encoding(rust, python),
        "Converting": converting(converted),
    }
    document.update(arguments.output, sections)
    print(f"wrote {arguments.output}")


# --- Rust against kafka-clients -------------------------------------------------------------------


def compare(example: Path, codec: str, records: Set, turns: int) -> Encoded:
    """Both build the batches of the uncompressed set with the codec."""
    ours = Program([str(example), codec], warm_up_seconds=0.3)
    peer = Program([*JAVA, "bench.Encode", codec], warm_up_seconds=3)
    for program in (ours, peer):
        programs.must_refuse_damage(program, records)
    return Encoded(programs.compare(ours, peer, records, turns), size(ours, records), size(peer, records))


def size(program: Program, records: Set) -> int:
    """What it says at the end that it wrote in a pass."""
    return int(program.run(records.path, records, 0, 1).stderr.split()[-1])


# --- Python against aiokafka ----------------------------------------------------------------------

Row = tuple[int, int, bytes | None, bytes | None]
NO_HEADERS: list[tuple[str, bytes | None]] = []


def compare_loops(records: Set, turns: int) -> dict[str, Comparison]:
    """Loops in turn in one process, over the same rows."""
    # aiokafka's offsets count from 0 in each batch, as a producer's do.
    batches = [
        [(index, r.timestamp, r.key_bytes, r.value_bytes) for index, r in enumerate(batch)]
        for batch in magicbyte.read_batches(records.path.read_bytes())
    ]
    builder = magicbyte.RecordsBuilder()

    def append(rows: list[Row]) -> bytes:
        append = builder.append
        for offset, timestamp, key, value in rows:
            append(offset, timestamp, key, value)
        return builder.build()

    def append_many(rows: list[Row]) -> bytes:
        builder.append_many(rows)
        return builder.build()

    # Made before the clock runs, as the lists are.
    tables = {id(rows): table_of(rows) for rows in batches}

    def append_arrow(rows: list[Row]) -> bytes:
        builder.append_arrow(tables[id(rows)])
        return builder.build()

    def aiokafka(rows: list[Row]) -> Any:
        peer = DefaultRecordBatchBuilder(2, 0, 0, -1, -1, -1, UNLIMITED)
        append = peer.append
        for offset, timestamp, key, value in rows:
            append(offset, timestamp, key, value, NO_HEADERS)
        return peer.build()

    loops: dict[str, Callable[[list[Row]], Any]] = {
        "append": append,
        "append_many": append_many,
        "append_arrow": append_arrow,
        "aiokafka": aiokafka,
    }
    rates: dict[str, list[float]] = {name: [] for name in loops}
    for name, loop in loops.items():
        check(name, loop, batches)
    for _ in range(turns):
        for name, loop in loops.items():
            rates[name].append(rate(loop, batches, records.expected.records))
    return {name: Comparison(rates[name], rates["aiokafka"]) for name in PYTHON_FLOORS}


def table_of(rows: list[Row]) -> pa.RecordBatch:
    """The rows as Arrow columns."""
    names = ("offset", "timestamp", "key", "value")
    columns = [pa.array(column) for column in zip(*rows, strict=True)]
    return pa.record_batch(columns, names=list(names))


def check(name: str, loop: Callable[[list[Row]], Any], batches: list[list[Row]]) -> None:
    """Shows that the loop writes every record."""
    (batch,) = magicbyte.read_batches(bytes(loop(batches[0])))
    found = [(r.timestamp, r.key_bytes, r.value_bytes) for r in batch]
    if found != [row[1:] for row in batches[0]]:
        raise RuntimeError(f"{name} wrote other records")


def rate(loop: Callable[[list[Row]], Any], batches: list[list[Row]], records: int) -> float:
    # CPU time, since others may use the core too.
    start = time.process_time()
    for rows in batches:
        loop(rows)
    return records / (time.process_time() - start)


# --- convert against its codecs -------------------------------------------------------------------


@dataclass(frozen=True)
class Converted:
    """The codecs' time by the conversion's; one thread's by that of the busier of two, and on the clock."""

    of_the_codecs: list[float]
    by_two_threads: list[float]
    on_the_clock: list[float]


def convert(example: Path, of: Set, turns: int) -> Converted:
    partition = sets.DATA / "convert" / "bench-0"
    segment = partition / f"{0:020d}.log"
    if not segment.exists():
        partition.mkdir(parents=True)
        segment.hardlink_to(of.path)
    command = [example, partition, sets.DATA / "converted", of.expected.records, turns]
    done = subprocess.run([*map(str, command)], capture_output=True, text=True, check=True)
    rounds = [list(map(float, line.split())) for line in done.stdout.splitlines()]
    return Converted(
        [codecs / converting for converting, codecs, *_ in rounds],
        [converting / busier for converting, _, busier, *_ in rounds],
        [one / two for *_, one, two in rounds],
    )


# --- the report -----------------------------------------------------------------------------------


def encoding(rust: dict[str, Encoded], python: dict[str, Comparison]) -> str:
    lines = [
        "Batches built anew from records in memory, **CRC on**, default levels, contexts and buffers reused",
        "where a side can; CPU time, in turn, in processes (Rust) and loops (Python). Size: our bytes by",
        "theirs.",
        "",
        "| what | codec | magicbyte | peer | ratio | size | floor |",
        "|---|---|---:|---:|---:|---:|---:|",
    ]
    for name, encoded in rust.items():
        shape, codec = name.split("-")
        share = f"{encoded.our_size / encoded.peers_size:.3f}"
        what = f"Rust, {shape.upper()}, against kafka-clients"
        lines.append(row(what, codec, encoded.rates, share, FLOORS.get(name)))
    for loop, rates in python.items():
        lines.append(row(f"Python `{loop}`, S1, against aiokafka", "none", rates, "", PYTHON_FLOORS[loop]))
    return "\n".join(lines)


def row(what: str, codec: str, rates: Comparison, share: str, floor: float | None) -> str:
    cells = [what, codec, millions(rates.ours), millions(rates.peers), str(rates), share]
    return f"| {' | '.join(cells)} | {verdict(rates.ratio, floor)} |"


def converting(converted: Converted) -> str:
    return "\n".join(
        [
            "What a task of `convert` does with gzip batches of magic 1, to zstd in magic 2: read, check,",
            "convert, write, sync. The codecs' own speed is that of the same payloads through the same",
            "contexts, in CPU time. Two threads against one: the CPU time of the busier, and the clock,",
            "which all else that runs on the machine disturbs.",
            "",
            "| what | median | smallest..largest | floor |",
            "|---|---:|---:|---:|",
            line("of the codecs' own speed", converted.of_the_codecs, CONVERT_FLOOR),
            line("two threads against one, CPU time", converted.by_two_threads, TWO_THREADS_FLOOR),
            line("two threads against one, clock", converted.on_the_clock, None),
        ]
    )


def line(what: str, ratios: list[float], floor: float | None) -> str:
    spread = f"{min(ratios):.2f}..{max(ratios):.2f}"
    return f"| {what} | {median(ratios):.2f} | {spread} | {verdict(median(ratios), floor)} |"


def verdict(ratio: float, floor: float | None) -> str:
    if floor is None:
        return ""
    return f"{floor} {'met' if ratio >= floor else '**missed**'}"


if __name__ == "__main__":
    main()
