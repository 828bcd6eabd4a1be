"""What `schemas check` calls compatible is read: random changes of the schemas of all formats.

Avro's histories are also in tests/interop/test_avro_resolution.py, where Java makes and reads the values.
"""

from __future__ import annotations

import copy
import json
import random
import struct
from typing import Any

import pytest
from avro_histories import Schemas
from google.protobuf import descriptor_pb2
from google.protobuf.message import DecodeError
from magicbyte.schema import decode
from magicbyte.schema.compatibility.check import compare
from magicbyte.schema.registry import Schema
from proto_files import classes, normal, ordered, row_of, schema_of, varint
from test_protobuf_random import fill, random_file, random_type

ROUNDS, CHANGES, VALUES = 40, 25, 6
SCALARS: list[dict[str, Any]] = [
    {"type": "integer"},
    {"type": "number"},
    {"type": "string"},
    {"type": "boolean"},
    {"type": ["string", "null"]},
    {"type": "string", "enum": ["a", "b"]},
    {"type": "integer", "minimum": 0, "maximum": 9},
    {"type": "integer", "multipleOf": 2},
    {"type": "string", "maxLength": 3},
    {"oneOf": [{"type": "integer"}, {"type": "null"}]},
    {"type": ["integer", "string"]},
]


def json_schema(random_: random.Random, depth: int = 0) -> Any:
    kind = random_.randrange(4 if depth < 2 else 2)
    if kind == 2:
        return {"type": "array", "items": json_schema(random_, depth + 1)}
    if kind == 3 or depth == 0:
        names = random_.sample("abcdef", random_.randrange(1, 5))
        made: dict[str, Any] = {
            "type": "object",
            "properties": {name: json_schema(random_, depth + 1) for name in names},
        }
        if random_.random() < 0.5:
            made["additionalProperties"] = random_.choice([False, {"type": "string"}])
        if random_.random() < 0.5:
            made["required"] = random_.sample(names, random_.randrange(1, len(names) + 1))
        return made
    return copy.deepcopy(random_.choice(SCALARS))


def json_value(random_: random.Random, schema: dict[str, Any]) -> Any:
    """A value that is valid by a schema of `json_schema`."""
    if "oneOf" in schema:
        return json_value(random_, random_.choice(schema["oneOf"]))
    if "enum" in schema:
        return random_.choice(schema["enum"])
    kind = schema.get("type")
    match random_.choice(kind) if isinstance(kind, list) else kind:
        case "null":
            return None
        case "boolean":
            return random_.random() < 0.5
        case "integer":
            return random_.choice([0, 2, 4, 8]) if len(schema) > 1 else random_.choice([0, -7, 2**40, 3])
        case "number":
            return random_.choice([0, 1.5, -3, 1e30])
        case "string":
            return random_.choice(["", "ab", "abc"])
        case "array":
            return [json_value(random_, schema["items"]) for _ in range(random_.randrange(3))]
        case "object":
            required = schema.get("required", ())
            value = {
                name: json_value(random_, of)
                for name, of in schema["properties"].items()
                if name in required or random_.random() < 0.6
            }
            others = schema.get("additionalProperties", {})
            if others is not False:
                value["x"] = json_value(random_, others)
                # A name that the next version may declare.
                name = random_.choice("abcdefgh")
                if name not in schema["properties"]:
                    value[name] = json_value(random_, others)
            return value
    return random_.choice([None, 1, "text", [1], {"y": 2}])


def changed(random_: random.Random, schema: dict[str, Any], depth: int = 0) -> Any:
    """A newer version."""
    if "items" in schema and random_.random() < 0.8:
        return {**schema, "items": changed(random_, schema["items"], depth + 1)}
    if "properties" not in schema:
        if schema == {"type": "integer"} and random_.random() < 0.3:
            return {"type": "number"}
        match random_.randrange(4):
            case 0:
                return json_schema(random_, depth)
            case 1:
                # Not oneOf: Confluent's rules do not see that two branches may allow one value.
                return {"anyOf": [schema, {"type": "null"}]}
            case 2:
                return {"anyOf": [schema, {"type": "boolean"}]}
        return {key: value for key, value in schema.items() if key == "type"} or schema
    schema = copy.deepcopy(schema)
    properties = schema["properties"]
    match random_.randrange(6):
        case 0 | 1:
            name = random_.choice(list(properties))
            properties[name] = changed(random_, properties[name], depth + 1)
        case 2:
            properties[random_.choice("abcdef")] = json_schema(random_, depth + 1)
        case 3 if len(properties) > 1:
            name = random_.choice(list(properties))
            del properties[name]
            schema["required"] = [one for one in schema.get("required", []) if one != name]
        case 4:
            schema["required"] = random_.sample(list(properties), random_.randrange(len(properties) + 1))
        case _:
            schema["additionalProperties"] = random_.choice([True, False, {"type": "string"}])
    return schema


def test_json() -> None:
    compatible = changes = 0
    for seed in range(ROUNDS):
        random_ = random.Random(seed)
        old = json_schema(random_)
        values = [
            struct.pack(">bI", 0, 7) + json.dumps(json_value(random_, old)).encode() for _ in range(VALUES)
        ]
        for _ in range(CHANGES):
            new, changes = changed(random_, old), changes + 1
            texts = [json.dumps(one) for one in (new, old)]
            if compare(*(Schema("JSON", text) for text in texts), "BACKWARD"):
                continue
            compatible += 1
            # By the writer's schema and by the reader's.
            for writer in texts:
                rows = decode(values, {7: writer}, "json", reader_schema=texts[0], validate=True)
                errors = [error for error in rows.field("_error").to_pylist() if error is not None]
                assert not errors, f"{texts[1]} as {texts[0]}: {errors[0]}"
    assert changes / 5 < compatible < changes * 4 / 5, (compatible, changes)


def changed_file(
    random_: random.Random, file: descriptor_pb2.FileDescriptorProto
) -> descriptor_pb2.FileDescriptorProto:
    """A newer version."""
    made = descriptor_pb2.FileDescriptorProto()
    made.CopyFrom(file)
    message = made.message_type[0]
    if not message.field:
        return made
    field = random_.choice(message.field)
    is_map = any(
        one.options.map_entry and field.type_name.endswith(f".{one.name}") for one in message.nested_type
    )
    match random_.randrange(6):
        case 0 if not field.HasField("oneof_index"):
            message.field.remove(field)
        case 1 if not is_map:
            field.name = f"{field.name}x"
        case 2 if not is_map:
            field.options.ClearField("packed")
            field.ClearField("type_name")
            random_type(random_, "scalar", message, field)
        case 3 if field.label != 3 and not field.HasField("oneof_index"):
            field.label = 3
        case 4 if field.label == 3 and not is_map:
            field.label = 1
            field.options.ClearField("packed")
        case _:
            added = message.field.add(name="added", number=4000, label=1)
            random_type(random_, "scalar", message, added)
    return made


@pytest.mark.parametrize("syntax", ["proto2", "proto3", "editions"])
def test_protobuf(syntax: str) -> None:
    compatible = changes = 0
    for seed in range(ROUNDS):
        random_ = random.Random(seed)
        old = random_file(random_, syntax)
        message = classes(old)["r.M0"]
        payloads = [fill(random_, message()).SerializeToString() for _ in range(VALUES)]
        values = [struct.pack(">bIb", 0, 7, 0) + payload for payload in payloads]
        for _ in range(CHANGES // 3):
            new, changes = changed_file(random_, old), changes + 1
            texts = [schema_of(one) for one in (new, old)]
            if compare(*(Schema("PROTOBUF", text) for text in texts), "BACKWARD"):
                continue
            compatible += 1
            rows = decode(values, {7: texts[1]}, "protobuf", reader_schema=texts[0])
            reader = classes(new)["r.M0"]
            errors = rows.field("_error").to_pylist()
            for payload, row, error in zip(payloads, rows.field("value").to_pylist(), errors, strict=True):
                try:
                    theirs = row_of(reader.FromString(payload))
                except DecodeError:
                    # Bytes that become a string are read if they are text.
                    assert "UTF-8" in error
                else:
                    assert error is None, f"{old} as {new}: {error}"
                    assert repr(ordered(normal(row, theirs))) == repr(ordered(theirs))
    assert changes / 5 < compatible < changes, (compatible, changes)


def avro_payload(random_: random.Random, schema: Any) -> bytes:
    """A value of a schema in Avro's binary form."""
    if isinstance(schema, list):
        branch = random_.randrange(len(schema))
        return zigzag(branch) + avro_payload(random_, schema[branch])
    match schema if isinstance(schema, str) else schema["type"]:
        case "null":
            return b""
        case "boolean":
            return random_.choice([b"\0", b"\1"])
        case "int" | "long":
            return zigzag(random_.choice([0, -1, 5, 2**31 - 1, -(2**31)]))
        case "float":
            return struct.pack("<f", random_.choice([0.0, 1.5]))
        case "double":
            return struct.pack("<d", random_.choice([0.0, -1.5]))
        case "bytes" | "string":
            text = random_.choice(["", "a", "üß"]).encode()
            return zigzag(len(text)) + text
        case "fixed":
            return b"x" * schema["size"]
        case "enum":
            return zigzag(random_.randrange(len(schema["symbols"])))
        case "array":
            items = [avro_payload(random_, schema["items"]) for _ in range(random_.randrange(3))]
            return (zigzag(len(items)) if items else b"") + b"".join(items) + b"\0"
        case "map":
            values = [avro_payload(random_, schema["values"]) for _ in range(random_.randrange(2))]
            entries = [zigzag(1) + b"k" + value for value in values]
            return (zigzag(len(entries)) if entries else b"") + b"".join(entries) + b"\0"
    return b"".join(avro_payload(random_, field["type"]) for field in schema["fields"])


def zigzag(number: int) -> bytes:
    return varint((number << 1) ^ (number >> 63))


def test_avro() -> None:
    compatible = changes = 0
    for seed in range(3 * ROUNDS):
        # Without bytes, which a string may follow, whatever they are.
        random_, schemas = random.Random(seed), Schemas(seed, text=False)
        versions = [schemas.record() if seed % 3 else schemas.any()]
        while len(versions) < 4:
            versions.append(schemas.newer(versions[-1]))
        new = json.dumps(versions[-1])
        for version in versions:
            changes += 1
            old = json.dumps(version)
            if compare(*(Schema("AVRO", text) for text in (new, old)), "BACKWARD"):
                continue
            compatible += 1
            values = [struct.pack(">bI", 0, 7) + avro_payload(random_, version) for _ in range(VALUES)]
            errors = decode(values, {7: old}, "avro", new).field("_error").to_pylist()
            assert errors == [None] * VALUES, f"{old} as {new}: {errors}"
    assert changes / 3 < compatible < changes, (compatible, changes)
