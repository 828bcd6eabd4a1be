"""What the names in a partition's directory mean for reading it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from magicbyte.model import PartitionListing, Problem

__all__ = ["is_segment_file", "unread_segments"]


def is_segment_file(name: str) -> bool:
    """Whether a file name is that of a segment: twenty digits and `.log`, `.log.zst` or `.log.gz`."""
    stem, _, extension = name.partition(".")
    return extension in ("log", "log.zst", "log.gz") and len(stem) == 20 and stem.isascii() and stem.isdigit()


def unread_segments(listing: PartitionListing) -> list[Problem]:
    """The problems that keep a part of the log from being read; problems of sidecars do not."""
    return [
        problem
        for problem in listing["problems"]
        if problem["segment"] is None or is_segment_file(problem["segment"])
    ]
