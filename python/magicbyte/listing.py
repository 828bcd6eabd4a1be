"""What the names in a partition's directory mean for reading it."""

from __future__ import annotations

import re

from magicbyte.model import PartitionListing, Problem

__all__ = ["is_segment_file", "unread_segments"]

_SEGMENT_FILE = re.compile(r"\d{20}\.log")


def is_segment_file(name: str) -> bool:
    """Whether a file name is that of a segment: twenty digits (the base offset) and `.log`."""
    return _SEGMENT_FILE.fullmatch(name) is not None


def unread_segments(listing: PartitionListing) -> list[Problem]:
    """The problems that keep a part of the log from being read; problems of sidecars do not."""
    return [
        problem
        for problem in listing["problems"]
        if problem["segment"] is None or is_segment_file(problem["segment"])
    ]
