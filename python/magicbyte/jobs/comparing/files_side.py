"""Files as one side of a comparison: their partitions, and digests of their records."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from functools import partial
from typing import TypeVar

from magicbyte import _core
from magicbyte.enums import IsolationLevel
from magicbyte.jobs.backing_up.manifest import backed_up_offsets
from magicbyte.jobs.comparing.differences import Bounds
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
from magicbyte.jobs.run.log_ranges import log_range
from magicbyte.jobs.run.plan import Planned, count_of, plan_partitions, plan_surveyed, size_of_chunk
from magicbyte.jobs.run.progress import NO_PROGRESS, Progress, format_bytes
from magicbyte.model import Chunk, PartitionListing, Place, Problem
from magicbyte.storage.paths import local_path

__all__ = ["FilesSide"]

_CHUNK_BYTES = 4 << 20
_BLOCK_BYTES = 256 << 10
"""Two of them stay in the processor's cache."""

_UNREADABLE = {"directory_unreadable", "file_unreadable", "file_missing"}

Result = TypeVar("Result")


class FilesSide:
    """A directory, archive or bucket with partitions."""

    def __init__(
        self,
        sources: Sequence[str],
        choice: PartitionChoice,
        engine: Engine,
        max_decompressed_bytes: int,
        isolation_level: IsolationLevel = "read_uncommitted",
        *,
        as_served: bool = False,
        with_control: bool = True,
    ) -> None:
        """Lists the partitions. With `isolation_level`, only the records of such a reader count; without
        `with_control`, no control records. With `as_served`, they are those that a cluster with these files
        serves: of the newest copy of each partition, and without the deleted ones that a backup keeps.

        Raises:
            RefusedError: if there are none, or several copies of one, unless `as_served`.

        """
        self._engine = engine
        self._isolation_level = isolation_level
        self._limit = max_decompressed_bytes
        self._with_control = with_control
        inputs = find_inputs(sources, choice, distinct=True, newest=as_served)
        self._backed_up = backed_up_offsets(one["path"] for one in inputs.listings)
        listings = inputs.listings if as_served else map(self._kept, inputs.listings)
        self._listings = {(one["topic"], one["partition"]): one for one in listings}
        self.places = {*self._listings}
        self._plans: dict[Place, Planned] = {}
        self.problems: list[Problem] = []
        self.problems_left_out = 0
        self.unread: set[Place] = set()
        self.read_bytes = 0
        self.size = 0

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
        for place, planned in self._plans.items():
            self._note(place, planned.plan["problems"])
        found: list[Digests] = [{} for _ in plans]
        chunks = [(number, chunk) for number, planned in enumerate(plans) for chunk in planned.plan["chunks"]]
        self.size += sum(size_of_chunk(chunk) for _, chunk in chunks)
        cache.examine(chunk for _, chunk in chunks)
        cached = self._cached([chunk for _, chunk in chunks], cache, progress)
        unread = [chunk for (_, chunk), kept in zip(chunks, cached, strict=True) if kept is None]
        self.read_bytes += sum(map(size_of_chunk, unread))
        twins = iter(self._of_twins(unread, cache, progress))
        cached = [next(twins) if kept is None else kept for kept in cached]
        unread = [chunk for (_, chunk), kept in zip(chunks, cached, strict=True) if kept is None]
        read = iter(self._read(unread, RANGE_OFFSETS, progress, with_hashes=cache.is_kept))
        for (number, chunk), kept in zip(chunks, cached, strict=True):
            digests = next(read) if kept is None else kept
            add_digests(found[number], digests.digests)
            self._note(places[number], digests.problems, digests.problems_left_out)
            cache.keep(chunk, digests)
        return found

    def bounds(self, place: Place) -> Bounds:
        """The start of a log by the broker's checkpoint, or by its first segment; the cut of a backup."""
        planned = self._plans[place]
        checkpoints = planned.listing["checkpoints"]
        stated = checkpoints is not None and checkpoints["log_start_offset"] is not None
        backed_up = self._backed_up_of(planned.listing)
        return Bounds(
            start=log_range(planned).start or 0,
            start_is_stated=stated,
            cut=None if backed_up is None else backed_up[1],
        )

    def _backed_up_of(self, listing: PartitionListing) -> tuple[int, int] | None:
        place = listing["topic"], listing["partition"]
        return self._backed_up.get((os.path.dirname(listing["path"]), place))

    def _kept(self, listing: PartitionListing) -> PartitionListing:
        """The listing of a backup's partition, whose log starts at the first offset that the backup keeps.
        The checkpoint has the start of the cluster's, which may have deleted records since they were copied.
        """
        backed_up, checkpoints = self._backed_up_of(listing), listing["checkpoints"]
        if backed_up is None or checkpoints is None or checkpoints["log_start_offset"] is None:
            return listing
        start = min(backed_up[0], checkpoints["log_start_offset"])
        return {**listing, "checkpoints": {**checkpoints, "log_start_offset": start}}

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

    def _of_twins(
        self, chunks: Sequence[Chunk], cache: DigestCache, progress: Progress
    ) -> list[ChunkDigests | None]:
        """The digests of chunks whose bytes are those of another one; None for others. Comparing bytes costs
        a fraction of decoding their records.
        """
        found: list[ChunkDigests | None] = [None] * len(chunks)
        twins = [(at, chunk, twin) for at, chunk in enumerate(chunks) if (twin := cache.find_twin(chunk))]
        same = self._engine.map(
            _have_same_bytes,
            [(chunk, other) for _, chunk, (other, _) in twins],
            name=f"magicbyte comparison of bytes: {count_of(len(twins), 'chunk')}",
            sizes=[size_of_chunk(chunk) for _, chunk, _ in twins],
            progress=progress,
        )
        for (at, _, (_, digests)), is_same in zip(twins, same, strict=True):
            if is_same:
                found[at] = digests
        return found

    def _note(self, place: Place, problems: Sequence[Problem], left_out: int = 0) -> None:
        if any(map(_hides_records, problems)):
            self.unread.add(place)
        room = max(0, _core.LISTED - len(self.problems))
        self.problems += problems[:room]
        self.problems_left_out += left_out + len(problems[room:])

    def records(self, place: Place, ranges: Sequence[tuple[int, int]]) -> dict[int, int | None]:
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
        task = partial(
            _digest_chunk,
            width=width,
            max_decompressed_bytes=self._limit,
            with_control=self._with_control,
            with_hash=with_hashes,
        )
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


def _hides_records(problem: Problem) -> bool:
    """True for damaged bytes, offsets that are missing, and segments or directories that cannot be read."""
    if problem["start"] is not None or problem["first_lost_offset"] is not None:
        return True
    segment = problem["segment"]
    return problem["kind"] in _UNREADABLE and (segment is None or _core.is_segment_file(segment))


def _parts_of(chunk: Chunk, ranges: Sequence[tuple[int, int]]) -> Iterator[Chunk]:
    """The chunk once for each of the ranges that it may have records of."""
    first, next_offset = chunk["expected_offset"], chunk["next_offset"]
    for start, end in ranges:
        if end > first and (next_offset is None or start < next_offset):
            # A chunk ends before the last stable offset, if its reader does.
            bounds = chunk["start_offset"], chunk["end_offset"]
            yield {
                **chunk,
                "start_offset": start if bounds[0] is None else max(start, bounds[0]),
                "end_offset": end if bounds[1] is None else min(end, bounds[1]),
            }


def _digest_chunk(
    chunk: str, width: int, max_decompressed_bytes: int, with_control: bool, with_hash: bool
) -> ChunkDigests:
    # The hash comes first: bytes that change from now on are found by it.
    bytes_hash = _hash_chunk(chunk) if with_hash and has_hash(json.loads(chunk)) else None
    ranges, _, text = _core.digest_chunk(chunk, width, max_decompressed_bytes, with_control)
    found: Problems = json.loads(text)
    return ChunkDigests(
        {number: (records, digest) for number, records, digest in ranges},
        tuple(found["problems"]),
        found["problems_left_out"],
        bytes_hash,
    )


def _have_same_bytes(chunks: tuple[Chunk, Chunk]) -> bool:
    """False also if one of the files cannot be read: its reader will say so."""
    left = size_of_chunk(chunks[0])
    try:
        with ExitStack() as stack:
            files = [stack.enter_context(open(local_path(one["path"]), "rb", buffering=0)) for one in chunks]
            for file, one in zip(files, chunks, strict=True):
                file.seek(one["start"])
            while left > 0:
                blocks = [file.read(min(left, _BLOCK_BYTES)) for file in files]
                if not blocks[0] or blocks[0] != blocks[1]:
                    return False
                left -= len(blocks[0])
    except OSError:
        return False
    return True


def _hash_chunk(chunk: str) -> int | None:
    try:
        return _core.hash_chunk(chunk)
    except OSError:
        return None
