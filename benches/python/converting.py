"""A task of `convert`, from gzip in magic 1 to zstd in magic 2, against the codecs alone, and with two
threads against one.
"""

import subprocess

import programs
import sets
from bench import Bench
from figures import only_ratio
from ratios import Comparison

PART = "Convert"
SET = "s1v1-gzip"
DATA = "gzip of magic 1 to zstd of magic 2"


def measure(bench: Bench) -> None:
    converter = programs.ours("convert")
    for of in bench.chosen(SET):
        partition = sets.partition(of, "convert")
        command = [converter, partition, sets.DATA / "converted", of.expected.records, bench.turns]
        done = subprocess.run([*map(str, command)], capture_output=True, text=True, check=True)
        rounds = [list(map(float, line.split())) for line in done.stdout.splitlines()]
        # Inverse seconds are speeds.
        converting, codecs, busier, one, two = (
            [1 / took for took in way] for way in zip(*rounds, strict=True)
        )
        for peer, our, its in (
            ("the codecs alone", converting, codecs),
            ("one thread, CPU time", busier, converting),
            ("one thread, clock", two, one),
        ):
            bench.add(only_ratio(PART, "", DATA, peer, Comparison(our, its)))
