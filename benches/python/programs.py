"""magicbyte's Rust example against kafka-clients: processes in turn, one JVM for each file, since
a JVM that has seen several codecs runs each of them slower.
"""

import os
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from ratios import Comparison
from sets import JAVA, PROJECT, Set, damaged

ROUNDS_IN_A_PROCESS = 4


@dataclass(frozen=True)
class Program:
    """Takes FILE RECORDS BYTES WARM_UP_SECONDS ROUNDS; prints records/s, one line a round."""

    command: list[str]
    warm_up_seconds: float

    def run(self, path: Path, of: Set, warm_up: float, rounds: int) -> "subprocess.CompletedProcess[str]":
        arguments = [path, of.expected.records, of.expected.bytes, warm_up, rounds]
        return subprocess.run(
            [*self.command, *map(str, arguments)], capture_output=True, text=True, check=False
        )

    def rate(self, of: Set) -> float:
        done = self.run(of.path, of, self.warm_up_seconds, ROUNDS_IN_A_PROCESS)
        if done.returncode != 0:
            raise RuntimeError(f"{self.command[0]} on {of.name}: {done.stderr}")
        # The best round: what else runs on the machine can only slow one down.
        return max(map(float, done.stdout.split()))


def build() -> tuple[Program, Program]:
    """Ours, in the release profile, and Kafka's."""
    ours = Program([str(example("bench_decode"))], warm_up_seconds=0.3)
    return ours, Program([*JAVA, "bench.Decode"], warm_up_seconds=3)


def example(name: str) -> Path:
    """Builds an example in the release profile."""
    subprocess.run(["cargo", "build", "-q", "--release", "--example", name], cwd=PROJECT, check=True)
    target = Path(os.environ.get("CARGO_TARGET_DIR", PROJECT / "target"))
    return target / "release" / "examples" / name


def compare(ours: Program, peer: Program, on: Set, turns: int) -> Comparison:
    rates = [(ours.rate(on), peer.rate(on)) for _ in range(turns)]
    return Comparison([our for our, _ in rates], [its for _, its in rates])


def must_refuse_damage(program: Program, of: Set) -> None:
    """Shows that a rate is printed only for right results, CRC included."""
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "damaged.log"
        for damage, data in damaged(of.path.read_bytes()).items():
            path.write_bytes(data)
            if program.run(path, of, 0, 1).returncode == 0:
                raise RuntimeError(f"{program.command[0]} did not notice {damage} in {of.name}")
