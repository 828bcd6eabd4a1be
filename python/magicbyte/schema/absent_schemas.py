"""Schemas that a live registry does not have: any bytes may name them."""

from __future__ import annotations

import time
from collections.abc import Hashable

from magicbyte.schema.registry import SchemaNotFoundError

__all__ = ["AbsentSchemas"]


class AbsentSchemas:
    """The ids and GUIDs that a registry said it does not have. It forgets each after some seconds.

    Registries never use an id twice, but they may give an id later that they do not have yet.
    """

    def __init__(self, limit: int, seconds: float) -> None:
        self._limit = limit
        self._seconds = seconds
        self._until: dict[Hashable, float] = {}
        """When each is forgotten; the earliest comes first."""

    def check(self, name: Hashable, missing: str) -> None:
        """Raises SchemaNotFoundError if a schema need not be asked for: it is absent, or too many are."""
        now = time.monotonic()
        while self._until and self._until[oldest := next(iter(self._until))] <= now:
            del self._until[oldest]
        if name in self._until:
            raise SchemaNotFoundError(missing)
        if len(self._until) >= self._limit:
            raise SchemaNotFoundError(
                f"{missing}, or it was not asked for: the registry lacked {self._limit} others in the last"
                f" {self._seconds:g} s"
            )

    def add(self, name: Hashable) -> None:
        """Remembers a schema that the registry does not have."""
        self._until[name] = time.monotonic() + self._seconds
