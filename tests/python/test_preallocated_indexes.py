"""Partitions of a killed broker: the indexes of each end in megabytes of preallocated zeros."""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path

import pytest
from conftest import KAFKA, Cli

BASE = "00000000000000000000"
PREALLOCATED = 10 << 20
"""Kafka's `segment.index.bytes`."""


def preallocated(partition: Path, *, size: int = PREALLOCATED) -> Path:
    """A copy of the first segment of a partition, as a running broker has it."""
    partition.mkdir(parents=True)
    shutil.copy(KAFKA / "v2_none" / f"{BASE}.log", partition)
    for ending, entry in (("index", 8), ("timeindex", 12)):
        path = partition / f"{BASE}.{ending}"
        shutil.copy(KAFKA / "v2_none" / path.name, path)
        os.truncate(path, size // entry * entry)
    return partition


def test_thousands_of_them_are_verified_in_seconds(tmp_path: Path, cli: Cli) -> None:
    """60 GB of zeros, which took minutes to read: now two blocks of each index are."""
    for number in range(3000):
        preallocated(tmp_path / f"orders-{number}")
    start = time.monotonic()
    report = cli.json("verify", "--engine", "local", tmp_path)
    assert time.monotonic() - start < 25
    assert (report["total"]["partitions"], report["total"]["problems"]) == (3000, 0)


@pytest.mark.parametrize("ending", ["index", "timeindex"])
def test_their_entries_are_checked(tmp_path: Path, ending: str, cli: Cli) -> None:
    partition = preallocated(tmp_path / "orders-0")
    path = partition / f"{BASE}.{ending}"
    assert path.stat().st_size > PREALLOCATED - 12
    assert cli.json("verify", "--engine", "local", partition)["total"]["problems"] == 0
    entry = 8 if ending == "index" else 12
    with path.open("r+b") as file:
        # An entry like the one before it.
        whole = file.read(entry)
        file.seek(entry)
        file.write(whole)
    assert cli.json("verify", "--engine", "local", partition, code=1)["total"]["problems"] == 1
    os.truncate(path, PREALLOCATED // entry * entry + 1)
    assert cli.json("verify", "--engine", "local", partition, code=1)["total"]["problems"] == 1
