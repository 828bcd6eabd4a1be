"""One side of a comparison: its partitions, and digests of their records."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import partial

from magicbyte import _core
from magicbyte.enums import IsolationLevel
from magicbyte.jobs.comparing.differences import RANGE_OFFSETS, Place
from magicbyte.jobs.comparing.digest_cache import ChunkDigests, DigestCache, Digests, add_digests
from magicbyte.jobs.find.choice import PartitionChoice
from magicbyte.jobs.find.partitions import find_inputs
from magicbyte.jobs.run.accounting import Problems
from magicbyte.jobs.run.engines import Engine
from magicbyte.jobs.run.plan import Planned, count_of, plan_partitions, plan_surveyed, size_of_chunk
from magicbyte.jobs.run.progress import NO_PROGRESS, Progress, format_bytes
from magicbyte.model import Chunk, Problem

__all__ = ["Side"]

_CHUNK_BYTES = 4 << 20


class Side:
    """A directory, archive or bucket with partitions."""

    def __init__(
        self,
        sources: Sequence[str],
        choice: PartitionChoice,
        engine: Engine,
        max_decompressed_bytes: int,
        isolation_level: IsolationLevel = "read_uncommitted",
    ) -> None:
        """Lists the partitions. With `isolation_level`, only the records of such a reader count.

        Raises:
            RefusedError: if there are none, or several copies of one.

        """
        self._engine = engine
        self._isolation_level = isolation_level
        self._limit = max_decompressed_bytes
        inputs = find_inputs(sources, choice, distinct=True)
        self._listings = {(one["topic"], one["partition"]): one for one in inputs.listings}
        self._plans: dict[Place, Planned] = {}
        self.problems: list[Problem] = []
        self.problems_left_out = 0
        self.read_bytes = 0
        self.size = 0

    @property
    def places(self) -> set[Place]:
        """The partitions of this side."""
        return {*self._listings}

    def digests(
        self, places: Sequence[Place], cache: DigestCache, progress: Progress = NO_PROGRESS
    ) -> list[Digests]:
        """The digests of partitions, from the cache or by reading the records."""
        listings = [self._listings[place] for place in places]
        plans = plan_partitions(
            listings,
            self._engine,
            isolation_level=self._isolation_level,
            chunk_bytes=_CHUNK_BYTES,
            progress=progress,
        )
        self._plans = dict(zip(places, plans, strict=True))
        self.problems += [problem for planned in plans for problem in planned.plan["problems"]]
        found: list[Digests] = [{} for _ in plans]
        unread: list[tuple[int, Chunk]] = []
        for number, planned in enumerate(plans):
            for chunk in planned.plan["chunks"]:
                self.size += size_of_chunk(chunk)
                kept = cache.find(chunk)
                if kept is None:
                    unread.append((number, chunk))
                else:
                    self._add(found[number], kept)
        chunks = [chunk for _, chunk in unread]
        for (number, chunk), read in zip(unread, self._read(chunks, RANGE_OFFSETS, progress), strict=True):
            self._add(found[number], read)
            cache.keep(chunk, read)
        self.read_bytes += sum(map(size_of_chunk, chunks))
        return found

    def _add(self, total: Digests, more: ChunkDigests) -> None:
        add_digests(total, more.digests)
        room = max(0, _core.LISTED - len(self.problems))
        self.problems += more.problems[:room]
        self.problems_left_out += more.problems_left_out + len(more.problems[room:])

    def records(self, place: Place, start: int, end: int) -> dict[int, int]:
        """The hashes of the records of a range, by offset; `end` is exclusive."""
        planned = self._plans[place]
        within = plan_surveyed(
            planned.listing,
            planned.surveys,
            isolation_level=self._isolation_level,
            offsets=(start, end),
            chunk_bytes=_CHUNK_BYTES,
        )
        found: Digests = {}
        for read in self._read(within.plan["chunks"], 1, NO_PROGRESS):
            add_digests(found, read.digests)
        return {offset: digest for offset, (_, digest) in found.items()}

    def _read(self, chunks: Sequence[Chunk], width: int, progress: Progress) -> list[ChunkDigests]:
        sizes = list(map(size_of_chunk, chunks))
        return self._engine.map(
            partial(_digest_chunk, width=width, max_decompressed_bytes=self._limit),
            [json.dumps(chunk) for chunk in chunks],
            name=f"magicbyte digest: {count_of(len(chunks), 'chunk')}, {format_bytes(sum(sizes))}",
            sizes=sizes,
            progress=progress,
        )


def _digest_chunk(chunk: str, width: int, max_decompressed_bytes: int) -> ChunkDigests:
    ranges, _, text = _core.digest_chunk(chunk, width, max_decompressed_bytes)
    found: Problems = json.loads(text)
    return ChunkDigests(
        {number: (records, digest) for number, records, digest in ranges},
        tuple(found["problems"]),
        found["problems_left_out"],
    )
