"""A broker's treatment of the batches that it receives: validating appends, and simulating a partition.

>>> from magicbyte import RecordsBuilder
>>> from magicbyte.broker import validate_append
>>> builder = RecordsBuilder()
>>> builder.append(0, 1000, b"key", b"value")
>>> info = validate_append(builder.build(), next_offset=40, now=2000)
>>> info.first_offset, info.last_offset, info.max_timestamp
(40, 40, 1000)
"""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass
from enum import IntEnum
from typing import TYPE_CHECKING, Literal, NamedTuple

from magicbyte import _core
from magicbyte.enums import Compression, IsolationLevel, TimestampType
from magicbyte.errors import AppendError, RecordError
from magicbyte.state import AbortedTransaction, ProducerStateEntry, producer_entry_of

if TYPE_CHECKING:
    from typing_extensions import Buffer

__all__ = [
    "AppendConfig",
    "AppendError",
    "AppendInfo",
    "AppendOrigin",
    "AppendValidator",
    "FetchResponse",
    "ListedOffset",
    "PartitionSimulator",
    "ProduceResponse",
    "RecordError",
    "check_produce_request",
    "validate_append",
]


class AppendOrigin(IntEnum):
    """The origin of an append (Kafka's `AppendOrigin`), which determines the checks."""

    REPLICATION = 0
    """A follower, which takes its leader's batches as they are."""
    COORDINATOR = 1
    """A group or transaction coordinator, which may write control batches."""
    CLIENT = 2
    """A producer."""
    RAFT_LEADER = 3
    """The leader of the metadata log, which assigns offsets and epochs itself."""


@dataclass(frozen=True, kw_only=True)
class AppendConfig:
    """The topic settings that affect an append; the defaults are Kafka's."""

    max_message_bytes: int = 1_048_588
    """The maximum size of a batch in bytes, both as sent and as stored."""
    segment_bytes: int = 1 << 30
    """The maximum size of an append in bytes."""
    compacted: bool = False
    """True if `cleanup.policy` includes `compact`: every record then needs a key."""
    message_timestamp_type: TimestampType = TimestampType.CREATE_TIME
    """The clock that sets timestamps: the producer's or the broker's."""
    message_timestamp_before_max_ms: int = 2**63 - 1
    """The limit (ms) for a timestamp in the past, relative to the broker's time."""
    message_timestamp_after_max_ms: int = 3_600_000
    """The limit (ms) for a timestamp in the future, relative to the broker's time."""
    compression: Compression | None = None
    """The codec that batches are stored with; None keeps the producer's (`compression.type=producer`)."""
    level: int | None = None
    """The codec's level; None for Kafka's default."""
    message_format: int = 2
    """The magic that is stored: 2, or 0 or 1 as in brokers up to 3.9 with `message.format.version`."""
    max_decompressed_bytes: int = _core.DEFAULT_MAX_DECOMPRESSED_BYTES
    """The limit for one batch after decompression. Kafka has no such limit."""

    def _fields(self) -> dict[str, int | bool | None]:
        fields = asdict(self)
        fields["log_append_time"] = fields.pop("message_timestamp_type") == TimestampType.LOG_APPEND_TIME
        for bound in ("timestamp_before_max_ms", "timestamp_after_max_ms"):
            fields[bound] = fields.pop(f"message_{bound}")
        return fields


@dataclass(frozen=True)
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


class AppendValidator:
    """Validates the appends of one topic and prepares them for storage; reuses its contexts.

    Raises:
        Error: for a configuration that no topic can have.

    """

    def __init__(self, config: AppendConfig | None = None) -> None:
        self.config = config or AppendConfig()
        """The topic's settings."""
        self._core = _core.AppendValidatorCore(self.config._fields())

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
            records: any object with the buffer protocol over bytes.
            next_offset: the log's end, the offset of the first record.
            leader_epoch: the leader's epoch; for a follower, the epoch it knows.
            origin: who appends.
            now: the broker's time (ms); None for the clock's.

        Returns:
            What is to be stored; None if there is no whole batch.

        Raises:
            AppendError: with Kafka's name of the error as `code`.

        """
        now = time.time_ns() // 1_000_000 if now is None else now
        validated = self._core.validate(records, int(origin), next_offset, leader_epoch, now)
        if validated is None:
            return None
        stored, fields = validated
        return AppendInfo(stored, *fields)


def validate_append(
    records: Buffer,
    config: AppendConfig | None = None,
    *,
    next_offset: int = 0,
    leader_epoch: int = 0,
    origin: AppendOrigin = AppendOrigin.CLIENT,
    now: int | None = None,
) -> AppendInfo | None:
    """Validates a single append: see `AppendValidator.validate`."""
    validator = AppendValidator(config)
    return validator.validate(
        records, next_offset=next_offset, leader_epoch=leader_epoch, origin=origin, now=now
    )


def check_produce_request(records: Buffer, version: int = 12) -> None:
    """Checks a partition's records as a broker does when it receives a produce request.

    From version 3 of the request on they must be exactly one batch of magic 2; zstd is allowed from version
    7 on. Only the framing is examined.

    Raises:
        AppendError: INVALID_RECORD, UNSUPPORTED_COMPRESSION_TYPE or CORRUPT_MESSAGE.

    """
    _core.check_produce_request(records, version)


@dataclass(frozen=True)
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


@dataclass(frozen=True)
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


class ListedOffset(NamedTuple):
    """The answer to a look-up by time."""

    timestamp: int
    """The record's timestamp (ms); -1 for the start and the end of the log."""
    offset: int
    leader_epoch: int
    """The leader epoch at this offset; -1 if it is not known."""


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

    """

    def __init__(self, config: AppendConfig | None = None, *, clock: int = 0) -> None:
        self.config = config or AppendConfig()
        """The topic's settings."""
        self._core = _core.PartitionSimulatorCore(self.config._fields())
        self.clock = clock

    @property
    def clock(self) -> int:
        """The broker's time (ms). A producer without an open transaction is forgotten a day after its last
        batch.
        """
        return self._core.now

    @clock.setter
    def clock(self, now: int) -> None:
        self._core.set_now(now)

    def advance(self, ms: int) -> None:
        """Moves the clock forward."""
        self.clock += ms

    @property
    def leader_epoch(self) -> int:
        """The leader epoch, starting from 0."""
        return self._core.leader_epoch

    @property
    def log_start_offset(self) -> int:
        """The first offset that consumers can see."""
        return self._core.log_start_offset

    @property
    def last_stable_offset(self) -> int:
        """The start of the first open transaction, or the end of the log: the limit of `read_committed`."""
        return self._core.last_stable_offset

    @property
    def log_end_offset(self) -> int:
        """The offset of the next record, which is also the high watermark."""
        return self._core.log_end_offset

    def append(
        self,
        records: Buffer,
        *,
        origin: AppendOrigin = AppendOrigin.CLIENT,
        produce_version: int | None = 12,
    ) -> ProduceResponse:
        """Appends a produce payload, or batches of another origin. Copies them.

        Args:
            records: any object with the buffer protocol over bytes.
            origin: who appends.
            produce_version: the request version by whose rules a client's payload is checked
                (`check_produce_request`); below 3, magic 0 and 1 are allowed. None skips these checks.

        Raises:
            AppendError: with the name of Kafka's error as `code`; nothing is stored.

        """
        if origin is AppendOrigin.CLIENT and produce_version is not None:
            return self._response(self._core.produce(records, produce_version))
        return self._response(self._core.append(records, int(origin)))

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
        ended = self._core.end_transaction(
            producer_id, producer_epoch, committed, coordinator_epoch, transaction_version
        )
        return self._response(ended)

    def fetch(
        self, offset: int, max_bytes: int = 1 << 20, *, isolation_level: IsolationLevel = "read_uncommitted"
    ) -> FetchResponse:
        """Fetches batches from the one with this offset on: at most `max_bytes`, but the first one whole.

        It is for the consumer to skip records before `offset` and, with `read_committed`, aborted ones.

        Raises:
            AppendError: OFFSET_OUT_OF_RANGE before the start or past the end of the log.

        """
        records, high_watermark, last_stable_offset, log_start_offset, aborted = self._core.fetch(
            offset, max_bytes, isolation_level
        )
        transactions = [AbortedTransaction(*one) for one in aborted]
        return FetchResponse(records, high_watermark, last_stable_offset, log_start_offset, transactions)

    def list_offsets(
        self,
        timestamp: int | Literal["earliest", "latest", "max_timestamp"],
        *,
        isolation_level: IsolationLevel = "read_uncommitted",
    ) -> ListedOffset | None:
        """Looks up the start or end of the log, the record with the largest timestamp, or the first record
        with this timestamp (ms) or a later one.

        None if there is no such record, or none that can be read at this isolation level.
        """
        if isinstance(timestamp, str):
            timestamp = {"latest": -1, "earliest": -2, "max_timestamp": -3}[timestamp]
        listed = self._core.list_offset(timestamp, isolation_level)
        return None if listed is None else ListedOffset(*listed)

    def elect_leader(self) -> int:
        """Elects a new leader, whose epoch begins at the end of the log. Returns that epoch."""
        return self._core.elect_leader()

    def truncate(self, offset: int) -> None:
        """Removes everything from this offset on, as a follower of a new leader does.

        A batch with the offset inside is removed as a whole.

        Raises:
            AppendError: OFFSET_OUT_OF_RANGE for a negative offset.

        """
        self._core.truncate(offset)

    def delete_records(self, before_offset: int = -1) -> int:
        """Moves the start of the log to this offset, or to its end with -1. Returns the new start.

        Raises:
            AppendError: OFFSET_OUT_OF_RANGE, or POLICY_VIOLATION on a compacted topic.

        """
        return self._core.delete_records(before_offset)

    @property
    def producers(self) -> list[ProducerStateEntry]:
        """The state of each producer, in order of first appearance."""
        return [producer_entry_of(*fields) for fields in self._core.producers()]

    def _response(self, appended: tuple[_core._AppendInfo, bool]) -> ProduceResponse:
        (first_offset, last_offset, _, _, time, *_), is_duplicate = appended
        return ProduceResponse(
            -1 if first_offset is None else first_offset,
            last_offset,
            -1 if time is None else time,
            self.log_start_offset,
            is_duplicate,
        )
