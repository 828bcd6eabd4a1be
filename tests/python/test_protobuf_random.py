"""Random Protobuf schemas and values, of all syntaxes: our rows and texts are Google's."""

from __future__ import annotations

import json
import math
import random
import struct
from typing import Any

import pytest
from google.protobuf import descriptor_pb2, json_format
from google.protobuf.message import Message
from proto_files import classes, compare, ordered, read, varint

SCALARS = [
    name
    for name in descriptor_pb2.FieldDescriptorProto.Type.keys()  # noqa: SIM118 (it is not a dict)
    if name not in ("TYPE_GROUP", "TYPE_MESSAGE", "TYPE_ENUM")
]
KEYS = [name for name in SCALARS if name not in ("TYPE_DOUBLE", "TYPE_FLOAT", "TYPE_BYTES")]


def random_file(random_: random.Random, syntax: str) -> descriptor_pb2.FileDescriptorProto:
    """A file of five messages that use each other."""
    file = descriptor_pb2.FileDescriptorProto(name="random.proto", syntax=syntax, package="r")
    of_edition = syntax == "editions"
    is_closed = syntax == "proto2" or (of_edition and random_.random() < 0.5)
    enum = file.enum_type.add(name="E")
    for name, number in (("ZERO", 0), ("ONE", 1), ("LESS", -5), ("MANY", 2**31 - 1)):
        enum.value.add(name=name, number=number)
    if of_edition:
        file.edition = descriptor_pb2.Edition.EDITION_2023
        file.options.features.repeated_field_encoding = random_.choice([1, 2])
        if is_closed:
            enum.options.features.enum_type = descriptor_pb2.FeatureSet.CLOSED
    for index in range(5):
        message = file.message_type.add(name=f"M{index}")
        oneof = None
        for position in range(random_.randrange(1, 12)):
            number = random_.choice([position + 1, position + 600, position + 20_000])
            field = message.field.add(name=f"f{position}", number=number, label=random_.choice([1, 1, 3]))
            kind = random_.choice(["scalar", "scalar", "scalar", "enum", "message", "map"])
            random_type(random_, kind, message, field)
            if field.label == 3 and kind in ("scalar", "enum") and field.type not in (9, 12):
                if not of_edition:
                    field.options.packed = random_.random() < 0.5
                elif random_.random() < 0.3:
                    field.options.features.repeated_field_encoding = random_.choice([1, 2])
            if field.label == 1 and random_.random() < 0.2:
                if oneof is None:
                    oneof = len(message.oneof_decl)
                    message.oneof_decl.add(name="either")
                field.oneof_index = oneof
            elif field.label == 1 and kind in ("scalar", "enum"):
                if of_edition:
                    presences = [1, 3] if kind == "enum" and is_closed else [1, 2, 2, 3]
                    field.options.features.field_presence = random_.choice(presences)
                elif syntax == "proto2" and random_.random() < 0.2:
                    field.label = 2
            if of_edition and kind == "message" and random_.random() < 0.5:
                field.options.features.message_encoding = descriptor_pb2.FeatureSet.DELIMITED
    return file


def random_type(
    random_: random.Random,
    kind: str,
    message: descriptor_pb2.DescriptorProto,
    field: descriptor_pb2.FieldDescriptorProto,
) -> None:
    field.type = field.Type.Value(random_.choice(SCALARS))
    if kind == "message":
        field.type, field.type_name = field.TYPE_MESSAGE, f".r.M{random_.randrange(5)}"
    elif kind == "enum":
        field.type, field.type_name = field.TYPE_ENUM, ".r.E"
    elif kind == "map":
        field.type, field.label = field.TYPE_MESSAGE, 3
        name = f"{field.name.upper()}Entry"
        field.type_name = f".r.{message.name}.{name}"
        entry = message.nested_type.add(name=name)
        entry.options.map_entry = True
        key, value = (entry.field.add(name=name, number=n, label=1) for n, name in ((1, "key"), (2, "value")))
        key.type = key.Type.Value(random_.choice(KEYS))
        random_type(random_, random_.choice(["scalar", "enum", "message"]), message, value)


def random_value(random_: random.Random, type_: int) -> Any:
    fields = descriptor_pb2.FieldDescriptorProto
    if type_ in (fields.TYPE_DOUBLE, fields.TYPE_FLOAT):
        return random_.choice([0.0, -0.0, 1.5, -2.25, math.inf])
    if type_ == fields.TYPE_BOOL:
        return random_.random() < 0.5
    if type_ == fields.TYPE_STRING:
        return random_.choice(["", "a", "üß€😀", "x" * 200])
    if type_ == fields.TYPE_BYTES:
        return random_.randbytes(random_.randrange(5))
    if type_ == fields.TYPE_ENUM:
        return random_.choice([0, 1, -5, 2**31 - 1])
    bits = 32 if type_ in (5, 7, 13, 15, 17) else 64
    low, high = (0, 2**bits) if type_ in (4, 6, 7, 13) else (-(2 ** (bits - 1)), 2 ** (bits - 1))
    return random_.choice([0, 1, low, high - 1, random_.randrange(low, high)])


def fill(random_: random.Random, message: Message, depth: int = 0) -> Message:
    for field in message.DESCRIPTOR.fields:
        is_message = field.message_type is not None
        if not field.is_required and random_.random() < (0.3 + 0.25 * depth if is_message else 0.3):
            continue
        if is_message and field.message_type.GetOptions().map_entry:
            of_key, of_value = (field.message_type.fields_by_name[part] for part in ("key", "value"))
            entries = getattr(message, field.name)
            for _ in range(random_.randrange(4)):
                key = random_value(random_, of_key.type)
                if of_value.message_type is None:
                    entries[key] = random_value(random_, of_value.type)
                else:
                    fill(random_, entries[key], depth + 1)
        elif field.is_repeated:
            for _ in range(random_.randrange(4 if depth < 2 else 2)):
                if is_message:
                    fill(random_, getattr(message, field.name).add(), depth + 1)
                else:
                    getattr(message, field.name).append(random_value(random_, field.type))
        elif is_message:
            one = getattr(message, field.name)
            one.SetInParent()
            fill(random_, one, depth + 1)
        else:
            setattr(message, field.name, random_value(random_, field.type))
    return message


def stored_otherwise(random_: random.Random, message: type[Message]) -> bytes:
    """A value of any type in a field, such as a number that its enum does not have."""
    # Google's parsers differ in what they make of an entry with unknown fields.
    fields = [
        field
        for field in message.DESCRIPTOR.fields
        if field.message_type is None or not field.message_type.GetOptions().map_entry
    ]
    if not fields:
        return b""
    number = random_.choice(fields).number << 3
    match random_.randrange(4):
        case 0:
            return varint(number) + varint(random_.choice([0, 1, 5, 77, 2**64 - 5, 2**64 - 1]))
        case 1:
            return varint(number | 1) + random_.randbytes(8)
        case 2:
            content = bytes(random_.choice(b"\x01\x00\x08\x4d") for _ in range(random_.randrange(6)))
            return varint(number | 2) + varint(len(content)) + content
        case _:
            return varint(number | 5) + random_.randbytes(4)


@pytest.mark.parametrize("syntax", ["proto2", "proto3", "editions"])
@pytest.mark.parametrize("seed", range(25))
def test_random_messages(seed: int, syntax: str) -> None:
    random_ = random.Random(seed)
    file = random_file(random_, syntax)
    message = classes(file)["r.M0"]
    payloads = [fill(random_, message()).SerializeToString() for _ in range(20)]
    # One message after the other is both, merged.
    payloads += [b"".join(random_.sample(payloads, 3)) for _ in range(10)]
    assert compare(file, message, payloads) == 0
    compare(file, message, [one + stored_otherwise(random_, message) for one in payloads])
    # Fields that the reader does not have are skipped.
    narrow = descriptor_pb2.FileDescriptorProto()
    narrow.CopyFrom(file)
    for one in narrow.message_type:
        for field in [
            field for field in one.field if random_.random() < 0.4 and not field.HasField("oneof_index")
        ]:
            one.field.remove(field)
    assert compare(narrow, classes(narrow)["r.M0"], payloads) == 0


def test_text_of_well_known_types() -> None:
    files = ("any", "duration", "empty", "field_mask", "struct", "timestamp", "wrappers")
    types = {
        "any": "Any", "duration": "Duration", "empty": "Empty", "mask": "FieldMask", "object": "Struct",
        "list": "ListValue", "value": "Value", "time": "Timestamp", "wrapped": "DoubleValue",
    }  # fmt: skip
    file = descriptor_pb2.FileDescriptorProto(name="known.proto", syntax="proto3")
    file.dependency.extend(f"google/protobuf/{one}.proto" for one in files)
    message = file.message_type.add(name="K")
    for number, (name, type_) in enumerate(types.items(), 1):
        field = message.field.add(name=name, number=number, label=1, type=11)
        field.type_name = f".google.protobuf.{type_}"
    made = classes(file)["K"]
    random_ = random.Random(3)
    inner = {
        1: [
            b"\x0a\x01K\x12\x02\x22\0", b"\x0a\x1ax/google.protobuf.Duration\x12\x02\x08\x05", b"\x0a\x01Z",
            b"\x12\x01x",
        ],
        2: [
            b"\x08\x05\x10\x80\x94\xeb\xdc\x03", b"\x08\x05", b"\x10\x08",
            b"\x08\xfb" + b"\xff" * 8 + b"\x01",
        ],
        4: [b"\x0a\x03a_b", b"\x0a\x03a.b\x0a\x01c", b"\x0a\x02a_", b"\x0a\x01A"],
        5: [b"\x0a\x07\x0a\x01k\x12\x02\x20\x01", b"\x0a\x03\x0a\x01k"],
        6: [b"\x0a\x02\x08\0\x0a\x03\x1a\x01x", b"\x0a\0", b"\x0a\x04\x32\x02\x0a\0"],
        7: [b"\x11" + struct.pack("<d", number) for number in (0.5, -0.0, math.inf, math.nan)],
        8: [b"\x08\x05", b"\x10\x01", b"\x08\x05\x10\xc0\x84\x3d", b"\x08\xff\xff\xff\xff\xff\x7f"],
        9: [b"\x09" + struct.pack("<d", number) for number in (0.0, -0.0, -math.inf, math.nan)],
    }  # fmt: skip
    payloads = []
    for _ in range(500):
        payload = b""
        for number in random_.sample(range(1, 10), random_.randrange(4)):
            one = random_.choice([b"", *inner.get(number, [])])
            payload += varint(number << 3 | 2) + varint(len(one)) + one
        payloads.append(payload)
    pool = made.DESCRIPTOR.file.pool
    refused = 0
    for payload, text in zip(payloads, read(file, payloads, as_text=True).to_pylist(), strict=True):
        parsed = made.FromString(payload)
        try:
            expected = json_format.MessageToDict(parsed, descriptor_pool=pool)
        except (TypeError, ValueError, OverflowError, json_format.SerializeToJsonError):
            assert "no JSON form" in (text["_error"] or ""), (payload.hex(), text)
            refused += 1
        else:
            assert text["_error"] is None, (payload.hex(), text)
            assert repr(ordered(json.loads(text["value"]))) == repr(ordered(expected)), payload.hex()
    assert 50 < refused < 250
