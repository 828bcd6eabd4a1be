"""The reasons why two schemas are incompatible."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

__all__ = ["BACKWARD", "FORWARD", "Incompatibility", "Remedies"]

BACKWARD = "BACKWARD"
"""The new schema reads the data of an older schema."""
FORWARD = "FORWARD"
"""An older schema reads the data of the new schema."""

Remedies = Mapping[str, tuple[str, str]]
"""The changes to the new schema, by rule: if it is the reader, and if it is the writer."""


@dataclass(frozen=True, slots=True)
class Incompatibility:
    """One reason why a reader's schema does not read the data of a writer's schema."""

    rule: str
    """The rule's name in the authority: Avro's `SchemaIncompatibilityType`, Confluent's `Difference.Type`."""
    path: str
    """The place: a JSON pointer into the reader's schema; for Protobuf, names and field numbers."""
    message: str
    """The difference, with the names of the fields."""
