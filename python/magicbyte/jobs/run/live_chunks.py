"""Chunks of running clusters: ranges of offsets, which the task that decodes them fetches.

Neighbouring ranges share no batch: one that extends past the end of its range belongs to the next range.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import TypeGuard

import magicbyte.listing as listings
from magicbyte import _core
from magicbyte.enums import IsolationLevel
from magicbyte.jobs.find.live_listings import ChangedLogError
from magicbyte.jobs.find.problems import offsets_text, partition_problem
from magicbyte.live import connect
from magicbyte.model import (
    ByteRange,
    Chunk,
    ChunkResult,
    PartitionPlan,
    Problem,
)
from magicbyte.storage.location import cluster_of

__all__ = ["LiveChunk", "fetch_chunk", "is_live_chunk", "lost_between", "plan_live", "with_place"]

_SMALLEST = 4 << 20
"""The bytes of the smallest chunk: the requests of a fetch take as long as about so much of it."""
_OFFSETS = 100_000
"""The offsets of a chunk if brokers do not tell how large their logs are."""

_MOST = 10_000
"""About the maximum number of chunks of a partition, whatever offsets and sizes a broker tells."""

_LOG_START = "log_start"
"""In a ChunkResult, if records were deleted since the partition was planned: the first offset that the log
still had."""


class LiveChunk(Chunk):
    """A range of offsets of a running cluster, which is fetched when it is read: `expected_offset` is its
    first offset, `next_offset` its end (exclusive). Positions are estimates.
    """

    command_config: str | None
    """See `LivePartitionListing`."""
    isolation_level: IsolationLevel


def is_live_chunk(chunk: Chunk) -> TypeGuard[LiveChunk]:
    """True for a chunk of a running cluster."""
    return "command_config" in chunk


def plan_live(
    listing: listings.LivePartitionListing,
    isolation_level: IsolationLevel,
    offsets: tuple[int | None, int | None],
    chunk_bytes: int,
) -> PartitionPlan:
    """Plans the requested offsets (the end is exclusive) of a partition, as far as its log had them when it
    was listed, with chunks of about `chunk_bytes`.
    """
    log_start, high_watermark = listings.log_start_of(listing) or 0, listings.high_watermark_of(listing)
    stable = listing["last_stable_offset"]
    log_end = stable if isolation_level == "read_committed" else high_watermark
    start = max(log_start, offsets[0] or 0)
    end = log_end if offsets[1] is None else min(log_end, offsets[1])
    size, of_log = listing["size"], max(1, high_watermark - log_start)
    step = max(chunk_bytes, _SMALLEST) * of_log // size if size else _OFFSETS
    begins = range(start, max(start, end), max(1, step, (end - start) // _MOST))
    return PartitionPlan(
        path=listing["path"],
        topic=listing["topic"],
        partition=listing["partition"],
        isolation_level=isolation_level,
        chunks=[
            LiveChunk(
                path=listing["path"],
                segment="",
                topic=listing["topic"],
                partition=listing["partition"],
                size=size,
                version="",
                start=(begin - log_start) * size // of_log,
                end=(min(begin + begins.step, end) - log_start) * size // of_log,
                expected_offset=begin,
                max_offset=end - 1,
                next_offset=min(begin + begins.step, end),
                log_start_offset=log_start,
                start_offset=start,
                end_offset=end,
                aborted=[],
                command_config=listing["command_config"],
                isolation_level=isolation_level,
            )
            for begin in begins
        ],
        segments=[],
        ignored=[],
        problems=[],
        first_offset=log_start,
        next_offset=high_watermark,
        last_stable_offset=stable,
        log_start_offset=log_start,
        aborted=[],
        leader_epochs=listing["leader_epochs"],
    )


def fetch_chunk(
    chunk: LiveChunk, max_decompressed_bytes: int
) -> tuple[_core.FetchedChunks, Problem | None, int]:
    """Begins to fetch a chunk. Returns also the problem that a part of it has been deleted since it was
    planned, if so, and the start of the log, or that of the requested offsets if it is behind it.

    Raises:
        ChangedLogError: the log ends earlier than when it was listed.
        OSError: the cluster does not answer or refuses.

    """
    url = cluster_of(chunk["path"])
    assert url is not None, chunk["path"]
    place = chunk["topic"], chunk["partition"]
    reader = connect(url, chunk["command_config"]).partition(
        chunk["path"],
        *place,
        check_crcs=True,
        max_decompressed_bytes=max_decompressed_bytes,
        mode="PERMISSIVE",
    )
    first, end = chunk["expected_offset"], chunk["next_offset"]
    fetched = reader.fetch(
        start_offset=chunk["start_offset"],
        end_offset=chunk["end_offset"],
        isolation_level=chunk["isolation_level"],
        part=(first, end),
    )
    begin, stop = fetched.offsets
    if end is not None and stop < end:
        raise ChangedLogError(
            f"{chunk['path']}: the log ends at offset {stop}, and had offsets up to {end - 1} when this job "
            "began: it was truncated, or its topic was created again"
        )
    if begin > first:
        return fetched, _loss(*place, first, begin), begin
    # The first batch may begin before this chunk: its records before the start of the log are left out. Asked
    # for after the fetch began, the start is not before the one that the fetch used.
    start = chunk["start_offset"]
    if first != start:
        start, _ = reader.offsets(start, chunk["end_offset"], chunk["isolation_level"])
    return fetched, None, start or 0


def _loss(topic: str, partition: int, first: int, begin: int) -> Problem:
    return partition_problem(
        topic,
        partition,
        "data_loss",
        f"the cluster had deleted {offsets_text(first, begin - 1)} before the fetch: the log begins later",
        first_lost_offset=first,
        last_lost_offset=begin - 1,
    )


def lost_between(plan: PartitionPlan, results: Iterable[str]) -> list[Problem]:
    """The offsets that one chunk has left to the next one, in a batch that was deleted before that was
    fetched, or up to the new start of the log; given the ChunkResults of all chunks. Each task knows only the
    range of its own chunk.
    """
    found = []
    covered = plan["chunks"][0]["start_offset"] or 0 if plan["chunks"] else 0
    for chunk, text in zip(plan["chunks"], results, strict=True):
        account = json.loads(text)
        first, log_start = chunk["expected_offset"], account.get(_LOG_START)
        if log_start is not None:
            if covered < (end := min(first, log_start)):
                found.append(_loss(plan["topic"], plan["partition"], covered, end))
            covered = max(covered, log_start)
        if account["last_offset"] is not None:
            covered = max(covered, account["last_offset"] + 1)
    return found


def with_place(result: str, chunk: LiveChunk, lost: Problem | None, log_start: int) -> str:
    """The joined ChunkResult of the answers to a fetch, also of none, with the place, the loss and the start
    of the log.
    """
    account: ChunkResult = json.loads(result)
    account["path"], account["topic"], account["partition"] = (
        chunk["path"],
        chunk["topic"],
        chunk["partition"],
    )
    if lost is not None:
        # A range of no bytes, since nobody knows how many there were.
        account["quarantined"].insert(0, ByteRange(start=0, end=0, reason=lost["kind"]))
        account["quarantined_ranges"] += 1
        account["lost_offsets"] += (lost["last_lost_offset"] or 0) + 1 - (lost["first_lost_offset"] or 0)
    moved = {} if log_start <= (chunk["start_offset"] or 0) else {_LOG_START: log_start}
    return json.dumps({**account, **moved})
