"""Rows to records: appending from Arrow, and partitions written from rows."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

import magicbyte
import pyarrow as pa
import pytest
from conftest import KAFKA
from magicbyte.errors import JobError, RefusedError
from magicbyte.jobs.find.partitions import find_partitions
from magicbyte.jobs.write_rows import Part, RowsOptions, commit_rows, staging_in, write_rows

HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
ROWS = {
    "key": [b"a", None, b""],
    "value": [b"1", b"2", None],
    "offset": [5, 6, 9],
    "timestamp": [1000, None, -1],
    "headers": [[("h", b"x"), ("h", None)], None, []],
}
EXPECTED = [
    (5, 1000, b"a", b"1", [(b"h", b"x"), (b"h", None)]),
    (6, -1, None, b"2", []),
    (9, -1, b"", None, []),
]


def table(blob: pa.DataType, time: pa.DataType) -> pa.Table:
    """The rows above as columns of these types."""
    times = pa.array(ROWS["timestamp"], pa.int64())
    if time != pa.int64():
        times = times.cast(pa.timestamp("ms")).cast(time, safe=False)
    return pa.table(
        {
            "key": pa.array(ROWS["key"], pa.binary()).cast(blob),
            "value": pa.array(ROWS["value"], pa.binary()).cast(blob),
            "offset": pa.array(ROWS["offset"], pa.int64()),
            "timestamp": times,
            "headers": pa.array(ROWS["headers"], HEADERS),
        }
    )


def found(data: bytes) -> list[tuple[object, ...]]:
    """The records of some batches."""
    return [
        (r.offset, r.timestamp, r.key_bytes, r.value_bytes, r.headers_raw)
        for batch in magicbyte.read_batches(data)
        for r in batch
    ]


@pytest.mark.parametrize(
    "time", [pa.int64(), pa.timestamp("ms"), pa.timestamp("us"), pa.timestamp("ns", tz="UTC")], ids=str
)
@pytest.mark.parametrize(
    "blob", [pa.binary(), pa.large_binary(), pa.string(), pa.large_string(), pa.binary_view()], ids=str
)
def test_rows_of_any_type(blob: pa.DataType, time: pa.DataType) -> None:
    builder = magicbyte.RecordsBuilder(compression=magicbyte.Compression.ZSTD)
    assert builder.append_arrow(table(blob, time)) == 3
    assert found(builder.build()) == EXPECTED


def test_a_batch_a_reader_and_our_own_columns() -> None:
    rows = table(pa.binary(), pa.int64())
    for data in (rows.to_batches()[0], rows.to_reader(), rows.slice(0, 3)):
        builder = magicbyte.RecordsBuilder()
        builder.append_arrow(data)
        assert found(builder.build()) == EXPECTED
    for batch in magicbyte.read_batches((KAFKA / "v2_headers/00000000000000000000.log").read_bytes()):
        builder = magicbyte.RecordsBuilder()
        builder.append_arrow(batch)
        assert found(builder.build()) == found(batch.to_bytes())


def test_offsets_and_times_of_rows_without() -> None:
    builder = magicbyte.RecordsBuilder()
    values = pa.table({"value": [b"a", b"b"]})
    assert builder.append_arrow(values, offset=40, timestamp=7) == 2
    assert [row[:2] for row in found(builder.build())] == [(40, 7), (41, 7)]


@pytest.mark.parametrize(
    ("data", "error", "text"),
    [
        (pa.table({"key": [b"a"]}), magicbyte.Error, "no column value"),
        (pa.table({"value": [1]}), magicbyte.Error, "neither binary nor text"),
        (pa.table({"value": [b"a"], "offset": ["x"]}), magicbyte.Error, "not int64"),
        (pa.table({"value": [b"a", b"b"], "offset": [5, 5]}), magicbyte.Error, "record 1"),
        (pa.table({"value": [b"a"], "offset": pa.array([None], pa.int64())}), magicbyte.Error, "null"),
        (
            pa.table({"value": [b"a"], "headers": pa.array([[(None, b"x")]], HEADERS)}),
            magicbyte.Error,
            "null",
        ),
        ([b"a"], TypeError, "Arrow"),
        (pa.array([1]), TypeError, "record batch"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_invalid_rows_are_errors(data: object, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        magicbyte.RecordsBuilder().append_arrow(data)


# --- partitions of rows -------------------------------------------------------------------------


def batch_of(**columns: object) -> pa.RecordBatch:
    """A record batch."""
    return pa.table(columns).combine_chunks().to_batches()[0]


def test_rows_become_partitions(tmp_path: Path) -> None:
    staging = staging_in(str(tmp_path))
    rows = batch_of(
        topic=["a", "b", "a", "a"],
        partition=pa.array([0, 0, 1, 0], pa.int32()),
        value=[b"1", b"2", b"3", b"4"],
    )
    parts = write_rows([rows, rows], staging, RowsOptions(timestamp=5, compression=3))
    commit_rows(str(tmp_path), staging, parts)
    *partitions, report = sorted(os.listdir(tmp_path))
    assert partitions == ["a-0", "a-1", "b-0"]
    reconciliation = json.loads((tmp_path / report).read_text())
    assert reconciliation["balanced"]
    assert [one["records"] for one in reconciliation["partitions"]] == [4, 2, 2]
    log = magicbyte.PartitionLog(tmp_path / "a-0")
    assert [(r.offset, r.timestamp, r.value_bytes) for r in log.records()] == [
        (0, 5, b"1"), (1, 5, b"4"), (2, 5, b"1"), (3, 5, b"4"),
    ]  # fmt: skip
    assert log.verify().balanced
    assert "leader-epoch-checkpoint" in os.listdir(tmp_path / "a-0")
    with pytest.raises(RefusedError, match="already"):
        commit_rows(str(tmp_path), staging_in(str(tmp_path)), parts)


def test_tasks_in_any_order_join_by_offset(tmp_path: Path) -> None:
    staging = staging_in(str(tmp_path))
    parts: list[Part] = []
    for first in (200, 0, 100):
        offsets = list(range(first, first + 100))
        rows = batch_of(offset=offsets, value=[b"%d" % offset for offset in offsets])
        parts += write_rows([rows], staging, RowsOptions(topic="t"))
    commit_rows(str(tmp_path), staging, parts)
    assert [r.value_bytes for r in magicbyte.PartitionLog(tmp_path / "t-0").records()] == [
        b"%d" % offset for offset in range(300)
    ]


def test_rows_that_cannot_be_ordered_are_refused(tmp_path: Path) -> None:
    staging = staging_in(str(tmp_path))
    values = [write_rows([batch_of(value=[b"x"])], staging, RowsOptions(topic="t")) for _ in range(2)]
    with pytest.raises(RefusedError, match="repartition"):
        commit_rows(str(tmp_path), staging, [*values[0], *values[1]])
    one = write_rows([batch_of(value=[b"x", b"y"], offset=[1, 9])], staging, RowsOptions(topic="t"))
    other = write_rows([batch_of(value=[b"x"], offset=[5])], staging, RowsOptions(topic="t"))
    with pytest.raises(RefusedError, match="not in order"):
        commit_rows(str(tmp_path), staging, [*one, *other])
    with pytest.raises(ValueError, match="row 1 of the partition"):
        write_rows([batch_of(value=[b"x", b"y"], offset=[5, 5])], staging, RowsOptions(topic="t"))
    with pytest.raises(ValueError, match="no topic"):
        write_rows([batch_of(value=[b"x"])], staging, RowsOptions())
    with pytest.raises(ValueError, match="not a topic and partition"):
        write_rows([batch_of(value=[b"x"])], staging, RowsOptions(topic="../up"))
    assert not (tmp_path / "t-0").exists()


@pytest.mark.parametrize("topic", [".orders", "_SUCCESS", ".x.magicbyte-unfinished", "t" * 249])
def test_every_legal_topic_is_published(topic: str, tmp_path: Path) -> None:
    staging = staging_in(str(tmp_path))
    commit_rows(
        str(tmp_path), staging, write_rows([batch_of(value=[b"x"])], staging, RowsOptions(topic=topic))
    )
    assert len(list(magicbyte.PartitionLog(tmp_path / f"{topic}-0").records())) == 1
    assert len(os.listdir(tmp_path)) == 2


def test_a_job_that_fails_publishes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = batch_of(topic=["a", "b", "c"], value=[b"1", b"2", b"3"])
    staging = staging_in(str(tmp_path))
    parts = write_rows([rows], staging, RowsOptions())
    rename = os.rename

    def another_is_faster(source: str, target: str) -> None:
        rename(source, target)
        if target == str(tmp_path / "a-0"):
            (tmp_path / "b-0").mkdir()

    monkeypatch.setattr("os.rename", another_is_faster)
    with pytest.raises(RefusedError, match="b-0 was created"):
        commit_rows(str(tmp_path), staging, parts)
    assert sorted(os.listdir(tmp_path)) == sorted([os.path.basename(staging), "b-0"])
    assert find_partitions([str(tmp_path)]) == []


def test_rows_that_are_not_found_again_are_not_published(tmp_path: Path) -> None:
    staging = staging_in(str(tmp_path))
    parts = write_rows([batch_of(value=[b"x", b"y"])], staging, RowsOptions(topic="t"))
    with pytest.raises(JobError, match="nothing is published"):
        commit_rows(str(tmp_path), staging, [replace(parts[0], rows=3)])
    assert not (tmp_path / "t-0").exists()
