"""One side of a comparison: its partitions, and digests of their records."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TypeVar

from magicbyte import _core
from magicbyte.enums import IsolationLevel
from magicbyte.jobs.comparing.differences import Place
from magicbyte.jobs.comparing.digest_cache import (
    RANGE_OFFSETS,
    ChunkDigests,
    DigestCache,
    Digests,
    add_digests,
    has_hash,
)
from magicbyte.jobs.find.choice import PartitionChoice
from magicbyte.jobs.find.partitions import find_inputs
from magicbyte.jobs.run.accounting import Problems
from magicbyte.jobs.run.engines import Engine
from magicbyte.jobs.run.plan import Planned, count_of, plan_partitions, plan_surveyed, size_of_chunk
from magicbyte.jobs.run.progress import NO_PROGRESS, Progress, format_bytes
from magicbyte.model import Chunk, Problem

__all__ = ["Side"]

_CHUNK_BYTES = 4 << 20

Result = TypeVar("Result")


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
        chunks = [(number, chunk) for number, planned in enumerate(plans) for chunk in planned.plan["chunks"]]
        self.size += sum(size_of_chunk(chunk) for _, chunk in chunks)
        cache.examine(chunk for _, chunk in chunks)
        cached = self._cached([chunk for _, chunk in chunks], cache, progress)
        unread = [chunk for (_, chunk), kept in zip(chunks, cached, strict=True) if kept is None]
        read = iter(self._read(unread, RANGE_OFFSETS, progress, with_hashes=cache.is_kept))
        for (number, chunk), kept in zip(chunks, cached, strict=True):
            digests = next(read) if kept is None else kept
            self._add(found[number], digests)
            cache.keep(chunk, digests)
        self.read_bytes += sum(map(size_of_chunk, unread))
        return found

    def _cached(
        self, chunks: Sequence[Chunk], cache: DigestCache, progress: Progress
    ) -> list[ChunkDigests | None]:
        """The digests that the cache has of each chunk; None if the chunk has other bytes now."""
        cached = list(map(cache.find, chunks))
        unproven = []
        for at, (chunk, kept) in enumerate(zip(chunks, cached, strict=True)):
            if kept is None or cache.is_unchanged(chunk):
                continue
            if kept.bytes_hash is None or not has_hash(chunk):
                cached[at] = None
            else:
                unproven.append((at, kept.bytes_hash))
        hashes = self._map(
            _hash_chunk, [chunks[at] for at, _ in unproven], "magicbyte comparison of the cache", progress
        )
        for (at, before), now in zip(unproven, hashes, strict=True):
            if now != before:
                cached[at] = None
        return cached

    def _add(self, total: Digests, more: ChunkDigests) -> None:
        add_digests(total, more.digests)
        room = max(0, _core.LISTED - len(self.problems))
        self.problems += more.problems[:room]
        self.problems_left_out += more.problems_left_out + len(more.problems[room:])

    def records(self, place: Place, ranges: Sequence[tuple[int, int]]) -> dict[int, int]:
        """The hashes of the records of increasing ranges of offsets, by offset; the ends are exclusive."""
        planned = self._plans[place]
        within = plan_surveyed(
            planned.listing,
            planned.surveys,
            isolation_level=self._isolation_level,
            offsets=(ranges[0][0], ranges[-1][1]),
            chunk_bytes=_CHUNK_BYTES,
        )
        chunks = [part for chunk in within.plan["chunks"] for part in _parts_of(chunk, ranges)]
        found: Digests = {}
        for read in self._read(chunks, 1, NO_PROGRESS):
            add_digests(found, read.digests)
        return {offset: digest for offset, (_, digest) in found.items()}

    def _read(
        self, chunks: Sequence[Chunk], width: int, progress: Progress, *, with_hashes: bool = False
    ) -> list[ChunkDigests]:
        task = partial(_digest_chunk, width=width, max_decompressed_bytes=self._limit, with_hash=with_hashes)
        return self._map(task, chunks, "magicbyte digest", progress)

    def _map(
        self, task: Callable[[str], Result], chunks: Sequence[Chunk], name: str, progress: Progress
    ) -> list[Result]:
        sizes = list(map(size_of_chunk, chunks))
        return self._engine.map(
            task,
            [json.dumps(chunk) for chunk in chunks],
            name=f"{name}: {count_of(len(chunks), 'chunk')}, {format_bytes(sum(sizes))}",
            sizes=sizes,
            progress=progress,
        )


def _parts_of(chunk: Chunk, ranges: Sequence[tuple[int, int]]) -> Iterator[Chunk]:
    """The chunk once for each of the ranges that it may have records of."""
    first, next_offset = chunk["expected_offset"], chunk["next_offset"]
    for start, end in ranges:
        if end > first and (next_offset is None or start < next_offset):
            yield {**chunk, "start_offset": start, "end_offset": end}


def _digest_chunk(chunk: str, width: int, max_decompressed_bytes: int, with_hash: bool) -> ChunkDigests:
    # The hash comes first: bytes that change from now on are found by it.
    bytes_hash = _hash_chunk(chunk) if with_hash and has_hash(json.loads(chunk)) else None
    ranges, _, text = _core.digest_chunk(chunk, width, max_decompressed_bytes)
    found: Problems = json.loads(text)
    return ChunkDigests(
        {number: (records, digest) for number, records, digest in ranges},
        tuple(found["problems"]),
        found["problems_left_out"],
        bytes_hash,
    )


def _hash_chunk(chunk: str) -> int | None:
    try:
        return _core.hash_chunk(chunk)
    except OSError:
        return None
