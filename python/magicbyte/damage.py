"""Rescues data from damaged ranges: raw bytes, repairs proven by a checksum, and suspect records."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from magicbyte import _core

if TYPE_CHECKING:
    from magicbyte.model import PartitionListing

__all__ = ["Repair", "Rescued", "Suspect", "rescue"]


class Suspect(NamedTuple):
    """A record before the damage in a bad batch: it may be damaged, too."""

    offset: int
    timestamp: int
    """Milliseconds; -1 if there is none."""
    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, bytes | None]]
    """In keys, bytes that are not UTF-8 become U+FFFD."""


@dataclass(frozen=True, slots=True)
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


@dataclass(frozen=True, slots=True)
class Rescued:
    """A quarantined range and what can be saved from it."""

    segment: str
    """The segment's path."""
    start: int
    """The first byte."""
    kind: str
    """The reason for the quarantine: a kind of `magicbyte.Error`."""
    message: str
    data: bytes
    """The unchanged bytes, but at most the first `max_decompressed_bytes`."""
    repair: Repair | None
    suspects: list[Suspect]
    """The records before the first one that does not decode; none if a compressed batch has a wrong CRC."""

    @property
    def end(self) -> int:
        """The position after the last byte of `data`."""
        return self.start + len(self.data)


def rescue(
    path: str | os.PathLike[str],
    *,
    max_decompressed_bytes: int = _core.DEFAULT_MAX_DECOMPRESSED_BYTES,
    log_start_offset: int | None = None,
) -> Iterator[Rescued]:
    """Yields each quarantined range of a partition's segments. Writes nothing.

    Args:
        path: a partition directory, or a single segment file.
        max_decompressed_bytes: the limit for one batch, stored or decompressed.
        log_start_offset: suspects before this offset are left out, since they were deleted.

    Raises:
        OSError: if a file cannot be read.

    >>> sum(len(found.suspects) for found in rescue("tests/data/kafka/v2_none"))
    0

    """
    begin = -(1 << 63) if log_start_offset is None else log_start_offset
    listing: PartitionListing = json.loads(_core.list_partition(os.fspath(path)))
    for segment in listing["segments"]:
        survey = _core.survey_segment(json.dumps(segment))
        found = _core.RescuerCore(survey, max_decompressed_bytes=max_decompressed_bytes)
        for start, data, kind, message, repair, suspects in found:
            yield Rescued(
                segment=segment["path"],
                start=start,
                kind=kind,
                message=message,
                data=data,
                repair=None if repair is None else Repair(*repair),
                suspects=[one for one in map(Suspect._make, suspects) if one.offset >= begin],
            )
