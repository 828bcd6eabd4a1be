"""`magicbyte records`: data records and batches as JSON lines."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from conftest import KAFKA, PARTITIONS, Cli
from digest import digest, expected, summary
from kafka_dumps import LOG, damaged


@pytest.mark.parametrize("name", PARTITIONS)
def test_partitions(cli: Cli, name: str) -> None:
    lines = cli.records(KAFKA / name, "--key-format", "hex", "--value-format", "hex", code=damaged(name))
    rows = [{**line, "timestampMillis": line["timestamp"]} for line in lines]
    assert digest(rows) == summary(KAFKA / name)["sha256"]


def test_ranges(cli: Cli) -> None:
    path = KAFKA / "v2_txn"
    offsets = [line["offset"] for line in expected(path) if not line["control"]]

    def offsets_of(*options: object) -> list[int]:
        return [line["offset"] for line in cli.records(path, *options)]

    assert offsets_of() == offsets
    assert offsets_of("--start-offset", 10, "--end-offset", 20) == [o for o in offsets if 10 <= o < 20]
    assert offsets_of("--max-records", 3) == offsets[:3]
    assert offsets_of("--max-records", 0) == []
    late = [
        line["offset"]
        for line in expected(path)
        if not line["control"] and line["timestamp"] >= 1700000060000
    ]
    assert offsets_of("--start-timestamp", "2023-11-14T22:14:20") == late
    assert offsets_of("--start-timestamp", 1700000060000) == late
    assert offsets_of("--end-timestamp", "2023-11-14T22:14:20Z") == [o for o in offsets if o not in late]
    committed = [line["offset"] for line in expected(path, "committed.jsonl")]
    assert offsets_of("--isolation-level", "read_committed") == committed


def test_batches(cli: Cli) -> None:
    path = KAFKA / "v2_txn"
    batches = expected(path, "batches.jsonl")
    lines = cli.records(path, "--batches")
    assert [(line["baseOffset"], line["crc"]) for line in lines] == [
        (batch["baseOffset"], batch["crc"]) for batch in batches
    ]


def test_formats(cli: Cli) -> None:
    def values(form: str) -> list[str | None]:
        return [line["value"] for line in cli.records(KAFKA / "v2_headers", "--value-format", form)]

    assert values("utf-8")[0] == "v"
    assert values("hex")[0] == "76"
    assert values("base64")[0] == "dg=="
    assert values("utf-8")[2] is None
    first = cli.records(KAFKA / "v2_headers", "--max-records", 1)[0]
    assert first["headers"][0] == {"key": "a", "value": "1"}
    assert (first["topic"], first["partition"], first["timestampType"]) == ("v2_headers", 0, "CreateTime")
    assert (first["magic"], first["compression"], first["position"]) == (2, "none", 0)


def test_one_file(cli: Cli, tmp_path: Path) -> None:
    path = KAFKA / "v2_none" / "00000000000000000000.log"
    part = len(cli.records(path))
    assert 0 < part < 346
    renamed = tmp_path / "segment.bin"
    shutil.copyfile(path, renamed)
    cli("records", renamed, code=2)
    assert "does not have the name of a segment" in cli.error


@pytest.mark.partitions("v2_none")
def test_damage(cli: Cli, source: Path) -> None:
    segment = source / "v2_none" / LOG
    data = bytearray(segment.read_bytes())
    data[len(data) // 2] ^= 1
    segment.write_bytes(data)
    assert 0 < len(cli.records(source, code=1)) < 346
    assert "00000000000000000000.log" in cli.error
