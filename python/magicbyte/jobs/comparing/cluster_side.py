"""A running cluster as one side of a comparison: its records are fetched and digested, and never kept."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from typing import TypedDict

from magicbyte import _core
from magicbyte.enums import IsolationLevel
from magicbyte.errors import RefusedError
from magicbyte.internal_topics.names import INTERNAL_TOPICS
from magicbyte.jobs.comparing.differences import PartitionDiff, Place, compare_partition, only_in
from magicbyte.jobs.comparing.digest_cache import RANGE_OFFSETS, DigestCache, Digests, add_digests
from magicbyte.jobs.comparing.sides import Side
from magicbyte.jobs.find.choice import PartitionChoice
from magicbyte.jobs.run.engines import Engine
from magicbyte.jobs.run.progress import NO_PROGRESS, Progress

__all__ = ["ClusterComparison", "DamagedOffsets", "LevelComparison", "compare_with_cluster", "open_cluster"]

_LEVELS: tuple[IsolationLevel, ...] = ("read_uncommitted", "read_committed")


class DamagedOffsets(TypedDict):
    """A batch that the cluster sends and that does not decode."""

    topic: str
    partition: int
    first_offset: int
    """The offset after the batch before it."""
    last_offset: int
    message: str


class LevelComparison(TypedDict):
    """The comparison of what consumers of one isolation level read."""

    isolation_level: IsolationLevel
    equal: bool
    partitions: list[PartitionDiff]
    """Side a has the files, side b is the cluster."""


class ClusterComparison(TypedDict):
    """The comparison of files with a running cluster."""

    bootstrap_servers: str
    equal: bool
    levels: list[LevelComparison]
    damaged: list[DamagedOffsets]
    """The first `LISTED` batches of the cluster that do not decode."""
    damaged_left_out: int
    not_compared: list[str]
    """Kafka's own topics, to which a running cluster keeps writing."""


def open_cluster(bootstrap_servers: str, command_config: str | PathLike[str] | None) -> _core.ClusterReader:
    """Connects to a cluster.

    Raises:
        RefusedError: if an address or a property is invalid.

    """
    try:
        return _core.ClusterReader(bootstrap_servers, command_config)
    except ValueError as error:
        raise RefusedError(str(error)) from None


def compare_with_cluster(
    sources: Sequence[str],
    bootstrap_servers: str,
    cluster: _core.ClusterReader,
    engine: Engine,
    choice: PartitionChoice,
    max_decompressed_bytes: int,
    progress: Progress = NO_PROGRESS,
) -> ClusterComparison:
    """Compares the partitions of the sources with those of the same names in a cluster, at both levels.

    Partitions that only the cluster has do not count: the sources may be those of one broker. The end of
    the cluster's log is that of the moment at which the comparison of a level begins.

    Raises:
        RefusedError: if a partition is found twice in the sources.
        OSError: if the cluster does not answer or refuses.

    """
    there = {*cluster.partitions()}
    levels: list[LevelComparison] = []
    damaged: list[DamagedOffsets] = []
    damaged_left_out = 0
    not_compared: set[str] = set()
    for level in _LEVELS:
        files = Side(sources, choice, engine, max_decompressed_bytes, level)
        live = _ClusterSide(cluster, level, max_decompressed_bytes)
        not_compared |= {topic for topic, _ in files.places if topic in INTERNAL_TOPICS}
        places = sorted(place for place in files.places if place[0] not in INTERNAL_TOPICS)
        both = [place for place in places if place in there]
        digests = zip(
            files.digests(both, DigestCache(None, max_decompressed_bytes), progress),
            live.digests(both),
            strict=True,
        )
        pairs = dict(zip(both, digests, strict=True))
        partitions = [
            compare_partition((files, place, pairs[place][0]), (live, place, pairs[place][1]))
            if place in pairs
            else only_in("a", place)
            for place in places
        ]
        equal = all(one["result"] == "equal" for one in partitions)
        levels.append(LevelComparison(isolation_level=level, equal=equal, partitions=partitions))
        # The same batches are damaged at the second level.
        damaged, damaged_left_out = damaged or live.damaged, damaged_left_out or live.damaged_left_out
    return ClusterComparison(
        bootstrap_servers=bootstrap_servers,
        equal=all(level["equal"] for level in levels) and not damaged,
        levels=levels,
        damaged=damaged,
        damaged_left_out=damaged_left_out,
        not_compared=sorted(not_compared),
    )


class _ClusterSide:
    """A cluster, as a reader of an isolation level sees it."""

    def __init__(
        self, cluster: _core.ClusterReader, isolation_level: IsolationLevel, max_decompressed_bytes: int
    ) -> None:
        self._cluster = cluster
        self._isolation_level = isolation_level
        self._limit = max_decompressed_bytes
        self._ends: dict[Place, int] = {}
        self.damaged: list[DamagedOffsets] = []
        self.damaged_left_out = 0

    def digests(self, places: Sequence[Place]) -> list[Digests]:
        """The digests of partitions, from their starts to their ends of now."""
        bounds = dict(zip(places, self._cluster.offsets(places, self._isolation_level), strict=True))
        self._ends = {place: end for place, (_, end) in bounds.items()}
        found = self._read(bounds, RANGE_OFFSETS, note_damage=True)
        return [found[place] for place in places]

    def records(self, place: Place, ranges: Sequence[tuple[int, int]]) -> dict[int, int]:
        """The hashes of the records of increasing ranges of offsets, by offset; the ends are exclusive."""
        found: Digests = {}
        for start, end in ranges:
            bounds = {place: (start, min(end, self._ends[place]))}
            found |= self._read(bounds, 1, note_damage=False)[place]
        return {offset: digest for offset, (_, digest) in found.items()}

    def _read(
        self, bounds: dict[Place, tuple[int, int]], width: int, *, note_damage: bool
    ) -> dict[Place, Digests]:
        """Fetches ranges in calls of bounded size; a range of which the log has no offset has no digests."""
        found: dict[Place, Digests] = {place: {} for place in bounds}
        rest = {place: range_ for place, range_ in bounds.items() if range_[0] < range_[1]}
        while rest:
            ranges = [(*place, *range_) for place, range_ in rest.items()]
            fetched = self._cluster.digest(ranges, width, self._isolation_level, self._limit)
            for topic, partition, next_offset, digests, _, errors, left_out in fetched:
                place = topic, partition
                add_digests(found[place], {number: (records, digest) for number, records, digest in digests})
                if note_damage:
                    self._note(place, errors, left_out)
                end = rest.pop(place)[1]
                if next_offset < end:
                    rest[place] = next_offset, end
        return found

    def _note(self, place: Place, errors: Sequence[tuple[int, int, str]], left_out: int) -> None:
        room = max(0, _core.LISTED - len(self.damaged))
        self.damaged += [
            DamagedOffsets(
                topic=place[0], partition=place[1], first_offset=first, last_offset=end - 1, message=message
            )
            for first, end, message in errors[:room]
        ]
        self.damaged_left_out += left_out + len(errors[room:])
