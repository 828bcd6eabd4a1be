"""What a message of Kafka's own topics looks like: the tables in this package are made of these."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

__all__ = ["Field", "Message"]

_EMPTY: dict[str, Any] = {"string": "", "uuid": "A" * 22, "bool": False, "bytes": ""}


@dataclass(frozen=True)
class Field:
    """One field; versions are inclusive, None stands for "none" (`until`: for "all later ones")."""

    name: str
    type: str
    """`int8` .. `int64`, `uint16`, `float64`, `bool`, `string`, `bytes`, `uuid`, `struct`; `[]`: array."""
    fields: tuple[Field, ...] = ()
    """Of a `struct`."""
    since: int = 0
    until: int | None = None
    nullable: int | None = None
    """The first version that knows null."""
    tag: int | None = None
    """The number of a tagged field; in the JSON form it is left out when it has its default."""
    default: Any = ...

    def known(self, version: int) -> bool:
        """Whether this version has the field."""
        return self.since <= version and (self.until is None or version <= self.until)

    @property
    def absent(self) -> Any:
        """The value of a tagged field that is not there."""
        if self.default is not ...:
            return self.default
        return [] if self.type.startswith("[]") else _EMPTY.get(self.type, 0)


@dataclass(frozen=True)
class Message:
    """One message class of Kafka: its name there, its versions and its fields."""

    name: str
    fields: tuple[Field, ...]
    last_version: int = 0
    flexible: int | None = None
    """The first version with compact lengths and tagged fields."""
