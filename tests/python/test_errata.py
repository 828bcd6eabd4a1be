"""docs/errata.md: the correct numbers, shown with bytes."""

from __future__ import annotations

import ast
import re
import struct
import zlib
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import magicbyte
import pytest
from magicbyte import Compression, RecordsBuilder, encode_varint

ROOT = Path(__file__).parents[2]
TIME = 1_714_000_000_000


def build(*values: bytes, magic: int = 2, **options: Any) -> bytes:
    """A batch (or messages) of these values, with offsets from 0 and a single timestamp."""
    builder = RecordsBuilder(magic, **options)
    builder.append_many((offset, TIME, None, value) for offset, value in enumerate(values))
    return builder.build()


def sealed(data: bytes) -> bytes:
    """The same bytes with their CRC corrected."""
    return data[:17] + struct.pack(">I", magicbyte.crc32c(data[21:])) + data[21:]


def only(data: bytes) -> magicbyte.RecordBatch | magicbyte.LegacyBatch:
    (batch,) = magicbyte.read_batches(data)
    return batch


def stored(partition: Path) -> list[magicbyte.RecordBatch | magicbyte.LegacyBatch]:
    """All batches of a partition that a broker wrote."""
    segments = sorted(partition.glob("*.log"))
    return [batch for path in segments for batch in magicbyte.read_batches(path.read_bytes())]


def test_batch_length() -> None:
    data = build(b"hello", b"world")
    (length,) = struct.unpack_from(">i", data, 8)
    assert len(data) == 12 + length
    # Counted from magic on, it would be four less.
    assert length == len(data[12:]) == len(data[16:]) + 4


def test_byte_trace() -> None:
    data = build(b"hello", b"world")
    assert len(data) == 85
    assert data[8:12].hex(" ") == "00 00 00 49"
    assert data[61:73].hex(" ") == "16 00 00 00 01 0a 68 65 6c 6c 6f 00"
    assert data[27:35].hex(" ") == "00 00 01 8f 12 5c 74 00"
    assert int("0000018D00000000", 16) == 1_705_102_016_512


def test_record_integers() -> None:
    data = bytearray(build(b"v"))
    # Attributes: as a zigzag varint, 7f would be -64.
    data[62] = 0x7F
    (record,) = only(sealed(bytes(data)))
    assert record.attributes == 0x7F
    # The timestamp delta: more than 32 bits.
    builder = RecordsBuilder()
    builder.append_many([(0, 0, None, None), (1, 1 << 40, None, None)])
    assert [record.timestamp for record in only(builder.build())] == [0, 1 << 40]


def test_metadata_of_magic_1() -> None:
    assert len(build(b"", magic=1)) == 8 + 4 + 4 + 1 + 1 + 8 + 4 + 4 == 34
    assert len(build(b"hello", b"world", magic=1)) == 78
    assert len(build(b"hello", b"world")) == 85


def test_space_saved() -> None:
    values = [b"v" * 100] * 1000
    old, new = (len(build(*values, magic=magic)) / 1000 for magic in (1, 2))
    assert old == 134
    assert round(new, 1) == 110.0
    assert round(100 * (1 - new / old), 1) == 17.9


def test_money() -> None:
    assert [tb * 20 * 12 for tb in (200, 300)] == [48_000, 72_000]
    # "60-65 % compression" read either way, of 1,000 TB.
    for percent in (60, 65):
        for left in (1000 * percent // 100, 1000 * (100 - percent) // 100):
            assert not 700 <= left <= 800


def test_offset_delta_width() -> None:
    assert [len(encode_varint(delta)) for delta in (0, 63, 64, 999)] == [1, 1, 2, 2]
    one, two = (build(*[b"v"] * count) for count in (64, 65))
    assert (len(one) - 61, len(two) - len(one)) == (64 * 8, 9)


def test_last_offset_delta(kafka: Path) -> None:
    last = [(batch.last_offset, [r.offset for r in batch][-1:]) for batch in stored(kafka / "v2_compacted")]
    assert [(batch, record) for batch, record in last if [batch] != record]


def test_lz4_frames(kafka: Path) -> None:
    batches = [b.to_bytes() for b in stored(kafka / "v2_lz4") if b.compression is Compression.LZ4]
    assert batches
    # Magic, version 1 with independent blocks, 64 KB blocks.
    assert {data[61:67].hex() for data in batches} == {"04224d186040"}


def test_codecs_of_one_log(kafka: Path) -> None:
    batches = stored(kafka / "v2_mixed_codecs")
    assert {batch.compression for batch in batches} == set(Compression)
    assert all(len(list(batch)) == batch.record_count for batch in batches)


def test_records_count() -> None:
    data = build(b"hello", b"world")
    assert struct.unpack_from(">i", data, 57) == (2,)
    # Compressed data begins after it.
    assert build(b"v" * 99, compression=Compression.ZSTD)[57:65].hex(" ") == "00 00 00 01 28 b5 2f fd"


def test_delete_horizon(kafka: Path) -> None:
    moved = [batch for batch in stored(kafka / "v2_tombstones") if batch.delete_horizon_ms is not None]
    assert moved
    for batch in moved:
        data = batch.to_bytes()
        assert data[22] & 0x40
        (base,) = struct.unpack_from(">q", data, 27)
        # Not the first record's timestamp; that is relative to it.
        assert base == batch.delete_horizon_ms
        assert all(record.timestamp < base for record in batch)


def test_magic_0_lz4(kafka: Path) -> None:
    wrappers = [b.to_bytes() for b in stored(kafka / "v0_lz4") if b.compression is Compression.LZ4]
    assert wrappers
    # After a message's fields with a null key; 82 would be the right checksum.
    assert {data[26:33].hex() for data in wrappers} == {"04224d1860401a"}


def test_control_types(kafka: Path) -> None:
    files = [kafka / "v2_txn/00000000000000000007.log", *sorted((kafka / "cluster_metadata").glob("*.*"))]
    keys = {
        record.key_bytes
        for path in files
        if path.suffix in (".log", ".checkpoint")
        for batch in magicbyte.read_batches(path.read_bytes())
        if batch.is_control
        for record in batch
    }
    # Version 0 and the type; only the type's numbers start with 0 and 1.
    assert {struct.unpack(">hh", key or b"") for key in keys} == {(0, number) for number in range(5)}


def test_marker_value(kafka: Path) -> None:
    markers = [record for batch in stored(kafka / "v2_txn") if batch.is_control for record in batch]
    assert markers
    for record in markers:
        version, epoch = struct.unpack(">hi", record.value_bytes or b"")
        assert record.control is not None
        assert (version, epoch) == (0, record.control["coordinator_epoch"])


@pytest.mark.parametrize("magic", [0, 1])
def test_crc_of_messages(magic: int) -> None:
    data = build(b"hello", magic=magic)
    # Offset and size come before the part that the document shows.
    assert struct.unpack_from(">qi", data) == (0, len(data) - 12)
    assert struct.unpack_from(">I", data, 12) == (zlib.crc32(data[16:]),)
    assert zlib.crc32(data[16:]) != magicbyte.crc32c(data[16:])


def test_header_keys() -> None:
    builder = RecordsBuilder()
    builder.append(0, TIME, headers=[(b"\xff\xfe", b"v")])
    (record,) = only(builder.build())
    assert record.headers_raw == [(b"\xff\xfe", b"v")]


def test_unused_bits() -> None:
    data = build(b"hello")
    used = sealed(data[:21] + b"\xff\x80" + data[23:])
    assert [record.value_bytes for record in only(used)] == [b"hello"]


def test_empty_batches() -> None:
    builder = RecordsBuilder(compression=Compression.GZIP)
    builder.append(0, TIME)
    assert only(builder.build()).compression is Compression.GZIP
    empty = builder.empty_batch(9, TIME)
    assert len(empty) == 61
    assert only(empty).compression is Compression.NONE


def test_sequence_wrap(kafka: Path) -> None:
    pairs = [
        (a.sequence, b.sequence)
        for batch in stored(kafka / "v2_seq_wrap")
        for a, b in zip(list(batch), list(batch)[1:], strict=False)
    ]
    assert ((1 << 31) - 1, 0) in pairs


def test_overhead() -> None:
    assert len(build(b"v")) - len(build(b"v")[61:]) == 61
    base, largest, offset = len(encode_varint(TIME)), len(encode_varint(16_000)), 2
    saved = (8 - base) + (8 - largest) + (4 - offset)
    assert (saved, round(100 * saved / 61, 1)) == (9, 14.8)


@pytest.mark.parametrize("magic", [0, 1])
def test_attributes_in_use(magic: int) -> None:
    data = build(b"hello", magic=magic, compression=Compression.SNAPPY)
    assert data[17] & 7 == Compression.SNAPPY


def test_varint_ranges() -> None:
    for size, largest in ((2, 8191), (3, 1_048_575)):
        assert len(encode_varint(largest)) == size
        assert len(encode_varint(largest + 1)) == size + 1
    assert len(encode_varint(16_000)) == 3


def test_six_bytes_of_time() -> None:
    last = (1 << 41) - 1
    assert [len(encode_varint(time)) for time in (TIME, last, last + 1)] == [6, 6, 7]
    assert datetime.fromtimestamp(last / 1000, UTC).date().isoformat() == "2039-09-07"


def test_wrapper_crc(kafka: Path) -> None:
    wrappers = [b.to_bytes() for b in stored(kafka / "v1_gzip") if b.compression is Compression.GZIP]
    assert wrappers
    for data in wrappers:
        assert struct.unpack_from(">I", data, 12) == (zlib.crc32(data[16:]),)


def test_milliseconds() -> None:
    builder = RecordsBuilder()
    builder.append_many([(0, TIME, None, None), (1, TIME + 1000, None, None)])
    second = builder.build()[61 + 7 :]
    assert magicbyte.decode_varint(second, 2)[0] == 1000


def test_what_is_shared() -> None:
    builder = RecordsBuilder()
    builder.append_many([(0, TIME, b"a" * 9, None), (1, TIME, b"a" * 9, None)])
    assert builder.build().count(b"a" * 9) == 2


def test_every_erratum_has_its_test_and_every_test_its_erratum() -> None:
    text = (ROOT / "docs/errata.md").read_text()
    rows = [line for line in text.splitlines() if line.startswith('| <a id="')]
    anchors = [re.findall(r'<a id="([\w-]+)">', row) for row in rows]
    assert len(rows) > 30
    assert len({anchor for (anchor,) in anchors}) == len(rows)
    named = set()
    for row in rows:
        tests = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", row)
        assert tests, row
        named |= set(tests)
    files = ("tests/python/test_errata.py", "tests/interop/test_broker_facts.py")
    there = {
        (path, node.name)
        for path in files
        for node in ast.parse((ROOT / path).read_text()).body
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    }
    there.discard((files[0], "test_every_erratum_has_its_test_and_every_test_its_erratum"))
    assert named == there
