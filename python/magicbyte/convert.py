"""Batches to batches: another magic, codec or level, merged, split, packed, or changed in place.

>>> import magicbyte
>>> from magicbyte.convert import convert_batches
>>> old = magicbyte.RecordsBuilder(magic=1, compression=magicbyte.Compression.GZIP)
>>> old.append(7, 1_500_000_000_000, value=b"old")
>>> data, losses = convert_batches(old.build(), compression=magicbyte.Compression.ZSTD)
>>> (batch,) = magicbyte.read_batches(data)
>>> batch.magic, batch.compression.name, batch.last_offset, losses.any()
(2, 'ZSTD', 7, False)

All here take a buffer of whole batches, one after another and of mixed magics, and give new `bytes`; the
input stays. Nothing is written over damage: a batch whose CRC does not hold, or of whose records one is
bad, raises, since it would get a CRC that holds. Errors name the byte, the batch and the record.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from magicbyte import _core
from magicbyte._core import Converter
from magicbyte.enums import TimestampType

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
]


class Losses(NamedTuple):
    """What a down-conversion could not carry over, summed over the batches."""

    control_batches: int = 0
    """Batches of control records, left out altogether."""
    empty_batches: int = 0
    """Batches without records, left out."""
    producer_batches: int = 0
    """Batches that lost producer id, epoch and sequence."""
    transactional_batches: int = 0
    """Batches that are no longer part of a transaction: aborted records are seen by everybody."""
    delete_horizons: int = 0
    """Batches that lost their delete horizon."""
    headers: int = 0
    """Headers of records."""
    timestamps: int = 0
    """Timestamps other than -1, towards magic 0."""

    def any(self) -> bool:
        """Whether anything was lost."""
        return any(self)


class Converted(NamedTuple):
    """Batches in their new form, and what it has no room for."""

    data: bytes
    losses: Losses


def convert_batches(
    data: Buffer,
    *,
    magic: int = 2,
    compression: int | None = None,
    level: int | None = None,
    max_decompressed_bytes: int = _core.DEFAULT_MAX_DECOMPRESSED_BYTES,
) -> Converted:
    """Writes every batch of `data` with this magic, codec and level.

    To magic 2 as Kafka 4's cleaner writes it, with nothing dropped; to 1 and 0 as brokers up to 3.9 did
    for old consumers. Offsets, timestamps, keys and values stay. A batch that has this magic, or going down
    a smaller one, keeps all it has but its codec. For many calls, keep a `Converter`: it reuses contexts.

    Args:
        data: whole batches of any magic.
        magic: 0, 1 or 2.
        compression: the codec to write; None keeps each batch's. zstd needs magic 2.
        level: of `compression`, as in `RecordsBuilder`; None for Kafka's default.
        max_decompressed_bytes: refuses a batch that decompresses to more.

    Raises:
        Error: for bytes that are no whole batches (`kind` "need_more_bytes" for a cut last one), a wrong
            CRC, a bad record, a codec or level that cannot be written. Nothing is returned then.

    """
    converter = Converter(compression, level, max_decompressed_bytes=max_decompressed_bytes)
    if magic == 2:
        return Converted(converter.up_convert(data), Losses())
    return Converted(*converter.down_convert(data, magic))


def set_last_offset(batch: Buffer, last_offset: int) -> bytes:
    """Moves one batch so that its last record has this offset, as a broker does; all its offsets follow.

    The CRC does not cover the offset and stays (`MutableRecordBatch.setLastOffset`). Costs a copy.

    Raises:
        Error: `kind` "invalid_options" for a magic 0 wrapper, whose offsets inside are absolute (see
            `Converter.assign_offsets`), "offset_out_of_range" if the base offset would be negative; for bytes
            that are not exactly one batch.

    """
    return _core.set_last_offset(batch, last_offset)


def set_partition_leader_epoch(data: Buffer, epoch: int) -> bytes:
    """Sets the leader epoch of every batch, which the CRC does not cover. Costs a copy.

    Raises:
        Error: `kind` "invalid_options" below magic 2; for bytes that are no whole batches.

    """
    return _core.set_partition_leader_epoch(data, epoch)


def set_max_timestamp(data: Buffer, timestamp_type: TimestampType, max_timestamp: int) -> bytes:
    """Sets what the timestamps of every batch mean, and the largest (ms, -1 for none).

    Under LOG_APPEND_TIME the largest is every record's. A batch that has both already stays as it is; else
    its attributes keep only the bits that Kafka knows and the CRC is computed anew
    (`MutableRecordBatch.setMaxTimestamp`). Costs a copy.

    Raises:
        Error: for a batch whose CRC does not hold, for magic 0 and NO_TIMESTAMP_TYPE (`kind`
            "invalid_options"), for bytes that are no whole batches.

    """
    return _core.set_max_timestamp(data, TimestampType(timestamp_type), max_timestamp)
