"""The reasons why two schemas are incompatible, and the error for schemas that cannot be compared."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from magicbyte.errors import Error

__all__ = ["BACKWARD", "FORWARD", "Incompatibility", "InvalidSchemaError", "Remedies"]

BACKWARD = "BACKWARD"
"""The new schema reads the data of an older schema."""
FORWARD = "FORWARD"
"""An older schema reads the data of the new schema."""

Remedies = Mapping[str, tuple[str, str]]
"""The changes to the new schema, by rule: if it is the reader, and if it is the writer."""


class InvalidSchemaError(Error):
    """A text is not a schema of its type, or is too deep or too large to be compared."""

    def __init__(self, message: str, kind: str = "invalid_schema", *place: Any) -> None:
        super().__init__(message, kind, *place)


@dataclass(frozen=True, slots=True)
class Incompatibility:
    """One reason why a reader's schema does not read the data of a writer's schema."""

    rule: str
    """The rule's name in the authority: Avro's `SchemaIncompatibilityType`, Confluent's `Difference.Type`."""
    path: str
    """The place: a JSON pointer into the reader's schema; for Protobuf, names and field numbers."""
    message: str
    """The difference, with the names of the fields."""
