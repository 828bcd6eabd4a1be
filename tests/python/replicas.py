"""Replicas of a partition, as brokers keep them, and damage to them."""

from __future__ import annotations

import random
import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path

import magicbyte
from magicbyte import RecordsBuilder

__all__ = ["TOPIC_ID", "batch", "batches", "content", "flip", "log_of", "offsets_of", "replica", "replicas"]

TOPIC_ID = "AAAAAAAAAAAAAAAAAAAAAQ"
TIME = 1_700_000_000_000


def batch(first: int, records: int = 10, *, epoch: int = 0, value: str = "v", **options: object) -> bytes:
    """A batch whose records have their offsets in their values."""
    builder = RecordsBuilder(partition_leader_epoch=epoch, **options)  # type: ignore[arg-type]
    for offset in range(first, first + records):
        builder.append(offset, TIME + offset, key=f"k{offset}", value=f"{value} {offset} {'x' * 40}")
    return builder.build()


def batches(first: int, end: int, *, step: int = 10, epoch: int = 0, value: str = "v") -> list[bytes]:
    return [batch(offset, step, epoch=epoch, value=value) for offset in range(first, end, step)]


def replica(
    directory: Path,
    segments: dict[int, Sequence[bytes]],
    *,
    name: str = "orders-0",
    epochs: Sequence[tuple[int, int]] = (),
    topic_id: str | None = TOPIC_ID,
) -> Path:
    """Writes segments by base offset into `directory/name`; returns `directory`."""
    partition = directory / name
    partition.mkdir(parents=True)
    for base, data in segments.items():
        (partition / f"{base:020}.log").write_bytes(b"".join(data))
    if epochs:
        lines = [f"{epoch} {start}\n" for epoch, start in epochs]
        (partition / "leader-epoch-checkpoint").write_text(f"0\n{len(lines)}\n{''.join(lines)}")
    if topic_id is not None:
        (partition / "partition.metadata").write_text(f"version: 0\ntopic_id: {topic_id}\n")
    return directory


def replicas(root: Path, segments: dict[int, Sequence[bytes]], count: int = 3) -> list[Path]:
    """Equal replicas of several brokers."""
    return [replica(root / f"b{number}", segments) for number in range(1, count + 1)]


def log_of(directory: Path, name: str = "orders-0") -> bytes:
    """The bytes of all segments, in offset order."""
    return b"".join(path.read_bytes() for path in sorted((directory / name).glob("*.log")))


def offsets_of(directory: Path, name: str = "orders-0") -> list[int]:
    return [record.offset for record in magicbyte.PartitionLog(directory / name).records()]


def flip(
    directory: Path, numbers: Iterable[int], *, bits: int = 2, seed: int = 0, name: str = "orders-0"
) -> None:
    """Flips bits in the records of these batches, counted over all segments."""
    chance = random.Random(seed)
    wanted = set(numbers)
    number = 0
    for path in sorted((directory / name).glob("*.log")):
        data = bytearray(path.read_bytes())
        for one in magicbyte.read_batches(bytes(data)):
            if number in wanted:
                for at in chance.sample(range(one.position + 61, one.position + one.size_in_bytes), bits):
                    data[at] ^= 1 << chance.randrange(8)
            number += 1
        path.write_bytes(data)


def content(directory: Path) -> dict[str, bytes]:
    """All files below a directory but the report, by relative path."""
    return {
        str(path.relative_to(directory)): path.read_bytes()
        for path in directory.rglob("*")
        if path.is_file() and path.name != "reconciliation.json"
    }


def copy(source: Path, target: Path) -> Path:
    shutil.copytree(source, target)
    for path in target.rglob("*"):
        path.chmod(0o755 if path.is_dir() else 0o644)
    return target
