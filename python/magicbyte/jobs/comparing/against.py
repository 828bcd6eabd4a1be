"""The comparison of files with a running cluster, at both isolation levels: `verify --against`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypedDict

from magicbyte import _core
from magicbyte.enums import IsolationLevel
from magicbyte.internal_topics.names import CONSUMER_OFFSETS, INTERNAL_TOPICS
from magicbyte.jobs.comparing.cluster_side import ClusterSide, DamagedOffsets
from magicbyte.jobs.comparing.differences import PartitionDiff, compare_partition, only_in
from magicbyte.jobs.comparing.digest_cache import DigestCache
from magicbyte.jobs.comparing.files_side import FilesSide
from magicbyte.jobs.comparing.group_positions import GroupComparison, compare_groups
from magicbyte.jobs.find.choice import PartitionChoice
from magicbyte.jobs.run.engines import Engine
from magicbyte.jobs.run.progress import NO_PROGRESS, Progress

__all__ = ["ClusterComparison", "LevelComparison", "compare_with_cluster"]

_LEVELS: tuple[IsolationLevel, ...] = ("read_uncommitted", "read_committed")


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
    """True if nothing differs, something was compared, and everything could be."""
    differs: bool
    """True if a record or a position differs."""
    levels: list[LevelComparison]
    damaged: list[DamagedOffsets]
    """The first `LISTED` batches of the cluster that do not decode."""
    damaged_left_out: int
    not_compared: list[str]
    """Kafka's own topics, to which a running cluster keeps writing: their records are not compared."""
    groups: GroupComparison | None
    """The positions of groups; None if the files have no `__consumer_offsets`."""


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
    the cluster's log is that of the moment at which the comparison of a level begins. Of several copies of a
    partition, such as those of all brokers, the newest counts. Instead of the records of
    `__consumer_offsets`, the positions of groups are compared.

    Raises:
        OSError: if the cluster does not answer or refuses.

    """
    levels: list[LevelComparison] = []
    damaged: list[DamagedOffsets] = []
    damaged_left_out = 0
    not_compared: set[str] = set()
    for level in _LEVELS:
        files = FilesSide(sources, choice, engine, max_decompressed_bytes, level, as_served=True)
        live = ClusterSide(cluster, level, max_decompressed_bytes)
        not_compared |= {topic for topic, _ in files.places if topic in INTERNAL_TOPICS}
        places = sorted(place for place in files.places if place[0] not in INTERNAL_TOPICS)
        there = {*cluster.partitions(sorted({topic for topic, _ in places}))}
        both = [place for place in places if place in there]
        cache = DigestCache(None, max_decompressed_bytes)
        digests = zip(
            files.digests(both, cache, progress),
            live.digests(both, cache, progress),
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
    groups = None
    if CONSUMER_OFFSETS in not_compared:
        groups = compare_groups(sources, cluster, engine, choice, max_decompressed_bytes, progress)
    has_positions = groups is None or groups["behind"] + groups["missing"] == 0
    is_read = groups is None or not groups["unread"]
    results = {one["result"] for level in levels for one in level["partitions"]}
    return ClusterComparison(
        bootstrap_servers=bootstrap_servers,
        equal=results <= {"equal"} and has_positions and is_read and bool(results or groups),
        differs=not (results <= {"equal", "unproven"} and has_positions),
        levels=levels,
        damaged=damaged,
        damaged_left_out=damaged_left_out,
        not_compared=sorted(not_compared),
        groups=groups,
    )
