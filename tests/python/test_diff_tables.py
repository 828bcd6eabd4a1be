"""`magicbyte diff` of tables that `ingest` has written: with logs, clusters and other tables."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import magicbyte
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from conftest import KAFKA, Cli
from lakes import FORMATS, Lake
from magicbyte import _core
from magicbyte.errors import RefusedError
from magicbyte.jobs.find.choice import PartitionChoice
from magicbyte.jobs.run.columns import KAFKA_COLUMNS
from replicas import batch, batches, replica

OWN = PartitionChoice(exclude=("__magicbyte*",))
FIXTURES = (
    "mixed_012", "v0_none", "v1_gzip", "v1_logappend", "v2_big_record", "v2_compacted_txn", "v2_headers",
    "v2_nulls", "v2_timestamps", "v2_tombstones", "v2_txn", "v2_zstd",
)  # fmt: skip


def diff(a: Path | str, b: Path | str, **options: Any) -> Any:
    return magicbyte.diff([a, b], choice=options.pop("choice", OWN), **options)


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Partitions of real brokers, and one without records."""
    root = tmp_path_factory.mktemp("logs")
    for topic in FIXTURES:
        shutil.copytree(KAFKA / topic, root / f"{topic}-0")
    replica(root, {0: []}, name="empty-0")
    return root


def results(report: Any) -> dict[str, str]:
    return {one["topic"]: one["result"] for one in report["partitions"]}


@pytest.mark.parametrize("level", ["read_uncommitted", "read_committed"])
@pytest.mark.parametrize("payload", ["binary", "string"])
def test_parquet_equals_its_log(tmp_path: Path, logs: Path, level: Any, payload: Any) -> None:
    """Every kind of record, bytes that are no text, timestamps that are none."""
    out = tmp_path / "out"
    magicbyte.ingest(
        logs, out, isolation_level=level, key_as=payload, value_as=payload, include_batch_metadata=True
    )
    for sides in ((out, logs), (logs, out), (out, out)):
        report = diff(*sides)
        assert {*results(report).values()} == {"equal"}, results(report)
        assert report["equal"]
        assert report["isolation_level"] == level
        assert report["not_compared"][1:] == ["control records"]
        assert all(one["unproven_records"] == 0 for one in report["partitions"])
    with magicbyte.serve(logs, listen="127.0.0.1:0") as server:
        report = diff(out, f"kafka://{server.bootstrap_servers}")
    assert report["equal"], [one for one in report["partitions"] if one["result"] != "equal"]


@pytest.mark.parametrize("table_format", FORMATS)
def test_lakes_equal_their_log(tmp_path: Path, logs: Path, table_format: str, cli: Cli) -> None:
    lake = Lake.at(table_format, tmp_path / "lake")
    lake.ingest(logs, isolation_level="read_committed")
    report = diff(logs, lake.name, **lake.place)
    unproven = {one["topic"]: one["unproven_records"] for one in report["partitions"]}
    assert report["isolation_level"] == "read_committed"
    # Without the batches' metadata, there are no timestamps beyond the range of microseconds.
    lacking = {topic for topic, count in unproven.items() if count}
    assert lacking <= {"v2_timestamps"}
    assert all((result == "unproven") == (topic in lacking) for topic, result in results(report).items())
    assert {*results(report).values()} <= {"equal", "unproven"}
    out = tmp_path / "out"
    magicbyte.ingest(logs, out, isolation_level="read_committed")
    assert diff(out, lake.name, **lake.place)["equal"]
    text = cli("diff", *lake.options, lake.name, logs, code=1 if lacking else 0)
    assert f"{13 - len(lacking)} of 13 partitions equal" in text


def test_differences_are_found_to_the_record(tmp_path: Path, cli: Cli) -> None:
    log = {0: batches(0, 20_000, step=100)}
    a = replica(tmp_path / "a", log)
    out = tmp_path / "out"
    magicbyte.ingest(a, out)
    changed = [*log[0]]
    changed[50] = batch(5000, 100, value="w")
    del changed[120:122]
    b = replica(tmp_path / "b", {0: changed})
    expected = [(5000, 5099, "differs"), (12_000, 12_199, "only_in_a")]
    with magicbyte.serve(b, listen="127.0.0.1:0") as server:
        for other in (b, f"kafka://{server.bootstrap_servers}"):
            report = cli.json("diff", "--exclude", "__*", out, other, code=1)
            (one,) = report["partitions"]
            ranges = [
                (found["first_offset"], found["last_offset"], found["difference"]) for found in one["ranges"]
            ]
            assert ranges == expected
    magicbyte.ingest(b, tmp_path / "other")
    assert not diff(out, tmp_path / "other")["equal"]


@pytest.mark.parametrize(
    ("column", "value"),
    [("key", b"other"), ("value", None), ("timestampType", 1), ("headers", [{"key": "h", "value": b"x"}])],
)
def test_each_column_counts(tmp_path: Path, column: str, value: Any) -> None:
    a = replica(tmp_path / "a", {0: batches(0, 1000, step=100)})
    out = tmp_path / "out"
    magicbyte.ingest(a, out)
    (path,) = (out / "records").rglob("*.parquet")
    rows = pq.read_table(path)
    cells = rows[column].to_pylist()
    cells[7] = value
    place = rows.schema.get_field_index(column)
    pq.write_table(
        rows.set_column(place, rows.schema.field(column), pa.array(cells, rows.schema.field(column).type)),
        path,
    )
    (one,) = diff(a, out)["partitions"]
    assert [(found["first_offset"], found["records"]) for found in one["ranges"]] == [(7, 1)]
    assert one["ranges"][0]["difference"] == "differs"


def test_rows_that_are_doubled_differ(tmp_path: Path) -> None:
    a = replica(tmp_path / "a", {0: batches(0, 1000, step=100)})
    out = tmp_path / "out"
    magicbyte.ingest(a, out)
    (path,) = (out / "records").rglob("*.parquet")
    rows = pq.read_table(path)
    pq.write_table(pa.concat_tables([rows, rows.slice(3, 1)]), path)
    (one,) = diff(a, out)["partitions"]
    assert [(found["first_offset"], found["difference"]) for found in one["ranges"]] == [(3, "differs")]


def test_a_table_ends_at_its_cut(tmp_path: Path) -> None:
    """What the log has got since is counted, and no difference; an older table still has what retention
    removed."""
    root = replica(tmp_path / "a", {0: batches(0, 10_000, step=100)})
    out = tmp_path / "out"
    magicbyte.ingest(root, out)
    log = root / "orders-0" / f"{0:020}.log"
    log.write_bytes(log.read_bytes() + batch(10_000, 50))
    (root / "log-start-offset-checkpoint").write_text("0\n1\norders 0 1234\n")
    report = diff(out, root)
    assert report["equal"]
    (one,) = report["partitions"]
    assert (one["end_offset"], one["records_after_end"]) == (10_000, 50)
    assert one["removed"] == {"side": "b", "last_offset": 1233, "records": 1234, "stated": True}


def test_a_table_of_a_range_of_offsets(tmp_path: Path) -> None:
    root = replica(tmp_path / "a", {0: batches(0, 10_000, step=100)})
    out = tmp_path / "out"
    magicbyte.ingest(root, out, start_offset=500, end_offset=7000)
    report = diff(out, root)
    assert report["equal"]
    (one,) = report["partitions"]
    assert (one["end_offset"], one["records_after_end"]) == (7000, 3000)
    assert one["removed"]["records"] == 500


@pytest.mark.parametrize(
    "made_with", [{"where": "value IS NOT NULL"}, {"start_timestamp": 5}, {"end_timestamp": 1 << 50}]
)
def test_selections_are_only_compared_with_each_other(tmp_path: Path, made_with: dict[str, Any]) -> None:
    root = replica(tmp_path / "a", {0: batches(0, 1000, step=100)})
    out = tmp_path / "out"
    magicbyte.ingest(root, out, **made_with)
    with pytest.raises(RefusedError, match=f"was made with {next(iter(made_with))}"):
        diff(out, root)
    shutil.copytree(out, tmp_path / "copy")
    assert diff(out, tmp_path / "copy")["equal"]


def test_levels_have_to_agree(tmp_path: Path) -> None:
    root = replica(tmp_path / "a", {0: batches(0, 1000, step=100)})
    for level in ("read_uncommitted", "read_committed"):
        magicbyte.ingest(root, tmp_path / level, isolation_level=level)
    with pytest.raises(RefusedError, match="isolation level"):
        diff(tmp_path / "read_committed", tmp_path / "read_uncommitted")
    with pytest.raises(RefusedError, match="isolation level"):
        diff(tmp_path / "read_committed", root, isolation_level="read_uncommitted")
    assert diff(tmp_path / "read_committed", root, isolation_level="read_committed")["equal"]


def test_partitions_without_rows(tmp_path: Path) -> None:
    """A table does not name them; one with records that the table lacks is only on one side."""
    root = replica(tmp_path / "a", {0: [batch(0)]})
    replica(root, {0: []}, name="orders-1")
    out = tmp_path / "out"
    magicbyte.ingest(root, out)
    assert diff(out, root)["equal"]
    replica(root, {0: [batch(0)]}, name="orders-2")
    assert [one["result"] for one in diff(out, root)["partitions"]] == ["equal", "equal", "only_in_b"]
    assert [one["result"] for one in diff(root, out)["partitions"]] == ["equal", "equal", "only_in_a"]


def test_no_table(tmp_path: Path, cli: Cli) -> None:
    root = replica(tmp_path / "a", {0: [batch(0)]})
    out = tmp_path / "out"
    magicbyte.ingest(root, out)
    (out / "_SUCCESS").unlink()
    cli("diff", out, root, code=2)
    cli("diff", "kafka.records", root, code=2)
    assert "kafka.records does not exist" in cli.error


def test_digests_of_rows() -> None:
    """They are those of the records, in any order of rows and layout of Arrow."""
    log = magicbyte.PartitionLog(KAFKA / "v2_headers")
    rows = pa.table(log.to_arrow([*KAFKA_COLUMNS, "headers"]))
    found = _core.digest_rows(rows, 10)
    total: dict[int, tuple[int, int]] = {}
    for _, _, ranges, unknown in found:
        assert unknown == []
        for number, count, digest in ranges:
            before = total.get(number, (0, 0))
            total[number] = before[0] + count, (before[1] + digest) % (1 << 128)
    shuffled = _core.digest_rows(rows.sort_by([("offset", "descending")]).combine_chunks(), 10)
    assert {number: (count, digest) for number, count, digest in shuffled[0][2]} == total
    for wrong in (pa.table({"offset": [1]}), rows.drop_columns(["headers"])):
        with pytest.raises(ValueError, match="no such column"):
            _core.digest_rows(wrong, 10)
