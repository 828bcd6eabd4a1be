"""Seeded damage: to the plain bytes, with a corrected checksum, or inside the compressed payload."""

from __future__ import annotations

import random
import struct

from oracle import Builder
from wire import CODECS, V2, batch, message, overlong, record, sealed, sized, varint

# Positions and types of fields in which certain values matter: length, magic, attributes, deltas, count.
FIELDS = [
    (8, "i"),
    (16, "b"),
    (17, "b"),
    (21, "h"),
    (22, "b"),
    (23, "i"),
    (27, "q"),
    (35, "q"),
    (43, "q"),
    (53, "i"),
    (57, "i"),
]
VALUES = [-(1 << 31), -2, -1, 0, 1, 2, 13, 14, 21, 22, 48, 49, 60, 64, 127, 1 << 30, (1 << 31) - 1]


def _flip(rng: random.Random, data: bytes) -> bytes:
    out = bytearray(data)
    for _ in range(rng.choice([1, 1, 1, 2, 8])):
        out[rng.randrange(len(out))] ^= 1 << rng.randrange(8)
    return bytes(out)


def _set_field(rng: random.Random, data: bytes) -> bytes:
    position, kind = rng.choice(FIELDS)
    size = struct.calcsize(kind)
    if position + size > len(data):
        return data
    value = rng.choice(VALUES)
    bits = 8 * size
    value = (value + (1 << (bits - 1))) % (1 << bits) - (1 << (bits - 1))
    return data[:position] + struct.pack(">" + kind, value) + data[position + size :]


def _nudge_length(rng: random.Random, data: bytes) -> bytes:
    length = struct.unpack_from(">i", data, 8)[0] + rng.choice([-61, -8, -2, -1, 1, 2, 12])
    return data[:8] + struct.pack(">I", length % (1 << 32)) + data[12:]


def _cut(rng: random.Random, data: bytes) -> bytes:
    return data[: rng.randrange(len(data))]


def _drop(rng: random.Random, data: bytes) -> bytes:
    """Removes bytes, and corrects the length."""
    if len(data) < 40:
        return data
    start = rng.randrange(26, len(data))
    rest = data[:start] + data[start + rng.choice([1, 1, 2, 9]) :]
    return rest[:8] + struct.pack(">i", len(rest) - 12) + rest[12:]


def _insert(rng: random.Random, data: bytes) -> bytes:
    """Inserts bytes, and corrects the length."""
    start = rng.randrange(26, len(data) + 1) if len(data) > 26 else len(data)
    more = rng.choice([b"\0", b"\0" * 8, b"\xff", rng.randbytes(3), rng.randbytes(9)])
    rest = data[:start] + more + data[start:]
    return rest[:8] + struct.pack(">i", len(rest) - 12) + rest[12:]


def _splice(rng: random.Random, data: bytes) -> bytes:
    middle = rng.randrange(len(data))
    start = rng.randrange(len(data))
    return data[:middle] + data[start : start + rng.randrange(80)] + data[middle:]


def _tail(rng: random.Random, data: bytes) -> bytes:
    return data + rng.choice(
        [b"\0" * rng.randrange(30), rng.randbytes(rng.randrange(40)), data[: rng.randrange(70)]]
    )


KINDS = [_flip, _flip, _set_field, _set_field, _nudge_length, _cut, _drop, _insert, _splice, _tail]


def damaged(rng: random.Random, data: bytes) -> bytes:
    for _ in range(rng.choice([1, 1, 1, 2])):
        data = rng.choice(KINDS)(rng, data) or data
        if len(data) < 12:
            return data
    return sealed(data) if rng.random() < 0.7 else data


def _odd_varint(rng: random.Random, value: int) -> bytes:
    kind = rng.randrange(6)
    if kind == 0:
        return overlong(value, rng.choice([2, 3, 4, 5, 6, 10, 11]))
    if kind == 1:
        return varint(
            rng.choice([-3, -2, -1, 0, 1, 5, 63, 64, 1 << 20, (1 << 31) - 1, -(1 << 31), 1 << 40, -(1 << 63)])
        )
    if kind == 2:
        return b"\xff" * rng.choice([4, 5, 9, 10]) + bytes([rng.randrange(128)])
    return varint(value)


def odd_record(rng: random.Random, delta: int) -> bytes:
    """A magic 2 record in which each number may be odd; the rest usually fits."""
    key, value = rng.randbytes(rng.randrange(4)), rng.randbytes(rng.randrange(4))
    parts = [
        bytes([rng.choice([0, 0, 0x7F, 0xFF])]),
        _odd_varint(rng, rng.randrange(-100, 100)),
        _odd_varint(rng, delta),
        rng.choice([varint(len(key)), _odd_varint(rng, len(key))]) + key,
        rng.choice([varint(len(value)), _odd_varint(rng, len(value))]) + value,
        rng.choice([varint(0), varint(1), _odd_varint(rng, 1)]),
    ]
    if parts[-1] != varint(0):
        parts.append(_odd_varint(rng, 1) + b"h" + _odd_varint(rng, 0))
    if rng.random() < 0.1:
        parts.append(rng.randbytes(2))
    body = b"".join(parts)
    if rng.random() < 0.1:
        return _odd_varint(rng, len(body) + rng.choice([-1, 0, 1, 2])) + body
    return sized(body)


def odd_batches(rng: random.Random, builder: Builder, count: int) -> list[bytes]:
    """Magic 2 batches of odd records in all codecs, with valid CRC and compression."""
    payloads = [
        b"".join(
            odd_record(rng, i) if rng.random() < 0.5 else record(i) for i in range(rng.choice([1, 2, 3]))
        )
        for _ in range(count)
    ]
    codecs = [rng.randrange(5) for _ in payloads]
    stored = builder.build(
        [f"compress 2 {CODECS[codec]} - {data.hex()}" for codec, data in zip(codecs, payloads, strict=True)]
    )
    out = []
    for codec, data in zip(codecs, stored, strict=True):
        announced = rng.choice([1, 1, 2, 2, 3, 3, 0, -1, 1 << 30])
        fields = {"attributes": codec | rng.choice([0, 0, 8, 0x40, 0x80, 0x100])}
        out.append(V2(data, announced, base_sequence=rng.choice([-1, 0, (1 << 31) - 1]), **fields).bytes())
    return out


def odd_wrappers(rng: random.Random, builder: Builder, count: int) -> list[bytes]:
    """Magic 0 and 1 wrappers around odd message sets."""
    sets, kinds = [], []
    for _ in range(count):
        inner = []
        outer = rng.choice([0, 1])
        for i in range(rng.choice([0, 1, 2, 3, 3])):
            magic = rng.choice([outer, outer, outer, 0, 1, 2])
            offset = rng.choice([i, i, i, 100 + i, 2 * i, -1, 1 << 40])
            attributes = rng.choice([0, 0, 0, 0, 8, 0x80, 1, 2, 3, 4])
            odd = rng.random() < 0.15
            one = message(
                offset, magic, rng.choice([None, b"k"]), rng.choice([None, b"v"]), attributes=attributes,
                timestamp=rng.choice([-1, -5, 0, 5000]), tail=rng.choice([b"", b"", b"xx"]), crc=7 if odd else None,
            )  # fmt: skip
            if rng.random() < 0.15:
                one = (
                    one[:8]
                    + struct.pack(">i", rng.choice([-1, 0, 13, 14, 21, 22, len(one), 1 << 30]))
                    + one[12:]
                )
            inner.append(one)
        data = b"".join(inner)
        sets.append(data[: len(data) - rng.choice([0, 0, 0, 0, 1, 5])])
        kinds.append((outer, rng.choice([1, 2, 3, 3, 4])))
    stored = builder.build(
        [
            f"compress {m} {CODECS[c if c < 4 else 1]} - {data.hex()}"
            for (m, c), data in zip(kinds, sets, strict=True)
        ]
    )
    out = []
    for (magic, codec), data in zip(kinds, stored, strict=True):
        value = None if rng.random() < 0.03 else data
        attributes = codec | rng.choice([0, 0, 8, 0x10])
        out.append(
            message(
                rng.choice([0, 2, 102, 1 << 41, 1]), magic, None, value, attributes=attributes, timestamp=9000
            )
        )
    return out


def odd_payloads(rng: random.Random, builder: Builder, count: int) -> list[bytes]:
    """Valid records whose compressed form is damaged, repeated, truncated or followed by other bytes."""
    # One in eight fills several blocks of each codec, which are up to 128 KiB.
    plain = [
        b"".join(record(i, value=rng.randbytes(30) * rng.choice(times)) for i in range(2))
        for times in ([3000], *[[1, 40]] * 7)
    ]
    codecs = [rng.randrange(1, 5) for _ in range(count)]
    picked = [rng.choice(plain) for _ in range(count)]
    levels = [rng.choice(["-", "1"]) if CODECS[c] != "snappy" else "-" for c in codecs]
    stored = builder.build(
        [
            f"compress 2 {CODECS[c]} {lv} {data.hex()}"
            for c, lv, data in zip(codecs, levels, picked, strict=True)
        ]
    )
    out = []
    for codec, data in zip(codecs, stored, strict=True):
        kind = rng.randrange(7)
        if kind == 0:
            data = data[: rng.randrange(len(data))]
        elif kind == 1:
            data += rng.choice([b"\0", b"\0" * 4, b"\xff" * 8, rng.randbytes(20), data, data[:16], data[:5]])
        elif kind == 2:
            # The rules are about the frame's header and its end.
            place = rng.choice(
                [rng.randrange(min(24, len(data))), len(data) - 1 - rng.randrange(min(12, len(data)))]
            )
            data = data[:place] + bytes([rng.randrange(256)]) + data[place + 1 :]
        elif kind == 3:
            data = _flip(rng, data)
        elif kind == 4:
            place = rng.randrange(len(data))
            data = data[:place] + rng.randbytes(rng.choice([1, 4])) + data[place:]
        elif kind == 5:
            data = rng.randbytes(rng.randrange(40))
        out.append(V2(data, rng.choice([2, 2, 2, 0, 1, 3]), attributes=codec).bytes())
    return out


def sample() -> list[bytes]:
    """Small valid batches to damage, some of them in sequence."""
    return [
        batch([record(0)]),
        batch([record(i, headers=[(b"h", b"x"), (b"h", None)]) for i in range(3)]),
        batch([record(0)]) + batch([record(0), record(1)], base_offset=200),
        message(7) + message(8, 0) + batch([record(0)]),
        batch([], count=0),
    ]
