"""Kafka's bytes made by hand, field by field, right or wrong, without any library's writers."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import magicbyte

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
Headers = Iterable[tuple[bytes, bytes | None]]


def varint(value: int) -> bytes:
    return magicbyte.encode_varint(value)


def overlong(value: int, size: int) -> bytes:
    """A varint in `size` bytes, which are more than it needs."""
    raw = (value << 1) ^ (value >> 63)
    low = bytes(raw >> (7 * i) & 0x7F | 0x80 for i in range(size - 1))
    return low + bytes([raw >> (7 * (size - 1)) & 0x7F])


def nullable(data: bytes | None) -> bytes:
    return varint(-1) if data is None else varint(len(data)) + data


def sized(body: bytes) -> bytes:
    return varint(len(body)) + body


def record(
    delta: int = 0,
    key: bytes | None = b"k",
    value: bytes | None = b"v",
    headers: Headers = (),
    *,
    timestamp_delta: int = 0,
    attributes: int = 0,
) -> bytes:
    head = bytes([attributes]) + varint(timestamp_delta) + varint(delta)
    pairs = [nullable(name) + nullable(content) for name, content in headers]
    return sized(head + nullable(key) + nullable(value) + varint(len(pairs)) + b"".join(pairs))


@dataclass
class V2:
    """A magic 2 batch. Length and CRC are computed unless they are given."""

    payload: bytes = b""
    count: int = 1
    base_offset: int = 100
    length: int | None = None
    leader_epoch: int = 0
    magic: int = 2
    crc: int | None = None
    attributes: int = 0
    last_offset_delta: int | None = None
    base_timestamp: int = 1000
    max_timestamp: int = 2000
    producer_id: int = -1
    producer_epoch: int = -1
    base_sequence: int = -1

    def bytes(self) -> bytes:
        last = self.count - 1 if self.last_offset_delta is None else self.last_offset_delta
        body = (
            struct.pack(">Hiqqqhii", self.attributes, last, self.base_timestamp, self.max_timestamp, self.producer_id,
                        self.producer_epoch, self.base_sequence, self.count)
            + self.payload
        )  # fmt: skip
        crc = magicbyte.crc32c(body) if self.crc is None else self.crc
        length = 9 + len(body) if self.length is None else self.length
        return struct.pack(">qiibI", self.base_offset, length, self.leader_epoch, self.magic, crc) + body


def batch(records: Sequence[bytes], **fields: int) -> bytes:
    return V2(b"".join(records), fields.pop("count", len(records)), **fields).bytes()


def message(
    offset: int,
    magic: int = 1,
    key: bytes | None = b"k",
    value: bytes | None = b"v",
    *,
    attributes: int = 0,
    timestamp: int = 1000,
    tail: bytes = b"",
    crc: int | None = None,
    size: int | None = None,
) -> bytes:
    """A message of magic 0 or 1, with its offset and size."""

    def field(data: bytes | None) -> bytes:
        return b"\xff\xff\xff\xff" if data is None else struct.pack(">i", len(data)) + data

    time = b"" if magic == 0 else struct.pack(">q", timestamp)
    body = struct.pack(">bB", magic, attributes) + time + field(key) + field(value) + tail
    crc = zlib.crc32(body) if crc is None else crc
    return struct.pack(">qiI", offset, 4 + len(body) if size is None else size, crc) + body


def sealed(data: bytes) -> bytes:
    """The bytes with a corrected checksum of the first batch, so that damage reaches the records."""
    if len(data) < 26:
        return data
    end = 12 + struct.unpack_from(">i", data, 8)[0]
    if not 21 <= end <= len(data):
        return data
    if data[16] == 2:
        return data[:17] + struct.pack(">I", magicbyte.crc32c(data[21:end])) + data[21:]
    return data[:12] + struct.pack(">I", zlib.crc32(data[16:end])) + data[16:]
