"""The choice of the partitions that a job reads, among those that are found."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from magicbyte.errors import RefusedError
from magicbyte.internal_topics.names import INTERNAL_TOPICS
from magicbyte.model import DirectoryState, PartitionListing
from magicbyte.storage.paths import absolute

__all__ = ["EVERYTHING", "ONLY_TOPIC", "PartitionChoice"]

ONLY_TOPIC = ""
"""Stands for the only topic that a job reads, where a caller may leave out its name."""


@dataclass(frozen=True)
class PartitionChoice:
    """The partitions to read. Patterns are those of a shell (`*`, `?`, `[a-z]`) and match whole names."""

    topics: tuple[str, ...] = ()
    """Patterns of topics; none for all."""
    exclude: tuple[str, ...] = ()
    """Patterns of topics to leave out."""
    exclude_internal: bool = False
    """True to leave out `INTERNAL_TOPICS`."""
    partitions: frozenset[int] = frozenset()
    """Numbers of partitions; none for all."""
    states: frozenset[DirectoryState] = frozenset()
    """States of directories to read in addition to `current` and `remote`."""
    include_deleted_records: bool = False
    """True to read records before a log's start, which a broker does not return (`DeleteRecords`)."""
    prefer: tuple[str, ...] = ()
    """Directories whose copy of a partition is read if there are several."""
    one_disk: bool = False
    """True if other directories of a broker are left out on purpose, so that their absence is no problem."""

    def includes(self, topic: str, partition: int) -> bool:
        """True if the topic and number of a partition match the choice."""
        return (
            (not self.topics or any(fnmatchcase(topic, pattern) for pattern in self.topics))
            and not any(fnmatchcase(topic, pattern) for pattern in self.exclude)
            and not (self.exclude_internal and topic in INTERNAL_TOPICS)
            and (not self.partitions or partition in self.partitions)
        )

    def preferred(self, copies: Sequence[PartitionListing]) -> PartitionListing:
        """The one copy of a partition to read.

        Raises:
            RefusedError: if `prefer` does not name exactly one of them.

        """
        chosen = self.inside(copies)
        if len(chosen) == 1:
            return chosen[0]
        # Copies from two brokers hold the same records, which would appear twice in one output.
        name = f"{copies[0]['topic']}-{copies[0]['partition']}"
        times = "twice" if len(copies) == 2 else f"{len(copies)} times"
        paths = [one["path"] for one in copies]
        raise RefusedError(
            f"{name} is there {times}, in {', '.join(paths[:-1])} and {paths[-1]}: read one"
            f" copy at a time, or prefer one of the directories (--prefer {os.path.dirname(paths[0])})"
        )

    def inside(self, copies: Sequence[PartitionListing]) -> list[PartitionListing]:
        """The copies in the directories of `prefer`."""
        places = [absolute(place) for place in self.prefer]

        def is_inside(path: str) -> bool:
            return any(path == place or path.startswith(os.path.join(place, "")) for place in places)

        return [one for one in copies if is_inside(one["path"])]


EVERYTHING = PartitionChoice()
"""Every partition; directories that are not `current` only if they are sources themselves."""
