"""Explaining: what the batch headers of partitions tell of producers, transactions and leaders.

One light task a segment (`tell_segment`), then one fold a partition (`tell_story`); nothing is
decompressed. Offsets are inclusive where the name says first or last; times are milliseconds.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, TypedDict, cast

from magicbyte import _core
from magicbyte.jobs.engines import Engine, group_by_size
from magicbyte.model import IgnoredFile, PartitionListing, Segment
from magicbyte.jobs.partitions import list_partitions
from magicbyte.jobs.plan import count_of, target_bytes
from magicbyte.jobs.progress import NO_PROGRESS, Progress

__all__ = [
    "DEFAULT_MAX_TRANSACTION_TIMEOUT_MS",
    "Anomaly",
    "Bin",
    "ControlCount",
    "LeaderEpoch",
    "OffsetGap",
    "ProducerStory",
    "SkippedRange",
    "StepBack",
    "Story",
    "TransactionStory",
    "explain",
    "tell",
    "trouble_of",
]

DEFAULT_MAX_TRANSACTION_TIMEOUT_MS = 15 * 60_000
"""Kafka's default of `transaction.max.timeout.ms`, and what `find-hanging` assumes."""

_BINS = 320


class LeaderEpoch(TypedDict):
    """Where a leader epoch begins."""

    epoch: int
    start_offset: int


class ControlCount(TypedDict):
    """Control batches of a type: Kafka's name, or `EMPTY` (compacted) or `UNREADABLE`."""

    kind: str
    batches: int


class ProducerStory(TypedDict):
    """A producer in one of its epochs."""

    producer_id: int
    producer_epoch: int
    first_offset: int
    last_offset: int
    first_sequence: int
    """-1: none."""
    last_sequence: int
    first_timestamp: int
    last_timestamp: int
    batches: int
    records: int
    bytes: int
    committed: int
    """Transactions."""
    aborted: int
    empty_markers: int
    """Markers without data before them."""
    duplicates: int
    """Batches a broker had answered as duplicates."""
    refused: int
    """Batches a broker had refused."""
    is_current: bool
    """Whether a broker that replays the log knows this epoch as the producer's last."""
    current_txn_first_offset: int | None
    coordinator_epoch: int


class TransactionStory(TypedDict):
    """One transaction; a marker without data before it has no first and last offset."""

    producer_id: int
    producer_epoch: int
    outcome: str
    """`open`, `committed` or `aborted`."""
    first_offset: int | None
    last_offset: int | None
    marker_offset: int | None
    marker_epoch: int | None
    coordinator_epoch: int | None
    first_timestamp: int | None
    last_timestamp: int | None
    marker_timestamp: int | None
    batches: int
    records: int
    bytes: int
    last_stable_offset: int | None
    age_ms: int | None
    """Of an open one: since its producer was last heard of."""
    hanging: bool


class Anomaly(TypedDict):
    """A batch to which a leader had said something else than "appended"."""

    kind: str
    """Kafka's name of the error."""
    producer_id: int
    producer_epoch: int
    offset: int
    sequence: int
    compacted: bool
    """Whether compaction may have taken what should stand between."""
    message: str


class OffsetGap(TypedDict):
    """Offsets without a record, inside a batch or between two."""

    first_offset: int
    last_offset: int
    missing: int
    inside: bool


class StepBack(TypedDict):
    """A batch whose largest timestamp is smaller than one before it."""

    offset: int
    timestamp: int
    before: int


class SkippedRange(TypedDict):
    """Bytes of a segment that are in no batch."""

    segment: str
    start: int
    end: int
    is_tail: bool


class Bin(TypedDict):
    """Batches that follow each other, for pictures; `codecs`: bytes by codec."""

    first_offset: int
    last_offset: int
    batches: int
    records: int
    bytes: int
    smallest: int
    largest: int
    missing: int
    max_timestamp: int
    codecs: list[int]


class Story(TypedDict):
    """What a partition's batches tell."""

    path: str
    topic: str
    partition: int
    now: int
    segments: int
    bytes: int
    batches: int
    records: int
    """By the headers: those in legacy wrappers are not known."""
    first_offset: int | None
    next_offset: int | None
    last_stable_offset: int | None
    max_timestamp: int
    magics: dict[str, int]
    codecs: dict[str, int]
    without_producer: int
    controls: list[ControlCount]
    leader_epochs: list[LeaderEpoch]
    """The first ones; `leader_epoch_count` has all."""
    leader_epoch_count: int
    producers: list[ProducerStory]
    """Those with the most bytes; `producer_count` has all."""
    producer_count: int
    """Each epoch on its own."""
    producer_ids: int
    """Producers, whatever their epochs."""
    transactions: list[TransactionStory]
    """Hanging ones before open ones, then aborted and committed ones, of each those with the most bytes;
    in the order of the log. `transaction_counts` has all."""
    transaction_counts: dict[str, int]
    """By outcome; the open ones that hang once more as `hanging`."""
    transaction_steps: list[list[int]]
    """How many begin in each of equal steps of offsets: committed, aborted, open, and apart from these
    hanging; empty without any."""
    anomalies: list[Anomaly]
    """The first ones; `anomaly_counts` has all."""
    anomaly_counts: dict[str, int]
    compacted_anomalies: int
    gaps: list[OffsetGap]
    """The first ones; `gap_count` and `missing_offsets` have all."""
    gap_count: int
    missing_offsets: int
    steps_back: list[StepBack]
    """The first ones; `step_back_count` has all."""
    step_back_count: int
    largest_step_back_ms: int
    skipped: list[SkippedRange]
    """The first ones; `skipped_count` has all."""
    skipped_count: int
    problems: list[dict[str, Any]]
    """The first ones; `problem_count` has all."""
    problem_count: int
    ignored: list[IgnoredFile]
    bin_codecs: list[str]
    bins: list[Bin]


def _tell_segments(segments: list[Segment]) -> list[str]:
    return [_core.tell_segment(json.dumps(segment)) for segment in segments]


def explain(
    sources: Sequence[str],
    engine: Engine,
    *,
    now: int,
    max_transaction_timeout_ms: int = DEFAULT_MAX_TRANSACTION_TIMEOUT_MS,
    listed: int = _core.LISTED,
    progress: Progress = NO_PROGRESS,
) -> list[Story]:
    """The stories of all partitions at and below `sources`.

    Args:
        sources: directories; their files' sizes are pinned at the start.
        engine: where the scans run.
        now: what time it is (ms): ages of open transactions count up to it.
        max_transaction_timeout_ms: an open transaction whose producer was last heard of longer ago
            hangs, as `kafka-transactions.sh find-hanging` has it.
        listed: of how many producers, transactions, gaps and so on the story tells, of each; it counts
            all. A thousand transactions take about 2 MiB.
        progress: where to show how far the scan is.

    """
    return tell(
        list_partitions(sources),
        engine,
        now=now,
        max_transaction_timeout_ms=max_transaction_timeout_ms,
        listed=listed,
        progress=progress,
    )


def tell(
    listings: Sequence[PartitionListing],
    engine: Engine,
    *,
    now: int,
    max_transaction_timeout_ms: int = DEFAULT_MAX_TRANSACTION_TIMEOUT_MS,
    listed: int = _core.LISTED,
    progress: Progress = NO_PROGRESS,
) -> list[Story]:
    """The story of each listing; arguments as in `explain`."""
    segments = [segment for listing in listings for segment in listing["segments"]]
    sizes = [segment["size"] for segment in segments]
    groups = group_by_size(segments, sizes, target_bytes(sum(sizes), engine.parallelism))
    answers = engine.map(
        _tell_segments,
        groups,
        name=f"magicbyte explain: {count_of(len(segments), 'segment')}",
        sizes=[sum(segment["size"] for segment in group) for group in groups],
        progress=progress,
    )
    told = (text for answer in answers for text in answer)
    stories = []
    for listing in listings:
        text = _core.tell_story(
            json.dumps(listing),
            [next(told) for _ in listing["segments"]],
            now=now,
            max_transaction_timeout_ms=max_transaction_timeout_ms,
            bins=_BINS,
            listed=listed,
        )
        stories.append(cast(Story, json.loads(text)))
    return stories


def trouble_of(story: Story) -> int:
    """How much of a story is not as it should be: what compaction explains does not count."""
    return (
        story["problem_count"]
        + story["skipped_count"]
        + sum(story["anomaly_counts"].values())
        - story["compacted_anomalies"]
        + story["transaction_counts"]["hanging"]
    )
