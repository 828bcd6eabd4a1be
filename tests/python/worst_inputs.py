"""The worst inputs known for the readers of foreign bytes, and the memory that SECURITY.md allows for them.

    python worst_inputs.py NAME

reads one in this process, and prints the size of the input and the memory that reading it took, in bytes.
"""

from __future__ import annotations

import contextlib
import json
import struct
import sys
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import magicbyte
from magicbyte import _core, bounded_json
from magicbyte.internal_topics.decode import Decoder

MIB = 1 << 20
ENTRY = 800
"""Bytes of an entry of an index or snapshot."""


class Reader(NamedTuple):
    """A reader and its worst input."""

    worst: Callable[[], Any]
    """Makes the input."""
    read: Callable[[Any], Any]
    allowed: Callable[[int], int]
    """The memory that reading may take, by the size of the input."""


def varint(n: int) -> bytes:
    out = b""
    while n > 127:
        out, n = out + bytes([n & 127 | 128]), n >> 7
    return out + bytes([n])


def message(size: int) -> int:
    """Values, and Python objects that take up to twice as much."""
    return 3 * min(16 * MIB + 32 * size, 128 * MIB) + 2 * size


def head(key: int, version: int) -> bytes:
    return struct.pack(">hhihs", key, version, 7, 1, b"x")


def topics(count: int, size: int = 2) -> Callable[[], bytes]:
    """A Metadata request: topics with names that the flexible version allows, of no bytes or more."""
    topic = bytes([size - 1]) + bytes(size - 2) + b"\0"
    return lambda: head(3, 9) + b"\0" + varint(count + 1) + topic * count + b"\0" * 4


def tagged(count: int) -> bytes:
    """Topics with an unknown tagged field each."""
    return head(3, 9) + b"\0" + varint(count + 1) + b"\1\1\7\0" * count + b"\0" * 4


def integers() -> bytes:
    """OffsetFetch: arrays of partitions, which Python shares where they are small."""
    topic = b"\2t" + varint(400_001) + bytes(range(256)) * (4 * 400_000 // 256) + b"\0"
    return head(9, 6) + b"\0" + b"\2g" + b"\7" + topic * 6 + b"\0"


def uuids() -> bytes:
    """A DescribeTopicPartitions-like response: Metadata 12, whose topics have ids and nothing else."""
    topic = b"\0\0" + b"\0" + bytes(range(16)) + b"\0" + b"\1" + bytes(4) + b"\0"
    body = bytes(4) + b"\1\0" + bytes(4) + varint(300_001) + topic * 300_000 + b"\0"
    return struct.pack(">i", 7) + b"\0" + body


def sets(count: int) -> bytes:
    """A Fetch response with empty record sets."""
    partition = bytes(4 + 2 + 8 + 8 + 8) + b"\1" + struct.pack(">i", -1) + b"\1\0"
    topic = b"\2t" + varint(count + 1) + partition * count + b"\0"
    return struct.pack(">i", 7) + b"\0" + bytes(4 + 2 + 4) + b"\2" + topic + b"\0"


def group(count: int) -> bytes:
    """The value of ConsumerGroupMemberMetadata whose topics have names of no bytes."""
    return b"\0\0" + b"\0\0\1\1" + varint(count + 1) + b"\1" * count + b"\0" + struct.pack(">i", 1) + b"\0\0"


def members() -> bytes:
    """The value of GroupMetadata: each member owns partitions of topics with names of no bytes."""
    owned = b"\0\1" + bytes(4) + b"\xff" * 4 + struct.pack(">i", 16_000) + bytes(6) * 16_000
    member = b"\0\0" * 3 + bytes(8) + struct.pack(">i", len(owned)) + owned + bytes(4)
    start = struct.pack(">hh8sihh", 2, 8, b"consumer", 1, -1, -1) + bytes(8)
    return start + struct.pack(">i", 400) + member * 400


def refused(read: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """The same where the input is refused at some point."""

    def call(data: Any) -> Any:
        with contextlib.suppress(ValueError, RecursionError):
            return read(data)

    return call


def batches() -> bytes:
    """Many batches of a record without bytes, compressed to a hundredth."""
    builder = magicbyte.RecordsBuilder(compression="zstd")
    for offset in range(100_000):
        builder.append(offset, 0, None, None)
    return builder.build() * 20


def all_records(data: bytes) -> int:
    return sum(1 for batch in _core.read_batches(data) for _ in batch)


GROUP_KEY = struct.pack(">hh", 5, 1) + b"g" + struct.pack(">h", 1) + b"m"
OFFSETS = Decoder("__consumer_offsets")

READERS: dict[str, Reader] = {
    "decode_request": Reader(topics(230_000), _core.decode_request, message),
    "decode_request, too many": Reader(topics(20_000_000), refused(_core.decode_request), message),
    "decode_request, too much memory": Reader(topics(999_999), refused(_core.decode_request), message),
    "decode_request, the most memory": Reader(topics(900_000, 5), _core.decode_request, message),
    "decode_request, tags": Reader(lambda: tagged(900_000), refused(_core.decode_request), message),
    "decode_request, integers": Reader(integers, refused(_core.decode_request), message),
    "decode_response": Reader(uuids, refused(lambda data: _core.decode_response(data, 3, 12)), message),
    "request_record_sets": Reader(topics(999_999), refused(_core.request_record_sets), message),
    "response_record_sets": Reader(
        lambda: sets(110_000), lambda data: _core.response_record_sets(data, 1, 12), message
    ),
    "decode_record": Reader(lambda: group(999_999), lambda data: OFFSETS(GROUP_KEY, data), message),
    "decode_record, members": Reader(
        members, lambda data: OFFSETS(struct.pack(">hhs", 2, 1, b"g"), data), lambda size: message(size)
    ),
    "decode_record, too many": Reader(
        lambda: group(60 * MIB), refused(lambda data: OFFSETS(GROUP_KEY, data)), message
    ),
    "decode_data": Reader(
        lambda: b"\0\0" + struct.pack(">i", 900_000) + b"\0\0" * 900_000 + b"\0\0\0\0",
        lambda data: _core.decode_data("ConsumerProtocolSubscription", data),
        message,
    ),
    "is_secret_record": Reader(
        lambda: b"\1\x0b" + bytes(8 * MIB),
        lambda data: _core.is_secret_record("__cluster_metadata", data),
        lambda size: 4 * MIB,
    ),
    "read_batches": Reader(batches, all_records, lambda size: 16 * MIB + 2 * size),
    "decompress": Reader(
        lambda: _zstd(64 * MIB),
        refused(lambda data: _core.decompress(4, 2, data, max_decompressed_bytes=32 * MIB)),
        lambda size: 80 * MIB,
    ),
    "offset_index": Reader(
        lambda: b"".join(struct.pack(">ii", n, n) for n in range(1, 200_000)),
        lambda data: _core.offset_index(data, 0),
        lambda size: size // 8 * ENTRY,
    ),
    "time_index": Reader(
        lambda: b"".join(struct.pack(">qi", n, n) for n in range(1, 200_000)),
        lambda data: _core.time_index(data, 0),
        lambda size: size // 12 * ENTRY,
    ),
    "transaction_index": Reader(
        lambda: b"".join(struct.pack(">hqqqq", 0, n, n, n, n) for n in range(100_000)),
        _core.transaction_index,
        lambda size: size // 34 * ENTRY,
    ),
    "collect_aborted_transactions": Reader(
        lambda: b"".join(struct.pack(">hqqqq", 0, n, n, n, n) for n in range(100_000)),
        lambda data: _core.collect_aborted_transactions(data, 0, 1 << 40),
        lambda size: size // 34 * ENTRY,
    ),
    "parse_message_indexes": Reader(
        lambda: varint(2 * 4_000_000) + b"\2" * 4_000_000,
        refused(_core.parse_message_indexes),
        lambda size: 64 * size,
    ),
    "bounded_json": Reader(
        lambda: b"[" + b'{"a":0},' * 300_000 + b"0]", bounded_json.loads, lambda size: 2 * size + 250 * MIB
    ),
    "bounded_json, too many": Reader(
        lambda: b"[" + b"[]," * 20_000_000 + b"[]]", refused(bounded_json.loads), lambda size: 2 * size
    ),
}


def _zstd(size: int) -> bytes:
    builder = magicbyte.RecordsBuilder(compression="zstd")
    builder.append(0, 0, None, bytes(size))
    return builder.build()[61:]


def peak() -> int:
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) << 10 for line in file if line.startswith("VmHWM"))


def resident() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) << 12


def measured(name: str) -> tuple[int, int]:
    """The size of the input, and the memory that it took."""
    reader = READERS[name]
    data = reader.worst()
    # Begins the peak anew.
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")
    before = resident()
    result = reader.read(data)
    taken = peak() - before
    del result
    return len(data), taken


def names() -> Iterator[str]:
    """The readers, without their cases."""
    return (name.partition(",")[0] for name in READERS)


if __name__ == "__main__":
    print(json.dumps(measured(sys.argv[1])))
