"""What a broker does with batches that are sent to it: the checks and changes of an append, and a partition.

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
from magicbyte.enums import Compression, TimestampType
from magicbyte.errors import AppendError, RecordError

if TYPE_CHECKING:
    from typing_extensions import Buffer

__all__ = [
    "AbortedTransaction",
    "AppendConfig",
    "AppendError",
    "AppendInfo",
    "AppendOrigin",
    "AppendValidator",
    "FetchResponse",
    "ListedOffset",
    "PartitionSimulator",
    "ProduceResponse",
    "ProducerState",
    "RecordError",
    "check_produce_request",
    "validate_append",
]

IsolationLevel = Literal["read_uncommitted", "read_committed"]


class AppendOrigin(IntEnum):
    """Who appends (Kafka's `AppendOrigin`): what is checked differs."""

    REPLICATION = 0
    """A follower takes its leader's batches as they are."""
    COORDINATOR = 1
    """A coordinator of groups or transactions, which may write control batches."""
    CLIENT = 2
    """A producer."""
    RAFT_LEADER = 3
    """The leader of the metadata log, which gives offsets and epochs itself."""


@dataclass(frozen=True, kw_only=True)
class AppendConfig:
    """The settings of a topic that its leader's checks look at; the defaults are Kafka's."""

    max_message_bytes: int = 1_048_588
    """The most bytes a batch may have, before and after it was written anew."""
    segment_bytes: int = 1 << 30
    """The most bytes an append may have."""
    compacted: bool = False
    """Whether `cleanup.policy` has `compact`: then every record needs a key."""
    message_timestamp_type: TimestampType = TimestampType.CREATE_TIME
    """Whose clock counts."""
    message_timestamp_before_max_ms: int = 2**63 - 1
    """How far in the past a timestamp may lie."""
    message_timestamp_after_max_ms: int = 3_600_000
    """How far in the future."""
    compression: Compression | None = None
    """The codec that batches are stored with; None for the producer's (`compression.type=producer`)."""
    level: int | None = None
    """The codec's level; None for Kafka's default."""
    message_format: int = 2
    """The magic to be stored: 2, or 0 or 1 as brokers up to 3.9 did by `message.format.version`."""
    max_decompressed_bytes: int = _core.DEFAULT_MAX_DECOMPRESSED_BYTES
    """The most bytes a batch may decompress to. Kafka has no such limit."""

    def _fields(self) -> dict[str, int | bool | None]:
        fields = asdict(self)
        fields["log_append_time"] = fields.pop("message_timestamp_type") == TimestampType.LOG_APPEND_TIME
        for bound in ("timestamp_before_max_ms", "timestamp_after_max_ms"):
            fields[bound] = fields.pop(f"message_{bound}")
        return fields


@dataclass(frozen=True)
class AppendInfo:
    """What an append became (Kafka's `LogAppendInfo`)."""

    records: bytes
    """The batches as they are stored."""
    first_offset: int | None
    """Offset of the first record; None for a follower's batches of magic 0 and 1, which do not tell."""
    last_offset: int
    """Offset of the last record (inclusive)."""
    max_timestamp: int
    """The largest timestamp (ms), -1 for none; the append time where that stands for it."""
    offset_of_max_timestamp: int
    """Last offset of the first batch with the largest timestamp, -1 if no batch has one."""
    log_append_time: int | None
    """The append time (ms), if the topic's timestamps are the broker's."""
    temporary_memory_bytes: int
    """Bytes of decompressed and of newly written records, headers of their batches included."""
    records_converted: int
    """Records that were written anew, as against checked where they stand."""


class AppendValidator:
    """Checks the appends of one topic and makes of them what is stored; contexts are kept between them.

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

        Offsets from `next_offset` on, the epoch and timestamps are set where the batch stands; with another
        codec or magic than the topic's it is written anew. A cut last batch is cut off. Keys and values are
        not looked at. Copies the records, in and out.

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
    """As [`AppendValidator.validate`], for a single append."""
    validator = AppendValidator(config)
    return validator.validate(
        records, next_offset=next_offset, leader_epoch=leader_epoch, origin=origin, now=now
    )


def check_produce_request(records: Buffer, version: int = 12) -> None:
    """Checks a partition's records as a broker does when a produce request comes in.

    From version 3 of the request on there is exactly one batch, of magic 2; zstd from version 7 on. Only
    framing is looked at.

    Raises:
        AppendError: INVALID_RECORD, UNSUPPORTED_COMPRESSION_TYPE or CORRUPT_MESSAGE.

    """
    _core.check_produce_request(records, version)


@dataclass(frozen=True)
class ProduceResponse:
    """What a broker answers a producer."""

    base_offset: int
    """Offset of the first record; of a duplicate, what it was the first time. -1 for a follower's batches of
    magic 0 and 1."""
    last_offset: int
    """Offset of the last record (inclusive)."""
    log_append_time: int
    """The append time (ms) if the topic's timestamps are the broker's, of a duplicate its largest timestamp;
    else -1."""
    log_start_offset: int
    """The first offset that consumers can see."""
    is_duplicate: bool
    """The batch was in the log already and is not stored again. A broker does not tell this."""


class AbortedTransaction(NamedTuple):
    """An aborted transaction, as a fetch response names it."""

    producer_id: int
    """The producer."""
    first_offset: int
    """Offset of the transaction's first record."""


@dataclass(frozen=True)
class FetchResponse:
    """A partition's part of a fetch response."""

    records: bytes
    """Batches as stored, from the one with the asked offset on: the first whole, the last possibly cut."""
    high_watermark: int
    """The log's end: all replicas have everything."""
    last_stable_offset: int
    """Where the first open transaction begins, else the log's end."""
    log_start_offset: int
    """The first offset that consumers can see."""
    aborted_transactions: list[AbortedTransaction]
    """For `read_committed`: the aborted transactions that may have records here."""


class ListedOffset(NamedTuple):
    """An offset that was asked for by time."""

    timestamp: int
    """The record's timestamp (ms); -1 for the log's start and end."""
    offset: int
    """The offset."""
    leader_epoch: int
    """The leader's epoch there, -1 if it is not known."""


class ProducerState(NamedTuple):
    """What a broker knows of a producer."""

    producer_id: int
    producer_epoch: int
    last_sequence: int
    """Of its last record, -1 for none."""
    last_offset: int
    """Of its last record, -1 for none."""
    last_timestamp: int
    """Time (ms) of its last batch or marker."""
    coordinator_epoch: int
    """Epoch of the coordinator that wrote its last marker, -1 for none."""
    current_txn_first_offset: int | None
    """Where its open transaction began, if one is open."""


class PartitionSimulator:
    """A partition in memory that takes produce payloads and serves fetches as Kafka 4.3 does.

    For tests of producers and consumers without a broker: batches are checked and changed as a broker does,
    retries are recognised, gaps refused, old epochs fenced, transactions kept apart. The leader is the
    only replica. Nothing happens by itself: the `clock` stands still until it is set, transactions end by
    `end_transaction`, and are not verified with a coordinator. Safe to use from several threads.

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
        config: the topic's settings; Kafka's defaults if left out.
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
        """The broker's time (ms). A day after its last batch a producer without transaction is forgotten."""
        return self._core.now

    @clock.setter
    def clock(self, now: int) -> None:
        self._core.set_now(now)

    def advance(self, ms: int) -> None:
        """Moves the clock on."""
        self.clock += ms

    @property
    def leader_epoch(self) -> int:
        """The leader's epoch, from 0."""
        return self._core.leader_epoch

    @property
    def log_start_offset(self) -> int:
        """The first offset that consumers can see."""
        return self._core.log_start_offset

    @property
    def last_stable_offset(self) -> int:
        """Where the first open transaction begins, else the log's end: how far `read_committed` reads."""
        return self._core.last_stable_offset

    @property
    def log_end_offset(self) -> int:
        """The offset of the next record; also the high watermark."""
        return self._core.log_end_offset

    def append(
        self,
        records: Buffer,
        *,
        origin: AppendOrigin = AppendOrigin.CLIENT,
        produce_version: int | None = 12,
    ) -> ProduceResponse:
        """Takes a produce payload, or another origin's batches. Copies them.

        Args:
            records: any object with the buffer protocol over bytes.
            origin: who appends.
            produce_version: a client's request is checked by the rules of this version
                (`check_produce_request`); below 3 it may have magic 0 and 1. None for no such checks.

        Raises:
            AppendError: with the name of Kafka's error as `code`; nothing is stored.

        """
        if origin is AppendOrigin.CLIENT and produce_version is not None:
            return self._answer(self._core.produce(records, produce_version))
        return self._answer(self._core.append(records, int(origin)))

    def end_transaction(
        self,
        producer_id: int,
        producer_epoch: int,
        committed: bool,
        *,
        coordinator_epoch: int = 0,
        transaction_version: int = 1,
    ) -> ProduceResponse:
        """Appends the marker that ends a producer's transaction, as its coordinator does.

        With `transaction_version` 2 the epoch is one higher than that of the transaction's batches.

        Raises:
            AppendError: INVALID_PRODUCER_EPOCH, TRANSACTION_COORDINATOR_FENCED.

        """
        ended = self._core.end_transaction(
            producer_id, producer_epoch, committed, coordinator_epoch, transaction_version
        )
        return self._answer(ended)

    def fetch(
        self, offset: int, max_bytes: int = 1 << 20, *, isolation_level: IsolationLevel = "read_uncommitted"
    ) -> FetchResponse:
        """Batches from the one with this offset on: at most `max_bytes`, but the first whole.

        A consumer leaves out records before `offset` and, with `read_committed`, aborted ones.

        Raises:
            AppendError: OFFSET_OUT_OF_RANGE before the log's start or behind its end.

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
        """The log's start, its end, the record with the largest timestamp, or the first that is not older.

        None if no record has such a timestamp, or none that can be read at this isolation level.
        """
        if isinstance(timestamp, str):
            timestamp = {"latest": -1, "earliest": -2, "max_timestamp": -3}[timestamp]
        listed = self._core.list_offset(timestamp, isolation_level)
        return None if listed is None else ListedOffset(*listed)

    def elect_leader(self) -> int:
        """A new leader: the next epoch begins where the log ends. Gives it."""
        return self._core.elect_leader()

    def truncate(self, offset: int) -> None:
        """Drops what stands at this offset and behind it, as a follower of a new leader does.

        Of a batch with the offset inside all goes.

        Raises:
            AppendError: OFFSET_OUT_OF_RANGE for a negative offset.

        """
        self._core.truncate(offset)

    def delete_records(self, before_offset: int = -1) -> int:
        """Moves the log's start to this offset, or with -1 to its end; gives the log's start.

        Raises:
            AppendError: OFFSET_OUT_OF_RANGE, or POLICY_VIOLATION on a compacted topic.

        """
        return self._core.delete_records(before_offset)

    @property
    def producers(self) -> list[ProducerState]:
        """What is known of each producer, in the order in which they appeared."""
        return [ProducerState(*fields) for fields in self._core.producers()]

    def _answer(self, appended: tuple[_core._AppendInfo, bool]) -> ProduceResponse:
        (first_offset, last_offset, _, _, time, *_), is_duplicate = appended
        return ProduceResponse(
            -1 if first_offset is None else first_offset,
            last_offset,
            -1 if time is None else time,
            self.log_start_offset,
            is_duplicate,
        )
