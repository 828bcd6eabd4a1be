"""Protobuf payloads to typed columns: Google's library and confluent-kafka's are the authorities."""

from __future__ import annotations

import json
import pickle
import random
import struct
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from confluent_kafka.schema_registry import SchemaRegistryClient, header_schema_id_serializer
from confluent_kafka.schema_registry.protobuf import ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from google.protobuf.message import Message
from magicbyte import commands
from magicbyte.options.typed import TypedColumns
from magicbyte.schema import decode
from magicbyte.schema.decoding import ColumnDecoder, InvalidSchemaError
from magicbyte.schema.registry import (
    Reference,
    Schema,
    SchemaReferenceError,
    StoredRegistry,
    SubjectVersion,
)
from proto_files import classes, compare, file_of, normal, read, row_of, schema_of, varint

ORDERS = file_of("""
    name: "orders.proto" package: "shop" syntax: "proto3"
    dependency: "google/protobuf/timestamp.proto" dependency: "google/protobuf/duration.proto"
    dependency: "google/protobuf/struct.proto" dependency: "google/protobuf/wrappers.proto"
    dependency: "google/protobuf/empty.proto" dependency: "customer.proto"
    message_type {
      name: "Order"
      field { name: "id" number: 1 type: TYPE_UINT64 label: LABEL_OPTIONAL }
      field { name: "lines" number: 2 type: TYPE_MESSAGE type_name: ".shop.Order.Line" label: LABEL_REPEATED }
      field {
        name: "notes" number: 3 type: TYPE_MESSAGE type_name: ".shop.Order.NotesEntry" label: LABEL_REPEATED
      }
      field { name: "card" number: 4 type: TYPE_STRING oneof_index: 0 label: LABEL_OPTIONAL }
      field { name: "cash" number: 5 type: TYPE_SINT64 oneof_index: 0 label: LABEL_OPTIONAL }
      field {
        name: "coupon" number: 6 type: TYPE_INT32 proto3_optional: true oneof_index: 1 label: LABEL_OPTIONAL
      }
      field {
        name: "at" number: 7 type: TYPE_MESSAGE type_name: ".google.protobuf.Timestamp" label: LABEL_OPTIONAL
      }
      field {
        name: "took" number: 8 type: TYPE_MESSAGE type_name: ".google.protobuf.Duration" label: LABEL_OPTIONAL
      }
      field {
        name: "more" number: 9 type: TYPE_MESSAGE type_name: ".google.protobuf.Struct" label: LABEL_OPTIONAL
      }
      field {
        name: "weight" number: 10
        type: TYPE_MESSAGE type_name: ".google.protobuf.DoubleValue" label: LABEL_OPTIONAL
      }
      field {
        name: "nothing" number: 11
        type: TYPE_MESSAGE type_name: ".google.protobuf.Empty" label: LABEL_OPTIONAL
      }
      field {
        name: "buyer" number: 12 type: TYPE_MESSAGE type_name: ".people.Customer" label: LABEL_OPTIONAL
      }
      field { name: "parts" number: 13 type: TYPE_MESSAGE type_name: ".shop.Order" label: LABEL_REPEATED }
      field { name: "states" number: 14 type: TYPE_ENUM type_name: ".shop.State" label: LABEL_REPEATED }
      nested_type {
        name: "Line"
        field { name: "sku" number: 1 type: TYPE_STRING label: LABEL_OPTIONAL }
        field { name: "prices" number: 2 type: TYPE_DOUBLE label: LABEL_REPEATED }
      }
      nested_type {
        name: "NotesEntry" options { map_entry: true }
        field { name: "key" number: 1 type: TYPE_INT32 label: LABEL_OPTIONAL }
        field {
          name: "value" number: 2 type: TYPE_MESSAGE type_name: ".shop.Order.Line" label: LABEL_OPTIONAL
        }
      }
      oneof_decl { name: "paid" } oneof_decl { name: "_coupon" }
    }
    message_type { name: "Refund" field { name: "order" number: 1 type: TYPE_UINT64 label: LABEL_OPTIONAL } }
    enum_type { name: "State" value { name: "NEW" number: 0 } value { name: "PAID" number: 1 } }
""")
CUSTOMER = file_of("""
    name: "customer.proto" package: "people" syntax: "proto3"
    message_type {
      name: "Customer"
      field { name: "name" number: 1 type: TYPE_STRING label: LABEL_OPTIONAL }
      field { name: "photo" number: 2 type: TYPE_BYTES label: LABEL_OPTIONAL }
    }
""")
CLASSES = classes(CUSTOMER, ORDERS)
ORDER, REFUND = CLASSES["shop.Order"], CLASSES["shop.Refund"]
LINE = ORDER.Line  # type: ignore[attr-defined]


def orders() -> Iterator[Message]:
    yield ORDER()
    full = ORDER(id=2**64 - 1, card="x", coupon=0, states=[0, 1, 7])
    full.lines.add(sku="ü", prices=[0.5, -1])
    full.lines.add()
    full.notes[-1].sku = "note"
    full.notes[7].SetInParent()
    full.at.FromJsonString("1969-12-31T23:59:59.123456Z")
    full.took.FromMicroseconds(-1_500_000)
    full.more.update({"a": [1, "two", None], "b": {"c": True}})
    full.weight.value = 0
    full.nothing.SetInParent()
    full.buyer.name = "ann"
    full.buyer.photo = b"\xff\0"
    full.parts.add(id=5).parts.add(card="inner")
    yield full
    yield ORDER(cash=-3)


def registry_of(client: SchemaRegistryClient) -> StoredRegistry:
    registry = StoredRegistry()
    for subject in client.get_subjects():
        for number in client.get_versions(subject):
            one = client.get_version(subject, number)
            used = tuple(Reference(ref.name, ref.subject, ref.version) for ref in one.schema.references)
            schema = Schema(one.schema.schema_type, one.schema.schema_str, used, guid=one.guid)
            registry.put(SubjectVersion(subject, number, one.schema_id, schema))
    return registry


def test_confluent_payloads_are_googles_values() -> None:
    client = SchemaRegistryClient.new_client({"url": "mock://"})
    context = SerializationContext("orders", MessageField.VALUE)
    serialize = ProtobufSerializer(ORDER, client, {"use.deprecated.format": False})
    messages = list(orders())
    values: list[bytes | None] = [serialize(message, context) for message in messages]
    result = decode([*values, None], registry_of(client), "protobuf")
    expected = [row_of(message) for message in messages]
    rows = [
        normal(ours, theirs)
        for ours, theirs in zip(result.field("value").to_pylist(), expected, strict=False)
    ]
    assert rows == expected
    assert result.field("_error").null_count == len(result) == 4
    assert result.field("value")[3].as_py() is None
    # The order of a map's entries, and text that is not parsed.
    assert rows[1]["notes"] == {-1: {"sku": "note", "prices": []}, 7: {"sku": "", "prices": []}}
    assert json.loads(result.field("value")[1]["parts"][0].as_py()) == {
        "id": "5",
        "parts": [{"card": "inner"}],
    }


def test_message_indexes_choose_the_message() -> None:
    client = SchemaRegistryClient.new_client({"url": "mock://"})
    context = SerializationContext("orders", MessageField.VALUE)
    of_order = ProtobufSerializer(ORDER, client, {"use.deprecated.format": False})
    of_refund = ProtobufSerializer(REFUND, client, {"use.deprecated.format": False})
    of_line = ProtobufSerializer(LINE, client, {"use.deprecated.format": False})
    refund, order = of_refund(REFUND(order=7), context), of_order(ORDER(id=9), context)
    line = of_line(LINE(sku="a"), context)
    registry = registry_of(client)
    assert decode([refund], registry, "protobuf").field("value").to_pylist() == [{"order": 7}]
    assert decode([line], registry, "protobuf").field("value").to_pylist() == [{"sku": "a", "prices": []}]
    both = decode([refund, order, line], registry, "protobuf").field("value")
    assert [one.name for one in both.type] == ["Refund", "Order", "Line"]
    assert both.field("Refund").to_pylist() == [{"order": 7}, None, None]
    assert [both.field(name).null_count for name in ("Refund", "Order", "Line")] == [2, 2, 2]
    given = decode([refund, order], registry, "protobuf", messages=["shop.Refund"])
    assert given.field("value").to_pylist() == [{"order": 7}, None]
    assert given.field("_error")[1].as_py() == "it is a message shop.Order: expected shop.Refund"
    with pytest.raises(InvalidSchemaError, match=r"no message shop\.Lost"):
        decode([refund], registry, "protobuf", messages=["shop.Lost"])


def test_headers_with_guids() -> None:
    client = SchemaRegistryClient.new_client({"url": "mock://"})
    settings = {"use.deprecated.format": False, "schema.id.serializer": header_schema_id_serializer}
    rows, headers = [], []
    for message in (REFUND(order=1), ORDER(id=2)):
        context = SerializationContext("orders", MessageField.VALUE, [])
        rows.append(ProtobufSerializer(type(message), client, settings)(message, context))
        headers.append(context.headers)
    registry = registry_of(client)
    reader = registry.latest("orders-value").schema
    decoder = ColumnDecoder(registry, reader, "protobuf", messages=["shop.Refund", "shop.Order"])
    of_headers = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
    batch = pa.record_batch({"value": pa.array(rows), "headers": pa.array(headers, of_headers)})
    result = pickle.loads(pickle.dumps(decoder)).decode(batch).to_pydict()
    assert result["_error"] == [None, None]
    assert [(one["Refund"] or {}).get("order") for one in result["value"]] == [1, None]
    assert [(one["Order"] or {}).get("id") for one in result["value"]] == [None, 2]


PROTO2 = file_of("""
    name: "old.proto" syntax: "proto2"
    message_type {
      name: "M"
      field { name: "a" number: 1 type: TYPE_INT32 label: LABEL_OPTIONAL default_value: "-7" }
      field { name: "b" number: 2 type: TYPE_STRING label: LABEL_OPTIONAL default_value: "none" }
      field { name: "c" number: 3 type: TYPE_BYTES label: LABEL_OPTIONAL default_value: "\\\\001x" }
      field { name: "d" number: 4 type: TYPE_DOUBLE label: LABEL_OPTIONAL default_value: "inf" }
      field { name: "e" number: 5 type: TYPE_ENUM type_name: ".E" label: LABEL_OPTIONAL default_value: "Y" }
      field { name: "f" number: 6 type: TYPE_GROUP type_name: ".M.F" label: LABEL_REPEATED }
      field { name: "g" number: 7 type: TYPE_GROUP type_name: ".M.G" label: LABEL_OPTIONAL }
      field { name: "h" number: 8 type: TYPE_BOOL label: LABEL_OPTIONAL }
      field { name: "i" number: 9 type: TYPE_ENUM type_name: ".E" label: LABEL_REPEATED }
      field {
        name: "j" number: 10 type: TYPE_UINT64 label: LABEL_OPTIONAL default_value: "18446744073709551615"
      }
      field { name: "k" number: 11 type: TYPE_MESSAGE type_name: ".M.KEntry" label: LABEL_REPEATED }
      nested_type { name: "F" field { name: "x" number: 1 type: TYPE_INT32 label: LABEL_OPTIONAL } }
      nested_type {
        name: "G"
        field { name: "x" number: 1 type: TYPE_GROUP type_name: ".M.F" label: LABEL_OPTIONAL }
      }
      nested_type {
        name: "KEntry" options { map_entry: true }
        field { name: "key" number: 1 type: TYPE_STRING label: LABEL_OPTIONAL }
        field { name: "value" number: 2 type: TYPE_ENUM type_name: ".E" label: LABEL_OPTIONAL }
      }
    }
    enum_type {
      name: "E"
      value { name: "X" number: 0 } value { name: "Y" number: 1 } value { name: "Z" number: -1 }
    }
""")
M = classes(PROTO2)["M"]


def test_proto2_defaults_groups_and_closed_enums() -> None:
    payloads = [
        b"",
        M(a=0, b="", c=b"", d=0, e=0, h=False, j=0).SerializeToString(),
        b"\x28\x09\x48\x01\x48\x63\x48\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
        b"\x33\x08\x05\x34\x33\x34\x3b\x0b\x08\x01\x0c\x3c\x3b\x0b\x0c\x3c",
        # The entry's value is not of the enum: the whole entry is unknown.
        b"\x5a\x05\x0a\x01a\x10\x63\x5a\x05\x0a\x01b\x10\x01",
        b"\x33\x08\x05",
        b"\x33\x3c",
    ]
    assert compare(PROTO2, M, payloads) == 2


WIRE = file_of("""
    name: "wire.proto" syntax: "proto3"
    message_type {
      name: "W"
      field { name: "u64" number: 1 type: TYPE_UINT64 label: LABEL_OPTIONAL }
      field { name: "b" number: 2 type: TYPE_BOOL label: LABEL_OPTIONAL }
      field { name: "s" number: 3 type: TYPE_STRING label: LABEL_OPTIONAL }
      field { name: "i32" number: 4 type: TYPE_INT32 label: LABEL_OPTIONAL }
      field { name: "z32" number: 5 type: TYPE_SINT32 label: LABEL_OPTIONAL }
      field { name: "f" number: 6 type: TYPE_FIXED32 label: LABEL_REPEATED }
      field { name: "n" number: 7 type: TYPE_INT64 label: LABEL_REPEATED }
      field { name: "e" number: 8 type: TYPE_ENUM type_name: ".S" label: LABEL_OPTIONAL }
      field { name: "m" number: 9 type: TYPE_MESSAGE type_name: ".W.MEntry" label: LABEL_REPEATED }
      field { name: "w" number: 10 type: TYPE_MESSAGE type_name: ".V" label: LABEL_OPTIONAL }
      nested_type {
        name: "MEntry" options { map_entry: true }
        field { name: "key" number: 1 type: TYPE_BOOL label: LABEL_OPTIONAL }
        field { name: "value" number: 2 type: TYPE_INT32 label: LABEL_OPTIONAL }
      }
    }
    message_type { name: "V" field { name: "x" number: 1 type: TYPE_UINT32 label: LABEL_REPEATED } }
    enum_type { name: "S" value { name: "A" number: 0 } value { name: "B" number: 5 } }
""")
W = classes(WIRE)["W"]
NINE = b"\xff" * 9
FORMS = {
    "a tenth byte of 2": b"\x08" + NINE + b"\x02",
    "a tenth byte of 127": b"\x08" + NINE + b"\x7f",
    "eleven bytes": b"\x08" + NINE + b"\x80\x01",
    "an unknown varint of ten bytes": b"\x78" + NINE + b"\x7e",
    "true in ten bytes": b"\x10" + b"\x80" * 9 + b"\x01",
    "false in ten bytes": b"\x10" + b"\x80" * 9 + b"\x02",
    "an int32 of 64 bits": b"\x20\xff\xff\xff\xff\xff\x01",
    "a sint32 of 64 bits": b"\x28\xff\xff\xff\xff\xff\x01",
    "a tag of five bytes": b"\x88\x80\x80\x80\x00\x05",
    "a tag of six bytes": b"\x88\x80\x80\x80\x80\x00\x05",
    "a tag of 33 bits": b"\x88\x80\x80\x80\x10\x05",
    "the highest number of a field": b"\xf8\xff\xff\xff\x0f\x05",
    "a length of five bytes": b"\x1a\x81\x80\x80\x80\x00a",
    "a length of six bytes": b"\x1a\x81\x80\x80\x80\x80\x00a",
    "a length of 2^31": b"\x1a\x80\x80\x80\x80\x08",
    "packed or not, in any order": b"\x3a\x02\x01\x02\x38\x03\x32\x04\0\0\0\1\x35\1\0\0\0\x3a\0\x3a\x01\x04",
    "a packed list that is cut": b"\x32\x05\0\0\0\1\0",
    "the last value": b"\x08\x01\x1a\x01a\x08\x02\x1a\x01b",
    "another wire type": b"\x0d\0\0\0\1\x18\x05",
    "pieces of a message": b"\x52\x02\x08\x01\x52\x03\x0a\x01\x02",
    "entries with the same key": b"\x4a\x04\x08\x01\x10\x05\x4a\x02\x10\x07\x4a\x04\x08\x01\x10\x06\x4a\x00",
    "an enum without a name": b"\x40\x09",
    "an enum of 64 bits": b"\x40\x85\x80\x80\x80\x80\x01",
    "not UTF-8": b"\x1a\x02\xc3\x28",
    "field 0": b"\0\0",
    "wire type 6": b"\x0e",
    "groups 100 deep": b"\x7b" * 100 + b"\x7c" * 100,
    "groups 101 deep": b"\x7b" * 101 + b"\x7c" * 101,
    "another group's end": b"\x7b\x74",
    "nothing": b"",
}


@pytest.mark.parametrize("payload", FORMS.values(), ids=FORMS.keys())
def test_the_wire_is_read_as_google_reads_it(payload: bytes) -> None:
    compare(WIRE, W, [payload])


def test_an_entry_with_unknown_fields() -> None:
    # Google's parsers differ: to upb the whole entry is an unknown field, Java's skips what is unknown in it.
    row = read(WIRE, [b"\x4a\x06\x08\x01\x18\x07\x10\x05"]).field("value")[0].as_py()
    assert row["m"] == [(True, 5)]


def test_damaged_bytes_are_accepted_and_refused_as_google_does() -> None:
    random_ = random.Random(5)
    base = W(u64=2**63, b=True, s="text", i32=-1, z32=-5, f=[1, 2], n=[-1, 3], e=5).SerializeToString()
    base += b"\x52\x03\x0a\x01\x02\x7b\x7c"
    payloads = []
    for _ in range(20_000):
        payload = bytearray(base)
        for _ in range(random_.randrange(1, 4)):
            at = random_.randrange(len(payload))
            match random_.randrange(3):
                case 0:
                    payload[at] = random_.randrange(256)
                case 1:
                    payload[at] ^= 1 << random_.randrange(8)
                case _:
                    del payload[at]
        payloads.append(bytes(payload))
    assert 5_000 < compare(WIRE, W, payloads) < 15_000


def test_a_bad_row_costs_only_itself() -> None:
    good = W(u64=1, s="a").SerializeToString()
    result = read(WIRE, [good, b"\x52\x03\x0a\x02\xff", good, b"\x1a\x02a\xff", good])
    assert [one is None for one in result.field("value").to_pylist()] == [False, True, False, True, False]
    assert result.field("_error").to_pylist() == [
        None,
        "w.x: a length of 2 where 1 bytes are left (byte 9)",
        None,
        "s: text that is not UTF-8 (byte 9)",
        None,
    ]
    assert result.field("invalidValue")[3].as_py() == b"\0\0\0\0\x07\0\x1a\x02a\xff"


def test_bad_framing_and_unknown_ids() -> None:
    registry = StoredRegistry()
    registry.put_schema(1, Schema("PROTOBUF", schema_of(WIRE)))
    registry.put_schema(2, Schema("AVRO", '"int"'))
    registry.put_schema(3, Schema("PROTOBUF", "message"))
    registry.put_schema(4, Schema("PROTOBUF", schema_of(WIRE), (Reference("x.proto", "x", 1),)))

    def framed(schema_id: int, rest: bytes) -> bytes:
        return b"\0" + struct.pack(">I", schema_id) + rest

    values = [
        framed(1, b"\0\x08\x05"),
        framed(1, b""),
        framed(1, b"\x02\x80"),
        framed(1, b"\x02\x08"),
        framed(2, b"\0"),
        framed(3, b"\0"),
        framed(4, b"\0"),
        framed(9, b"\0"),
        b"text",
    ]
    result = decode(values, registry, "protobuf", schema_of(WIRE))
    assert result.field("value").null_count == len(values) - 1
    expected = [
        "",
        "messageIndexes",
        "messageIndexes",
        "no message with the indexes [4]",
        "AVRO, expected PROTOBUF",
        "expected",
        "no subject has the name x",
        "no schema has the id 9",
        "not framed",
    ]
    for error, part in zip(result.field("_error").to_pylist(), expected, strict=True):
        assert part in (error or "")
    assert result.field("invalidValue").to_pylist() == [None, *values[1:]]


def test_imports_of_imports_and_a_cycle() -> None:
    files = [
        file_of(f"""
            name: "f{n}.proto" syntax: "proto3" dependency: "f{n + 1}.proto"
            message_type {{
              name: "M{n}"
              field {{ name: "m" number: 1 type: TYPE_MESSAGE type_name: ".M{n + 1}" label: LABEL_OPTIONAL }}
            }}
        """)
        for n in range(5)
    ]
    last = file_of("""
        name: "f5.proto" syntax: "proto3"
        message_type { name: "M5" field { name: "m" number: 1 type: TYPE_INT32 label: LABEL_OPTIONAL } }
    """)
    registry = StoredRegistry()
    for number, file in enumerate([*files, last]):
        references = [] if file is last else [Reference(f"f{number + 1}.proto", f"s{number + 1}", 1)]
        schema = Schema("PROTOBUF", schema_of(file), tuple(references))
        registry.put(SubjectVersion(f"s{number}", 1, number + 1, schema))
    value = b"\0\0\0\0\x01\0" + b"\x0a\x0a\x0a\x08\x0a\x06\x0a\x04\x0a\x02" + b"\x08\x05"
    row = decode([value], registry, "protobuf").field("value")[0].as_py()
    assert row == {"m": {"m": {"m": {"m": {"m": {"m": 5}}}}}}
    registry.put(
        SubjectVersion("s5", 1, 6, Schema("PROTOBUF", schema_of(last), (Reference("f0.proto", "s0", 1),)))
    )
    with pytest.raises(SchemaReferenceError, match="lead to itself"):
        decode([value], registry, "protobuf")


def test_recursion_bombs() -> None:
    deep = b""
    for _ in range(20_000):
        deep = b"\x6a" + varint(len(deep)) + deep
    result = read(ORDERS, [deep, b"\x08\x01", b"\x7b" * 100_000], CUSTOMER)
    assert [one is None for one in result.field("value").to_pylist()] == [True, False, True]
    assert result.field("_error")[0].as_py().startswith("parts.")
    assert all("deeper than 100" in result.field("_error")[row].as_py() for row in (0, 2))


def test_as_text() -> None:
    value = b"\0\0\0\0\x07\0" + ORDER(id=5, card="x").SerializeToString()
    registry = StoredRegistry()
    registry.put(SubjectVersion("c", 1, 1, Schema("PROTOBUF", schema_of(CUSTOMER))))
    registry.put_schema(7, Schema("PROTOBUF", schema_of(ORDERS), (Reference("customer.proto", "c", 1),)))
    text = decode([value], registry, "protobuf", as_text=True).field("value")[0].as_py()
    assert json.loads(text) == {"id": "5", "card": "x"}


def test_text_of_a_file_is_a_schema_too() -> None:
    text = 'syntax = "proto3"; package p; message A { message B { int32 b = 1; } }'
    value = b"\0\0\0\0\x07\x04\0\0\x08\x05"
    assert decode([value], {7: text}, "protobuf").field("value").to_pylist() == [{"b": 5}]


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    """A partition with the values of two messages, two that are damaged and one that is not framed."""
    from magicbyte import RecordsBuilder

    builder = RecordsBuilder()
    refund = b"\0\0\0\0\x07\x02\x02"
    values = [
        refund + b"\x08\x05",
        b"\0\0\0\0\x07\0\x08\x01",
        refund + b"\x08",
        b"\0\0\0\0\x08\0",
        b"x",
        None,
    ]
    for offset, value in enumerate(values):
        builder.append(offset, 0, b"k", value)
    (tmp_path / "logs" / "orders-0").mkdir(parents=True)
    (tmp_path / "logs" / "orders-0" / "00000000000000000000.log").write_bytes(builder.build())
    return tmp_path / "logs"


def test_ingest(logs: Path, tmp_path: Path) -> None:
    schemas = tmp_path / "schemas"
    schemas.mkdir()
    (schemas / "orders.proto").write_text(schema_of(ORDERS))
    (schemas / "customer.proto").write_text(schema_of(CUSTOMER))
    reference = {"name": "customer.proto", "subject": "customer", "version": 1}
    orders_ = {"file": "orders.proto", "references": [reference]}
    index = {"7": orders_, "orders-value": orders_, "customer": "customer.proto"}
    (schemas / "map.json").write_text(json.dumps(index))
    typed = TypedColumns(
        schema_registry=str(schemas / "map.json"), value_format="protobuf", messages=("shop.Refund",)
    )
    report = commands.ingest(logs, tmp_path / "out", typed=typed)
    total = report["total"]
    assert report["balanced"]
    assert (total["rows"], total["invalid_values"], total["unframed_values"]) == (6, 4, 1)
    rows = pq.read_table(tmp_path / "out" / "records").to_pylist()
    assert [row["value"] for row in rows] == [{"order": 5}, None, None, None, None, None]
    assert [row["invalidValue"] is None for row in rows] == [True, False, False, False, False, True]
