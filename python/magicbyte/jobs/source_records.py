"""The records that dead letters are of: the join of a dead-letter queue with the topics it is for.

A dead letter names its source record in headers, as text: `__dlq.errors.*` of share groups (KIP-1191,
`ShareGroupDLQStateManager`), or `__connect.errors.*` of sink connectors (`DeadLetterQueueReporter`).
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, TypedDict

from magicbyte._core import Record
from magicbyte.listing import log_start_of, topic_id_of
from magicbyte.log import PartitionLog
from magicbyte.model import PartitionListing

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["LETTER_COLUMNS", "STATES", "Letter", "SourceRecord", "SourceRecords", "letters_of"]

LETTER_COLUMNS = ("offset", "timestampMillis", "key", "value", "headers")
"""The columns of `records` that `letters_of` needs."""
STATES = ("found", "deleted", "missing", "after_end", "absent", "unnamed")
"""The states of source records: see `SourceRecord.state`."""
_PREFIXES = ("__connect.errors.", "__dlq.errors.")
"""A connector keeps the headers of a record that it could not process, so that its own are the later ones."""
_AHEAD = 10_000
"""Offsets that are read over rather than looked up."""


class SourceRecord(TypedDict):
    """The record that a dead letter is of."""

    topic: str | None
    """None if the headers do not name it."""
    partition: int | None
    offset: int | None
    state: str
    """`found`; `deleted`, before the start of the log; `missing`, in the log but in no batch that is read:
    removed by compaction, or damaged; `after_end`, after the end of the copy here; `absent`, if the partition
    is not among the sources; `unnamed`, if the headers do not name a record.
    """
    key: str | None
    """`equal`, `different`, or `not_copied` if only the dead letter has none; None if there is no record."""
    value: str | None
    """The same of the value."""


@dataclass(frozen=True)
class Letter:
    """A record with the headers of a dead letter."""

    row: int
    """Its place among the rows that it was found in."""
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: Mapping[str, bytes | None]
    """The last value of each header."""

    def text(self, *names: str) -> str | None:
        """The first of these headers that is there, as text; the names are without their prefixes."""
        values = (self.headers.get(prefix + name) for prefix in _PREFIXES for name in names)
        value = next((one for one in values if one is not None), None)
        return None if value is None else value.decode(errors="replace")

    def number(self, name: str) -> int | None:
        """A header as a number that is not negative; None if it is none."""
        text = self.text(name)
        return int(text) if text is not None and re.fullmatch("[0-9]{1,18}", text, re.ASCII) else None

    @property
    def source(self) -> tuple[str, int, int] | None:
        """The topic, by name or ID, the partition and the offset; None if the headers do not name them."""
        topic, partition, offset = self.text("topic"), self.number("partition"), self.number("offset")
        return None if topic is None or partition is None or offset is None else (topic, partition, offset)


def letters_of(rows: pa.RecordBatch) -> list[Letter]:
    """The dead letters among rows of `records` with the `LETTER_COLUMNS`. Needs pyarrow."""
    import pyarrow as pa
    import pyarrow.compute as pc

    headers = rows.column("headers")
    names = pc.struct_field(headers.flatten(), "key")
    marks = pa.array([f"{prefix}offset" for prefix in _PREFIXES], names.type)
    found = pc.unique(pc.list_parent_indices(headers).filter(pc.is_in(names, value_set=marks)))
    columns = (rows.column(name).take(found).to_pylist() for name in LETTER_COLUMNS)
    return [
        Letter(row, offset, timestamp, key, value, {one["key"]: one["value"] for one in own})
        for row, offset, timestamp, key, value, own in zip(found.to_pylist(), *columns, strict=True)
    ]


class SourceRecords:
    """Finds records in partitions by their offsets. The partitions are opened when they are needed."""

    def __init__(self, listings: Iterable[PartitionListing], max_decompressed_bytes: int) -> None:
        self._copies: dict[tuple[str, int], list[PartitionListing]] = defaultdict(list)
        for listing in listings:
            if listing["segments"] and listing["state"] in ("current", "remote"):
                self._copies[listing["topic"], listing["partition"]].append(listing)
        self._max_decompressed_bytes = max_decompressed_bytes

    @cached_property
    def _topics_by_id(self) -> dict[str | None, str]:
        return {topic_id_of(own[0]): topic for (topic, _), own in self._copies.items()}

    def join(self, letters: Sequence[Letter]) -> list[SourceRecord]:
        """The source records of dead letters, in their order. Holds one record of the sources at a time."""
        joined = [_unnamed(letter) for letter in letters]
        wanted: dict[tuple[str, int], dict[int, list[int]]] = defaultdict(lambda: defaultdict(list))
        for number, letter in enumerate(letters):
            if letter.source is not None:
                topic, partition, offset = letter.source
                if (topic, partition) not in self._copies:
                    topic = self._topics_by_id.get(topic, topic)
                joined[number]["topic"], joined[number]["state"] = topic, "absent"
                wanted[topic, partition][offset].append(number)
        for place, numbers in wanted.items():
            for listing in self._copies.get(place, ()):
                # Another copy may have what this one lacks.
                left = sorted(one for one, own in numbers.items() if joined[own[0]]["state"] != "found")
                for offset, state, record in self._find(listing, left):
                    for number in numbers[offset]:
                        joined[number]["state"] = state
                        if record is not None:
                            letter = letters[number]
                            joined[number]["key"] = _comparison(letter.key, record.key_bytes)
                            joined[number]["value"] = _comparison(letter.value, record.value_bytes)
        return joined

    def _find(
        self, listing: PartitionListing, offsets: Sequence[int]
    ) -> Iterator[tuple[int, str, Record | None]]:
        """Yields the state of each of the ascending offsets, and its record if it is found."""
        log = PartitionLog.of_listing(
            listing, mode="PERMISSIVE", max_decompressed_bytes=self._max_decompressed_bytes
        )
        start = log_start_of(listing) or listing["segments"][0]["base_offset"]
        waiting = list(reversed(offsets))
        while waiting:
            if waiting[-1] < start:
                yield waiting.pop(), "deleted", None
                continue
            batches = log.batches(waiting[-1])
            for batch in batches:
                while waiting and waiting[-1] < batch.base_offset:
                    yield waiting.pop(), "missing", None
                if waiting and waiting[-1] <= batch.last_offset:
                    own = set[int]()
                    while waiting and waiting[-1] <= batch.last_offset:
                        own.add(waiting.pop())
                    records = () if batch.is_control else batch
                    for record in records:
                        if record.offset in own:
                            own.remove(record.offset)
                            yield record.offset, "found", record
                    yield from ((offset, "missing", None) for offset in sorted(own))
                if not waiting or waiting[-1] > batch.last_offset + _AHEAD:
                    break
            else:
                # Damage at the end may have had them.
                state = "missing" if batches.problems else "after_end"
                yield from ((offset, state, None) for offset in waiting)
                return


def _unnamed(letter: Letter) -> SourceRecord:
    return SourceRecord(
        topic=letter.text("topic"),
        partition=letter.number("partition"),
        offset=letter.number("offset"),
        state="unnamed",
        key=None,
        value=None,
    )


def _comparison(copy: bytes | None, original: bytes | None) -> str:
    if copy == original:
        return "equal"
    return "not_copied" if copy is None else "different"
