"""The likeness of a batch to its neighbours: names of headers, kinds of keys and values."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from magicbyte import _core
from magicbyte.errors import InvalidRecordError
from magicbyte.jobs.auditing.headers import HeaderTable
from magicbyte.jobs.run.reading import ReadOptions, Rows, read_chunk
from magicbyte.model import Chunk
from magicbyte.schema import framing

__all__ = ["Likeness", "Place"]

Place = tuple[int, int, int, int, int]
"""The number of the log and of the segment, position and size of a batch, and its base offset."""
_NEIGHBOURS = 4
"""The batches to look at before and after a batch."""
_RECORDS = 4
"""The records of a batch to look at."""
_DIFFERENCE = 0.15
"""A batch is more like its neighbours than another if so much more of the features agree."""
_BEGINNING = 4
_JSON_BYTES = 64 << 10
_JSON_NAMES = 64

_Features = tuple[str, ...]


class Likeness:
    """Compares batches with their neighbours, of which it reads a few.

    Args:
        headers: all batches.
        chunks: a chunk of each segment, by path.
        max_decompressed_bytes: batches that are larger after decompression are not looked at.

    """

    def __init__(
        self, headers: HeaderTable, chunks: Mapping[str, Chunk], max_decompressed_bytes: int
    ) -> None:
        self._headers = headers
        self._chunks = chunks
        self._options = ReadOptions(
            ("key", "value", "headers"),
            max_decompressed_bytes=min(max_decompressed_bytes, _core.MAX_COLUMN_PAYLOAD),
        )

    def compare(self, one: Place, other: Place) -> int:
        """-1 if the first of two copies is less like its neighbours, 1 if the other is, 0 if neither is.

        Nothing is known of a batch without neighbours.
        """
        own = self._features(one)
        share, other_share = self._share(own, self._around(one)), self._share(own, self._around(other))
        if share is None or other_share is None:
            return 0
        difference = share - other_share
        if abs(difference) < _DIFFERENCE:
            return 0
        return 1 if difference > 0 else -1

    def _share(self, own: set[_Features], neighbours: Iterable[Place]) -> float | None:
        """The part of the neighbours' features that a record of the batch has, too; None without any."""
        shares = [
            sum(a == b for a, b in zip(mine, theirs, strict=True)) / len(mine)
            for place in neighbours
            for theirs in self._features(place)
            for mine in own
        ]
        return sum(shares) / len(shares) if shares else None

    def _around(self, place: Place) -> list[Place]:
        log, *_, offset = place
        select = "SELECT log, segment, position, size, baseOffset FROM headers WHERE log = ? AND baseOffset"
        return [
            found
            for rest in ("< ? ORDER BY baseOffset DESC", "> ? ORDER BY baseOffset")
            for found in self._headers.database.execute(
                f"{select} {rest} LIMIT {_NEIGHBOURS}", [log, offset]
            ).fetchall()
        ]

    def _features(self, place: Place) -> set[_Features]:
        """The features of the first records of a batch; none if it cannot be read."""
        _, number, position, size, offset = place
        chunk = self._chunks.get(self._headers.segments[number]["path"])
        if chunk is None:
            return set()
        of_batch = {
            **chunk,
            "start": position,
            "end": position + size,
            "expected_offset": offset,
            "next_offset": None,
            "aborted": [],
        }
        for item in read_chunk(json.dumps(of_batch), self._options):
            if isinstance(item, Rows) and item.table == "records":
                return {_features_of(row) for row in item.batch.slice(0, _RECORDS).to_pylist()}
        return set()


def _features_of(row: dict[str, Any]) -> _Features:
    names = ",".join(header["key"] for header in row["headers"] or ())
    key, value = _kind(row["key"]), _kind(row["value"])
    return names, key[0], value[0], value[1]


def _kind(payload: bytes | None) -> tuple[str, str]:
    """The kind of a key or value, and what tells it from others of the kind."""
    if payload is None:
        return "null", ""
    try:
        framed = framing.parse(payload)
    except InvalidRecordError:
        framed = None
    if framed is not None and payload[:1] in (b"\0", b"\1"):
        return "schema", str(framed.id or framed.guid)
    if payload[:1] == b"{" and len(payload) <= _JSON_BYTES:
        try:
            document = json.loads(payload)
        except (ValueError, RecursionError):
            document = None
        if isinstance(document, dict):
            return "json", ",".join(sorted(document)[:_JSON_NAMES])
    kind = "text" if payload.isascii() else f"{len(payload)} bytes" if len(payload) in (4, 8, 16) else "bytes"
    return kind, payload[:_BEGINNING].hex()
