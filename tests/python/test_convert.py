"""magicbyte.conversion: what Rust's conversions return, losses, in-place changes, and what is refused."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import magicbyte
import pytest
from magicbyte import Compression, TimestampType
from magicbyte.conversion import (
    Converter,
    Losses,
    convert_batches,
    set_last_offset,
    set_max_timestamp,
    set_partition_leader_epoch,
    set_producer_state,
)

Row = tuple[int, int, bytes | None, bytes | None]


def rows(data: bytes) -> list[Row]:
    return [
        (record.offset, record.timestamp, record.key_bytes, record.value_bytes)
        for batch in magicbyte.read_batches(data)
        for record in batch
    ]


def built(count: int, **options: Any) -> bytes:
    builder = magicbyte.RecordsBuilder(**options)
    for index in range(count):
        builder.append(10 + index, 1000 + index, b"k%d" % index, b"value " * index)
    return builder.build()


def log_of(kafka: Path, name: str) -> bytes:
    return b"".join(segment.read_bytes() for segment in sorted((kafka / name).glob("*.log")))


@pytest.mark.parametrize("name", ["v0_gzip", "v0_none", "v1_snappy", "v1_logappend", "mixed_012"])
def test_up(kafka: Path, name: str) -> None:
    old = log_of(kafka, name)
    data, losses = convert_batches(old, compression=Compression.ZSTD, level=5)
    assert not losses.any()
    assert rows(data) == rows(old)
    for batch in magicbyte.read_batches(data):
        assert batch.magic == 2
        assert batch.compression == Compression.ZSTD or batch.record_count == 0
    kept, _ = convert_batches(old)
    before = {batch.compression for batch in magicbyte.read_batches(old)}
    assert {batch.compression for batch in magicbyte.read_batches(kept)} == before
    # Nothing is left to convert.
    assert convert_batches(kept).data == kept


def test_down_reports_losses(kafka: Path) -> None:
    new = log_of(kafka, "v2_txn")
    batches = list(magicbyte.read_batches(new))
    data, losses = convert_batches(new, magic=1, compression=Compression.GZIP)
    control = sum(batch.is_control or False for batch in batches)
    producers = sum(not batch.is_control and (batch.producer_id or -1) >= 0 for batch in batches)
    assert control > 0
    assert losses.control_batches == control
    assert losses.producer_batches == producers
    assert losses.any()
    data_rows = [row for batch in batches if not batch.is_control for row in rows(batch.to_bytes())]
    assert rows(data) == data_rows
    to_0, losses = convert_batches(built(3), magic=0)
    assert losses == Losses(timestamps=3)
    assert [row[1] for row in rows(to_0)] == [-1, -1, -1]
    with pytest.raises(magicbyte.UnsupportedCompressionError, match="zstd needs magic 2"):
        convert_batches(built(3, compression=Compression.ZSTD), magic=1)


def test_recompress_and_back(kafka: Path) -> None:
    original = log_of(kafka, "v2_none")
    for codec in (Compression.GZIP, Compression.SNAPPY, Compression.LZ4, Compression.ZSTD):
        packed = Converter(codec).recompress(original)
        assert packed != original
        assert rows(packed) == rows(original)
        assert Converter(Compression.NONE).recompress(packed) == original


def test_merge_split_rebatch() -> None:
    first = built(3, producer_id=5, producer_epoch=0, base_sequence=0)
    second = set_last_offset(built(4, producer_id=5, producer_epoch=0, base_sequence=3), 16)
    converter = Converter()
    merged = converter.merge(first + second)
    (batch,) = magicbyte.read_batches(merged)
    assert (batch.base_offset, batch.last_offset, batch.base_sequence, batch.record_count) == (10, 16, 0, 7)
    assert rows(merged) == rows(first + second)
    parts = converter.split(merged, 100)
    assert rows(parts) == rows(merged)
    sequences = [batch.base_sequence for batch in magicbyte.read_batches(parts)]
    assert len(sequences) > 2
    assert sequences == sorted(set(sequences))
    with pytest.raises(magicbyte.Error, match="differ in producer") as caught:
        converter.merge(first + built(1))
    assert (caught.value.kind, caught.value.position) == ("invalid_options", len(first))
    singles = b"".join(set_last_offset(built(1, magic=1), offset) for offset in range(20))
    packed = Converter(Compression.LZ4).rebatch(singles, 1 << 20)
    (batch,) = magicbyte.read_batches(packed)
    assert (batch.record_count, batch.compression) == (20, Compression.LZ4)
    assert rows(packed) == rows(singles)
    for refused in (converter.merge, lambda data: converter.split(data, 100)):
        with pytest.raises(magicbyte.Error, match="only batches of magic 2"):
            refused(singles)


def test_in_place() -> None:
    data = built(3) + built(2, compression=Compression.ZSTD)
    before = list(magicbyte.read_batches(data))
    moved = list(magicbyte.read_batches(set_partition_leader_epoch(bytearray(data), 7)))
    assert [batch.partition_leader_epoch for batch in moved] == [7, 7]
    assert [batch.crc for batch in moved] == [batch.crc for batch in before]
    stamped = set_max_timestamp(data, TimestampType.LOG_APPEND_TIME, 5555)
    assert {row[1] for row in rows(stamped)} == {5555}
    assert set_max_timestamp(data, TimestampType.CREATE_TIME, 1002) != data, (
        "the second batch should end at 1001"
    )
    assert set_max_timestamp(built(3), TimestampType.CREATE_TIME, 1002) == built(3)
    assert rows(set_last_offset(built(3), 99))[-1][0] == 99
    wrapper = built(3, magic=0, compression=Compression.GZIP)
    with pytest.raises(magicbyte.Error, match="absolute"):
        set_last_offset(wrapper, 99)
    assert [row[0] for row in rows(Converter().assign_offsets(wrapper, 97))] == [97, 98, 99]


GOOD = built(3)


@pytest.mark.parametrize(
    ("call", "kind", "position"),
    [
        (lambda: convert_batches(GOOD + GOOD[:-1]), "need_more_bytes", len(GOOD)),
        (lambda: convert_batches(GOOD + bytes(61)), "invalid_size", len(GOOD)),
        (lambda: set_partition_leader_epoch(GOOD + GOOD[:70], 1), "need_more_bytes", len(GOOD)),
        (lambda: set_partition_leader_epoch(GOOD + built(1, magic=1), 1), "invalid_options", len(GOOD)),
        (lambda: set_last_offset(GOOD + GOOD, 1), "invalid_size", 0),
        (lambda: set_last_offset(GOOD, 1), "offset_out_of_range", 0),
        (lambda: set_max_timestamp(built(1, magic=0), TimestampType.CREATE_TIME, 1), "invalid_options", 0),
        (lambda: Converter().assign_offsets(GOOD, 1), "invalid_options", 0),
        (lambda: convert_batches(GOOD, magic=3), "invalid_options", None),
        (lambda: Converter(level=3), "invalid_options", None),
        (lambda: Converter(7), "unknown_compression", None),
        (lambda: Converter(Compression.GZIP, 10), "unsupported_level", None),
    ],
)
def test_refused(call: Callable[[], object], kind: str, position: int | None) -> None:
    with pytest.raises(magicbyte.Error) as caught:
        call()
    assert (caught.value.kind, caught.value.position) == (kind, position)


def test_damage_gets_no_new_crc() -> None:
    damaged = bytearray(GOOD + GOOD)
    damaged[-3] ^= 1
    converter = Converter(Compression.ZSTD)
    calls: list[Callable[[], object]] = [
        lambda: convert_batches(damaged, compression=Compression.LZ4),
        lambda: converter.recompress(damaged),
        lambda: converter.merge(damaged),
        lambda: converter.split(damaged, 50),
        lambda: converter.rebatch(damaged, 1000),
        lambda: Converter(Compression.LZ4).down_convert(damaged, 1),
        lambda: set_max_timestamp(damaged, TimestampType.LOG_APPEND_TIME, 1),
    ]
    for call in calls:
        with pytest.raises(magicbyte.CorruptRecordError) as caught:
            call()
        assert (caught.value.kind, caught.value.position) == ("crc_mismatch", len(GOOD))
    # The converter can still be used.
    assert rows(converter.recompress(GOOD)) == rows(GOOD)


def test_limit() -> None:
    bomb = built(200, compression=Compression.ZSTD)
    with pytest.raises(magicbyte.LimitExceededError):
        convert_batches(bomb, compression=Compression.NONE, max_decompressed_bytes=1000)


def test_threads_share_a_converter() -> None:
    converter = Converter(Compression.ZSTD)
    expected = converter.recompress(GOOD)
    results: list[bytes] = []
    threads = [
        threading.Thread(target=lambda: results.extend(converter.recompress(GOOD) for _ in range(100)))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [expected] * 400


@pytest.mark.parametrize("compression", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_the_producer_of_a_built_batch(compression: str) -> None:
    """The rewritten batch has the bytes that a builder with that producer gives."""

    def build(state: tuple[int, int, int, bool]) -> bytes:
        builder = magicbyte.RecordsBuilder(compression=compression)
        builder.set_producer_state(*state[:3], is_transactional=state[3])
        builder.append_many([(offset, 7, b"k", b"v" * 50, {"h": b"1"}) for offset in range(20)])
        return builder.build()

    states = [
        (-1, -1, -1, False),
        (7, 0, 5, False),
        (7, 1, 0, True),
        (2**63 - 1, 2**15 - 1, 2**31 - 1, False),
    ]
    for before in states:
        for after in states:
            batch = build(before)
            for given in (batch, bytearray(batch), memoryview(batch)):
                changed = set_producer_state(given, *after[:3], is_transactional=after[3])
                assert changed == build(after)
            assert batch == build(before)
    for refused in [(1, -1, 0), (1, 0, -1)]:
        with pytest.raises(magicbyte.Error) as caught:
            set_producer_state(build(states[0]), *refused)
        assert (caught.value.kind, caught.value.position) == ("invalid_options", 0)
    with pytest.raises(magicbyte.CorruptRecordError):
        set_producer_state(build(states[0])[:-1] + b"?", 1, 0, 0)
    with pytest.raises(magicbyte.Error):
        set_producer_state(build(states[0]) * 2, 1, 0, 0)


@pytest.mark.parametrize("magic", [-1, 3, 9])
def test_other_magics_are_refused(magic: int) -> None:
    with pytest.raises(magicbyte.Error, match=f"magic {magic}: expected 0, 1 or 2"):
        convert_batches(b"", magic=magic)
