"""The job of `magicbyte explain`: the history of producers, transactions and leaders.

A cheap task for each segment scans its batch headers, without decompressing anything; then the driver joins
the segments of each partition.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import cast

from magicbyte import _core
from magicbyte.jobs.choice import EVERYTHING, PartitionChoice
from magicbyte.jobs.engines import Engine, group_by_size
from magicbyte.jobs.partitions import list_partitions
from magicbyte.jobs.plan import count_of, target_bytes
from magicbyte.jobs.progress import NO_PROGRESS, Progress
from magicbyte.listing import log_start_of
from magicbyte.model import PartitionHistory, PartitionListing, Segment

__all__ = [
    "DEFAULT_TRANSACTION_MAX_TIMEOUT_MS",
    "explain",
    "irregularities",
    "partition_histories",
]

DEFAULT_TRANSACTION_MAX_TIMEOUT_MS = 15 * 60_000
"""Kafka's default of `transaction.max.timeout.ms`, which `kafka-transactions.sh find-hanging` assumes."""

_BINS = 320


def _segment_histories(segments: list[tuple[Segment, int | None]]) -> list[str]:
    return [_core.segment_history(json.dumps(segment), log_start_offset=start) for segment, start in segments]


def explain(
    sources: Sequence[str],
    engine: Engine,
    *,
    now: int,
    transaction_max_timeout_ms: int = DEFAULT_TRANSACTION_MAX_TIMEOUT_MS,
    max_listed: int = _core.LISTED,
    choice: PartitionChoice = EVERYTHING,
    progress: Progress = NO_PROGRESS,
) -> list[PartitionHistory]:
    """The histories of all partitions at and below `sources`.

    Args:
        sources: directories; the sizes of their files are pinned at the start.
        engine: where the scans run.
        now: the current time (ms), to which the age of open transactions is counted.
        transaction_max_timeout_ms: an open transaction hangs if its producer was last heard from longer ago,
            as in `kafka-transactions.sh find-hanging`.
        max_listed: how many producers, transactions, gaps and so on each history lists; it counts all of
            them. A thousand transactions take about 2 MiB.
        choice: which partitions to read.
        progress: where to report progress.

    Raises:
        RefusedError: if there is nothing to read.

    """
    return partition_histories(
        list_partitions(sources, choice),
        engine,
        now=now,
        transaction_max_timeout_ms=transaction_max_timeout_ms,
        max_listed=max_listed,
        progress=progress,
    )


def partition_histories(
    listings: Sequence[PartitionListing],
    engine: Engine,
    *,
    now: int,
    transaction_max_timeout_ms: int = DEFAULT_TRANSACTION_MAX_TIMEOUT_MS,
    max_listed: int = _core.LISTED,
    progress: Progress = NO_PROGRESS,
) -> list[PartitionHistory]:
    """The history of each listed partition; for the arguments see `explain`."""
    segments = [(segment, log_start_of(listing)) for listing in listings for segment in listing["segments"]]
    sizes = [segment["size"] for segment, _ in segments]
    groups = list(group_by_size(segments, sizes, target_bytes(sum(sizes), engine.parallelism)))
    results = engine.map(
        _segment_histories,
        groups,
        name=f"magicbyte explain: {count_of(len(segments), 'segment')}",
        sizes=[sum(segment["size"] for segment, _ in group) for group in groups],
        progress=progress,
    )
    segment_histories = (text for result in results for text in result)
    histories = []
    for listing in listings:
        text = _core.partition_history(
            json.dumps(listing),
            [next(segment_histories) for _ in listing["segments"]],
            now=now,
            transaction_max_timeout_ms=transaction_max_timeout_ms,
            bins=_BINS,
            listed=max_listed,
        )
        histories.append(cast(PartitionHistory, json.loads(text)))
    return histories


def irregularities(history: PartitionHistory) -> int:
    """How many things in a history are not as they should be; what compaction explains does not count."""
    return (
        history["problem_count"]
        + history["skipped_count"]
        + sum(history["anomaly_counts"].values())
        - history["compacted_anomalies"]
        + history["transaction_counts"]["hanging"]
    )
