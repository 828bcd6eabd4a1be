"""Reads messages of Kafka's protocol by their schema (`ByteBufferAccessor` and generated classes in Kafka).

The result has the form of Kafka's JSON converters: bytes in base64, uuids in Kafka's text form, and tagged
fields only if they differ from their default.
"""

from __future__ import annotations

import base64
import json
import math
import struct
from typing import Any

from magicbyte.errors import InvalidRecordError
from magicbyte.internal_topics.schema import Field, Message

__all__ = ["Reader", "read_message"]

_NUMBERS = {
    "int8": struct.Struct(">b"),
    "int16": struct.Struct(">h"),
    "uint16": struct.Struct(">H"),
    "int32": struct.Struct(">i"),
    "int64": struct.Struct(">q"),
    "float64": struct.Struct(">d"),
    "bool": struct.Struct(">?"),
}
_LENGTHS = {"string": "int16", "bytes": "int32", "[]": "int32"}
_UVARINT_BYTES = 5


class Reader:
    """A position in a byte string; its methods raise InvalidRecordError if the bytes end too early."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._position = 0

    @property
    def remaining(self) -> int:
        """The number of bytes that have not been read yet."""
        return len(self._data) - self._position

    def take(self, size: int, what: str) -> bytes:
        """The next `size` bytes."""
        if not 0 <= size <= self.remaining:
            raise _invalid(f"{what} at byte {self._position} takes {size} bytes, {self.remaining} are left")
        self._position += size
        return self._data[self._position - size : self._position]

    def number(self, kind: str, what: str) -> Any:
        """A big-endian number of fixed width."""
        form = _NUMBERS[kind]
        return form.unpack(self.take(form.size, what))[0]

    def uvarint(self, what: str) -> int:
        """An unsigned 32-bit varint (`ByteUtils.readUnsignedVarint`)."""
        value = 0
        for index in range(_UVARINT_BYTES):
            byte = self.take(1, what)[0]
            value |= (byte & 0x7F) << 7 * index
            if byte < 0x80:
                return value & 0xFFFFFFFF
        raise _invalid(f"{what} at byte {self._position}: a varint of more than {_UVARINT_BYTES} bytes")


def read_message(reader: Reader, message: Message, version: int) -> dict[str, Any]:
    """Reads one message of this version; skips unknown tagged fields, as Kafka does."""
    flexible = message.flexible is not None and version >= message.flexible
    return _struct(reader, message.fields, version, flexible)


def _struct(reader: Reader, fields: tuple[Field, ...], version: int, flexible: bool) -> dict[str, Any]:
    known = [field for field in fields if field.known(version)]
    values = {field.name: _value(reader, field, version, flexible) for field in known if field.tag is None}
    if flexible:
        tagged = {field.tag: field for field in known if field.tag is not None}
        for _ in range(reader.uvarint("the count of tagged fields")):
            tag, size = reader.uvarint("a tag"), reader.uvarint("the size of a tagged field")
            if tag in tagged:
                values[tagged[tag].name] = _value(reader, tagged[tag], version, flexible)
            else:
                reader.take(size, f"tagged field {tag}")
    return {
        field.name: values[field.name]
        for field in known
        if field.tag is None or values.get(field.name, field.absent) != field.absent
    }


def _value(reader: Reader, field: Field, version: int, flexible: bool) -> Any:
    nullable = field.nullable is not None and version >= field.nullable
    if field.type.startswith("[]"):
        count = _length(reader, "[]", field.name, flexible, nullable)
        if count is None:
            return None
        # Every element takes at least one byte, so a huge count cannot make this run for long.
        if count > reader.remaining:
            raise _invalid(f"{field.name} has {count} elements, {reader.remaining} bytes are left")
        return [_element(reader, field, field.type[2:], version, flexible) for _ in range(count)]
    if field.type == "struct" and nullable and not _is_present(reader, field):
        return None
    return _element(reader, field, field.type, version, flexible, nullable)


def _is_present(reader: Reader, field: Field) -> bool:
    """Reads the flag of a nullable struct: a byte, -1 for null, or for a tagged one a varint, 0 for null."""
    if field.tag is None:
        return bool(reader.number("int8", field.name) >= 0)
    return reader.uvarint(field.name) > 0


def _element(
    reader: Reader, field: Field, kind: str, version: int, flexible: bool, nullable: bool = False
) -> Any:
    match kind:
        case "struct":
            return _struct(reader, field.fields, version, flexible)
        case "uuid":
            return base64.urlsafe_b64encode(reader.take(16, field.name)).decode().rstrip("=")
        case "string" | "bytes":
            size = _length(reader, kind, field.name, flexible, nullable)
            if size is None:
                return None
            data = reader.take(size, field.name)
            return data.decode(errors="replace") if kind == "string" else base64.b64encode(data).decode()
    number = reader.number(kind, field.name)
    # JSON has no NaN or infinity: Kafka writes them as strings.
    return number if math.isfinite(number) else json.dumps(number)


def _length(reader: Reader, kind: str, name: str, flexible: bool, nullable: bool) -> int | None:
    """The length of a string, bytes or an array; None for null. Compact lengths are stored plus one."""
    length = reader.uvarint(name) - 1 if flexible else reader.number(_LENGTHS[kind], name)
    if length >= 0:
        return int(length)
    if not nullable:
        raise _invalid(f"{name} is null, which it must not be")
    return None


def _invalid(message: str) -> InvalidRecordError:
    return InvalidRecordError(message)
