"""The cases of the corpus: for each rule, bytes that follow it and bytes that break it."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from dataclasses import replace

from oracle import Builder
from wire import CODECS, V2, batch, message, overlong, record, sized, varint

# id, description, bytes
Case = tuple[str, str, bytes]
GOOD = batch([record(0), record(1)])


def length_of(data: bytes, length: int) -> bytes:
    return data[:8] + struct.pack(">i", length) + data[12:]


def lz4_checksum(descriptor: bytes) -> int:
    """The second byte of XXH32 over fewer than 16 bytes, seed 0."""
    mask = 0xFFFFFFFF
    p1, p2, p3, p5 = 2654435761, 2246822519, 3266489917, 374761393
    h = (p5 + len(descriptor)) & mask
    for byte in descriptor:
        h = (h + byte * p5) & mask
        h = ((h << 11 | h >> 21) & mask) * p1 & mask
    for shift, prime in ((15, p2), (13, p3)):
        h = (h ^ h >> shift) * prime & mask
    return (h ^ h >> 16) >> 8 & 0xFF


def framing() -> Iterator[Case]:
    yield "empty-input", "no bytes at all", b""
    yield "mixed-magics", "batches of magic 0, 1 and 2 in sequence", message(0, 0) + message(1, 1) + GOOD
    for cut in (1, 11, 12, 16, 17, 60, 61, len(GOOD) - 1):
        yield f"cut-at-{cut}", f"the second batch is cut after {cut} bytes: a normal end", GOOD + GOOD[:cut]
    for zeros in (11, 12, 17, 61):
        yield f"zero-tail-{zeros}", f"{zeros} zeros after a batch", GOOD + b"\0" * zeros
    for length in (-(1 << 31), -1, 0, 13, 14, 48, 49, (1 << 31) - 13, (1 << 31) - 12, (1 << 31) - 1):
        yield f"length-{length}", f"a whole batch with length {length}", length_of(GOOD, length)
    yield (
        "length-overflow-cut",
        "length 2^31-1, cut before the magic",
        length_of(GOOD, (1 << 31) - 1)[:16],
    )
    for magic in (-128, -1, 3, 127):
        bad = GOOD[:16] + struct.pack("b", magic) + GOOD[17:]
        yield f"magic-{magic}", f"magic {magic}", bad
        yield f"magic-{magic}-cut", f"magic {magic} in a batch cut after it: an error, not a cut", bad[:17]
        yield f"magic-{magic}-unseen", "cut before the magic: a normal end", bad[:16]
    yield "length-one-short", "a length that excludes the last byte", length_of(GOOD, len(GOOD) - 13)
    yield (
        "good-behind-bad-crc",
        "a batch with a wrong CRC, then a good one",
        V2(record(0), crc=1).bytes() + GOOD,
    )


def header() -> Iterator[Case]:
    def one(**fields: int) -> bytes:
        return V2(record(0) + record(1), 2, **fields).bytes()

    yield "crc-right", "the CRC-32C from the attributes on", one()
    yield "crc-wrong", "a wrong CRC", one(crc=0)
    yield "crc-ieee", "CRC-32 instead of CRC-32C", one(crc=zlib.crc32(GOOD[21:]))
    yield (
        "outside-crc",
        "leader epoch and base offset are outside the CRC",
        b"\0" * 7 + b"\x09" + GOOD[8:12] + b"\0\0\0\x63" + GOOD[16:],
    )
    for bit, name in (
        (3, "log-append-time"),
        (4, "transactional"),
        (6, "delete-horizon"),
        (7, "reserved-7"),
        (8, "high-byte"),
        (15, "sign"),
    ):
        yield f"attribute-{name}", f"attribute bit {bit} set", one(attributes=1 << bit)
    for codec in (5, 6, 7):
        yield f"codec-{codec}", f"codec number {codec}", one(attributes=codec)
        yield (
            f"codec-{codec}-empty",
            f"codec number {codec} in a batch without records",
            V2(count=0, attributes=codec).bytes(),
        )
    yield "codec-from-low-byte", "the high byte has no codec bits", one(attributes=0x0700)
    for count in (-(1 << 31), -1, 0, 1, 3, (1 << 31) - 1):
        yield (
            f"count-{count}",
            f"two records, count {count}",
            V2(record(0) + record(1), count, last_offset_delta=1).bytes(),
        )
    yield (
        "empty-retained",
        "a batch emptied by compaction",
        V2(count=0, last_offset_delta=9, base_timestamp=-1, base_sequence=4).bytes(),
    )
    for codec, name in enumerate(CODECS):
        yield (
            f"count-0-{name}",
            f"no records, no payload, codec {name}",
            V2(count=0, attributes=codec).bytes(),
        )
        yield (
            f"count-0-{name}-junk",
            f"no records, a payload of junk, codec {name}",
            V2(b"junk", 0, attributes=codec).bytes(),
        )
    for delta in (-1, 0, 9, (1 << 31) - 1, -(1 << 31)):
        yield (
            f"last-offset-delta-{delta}",
            f"two records, lastOffsetDelta {delta}: not compared",
            one(last_offset_delta=delta),
        )
    for base in (0, -1, -5, (1 << 31) - 1, -(1 << 31)):
        yield (
            f"sequence-{base}",
            f"baseSequence {base}: the next one after 2^31-1 is 0",
            one(base_sequence=base, producer_id=7, producer_epoch=1),
        )
    yield "offset-huge", "a base offset of 2^63-1: the last offset overflows", one(base_offset=(1 << 63) - 1)
    yield "offset-negative", "a base offset of -1", one(base_offset=-1)
    yield "timestamps-negative", "negative timestamps", one(base_timestamp=-500, max_timestamp=-400)
    yield (
        "timestamp-overflow",
        "a timestamp above 2^63-1 overflows",
        V2(record(0, timestamp_delta=10), base_timestamp=(1 << 63) - 1).bytes(),
    )
    yield (
        "append-time",
        "append time replaces the timestamp of every record",
        V2(record(0, timestamp_delta=5), attributes=8).bytes(),
    )
    yield (
        "horizon-deltas",
        "deltas count from the delete horizon",
        V2(record(0, timestamp_delta=-900_000), attributes=0x40, base_timestamp=1_000_000).bytes(),
    )
    yield (
        "epoch-without-producer",
        "epoch and sequence without a producer id",
        one(producer_epoch=3, base_sequence=1),
    )


def records(builder: Builder) -> Iterator[Case]:
    def raw(*parts: bytes) -> bytes:
        return sized(b"".join(parts))

    start = b"\0\0\0"
    k, v, none = varint(1) + b"k", varint(1) + b"v", varint(0)
    forms: list[tuple[str, str, bytes]] = [
        ("plain", "key and value", record(0)),
        ("nulls", "null key, null value", record(0, None, None)),
        ("empty", "empty key, empty value", record(0, b"", b"")),
        ("attributes", "record attributes that are not 0", record(0, attributes=0x7F)),
        ("key-minus-2", "any negative key length is null", raw(start, varint(-2), v, none)),
        ("value-minus-5", "any negative value length is null", raw(start, k, varint(-5), none)),
        ("header", "one header", record(0, headers=[(b"h", b"x")])),
        ("header-null", "a null header value", record(0, headers=[(b"h", None)])),
        ("header-empty", "empty header key and value", record(0, headers=[(b"", b"")])),
        ("header-twice", "the same key twice, in order", record(0, headers=[(b"h", b"1"), (b"a", b"2"), (b"h", b"3")])),
        ("header-not-utf8", "header keys are not checked", record(0, headers=[(b"\xff\xfe", b"x")])),
        ("header-value-minus-3", "any negative header value length is null", raw(start, k, v, varint(1), varint(1), b"h", varint(-3))),
        ("header-key-null", "a null header key", raw(start, k, v, varint(1), varint(-1), varint(0))),
        ("headers-minus-1", "a negative header count", raw(start, k, v, varint(-1))),
        ("headers-too-many", "more headers announced than bytes left", raw(start, k, v, varint(1 << 20))),
        ("headers-one-missing", "two headers announced, one present", raw(start, k, v, varint(2), varint(1), b"h", varint(0))),
        ("delta-4", "the first offset delta need not be 0", record(4)),
        ("delta-negative", "a negative offset delta", record(-1)),
        ("time-delta-64-bit", "a timestamp delta of 2^40 milliseconds", record(0, timestamp_delta=1 << 40)),
        ("overlong-2", "a key length in two bytes instead of one", raw(start, overlong(1, 2), b"k", v, none)),
        ("overlong-5", "a key length in five bytes", raw(start, overlong(1, 5), b"k", v, none)),
        ("overlong-6", "a key length in six bytes", raw(start, overlong(1, 6), b"k", v, none)),
        ("varint-high-bits", "bits beyond the 32nd are dropped", raw(start, b"\x82\x80\x80\x80\x70", b"k", v, none)),
        ("varlong-10", "a timestamp delta in ten bytes", raw(b"\0", overlong(3, 10), none, k, v, none)),
        ("varlong-11", "a timestamp delta in eleven bytes", raw(b"\0", overlong(3, 11), none, k, v, none)),
        ("size-overlong", "the record's size in three bytes", overlong(7, 3) + record(0)[1:]),
        ("size-overlong-6", "the record's size in six bytes", overlong(7, 6) + record(0)[1:]),
        ("size-0", "a record of size 0", varint(0)),
        ("size-minus-1", "a record of size -1", varint(-1)),
        ("size-plus-1", "a size one too large", varint(len(record(0))) + record(0)[1:]),
        ("size-minus", "a size one too small", varint(len(record(0)) - 2) + record(0)[1:]),
        ("size-huge", "a size of 2^31-1", varint((1 << 31) - 1) + record(0)[1:]),
        ("byte-left", "a byte between the last field and the end", raw(start, k, v, none, b"\0")),
        ("key-too-long", "a key longer than the record", raw(start, varint(100), b"k", v, none)),
        ("value-too-long", "a value longer than the record", raw(start, k, varint(100), b"v", none)),
        ("cut", "a record that ends inside its value", raw(start, k, varint(9), b"v")),
    ]  # fmt: skip
    payloads = [(name, why, data + record(1)) for name, why, data in forms]
    payloads.append(("one-missing", "two records announced, one present", record(0)))
    payloads.append(("one-left", "two records announced, three present", record(0) + record(1) + record(2)))
    payloads.append(("zero-left", "a zero after the last record", record(0) + record(1) + b"\0"))
    for name, why, payload in payloads:
        yield name, why, V2(payload, 2).bytes()
        packed = builder.compress("gzip", payload)
        yield f"{name}-gzip", f"{why}, compressed", V2(packed, 2, attributes=1).bytes()


def control() -> Iterator[Case]:
    def one(key: bytes | None, value: bytes | None) -> bytes:
        return V2(record(0, key, value), attributes=0x30, producer_id=7, producer_epoch=1).bytes()

    marker = struct.pack(">hi", 0, 3)
    for number, name in enumerate(("abort", "commit", "leader-change", "snapshot-header", "snapshot-footer")):
        yield f"control-{name}", f"control type {number}", one(struct.pack(">hh", 0, number), marker)
    yield (
        "control-unknown",
        "an unknown type: consumers skip it, but it can be read",
        one(struct.pack(">hh", 0, 99), marker),
    )
    yield "control-version-1", "a later version of the key", one(struct.pack(">hh", 1, 0), marker)
    yield (
        "control-key-short",
        "a short key: parsed only on request, not while reading",
        one(b"\0\0", marker),
    )
    yield "control-key-null", "a null key: likewise", one(None, marker)
    yield (
        "control-no-transaction",
        "control without the transaction bit",
        V2(record(0, b"\0\0\0\0", marker), attributes=0x20).bytes(),
    )


def legacy(builder: Builder) -> Iterator[Case]:
    for magic in (0, 1):
        yield f"v{magic}", f"one message of magic {magic}", message(7, magic)
        yield f"v{magic}-nulls", "null key, null value", message(7, magic, None, None)
        yield f"v{magic}-tail", "bytes after the value", message(7, magic, tail=b"xyz")
        yield f"v{magic}-crc-wrong", "a wrong CRC", message(7, magic, crc=1)
        yield f"v{magic}-append-time", "the append time flag", message(7, magic, attributes=8)
        yield f"v{magic}-reserved", "reserved attribute bits", message(7, magic, attributes=0xF0)
        yield f"v{magic}-zstd", "zstd, which needs magic 2", message(7, magic, attributes=4)
        yield f"v{magic}-codec-5", "codec number 5", message(7, magic, attributes=5)
        yield (
            f"v{magic}-wrapper-null",
            "a wrapper with a null value",
            message(7, magic, None, None, attributes=1),
        )
        for name, key in (("key-minus-2", b"\xff\xff\xff\xfe"), ("key-too-long", b"\0\0\0\x63")):
            time = b"" if magic == 0 else b"\0" * 8
            body = bytes([magic, 0]) + time + key + b"\0\0\0\x01v"
            data = struct.pack(">qiI", 7, 4 + len(body), zlib.crc32(body)) + body
            yield f"v{magic}-{name}", "a key size that is negative, or larger than the message", data
    body = b"\x01\0" + b"\0" * 8
    yield (
        "v1-size-14",
        "a magic 1 message as small as one of magic 0",
        struct.pack(">qiI", 7, 14, zlib.crc32(body)) + body,
    )
    yield "v1-time-minus-5", "a negative timestamp", message(7, 1, timestamp=-5)

    pair = message(0) + message(1, timestamp=1001)
    inside: list[tuple[str, str, int, int, int, bytes]] = [
        ("v1-relative", "relative offsets end at the wrapper's", 11, 1, 0, pair),
        ("v1-gap", "gaps left by compaction are kept", 10, 1, 0, message(0) + message(3)),
        ("v1-offset-0", "wrapper offset 0: the offsets inside are used as they are", 0, 1, 0, pair),
        ("v1-offset-small", "wrapper offset below the last relative one", 1, 1, 0, message(0) + message(3)),
        ("v1-append-time", "append time: all records get the wrapper's timestamp", 11, 1, 8, pair),
        ("v1-inner-flag", "the flag of an inner message alone is ignored", 11, 1, 0, message(0, attributes=8)),
        ("v0-absolute", "magic 0 stores absolute offsets", 11, 0, 0, message(10, 0) + message(11, 0)),
        ("v0-offset-ignored", "magic 0 ignores the wrapper's offset", 3, 0, 0, message(10, 0) + message(11, 0)),
        ("v0-in-v1", "magic 0 inside magic 1", 11, 1, 8, message(0, 0) + message(1, 0)),
        ("v1-in-v0", "magic 1 inside magic 0", 11, 0, 0, pair),
        ("v2-inside", "magic 2 inside", 11, 1, 0, message(0, 2)),
        ("nothing-inside", "no message inside", 11, 1, 0, b""),
        ("cut-inside", "the last message inside is cut: dropped", 11, 1, 0, pair + message(2)[:-1]),
        ("only-cut-inside", "the only message inside is cut", 11, 1, 0, message(0)[:-1]),
        ("size-13-inside", "size 13 inside", 11, 1, 0, length_of(message(0), 13)),
        ("nested", "a compressed message inside a wrapper", 11, 1, 0, message(0, attributes=1)),
        ("inner-crc-wrong", "a wrong CRC inside", 11, 1, 0, message(0) + message(1, crc=1)),
        ("inner-tail", "bytes after an inner value", 11, 1, 0, message(0, tail=b"xx") + message(1)),
    ]  # fmt: skip
    for name, why, offset, magic, attributes, messages in inside:
        for codec in (1, 2, 3):
            packed = builder.compress(CODECS[codec], messages, magic=magic)
            data = message(offset, magic, None, packed, attributes=attributes | codec, timestamp=9000)
            yield f"wrapped-{name}-{CODECS[codec]}", why, data
    packed = builder.compress("lz4", message(10, 0), magic=1)
    yield (
        "v0-lz4-right-checksum",
        "magic 0 with LZ4's correct header checksum",
        message(10, 0, None, packed, attributes=3),
    )
    packed = builder.compress("lz4", message(0), magic=0)
    yield (
        "v1-lz4-old-checksum",
        "magic 1 with the wrong LZ4 header checksum of old brokers",
        message(10, 1, None, packed, attributes=3),
    )


def codecs(builder: Builder) -> Iterator[Case]:
    payload = record(0, value=b"abc" * 50) + record(1, value=b"\x07" * 300)
    twice = record(0), record(1)
    for number, name in enumerate(CODECS[1:], 1):
        intact = V2(builder.compress(name, payload), 2, attributes=number)
        first, second = (builder.compress(name, part) for part in twice)
        yield f"{name}-as-kafka-writes", "two records", intact.bytes()
        large = builder.compress(name, record(0, value=b"\x07" * 70_000))
        yield f"{name}-several-blocks", "a value of 70,000 bytes", V2(large, attributes=number).bytes()
        yield f"{name}-no-bytes", "no bytes, one record announced", V2(b"", 1, attributes=number).bytes()
        yield (
            f"{name}-stream-of-nothing",
            "an empty stream, no records",
            V2(builder.compress(name, b""), 0, attributes=number).bytes(),
        )
        yield (
            f"{name}-two-streams",
            "two streams, a record in each",
            V2(first + second, 2, attributes=number).bytes(),
        )
        for tail in (b"\0", b"\0" * 3, b"\0" * 4, b"\xff" * 8, b"\0" * 19, b"\x55" * 40):
            mark = f"{len(tail)}-{tail[:1].hex()}"
            yield (
                f"{name}-tail-{mark}",
                f"{len(tail)} bytes of junk after the stream",
                replace(intact, payload=intact.payload + tail).bytes(),
            )
        for cut in (1, 4, 8, 12):
            yield f"{name}-cut-{cut}", f"cut by {cut}", replace(intact, payload=intact.payload[:-cut]).bytes()
        for at in range(16):
            data = bytearray(intact.payload)
            data[at] ^= 0x40
            yield (
                f"{name}-bit-{at}",
                f"one bit of byte {at} flipped",
                replace(intact, payload=bytes(data)).bytes(),
            )
        wrong = 1 + number % 4
        yield (
            f"{name}-called-{CODECS[wrong]}",
            "the number of another codec",
            replace(intact, attributes=wrong).bytes(),
        )
        yield (
            f"{name}-second-cut",
            "the second stream is cut",
            V2(first + second[:-1], 1, attributes=number).bytes(),
        )
    short = record(0)
    chunk = builder.compress("snappy", short)[20:]
    yield "snappy-raw", "one raw block without the stream's header", V2(chunk, attributes=2).bytes()
    head = b"\x82SNAPPY\0"
    body = struct.pack(">i", len(chunk)) + chunk
    yield (
        "snappy-version-little-endian",
        "version numbers little-endian",
        V2(head + b"\x01\0\0\0\x01\0\0\0" + body, attributes=2).bytes(),
    )
    again = head + struct.pack(">ii", 1, 0) + body
    yield (
        "snappy-later-version-0",
        "a second header of version 0",
        V2(builder.compress("snappy", short) + again, attributes=2).bytes(),
    )
    for size in (-1, 0, (512 << 20) + 1):
        yield (
            f"snappy-chunk-{size}",
            f"a chunk of size {size}",
            V2(head + struct.pack(">iii", 1, 1, size) + chunk, attributes=2).bytes(),
        )
    plain = struct.pack("<I", len(short) | 1 << 31) + short + b"\0" * 4
    for name, descriptor in (("no-sums", "6040"), ("dependent", "4040"), ("dictionary", "6140"), ("version-2", "a040"),
                             ("block-checksums", "7040"), ("block-4m", "6070"), ("block-code-3", "6030"), ("reserved", "6041")):  # fmt: skip
        data = bytes.fromhex("04224d18" + descriptor)
        for checksum in (lz4_checksum(data[4:]), 0):
            why = f"descriptor {descriptor}, header checksum {checksum:02x}"
            yield (
                f"lz4-{name}-{checksum:02x}",
                why,
                V2(data + bytes([checksum]) + plain, attributes=3).bytes(),
            )
    yield (
        "zstd-skippable",
        "a skippable frame first",
        V2(
            bytes.fromhex("502a4d18") + b"\x02\0\0\0ab" + builder.compress("zstd", short), attributes=4
        ).bytes(),
    )
    frame = builder.compress("zstd", short)
    yield (
        "zstd-later-frame-cut",
        "a second frame cut in its header",
        V2(frame + frame[:5], attributes=4).bytes(),
    )
    yield (
        "zstd-empty-block",
        "the empty last block is marked as compressed instead of raw",
        V2(frame[:-3] + b"\5\0\0", attributes=4).bytes(),
    )
    yield (
        "zstd-window-2g",
        "a window of 2 GB",
        V2(
            bytes.fromhex("28b52ffd00a8") + struct.pack("<I", len(short) << 3 | 1)[:3] + short, attributes=4
        ).bytes(),
    )


def built(builder: Builder) -> Iterator[Case]:
    """The output of Kafka's own builder: all magics, codecs and levels."""
    rows = "5,1000,6b,76 6,1001,~,7632 9,999,,"
    plain = "-1 -1 -1 false"
    for magic, stamp in (
        (0, "NoTimestampType"),
        (1, "CreateTime"),
        (1, "LogAppendTime"),
        (2, "CreateTime"),
        (2, "LogAppendTime"),
    ):
        for codec in CODECS:
            if magic < 2 and codec == "zstd":
                continue
            append = 5000 if stamp == "LogAppendTime" else -1
            line = f"build {magic} {codec} - {stamp} 5 {append} {plain} 0 -1 {rows}"
            yield f"built-v{magic}-{codec}-{stamp}", "three records, a gap", builder.build([line])[0]
    for codec, level in (
        ("gzip", "1"),
        ("gzip", "9"),
        ("lz4", "1"),
        ("lz4", "17"),
        ("zstd", "-5"),
        ("zstd", "19"),
    ):
        line = f"build 2 {codec} {level} CreateTime 5 -1 {plain} 0 -1 {rows}"
        yield f"built-{codec}-{level}", f"level {level}", builder.build([line])[0]
    line = f"build 2 none - CreateTime 5 -1 77 3 2147483647 true 4 -1 {rows}"
    yield "built-transaction", "transactional, the sequence wraps", builder.build([line])[0]
    line = f"build 2 none - CreateTime 5 -1 {plain} 0 2000 {rows}"
    yield "built-horizon", "with a delete horizon", builder.build([line])[0]
    for kind in ("ABORT", "COMMIT"):
        yield f"built-{kind}", "a transaction marker", builder.build([f"marker {kind} 10 1234 77 3 4 9"])[0]


def files(builder: Builder) -> dict[str, list[Case]]:
    """All cases by the name of their file."""
    return {
        "framing": list(framing()),
        "header": list(header()),
        "records": list(records(builder)),
        "control": list(control()),
        "legacy": list(legacy(builder)),
        "codecs": list(codecs(builder)),
        "built": list(built(builder)),
    }
