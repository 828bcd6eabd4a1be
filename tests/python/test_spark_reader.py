"""The batch reader without Spark's machinery: lost offsets, and how tasks are split."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import KAFKA
from digest import expected
from magicbyte import RecordsBuilder

pytest.importorskip("pyspark")

from magicbyte.errors import CorruptRecordError, JobError
from magicbyte.spark.options import parse_options
from magicbyte.spark.reader import MagicbyteReader
from pyspark.sql.datasource import InputPartition

COLUMNS = {"records": ("topic", "partition", "offset"), "batches": ("baseOffset",), "problems": ("kind",)}


def write(partition: Path, *spans: tuple[int, int], batch: int = 1) -> None:
    """Writes a segment for each span of offsets (the end is exclusive)."""
    partition.mkdir(parents=True, exist_ok=True)
    for first, end in spans:
        data = b""
        for base in range(first, end, batch):
            builder = RecordsBuilder()
            for offset in range(base, min(base + batch, end)):
                builder.append(offset, 1000 + offset, b"k", b"v")
            data += builder.build()
        (partition / f"{first:020d}.log").write_bytes(data)


def tasks(path: Path, **options: Any) -> Iterator[list[tuple[Any, ...]]]:
    """The rows of each task."""
    given = {name: str(value) for name, value in options.items()}
    parsed = parse_options({"path": str(path), **given})
    reader = MagicbyteReader(parsed, COLUMNS[parsed.table])
    partitions = reader.partitions()
    assert all(isinstance(one, InputPartition) for one in partitions)
    for partition in partitions:
        yield [tuple(row.values()) for batch in reader.read(partition) for row in batch.to_pylist()]


def offsets(path: Path, **options: Any) -> list[int]:
    return [row[-1] for rows in tasks(path, **options) for row in rows]


@pytest.fixture
def aged(tmp_path: Path) -> Path:
    write(tmp_path / "t-0", (5, 20))
    return tmp_path


@pytest.mark.parametrize(
    ("options", "lost", "there"),
    [
        ({"startingOffsets": '{"t":{"0":0}}'}, r"offsets 0 to 4 .*the log begins later", range(5, 20)),
        ({"startingOffsets": '{"t":{"0":4}}'}, r"offset 4 .*the log begins later", range(5, 20)),
        ({"startingOffsets": '{"t":{"0":30}}'}, r"offsets 20 to 29 .*the log ends earlier", range(0)),
        ({"endingOffsets": '{"t":{"0":100}}'}, r"offsets 20 to 99 .*the log ends earlier", range(5, 20)),
        ({"endingOffsets": '{"t":{"0":21}}', "table": "batches"}, r"offset 20 ", range(5, 20)),
    ],
)
def test_requested_offsets_that_are_gone(
    aged: Path, options: dict[str, str], lost: str, there: range, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(JobError, match=rf"t-0: {lost}.*failOnDataLoss=false continues without"):
        offsets(aged, **options)
    assert offsets(aged, **options, failOnDataLoss=False) == [*there]
    assert "t-0: offset" in caplog.text


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"startingOffsets": "earliest", "endingOffsets": "latest"},
        {"startingOffsets": '{"t":{"0":-2}}', "endingOffsets": '{"t":{"0":-1}}'},
        {"startingOffsets": '{"t":{"0":5}}', "endingOffsets": '{"t":{"0":20}}'},
    ],
)
def test_nothing_is_gone(aged: Path, options: dict[str, str]) -> None:
    assert offsets(aged, **options) == [*range(5, 20)]


def test_a_missing_segment(tmp_path: Path) -> None:
    write(tmp_path / "t-0", (0, 10), (20, 30))
    with pytest.raises(JobError, match=r"t-0: offsets 10 to 19 cannot be read"):
        offsets(tmp_path)
    assert offsets(tmp_path, failOnDataLoss="false") == [*range(10), *range(20, 30)]
    # Ranges that do not need it.
    assert offsets(tmp_path, startingOffsets='{"t":{"0":20}}') == [*range(20, 30)]
    assert offsets(tmp_path, endingOffsets='{"t":{"0":10}}') == [*range(10)]
    # The table of problems names it, and does not fail.
    assert [row for rows in tasks(tmp_path, table="problems") for row in rows] == [("missing_segment",)]


def test_files_that_cannot_be_read_are_damage(tmp_path: Path) -> None:
    write(tmp_path / "t-0", (0, 10))
    (tmp_path / "t-0" / f"{10:020d}.log").mkdir()
    assert offsets(tmp_path) == [*range(10)]
    with pytest.raises(CorruptRecordError, match=r"0+10\.log"):
        offsets(tmp_path, mode="FAILFAST")


@pytest.mark.parametrize("wanted", [1, 2, 3, 4, 7, 40, 100])
@pytest.mark.parametrize("batch", [1, 7, 40])
def test_min_partitions(tmp_path: Path, wanted: int, batch: int) -> None:
    write(tmp_path / "t-0", (0, 40), batch=batch)
    found = list(tasks(tmp_path, minPartitions=wanted))
    assert len(found) == min(wanted, 40)
    assert all(found)
    assert [row[-1] for rows in found for row in rows] == [*range(40)]


@pytest.mark.parametrize("most", [1, 3, 10, 39, 40, 1000])
def test_max_records_per_partition(tmp_path: Path, most: int) -> None:
    write(tmp_path / "t-0", (0, 40), batch=7)
    write(tmp_path / "t-1", (100, 125), (125, 130), batch=4)
    for options in ({}, {"minPartitions": 9}, {"mode": "FAILFAST"}):
        found = list(tasks(tmp_path, maxRecordsPerPartition=most, **options))
        assert max(map(len, found)) <= most
        assert len(found) >= options.get("minPartitions", 0)  # type: ignore[call-overload]
        rows = [row for rows in found for row in rows]
        assert rows == [("t", 0, offset) for offset in range(40)] + [("t", 1, at) for at in range(100, 130)]
    bounds = {"startingOffsets": '{"t":{"0":5,"1":127}}', "endingOffsets": '{"t":{"0":22,"1":-1}}'}
    found = list(tasks(tmp_path, maxRecordsPerPartition=most, **bounds))
    assert max(map(len, found)) <= most
    assert [row[-1] for rows in found for row in rows] == [*range(5, 22), *range(127, 130)]


@pytest.mark.parametrize("name", ["v0_gzip", "mixed_012", "v2_compacted", "v2_txn"])
@pytest.mark.parametrize("isolation", ["read_uncommitted", "read_committed"])
def test_split_tasks_of_real_logs(tmp_path: Path, name: str, isolation: str) -> None:
    shutil.copytree(KAFKA / name, tmp_path / "t-0")
    view = "committed.jsonl" if isolation == "read_committed" and "txn" in name else "expected.jsonl"
    there = [line["offset"] for line in expected(KAFKA / name, view) if not line.get("control")]
    for options in ({"minPartitions": 13}, {"maxRecordsPerPartition": 9}):
        assert offsets(tmp_path, isolationLevel=isolation, **options) == there


def test_other_tables_are_not_split(tmp_path: Path) -> None:
    write(tmp_path / "t-0", (0, 40), batch=40)
    assert offsets(tmp_path, table="batches", minPartitions=4, maxRecordsPerPartition=3) == [0]


def test_relative_paths_are_those_of_the_driver(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "logs" / "t-0", (0, 10))
    (tmp_path / "executor").mkdir()
    monkeypatch.chdir(tmp_path)
    reader = MagicbyteReader(parse_options({"path": "logs"}), ("offset",))
    parts = reader.partitions()
    os.chdir(tmp_path / "executor")
    assert sum(batch.num_rows for part in parts for batch in reader.read(part)) == 10
