"""A segment keeps its modification time, which brokers use where batches have no timestamp."""

from __future__ import annotations

import os
import shutil
from bisect import bisect_right
from pathlib import Path

import magicbyte
import pytest
from conftest import KAFKA, Cli

FIRST = 1_400_000_000_123
"""Milliseconds; each segment is an hour newer than the one before."""


def aged(name: str, directory: Path) -> dict[int, int]:
    """A copy with old segments; returns each one's modification time (ns) by base offset."""
    shutil.copytree(KAFKA / name, directory)
    ages = {}
    for number, log in enumerate(sorted(directory.glob("*.log"))):
        log.chmod(0o644)
        ages[int(log.stem)] = (FIRST + number * 3_600_000) * 1_000_000
        os.utime(log, ns=(0, ages[int(log.stem)]))
    return ages


def check(directory: Path, ages: dict[int, int]) -> int:
    """Each segment has the time of the one that held its last offset; returns the number of segments."""
    bases = sorted(ages)
    logs = sorted(directory.glob("*.log"))
    for log in logs:
        batches = list(magicbyte.read_batches(log.read_bytes()))
        if not batches:  # where the log ends, its last records cannot be written
            assert log == logs[-1]
            continue
        last = batches[-1].last_offset
        assert log.stat().st_mtime_ns == ages[bases[bisect_right(bases, last) - 1]], log.name
    return len(logs)


@pytest.mark.parametrize(
    "command",
    [
        ("convert",),
        ("convert", "--segment-bytes", "2k"),
        ("convert", "--compression", "zstd", "--rebatch"),
        ("convert", "--magic", "1"),
        ("recover",),
        ("recover", "--method", "truncate", "--segment-bytes", "2k"),
        ("compact", "--all"),
        ("redact", "--key", "nobody"),
    ],
    ids=" ".join,
)
@pytest.mark.parametrize("name", ["v0_none", "v2_txn"])
def test_a_segment_keeps_its_age(name: str, command: tuple[str, ...], tmp_path: Path, cli: Cli) -> None:
    ages = aged(name, tmp_path / "in" / "t-0")
    cli(command[0], "--engine", "local", *command[1:], tmp_path / "in", tmp_path / "out", code=None)
    assert cli.code in (0, 1), cli.error
    written = check(tmp_path / "out" / "t-0", ages)
    assert written >= (len(ages) if "2k" in command else 1)
