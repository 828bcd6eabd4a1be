"""The error for texts that are no schemas."""

from __future__ import annotations

from typing import Any

from magicbyte.errors import Error

__all__ = ["InvalidSchemaError"]


class InvalidSchemaError(Error):
    """A text that is not a schema of its type, or cannot be used: as the reader's, or in a comparison."""

    def __init__(self, message: str, kind: str = "invalid_schema", *place: Any) -> None:
        super().__init__(message, kind, *place)
