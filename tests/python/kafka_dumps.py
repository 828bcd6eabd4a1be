"""The output of Kafka's own tools for the partitions in tests/data/kafka."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from conftest import KAFKA

DUMPS = KAFKA.parent / "dump"
SHA256 = dict(reversed(line.split()) for line in (DUMPS / "sha256sums").read_text().splitlines())
LOG = "00000000000000000000.log"
SIDECARS = (".index", ".timeindex", ".txnindex", ".snapshot")


def lines_of(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (DUMPS / name).read_text(encoding="utf-8").splitlines()]


def same(output: str, name: str) -> None:
    """Compares with what Kafka printed: the text if it was kept, and its hash."""
    text = DUMPS / f"{name}.txt"
    if text.exists():
        assert output.split("\n") == text.read_bytes().decode().split("\n")
    assert hashlib.sha256(output.encode()).hexdigest() == SHA256[name]


def damaged(name: str) -> int:
    """The exit code for a partition: a torn tail counts as a problem."""
    return 1 if name == "v2_torn_tail" else 0
