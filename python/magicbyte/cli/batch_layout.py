"""The meaning of the fields of a batch, which the core finds: for `magicbyte dump --bytes`."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

from magicbyte import _core
from magicbyte.cli.terminal import plain
from magicbyte.cli.times import time_text
from magicbyte.enums import Compression

__all__ = ["Field", "Layout", "Section", "batch_layout", "wrapped_checksums"]

_QUOTED = 40
"""The number of bytes of a key or value that are shown as text."""
_CODEC, _LOG_APPEND_TIME, _TRANSACTIONAL, _CONTROL, _HORIZON = 0x07, 0x08, 0x10, 0x20, 0x40


@dataclass(frozen=True)
class Field:
    """One field: its position, its bytes, its name in Kafka, and its meaning."""

    start: int
    data: bytes
    name: str
    meaning: str


@dataclass(frozen=True)
class Section:
    """The decompressed bytes of the batch: the positions of the fields that follow count from their start."""

    title: str


Layout: TypeAlias = Iterator[Field | Section]


def batch_layout(data: bytes, max_decompressed_bytes: int) -> Layout:
    """Yields the fields of one batch of any magic.

    Raises:
        Error: the bytes make no sense; all fields before have been yielded.

    """
    layout = _core.BatchLayout(data, max_decompressed_bytes=max_decompressed_bytes)
    words = _Words()
    compressed = False
    for field in layout:
        if field.is_decompressed and not compressed:
            compressed = True
            what = "the records" if words.has_records else "the wrapper's value"
            yield Section(
                f"{what}, decompressed from {words.codec}: {layout.decompressed_size} bytes;"
                " positions count from their start"
            )
        shown = _shown_name(field, is_record=words.has_records)
        yield Field(field.start, field.data, shown, words.meaning(field))


def wrapped_checksums(wrapper: bytes, max_decompressed_bytes: int) -> Iterator[tuple[int, bool]]:
    """Yields the CRC of each message in a compressed wrapper of magic 0 or 1, with True if it is correct."""
    layout = _core.BatchLayout(wrapper, max_decompressed_bytes=max_decompressed_bytes)
    for field in layout:
        if field.is_decompressed and field.name == "crc" and field.number is not None:
            yield field.number, field.number == field.computed_crc


def _shown_name(field: _core.BatchField, *, is_record: bool) -> str:
    prefix = "" if field.record is None else f"{'record' if is_record else 'message'} {field.record}: "
    if field.header is None:
        return prefix + field.name
    name = field.name.removeprefix("header")
    return f"{prefix}header {field.header} {name[0].lower()}{name[1:]}"


class _Words:
    """The meaning of fields, some of which depend on fields before them."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._bits = 0
        """The attributes of the batch, or of the outermost message."""

    @property
    def magic(self) -> int | None:
        """The magic, once it has been seen."""
        return self._numbers.get("magic")

    @property
    def has_records(self) -> bool:
        """True for a batch of records, and not a message."""
        return self.magic == 2

    @property
    def codec(self) -> str:
        """The name of the batch's codec."""
        return _codec(self._bits)

    def meaning(self, field: _core.BatchField) -> str:
        """The meaning of a field."""
        name, start, number = field.name, field.start, field.number
        is_inside = field.record is not None
        if number is None:
            return self._bytes_meaning(name, field.data, is_inside=is_inside)
        if name == "attributes":
            if is_inside and self.has_records:
                return f"{number}, unused"
            if not is_inside:
                self._bits = number
            return _attributes(number)
        if not is_inside:
            self._numbers[name] = number
        if name == "crc":
            kind = (
                f"CRC-32C of byte {start + 4} to the end"
                if self.has_records
                else f"CRC-32 of byte {start + 4} on"
            )
            return f"{kind}: {_verdict(number, field.computed_crc)}"
        if is_inside and name == "offset":
            return f"{number} (magic 1: relative)"
        if name == "size":
            return f"{number} bytes from byte {start + 4} on"
        base, base_time = self._numbers.get("baseOffset", 0), self._numbers.get("baseTimestamp", 0)
        derived: dict[str, Callable[[], str]] = {
            "batchLength": lambda: f"{number} from byte 12 on, {12 + number} bytes in all",
            "partitionLeaderEpoch": lambda: f"{number}, not covered by the CRC",
            "lastOffsetDelta": lambda: f"{number}: the last offset is {base + number}",
            "baseTimestamp": lambda: (
                _time(number) + ("; the delete horizon" if self._bits & _HORIZON else "")
            ),
            "maxTimestamp": lambda: _time(number),
            "timestamp": lambda: _time(number),
            "producerId": lambda: _or_none(number),
            "producerEpoch": lambda: _or_none(number),
            "baseSequence": lambda: _or_none(number),
            "length": lambda: f"{number} bytes, from attributes to the last header",
            "timestampDelta": lambda: f"{number}: {_time(base_time + number)}",
            "offsetDelta": lambda: f"{number}: offset {base + number}",
        }
        if name.endswith("Length") and name != "batchLength":
            return _length(number)
        return derived.get(name, lambda: str(number))()

    def _bytes_meaning(self, name: str, data: bytes, *, is_inside: bool) -> str:
        """The meaning of a field that is no number; `is_inside` if it belongs to a record or to a message
        inside a wrapper.
        """
        if name == "rest":
            return f"{len(data)} bytes after the last field"
        is_payload = name == "value" and not is_inside and self._bits & _CODEC
        if is_payload or name == "records":
            return f"{len(data)} bytes of {self.codec}"
        if name == "key" and self.has_records and self._bits & _CONTROL and len(data) >= 4:
            return _control_key(data)
        return _quoted(data)


def _attributes(bits: int) -> str:
    words = [_codec(bits), "LogAppendTime" if bits & _LOG_APPEND_TIME else "CreateTime"]
    words += [
        word
        for bit, word in (
            (_TRANSACTIONAL, "transactional"),
            (_CONTROL, "control"),
            (_HORIZON, "delete horizon"),
        )
        if bits & bit
    ]
    return ", ".join(words)


def _codec(bits: int) -> str:
    number = bits & _CODEC
    return (
        Compression(number).name.lower() if number in Compression.__members__.values() else f"codec {number}"
    )


def _verdict(stored: int, computed: int | None) -> str:
    return "correct" if stored == computed else f"wrong, computed 0x{computed or 0:08x}"


def _time(millis: int) -> str:
    return "-1, no timestamp" if millis == -1 else f"{millis}: {time_text(millis)}"


def _or_none(value: int) -> str:
    return "-1, none" if value == -1 else str(value)


def _length(size: int) -> str:
    return f"{size}, null" if size < 0 else f"{size} bytes"


def _control_key(key: bytes) -> str:
    version, kind = struct.unpack_from(">hh", key)
    return f"control record: version {version}, type {kind}{ {0: ' (ABORT)', 1: ' (COMMIT)'}.get(kind, '') }"


def _quoted(data: bytes) -> str:
    text = data[:_QUOTED].decode(errors="replace")
    return f'"{plain(text)}"{"..." if len(data) > _QUOTED else ""}'
