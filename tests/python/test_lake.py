"""Delta and Iceberg tables that equal a log: what real brokers wrote, growing logs, options, damage."""

from __future__ import annotations

import json
import random
import shutil
import struct
from pathlib import Path
from typing import Any

import duckdb
import magicbyte
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pytest
from conftest import KAFKA, PARTITIONS, Cli
from deltalake import DeltaTable
from digest import digest, summary
from lakes import FORMATS, GrowingLog, Lake
from magicbyte import RecordsBuilder, _core
from magicbyte.errors import JobError, RefusedError
from magicbyte.jobs.find.choice import PartitionChoice
from magicbyte.jobs.run.plan import target_bytes
from magicbyte.lake.divergence import DivergedError
from magicbyte.options.ingest import IngestOptions
from pyiceberg.expressions import GreaterThanOrEqual
from test_ingest_tables import FIRST, write_log

GROWN = ("v2_txn", "v0_gzip", "v2_headers", "mixed_012")


@pytest.fixture(params=FORMATS)
def lake(request: pytest.FixtureRequest, tmp_path: Path) -> Lake:
    return Lake.at(request.param, tmp_path / "lake")


def by_topic(rows: pa.Table) -> dict[str, str]:
    """The digest of each topic, as Kafka's reader computes it."""
    ordered = sorted(rows.to_pylist(), key=lambda row: (row["topic"], row["offset"]))
    topics = sorted({row["topic"] for row in ordered})
    return {topic: digest(row for row in ordered if row["topic"] == topic) for topic in topics}


def of_kafka(partitions: tuple[str, ...] | list[str]) -> dict[str, str]:
    found = {name: summary(KAFKA / name) for name in sorted(partitions)}
    return {name: one["sha256"] for name, one in found.items() if one["dataRecords"]}


def append(root: Path, partition: str, first: int, count: int, *, timestamp: int = 1000) -> None:
    """Appends a batch to the only segment of a partition."""
    builder = RecordsBuilder()
    for offset in range(first, first + count):
        builder.append(offset, timestamp, b"k%d" % offset, b"v%d" % offset)
    with open(root / partition / FIRST, "ab") as file:
        file.write(builder.build())


def write_times(root: Path, times: list[int]) -> None:
    """Writes the partition orders-0 with one record for each timestamp, whatever it is."""
    (root / "orders-0").mkdir(parents=True)
    with open(root / "orders-0" / FIRST, "wb") as file:
        for offset, time in enumerate(times):
            builder = RecordsBuilder()
            builder.append(offset, 0, b"k", b"v")
            batch = bytearray(builder.build())
            # The base timestamp and the largest one, and the checksum of all that follows it.
            batch[27:43] = struct.pack(">qq", time, time)
            batch[17:21] = struct.pack(">I", magicbyte.crc32c(bytes(batch[21:])))
            file.write(batch)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name, count in (("orders-0", 5), ("orders-1", 9), ("events-0", 3)):
        write_log(tmp_path / "logs", name, [(1000 + at, b"k%d" % at, b"v%d" % at) for at in range(count)])
    return tmp_path / "logs"


# --- the table equals the log --------------------------------------------------------------------


def test_a_table_holds_what_kafka_read(lake: Lake, kafka: Path) -> None:
    report = lake.ingest(kafka, include_batch_metadata=True)
    assert report["balanced"]
    assert by_topic(lake.read()) == of_kafka(PARTITIONS)
    assert set(lake.compare(kafka).values()) == {"equal"}
    rows = {one["topic"]: one["rows"] for one in report["commit"]["partitions"]}
    assert {name: rows.get(name, 0) for name in PARTITIONS} == {
        name: summary(KAFKA / name)["dataRecords"] for name in PARTITIONS
    }


def test_a_large_segment_that_grows(lake: Lake, tmp_path: Path) -> None:
    """So large that most of it is not read again: chunks of it end before the table does."""
    (tmp_path / "logs" / "t-0").mkdir(parents=True)
    data, value = bytearray(), bytes(64 << 10)
    for offset in range(600):
        builder = RecordsBuilder()
        builder.append(offset, 1, None, value)
        data += builder.build()
    rows = []
    for share in (0.3, 0.7, 0.9, 1):
        (tmp_path / "logs" / "t-0" / f"{0:020d}.log").write_bytes(data[: round(share * len(data))])
        report = lake.ingest(tmp_path / "logs", include_batch_metadata=True)
        total = report["total"]
        assert total["good_bytes"] + total["tail_bytes"] + total["outside_bytes"] == total["size"]
        rows.append(report["tables"]["records"]["rows"])
        assert lake.compare(tmp_path / "logs") == {("t", 0): "equal"}
    assert (rows, sum(rows)) == ([180, 240, 120, 60], 600)
    assert total["outside_bytes"] > 20 << 20


def test_a_growing_log_ingested_ten_times(lake: Lake, tmp_path: Path) -> None:
    log = GrowingLog(tmp_path / "logs", GROWN)
    dice = random.Random(seed := random.randrange(1 << 30))
    for share in sorted(dice.uniform(0, 0.9) for _ in range(9)):
        log.grow_to(share)
        lake.ingest(log.root, include_batch_metadata=True)
        assert set(lake.compare(log.root).values()) <= {"equal"}, seed
    log.grow_to(1)
    assert "behind" in lake.compare(log.root).values(), seed
    lake.ingest(log.root, include_batch_metadata=True)
    versions, files = lake.versions(), lake.files()
    again = lake.ingest(log.root, include_batch_metadata=True)
    assert (again["commit"]["job"], again["tables"]["records"]["rows"]) == (None, 0)
    assert (lake.versions(), lake.files()) == (versions, files)
    assert by_topic(lake.read()) == of_kafka(GROWN), seed
    assert {path for path in lake.data.rglob("*.parquet") if "_delta_log" not in path.parts} == files
    assert not (lake.data / "_magicbyte").exists()


def test_read_committed_continues_at_the_last_stable_offset(lake: Lake, tmp_path: Path) -> None:
    log = GrowingLog(tmp_path / "logs", ("v2_txn", "v2_compacted_txn"))
    for share in (0.1, 0.3, 0.5, 0.7, 0.9, 1):
        log.grow_to(share)
        lake.ingest(log.root, include_batch_metadata=True, isolation_level="read_committed")
        assert set(lake.compare(log.root).values()) <= {"equal"}
    offsets = sorted(zip(*lake.read().select(["topic", "offset"]).to_pydict().values(), strict=True))
    expected = sorted(
        (name, json.loads(line)["offset"])
        for name in ("v2_txn", "v2_compacted_txn")
        for line in (KAFKA / name / "committed.jsonl").read_text().splitlines()
    )
    assert offsets == expected


def test_other_readers(lake: Lake, root: Path) -> None:
    lake.ingest(root, key_as="string")
    append(root, "orders-0", 5, 2)
    lake.ingest(root, key_as="string")
    scan = pl.scan_delta(lake.name) if lake.format == "delta" else pl.scan_iceberg(lake.iceberg())
    frame = scan.sort("topic", "partition", "offset").collect()
    assert frame.height == 19
    assert frame["key"].to_list()[:3] == ["k0", "k1", "k2"]
    with duckdb.connect() as database:
        database.register("rows", lake.read())
        counts = 'SELECT topic, "partition", count(*), max("offset") FROM rows GROUP BY ALL ORDER BY ALL'
        assert database.sql(counts).fetchall() == [
            ("events", 0, 3, 2),
            ("orders", 0, 7, 6),
            ("orders", 1, 9, 8),
        ]
        # As plain files they are complete too, with every column.
        files = database.read_parquet([str(path) for path in lake.files()])
        assert files.aggregate("count(*), count(DISTINCT topic)").fetchall() == [(19, 2)]


@pytest.mark.spark
def test_tasks_of_spark(lake: Lake, tmp_path: Path, spark: Any) -> None:
    from magicbyte.jobs.run.engines import SparkEngine

    log = GrowingLog(tmp_path / "logs", GROWN)
    for share in (0.6, 1):
        log.grow_to(share)
        lake.ingest(log.root, include_batch_metadata=True, engine=SparkEngine(spark))
    assert by_topic(lake.read()) == of_kafka(GROWN)
    # Spark 4.3 has no reader for the formats yet, so it reads the files.
    frame = spark.read.parquet(*(str(path) for path in lake.files()))
    assert frame.count() == lake.read().num_rows
    report = magicbyte.verify(log.root, table=lake.name, engine=SparkEngine(spark), **lake.place)
    assert report["table"]["equal"]


# --- commits -------------------------------------------------------------------------------------


def test_a_commit_says_what_it_added(lake: Lake, root: Path) -> None:
    first = lake.ingest(root)["commit"]
    append(root, "orders-0", 5, 2)
    second = lake.ingest(root)["commit"]
    assert [one["partition"] for one in second["partitions"]] == [0]
    (one,) = second["partitions"]
    assert (one["topic"], one["start_offset"], one["next_offset"], one["rows"]) == ("orders", 5, 7, 2)
    if lake.format == "delta":
        stored = [entry["magicbyte"] for entry in DeltaTable(lake.name).history() if "magicbyte" in entry]
    else:
        summaries = [one.summary.additional_properties for one in lake.iceberg().snapshots()[::-1]]
        stored = [json.loads(one["magicbyte"]) for one in summaries]
    assert [entry["job"] for entry in stored] == [second["job"], first["job"]]
    what = (
        {"sources": [str(root)], "partitions": second["partitions"], "read_version": 1, "restored": 0}
        if lake.format == "delta"
        else {"changed_partitions": 1, "rows": 2}
    )
    assert stored[0] == {"job": second["job"], "magicbyte": magicbyte.__version__, **what}


def test_statistics_and_partitions(lake: Lake, tmp_path: Path) -> None:
    day = 86_400_000
    write_times(tmp_path / "logs", [at * day // 2 - day for at in range(8)])
    lake.ingest(tmp_path / "logs", partition_by="day")
    assert len(lake.files()) == 4
    assert lake.compare(tmp_path / "logs") == {("orders", 0): "equal"}
    if lake.format == "delta":
        table = DeltaTable(lake.name)
        assert table.metadata().partition_columns == ["topic", "day"]
        actions = pa.table(table.get_add_actions(flatten=True)).sort_by("min.offset").to_pylist()
        assert [str(one["partition.day"]) for one in actions][:2] == ["1969-12-31", "1970-01-01"]
        assert [(one["min.offset"], one["max.offset"]) for one in actions][:2] == [(0, 1), (2, 3)]
    else:
        files = sorted(lake.iceberg().scan().plan_files(), key=lambda one: one.file.partition[1])
        assert [one.file.partition[0] for one in files] == ["orders"] * 4
        assert [one.file.partition[1] for one in files] == [-1, 0, 1, 2]
        late = GreaterThanOrEqual("timestamp", "1970-01-03T00:00:00+00:00")
        (file,) = lake.iceberg().scan(late).plan_files()
        assert file.file.record_count == 2


def test_iceberg_files_have_field_ids(tmp_path: Path, root: Path) -> None:
    lake = Lake.at("iceberg", tmp_path / "lake")
    lake.ingest(root)
    ids = {field.name: field.field_id for field in lake.iceberg().schema().fields}
    for path in lake.files():
        schema = ds.dataset(path).schema
        assert {one.name: int(one.metadata[b"PARQUET:field_id"]) for one in schema} == ids
        assert b"PARQUET:field_id" in schema.field("headers").type.value_field.metadata
    assert "schema.name-mapping.default" in lake.iceberg().properties


# --- options and columns -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"value_as": "json"}, "was made with value_as string, not json"),
        ({"isolation_level": "read_committed"}, "isolation_level read_uncommitted, not read_committed"),
        ({"where": "partition = 0"}, "where unset, not partition = 0"),
        ({"end_timestamp": 9}, "end_timestamp unset, not 9"),
        ({"partition_by": "day"}, "partition_by topic, not day"),
        ({"overwrite": True}, "never overwritten"),
    ],
)
def test_every_job_has_the_same_options(lake: Lake, root: Path, options: dict[str, Any], says: str) -> None:
    lake.ingest(root, value_as="string")
    before = lake.files()
    append(root, "orders-0", 5, 2)
    with pytest.raises(RefusedError, match=says):
        lake.ingest(root, **{"value_as": "string", **options})
    assert lake.files() == before


def test_columns_are_added_and_never_left_empty(lake: Lake, root: Path) -> None:
    lake.ingest(root)
    append(root, "orders-0", 5, 2)
    lake.ingest(root, include_batch_metadata=True)
    rows = lake.read().sort_by("offset").filter(pa.compute.field("topic") == "orders")
    assert rows.column("magic").to_pylist().count(2) == 2
    assert lake.compare(root) == dict.fromkeys([("events", 0), ("orders", 0), ("orders", 1)], "equal")
    append(root, "orders-0", 7, 1)
    with pytest.raises(RefusedError, match=r"the columns timestampMillis, magic.*--include-batch-metadata"):
        lake.ingest(root)


def test_selected_records(lake: Lake, root: Path) -> None:
    options = {"where": '"offset" % 2 = 0', "start_offset": 1, "end_offset": 8, "end_timestamp": 1007}
    lake.ingest(root, **options)
    found = lake.read().select(["topic", "partition", "offset"]).to_pylist()
    offsets = {("events", 0): [2], ("orders", 0): [2, 4], ("orders", 1): [2, 4, 6]}
    expected = [(*place, offset) for place, own in offsets.items() for offset in own]
    assert sorted(tuple(one.values()) for one in found) == expected
    append(root, "orders-0", 5, 10)
    assert lake.compare(root)["orders", 0] == "behind"
    assert lake.ingest(root, **options)["tables"]["records"]["rows"] == 1
    assert set(lake.compare(root).values()) == {"equal"}


def test_a_table_of_somebody_else_is_refused(tmp_path: Path, root: Path) -> None:
    lake = Lake.at("delta", tmp_path / "lake")
    DeltaTable.create(lake.name, pa.schema([("topic", pa.string())]))
    with pytest.raises(RefusedError, match="was not made by magicbyte"):
        lake.ingest(root)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "file").touch()
    with pytest.raises(RefusedError, match="is not empty and not a Delta table"):
        magicbyte.ingest(root, tmp_path / "other", format="delta")
    with pytest.raises(RefusedError, match="overlap"):
        magicbyte.ingest(root, root / "orders-0" / "table", format="delta")


# --- damage, and logs that do not fit ------------------------------------------------------------


def test_a_log_that_ends_before_the_table_is_refused(lake: Lake, root: Path) -> None:
    lake.ingest(root)
    shutil.rmtree(root / "orders-0")
    write_log(root, "orders-0", [(1000, b"k", b"v")] * 2)
    says = "orders-0: the log ends before offset 2; .*diverge at offset 0, the table ends before 5"
    with pytest.raises(DivergedError, match=says):
        lake.ingest(root)
    assert lake.compare(root)["orders", 0] == "differs"
    assert lake.ingest(root, choice=PartitionChoice(exclude=("orders",)))["commit"]["job"] is None


def test_a_gap_between_table_and_log_is_a_problem(lake: Lake, root: Path) -> None:
    lake.ingest(root)
    (root / "orders-0" / FIRST).unlink()
    builder = RecordsBuilder()
    builder.append(20, 1000, b"k", b"v")
    (root / "orders-0" / f"{20:020d}.log").write_bytes(builder.build())
    (problem,) = lake.ingest(root)["commit"]["problems"]
    assert (problem["kind"], problem["first_lost_offset"], problem["last_lost_offset"]) == (
        "data_loss",
        5,
        19,
    )
    assert "ends before offset 5, and the log begins at 20" in problem["message"]
    report = magicbyte.verify(root, table=lake.name, **lake.place)
    one = next(
        one for one in report["table"]["partitions"] if (one["topic"], one["partition"]) == ("orders", 0)
    )
    assert (one["result"], one["table_rows"], one["older_rows"]) == ("equal", 1, 5)


@pytest.mark.partitions("v2_none")
def test_damage_is_left_out_and_named(lake: Lake, source: Path) -> None:
    log = next((source / "v2_none").glob("*.log"))
    data = bytearray(log.read_bytes())
    data[len(data) // 2] ^= 1
    log.write_bytes(data)
    report = lake.ingest(source)
    assert report["total"]["quarantined_bytes"]
    assert [one["kind"] for one in report["commit"]["problems"]] == ["crc_mismatch"]
    assert lake.compare(source) == {("v2_none", 0): "equal"}


def test_any_timestamp(lake: Lake, tmp_path: Path) -> None:
    times = [-1, 0, -62_135_596_800_001, 253_402_300_800_000, 1 << 62, -(1 << 62), 253_402_300_799_999]
    write_times(tmp_path / "logs", times)
    lake.ingest(tmp_path / "logs", include_batch_metadata=True)
    assert lake.compare(tmp_path / "logs") == {("orders", 0): "equal"}


def test_iceberg_has_no_days_without_end(tmp_path: Path) -> None:
    write_log(tmp_path / "logs", "orders-0", [(1 << 52, b"k", b"v")])
    with pytest.raises(JobError, match="orders-0, offset 0: the year of the timestamp is not in 1 to 9999"):
        Lake.at("iceberg", tmp_path / "lake").ingest(tmp_path / "logs", partition_by="day")


def test_days_without_end(tmp_path: Path) -> None:
    times = [-1, -62_135_596_800_001, 253_402_300_800_000, 1 << 62, 253_402_300_799_999, -62_135_596_800_000]
    write_times(tmp_path / "logs", times)
    lake = Lake.at("delta", tmp_path / "lake")
    lake.ingest(tmp_path / "logs", partition_by="day", include_batch_metadata=True)
    assert lake.compare(tmp_path / "logs") == {("orders", 0): "equal"}
    days = pa.table(DeltaTable(lake.name).get_add_actions(flatten=True)).column("partition.day").to_pylist()
    assert sorted(map(str, days)) == ["0001-01-01", "9999-12-31", "None", "None"]


# --- verify --------------------------------------------------------------------------------------


def test_verify_a_plain_output(root: Path, tmp_path: Path, cli: Cli) -> None:
    out = tmp_path / "out"
    cli("ingest", "--value-as", "json", root, out, code=1)  # no value is JSON
    assert "equals the log: 17 rows compared, 3 of 3 partitions equal" in cli("verify", "--table", out, root)
    append(root, "orders-0", 5, 2)
    text = cli("verify", "--table", out, root, code=1)
    assert "orders-0: equal up to offset 5, and the log goes on to 7" in text
    path = next((out / "records").glob("*-events.*"))
    pa.parquet.write_table(pa.parquet.read_table(path).slice(1), path)
    text = cli("verify", "--table", out, root, code=3)
    assert "events-0: the first difference is at offset 0: 1 row only in the log" in text


def test_verify_finds_every_difference(lake: Lake, root: Path, tmp_path: Path, cli: Cli) -> None:
    lake.ingest(root)
    shutil.copytree(root, other := tmp_path / "other")
    shutil.rmtree(other / "orders-1")
    write_log(other, "new-0", [(1000, b"k", b"v")])
    write_log(tmp_path / "changed", "orders-0", [(1000 + at, b"k%d" % at, b"V%d" % at) for at in range(5)])
    (other / "orders-0" / FIRST).write_bytes((tmp_path / "changed" / "orders-0" / FIRST).read_bytes())
    assert lake.compare(other) == {
        ("events", 0): "equal",
        ("new", 0): "not_in_table",
        ("orders", 0): "differs",
        ("orders", 1): "not_in_log",
    }
    text = cli("verify", "--table", lake.name, *lake.options, other, code=3)
    assert "orders-0: the first difference is at offset 0: 5 rows not the same" in text
    assert "new-0: the log ends at offset 1, and the table has nothing of it" in text
    only = lake.compare(other, choice=PartitionChoice(topics=("events",)))
    assert only == {("events", 0): "equal"}


def test_verify_refuses_what_is_no_table(root: Path, tmp_path: Path, cli: Cli) -> None:
    cli("verify", "--table", tmp_path / "nothing", root, code=2)
    assert "neither a Delta table nor a complete output" in cli.error
    cli("verify", "--catalog", "c", root, code=2)
    cli("ingest", "--format", "iceberg", root, "a.b", code=2)
    cli("ingest", "--partition-by", "day", root, tmp_path / "out", code=2)
    place = ["--catalog", "c", "--catalog-property", "type=sql", "--catalog-property"]
    cli("verify", "--table", "a.b", *place, f"uri=sqlite:///{tmp_path}/c.db", root, code=2)
    assert "a.b is not in the catalog c" in cli.error
    cli("verify", "--table", "a.b", *place, "uri=sqlite:////nowhere/c.db", root, code=2)
    assert "the catalog c" in cli.error


# --- digests -------------------------------------------------------------------------------------


def test_a_digest_depends_on_every_field_and_not_on_the_order(kafka: Path) -> None:
    columns = ["topic", "partition", "offset", "timestamp", "timestampType", "key", "value", "headers"]
    table = pa.table(magicbyte.PartitionLog(kafka / "v2_headers").to_arrow(columns))
    ((topic, partition, rows, first, last, digest_of_all),) = _core.digest_records(table.combine_chunks())
    offsets = table.column("offset").to_pylist()
    assert (topic, partition, rows) == ("v2_headers", 0, table.num_rows)
    assert (first, last) == (offsets[0], offsets[-1])

    def digest_of(changed: pa.Table) -> int:
        return sum(one[5] for one in _core.digest_records(changed)) % (1 << 128)

    assert digest_of(table.sort_by([("offset", "descending")])) == digest_of_all
    assert digest_of(pa.concat_tables([table.slice(0, 1), table.slice(1)])) == digest_of_all
    assert digest_of(table.slice(1)) != digest_of_all
    assert digest_of(pa.concat_tables([table, table.slice(0, 1)])) != digest_of_all
    first_row = table.slice(0, 1).to_pylist()[0]
    for name, value in {
        "offset": 10**9,
        "timestamp": None,
        "timestampType": 1,
        "key": b"another",
        "value": None,
        "headers": [{"key": "h", "value": None}],
    }.items():
        changed = pa.Table.from_pylist([{**first_row, name: value}], table.schema)
        assert digest_of(changed) != digest_of(table.slice(0, 1)), name


def test_a_digest_refuses_other_columns(kafka: Path) -> None:
    with pytest.raises(ValueError, match="topic"):
        _core.digest_records(pa.table({"offset": [1]}))
    columns = ["topic", "partition", "offset", "timestamp", "timestampType", "key", "value", "headers"]
    table = pa.table(magicbyte.PartitionLog(kafka / "v2_none").to_arrow(columns))
    for name, column in (("offset", pa.nulls(table.num_rows, pa.int64())), ("partition", table["key"])):
        with pytest.raises(ValueError, match=name):
            _core.digest_records(table.set_column(table.schema.get_field_index(name), name, column))


# --- sizes of files ------------------------------------------------------------------------------


def write_segments(root: Path, count: int, size: int) -> None:
    """Writes the partition orders-0 in segments of one record each, which no codec makes smaller."""
    (root / "orders-0").mkdir(parents=True)
    for offset in range(count):
        builder = RecordsBuilder()
        builder.append(offset, 1000, b"k", random.randbytes(size))
        (root / "orders-0" / f"{offset:020d}.log").write_bytes(builder.build())


@pytest.mark.parametrize(("count", "files"), [(1, 1), (10, 1), (14, 1), (17, 2), (24, 2), (25, 3), (40, 4)])
def test_files_have_the_size_that_is_wanted(
    lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, count: int, files: int
) -> None:
    # What is in memory counts once it is written.
    monkeypatch.setattr("magicbyte.jobs.publish.parquet._ROW_GROUP_BYTES", 1)
    monkeypatch.setattr("magicbyte.jobs.publish.parquet._COLUMN_CHUNK_BYTES", 0)
    write_segments(tmp_path / "logs", count, 10_000)
    report = lake.ingest(tmp_path / "logs", target_file_size=100_000)
    assert report["tables"]["records"]["files"] == len(lake.files()) == files
    sizes = sorted(path.stat().st_size for path in lake.files())
    assert sizes[-1] < 170_000
    assert count < 10 or sizes[0] > 50_000
    assert lake.compare(tmp_path / "logs") == {("orders", 0): "equal"}


def test_a_task_reads_as_much_as_a_file_may_need() -> None:
    assert target_bytes(64 << 30, 8) == 128 << 20
    assert target_bytes(64 << 30, 8, most=8 * IngestOptions().file_size) == 2 << 30
    assert target_bytes(1 << 30, 8, most=8 * IngestOptions().file_size) == target_bytes(1 << 30, 8), (
        "as many tasks as ever"
    )


def test_sizes_of_plain_files_are_not_chosen(root: Path, tmp_path: Path, cli: Cli) -> None:
    cli("ingest", "--target-file-size", "64MiB", root, tmp_path / "out", code=2)
    assert "--fail-on-missing and --follow need --format delta or iceberg" in cli.error
    cli("ingest", "--target-file-size", "64MiB", "--format", "delta", root, tmp_path / "out")
    cli("ingest", "--target-file-size", "0", "--format", "delta", root, tmp_path / "out", code=2)
    with pytest.raises(ValueError, match="target_file_size: 0 is less than 1 bytes"):
        magicbyte.ingest(root, tmp_path / "out", format="delta", target_file_size=0)
