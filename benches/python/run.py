"""Runs the comparisons and writes docs/benchmarks.md."""

import argparse
from pathlib import Path

import programs
import report
import sets
from processes import pin
from ratios import Comparison
from sets import Set


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--sets", default="", help="how the names of the sets begin: s1-none,s4 (default: all)"
    )
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--only", choices=["rust", "python"], help="one half (default: both)")
    parser.add_argument("--output", type=Path, default=sets.PROJECT / "docs" / "benchmarks.md")
    arguments = parser.parse_args()

    manifest = sets.prepare()
    chosen = [of for of in manifest.sets if of.name.startswith(tuple(arguments.sets.split(",")))]
    rust: dict[Set, Comparison] = {}
    if arguments.only != "python":
        ours, peer = programs.build()
        pin()
        for of in chosen:
            programs.must_refuse_damage(ours, of)
            programs.must_refuse_damage(peer, of)
            rust[of] = programs.compare(ours, peer, of, arguments.turns)
            print(f"{of.name}: {rust[of]} x kafka-clients", flush=True)
    python: dict[Set, dict[str, Comparison]] = {}
    if arguments.only != "rust":
        # Only here: the other half needs neither of the Python packages.
        import loops

        pin()
        # A message of magic 1 is a batch of its own: no loop to compare.
        for of in (of for of in chosen if of.magic == 2):
            python[of] = loops.compare(of, arguments.turns)
            for way, comparison in python[of].items():
                print(f"{of.name}, {way}: {comparison} x aiokafka", flush=True)
    report.write(arguments.output, manifest, arguments.turns, rust, python)
    print(f"wrote {arguments.output}")


if __name__ == "__main__":
    main()
