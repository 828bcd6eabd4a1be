"""Segments whose offsets reach 2^31 or more beyond their names, as old cleaners left them (KAFKA-6264)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from conftest import Cli
from magicbyte import PartitionLog, RecordsBuilder, _core
from magicbyte.errors import Error

M = 1 << 31


def batch(offset: int, magic: int = 2) -> bytes:
    builder = RecordsBuilder(magic=magic)
    builder.append(offset, 1_700_000_000_000, b"k%d" % offset, b"v")
    return bytes(builder.build())


def write(directory: Path, *segments: tuple[int, list[bytes]]) -> Path:
    partition = directory / "logs" / "w-0"
    partition.mkdir(parents=True)
    for base, batches in segments:
        (partition / f"{base:020d}.log").write_bytes(b"".join(batches))
    return partition


def batches(*offsets: int, magic: int = 2) -> list[bytes]:
    return [batch(offset, magic) for offset in offsets]


CASES: dict[str, tuple[tuple[tuple[int, list[bytes]], ...], list[int]]] = {
    "2^31": (((0, batches(0, M)),), [0, M]),
    "2^32 and on": (((0, batches(0, 2 * M, 2 * M + 1)),), [0, 2 * M, 2 * M + 1]),
    "in steps": (((0, batches(0, M - 1, 2 * M - 2, 3 * M - 3)),), [0, M - 1, 2 * M - 2, 3 * M - 3]),
    "only a far batch": (((0, batches(2 * M)),), [2 * M]),
    "magic 1": (((0, batches(0, 3 * M, 3 * M + 1, magic=1)),), [0, 3 * M, 3 * M + 1]),
    "magic 0": (((0, batches(0, 3 * M, magic=0)),), [0, 3 * M]),
    "and another segment": (((0, batches(0, 3 * M)), (3 * M + 1, batches(3 * M + 1))), [0, 3 * M, 3 * M + 1]),
    "two of them": (
        ((5, batches(5, 2 * M)), (2 * M + 9, batches(2 * M + 9, 7 * M))),
        [5, 2 * M, 2 * M + 9, 7 * M],
    ),
    "a torn tail": (((0, [*batches(0, M), batch(M + 1)[:40]]),), [0, M]),
    "a preallocated tail": (((0, [*batches(0, M), bytes(5000)]),), [0, M]),
}


@pytest.mark.parametrize("case", CASES)
def test_every_record_is_read(cli: Cli, tmp_path: Path, case: str) -> None:
    segments, expected = CASES[case]
    partition = write(tmp_path, *segments)
    assert [row["offset"] for row in cli.records(partition, code=None)] == expected
    assert [record.offset for record in PartitionLog(partition).records()] == expected
    for number, start in enumerate(expected):
        assert [record.offset for record in PartitionLog(partition).records(start)] == expected[number:]
    found = cli.json("verify", partition, code=1)
    kinds = [one["kind"] for one in found["problems"] if one["kind"] != "partial_batch"]
    assert kinds == ["offset_overflow"] * (2 if case == "two of them" else 1)
    assert found["balanced"]


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize(
    "command",
    [
        ("recover",), ("convert", "--compression", "zstd"), ("convert", "--rebatch"),
        ("redact", "--key", "nobody"), ("compact", "--all"),
    ],
    ids=" ".join,
)  # fmt: skip
def test_outputs_are_split(cli: Cli, tmp_path: Path, case: str, command: tuple[str, ...]) -> None:
    segments, expected = CASES[case]
    partition, out = write(tmp_path, *segments), tmp_path / "out"
    cli(*command, "--engine", "local", partition.parent, out, code=None)
    assert [row["offset"] for row in cli.records(out)] == expected
    # Offsets that compaction removed between two segments look as if a segment was missing.
    found = json.loads(cli("verify", "--json", out, code=None))
    assert {one["kind"] for one in found["problems"]} <= {"missing_segment"}
    for path in out.rglob("*.log"):
        log = PartitionLog(path)
        last = max((record.offset for record in log.records()), default=int(path.stem))
        assert 0 <= last - int(path.stem) < M


def test_damage_in_between(cli: Cli, tmp_path: Path) -> None:
    """The far batches after damage are found by the damaged batch's length, or by a scan without it."""
    good, bad = batches(0, 1, 3 * M, 3 * M + 1), bytearray(batch(2))
    for at, value in ((70, 0xFF), (11, 0xFF), (8, 0x7F)):
        damaged = bytearray(bad)
        damaged[at] ^= value
        partition = write(tmp_path / str(at), (0, [*good[:2], bytes(damaged), *good[2:]]))
        assert [row["offset"] for row in cli.records(partition, code=None)] == [0, 1, 3 * M, 3 * M + 1], at


@pytest.mark.parametrize("byte", range(8))
def test_a_damaged_offset_is_not_a_far_one(cli: Cli, tmp_path: Path, byte: int) -> None:
    """What follows tells: of a log that goes on before it, the batch is wrong."""
    for position in range(1, 9):
        data = [bytearray(one) for one in batches(*range(10))]
        data[position][byte] ^= 4 if byte < 7 else 0x20
        partition = write(tmp_path / f"{byte}-{position}", (0, [bytes(one) for one in data]))
        read = [row["offset"] for row in cli.records(partition, code=None)]
        assert read == [offset for offset in range(10) if offset != position], position


def test_sidecars_cannot_be_rebuilt(tmp_path: Path) -> None:
    partition = write(tmp_path, (0, batches(0, M)))
    with pytest.raises(Error, match=r"00000000000000000000\.log"):
        _core.rebuild_sidecars(str(partition))
