"""What a broker and a consumer know of a log without looking at its records.

>>> import magicbyte
>>> from magicbyte.state import LeaderEpochs, ProducerState, read_committed
>>> builder = magicbyte.RecordsBuilder(producer_id=7, producer_epoch=0, base_sequence=0)
>>> builder.append(offset=0, timestamp=0, key=None, value=b"v")
>>> (batch,) = magicbyte.read_batches(builder.build())
>>> state = ProducerState()
>>> state.check(batch).verdict
'append'
>>> state.apply(batch)
>>> state.check(batch).duplicate_of.first_offset
0
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from os import PathLike
from pathlib import Path
from typing import NamedTuple

from magicbyte import _core
from magicbyte._core import VerificationGuard
from magicbyte.errors import Error as _Error
from magicbyte.model import PartitionListing as _PartitionListing
from magicbyte.jobs.partitions import unread_names as _unread_names

__all__ = [
    "BatchMetadata",
    "Check",
    "CompletedTransaction",
    "LeaderEpochs",
    "Producer",
    "ProducerState",
    "Truncation",
    "VerificationGuard",
    "leader_epochs_of",
    "read_committed",
    "truncation",
]

_Batch = _core.RecordBatch | _core.LegacyBatch


class BatchMetadata(NamedTuple):
    """A batch that was appended: what a broker answers if it comes again (`BatchMetadata`)."""

    first_sequence: int
    first_offset: int
    last_sequence: int
    last_offset: int
    """Inclusive."""
    timestamp: int
    """The batch's largest (ms)."""


class Producer(NamedTuple):
    """What is known of a producer (`ProducerStateEntry`)."""

    producer_id: int
    producer_epoch: int
    coordinator_epoch: int
    """Of its last marker; -1: none."""
    last_timestamp: int
    """Of its last batch or marker (ms); -1: none."""
    current_txn_first_offset: int | None
    """Where its open transaction began."""
    batches: list[BatchMetadata]
    """The last ones of its epoch, oldest first, five at most."""


class CompletedTransaction(NamedTuple):
    """A transaction that a marker ended (`CompletedTxn`)."""

    producer_id: int
    first_offset: int
    last_offset: int
    """Of the marker (inclusive)."""
    committed: bool
    last_stable_offset: int
    """What the transaction index notes of an aborted one."""


class Check(NamedTuple):
    """What a broker does with a batch."""

    verdict: str
    """`append`, `duplicate`, or the name of Kafka's error: `INVALID_PRODUCER_EPOCH`,
    `OUT_OF_ORDER_SEQUENCE_NUMBER`, `TRANSACTION_COORDINATOR_FENCED`, `INVALID_TXN_STATE`."""
    message: str
    """Why it is refused; empty otherwise."""
    duplicate_of: BatchMetadata | None
    """The batch whose offsets and timestamp are the answer to a duplicate."""


class ProducerState:
    """Idempotent and transactional producers of a partition (`ProducerStateManager` of Kafka 4.3).

    `check` says what a broker does with a batch and changes nothing; `apply` takes it. Snapshots are
    bytes in memory, as in files `<offset>.snapshot`.

    Args:
        snapshots: what is there when the partition is opened, by offset; read by
            `truncate_and_reload`.
        expiration_ms: `producer.id.expiration.ms`.

    """

    def __init__(
        self, snapshots: Mapping[int, bytes] | None = None, *, expiration_ms: int = 86_400_000
    ) -> None:
        self._core = _core.ProducerState(dict(snapshots or {}), expiration_ms=expiration_ms)

    def check(
        self,
        batch: _Batch,
        *,
        origin: str = "client",
        transaction_version: int = 0,
        guard: VerificationGuard | None = None,
    ) -> Check:
        """What a broker does with a batch; nothing changes.

        Args:
            batch: its header is read; of a control batch, the first record too. A batch without a
                producer id is always appended.
            origin: `client` (all is checked), `coordinator` (no sequences), or `replication` (nothing
                but that data of an open transaction is transactional, as in a replay).
            transaction_version: of a marker: 2 wants an epoch above the producer's.
            guard: what `start_verification` gave for the request, `VerificationGuard()` if it was not
                called; None: the broker verifies no transactions.

        Raises:
            InvalidRecordError: a control batch with a producer id that is no marker.

        """
        verdict, message, before = self._core.check(
            batch, origin=origin, transaction_version=transaction_version, guard=guard
        )
        return Check(verdict, message, None if before is None else BatchMetadata(*before))

    def apply(self, batch: _Batch) -> CompletedTransaction | None:
        """Takes the next batch, whatever its verdict; the transaction that it ends, if it had data."""
        ended = self._core.apply(batch)
        return None if ended is None else CompletedTransaction(*ended)

    def apply_together(self, batches: Iterable[_Batch]) -> list[CompletedTransaction]:
        """Takes batches that a follower appends together, or a segment that is read again.

        Kafka folds them aside: where a producer's epoch went away and came back among them, it also
        remembers batches of before. Returns the transactions they end.
        """
        return [CompletedTransaction(*ended) for ended in self._core.apply_together(list(batches))]

    def start_verification(
        self, producer_id: int, sequence: int, epoch: int, *, supports_epoch_bump: bool, now: int
    ) -> VerificationGuard:
        """Begins to verify the transaction of a request, or goes on with it, at the time `now` (ms).

        Raises:
            ValueError: the epoch is older than the producer's (`INVALID_PRODUCER_EPOCH`).

        """
        return self._core.start_verification(producer_id, sequence, epoch, supports_epoch_bump, now)

    @property
    def producers(self) -> list[Producer]:
        """All producers, in the order in which they appeared: copies."""
        return [
            Producer(*facts[:5], [BatchMetadata(*batch) for batch in facts[5]])
            for facts in self._core.producers()
        ]

    @property
    def first_unstable_offset(self) -> int | None:
        """The first offset that is undecided, or decided by a marker not known to be replicated."""
        return self._core.first_unstable_offset

    @property
    def first_undecided_offset(self) -> int | None:
        """The first offset of the earliest open transaction."""
        return self._core.first_undecided_offset

    @property
    def oldest_transaction_timestamp(self) -> int | None:
        """When (ms) the producer of the earliest open transaction was last heard of."""
        return self._core.oldest_transaction_timestamp

    def set_high_watermark(self, offset: int) -> None:
        """Markers before this offset (exclusive) are replicated."""
        self._core.set_high_watermark(offset)

    @property
    def end_offset(self) -> int:
        """Up to where (exclusive) the state knows the log; set it after each append."""
        return self._core.end_offset

    @end_offset.setter
    def end_offset(self, offset: int) -> None:
        self._core.set_end_offset(offset)

    def take_snapshot(self) -> int | None:
        """Writes a snapshot at `end_offset` unless there is one already; its offset."""
        return self._core.take_snapshot()

    @property
    def snapshots(self) -> dict[int, bytes]:
        """The snapshots by offset: copies, byte for byte Kafka's."""
        return self._core.snapshots()

    def truncate_and_reload(self, log_start_offset: int, log_end_offset: int, now: int) -> None:
        """The log reaches from `log_start_offset` to `log_end_offset` (exclusive) at the time `now` (ms).

        Snapshots outside are deleted. If the state knew another end, it is loaded again from the newest
        snapshot that can be read; those that cannot are deleted. Then replay the log from `end_offset`.
        """
        self._core.truncate_and_reload(log_start_offset, log_end_offset, now)

    def set_log_start_offset(self, offset: int) -> None:
        """The log lost what is before this offset; its producers stay known."""
        self._core.set_log_start_offset(offset)

    def truncate_fully_and_start_at(self, offset: int) -> None:
        """Forgets everything, snapshots too."""
        self._core.truncate_fully_and_start_at(offset)

    def remove_expired_producers(self, now: int) -> None:
        """Forgets producers without an open transaction that were silent for `expiration_ms`."""
        self._core.remove_expired_producers(now)

    def delete_snapshots_before(self, offset: int) -> None:
        """Deletes snapshots before an offset (exclusive)."""
        self._core.delete_snapshots_before(offset)

    def remove_stray_snapshots(self, segment_base_offsets: Iterable[int]) -> None:
        """Deletes snapshots at no segment's base offset, but the last one if it is behind them all."""
        self._core.remove_stray_snapshots(list(segment_base_offsets))


class Truncation(NamedTuple):
    """What a follower does about a leader's log."""

    offset: int | None
    """Where it cuts its own log (exclusive end), its end if it keeps all; None: the epochs do not tell,
    it would cut at its high watermark."""
    questions: list[tuple[int, tuple[int, int] | None]]
    """Each epoch it asked the leader about, and the answer: an epoch and where that ends (exclusive)."""


class LeaderEpochs:
    """Which leader wrote from which offset on (`LeaderEpochFileCache` of Kafka 4.3).

    Args:
        entries: (epoch, start offset) of each, as in `leader-epoch-checkpoint`.

    """

    def __init__(self, entries: Iterable[tuple[int, int]] = ()) -> None:
        self._core = _core.LeaderEpochs(list(entries))

    @property
    def entries(self) -> list[tuple[int, int]]:
        """(epoch, start offset) of each, both rising."""
        return self._core.entries

    def assign(self, epoch: int, start_offset: int) -> None:
        """A leader appends at this offset; what contradicts it goes.

        Raises:
            ValueError: a negative epoch or offset.

        """
        self._core.assign(epoch, start_offset)

    def truncate_from_start(self, start_offset: int) -> None:
        """The log begins here: the epoch of this offset begins here too, those before it go."""
        self._core.truncate_from_start(start_offset)

    def truncate_from_end(self, end_offset: int) -> None:
        """The log ends here (exclusive): later epochs go."""
        self._core.truncate_from_end(end_offset)

    def epoch_for_offset(self, offset: int) -> int | None:
        """The epoch of an offset; None before the first."""
        return self._core.epoch_for_offset(offset)

    def previous_epoch(self, epoch: int) -> int | None:
        """The highest epoch below this one."""
        return self._core.previous_epoch(epoch)

    def next_epoch(self, epoch: int) -> int | None:
        """The lowest epoch above this one."""
        return self._core.next_epoch(epoch)

    def end_offset_for_epoch(self, epoch: int, log_end_offset: int) -> tuple[int, int] | None:
        """A leader's answer to OffsetsForLeaderEpoch: an epoch, and the offset where it ends (exclusive).

        None: it does not know.
        """
        return self._core.end_offset_for_epoch(epoch, log_end_offset)

    def truncation(self, log_end_offset: int, leader: LeaderEpochs, leader_end_offset: int) -> Truncation:
        """Where a follower with these epochs and this log end parts from a leader (ends exclusive)."""
        return Truncation(*self._core.truncation(log_end_offset, leader._core, leader_end_offset))


def leader_epochs_of(directory: str | PathLike[str]) -> tuple[LeaderEpochs, int]:
    """A copy's leader epochs and its end (exclusive offset), by its batches and its checkpoint.

    The batch headers of all segments are read. A checkpoint `leader-epoch-checkpoint` also knows epochs of
    which no batch is left; one that cannot be read says nothing, as in a broker.

    Raises:
        OSError: the directory or one of its segments cannot be read.

    """
    text = _core.list_partition(directory)
    listing: _PartitionListing = json.loads(text)
    surveys = [_core.survey_segment(json.dumps(segment)) for segment in listing["segments"]]
    unread = [(one["segment"], one["message"]) for one in _unread_names(listing)]
    for segment, survey in zip(listing["segments"], map(json.loads, surveys), strict=True):
        if survey["unreadable"] is not None:
            unread.append((segment["file"], survey["unreadable"]))
    for name, message in unread:
        raise OSError(f"{directory}: {name} {message}")
    plan = json.loads(_core.plan_partition(text, surveys))
    epochs = LeaderEpochs()
    try:
        checkpoint = _core.read_sidecar(Path(directory) / "leader-epoch-checkpoint")
        epochs = LeaderEpochs(_core.leader_epoch_checkpoint(checkpoint.decode()))
    except (OSError, UnicodeDecodeError, _Error):
        pass
    end = plan["next_offset"] or 0
    for entry in plan["leader_epochs"]:
        latest = epochs.entries[-1][0] if epochs.entries else -1
        if entry["epoch"] > latest:
            epochs.assign(entry["epoch"], entry["start_offset"])
    epochs.truncate_from_end(end)
    return epochs, end


def truncation(follower: str | PathLike[str], leader: str | PathLike[str]) -> Truncation:
    """Where two copies of a partition part, and so where a follower with the one cuts its log.

    Args:
        follower: the directory of the copy that gives in.
        leader: the directory of the copy that is right.

    """
    epochs, end = leader_epochs_of(follower)
    leaders, leader_end = leader_epochs_of(leader)
    return epochs.truncation(end, leaders, leader_end)


def read_committed(
    batches: Iterable[_Batch], aborted_transactions: Iterable[tuple[int, int]]
) -> Iterator[_Batch]:
    """The batches of a fetch that a consumer with `read_committed` delivers (`CompletedFetch`).

    Control batches and batches of aborted transactions are left out. The broker answers such a fetch
    with batches up to the last stable offset only, and with the aborted transactions among them.

    Args:
        batches: in the order of the fetch, `magicbyte.read_batches(...)` for one.
        aborted_transactions: (producer id, first offset) of each, in any order.

    Raises:
        Error: a control batch whose first record cannot be read.

    """
    committed = _core.AbortedFilter(list(aborted_transactions))
    return (batch for batch in batches if committed.admit(batch) == "deliver")
