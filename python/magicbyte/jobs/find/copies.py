"""The copies of each partition among the sources: replicas on several brokers, backups, disks."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from magicbyte.errors import RefusedError
from magicbyte.jobs.find.choice import PartitionChoice
from magicbyte.jobs.find.partitions import Inputs
from magicbyte.listing import cluster_id_of, known_topic_id
from magicbyte.model import PartitionListing

__all__ = ["PartitionCopies", "copies_of"]

_MOST_COPIES = 64


@dataclass(frozen=True)
class PartitionCopies:
    """The copies of one partition."""

    topic: str
    partition: int
    topic_id: str | None
    """The topic's ID, from the `partition.metadata` of the copies; None if none of them has it."""
    listings: tuple[PartitionListing, ...]
    """The copies, ordered by path."""
    preferred: int | None
    """The place of the copy that `prefer` names."""

    @property
    def name(self) -> str:
        """`topic-N`."""
        return f"{self.topic}-{self.partition}"


def copies_of(inputs: Inputs, choice: PartitionChoice) -> list[PartitionCopies]:
    """Pairs the partitions of several sources by name. Those of one name have to be of one topic, by its ID.

    Raises:
        RefusedError: if copies of one name are of different topics or clusters, and `choice.prefer` does not
            name one of them; if it names several copies of a partition; or if there are more than 64 copies.

    """
    by_name: dict[tuple[str, int], list[PartitionListing]] = defaultdict(list)
    for listing in inputs.listings:
        by_name[listing["topic"], listing["partition"]].append(listing)
    return [_copies(topic, partition, copies, choice) for (topic, partition), copies in by_name.items()]


def _copies(
    topic: str, partition: int, listings: list[PartitionListing], choice: PartitionChoice
) -> PartitionCopies:
    name = f"{topic}-{partition}"
    preferred = choice.inside(listings)
    if len(preferred) > 1:
        raise RefusedError(f"{name}: --prefer names {len(preferred)} copies: {_paths(preferred)}")
    ids = {listing["path"]: known_topic_id(listing) for listing in listings}
    clusters = {listing["path"]: cluster_id_of(listing) for listing in listings}
    _refuse_several(name, "topic", ids)
    topic_id = next(filter(None, ids.values()), None)
    # A topic's ID is unique, whatever became of `meta.properties`.
    if topic_id is None or None in ids.values():
        _refuse_several(name, "cluster", clusters)
    if len(listings) > _MOST_COPIES:
        raise RefusedError(f"{name} has {len(listings)} copies, but at most {_MOST_COPIES} can be merged")
    place = listings.index(preferred[0]) if preferred else None
    return PartitionCopies(topic, partition, topic_id, tuple(listings), place)


def _refuse_several(name: str, what: str, ids: dict[str, str | None]) -> None:
    first: dict[str, str] = {}
    for path, identity in ids.items():
        if identity is not None:
            first.setdefault(identity, path)
    if len(first) > 1:
        shown = ", ".join(f"{identity} in {path}" for identity, path in first.items())
        raise RefusedError(
            f"the directories of {name} belong to {len(first)} {what}s, so they are not copies of each other"
            f" ({shown}): give the directories of one {what} only, or leave the topic out (--exclude)"
        )


def _paths(listings: Iterable[PartitionListing]) -> str:
    return ", ".join(listing["path"] for listing in listings)
