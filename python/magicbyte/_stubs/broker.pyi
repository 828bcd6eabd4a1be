"""A broker's treatment of the batches that it receives: used by `magicbyte.broker`."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal, Self, final

from magicbyte._stubs.state import AbortedTransaction, ProducerStateEntry
from magicbyte.broker import AppendConfig, AppendOrigin
from magicbyte.enums import IsolationLevel
from typing_extensions import Buffer

@final
@dataclass(frozen=True, init=False)
class AppendInfo:
    """The outcome of an append (Kafka's `LogAppendInfo`)."""

    records: bytes
    """The batches as they are stored."""
    first_offset: int | None
    """Offset of the first record; None for a follower's batches of magic 0 and 1, which do not carry it."""
    last_offset: int
    """Offset of the last record (inclusive)."""
    max_timestamp: int
    """The maximum timestamp (ms), or the append time if that replaces it; -1 if there is none."""
    offset_of_max_timestamp: int
    """Last offset of the first batch with the maximum timestamp; -1 if no batch has a timestamp."""
    log_append_time: int | None
    """The append time (ms), if the broker sets the topic's timestamps."""
    temporary_memory_bytes: int
    """Bytes of decompressed and of rewritten records, batch headers included."""
    records_converted: int
    """Records that were rewritten rather than checked in place."""

    def __new__(
        cls,
        records: bytes,
        first_offset: int | None,
        last_offset: int,
        max_timestamp: int,
        offset_of_max_timestamp: int,
        log_append_time: int | None,
        temporary_memory_bytes: int,
        records_converted: int,
    ) -> Self: ...
    def __iter__(self) -> Iterator[Any]: ...
    def __replace__(self, **changes: Any) -> Self: ...

@final
class AppendValidator:
    """Validates the appends of one topic and prepares them for storage; reuses its contexts.

    Raises:
        Error: for a configuration that no topic can have.
        OverflowError: for a setting outside of the range of its type.

    """

    def __new__(cls, config: AppendConfig | None = None) -> Self: ...
    @property
    def config(self) -> AppendConfig:
        """The topic's settings."""

    def validate(
        self,
        records: Buffer,
        *,
        next_offset: int = 0,
        leader_epoch: int = 0,
        origin: AppendOrigin = AppendOrigin.CLIENT,
        now: int | None = None,
    ) -> AppendInfo | None:
        """Checks `records`, whole batches as they were sent, by the rules of Kafka 4.3's `LogValidator`.

        Assigns offsets from `next_offset` on, the epoch and timestamps, in place if it can; a batch is
        rewritten if its codec or magic is not the topic's. A last batch that is cut off is dropped. Keys and
        values are not examined. Copies the records, in and out.

        Args:
            records: `bytes` or any C-contiguous buffer.
            next_offset: the log's end, the offset of the first record.
            leader_epoch: the leader's epoch; for a follower, the epoch it knows.
            origin: who appends.
            now: the broker's time (ms); None for the clock's.

        Returns:
            What is to be stored; None if there is no whole batch.

        Raises:
            AppendError: with Kafka's name of the error as `code`.
            ValueError: for an origin outside of 0 to 3.

        """

def check_produce_request(records: Buffer, version: int = 12) -> None:
    """Checks a partition's records as a broker does when it receives a produce request.

    From version 3 of the request on they must be exactly one batch of magic 2; zstd is allowed from version
    7 on. Only the framing is examined.

    Raises:
        AppendError: INVALID_RECORD, UNSUPPORTED_COMPRESSION_TYPE or CORRUPT_MESSAGE.

    """

@final
@dataclass(frozen=True, init=False)
class ProduceResponse:
    """A broker's answer to a producer."""

    base_offset: int
    """Offset of the first record; for a duplicate, its original offset. -1 for a follower's batches of magic
    0 and 1."""
    last_offset: int
    """Offset of the last record (inclusive)."""
    log_append_time: int
    """The append time (ms) if the broker sets the topic's timestamps, or a duplicate's maximum timestamp;
    otherwise -1."""
    log_start_offset: int
    """The first offset that consumers can see."""
    is_duplicate: bool
    """True if the batch was already in the log and is not stored again. A broker does not report this."""

    def __new__(
        cls,
        base_offset: int,
        last_offset: int,
        log_append_time: int,
        log_start_offset: int,
        is_duplicate: bool,
    ) -> Self: ...
    def __iter__(self) -> Iterator[Any]: ...
    def __replace__(self, **changes: Any) -> Self: ...

@final
@dataclass(frozen=True, init=False)
class FetchResponse:
    """A partition's part of a fetch response."""

    records: bytes
    """Batches as stored, starting with the batch of the requested offset. The first batch is whole, the last
    may be cut off."""
    high_watermark: int
    """The end of the log, as all replicas have everything."""
    last_stable_offset: int
    """The start of the first open transaction, or the end of the log."""
    log_start_offset: int
    """The first offset that consumers can see."""
    aborted_transactions: list[AbortedTransaction]
    """For `read_committed`: the aborted transactions that may have records in this response."""

    def __new__(
        cls,
        records: bytes,
        high_watermark: int,
        last_stable_offset: int,
        log_start_offset: int,
        aborted_transactions: list[AbortedTransaction],
    ) -> Self: ...
    def __iter__(self) -> Iterator[Any]: ...
    def __replace__(self, **changes: Any) -> Self: ...

@final
@dataclass(frozen=True, init=False)
class ListedOffset:
    """The answer to a look-up by time."""

    timestamp: int
    """The record's timestamp (ms); -1 for the start and the end of the log."""
    offset: int
    """The record's offset, or that of the start or the end."""
    leader_epoch: int
    """The leader epoch at this offset; -1 if it is not known."""

    def __new__(cls, timestamp: int, offset: int, leader_epoch: int) -> Self: ...
    def __iter__(self) -> Iterator[Any]: ...
    def __replace__(self, **changes: Any) -> Self: ...

@final
class PartitionSimulator:
    """A partition in memory that takes produce payloads and serves fetches as Kafka 4.3 does.

    For testing producers and consumers without a broker. Batches are checked and changed as by a broker:
    retries are recognised, gaps refused, old epochs fenced, transactions kept separate. The leader is the
    only replica. Nothing happens on its own: the `clock` only moves when it is set, transactions end with
    `end_transaction` and are not verified with a coordinator. Safe to use from several threads.

    >>> from magicbyte import RecordsBuilder
    >>> from magicbyte.broker import PartitionSimulator
    >>> partition = PartitionSimulator()
    >>> builder = RecordsBuilder(producer_id=7, producer_epoch=0, base_sequence=0)
    >>> builder.append(0, 0, b"key", b"value")
    >>> payload = builder.build()
    >>> partition.append(payload).base_offset, partition.append(payload).is_duplicate
    (0, True)
    >>> partition.fetch(0).high_watermark
    1

    Args:
        config: the topic's settings; None for Kafka's defaults.
        clock: the broker's time (ms).

    Raises:
        Error: for a configuration that no topic can have.
        OverflowError: for a setting outside of the range of its type.

    """

    def __new__(cls, config: AppendConfig | None = None, *, clock: int = 0) -> Self: ...
    @property
    def config(self) -> AppendConfig:
        """The topic's settings."""

    @property
    def clock(self) -> int:
        """The broker's time (ms). A producer without an open transaction is forgotten a day after its last
        batch.
        """

    @clock.setter
    def clock(self, now: int) -> None: ...
    def advance(self, ms: int) -> None:
        """Moves the clock forward.

        Raises:
            ValueError: if the clock would leave the range of 64 bits.

        """

    @property
    def leader_epoch(self) -> int:
        """The leader epoch, starting from 0."""

    @property
    def log_start_offset(self) -> int:
        """The first offset that consumers can see."""

    @property
    def last_stable_offset(self) -> int:
        """The start of the first open transaction, or the end of the log: the limit of `read_committed`."""

    @property
    def log_end_offset(self) -> int:
        """The offset of the next record, which is also the high watermark."""

    def append(
        self,
        records: Buffer,
        *,
        origin: AppendOrigin = AppendOrigin.CLIENT,
        produce_version: int | None = 12,
    ) -> ProduceResponse:
        """Appends a produce payload, or batches of another origin. Copies them.

        Args:
            records: `bytes` or any C-contiguous buffer.
            origin: who appends.
            produce_version: the request version by whose rules a client's payload is checked
                (`check_produce_request`); below 3, magic 0 and 1 are allowed. None skips these checks.

        Raises:
            AppendError: with the name of Kafka's error as `code`; nothing is stored.
            ValueError: for an origin outside of 0 to 3.

        """

    def end_transaction(
        self,
        producer_id: int,
        producer_epoch: int,
        committed: bool,
        *,
        coordinator_epoch: int = 0,
        transaction_version: int = 1,
    ) -> ProduceResponse:
        """Appends the marker that ends a producer's transaction, as its coordinator would.

        With `transaction_version` 2, the epoch is one above that of the transaction's batches.

        Raises:
            AppendError: INVALID_PRODUCER_EPOCH, TRANSACTION_COORDINATOR_FENCED.

        """

    def fetch(
        self, offset: int, max_bytes: int = 1 << 20, *, isolation_level: IsolationLevel = "read_uncommitted"
    ) -> FetchResponse:
        """Fetches batches from the one with this offset on: at most `max_bytes`, but the first one whole.

        It is for the consumer to skip records before `offset` and, with `read_committed`, aborted ones.

        Raises:
            AppendError: OFFSET_OUT_OF_RANGE before the start or past the end of the log.

        """

    def list_offsets(
        self,
        timestamp: int | Literal["earliest", "latest", "max_timestamp"],
        *,
        isolation_level: IsolationLevel = "read_uncommitted",
    ) -> ListedOffset | None:
        """Looks up the start or end of the log, the record with the largest timestamp, or the first record
        with this timestamp (ms) or a later one.

        None if there is no such record, or none that can be read at this isolation level.

        Raises:
            ValueError: for another name, a timestamp below -3, or an unknown isolation level.

        """

    def elect_leader(self) -> int:
        """Elects a new leader, whose epoch begins at the end of the log. Returns that epoch."""

    def truncate(self, offset: int) -> None:
        """Removes everything from this offset on, as a follower of a new leader does.

        A batch with the offset inside is removed as a whole.

        Raises:
            AppendError: OFFSET_OUT_OF_RANGE for a negative offset.

        """

    def delete_records(self, before_offset: int = -1) -> int:
        """Moves the start of the log to this offset, or to its end with -1. Returns the new start.

        Raises:
            AppendError: OFFSET_OUT_OF_RANGE, or POLICY_VIOLATION on a compacted topic.

        """

    @property
    def producers(self) -> list[ProducerStateEntry]:
        """The state of each producer, in order of first appearance."""
