"""A running cluster as one side of a comparison: its records are fetched and digested, and never kept."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypedDict

from magicbyte import _core
from magicbyte.enums import IsolationLevel
from magicbyte.jobs.comparing.differences import Bounds
from magicbyte.jobs.comparing.digest_cache import RANGE_OFFSETS, DigestCache, Digests, add_digests
from magicbyte.jobs.run.progress import NO_PROGRESS, Progress
from magicbyte.model import Place, Problem

__all__ = ["ClusterSide", "DamagedOffsets"]


class DamagedOffsets(TypedDict):
    """A batch that the cluster sends and that does not decode."""

    topic: str
    partition: int
    first_offset: int
    """The offset after the batch before it."""
    last_offset: int
    message: str


class ClusterSide:
    """A cluster, as a reader of an isolation level sees it."""

    def __init__(
        self,
        cluster: _core.ClusterReader,
        isolation_level: IsolationLevel,
        max_decompressed_bytes: int,
        *,
        places: Iterable[Place] = (),
        with_control: bool = True,
    ) -> None:
        self._cluster = cluster
        self._isolation_level = isolation_level
        self._limit = max_decompressed_bytes
        self._with_control = with_control
        self._bounds: dict[Place, tuple[int, int]] = {}
        self.places = {*places}
        self.problems: list[Problem] = []
        self.problems_left_out = 0
        self.size = 0
        self.damaged: list[DamagedOffsets] = []
        self.damaged_left_out = 0
        self.unread: set[Place] = set()

    @property
    def read_bytes(self) -> int:
        """The bytes of the batches that were fetched: no cache has their digests."""
        return self.size

    def digests(
        self, places: Sequence[Place], cache: DigestCache, progress: Progress = NO_PROGRESS
    ) -> list[Digests]:
        """The digests of partitions, from their starts to their ends of now. No cache keeps them: nothing
        tells whether a cluster still has the same records.
        """
        self._bounds = dict(zip(places, self._cluster.offsets(places, self._isolation_level), strict=True))
        found = self._read(self._bounds, RANGE_OFFSETS, note_damage=True)
        return [found[place] for place in places]

    def bounds(self, place: Place) -> Bounds:
        """The start of a partition that was digested."""
        return Bounds(start=self._bounds[place][0], start_is_stated=True)

    def records(self, place: Place, ranges: Sequence[tuple[int, int]]) -> dict[int, int | None]:
        """The hashes of the records of increasing ranges of offsets, by offset; the ends are exclusive."""
        found: Digests = {}
        first, last = self._bounds[place]
        for start, end in ranges:
            bounds = {place: (max(start, first), min(end, last))}
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
            fetched = self._cluster.digest(
                ranges, width, self._isolation_level, self._limit, self._with_control
            )
            for topic, partition, next_offset, digests, size, errors, left_out in fetched:
                place = topic, partition
                add_digests(found[place], {number: (records, digest) for number, records, digest in digests})
                if note_damage:
                    self.size += size
                    self._note(place, errors, left_out)
                end = rest.pop(place)[1]
                if next_offset < end:
                    rest[place] = next_offset, end
        return found

    def _note(self, place: Place, errors: Sequence[tuple[int, int, str]], left_out: int) -> None:
        if errors or left_out:
            self.unread.add(place)
        room = max(0, _core.LISTED - len(self.damaged))
        self.damaged += [
            DamagedOffsets(
                topic=place[0], partition=place[1], first_offset=first, last_offset=end - 1, message=message
            )
            for first, end, message in errors[:room]
        ]
        self.damaged_left_out += left_out + len(errors[room:])
