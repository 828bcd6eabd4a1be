"""The bench's data: written once by kafka-clients into target/bench-data, described by a manifest."""

import json
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

PROJECT = Path(__file__).parents[2]
DATA = PROJECT / "target" / "bench-data"
JAVA_CLASSES = PROJECT / "target" / "bench-java"
JAVA = [
    "java",
    "-XX:+UseSerialGC",
    "-Xms512m",
    "-Xmx512m",
    "-cp",
    f"{JAVA_CLASSES}/classes:{JAVA_CLASSES}/lib/*",
]


@dataclass(frozen=True)
class Found:
    """What a pass over a set finds; `bytes` counts keys and values."""

    records: int
    bytes: int


@dataclass(frozen=True)
class Set:
    """A file of batches, and what its writer reported about it."""

    name: str
    shape: str
    codec: str
    magic: int
    size: int
    expected: Found

    @property
    def path(self) -> Path:
        return DATA / f"{self.name}.log"


@dataclass(frozen=True)
class Manifest:
    writer: str
    sets: list[Set]

    def named(self, name: str) -> Set:
        (of,) = (of for of in self.sets if of.name == name)
        return of


def prepare() -> Manifest:
    """Compiles the Java programs, and writes the sets unless they exist."""
    compile_java()
    manifest = DATA / "manifest.json"
    if not manifest.exists():
        subprocess.run([*JAVA, "bench.Generate", str(DATA)], check=True)
    described = json.loads(manifest.read_text())
    sets = [
        Set(s["name"], s["shape"], s["codec"], s["magic"], s["size"], Found(s["records"], s["bytes"]))
        for s in described["sets"]
    ]
    return Manifest(described["writer"], sets)


def compile_java() -> None:
    pom = PROJECT / "benches" / "java" / "pom.xml"
    subprocess.run(["mvn", "-q", "-B", "-f", str(pom), "compile"], check=True)


def partition(of: Set, name: str) -> Path:
    """The set as the only segment of a partition directory, hard-linked."""
    directory = DATA / name / "bench-0"
    segment = directory / f"{0:020d}.log"
    directory.mkdir(parents=True, exist_ok=True)
    segment.unlink(missing_ok=True)
    segment.hardlink_to(of.path)
    return directory


def damaged(data: bytes) -> dict[str, bytes]:
    """Copies that every bench must refuse."""
    in_the_last_record = len(data) - 10
    flipped = bytearray(data)
    flipped[in_the_last_record] ^= 1
    # No reader takes a cut last batch for an error; only the count shows it.
    return {"a flipped byte": bytes(flipped), "a missing batch": data[:-1]}


def make_log(source: Path, size: int) -> Path:
    """Partitions of the uncompressed and compressed S1 sets in turn; each starts at offset 0."""
    names = ("s1-none", "s1-zstd", "s1-none", "s1-lz4")
    once = sum((DATA / f"{name}.log").stat().st_size for name in names)
    for partition in range(len(names) * max(1, size // once)):
        directory = source / f"bench-{partition}"
        directory.mkdir(parents=True)
        shutil.copyfile(DATA / f"{names[partition % len(names)]}.log", directory / f"{0:020d}.log")
    return source
