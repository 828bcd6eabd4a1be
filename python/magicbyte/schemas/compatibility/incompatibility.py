"""What makes two schemas incompatible, and schemas that cannot be compared."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from magicbyte.errors import Error

__all__ = ["BACKWARD", "FORWARD", "Incompatibility", "InvalidSchemaError", "Remedies"]

BACKWARD = "BACKWARD"
"""The new schema reads what an older one wrote."""
FORWARD = "FORWARD"
"""An older schema reads what the new one wrote."""

Remedies = Mapping[str, tuple[str, str]]
"""By rule, what to do to the new schema: if it is the reader, and if it is the writer."""


class InvalidSchemaError(Error):
    """A text is not a schema of its type, or is too deep or too large to be compared."""

    def __init__(self, message: str, kind: str = "invalid_schema", *place: Any) -> None:
        super().__init__(message, kind, *place)


@dataclass(frozen=True, slots=True)
class Incompatibility:
    """One reason why a reader's schema does not read what a writer's schema wrote."""

    rule: str
    """The rule's name in the authority: Avro's `SchemaIncompatibilityType`, Confluent's `Difference.Type`."""
    path: str
    """Where: a JSON pointer into the reader's schema; for Protobuf, names and field numbers."""
    message: str
    """What differs, with the names of the fields."""
