"""`magicbyte dump --bytes`: the bytes of batches, field by field."""

from __future__ import annotations

import re
import struct
from pathlib import Path

import magicbyte
import pytest
from conftest import KAFKA, PARTITIONS, Cli
from digest import expected
from kafka_dumps import DUMPS, LOG
from magicbyte import _core
from magicbyte.files.segment import open_segment


def hello_world() -> bytes:
    """Two records without keys, uncompressed, without a producer id; never seen by a broker."""
    records = b"".join(
        bytes([11 << 1, 0, 0, delta << 1, 1, 5 << 1]) + value + b"\0"
        for delta, value in enumerate((b"hello", b"world"))
    )
    time = 1_714_000_000_000
    covered = struct.pack(">hiqqqhii", 0, 1, time, time, -1, -1, -1, 2) + records
    crc = _core.crc32c(covered)
    return struct.pack(">qiibI", 0, 9 + len(covered), -1, 2, crc) + covered


def test_an_error_of_the_block_is_none_of_the_segment(tmp_path: Path) -> None:
    (tmp_path / LOG).write_bytes(hello_world())
    with pytest.raises(BrokenPipeError), open_segment(str(tmp_path / LOG)):
        raise BrokenPipeError
    with (
        pytest.raises(magicbyte.Error, match="cannot be read") as missing,
        open_segment(str(tmp_path / "none")),
    ):
        pass
    assert missing.value.kind == "file_unreadable"


def test_example(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / LOG
    path.write_bytes(hello_world())
    output = cli("dump", "--bytes", path)
    assert output.replace(str(tmp_path), "logs") == (DUMPS / "annotated.txt").read_text()
    assert path.stat().st_size == 85
    rows = {line[35:61].strip(): line for line in output.splitlines()}
    assert "00 00 00 49" in rows["batchLength"]
    assert "00 00 01 8f 12 5c 74 00" in rows["baseTimestamp"]
    assert "1714000000000: 2024-04-24T23:06:40.000Z" in rows["baseTimestamp"]
    assert rows["record 0: length"].split()[1] == "16"


@pytest.mark.parametrize("name", PARTITIONS)
def test_layouts_hold_every_byte_and_value(name: str) -> None:
    values = []
    for batch in expected(KAFKA / name, "batches.jsonl"):
        stored = (KAFKA / name / batch["segment"]).read_bytes()
        stored = stored[batch["position"] : batch["position"] + batch["size"]]
        fields = list(_core.BatchLayout(stored, max_decompressed_bytes=1 << 30))
        outer = [field for field in fields if not field.is_decompressed]
        assert b"".join(field.data for field in outer) == stored
        inner = fields[len(outer) :] or outer
        is_value = re.compile(r"((record|message) \d+: )?value").fullmatch
        values += [field.data for field in inner if is_value(field.label)]
    known = [record["value"] for record in expected(KAFKA / name) if record["value"] is not None]
    assert len(values) == len(known)
    for value, text in zip(values, known, strict=True):
        assert text == value.hex() or text["len"] == len(value)


def test_one_batch(cli: Cli) -> None:
    path = KAFKA / "v1_gzip"
    batches = expected(path, "batches.jsonl")
    output = cli("dump", "--bytes", path, "--start-offset", batches[2]["baseOffset"], "--max-records", 1)
    assert output.splitlines()[0].endswith(
        f"batch at byte {batches[2]['position']}, {batches[2]['size']} bytes"
    )
    assert output.count(": batch at byte ") == 1
    assert "the wrapper's value, decompressed from gzip" in output
    assert cli("dump", "--bytes", path, "--max-records", 3).count(": batch at byte ") == 3


def test_a_damaged_batch_ends_in_its_error(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / LOG
    data = bytearray(hello_world())
    data[61] += 2
    path.write_bytes(data)
    output = cli("dump", "--bytes", path, code=1)
    assert "wrong, computed 0x" in output
    assert 'record 0: value             "hello"' in output
    assert output.splitlines()[-2].startswith(
        "error: the record declares 12 bytes, its fields take 11 (record 0"
    )
