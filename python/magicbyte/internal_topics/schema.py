"""The classes that describe the messages of internal topics."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

__all__ = ["Field", "Message"]

_EMPTY: dict[str, Any] = {"string": "", "uuid": "A" * 22, "bool": False, "bytes": ""}


@dataclass(frozen=True)
class Field:
    """A field of a message. Versions are inclusive."""

    name: str
    type: str
    """`int8` to `int64`, `uint16`, `float64`, `bool`, `string`, `bytes`, `uuid` or `struct`; arrays have the
    prefix `[]`."""
    fields: tuple[Field, ...] = ()
    """The fields of a `struct`."""
    since: int = 0
    """The first version that has the field."""
    until: int | None = None
    """The last version that has the field; None for the latest one."""
    nullable: int | None = None
    """The first version in which the field may be null; None for no version."""
    tag: int | None = None
    """The number of a tagged field, which is left out of the JSON if it has its default."""
    default: Any = ...

    def known(self, version: int) -> bool:
        """Whether this version has the field."""
        return self.since <= version and (self.until is None or version <= self.until)

    @property
    def absent(self) -> Any:
        """The value of a tagged field that is absent."""
        if self.default is not ...:
            return self.default
        return [] if self.type.startswith("[]") else _EMPTY.get(self.type, 0)


@dataclass(frozen=True)
class Message:
    """A message class of Kafka, with its name, versions and fields."""

    name: str
    fields: tuple[Field, ...]
    last_version: int = 0
    flexible: int | None = None
    """The first version with compact lengths and tagged fields; None for no version."""
