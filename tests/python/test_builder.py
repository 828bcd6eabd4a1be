"""RecordsBuilder: Kafka's bytes for the same records, every option, and what is refused."""

from __future__ import annotations

import contextlib
import json
import mmap
import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import magicbyte
import pytest
from magicbyte import Compression, RecordsBuilder, TimestampType

BUILT = Path(__file__).parent.parent / "data" / "built.jsonl"


def content(pattern: str | None) -> bytes | None:
    """Expands `<hex>*<times>`."""
    if pattern is None:
        return None
    hex_digits, _, times = pattern.partition("*")
    return bytes.fromhex(hex_digits) * int(times or 1)


def cases() -> Iterator[dict[str, Any]]:
    for line in BUILT.read_text().splitlines():
        yield json.loads(line)


def build(case: dict[str, Any]) -> bytes:
    producer_id, epoch, sequence = case["producer"]
    builder = RecordsBuilder(
        case["magic"],
        Compression[case["codec"].upper()],
        producer_id=producer_id,
        producer_epoch=epoch,
        base_sequence=sequence,
        is_transactional=case["transactional"],
        partition_leader_epoch=case["leader_epoch"],
        delete_horizon_ms=case["delete_horizon"] if case["delete_horizon"] >= 0 else None,
        log_append_time=case["append_time"] if case["append_time"] >= 0 else None,
        base_offset=case["base_offset"],
    )
    for offset, timestamp, key, value, headers in case["records"]:
        builder.append(
            offset=offset,
            timestamp=timestamp,
            key=content(key),
            value=content(value),
            headers=[(content(key) or b"", content(value)) for key, value in headers],
        )
    assert builder.record_count == len(case["records"])
    assert builder.estimated_size_in_bytes == case["estimate"]
    return builder.build()


def test_bytes_match_kafka() -> None:
    equal = 0
    for case in cases():
        built = build(case)
        if case["bytes"]:
            assert built.hex() == case["bytes"], case
            equal += 1
        records = [record for batch in magicbyte.read_batches(built) for record in batch]
        for record, (offset, _, key, value, headers) in zip(records, case["records"], strict=True):
            assert (record.offset, record.key, record.value) == (offset, content(key), content(value))
            assert record.headers_raw == [(content(key), content(value)) for key, value in headers]
    assert equal > 40


def test_any_buffer_is_accepted() -> None:
    data = b"payload"
    mapped = mmap.mmap(-1, len(data))
    mapped.write(data)
    builder = RecordsBuilder()
    kinds = [data, bytearray(data), memoryview(data), memoryview(bytearray(b"x" + data))[1:], mapped]
    for offset, kind in enumerate(kinds):
        builder.append(offset, 1000, key=kind, value=kind, headers=[("h", kind)])
    (batch,) = magicbyte.read_batches(builder.build())
    for record in batch:
        assert (record.key, record.value, record.headers) == (data, data, [("h", data)])
    for wrong in (5, object(), ["text"]):
        with pytest.raises(TypeError, match=r"^key: expected bytes, str or any C-contiguous buffer, not "):
            builder.append(0, 0, wrong)  # type: ignore[arg-type]
    assert builder.record_count == 0


def test_header_keys() -> None:
    builder = RecordsBuilder()
    keys = ["ä", b"\xff\xfe", "", b"", "\udcff\udcfe"]
    builder.append(0, 0, None, None, ((key, None) for key in keys))
    (batch,) = magicbyte.read_batches(builder.build())
    (record,) = batch
    raw = ["ä".encode(), b"\xff\xfe", b"", b"", b"\xff\xfe"]
    assert record.headers_raw == [(key, None) for key in raw]
    # What reading returns, writing accepts.
    builder.append(0, 0, headers=record.headers)
    (again,) = next(iter(magicbyte.read_batches(builder.build())))
    assert again.headers_raw == record.headers_raw


def test_a_null_header_key_names_the_record() -> None:
    builder = RecordsBuilder()
    builder.append(0, 0)
    with pytest.raises(magicbyte.InvalidRecordError) as caught:
        builder.append(1, 0, headers=[("a", None), (None, b"v")])  # type: ignore[list-item]
    assert (caught.value.record_index, caught.value.field) == (1, "headerKey")
    assert builder.record_count == 1


def test_arguments() -> None:
    """`append` takes arguments as any function of its signature does, whatever their types."""

    class Bytes(bytes):
        pass

    class Index:
        def __index__(self) -> int:
            return 7

    builder = RecordsBuilder()
    append: Any = builder.append
    builder.append(0, 5, b"k", b"v", None)
    builder.append(True, 5, value=Bytes(b"v"))
    builder.append(value=None, key=memoryview(b"k"), timestamp=Compression.ZSTD, offset=2)
    append(**{"off" + "set": 3, "time" + "stamp": -1})
    append(Index(), 6)
    (batch,) = magicbyte.read_batches(builder.build())
    assert [(r.offset, r.timestamp, r.key_bytes, r.value_bytes) for r in batch] == [
        (0, 5, b"k", b"v"),
        (1, 5, None, b"v"),
        (2, 4, b"k", None),
        (3, -1, None, None),
        (7, 6, None, None),
    ]
    for wrong in (
        lambda: append(),
        lambda: append(1),
        lambda: append(timestamp=1),
        lambda: append(1, 2, None, None, None, None),
        lambda: append(1, 2, offset=1),
        lambda: append(1, 2, keys=b"k"),
        lambda: append(1.5, 2),
        lambda: append(1, 2, headers=5),
        lambda: RecordsBuilder.append(object(), 1, 2),  # type: ignore[arg-type]
    ):
        with pytest.raises(TypeError):
            wrong()
    for offset in (1 << 63, -(1 << 63) - 1):
        with pytest.raises(OverflowError):
            append(offset, 0)
    assert builder.record_count == 0


def test_reentrant_builder() -> None:
    """Python code that runs during a call may use the same builder."""
    builder = RecordsBuilder()

    def rows() -> Iterator[tuple[int, int, bytes | None, bytes | None]]:
        for offset in range(0, 10, 2):
            builder.append(offset, 0)
            yield offset + 1, 0, None, None

    builder.append_many(rows())
    builder.append(10, 0, headers=(("count", b"%d" % builder.record_count) for _ in range(1)))
    (batch,) = magicbyte.read_batches(builder.build())
    records = list(batch)
    assert [record.offset for record in records] == list(range(11))
    assert records[-1].headers_raw == [(b"count", b"10")]


def test_append_many() -> None:
    one = RecordsBuilder(compression=Compression.ZSTD)
    rows = [(i, 1000 + i, b"k%d" % i, None if i % 3 else b"v" * i, [("h", b"x")]) for i in range(50)]
    for row in rows:
        one.append(*row)
    many = RecordsBuilder(compression=Compression.ZSTD)
    many.append_many(rows)
    built = one.build()
    assert many.build() == built
    # Records as they were read.
    (batch,) = magicbyte.read_batches(built)
    copy = RecordsBuilder(compression=Compression.ZSTD)
    copy.append_many(batch)
    assert copy.build() == built
    copy.append_many([(0, 1, None, b"v"), (1, 1, None, b"v", None)])
    with pytest.raises(magicbyte.InvalidRecordError) as caught:
        copy.append_many([(2, 1, None, None), (2, 1, None, None), (3, 1, None, None)])
    assert (caught.value.kind, caught.value.record_index) == ("offset_out_of_range", 3)
    assert copy.record_count == 3
    for wrong in [(1,), "abcd", [4, 1, None, None]]:
        with pytest.raises(TypeError, match="expected tuples"):
            copy.append_many([wrong])  # type: ignore[list-item]


class Row(tuple[Any, ...]):
    """A subclass of tuple, as a named tuple is."""


def test_append_many_of_mixed_rows() -> None:
    """The fast path for lists of plain rows and the general one give the same result."""
    (stored,) = read_records([(3, 1003, b"stored", None)])
    items: list[Any] = [
        (False, 1000, b"k", b"v"),
        (1, 1001, bytearray(b"k"), memoryview(b"v")),
        Row((2, 1002, None, b"v")),
        stored,
        (4, 1 << 40, None, None, [("h", None)]),
        (5, 1005, b"", b""),
        (6, -1, None, b"v" * 1000, None),
    ]
    built = []
    for records in (items, tuple(items), iter(items)):
        builder = RecordsBuilder()
        builder.append_many(records)
        built.append(builder.build())
    one = RecordsBuilder()
    for item in items:
        one.append_many((item,))
    assert built == [one.build()] * 3
    (batch,) = magicbyte.read_batches(built[0])
    assert [(r.offset, r.timestamp) for r in batch] == [
        (0, 1000),
        (1, 1001),
        (2, 1002),
        (3, 1003),
        (4, 1 << 40),
        (5, 1005),
        (6, -1),
    ]
    with pytest.raises(OverflowError):
        one.append_many([(0, 1, None, None), (1, 1 << 64, None, None)])
    assert one.record_count == 1


def test_append_many_of_a_list_that_changes() -> None:
    """The row's `__index__` empties the list and drops the row."""
    rows: list[Any] = []

    class Clears:
        def __index__(self) -> int:
            rows.clear()
            return 1

    rows += [(0, 0, None, b"first"), (Clears(), 0, b"k" * 100, b"v" * 100), (2, 0, None, b"gone")]
    builder = RecordsBuilder()
    builder.append_many(rows)
    assert [r.value_bytes for r in read_back(builder)] == [b"first", b"v" * 100]

    class Grows:
        def __index__(self) -> int:
            rows.append((2, 0, None, b"more"))
            return 1

    rows += [(0, 0, None, None), (Grows(), 0, None, None)]
    builder.append_many(rows)
    assert [r.value_bytes for r in read_back(builder)] == [None, None, b"more"]


def read_records(rows: list[Any]) -> list[magicbyte.Record]:
    builder = RecordsBuilder()
    builder.append_many(rows)
    return read_back(builder)


def read_back(builder: RecordsBuilder) -> list[magicbyte.Record]:
    (batch,) = magicbyte.read_batches(builder.build())
    return list(batch)


def test_records_of_every_real_partition(kafka: Path) -> None:
    """Whatever was read can be written: each batch is rebuilt from its records."""
    for name in ("v2_headers", "v2_nulls", "v2_timestamps", "v1_gzip", "v0_lz4"):
        for segment in sorted((kafka / name).glob("*.log")):
            for batch in magicbyte.read_batches(segment.read_bytes()):
                builder = RecordsBuilder(batch.magic, batch.compression)
                if any(record.timestamp < -1 for record in batch):
                    # Brokers accept timestamps that Kafka's builder refuses.
                    with pytest.raises(magicbyte.InvalidRecordError, match="timestamp"):
                        builder.append_many(batch)
                    continue
                builder.append_many(batch)
                rows = [(r.offset, r.timestamp, r.key, r.value, r.headers_raw) for r in batch]
                built = builder.build()
                again = [r for b in magicbyte.read_batches(built) for r in b]
                assert [(r.offset, r.timestamp, r.key, r.value, r.headers_raw) for r in again] == rows


@pytest.mark.parametrize(
    ("options", "kind"),
    [
        ({"is_transactional": True}, "invalid_options"),
        ({"producer_id": 1}, "invalid_options"),
        ({"producer_id": 1, "producer_epoch": 0}, "invalid_options"),
        ({"magic": 1, "producer_id": 1, "producer_epoch": 0, "base_sequence": 0}, "invalid_options"),
        ({"magic": 1, "is_control": True}, "invalid_options"),
        ({"magic": 0, "delete_horizon_ms": 5}, "invalid_options"),
        ({"magic": 1, "compression": Compression.ZSTD}, "unsupported_compression"),
        ({"magic": 3}, "unsupported_magic"),
        ({"compression": 5}, "unknown_compression"),
        ({"compression": Compression.GZIP, "level": 10}, "unsupported_level"),
        ({"compression": Compression.SNAPPY, "level": 1}, "unsupported_level"),
        ({"level": 1}, "unsupported_level"),
    ],
)
def test_forbidden_options(options: dict[str, Any], kind: str) -> None:
    with pytest.raises(magicbyte.Error) as caught:
        RecordsBuilder(**options)
    assert caught.value.kind == kind


def test_timestamp_type() -> None:
    appended = RecordsBuilder(timestamp_type=TimestampType.LOG_APPEND_TIME, log_append_time=77)
    appended.append(0, 5)
    (batch,) = magicbyte.read_batches(appended.build())
    assert (batch.timestamp_type, batch.max_timestamp) == (TimestampType.LOG_APPEND_TIME, 77)
    assert [record.timestamp for record in batch] == [77]
    RecordsBuilder(0, timestamp_type=TimestampType.NO_TIMESTAMP_TYPE)
    for options in [
        {"timestamp_type": TimestampType.LOG_APPEND_TIME},
        {"timestamp_type": TimestampType.CREATE_TIME, "log_append_time": 5},
        {"timestamp_type": TimestampType.NO_TIMESTAMP_TYPE},
        {"timestamp_type": TimestampType.CREATE_TIME, "magic": 0},
    ]:
        with pytest.raises(ValueError, match="does not go with"):
            RecordsBuilder(**options)  # type: ignore[arg-type]


def test_has_room_for() -> None:
    builder = RecordsBuilder(max_size_in_bytes=500)
    offset = 0
    while builder.has_room_for(0, b"k", bytes(20), [("h", b"v")]):
        builder.append(offset, 0, b"k", bytes(20), [("h", b"v")])
        offset += 1
    size = builder.estimated_size_in_bytes
    built = builder.build()
    assert 460 < len(built) == size <= 500
    assert builder.estimated_size_in_bytes == builder.record_count == 0
    assert builder.build() == b""


@pytest.mark.parametrize("magic", [0, 1, 2])
def test_a_first_record_of_any_size_fits(magic: int) -> None:
    builder = RecordsBuilder(magic, "lz4", max_size_in_bytes=500)
    for _ in range(3):
        assert builder.has_room_for(0, value=bytes(1000))
        builder.append(0, 0, value=bytes(1000))
        assert not builder.has_room_for(0, value=b"")
        assert not builder.try_append(None, 0, value=b"")
        with pytest.raises(magicbyte.LimitExceededError) as caught:
            builder.append(1, 0, value=b"")
        assert (caught.value.kind, caught.value.record_index) == ("record_too_large", 1)
        (batch,) = magicbyte.read_batches(builder.build())
        assert [record.value_bytes for record in batch] == [bytes(1000)]


def test_try_append_fills_batches() -> None:
    rows = [
        (now, b"k%d" % now, b"v" * (now * 7 % 90), {"h": b"1"} if now % 3 else None) for now in range(200)
    ]
    builder = RecordsBuilder(
        max_size_in_bytes=300, producer_id=1, producer_epoch=0, base_sequence=2**31 - 3, compression="snappy"
    )
    batches = []
    for row in rows:
        while not builder.try_append(None, *row):
            batches.append(builder.build())
    batches.append(builder.build())
    read = [batch for built in batches for batch in magicbyte.read_batches(built)]
    assert len(read) == len(batches) > 10
    for batch in read:
        assert [record.offset for record in batch] == list(range(len(batch))), "as in a produce request"
    sequences = [record.sequence for batch in read for record in batch]
    assert sequences == [(2**31 - 3 + at) % 2**31 for at in range(200)]
    assert builder.base_sequence == (2**31 - 3 + 200) % 2**31
    assert [
        (record.timestamp, record.key_bytes, record.value_bytes) for batch in read for record in batch
    ] == [row[:3] for row in rows]


def test_offsets_are_counted() -> None:
    builder = RecordsBuilder(base_offset=40)
    assert builder.next_offset == 40
    builder.append(None, 1)
    builder.append(None, datetime(2026, 1, 1, tzinfo=UTC), "text", headers={"h": "1"})
    builder.append(50, 1)
    builder.append_many([(None, 1, None, None), (None, 1, None, None, {"h": "1"}), (60, 1, b"", b"")])
    assert builder.next_offset == 61
    (batch,) = magicbyte.read_batches(builder.build())
    assert [record.offset for record in batch] == [40, 41, 50, 51, 52, 60]
    assert builder.next_offset == 0
    builder.append(2**63 - 1, 1)
    with pytest.raises(magicbyte.Error, match="offset"):
        builder.try_append(None, 1)


def test_calls_of_try_append() -> None:
    """It takes its arguments as `append` does, and names itself in errors."""
    builder = RecordsBuilder()
    assert builder.try_append(timestamp=1, offset=None, value="v") is True
    for call in (
        lambda: builder.try_append(),  # type: ignore[call-arg]
        lambda: builder.try_append(None),  # type: ignore[call-arg]
        lambda: builder.try_append(None, 1, None, None, None, None),  # type: ignore[call-arg]
        lambda: builder.try_append(None, 1, keys=b""),  # type: ignore[call-arg]
        lambda: builder.try_append(None, 1, timestamp=1),  # type: ignore[misc]
    ):
        with pytest.raises(TypeError, match=r"try_append\(\)"):
            call()
    with pytest.raises(TypeError, match="offset"):
        builder.try_append("1", 1)  # type: ignore[arg-type]
    assert builder.record_count == 1


def test_a_builder_changes_its_producer() -> None:
    builder = RecordsBuilder(compression="zstd", producer_id=1, producer_epoch=2, base_sequence=3)
    for state in [(1, 3, 0, True), (-1, -1, -1, False), (9, 0, 2**31 - 1, False)]:
        builder.set_producer_state(*state[:3], is_transactional=state[3])
        builder.append(None, 1, b"k", b"v")
        (batch,) = magicbyte.read_batches(builder.build())
        assert (batch.producer_id, batch.producer_epoch, batch.base_sequence, batch.is_transactional) == state
    assert builder.base_sequence == 0
    for refused in [(1, -1, 0, False), (1, 0, -1, False), (-1, -1, -1, True)]:
        with pytest.raises(magicbyte.Error) as caught:
            builder.set_producer_state(*refused[:3], is_transactional=refused[3])
        assert caught.value.kind == "invalid_options"
    with pytest.raises(magicbyte.Error, match="magic 2"):
        RecordsBuilder(1).set_producer_state(1, 0, 0)
    for wrong in [(2**63, 0, 0), (1, 2**15, 0), (1, 0, 2**31)]:
        with pytest.raises(OverflowError):
            builder.set_producer_state(*wrong)


def test_transaction_marker_and_empty_batch() -> None:
    marker = RecordsBuilder(
        is_transactional=True, is_control=True, producer_id=9, producer_epoch=1, base_sequence=-1
    )
    marker.append(5, 1000, bytes([0, 0, 0, 1]), bytes([0, 0, 0, 0, 0, 3]))
    (batch,) = magicbyte.read_batches(marker.build())
    (record,) = batch
    assert batch.is_control
    assert record.control is not None
    assert record.control["type"] == "COMMIT"
    with pytest.raises(magicbyte.InvalidRecordError):
        marker.append(6, 1000, b"no", b"control record")
    retained = RecordsBuilder(producer_id=9, producer_epoch=1, base_sequence=4, base_offset=10)
    (empty,) = magicbyte.read_batches(retained.empty_batch(15, 999))
    assert (empty.base_offset, empty.last_offset, empty.record_count) == (10, 15, 0)
    assert (empty.base_sequence, empty.last_sequence, empty.max_timestamp) == (4, 9, 999)


def test_threads_share_a_builder() -> None:
    """Losing the race gives an error about the offset; every record appended is there once."""
    builder = RecordsBuilder(compression=Compression.LZ4)
    appended: list[int] = []
    refused: set[str] = set()

    def work() -> None:
        for offset in range(300):
            try:
                builder.append(offset, 0, None, b"v")
                appended.append(offset)
            except magicbyte.InvalidRecordError as error:
                refused.add(error.kind)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert refused <= {"offset_out_of_range"}
    (batch,) = magicbyte.read_batches(builder.build())
    assert [record.offset for record in batch] == sorted(appended) == sorted(set(appended))


def test_threads_build_while_others_append() -> None:
    """A thread that compresses makes the others wait, and every batch is complete."""
    builder = RecordsBuilder(compression=Compression.ZSTD)
    built: list[bytes] = []
    value = bytes(range(256)) * 200

    def work() -> None:
        for offset in range(100):
            with contextlib.suppress(magicbyte.InvalidRecordError):
                builder.append(offset, 0, None, value)
            if offset % 5 == 0:
                built.append(builder.build())

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    built.append(builder.build())
    for data in built:
        for batch in magicbyte.read_batches(data):
            assert all(record.value_bytes == value for record in batch)
