"""Typed keys and values on Spark: types of `from_avro` and `from_protobuf`, and what becomes of bad rows."""

from __future__ import annotations

import datetime
import json
import shutil
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import magicbyte
import pytest
from conftest import KAFKA
from magicbyte import RecordsBuilder
from magicbyte.jobs.run.engines import SparkEngine
from magicbyte.options.typed import TypedColumns
from magicbyte.spark.given import OptionError
from magicbyte.spark.options import parse_table
from proto_files import file_of, schema_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

AVRO = {
    "type": "record",
    "name": "R",
    "fields": [
        {"name": "at", "type": {"type": "long", "logicalType": "local-timestamp-millis"}},
        {"name": "utc", "type": {"type": "long", "logicalType": "timestamp-micros"}},
        {"name": "day", "type": {"type": "int", "logicalType": "date"}},
        {"name": "cost", "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}},
        {"name": "tags", "type": {"type": "map", "values": ["null", "long"]}},
        {"name": "either", "type": ["null", "int", "string"]},
        {"name": "kind", "type": {"type": "enum", "name": "K", "symbols": ["A", "B"]}},
        {"name": "id", "type": {"type": "fixed", "name": "F", "size": 2}},
    ],
}
PROTO = file_of("""
    name: "p.proto" syntax: "proto3" dependency: "google/protobuf/duration.proto"
    message_type {
      name: "P"
      field { name: "u" number: 1 type: TYPE_UINT64 label: LABEL_OPTIONAL }
      field { name: "s" number: 2 type: TYPE_STRING label: LABEL_REPEATED }
      field { name: "m" number: 3 type: TYPE_MESSAGE type_name: ".P.MEntry" label: LABEL_REPEATED }
      field {
        name: "d" number: 4 type: TYPE_MESSAGE type_name: ".google.protobuf.Duration" label: LABEL_OPTIONAL
      }
      nested_type {
        name: "MEntry" options { map_entry: true }
        field { name: "key" number: 1 type: TYPE_STRING label: LABEL_OPTIONAL }
        field { name: "value" number: 2 type: TYPE_INT32 label: LABEL_OPTIONAL }
      }
    }
""")


def framed(schema_id: int, payload: bytes) -> bytes:
    return b"\0" + schema_id.to_bytes(4, "big") + payload


def read(spark: SparkSession, path: Path, **options: Any) -> DataFrame:
    return spark.read.format("magicbyte").options(**options).load(str(path))


def write(directory: Path, values: list[bytes | None]) -> Path:
    builder = RecordsBuilder()
    for offset, value in enumerate(values):
        builder.append(offset, 0, b"k", value)
    directory.mkdir(parents=True)
    (directory / f"{0:020}.log").write_bytes(builder.build())
    return directory


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    shutil.copytree(KAFKA / "sr_avro", tmp_path / "logs" / "orders-0")
    shutil.copytree(KAFKA / "schemas_topic", tmp_path / "logs" / "_schemas-0")
    return tmp_path / "logs"


@pytest.mark.spark
def test_avro_by_the_schemas_of_the_logs_own_topic(spark: SparkSession, logs: Path) -> None:
    frame = read(spark, logs, subscribe="orders", valueFormat="avro", schemaRegistry=str(logs))
    assert frame.columns[-3:] == ["_schema_id", "_error", "invalidValue"]
    assert frame.schema["value"].dataType.simpleString() == (
        "struct<id:bigint,name:string,price:double,tags:array<string>>"
    )
    expected = [json.loads(line) for line in (KAFKA / "sr_avro" / "expected.jsonl").read_text().splitlines()]
    rows = frame.orderBy("offset").collect()
    assert len(rows) == len(expected) == 120
    assert rows[2].value.asDict() == {"id": 1999506, "name": "n\u00e4me-2", "price": 2.5, "tags": ["a2", "b"]}
    assert frame.where("value is null").count() == 2
    assert frame.where("_error is not null or invalidValue is not null").count() == 0
    assert frame.select("offset").count() == frame.select("value.id").dropna().count() + 2


@pytest.mark.spark
def test_all_types_of_avro(spark: SparkSession, tmp_path: Path) -> None:
    payload = b"\x02\x04\x06\x04\xff\x9c\x02\x02k\x02\x08\x00\x04\x02x\x02ab"
    values = [framed(7, payload), framed(7, payload[:-1]), framed(8, payload), b"text", None]
    path = write(tmp_path / "orders-0", values)
    (tmp_path / "schemas").mkdir()
    (tmp_path / "schemas" / "7.avsc").write_text(json.dumps(AVRO))
    given = {
        "valueFormat": "avro",
        "schemaRegistry": str(tmp_path / "schemas"),
        "readerSchema": json.dumps(AVRO),
    }
    frame = read(spark, path, **given)
    assert frame.schema["value"].dataType.simpleString() == (
        "struct<at:timestamp_ntz,utc:timestamp,day:date,cost:decimal(9,2),tags:map<string,bigint>,"
        "either:struct<member0:int,member1:string>,kind:string,id:binary>"
    )
    rows = frame.orderBy("offset").collect()
    first = rows[0].value.asDict(recursive=True)
    assert first["at"] == datetime.datetime(1970, 1, 1, microsecond=1000)
    assert (first["day"], first["cost"]) == (datetime.date(1970, 1, 4), Decimal("-1.00"))
    assert (first["tags"], first["either"]) == ({"k": 4}, {"member0": None, "member1": "x"})
    assert (first["kind"], bytes(first["id"])) == ("B", b"ab")
    assert [row.value is None for row in rows] == [False, True, True, True, True]
    assert [row._error is None for row in rows] == [True, False, False, False, True]
    assert [row.invalidValue and bytes(row.invalidValue) for row in rows] == [None, *values[1:4], None]
    assert [row._schema_id for row in rows] == [7, 7, 8, None, None]
    with pytest.raises(Exception, match="offset 1: the value cannot be decoded"):
        read(spark, path, mode="FAILFAST", **given).collect()
    with pytest.raises(Exception, match="select the column _error or invalidValue"):
        read(spark, path, columns="offset,value", **given).collect()
    some = read(spark, path, columns="value,_error", **given)
    assert some.columns == ["value", "_error"]
    assert some.where("_error is null").count() == 2
    assert read(spark, path, columns="offset", **given).count() == 5


@pytest.mark.spark
def test_protobuf_and_json(spark: SparkSession, tmp_path: Path) -> None:
    payload = (
        b"\0\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x12\x01a\x1a\x05\x0a\x01k\x10\x05\x22\x02\x08\x02"
    )
    path = write(tmp_path / "logs" / "orders-0", [framed(7, payload), framed(7, b"\0"), framed(7, b"\0\x0a")])
    (tmp_path / "schemas").mkdir()
    for name in ("7.proto", "orders-value.proto"):
        (tmp_path / "schemas" / name).write_text(schema_of(PROTO))
    given = {"valueFormat": "protobuf", "schemaRegistry": str(tmp_path / "schemas")}
    frame = read(spark, path, **given)
    rows = [row.value and row.value.asDict(recursive=True) for row in frame.orderBy("offset").collect()]
    took = datetime.timedelta(seconds=2)
    assert rows == [
        {"u": Decimal(2**64 - 1), "s": ["a"], "m": {"k": 5}, "d": took},
        {"u": Decimal(0), "s": [], "m": {}, "d": None},
        None,
    ]
    clicks = write(tmp_path / "logs" / "clicks-0", [b'{"a": {"b": [1, null]}}', framed(9, b"{"), b"{"])
    (tmp_path / "schemas" / "9.json").write_text("{}")
    schema = '{"properties": {"a": {"properties": {"b": {"type": "array", "items": {"type": "integer"}}}}}}'
    given |= {"valueFormat": "json", "readerSchema": schema}
    rows = [row.value and row.value.asDict(recursive=True) for row in read(spark, clicks, **given).collect()]
    assert rows == [{"a": {"b": [1, None]}}, None, None]


@pytest.mark.spark
def test_json_that_its_schema_does_not_allow(spark: SparkSession, tmp_path: Path) -> None:
    values = [framed(7, b'{"id": 5}'), framed(7, b'{"id": -1}'), framed(7, b'{"id": 7}')]
    path = write(tmp_path / "logs" / "orders-0", values)
    (tmp_path / "schemas").mkdir()
    for name in ("7.json", "orders-value.json"):
        (tmp_path / "schemas" / name).write_text('{"properties": {"id": {"type": "integer", "minimum": 0}}}')
    given = {"valueFormat": "json", "schemaRegistry": str(tmp_path / "schemas")}
    assert read(spark, path, **given).where("_error IS NULL").count() == 3
    frame = read(spark, path, **given, validate="true").orderBy("offset")
    rows = frame.select("value.id", "_error", "invalidValue").collect()
    assert [row.id for row in rows] == [5, None, 7]
    assert rows[1]._error == "/id: -1 is less than the minimum of 0 (rule /properties/id/minimum)"
    assert [row.invalidValue and bytes(row.invalidValue) for row in rows] == [None, values[1], None]
    report = magicbyte.ingest(
        tmp_path / "logs",
        tmp_path / "out",
        engine=SparkEngine(spark),
        typed=TypedColumns(schema_registry=str(tmp_path / "schemas"), value_format="json", validate=True),
    )
    assert (report["total"]["rows"], report["total"]["invalid_values"]) == (3, 1)


@pytest.mark.spark
def test_a_stream_has_typed_columns(spark: SparkSession, logs: Path, tmp_path: Path) -> None:
    given = {"subscribe": "orders", "valueFormat": "avro", "schemaRegistry": str(logs)}
    stream = spark.readStream.format("magicbyte").options(startingOffsets="earliest", **given).load(str(logs))
    query = (
        stream.writeStream.format("parquet")
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .option("path", str(tmp_path / "out"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination(120)
    assert query.exception() is None
    written = spark.read.parquet(str(tmp_path / "out"))
    batch = read(spark, logs, **given)
    assert written.schema == batch.schema
    assert sorted(written.select("offset", "value.id").collect()) == sorted(
        batch.select("offset", "value.id").collect()
    )


@pytest.mark.spark
def test_schemas_that_are_not_there(spark: SparkSession, logs: Path) -> None:
    given = {"valueFormat": "avro", "schemaRegistry": str(logs)}
    with pytest.raises(Exception, match="no subject has the name _schemas-value"):
        read(spark, logs, **given)


@pytest.mark.spark
def test_long_decimals_are_text(spark: SparkSession, logs: Path) -> None:
    given = {"valueFormat": "avro", "schemaRegistry": str(logs)}
    long = {"type": "bytes", "logicalType": "decimal", "precision": 50}
    rows = read(spark, logs, subscribe="orders", readerSchema=json.dumps(long), **given)
    assert rows.schema["value"].dataType.simpleString() == "string"


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        (
            {"valueFormat": "thrift", "schemaRegistry": "x"},
            "valueFormat: 'thrift' is not one of avro, protobuf, json",
        ),
        ({"valueFormat": "avro", "schemaRegistry": "x", "table": "batches"}, "are for the table records"),
    ],
)
def test_options(given: dict[str, str], reason: str) -> None:
    with pytest.raises(OptionError, match=reason):
        parse_table(given)
