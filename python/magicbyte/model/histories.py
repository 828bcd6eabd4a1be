"""Histories of partitions, reconstructed from batch headers."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias, TypedDict

from magicbyte.model.listings import IgnoredFile, LeaderEpoch, Problem

__all__ = [
    "Anomaly",
    "Bin",
    "ControlCount",
    "Int32",
    "OffsetGap",
    "PartitionHistory",
    "ProducerHistory",
    "SkippedRange",
    "StepBack",
    "TransactionHistory",
]

Int32: TypeAlias = Annotated[int, 32]
"""A number of 32 bits, as in Kafka's format; others have up to 64."""


class ControlCount(TypedDict):
    """The number of control batches of one type."""

    kind: str
    """Kafka's name, or `EMPTY` (compacted) or `UNREADABLE`."""
    batches: int


class ProducerHistory(TypedDict):
    """A producer in one of its epochs."""

    producer_id: int
    producer_epoch: Int32
    first_offset: int
    last_offset: int
    first_sequence: Int32
    """-1 if there is none."""
    last_sequence: Int32
    first_timestamp: int
    last_timestamp: int
    batches: int
    records: int
    bytes: int
    committed: int
    """Committed transactions."""
    aborted: int
    """Aborted transactions."""
    empty_markers: int
    """Markers of transactions without data."""
    duplicates: int
    """Batches that a broker would have answered as duplicates."""
    refused: int
    """Batches that a broker would have refused."""
    is_current: bool
    """True if a broker that replays the log ends with this epoch for the producer."""
    current_txn_first_offset: int | None
    coordinator_epoch: Int32


class TransactionHistory(TypedDict):
    """One transaction. A marker without data before it has no first and last offset."""

    producer_id: int
    producer_epoch: Int32
    outcome: Literal["open", "committed", "aborted"]
    first_offset: int | None
    last_offset: int | None
    marker_offset: int | None
    marker_epoch: Int32 | None
    coordinator_epoch: Int32 | None
    first_timestamp: int | None
    last_timestamp: int | None
    marker_timestamp: int | None
    batches: int
    records: int
    bytes: int
    last_stable_offset: int | None
    age_ms: int | None
    """The time (ms) since the last timestamp of the producer, if the transaction is open."""
    hanging: bool
    transactional_id: str | None
    """The transactional id of an open transaction that the coordinator knows and will therefore end. Set only
    if `__transaction_state` is among the sources."""
    coordinator_state: str | None
    """The state of such a transaction, in Kafka's words: `Ongoing`, for example."""


class Anomaly(TypedDict):
    """A batch that a leader would not simply have appended."""

    kind: str
    """Kafka's name of the error."""
    producer_id: int
    producer_epoch: int
    offset: int
    sequence: int
    compacted: bool
    """True if compaction may have removed the batches that are missing before it."""
    message: str


class OffsetGap(TypedDict):
    """Offsets without a record, inside a batch or between two."""

    first_offset: int
    last_offset: int
    missing: int
    inside: bool


class StepBack(TypedDict):
    """A batch whose maximum timestamp is smaller than that of an earlier batch."""

    offset: int
    timestamp: int
    before: int


class SkippedRange(TypedDict):
    """Bytes of a segment that belong to no batch."""

    segment: str
    start: int
    end: int
    is_tail: bool


class Bin(TypedDict):
    """A run of consecutive batches, for charts."""

    first_offset: int
    last_offset: int
    batches: int
    control_batches: int
    records: int
    bytes: int
    control_bytes: int
    smallest: int
    """The size of the smallest data batch, in bytes; 0 if there is none."""
    largest: int
    missing: int
    max_timestamp: int
    """The maximum timestamp of the data batches; -1 if there is none."""
    codecs: list[int]
    """Bytes by codec, in the order of `PartitionHistory.bin_codecs`."""


class PartitionHistory(TypedDict):
    """The history of a partition, reconstructed from its batch headers.

    Lists are cut at the requested length; the counts next to them cover everything.
    """

    path: str
    topic: str
    partition: int
    now: int
    segments: int
    bytes: int
    batches: int
    records: int
    """Excludes the records in `unknown_wrappers`."""
    unknown_wrappers: int
    """Legacy wrappers that do not decode: the number of their records is unknown."""
    deleted: int
    """Records of batches that end before the log's start, which are not counted above."""
    log_start_offset: int | None
    """The log's start, if records before it are left out."""
    first_offset: int | None
    next_offset: int | None
    last_stable_offset: int | None
    max_timestamp: int
    magics: dict[str, int]
    """Batches by magic."""
    codecs: dict[str, int]
    """Batches by codec."""
    without_producer: int
    controls: list[ControlCount]
    leader_epochs: list[LeaderEpoch]
    """The first leader epochs."""
    leader_epoch_count: int
    producers: list[ProducerHistory]
    """The producers with the most bytes."""
    producer_count: int
    """Counts each epoch of a producer."""
    producer_ids: int
    """Distinct producers, whatever their epochs."""
    transactions: list[TransactionHistory]
    """In log order. If there are too many, hanging transactions take precedence over open, aborted and
    committed transactions, and within each group those with the most bytes."""
    transaction_counts: dict[str, int]
    """By outcome; `hanging` counts the open transactions that hang."""
    transaction_steps: list[list[int]]
    """Counts of the transactions that begin in each of several equal offset ranges: committed, aborted, open
    but not hanging, hanging. Empty if there are no transactions."""
    anomalies: list[Anomaly]
    """The first anomalies."""
    anomaly_counts: dict[str, int]
    """By kind."""
    compacted_anomalies: int
    """Anomalies that compaction may explain."""
    gaps: list[OffsetGap]
    """The first gaps."""
    gap_count: int
    missing_offsets: int
    steps_back: list[StepBack]
    """The first steps back."""
    step_back_count: int
    largest_step_back_ms: int
    skipped: list[SkippedRange]
    """The first skipped ranges."""
    skipped_count: int
    problems: list[Problem]
    """The first problems."""
    problem_count: int
    ignored: list[IgnoredFile]
    bin_codecs: list[str]
    bins: list[Bin]
