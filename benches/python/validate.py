"""Append validation against Kafka's LogValidator: batches as a producer sends them, one append each."""

import limits
import programs
from bench import Bench
from figures import figure
from processes import pin
from programs import MAGICBYTE, Program

PART = "Validate appends"
# Set and target codec.
CASES = [
    ("s1-none", "producer"),
    ("s1-gzip", "producer"),
    ("s1-snappy", "producer"),
    ("s1-lz4", "producer"),
    ("s1-zstd", "producer"),
    ("s2-none", "producer"),
    ("s2-zstd", "producer"),
    ("s4-none", "producer"),
    ("s4-lz4", "producer"),
    ("s1-none", "lz4"),
    ("s1-gzip", "zstd"),
]


def measure(bench: Bench) -> None:
    program = str(programs.ours("validate"))
    limits.built()
    pin()
    for name, target in CASES:
        for of in bench.chosen(name):
            with bench.guarded(f"{PART}, {name} to {target}"):
                ours = Program((MAGICBYTE,), [program, target], warm_up_seconds=0.3)
                theirs = programs.java("LogValidator", "Validate", target)
                limit = limits.limit_of(PART, f"to {target}").program(
                    of, "none" if target == "producer" else target
                )
                working = programs.with_many_rounds([*bench.refusing([ours, theirs], of), limit])
                for peer, compared in programs.compare(working, of, bench.turns).items():
                    bench.add(figure(PART, f"to {target}", name, peer, compared))
