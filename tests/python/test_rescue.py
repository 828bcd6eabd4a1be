"""What can be saved after damage: raw bytes, repairs, suspects; through the facade and the command."""

from __future__ import annotations

import base64
import json
import shutil
from pathlib import Path

import magicbyte
import pytest
from conftest import KAFKA
from magicbyte.cli import app
from magicbyte.damage import rescue

LOG = "00000000000000000000.log"


@pytest.fixture
def damaged(tmp_path: Path) -> tuple[Path, list[magicbyte.RecordBatch]]:
    """A partition with a flipped bit in its second batch, and a corrupt record in its third."""
    source = tmp_path / "orders-0"
    shutil.copytree(KAFKA / "v2_none", source)
    data = bytearray((source / LOG).read_bytes())
    batches = list(magicbyte.read_batches(bytes(data)))
    data[batches[1].position + 70] ^= 0x10
    third = batches[2]
    data[third.position + third.size_in_bytes - 3] ^= 0x55
    data[third.position + third.size_in_bytes - 9] ^= 0x55
    (source / LOG).write_bytes(data)
    return source, batches


def test_each_range_comes_with_what_can_be_saved(damaged: tuple[Path, list[magicbyte.RecordBatch]]) -> None:
    source, batches = damaged
    before = (source / LOG).read_bytes()
    flipped, spoilt = magicbyte.PartitionLog(source).rescue()
    assert (flipped.start, flipped.end) == (batches[1].position, batches[2].position)
    assert flipped.data == before[flipped.start : flipped.end]
    assert flipped.kind == "crc_mismatch"
    assert flipped.repair is not None
    assert flipped.repair.batch == batches[1].to_bytes()
    assert flipped.repair.at == 70
    assert flipped.repair.change == "bit 4 of byte 70"
    assert spoilt.repair is None
    good = {record.offset: record for record in batches[2]}
    assert spoilt.suspects
    first = spoilt.suspects[0]
    assert (first.key, first.value) == (good[first.offset].key_bytes, good[first.offset].value_bytes)
    assert (source / LOG).read_bytes() == before


def test_the_command_writes_what_it_saves(
    damaged: tuple[Path, list[magicbyte.RecordBatch]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source, batches = damaged
    out = tmp_path / "saved"
    assert app.run(["rescue", str(source)]) == 1
    shown = capsys.readouterr().out
    assert "2 damaged ranges, 1 repairable" in shown
    assert "; can be repaired by changing bit 4 of byte 70\n" in shown
    assert not out.exists()
    assert app.run(["rescue", str(source), str(out), "--json"]) == 1
    report = json.loads(capsys.readouterr().out)
    assert [one["repair"] for one in report["ranges"]] == ["bit 4 of byte 70", None]
    assert [one["repair_is_proven"] for one in report["ranges"]] == [True, None]
    raw = sorted(path.name for path in (out / "orders-0/raw").iterdir())
    places = [f"{LOG}.{one['start']}-{one['end']}.bin" for one in report["ranges"]]
    assert raw == sorted(places)
    suspects = [json.loads(line) for line in (out / "orders-0/suspects.jsonl").open()]
    assert len(suspects) == report["suspects"]
    by_offset = {record.offset: record for batch in batches for record in batch}
    row = suspects[0]
    assert base64.b64decode(row["value"]) == by_offset[row["offset"]].value_bytes or row["start"] > 0
    repaired = magicbyte.PartitionLog(out / "orders-0/repaired" / LOG, mode="PERMISSIVE")
    assert batches[1].base_offset in {record.offset for record in repaired.records()}
    assert json.loads((out / "rescue.json").read_text()) == report
    assert app.run(["rescue", str(source), str(out)]) == 2
    assert "is not empty" in capsys.readouterr().err


def test_what_it_cannot_save_whole_it_does_not_save(
    damaged: tuple[Path, list[magicbyte.RecordBatch]],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    source, _ = damaged
    before = sorted(tmp_path.rglob("*"))
    for out in (source, source / "saved", tmp_path):
        assert app.run(["rescue", str(source), str(out)]) == 2
        assert "overlap" in capsys.readouterr().err

    def full(*_arguments: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("magicbyte.jobs.rescue._repair", full)
    assert app.run(["rescue", str(source), str(tmp_path / "saved")]) == 3
    assert "No space" in capsys.readouterr().err
    assert sorted(tmp_path.rglob("*")) == before


def test_nothing_is_damaged(capsys: pytest.CaptureFixture[str]) -> None:
    assert app.run(["rescue", str(KAFKA / "v2_none")]) == 0
    assert capsys.readouterr().out.startswith("0 damaged ranges")
    assert list(rescue(KAFKA / "v1_gzip")) == []
