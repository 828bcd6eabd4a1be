"""Protobuf schemas that registries keep: which message a value is, and files that need no reference."""

from __future__ import annotations

import importlib
import pkgutil

import google.type
import pytest
from confluent_kafka.schema_registry.confluent import meta_pb2
from confluent_kafka.schema_registry.confluent.type import decimal_pb2, variant_pb2
from google.protobuf import descriptor_pb2
from magicbyte.schema import decode
from magicbyte.schema.compatibility.protobuf_schema import parse_protobuf
from proto_files import varint

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
