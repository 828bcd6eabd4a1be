"""JSON payloads to typed columns: what confluent-kafka's serializer wrote, and what any JSON may be."""

from __future__ import annotations

import json
import random
import struct
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from confluent_kafka.schema_registry import Schema as ConfluentSchema
from confluent_kafka.schema_registry import SchemaReference, SchemaRegistryClient
from confluent_kafka.schema_registry.json_schema import JSONSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from magicbyte import RecordsBuilder, commands
from magicbyte.errors import JobError
from magicbyte.jobs.find.partitions import list_partitions
from magicbyte.jobs.run.engines import LocalEngine
from magicbyte.jobs.run.plan import plan_partitions
from magicbyte.jobs.run.reading import ReadOptions, read_chunk
from magicbyte.options.typed import TypedColumns
from magicbyte.schema import decode, encode
from magicbyte.schema.decoding import ColumnDecoder, InvalidSchemaError
from magicbyte.schema.registry import (
    Reference,
    Schema,
    SchemaReferenceError,
    StoredRegistry,
    SubjectVersion,
)

CUSTOMER = {
    "$schema": "http://json-schema.org/draft-07/schema#",
    "title": "Customer",
    "type": "object",
    "properties": {"name": {"type": "string"}, "vip": {"type": ["boolean", "null"]}},
}
ORDER = {
    "$schema": "http://json-schema.org/draft-07/schema#",
    "title": "Order",
    "type": "object",
    "properties": {
        "id": {"type": "integer"},
        "price": {"oneOf": [{"type": "null"}, {"type": "number"}]},
        "buyer": {"$ref": "customer.json"},
        "lines": {"type": "array", "items": {"$ref": "#/definitions/line"}},
        "tags": {"type": "object", "additionalProperties": {"type": "string"}},
        "either": {"type": ["string", "integer"]},
        "state": {"enum": ["new", "paid"]},
    },
    "required": ["id"],
    "definitions": {
        "line": {
            "type": "object",
            "properties": {
                "sku": {"type": "string"},
                "matrix": {"type": "array", "items": {"type": "array"}},
            },
        }
    },
}
ORDERS = [
    {"id": 1},
    {
        "id": -(2**63),
        "price": 1.5,
        "buyer": {"name": 'ü\u0000"\\', "vip": None},
        "lines": [{"sku": "a", "matrix": [[1, "x"], []]}, {}],
        "tags": {"a": "b"},
        "either": 7,
        "state": "paid",
    },
    {"id": 3, "price": None, "lines": [], "either": "text", "unknown": {"is": "left out"}},
]


def framed(schema_id: int, payload: bytes) -> bytes:
    return b"\0" + struct.pack(">I", schema_id) + payload


def expected(value: Any, like: pa.DataType) -> Any:
    """A parsed value as our column has it: text where JSON has no Arrow type."""
    if value is None:
        return None
    if pa.types.is_struct(like):
        return {field.name: expected(value.get(field.name), field.type) for field in like}
    if pa.types.is_list(like):
        return [expected(one, like.value_type) for one in value]
    return value


def ours(value: Any, like: Any) -> Any:
    """A value of our column, with the text of what has no Arrow type parsed."""
    if isinstance(like, dict) and isinstance(value, dict):
        return {name: ours(one, like[name]) for name, one in value.items()}
    if isinstance(like, list) and isinstance(value, list):
        return [ours(one, other) for one, other in zip(value, like, strict=True)]
    return json.loads(value) if isinstance(value, str) and value != like else value


def test_confluent_payloads() -> None:
    client = SchemaRegistryClient.new_client({"url": "mock://"})
    context = SerializationContext("orders", MessageField.VALUE)
    client.register_schema("customer", ConfluentSchema(json.dumps(CUSTOMER), "JSON"))
    reference = SchemaReference("customer.json", "customer", 1)
    schema = ConfluentSchema(json.dumps(ORDER), "JSON", [reference])
    serialize = JSONSerializer(schema, client, lambda value, _: value)
    values = [serialize(order, context) for order in ORDERS]
    one = client.get_latest_version("orders-value")
    registry = StoredRegistry()
    registry.put(SubjectVersion("customer", 1, 100, Schema("JSON", json.dumps(CUSTOMER))))
    used = (Reference("customer.json", "customer", 1),)
    registry.put(
        SubjectVersion("orders-value", 1, one.schema_id, Schema("JSON", one.schema.schema_str, used))
    )

    result = decode([*values, None], registry, "json")

    column = result.field("value")
    assert column.type.names == list(ORDER["properties"])
    like = [expected(order, column.type) for order in ORDERS]
    assert [ours(row, other) for row, other in zip(column.to_pylist(), like, strict=False)] == like
    assert column[1]["either"].as_py() == "7"
    assert column[2]["either"].as_py() == '"text"'
    assert result.field("_error").null_count == 4
    assert result.field("_schema_id").to_pylist() == [one.schema_id] * 3 + [None]
    registry.put(SubjectVersion("customer", 1, 100, Schema("JSON", json.dumps(CUSTOMER), used)))
    with pytest.raises(SchemaReferenceError, match="lead to itself"):
        decode(values, registry, "json")


def test_random_documents_are_read_as_pythons_parser_reads_them() -> None:
    random_ = random.Random(1)

    def value(depth: int) -> Any:
        kinds = ["number", "text", "bool", "null"] + ["list", "object"] * (depth < 4)
        match random_.choice(kinds):
            case "number":
                return random_.choice([0, -1, 2**63 - 1, 0.5, 1e300])
            case "text":
                return random_.choice(["", "\u0000\ud7ff", "😀", '"\\/', "a" * 100])
            case "bool":
                return random_.random() < 0.5
            case "list":
                return [value(depth + 1) for _ in range(random_.randrange(4))]
            case "object":
                return {name: value(depth + 1) for name in random_.sample("abcde", random_.randrange(4))}

    schema = {"properties": {"a": True, "b": {"type": "array"}, "c": {"properties": {"a": {}, "b": {}}}}}
    rows: list[dict[str, Any]] = []
    for _ in range(500):
        c = random_.choice([None, {"a": value(0)}, {"b": value(0), "z": value(0)}])
        rows.append({"a": value(0), "b": random_.choice([None, [value(0)]]), "c": c, "d": value(0)})
    values = [framed(7, json.dumps(row, ensure_ascii=random_.random() < 0.5).encode()) for row in rows]
    result = decode(values, {7: json.dumps(schema)}, "json")
    assert result.field("_error").null_count == 500

    def parsed(text: str | None) -> Any:
        return None if text is None else json.loads(text)

    for row, found in zip(rows, result.field("value").to_pylist(), strict=True):
        assert parsed(found["a"]) == row["a"]
        assert row["b"] == (None if found["b"] is None else [parsed(one) for one in found["b"]])
        c = None if found["c"] is None else {name: parsed(one) for name, one in found["c"].items()}
        assert c == (None if row["c"] is None else {name: row["c"].get(name) for name in "ab"})


def test_text_may_be_nested_as_deep_as_it_likes() -> None:
    deep = "[" * 100_000 + "]" * 100_000
    row = decode([framed(7, f'{{"a": {deep}}}'.encode())], {7: '{"properties": {"a": {}}}'}, "json")
    assert row.field("value")[0].as_py() == {"a": deep}


HOSTILE = [
    (b"", "EOF"),
    (b"{", "EOF"),
    (b'{"id": 1} x', "more text, expected the end of the payload (byte 15)"),
    (b'{"id": "1"}', 'id: the string "1", expected an integer of 64 bits (byte 12)'),
    (b'{"id": 1.5}', "id: the number 1.5, expected an integer of 64 bits"),
    (b'{"id": 18446744073709551616, "price": ""}', "price: "),
    (b'{"unknown": ["\\ud800"]}', "half of a surrogate pair, expected the other half beside it (byte 19)"),
    (b'{"price": NaN}', "price: expected value"),
    (b'{"lines": [{"sku": 5}]}', "lines.sku: the number 5, expected a string"),
    (b'{"either": "\xff"}', "text that is not UTF-8 (byte 17)"),
    (b'{"lines": ' + b"[" * 100_000, "lines: "),
    (b"[]", "expected an object"),
]


@pytest.mark.parametrize(("payload", "reason"), HOSTILE)
def test_a_bad_row_costs_only_itself(payload: bytes, reason: str) -> None:
    schema = {**ORDER, "properties": {**ORDER["properties"], "buyer": CUSTOMER}}  # type: ignore[dict-item]
    good = framed(7, b'{"id": 5, "lines": [{"sku": "a"}]}')
    result = decode([good, framed(7, payload), good], {7: json.dumps(schema)}, "json")
    errors = result.field("_error").to_pylist()
    assert errors[0] is errors[2] is None
    assert reason in errors[1]
    assert result.field("invalidValue").to_pylist() == [None, framed(7, payload), None]
    assert result.field("value")[0] == result.field("value")[2]
    assert result.field("value")[1].as_py() is None


def test_an_integer_beyond_64_bits_costs_only_itself() -> None:
    value = framed(7, b'{"price": 0.5, "id": 18446744073709551615}')
    schema = {"properties": {"id": {"type": "integer"}, "price": {}}}
    result = decode([value], {7: json.dumps(schema)}, "json")
    assert result.field("value").to_pylist() == [{"id": None, "price": "0.5"}]
    says = "id: the number 18446744073709551615 is left out, expected an integer of 64 bits (byte 26)"
    assert result.field("_error").to_pylist() == [says]
    assert result.field("invalidValue").to_pylist() == [value]


def test_longer_integers_are_decimals_or_text_on_request(logs: Path, tmp_path: Path) -> None:
    schema = (
        '{"properties": {"id": {"type": "integer"}, "of": {"type": "array", "items": {"type": "integer"}}}}'
    )
    texts = [b'{"id":18446744073709551616,"of":[-1,2.0]}', b'{"id":5}', b'{"id":1e400}', b'{"id":"5"}']
    values = [framed(7, text) for text in texts]
    decimals = decode(values, {7: schema}, "json", integers="decimal")
    assert decimals.field("value").type.field("id").type == pa.decimal128(38, 0)
    first = {"id": Decimal(2**64), "of": [Decimal(-1), Decimal(2)]}
    others: list[Any] = [{"id": Decimal(5), "of": None}, {"id": None, "of": None}, None]
    assert decimals.field("value").to_pylist() == [first, *others]
    errors = decimals.field("_error").to_pylist()
    assert errors[:2] == [None, None]
    assert "id: the number 1e400 is left out, expected an integer of 38 digits" in errors[2]
    text = decode(values, {7: schema}, "json", integers="text").field("value").to_pylist()
    assert text == [
        {"id": "18446744073709551616", "of": ["-1", "2.0"]},
        {"id": "5", "of": None},
        {"id": "1e400", "of": None},
        None,
    ]
    for rows in (decimals, decode(values, {7: schema}, "json", integers="text")):
        written = encode(rows.field("value")[:2], schema, "json").to_pylist()
        assert [json.loads(row)["id"] for row in written] == [2**64, 5]
    with pytest.raises(InvalidSchemaError, match='integers "bits": expected'):
        decode(values, {7: schema}, "json", integers="bits")  # type: ignore[arg-type]

    typed = TypedColumns(
        schema_registry=str(tmp_path / "schemas"), value_format="json", json_integers="decimal"
    )
    commands.ingest(logs, tmp_path / "out", typed=typed)
    assert pq.read_table(tmp_path / "out" / "records")["value"][0].as_py() == {"id": Decimal(5)}


def test_ids_and_values_without_one() -> None:
    registry = StoredRegistry()
    registry.put_schema(1, Schema("JSON", '{"properties": {"a": {"type": "integer"}}}'))
    registry.put_schema(2, Schema("AVRO", '"int"'))
    document = b'{"a": 1}'
    values = [framed(1, document), document, framed(2, document), framed(9, document), b"", b"\0\0"]
    result = decode(values, registry, "json")
    assert result.field("value").to_pylist() == [{"a": 1}, {"a": 1}, None, None, None, None]
    assert result.field("_schema_id").to_pylist() == [1, None, 2, 9, None, None]
    errors = result.field("_error").to_pylist()
    assert errors[:4] == [None, None, "its schema is AVRO, expected JSON", "no schema has the id 9"]
    assert all("not framed" in error for error in errors[4:])
    text = decode(values[:2], registry, "json", as_text=True).field("value").to_pylist()
    assert text == [document.decode()] * 2


@pytest.mark.parametrize(
    "schema", ["[", "", '{"$ref": "#/lost"}', '{"properties": {"a": {"$ref": "x.json"}}}']
)
def test_schemas_that_cannot_be_used(schema: str) -> None:
    with pytest.raises(InvalidSchemaError, match="the reader's schema: "):
        decode([], {}, "json", schema)


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    builder = RecordsBuilder()
    values = [framed(7, b'{"id": 5}'), b'{"id": 6}', framed(7, b'{"id": "x"}'), b"\1", None]
    for offset, value in enumerate(values):
        builder.append(offset, 0, None, value)
    (tmp_path / "logs" / "orders-0").mkdir(parents=True)
    (tmp_path / "logs" / "orders-0" / "00000000000000000000.log").write_bytes(builder.build())
    (tmp_path / "schemas").mkdir()
    for name in ("7.json", "orders-value.json"):
        (tmp_path / "schemas" / name).write_text('{"properties": {"id": {"type": "integer"}}}')
    return tmp_path / "logs"


def test_ingest_counts_what_is_not_framed(logs: Path, tmp_path: Path) -> None:
    typed = TypedColumns(schema_registry=str(tmp_path / "schemas"), value_format="json")
    report = commands.ingest(logs, tmp_path / "out", typed=typed)
    total = report["total"]
    assert report["balanced"]
    assert (total["rows"], total["invalid_values"], total["unframed_values"]) == (5, 2, 2)
    assert (total["invalid_keys"], total["unframed_keys"]) == (0, 0)
    rows = pq.read_table(tmp_path / "out" / "records").to_pylist()
    assert [row["value"] for row in rows] == [{"id": 5}, {"id": 6}, None, None, None]
    assert [row["_error"] is None for row in rows] == [True, True, False, False, True]


def test_failfast_says_what_cannot_be_decoded(logs: Path) -> None:
    registry = StoredRegistry()
    schema = Schema("JSON", '{"properties": {"id": {"type": "integer"}}}')
    registry.put_schema(7, schema)
    (planned,) = plan_partitions([list_partitions([str(logs)])[0]], LocalEngine(1))
    (chunk,) = planned.plan["chunks"]
    decoder = ColumnDecoder(registry, schema, "json")
    columns = ("offset", "value", "headers")
    options = ReadOptions(columns, mode="FAILFAST", typed=(decoder,))
    with pytest.raises(JobError, match="offset 2: the value cannot be decoded: id: the string"):
        list(read_chunk(json.dumps(chunk), options))


P = {"a": {"type": "string"}, "b": {"type": "integer"}}
STRUCT = pa.struct([("a", pa.string()), ("b", pa.int64())])
TEXTS = pa.list_(pa.string())
C = {"properties": {"a": {"const": "x"}}}
WITH_C = pa.struct([*STRUCT, ("c", pa.string())])
PARTS: list[tuple[dict[str, Any], pa.DataType]] = [
    # A union that says nothing besides the type, the properties or their values.
    ({"properties": P, "oneOf": [{"required": ["a"]}, {"required": ["b"]}]}, STRUCT),
    ({"type": "object", "properties": P, "anyOf": [{"type": "object", "required": ["a"]}, True]}, STRUCT),
    ({"properties": P, "oneOf": [{"properties": {"a": {"const": "x"}}}, {"not": {"required": ["a"]}}]},
     STRUCT),
    ({"properties": P, "anyOf": [{"properties": {"b": {"type": "number"}}}, {"type": "null"}]}, STRUCT),
    ({"type": "string", "anyOf": [{"format": "date"}, {"format": "time"}]}, pa.string()),
    ({"type": "integer", "anyOf": [{"type": ["integer", "string"]}, {"minimum": 5}]}, pa.int64()),
    ({"type": "array", "items": {"type": "integer"}, "oneOf": [{"minItems": 2}, {"maxItems": 1}]},
     pa.list_(pa.int64())),
    # Unions of one type and null, however null is written.
    ({"oneOf": [{"const": None}, {"type": "integer"}]}, pa.int64()),
    ({"anyOf": [{"type": "integer"}, {"enum": [None]}]}, pa.int64()),
    ({"anyOf": [{"type": ["integer", "null"]}, {"type": "null"}]}, pa.int64()),
    # All of several types.
    ({"allOf": [{"type": "integer"}, {"type": "integer", "minimum": 1}]}, pa.int64()),
    ({"type": "integer", "allOf": [{"type": "number"}, {"minimum": 1}]}, pa.int64()),
    ({"allOf": [{"type": ["integer", "string"]}, {"type": "integer"}]}, pa.int64()),
    ({"allOf": [{"properties": {"b": {"type": "integer"}}}, {"properties": {"b": {"minimum": 5}}}]},
     pa.struct([("b", pa.int64())])),
    ({"allOf": [{"properties": {"p": {"properties": P}}},
                {"properties": {"p": {"properties": {"c": {"type": "boolean"}}}}}]},
     pa.struct([("p", pa.struct([*STRUCT, ("c", pa.bool_())]))])),
    ({"allOf": [{"items": {"type": "integer"}, "type": "array"}, {"type": "array", "items": {"maximum": 5}}]},
     pa.list_(pa.int64())),
    # From 2020-12 on, `items` is the schema of the items after the first ones.
    ({"type": "array", "items": {"type": "number"}, "prefixItems": [{"type": "number"}]},
     pa.list_(pa.float64())),
    ({"type": "array", "items": {"type": "number"}, "prefixItems": []}, pa.list_(pa.float64())),
    ({"type": "array", "items": {"type": "number"}, "prefixItems": [{"type": "string"}]}, TEXTS),
    ({"type": "array", "items": {"type": "number"}, "prefixItems": [{"type": "number"}, True]}, TEXTS),
    ({"type": "array", "items": {"properties": P}, "prefixItems": [{"type": "null"}]}, TEXTS),
    ({"type": "array", "items": {"type": "number"}, "prefixItems": [{"type": "string"}],
      "$schema": "https://json-schema.org/draft/2019-09/schema"}, pa.list_(pa.float64())),
    ({"allOf": [{"type": "array", "prefixItems": [{"minimum": 1}]},
                {"type": "array", "items": {"type": "number"}}]}, pa.list_(pa.float64())),
    # What has a type only on a condition is text; what has it always keeps it.
    ({"properties": P, "if": C, "then": {"properties": {"b": {"maximum": 5}}, "required": ["b"]}}, STRUCT),
    ({"properties": P, "if": C, "then": {"properties": {"c": {"type": "string"}}}}, WITH_C),
    ({"properties": P, "if": C, "else": {"properties": {"c": {"type": "string"}, "b": True}}}, WITH_C),
    ({"properties": P, "if": {"properties": {"c": {"const": 1}}}}, WITH_C),
    ({"properties": P, "then": {"properties": {"c": {"type": "string"}}}}, STRUCT),
    ({"properties": P, "if": C, "then": {"properties": {"c": True}},
      "$schema": "http://json-schema.org/draft-06/schema#"}, STRUCT),
    ({"properties": P, "allOf": [{"if": C, "then": {"properties": {"c": True}}},
                                 {"if": C, "else": {"properties": {"d": {"type": "string"}}}}]},
     pa.struct([*WITH_C, ("d", pa.string())])),
    ({"properties": P, "anyOf": [{"if": C, "then": {"properties": {"a": True}}}, True]}, STRUCT),
    ({"properties": P, "dependentSchemas": {"a": {"properties": {"c": {"type": "integer"}}}}}, WITH_C),
    ({"properties": P, "dependencies": {"a": {"properties": {"c": {"type": "integer"}}}, "b": ["a"]},
      "$schema": "http://json-schema.org/draft-04/schema#"}, WITH_C),
    ({"properties": P, "if": C, "then": {"oneOf": [{"properties": {"c": True}}, {"required": ["a"]}]}},
     WITH_C),
    ({"properties": P, "if": C, "then": {"if": C, "then": {"properties": {"c": True}}}}, WITH_C),
    ({"properties": {"p": {"properties": P}, "q": {"type": "array", "items": {"properties": P}}}, "if": True,
      "then": {"properties": {"p": {"properties": {"c": {"type": "integer"}}},
                              "q": {"type": "array", "items": {"properties": {"c": True}}}}}},
     pa.struct([("p", WITH_C), ("q", pa.list_(WITH_C))])),
    ({"properties": {"p": {}}, "if": True, "then": {"properties": {"p": {"properties": P}}}},
     pa.struct([("p", pa.string())])),
    ({"if": C, "then": {"properties": {"c": True}}}, pa.string()),
    ({"type": "integer", "if": C, "then": {"properties": {"c": True}}}, pa.int64()),
    # What a column of the type alone would lose is kept as text.
    ({"properties": P, "oneOf": [{"properties": {"c": {"type": "integer"}}}, {"required": ["a"]}]},
     pa.string()),
    ({"properties": P, "anyOf": [{"type": "string"}, {"type": "object"}]}, pa.string()),
    # So is an object whose only name is empty: DuckDB would read no table with it.
    ({"properties": {"": {"type": "integer"}}}, pa.string()),
    ({"type": "array", "items": {"properties": {"": {"type": "integer"}}}}, TEXTS),
    ({"properties": {"": {"type": "integer"}}, "allOf": [{"properties": {"b": {"type": "integer"}}}]},
     pa.struct([("b", pa.int64()), ("", pa.int64())])),
    ({"type": ["object", "string"], "properties": P}, pa.string()),
    ({"properties": P, "allOf": [{"type": ["object", "string"]}]}, pa.string()),
    ({"allOf": [{"type": "integer"}, {"type": "string"}]}, pa.string()),
]  # fmt: skip


@pytest.mark.parametrize(("schema", "expected"), PARTS, ids=[json.dumps(one[0])[:90] for one in PARTS])
def test_a_value_is_of_its_type_and_of_all_parts(schema: dict[str, Any], expected: pa.DataType) -> None:
    reader = Schema("JSON", json.dumps({"type": "object", "properties": {"x": schema}}))
    column = ColumnDecoder(StoredRegistry(), reader, "json").schema.field("value").type
    assert column.field("x").type == expected
    # A reference is one of the parts; so is what is beside it.
    whole = {"$ref": "#/$defs/x", "$defs": {"x": {"properties": {"x": schema}}}, "properties": {"y": True}}
    column = (
        ColumnDecoder(StoredRegistry(), Schema("JSON", json.dumps(whole)), "json").schema.field("value").type
    )
    assert column == pa.struct([("x", expected), ("y", pa.string())])


def test_properties_on_a_condition() -> None:
    schema = {
        "type": "object",
        "properties": {"country": {"type": "string"}},
        "if": {"properties": {"country": {"const": "US"}}},
        "then": {"properties": {"zip": {"type": "string"}}, "required": ["zip"]},
        "else": {"properties": {"plz": {"type": "integer"}}},
        "dependentSchemas": {"plz": {"properties": {"ort": {"type": "string"}}}},
    }
    # The schema allows a `zip` of any type where the country is another one.
    values = [
        b'{"country": "US", "zip": "123"}',
        b'{"country": "DE", "plz": 9, "ort": "x"}',
        b'{"country": "DE", "zip": [5]}',
    ]
    rows = decode(values, None, "json", json.dumps(schema), validate=True).to_pylist()
    assert [row["_error"] for row in rows] == [None] * 3
    nothing = {"zip": None, "plz": None, "ort": None}
    assert [row["value"] for row in rows] == [
        nothing | {"country": "US", "zip": '"123"'},
        nothing | {"country": "DE", "plz": "9", "ort": '"x"'},
        nothing | {"country": "DE", "zip": "[5]"},
    ]


def test_first_items_of_another_type_than_the_rest() -> None:
    point = {"type": "array", "prefixItems": [{"type": "string"}], "items": {"type": "number"}}
    schema = json.dumps({"type": "object", "properties": {"point": point}})
    values = [b'{"point": ["a", 1.5, 2]}', b'{"point": []}', b'{"point": ["a"]}']
    rows = decode(values, None, "json", schema, validate=True).to_pylist()
    assert [row["_error"] for row in rows] == [None] * 3
    assert [row["value"]["point"] for row in rows] == [['"a"', "1.5", "2"], [], ['"a"']]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ('{"a":1,"a":2}', 2),
        ('{"a":1,"a":null}', None),
        ('{"a":null,"a":1}', 1),
        ('{"a":1,"\\u0061":2}', 2),
        ('{"a":"x","a":1}', 'a: the string "x", expected an integer'),
        ('{"a":1,"a":"x"}', 'a: the string "x", expected an integer'),
    ],
)
def test_names_that_occur_twice(value: str, expected: Any) -> None:
    schema = '{"type": "object", "properties": {"a": {"type": "integer"}}}'
    (row,) = decode([value.encode()], None, "json", schema).to_pylist()
    if isinstance(expected, str):
        assert row["value"] is None
        assert expected in row["_error"]
    else:
        assert (row["value"], row["_error"]) == ({"a": expected}, None)
