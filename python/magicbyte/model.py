"""Plain data that the compiled core returns as JSON, as typed dictionaries.

The steps of a job (list, survey, plan, decode, reconcile) may run in different processes, so everything
that passes between them is plain data. Field names are the core's. Offsets are inclusive if the name says
first or last, exclusive if it says end or next; positions and sizes are bytes; times are milliseconds.
"""

from __future__ import annotations

from typing import Literal, TypeAlias, TypedDict

from magicbyte.enums import IsolationLevel

__all__ = [
    "Anomaly",
    "Bin",
    "Border",
    "ByteRange",
    "Chunk",
    "ChunkResult",
    "ControlCount",
    "DirectoryState",
    "IgnoredFile",
    "LeaderEpoch",
    "OffsetGap",
    "PartitionCheckpoints",
    "PartitionHistory",
    "PartitionListing",
    "PartitionPlan",
    "PartitionReconciliation",
    "PlanSegment",
    "Problem",
    "ProducerHistory",
    "Segment",
    "SegmentReconciliation",
    "Sidecar",
    "SkippedRange",
    "StepBack",
    "Survey",
    "TransactionBegin",
    "TransactionEnd",
    "TransactionEvent",
    "TransactionHistory",
    "TransactionIndexEntry",
]


# --- listing -------------------------------------------------------------------------------------


class Segment(TypedDict):
    """A `.log` (or, on request, `.checkpoint`) file, pinned at the size it had when it was listed."""

    path: str
    file: str
    topic: str
    partition: int
    base_offset: int
    """From the file's name."""
    size: int
    modified_ms: int
    is_checkpoint: bool
    version: str
    """An ETag or similar in a store or an archive; for a local file, an identity that survives appends."""


class IgnoredFile(TypedDict):
    """A file that is not read as part of the log, and why. No file is skipped without being listed."""

    file: str
    size: int
    reason: str
    """`deleted`, `cleaned`, `swap`, `unfinished` (a copy to tiered storage), `diverged` (a copy of a log that
    later leaders did not continue), `compressed` (a segment), `foreign`, `overlapping` or `checkpoint`; if it
    is not a regular file, `directory`, `special` or `unreadable` (it should be a file of the log, or cannot
    be examined)."""


class Sidecar(TypedDict):
    """A file of the log other than a segment."""

    file: str
    size: int
    kind: str
    """`index`, `timeindex`, `txnindex`, `snapshot`, `leader-epoch-checkpoint` or `partition.metadata`."""


class Problem(TypedDict):
    """A row of the table `problems`."""

    topic: str
    partition: int
    segment: str | None
    kind: str
    start: int | None
    end: int | None
    base_offset: int | None
    record_index: int | None
    field: str | None
    first_lost_offset: int | None
    """The first offset that may be lost (inclusive), judged by the good batches around the damage. If
    several ranges have no good batch between them, the first range carries it for all of them."""
    last_lost_offset: int | None
    """The last offset that may be lost (inclusive); None if no good batch follows."""
    message: str


DirectoryState: TypeAlias = Literal["current", "future", "stray", "deleted", "remote"]
"""The role of a directory: the log itself (`topic-N`), a copy that will replace the log on another disk
(`-future`), a log that the cluster did not assign to the broker (`-stray`), a log that the broker is about
to delete (`-delete`), or segments in tiered storage (`topic-N-TOPICID`)."""


class PartitionCheckpoints(TypedDict):
    """A partition's entries in the checkpoints of a broker's directory; None for missing entries."""

    log_start_offset: int | None
    """The first offset that consumers may read, unless a segment begins there."""
    recovery_point: int | None
    """All offsets before it were flushed to disk."""
    high_watermark: int | None
    """All offsets before it were committed, that is, replicated."""


class PartitionListing(TypedDict):
    """The contents of one partition directory. `topic`, `partition` and `state` come from its name."""

    path: str
    topic: str
    partition: int
    state: DirectoryState
    checkpoints: PartitionCheckpoints | None
    """None if the parent directory has no checkpoints or was not read."""
    include_deleted_records: bool
    """True if records before the log's start are read."""
    segments: list[Segment]
    sidecars: list[Sidecar]
    ignored: list[IgnoredFile]
    leader_epochs: list[LeaderEpoch]
    """According to the `leader-epoch-checkpoint`: the last 10,000."""
    problems: list[Problem]
    """Files that cannot be listed or read, segments that are missing according to the files beside them, and
    checkpoints with a broken format."""


# --- survey --------------------------------------------------------------------------------------


class Border(TypedDict):
    """A batch at which a segment may be cut into chunks: its CRC and its predecessor's are correct."""

    position: int
    expected_offset: int
    """The offset after the last offset of the batch before it."""


class TransactionBegin(TypedDict):
    """The first data batch of a transaction."""

    event: Literal["begin"]
    producer_id: int
    offset: int


class TransactionEnd(TypedDict):
    """The marker that ends a transaction."""

    event: Literal["end"]
    producer_id: int
    offset: int
    committed: bool


TransactionEvent: TypeAlias = TransactionBegin | TransactionEnd


class TransactionIndexEntry(TypedDict):
    """An entry of a `.txnindex` file."""

    version: int
    producer_id: int
    first_offset: int
    last_offset: int
    """The offset of the abort marker (inclusive)."""
    last_stable_offset: int
    """The last stable offset when the marker was written."""


class LeaderEpoch(TypedDict):
    """The start of a leader epoch."""

    epoch: int
    start_offset: int


class Survey(TypedDict):
    """A scan of one segment's batch headers; no record is decompressed."""

    segment: Segment
    batches: int
    first_offset: int | None
    last_offset: int | None
    base_offset: int
    """The start of its offsets: the offset in the name, or lower if the file was renamed."""
    gap_before_last: int | None
    """The offset expected at the start of the last batch, if the batch begins later."""
    gaps: int
    """Offsets without a record, judged by the headers: usually the work of compaction."""
    max_timestamp: int
    """-1 if there is none."""
    chain_end: int
    """The end of the chain of batch headers: the file's size if it can be framed to the end."""
    sound_end: int
    """The end of the last batch with a correct CRC."""
    last_batch: tuple[int, int] | None
    """Position of that batch, and the CRC-32C of its header."""
    continues: tuple[int, int] | None
    """The `last_batch` of the survey that this one continues; None after a scan of the whole file."""
    borders: list[Border]
    transactions: list[TransactionEvent]
    transactional: list[tuple[int, int]]
    """(position, producer id) of transactional data: each producer once after each border."""
    leader_epochs: list[LeaderEpoch]
    """According to the batches."""
    transaction_index: list[TransactionIndexEntry]
    emptied: bool
    """True if the file is empty now but once was not: Kafka's cleaner leaves an empty index next to a segment
    that it emptied."""
    problems: list[Problem]
    """Sidecars that cannot be read, have a broken format or point past the end of the segment."""
    unreadable: str | None
    """The reason why the file could not be read to its end, if so."""
    is_part: bool
    """True for a partial survey by `SurveyInParts`: offsets and borders up to the last border."""


# --- plan ----------------------------------------------------------------------------------------


class Chunk(TypedDict):
    """A byte range of one segment, cut at batch borders: the input of one decode task.

    Pass it back to `ChunkDecoder` unchanged.
    """

    path: str
    segment: str
    topic: str
    partition: int
    size: int
    """The size of the segment when it was listed."""
    version: str
    """The version of the segment."""
    start: int
    end: int
    expected_offset: int
    """The smallest offset that the first batch can have."""
    max_offset: int
    """The largest offset that the segment can hold."""
    next_offset: int | None
    """The smallest offset that can follow the chunk, if anything follows."""
    log_start_offset: int | None
    """Records before this offset were deleted: a broker does not return them."""
    start_offset: int | None
    """Records before this offset are outside the requested range."""
    end_offset: int | None
    """Records from this offset on are outside the requested range."""
    aborted: list[tuple[int, int, int]]
    """(producer id, first offset, last offset) of each aborted transaction that reaches into the chunk;
    empty unless the plan is for `read_committed`."""


class PlanSegment(Segment):
    """A segment of a plan, with the results of its survey."""

    first_offset: int | None
    last_offset: int | None
    max_timestamp: int
    batches: int
    transactional: list[tuple[int, int]]


class PartitionPlan(TypedDict):
    """The chunks to decode, in offset order, and the facts known before decoding."""

    path: str
    topic: str
    partition: int
    isolation_level: IsolationLevel
    chunks: list[Chunk]
    segments: list[PlanSegment]
    ignored: list[IgnoredFile]
    """Includes overlapping segments."""
    problems: list[Problem]
    first_offset: int | None
    """The offset of the first batch, or the log's start if that is greater."""
    next_offset: int | None
    """The offset after the last offset in the log: Kafka's log end offset."""
    last_stable_offset: int | None
    """The start of the first open transaction, or `next_offset`."""
    log_start_offset: int | None
    """The log's start, if records before it are left out."""
    aborted: list[tuple[int, int, int]]
    """(producer id, first offset, last offset) of every aborted transaction."""
    leader_epochs: list[LeaderEpoch]
    """According to the batches."""


# --- reconciliation ------------------------------------------------------------------------------


class ByteRange(TypedDict):
    """A byte range of a segment and the reason why it is listed."""

    start: int
    end: int
    reason: str


class ChunkResult(TypedDict):
    """The account of a chunk: each byte and each record is counted exactly once."""

    path: str
    segment: str
    topic: str
    partition: int
    start: int
    end: int
    good_batches: int
    good_bytes: int
    deleted_bytes: int
    """Bytes of good batches that end before the log's start; `good_bytes` excludes them."""
    quarantined: list[ByteRange]
    """The first `LISTED` ranges, then the first of each other reason, and the last."""
    quarantined_ranges: int
    """The number of quarantined ranges, listed or not."""
    quarantined_bytes: int
    tail: ByteRange | None
    """`reason` is `zeros` or `partial_batch`."""
    announced: int
    """Records announced by good batches: the sum of the next five."""
    rows: int
    control: int
    aborted: int
    outside: int
    deleted: int
    """Records before the log's start, which a broker does not return."""
    first_offset: int | None
    last_offset: int | None
    lost_offsets: int
    """Offsets that may have been lost to damage, judged by the good batches around it."""
    lost_at_end: tuple[int, int] | None
    """The lost offsets after the last good batch: first and last, both inclusive."""
    null_timestamps: int
    """Rows whose time does not fit into Spark's microseconds; their `timestamp` is null."""
    invalid_keys: int
    """Rows whose key is not valid in the requested format: `key` is null, `invalidKey` has the bytes."""
    invalid_values: int
    unframed_keys: int
    """Rows whose key should name a schema but does not. Except for JSON, they are also invalid."""
    unframed_values: int


class SegmentReconciliation(ChunkResult):
    """The account of a segment: the sum of its chunks. `LISTED` caps `quarantined` for the partition."""

    file: str
    size: int
    tail_bytes: int
    outside_bytes: int
    """Bytes of chunks outside the requested range, which were not read."""
    missing_offsets: int
    balanced: bool


class PartitionReconciliation(TypedDict):
    """The account of every byte and every record of a partition; `balanced` if the sums hold."""

    path: str
    topic: str
    partition: int
    isolation_level: IsolationLevel
    segments: list[SegmentReconciliation]
    ignored: list[IgnoredFile]
    size: int
    good_batches: int
    good_bytes: int
    deleted_bytes: int
    """Bytes of good batches that end before the log's start; `good_bytes` excludes them."""
    quarantined_bytes: int
    tail_bytes: int
    outside_bytes: int
    announced: int
    rows: int
    control: int
    aborted: int
    outside: int
    deleted: int
    """Records before the log's start, which a broker does not return."""
    log_start_offset: int | None
    """The log's start, if records before it are left out."""
    first_offset: int | None
    last_offset: int | None
    missing_offsets: int
    """Offsets between the first and the last that have no good record: compacted or lost."""
    lost_offsets: int
    """Offsets that may be lost, over all problems; each offset counts once."""
    null_timestamps: int
    invalid_keys: int
    invalid_values: int
    unframed_keys: int
    unframed_values: int
    last_stable_offset: int | None
    problems: int
    balanced: bool


# --- histories -----------------------------------------------------------------------------------


class ControlCount(TypedDict):
    """The number of control batches of one type."""

    kind: str
    """Kafka's name, or `EMPTY` (compacted) or `UNREADABLE`."""
    batches: int


class ProducerHistory(TypedDict):
    """A producer in one of its epochs."""

    producer_id: int
    producer_epoch: int
    first_offset: int
    last_offset: int
    first_sequence: int
    """-1 if there is none."""
    last_sequence: int
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
    coordinator_epoch: int


class TransactionHistory(TypedDict):
    """One transaction. A marker without data before it has no first and last offset."""

    producer_id: int
    producer_epoch: int
    outcome: Literal["open", "committed", "aborted"]
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
