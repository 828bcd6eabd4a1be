"""Every type and odd value in our tables is read by DuckDB, polars, Spark and the libraries of the tables."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import magicbyte
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from lakes import FORMATS, Lake
from magicbyte.errors import RefusedError
from magicbyte.jobs.run.engines import LocalEngine
from typed_logs import Schema, TypedLog, array, logical, mapping, record

NINES = "0." + "9" * 38
MIN, MAX = -(1 << 63), (1 << 63) - 1
ALL: dict[str, tuple[Any, list[Any]]] = {
    "flag": ("boolean", [True, False]),
    "small": ("int", [-(1 << 31), (1 << 31) - 1]),
    "large": ("long", [MIN, MAX]),
    "single": ("float", [float("nan"), -0.0, float("-inf"), 1e-45]),
    "double": ("double", [float("nan"), -0.0, float("inf"), 5e-324]),
    "raw": ("bytes", [b"", b"\0\xff"]),
    "text": ("string", ["", "\0", "\U0001f600\ufffe", 'a"\\\n']),
    "kind": ({"type": "enum", "name": "E", "symbols": ["A", "B"]}, ["A", "B"]),
    "hash": ({"type": "fixed", "name": "F", "size": 2}, [b"\0\0", b"\xff\xfe"]),
    "nothing": ({"type": "fixed", "name": "F0", "size": 0}, [b""]),
    "id": (logical("string", "uuid"), [str(uuid.UUID(int=0))]),
    "day": ({"type": "int", "logicalType": "date"}, [-(1 << 31), -719163, 2932897, (1 << 31) - 1]),
    "at": (logical("long", "timestamp-micros"), [MIN + 2, -62135596800000001, 253402300800000000, MAX - 1]),
    "millis": (logical("long", "timestamp-millis"), [-1, 0, 253402300799999]),
    "local": (logical("long", "local-timestamp-micros"), [MIN + 2, -1, MAX - 1]),
    "price": (
        logical("bytes", "decimal", precision=38, scale=38),
        [Decimal(NINES), Decimal(f"-{NINES}")],
    ),
    "huge": (logical("bytes", "decimal", precision=60, scale=1), [Decimal("9" * 59 + ".9"), Decimal("-0.1")]),
    "list": (array(["null", "int"]), [[], [None], [1, None]]),
    "map": (mapping(["null", "string"]), [{}, {"": None, "\0": "x"}]),
    "empty": (record("Empty"), [{}]),
    "inner": (["null", record("Inner", n=(["null", "long"], None))], [None, {"n": None}, {"n": 1}]),
    "numbers": (["null", "int", "long"], [None, 1, MAX]),
    "either": (["null", "string", {"type": "array", "items": "int"}], [None, "", [], [1]]),
    "odd name": ("int", [1]),
    "dotted.name": ("int", [1]),
    "\u00e4": ("int", [1]),
}


def rows() -> list[dict[str, Any]]:
    count = max(len(values) for _, values in ALL.values())
    return [{name: values[row % len(values)] for name, (_, values) in ALL.items()} for row in range(count)]


def schema() -> Schema:
    fields = [{"name": name, "type": of} for name, (of, _) in ALL.items()]
    return {"type": "record", "name": "All", "fields": fields}


def plain(of: pa.DataType) -> pa.DataType:
    """The type whose values can be compared: what Python has no value for is a number, or text."""
    if pa.types.is_timestamp(of):
        return pa.int64()
    if pa.types.is_date(of):
        return pa.int32()
    if pa.types.is_floating(of):
        return pa.string()
    if pa.types.is_list(of) or pa.types.is_large_list(of):
        return pa.list_(plain(of.value_type))
    if pa.types.is_map(of):
        return pa.map_(pa.string(), plain(of.item_type))
    if pa.types.is_struct(of):
        return pa.struct([pa.field(field.name, plain(field.type)) for field in of])
    return of


def values(table: pa.Table, like: pa.Schema) -> list[Any]:
    column = table.sort_by([("partition", "ascending"), ("offset", "ascending")]).column("value")
    of = like.field("value").type
    return column.cast(of).cast(plain(of)).to_pylist()


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> TypedLog:
    log = TypedLog(tmp_path_factory.mktemp("readers"), partitions=1)
    log.append(schema(), rows())
    return log


@pytest.fixture(scope="module")
def files(log: TypedLog, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The records of a plain output."""
    out = tmp_path_factory.mktemp("plain") / "out"
    magicbyte.ingest(log.root, out, typed=log.typed, engine=LocalEngine(1))
    return out / "records"


def check(found: pa.Table, expected: pa.Table) -> None:
    assert values(found, expected.schema) == values(expected, expected.schema)


READERS: dict[str, Callable[[Path], pa.Table]] = {
    "duckdb": lambda files: duckdb.sql(f"select * from '{files}/*.parquet'").to_arrow_table(),
    "polars": lambda files: pl.read_parquet(f"{files}/*.parquet").to_arrow(),
}


@pytest.mark.parametrize("reader", READERS.values(), ids=READERS.keys())
def test_plain_files(files: Path, reader: Callable[[Path], pa.Table]) -> None:
    expected = pq.read_table(files)
    assert expected.column("_error").null_count == expected.num_rows == len(rows())
    check(reader(files), expected)


@pytest.mark.spark
def test_plain_files_on_spark(files: Path, spark: Any) -> None:
    check(spark.read.parquet(str(files)).toArrow(), pq.read_table(files))


@pytest.mark.parametrize("table_format", FORMATS)
def test_tables(log: TypedLog, files: Path, tmp_path: Path, table_format: str) -> None:
    lake = Lake.at(table_format, tmp_path / "lake")
    lake.ingest(log.root, typed=log.typed)
    expected = pq.read_table(files)
    check(lake.read(), expected)
    if table_format == "delta":
        check(pl.read_delta(lake.name).to_arrow(), expected)
        paths = DeltaTable(lake.name).file_uris()
    else:
        paths = [str(path) for path in (tmp_path / "lake").rglob("*.parquet")]
    check(duckdb.read_parquet(paths).to_arrow_table(), expected)


def test_names_that_differ_in_case_are_refused(tmp_path: Path) -> None:
    log = TypedLog(tmp_path, partitions=1)
    log.append(
        record("o", inner=(record("i", id=("int", None), ID=("int", None)), None)),
        [{"inner": {"id": 1, "ID": 2}}],
    )
    with pytest.raises(RefusedError, match=r"value\.inner has the fields id and ID, and Spark reads no file"):
        magicbyte.ingest(log.root, tmp_path / "out", typed=log.typed)
    assert not (tmp_path / "out").exists()
