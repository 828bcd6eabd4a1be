"""Rescues data from damaged ranges: raw bytes, repairs proven by a checksum, and suspect records."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

from magicbyte import _core
from magicbyte._core import Repair, Rescued, Suspect

if TYPE_CHECKING:
    from magicbyte.model import PartitionListing

__all__ = ["Repair", "Rescued", "Suspect", "rescue"]


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
    listing: PartitionListing = json.loads(_core.list_partition(os.fspath(path)))
    for segment in listing["segments"]:
        survey = _core.survey_segment(json.dumps(segment))
        yield from _core.Rescuer(
            survey, max_decompressed_bytes=max_decompressed_bytes, log_start_offset=log_start_offset
        )
