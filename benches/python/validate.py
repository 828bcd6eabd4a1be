"""Append validation against Kafka's LogValidator. Writes its section of docs/benchmarks.md.

python benches/python/validate.py [--turns 5] [--sets s1-none,s4]
"""

import argparse
from pathlib import Path

import document
import programs
import sets
from processes import pin
from programs import Program
from ratios import Comparison, millions
from sets import JAVA

# Set and target codec; what is asked of the ratio.
CASES: dict[tuple[str, str], float | None] = {
    ("s1-none", "producer"): 2.0,
    ("s1-gzip", "producer"): 1.2,
    ("s1-snappy", "producer"): 1.2,
    ("s1-lz4", "producer"): 1.2,
    ("s1-zstd", "producer"): 1.2,
    ("s2-none", "producer"): 2.0,
    ("s2-zstd", "producer"): 1.2,
    ("s4-none", "producer"): None,
    ("s4-lz4", "producer"): None,
    ("s1-none", "lz4"): None,
    ("s1-gzip", "zstd"): None,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--sets", default="", help="how the names begin: s1-gzip,s4 (default: all)")
    parser.add_argument("--output", type=Path, default=sets.PROJECT / "docs" / "benchmarks.md")
    arguments = parser.parse_args()
    of = {one.name: one for one in sets.prepare().sets}
    example = programs.example("bench_validate")
    pin()
    lines = [
        "Batches as a producer sends them, one append each: CRC, the checks of every record (keys and values",
        "are not touched), offsets and leader epoch set in place, or written anew with another codec. The",
        "peer is a batch's `isValid` and `LogValidator` of kafka-storage 4.3.1, as `UnifiedLog` calls them.",
        "Processes in turn, CPU time.",
        "",
        "| set | target | magicbyte | LogValidator | ratio | floor |",
        "|---|---|---:|---:|---:|---:|",
    ]
    for (name, target), floor in CASES.items():
        if not name.startswith(tuple(arguments.sets.split(","))):
            continue
        ours = Program([str(example), target], warm_up_seconds=0.3)
        peer = Program([*JAVA, "bench.Validate", target], warm_up_seconds=3)
        for program in (ours, peer):
            programs.must_refuse_damage(program, of[name])
        rates = programs.compare(ours, peer, of[name], arguments.turns)
        print(f"{name} to {target}: {rates} x LogValidator", flush=True)
        lines.append(row(name, target, rates, floor))
    document.update(arguments.output, {"Validating appends": "\n".join(lines)})
    print(f"wrote {arguments.output}")


def row(name: str, target: str, rates: Comparison, floor: float | None) -> str:
    verdict = "" if floor is None else f"{floor} {'met' if rates.ratio >= floor else '**missed**'}"
    cells = [name.upper(), target, millions(rates.ours), millions(rates.peers), str(rates), verdict]
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    main()
