"""Surveys of segments."""

from __future__ import annotations

from typing import Literal, TypeAlias, TypedDict

from magicbyte.model.listings import LeaderEpoch, Problem, Segment

__all__ = [
    "Border",
    "Survey",
    "TransactionBegin",
    "TransactionEnd",
    "TransactionEvent",
    "TransactionIndexEntry",
]


class Border(TypedDict):
    """A batch at which a segment may be cut into chunks: its CRC and its predecessor's are correct."""

    position: int
    expected_offset: int
    """The offset after the last offset of the batch before it."""


class TransactionBegin(TypedDict):
    """The first data batch of a transaction."""

    event: Literal["begin"]
    producer_id: int
    offset: int


class TransactionEnd(TypedDict):
    """The marker that ends a transaction."""

    event: Literal["end"]
    producer_id: int
    offset: int
    committed: bool


TransactionEvent: TypeAlias = TransactionBegin | TransactionEnd


class TransactionIndexEntry(TypedDict):
    """An entry of a `.txnindex` file."""

    version: int
    producer_id: int
    first_offset: int
    last_offset: int
    """The offset of the abort marker (inclusive)."""
    last_stable_offset: int
    """The last stable offset when the marker was written."""


class Survey(TypedDict):
    """A scan of one segment's batch headers; no record is decompressed."""

    segment: Segment
    batches: int
    first_offset: int | None
    last_offset: int | None
    base_offset: int
    """The start of its offsets: the offset in the name, or lower if the file was renamed."""
    gap_before_last: int | None
    """The offset expected at the start of the last batch, if the batch begins later."""
    gaps: int
    """Offsets without a record, judged by the headers: usually the work of compaction."""
    max_timestamp: int
    """-1 if there is none."""
    chain_end: int
    """The end of the chain of batch headers: the file's size if it can be framed to the end."""
    sound_end: int
    """The end of the last batch with a correct CRC."""
    last_batch: tuple[int, int] | None
    """Position of that batch, and the CRC-32C of its header."""
    continues: tuple[int, int] | None
    """The `last_batch` of the survey that this one continues; None after a scan of the whole file."""
    borders: list[Border]
    transactions: list[TransactionEvent]
    transactional: list[tuple[int, int]]
    """(position, producer id) of transactional data: each producer once after each border."""
    leader_epochs: list[LeaderEpoch]
    """According to the batches."""
    transaction_index: list[TransactionIndexEntry]
    emptied: bool
    """True if the file is empty now but once was not: Kafka's cleaner leaves an empty index next to a segment
    that it emptied."""
    problems: list[Problem]
    """Sidecars that cannot be read, have a broken format or point past the end of the segment."""
    unreadable: str | None
    """The reason why the file could not be read to its end, if so."""
    is_part: bool
    """True for a partial survey by `SurveyInParts`: offsets and borders up to the last border."""
