"""Converts batches: another magic, codec or level, merged, split, packed, or changed in place.

>>> import magicbyte
>>> from magicbyte.conversion import convert_batches
>>> old = magicbyte.RecordsBuilder(magic=1, compression=magicbyte.Compression.GZIP)
>>> old.append(7, 1_500_000_000_000, value=b"old")
>>> data, losses = convert_batches(old.build(), compression=magicbyte.Compression.ZSTD)
>>> (batch,) = magicbyte.read_batches(data)
>>> batch.magic, batch.compression.name, batch.last_offset, losses.any()
(2, 'ZSTD', 7, False)

All functions take a buffer of whole batches, of any magics, and return new `bytes`; the input is not
changed. Damage is never covered up: a batch with a wrong CRC or a bad record raises an error, since the new
batch would get a correct CRC. Errors name the byte, the batch and the record.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from magicbyte import _core
from magicbyte._core import Converter
from magicbyte.enums import TimestampType
from magicbyte.errors import Error

if TYPE_CHECKING:
    from typing_extensions import Buffer

__all__ = [
    "Converted",
    "Converter",
    "Losses",
    "convert_batches",
    "set_last_offset",
    "set_max_timestamp",
    "set_partition_leader_epoch",
    "set_producer_state",
]


class Losses(NamedTuple):
    """The data lost in a down-conversion, summed over the batches."""

    control_batches: int = 0
    """Batches of control records, left out entirely."""
    empty_batches: int = 0
    """Batches without records, left out."""
    producer_batches: int = 0
    """Batches that lost producer id, epoch and sequence."""
    transactional_batches: int = 0
    """Batches that are no longer part of a transaction: aborted records become visible to everyone."""
    delete_horizons: int = 0
    """Batches that lost their delete horizon."""
    headers: int = 0
    """Headers of records."""
    timestamps: int = 0
    """Timestamps other than -1, when converting to magic 0."""

    def any(self) -> bool:
        """True if anything was lost."""
        return any(self)


class Converted(NamedTuple):
    """Converted batches, and what the conversion lost."""

    data: bytes
    losses: Losses


def convert_batches(
    data: Buffer,
    *,
    magic: int = 2,
    compression: int | str | None = None,
    level: int | None = None,
    max_decompressed_bytes: int = _core.DEFAULT_MAX_DECOMPRESSED_BYTES,
) -> Converted:
    """Rewrites every batch of `data` with this magic, codec and level.

    Magic 2 is written as by Kafka 4's cleaner, and loses nothing; 1 and 0 as brokers up to 3.9 did for old
    consumers. Offsets, timestamps, keys and values stay the same. A batch that already has this magic, or a
    smaller one in a down-conversion, changes only its codec. For many calls, keep a `Converter`: it reuses
    its contexts.

    Args:
        data: whole batches of any magic.
        magic: 0, 1 or 2.
        compression: the codec to write, or its name; None keeps each batch's. zstd needs magic 2.
        level: the level of `compression`, as in `RecordsBuilder`; None for Kafka's default.
        max_decompressed_bytes: the limit for one batch after decompression.

    Raises:
        Error: `kind` "invalid_options" for another magic; for bytes that are not whole batches
            (`NeedMoreBytesError` if the last one is cut off), a wrong CRC, a bad record, or a codec or level
            that cannot be written.

    """
    if magic not in (0, 1, 2):
        raise Error(f"magic {magic}: expected 0, 1 or 2", "invalid_options")
    converter = Converter(compression, level, max_decompressed_bytes=max_decompressed_bytes)
    if magic == 2:
        return Converted(converter.up_convert(data), Losses())
    return Converted(*converter.down_convert(data, magic))


def set_last_offset(batch: Buffer, last_offset: int) -> bytes:
    """Shifts all offsets of one batch so that its last record has this offset, as a broker does.

    The CRC does not cover the offset and stays the same (`MutableRecordBatch.setLastOffset`). Makes a copy.

    Raises:
        Error: `kind` "invalid_options" for a magic 0 wrapper, whose inner offsets are absolute (see
            `Converter.assign_offsets`), "offset_out_of_range" if the base offset would be negative; also for
            bytes that are not exactly one batch.

    """
    return _core.set_last_offset(batch, last_offset)


def set_partition_leader_epoch(data: Buffer, epoch: int) -> bytes:
    """Sets the leader epoch of every batch, which the CRC does not cover. Makes a copy.

    Raises:
        Error: `kind` "invalid_options" below magic 2; also for bytes that are not whole batches.

    """
    return _core.set_partition_leader_epoch(data, epoch)


def set_max_timestamp(data: Buffer, timestamp_type: TimestampType, max_timestamp: int) -> bytes:
    """Sets the timestamp type and the largest timestamp (ms; -1 for none) of every batch.

    With LOG_APPEND_TIME the largest timestamp is that of every record. A batch that already has both is not
    changed; in others, the attributes keep only the bits that Kafka knows, and the CRC is recomputed
    (`MutableRecordBatch.setMaxTimestamp`). Makes a copy.

    Raises:
        Error: for a batch with a wrong CRC, for magic 0 and for NO_TIMESTAMP_TYPE (`kind`
            "invalid_options"), and for bytes that are not whole batches.

    """
    return _core.set_max_timestamp(data, TimestampType(timestamp_type), max_timestamp)


def set_producer_state(
    batch: Buffer,
    producer_id: int,
    producer_epoch: int,
    base_sequence: int,
    *,
    is_transactional: bool = False,
) -> bytes:
    """Sets the producer of one batch, its first sequence, and whether it belongs to a transaction.

    A producer does so with a batch that it sends again after its epoch was bumped (KIP-360,
    `ProducerBatch.resetProducerState`). The records are not decoded; the CRC is recomputed. -1 is for none.
    Makes a copy.

    Raises:
        Error: for a batch with a wrong CRC; `kind` "invalid_options" below magic 2, for fields that Kafka
            does not combine, and for a control batch that would enter or leave a transaction; also for bytes
            that are not exactly one batch.

    """
    return _core.set_producer_state(batch, producer_id, producer_epoch, base_sequence, is_transactional)
