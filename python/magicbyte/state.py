"""The state of a log that a broker or a consumer keeps without reading records.

>>> import magicbyte
>>> from magicbyte.state import ProducerStateManager
>>> builder = magicbyte.RecordsBuilder(producer_id=7, producer_epoch=0, base_sequence=0)
>>> builder.append(offset=0, timestamp=0, key=None, value=b"v")
>>> (batch,) = magicbyte.read_batches(builder.build())
>>> producers = ProducerStateManager()
>>> producers.check(batch).verdict
'append'
>>> producers.apply(batch)
>>> producers.check(batch).duplicate_of.first_offset
0
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from os import PathLike
from typing import NamedTuple

from magicbyte import _core
from magicbyte._core import VerificationGuard
from magicbyte.listing import checkpointed_epochs, unread_segments
from magicbyte.model import PartitionListing, PartitionPlan, Survey

__all__ = [
    "AbortedTransaction",
    "BatchMetadata",
    "Check",
    "CompletedTransaction",
    "LeaderEpochs",
    "ProducerStateEntry",
    "ProducerStateManager",
    "Truncation",
    "VerificationGuard",
    "leader_epochs_of",
    "read_committed",
    "truncation",
]

_Batch = _core.RecordBatch | _core.LegacyBatch


class BatchMetadata(NamedTuple):
    """An appended batch, for the broker's answer if it is sent again (Kafka's `BatchMetadata`)."""

    first_sequence: int
    first_offset: int
    last_sequence: int
    last_offset: int
    """The last offset (inclusive)."""
    timestamp: int
    """The maximum timestamp of the batch (ms)."""


class ProducerStateEntry(NamedTuple):
    """The state of a producer in a broker (Kafka's `ProducerStateEntry`)."""

    producer_id: int
    producer_epoch: int
    last_sequence: int
    """The sequence of its last record; -1 if there is none."""
    last_offset: int
    """The offset of its last record; -1 if there is none."""
    last_timestamp: int
    """The time of its last batch or marker (ms); -1 if there is none."""
    coordinator_epoch: int
    """The epoch of the coordinator that wrote its last marker; -1 if there is none."""
    current_txn_first_offset: int | None
    """The start of the open transaction, if there is one."""
    batches: tuple[BatchMetadata, ...]
    """The last batches of its epoch, oldest first, at most five."""


class CompletedTransaction(NamedTuple):
    """A transaction that a marker ended (Kafka's `CompletedTxn`)."""

    producer_id: int
    first_offset: int
    last_offset: int
    """The offset of the marker (inclusive)."""
    committed: bool
    last_stable_offset: int
    """The last stable offset that the transaction index records for an aborted transaction."""


class Check(NamedTuple):
    """A broker's response to a batch."""

    verdict: str
    """`append`, `duplicate`, or the name of Kafka's error: `INVALID_PRODUCER_EPOCH`,
    `OUT_OF_ORDER_SEQUENCE_NUMBER`, `TRANSACTION_COORDINATOR_FENCED`, `INVALID_TXN_STATE`."""
    message: str
    """The reason for a refusal; otherwise empty."""
    duplicate_of: BatchMetadata | None
    """The batch whose offsets and timestamp answer a duplicate."""


class ProducerStateManager:
    """The idempotent and transactional producers of a partition (`ProducerStateManager` of Kafka 4.3).

    `check` predicts how a broker responds to a batch and changes nothing; `apply` appends the batch.
    Snapshots are kept in memory, with the content of `<offset>.snapshot` files.

    Args:
        snapshots: the snapshots that exist when the partition is opened, by offset; read by
            `truncate_and_reload`.
        expiration_ms: `producer.id.expiration.ms`.

    """

    def __init__(
        self, snapshots: Mapping[int, bytes] | None = None, *, expiration_ms: int = 86_400_000
    ) -> None:
        self._core = _core.ProducerStateManagerCore(dict(snapshots or {}), expiration_ms=expiration_ms)

    def check(
        self,
        batch: _Batch,
        *,
        origin: str = "client",
        transaction_version: int = 0,
        guard: VerificationGuard | None = None,
    ) -> Check:
        """Predicts a broker's response to a batch; changes nothing.

        Args:
            batch: only its header is read, and the first record of a control batch. A batch without a
                producer id is always appended.
            origin: `client` (everything is checked), `coordinator` (sequences are not), or `replication`
                (only that data of an open transaction is transactional, as in a replay).
            transaction_version: of a marker; 2 requires an epoch above the producer's.
            guard: the result of `start_verification` for the request, or `VerificationGuard()` if it was
                not called. None: the broker does not verify transactions.

        Raises:
            InvalidRecordError: for a control batch that has a producer id but is not a marker.

        """
        verdict, message, earlier = self._core.check(
            batch, origin=origin, transaction_version=transaction_version, guard=guard
        )
        return Check(verdict, message, None if earlier is None else BatchMetadata(*earlier))

    def apply(self, batch: _Batch) -> CompletedTransaction | None:
        """Appends the next batch, whatever `check` returns. Returns the transaction that it ends, if that
        has data.
        """
        ended = self._core.apply(batch)
        return None if ended is None else CompletedTransaction(*ended)

    def apply_together(self, batches: Iterable[_Batch]) -> list[CompletedTransaction]:
        """Appends batches that a follower appends together, or that are replayed from a segment.

        Kafka collects such batches before it merges them into its state. If a producer's epoch changes and
        changes back among them, it therefore also remembers batches from before. Returns the transactions
        that they end.
        """
        return [CompletedTransaction(*ended) for ended in self._core.apply_together(list(batches))]

    def start_verification(
        self, producer_id: int, sequence: int, epoch: int, *, supports_epoch_bump: bool, now: int
    ) -> VerificationGuard:
        """Starts or continues verifying the transaction of a request, at the time `now` (ms).

        Raises:
            ValueError: if the epoch is older than the producer's (`INVALID_PRODUCER_EPOCH`).

        """
        return self._core.start_verification(producer_id, sequence, epoch, supports_epoch_bump, now)

    @property
    def producers(self) -> list[ProducerStateEntry]:
        """Copies of all producers' entries, in order of first appearance."""
        return [producer_entry_of(*fields) for fields in self._core.producers()]

    @property
    def first_unstable_offset(self) -> int | None:
        """The first offset that is undecided, or was decided by a marker not yet known to be replicated."""
        return self._core.first_unstable_offset

    @property
    def first_undecided_offset(self) -> int | None:
        """The first offset of the earliest open transaction."""
        return self._core.first_undecided_offset

    @property
    def oldest_transaction_timestamp(self) -> int | None:
        """The last timestamp (ms) of the producer of the earliest open transaction."""
        return self._core.oldest_transaction_timestamp

    def set_high_watermark(self, offset: int) -> None:
        """Records that markers before this offset (exclusive) are replicated."""
        self._core.set_high_watermark(offset)

    @property
    def end_offset(self) -> int:
        """The end (exclusive) of the part of the log that the state covers; set it after each append."""
        return self._core.end_offset

    @end_offset.setter
    def end_offset(self, offset: int) -> None:
        self._core.set_end_offset(offset)

    def take_snapshot(self) -> int | None:
        """Takes a snapshot at `end_offset`, unless there is one already. Returns its offset."""
        return self._core.take_snapshot()

    @property
    def snapshots(self) -> dict[int, bytes]:
        """Copies of the snapshots by offset, byte for byte as Kafka writes them."""
        return self._core.snapshots()

    def truncate_and_reload(self, log_start_offset: int, log_end_offset: int, now: int) -> None:
        """Adjusts the state to a log from `log_start_offset` to `log_end_offset` (exclusive), at `now` (ms).

        Snapshots outside that range are deleted. If the end differs from the state's, the state is reloaded
        from the newest readable snapshot, and unreadable ones are deleted. Afterwards, replay the log from
        `end_offset`.
        """
        self._core.truncate_and_reload(log_start_offset, log_end_offset, now)

    def set_log_start_offset(self, offset: int) -> None:
        """Moves the start of the log to this offset; producers from before it stay known."""
        self._core.set_log_start_offset(offset)

    def truncate_fully_and_start_at(self, offset: int) -> None:
        """Forgets everything, snapshots included."""
        self._core.truncate_fully_and_start_at(offset)

    def remove_expired_producers(self, now: int) -> None:
        """Forgets producers without an open transaction that have been silent for `expiration_ms`."""
        self._core.remove_expired_producers(now)

    def delete_snapshots_before(self, offset: int) -> None:
        """Deletes the snapshots before an offset (exclusive)."""
        self._core.delete_snapshots_before(offset)

    def remove_stray_snapshots(self, segment_base_offsets: Iterable[int]) -> None:
        """Deletes snapshots that are not at a segment's base offset. The last one stays if it is after all
        segments.
        """
        self._core.remove_stray_snapshots(list(segment_base_offsets))


def producer_entry_of(
    producer_id: int,
    producer_epoch: int,
    coordinator_epoch: int,
    last_timestamp: int,
    current_txn_first_offset: int | None,
    batches: Sequence[tuple[int, int, int, int, int]],
) -> ProducerStateEntry:
    """The entry from the fields that the core gives."""
    known = tuple(BatchMetadata(*batch) for batch in batches)
    return ProducerStateEntry(
        producer_id,
        producer_epoch,
        known[-1].last_sequence if known else -1,
        known[-1].last_offset if known else -1,
        last_timestamp,
        coordinator_epoch,
        current_txn_first_offset,
        known,
    )


class Truncation(NamedTuple):
    """A follower's truncation of its log to match a leader's."""

    offset: int | None
    """The new end of its log (exclusive), which may be the present one. None if the epochs do not
    determine it: a broker would then truncate to its high watermark."""
    questions: list[tuple[int, tuple[int, int] | None]]
    """Each epoch that it asked the leader about, and the answer: an epoch and where that ends (exclusive)."""


class LeaderEpochs:
    """Leader epochs and the offsets at which they begin (`LeaderEpochFileCache` of Kafka 4.3).

    Args:
        entries: (epoch, start offset) pairs, as in `leader-epoch-checkpoint`.

    """

    def __init__(self, entries: Iterable[tuple[int, int]] = ()) -> None:
        self._core = _core.LeaderEpochsCore(list(entries))

    @property
    def entries(self) -> list[tuple[int, int]]:
        """(epoch, start offset) pairs, both strictly increasing."""
        return self._core.entries

    def assign(self, epoch: int, start_offset: int) -> None:
        """Records that a leader appends at this offset; removes entries that contradict it.

        Raises:
            ValueError: for a negative epoch or offset.

        """
        self._core.assign(epoch, start_offset)

    def truncate_from_start(self, start_offset: int) -> None:
        """Moves the start of the log here: the epoch of this offset begins here, earlier ones are removed."""
        self._core.truncate_from_start(start_offset)

    def truncate_from_end(self, end_offset: int) -> None:
        """Moves the end of the log here (exclusive): later epochs are removed."""
        self._core.truncate_from_end(end_offset)

    def epoch_for_offset(self, offset: int) -> int | None:
        """The epoch of an offset; None before the first epoch."""
        return self._core.epoch_for_offset(offset)

    def previous_epoch(self, epoch: int) -> int | None:
        """The highest epoch below this one."""
        return self._core.previous_epoch(epoch)

    def next_epoch(self, epoch: int) -> int | None:
        """The lowest epoch above this one."""
        return self._core.next_epoch(epoch)

    def end_offset_for_epoch(self, epoch: int, log_end_offset: int) -> tuple[int, int] | None:
        """A leader's answer to OffsetsForLeaderEpoch: an epoch and the offset where it ends (exclusive), or
        None if it does not know.
        """
        return self._core.end_offset_for_epoch(epoch, log_end_offset)

    def truncation(self, log_end_offset: int, leader: LeaderEpochs, leader_end_offset: int) -> Truncation:
        """The truncation of a follower with these epochs and this log end to match a leader (exclusive)."""
        return Truncation(*self._core.truncation(log_end_offset, leader._core, leader_end_offset))


def leader_epochs_of(directory: str | PathLike[str]) -> tuple[LeaderEpochs, int]:
    """The leader epochs of a partition and its end offset (exclusive), from its batches and checkpoint.

    Reads the batch headers of all segments. The file `leader-epoch-checkpoint` also has epochs without any
    remaining batch; an unreadable one is ignored, as by a broker.

    Raises:
        OSError: if the directory or one of its segments cannot be read.

    """
    text = _core.list_partition(directory)
    listing: PartitionListing = json.loads(text)
    surveys = [_core.survey_segment(json.dumps(segment)) for segment in listing["segments"]]
    for problem in unread_segments(listing):
        raise OSError(f"{directory}: {problem['segment']} {problem['message']}")
    for survey_text in surveys:
        survey: Survey = json.loads(survey_text)
        if survey["unreadable"] is not None:
            raise OSError(f"{directory}: {survey['segment']['file']} {survey['unreadable']}")
    plan: PartitionPlan = json.loads(_core.plan_partition(text, surveys))
    epochs = LeaderEpochs(checkpointed_epochs(os.fspath(directory)))
    end = plan["next_offset"] or 0
    for entry in plan["leader_epochs"]:
        latest = epochs.entries[-1][0] if epochs.entries else -1
        if entry["epoch"] > latest:
            epochs.assign(entry["epoch"], entry["start_offset"])
    epochs.truncate_from_end(end)
    return epochs, end


def truncation(follower: str | PathLike[str], leader: str | PathLike[str]) -> Truncation:
    """The point where two copies of a partition diverge, and where a follower therefore truncates its copy.

    Args:
        follower: the directory of the follower's copy.
        leader: the directory of the leader's copy.

    """
    epochs, end = leader_epochs_of(follower)
    leaders, leader_end = leader_epochs_of(leader)
    return epochs.truncation(end, leaders, leader_end)


class AbortedTransaction(NamedTuple):
    """An aborted transaction (`AbortedTransaction` of Kafka's fetch response)."""

    producer_id: int
    first_offset: int
    """Offset of the transaction's first record."""
    last_offset: int
    """Offset of its marker (inclusive). Kafka's response leaves it out."""


def read_committed(
    batches: Iterable[_Batch], aborted_transactions: Iterable[AbortedTransaction | tuple[int, int]]
) -> Iterator[_Batch]:
    """The batches of a fetch that a `read_committed` consumer delivers (Kafka's `CompletedFetch`).

    Control batches and batches of aborted transactions are left out. A broker answers such a fetch with
    batches up to the last stable offset, and a list of the aborted transactions among them.

    Args:
        batches: in the order of the fetch, for example `magicbyte.read_batches(...)`.
        aborted_transactions: in any order; (producer id, first offset) is enough of each.

    Raises:
        Error: for a control batch whose first record cannot be read.

    """
    pairs = [(producer_id, first_offset) for producer_id, first_offset, *_ in aborted_transactions]
    committed = _core.AbortedFilter(pairs)
    return (batch for batch in batches if committed.admit(batch) == "deliver")
