"""Programs that read or write a set repeatedly: magicbyte's own, and the peers' programs in Java, Rust
and Go. Each ends with an error if it does not find every record and byte of the set.
"""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from ratios import Comparison
from sets import JAVA, PROJECT, Set, damaged

MAGICBYTE = "magicbyte"
# For sets whose rates vary most from round to round; the best round counts.
MANY_ROUNDS = 12
# A placeholder in a command, for the names of the readers or writers to run.
NAMES = "NAMES"
BUILT = PROJECT / "target"


class Absent(Exception):
    """This machine cannot build a program; the message says why."""


@dataclass(frozen=True)
class Program:
    """Takes FILE RECORDS BYTES WARM_UP_SECONDS ROUNDS after its command. Prints records/s, one line per
    round; with several in the process, each in turn, after its name."""

    names: tuple[str, ...]
    command: list[str]
    warm_up_seconds: float
    # Each takes at least 50 ms, and consists of whole passes.
    rounds: int = 4

    def run(self, path: Path, of: Set, warm_up: float, rounds: int) -> "subprocess.CompletedProcess[str]":
        command = [",".join(self.names) if part == NAMES else part for part in self.command]
        arguments = [path, of.expected.records, of.expected.bytes, warm_up, rounds]
        return subprocess.run([*command, *map(str, arguments)], capture_output=True, text=True, check=False)

    def must_run(self, of: Set, warm_up: float, rounds: int) -> "subprocess.CompletedProcess[str]":
        done = self.run(of.path, of, warm_up, rounds)
        if done.returncode != 0:
            raise RuntimeError(f"{', '.join(self.names)} on {of.name}: {done.stderr.strip()}")
        return done

    def rates(self, of: Set) -> dict[str, float]:
        """The best round of each, because other load on the machine can only slow a round down."""
        done = self.must_run(of, self.warm_up_seconds, self.rounds)
        best: dict[str, float] = {}
        for name, number in self.named_numbers(done.stdout):
            best[name] = max(best.get(name, 0), number)
        return best

    def sizes(self, of: Set) -> dict[str, int]:
        """The bytes that each wrote in a pass, as reported at the end."""
        printed = self.must_run(of, 0, 0).stderr
        return {name: int(size) for name, size in self.named_numbers(printed)}

    def write(self, records: Set, to: Path) -> None:
        """Writes the bytes of one pass to a file; only for programs that write."""
        arguments = [records.path, records.expected.records, records.expected.bytes, 0, 0, to]
        subprocess.run([*self.command, *map(str, arguments)], capture_output=True, check=True)

    def named_numbers(self, printed: str) -> list[tuple[str, float]]:
        split = (line.rpartition(" ") for line in printed.splitlines())
        return [(name or self.names[0], float(number)) for name, _, number in split]

    def only(self, *names: str) -> "Program":
        return replace(self, names=names)


def with_many_rounds(programs: list[Program]) -> list[Program]:
    """The same programs with more rounds."""
    return [replace(program, rounds=MANY_ROUNDS) for program in programs]


# --- building -------------------------------------------------------------------------------------


def ours(name: str, profile: str = "release") -> Path:
    """Builds one of the programs in `benches/rust`."""
    # With the bindings named, too, features are those of the wheel: what it has built is not built again.
    command = [
        "cargo",
        "build",
        "-q",
        "--profile",
        profile,
        "-p",
        "magicbyte-benches",
        "-p",
        "magicbyte-python",
    ]
    subprocess.run([*command, "--bin", name], cwd=PROJECT, check=True)
    target = Path(os.environ.get("CARGO_TARGET_DIR", BUILT))
    return target / profile / name


def rust_peers() -> Path:
    """Builds magicbyte and the other crates into one program, in a target directory of its own."""
    target = BUILT / "peers"
    # One of the crates declares a newer compiler than it needs.
    options = ["--release", "--ignore-rust-version", "--target-dir", str(target)]
    built("cargo", ["build", "-q", *options], PROJECT / "benches" / "peers" / "rust")
    return target / "release" / "peers"


def go_peers() -> Path:
    """Builds the Go clients with their vendored sources, adding a file of ours that opens sarama's reader."""
    source, copy = PROJECT / "benches" / "peers" / "go", BUILT / "bench-go"
    copy.mkdir(parents=True, exist_ok=True)
    for name in ("go.mod", "go.sum", "main.go"):
        shutil.copyfile(source / name, copy / name)
    built("go", ["mod", "vendor"], copy)
    opened = copy / "vendor" / "github.com" / "IBM" / "sarama" / "read_for_bench.go"
    shutil.copyfile(source / "sarama" / "read.go", opened)
    built("go", ["build", "-mod=vendor", "-o", "peers", "."], copy)
    return copy / "peers"


def built(tool: str, arguments: list[str], directory: Path) -> None:
    if shutil.which(tool) is None:
        raise Absent(f"{tool} is not installed here")
    done = subprocess.run([tool, *arguments], cwd=directory, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        printed = (done.stderr or done.stdout).strip().splitlines()
        raise Absent(f"{tool} {arguments[0]} failed: {printed[-1] if printed else 'no output'}")


# --- in turn --------------------------------------------------------------------------------------


def compare(programs: list[Program], on: Set, turns: int) -> dict[str, Comparison]:
    """The rates of each peer and ours: those of the same process if it also runs magicbyte, otherwise those
    of the first program, which is magicbyte's own."""
    ours: dict[str, list[float]] = {}
    peers: dict[str, list[float]] = {}
    for _ in range(turns):
        alone: float | None = None
        for program in programs:
            rates = program.rates(on)
            our = rates.pop(MAGICBYTE, alone)
            alone = alone or our
            if our is None:
                raise RuntimeError("magicbyte's own program must come first")
            for name, rate in rates.items():
                ours.setdefault(name, []).append(our)
                peers.setdefault(name, []).append(rate)
    return {name: Comparison(ours[name], peers[name]) for name in peers}


@contextmanager
def damaged_copies(of: Set) -> Iterator[dict[str, Path]]:
    """Files that every program must refuse."""
    with tempfile.TemporaryDirectory() as directory:
        copies = {}
        for damage, data in damaged(of.path.read_bytes()).items():
            copies[damage] = Path(directory) / f"{damage}.log"
            copies[damage].write_bytes(data)
        yield copies


def must_refuse(program: Program, of: Set, copies: dict[str, Path]) -> None:
    """Checks that a rate is printed only for right results, CRC included."""
    program.must_run(of, 0, 1)
    for damage, path in copies.items():
        if program.run(path, of, 0, 1).returncode == 0:
            raise RuntimeError(f"{', '.join(program.names)} did not notice {damage} in {of.name}")


def java(name: str, main: str, *arguments: str) -> Program:
    """A program with a JVM for each file, since one that has seen several codecs runs each of them slower."""
    return Program((name,), [*JAVA, f"bench.{main}", *arguments], warm_up_seconds=3)
