"""The methods of error codes; `errors.py` lists the codes."""

from __future__ import annotations

from enum import IntEnum
from typing import Self

_CODES = range(-(1 << 15), 1 << 15)


class ErrorCode(IntEnum):
    """An error code: a number in responses, and its name in Kafka's enum `Errors`.

    A code that Kafka 4.4 does not have is a member, too: its name is its number, and it is not retriable.
    """

    is_retriable: bool
    """True if the same request may succeed later (`RetriableException`)."""

    def __new__(cls, code: int, is_retriable: bool = False) -> Self:
        """Makes a member of what `Errors` lists."""
        member = int.__new__(cls, code)
        member._value_ = code
        member.is_retriable = is_retriable
        return member

    @classmethod
    def _missing_(cls, value: object) -> Self | None:
        if not isinstance(value, int) or value not in _CODES:
            return None
        unknown = int.__new__(cls, value)
        unknown._name_ = str(int(value))
        unknown._value_ = int(value)
        unknown.is_retriable = False
        return unknown
