"""An experimental magic 3: KIP-931 and further ideas, each a switch, to be measured.

No broker or client reads it.

>>> import magicbyte
>>> from magicbyte import magic3
>>> builder = magicbyte.RecordsBuilder()
>>> builder.append(7, 1_500_000_000_000, value=b"new")
>>> batch = builder.build()
>>> draft = magic3.encode(batch, magic3.KIP_931 | magic3.Idea.TWO_SECTIONS)
>>> len(draft) < len(batch), magic3.to_magic_2(draft) == batch
(True, True)
>>> magic3.validate(draft)[0].records
1

Nothing else in magicbyte reads or writes it: `read_batches` and every command refuse magic 3, but for
`magicbyte annotate --experimental-v3`. docs/study.md has what the ideas cost and save.
"""

from __future__ import annotations

import json
from enum import IntFlag
from typing import TYPE_CHECKING, NamedTuple, cast

from magicbyte import _core
from magicbyte.enums import Compression
from magicbyte.lab import Comparison

if TYPE_CHECKING:
    from typing_extensions import Buffer

__all__ = ["KIP_931", "Idea", "Validated", "compare", "encode", "to_magic_2", "validate"]


class Idea(IntFlag):
    """A change to the format: a bit of a batch's attributes."""

    NO_RECORD_ATTRIBUTES = 1 << 7
    """Records have no attributes. A batch with a record whose attributes are not 0 keeps them."""
    TAGGED_FIELDS = 1 << 8
    """A count of tagged fields, and the fields, follow the batch header, as in Kafka's protocol; there are
    none yet."""
    BOTH_TIMESTAMPS = 1 << 9
    """The append time is a field of its own, and records keep the time that the producer gave them."""
    BATCH_HEADERS = 1 << 10
    """The headers that all records begin with are in the batch, and not in the records."""
    FIELDS_FIRST = 1 << 11
    """Timestamps, offsets and lengths of all records come first, then their keys, values and headers; one
    stream is compressed."""
    TWO_SECTIONS = 1 << 12
    """The order of `FIELDS_FIRST`, but each part is compressed separately."""


KIP_931 = Idea.NO_RECORD_ATTRIBUTES
"""The proposal as written; its other changes to batch headers are not switches."""


class Validated(NamedTuple):
    """Facts from the fields of a batch's records."""

    records: int
    max_timestamp: int
    """The maximum timestamp of a record (ms); the minimum int64 if there is none."""
    null_keys: int
    """Records without a key, which compacted topics refuse."""
    decompressed: int
    """Bytes that were decompressed for this."""


def encode(
    batches: Buffer,
    ideas: Idea = KIP_931,
    *,
    compression: Compression = Compression.NONE,
    level: int | None = None,
) -> bytes:
    """Writes whole batches of magic 2 as experimental ones. Nothing is lost.

    Raises:
        Error: damage, and batches of another magic.

    """
    return _core.magic3_encode(batches, ideas, compression, level=level)


def to_magic_2(
    batches: Buffer, *, max_decompressed_bytes: int = _core.DEFAULT_MAX_DECOMPRESSED_BYTES
) -> bytes:
    """Writes experimental batches as magic 2, each with its codec at Kafka's default level.

    Raises:
        Error: damage, and batches of another magic.

    """
    return _core.magic3_to_magic_2(batches, max_decompressed_bytes=max_decompressed_bytes)


def validate(
    batches: Buffer, *, max_decompressed_bytes: int = _core.DEFAULT_MAX_DECOMPRESSED_BYTES
) -> list[Validated]:
    """Checks each experimental batch as a broker checks a producer's batch: the CRC, consecutive offsets,
    timestamps, keys. With the fields of records first, this decompresses little.

    Raises:
        Error: damage, offsets that are not consecutive, and batches of another magic.

    """
    found = _core.magic3_validate(batches, max_decompressed_bytes=max_decompressed_bytes)
    return [Validated(*one) for one in found]


def compare(
    batches: Buffer,
    magic: int,
    ideas: Idea = KIP_931,
    *,
    compression: Compression = Compression.NONE,
    level: int | None = None,
) -> Comparison:
    """Writes uncompressed batches of magic 2 in magic 0, 1, 2, or 3 with `ideas`, reads and validates them.

    Returns bytes and times, each of one pass on one core.

    Raises:
        Error: damage, offsets of a batch that are not consecutive, a codec that the magic lacks.

    """
    text = _core.compare_format(batches, magic, ideas if magic == 3 else 0, compression, level=level)
    return cast(Comparison, json.loads(text))
