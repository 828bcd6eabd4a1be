"""The job of `magicbyte diff`: the partitions, ranges of offsets and records in which two sides differ.

A side is a log, whether in files or of a running cluster, or a table. Both sides are reduced to a digest for
each range of offsets. Ranges whose digests differ are read again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias, TypedDict

from magicbyte import _core
from magicbyte.enums import IsolationLevel
from magicbyte.errors import RefusedError
from magicbyte.internal_topics.names import CLUSTER_METADATA
from magicbyte.jobs.comparing.cluster_side import ClusterSide, DamagedOffsets
from magicbyte.jobs.comparing.differences import PartitionDiff, compare_partition, only_in
from magicbyte.jobs.comparing.digest_cache import DigestCache, Digests, check_cache
from magicbyte.jobs.comparing.files_side import FilesSide
from magicbyte.jobs.comparing.side import Side, TableOfRecords
from magicbyte.jobs.find.choice import EVERYTHING, PartitionChoice
from magicbyte.jobs.run.accounting import Problems, listed
from magicbyte.jobs.run.engines import Engine
from magicbyte.jobs.run.progress import NO_PROGRESS, Progress
from magicbyte.live import chosen_partitions, open_cluster, split_sources
from magicbyte.model import Place
from magicbyte.options.diff import DiffOptions
from magicbyte.storage.location import ClusterUrl, cluster_of

__all__ = ["DiffReport", "diff"]

_BATCHES = "batches: codec, magic, borders, producers, sequences and leader epochs"
_CONTROL = "control records"


class SideReport(TypedDict):
    """One side of the comparison."""

    source: str
    size: int
    """The bytes that were compared: of segments, of batches that a cluster sent, or of a table's rows in
    memory."""
    read_bytes: int
    """Bytes whose records were read; the digests of the others were in the cache."""


class DiffReport(Problems):
    """The comparison of two sides."""

    magicbyte: str
    equal: bool
    """True if every partition is `equal`: nothing differs, and nothing was left unread."""
    isolation_level: IsolationLevel
    a: SideReport
    b: SideReport
    partitions: list[PartitionDiff]
    not_compared: list[str]
    """The parts of records that are not compared, even if only one side has them."""
    damaged: list[DamagedOffsets]
    """The first `LISTED` batches of running clusters that do not decode."""
    damaged_left_out: int


OpenTable: TypeAlias = Callable[[str, PartitionChoice], TableOfRecords | None]
"""Opens a table of `ingest`; None for a source that is not one."""


def diff(
    sources: Sequence[str],
    engine: Engine,
    options: DiffOptions,
    progress: Progress = NO_PROGRESS,
    *,
    choice: PartitionChoice = EVERYTHING,
    open_table: OpenTable,
) -> DiffReport:
    """Compares the records of two sources, partition by partition.

    Partitions are paired by name. If there is one on each side, these two are compared, whatever their names.
    A backup and a table are compared up to their cuts. A running cluster is fetched once, and ranges that
    differ a second time.

    Raises:
        RefusedError: if there are not two sources, one has nothing to read or has a partition twice, a table
            has not what is needed to compare it, or there is another file where the cache should be.
        OSError: if a running cluster does not answer or refuses.

    """
    if len(sources) != 2:
        raise RefusedError(f"two sources are compared, not {len(sources)}")
    if options.cache is not None:
        check_cache(options.cache, sources)
    split_sources(sources, options.command_config)
    return _Diff(sources, engine, options, choice, open_table).report(progress)


_Pair: TypeAlias = tuple[Place | None, Place | None]


class _Diff:
    def __init__(
        self,
        sources: Sequence[str],
        engine: Engine,
        options: DiffOptions,
        choice: PartitionChoice,
        open_table: OpenTable,
    ) -> None:
        self._sources, self._engine, self._options, self._choice = sources, engine, options, choice
        urls = [cluster_of(source) for source in sources]
        tables = [
            open_table(source, choice) if url is None else None
            for source, url in zip(sources, urls, strict=True)
        ]
        self._tables = [table for table in tables if table is not None]
        self._level = self._isolation_level()
        self._a, self._b = (
            table or self._log(source, url) for source, url, table in zip(sources, urls, tables, strict=True)
        )
        self._has_cluster = any(url is not None for url in urls)

    def _isolation_level(self) -> IsolationLevel:
        """The level of the records on both sides. A table has those that it was made with."""
        levels = {table.isolation_level for table in self._tables}
        given = self._options.isolation_level
        if given is not None:
            levels.add(given)
        if len(levels) > 1:
            raise RefusedError(
                "a table has the records of its own isolation level, and the sides have different ones:"
                f" {' and '.join(sorted(levels))}"
            )
        if len(self._tables) == 1:
            self._tables[0].check_comparable()
        return next(iter(levels), "read_uncommitted")

    def _log(self, source: str, url: ClusterUrl | None) -> Side:
        limit, with_control = self._options.max_decompressed_bytes, not self._tables
        if url is None:
            return FilesSide(
                [source], self._choice, self._engine, limit, self._level, with_control=with_control
            )
        reader = open_cluster(url.cluster, self._options.command_config)
        places = chosen_partitions(url, reader.partitions(), self._choice.includes)
        return ClusterSide(reader, self._level, limit, places=places, with_control=with_control)

    def report(self, progress: Progress) -> DiffReport:
        """Compares the sides."""
        a, b = self._a, self._b
        cache = DigestCache(
            self._options.cache, self._options.max_decompressed_bytes, with_control=not self._tables
        )
        pairs = self._pairs()
        both = [(one, other) for one, other in pairs if one is not None and other is not None]
        left = a.digests([one for one, _ in both], cache, progress)
        right = b.digests([other for _, other in both], cache, progress)
        cache.save()
        digests: dict[_Pair, tuple[Digests, Digests]] = dict(
            zip(both, zip(left, right, strict=True), strict=True)
        )
        partitions = [self._compared(pair, digests.get(pair)) for pair in pairs]
        clusters = [side for side in (a, b) if isinstance(side, ClusterSide)]
        damaged = [one for side in clusters for one in side.damaged]
        not_compared = [_BATCHES]
        not_compared += [_CONTROL] if self._tables else []
        not_compared += [CLUSTER_METADATA] if self._has_cluster else []
        problems = [*a.problems, *b.problems]
        return DiffReport(
            magicbyte=_core.__version__,
            equal=all(partition["result"] == "equal" for partition in partitions),
            isolation_level=self._level,
            a=SideReport(source=self._sources[0], size=a.size, read_bytes=a.read_bytes),
            b=SideReport(source=self._sources[1], size=b.size, read_bytes=b.read_bytes),
            partitions=partitions,
            not_compared=not_compared,
            damaged=damaged,
            damaged_left_out=sum(side.damaged_left_out for side in clusters),
            **listed(problems, a.problems_left_out + b.problems_left_out),
        )

    def _pairs(self) -> list[_Pair]:
        in_a, in_b = self._a.places, self._b.places
        if self._has_cluster:
            # A cluster does not send it; a backup has one of its own.
            in_a, in_b = ({place for place in of if place[0] != CLUSTER_METADATA} for of in (in_a, in_b))
        if len(in_a) == len(in_b) == 1:
            return [(next(iter(in_a)), next(iter(in_b)))]
        # A table does not name partitions without records, which a log may have.
        all_in_a, all_in_b = (side in self._tables for side in (self._a, self._b))
        return [
            (place if all_in_a or place in in_a else None, place if all_in_b or place in in_b else None)
            for place in sorted(in_a | in_b)
        ]

    def _compared(self, pair: _Pair, digests: tuple[Digests, Digests] | None) -> PartitionDiff:
        in_a, in_b = pair
        if in_a is None or in_b is None or digests is None:
            return only_in("b" if in_a is None else "a", in_a or in_b or ("", 0))
        left, right = digests
        if in_a not in self._a.places and right:
            return only_in("b", in_b)
        if in_b not in self._b.places and left:
            return only_in("a", in_a)
        bounds = self._a.bounds(in_a), self._b.bounds(in_b)
        return compare_partition((self._a, in_a, left), (self._b, in_b, right), bounds)
