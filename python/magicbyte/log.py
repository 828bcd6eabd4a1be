"""A partition's directory as one log to read."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Literal, Self, TypeAlias

from magicbyte._core import (
    DEFAULT_MAX_DECOMPRESSED_BYTES,
    LISTED,
    ArrowStream,
    LegacyBatch,
    LogBatchesCore,
    PartitionLogCore,
    Record,
    RecordBatch,
)
from magicbyte.errors import Error
from magicbyte.model import (
    IgnoredFile,
    PartitionListing,
    PartitionReconciliation,
    Problem,
    Segment,
)
from magicbyte.rescue import Rescued, rescue

__all__ = ["IsolationLevel", "PartitionLog", "Reconciliation"]

IsolationLevel: TypeAlias = Literal["read_uncommitted", "read_committed"]


@dataclass(frozen=True, slots=True)
class Reconciliation:
    """The sums that prove that nothing was lost: see `magicbyte.model.PartitionReconciliation`.

    `good_bytes + quarantined_bytes + tail_bytes == size`, and
    `rows + control + aborted + outside == announced`; `balanced` says that both hold for every
    segment.
    """

    sums: PartitionReconciliation
    """Everything, segment by segment, as plain data for JSON."""

    @property
    def balanced(self) -> bool:
        """Whether every byte and every record is counted exactly once."""
        return self.sums["balanced"]

    @property
    def size(self) -> int:
        """Bytes of all segments."""
        return self.sums["size"]

    @property
    def good_bytes(self) -> int:
        """Bytes in batches that decode in full."""
        return self.sums["good_bytes"]

    @property
    def quarantined_bytes(self) -> int:
        """Bytes in ranges that cannot be read."""
        return self.sums["quarantined_bytes"]

    @property
    def tail_bytes(self) -> int:
        """Bytes behind the last batches: zeros, or a batch whose rest was never written."""
        return self.sums["tail_bytes"]

    @property
    def announced(self) -> int:
        """Records announced by good batches."""
        return self.sums["announced"]

    @property
    def rows(self) -> int:
        """Data records delivered."""
        return self.sums["rows"]

    @property
    def control(self) -> int:
        """Control records."""
        return self.sums["control"]

    @property
    def aborted(self) -> int:
        """Records of aborted transactions (`read_committed` only)."""
        return self.sums["aborted"]

    @property
    def outside(self) -> int:
        """Records outside the range asked for, or behind the last stable offset."""
        return self.sums["outside"]

    @property
    def ignored(self) -> list[IgnoredFile]:
        """Files that were not read, with the reason."""
        return self.sums["ignored"]


class PartitionLog:
    """The segments of a partition's directory, read in offset order.

    Opening lists the directory; files are read when records are asked for, by position and in
    blocks, so that memory is the largest batch plus a block whatever the log's size. Deleted,
    swapped and foreign files are named in `ignored` and never read. A segment that cannot be read, or
    is missing between two others, is damage like any other.

    Args:
        path: the directory, or a single `.log` or `.checkpoint` file.
        check_crcs: whether checksums are checked.
        max_decompressed_bytes: the cap on one batch, stored or decompressed.
        skip_damage: leave damaged batches out and note them in `problems`, instead of raising.

    Raises:
        OSError: if the directory cannot be read, or its path is not UTF-8.

    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        check_crcs: bool = True,
        max_decompressed_bytes: int = DEFAULT_MAX_DECOMPRESSED_BYTES,
        skip_damage: bool = False,
    ) -> None:
        self._core = PartitionLogCore(os.fspath(path))
        self._listing: PartitionListing = json.loads(self._core.listing())
        self._check_crcs = check_crcs
        self._max_decompressed_bytes = max_decompressed_bytes
        self._skip_damage = skip_damage
        self._last: LogBatchesCore | ArrowStream | None = None
        self._undecodable: list[Problem] = []
        self._undecodable_left_out = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Forgets the last read's state; records and views handed out stay valid."""
        self._last = None

    @property
    def path(self) -> str:
        """The directory or file."""
        return self._listing["path"]

    @property
    def topic(self) -> str:
        """The topic, from the directory's name `topic-N`."""
        return self._listing["topic"]

    @property
    def partition(self) -> int:
        """The partition, from the directory's name."""
        return self._listing["partition"]

    @property
    def segments(self) -> list[Segment]:
        """The segment files in offset order."""
        return self._listing["segments"]

    @property
    def ignored(self) -> list[IgnoredFile]:
        """Files that are no part of the log, with the reason."""
        return self._listing["ignored"]

    @property
    def problems(self) -> list[Problem]:
        """What the last read left out so far (`skip_damage`), torn tails included: the first 1000 of
        ranges, and of batches whose records do not decode; `problems_left_out` has the rest.
        """
        found: list[Problem] = [] if self._last is None else json.loads(self._last.problems())
        return found + self._undecodable

    @property
    def problems_left_out(self) -> int:
        """How many more there were."""
        found = 0 if self._last is None else self._last.problems_left_out()
        return found + self._undecodable_left_out

    @property
    def end_offset(self) -> int | None:
        """Where the last read ends (exclusive): the end asked for, or for `read_committed` the
        last stable offset, where the earliest open transaction begins. None: the log's end.
        """
        end = None if self._last is None else self._last.end_offset
        return None if end == 2**63 - 1 else end

    def batches(
        self,
        start_offset: int | None = None,
        start_timestamp: int | None = None,
        isolation_level: IsolationLevel = "read_uncommitted",
        *,
        end_offset: int | None = None,
    ) -> Iterator[RecordBatch | LegacyBatch]:
        """Yields the batches that hold what is asked for, control batches included.

        A batch at either end of the range may hold records outside it. `read_committed` leaves
        out batches of aborted transactions.
        """
        committed = isolation_level == "read_committed"
        read = self._read(start_offset, end_offset, start_timestamp, isolation_level)
        for batch, _, _, _, is_data in read:
            if is_data or batch.is_control or not committed:
                yield batch

    def records(
        self,
        start_offset: int | None = None,
        start_timestamp: int | None = None,
        isolation_level: IsolationLevel = "read_uncommitted",
        *,
        end_offset: int | None = None,
    ) -> Iterator[Record]:
        """Yields the data records in offset order, as a consumer sees them.

        Args:
            start_offset: nothing before it (inclusive).
            start_timestamp: nothing before the first record with this time (ms) or a later one.
            isolation_level: `read_committed` leaves out aborted transactions and ends at the last
                stable offset, which `end_offset` then tells. Markers in the log are the
                authority, so the whole log is surveyed first.
            end_offset: nothing from it on (exclusive).

        Raises:
            magicbyte.Error: at damage, unless `skip_damage`; the records before it were yielded.

        """
        read = self._read(start_offset, end_offset, start_timestamp, isolation_level)
        for batch, segment, start, end, is_data in read:
            if not is_data:
                continue
            try:
                # Decodes the whole batch: what is wrong with its records shows here.
                records = iter(batch)
            except Error as error:
                if not self._skip_damage:
                    raise
                if len(self._undecodable) < LISTED:
                    self._undecodable.append(self._problem(batch, segment, error))
                else:
                    self._undecodable_left_out += 1
                continue
            if batch.magic == 2 and start <= batch.base_offset and batch.last_offset < end:
                yield from records
            else:
                for record in records:
                    if start <= record.offset < end:
                        yield record

    def offset_for_timestamp(self, timestamp: int) -> int | None:
        """The first offset whose record has this time (ms) or a later one."""
        return self._core.offset_for_timestamp(timestamp)

    def verify(self, isolation_level: IsolationLevel = "read_uncommitted") -> Reconciliation:
        """Decodes every record of every segment and accounts for every byte; keeps nothing."""
        return Reconciliation(json.loads(self._core.verify(isolation_level, self._max_decompressed_bytes)))

    def to_arrow(
        self,
        columns: Sequence[str] | None = None,
        *,
        views: bool = False,
        start_offset: int | None = None,
        end_offset: int | None = None,
        start_timestamp: int | None = None,
        end_timestamp: int | None = None,
        isolation_level: IsolationLevel = "read_uncommitted",
        threads: int = 1,
    ) -> ArrowStream:
        """The data records as columns: an object that any Arrow consumer takes.

        `pa.table(log.to_arrow(["offset", "value"]))`, `pl.DataFrame(...)`, DuckDB's `select ... from
        stream`. Each consumer gets a fresh stream, cheap before its first batch; memory is that of one
        Arrow batch of about 1 MiB (or the largest batch of the log). At damage the stream ends with an
        error, unless `skip_damage`; what was left out is in `problems`.

        Args:
            columns: what to build, by default offset, timestamp (ms), timestampType, key, value and
                headers; also topic, partition, timestampMillis, magic, compression, producerId,
                producerEpoch, sequence, isTransactional, leaderEpoch, segment, position. With nothing
                but facts of batches, or with none to count rows, batches are not decompressed, and
                what would show only there goes unnoticed.
            views: values as `binary_view`. Those of 12 bytes and less stand in the view; batches whose
                records average 1 KiB or more are viewed where they were read or decompressed, not
                copied, and stay in memory as long as one of their values does.
            start_offset: nothing before it (inclusive).
            end_offset: nothing from it on (exclusive).
            start_timestamp: no record with an earlier timestamp (ms), wherever it stands; `records`
                begins at the first that late and keeps what follows.
            end_timestamp: no record with this timestamp (ms) or a later one.
            isolation_level: as in `records`.
            threads: how many decode, the caller's own among them. Order is kept, Arrow batches get smaller;
                of several, each adds up to seven Arrow batches to memory, and half a MiB to decode.

        Raises:
            ValueError: for a column that is none, or a number of threads below 1 or above 256.

        """
        stream = self._core.to_arrow(
            columns,
            views=views,
            start_offset=start_offset,
            end_offset=end_offset,
            start_timestamp=start_timestamp,
            end_timestamp=end_timestamp,
            threads=threads,
            isolation_level=isolation_level,
            check_crcs=self._check_crcs,
            max_decompressed_bytes=self._max_decompressed_bytes,
            skip_damage=self._skip_damage,
        )
        self._undecodable = []
        self._undecodable_left_out = 0
        self._last = stream
        return stream

    def __arrow_c_schema__(self) -> object:
        return self.to_arrow().__arrow_c_schema__()

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """The whole log as `to_arrow()` has it: `pa.table(log)`, `pl.DataFrame(log)`, DuckDB's `from log`.

        A schema that is asked for by the consumer is given where its columns and types are ours.
        """
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    def rescue(self) -> Iterator[Rescued]:
        """Yields every quarantined range with its bytes, a repair if one flipped bit (or a wrong
        length or magic) explains it, and the records before the damage as suspects. Writes nothing.
        """
        return rescue(self.path, max_decompressed_bytes=self._max_decompressed_bytes)

    def _read(
        self,
        start_offset: int | None,
        end_offset: int | None,
        start_timestamp: int | None,
        isolation_level: IsolationLevel,
    ) -> LogBatchesCore:
        self._undecodable = []
        self._undecodable_left_out = 0
        batches = self._core.batches(
            start_offset=start_offset,
            end_offset=end_offset,
            start_timestamp=start_timestamp,
            isolation_level=isolation_level,
            check_crcs=self._check_crcs,
            max_decompressed_bytes=self._max_decompressed_bytes,
            skip_damage=self._skip_damage,
        )
        self._last = batches
        return batches

    def _problem(self, batch: RecordBatch | LegacyBatch, segment: str, error: Error) -> Problem:
        return Problem(
            topic=self.topic,
            partition=self.partition,
            segment=segment,
            kind=error.kind,
            start=batch.position,
            end=batch.position + batch.size_in_bytes,
            base_offset=error.base_offset,
            record_index=error.record_index,
            field=error.field,
            first_lost_offset=None,
            last_lost_offset=None,
            message=str(error),
        )

    def __repr__(self) -> str:
        size = sum(segment["size"] for segment in self.segments)
        return f"<PartitionLog {self.topic}-{self.partition}: {len(self.segments)} segments, {size} bytes>"
