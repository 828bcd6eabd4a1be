"""What can be saved of damage: raw bytes, repairs that a checksum proves, and suspect records."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from magicbyte import _core
from magicbyte.model import PartitionListing

__all__ = ["Repair", "Rescued", "Suspect", "rescue"]


class Suspect(NamedTuple):
    """A record that stands before the damage in a bad batch: it may be changed, too."""

    offset: int
    timestamp: int
    """Milliseconds, -1 for none."""
    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, bytes | None]]
    """Keys that are not UTF-8 come with U+FFFD."""


@dataclass(frozen=True, slots=True)
class Repair:
    """A copy of a bad batch that differs by one flipped bit, its length or its magic, and is sound."""

    batch: bytes
    """The whole batch: its CRC holds and every record decodes."""
    at: int
    """First byte that differs, from the start of the batch."""
    change: str
    """What was changed, for people."""
    chance: float
    """How often damage of another kind would look like this repair, by its checksum alone: bits / 2^32."""
    is_proven: bool
    """Whether that is less than once in 8,000 times, as it is up to 64 KiB. Else it is a guess."""


@dataclass(frozen=True, slots=True)
class Rescued:
    """A quarantined range and what can be saved of it."""

    segment: str
    """The segment's path."""
    start: int
    """First byte (inclusive)."""
    kind: str
    """Why it is quarantined: a kind of `magicbyte.Error`."""
    message: str
    data: bytes
    """The bytes as they are; of more than `max_decompressed_bytes`, the first."""
    repair: Repair | None
    suspects: list[Suspect]
    """The records up to the first that does not decode; none of a compressed batch with a wrong CRC."""

    @property
    def end(self) -> int:
        """One behind the last byte of `data`."""
        return self.start + len(self.data)


def rescue(
    path: str | os.PathLike[str],
    *,
    max_decompressed_bytes: int = _core.DEFAULT_MAX_DECOMPRESSED_BYTES,
) -> Iterator[Rescued]:
    """Goes through a partition's segments and yields each quarantined range. Nothing is written.

    Args:
        path: a partition directory, or a single segment file.
        max_decompressed_bytes: the cap on one batch, stored or decompressed.

    Raises:
        OSError: if a file cannot be read.

    >>> sum(len(found.suspects) for found in rescue("tests/data/kafka/v2_none"))
    0

    """
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
                suspects=[Suspect(*suspect) for suspect in suspects],
            )
