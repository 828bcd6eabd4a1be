"""What the names in a partition's directory mean for reading it."""

from __future__ import annotations

import re
from collections.abc import Collection

from magicbyte.model import PartitionListing, Problem

__all__ = ["is_partition", "is_segment_file", "unread_segments"]

_SEGMENT_FILE = re.compile(r"\d{20}\.log")
_PARTITION = re.compile(r".+-\d+(\.[^.]*-(future|stray|delete))?")
_LOG_FILE = re.compile(
    r"\d{20}\.(log(\.(zst|gz|lz4|sz|bz2|xz))?|index|timeindex|txnindex|snapshot)"
    r"|leader-epoch-checkpoint|partition\.metadata"
)


def is_segment_file(name: str) -> bool:
    """Whether a file name is that of a segment: twenty digits (the base offset) and `.log`."""
    return _SEGMENT_FILE.fullmatch(name) is not None


def is_partition(directory: str, names: Collection[str]) -> bool:
    """Whether a directory of this name, with these entries, is a partition.

    It has a segment; or its name is `topic-N`, and it has a compressed segment or a file that a broker keeps
    beside segments.
    """
    return any(map(is_segment_file, names)) or (
        _PARTITION.fullmatch(directory) is not None and any(_LOG_FILE.fullmatch(name) for name in names)
    )


def unread_segments(listing: PartitionListing) -> list[Problem]:
    """The problems that keep a part of the log from being read; problems of sidecars do not."""
    return [
        problem
        for problem in listing["problems"]
        if problem["segment"] is None or is_segment_file(problem["segment"])
    ]
