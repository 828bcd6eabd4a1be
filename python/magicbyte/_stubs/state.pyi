"""Folds over batches: used by `magicbyte.state`."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self, final

from magicbyte._stubs.batches import LegacyBatch, RecordBatch
from typing_extensions import Buffer

@final
class AbortedFilter:
    """Finds the batches of a fetch that a `read_committed` consumer delivers; see `magicbyte.state`."""

    def __new__(cls, aborted: Sequence[tuple[int, int]]) -> Self: ...
    def admit(self, batch: RecordBatch | LegacyBatch) -> str:
        """The fate of the next batch: `deliver`, `aborted` or `control`."""

@final
class VerificationGuard:
    """Represents one verification of a transaction; a new one verifies nothing."""

    def __new__(cls) -> Self: ...

@final
@dataclass(frozen=True, init=False)
class BatchMetadata:
    """An appended batch, for the broker's answer if it is sent again (Kafka's `BatchMetadata`)."""

    first_sequence: int
    """The sequence of its first record."""
    first_offset: int
    """The offset of its first record."""
    last_sequence: int
    """The sequence of its last record."""
    last_offset: int
    """The last offset (inclusive)."""
    timestamp: int
    """The maximum timestamp of the batch (ms)."""

    def __new__(
        cls, first_sequence: int, first_offset: int, last_sequence: int, last_offset: int, timestamp: int
    ) -> Self: ...
    def __iter__(self) -> Iterator[Any]: ...
    def __replace__(self, **changes: Any) -> Self: ...
    @property
    def offset_delta(self) -> int:
        """The last offset minus the first."""

@final
@dataclass(frozen=True, init=False)
class ProducerStateEntry:
    """The state of a producer in a broker (Kafka's `ProducerStateEntry`)."""

    producer_id: int
    """The id of the producer."""
    producer_epoch: int
    """Its epoch; -1 if there is none."""
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

    def __new__(
        cls,
        producer_id: int,
        producer_epoch: int,
        last_sequence: int,
        last_offset: int,
        last_timestamp: int,
        coordinator_epoch: int,
        current_txn_first_offset: int | None,
        batches: tuple[BatchMetadata, ...],
    ) -> Self: ...
    def __iter__(self) -> Iterator[Any]: ...
    def __replace__(self, **changes: Any) -> Self: ...

@final
@dataclass(frozen=True, init=False)
class CompletedTransaction:
    """A transaction that a marker ended (Kafka's `CompletedTxn`)."""

    producer_id: int
    """The id of its producer."""
    first_offset: int
    """The offset of its first record."""
    last_offset: int
    """The offset of the marker (inclusive)."""
    committed: bool
    """True if it was committed, False if it was aborted."""
    last_stable_offset: int
    """The last stable offset that the transaction index records for an aborted transaction."""

    def __new__(
        cls, producer_id: int, first_offset: int, last_offset: int, committed: bool, last_stable_offset: int
    ) -> Self: ...
    def __iter__(self) -> Iterator[Any]: ...
    def __replace__(self, **changes: Any) -> Self: ...

@final
@dataclass(frozen=True, init=False)
class Check:
    """A broker's response to a batch."""

    verdict: str
    """`append`, `duplicate`, or the name of Kafka's error: `INVALID_PRODUCER_EPOCH`,
    `OUT_OF_ORDER_SEQUENCE_NUMBER`, `TRANSACTION_COORDINATOR_FENCED`, `INVALID_TXN_STATE`."""
    message: str
    """The reason for a refusal; otherwise empty."""
    duplicate_of: BatchMetadata | None
    """The batch whose offsets and timestamp answer a duplicate."""

    def __new__(cls, verdict: str, message: str, duplicate_of: BatchMetadata | None) -> Self: ...
    def __iter__(self) -> Iterator[Any]: ...
    def __replace__(self, **changes: Any) -> Self: ...

@final
@dataclass(frozen=True, init=False)
class Truncation:
    """A follower's truncation of its log to match a leader's."""

    offset: int | None
    """The new end of its log (exclusive), which may be the present one. None if the epochs do not
    determine it: a broker would then truncate to its high watermark."""
    questions: list[tuple[int, tuple[int, int] | None]]
    """Each epoch that it asked the leader about, and the answer: an epoch and where that ends (exclusive)."""

    def __new__(cls, offset: int | None, questions: list[tuple[int, tuple[int, int] | None]]) -> Self: ...
    def __iter__(self) -> Iterator[Any]: ...
    def __replace__(self, **changes: Any) -> Self: ...

@final
@dataclass(frozen=True, init=False)
class AbortedTransaction:
    """An aborted transaction (`AbortedTransaction` of Kafka's fetch response)."""

    producer_id: int
    """The id of its producer."""
    first_offset: int
    """Offset of the transaction's first record."""
    last_offset: int
    """Offset of its marker (inclusive). Kafka's response leaves it out."""

    def __new__(cls, producer_id: int, first_offset: int, last_offset: int) -> Self: ...
    def __iter__(self) -> Iterator[Any]: ...
    def __replace__(self, **changes: Any) -> Self: ...

@final
class ProducerStateManager:
    """The idempotent and transactional producers of a partition (`ProducerStateManager` of Kafka 4.3).

    `check` predicts how a broker responds to a batch and changes nothing; `apply` appends the batch.
    Snapshots are kept in memory, with the content of `<offset>.snapshot` files.

    Args:
        snapshots: the snapshots that exist when the partition is opened, by offset; read by
            `truncate_and_reload`.
        expiration_ms: `producer.id.expiration.ms`.

    """

    def __new__(
        cls, snapshots: Mapping[int, Buffer] | None = None, *, expiration_ms: int = 86_400_000
    ) -> Self: ...
    def check(
        self,
        batch: RecordBatch | LegacyBatch,
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

    def apply(self, batch: RecordBatch | LegacyBatch) -> CompletedTransaction | None:
        """Appends the next batch, whatever `check` returns. Returns the transaction that it ends, if that
        has data.
        """

    def apply_together(self, batches: Iterable[RecordBatch | LegacyBatch]) -> list[CompletedTransaction]:
        """Appends batches that a follower appends together, or that are replayed from a segment.

        Kafka collects such batches before it merges them into its state. If a producer's epoch changes and
        changes back among them, it therefore also remembers batches from before. Returns the transactions
        that they end.
        """

    def start_verification(
        self, producer_id: int, sequence: int, epoch: int, *, supports_epoch_bump: bool, now: int
    ) -> VerificationGuard:
        """Starts or continues verifying the transaction of a request, at the time `now` (ms).

        Raises:
            ValueError: if the epoch is older than the producer's (`INVALID_PRODUCER_EPOCH`).

        """

    @property
    def producers(self) -> list[ProducerStateEntry]:
        """Copies of all producers' entries, in order of first appearance."""

    @property
    def first_unstable_offset(self) -> int | None:
        """The first offset that is undecided, or was decided by a marker not yet known to be replicated."""

    @property
    def first_undecided_offset(self) -> int | None:
        """The first offset of the earliest open transaction."""

    @property
    def oldest_transaction_timestamp(self) -> int | None:
        """The last timestamp (ms) of the producer of the earliest open transaction."""

    def set_high_watermark(self, offset: int) -> None:
        """Records that markers before this offset (exclusive) are replicated."""

    @property
    def end_offset(self) -> int:
        """The end (exclusive) of the part of the log that the state covers; set it after each append."""

    @end_offset.setter
    def end_offset(self, offset: int) -> None: ...
    def take_snapshot(self) -> int | None:
        """Takes a snapshot at `end_offset`, unless there is one already. Returns its offset."""

    @property
    def snapshots(self) -> dict[int, bytes]:
        """Copies of the snapshots by offset, byte for byte as Kafka writes them."""

    def truncate_and_reload(self, log_start_offset: int, log_end_offset: int, now: int) -> None:
        """Adjusts the state to a log from `log_start_offset` to `log_end_offset` (exclusive), at `now` (ms).

        Snapshots outside that range are deleted. If the end differs from the state's, the state is reloaded
        from the newest readable snapshot, and unreadable ones are deleted. Afterwards, replay the log from
        `end_offset`.
        """

    def set_log_start_offset(self, offset: int) -> None:
        """Moves the start of the log to this offset; producers from before it stay known."""

    def truncate_fully_and_start_at(self, offset: int) -> None:
        """Forgets everything, snapshots included."""

    def remove_expired_producers(self, now: int) -> None:
        """Forgets producers without an open transaction that have been silent for `expiration_ms`."""

    def delete_snapshots_before(self, offset: int) -> None:
        """Deletes the snapshots before an offset (exclusive)."""

    def remove_stray_snapshots(self, segment_base_offsets: Iterable[int]) -> None:
        """Deletes snapshots that are not at a segment's base offset. The last one stays if it is after all
        segments.
        """

@final
class LeaderEpochs:
    """Leader epochs and the offsets at which they begin (`LeaderEpochFileCache` of Kafka 4.3).

    Args:
        entries: (epoch, start offset) pairs, as in `leader-epoch-checkpoint`.

    """

    def __new__(cls, entries: Iterable[tuple[int, int]] = ()) -> Self: ...
    @property
    def entries(self) -> list[tuple[int, int]]:
        """(epoch, start offset) pairs, both strictly increasing."""

    def assign(self, epoch: int, start_offset: int) -> None:
        """Records that a leader appends at this offset; removes entries that contradict it.

        Raises:
            ValueError: for a negative epoch or offset.

        """

    def truncate_from_start(self, start_offset: int) -> None:
        """Moves the start of the log here: the epoch of this offset begins here, earlier ones are removed."""

    def truncate_from_end(self, end_offset: int) -> None:
        """Moves the end of the log here (exclusive): later epochs are removed."""

    def epoch_for_offset(self, offset: int) -> int | None:
        """The epoch of an offset; None before the first epoch."""

    def previous_epoch(self, epoch: int) -> int | None:
        """The highest epoch below this one."""

    def next_epoch(self, epoch: int) -> int | None:
        """The lowest epoch above this one."""

    def end_offset_for_epoch(self, epoch: int, log_end_offset: int) -> tuple[int, int] | None:
        """A leader's answer to OffsetsForLeaderEpoch: an epoch and the offset where it ends (exclusive), or
        None if it does not know.
        """

    def truncation(self, log_end_offset: int, leader: LeaderEpochs, leader_end_offset: int) -> Truncation:
        """The truncation of a follower with these epochs and this log end to match a leader (exclusive)."""
