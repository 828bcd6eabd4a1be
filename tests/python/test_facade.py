"""The facade's contract: batches, records, errors, and views that stay valid."""

from __future__ import annotations

import gc
import json
import os
import pickle
import subprocess
import sys
import threading
from itertools import zip_longest
from pathlib import Path
from typing import Any, cast

import magicbyte
import pyarrow as pa
import pytest
from digest import digest, expected, summary
from magicbyte import Compression, LegacyBatch, PartitionLog, Record, RecordBatch, TimestampType
from unprivileged import run_unprivileged

DATA = Path(__file__).parent.parent / "data" / "kafka"
PARTITIONS = sorted(path for path in DATA.iterdir() if path.is_dir())
# magic 2, uncompressed: offset 5 (key k, value v), offset 6 (null key, value v2); written by Kafka's classes
GOLDEN = bytes.fromhex(
    "000000000000000500000043ffffffff0257b56ba000000000000100000000000003e800000000000003e9"
    "ffffffffffffffffffffffffffff0000000210000000026b027600100002020104763200"
)


def segment_bytes(partition: str) -> bytes:
    return b"".join(path.read_bytes() for path in sorted((DATA / partition).glob("*.log")))


def row(record: Record) -> dict[str, Any]:
    return {
        "offset": record.offset,
        "timestampMillis": record.timestamp,
        "timestampType": int(record.timestamp_type),
        "key": record.key_bytes,
        "value": None if record.value is None else bytes(record.value),
        "headers": [{"key": key, "value": None if v is None else bytes(v)} for key, v in record.headers],
    }


@pytest.mark.parametrize("partition", PARTITIONS, ids=lambda p: p.name)
def test_records_match_kafka(partition: Path) -> None:
    records = PartitionLog(partition).records()
    assert digest(row(record) for record in records) == summary(partition)["sha256"]


@pytest.mark.parametrize("partition", PARTITIONS, ids=lambda p: p.name)
def test_batches_match_kafka(partition: Path) -> None:
    lines = expected(partition, "batches.jsonl")
    batches = list(PartitionLog(partition).batches())
    assert len(batches) == len(lines)
    for batch, line in zip(batches, lines, strict=True):
        assert isinstance(batch, RecordBatch if line["magic"] == 2 else LegacyBatch)
        assert (batch.base_offset, batch.last_offset, batch.next_offset) == (
            line["baseOffset"], line["lastOffset"], line["lastOffset"] + 1,
        )  # fmt: skip
        assert (batch.position, batch.size_in_bytes) == (line["position"], line["size"])
        assert (batch.crc, batch.is_valid()) == (line["crc"], line["isvalid"])
        assert batch.compression.name.lower() == line["codec"]
        assert batch.max_timestamp == line["maxTimestamp"]
        assert batch.delete_horizon_ms == line["deleteHorizonMs"]
        assert (batch.is_transactional, batch.is_control) == (line["txn"], line["control"])
        facts = (batch.producer_id, batch.producer_epoch, batch.base_sequence, batch.last_sequence)
        theirs = (line["pid"], line["epoch"], line["baseSequence"], line["lastSequence"])
        assert facts == (theirs if batch.magic == 2 else (None,) * 4)
        wrapper = batch.magic < 2 and batch.compression is not Compression.NONE
        assert batch.record_count == (None if wrapper else line["count"])
        assert sum(1 for _ in batch) == line["count"]
        assert batch.record_count == line["count"]


@pytest.mark.parametrize("partition", PARTITIONS, ids=lambda p: p.name)
def test_arrow_streams_match_kafka(partition: Path) -> None:
    rows: list[dict[str, Any]] = []
    for segment in PartitionLog(partition).segments:
        data = Path(segment["path"]).read_bytes()
        table = pa.table(magicbyte.read_batches(data, allow_partial=True))
        millis = table["timestamp"].cast(pa.int64()).fill_null(-1)
        table = table.drop_columns("timestamp").append_column("timestampMillis", millis)
        rows += table.to_pylist()
    assert digest(rows) == summary(partition)["sha256"]


def test_committed_view() -> None:
    for partition in PARTITIONS:
        if (partition / "committed.jsonl").exists():
            records = PartitionLog(partition).records(isolation_level="read_committed")
            offsets = [record.offset for record in records]
            assert offsets == [line["offset"] for line in expected(partition, "committed.jsonl")]
            assert records.end_offset is not None
            assert offsets[-1] < records.end_offset


def test_arrow_columns_and_lists_agree() -> None:
    for name in ("v2_headers", "mixed_012", "v2_timestamps", "v2_nulls"):
        for batch in magicbyte.read_batches(segment_bytes(name)):
            table = pa.record_batch(batch)
            columns = batch.columns()
            records = list(batch)
            assert table["offset"].to_pylist() == columns.offsets == [r.offset for r in records]
            assert table["key"].to_pylist() == columns.keys == [r.key_bytes for r in records]
            assert table["value"].to_pylist() == columns.values == [r.value_bytes for r in records]
            assert table["timestamp"].cast(pa.int64()).fill_null(-1).to_pylist() == columns.timestamps
            table.validate(full=True)


def test_arrow_stream_is_fresh_each_time() -> None:
    batches = magicbyte.read_batches(segment_bytes("v2_zstd"))
    next(batches)
    first, second = pa.table(batches), pa.table(batches)
    assert first.num_rows == second.num_rows == 346
    assert first.equals(second)


def test_header_fields() -> None:
    (batch,) = magicbyte.read_batches(GOLDEN)
    assert isinstance(batch, RecordBatch)
    assert (batch.magic, batch.base_offset, batch.last_offset, batch.record_count) == (2, 5, 6, 2)
    assert batch.compression is Compression.NONE
    assert batch.timestamp_type is TimestampType.CREATE_TIME
    assert (batch.base_timestamp, batch.max_timestamp) == (1000, 1001)
    assert batch.to_bytes() == GOLDEN
    first, second = batch
    assert (first.key_bytes, first.value_bytes) == (b"k", b"v")
    assert second.key is None
    assert second.value == b"v2"
    assert second.headers == [] == second.headers_raw
    assert first.sequence == -1
    assert first.control is None


def test_garbage_at_the_end_needs_no_more_bytes() -> None:
    with pytest.raises(magicbyte.Error) as raised:
        list(magicbyte.read_batches(GOLDEN + b"\xff" * 100))
    assert not isinstance(raised.value, magicbyte.NeedMoreBytesError)


def test_there_is_one_tree_of_errors() -> None:
    named = [getattr(magicbyte, name) for name in magicbyte.__all__ if name.endswith("Error")]
    errors = [one for one in named if isinstance(one, type) and issubclass(one, Exception)]
    assert {one.__name__ for one in errors if not issubclass(one, magicbyte.Error)} == {"InternalError"}
    for one in (magicbyte.JobError("why"), magicbyte.RefusedError("why")):
        again = pickle.loads(pickle.dumps(one))
        assert (type(again), str(again), again.kind) == (type(one), "why", one.kind)


def test_a_missing_file_is_told_once(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError) as raised:
        magicbyte.PartitionLog(tmp_path / "gone")
    assert str(raised.value).count("rrno 2") + str(raised.value).count("os error 2") == 1


def test_a_refusal_of_a_file_system_is_told_once(tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(mode=0)
    program = "import sys, magicbyte; magicbyte.convert(*sys.argv[1:])"
    try:
        done = run_unprivileged("-c", program, Path(__file__).parents[2] / "samples", f"local://{closed}/out")
    finally:
        closed.chmod(0o700)
    (text,) = done.stderr.splitlines()[-1:]
    assert text.startswith("PermissionError: [Errno 13] Permission denied: 'local://")
    assert text.count("rrno 13") == 1


def test_truncated_last_batch() -> None:
    for cut in range(1, len(GOLDEN)):
        data = GOLDEN + GOLDEN[:-cut]
        seen = []
        with pytest.raises(magicbyte.NeedMoreBytesError, match="more bytes needed") as raised:
            seen.extend(batch.position for batch in magicbyte.read_batches(data))
        assert (raised.value.kind, raised.value.position) == ("need_more_bytes", len(GOLDEN))
        with pytest.raises(pa.ArrowInvalid, match="more bytes needed"):
            pa.table(magicbyte.read_batches(data))
        assert pa.table(magicbyte.read_batches(data, allow_partial=True)).num_rows > 0
        batches = magicbyte.read_batches(data, allow_partial=True)
        assert sum(1 for _ in batches) == 1
        assert batches.remaining == len(GOLDEN) - cut
        assert 0 < batches.needed <= cut
    whole = magicbyte.read_batches(GOLDEN)
    list(whole)
    assert (whole.remaining, whole.needed) == (0, 0)


def test_views_stay_valid_and_unchanged() -> None:
    for name in ("v2_none", "v2_zstd", "v1_lz4", "v2_large_batches"):
        source = bytearray(segment_bytes(name))
        batches = magicbyte.read_batches(source)
        views, copies = [], []
        for batch in batches:
            for record in batch:
                views += [view for view in (record.key, record.value) if view is not None]
                copies += [copy for copy in (record.key_bytes, record.value_bytes) if copy is not None]
        source[:] = b"\xff" * len(source)
        del batches, batch, record
        gc.collect()
        for batch in magicbyte.read_batches(segment_bytes("v2_gzip")):
            list(batch)
        assert all(view.readonly for view in views)
        assert [bytes(view) for view in views] == copies
    with pytest.raises(TypeError):
        views[0][0] = 1


def test_views_outlive_the_log_and_its_file(tmp_path: Path) -> None:
    partition = tmp_path / "t-0"
    partition.mkdir()
    file = partition / "00000000000000000000.log"
    file.write_bytes(segment_bytes("v2_mixed_codecs")[:9000])
    log = PartitionLog(partition)
    records = list(log.records())
    wanted = [record.value_bytes for record in records]
    views = [record.value for record in records]
    file.write_bytes(b"")
    del log, records
    gc.collect()
    assert [None if view is None else bytes(view) for view in views] == wanted


def test_errors_give_their_position() -> None:
    bad = bytearray(GOLDEN)
    bad[70] ^= 1
    batches = magicbyte.read_batches(GOLDEN + bad)
    next(batches)
    broken = next(batches)
    assert not broken.is_valid()
    assert broken.base_offset == 5
    with pytest.raises(magicbyte.CorruptRecordError) as raised:
        iter(broken)
    error = raised.value
    assert (error.kind, error.position, error.base_offset, error.field) == (
        "crc_mismatch", len(GOLDEN), 5, "crc",
    )  # fmt: skip
    assert isinstance(error, ValueError)
    again = pickle.loads(pickle.dumps(error))
    assert (again.kind, again.position, str(again)) == (error.kind, error.position, str(error))
    with pytest.raises(magicbyte.CorruptRecordError):
        broken.columns()
    with pytest.raises(magicbyte.CorruptRecordError):
        broken.to_arrow()
    unchecked = magicbyte.read_batches(bytes(bad), check_crcs=False)
    with pytest.raises(magicbyte.Error):
        list(next(unchecked))

    magic = bytearray(GOLDEN)
    magic[16] = 7
    with pytest.raises(magicbyte.UnsupportedMagicError):
        next(magicbyte.read_batches(magic))
    compressed = next(b for b in magicbyte.read_batches(segment_bytes("v2_zstd")) if b.size_in_bytes > 2000)
    small = next(magicbyte.read_batches(compressed.to_bytes(), max_decompressed_bytes=100))
    with pytest.raises(magicbyte.LimitExceededError, match="limit of 100 bytes") as limited:
        list(small)
    assert limited.value.kind == "limit_exceeded"


def test_damaged_log(tmp_path: Path) -> None:
    partition = tmp_path / "t-0"
    partition.mkdir()
    data = bytearray(segment_bytes("v2_gzip")[:15000])
    batches = list(magicbyte.read_batches(bytes(data), allow_partial=True))
    bad = batches[2]
    data[bad.position + 80] ^= 1
    (partition / "00000000000000000000.log").write_bytes(data)
    before = sum(batch.record_count or 0 for batch in batches[:2])
    with pytest.raises(magicbyte.CorruptRecordError):
        read = [record.offset for record in PartitionLog(partition).records()]
    log = PartitionLog(partition, mode="PERMISSIVE")
    records = log.records()
    read = [record.offset for record in records]
    assert read[:before] == list(range(before))
    assert not set(read) & set(range(bad.base_offset, bad.next_offset))
    assert [p["kind"] for p in records.problems] == ["crc_mismatch", "partial_batch"]
    sums = log.verify()
    assert sums.balanced
    assert sums.quarantined_bytes == bad.size_in_bytes
    assert sums.good_bytes + sums.quarantined_bytes + sums.tail_bytes == sums.size


def test_a_batch_with_missing_records_yields_none() -> None:
    builder = magicbyte.RecordsBuilder()
    builder.append_many([(0, 1000, None, b"v"), (1, 1000, None, b"v")])
    built = builder.build()
    body = built[21:57] + (3).to_bytes(4, "big") + built[61:]
    data = built[:17] + magicbyte.crc32c(body).to_bytes(4, "big") + body
    seen = []
    with pytest.raises(magicbyte.InvalidRecordError, match="before its 3 announced records"):
        seen.extend(record.offset for batch in magicbyte.read_batches(data) for record in batch)
    assert seen == []


def test_permissive_mode_skips_batches_that_do_not_decode() -> None:
    # The CRC holds; one of the two batches decompresses to more than the limit.
    limit = 25_000
    with pytest.raises(magicbyte.LimitExceededError):
        list(PartitionLog(DATA / "v2_big_batch", max_decompressed_bytes=limit).records())
    log = PartitionLog(DATA / "v2_big_batch", max_decompressed_bytes=limit, mode="PERMISSIVE")
    records = log.records()
    assert len(list(records)) == 500
    assert [problem["kind"] for problem in records.problems] == ["limit_exceeded"]


def damaged_log(directory: Path) -> PartitionLog:
    """Batches of ten records; the second has a wrong CRC, the fourth records that do not decode."""
    batches = []
    for base in range(0, 50, 10):
        builder = magicbyte.RecordsBuilder()
        builder.append_many([(offset, 1000, None, b"v") for offset in range(base, base + 10)])
        batches.append(bytearray(builder.build()))
    batches[1][-1] ^= 1
    batches[3][57:61] = (11).to_bytes(4, "big")
    batches[3][17:21] = magicbyte.crc32c(batches[3][21:]).to_bytes(4, "big")
    directory.mkdir()
    (directory / f"{0:020}.log").write_bytes(b"".join(batches))
    return PartitionLog(directory, mode="PERMISSIVE")


def test_concurrent_reads_are_independent(tmp_path: Path) -> None:
    log = damaged_log(tmp_path / "t-0")
    first, second = log.records(end_offset=30), log.records(start_offset=25)
    batches, stream = log.batches(start_offset=25), log.to_arrow(["offset"], end_offset=30)
    pairs = list(zip_longest(first, second, batches))
    assert [one.offset for one, _, _ in pairs if one] == [*range(10), *range(20, 30)]
    assert [one.offset for _, one, _ in pairs if one] == [*range(25, 30), *range(40, 50)]
    assert [one.base_offset for _, _, one in pairs if one] == [20, 30, 40]
    assert pa.table(stream).column("offset").to_pylist() == [*range(10), *range(20, 30)]
    assert [problem["kind"] for problem in first.problems] == ["crc_mismatch"]
    assert [problem["kind"] for problem in second.problems] == ["crc_mismatch", "too_few_records"]
    # Iterating over `batches` does not decode records.
    assert [problem["kind"] for problem in batches.problems] == ["crc_mismatch"]
    assert stream.problems == first.problems
    assert [read.end_offset for read in (first, second, batches, stream)] == [30, None, None, 30]
    assert {read.problems_left_out for read in (first, second, batches, stream)} == {0}


def test_problems_are_those_found_so_far(tmp_path: Path) -> None:
    records = damaged_log(tmp_path / "t-0").records()
    assert records.problems == []
    assert [next(records).offset for _ in range(10)] == list(range(10))
    # `iter(records)` and `next(records)` share one position.
    assert next(iter(records)).offset == next(records).offset - 1 == 20
    assert [problem["kind"] for problem in records.problems] == ["crc_mismatch"]


@pytest.mark.parametrize("mode", ["permissive", "FailFast"])
def test_modes_in_any_case(mode: Any) -> None:
    assert sum(1 for _ in PartitionLog(DATA / "v2_none", mode=mode).records()) == 346


def test_an_unknown_mode_is_refused() -> None:
    with pytest.raises(ValueError, match="mode is PERMISSIVE or FAILFAST, not 'DROPMALFORMED'"):
        PartitionLog(DATA / "v2_none", mode=cast(Any, "DROPMALFORMED"))


def test_seeking() -> None:
    log = PartitionLog(DATA / "v2_none")
    lines = expected(DATA / "v2_none")
    assert [r.offset for r in log.records(start_offset=100, end_offset=133)] == list(range(100, 133))
    middle = lines[200]["timestamp"]
    first = next(line["offset"] for line in lines if line["timestamp"] >= middle)
    assert next(log.records(start_timestamp=middle)).offset == first == log.offset_for_timestamp(middle)
    assert log.offset_for_timestamp(2**62) is None


def test_an_abort_keeps_batches_outside_the_transaction(tmp_path: Path) -> None:
    marker = bytes.fromhex("0000 0000"), bytes.fromhex("0000 00000003")

    def batch(offset: int, **options: Any) -> bytes:
        builder = magicbyte.RecordsBuilder(producer_id=9, producer_epoch=0, **options)
        builder.append(offset, 1000, *(marker if options.get("is_control") else (None, b"v")))
        return builder.build()

    batches = [
        batch(0, base_sequence=0, is_transactional=True),
        batch(1, base_sequence=1),
        batch(2, base_sequence=2, is_transactional=True),
        batch(3, base_sequence=-1, is_transactional=True, is_control=True),
        batch(4, base_sequence=3, is_transactional=True),
    ]
    (tmp_path / f"{0:020}.log").write_bytes(b"".join(batches))
    log = PartitionLog(tmp_path)
    assert [record.offset for record in log.records()] == [0, 1, 2, 4]
    # The last transaction is still open.
    assert [record.offset for record in log.records(isolation_level="read_committed")] == [1]


def test_control_records() -> None:
    markers = []
    for batch in PartitionLog(DATA / "v2_txn").batches():
        if batch.is_control:
            (record,) = batch
            assert record.control is not None
            markers.append((record.offset, record.control["type"], record.control["coordinator_epoch"]))
    wanted = [
        (line["offset"], line["controlType"], line["coordinatorEpoch"])
        for line in expected(DATA / "v2_txn")
        if line["control"]
    ]
    assert markers == wanted


def test_non_utf8_header_keys_are_lossless() -> None:
    # One record with the header (ff, null), built by hand: no builder writes such a key.
    body = bytes([0, 0, 0, 1, 1, 2, 2, 0xFF, 1])
    records = magicbyte.encode_varint(len(body)) + body
    rest = bytes.fromhex("0000 00000000") + bytes(16) + b"\xff" * 14 + (1).to_bytes(4, "big") + records
    head = (0).to_bytes(8, "big") + (9 + len(rest)).to_bytes(4, "big") + b"\xff" * 4 + b"\x02"
    (batch,) = magicbyte.read_batches(head + magicbyte.crc32c(rest).to_bytes(4, "big") + rest)
    (record,) = batch
    assert record.headers_raw == [(b"\xff", None)]
    ((key, value),) = record.headers
    assert key.encode("utf-8", "surrogateescape") == b"\xff"
    assert value is None
    assert pa.record_batch(batch)["headers"].to_pylist() == [[{"key": "\ufffd", "value": None}]]


def test_helpers() -> None:
    assert magicbyte.crc32c(b"123456789") == 0xE3069283
    assert magicbyte.crc32c(b"6789", magicbyte.crc32c(b"12345")) == 0xE3069283
    assert magicbyte.encode_varint(-1) == b"\x01"
    assert magicbyte.decode_varint(b"\x00\x7f", 1) == (-64, 2)
    with pytest.raises(magicbyte.InvalidRecordError):
        magicbyte.decode_varint(b"\x80")
    with pytest.raises(OverflowError):
        magicbyte.encode_varint(2**63)


def test_imports_without_other_packages() -> None:
    # Without site-packages: only the standard library and this package.
    code = """
import pkgutil, sys
import magicbyte
for module in pkgutil.walk_packages(magicbyte.__path__, "magicbyte."):
    needs_more = "__main__ cli commands expressions following jobs lake logs serving spark storage".split()
    needs_more += ["predicates", "scanning"]
    if module.name.split(".")[1] not in needs_more:
        __import__(module.name)
print(len(list(magicbyte.PartitionLog(sys.argv[1]).records())))
"""
    command = [sys.executable, "-S", "-c", code, str(DATA / "v2_none")]
    package = str(Path(magicbyte.__path__[0]).parent)
    environment = {**os.environ, "PYTHONPATH": package}
    done = subprocess.run(command, check=False, capture_output=True, text=True, env=environment)
    assert (done.stdout, done.stderr) == ("346\n", "")


def test_missing_directory_is_an_oserror(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        PartitionLog(tmp_path / "none")


def test_decoding_releases_the_gil() -> None:
    # Batches that take real time to decompress. With the GIL held, the counting thread could move
    # only in the few instructions around the call.
    batches = list(magicbyte.read_batches(segment_bytes("v2_large_batches") + segment_bytes("v2_big_batch")))
    largest = max(batches, key=lambda batch: batch.to_arrow().num_rows * batch.size_in_bytes)
    counted, done = 0, False

    def count() -> None:
        nonlocal counted
        while not done:
            counted += 1

    counter = threading.Thread(target=count)
    counter.start()
    try:
        moved = 0
        for _ in range(2000):
            before = counted
            largest.to_arrow()
            moved += counted > before
            if moved == 5:
                break
    finally:
        done = True
        counter.join()
    assert moved == 5


def test_two_threads_share_one_record() -> None:
    batch = next(magicbyte.read_batches(segment_bytes("v2_zstd")))
    record = next(iter(batch))
    wanted = (record.key_bytes, record.value_bytes)
    seen: list[bool] = []

    def look() -> None:
        for _ in range(2000):
            key, value = record.key, record.value
            seen.append(
                (None if key is None else bytes(key), None if value is None else bytes(value)) == wanted
            )

    threads = [threading.Thread(target=look) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(seen) == 4000
    assert all(seen)


def test_reconciliation_is_plain_data() -> None:
    sums = PartitionLog(DATA / "v2_torn_tail").verify()
    assert json.loads(json.dumps(sums.sums)) == sums.sums
    assert sums.balanced
    assert sums.tail_bytes == 502


@pytest.mark.parametrize("partition", PARTITIONS, ids=lambda path: path.name)
def test_a_log_is_an_arrow_stream(partition: Path) -> None:
    log = PartitionLog(partition, mode="PERMISSIVE")
    expected = [(r.offset, r.timestamp, r.key_bytes, r.value_bytes) for r in log.records()]
    for _ in range(2):
        table = pa.table(log)
        millis = table.column("timestamp").cast(pa.int64()).fill_null(-1)
        table = table.set_column(1, "timestamp", millis)
        columns = (table.column(column).to_pylist() for column in ("offset", "timestamp", "key", "value"))
        assert [(o, t, k, v) for o, t, k, v in zip(*columns, strict=True)] == expected


def test_an_arrow_stream_of_a_damaged_log(tmp_path: Path) -> None:
    data = bytearray(segment_bytes("v2_none"))
    data[-1] ^= 1
    path = tmp_path / "00000000000000000000.log"
    path.write_bytes(data)
    with pytest.raises(pa.ArrowException, match="CRC mismatch"):
        pa.table(PartitionLog(path))
    assert pa.table(PartitionLog(path, mode="PERMISSIVE")).num_rows > 0
