"""The job of `magicbyte explain`: the history of producers, transactions and leaders.

A cheap task for each segment scans its batch headers, without decompressing anything; then the driver joins
the segments of each partition.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import cast

from magicbyte import _core
from magicbyte._core import LegacyBatch, Record, RecordBatch
from magicbyte.internal_topics.names import TRANSACTION_STATE
from magicbyte.internal_topics.transactions import CoordinatedTransaction, CoordinatedTransactions
from magicbyte.jobs.find.choice import EVERYTHING, PartitionChoice
from magicbyte.jobs.find.partitions import find_inputs
from magicbyte.jobs.find.replay import replay
from magicbyte.jobs.run.engines import Engine, group_by_size
from magicbyte.jobs.run.moving import ATTEMPTS, look_again, of_each_segment
from magicbyte.jobs.run.plan import count_of, target_bytes
from magicbyte.jobs.run.progress import NO_PROGRESS, Progress
from magicbyte.listing import log_start_of
from magicbyte.model import PartitionHistory, PartitionListing, Segment
from magicbyte.options.read import DEFAULT_TRANSACTION_MAX_TIMEOUT_MS, ExplainOptions

__all__ = [
    "coordinated_transactions",
    "explain",
    "irregularities",
    "partition_histories",
]

_BINS = 320


def _segment_histories(segments: list[tuple[Segment, int | None]]) -> list[str]:
    return [_core.segment_history(json.dumps(segment), log_start_offset=start) for segment, start in segments]


def explain(
    sources: Sequence[str],
    engine: Engine,
    options: ExplainOptions,
    *,
    choice: PartitionChoice = EVERYTHING,
    progress: Progress = NO_PROGRESS,
) -> list[PartitionHistory]:
    """The histories of all partitions at and below `sources`; the sizes of files are pinned at the start.

    An open transaction hangs if its producer was last heard from longer ago than the timeout and the
    coordinator does not know it, as in `kafka-transactions.sh find-hanging`. Without `__transaction_state`
    among the sources, its age alone decides. A thousand listed transactions take about 2 MiB.

    Raises:
        RefusedError: if there is nothing to read.

    """
    inputs = find_inputs(sources, choice, consult={TRANSACTION_STATE})
    return partition_histories(
        inputs.listings,
        engine,
        coordinated=coordinated_transactions(inputs.consulted)[0].open_by_producer,
        now=options.now_ms,
        transaction_max_timeout_ms=options.transaction_max_timeout_ms,
        max_listed=options.max_listed,
        progress=progress,
    )


def coordinated_transactions(
    listings: Iterable[PartitionListing], *, as_of: int | None = None
) -> tuple[CoordinatedTransactions, list[str]]:
    """The transactional IDs in the partitions of `__transaction_state` among the listings, and problems with
    reading these. For `as_of`, see `replay`.
    """
    transactions = CoordinatedTransactions()
    problems: list[str] = []

    def apply(batch: RecordBatch | LegacyBatch, record: Record) -> None:
        if not batch.is_control:
            transactions.replay(record.key_bytes, record.value_bytes)

    for listing in listings:
        if listing["topic"] == TRANSACTION_STATE and listing["segments"]:
            problems += replay(listing["path"], apply, as_of=as_of)
    return transactions, problems


def partition_histories(
    listings: Sequence[PartitionListing],
    engine: Engine,
    *,
    coordinated: Mapping[int, CoordinatedTransaction] | None = None,
    now: int,
    transaction_max_timeout_ms: int = DEFAULT_TRANSACTION_MAX_TIMEOUT_MS,
    max_listed: int = _core.LISTED,
    progress: Progress = NO_PROGRESS,
) -> list[PartitionHistory]:
    """The history of each listed partition; for the arguments see `explain`.

    `coordinated` has the transactions that the coordinator knows, by producer ID.
    """

    def history(listing: PartitionListing, texts: Sequence[str]) -> PartitionHistory:
        name = listing["topic"], listing["partition"]
        known = [
            (producer, one.transactional_id, one.state)
            for producer, one in (coordinated or {}).items()
            if name in one.partitions
        ]
        text = _core.partition_history(
            json.dumps(listing),
            texts,
            now=now,
            transaction_max_timeout_ms=transaction_max_timeout_ms,
            coordinated=known,
            bins=_BINS,
            listed=max_listed,
        )
        return cast(PartitionHistory, json.loads(text))

    histories = []
    for listing, texts in zip(listings, _scan(listings, engine, progress), strict=True):
        found, last = history(listing, texts), listing
        for _ in range(ATTEMPTS):
            # A segment that was replaced before its scan has gaps instead of batches.
            files = {segment["file"] for segment in last["segments"]} if irregularities(found) else ()
            later = look_again(last, files)
            if later is last:
                break
            texts = of_each_segment(last, texts, later, lambda changed: _scan([changed], engine, progress)[0])
            last = later
            found = history(last, texts)
        histories.append(found)
    return histories


def _scan(listings: Sequence[PartitionListing], engine: Engine, progress: Progress) -> list[list[str]]:
    """The core's history of each segment of each listing, as JSON text."""
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
    texts = (text for result in results for text in result)
    return [[next(texts) for _ in listing["segments"]] for listing in listings]


def irregularities(history: PartitionHistory) -> int:
    """The number of irregularities in a history, without those that compaction explains."""
    return (
        history["problem_count"]
        + history["skipped_count"]
        + sum(history["anomaly_counts"].values())
        - history["compacted_anomalies"]
        + history["transaction_counts"]["hanging"]
    )
