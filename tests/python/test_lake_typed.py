"""Tables with typed keys and values: they equal the log, and their columns grow with the schemas."""

from __future__ import annotations

import json
import random
import shutil
import signal
import struct
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import magicbyte
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from conftest import KAFKA, Cli
from deltalake import DeltaTable, write_deltalake
from lakes import FORMATS, Lake
from magicbyte import RecordsBuilder
from magicbyte.errors import JobError, RefusedError
from magicbyte.lake.growth import grown, plain_schema
from magicbyte.options.typed import TypedColumns
from test_lake_crashes import Interrupted, only_files_of_commits, outputs
from test_lake_crashes import start as start_job
from test_lake_stream import Looks, commits, nothing
from test_lake_stream import command as stream_command
from test_lake_stream import start as start_stream
from typed_logs import TypedLog, array, logical, mapping, record
from writers import ROUNDS

FIVE = [
    record("o", id=("int", None), name=("string", None)),
    record("o", id=("int", None), name=("string", None), price=("float", 1.5)),
    record(
        "o",
        id=("int", None),
        price=("float", 1.5),
        address=(["null", record("a", city=("string", None))], None),
        tags=(array(record("t", t=("string", None))), []),
    ),
    record(
        "o",
        id=("int", None),
        address=(["null", record("a", zip=("int", 7), city=("string", None))], None),
        tags=(array(record("t", u=("long", 3), t=("string", None))), []),
        more=(mapping(record("m", x=("int", None))), {}),
    ),
    record(
        "o",
        more=(mapping(record("m", x=("int", None), y=(array("int"), []))), {}),
        id=("int", None),
        at=(logical("long", "local-timestamp-micros"), 0),
    ),
]
"""Each has fields that the one before it lacks, at any depth; some lack fields of it."""
COLUMNS = {
    "id": pa.int32(),
    "name": pa.string(),
    "price": pa.float32(),
    "address": pa.struct([("city", pa.string()), ("zip", pa.int32())]),
    "tags": pa.list_(pa.struct([("t", pa.string()), ("u", pa.int64())])),
    "more": pa.map_(pa.string(), pa.struct([("x", pa.int32()), ("y", pa.list_(pa.int32()))])),
    "at": pa.timestamp("us"),
}
"""What becomes of them."""


def values(version: int, count: int = 3) -> list[dict[str, Any]]:
    """Values with a schema of `FIVE`."""
    one: list[dict[str, Any]] = [
        {"name": "ü"},
        {"name": "b", "price": 2.5},
        {"price": 0.5, "address": {"city": "X"}, "tags": [{"t": "p"}, {"t": "q"}]},
        {"address": None, "tags": [{"u": 5, "t": "z"}], "more": {"k": {"x": 1}}},
        {"more": {"k": {"x": 1, "y": [1, 2]}, "l": {"x": 2, "y": []}}, "at": 1_000_001},
    ]
    return [{"id": 10 * version + at, **one[version]} for at in range(count)]


@pytest.fixture(params=FORMATS)
def lake(request: pytest.FixtureRequest, tmp_path: Path) -> Lake:
    return Lake.at(request.param, tmp_path / "lake")


@pytest.fixture
def log(tmp_path: Path) -> TypedLog:
    return TypedLog(tmp_path)


def ingest(lake: Lake, log: TypedLog, **options: Any) -> Any:
    return lake.ingest(log.root, **{"typed": log.typed, **options})


def plain(value: Any) -> Any:
    """A value as Python has it that wrote it, without what is null or empty."""
    if isinstance(value, dict):
        found = {name: plain(one) for name, one in value.items()}
        return {name: one for name, one in found.items() if one not in (None, [], {})}
    if isinstance(value, list):
        pairs = bool(value) and all(isinstance(one, tuple) for one in value)
        return plain(dict(value)) if pairs else [plain(one) for one in value]
    return value if not hasattr(value, "timestamp") else round(value.replace(tzinfo=UTC).timestamp() * 1e6)


def check_rows(lake: Lake, log: TypedLog, *, at_once: bool = True) -> None:
    """Each value is in the table once; if it was added `at_once`, with all the fields that it had."""
    rows = lake.read().sort_by([("partition", "ascending"), ("offset", "ascending")])
    found = [plain(row) for row in rows.select(["partition", "offset", "value"]).to_pylist()]
    expected = sorted(map(plain, log.rows), key=lambda row: (row["partition"], row["offset"]))
    if not at_once:
        for row in (*found, *expected):
            row["value"] = row["value"]["id"]
    assert found == expected
    assert set(lake.compare(log.root).values()) == {"equal"}


# --- one table with one schema -------------------------------------------------------------------


def test_a_schema_that_changed_five_times(lake: Lake, log: TypedLog) -> None:
    for version, schema in enumerate(FIVE):
        log.append(schema, values(version))
        report = ingest(lake, log)
        assert (report["balanced"], report["total"]["invalid_values"]) == (True, 0)
        check_rows(lake, log)
    assert lake.versions() == 5
    (typed,) = plain_schema([lake.read().schema.field("value")])
    assert {field.name: field.type for field in typed.type} == COLUMNS
    files = lake.files()
    assert ingest(lake, log)["commit"]["job"] is None
    assert lake.files() == files
    # A new table of the same log has the latest schema alone.
    other = Lake.at(lake.format, lake.root.with_name("other"))
    ingest(other, log)
    assert other.read().schema.field("value").type.num_fields == 3
    assert set(other.compare(log.root).values()) == {"equal"}


def test_other_readers(lake: Lake, log: TypedLog) -> None:
    for version in (0, 2, 3):
        log.append(FIVE[version], values(version))
        ingest(lake, log)
    scan = pl.scan_delta(lake.name) if lake.format == "delta" else pl.scan_iceberg(lake.iceberg())
    frame = scan.sort("partition", "offset").collect()
    assert [one["id"] for one in frame["value"].to_list()] == [0, 1, 2, 20, 21, 22, 30, 31, 32] * 2
    assert frame["value"].struct.field("name").null_count() == 12
    with duckdb.connect() as database:
        database.register("rows", lake.read())
        cities = (
            "SELECT count(value.address.city), count(value.tags[1].u), count(value.more['k'].x) FROM rows"
        )
        assert database.sql(cities).fetchall() == [(6, 6, 6)]
        # As plain files, too: each has all columns that the table had then.
        files = database.read_parquet([str(path) for path in lake.files()], union_by_name=True)
        assert files.aggregate('count(*), count(DISTINCT "offset")').fetchall() == [(18, 9)]


@pytest.mark.parametrize(
    ("options", "rows"),
    [
        ({"partition_by": "day"}, 30),
        ({"where": '"offset" % 2 = 0'}, 16),
        ({"isolation_level": "read_committed", "key_as": "string", "include_batch_metadata": True}, 30),
        ({"start_offset": 2, "end_offset": 14}, 24),
    ],
)
def test_with_other_options(lake: Lake, log: TypedLog, options: dict[str, Any], rows: int) -> None:
    for version, schema in enumerate(FIVE):
        log.append(schema, values(version))
        ingest(lake, log, **options)
    assert lake.read().num_rows == rows
    assert set(lake.compare(log.root).values()) == {"equal"}


@pytest.mark.spark
def test_tasks_of_spark(lake: Lake, log: TypedLog, spark: Any) -> None:
    from magicbyte.jobs.run.engines import SparkEngine

    for version in (0, 3):
        log.append(FIVE[version], values(version))
        ingest(lake, log, engine=SparkEngine(spark))
    check_rows(lake, log)
    frame = spark.read.option("mergeSchema", "true").parquet(*(str(path) for path in lake.files()))
    assert frame.select("value.id", "value.tags.u").count() == 12
    report = magicbyte.verify(log.root, table=lake.name, engine=SparkEngine(spark), **lake.place)
    assert report["table"]["equal"]


def test_delta_says_how_it_grew_in_the_commit_that_adds_rows(tmp_path: Path, log: TypedLog) -> None:
    lake = Lake.at("delta", tmp_path / "lake")
    for version in (0, 1):
        log.append(FIVE[version], values(version))
        ingest(lake, log)
    path = Path(lake.name, "_delta_log", f"{2:020d}.json")
    actions = [json.loads(line) for line in path.read_text().splitlines()]
    assert {name for one in actions for name in one} == {"commitInfo", "metaData", "add", "txn"}
    assert '"price"' in next(one["metaData"]["schemaString"] for one in actions if "metaData" in one)
    assert DeltaTable(lake.name).metadata().partition_columns == ["topic"]


def test_iceberg_keeps_ids_and_widens_numbers(tmp_path: Path, log: TypedLog) -> None:
    lake = Lake.at("iceberg", tmp_path / "lake")
    log.append(FIVE[3], values(3))
    ingest(lake, log)
    before = {
        name: lake.iceberg().schema().find_field(name).field_id
        for name in ("value.id", "value.tags.element.u")
    }
    wide = record(
        "o",
        id=("long", None),
        tags=(array(record("t", t=("string", None), u=("long", 3))), []),
        more=(mapping(record("m", x=("long", None))), {}),
        price=("double", None),
    )
    log.append(wide, [{"id": 1 << 40, "more": {"k": {"x": 1 << 50}}, "price": 1e300}])
    ingest(lake, log)
    check_rows(lake, log)
    schema = lake.iceberg().schema()
    assert {name: schema.find_field(name).field_id for name in before} == before
    assert str(schema.find_type("value.more.value.x")) == "long"
    assert '"price"' in lake.iceberg().properties["schema.name-mapping.default"]
    for path in lake.files():
        for name in pq.read_schema(path).field("value").type:
            assert int(name.metadata[b"PARQUET:field_id"]) == schema.find_field(f"value.{name.name}").field_id
    # Where a narrower number comes back, the table keeps the wide one.
    narrow = record("o", id=("int", None), price=("float", None))
    log.append(narrow, [{"id": 3, "price": 0.5}])
    ingest(lake, log)
    check_rows(lake, log)


# --- what does not fit ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"name": ("int", 0)}, r"the column value\.name with another type: string, not int32"),
        ({"tags": (array("string"), [])}, r"the column value\.tags\.item with another type"),
        ({"address": ("string", "")}, r"the column value\.address with another type: struct"),
    ],
)
def test_changes_that_are_refused(
    lake: Lake, log: TypedLog, change: dict[str, Any], says: str, cli: Cli
) -> None:
    first = record(
        "o",
        name=("string", ""),
        address=(["null", record("a", city=("string", None))], None),
        tags=(array(record("t", t=("string", None))), []),
    )
    log.append(first, [{}])
    ingest(lake, log)
    before = lake.files(), lake.read().schema
    log.append(record("o", **change), [{}])
    with pytest.raises(RefusedError, match=says):
        ingest(lake, log)
    options = ["--value-format", "avro", "--schema-registry", str(log.registry)]
    cli("ingest", "--format", lake.format, *lake.options, *options, log.root, lake.name, code=2)
    assert (lake.files(), lake.read().schema) == before
    assert only_files_of_commits(lake)


def test_what_has_no_type_of_its_own(lake: Lake, log: TypedLog) -> None:
    """Decimals of more than 38 digits, and records without fields."""
    log.append(
        record(
            "o",
            n=(logical("bytes", "decimal", precision=50, scale=1), None),
            e=(["null", record("none")], None),
        ),
        [{"n": Decimal("-12.3"), "e": {}}],
    )
    ingest(lake, log)
    expected = {"n": "-12.3", "e": {"__dummy_field_in_empty_struct": None}}
    assert lake.read().column("value").to_pylist() == [expected] * 2


def test_delta_has_no_wider_numbers(tmp_path: Path, log: TypedLog) -> None:
    lake = Lake.at("delta", tmp_path / "lake")
    log.append(FIVE[0], values(0))
    ingest(lake, log)
    log.append(record("o", id=("long", None)), [{"id": 1}])
    with pytest.raises(
        RefusedError, match=r"value\.id with another type: int32, not int64, and .* cannot make it wider"
    ):
        ingest(lake, log)
    assert lake.read().num_rows == 6


def test_delta_has_no_names_that_differ_in_case(tmp_path: Path, log: TypedLog) -> None:
    log.append(record("o", id=("int", 0), ID=("int", 0)), [{}])
    with pytest.raises(RefusedError, match=r"cannot have these columns.*('ID'|'id')"):
        ingest(Lake.at("delta", tmp_path / "lake"), log)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"value_format": None, "schema_registry": None}, "value_format avro, not unset"),
        ({"value_format": "json"}, "value_format avro, not json"),
        ({"key_format": "avro"}, "key_format unset, not avro"),
        ({"value_format": "protobuf", "messages": ("a.B",)}, "value_format avro, not protobuf"),
        ({"value_framing": "confluent"}, "value_framing auto, not confluent"),
    ],
)
def test_every_job_has_the_same_formats(lake: Lake, log: TypedLog, change: dict[str, Any], says: str) -> None:
    log.append(FIVE[0], values(0))
    ingest(lake, log)
    typed = change.get(
        "typed", TypedColumns(**{"schema_registry": str(log.registry), "value_format": "avro", **change})
    )
    with pytest.raises(RefusedError, match=says):
        ingest(lake, log, typed=typed)


def test_a_table_from_before_there_were_formats(lake: Lake, log: TypedLog) -> None:
    log.append(FIVE[0], values(0))
    lake.ingest(log.root)
    with pytest.raises(RefusedError, match="value_format unset, not avro"):
        ingest(lake, log)


def test_what_cannot_be_decoded_is_in_the_table(lake: Lake, log: TypedLog) -> None:
    log.append(FIVE[0], values(0))
    builder = RecordsBuilder()
    builder.append(3, 1000, b"k", None)
    builder.append(4, 1000, b"k", b"\0\0\0\0\x63??")
    builder.append(5, 1000, None, b"?", [("h", None), ("h", b"")])
    with open(log.root / "orders-0" / f"{0:020d}.log", "ab") as file:
        file.write(builder.build())
    report = ingest(lake, log)
    assert (report["total"]["invalid_values"], report["total"]["unframed_values"]) == (2, 1)
    rows = lake.read().filter(pc.field("offset") >= 3).sort_by("offset").to_pylist()
    assert [one["invalidValue"] for one in rows] == [None, b"\0\0\0\0\x63??", b"?"]
    assert [bool(one["_error"]) for one in rows] == [False, True, True]
    assert set(lake.compare(log.root).values()) == {"equal"}


def test_a_stream_says_what_cannot_be_decoded(lake: Lake, log: TypedLog) -> None:
    log.append(FIVE[0], values(0))
    log.registry.write_text(json.dumps({"orders-value": "1.avsc"}))
    options = ["--value-format", "avro", "--schema-registry", str(log.registry)]
    arguments = map(str, stream_command(lake, log.root, *options))
    process = subprocess.Popen(
        [sys.executable, "-m", "magicbyte", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert process.stdout is not None
    said = [process.stdout.readline() for _ in range(2)]
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=60)
    assert "6 rows of 2 partitions added" in said[0]
    assert "6 values are null: not avro of a known schema; the column invalidValue has their bytes" in said[1]
    assert process.returncode == 1


def test_keys_and_values_of_a_real_serializer(lake: Lake, tmp_path: Path) -> None:
    shutil.copytree(KAFKA / "sr_avro", tmp_path / "logs" / "orders-0")
    typed = TypedColumns(schema_registry=str(KAFKA / "schemas_topic"), key_format="avro", value_format="avro")
    lake.ingest(tmp_path / "logs", typed=typed, include_batch_metadata=True)
    assert lake.read().column("_key_error").null_count == 0, "the keys of this topic are text without framing"
    assert set(lake.compare(tmp_path / "logs").values()) == {"equal"}


PROTO = """syntax = "proto3"; package shop;
message Other {{ int32 x = 1; }}
message Cart {{ int32 id = 1; {more} }}"""


def test_protobuf_values(lake: Lake, log: TypedLog, tmp_path: Path) -> None:
    path = tmp_path / "protos"
    path.mkdir()
    typed = TypedColumns(schema_registry=str(path), value_format="protobuf", messages=("shop.Cart",))
    for version, more in enumerate(["", "optional string name = 2; repeated Other others = 3;"]):
        (path / "orders-value.proto").write_text(PROTO.format(more=more))
        shutil.copy(path / "orders-value.proto", path / f"{version + 1}.proto")
        payload = b"\x08\x05" + (b"\x12\x01a\x1a\x02\x08\x07" if version else b"")
        builder = RecordsBuilder()
        # The message is the second one of the file.
        builder.append(version, 1000, b"k", b"\0" + struct.pack(">I", version + 1) + b"\x02\x02" + payload)
        with open(log.root / "orders-0" / f"{0:020d}.log", "ab") as file:
            file.write(builder.build())
        report = lake.ingest(log.root, typed=typed)
        assert report["total"]["invalid_values"] == 0
    found = lake.read().sort_by("offset").column("value").to_pylist()
    assert [one["id"] for one in found] == [5, 5]
    assert (found[0]["name"], found[1]["name"], found[1]["others"]) == (None, "a", [{"x": 7}])
    assert set(lake.compare(log.root).values()) == {"equal"}
    with pytest.raises(RefusedError, match=r"messages shop\.Cart, not unset"):
        lake.ingest(log.root, typed=replace(typed, messages=()))


def test_json_values(lake: Lake, log: TypedLog, tmp_path: Path) -> None:
    (tmp_path / "schemas").mkdir()
    typed = TypedColumns(schema_registry=str(tmp_path / "schemas"), value_format="json")
    properties: dict[str, Any] = {}
    for offset, name in enumerate(["a", "b c", "d.e"]):
        properties[name] = {"type": "object", "properties": {"x": {"type": "integer"}}}
        schema = json.dumps({"type": "object", "properties": properties})
        (tmp_path / "schemas" / "orders-value.json").write_text(schema)
        builder = RecordsBuilder()
        builder.append(offset, 1000, b"k", json.dumps({name: {"x": offset}}).encode())
        with open(log.root / "orders-0" / f"{0:020d}.log", "ab") as file:
            file.write(builder.build())
        lake.ingest(log.root, typed=typed)
    found = lake.read().sort_by("offset").column("value").to_pylist()
    assert [plain(one) for one in found] == [{"a": {"x": 0}}, {"b c": {"x": 1}}, {"d.e": {"x": 2}}]
    assert set(lake.compare(log.root).values()) == {"equal"}


# --- verify --------------------------------------------------------------------------------------


def rewritten(table: pa.Table, path: str, value: Any) -> pa.Table:
    """The table with another value in the last row."""
    rows = table.to_pylist()
    column, _, field = path.partition(".")
    if field:
        rows[-1][column] = {**(rows[-1][column] or {}), field: value}
    else:
        rows[-1][column] = value
    return pa.Table.from_pylist(rows, table.schema)


CHANGES: dict[str, Callable[[pa.Table], pa.Table]] = {
    "a field": lambda table: rewritten(table, "value.id", 7),
    "a field that was null": lambda table: rewritten(table, "value.name", "x"),
    "a field that is null": lambda table: rewritten(table, "value.price", None),
    "a value": lambda table: rewritten(table, "value", None),
    "a key": lambda table: rewritten(table, "key", b"x"),
    "an id": lambda table: rewritten(table, "_schema_id", 9),
    "an error": lambda table: rewritten(table, "_error", "x"),
    "a digest": lambda table: rewritten(table, "_digest", bytes(16)),
    "a row less": lambda table: table.slice(1),
    "a row twice": lambda table: pa.concat_tables([table, table.slice(0, 1)]),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
def test_verify_finds_each_change_of_the_table(tmp_path: Path, log: TypedLog, change: Any) -> None:
    lake = Lake.at("delta", tmp_path / "lake")
    log.append(FIVE[0], values(0))
    log.append(FIVE[1], values(1))
    ingest(lake, log)
    write_deltalake(lake.name, change(lake.read().sort_by("offset")), mode="overwrite")
    assert "differs" in lake.compare(log.root).values()


def test_verify_finds_another_log(lake: Lake, log: TypedLog, tmp_path: Path) -> None:
    log.append(FIVE[0], values(0))
    ingest(lake, log)
    other = TypedLog(tmp_path / "other")
    # The same columns, written with another schema: the ids differ.
    other.append(FIVE[1], [{**one, "price": 1.5} for one in values(0)])
    assert set(lake.compare(other.root).values()) == {"differs"}


def test_rows_before_the_log_are_not_compared(lake: Lake, log: TypedLog, tmp_path: Path) -> None:
    for version in range(3):
        log.append(FIVE[version], values(version), segment=True)
    ingest(lake, log)
    copy = shutil.copytree(log.root, tmp_path / "copy")
    for partition in ("orders-0", "orders-1"):
        (log.root / partition / f"{0:020d}.log").unlink()
    report = magicbyte.verify(log.root, table=lake.name, **lake.place)
    found = {(one["result"], one["start_offset"], one["older_rows"]) for one in report["table"]["partitions"]}
    assert found == {("equal", 3, 3)}
    # A copy whose segments begin elsewhere: what shares a digest with older rows is not compared either.
    path = copy / "orders-0" / f"{0:020d}.log"
    builder = RecordsBuilder()
    records = [one for batch in magicbyte.read_batches(path.read_bytes()) for one in batch]
    for one in records[1:]:
        builder.append(one.offset, one.timestamp, one.key, one.value)
    path.with_name(f"{1:020d}.log").write_bytes(builder.build())
    path.unlink()
    report = magicbyte.verify(copy, table=lake.name, **lake.place)
    found = {(one["result"], one["start_offset"], one["older_rows"]) for one in report["table"]["partitions"]}
    assert found == {("equal", 3, 3), ("equal", 0, 0)}


def test_tables_that_others_have_rewritten(tmp_path: Path, log: TypedLog) -> None:
    lake = Lake.at("delta", tmp_path / "lake")
    for version in range(3):
        log.append(FIVE[version], values(version))
        ingest(lake, log)
    table = DeltaTable(lake.name)
    assert table.optimize.compact()["numFilesRemoved"] == 3
    table.create_checkpoint()
    table.vacuum(retention_hours=0, dry_run=False, enforce_retention_duration=False)
    log.append(FIVE[3], values(3))
    ingest(lake, log)
    check_rows(lake, log)


# --- killed, and at the same time ----------------------------------------------------------------


def test_a_log_and_its_schema_grow_ten_times(lake: Lake, log: TypedLog, tmp_path: Path) -> None:
    dice = random.Random(seed := random.randrange(1 << 30))
    whole = 0.0
    for number in range(10 * ROUNDS):
        log.append(FIVE[min(4, number // 2)], values(min(4, number // 2), dice.randrange(1, 50)))
        started = time.monotonic()
        options = ["--value-format", "avro", "--schema-registry", str(log.registry)]
        job = start_job(lake, log.root, options=options)
        if number:
            time.sleep(dice.uniform(0, 1.1) * whole)
            job.kill()
        job.join()
        whole = max(whole, time.monotonic() - started)
        assert job.exitcode in (0, -signal.SIGKILL), (seed, outputs(tmp_path))
    ingest(lake, log, include_batch_metadata=True)
    check_rows(lake, log, at_once=False)
    assert only_files_of_commits(lake), seed


def test_of_two_jobs_that_change_the_schema_one_wins(lake: Lake, log: TypedLog, tmp_path: Path) -> None:
    log.append(FIVE[0], values(0))
    ingest(lake, log)
    log.append(FIVE[1], values(1))
    with pytest.raises(JobError, match=r"another job has changed orders-\d meanwhile"):
        ingest(lake, log, engine=Interrupted(lambda: ingest(lake, log)))
    check_rows(lake, log)
    assert only_files_of_commits(lake)


def test_jobs_for_different_topics_that_change_the_schema(lake: Lake, log: TypedLog, tmp_path: Path) -> None:
    other = TypedLog(tmp_path / "other", topic="events")
    for one in (log, other):
        one.append(FIVE[0], values(0))
        ingest(lake, one)
    log.append(FIVE[1], values(1))
    other.append(record("o", id=("int", None), size=("long", None)), [{"id": 1, "size": 2}])
    job = Interrupted(lambda: ingest(lake, other))
    if lake.format == "delta":
        ingest(lake, log, engine=job)
    else:
        # The fields of its files have IDs that the other job has taken.
        with pytest.raises(JobError, match="another job has changed the schema meanwhile"):
            ingest(lake, log, engine=job)
        ingest(lake, log)
    assert [field.name for field in lake.read().schema.field("value").type] == ["id", "name", "size", "price"]
    assert lake.compare(log.root)["orders", 0] == lake.compare(other.root)["events", 0] == "equal"
    assert only_files_of_commits(lake)


def test_a_stream_sees_new_schemas(lake: Lake, log: TypedLog) -> None:
    log.append(FIVE[0], values(0))
    steps = [lambda version=version: log.append(FIVE[version], values(version)) for version in range(1, 5)]
    engine = Looks(nothing, *steps, nothing)
    found = commits(lake, log.root, engine, typed=log.typed)
    assert [one["tables"]["records"]["rows"] for one in found] == [6] * 5
    check_rows(lake, log)


def test_a_process_that_follows_is_killed(lake: Lake, log: TypedLog) -> None:
    dice = random.Random(seed := random.randrange(1 << 30))
    options = ["--value-format", "avro", "--schema-registry", str(log.registry)]
    log.append(FIVE[0], values(0))
    for version in range(1, 5):
        process = start_stream(lake, log.root, *options)
        time.sleep(dice.uniform(0.1, 1.5))
        log.append(FIVE[version], values(version))
        time.sleep(dice.uniform(0, 0.5))
        process.kill()
        process.join()
    commits(lake, log.root, Looks(nothing), typed=log.typed, include_batch_metadata=True)
    check_rows(lake, log, at_once=False)
    assert only_files_of_commits(lake), seed


# --- growth --------------------------------------------------------------------------------------


def test_growth_keeps_what_is_there() -> None:
    there = pa.schema(
        [("value", pa.struct([("a", pa.int32()), ("b", pa.float64()), ("d", pa.decimal128(5, 2))]))]
    )
    wanted = pa.schema(
        [("value", pa.struct([("c", pa.string()), ("b", pa.float32()), ("d", pa.decimal128(9, 2))]))]
    )
    found = grown("t", there, wanted, widens=True).field("value").type
    assert list(found) == [
        pa.field("a", pa.int32()),
        pa.field("b", pa.float64()),
        pa.field("d", pa.decimal128(9, 2)),
        pa.field("c", pa.string()),
    ]
    with pytest.raises(RefusedError, match=r"t has the column value\.d with another type"):
        grown("t", there, wanted, widens=False)
    other = pa.schema([("value", pa.struct([("d", pa.decimal128(9, 3))]))])
    with pytest.raises(RefusedError, match=r"value\.d"):
        grown("t", there, other, widens=True)
