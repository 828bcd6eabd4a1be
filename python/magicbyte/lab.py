"""The size of batches, today and in other formats: `cost`, and the types of reports on costs.

>>> import magicbyte
>>> from magicbyte import lab
>>> builder = magicbyte.RecordsBuilder(compression="zstd")
>>> for offset in range(1000):
...     builder.append(offset, 1_700_000_000_000, value=b"on" if offset % 3 else b"off")
>>> found = lab.cost(builder.build())
>>> found["decompressed"]["records"]["values"], found["decompressed"]["records"]["offsets"]
(2334, 1936)

One row for each batch of a log, as an Arrow table with a column of structs for each part:
`pyarrow.Table.from_pylist([lab.cost(batch.to_bytes()) for batch in log.batches()])`.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Literal, TypedDict, cast

from magicbyte import _core
from magicbyte.model import ChunkResult, Problem

if TYPE_CHECKING:
    from typing_extensions import Buffer

__all__ = [
    "ChunkCost",
    "Cost",
    "CostReport",
    "DictionaryTrial",
    "FieldBytes",
    "Format",
    "Tally",
    "Trial",
    "Window",
    "cost",
]

Format = Literal["magic_0", "magic_1", "magic_2", "kip_931"]
"""A format whose costs are known. KIP-931, which was discarded, is magic 2 with smaller headers of records
and batches."""


class FieldBytes(TypedDict):
    """Bytes by what they hold."""

    offsets: int
    """Offsets, offset deltas, and the last offset delta of a batch."""
    sizes: int
    """Sizes of batches, messages and records."""
    crcs: int
    magic: int
    attributes: int
    timestamps: int
    """Timestamps and timestamp deltas."""
    leader_epoch: int
    producer: int
    """Producer id, producer epoch and base sequence."""
    records_count: int
    key_lengths: int
    value_lengths: int
    header_lengths: int
    """The number of headers, and the lengths of their keys and values."""
    keys: int
    values: int
    header_keys: int
    header_values: int
    padding: int
    """Bytes that no field needs: varints longer than the shortest form, and what follows the last field."""


class Cost(TypedDict):
    """The bytes of some batches in one format, uncompressed."""

    batches: FieldBytes
    """Batch headers; of magic 0 and 1, the wrappers of compressed messages."""
    records: FieldBytes


class Tally(TypedDict):
    """Sums over batches and records, from which their size in every format follows. Lengths and deltas are
    bytes.
    """

    batches: int
    compressed_batches: int
    records: int
    headers: int
    keys: int
    values: int
    header_keys: int
    header_values: int
    lengths: int
    lengths_without_attributes: int
    timestamp_deltas: int
    offset_deltas: int
    key_lengths: int
    value_lengths: int
    header_lengths: int
    base_timestamps: int
    max_timestamps: int
    last_offset_deltas: int
    padding: int
    stored: int


class ChunkCost(TypedDict):
    """The costs of a chunk's batches."""

    result: ChunkResult
    problems: list[Problem]
    """The first `LISTED` problems."""
    problems_left_out: int
    magics: dict[str, Tally]
    """The good batches by magic."""


class CostReport(TypedDict):
    """The costs of some batches as stored, and in each format."""

    batches: int
    """Batches of magic 2, wrappers, and messages outside a wrapper."""
    records: int
    """The number of records, control records included."""
    headers: int
    """Headers of records."""
    stored: int
    """Bytes of the batches as stored."""
    decompressed: Cost
    """Each batch in its own magic, with records decompressed."""
    formats: dict[Format, Cost]
    """Without padding. Magic 0 and 1 have no headers of records."""


class Trial(TypedDict):
    """The costs of writing a window with one layout."""

    batches: int
    """The number of batches; excludes the last batch if further records of the log belong in it."""
    content: int
    """Bytes of keys, values and headers in these batches."""
    decompressed: int
    """Bytes of these batches before compression."""
    size: int
    """Bytes of these batches as written."""
    batch_ratios: float
    """The sum over the batches of their size before compression divided by their size."""
    encode_ns: int
    """The time for building and compressing them."""
    decode_ns: int
    """The time for checking their CRCs, decompressing them and reading their records."""


class DictionaryTrial(TypedDict):
    """Batches as they are, compressed by zstd at Kafka's default level with and without a dictionary that was
    trained on other batches of the same window. Kafka has no place for a dictionary: nothing can read such
    batches.
    """

    batches: int
    """The number of compressed batches."""
    dictionary: int
    """Bytes of the dictionary, which is not in `with_it`."""
    without_it: int
    """Bytes of these batches without the dictionary."""
    with_it: int


class Window(TypedDict):
    """Consecutive batches of a log, and their costs in several layouts. Sizes are bytes."""

    batches: int
    produced: int
    """Batches with a producer id."""
    legacy: int
    """Bytes as stored of batches of magic 0 and 1."""
    legacy_messages: int
    """Bytes of these batches with their messages decompressed."""
    legacy_as_batches: int
    """Bytes of the same records in magic 2, uncompressed, in batches of about 16 KiB, a producer's default.
    """
    records: int
    stored: int
    decompressed: int
    """Bytes of the batches as uncompressed magic 2."""
    content: int
    """Bytes of keys, values and headers."""
    damaged: int
    """Bytes between these batches that are not good: damage, and a tail."""
    keys: int
    values: int
    header_keys: dict[str, tuple[int, int]]
    """The number of headers with each key, and the bytes of their values. An empty key stands for all keys
    after the first thousand."""
    batch_sizes: tuple[int, int]
    """The smallest and the largest batch as stored."""
    dictionary: DictionaryTrial | None
    """The savings of a zstd dictionary; None if it was not tried, or if the window is too small for it."""
    trials: list[Trial]
    """In the order of the layouts."""


def cost(
    batches: Buffer, *, max_decompressed_bytes: int = _core.DEFAULT_MAX_DECOMPRESSED_BYTES
) -> CostReport:
    """Adds up the bytes of batches, field by field, as they are and as they would be in each format.

    Every record is decoded; CRCs are not checked. `magicbyte stats --fields` does the same for directories.

    Args:
        batches: the bytes of batches, one after the other.
        max_decompressed_bytes: the limit for one batch.

    Raises:
        Error: if a batch is damaged or incomplete.

    """
    return cast(
        CostReport, json.loads(_core.batches_cost(batches, max_decompressed_bytes=max_decompressed_bytes))
    )
