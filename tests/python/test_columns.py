"""Records as columns: projection and ranges, in both flavours, for every consumer."""

from __future__ import annotations

import random
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import magicbyte
import polars as pl
import pyarrow as pa
import pytest
from conftest import KAFKA, PARTITIONS
from magicbyte import Compression, PartitionLog

LOG = "00000000000000000000.log"
CONSUMED = ["offset", "timestamp", "timestampType", "key", "value", "headers"]
FACTS = ["magic", "compression", "producerId", "producerEpoch", "isTransactional", "leaderEpoch", "position"]


def data(name: str) -> bytes:
    return (KAFKA / name / LOG).read_bytes()


def plain(stream: Any) -> pa.Table:
    """The stream's table, with values as plain binary and times as numbers, -1 for none."""
    table = pa.table(stream)
    for at, field in enumerate(table.schema):
        if field.type == pa.binary_view():
            table = table.set_column(at, field.name, table.column(at).cast(pa.binary()))
        elif pa.types.is_timestamp(field.type):
            millis = table.column(at).cast(pa.int64()).fill_null(-1)
            table = table.set_column(at, field.name, millis)
    return table


def rows(stream: Any) -> list[tuple[int, int, bytes | None, bytes | None]]:
    table = plain(stream)
    columns = (table.column(name).to_pylist() for name in ("offset", "timestamp", "key", "value"))
    return list(zip(*columns, strict=True))


def built(values: list[bytes], compression: Compression = Compression.NONE, batch: int = 10) -> bytes:
    """Batches of `batch` records; offsets and timestamps (ms) count from 0."""
    builder = magicbyte.RecordsBuilder(compression=compression)
    out = []
    for offset, value in enumerate(values):
        builder.append(offset, offset, b"k%d" % offset, value)
        if offset % batch == batch - 1:
            out.append(builder.build())
    return b"".join([*out, builder.build()])


@pytest.mark.parametrize("name", PARTITIONS)
def test_views_and_threads_give_the_same_rows(name: str) -> None:
    log = PartitionLog(KAFKA / name, mode="PERMISSIVE")
    expected = pa.table(log)
    for options in ({"views": True}, {"threads": 2}, {"views": True, "threads": 3}):
        stream = pa.table(log.to_arrow(**options))
        stream.validate(full=True)
        assert plain(stream).equals(plain(expected))
    for segment in log.segments:
        batches = magicbyte.read_batches(Path(segment["path"]).read_bytes())
        try:
            expected = pa.table(batches)
        except pa.ArrowException as error:
            with pytest.raises(pa.ArrowException, match=str(error).splitlines()[0][:40]):
                pa.table(batches.to_arrow(threads=2))
            continue
        assert plain(batches.to_arrow(views=True, threads=2)).equals(plain(expected))


def test_large_values_are_not_copied() -> None:
    values = [bytes([n % 251]) * 2000 for n in range(50)]
    source = built(values)
    column = pa.table(magicbyte.read_batches(source).to_arrow(views=True)).column("value")
    assert column.type == pa.binary_view()
    assert column.cast(pa.binary()).to_pylist() == values
    start = pa.py_buffer(source).address
    addresses = [
        b.address for chunk in column.chunks for b in chunk.buffers()[2:] if b is not None and b.size
    ]
    assert len(addresses) == 5
    assert all(start <= address < start + len(source) for address in addresses)


def test_small_values_are_copied_together() -> None:
    source = built([b"a value of 20 bytes." for _ in range(1000)])
    column = pa.table(magicbyte.read_batches(source).to_arrow(views=True)).column("value")
    (chunk,) = column.chunks
    assert [buffer.size for buffer in chunk.buffers()[2:]] == [20_000]
    assert (
        pa.table(
            magicbyte.read_batches(built([b"12 bytes...."] * 9)).to_arrow(["value"], views=True)
        ).num_rows
        == 9
    )


def test_projection_keeps_the_requested_order() -> None:
    log = PartitionLog(KAFKA / "v2_headers")
    everything = ["topic", "partition", "segment", "timestampMillis", "sequence", *FACTS, *CONSUMED]
    table = plain(log.to_arrow(everything))
    assert table.column_names == everything
    for name in everything:
        alone = plain(log.to_arrow([name]))
        assert alone.column_names == [name]
        assert alone.column(0).equals(table.column(name)), name
    assert set(table.column("segment").to_pylist()) == {Path(s["path"]).name for s in log.segments}
    twice = pa.table(log.to_arrow(["offset", "key", "offset"]))
    assert twice.column(0).equals(twice.column(2))
    batch = next(magicbyte.read_batches(data("v2_headers")))
    assert pa.record_batch(batch.to_arrow(["value", "offset"], views=True)).schema.names == [
        "value",
        "offset",
    ]


@pytest.mark.parametrize("name", PARTITIONS)
def test_columns_from_headers_match_those_from_records(name: str) -> None:
    log = PartitionLog(KAFKA / name, mode="PERMISSIVE")
    facts = pa.table(log.to_arrow(FACTS))
    assert facts.equals(pa.table(log.to_arrow([*FACTS, "offset"])).select(FACTS))
    assert pa.table(log.to_arrow([])).num_rows == facts.num_rows == sum(1 for _ in log.records())


def test_header_columns_do_not_decompress() -> None:
    source = built([b"v" * 100] * 100, Compression.ZSTD)
    cap = 16
    batches = magicbyte.read_batches(source, max_decompressed_bytes=cap)
    with pytest.raises(pa.ArrowException, match="limit"):
        pa.table(batches)
    assert pa.table(batches.to_arrow([])).num_rows == 100
    assert pa.table(batches.to_arrow(FACTS)).num_rows == 100
    # Batches out of range are not decompressed, either. One that is partly in range is.
    assert pa.table(batches.to_arrow(start_offset=100)).num_rows == 0
    assert pa.table(batches.to_arrow([], end_offset=50)).num_rows == 50
    with pytest.raises(pa.ArrowException, match="limit"):
        pa.table(batches.to_arrow([], end_offset=55))


def test_a_forged_record_count_adds_no_rows() -> None:
    for compression in (Compression.NONE, Compression.ZSTD):
        batch = bytearray(built([b"v"], compression))
        batch[57:61] = struct.pack(">i", 2**31 - 1)
        batch[17:21] = magicbyte.crc32c(batch[21:]).to_bytes(4, "big")
        with pytest.raises(pa.ArrowException, match="record"):
            pa.table(magicbyte.read_batches(bytes(batch)).to_arrow([]))


RANGES = [
    {"start_offset": 37},
    {"end_offset": 205},
    {"start_offset": 37, "end_offset": 38},
    {"start_timestamp": 37},
    {"end_timestamp": 37},
    {"start_offset": 3, "end_offset": 300, "start_timestamp": 41, "end_timestamp": 203},
    {"start_offset": 2**62},
    {"end_offset": -(2**63)},
]


@pytest.mark.parametrize("wanted", RANGES, ids=str)
@pytest.mark.parametrize("name", ["v0_gzip", "v1_lz4", "v1_none", "mixed_012", "v2_timestamps", "v2_zstd"])
def test_ranges_are_exact(name: str, wanted: dict[str, int]) -> None:
    every = rows(magicbyte.read_batches(data(name)))
    times = sorted(timestamp for _, timestamp, _, _ in every)
    # The range is in terms of this partition's own timestamps.
    asked = {k: times[min(v, len(times) - 1)] if "timestamp" in k else v for k, v in wanted.items()}

    def has(row: tuple[int, int, bytes | None, bytes | None]) -> bool:
        offset, timestamp = row[:2]
        return asked.get("start_offset", offset) <= offset < asked.get(
            "end_offset", offset + 1
        ) and asked.get("start_timestamp", timestamp) <= timestamp < asked.get("end_timestamp", timestamp + 1)

    expected = [row for row in every if has(row)]
    assert rows(magicbyte.read_batches(data(name)).to_arrow(**asked)) == expected
    first = PartitionLog(KAFKA / name / LOG, mode="PERMISSIVE")
    assert rows(first.to_arrow(**asked)) == expected
    assert rows(first.to_arrow(**asked, threads=2, views=True)) == expected


def test_a_flipped_timestamp_bit_hides_no_records() -> None:
    batch = bytearray(built([b"v"] * 3))
    batch[35] ^= 0x40  # the latest timestamp
    with pytest.raises(pa.ArrowException, match="CRC"):
        pa.table(magicbyte.read_batches(bytes(batch)).to_arrow(start_timestamp=1))


def test_isolation_levels() -> None:
    log = PartitionLog(KAFKA / "v2_txn")
    for level in ("read_committed", "read_uncommitted"):
        stream = log.to_arrow(["offset"], isolation_level=level)
        offsets = pa.table(stream).column("offset").to_pylist()
        records = log.records(isolation_level=level)
        assert offsets == [record.offset for record in records]
        assert stream.end_offset == records.end_offset
        assert (stream.end_offset is None) == (level == "read_uncommitted")


def test_damage_is_reported(tmp_path: Path) -> None:
    before, middle, after = (batch.to_bytes() for batch in magicbyte.read_batches(built([b"v"] * 30)))
    # Its CRC holds, but its second record is invalid.
    bad = bytearray(middle)
    bad[62 + (bad[61] >> 1)] = 0x7F  # a negative length
    bad[17:21] = magicbyte.crc32c(bad[21:]).to_bytes(4, "big")
    (tmp_path / LOG).write_bytes(before + bad + after)
    place = (len(before), len(before + bad), 10)
    for threads in (1, 2):
        log = PartitionLog(tmp_path, mode="PERMISSIVE")
        stream, records = log.to_arrow(threads=threads), log.records()
        assert pa.table(stream).column("offset").to_pylist() == [*range(10), *range(20, 30)]
        assert len(list(records)) == 20
        assert stream.problems == records.problems
        assert [(p["start"], p["end"], p["base_offset"]) for p in stream.problems] == [place]
        # What precedes the damage comes first.
        reader = pa.RecordBatchReader.from_stream(PartitionLog(tmp_path).to_arrow(threads=threads))
        assert reader.read_next_batch().num_rows == 10
        with pytest.raises(pa.ArrowException, match=r"record 1|offset 10"):
            reader.read_next_batch()


def test_output_of_many_jobs_stays_in_order(tmp_path: Path) -> None:
    # Each thread's job gets columns full of zeros, damage between them, and incompressible data.
    source = random.Random(7)
    zeros, noise = [b"\0" * 50_000] * 50, [source.randbytes(2_000) for _ in range(150)]
    builder = magicbyte.RecordsBuilder(compression=Compression.ZSTD)
    parts, offset = [], 0
    for kind in [zeros, zeros, None, zeros, noise, zeros, noise, None] * 3:
        for value in kind or [b"v"] * 3:
            builder.append(offset, offset, None, value)
            offset += 1
        batch = bytearray(builder.build())
        if kind is None:
            batch[57:61] = (4).to_bytes(4, "big")  # one record more than there are
            batch[17:21] = magicbyte.crc32c(batch[21:]).to_bytes(4, "big")
        parts.append(bytes(batch))
    (tmp_path / LOG).write_bytes(b"".join(parts))

    def found(threads: int) -> tuple[list[Any], Any]:
        log = PartitionLog(tmp_path, mode="PERMISSIVE")
        stream = log.to_arrow(["offset", "value"], threads=threads)
        table = pa.table(stream)
        values = [hash(value.as_buffer().to_pybytes()) for value in table.column("value")]
        return list(zip(table.column("offset").to_pylist(), values, strict=True)), stream.problems

    expected = found(1)
    assert (len(expected[0]), len(expected[1])) == (offset - 3 * 2 * 3, 6)
    for threads in (2, 2, 3, 8):
        assert found(threads) == expected


def test_a_stream_dropped_halfway() -> None:
    source = built([b"v" * 1000] * 5_000, batch=100)
    for _ in range(5):
        reader = pa.RecordBatchReader.from_stream(magicbyte.read_batches(source).to_arrow(threads=4))
        assert reader.read_next_batch().num_rows > 0
        del reader


def test_small_batches_are_joined_and_large_logs_cut() -> None:
    small = built([b"v"] * 50_000)
    reader = pa.RecordBatchReader.from_stream(magicbyte.read_batches(small))
    assert len(list(reader)) == 1
    sizes = [
        b.nbytes
        for b in pa.RecordBatchReader.from_stream(magicbyte.read_batches(built([b"v" * 1000] * 9000)))
    ]
    assert len(sizes) > 5
    assert all(1 << 19 <= size <= 4 << 20 for size in sizes[:-1])


def test_requested_schema() -> None:
    batches = magicbyte.read_batches(data("v2_headers"))
    for schema in (
        pa.schema([("value", pa.binary_view()), ("offset", pa.int64())]),
        pa.schema([("timestamp", pa.timestamp("us", tz="UTC")), ("value", pa.binary())]),
    ):
        reader = pa.RecordBatchReader.from_stream(batches, schema=schema)
        assert reader.schema == schema
        assert reader.read_all().num_rows == 12
        assert (
            pa.record_batch(next(magicbyte.read_batches(data("v2_headers"))), schema=schema).schema == schema
        )
        log = PartitionLog(KAFKA / "v2_headers")
        assert pa.RecordBatchReader.from_stream(log, schema=schema).schema == schema
    # A schema that cannot be satisfied is ignored, and the consumer decides.
    capsule = pa.schema([("value", pa.int8())]).__arrow_c_schema__()
    assert (
        pa.RecordBatchReader._import_from_c_capsule(batches.__arrow_c_stream__(capsule)).schema.names
        == CONSUMED
    )
    assert pa.schema(batches) == pa.schema(PartitionLog(KAFKA / "v2_headers")) == pa.table(batches).schema
    assert pa.schema(batches.to_arrow(views=True)).field("value").type == pa.binary_view()


@pytest.mark.parametrize("views", [False, True])
@pytest.mark.parametrize("name", ["v2_headers", "v2_nulls", "mixed_012", "v2_zstd"])
def test_consumers(name: str, views: bool) -> None:
    log = PartitionLog(KAFKA / name)
    records = list(log.records())
    sizes = sum(len(record.value) for record in records if record.value is not None)
    assert records
    stream = log.to_arrow(views=views)
    assert duckdb.sql("select count(*), sum(octet_length(value)) from stream").fetchall() == [
        (len(records), sizes)
    ]
    least = records[len(records) // 2].offset
    found = duckdb.sql(f'select min("offset") from stream where "offset" >= {least}').fetchall()
    assert found == [(least,)]
    frame = pl.DataFrame(stream)
    assert frame["value"].to_list() == [record.value_bytes for record in records]
    assert frame["headers"].to_list() == [
        [{"key": key, "value": None if value is None else bytes(value)} for key, value in record.headers]
        or None
        for record in records
    ]
    assert frame.select(pl.col("value").bin.size().sum()).item() == sizes
    table = pa.table(stream)
    assert table.num_rows == pa.RecordBatchReader.from_stream(stream).read_all().num_rows == len(records)
    pandas = table.to_pandas()
    assert list(pandas["offset"]) == [record.offset for record in records]
    assert list(pandas["value"]) == [record.value_bytes for record in records]


def test_logs_and_buffers_are_read_by_name() -> None:
    log = PartitionLog(KAFKA / "v2_none")
    count = sum(1 for _ in log.records())
    assert duckdb.sql("select count(*) from log").fetchall() == [(count,)]
    batches = magicbyte.read_batches(data("v2_none"))
    assert duckdb.sql("select count(*) from batches").fetchall() == [(pl.DataFrame(batches).height,)]
    assert pl.DataFrame(log).height == pa.table(log).to_pandas().shape[0] == count


@pytest.mark.parametrize(
    ("ask", "why"),
    [
        (lambda of: of.to_arrow(["nothing"]), "no column"),
        (lambda of: of.to_arrow(threads=0), "threads"),
        (lambda of: of.to_arrow(threads=10**6), "threads"),
    ],
)
def test_invalid_requests(ask: Callable[[Any], object], why: str) -> None:
    for of in (PartitionLog(KAFKA / "v2_none"), magicbyte.read_batches(b"")):
        with pytest.raises(ValueError, match=why):
            ask(of)
    with pytest.raises(ValueError, match="partition"):
        magicbyte.read_batches(b"").to_arrow(["topic"])
    with pytest.raises(ValueError, match="isolation"):
        PartitionLog(KAFKA / "v2_none").to_arrow(isolation_level="none")  # type: ignore[arg-type]
