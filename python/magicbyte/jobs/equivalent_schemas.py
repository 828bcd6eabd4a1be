"""Schemas of the three formats for the values of one Arrow column, and the values as their payloads.

Details that a column lacks are approximated: enums of Avro and Protobuf are text in it, and the values show
which fields may be null.
"""

from __future__ import annotations

import base64
import json
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
from pyarrow import types

from magicbyte.schemas.encoding import ColumnEncoder

__all__ = ["as_avro", "as_json", "as_protobuf", "avro_schema", "protobuf_schema"]

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_EPOCH = date(1970, 1, 1)
Convert = Callable[[Any], Any]
"""Converts a Python value of the column to a value of the equivalent schema's column."""


def as_avro(column: pa.Array) -> list[bytes]:
    """The values, none of which is null, as Avro payloads without framing."""
    schema, convert = avro_schema(column)
    payloads: list[bytes] = (
        ColumnEncoder(schema).encode([convert(one) for one in column.to_pylist()]).to_pylist()
    )
    return payloads


def as_protobuf(column: pa.Array) -> list[bytes]:
    """The values, none of which is null, as Protobuf payloads without framing."""
    schema, convert = protobuf_schema(column)
    encoder = ColumnEncoder(schema, "protobuf")
    payloads: list[bytes] = encoder.encode([convert(one) for one in column.to_pylist()]).to_pylist()
    return payloads


def as_json(column: pa.Array) -> list[bytes]:
    """The values, none of which is null, as JSON without whitespace; null properties are left out."""
    shape = _shape(column)
    documents = (_json(shape, one) for one in column.to_pylist())
    return [json.dumps(one, separators=(",", ":"), ensure_ascii=False).encode() for one in documents]


def avro_schema(column: pa.Array) -> tuple[str, Convert]:
    """An Avro schema for the values of a column, and the conversion of values to it."""
    schema, convert = _Avro().type(_shape(column))
    return json.dumps(schema), convert


def protobuf_schema(column: pa.Array) -> tuple[str, Convert]:
    """A proto3 file whose first message is for the values of a column, and the conversion of values to it."""
    shape = _shape(column)
    made = _Protobuf()
    if types.is_struct(shape.type):
        _, convert = made.message(shape.fields)
    else:
        _, inner = made.message((("value", shape),))

        def convert(value: Any) -> Any:
            return inner({"value": value})

    # The outermost message was finished last.
    return "\n".join([_PROTO3, *reversed(made.messages)]), convert


_PROTO3 = """\
syntax = "proto3";
import "google/protobuf/timestamp.proto";
import "google/protobuf/duration.proto";"""


@dataclass(frozen=True, slots=True)
class _Shape:
    type: pa.DataType
    nullable: bool
    """True if a value is null although the value that encloses it is not."""
    fields: tuple[tuple[str, _Shape], ...] = ()
    item: _Shape | None = None
    """The shape of a list's items, or of a map's values."""
    key: _Shape | None = None


def _shape(column: pa.Array) -> _Shape:
    of, nullable = column.type, column.null_count > 0
    if not types.is_nested(of):
        return _Shape(of, nullable)
    valid = column.filter(column.is_valid())
    if types.is_struct(of):
        fields = [(one.name, _shape(valid.field(number))) for number, one in enumerate(of)]
        return _Shape(of, nullable, tuple(fields))
    if types.is_map(of):
        return _Shape(of, nullable, item=_shape(valid.items), key=_shape(valid.keys))
    return _Shape(of, nullable, item=_shape(valid.flatten()))


def _names(fields: Sequence[tuple[str, _Shape]]) -> list[str]:
    """Names that both formats accept."""
    lowered = [name.lower() for name, _ in fields]
    return [
        name if _NAME.fullmatch(name) and lowered.count(name.lower()) == 1 else f"field_{number}_"
        for number, (name, _) in enumerate(fields)
    ]


def _same(value: Any) -> Any:
    return value


def _micros(value: datetime | timedelta) -> int:
    passed = value if isinstance(value, timedelta) else value - datetime(1970, 1, 1)
    return passed // timedelta(microseconds=1)


class _Avro:
    def __init__(self) -> None:
        self._records = 0

    def type(self, shape: _Shape) -> tuple[Any, Convert]:
        bare, convert = self._bare(shape)
        if not shape.nullable or bare == "null":
            return bare, convert
        return ["null", bare], lambda value: None if value is None else convert(value)

    def _bare(self, shape: _Shape) -> tuple[Any, Convert]:
        of = shape.type
        if types.is_struct(of):
            self._records += 1
            name, names = f"Record{self._records}", _names(shape.fields)
            made = [self.type(inner) for _, inner in shape.fields]
            fields = [{"name": one, "type": type_} for one, (type_, _) in zip(names, made, strict=True)]
            pairs = [
                (old, new, convert)
                for (old, _), new, (_, convert) in zip(shape.fields, names, made, strict=True)
            ]
            return {"type": "record", "name": name, "fields": fields}, lambda value: {
                new: convert(value[old]) for old, new, convert in pairs
            }
        if shape.item is not None:
            item, convert = self.type(shape.item)
            if shape.key is not None:
                return {"type": "map", "values": item}, lambda value: [
                    (str(key), convert(one)) for key, one in value
                ]
            return {"type": "array", "items": item}, lambda value: [convert(one) for one in value]
        if types.is_timestamp(of):
            logical = "timestamp-micros" if of.tz else "local-timestamp-micros"
            return {"type": "long", "logicalType": logical}, _same
        if types.is_decimal(of):
            decimal = {
                "type": "bytes",
                "logicalType": "decimal",
                "precision": of.precision,
                "scale": of.scale,
            }
            return decimal, _same
        if types.is_date32(of):
            return {"type": "int", "logicalType": "date"}, _same
        if types.is_duration(of):
            return "long", _micros
        return _AVRO[of], _same


_AVRO = {
    pa.null(): "null",
    pa.bool_(): "boolean",
    pa.int32(): "int",
    pa.int64(): "long",
    pa.float32(): "float",
    pa.float64(): "double",
    pa.string(): "string",
    pa.binary(): "bytes",
}


class _Protobuf:
    def __init__(self) -> None:
        self.messages: list[str] = []
        """The texts of the finished messages. A message follows the messages that it uses."""
        self._count = 0

    def message(self, fields: Sequence[tuple[str, _Shape]]) -> tuple[str, Convert]:
        self._count += 1
        name, lines = f"Message{self._count}", []
        pairs: list[tuple[str, str, Convert]] = []
        for number, ((old, shape), new) in enumerate(zip(fields, _names(fields), strict=True), 1):
            if types.is_null(shape.type):
                continue
            type_, convert = self._field(shape)
            lines.append(f"  {type_} {new} = {number};")
            pairs.append((old, new, convert))
        self.messages.append("\n".join([f"message {name} {{", *lines, "}"]))
        return name, lambda value: {
            new: None if value[old] is None else convert(value[old]) for old, new, convert in pairs
        }

    def _field(self, shape: _Shape) -> tuple[str, Convert]:
        if shape.item is None:
            type_, convert = self._single(shape)
            return f"optional {type_}" if shape.nullable else type_, convert
        item, convert = self._item(shape.item)
        if shape.key is None:
            return f"repeated {item}", lambda value: [convert(one) for one in value]
        key = _SCALARS.get(shape.key.type)
        convert_key: Convert = _same
        if key not in ("string", "int32", "int64", "bool"):
            key, convert_key = "string", str
        return f"map<{key}, {item}>", lambda value: [(convert_key(k), convert(one)) for k, one in value]

    def _item(self, shape: _Shape) -> tuple[str, Convert]:
        """Wraps an item in a message of its own if it may be null, or is a list or a map."""
        if not shape.nullable and shape.item is None and not types.is_null(shape.type):
            return self._single(shape)
        name, convert = self.message((("value", shape),))
        return name, lambda value: convert({"value": value})

    def _single(self, shape: _Shape) -> tuple[str, Convert]:
        of = shape.type
        if types.is_struct(of):
            return self.message(shape.fields)
        if types.is_timestamp(of):
            return ("google.protobuf.Timestamp", _same) if of.tz else ("int64", _micros)
        if types.is_duration(of):
            return "google.protobuf.Duration", _same
        if types.is_decimal(of):
            return "string", str
        if types.is_date32(of):
            return "int32", lambda value: (value - _EPOCH).days
        return _SCALARS[of], _same


_SCALARS = {
    pa.bool_(): "bool",
    pa.int32(): "int32",
    pa.int64(): "int64",
    pa.float32(): "float",
    pa.float64(): "double",
    pa.string(): "string",
    pa.binary(): "bytes",
}


def _json(shape: _Shape, value: Any) -> Any:
    if value is None:
        return None
    if shape.fields:
        found = ((name, _json(inner, value[name])) for name, inner in shape.fields)
        return {name: one for name, one in found if one is not None}
    if shape.item is not None:
        if shape.key is not None:
            return {str(key): _json(shape.item, one) for key, one in value}
        return [_json(shape.item, one) for one in value]
    match value:
        case bytes():
            return base64.b64encode(value).decode()
        case date():
            return value.isoformat()
        case timedelta():
            return f"{value.total_seconds()}s"
        case Decimal():
            return str(value)
        case float() if not math.isfinite(value):
            return str(value)
    return value
