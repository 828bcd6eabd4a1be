"""What the tables of `ingest` hold: topics and partitions, ranges, keys and values as text, bloom filters."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from conftest import Cli
from magicbyte import RecordsBuilder
from magicbyte.errors import JobError, RefusedError
from magicbyte.jobs.find.partitions import list_partitions
from magicbyte.jobs.ingest import ingest
from magicbyte.jobs.publish import parquet
from magicbyte.jobs.run.engines import LocalEngine
from magicbyte.jobs.run.plan import plan_partitions, tasks_of
from magicbyte.jobs.run.reading import ReadOptions, Rows, read_chunk
from magicbyte.options.ingest import IngestOptions

FIRST = f"{0:020d}.log"
Row = tuple[int, bytes | None, bytes | None]
"""Timestamp (ms), key and value."""


def write_log(root: Path, partition: str, rows: Sequence[Row], *, batch: int = 4) -> None:
    """Writes a partition with batches of up to `batch` records."""
    (root / partition).mkdir(parents=True)
    with open(root / partition / FIRST, "wb") as file:
        for start in range(0, len(rows), batch):
            builder = RecordsBuilder()
            for offset, (timestamp, key, value) in enumerate(rows[start : start + batch], start):
                builder.append(offset, timestamp, key, value)
            file.write(builder.build())


def rows_of(out: Path, table: str = "records") -> list[dict[str, Any]]:
    order = "offset" if table == "records" else "baseOffset"
    read = ds.dataset(out / table).to_table()
    return read.sort_by(
        [("topic", "ascending"), ("partition", "ascending"), (order, "ascending")]
    ).to_pylist()


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Two topics, one of them with two partitions."""
    for name, count in (("orders-0", 5), ("orders-1", 9), ("events-0", 3)):
        write_log(tmp_path / "logs", name, [(1000 + at, b"k%d" % at, b"v%d" % at) for at in range(count)])
    return tmp_path / "logs"


# --- files ---------------------------------------------------------------------------------------


def test_each_row_has_its_topic_and_partition(root: Path, tmp_path: Path, cli: Cli) -> None:
    out = tmp_path / "out"
    report = cli.json("ingest", root, out)
    for table in ("records", "batches"):
        found = {(row["topic"], row["partition"]) for row in rows_of(out, table)}
        assert found == {("orders", 0), ("orders", 1), ("events", 0)}
    for one in report["files"]:
        assert Path(one["path"]).parent == Path(one["table"]), "the directories of tables are flat"
        # A file alone, moved elsewhere, still has everything.
        topics = set(pq.read_table(out / one["path"]).column("topic").to_pylist())
        assert topics == {one["topic"]}
        assert Path(one["path"]).name.endswith(f"-{one['topic']}.zstd.parquet")


def test_the_columns_of_kafka_come_first(root: Path, tmp_path: Path) -> None:
    ingest([str(root)], str(tmp_path / "out"), LocalEngine(1), IngestOptions())
    schema = ds.dataset(tmp_path / "out" / "records").schema
    assert schema.names == [
        "key", "value", "topic", "partition", "offset", "timestamp", "timestampType", "headers",
    ]  # fmt: skip
    assert schema.field("topic").type == pa.string()
    assert schema.field("partition").type == pa.int32()


def test_topics_are_stored_once_per_row_group(root: Path, tmp_path: Path) -> None:
    ingest([str(root)], str(tmp_path / "out"), LocalEngine(1), IngestOptions())
    for path in (tmp_path / "out" / "records").iterdir():
        group = pq.read_metadata(path).row_group(0)
        columns = {group.column(at).path_in_schema: group.column(at) for at in range(group.num_columns)}
        for name in ("topic", "partition"):
            assert columns[name].has_dictionary_page
            assert columns[name].statistics.min == columns[name].statistics.max or name == "partition"


def test_a_file_per_topic_even_if_there_are_many_partitions(tmp_path: Path) -> None:
    for number in range(20):
        write_log(tmp_path / "logs", f"orders-{number}", [(1000, b"k", b"v")])
    report = ingest([str(tmp_path / "logs")], str(tmp_path / "out"), LocalEngine(1), IngestOptions())
    assert [one["rows"] for one in report["files"] if one["table"] == "records"] == [20]
    assert len(rows_of(tmp_path / "out")) == 20
    assert report["balanced"]


def test_a_long_topic_is_cut_in_the_name_of_its_file(tmp_path: Path) -> None:
    longest = "x" * 249
    for topic in (longest, longest[:-1], "ä b"):
        write_log(tmp_path / "logs", f"{topic}-0", [(1000, b"k", b"v")])
    report = ingest([str(tmp_path / "logs")], str(tmp_path / "out"), LocalEngine(1), IngestOptions())
    assert {row["topic"] for row in rows_of(tmp_path / "out")} == {longest, longest[:-1], "ä b"}
    names = [Path(one["path"]).name for one in report["files"]]
    assert len(set(names)) == len(names)
    assert all(len(name) < 160 and name.isascii() for name in names)


def test_problems_of_all_partitions_are_in_one_file(root: Path, tmp_path: Path) -> None:
    for name in ("orders-0", "events-0"):
        (root / name / "00000000000000000007.log.swap").write_bytes(b"")
    out = tmp_path / "out"
    report = ingest([str(root)], str(out), LocalEngine(1), IngestOptions())
    (plan,) = [one for one in report["files"] if one["table"] == "problems"]
    assert (plan["topic"], plan["rows"]) == (None, 2)
    assert {row["topic"] for row in rows_of(out, "problems")} == {"orders", "events"}


# --- bloom filters -------------------------------------------------------------------------------


@pytest.mark.skipif(not parquet.can_write_bloom_filters(), reason="pyarrow 24 or newer is needed")
def test_bloom_filters_of_keys(root: Path, tmp_path: Path, cli: Cli) -> None:
    duckdb = pytest.importorskip("duckdb")
    cli.json("ingest", "--bloom-filter", root, tmp_path / "out")
    (path,) = (tmp_path / "out" / "records").glob("*-orders.*")
    probe = "SELECT bool_or(bloom_filter_excludes) FROM parquet_bloom_probe(?, 'key', ?)"
    assert duckdb.execute(probe, [str(path), b"k3"]).fetchall() == [(False,)]
    excluded = [duckdb.execute(probe, [str(path), b"other%d" % at]).fetchall()[0][0] for at in range(100)]
    assert sum(excluded) > 80
    # Sized for the rows, not for the largest row group.
    assert path.stat().st_size < 64 << 10


def test_bloom_filters_need_a_new_pyarrow(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pa, "__version__", "23.0.1")
    with pytest.raises(RefusedError, match="pyarrow 24"):
        ingest([str(root)], str(tmp_path / "out"), LocalEngine(1), IngestOptions(bloom_filter=True))
    assert not (tmp_path / "out").exists()


# --- ranges --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["--start-offset", 3], lambda offset, _: offset >= 3),
        (["--end-offset", 3], lambda offset, _: offset < 3),
        (["--start-offset", 2, "--end-offset", 6], lambda offset, _: 2 <= offset < 6),
        (["--start-timestamp", 1_000_000_005_000], lambda _, time: time >= 1_000_000_005_000),
        (["--end-timestamp", "2001-09-09T01:46:45"], lambda _, time: time < 1_000_000_005_000),
        (
            ["--start-timestamp", 1_000_000_002_000, "--end-timestamp", 1_000_000_006_000, "--end-offset", 9],
            lambda offset, time: 1_000_000_002_000 <= time < 1_000_000_006_000 and offset < 9,
        ),
    ],
)
def test_ranges(
    tmp_path: Path, cli: Cli, options: list[object], expected: Callable[[int, int], bool]
) -> None:
    # The times are not in order: each record counts for itself.
    times = [1_000_000_000_000 + 1000 * second for second in (0, 9, 1, 8, 2, 7, 3, 6, 4, 5)]
    write_log(tmp_path / "logs", "t-0", [(time, None, b"v") for time in times])
    report = cli.json("ingest", *options, tmp_path / "logs", tmp_path / "out")
    offsets = [row["offset"] for row in rows_of(tmp_path / "out")]
    assert offsets == [offset for offset, time in enumerate(times) if expected(offset, time)]
    assert report["balanced"]
    assert report["total"]["outside"] == len(times) - len(offsets) > 0
    # As `records` prints them.
    lines = cli("records", *options, tmp_path / "logs").splitlines()
    assert [json.loads(line)["offset"] for line in lines] == offsets


def test_a_record_without_a_timestamp_is_before_every_time(tmp_path: Path, cli: Cli) -> None:
    write_log(tmp_path / "logs", "t-0", [(-1, None, b"v"), (1_000_000_000_000, None, b"v")])
    cli.json("ingest", "--start-timestamp", 10_000, tmp_path / "logs", tmp_path / "late")
    assert [row["offset"] for row in rows_of(tmp_path / "late")] == [1]
    cli.json("ingest", "--end-timestamp", 10_000, tmp_path / "logs", tmp_path / "early")
    assert [row["offset"] for row in rows_of(tmp_path / "early")] == [0]


def test_an_empty_range_has_tables(root: Path, tmp_path: Path, cli: Cli) -> None:
    report = cli.json("ingest", "--start-offset", 100, root, tmp_path / "out")
    assert rows_of(tmp_path / "out") == []
    assert (report["total"]["rows"], report["total"]["outside"]) == (0, 17)
    assert report["ranges"] == {
        "start_offset": 100, "end_offset": None, "start_timestamp": None, "end_timestamp": None,
    }  # fmt: skip
    assert "17 outside the range" in cli("ingest", "--start-offset", 100, root, tmp_path / "again")


# --- text ----------------------------------------------------------------------------------------

JSON = [b'{"a": 1}', b"[]", b' "\\u00e4" ', b"1e999", b"null", b"[" * 5000 + b"]" * 5000, '"ä"'.encode()]
NOT_JSON = [b"", b"{", b"{'a': 1}", b"NaN", b"1 2", b'"\x01"', b"01", b"[" * 5000]
NOT_UTF8 = [b"\xff", b"ok\xc3", b"\xed\xa0\x80", b"\xc0\x80"]


@pytest.mark.parametrize("payload", ["string", "json"])
def test_values_as_text(tmp_path: Path, cli: Cli, payload: str) -> None:
    texts = [*JSON, *(NOT_JSON if payload == "string" else [])]
    others = [*NOT_UTF8, *(NOT_JSON if payload == "json" else [])]
    values = [None, *texts, *others, None, texts[0]]
    write_log(tmp_path / "logs", "t-0", [(1000, None, value) for value in values])
    out = tmp_path / "out"
    report = cli.json("ingest", "--value-as", payload, tmp_path / "logs", out, code=1)
    assert report["balanced"]
    assert report["total"]["rows"] == len(values)
    assert (report["total"]["invalid_keys"], report["total"]["invalid_values"]) == (0, len(others))
    rows = rows_of(out)
    # Nothing is lost: each value is text, or its bytes are in the other column, or it is null in the log.
    assert [row["value"] for row in rows] == [
        None if value is None or value in others else value.decode() for value in values
    ]
    assert [row["invalidValue"] for row in rows] == [value if value in others else None for value in values]
    text = cli("ingest", "--value-as", payload, tmp_path / "logs", tmp_path / "again", code=1)
    expected = "JSON" if payload == "json" else "UTF-8"
    assert f"{len(others)} values are null: not {expected}; the column invalidValue has their bytes" in text


def test_keys_and_values_that_are_text(tmp_path: Path, cli: Cli) -> None:
    write_log(tmp_path / "logs", "t-0", [(1000, b"a", b'{"n": 1}'), (1000, None, None)])
    out = tmp_path / "out"
    report = cli.json("ingest", "--key-as", "string", "--value-as", "json", tmp_path / "logs", out)
    assert (report["key_as"], report["value_as"]) == ("string", "json")
    (path,) = (out / "records").iterdir()
    schema = pq.ParquetFile(path).schema
    kinds = {schema.column(at).name: schema.column(at).logical_type.type for at in range(2)}
    assert kinds == {"key": "STRING", "value": "JSON"}
    rows = rows_of(out)
    assert [(row["key"], row["value"]) for row in rows] == [("a", '{"n": 1}'), (None, None)]
    assert all(row["invalidKey"] is None and row["invalidValue"] is None for row in rows)


def test_readers_see_json(tmp_path: Path, cli: Cli) -> None:
    duckdb = pytest.importorskip("duckdb")
    write_log(tmp_path / "logs", "t-0", [(1000, b"a", b'{"n": 41}'), (1000, b"b", b'{"n": 1}')])
    cli.json("ingest", "--value-as", "json", tmp_path / "logs", tmp_path / "out")
    query = "SELECT sum((value->>'n')::int), any_value(typeof(value)) FROM read_parquet(?)"
    assert duckdb.execute(query, [f"{tmp_path}/out/records/*.parquet"]).fetchall() == [(42, "JSON")]


def test_without_the_type_json_there_is_text(
    tmp_path: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(pa, "json_")
    write_log(tmp_path / "logs", "t-0", [(1000, b"a", b"1")])
    cli.json("ingest", "--value-as", "json", tmp_path / "logs", tmp_path / "out")
    assert ds.dataset(tmp_path / "out" / "records").schema.field("value").type == pa.string()


def test_large_batches_of_text_are_sliced(tmp_path: Path) -> None:
    value = b"x" * (3 << 20)
    write_log(tmp_path / "logs", "t-0", [(1000, b"\xff", value)] * 6, batch=6)
    options = ReadOptions(("key", "value"), key_as="string", value_as="string")
    rows = list(decoded(tmp_path / "logs", options))
    assert len(rows) > 1
    table = pa.Table.from_batches(rows)
    assert table.schema == options.records_schema
    assert table.column("value").to_pylist() == [value.decode()] * 6
    assert table.column("invalidKey").to_pylist() == [b"\xff"] * 6


def decoded(root: Path, options: ReadOptions) -> list[pa.RecordBatch]:
    tasks = tasks_of(plan_partitions(list_partitions([str(root)]), LocalEngine(1)), 1)
    items = [item for task in tasks for chunk in task.chunks for item in read_chunk(chunk, options)]
    return [item.batch for item in items if isinstance(item, Rows) and item.table == "records"]


def test_failing_at_the_first_value_that_is_not_text(tmp_path: Path) -> None:
    write_log(tmp_path / "logs", "t-7", [(1000, b"k", b"1"), (1000, b"k", b"{"), (1000, b"k", b"}")])
    options = ReadOptions(("offset", "value"), mode="FAILFAST", value_as="json")
    with pytest.raises(JobError, match=rf"^t-7/{FIRST}, offset 1: the value is not JSON$"):
        decoded(tmp_path / "logs", options)
    assert len(decoded(tmp_path / "logs", ReadOptions(("value",), mode="FAILFAST", value_as="string"))) == 1


@pytest.mark.parametrize("name", ["utf-8", "JSON", "", "x" * 100])
def test_unknown_types(root: Path, tmp_path: Path, cli: Cli, name: str) -> None:
    cli("ingest", "--key-as", name, root, tmp_path / "out", code=2)
    assert "is not one of 'binary', 'string', 'json'" in cli.error
    with pytest.raises(ValueError, match="are read as binary, string or json"):
        decoded(root, ReadOptions(("key",), key_as=name))  # type: ignore[arg-type]


def test_polars_and_pandas_read_the_tables(root: Path, tmp_path: Path, cli: Cli) -> None:
    cli.json("ingest", "--key-as", "string", root, tmp_path / "out")
    polars = pytest.importorskip("polars")
    frame = polars.read_parquet(f"{tmp_path}/out/records/*.parquet")
    assert frame.filter(polars.col("topic") == "orders").height == 14
    pandas = pytest.importorskip("pandas")
    assert pandas.read_parquet(tmp_path / "out" / "records").query("topic == 'orders'").shape[0] == 14
