"""The contents of partition directories."""

from __future__ import annotations

from typing import Literal, TypeAlias, TypedDict

__all__ = [
    "DirectoryState",
    "IgnoredFile",
    "LeaderEpoch",
    "PartitionCheckpoints",
    "PartitionListing",
    "Problem",
    "Segment",
    "Sidecar",
]


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
    """An ETag or similar in a store or an archive; for a local file, its inode, time and size. `is_same_file`
    tells whether two versions are those of one file."""


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


Place: TypeAlias = tuple[str, int]
"""Topic and partition."""
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


class LeaderEpoch(TypedDict):
    """The start of a leader epoch."""

    epoch: int
    start_offset: int


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
