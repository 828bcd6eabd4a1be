"""Runs the comparisons part by part and writes docs/benchmarks.md, its figures and its picture.

    python benches/python/run.py [--quick] [--parts read,write] [--sets s1-none,s4] [--turns 5]
    python benches/python/run.py --status    says which commits separate the figures from this code
    python benches/python/run.py --page      writes the page again, from the figures that there are

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
from figures import Figures
from processes import unpin
from standing import Standing, status

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
    "live_cpu",
    "backup_cpu",
    "replicas",
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
    parser.add_argument("--status", action="store_true", help="only say what has changed since")
    parser.add_argument("--page", action="store_true", help="only write the page")
    arguments = parser.parse_args()
    figures = Figures.load(arguments.output.with_suffix(".json"))
    if arguments.status:
        print("\n".join(status(Standing(), figures)))
    elif arguments.page:
        report.write(arguments.output, figures, Standing())
    else:
        run(arguments)


def run(arguments: argparse.Namespace) -> None:
    manifest = sets.prepare()
    chosen = [of for of in manifest.sets if of.name.startswith(tuple(arguments.sets.split(",")))]
    parts = arguments.parts.split(",")
    if arguments.quick:
        chosen = [of for of in chosen if of.name in QUICK_SETS]
        parts = [part for part in parts if part in QUICK_PARTS]
    turns = arguments.turns or (QUICK_TURNS if arguments.quick else TURNS)
    bench, started = Bench(manifest, chosen, turns), report.now()
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
        report.publish(arguments.output, started, bench.figures, facts, bench.sections)
        print(f"--- {part}: {time.monotonic() - start:.0f} s ---", flush=True)
    print(f"wrote {arguments.output}")
    print("\n".join(status(Standing(), Figures.load(arguments.output.with_suffix(".json")))))
    if bench.problems:
        raise SystemExit("\n".join(["failed:", *bench.problems]))


if __name__ == "__main__":
    main()
