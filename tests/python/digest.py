"""The digest of a partition's data records, as computed by Kafka's reader for summary.json."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

_TIMESTAMP_TYPES = {-1: "NoTimestampType", 0: "CreateTime", 1: "LogAppendTime"}


def summary(partition: Path) -> dict[str, Any]:
    """The summary of Kafka's reading of a partition."""
    return json.loads((partition / "summary.json").read_text())


def expected(partition: Path, name: str = "expected.jsonl") -> list[dict[str, Any]]:
    """The records that Kafka read from a partition, one JSON object each."""
    return [json.loads(line) for line in (partition / name).read_text().splitlines()]


def digest(rows: Iterable[Mapping[str, Any]]) -> str:
    """sha256 over one line per record; rows have Spark's column names and `timestampMillis`."""
    sha = hashlib.sha256()
    for row in rows:
        kind = row["timestampType"]
        headers = "".join(
            f"{header['key'].encode().hex()}={_hex(header['value'])};" for header in row["headers"] or []
        )
        fields = (
            row["offset"],
            row["timestampMillis"],
            _TIMESTAMP_TYPES.get(kind, kind),
            _hex(row["key"]),
            _hex(row["value"]),
            headers,
        )
        sha.update(("\t".join(map(str, fields)) + "\n").encode())
    return sha.hexdigest()


def _hex(value: bytes | bytearray | str | None) -> str:
    if value is None:
        return "null"
    return value if isinstance(value, str) else value.hex()
