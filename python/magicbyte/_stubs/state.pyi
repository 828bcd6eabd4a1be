"""Folds over batches: used by `magicbyte.state`."""

from collections.abc import Mapping, Sequence
from typing import Self, final

from magicbyte._stubs.batches import LegacyBatch, RecordBatch

@final
class AbortedFilter:
    """Which batches of a fetch a `read_committed` consumer delivers; see `magicbyte.state`."""

    def __new__(cls, aborted: Sequence[tuple[int, int]]) -> Self: ...
    def admit(self, batch: RecordBatch | LegacyBatch) -> str:
        """The fate of the next batch: `deliver`, `aborted` or `control`."""

@final
class LeaderEpochsCore:
    """See `magicbyte.state.LeaderEpochs`."""

    def __new__(cls, entries: Sequence[tuple[int, int]] = ...) -> Self: ...
    @property
    def entries(self) -> list[tuple[int, int]]: ...
    def assign(self, epoch: int, start_offset: int) -> None: ...
    def truncate_from_start(self, start_offset: int) -> None: ...
    def truncate_from_end(self, end_offset: int) -> None: ...
    def epoch_for_offset(self, offset: int) -> int | None: ...
    def previous_epoch(self, epoch: int) -> int | None: ...
    def next_epoch(self, epoch: int) -> int | None: ...
    def end_offset_for_epoch(self, epoch: int, log_end_offset: int) -> tuple[int, int] | None: ...
    def truncation(
        self, log_end_offset: int, leader: LeaderEpochsCore, leader_end_offset: int
    ) -> tuple[int | None, list[tuple[int, tuple[int, int] | None]]]:
        """Where a follower with these epochs truncates its log, and the requests it made to find that."""

@final
class VerificationGuard:
    """Represents one verification of a transaction; a new one verifies nothing."""

    def __new__(cls) -> Self: ...

@final
class ProducerStateManagerCore:
    """See `magicbyte.state.ProducerStateManager`."""

    def __new__(cls, snapshots: Mapping[int, bytes] = ..., *, expiration_ms: int = 86_400_000) -> Self: ...
    def check(
        self,
        batch: RecordBatch | LegacyBatch,
        *,
        origin: str = "client",
        transaction_version: int = 0,
        guard: VerificationGuard | None = None,
    ) -> tuple[str, str, tuple[int, int, int, int, int] | None]:
        """The verdict or Kafka's error, its message, and the earlier batch that a duplicate repeats.

        A batch is (first sequence, first offset, last sequence, last offset, timestamp in ms).
        """

    def apply(self, batch: RecordBatch | LegacyBatch) -> tuple[int, int, int, bool, int] | None:
        """Applies the batch; returns the transaction that it ends, None for none.

        A transaction is (producer id, first offset, last offset, whether committed, last stable offset).
        """

    def apply_together(
        self, batches: Sequence[RecordBatch | LegacyBatch]
    ) -> list[tuple[int, int, int, bool, int]]:
        """Applies batches that were appended together; returns the transactions that they end."""

    def start_verification(
        self, producer_id: int, sequence: int, epoch: int, supports_epoch_bump: bool, now: int
    ) -> VerificationGuard: ...
    def producers(
        self,
    ) -> list[tuple[int, int, int, int, int | None, list[tuple[int, int, int, int, int]]]]:
        """All producers in the order in which they appeared.

        A producer is (id, epoch, coordinator epoch, last timestamp in ms, first offset of its open
        transaction or None, its last batches as in `check`).
        """

    @property
    def first_unstable_offset(self) -> int | None: ...
    @property
    def first_undecided_offset(self) -> int | None: ...
    @property
    def oldest_transaction_timestamp(self) -> int | None: ...
    @property
    def end_offset(self) -> int: ...
    def set_high_watermark(self, offset: int) -> None: ...
    def set_end_offset(self, offset: int) -> None: ...
    def take_snapshot(self) -> int | None: ...
    def snapshots(self) -> dict[int, bytes]: ...
    def truncate_and_reload(self, log_start_offset: int, log_end_offset: int, now: int) -> None: ...
    def set_log_start_offset(self, offset: int) -> None: ...
    def truncate_fully_and_start_at(self, offset: int) -> None: ...
    def remove_expired_producers(self, now: int) -> None: ...
    def delete_snapshots_before(self, offset: int) -> None: ...
    def remove_stray_snapshots(self, segment_base_offsets: Sequence[int]) -> None: ...
