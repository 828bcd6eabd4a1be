"""Options of `compact`."""

from __future__ import annotations

from dataclasses import dataclass
from os import PathLike

from magicbyte.options.declare import argument, option
from magicbyte.options.shared import CleanOptions, Clock, ConfigFiles
from magicbyte.options.values import FILE, MILLIS, OFFSET, RECORD_SIZE, SEGMENT_SIZE, SIZE, Number

__all__ = ["DAY_MS", "CompactOptions"]

DAY_MS = 24 * 60 * 60 * 1000


@dataclass(frozen=True, kw_only=True)
class CompactOptions(ConfigFiles, Clock, CleanOptions):
    """Options of a compaction. They have the names of Kafka's configs where these exist."""

    all: bool = option("Clean the last segment too, which a broker never does.", default=False)
    all_topics: bool = option(
        "Compact topics whatever their cleanup.policy; records without a key are dropped.", default=False
    )
    until_offset: int | None = option(
        "Leave the segment that holds this offset, and all after it, as they are.", default=None, kind=OFFSET
    )
    min_compaction_lag_ms: int | None = option(
        "Leave segments with a record younger than this as they are.",
        default=None,
        default_text="the topic's, or 0",
        kind=MILLIS,
    )
    delete_retention_ms: int | None = option(
        "The retention time of tombstones, and of the markers of empty transactions.",
        default=None,
        default_text="the topic's, or a day",
        kind=MILLIS,
    )
    max_decompressed_message_bytes: int | None = option(
        "Refuse a log with a larger record in a compressed batch, as Kafka's cleaner does since 4.4.",
        default=None,
        default_text="the topic's, or no limit",
        kind=RECORD_SIZE,
    )
    producer_id_expiration_ms: int = option(
        "Forget producers that were silent for longer, so that their last batch need not be kept.",
        default=DAY_MS,
        kind=Number(1, metavar="MS"),
    )
    checkpoint: str | PathLike[str] | None = option(
        "A broker's cleaner-offset-checkpoint, up to which old tombstones of magic 0 and 1 may be removed.",
        default=None,
        kind=FILE,
    )
    segment_bytes: int | None = option(
        "Merge neighbouring segments up to this size.",
        default=None,
        default_text="the topic's, or 1GiB",
        kind=SEGMENT_SIZE,
    )
    memory_bytes: int = option(
        "Memory for the maps of keys; larger maps go to files beside the output.",
        default=128 << 20,
        kind=SIZE,
    )
    segment_index_bytes: int = argument("The limit for the indexes of merged segments.", default=10 << 20)
