"""Plain outputs with typed keys and values: `verify` proves that they equal the log."""

from __future__ import annotations

import shutil
from decimal import Decimal
from pathlib import Path
from typing import Any

import magicbyte
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from conftest import KAFKA, Cli
from magicbyte.jobs.run.engines import Engine, LocalEngine
from magicbyte.options.typed import TypedColumns
from test_lake_typed import CHANGES, FIVE, plain, values
from typed_logs import Schema, TypedLog, logical, mapping, record


@pytest.fixture
def log(tmp_path: Path) -> TypedLog:
    return TypedLog(tmp_path)


def ingest(log: TypedLog, out: Path, *, engine: Engine | None = None, **options: Any) -> pa.Table:
    """The rows that were written."""
    engine = engine or LocalEngine(2)
    magicbyte.ingest(log.root, out, **{"typed": log.typed, "digest": True, "engine": engine, **options})
    return pq.read_table(out / "records")


def compare(root: Path, out: Path) -> set[str]:
    report = magicbyte.verify(root, table=str(out), engine=LocalEngine(2))
    assert report["table"] is not None
    return {one["result"] for one in report["table"]["partitions"]}


def fill(log: TypedLog) -> None:
    for version, schema in enumerate(FIVE):
        log.append(schema, values(version), segment=version == 2)


@pytest.mark.parametrize(
    ("options", "rows"),
    [({}, 30), ({"start_offset": 4}, 22), ({"end_offset": 7}, 14), ({"where": "offset % 2 = 0"}, 16)],
    ids=str,
)
def test_schemas_and_ranges(log: TypedLog, tmp_path: Path, options: dict[str, Any], rows: int) -> None:
    fill(log)
    assert ingest(log, tmp_path / "out", **options).num_rows == rows
    assert compare(log.root, tmp_path / "out") == {"equal"}


@pytest.mark.spark
def test_tasks_of_spark(log: TypedLog, tmp_path: Path, spark: Any) -> None:
    from magicbyte.jobs.run.engines import SparkEngine

    fill(log)
    ingest(log, tmp_path / "out", engine=SparkEngine(spark))
    report = magicbyte.verify(log.root, table=str(tmp_path / "out"), engine=SparkEngine(spark))
    assert report["table"]["equal"]


def test_types_that_only_plain_outputs_have(log: TypedLog, tmp_path: Path) -> None:
    schema: Schema = record(
        "wide",
        nothing=("null", None),
        price=(logical("bytes", "decimal", precision=60, scale=3), None),
        rates=(mapping(["null", "double"]), None),
    )
    log.append(
        schema,
        [
            {"nothing": None, "price": Decimal("1234567890123456789012345678901234567890.125"), "rates": {}},
            {"nothing": None, "price": Decimal("-0.001"), "rates": {"a": None, "b": float("nan")}},
        ],
    )
    found = ingest(log, tmp_path / "out").column("value").to_pylist()
    assert [row["price"] for row in found[:2]] == ["1234567890123456789012345678901234567890.125", "-0.001"]
    assert compare(log.root, tmp_path / "out") == {"equal"}


def test_keys_and_values_of_a_real_serializer(tmp_path: Path) -> None:
    shutil.copytree(KAFKA / "sr_avro", tmp_path / "logs" / "orders-0")
    typed = TypedColumns(schema_registry=str(KAFKA / "schemas_topic"), key_format="avro", value_format="avro")
    magicbyte.ingest(tmp_path / "logs", tmp_path / "out", typed=typed, digest=True)
    assert compare(tmp_path / "logs", tmp_path / "out") == {"equal"}


def test_without_digests_there_is_nothing_to_compare(log: TypedLog, tmp_path: Path, cli: Cli) -> None:
    log.append(FIVE[0], values(0))
    typed = ("--value-format", "avro", "--schema-registry", log.registry)
    cli("ingest", *typed, log.root, tmp_path / "plain")
    assert "_digest" not in pq.read_schema(next((tmp_path / "plain" / "records").iterdir())).names
    cli("verify", log.root, "--table", tmp_path / "plain", code=2)
    assert "without the column _digest, by which they are compared: ingest them with --digest" in cli.error
    cli("ingest", "--digest", *typed, log.root, tmp_path / "out")
    cli("verify", log.root, "--table", tmp_path / "out")
    # Without typed columns, the bytes are there.
    cli("ingest", "--digest", log.root, tmp_path / "bytes")
    assert "_digest" not in pq.read_schema(next((tmp_path / "bytes" / "records").iterdir())).names
    cli("verify", log.root, "--table", tmp_path / "bytes")


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
def test_verify_finds_each_change(log: TypedLog, tmp_path: Path, change: Any) -> None:
    log.append(FIVE[0], values(0))
    log.append(FIVE[1], values(1))
    rows = ingest(log, tmp_path / "out")
    first, *others = (tmp_path / "out" / "records").iterdir()
    for file in others:
        file.unlink()
    pq.write_table(change(rows.sort_by("offset")), first)
    assert "differs" in compare(log.root, tmp_path / "out")


def test_a_log_that_goes_on_and_another_one(log: TypedLog, tmp_path: Path, cli: Cli) -> None:
    log.append(FIVE[0], values(0))
    rows = ingest(log, tmp_path / "out")
    assert [plain(one) for one in rows.column("value").to_pylist()][:3] == [plain(one) for one in values(0)]
    cli("verify", log.root, "--table", tmp_path / "out")
    log.append(FIVE[1], values(1))
    assert compare(log.root, tmp_path / "out") == {"behind"}
    other = TypedLog(tmp_path / "other")
    # The same columns, written with another schema: the ids differ.
    other.append(FIVE[1], [{**one, "price": 1.5} for one in values(0)])
    assert compare(other.root, tmp_path / "out") == {"differs"}
