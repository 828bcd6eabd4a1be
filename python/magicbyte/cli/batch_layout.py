"""The layout of a batch, field by field, for `magicbyte annotate`.

Everything is a generator, so that of a damaged batch all fields before the damage are seen. The positions
of fields are bytes from the start of the batch, or of the section that they follow.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from typing import TypeAlias

from magicbyte import _core
from magicbyte.cli.terminal import plain
from magicbyte.cli.times import time_text
from magicbyte.enums import Compression
from magicbyte.errors import InvalidRecordError

__all__ = ["Field", "Section", "batch_layout", "wrapped_checksums"]

_MAGIC_AT = 16
_CRC_FROM_V2 = 21
_CRC_FROM_LEGACY = 16
_QUOTED = 40
"""How many bytes of a key or value are shown as text."""
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
    if len(data) > _MAGIC_AT and data[_MAGIC_AT] == 2:
        return _layout_of_v2(data, max_decompressed_bytes)
    return _layout_of_legacy(data, max_decompressed_bytes)


def wrapped_checksums(wrapper: bytes, max_decompressed_bytes: int) -> Iterator[tuple[int, bool]]:
    """Yields the CRC of each message inside a compressed one of magic 0 or 1, and whether it is correct."""
    data = _unwrapped(wrapper, max_decompressed_bytes)
    start = 0
    while start + _CRC_FROM_LEGACY <= len(data):
        size, crc = struct.unpack_from(">iI", data, start + 8)
        end = start + 12 + size
        yield crc, zlib.crc32(data[start + _CRC_FROM_LEGACY : end]) == crc
        if size <= 0:
            return
        start = end


class _Walk:
    """A position in bytes, from which fields are taken one after the other."""

    def __init__(self, data: bytes, start: int = 0) -> None:
        self.data = data
        self.start = start
        self.value = 0
        """The last number taken."""

    def _field(self, end: int, name: str, meaning: str) -> Field:
        field = Field(self.start, self.data[self.start : end], name, meaning)
        self.start = end
        return field

    def number(self, form: str, name: str, meaning: Callable[[int], str] = str) -> Field:
        """A big-endian number of fixed width."""
        end = self.start + struct.calcsize(form)
        if end > len(self.data):
            raise self._cut(name, end)
        (self.value,) = struct.unpack_from(f">{form}", self.data, self.start)
        return self._field(end, name, meaning(self.value))

    def varint(self, name: str, meaning: Callable[[int], str] = str) -> Field:
        """A zigzag varint."""
        self.value, end = _core.decode_varint(self.data, self.start)
        return self._field(end, name, meaning(self.value))

    def bytes(self, size: int, name: str, meaning: str | None = None) -> Field:
        """A field of `size` bytes."""
        end = self.start + size
        if size < 0 or end > len(self.data):
            raise self._cut(name, end)
        return self._field(end, name, _quoted(self.data[self.start : end]) if meaning is None else meaning)

    def _cut(self, name: str, end: int) -> InvalidRecordError:
        return InvalidRecordError(
            f"{name} at byte {self.start} would end at {end}, but the bytes end at {len(self.data)}"
        )


def _layout_of_v2(data: bytes, max_decompressed_bytes: int) -> Layout:
    walk = _Walk(data)
    yield walk.number("q", "baseOffset")
    base = walk.value
    yield walk.number("i", "batchLength", lambda n: f"{n} from byte 12 on, {12 + n} bytes in all")
    yield walk.number("i", "partitionLeaderEpoch", lambda n: f"{n}, not covered by the CRC")
    yield walk.number("b", "magic")
    computed = _core.crc32c(data[_CRC_FROM_V2:])
    yield walk.number(
        "I", "crc", lambda n: f"CRC-32C of byte {_CRC_FROM_V2} to the end: {_verdict(n, computed)}"
    )
    yield walk.number("h", "attributes", _attributes)
    attributes = walk.value
    yield walk.number("i", "lastOffsetDelta", lambda n: f"{n}: the last offset is {base + n}")
    horizon = "; the delete horizon" if attributes & _HORIZON else ""
    yield walk.number("q", "baseTimestamp", lambda n: _time(n) + horizon)
    base_time = walk.value
    yield walk.number("q", "maxTimestamp", _time)
    yield walk.number("q", "producerId", _or_none)
    yield walk.number("h", "producerEpoch", _or_none)
    yield walk.number("i", "baseSequence", _or_none)
    yield walk.number("i", "recordsCount")
    count = walk.value
    if attributes & _CODEC:
        payload = data[walk.start :]
        codec = _codec(attributes)
        yield walk.bytes(len(payload), "records", f"{len(payload)} bytes of {codec}")
        unpacked = _core.decompress(
            attributes & _CODEC, 2, payload, max_decompressed_bytes=max_decompressed_bytes
        )
        yield Section(
            f"the records, decompressed from {codec}: {len(unpacked)} bytes; positions count from their start"
        )
        walk = _Walk(unpacked)
    if count < 0:
        raise InvalidRecordError(f"recordsCount is {count}")
    for index in range(count):
        yield from _layout_of_record(walk, f"record {index}: ", base, base_time, bool(attributes & _CONTROL))
    yield from _rest(walk, "the last record")


def _layout_of_record(walk: _Walk, record: str, base: int, base_time: int, control: bool) -> Layout:
    yield walk.varint(record + "length", lambda n: f"{n} bytes, from attributes to the last header")
    end = walk.start + walk.value
    yield walk.number("b", record + "attributes", lambda n: f"{n}, unused")
    yield walk.varint(record + "timestampDelta", lambda n: f"{n}: {_time(base_time + n)}")
    yield walk.varint(record + "offsetDelta", lambda n: f"{n}: offset {base + n}")
    yield walk.varint(record + "keyLength", _length)
    if walk.value >= 0:
        key = walk.data[walk.start : walk.start + walk.value]
        yield walk.bytes(walk.value, record + "key", _control_key(key) if control else None)
    yield walk.varint(record + "valueLength", _length)
    if walk.value >= 0:
        yield walk.bytes(walk.value, record + "value")
    yield walk.varint(record + "headersCount")
    headers = walk.value
    if headers < 0:
        raise InvalidRecordError(f"{record}headersCount is {headers}")
    for number in range(headers):
        header = f"{record}header {number} "
        yield walk.varint(header + "keyLength", _length)
        yield walk.bytes(walk.value, header + "key")
        yield walk.varint(header + "valueLength", _length)
        if walk.value >= 0:
            yield walk.bytes(walk.value, header + "value")
    if walk.start != end:
        raise InvalidRecordError(f"{record}ends at byte {walk.start}, but by its length at {end}")


def _layout_of_legacy(data: bytes, max_decompressed_bytes: int) -> Layout:
    walk = _Walk(data)
    codec = yield from _layout_of_message(walk, "")
    yield from _rest(walk, "the message")
    if not codec:
        return
    unpacked = _unwrapped(data, max_decompressed_bytes)
    yield Section(
        f"the wrapper's value, decompressed from {_codec(codec)}: {len(unpacked)} bytes;"
        " positions count from its start"
    )
    walk, index = _Walk(unpacked), 0
    while walk.start < len(unpacked):
        yield from _layout_of_message(walk, f"message {index}: ")
        index += 1


def _layout_of_message(walk: _Walk, message: str) -> Generator[Field | Section, None, int]:
    """Yields the fields of one message; returns the number of its codec."""
    start = walk.start
    inside = bool(message)
    yield walk.number("q", message + "offset", lambda n: f"{n}{' (magic 1: relative)' if inside else ''}")
    yield walk.number("i", message + "size", lambda n: f"{n} bytes from byte {start + 12} on")
    size = walk.value
    if size < 0 or start + 12 + size > len(walk.data):
        bound = len(walk.data) - start - 12
        yield walk.bytes(max(bound, 0), message + "rest")
        raise InvalidRecordError(f"{message}size is {size}, but {bound} bytes are left")
    computed = zlib.crc32(walk.data[start + _CRC_FROM_LEGACY : start + 12 + size])
    yield walk.number(
        "I", message + "crc", lambda n: f"CRC-32 of byte {start + 16} on: {_verdict(n, computed)}"
    )
    yield walk.number("b", message + "magic")
    magic = walk.value
    if magic not in (0, 1):
        raise InvalidRecordError(f"{message}magic is {magic}, expected 0, 1 or 2")
    yield walk.number("b", message + "attributes", _attributes)
    codec = walk.value & _CODEC
    if magic == 1:
        yield walk.number("q", message + "timestamp", _time)
    yield walk.number("i", message + "keyLength", _length)
    if walk.value >= 0:
        yield walk.bytes(walk.value, message + "key")
    yield walk.number("i", message + "valueLength", _length)
    if walk.value >= 0:
        meaning = f"{walk.value} bytes of {_codec(codec)}" if codec else None
        yield walk.bytes(walk.value, message + "value", meaning)
    if walk.start != start + 12 + size:
        raise InvalidRecordError(
            f"{message}ends at byte {walk.start}, but by its size at {start + 12 + size}"
        )
    return codec


def _rest(walk: _Walk, what: str) -> Layout:
    left = len(walk.data) - walk.start
    if left:
        yield walk.bytes(left, "rest", f"{left} bytes after {what}")
        raise InvalidRecordError(f"{left} bytes are left after {what}")


def _unwrapped(wrapper: bytes, max_decompressed_bytes: int) -> bytes:
    """The messages inside a compressed message: its value, decompressed."""
    magic, attributes = struct.unpack_from(">bB", wrapper, 16)
    key_at = 26 if magic == 1 else 18
    (key_size,) = struct.unpack_from(">i", wrapper, key_at)
    payload = wrapper[key_at + 4 + max(key_size, 0) + 4 :]
    return _core.decompress(
        attributes & _CODEC, magic, payload, max_decompressed_bytes=max_decompressed_bytes
    )


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


def _verdict(stored: int, computed: int) -> str:
    return "correct" if stored == computed else f"wrong, computed 0x{computed:08x}"


def _time(millis: int) -> str:
    return "-1, no timestamp" if millis == -1 else f"{millis}: {time_text(millis)}"


def _or_none(value: int) -> str:
    return "-1, none" if value == -1 else str(value)


def _length(size: int) -> str:
    return f"{size}, null" if size < 0 else f"{size} bytes"


def _control_key(key: bytes) -> str | None:
    if len(key) < 4:
        return None
    version, kind = struct.unpack_from(">hh", key)
    return f"control record: version {version}, type {kind}{ {0: ' (ABORT)', 1: ' (COMMIT)'}.get(kind, '') }"


def _quoted(data: bytes) -> str:
    text = data[:_QUOTED].decode(errors="replace")
    return f'"{plain(text)}"{"..." if len(data) > _QUOTED else ""}'
