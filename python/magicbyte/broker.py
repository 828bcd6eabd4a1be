"""What a broker does with batches that are sent to it: the checks and changes of an append.

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
from typing import TYPE_CHECKING

from magicbyte import _core
from magicbyte.enums import Compression, TimestampType
from magicbyte.errors import AppendError, RecordError

if TYPE_CHECKING:
    from typing_extensions import Buffer

__all__ = [
    "AppendConfig",
    "AppendError",
    "AppendInfo",
    "AppendOrigin",
    "AppendValidator",
    "RecordError",
    "check_produce_request",
    "validate_append",
]


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
        not looked at. Copies the records once.

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
