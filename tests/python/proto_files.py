"""Protobuf files made of descriptors, without a compiler, and our values beside Google's."""

from __future__ import annotations

import base64
import datetime
import json
from decimal import Decimal
from typing import Any

import pyarrow as pa
from google.protobuf import (
    any_pb2,
    descriptor_pb2,
    descriptor_pool,
    duration_pb2,
    empty_pb2,
    field_mask_pb2,
    json_format,
    message_factory,
    struct_pb2,
    text_format,
    timestamp_pb2,
    wrappers_pb2,
)
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import DecodeError, Message
from magicbyte.schema import decode
from magicbyte.schema.registry import Reference, Schema, StoredRegistry, SubjectVersion

EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
WELL_KNOWN = (any_pb2, duration_pb2, empty_pb2, field_mask_pb2, struct_pb2, timestamp_pb2, wrappers_pb2)
AS_TEXT = {"google.protobuf.Struct", "google.protobuf.Value", "google.protobuf.ListValue"}
UNSIGNED_LONG = {FieldDescriptor.TYPE_UINT64, FieldDescriptor.TYPE_FIXED64}


def file_of(text: str) -> descriptor_pb2.FileDescriptorProto:
    """A file from the text form of its descriptor."""
    return text_format.Parse(text, descriptor_pb2.FileDescriptorProto())


def schema_of(file: descriptor_pb2.FileDescriptorProto) -> str:
    """A file as clients register it."""
    return base64.b64encode(file.SerializeToString()).decode()


def classes(*files: descriptor_pb2.FileDescriptorProto) -> dict[str, type[Message]]:
    """Google's classes for the messages of files, by full name."""
    pool = descriptor_pool.DescriptorPool()
    for known in WELL_KNOWN:
        pool.AddSerializedFile(known.DESCRIPTOR.serialized_pb)
    for file in files:
        pool.AddSerializedFile(file.SerializeToString())
    return {
        name: one
        for file in files
        for name, one in message_factory.GetMessageClassesForFiles([file.name], pool).items()
    }


def row_of(message: Message, outer: tuple[str, ...] = ()) -> dict[str, Any]:
    """A message as a row of our struct column, which pyarrow made Python's."""
    name = message.DESCRIPTOR.full_name
    inside = (*outer, name)
    fields = message.DESCRIPTOR.fields
    if not fields:
        return {"__dummy_field_in_empty_struct": None}
    return {field.name: _field(message, field, inside) for field in fields}


def _field(message: Message, field: FieldDescriptor, outer: tuple[str, ...]) -> Any:
    value = getattr(message, field.name)
    if field.message_type is not None and field.message_type.GetOptions().map_entry:
        of_value = field.message_type.fields_by_name["value"]
        of_key = field.message_type.fields_by_name["key"]
        return {_value(key, of_key, outer): _value(value[key], of_value, outer) for key in value}
    if field.is_repeated:
        return [_value(one, field, outer) for one in value]
    if field.has_presence and not message.HasField(field.name):
        if field.has_default_value and field.containing_oneof is None:
            return _value(field.default_value, field, outer)
        return None
    return _value(value, field, outer)


def _value(value: Any, field: FieldDescriptor, outer: tuple[str, ...]) -> Any:
    if field.enum_type is not None:
        known = field.enum_type.values_by_number.get(value)
        return str(value) if known is None else known.name
    if field.type in UNSIGNED_LONG:
        return Decimal(value)
    if field.message_type is None:
        return value
    name = field.message_type.full_name
    if name == "google.protobuf.Timestamp":
        return EPOCH + datetime.timedelta(seconds=value.seconds, microseconds=value.nanos // 1000)
    if name == "google.protobuf.Duration":
        return datetime.timedelta(seconds=value.seconds, microseconds=value.nanos // 1000)
    if name in AS_TEXT or name in outer:
        return json_format.MessageToDict(value)
    return row_of(value, outer)


def ordered(value: Any) -> Any:
    """With the keys of each dict in order: a map has none."""
    if isinstance(value, dict):
        return {key: ordered(value[key]) for key in sorted(value, key=repr)}
    return [ordered(one) for one in value] if isinstance(value, list) else value


def normal(value: Any, like: Any) -> Any:
    """A value of our column, with maps as dicts, and JSON text parsed where the other side has an object."""
    if isinstance(like, dict) and isinstance(value, str):
        return json.loads(value)
    if isinstance(like, list) and isinstance(value, str):
        return json.loads(value)
    if isinstance(like, dict) and isinstance(value, list):
        found = dict(value)
        assert len(found) == len(value), "a key comes twice"
        return {key: normal(one, like.get(key)) for key, one in found.items()}
    if isinstance(like, dict) and isinstance(value, dict):
        return {key: normal(one, like.get(key)) for key, one in value.items()}
    if isinstance(like, list) and isinstance(value, list) and len(like) == len(value):
        return [normal(one, other) for one, other in zip(value, like, strict=True)]
    return value


def read(
    file: descriptor_pb2.FileDescriptorProto, payloads: list[bytes], *more: Any, as_text: bool = False
) -> pa.StructArray:
    """Payloads of the first message."""
    registry = StoredRegistry()
    for number, used in enumerate(more):
        schema = Schema("PROTOBUF", schema_of(used))
        registry.put(SubjectVersion(used.name, 1, 100 + number, schema))
    references = tuple(Reference(used.name, used.name, 1) for used in more)
    registry.put_schema(7, Schema("PROTOBUF", schema_of(file), references))
    values = [b"\0\0\0\0\x07\0" + one for one in payloads]
    return decode(values, registry, "protobuf", as_text=as_text)


def compare(file: descriptor_pb2.FileDescriptorProto, message: type[Message], payloads: list[bytes]) -> int:
    """Our rows and texts are Google's, and the same payloads are refused; returns how many."""
    result, texts = read(file, payloads), read(file, payloads, as_text=True)
    refused = 0
    ours, errors = result.field("value").to_pylist(), result.field("_error").to_pylist()
    for payload, row, error, text in zip(payloads, ours, errors, texts.to_pylist(), strict=True):
        try:
            parsed = message.FromString(payload)
            theirs, json_ = row_of(parsed), json_format.MessageToDict(parsed)
        except (DecodeError, UnicodeDecodeError):
            assert error is not None, payload.hex()
            assert text["_error"] is not None, payload.hex()
            assert row is None
            refused += 1
        else:
            assert error is None, (payload.hex(), error)
            assert repr(ordered(normal(row, theirs))) == repr(ordered(theirs)), payload.hex()
            assert text["_error"] is None, (payload.hex(), text)
            # With the sign of a zero.
            assert repr(ordered(json.loads(text["value"]))) == repr(ordered(json_)), payload.hex()
    return refused


def varint(number: int) -> bytes:
    """A number as it is on the wire."""
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    return bytes([*out, number])
