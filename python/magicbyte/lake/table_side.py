"""A table of `ingest` as one side of a comparison, by the digests of its rows."""

from __future__ import annotations

from collections.abc import Sequence

from magicbyte import _core
from magicbyte.errors import RefusedError
from magicbyte.jobs.comparing.differences import Bounds
from magicbyte.jobs.comparing.digest_cache import RANGE_OFFSETS, DigestCache, Digests, add_digests
from magicbyte.jobs.find.choice import PartitionChoice
from magicbyte.jobs.run.progress import NO_PROGRESS, Progress
from magicbyte.jobs.run.sums import MILLIS
from magicbyte.lake.ranges import OffsetRange
from magicbyte.lake.read import StoredTable
from magicbyte.lake.table import DIGESTED
from magicbyte.model import Place, Problem

__all__ = ["TableSide"]


class TableSide:
    """The rows of a table, which are digested as the records that they were made of."""

    def __init__(self, table: StoredTable, choice: PartitionChoice) -> None:
        """Reads the chosen rows once.

        Raises:
            RefusedError: if keys or values are typed: then no row has the bytes of its record.

        """
        self._table = table
        self._options = table.options
        self.isolation_level = table.options.isolation_level
        if self._options.is_typed:
            raise RefusedError(
                f"{table.name} has typed keys or values, which are not those of the log byte for byte:"
                " `magicbyte verify --table` compares such a table with its log"
            )
        self._digests: dict[Place, Digests] = {}
        self.problems: list[Problem] = []
        self.problems_left_out = 0
        self.unread: set[Place] = set()
        self.size = 0
        for batch in table.rows((*DIGESTED, MILLIS)):
            self.size += batch.nbytes
            for topic, partition, ranges, _ in _core.digest_rows(batch, RANGE_OFFSETS):
                if choice.includes(topic, partition):
                    digests = self._digests.setdefault((topic, partition), {})
                    add_digests(digests, {number: (rows, digest) for number, rows, digest in ranges})
        self.places = {*self._digests}
        self.read_bytes = self.size

    def check_comparable(self) -> None:
        """Raises RefusedError if the table holds a selection of records, which no log can be compared
        with.
        """
        for name in ("where", "start_timestamp", "end_timestamp"):
            if getattr(self._options, name) is not None:
                raise RefusedError(
                    f"{self._table.name} was made with {name}, so that it lacks records of the log:"
                    " `magicbyte verify --table` chooses them in the log, too"
                )

    def digests(
        self, places: Sequence[Place], cache: DigestCache, progress: Progress = NO_PROGRESS
    ) -> list[Digests]:
        """The digests of partitions; those without rows have none."""
        return [self._digests.get(place, {}) for place in places]

    def bounds(self, place: Place) -> Bounds:
        """The range of offsets that the table was made for."""
        state = self._table.states([place]).get(place)
        ends = [self._options.end_offset, None if state is None else state.next_offset]
        cut = min((end for end in ends if end is not None), default=None)
        start = self._options.start_offset
        return Bounds(start=start or 0, start_is_stated=start is not None, cut=cut)

    def records(self, place: Place, ranges: Sequence[tuple[int, int]]) -> dict[int, int | None]:
        """The hashes of the rows of increasing ranges of offsets; None for a row without its timestamp. Rows
        with the same offset have the sum of their hashes.
        """
        found: Digests = {}
        unknown: list[int] = []
        within = [OffsetRange(*place, start, end) for start, end in ranges]
        for batch in self._table.rows((*DIGESTED, MILLIS), within):
            for _, _, rows, without_timestamp in _core.digest_rows(batch, 1):
                add_digests(found, {offset: (count, digest) for offset, count, digest in rows})
                unknown += without_timestamp
        hashes: dict[int, int | None] = {offset: digest for offset, (_, digest) in found.items()}
        return {**hashes, **dict.fromkeys(unknown, None)}
