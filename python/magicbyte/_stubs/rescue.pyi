"""Recovery of data from quarantined ranges: used by `magicbyte.damage`."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Self, final

@final
@dataclass(frozen=True, init=False)
class Suspect:
    """A record before the damage in a bad batch: it may be damaged, too."""

    offset: int
    """The offset of the record."""
    timestamp: int
    """Milliseconds; -1 if there is none."""
    key: bytes | None
    """The key, or None for null."""
    value: bytes | None
    """The value, or None for null."""
    headers: list[tuple[str, bytes | None]]
    """In keys, bytes that are not UTF-8 become U+FFFD."""

    def __new__(
        cls,
        offset: int,
        timestamp: int,
        key: bytes | None,
        value: bytes | None,
        headers: list[tuple[str, bytes | None]],
    ) -> Self: ...
    def __iter__(self) -> Iterator[Any]: ...
    def __replace__(self, **changes: Any) -> Self: ...

@final
@dataclass(frozen=True, init=False)
class Repair:
    """A valid copy of a bad batch that differs from it by one flipped bit, its length or its magic."""

    batch: bytes
    """The whole batch: its CRC is correct and every record decodes."""
    at: int
    """The first byte that differs, counted from the start of the batch."""
    change: str
    """A description of the change."""
    chance: float
    """The probability that other damage passes for this repair, given its checksum: bits / 2^32."""
    is_proven: bool
    """True if that probability is below 1 in 8,000, as it is up to 64 KiB; otherwise it is a guess."""

    def __new__(cls, batch: bytes, at: int, change: str, chance: float, is_proven: bool) -> Self: ...
    def __iter__(self) -> Iterator[Any]: ...
    def __replace__(self, **changes: Any) -> Self: ...

@final
@dataclass(frozen=True, init=False)
class Rescued:
    """A quarantined range and what can be saved from it."""

    segment: str
    """The segment's path."""
    start: int
    """The first byte."""
    kind: str
    """The reason for the quarantine: a kind of `magicbyte.Error`."""
    message: str
    """The message of that error."""
    data: bytes
    """The unchanged bytes, but at most the first `max_decompressed_bytes`."""
    repair: Repair | None
    """The repair, if there is one."""
    suspects: list[Suspect]
    """The records before the first one that does not decode; none if a compressed batch has a wrong CRC."""

    def __new__(
        cls,
        segment: str,
        start: int,
        kind: str,
        message: str,
        data: bytes,
        repair: Repair | None,
        suspects: list[Suspect],
    ) -> Self: ...
    def __iter__(self) -> Iterator[Any]: ...
    def __replace__(self, **changes: Any) -> Self: ...
    @property
    def end(self) -> int:
        """The position after the last byte of `data`.

        Raises:
            OverflowError: if it has more than 64 bits.

        """

@final
class Rescuer:
    """Iterates over a segment's quarantined ranges, which its survey has.

    Suspects before `log_start_offset` are left out, since they were deleted.
    """

    def __new__(
        cls, survey: str, *, max_decompressed_bytes: int = ..., log_start_offset: int | None = None
    ) -> Self: ...
    def __iter__(self) -> Self: ...
    def __next__(self) -> Rescued: ...
