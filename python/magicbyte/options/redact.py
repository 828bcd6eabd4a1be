"""Options of `redact`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from magicbyte.options.declare import argument, option
from magicbyte.options.shared import CleanOptions
from magicbyte.options.values import EXPRESSION

__all__ = ["RedactOptions"]


@dataclass(frozen=True, kw_only=True)
class RedactOptions(CleanOptions):
    """The records to redact, and how to redact them."""

    # Neither is in the repr: they may be confidential themselves.
    keys: Iterable[bytes | str] = argument(
        "Redact records with one of these keys; text is encoded in UTF-8.", default=(), secret=True
    )
    where: str | None = option(
        "Redact records for which this SQL expression is true.", default=None, kind=EXPRESSION, secret=True
    )
    offsets: Mapping[tuple[str, int], Iterable[tuple[int, int]]] | None = argument(
        "Redact the records at these offsets: by topic and partition, the first and last offset (inclusive)"
        " of each range.",
        default=None,
        flag="--offsets",
    )
    tombstones: bool = option(
        "Replace records by tombstones: key, offset and timestamp are kept, value and headers are removed.",
        default=False,
    )
    check: bool = option(
        "Read the output again before it is published, to check that none of the keys is left.", default=True
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.keys, str | bytes):
            raise TypeError("keys: expected a sequence of keys, not one key")
        # Any iterable: tasks need all of the keys, again and again.
        object.__setattr__(self, "keys", tuple(self.keys))
