"""Where the drop-ins follow Kafka instead of the original: each row of docs/dropins.md."""

from __future__ import annotations

import gzip
import re
import struct
import zlib
from pathlib import Path
from typing import Any

import magicbyte
import pytest
import wire
from dropin_cases import AIOKAFKA, CLIENTS, CODECS, KAFKA_PYTHON, NOW, Client
from wire import V2

ROOT = Path(__file__).parents[2]


@pytest.fixture(params=CLIENTS, ids=str)
def client(request: pytest.FixtureRequest) -> Client:
    assert isinstance(request.param, Client)
    return request.param


def read(side: Any, data: bytes) -> list[Any]:
    """All records of a fetched buffer."""
    found: list[Any] = []
    fetched = side.MemoryRecords(data)
    while fetched.has_next():
        batch = fetched.next_batch()
        assert batch.validate_crc()
        found.extend(batch)
    return found


def refuses(side: Any, data: bytes, error: type[Exception]) -> bool:
    try:
        read(side, data)
    except error:
        return True
    return False


def message(magic: int, attributes: int, value: bytes, offset: int = 0) -> bytes:
    return wire.message(offset, magic, None, value, attributes=attributes, timestamp=NOW)


# --- reading --------------------------------------------------------------------------------------


def test_everything_brokers_wrote(client: Client, kafka: Path) -> None:
    """All partitions of the test data, of every magic and codec, are read as Kafka reads them."""
    seen = 0
    for partition in sorted(kafka.iterdir()):
        logs = sorted(partition.glob("*.log"))
        summary = partition / "summary.json"
        if not summary.exists() or "torn" in partition.name or "unclean" in partition.name:
            continue
        found = []
        for log in logs:
            fetched = client.ours.MemoryRecords(log.read_bytes())
            while fetched.has_next():
                batch = fetched.next_batch()
                assert batch.validate_crc()
                if not batch.is_control_batch:
                    found += [(r.offset, r.key, r.value) for r in batch]
        plain = [
            (record.offset, record.key_bytes, record.value_bytes)
            for log in logs
            for batch in magicbyte.read_batches(log.read_bytes())
            if not batch.is_control
            for record in batch
        ]
        assert found == plain
        seen += len(found)
    assert seen > 5000


def test_mixed_magics(client: Client) -> None:
    data = b"".join(one_record(magic, offset) for offset, magic in enumerate((0, 1, 2, 1, 0, 2)))
    assert [record.offset for record in read(client.ours, data)] == list(range(6))
    # aiokafka misjudges the magic of some batches, which are then garbage to it.
    assert refuses(client.original, data, Exception) == (client is AIOKAFKA)


def one_record(magic: int, offset: int, codec: int = 0) -> bytes:
    builder = magicbyte.RecordsBuilder(magic, codec)
    builder.append(offset, NOW, b"k", b"v")
    return builder.build()


def test_lz4_of_magic_0(client: Client, kafka: Path) -> None:
    log = min((kafka / "v0_lz4").glob("*.log"))
    assert len(read(client.ours, log.read_bytes())) > 10
    assert refuses(client.original, log.read_bytes(), Exception)
    builder = client.ours.LegacyRecordBatchBuilder(0, 3, 1 << 20)
    for offset in range(10):
        builder.append(offset, None, b"k", b"v")
    built = bytes(builder.build())
    # With the frame header checksum of KAFKA-3160.
    assert built[26:33].hex() == "04224d1860401a"
    assert len(read(client.ours, built)) == 10


def test_unknown_magic(client: Client) -> None:
    for magic in (3, 0x7F, 0xFF):
        data = bytearray(one_record(2, 0))
        data[16] = magic
        with pytest.raises(client.corrupt, match="magic"):
            read(client.ours, bytes(data))
        with pytest.raises(client.corrupt, match="magic"):
            list(client.ours.DefaultRecordBatch(bytes(data)))


def test_too_short_for_a_header(client: Client) -> None:
    data = one_record(2, 0)
    for size in (0, 1, 16, 60):
        with pytest.raises(client.corrupt):
            client.ours.DefaultRecordBatch(data[:size])
    short = bytearray(data[:60])
    short[8:12] = (48).to_bytes(4, "big")
    with pytest.raises(client.corrupt):
        client.ours.MemoryRecords(bytes(short)).next_batch()


def test_records_are_judged_as_a_whole(client: Client) -> None:
    """Bytes after the last record are noticed; a record's fields cannot extend into the next record."""
    two = wire.record(0) + wire.record(1)
    remaining = V2(two + b"\0", count=2).bytes()
    batch = client.ours.DefaultRecordBatch(remaining)
    assert next(iter(batch)).offset == 100
    with pytest.raises(client.corrupt, match="remain"):
        next(batch)
    original = client.original.DefaultRecordBatch(remaining)
    assert [next(iter(original)).offset, next(original).offset] == [100, 101]


def test_varints_as_kafka_reads_them(client: Client) -> None:
    body = wire.record(0)[1:]
    for size, accepted in ((2, True), (5, True), (6, False), (9, False)):
        data = V2(wire.overlong(len(body), size) + body).bytes()
        assert refuses(client.ours, data, client.corrupt) != accepted
        assert not refuses(client.original, data, Exception)


def test_negative_sizes_are_null(client: Client) -> None:
    value = message(0, 0, b"v")
    changed = bytearray(value[:-5] + struct.pack(">i", -2))
    changed[8:12] = (len(changed) - 12).to_bytes(4, "big")
    changed[12:16] = zlib.crc32(changed[16:]).to_bytes(4, "big")
    (record,) = read(client.ours, bytes(changed))
    assert record.value is None
    if client is AIOKAFKA:
        with pytest.raises(SystemError):
            client.original.LegacyRecordBatch(bytes(changed), 0)


def test_header_keys_that_are_not_utf8(client: Client) -> None:
    data = V2(wire.record(headers=[(b"\xff\xfe", b"v")])).bytes()
    (record,) = read(client.ours, data)
    assert record.headers == [("\udcff\udcfe", b"v")]
    builder = client.default_builder(client.ours, 0)
    builder.append(0, NOW, record.key, record.value, record.headers)
    (again,) = client.ours.DefaultRecordBatch(builder.build())
    assert again.headers == record.headers
    assert refuses(client.original, data, Exception)


def test_data_that_does_not_decompress(client: Client) -> None:
    for codec in (1, 2, 3, 4):
        data = V2(b"no such stream", attributes=codec).bytes()
        with pytest.raises(client.corrupt, match="decompress"):
            read(client.ours, data)
        assert not refuses_with(client.original, data, client.corrupt)


def refuses_with(side: Any, data: bytes, error: type[Exception]) -> bool:
    try:
        read(side, data)
    except Exception as found:
        return isinstance(found, error)
    return False


def test_bombs(client: Client) -> None:
    data = V2(gzip.compress(bytes(300 << 20), 1), attributes=1).bytes()
    with pytest.raises(client.corrupt, match="limit of 268435456 bytes"):
        read(client.ours, data)


def test_streams_as_kafka_reads_them(client: Client) -> None:
    record = wire.record(0)
    xerial = b"\x82SNAPPY\0" + struct.pack("<ii", 1, 1)
    raw = bytes([len(record), (len(record) - 1) << 2]) + record
    snappy = V2(xerial + struct.pack(">i", len(raw)) + raw, attributes=2).bytes()
    # Redpanda writes the version in little-endian.
    assert [r.key for r in read(client.ours, snappy)] == [b"k"]
    assert refuses(client.original, snappy, Exception) == (client is AIOKAFKA)
    members = gzip.compress(record) + gzip.compress(wire.record(1))
    assert len(read(client.ours, V2(members, count=2, attributes=1).bytes())) == 2
    # Bytes after a gzip stream are ignored.
    assert len(read(client.ours, V2(gzip.compress(record) + b"garbage!", attributes=1).bytes())) == 1
    assert refuses(client.original, V2(gzip.compress(record) + b"garbage!", attributes=1).bytes(), Exception)


def test_empty_batches_may_keep_their_codec(client: Client) -> None:
    for codec in (1, 2, 3, 4):
        data = V2(b"", count=0, attributes=codec).bytes()
        assert read(client.ours, data) == []
    data = V2(b"bytes", count=0).bytes()
    assert read(client.ours, data) == []
    with pytest.raises(client.corrupt, match="unconsumed"):
        read(client.original, data)


def test_a_length_that_is_not_the_buffers(client: Client) -> None:
    builder = client.default_builder(client.ours, 0)
    for offset in range(3):
        builder.append(offset, 1, b"k", b"v", [])
    data = bytes(builder.build())
    for broken, found in ((data + b"zz", 3), (data[:-1], 2), (data[:11] + b"\0" + data[12:], 3)):
        with pytest.raises(client.corrupt, match=r"size|ends early"):
            next(iter(client.ours.DefaultRecordBatch(broken)))
        original = iter(client.original.DefaultRecordBatch(broken))
        assert [next(original).value for _ in range(found)] == [b"v"] * found


def test_offsets_in_wrappers(client: Client) -> None:
    inner = message(1, 0, b"a", 0) + message(1, 0, b"b", 3)
    for offset, expected in ((10, [7, 10]), (3, [0, 3]), (0, [0, 3])):
        data = message(1, 1, gzip.compress(inner), offset)
        assert [record.offset for record in read(client.ours, data)] == expected
    # Smaller than the last inner offset, which is impossible in a log.
    with pytest.raises(client.corrupt, match="offset"):
        read(client.ours, message(1, 1, gzip.compress(inner), 2))
    assert [r.offset for r in read(client.original, message(1, 1, gzip.compress(inner), 2))] == [0, 3]


def test_wrappers_of_another_magic(client: Client) -> None:
    inner = message(0, 0, b"a", 0) + message(0, 0, b"b", 1)
    found = read(client.ours, message(1, 1, gzip.compress(inner), 11))
    assert [(r.offset, r.timestamp, r.timestamp_type, r.value) for r in found] == [
        (10, None, None, b"a"),
        (11, None, None, b"b"),
    ]


def test_time_flags_inside_wrappers(client: Client) -> None:
    inner = message(1, 8, b"a", 0)
    (record,) = read(client.ours, message(1, 1, gzip.compress(inner), 0))
    assert (record.timestamp, record.timestamp_type) == (NOW, 0)


def test_wrappers_inside_wrappers(client: Client) -> None:
    inner = message(1, 1, gzip.compress(message(1, 0, b"a")))
    data = message(1, 1, gzip.compress(inner))
    with pytest.raises(client.corrupt, match="compressed"):
        read(client.ours, data)
    with pytest.raises(AssertionError):
        read(client.original, data)
    for empty in (b"", b"\0" * 5):
        with pytest.raises(client.corrupt, match="no messages inside"):
            read(client.ours, message(1, 1, gzip.compress(empty)))


def test_checksums_inside_wrappers() -> None:
    """Checking the outer CRC also checks the inner ones, as in Kafka's consumer."""
    inner = bytearray(message(1, 0, b"value"))
    inner[-1] ^= 1
    data = message(1, 1, gzip.compress(bytes(inner)))
    unchecked = AIOKAFKA.ours.LegacyRecordBatch(data, 1)
    assert len(list(unchecked)) == 1
    assert unchecked.validate_crc()
    with pytest.raises(AIOKAFKA.corrupt, match="CRC"):
        list(unchecked)
    assert len(read(AIOKAFKA.original, data)) == 1
    # kafka-python checks each record separately.
    for side in (KAFKA_PYTHON.ours, KAFKA_PYTHON.original):
        assert [record.validate_crc() for record in read(side, data)] == [False]


def test_the_outer_checksum_after_iteration(client: Client) -> None:
    data = message(1, 1, gzip.compress(message(1, 0, b"a")))
    ours, original = (side.LegacyRecordBatch(data, 1) for side in (client.ours, client.original))
    assert (len(list(ours)), len(list(original))) == (1, 1)
    assert (ours.validate_crc(), original.validate_crc()) == (True, False)


def test_iterating_again() -> None:
    data = one_record(2, 0)
    batch = AIOKAFKA.ours.DefaultRecordBatch(data)
    assert [len(list(batch)), len(list(batch))] == [1, 1]
    original = AIOKAFKA.original.DefaultRecordBatch(data)
    assert len(list(original)) == 1
    with pytest.raises(AIOKAFKA.corrupt):
        list(original)


def test_the_magic_that_is_asked_for(client: Client) -> None:
    with pytest.raises(AssertionError):
        client.ours.LegacyRecordBatch(message(1, 0, b"v"), 0)


# --- building -------------------------------------------------------------------------------------


def test_codec_levels(client: Client) -> None:
    """Kafka's defaults: fast LZ4, gzip 6 without a time in its header, compressed even if that is larger."""
    kafkas = magicbyte.RecordsBuilder(2, 3, producer_id=-1)
    builder = client.default_builder(client.ours, 3)
    for offset in range(50):
        builder.append(offset, NOW, b"key", b"value %d" % offset * 5, [])
        kafkas.append(offset, NOW, b"key", b"value %d" % offset * 5)
    assert bytes(builder.build())[61:] == kafkas.build()[61:]
    for codec in (1, 2, 3, 4):
        small = client.default_builder(client.ours, codec)
        small.append(0, NOW, None, b"v", [])
        assert client.ours.DefaultRecordBatch(small.build()).compression_type == codec


def test_leader_epoch(client: Client) -> None:
    for side, expected in ((client.ours, -1), (client.original, -1 if client is AIOKAFKA else 0)):
        builder = client.default_builder(side, 0)
        builder.append(0, NOW, None, b"v", [])
        assert struct.unpack_from(">i", builder.build(), 12) == (expected,)


def test_batches_without_records(client: Client) -> None:
    for codec in CODECS:
        built = client.default_builder(client.ours, codec).build()
        assert len(built) == 61
        assert built[21:23] == b"\0\0"
        assert struct.unpack_from(">qq", built, 27) == (-1, -1)
    assert client.ours.LegacyRecordBatchBuilder(1, 1, 99).build() == b""


def test_the_first_timestamp() -> None:
    """aiokafka takes a first timestamp of -1 for unset and uses the second record's for both."""
    for client, side, expected in (
        (AIOKAFKA, AIOKAFKA.ours, [-1, NOW]),
        (AIOKAFKA, AIOKAFKA.original, [NOW, NOW]),
        (KAFKA_PYTHON, KAFKA_PYTHON.ours, [-1, NOW]),
    ):
        builder = client.default_builder(side, 0)
        builder.append(0, -1, None, b"v", [])
        builder.append(1, NOW, None, b"v", [])
        assert [record.timestamp for record in side.DefaultRecordBatch(bytes(builder.build()))] == expected


def test_wrappers_offset_and_time(client: Client) -> None:
    for magic in (0, 1):
        builder = client.ours.LegacyRecordBatchBuilder(magic, 1, 1 << 20)
        for offset in range(4):
            builder.append(offset, NOW + offset % 3, None, b"v")
        built = builder.build()
        assert struct.unpack_from(">q", built) == (3,)
        if magic:
            assert struct.unpack_from(">q", built, 18) == (NOW + 2,)
        assert [record.offset for record in read(client.ours, bytes(built))] == [0, 1, 2, 3]


def test_offsets_beyond_32_bits(client: Client) -> None:
    builders = [client.default_builder(client.ours, 0), client.ours.LegacyRecordBatchBuilder(1, 0, 1 << 30)]
    for builder in builders:
        headers = ([],) if builder is builders[0] else ()
        for offset in (1 << 31, -(1 << 31) - 1, 1 << 62):
            with pytest.raises(ValueError, match="offset"):
                builder.append(offset, NOW, b"k", b"v", *headers)
        assert builder.append((1 << 31) - 1, NOW, b"k", b"v", *headers) is not None


def test_building_twice(client: Client) -> None:
    for codec in CODECS:
        builder = client.default_builder(client.ours, codec)
        builder.append(0, NOW, b"k", b"v" * 100, [])
        first = bytes(builder.build())
        assert builder.build() == first


def test_encode_varint_counts(client: Client) -> None:
    suffix = "_cython" if client is AIOKAFKA else ""
    for value, size in ((0, 1), (1 << 33, 5), (1 << 34, 6), (1 << 61, 9), (-(1 << 63), 10)):
        written: list[int] = []
        assert getattr(client.ours, f"encode_varint{suffix}")(value, written.append) == size == len(written)


def test_reading_beyond_the_buffer(client: Client) -> None:
    decode = client.ours.decode_varint_cython if client is AIOKAFKA else client.ours.decode_varint
    for data, at in ((b"", 0), (b"\x80\x80", 0), (b"\0", 1), (b"\0", -1), (b"\0", 1 << 40)):
        with pytest.raises(IndexError):
            decode(data, at)


# --- the page -------------------------------------------------------------------------------------


def test_every_deviation_is_on_the_page() -> None:
    page = (ROOT / "docs/dropins.md").read_text()
    here = set(re.findall(r"^def (test_\w+)", Path(__file__).read_text(), re.MULTILINE))
    here -= {"test_every_deviation_is_on_the_page"}
    named = set(re.findall(r"`(test_\w+)`", page))
    assert named == here
