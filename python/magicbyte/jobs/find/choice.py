"""The choice of the partitions that a job reads, among those that are found."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, fields
from fnmatch import fnmatchcase

from magicbyte.errors import RefusedError
from magicbyte.internal_topics.names import INTERNAL_TOPICS
from magicbyte.model import DirectoryState, PartitionListing
from magicbyte.options.declare import Options, option
from magicbyte.options.values import DIRECTORIES, PARTITIONS, Repeated
from magicbyte.storage.paths import absolute

__all__ = ["EVERYTHING", "PartitionChoice", "check_choice"]


@dataclass(frozen=True, kw_only=True)
class PartitionChoice(Options):
    """The partitions to read. Patterns are those of a shell (`*`, `?`, `[a-z]`) and match whole names."""

    topics: tuple[str, ...] = option(
        "Read only these topics: a name, or a pattern such as 'orders-*'.",
        default=(),
        flag="--topic",
        kind=Repeated("PATTERN"),
    )
    exclude: tuple[str, ...] = option(
        "Leave out topics: a name, or a pattern such as 'test-*'.",
        default=(),
        kind=Repeated("PATTERN"),
    )
    exclude_internal: bool = option(
        "Leave out Kafka's own topics, such as __consumer_offsets.", default=False
    )
    partitions: frozenset[int] = option(
        "Read only these partitions.",
        default=frozenset(),
        flag="--partition",
        kind=PARTITIONS,
    )
    include_future: bool = option(
        "Read copies that a broker was moving between its disks, too.", default=False
    )
    include_stray: bool = option("Read logs that the broker was not assigned, too.", default=False)
    include_deleted: bool = option("Read logs that the broker was deleting, too.", default=False)
    include_deleted_records: bool = option(
        "Read records before a log's start (log-start-offset-checkpoint), too, which a broker does not"
        " return.",
        default=False,
    )
    prefer: tuple[str, ...] = option(
        "Read the copy in this directory of a partition that exists several times.",
        default=(),
        kind=DIRECTORIES,
    )
    one_disk: bool = option(
        "Other directories of a broker are left out on purpose, so their absence is not a problem.",
        default=False,
    )

    def __repr__(self) -> str:
        given = [(one, getattr(self, one.name)) for one in fields(self)]
        shown = [f"{one.name}={value!r}" for one, value in given if value != one.default]
        return f"PartitionChoice({', '.join(shown)})"

    @property
    def states(self) -> frozenset[DirectoryState]:
        """The states of the directories to read."""
        states: dict[DirectoryState, bool] = {
            "current": True,
            "remote": True,
            "future": self.include_future,
            "stray": self.include_stray,
            "deleted": self.include_deleted,
        }
        return frozenset(state for state, included in states.items() if included)

    def includes(self, topic: str, partition: int) -> bool:
        """True if the topic and number of a partition match the choice."""
        return self.includes_topic(topic) and (not self.partitions or partition in self.partitions)

    def includes_topic(self, topic: str) -> bool:
        """True if the name of a topic matches the choice."""
        return (
            (not self.topics or any(fnmatchcase(topic, pattern) for pattern in self.topics))
            and not any(fnmatchcase(topic, pattern) for pattern in self.exclude)
            and not (self.exclude_internal and topic in INTERNAL_TOPICS)
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
        paths = [copy["path"] for copy in copies]
        directory = os.path.dirname(paths[0])
        raise RefusedError(
            f"there are {len(copies)} copies of {name}, in {', '.join(paths[:-1])} and {paths[-1]}: read one"
            f" copy at a time, or prefer one of the directories (--prefer {directory}, in Python"
            f" PartitionChoice(prefer=[{directory!r}]))"
        )

    def inside(self, copies: Sequence[PartitionListing]) -> list[PartitionListing]:
        """The copies in the directories of `prefer`."""
        places = [absolute(place) for place in self.prefer]

        def is_inside(path: str) -> bool:
            return any(path == place or path.startswith(os.path.join(place, "")) for place in places)

        return [copy for copy in copies if is_inside(copy["path"])]


def check_choice(choice: object) -> None:
    """Raises TypeError for anything but a `PartitionChoice`."""
    if not isinstance(choice, PartitionChoice):
        raise TypeError(f"choice: expected a PartitionChoice, not {type(choice).__name__}")


EVERYTHING = PartitionChoice()
"""Every partition; directories that are not `current` only if they are sources themselves."""
