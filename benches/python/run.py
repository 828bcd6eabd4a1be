"""Runs the comparisons part by part and writes docs/benchmarks.md, its figures and its picture.

    python benches/python/run.py [--quick] [--parts read,write] [--sets s1-none,s4] [--turns 5]

Fails at the end if anything failed: a reader that is wrong or does not notice damage, or a set that differs
from its writer's report. A peer that cannot be built here is only named.
"""

import argparse
import importlib
import time
from pathlib import Path

import machine
import report
import sets
from bench import Bench
from processes import unpin

# Modules with measure(bench). Queries rely on the checks of the first two.
PARTS = [
    "rust_read",
    "python_read",
    "arrow_threads",
    "queries",
    "lines",
    "rust_write",
    "python_write",
    "converting",
    "segments",
    "validate",
    "compact",
    "laboratory",
    "lake",
    "stores",
    "serving",
    "capture",
    "internal_topics",
    "schemas",
    "dropins",
]
QUICK_SETS = ("s1-none", "s1-lz4", "s2-none", "s4-zstd", "s1v1-gzip")
QUICK_PARTS = PARTS[: PARTS.index("segments")]
TURNS, QUICK_TURNS = 4, 2


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer sets, turns and parts")
    parser.add_argument("--parts", default=",".join(PARTS), help=f"of {', '.join(PARTS)}")
    parser.add_argument("--sets", default="", help="prefixes of the sets' names (default: all)")
    parser.add_argument("--turns", type=int)
    parser.add_argument("--output", type=Path, default=sets.PROJECT / "docs" / "benchmarks.md")
    arguments = parser.parse_args()

    manifest = sets.prepare()
    chosen = [of for of in manifest.sets if of.name.startswith(tuple(arguments.sets.split(",")))]
    parts = arguments.parts.split(",")
    if arguments.quick:
        chosen = [of for of in chosen if of.name in QUICK_SETS]
        parts = [part for part in parts if part in QUICK_PARTS]
    turns = arguments.turns or (QUICK_TURNS if arguments.quick else TURNS)
    bench, run = Bench(manifest, chosen, turns), report.now()
    for number, part in enumerate(parts, 1):
        start = time.monotonic()
        print(f"--- {part}, {number} of {len(parts)} ---", flush=True)
        # Builds may use all cores; each part pins itself for its measurements.
        unpin()
        with bench.guarded(part):
            importlib.import_module(part).measure(bench)
        # After each part, so that an interrupted run keeps its figures.
        facts = [machine.cpu(), machine.versions(manifest.writer)]
        facts += [f"Left out: {what}" for what in bench.absent] + [
            f"Failed: {what}" for what in bench.problems
        ]
        report.publish(arguments.output, run, bench.figures, facts, bench.sections)
        print(f"--- {part}: {time.monotonic() - start:.0f} s ---", flush=True)
    print(f"wrote {arguments.output}")
    if bench.problems:
        raise SystemExit("\n".join(["failed:", *bench.problems]))


if __name__ == "__main__":
    main()
