"""Protobuf schemas as data: the declarations of their messages."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from magicbyte import _core
from magicbyte.schema.invalid_schema import InvalidSchemaError

__all__ = ["ProtobufField", "ProtobufMessage", "ProtobufSchema", "ProtobufType", "parse_protobuf"]


@dataclass(frozen=True, slots=True)
class ProtobufType:
    """The type of a field, of a map's keys or of its values."""

    kind: str
    """`scalar`, `enum`, `message`, `group` or `map`."""
    name: str = ""
    """A scalar's name, or the full name of any other type."""
    key: ProtobufType | None = None
    """The type of a map's keys."""
    value: ProtobufType | None = None
    """The type of a map's values."""

    @property
    def shown(self) -> str:
        """The type for a message."""
        if self.key is not None and self.value is not None:
            return f"map<{self.key.shown}, {self.value.shown}>"
        return self.name if self.kind == "scalar" else f"{self.kind} {self.name}"


@dataclass(frozen=True, slots=True)
class ProtobufField:
    """A field of a message."""

    name: str
    number: int
    type: ProtobufType
    label: str | None
    """`optional`, `required` or `repeated`; None without a label, as in a oneof and for a map."""
    oneof: str | None
    """The oneof that it is in."""


@dataclass(frozen=True, slots=True)
class ProtobufMessage:
    """A message of the schema, or of an imported file."""

    name: str
    """The name without the package."""
    is_local: bool
    """True if the schema itself declares the message."""
    messages: dict[str, str]
    """The full names of the messages that are declared in it, by their short names."""
    fields: dict[int, ProtobufField]
    """The fields by number, in the order of the text."""


@dataclass(frozen=True, slots=True)
class ProtobufSchema:
    """A schema with the files that it imports."""

    package: str
    messages: dict[str, str]
    """The full names of the schema's own outermost messages, by their short names."""
    types: dict[str, ProtobufMessage]
    """All messages, by their full names."""


def parse_protobuf(text: str, references: Sequence[tuple[str, str]] = ()) -> ProtobufSchema:
    """Parses a schema.

    Args:
        text: a `.proto`, or an encoded file descriptor in base64.
        references: the names and texts of imported files, including indirect imports.

    Raises:
        InvalidSchemaError: if it does not compile.

    """
    try:
        found = json.loads(_core.protobuf_structure(text, references))
    except ValueError as error:
        raise InvalidSchemaError(f"not a Protobuf schema: {error}") from None
    types = {full: _message(full, one) for full, one in found["types"].items()}
    return ProtobufSchema(found["package"], _by_name(found["messages"]), types)


def _message(full: str, found: dict[str, Any]) -> ProtobufMessage:
    package = found["package"]
    name = full[len(package) + 1 :] if package else full
    fields = [
        ProtobufField(
            field["name"], field["number"], _type(field["type"]), field.get("label"), field.get("oneof")
        )
        for field in found["fields"]
    ]
    return ProtobufMessage(
        name, found["local"], _by_name(found["messages"]), {field.number: field for field in fields}
    )


def _by_name(full_names: list[str]) -> dict[str, str]:
    return {full.rpartition(".")[2]: full for full in full_names}


def _type(found: dict[str, Any]) -> ProtobufType:
    if found["kind"] == "map":
        return ProtobufType("map", "", _type(found["key"]), _type(found["value"]))
    return ProtobufType(found["kind"], found["name"])
