"""Writing in Rust against kafka-clients and the Rust crates: the batches of an uncompressed set, built
with a codec from records in memory.
"""

import subprocess
import tempfile
from dataclasses import replace
from pathlib import Path

import limits
import magicbyte
import programs
import pyarrow as pa
from bench import Bench
from figures import figure
from processes import pin
from programs import MAGICBYTE, NAMES, Program
from sets import JAVA, Set

PART = "Write in Rust"
CODECS = {"s1": ("none", "gzip", "snappy", "lz4", "zstd"), "s4": ("lz4", "zstd")}
CRATES = ("krabka-protocol", "kafka-protocol")


def measure(bench: Bench) -> None:
    program = str(programs.ours("encode"))
    peers = None
    with bench.guarded("the peers in Rust"):
        peers = programs.rust_peers()
    limits.built()
    pin()
    for shape, codecs in CODECS.items():
        records = bench.manifest.named(f"{shape}-none")
        for of in bench.chosen(*(f"{shape}-{codec}" for codec in codecs)):
            ours = Program((MAGICBYTE,), [program, of.codec], warm_up_seconds=0.3)
            theirs = programs.java("kafka-clients", "Encode", of.codec)
            chosen = [ours, theirs]
            if peers:
                command = [str(peers), "write", of.codec, NAMES]
                chosen.append(Program((MAGICBYTE, *CRATES), command, warm_up_seconds=0.2))
            with bench.guarded(f"{PART}, {of.name}"):
                must_be_read_by_the_other_side(ours, theirs, records)
                working = bench.refusing(chosen, records)
                working.append(limits.BUILDING.program(records, of.codec))
                if of.codec == "none":
                    working = programs.with_many_rounds(working)
                compare(bench, working, of, records)


def compare(bench: Bench, working: list[Program], of: Set, records: Set) -> None:
    sizes: dict[str, int] = {}
    for program in working:
        sizes |= program.sizes(records)
    for name, compared in programs.compare(working, records, bench.turns).items():
        # The limit writes nothing.
        size = round(sizes[MAGICBYTE] / sizes[name], 4) if name in sizes else None
        bench.add(replace(figure(PART, "", of.name, name, compared), size=size))


def must_be_read_by_the_other_side(ours: Program, theirs: Program, records: Set) -> None:
    """Each reads what the other wrote, record for record; the crates do this in their own program."""
    with tempfile.TemporaryDirectory() as directory:
        written = {name: Path(directory) / f"{name}.log" for name in ("ours", "theirs")}
        ours.write(records, written["ours"])
        theirs.write(records, written["theirs"])
        same = [*JAVA, "bench.Same", str(records.path), str(written["ours"])]
        subprocess.run(same, check=True)
        if table(written["theirs"]) != table(records.path):
            raise RuntimeError(f"{theirs.names[0]} wrote different records")


def table(path: Path) -> pa.Table:
    return pa.table(magicbyte.read_batches(path.read_bytes())).combine_chunks()
