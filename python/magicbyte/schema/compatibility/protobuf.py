"""Compatibility of Protobuf schemas: the rules of Confluent's registry.

Changes that the wire format allows are compatible: fields, enums and their values may come and go, and
messages may be added and moved. The rules here are those of `Difference.Type` that are not in
`COMPATIBLE_CHANGES`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice

from magicbyte.schema.compatibility.incompatibility import Incompatibility, Remedies
from magicbyte.schema.compatibility.protobuf_schema import (
    ProtobufField,
    ProtobufMessage,
    ProtobufSchema,
    ProtobufType,
)
from magicbyte.schema.invalid_schema import InvalidSchemaError

__all__ = ["REMEDIES", "incompatibilities"]

_MAX_DEPTH = 100
_LISTED = 100

_NUMBER = "number"
_SCALARS = {
    **dict.fromkeys(("int32", "int64", "uint32", "uint64", "bool"), _NUMBER),
    **dict.fromkeys(("sint32", "sint64"), "zigzag"),
    **dict.fromkeys(("string", "bytes"), "string"),
    **dict.fromkeys(("fixed32", "sfixed32"), "fixed32"),
    **dict.fromkeys(("fixed64", "sfixed64"), "fixed64"),
    "float": "float",
    "double": "double",
}
"""Scalar types by their wire format: the types of one group read each other. Enums are numbers."""

_OTHER_NUMBER = "keep the type, or add a field with another name and number"
_ONE_GROUP = (
    "choose a type that reads the old one: int32, int64, uint32, uint64, bool and enums read each other,"
    " and so do sint32 and sint64, string and bytes, fixed32 and sfixed32, fixed64 and sfixed64"
)

REMEDIES: Remedies = {
    "PACKAGE_CHANGED": ("keep the package", "keep the package"),
    "MESSAGE_REMOVED": (
        "keep the message, even if no field uses it",
        "add no message until all readers know it",
    ),
    "FIELD_KIND_CHANGED": (_OTHER_NUMBER, _OTHER_NUMBER),
    "FIELD_SCALAR_KIND_CHANGED": (_ONE_GROUP, _ONE_GROUP),
    "FIELD_NAMED_TYPE_CHANGED": (
        "keep the message's name, and its fields compatible; or add a field with another number",
        "keep the message's name, and its fields compatible; or add a field with another number",
    ),
    "FIELD_NUMERIC_LABEL_CHANGED": (
        "keep the label, or add a field with another number; only strings, bytes and messages may change it",
        "keep the label, or add a field with another number; only strings, bytes and messages may change it",
    ),
    "REQUIRED_FIELD_ADDED": (
        "make the new field optional",
        "keep the field, which older readers require",
    ),
    "REQUIRED_FIELD_REMOVED": (
        "keep the required field",
        "make the new field optional",
    ),
    "ONEOF_FIELD_REMOVED": (
        "keep the field in its oneof, or move it out of it",
        "add no field to the oneof until all readers know it",
    ),
    "MULTIPLE_FIELDS_MOVED_TO_ONEOF": (
        "move one field at most into a new oneof",
        "keep the fields in their oneof",
    ),
    "FIELD_MOVED_TO_EXISTING_ONEOF": (
        "keep the field out of the oneof, or move it into a new one",
        "keep the field in its oneof",
    ),
}


def incompatibilities(reader: ProtobufSchema, writer: ProtobufSchema) -> list[Incompatibility]:
    """The first 100 reasons why the reader does not read all data of the writer; empty if it does.

    Raises:
        InvalidSchemaError: if messages are nested, or use imported ones, more deeply than 100 levels.

    """
    return list(islice(_Comparison(reader, writer).compare(), _LISTED))


@dataclass
class _Comparison:
    reader: ProtobufSchema
    writer: ProtobufSchema
    compatible: dict[tuple[str, str], bool] = field(default_factory=dict)
    """The imported messages compared so far, by full names; True during a comparison, to end recursion."""

    def compare(self) -> Iterator[Incompatibility]:
        if self.reader.package != self.writer.package:
            text = f"the writer's package is {self.writer.package!r}, the reader's {self.reader.package!r}"
            yield Incompatibility("PACKAGE_CHANGED", "#/", text)
        yield from self._messages(self.reader.messages, self.writer.messages, "#", 0)

    def _messages(
        self, readers: dict[str, str], writers: dict[str, str], place: str, depth: int
    ) -> Iterator[Incompatibility]:
        for name, full in writers.items():
            if name in readers:
                yield from self._message(readers[name], full, f"{place}/{name}", depth)
            else:
                yield Incompatibility(
                    "MESSAGE_REMOVED", f"{place}/{name}", f"the reader has no message {full}"
                )

    def _message(self, reader: str, writer: str, place: str, depth: int) -> Iterator[Incompatibility]:
        if depth > _MAX_DEPTH:
            raise InvalidSchemaError("the schemas are too deep to be compared")
        new, old = self.reader.types[reader], self.writer.types[writer]
        yield from _oneofs(new, old, place)
        for number in sorted(new.fields.keys() | old.fields.keys()):
            yield from self._field(new, old, number, place, depth)
        yield from self._messages(new.messages, old.messages, place, depth + 1)

    def _field(
        self, new: ProtobufMessage, old: ProtobufMessage, number: int, place: str, depth: int
    ) -> Iterator[Incompatibility]:
        reader, writer = new.fields.get(number), old.fields.get(number)
        one = reader or writer
        assert one is not None
        place = f"{place}/{one.oneof}/{number}" if one.oneof else f"{place}/{number}"
        name = f"{(new if reader else old).name}.{one.name}"
        if reader is None:
            assert writer is not None
            if writer.oneof is not None:
                # A oneof may go as a whole. Confluent's rules know it by its name, whatever its fields are.
                if any(other.oneof == writer.oneof for other in new.fields.values()):
                    text = f"{name}: the reader does not have it in {writer.oneof}"
                    yield Incompatibility("ONEOF_FIELD_REMOVED", place, text)
            elif writer.label == "required":
                text = f"{name}: the reader does not have it, and the writer requires it"
                yield Incompatibility("REQUIRED_FIELD_REMOVED", place, text)
        elif writer is None:
            if reader.label == "required":
                text = f"{name}: the reader requires it, and the writer does not have it"
                yield Incompatibility("REQUIRED_FIELD_ADDED", place, text)
        else:
            yield from self._types(reader.type, writer.type, place, name, depth)
            yield from _labels(reader, writer, place, name)

    def _types(
        self, reader: ProtobufType, writer: ProtobufType, place: str, name: str, depth: int
    ) -> Iterator[Incompatibility]:
        if _kind(reader) != _kind(writer):
            text = f"{name}: the writer's type is {writer.shown}, the reader's {reader.shown}"
            yield Incompatibility("FIELD_KIND_CHANGED", place, text)
        elif reader.key is not None and reader.value is not None:
            assert writer.key is not None
            assert writer.value is not None
            yield from self._types(reader.key, writer.key, place, f"{name}'s keys", depth)
            yield from self._types(reader.value, writer.value, place, f"{name}'s values", depth)
        elif _kind(reader) == "scalar":
            if _scalar(reader) != _scalar(writer):
                text = f"{name}: the reader's type {reader.shown} does not read {writer.shown}"
                yield Incompatibility("FIELD_SCALAR_KIND_CHANGED", place, text)
        else:
            yield from self._named(reader, writer, place, name, depth)

    def _named(
        self, reader: ProtobufType, writer: ProtobufType, place: str, name: str, depth: int
    ) -> Iterator[Incompatibility]:
        new, old = self.reader.types[reader.name], self.writer.types[writer.name]
        if new.name != old.name:
            text = f"{name}: the writer's type is {writer.shown}, the reader's {reader.shown}"
            yield Incompatibility("FIELD_NAMED_TYPE_CHANGED", place, text)
        elif reader.kind == "group" or not (new.is_local and old.is_local):
            # Messages that both schemas declare themselves are compared where they are declared.
            pair = (reader.name, writer.name)
            if pair not in self.compatible:
                self.compatible[pair] = True
                path = "#/" + new.name.replace(".", "/")
                found = list(islice(self._message(reader.name, writer.name, path, depth + 1), _LISTED))
                self.compatible[pair] = not found
                yield from found
            if not self.compatible[pair]:
                text = f"{name}: the reader's {reader.shown} does not read the writer's"
                yield Incompatibility("FIELD_NAMED_TYPE_CHANGED", place, text)


def _oneofs(new: ProtobufMessage, old: ProtobufMessage, place: str) -> Iterator[Incompatibility]:
    """Fields that exclude each other for the reader, but not for the writer."""
    members: dict[str, list[ProtobufField]] = {}
    for number, one in new.fields.items():
        if one.oneof is not None and number in old.fields:
            members.setdefault(one.oneof, []).append(old.fields[number])
    for oneof, known in members.items():
        moved = [one.name for one in known if one.oneof is None]
        if len(moved) + len({one.oneof for one in known if one.oneof is not None}) < 2:
            continue
        name = f"{new.name}.{oneof}"
        if len(moved) > 1:
            text = (
                f"{name}: the writer has {' and '.join(moved)} outside of a oneof, and may set them together"
            )
            yield Incompatibility("MULTIPLE_FIELDS_MOVED_TO_ONEOF", f"{place}/{oneof}", text)
        else:
            text = f"{name}: the writer may set {' and '.join(one.name for one in known)} together"
            yield Incompatibility("FIELD_MOVED_TO_EXISTING_ONEOF", f"{place}/{oneof}", text)


def _labels(reader: ProtobufField, writer: ProtobufField, place: str, name: str) -> Iterator[Incompatibility]:
    """Compares only labels that both texts have, as Confluent does."""
    if None in (reader.label, writer.label) or reader.label == writer.label:
        return
    if _kind(reader.type) == _kind(writer.type) == "scalar":
        group = _scalar(reader.type)
        if group == _scalar(writer.type) and group != "string":
            text = f"{name}: the writer's label is {writer.label}, the reader's {reader.label}"
            yield Incompatibility("FIELD_NUMERIC_LABEL_CHANGED", place, text)


def _kind(of: ProtobufType) -> str:
    return "scalar" if of.kind == "enum" else of.kind


def _scalar(of: ProtobufType) -> str:
    return _NUMBER if of.kind == "enum" else _SCALARS[of.name]
