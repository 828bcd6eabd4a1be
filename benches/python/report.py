"""docs/benchmarks.md."""

import os
import platform
import subprocess
import tomllib
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

import document
from ratios import Comparison, millions
from sets import PROJECT, Manifest, Set

WORK = "Work, always with the **CRC on**: frame, CRC, decompress, every record, touch key and value."


def write(
    path: Path,
    manifest: Manifest,
    turns: int,
    rust: dict[Set, Comparison],
    python: dict[Set, dict[str, Comparison]],
) -> None:
    # A half that did not run is not kept: the head would speak of it.
    sections = {
        "Rust against kafka-clients": rust_table(rust) if rust else None,
        "Python against aiokafka": python_table(python) if python else None,
        "Floors": floors(rust, python) if rust and python else None,
    }
    document.update(path, sections, header(manifest, turns))


def header(manifest: Manifest, turns: int) -> str:
    versions = ", ".join(
        [
            f"magicbyte {project_version()}",
            f"aiokafka {version('aiokafka')}",
            f"pyarrow {version('pyarrow')}",
            manifest.writer,
            f"Python {platform.python_version()}",
            first_line(["java", "--version"]),
            first_line(["rustc", "--version"]),
        ]
    )
    return f"""# Benchmarks

Written by `make bench` on {datetime.now(UTC):%Y-%m-%d}. {WORK}

- CPU: {cpu()}; one core, pinned; time is the CPU time of the decoding thread, of the process in
  Python. No `target-cpu`: what the wheel runs.
- {versions}.
- Data: seeded, written by {manifest.writer}, about 65 MB of records a set. Both sides read the same bytes.
- Both sides ran in turn; turns: {turns}. A ratio is the median of the turns' ratios (smallest..largest),
  above 1 where magicbyte is faster; a rate is a median, in million records/s.
- Each program and loop must find every record and byte of a set, and must refuse a copy with one byte
  flipped and a copy without its last batch.
"""


def rust_table(rust: dict[Set, Comparison]) -> str:
    lines = [
        "Processes in turn, a JVM for each file, Serial GC, 3 s of warm-up.",
        "",
        "| set | batches of | codec | magicbyte | kafka-clients | ratio |",
        "|---|---|---|---:|---:|---:|",
    ]
    for of, comparison in rust.items():
        rates = f"{millions(comparison.ours)} | {millions(comparison.peers)}"
        lines.append(f"| {label(of)} | {of.shape} | {of.codec} | {rates} | {comparison} |")
    return "\n".join(lines)


def python_table(python: dict[Set, dict[str, Comparison]]) -> str:
    ways = list(next(iter(python.values())))
    lines = [
        "Loops in turn in one process. aiokafka's, with `validate_crc()`, takes `key` and `value` as bytes.",
        "A cell is magicbyte's rate and its ratio to aiokafka's.",
        "",
        f"| set | codec | aiokafka | {' | '.join(ways)} |",
        f"|---|---|---:|{'---:|' * len(ways)}",
    ]
    for of, comparisons in python.items():
        peers = next(iter(comparisons.values())).peers
        cells = [f"{millions(c.ours)}: {c}" for c in comparisons.values()]
        lines.append(f"| {label(of)} | {of.codec} | {millions(peers)} | {' | '.join(cells)} |")
    return "\n".join(lines)


def floors(rust: dict[Set, Comparison], python: dict[Set, dict[str, Comparison]]) -> str:
    by_name = {of.name: comparison for of, comparison in rust.items()}
    lines = ["| what | floor | measured |", "|---|---:|---:|"]

    def line(what: str, floor: float, comparison: Comparison) -> None:
        verdict = "met" if comparison.ratio >= floor else "**missed**"
        lines.append(f"| {what} | {floor} | {comparison.ratio:.2f} {verdict} |")

    if "s1-none" in by_name:
        line("S1 none against kafka-clients", 2, by_name["s1-none"])
    for of, comparison in rust.items():
        if of.name.startswith("s4-"):
            line(f"S4 {of.codec} (10-record batches) against kafka-clients", 1, comparison)
    for of, comparisons in python.items():
        if of.name == "s1-none":
            line(
                "S1 none to Arrow in one stream against aiokafka's loop", 5, comparisons["Arrow, one stream"]
            )
    return "\n".join(lines)


def label(of: Set) -> str:
    return of.name.split("-")[0].upper()


def cpu() -> str:
    name = platform.processor()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        for line in cpuinfo.read_text().splitlines():
            if line.startswith("model name"):
                name = line.partition(":")[2].strip()
    return f"{name}, {os.cpu_count()} cores, {platform.machine()}"


def project_version() -> str:
    return str(tomllib.loads((PROJECT / "Cargo.toml").read_text())["package"]["version"])


def first_line(command: list[str]) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()[0]
