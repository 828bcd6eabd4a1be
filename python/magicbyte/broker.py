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

from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING

from magicbyte._core import (
    DEFAULT_MAX_DECOMPRESSED_BYTES,
    AppendInfo,
    AppendValidator,
    FetchResponse,
    ListedOffset,
    PartitionSimulator,
    ProduceResponse,
    check_produce_request,
)
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
    max_decompressed_message_bytes: int = 2**31 - 9
    """The maximum size of a record in a compressed batch, in bytes, as its size field has it (Kafka 4.4)."""
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
    max_decompressed_bytes: int = DEFAULT_MAX_DECOMPRESSED_BYTES
    """The limit for one batch after decompression. Kafka has no such limit."""


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
