"""`schemas sizes`: equivalent schemas of the three formats, and what the values take in each."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from conftest import Cli
from magicbyte import RecordsBuilder
from magicbyte.jobs.equivalent_schemas import as_avro, as_json, as_protobuf, avro_schema, protobuf_schema
from magicbyte.jobs.schema_sizes import schema_sizes
from magicbyte.schemas import ColumnEncoder, decode, encode
from magicbyte.schemas.registry import Schema, StoredRegistry
from test_schema_encoding import AVRO, JSON, PROTO3, avro_row, json_row, proto3_row, rows

DATA = Path(__file__).parents[1] / "data" / "kafka"


def columns() -> dict[str, pa.Array]:
    """Columns as they are decoded, with every type that there is; without nulls at the top."""
    made = {
        "avro": (avro_row, ColumnEncoder(json.dumps(AVRO))),
        "protobuf": (proto3_row, ColumnEncoder(PROTO3, "protobuf", message="x.All")),
        "json": (json_row, ColumnEncoder(JSON, "json")),
    }
    found = {
        name: pa.array([one for one in rows(row) if one is not None], encoder.type)
        for name, (row, encoder) in made.items()
    }
    found["numbers"] = pa.array([1, -1, 2**40])
    found["names"] = pa.array([{"a b": 1, "c": "x", "C": None, "ä": [[1], [], None]}] * 2)
    found["nothing"] = pa.array([{}, {}])
    return found


COLUMNS = columns()


@pytest.mark.parametrize("name", COLUMNS)
@pytest.mark.parametrize("equivalent", [avro_schema, protobuf_schema])
def test_equivalent_schemas(name: str, equivalent: Callable[[pa.Array], tuple[str, Any]]) -> None:
    """Any column has one, and decodes to what was written."""
    column = COLUMNS[name]
    schema, convert = equivalent(column)
    format = "avro" if equivalent is avro_schema else "protobuf"
    converted = pa.array([convert(one) for one in column.to_pylist()], ColumnEncoder(schema, format).type)
    values = encode(converted, schema, format, schema_id=7)
    decoded = decode(values, {7: schema}, format, schema)
    assert decoded.field("_error").null_count == len(column)
    if format == "avro":
        assert decoded.field("value").to_pylist() == converted.to_pylist()
    payloads = (as_avro if format == "avro" else as_protobuf)(column)
    assert [one.as_py()[5 if format == "avro" else 6 :] for one in values] == payloads


def test_what_the_values_become() -> None:
    column = pa.array([{"day": date(2026, 11, 23), "took": timedelta(seconds=2), "raw": b"\xff", "no": None}])
    assert as_json(column) == [b'{"day":"2026-11-23","took":"2.0s","raw":"/w=="}']
    schema, convert = protobuf_schema(column)
    assert convert(column[0].as_py())["day"] == 20780
    assert "google.protobuf.Duration took = 2;" in schema
    avro, _ = avro_schema(pa.array([{"a": 1, "b": None}, {"a": 2, "b": "x"}]))
    assert json.loads(avro)["fields"] == [
        {"name": "a", "type": "long"},
        {"name": "b", "type": ["null", "string"]},
    ]


@pytest.mark.parametrize(
    ("format", "schema", "column"),
    [
        ("avro", json.dumps(AVRO), COLUMNS["avro"]),
        ("json", JSON, COLUMNS["json"]),
    ],
)
def test_the_stored_format_is_measured_as_it_is(
    format: Any, schema: str, column: pa.Array, tmp_path: Path
) -> None:
    values = encode(column, schema, format, schema_id=7).to_pylist()
    log, sizes, next_offset = b"", [], 0
    for start in range(0, len(values), 100):
        part = values[start : start + 100]
        builder, alone = RecordsBuilder(2, "gzip"), RecordsBuilder(2, "zstd")
        # A null is no value.
        for value in [*part, None]:
            builder.append(next_offset, 0, b"key", value)
            next_offset += 1
        for offset, value in enumerate(part):
            alone.append(offset, 0, None, value)
        log += builder.build()
        sizes.append(len(alone.build()))
    (tmp_path / "t-0").mkdir()
    (tmp_path / "t-0" / f"{0:020}.log").write_bytes(log)
    registry = StoredRegistry()
    registry.put_schema(7, Schema({"avro": "AVRO", "json": "JSON"}[format], schema))
    (topic,) = schema_sizes([str(tmp_path)], registry)["topics"]
    assert (topic["topic"], topic["error"], topic["values"], topic["left_out"]) == ("t", None, len(values), 0)
    stored = topic["formats"].pop(format)
    assert stored == {"bytes": sum(map(len, values)), "zstd_bytes": sum(sizes), "as_stored": True}
    assert len(topic["formats"]) == 2
    assert not any(one["as_stored"] for one in topic["formats"].values())


def test_command(tmp_path: Path, cli: Cli) -> None:
    logs = tmp_path / "logs"
    shutil.copytree(DATA / "sr_avro", logs / "orders-0")
    shutil.copytree(DATA / "schemas_topic", logs / "_schemas-0")
    report = cli.json("schemas", "sizes", "--schema-registry", logs, "--topic", "orders", logs)
    (topic,) = report["topics"]
    # What a broker wrote: two batches, with two tombstones.
    assert (topic["topic"], topic["values"], topic["left_out"], topic["batches"]) == ("orders", 118, 0, 2)
    sizes = {name: one["bytes"] for name, one in topic["formats"].items()}
    assert sizes["avro"] < sizes["protobuf"] < sizes["json"]
    assert topic["formats"]["avro"]["as_stored"] is True
    output = cli("schemas", "sizes", "--schema-registry", logs, logs)
    assert "avro (stored)" in output
    assert "_schemas: not compared: no value names a schema" in output
    few = cli.json(
        "schemas", "sizes", "--schema-registry", logs, "--max-values", "1", "--topic", "orders", logs
    )
    assert 0 < few["topics"][0]["values"] < 118
    cli("schemas", "sizes", logs, code=2)
    assert "--schema-registry" in cli.error
