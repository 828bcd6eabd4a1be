"""Typed columns to payloads: `decode` and other readers read them back; and what cannot be written."""

from __future__ import annotations

import io
import json
import random
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import Context, Decimal
from typing import Any

import fastavro
import pyarrow as pa
import pytest
from confluent_kafka.schema_registry import Schema as ConfluentSchema
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer
from confluent_kafka.serialization import MessageField, SerializationContext
from magicbyte.enums import SchemaFormat
from magicbyte.schema import decode, encode, framing
from magicbyte.schema.decoding import ColumnDecoder, InvalidSchemaError
from magicbyte.schema.encoding import ColumnEncoder, EncodingError
from magicbyte.schema.registry import Reference, Schema, StoredRegistry, SubjectVersion

GUID = "0191c3f2-8f6a-7c3e-9b1d-3f0a5c2e4d6b"
CONTEXT = SerializationContext("orders", MessageField.VALUE)


def round_trip(values: Any, schema: str, format: SchemaFormat = "avro", message: str | None = None) -> None:
    """Encoded and decoded, a column is the same."""
    encoder = ColumnEncoder(schema, format, message=message)
    column = values if isinstance(values, pa.Array) else pa.array(values, encoder.type)
    encoded = encoder.encode(column, 7)
    messages = [message] if message else []
    decoded = decode(encoded, {7: schema}, format, schema, messages=messages)
    assert decoded.field("_error").null_count == len(column), decoded.field("_error")
    assert decoded.field("value").to_pylist() == column.to_pylist()
    assert decoded.field("value").equals(column)


# --- Avro -----------------------------------------------------------------------------------------

AVRO: dict[str, Any] = {
    "type": "record",
    "name": "x.All",
    "fields": [
        {"name": name, "type": of}
        for name, of in {
            "none": "null",
            "flag": "boolean",
            "small": "int",
            "big": ["null", "long"],
            "single": "float",
            "double": ["double", "null"],
            "raw": "bytes",
            "text": ["null", "string"],
            "hash": {"type": "fixed", "name": "Hash", "size": 4},
            "nothing": {"type": "fixed", "name": "Nothing", "size": 0},
            "kind": ["null", {"type": "enum", "name": "Kind", "symbols": ["A", "B", "C"]}],
            "day": {"type": "int", "logicalType": "date"},
            "millis": ["null", {"type": "long", "logicalType": "timestamp-millis"}],
            "micros": {"type": "long", "logicalType": "timestamp-micros"},
            "local_millis": {"type": "long", "logicalType": "local-timestamp-millis"},
            "local_micros": ["null", {"type": "long", "logicalType": "local-timestamp-micros"}],
            "price": {"type": "bytes", "logicalType": "decimal", "precision": 10, "scale": 2},
            "exact": {"type": "fixed", "name": "D", "size": 6, "logicalType": "decimal", "precision": 12},
            "huge": [
                "null",
                {"type": "bytes", "logicalType": "decimal", "precision": 60, "scale": 20},
            ],
            "tags": {"type": "array", "items": ["null", "string"]},
            "grid": {"type": "array", "items": {"type": "array", "items": "long"}},
            "counts": {"type": "map", "values": "int"},
            "maybe": ["null", {"type": "map", "values": ["null", {"type": "array", "items": "x.Hash"}]}],
            "numbers": ["null", "int", "long"],
            "reals": ["float", "double"],
            "either": ["null", "string", "int", "x.Kind"],
            "one_of": [{"type": "record", "name": "P", "fields": [{"name": "p", "type": "int"}]}, "string"],
            "empty": {"type": "record", "name": "Empty", "fields": []},
            "inner": [
                "null",
                {
                    "type": "record",
                    "name": "Inner",
                    "fields": [{"name": "id", "type": "long"}, {"name": "p", "type": ["null", "x.P"]}],
                },
            ],
        }.items()
    ],
}
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def some(random: random.Random, make: Callable[[], Any], chance: float = 0.3) -> Any:
    return None if random.random() < chance else make()


def text(r: random.Random) -> str:
    return "".join(r.choice('aé€😀\0"\\z') for _ in range(r.choice((0, 1, 5, 100))))


def integer(r: random.Random, bits: int) -> int:
    low = -(1 << bits - 1)
    return r.choice((0, -1, 1, 63, 64, -64, -65, low, -low - 1, r.randrange(low, -low)))


def real(r: random.Random) -> float:
    return r.choice((0.0, -0.0, 1.5, -(2.0**60), float("inf"), r.randrange(1 << 20) / 1024))


def moment(r: random.Random, step: timedelta, zone: Any = UTC) -> datetime:
    return (EPOCH + step * r.choice((0, -1, 1, 999, r.randrange(-(10**9), 10**9)))).replace(tzinfo=zone)


def number(r: random.Random, digits: int, scale: int) -> Decimal:
    top = 10 ** r.randrange(1, digits + 1)
    found = r.choice((0, 1, -1, 127, 128, -128, -129, top - 1, 1 - top, r.randrange(top)))
    return Decimal(found).scaleb(-scale, Context(prec=100))


def avro_row(r: random.Random) -> dict[str, Any]:
    return {
        "none": None,
        "flag": r.random() < 0.5,
        "small": integer(r, 32),
        "big": some(r, lambda: integer(r, 64)),
        "single": real(r),
        "double": some(r, lambda: real(r)),
        "raw": r.randbytes(r.choice((0, 1, 200))),
        "text": some(r, lambda: text(r)),
        "hash": r.randbytes(4),
        "nothing": b"",
        "kind": some(r, lambda: r.choice("ABC")),
        "day": date(1970, 1, 1) + timedelta(r.randrange(-100_000, 100_000)),
        "millis": some(r, lambda: moment(r, timedelta(milliseconds=1))),
        "micros": moment(r, timedelta(microseconds=1)),
        "local_millis": moment(r, timedelta(milliseconds=1), None),
        "local_micros": some(r, lambda: moment(r, timedelta(microseconds=1), None)),
        "price": number(r, 10, 2),
        "exact": number(r, 12, 0),
        "huge": some(r, lambda: f"{number(r, 60, 20):f}"),
        "tags": [some(r, lambda: text(r)) for _ in range(r.choice((0, 1, 3)))],
        "grid": [[integer(r, 64) for _ in range(r.randrange(3))] for _ in range(r.randrange(3))],
        "counts": [(f"k{n}", integer(r, 32)) for n in range(r.randrange(3))],
        "maybe": some(r, lambda: [("a", some(r, lambda: [r.randbytes(4)] * r.randrange(3)))]),
        "numbers": some(r, lambda: integer(r, 64)),
        "reals": real(r),
        "either": some(
            r,
            lambda: (
                dict.fromkeys(("member0", "member1", "member2"))
                | r.choice(({"member0": text(r)}, {"member1": integer(r, 32)}, {"member2": "C"}))
            ),
        ),
        "one_of": dict.fromkeys(("member0", "member1"))
        | r.choice(({"member0": {"p": integer(r, 32)}}, {"member1": text(r)})),
        "empty": {},
        "inner": some(r, lambda: {"id": integer(r, 64), "p": some(r, lambda: {"p": integer(r, 32)})}),
    }


def rows(make: Callable[[random.Random], Any], count: int = 300) -> list[Any]:
    r = random.Random(21)
    return [some(r, lambda: make(r), 0.1) for _ in range(count)]


def test_avro_columns_come_back() -> None:
    schema = json.dumps(AVRO)
    values = pa.array(rows(avro_row), ColumnEncoder(schema).type)
    round_trip(values, schema)
    # A part of an array, whose children do not begin at 0.
    round_trip(values.slice(17, 40), schema)
    round_trip(values.slice(0, 0), schema)


def test_fastavro_reads_what_we_wrote() -> None:
    parsed = fastavro.parse_schema(AVRO)
    made = [row for row in rows(avro_row) if row is not None]
    for row, payload in zip(made, encode(made, json.dumps(AVRO)).to_pylist(), strict=True):
        stream = io.BytesIO(payload)
        found = fastavro.schemaless_reader(stream, parsed)
        assert stream.read() == b""
        either, one_of = (
            next((one for one in row[name].values() if one is not None), None) if row[name] else None
            for name in ("either", "one_of")
        )
        expected = row | {"counts": dict(row["counts"]), "either": either, "one_of": one_of}
        expected["maybe"] = None if row["maybe"] is None else dict(row["maybe"])
        expected["huge"] = None if row["huge"] is None else Decimal(row["huge"])
        assert found == expected


@pytest.mark.parametrize(
    ("schema", "values"),
    [
        ('"long"', [1, -1, None]),
        ('"string"', ["", "ä", None]),
        ('["null", "int"]', [5, None]),
        ('{"type": "array", "items": "int"}', [[], [1, 2], None]),
        ('{"type": "enum", "name": "E", "symbols": ["A"]}', ["A", None]),
        ('["int", "string"]', [{"member0": 1, "member1": None}, {"member0": None, "member1": "x"}]),
    ],
)
def test_avro_values_that_are_not_records(schema: str, values: list[Any]) -> None:
    round_trip(values, schema)


# --- Protobuf -------------------------------------------------------------------------------------

PROTO3 = """
syntax = "proto3";
package x;
import "google/protobuf/timestamp.proto";
import "google/protobuf/duration.proto";
import "google/protobuf/struct.proto";
import "google/protobuf/wrappers.proto";
message Other { int32 a = 1; }
message All {
  // Before the maps, whose entries are messages, too, and count for the indexes.
  message Inner { int64 id = 1; string name = 2; }
  message Nothing {}
  int32 i32 = 1; sint32 s32 = 2; sfixed32 sf32 = 3; uint32 u32 = 4; fixed32 f32 = 5;
  int64 i64 = 6; sint64 s64 = 7; sfixed64 sf64 = 8; uint64 u64 = 9; fixed64 f64 = 10;
  float single = 11; double dbl = 12; bool flag = 13; string text = 14; bytes raw = 15;
  Kind kind = 16;
  optional int32 maybe = 17; optional string note = 18;
  repeated sint64 packed = 19; repeated int32 loose = 20 [packed = false]; repeated string tags = 21;
  repeated Kind kinds = 22; repeated Inner inners = 23;
  map<string, int64> counts = 24; map<int32, Inner> by_id = 25;
  oneof choice { string card = 26; int64 iban = 27; Inner other = 28; }
  google.protobuf.Timestamp at = 29; google.protobuf.Duration took = 30;
  google.protobuf.Struct free = 31; google.protobuf.Int64Value boxed = 32;
  Inner inner = 33; All again = 2000; Nothing nothing = 34; repeated double doubles = 536870911;
}
enum Kind { ZERO = 0; ONE = 1; MINUS = -1; }
"""


def proto3_row(r: random.Random) -> dict[str, Any]:
    def inner() -> dict[str, Any]:
        return {"id": integer(r, 64), "name": text(r)}

    def unsigned(bits: int) -> int:
        return r.choice((0, 1, (1 << bits) - 1, r.randrange(1 << bits)))

    choice = r.choice((None, "card", "iban", "other"))
    return {
        **{name: integer(r, 32) for name in ("i32", "s32", "sf32")},
        **{name: integer(r, 64) for name in ("i64", "s64", "sf64")},
        **{name: unsigned(32) for name in ("u32", "f32")},
        **{name: Decimal(unsigned(64)) for name in ("u64", "f64")},
        "single": real(r),
        "dbl": real(r),
        "flag": r.random() < 0.5,
        "text": text(r),
        "raw": r.randbytes(r.choice((0, 1, 300))),
        "kind": r.choice(("ZERO", "ONE", "MINUS", "77")),
        "maybe": some(r, lambda: integer(r, 32)),
        "note": some(r, lambda: text(r)),
        "packed": [integer(r, 64) for _ in range(r.choice((0, 1, 60)))],
        "loose": [integer(r, 32) for _ in range(r.randrange(3))],
        "tags": [text(r) for _ in range(r.randrange(3))],
        "kinds": [r.choice(("ZERO", "ONE", "-5")) for _ in range(r.randrange(3))],
        "inners": [inner() for _ in range(r.randrange(3))],
        "counts": [(f"k{n}", integer(r, 64)) for n in range(r.randrange(3))],
        "by_id": [(n, inner()) for n in range(r.randrange(3))],
        "card": text(r) if choice == "card" else None,
        "iban": integer(r, 64) if choice == "iban" else None,
        "other": inner() if choice == "other" else None,
        "at": some(r, lambda: moment(r, timedelta(microseconds=1))),
        "took": some(r, lambda: timedelta(microseconds=integer(r, 40))),
        "free": some(r, lambda: '{"a":1.5}'),
        "boxed": some(r, lambda: {"value": integer(r, 64)}),
        "inner": some(r, inner),
        "again": some(r, lambda: '{"i32":5,"tags":["x"]}'),
        "nothing": some(r, lambda: {"__dummy_field_in_empty_struct": None}),
        "doubles": [real(r) for _ in range(r.randrange(3))],
    }


def test_protobuf_columns_come_back() -> None:
    values = pa.array(rows(proto3_row), ColumnEncoder(PROTO3, "protobuf", message="x.All").type)
    round_trip(values, PROTO3, "protobuf", "x.All")
    round_trip(values.slice(11, 30), PROTO3, "protobuf", "x.All")


PROTO2 = """
syntax = "proto2";
message All {
  required int32 id = 1;
  optional int32 limit = 2 [default = 5];
  repeated int32 loose = 3;
  repeated int32 packed = 4 [packed = true];
  optional group Pair = 5 { optional string key = 1; optional group Deep = 2 { required bool on = 1; } }
  repeated group Item = 6 { optional sint32 n = 1; }
  optional Kind kind = 7 [default = B];
  enum Kind { A = 3; B = -2; }
}
"""


def test_proto2_columns_come_back() -> None:
    def row(r: random.Random) -> dict[str, Any]:
        deep = some(r, lambda: {"on": True})
        return {
            "id": integer(r, 32),
            "limit": integer(r, 32),
            "loose": [integer(r, 32) for _ in range(r.randrange(3))],
            "packed": [integer(r, 32) for _ in range(r.randrange(3))],
            "pair": some(r, lambda: {"key": some(r, lambda: text(r)), "deep": deep}),
            "item": [{"n": some(r, lambda: integer(r, 32))} for _ in range(r.randrange(3))],
            "kind": r.choice("AB"),
        }

    round_trip(rows(row), PROTO2, "protobuf")
    # Absent, they have the file's defaults.
    found = decode(encode([{"id": 1}], PROTO2, "protobuf", schema_id=7), {7: PROTO2}, "protobuf")
    assert found[0]["value"]["limit"].as_py() == 5
    assert found[0]["value"]["kind"].as_py() == "B"


def test_another_reader_of_protobuf() -> None:
    """The JSON comes from prost-reflect, which parses the wire format by itself."""
    made = [row for row in rows(proto3_row) if row is not None]
    payloads = encode(made, PROTO3, "protobuf", schema_id=7, message="x.All")
    texts = decode(payloads, {7: PROTO3}, "protobuf", as_text=True).field("value").to_pylist()
    for row, found in zip(made, map(json.loads, texts), strict=True):
        assert found.get("i32", 0) == row["i32"]
        assert int(found.get("s64", 0)) == row["s64"]
        assert int(found.get("u64", 0)) == row["u64"]
        assert found.get("text", "") == row["text"]
        assert [int(one) for one in found.get("packed", [])] == row["packed"]
        assert {key: int(value) for key, value in found.get("counts", {}).items()} == dict(row["counts"])
        assert found.get("card") == row["card"]
        assert ("maybe" in found) == (row["maybe"] is not None)
        assert ("inner" in found) == (row["inner"] is not None)
        assert ("nothing" in found) == (row["nothing"] is not None)


def test_packed_lists() -> None:
    def written(schema: str) -> bytes:
        return encode([{"a": [1, 2]}], schema, "protobuf")[0].as_py()

    for syntax, packed in (("proto3", True), ("proto2", False)):
        for option, expected in (("", packed), ("[packed = true]", True), ("[packed = false]", False)):
            schema = f'syntax = "{syntax}"; message A {{ repeated int32 a = 1 {option}; }}'
            assert written(schema) == (b"\x0a\2\1\2" if expected else b"\x08\1\x08\2"), (syntax, option)


def test_message_indexes() -> None:
    for message, framed in (
        ("x.Other", b"\0\0\0\0\7\0\x08\x05"),
        ("x.All", b"\0\0\0\0\7\x02\x02\x08\x05"),
        ("x.All.Inner", b"\0\0\0\0\7\x04\x02\x00\x08\x05"),
    ):
        field = {"x.Other": "a", "x.All": "i32", "x.All.Inner": "id"}[message]
        assert encode([{field: 5}], PROTO3, "protobuf", schema_id=7, message=message)[0].as_py() == framed
    header = ColumnEncoder(PROTO3, "protobuf", message="x.All").header(7)
    assert framing.parse(b"\x08\x05", [(framing.VALUE_SCHEMA_ID, header)]).message_indexes()[0] == [1]


# --- JSON -----------------------------------------------------------------------------------------

JSON = json.dumps(
    {
        "type": "object",
        "title": "All",
        "properties": {
            "id": {"type": "integer"},
            "price": {"type": "number"},
            "flag": {"type": ["boolean", "null"]},
            'na"me': {"type": "string"},
            "any": {},
            "tags": {"type": "array", "items": {"type": ["string", "null"]}},
            "inner": {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "string"}}},
            "things": {"type": "array", "items": {"type": "object", "properties": {"a": {"type": "number"}}}},
        },
    }
)


def json_row(r: random.Random) -> dict[str, Any]:
    def finite() -> float:
        return r.choice((0.0, -0.0, 1.5, 1e300, 5e-324, 0.1, r.random()))

    return {
        "id": some(r, lambda: integer(r, 64)),
        "price": some(r, finite),
        "flag": some(r, lambda: r.random() < 0.5),
        'na"me': some(r, lambda: text(r)),
        "any": some(r, lambda: r.choice(('{"x": [1, null]}', "5", '"text"', "true"))),
        "tags": some(r, lambda: [some(r, lambda: text(r)) for _ in range(r.randrange(3))]),
        "inner": some(r, lambda: {"a": some(r, lambda: integer(r, 64)), "b": some(r, lambda: text(r))}),
        "things": some(r, lambda: [some(r, lambda: {"a": some(r, finite)}) for _ in range(r.randrange(3))]),
    }


def test_json_columns_come_back() -> None:
    round_trip(rows(json_row), JSON, "json")
    round_trip(pa.array(rows(json_row), ColumnEncoder(JSON, "json").type).slice(5, 50), JSON, "json")
    round_trip([1, None, 3], '{"type": "integer"}', "json")


# --- other readers, framing -----------------------------------------------------------------------


def test_confluent_reads_our_avro() -> None:
    schema = {
        "type": "record",
        "name": "Order",
        "fields": [
            {"name": "id", "type": "long"},
            {"name": "at", "type": {"type": "long", "logicalType": "timestamp-micros"}},
            {
                "name": "price",
                "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2},
            },
            {"name": "tags", "type": ["null", {"type": "array", "items": "string"}]},
        ],
    }
    client = SchemaRegistryClient.new_client({"url": "mock://"})
    schema_id = client.register_schema("orders-value", ConfluentSchema(json.dumps(schema), "AVRO"))
    made = [
        {"id": 5, "at": EPOCH + timedelta(microseconds=7), "price": Decimal("-1.25"), "tags": ["a", "ü"]},
        {"id": -5, "at": EPOCH, "price": Decimal("0.00"), "tags": None},
    ]
    values = encode(made, json.dumps(schema), schema_id=schema_id).to_pylist()
    deserializer = AvroDeserializer(client)
    assert [deserializer(value, CONTEXT) for value in values] == made


def test_python_reads_our_json() -> None:
    made = [row for row in rows(json_row) if row is not None]
    for row, value in zip(made, encode(made, JSON, "json", schema_id=7).to_pylist(), strict=True):
        found = json.loads(framing.parse(value).payload)
        expected = {name: one for name, one in row.items() if one is not None}
        if "any" in expected:
            expected["any"] = json.loads(expected["any"])
        inner = [expected.get("inner"), *expected.get("things", [])]
        for one in filter(None, inner):
            for name in [name for name, value in one.items() if value is None]:
                del one[name]
        assert found == expected


def test_framing() -> None:
    assert encode([1], '"int"', schema_id=7)[0].as_py() == b"\0\0\0\0\7\2"
    assert encode([1], '"int"', schema_id=7, id_bytes=8)[0].as_py() == b"\0\0\0\0\0\0\0\0\7\2"
    assert encode([1], '"int"')[0].as_py() == b"\2"
    value = encode([1], '"int"', schema_id=GUID)[0].as_py()
    assert framing.parse(value) == framing.Framed(None, GUID, b"\2")
    # In a header, where the value is the payload alone.
    encoder = ColumnEncoder('"int"')
    batch = pa.record_batch(
        {
            "value": encoder.encode([1]),
            "headers": pa.array(
                [[{"key": framing.VALUE_SCHEMA_ID, "value": encoder.header(7)}]],
                pa.list_(pa.struct({"key": pa.string(), "value": pa.binary()})),
            ),
        }
    )
    registry = StoredRegistry()
    registry.put_schema(7, Schema("AVRO", '"int"'))
    assert ColumnDecoder(registry, Schema("AVRO", '"int"')).decode(batch).column("value").to_pylist() == [1]


def test_references() -> None:
    registry = StoredRegistry()
    registry.put(SubjectVersion("money", 1, 1, Schema("AVRO", '{"type":"fixed","name":"Money","size":2}')))
    registry.put(
        SubjectVersion("m.proto", 1, 2, Schema("PROTOBUF", 'syntax = "proto3"; message M { int32 a = 1; }'))
    )
    text = '{"type": "record", "name": "R", "fields": [{"name": "a", "type": "Money"}]}'
    schema = Schema("AVRO", text, (Reference("Money", "money", 1),))
    assert encode([{"a": b"xy"}], schema, registry=registry).to_pylist() == [b"xy"]
    text = 'syntax = "proto3"; import "m.proto"; message A { M m = 1; }'
    schema = Schema("PROTOBUF", text, (Reference("m.proto", "m.proto", 1),))
    assert encode([{"m": {"a": 1}}], schema, "protobuf", registry=registry).to_pylist() == [b"\x0a\2\x08\1"]
    with pytest.raises(InvalidSchemaError, match="imports M"):
        ColumnEncoder(schema, "protobuf", registry=registry, message="M")


def test_layouts_of_arrow() -> None:
    schema = avro_field({"type": "array", "items": "string"})
    plain = pa.array([{"a": ["x", "y"]}, {"a": []}])
    expected = encode(plain, schema)
    for item in (pa.large_string(), pa.string_view(), pa.dictionary(pa.int8(), pa.string())):
        array = pa.array([{"a": ["x", "y"]}, {"a": []}], pa.struct({"a": pa.list_(item)}))
        assert encode(array, schema).equals(expected), item
    large = pa.array([{"a": ["x", "y"]}, {"a": []}], pa.struct({"a": pa.large_list(pa.string())}))
    assert encode(pa.chunked_array([large.slice(0, 1), large.slice(1)]), schema).equals(expected)


# --- what cannot be written -----------------------------------------------------------------------


def avro_field(of: Any) -> str:
    return json.dumps({"type": "record", "name": "R", "fields": [{"name": "a", "type": of}]})


P3 = 'syntax = "proto3"; '


@pytest.mark.parametrize(
    ("format", "schema", "column", "says"),
    [
        ("avro", avro_field("int"), [{"a": 1}, {"a": None}], "row 1: a: null: expected int"),
        (
            "avro",
            avro_field({"type": "enum", "name": "E", "symbols": ["A", "B"]}),
            [{"a": "C"}],
            'row 0: a: the string "C": expected one of the enum\'s 2 symbols',
        ),
        (
            "avro",
            avro_field({"type": "fixed", "name": "F", "size": 3}),
            [{"a": b"xy"}],
            "row 0: a: a binary of 2 bytes: expected a fixed of 3",
        ),
        (
            "avro",
            avro_field({"type": "long", "logicalType": "timestamp-millis"}),
            [{"a": EPOCH + timedelta(microseconds=1)}],
            "row 0: a: a timestamp of 1 microseconds: expected whole milliseconds",
        ),
        (
            "avro",
            avro_field({"type": "array", "items": "int"}),
            [{"a": [1, None]}],
            "row 0: a.[]: null: expected an item of the array",
        ),
        (
            "avro",
            avro_field(["string", "int"]),
            [{"a": {"member0": "x", "member1": 1}}],
            "row 0: a: member0 and member1 are both set: expected one member of a union",
        ),
        ("avro", avro_field(["string", "int"]), [{"a": None}], "row 0: a: null, or no member of it is set"),
        ("avro", avro_field("int"), pa.array([{"a": "x"}]), "a: the column's type is Utf8, expected Int32"),
        ("avro", avro_field("int"), pa.array([{"a": 1, "b": 2}]), "b: the schema has no such field"),
        ("avro", avro_field("int"), [{"a": "x"}], "row 0: Could not convert 'x'"),
        ("avro", avro_field("int"), [{"a": 1}, {"a": 2**31}], "row 1: "),
        (
            "protobuf",
            P3 + "message A { oneof o { int32 a = 1; int32 b = 2; } }",
            [{"a": 1, "b": 2}],
            "row 0: a and b are both set: expected one field of the oneof o",
        ),
        (
            "protobuf",
            P3 + "message A { uint32 a = 1; }",
            [{"a": -1}],
            "row 0: a: the number -1: expected an unsigned one of 32 bits",
        ),
        (
            "protobuf",
            P3 + "message A { uint64 a = 1; }",
            [{"a": Decimal(2**64)}],
            "row 0: a: the number 18446744073709551616: expected an unsigned one of 64 bits",
        ),
        (
            "protobuf",
            P3 + "message A { E a = 1; } enum E { X = 0; }",
            [{"a": "Y"}],
            'row 0: a: the string "Y": expected a name of the enum',
        ),
        (
            "protobuf",
            'syntax = "proto2"; message A { required int32 a = 1; }',
            pa.array([{"a": None}], pa.struct({"a": pa.int32()})),
            "row 0: a: null: expected a value, the field is required",
        ),
        (
            "protobuf",
            P3 + "message A { repeated int32 a = 1; }",
            pa.array([{"a": [1, None]}], pa.struct({"a": pa.list_(pa.int32())})),
            "row 0: a: item 1 is null: expected a value",
        ),
        (
            "protobuf",
            P3 + "message A { A a = 1; }",
            [{"a": "x"}],
            "row 0: a: a string: expected the JSON of A",
        ),
        ("json", JSON, [{"price": float("nan")}], "row 0: price: the number NaN: expected one that JSON has"),
        ("json", JSON, [{"any": "{"}], "row 0: any: a string: expected the text of a JSON value"),
        ("json", JSON, pa.array([{"id": "x"}]), "row 0: id: a string: expected the text of an integer"),
        ("json", JSON, pa.array([{"id": True}]), "id: the column's type is Boolean, expected Int64"),
    ],
)
def test_what_cannot_be_encoded(format: SchemaFormat, schema: str, column: Any, says: str) -> None:
    with pytest.raises(EncodingError) as caught:
        encode(column, schema, format)
    assert says in str(caught.value)


@pytest.mark.parametrize(
    ("format", "schema"),
    [
        ("avro", "{"),
        ("avro", '{"type": "record", "name": "R", "fields": [{"name": "a", "type": ["null", "R"]}]}'),
        ("protobuf", "message {"),
        ("protobuf", 'syntax = "proto3";'),
        ("json", "{"),
    ],
)
def test_schemas_that_cannot_be_used(format: SchemaFormat, schema: str) -> None:
    with pytest.raises(InvalidSchemaError):
        ColumnEncoder(schema, format)
