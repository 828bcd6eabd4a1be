"""Protobuf schemas that registries keep: which message a value is, and files that need no reference."""

from __future__ import annotations

import importlib
import json
import pkgutil
from typing import Any

import google.type
import pytest
from confluent_kafka.schema_registry.confluent import meta_pb2
from confluent_kafka.schema_registry.confluent.type import decimal_pb2, variant_pb2
from google.protobuf import descriptor_pb2
from magicbyte.schema import decode
from magicbyte.schema.compatibility.protobuf_schema import parse_protobuf
from magicbyte.schema.decoding import InvalidSchemaError
from proto_files import classes, compare, file_of, schema_of, varint

MAPS = """syntax = "proto3"; package s; message Outer {
    map<string, string> m = 1; map<string, int32> n = 2;
    message A { string x = 1; }
    message B { string x = 1; message C { map<int32, A> o = 1; message D { string x = 1; } } }
}"""


@pytest.mark.parametrize(
    ("indexes", "message"),
    [
        # As protoc's descriptors count, and so Go, Python and C#: with the entries of maps.
        ([0, 2], "s.Outer.A"),
        ([0, 3], "s.Outer.B"),
        ([0, 3, 0, 1], "s.Outer.B.C.D"),
        # As Java counts a schema's text: without them.
        ([0, 0], "s.Outer.A"),
        ([0, 1], "s.Outer.B"),
        ([0, 1, 0, 0], "s.Outer.B.C.D"),
    ],
)
def test_an_entry_of_a_map_is_no_value(indexes: list[int], message: str) -> None:
    value = b"\0\0\0\0\7" + b"".join(varint(2 * one) for one in (len(indexes), *indexes)) + b"\x0a\x01z"
    for messages in (None, [message]):
        rows = decode([value], {7: MAPS}, "protobuf", messages=messages)
        assert rows.field("value").to_pylist() == [{"x": "z"}], rows.to_pylist()
    (text,) = decode([value], {7: MAPS}, "protobuf", as_text=True).field("value").to_pylist()
    assert text == '{"x":"z"}'


ENTRIES = """message Payment {
  %s .Payment.MetadataEntry metadata = 4;
  %s .Payment.ByIdEntry by_id = 5;
  message MetadataEntry { option map_entry = true; %s string key = 1; %s string value = 2; }
  message ByIdEntry { option map_entry = true; %s int32 key = 1; %s .Payment.Part value = 2; }
  message Part { %s string x = 1; }
}"""
OPTIONAL = ("repeated", "repeated", *["optional"] * 5)
PROTO3 = ENTRIES % ("repeated", "repeated", *[""] * 5)
AS_JAVA_WRITES = {
    "proto3": f'syntax = "proto3"; {PROTO3}',
    "proto2": f'syntax = "proto2"; {ENTRIES % OPTIONAL}',
    "without syntax": ENTRIES % OPTIONAL,
    "2023": f'edition = "2023"; {PROTO3}',
    "in front": PROTO3.replace("message Payment", 'syntax = "proto3"; message Payment', 1),
    "other names": f'syntax = "proto3"; {PROTO3.replace("MetadataEntry", "metadataEntry")}',
}


@pytest.mark.parametrize("schema", AS_JAVA_WRITES.values(), ids=AS_JAVA_WRITES)
def test_maps_as_java_writes_them(schema: str) -> None:
    value = b"\0\0\0\0\7\0\x22\6\x0a\1k\x12\1v\x22\6\x0a\1k\x12\1w\x2a\7\x08\5\x12\3\x0a\1z"
    (text,) = decode([value], {7: schema}, "protobuf", as_text=True).field("value").to_pylist()
    assert text == '{"metadata":{"k":"w"},"byId":{"5":{"x":"z"}}}'
    (row,) = decode([value], {7: schema}, "protobuf").field("value").to_pylist()
    assert row == {"metadata": [("k", "w")], "by_id": [(5, {"x": "z"})]}


def test_an_entry_that_java_writes_is_no_value() -> None:
    schema = AS_JAVA_WRITES["proto3"]
    value = b"\0\0\0\0\7" + b"".join(varint(2 * one) for one in (2, 0, 0)) + b"\x0a\1z"
    # As the text counts without entries, it is the only other message.
    assert decode([value], {7: schema}, "protobuf").field("value").to_pylist() == [{"x": "z"}]
    alone = schema.replace("message Part {  string x = 1; }", "").replace(".Payment.Part", "string")
    rows = decode([value], {7: alone}, "protobuf")
    assert rows.field("value").null_count == 1, rows.to_pylist()
    assert rows.field("_error").null_count == 0


@pytest.mark.parametrize(
    ("fields", "entry", "reason"),
    [
        ("repeated MEntry m = 1;", "string key = 1;", "M.MEntry: the map entry is not a key = 1 of"),
        ("repeated MEntry m = 1;", "", "M.MEntry: the map entry is not a key"),
        (
            "repeated MEntry m = 1;",
            "string key = 1; int32 value = 3;",
            "M.MEntry: the map entry is not a key",
        ),
        (
            "repeated MEntry m = 1;",
            "double key = 1; int32 value = 2;",
            "M.MEntry: the map entry is not a key",
        ),
        ("repeated MEntry m = 1;", "bytes key = 1; int32 value = 2;", "M.MEntry: the map entry is not a key"),
        ("repeated MEntry m = 1;", "M key = 1; int32 value = 2;", "M.MEntry: the map entry is not a key"),
        (
            "repeated MEntry m = 1;",
            "string key = 1; repeated int32 value = 2;",
            "M.MEntry: the map entry is not a key",
        ),
        (
            "repeated MEntry m = 1;",
            "string key = 1; int32 value = 2; int32 more = 3;",
            "M.MEntry: the map entry is not a key",
        ),
        (
            "MEntry m = 1;",
            "string key = 1; int32 value = 2;",
            "M.m: its type is the map entry M.MEntry, expected",
        ),
        (
            "repeated MEntry n = 1;",
            "string key = 1; int32 value = 2;",
            "M.n: its type is the map entry M.MEntry",
        ),
        (
            "oneof o { MEntry m = 1; }",
            "string key = 1; int32 value = 2;",
            "M.m: its type is the map entry M.MEntry, expected a repeated field",
        ),
    ],
)
def test_map_entries_that_are_none(fields: str, entry: str, reason: str) -> None:
    schema = (
        f'syntax = "proto3"; message M {{ {fields} message MEntry {{ option map_entry = true; {entry} }} }}'
    )
    (error,) = decode([b"\0\0\0\0\7\0"], {7: schema}, "protobuf", as_text=True).field("_error").to_pylist()
    assert reason in error
    # Without the option it is a message like others.
    plain = schema.replace("map_entry = true", "map_entry = false")
    assert decode([b"\0\0\0\0\7\0"], {7: plain}, "protobuf", as_text=True).field("_error").null_count == 1


KNOWN = {
    f"google/type/{name.removesuffix('_pb2')}.proto": importlib.import_module(f"google.type.{name}")
    for name in (one.name for one in pkgutil.iter_modules(google.type.__path__))
    if name.endswith("_pb2")
} | {
    "confluent/meta.proto": meta_pb2,
    "confluent/type/decimal.proto": decimal_pb2,
    "confluent/type/variant.proto": variant_pb2,
}


@pytest.mark.parametrize("path", KNOWN)
def test_files_that_registries_know(path: str) -> None:
    """A schema imports them without a reference, and their messages are what others have."""
    descriptor = KNOWN[path].DESCRIPTOR
    messages = list(descriptor.message_types_by_name.values())
    fields = "".join(f"{one.full_name} f{number} = {number};" for number, one in enumerate(messages, 1))
    found = parse_protobuf(f'syntax = "proto3"; import "{path}"; message M {{ {fields} }}')
    for message in messages:
        ours = found.types[message.full_name].fields
        assert {(number, one.name) for number, one in ours.items()} == {
            (one.number, one.name) for one in message.fields
        }
        for number, one in ours.items():
            theirs = message.fields_by_number[number]
            if one.type.kind == "scalar":
                type_ = descriptor_pb2.FieldDescriptorProto.Type.Name(theirs.type)
                assert one.type.name == type_.removeprefix("TYPE_").lower()
            assert (one.label == "repeated" or one.type.kind == "map") == theirs.is_repeated


DELIMITED = file_of("""
    name: "e.proto" syntax: "editions" edition: EDITION_2023 package: "e"
    options { features { message_encoding: DELIMITED } }
    message_type {
      name: "M"
      field { name: "m" number: 1 type: TYPE_MESSAGE type_name: ".e.M" label: LABEL_OPTIONAL }
      field { name: "x" number: 2 type: TYPE_INT32 label: LABEL_OPTIONAL }
      extension_range { start: 100 end: 200 }
    }
    extension {
      name: "one" extendee: ".e.M" number: 100 type: TYPE_MESSAGE type_name: ".e.M" label: LABEL_OPTIONAL
    }
    extension {
      name: "many" extendee: ".e.M" number: 101 type: TYPE_MESSAGE type_name: ".e.M" label: LABEL_REPEATED
    }
    extension {
      name: "sized" extendee: ".e.M" number: 102 type: TYPE_MESSAGE type_name: ".e.M" label: LABEL_OPTIONAL
      options { features { message_encoding: LENGTH_PREFIXED } }
    }
    extension { name: "number" extendee: ".e.M" number: 103 type: TYPE_INT32 label: LABEL_REPEATED }
""")


def test_extensions_that_are_stored_as_groups() -> None:
    message = classes(DELIMITED)["e.M"]
    pool = message.DESCRIPTOR.file.pool
    one, many, sized, number = (
        pool.FindExtensionByName(f"e.{name}") for name in ("one", "many", "sized", "number")
    )
    value = message(x=1)
    value.Extensions[one].x = 2
    value.Extensions[many].add(x=3)
    value.Extensions[many].add().m.Extensions[one].x = 4
    value.Extensions[sized].x = 5
    value.Extensions[number].extend([6, 7])
    payloads = [value.SerializeToString(), message(m=value).SerializeToString()]
    # Without its end, and as it is not stored.
    payloads += [b"\xa3\x06\x10\x01", b"\xa2\x06\x02\x10\x01", b"\xb3\x06\xb4\x06"]
    assert compare(DELIMITED, message, payloads) == 1


@pytest.mark.parametrize(
    ("written", "default"),
    [("-inf", -float("inf")), ("inf", float("inf")), ("- 1.5", -1.5), ("-0.0", -0.0), ("+ 2", None)],
)
def test_defaults_of_an_edition(written: str, default: float | None) -> None:
    text = f'edition = "2023"; message M {{ double d = 1 [deprecated = true, default = {written}]; }}'
    if default is None:
        with pytest.raises(InvalidSchemaError):
            decode([b"\0\0\0\0\7\0"], {7: text}, "protobuf")
        return
    (row,) = decode([b"\0\0\0\0\7\0"], {7: text}, "protobuf").field("value").to_pylist()
    assert repr(row) == repr({"d": default})


ALIKE = [
    # Names that differ in case and underscores, names of the same JSON, and names of JSON that are given.
    ("proto3", ["id", "ID", "i_d"], ["id", "ID", "iD"]),
    ("proto3", ["user_id", "userId"], ["user_id", "userId"]),
    ("proto2", ["user_id", "userId", "userid"], ["user_id", "userId", "userid"]),
    ("proto2", ["foo__bar", "foo_bar", "FOO_BAR"], ["foo__bar", "foo_bar", "FOOBAR"]),
    ("proto3", ["a_b", "ab"], ["aB", "ab"]),
]


@pytest.mark.parametrize(("syntax", "names", "in_json"), ALIKE)
@pytest.mark.parametrize("as_descriptor", [False, True])
def test_fields_whose_names_are_alike(
    syntax: str, names: list[str], in_json: list[str], *, as_descriptor: bool
) -> None:
    label = "optional " if syntax == "proto2" else ""
    fields = "".join(f"{label}int32 {name} = {number};" for number, name in enumerate(names, 1))
    text = (
        f'syntax = "{syntax}"; package p; message M {{ {fields} message N {{ {label}int32 x = 1; }}'
        f" {label}E e = 11; repeated int32 packed = 12; {label}N n = 13; repeated E all = 14; }}"
        " enum E { Z = 0; Y = 1; }"
    )
    if as_descriptor:
        text = described(syntax, names)
    payload = b"".join(varint(number << 3) + varint(number) for number, _ in enumerate(names, 1))
    payload += b"\x58\x63" + b"\x62\x02\1\2" + b"\x6a\0" + b"\x72\x02\1\x63"
    values = [b"\0\0\0\0\7\0" + payload, b"\0\0\0\0\7\0"]
    rows = decode(values, {7: text}, "protobuf").field("value").to_pylist()
    given: dict[str, Any] = {name: number for number, name in enumerate(names, 1)}
    closed = syntax == "proto2"
    absent = None if closed else 0
    # What the syntax says of other fields holds as ever.
    assert rows == [
        given
        | {"e": None if closed else "99", "packed": [1, 2], "n": {"x": absent}}
        | {"all": ["Y"] if closed else ["Y", "99"]},
        dict.fromkeys(names, absent) | {"e": None if closed else "Z", "packed": [], "n": None, "all": []},
    ]
    shown = json.loads(decode(values, {7: text}, "protobuf", as_text=True).field("value")[0].as_py())
    assert list(shown.items())[: len(names)] == list(zip(in_json, given.values(), strict=True))
    labels = {one.label for one in parse_protobuf(text).types["p.M"].fields.values()}
    assert labels == ({"optional", "repeated"} if closed else {"repeated", None})


def described(syntax: str, names: list[str]) -> str:
    """The descriptor that protoc makes of the file above."""
    file = descriptor_pb2.FileDescriptorProto(name="a.proto", package="p")
    if syntax == "proto3":
        file.syntax = syntax
    message = file.message_type.add(name="M")
    for number, name in enumerate(names, 1):
        message.field.add(name=name, number=number, label=1, type=5)
    message.field.add(name="e", number=11, label=1, type=14, type_name=".p.E")
    message.field.add(name="packed", number=12, label=3, type=5)
    message.field.add(name="n", number=13, label=1, type=11, type_name=".p.M.N")
    message.field.add(name="all", number=14, label=3, type=14, type_name=".p.E")
    message.nested_type.add(name="N").field.add(name="x", number=1, label=1, type=5)
    enum = file.enum_type.add(name="E")
    for number, name in enumerate(("Z", "Y")):
        enum.value.add(name=name, number=number)
    return schema_of(file)


@pytest.mark.parametrize(
    "beside",
    [
        "oneof _a { int32 b = 2; }",
        "oneof _a { int32 b = 2; } oneof X_a { int32 c = 3; }",
        "int32 _a = 2;",
        "optional int32 _a = 2;",
        "oneof one { int32 _a = 2; int32 X_a = 3; }",
        "message _b {} optional int32 X_a = 2;",
    ],
)
def test_names_beside_an_optional_field(beside: str) -> None:
    """A parser makes a oneof `_a` for a field `a`; `protoc` calls it otherwise where the message has it."""
    text = f'syntax = "proto3"; message M {{ optional int32 a = 1; {beside} }}'
    (given, absent) = decode([b"\0\0\0\0\7\0\x08\0", b"\0\0\0\0\7\0"], {7: text}, "protobuf").to_pylist()
    assert given["_error"] is absent["_error"] is None
    assert (given["value"]["a"], absent["value"]["a"]) == (0, None)
