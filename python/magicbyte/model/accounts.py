"""Accounts of bytes and records."""

from __future__ import annotations

from typing import TypedDict

from magicbyte.enums import IsolationLevel
from magicbyte.model.listings import IgnoredFile

__all__ = [
    "ByteRange",
    "ChunkResult",
    "PartitionReconciliation",
    "SegmentReconciliation",
]


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
