"""Writing partitions, for the jobs: segments by any number of tasks, then what spans them."""

from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import Self, final

from magicbyte._stubs.state import ProducerStateEntry
from typing_extensions import Buffer

def begin_partition(target: str | PathLike[str]) -> Path:
    """Creates the hidden directory in which the partition `target` is written, and returns its path.

    A target can have only one writer at a time.

    Raises:
        ValueError: The directory exists. It may belong to another writer or to one that was killed, so
            removing it is up to the caller.
        FileExistsError: The target exists and is not an empty directory.
    """

@final
class PartitionWriter:
    """Writes batches of one partition into segments with their `.index` and `.timeindex`.

    `directory` (created if missing) is that of `begin_partition` or, if several tasks write, one inside
    it; `base_offset` is the first offset of the log or of the task's part. The other parameters are
    Kafka's topic configs; without `segment_ms` segments are not rolled by time.
    """

    def __new__(
        cls,
        directory: str | PathLike[str],
        base_offset: int = 0,
        *,
        segment_bytes: int = ...,
        segment_ms: int | None = None,
        index_interval_bytes: int = ...,
        segment_index_bytes: int = ...,
    ) -> Self: ...
    @property
    def next_offset(self) -> int:
        """The smallest offset the next batch can have."""
    def append(self, data: Buffer) -> int:
        """Appends the complete batches in `data`; returns their number.

        A batch without a leader epoch gets that of the batch before it, or 0: followers refuse others.

        Raises:
            Error: Names the first batch that is damaged, out of order or larger than a segment. Those
                before it were appended, and the writer remains usable.
            OSError: A file could not be written; the writer is no longer usable.
        """
    def finish(self) -> list[str]:
        """Closes and syncs the last segment; returns the SegmentSummaries for `finish_partition`."""

def finish_partition(
    target: str | PathLike[str],
    summaries: Sequence[str],
    *,
    topic_id: str | None = None,
    epochs_of: str | PathLike[str] | None = None,
) -> None:
    """Completes the partition `target` from the segments in these SegmentSummaries, in any order.

    Writes what spans segments (`.txnindex`, `.snapshot`, `leader-epoch-checkpoint`), and
    `partition.metadata` if there is a topic id; syncs; finally renames the directory to `target`. With
    `epochs_of`, a directory, the leader epochs continue those of its checkpoint.

    Raises:
        ValueError: Segments overlap, are elsewhere or differ from their summary; the topic id is invalid.
        FileExistsError: The target already exists.
    """

def forget_producers(directory: str | PathLike[str]) -> list[ProducerStateEntry]:
    """Rewrites the `.snapshot` files of a partition so that they only have open transactions, without
    sequences and with the epoch of a new producer; returns those at the end of the log.

    This is for a log that goes to another cluster, where other producers get the same ids: a broker that knew
    the old sequences would refuse their batches, or drop them as duplicates.

    Raises Error or, for a wrong CRC, CorruptRecordError.
    """

def rebuild_sidecars(
    directory: str | PathLike[str],
    *,
    index_interval_bytes: int = ...,
    expired_until: int | None = None,
    dry_run: bool = False,
) -> str:
    """Rebuilds a partition's sidecars from its segments in place, as a broker does after a crash.

    Between segments, producers last heard from at or before `expired_until` (ms) are forgotten, as a
    broker does by its clock. The report is a list of RebuiltFile: file, change, size.

    Raises:
        Error: There are bytes that are not a valid batch; a tail after the last batch is left out.
    """

def rewrite_chunks(
    chunks: list[str],
    directory: str | PathLike[str],
    base_offset: int,
    *,
    magic: int | None = None,
    compression: int | str | None = None,
    level: int | None = None,
    rebatch: int | None = None,
    leader_epoch: int | None = None,
    max_decompressed_bytes: int = ...,
    segment_bytes: int = ...,
    segment_ms: int | None = None,
    index_interval_bytes: int = ...,
) -> str:
    """Reads adjacent chunks of a partition, converts their batches, and writes them as segments.

    The first segment has this base offset. Returns JSON: `results`, a ChunkResult as text for each chunk,
    the first `problems` and `problems_left_out`, `segments` for `finish_partition` with their `batches`
    and `size`, the number of `records` written, `losses`.

    Raises:
        ValueError: The options exclude each other, or the codec does not have the level.
        Error: A batch is larger than a segment.
        OSError: A file could not be read or written.
    """

def set_aside(chunk: str, reason: str) -> str:
    """The ChunkResult of a chunk that is not read."""

@final
class RowsWriter:
    """Writes the rows of one partition as segments: for `df.write.format("magicbyte")`.

    `directory` is one for `finish_partition`; `timestamp` (ms) is that of rows without such a column.
    """

    def __new__(
        cls,
        directory: str | PathLike[str],
        *,
        compression: int | str = ...,
        level: int | None = None,
        batch_bytes: int = ...,
        timestamp: int = ...,
        segment_bytes: int = ...,
    ) -> Self: ...
    def append(self, data: object) -> None:
        """Appends the rows of Arrow data; see `RecordsBuilder.append_arrow`.

        Raises ValueError, naming the row, for offsets that do not increase or a null header key.
        """
    def finish(self) -> tuple[list[str], int, int | None, int]:
        """Closes the last segment: SegmentSummaries, rows, first offset, the offset after the last."""
