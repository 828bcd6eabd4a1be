"""The facts that the steps of a job hand on: what the compiled core says in JSON, as types.

`survey -> fold -> decode` run in different processes (Spark executors, threads, the driver), so
everything between them is plain data. Offsets are inclusive where the name says first or last and
exclusive where it says end or next; positions and sizes are bytes; times are milliseconds.
"""

from __future__ import annotations

from typing import TypedDict


class Segment(TypedDict):
    """One `.log` (or, on request, `.checkpoint`) file, pinned at its size when it was listed."""

    path: str
    file: str
    topic: str
    partition: int
    base_offset: int
    """From the file's name."""
    size: int
    modified_ms: int
    is_checkpoint: bool


class IgnoredFile(TypedDict):
    """A name that is not read as part of the log, and why: nothing is left out silently."""

    file: str
    size: int
    reason: str
    """One of `deleted cleaned swap foreign overlapping checkpoint`; of what is no regular file one of
    `directory special unreadable`, the last if it should be a file of the log or cannot be examined."""


class Sidecar(TypedDict):
    """A file beside the segments that belongs to the log."""

    file: str
    size: int
    kind: str
    """One of `index timeindex txnindex snapshot leader-epoch-checkpoint partition.metadata`."""


class PartitionListing(TypedDict):
    """What one directory holds. `topic` and `partition` come from its name `topic-N`."""

    path: str
    topic: str
    partition: int
    segments: list[Segment]
    sidecars: list[Sidecar]
    ignored: list[IgnoredFile]
    problems: list[Problem]
    """What cannot be listed or read, and checkpoints that break their format."""


class Survey(TypedDict):
    """A header scan of one segment; no record is decompressed."""

    segment: Segment
    batches: int
    first_offset: int | None
    last_offset: int | None
    max_timestamp: int
    chain_end: int
    """Where the chain of batch headers ends: the size of the file if all of it frames."""
    sound_end: int
    """Where the last batch whose CRC holds ends."""
    unreadable: str | None
    """Why the file could not be read to its end, if that is so."""


class Problem(TypedDict):
    """One row of the table `problems`."""

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
    """The first offset that may be lost (inclusive), by the neighbours; of ranges with no good
    batch between them, the first has it for all."""
    last_lost_offset: int | None
    """The last offset that may be lost (inclusive); None where no good batch follows."""
    message: str


class Chunk(TypedDict):
    """A byte range of one segment, cut at borders of batches: what one decode task reads.

    It holds more fields than these; hand it back to `ChunkDecoder` as it is.
    """

    path: str
    segment: str
    topic: str
    partition: int
    start: int
    end: int
    expected_offset: int
    """The smallest offset the first batch can have."""
    next_offset: int | None
    """The smallest offset that can follow the chunk, where something does."""


class PartitionPlan(TypedDict):
    """The fold: which chunks to decode, in offset order, and what is known before decoding."""

    path: str
    topic: str
    partition: int
    isolation_level: str
    chunks: list[Chunk]
    segments: list[Segment]
    ignored: list[IgnoredFile]
    problems: list[Problem]
    first_offset: int | None
    next_offset: int | None
    """One behind the last offset in the log: Kafka's log end offset."""
    last_stable_offset: int | None
    """Where the first open transaction begins, or `next_offset`."""


class ByteRange(TypedDict):
    """Bytes of a segment, and what is to say about them."""

    start: int
    end: int
    reason: str


class ChunkResult(TypedDict):
    """What became of a chunk: its bytes and its records, each counted exactly once."""

    path: str
    segment: str
    topic: str
    partition: int
    start: int
    end: int
    good_batches: int
    good_bytes: int
    quarantined: list[ByteRange]
    """The first `LISTED`, then the first of each other reason, and the last."""
    quarantined_ranges: int
    """How many there are."""
    quarantined_bytes: int
    tail: ByteRange | None
    """`reason` is `zeros` or `partial_batch`."""
    announced: int
    """Records announced by good batches: the sum of the next four."""
    rows: int
    control: int
    aborted: int
    outside: int
    first_offset: int | None
    last_offset: int | None
    missing_offsets: int
    lost_offsets: int
    """Offsets that damage may have cost, as far as good neighbours show."""
    null_timestamps: int
    """Rows whose time Spark's microseconds cannot hold (`timestamp` is null there)."""


class SegmentReconciliation(TypedDict):
    """Every byte and every record of one segment: the sum of its chunks."""

    file: str
    size: int
    good_batches: int
    good_bytes: int
    quarantined_bytes: int
    quarantined: list[ByteRange]
    """As in `ChunkResult`, but `LISTED` for the whole partition."""
    quarantined_ranges: int
    tail_bytes: int
    tail: ByteRange | None
    announced: int
    rows: int
    control: int
    aborted: int
    outside: int
    first_offset: int | None
    last_offset: int | None
    missing_offsets: int
    lost_offsets: int
    null_timestamps: int
    balanced: bool


class PartitionReconciliation(TypedDict):
    """Every byte and every record of one partition; `balanced` says that the sums hold."""

    path: str
    topic: str
    partition: int
    isolation_level: str
    segments: list[SegmentReconciliation]
    ignored: list[IgnoredFile]
    size: int
    good_batches: int
    good_bytes: int
    quarantined_bytes: int
    tail_bytes: int
    announced: int
    rows: int
    control: int
    aborted: int
    outside: int
    first_offset: int | None
    last_offset: int | None
    missing_offsets: int
    lost_offsets: int
    null_timestamps: int
    last_stable_offset: int | None
    problems: int
    balanced: bool
