"""The main job without Spark: tables, digests and sums over everything that real brokers wrote."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from conftest import KAFKA, PARTITIONS
from digest import digest, expected, summary
from magicbyte.jobs.ingest import IngestReport, ingest
from magicbyte.jobs.run.engines import LocalEngine
from magicbyte.options.ingest import IngestOptions

TRANSACTIONAL = [name for name in PARTITIONS if (KAFKA / name / "committed.jsonl").exists()]


@pytest.fixture(scope="module")
def everything(kafka: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, IngestReport]:
    """One ingest of all partitions."""
    out = tmp_path_factory.mktemp("ingest") / "tables"
    return out, ingest([str(kafka)], str(out), LocalEngine(2), IngestOptions(include_batch_metadata=True))


def rows_of(out: Path, table: str, topic: str, order: str) -> list[dict[str, Any]]:
    """Rows of the partition made from a test directory."""
    return ds.dataset(out / table).to_table(filter=pc.field("topic") == topic).sort_by(order).to_pylist()


@pytest.mark.parametrize("name", PARTITIONS)
def test_records(everything: tuple[Path, IngestReport], kafka: Path, name: str) -> None:
    rows = rows_of(everything[0], "records", name, "offset")
    assert len(rows) == summary(kafka / name)["dataRecords"]
    assert digest(rows) == summary(kafka / name)["sha256"]


@pytest.mark.parametrize("name", PARTITIONS)
def test_metadata_of_records(everything: tuple[Path, IngestReport], kafka: Path, name: str) -> None:
    rows = rows_of(everything[0], "records", name, "offset")
    facts = [line for line in expected(kafka / name) if not line["control"]]
    for row, line in zip(rows, facts, strict=True):
        assert (row["magic"], row["compression"]) == (line["magic"], line["codec"])
        if line["magic"] == 2:
            assert row["producerId"] == line["pid"]
            assert row["producerEpoch"] == line["epoch"]
            assert row["sequence"] == line["seq"]
            assert row["isTransactional"] == line["txn"]
            assert row["leaderEpoch"] == line["leaderEpoch"]


@pytest.mark.parametrize("name", PARTITIONS)
def test_batches(everything: tuple[Path, IngestReport], kafka: Path, name: str) -> None:
    rows = rows_of(everything[0], "batches", name, "baseOffset")
    names = {"codec": "compression", "isvalid": "isValid"}
    same = ["segment", "position", "size", "baseOffset", "lastOffset", "count", "magic", "crc"]
    lines = expected(kafka / name, "batches.jsonl")
    for row, line in zip(rows, lines, strict=True):
        for field in (*same, "codec", "isvalid"):
            assert row[names.get(field, field)] == line[field], field
        if line["magic"] == 2:
            assert (row["producerId"], row["baseSequence"]) == (line["pid"], line["baseSequence"])
            assert (row["isTransactional"], row["isControl"]) == (line["txn"], line["control"])
            assert row["deleteHorizonMs"] == line["deleteHorizonMs"]


def test_sums(everything: tuple[Path, IngestReport], kafka: Path) -> None:
    out, report = everything
    assert json.loads((out / "reconciliation.json").read_text()) == report
    assert report["balanced"]
    assert report["total"]["partitions"] == len(PARTITIONS)
    on_disk = sum(path.stat().st_size for name in PARTITIONS for path in (kafka / name).glob("*.log"))
    total = report["total"]
    assert total["size"] == on_disk
    assert total["size"] == total["good_bytes"] + total["quarantined_bytes"] + total["tail_bytes"]
    assert total["announced"] == sum(summary(kafka / name)["records"] for name in PARTITIONS)
    assert total["rows"] == sum(summary(kafka / name)["dataRecords"] for name in PARTITIONS)
    assert report["tables"]["records"]["rows"] == total["rows"]
    assert report["tables"]["batches"]["rows"] == total["good_batches"]
    for row in report["files"]:
        assert pq.read_metadata(out / row["path"]).num_rows == row["rows"]
        assert (out / row["path"]).stat().st_size == row["size"]


def test_torn_tail_is_accounted_for(everything: tuple[Path, IngestReport]) -> None:
    (torn,) = (one for one in everything[1]["partitions"] if one["topic"] == "v2_torn_tail")
    assert torn["tail_bytes"] == 502
    assert torn["balanced"]


@pytest.mark.parametrize("name", TRANSACTIONAL)
def test_committed_view(kafka: Path, tmp_path: Path, name: str) -> None:
    options = IngestOptions(isolation_level="read_committed")
    report = ingest([str(kafka / name)], str(tmp_path / "out"), LocalEngine(1), options)
    offsets = [row["offset"] for row in rows_of(tmp_path / "out", "records", name, "offset")]
    assert offsets == [line["offset"] for line in expected(kafka / name, "committed.jsonl")]
    assert report["balanced"]
    assert report["total"]["rows"] == len(offsets)


@pytest.mark.partitions("v2_none")
def test_every_table_has_its_schema(source: Path, tmp_path: Path) -> None:
    for path in (source / "v2_none").iterdir():
        if path.suffix != ".log" and path.is_file():
            path.unlink()
    out = tmp_path / "out"
    ingest([str(source)], str(out), LocalEngine(1), IngestOptions())
    schemas = {table: ds.dataset(out / table).schema for table in ("records", "batches", "problems")}
    for schema in schemas.values():
        assert {"topic", "partition"} <= set(schema.names)
    records = schemas["records"]
    assert records.field("timestamp").type == pa.timestamp("us", tz="UTC")
    assert "timestampMillis" not in records.names
    assert {"kind", "message"} <= set(schemas["problems"].names)


@pytest.mark.partitions("v2_none", "v2_zstd")
def test_damage_is_quarantined(source: Path, tmp_path: Path) -> None:
    segment = source / "v2_none" / "00000000000000000000.log"
    data = bytearray(segment.read_bytes())
    data[len(data) // 2] ^= 1
    segment.write_bytes(data)
    out = tmp_path / "out"
    report = ingest([str(source)], str(out), LocalEngine(2), IngestOptions())
    assert report["balanced"]
    assert report["total"]["quarantined_bytes"] > 0
    assert report["total"]["problems"] > 0
    problems = ds.dataset(out / "problems").to_table().to_pylist()
    assert [row["segment"] for row in problems if row["start"] is not None and row["topic"] == "v2_none"]
    offsets = [row["offset"] for row in rows_of(out, "records", "v2_none", "offset")]
    lost = set(range(346)) - set(offsets)
    assert lost
    assert len(offsets) == len(set(offsets))


@pytest.mark.partitions("v2_none")
def test_problems_of_the_directory_are_reported(source: Path, tmp_path: Path) -> None:
    partition = source / "v2_none"
    first = partition / "00000000000000000000.log"
    last = max(partition.glob("*.log"))
    (partition / "00000000000000000007.log.swap").write_bytes(first.read_bytes())
    # The last segment again under a later name, which would duplicate its records.
    (partition / "00000000000000000900.log").write_bytes(last.read_bytes())
    out = tmp_path / "out"
    report = ingest([str(source)], str(out), LocalEngine(2), IngestOptions())
    problems = ds.dataset(out / "problems").to_table().to_pylist()
    assert {row["kind"] for row in problems} >= {"unfinished_swap", "overlapping_segment"}
    assert {row["topic"] for row in problems} == {"v2_none"}
    assert report["total"]["problems"] == len(problems)
    assert report["total"]["rows"] == 346
    assert report["balanced"]
    reasons = {one["file"]: one["reason"] for one in report["partitions"][0]["ignored"]}
    assert reasons["00000000000000000007.log.swap"] == "swap"
    assert reasons["00000000000000000900.log"] == "overlapping"


@pytest.mark.parametrize("codec", ["zstd", "snappy", "none"])
@pytest.mark.partitions("v2_none")
def test_parquet_compression(source: Path, tmp_path: Path, codec: str) -> None:
    options = IngestOptions() if codec == "zstd" else IngestOptions(parquet_compression=codec)
    report = ingest([str(source)], str(tmp_path / "out"), LocalEngine(1), options)
    row = next(row for row in report["files"] if row["table"] == "records")
    chunk = pq.read_metadata(tmp_path / "out" / row["path"]).row_group(0).column(0)
    assert chunk.compression == {"zstd": "ZSTD", "snappy": "SNAPPY", "none": "UNCOMPRESSED"}[codec]
