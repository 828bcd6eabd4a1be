"""`Log` as a table: its partitions one after the other, with the columns of `PartitionLog.to_arrow`."""

from __future__ import annotations

import gc
import json
import pickle
import shutil
import struct
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import magicbyte
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from conftest import KAFKA
from magicbyte import Log, PartitionLog, _core
from magicbyte.errors import CorruptRecordError, RefusedError
from magicbyte.jobs.schemas import open_registry
from magicbyte.schema import ColumnDecoder
from magicbyte.table_options import EVERYTHING
from typed_logs import TypedLog, record

SAMPLES = Path(__file__).parents[2] / "samples"
# All magics and codecs, transactions, empty values, sparse offsets.
BROKERS = [
    KAFKA / name for name in ("v0_gzip", "v1_lz4", "v1_none", "v2_compacted_txn", "v2_headers", "v2_zstd")
]
BATCH = 50


def write_partition(root: Path, name: str, batches: int, start: int = 0, *, magic: int = 2) -> Path:
    """A partition of batches of 50 records; the timestamps are ten times the offsets."""
    directory = root / name
    directory.mkdir(parents=True)
    segment = b""
    for base in range(start, start + batches * BATCH, BATCH):
        builder = magicbyte.RecordsBuilder(magic, magicbyte.Compression.GZIP)
        for offset in range(base, base + BATCH):
            builder.append(offset, offset * 10, b"key", b"value of %d" % offset)
        segment += builder.build()
    (directory / f"{start:020}.log").write_bytes(segment)
    return directory


@pytest.fixture
def twelve(tmp_path: Path) -> Path:
    for number in range(12):
        write_partition(tmp_path / "logs", f"orders-{number}", 4, number * 1000)
    return tmp_path / "logs"


def flip_bit(directory: Path, place: int) -> None:
    path = next(directory.glob("*.log"))
    data = bytearray(path.read_bytes())
    data[place] ^= 1
    path.write_bytes(data)


def expected(log: Log, columns: list[str], **options: Any) -> pa.Table:
    return pa.concat_tables(pa.table(one.to_arrow(columns, **options)) for one in log)


def test_a_directory_is_a_table_in_one_line(twelve: Path) -> None:
    frame = pl.DataFrame(Log(twelve))
    assert frame.height == 12 * 4 * BATCH
    assert frame.columns == ["topic", "partition", *_core.CONSUMED_COLUMNS]
    assert frame["partition"].unique(maintain_order=True).to_list() == list(range(12))
    assert frame["topic"].unique().to_list() == ["orders"]


def test_the_columns_are_those_of_the_ingest_tables() -> None:
    ours = pa.schema(Log(SAMPLES))
    table = pa.schema(_core.arrow_schema("records", ours.names))
    assert ours.field("timestamp").type == pa.timestamp("ms", "UTC")
    without = ours.get_field_index("timestamp")
    assert ours.remove(without) == table.remove(without)
    assert pa.schema(next(iter(Log(SAMPLES)))).names == _core.CONSUMED_COLUMNS


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"threads": 3},
        {"views": True},
        {"start_offset": 7, "end_offset": 90},
        {"start_timestamp": 1_600_000_000_000},
        {"isolation_level": "read_committed", "threads": 2},
        {"where": "offset % 3 = 1 AND partition = 0"},
        {"last": 5},
        {"last": 70, "end_offset": 90},
    ],
    ids=str,
)
def test_a_log_is_its_partitions_one_after_the_other(options: dict[str, Any]) -> None:
    log = Log(BROKERS)
    columns = ["topic", "partition", "offset", "value"]
    table = pa.table(log.to_arrow(columns, **options))
    assert table.num_rows
    assert table.to_pylist() == expected(log, columns, **options).to_pylist()


@pytest.mark.parametrize("partition", BROKERS, ids=lambda path: path.name)
@pytest.mark.parametrize("last", [0, 1, 3, 49, 200, 10**6])
@pytest.mark.parametrize("isolation_level", ["read_uncommitted", "read_committed"])
def test_last_records(partition: Path, last: int, isolation_level: Any) -> None:
    log = PartitionLog(partition)
    offsets = [record.offset for record in log.records(isolation_level=isolation_level)]
    table = pa.table(log.to_arrow(["offset"], last=last, isolation_level=isolation_level))
    assert table.column("offset").to_pylist() == offsets[max(0, len(offsets) - last) :]


def test_last_records_across_segments_and_in_a_range(tmp_path: Path) -> None:
    directory = write_partition(tmp_path, "orders-0", 3)
    for start in (150, 300):
        moved = write_partition(tmp_path / str(start), "orders-0", 3, start)
        (moved / f"{start:020}.log").rename(directory / f"{start:020}.log")
    log = PartitionLog(directory)
    for last in (1, 149, 150, 151, 301, 450, 451):
        assert pa.table(log.to_arrow(["offset"], last=last))["offset"].to_pylist() == list(range(450))[-last:]
        within = pa.table(log.to_arrow(["offset"], last=last, start_offset=20, end_offset=333))
        assert within["offset"].to_pylist() == list(range(20, 333))[-last:]


@pytest.mark.parametrize("index", ["brokers", "none", "lies", "garbage", "gaps"])
def test_last_records_by_an_index(tmp_path: Path, index: str) -> None:
    """An index is a hint: whatever it says, the records are the same."""
    directory = write_partition(tmp_path, "orders-0", 100)
    segment = directory / f"{0:020}.log"
    offsets = list(range(5000))
    if index == "gaps":  # as compaction leaves them
        batches = [batch.to_bytes() for batch in magicbyte.read_batches(segment.read_bytes())]
        segment.write_bytes(b"".join(batches[:80] + batches[98:]))
        offsets = offsets[:4000] + offsets[4900:]
    _core.rebuild_sidecars(directory, dry_run=False)
    file = segment.with_suffix(".index")
    if index == "none":
        file.unlink()
    elif index == "lies":
        file.write_bytes(struct.pack(">II", 2**31 - 1, 70))
    elif index == "garbage":
        file.write_bytes(b"\xff" * 803)
    log = PartitionLog(directory, mode="PERMISSIVE")
    for last in (1, 51, 777, 5000):
        assert pa.table(log.to_arrow(["offset"], last=last))["offset"].to_pylist() == offsets[-last:]


def test_last_records_read_only_the_end(tmp_path: Path) -> None:
    stream = PartitionLog(write_partition(tmp_path, "orders-0", 200)).to_arrow(last=10)
    assert pa.table(stream)["offset"].to_pylist() == list(range(9990, 10000))
    (account,) = stream.accounts
    assert account.rows == 10


def test_the_number_of_last_records(tmp_path: Path) -> None:
    log = PartitionLog(write_partition(tmp_path, "orders-0", 2))
    for last in (7, np.int64(7), np.uint8(7)):
        assert pa.table(log.to_arrow(["offset"], last=last)).num_rows == 7  # type: ignore[arg-type]
    for last in (2**63 - 1, 2**63, 10**30):
        assert pa.table(log.to_arrow(["offset"], last=last)).num_rows == 2 * BATCH
    unfit: Any
    for unfit in (2.5, 2.0, "2", b"2", [2], True, False, np.float64(2)):
        with pytest.raises(TypeError, match="expected a number of records, as an int"):
            log.to_arrow(last=unfit)
    for unfit in (-1, -(2**70), np.int64(-1)):
        with pytest.raises(ValueError, match=rf"last {unfit}: expected 0 or more records"):
            Log(tmp_path).to_arrow(last=unfit)


def test_last_records_of_a_file_with_a_wrong_name(tmp_path: Path) -> None:
    """A name above the content, as after a restore, does not make the whole log the last records."""
    directory = write_partition(tmp_path, "orders-0", 4)
    (directory / f"{0:020}.log").rename(directory / f"{150:020}.log")
    for last in (1, 60, 149, 200):
        stream = PartitionLog(directory).to_arrow(["offset"], last=last)
        assert pa.table(stream)["offset"].to_pylist() == list(range(200))[-last:]


def without_a_record(batch: magicbyte.RecordBatch | magicbyte.LegacyBatch) -> bytes:
    """The batch with a right CRC and records that do not decode."""
    broken = bytearray(batch.to_bytes())
    broken[-20] ^= 1
    broken[17:21] = magicbyte.crc32c(bytes(broken[21:])).to_bytes(4, "big")
    return bytes(broken)


def test_last_records_among_batches_that_do_not_decode(tmp_path: Path) -> None:
    directory = write_partition(tmp_path, "orders-0", 5)
    path = next(directory.glob("*.log"))
    *first, broken, last = magicbyte.read_batches(path.read_bytes())
    path.write_bytes(
        b"".join([*(one.to_bytes() for one in first), without_a_record(broken), last.to_bytes()])
    )
    offsets = [*range(150), *range(200, 250)]
    log = PartitionLog(directory, mode="PERMISSIVE")
    for count in (10, 50, 51, 120, 200):
        stream = log.to_arrow(["offset"], last=count)
        assert pa.table(stream)["offset"].to_pylist() == offsets[-count:]
        assert len(stream.problems) == (count > 50)
        # The range does not depend on the columns; by its header, the batch has records.
        headers_only = pa.table(log.to_arrow(["topic"], last=count))
        assert headers_only.num_rows == count + 50 * (count > 50)
    fails_fast = PartitionLog(directory)
    assert pa.table(fails_fast.to_arrow(["offset"], last=50)).num_rows == 50
    with pytest.raises(Exception, match="batch at offset 150"):
        pa.table(fails_fast.to_arrow(["offset"], last=51))


@pytest.mark.parametrize("isolation_level", ["read_uncommitted", "read_committed"])
def test_last_records_of_many_segments(tmp_path: Path, isolation_level: Any) -> None:
    """The time is proportional to the number of segments: a quadratic search takes ten times as long."""
    directory = tmp_path / "orders-0"
    directory.mkdir()
    for base in range(0, 6000, 10):
        builder = magicbyte.RecordsBuilder(2)
        for offset in range(base, base + 10):
            builder.append(offset, 0, None, b"value")
        (directory / f"{base:020}.log").write_bytes(builder.build())
    log = PartitionLog(directory)

    def seconds(last: int | None) -> float:
        start = time.process_time()
        assert pa.table(log.to_arrow(["offset"], last=last, isolation_level=isolation_level)).num_rows == 5000
        return time.process_time() - start

    everything = PartitionLog(directory).to_arrow(["offset"], isolation_level=isolation_level)
    start = time.process_time()
    assert pa.table(everything).num_rows == 6000
    whole = time.process_time() - start
    assert min(seconds(5000) for _ in range(3)) < 0.2 + 8 * whole


def test_accounts_add_up(twelve: Path) -> None:
    (twelve / "orders-3" / f"{3000:020}.log").open("ab").write(b"\0" * 40)
    flip_bit(twelve / "orders-5", 100)
    log = Log(twelve, mode="PERMISSIVE")
    stream = log.to_arrow(["offset"])
    assert stream.accounts == [] == stream.problems
    rows = pa.table(stream).num_rows
    accounts = stream.accounts
    assert [account.partition for account in accounts] == list(range(12))
    for account, verified in zip(accounts, log.verify(), strict=True):
        for name in ("size", "good_bytes", "quarantined_bytes", "tail_bytes", "outside_bytes", "rows"):
            assert getattr(account, name) == getattr(verified, name), name
    assert rows == sum(account.rows for account in accounts) == 47 * BATCH
    assert accounts[3].tail_bytes == 40
    assert [problem["kind"] for problem in stream.problems] == ["crc_mismatch"]
    assert stream.problems == accounts[5].problems
    assert accounts[5].batches == 3


@pytest.mark.parametrize("threads", [1, 2])
def test_accounts_of_records_that_do_not_decode(tmp_path: Path, threads: int) -> None:
    directory = write_partition(tmp_path, "orders-0", 4)
    path = next(directory.glob("*.log"))
    first, second, *others = magicbyte.read_batches(path.read_bytes())
    broken = without_a_record(second)
    path.write_bytes(b"".join([first.to_bytes(), broken, *(batch.to_bytes() for batch in others)]))
    stream = PartitionLog(directory, mode="PERMISSIVE").to_arrow(threads=threads)
    assert pa.table(stream).num_rows == 3 * BATCH
    (account,) = stream.accounts
    assert account.quarantined_bytes == len(broken)
    assert account.good_bytes == account.size - len(broken)
    assert (account.batches, account.rows, len(account.problems)) == (3, 3 * BATCH, 1)


def test_an_abandoned_stream_has_an_account(twelve: Path) -> None:
    stream = Log(twelve).to_arrow(["offset"])
    reader = pa.RecordBatchReader.from_stream(stream)
    reader.read_next_batch()
    accounts = stream.accounts
    assert accounts[0].rows == 4 * BATCH
    assert all(account.rows == 0 and account.outside_bytes == account.size for account in accounts[1:])
    del reader
    gc.collect()
    assert stream.accounts == accounts
    assert pa.table(stream).num_rows == 48 * BATCH
    assert sum(account.rows for account in stream.accounts) == 48 * BATCH


def test_damage_fails_fast_with_its_place(twelve: Path) -> None:
    flip_bit(twelve / "orders-5", 100)
    log = Log(twelve)
    with pytest.raises(Exception, match=r"orders-5.*CRC mismatch"):
        pa.table(log)
    batches = log.to_arrow(["offset"]).read(["offset"], lambda topic, partition: EVERYTHING)
    with pytest.raises(CorruptRecordError, match="orders-5"):
        list(batches)


def test_where_names_the_partition_that_fails(twelve: Path) -> None:
    where = "CASE WHEN partition = 7 THEN CAST(value AS INT) > 1 ELSE true END"
    with pytest.raises(Exception, match="orders-7, the record with offset 7000"):
        pa.table(Log(twelve).to_arrow(["offset"], where=where))


def test_values_by_schema(tmp_path: Path) -> None:
    log = TypedLog(tmp_path, 3)
    schema = record("Order", id=("long", None))
    log.append(schema, [{"id": number} for number in range(30)])
    _, registry = open_registry([str(log.registry)])
    decoder = ColumnDecoder(registry, None)
    stream = Log(log.root).to_arrow(["partition", "offset", "value"], value=decoder)
    table = pa.table(stream)
    rows = table.select(["partition", "offset", "value"]).to_pylist()
    assert [{**row, "value": json.loads(row["value"])} for row in rows] == log.rows
    assert table["partition"].unique().to_pylist() == [0, 1, 2]
    frame = magicbyte.scan(stream)
    values = frame.filter(pl.col.partition == 1).select("value").collect()["value"]
    assert [json.loads(value)["id"] for value in values] == list(range(30))
    # Nobody asks for the values, so nothing is decoded by a schema.
    assert frame.select("offset").collect().height == table.num_rows


@pytest.mark.parametrize("empty", ["orders-0", "orders-11"])
def test_empty_partitions(twelve: Path, empty: str) -> None:
    next((twelve / empty).glob("*.log")).write_bytes(b"")
    assert pa.table(Log(twelve)).num_rows == 44 * BATCH


def test_empty_directories(tmp_path: Path) -> None:
    with pytest.raises(RefusedError):
        Log(tmp_path)
    (tmp_path / "orders-0").mkdir()
    (tmp_path / "orders-0" / f"{0:020}.log").touch()
    table = pa.table(Log(tmp_path))
    assert (table.num_rows, table.num_columns) == (0, 8)


def test_partitions_that_have_gone_since(twelve: Path) -> None:
    log = Log(twelve)
    shutil.rmtree(twelve)
    with pytest.raises(Exception, match="orders-0"):
        pa.table(log)


def test_unknown_options_are_refused(twelve: Path) -> None:
    log: Any = Log(twelve)
    with pytest.raises(TypeError, match="start_offst"):
        log.to_arrow(start_offst=1)
    with pytest.raises(ValueError, match="no column"):
        log.to_arrow(["offset", "no"])
    with pytest.raises(TypeError, match="columns 'offset': expected a sequence of names"):
        log.to_arrow("offset")
    with pytest.raises(ValueError, match="threads 0"):
        log.to_arrow(threads=0)
    with pytest.raises(ValueError, match="leave out views"):
        log.to_arrow(views=True, where="offset = 1")
    for where in (1, b"offset = 1", ["offset = 1"]):
        with pytest.raises(TypeError, match="where: expected an SQL expression, not "):
            log.to_arrow(where=where)


@pytest.mark.parametrize("mode", [None, 1, b"FAILFAST", "", "fail"])
def test_other_modes_are_refused(twelve: Path, mode: Any) -> None:
    for opened in (Log, PartitionLog):
        with pytest.raises(ValueError, match="mode is PERMISSIVE or FAILFAST, not "):
            opened(twelve / "orders-0", mode=mode)


@pytest.mark.parametrize("choice", ["orders", None, ("orders",), {"topics": ("orders",)}])
def test_a_choice_is_a_partition_choice(twelve: Path, choice: Any) -> None:
    calls: list[Callable[[], Any]] = [
        lambda: Log(twelve, choice),
        lambda: magicbyte.verify(twelve, choice=choice),
        lambda: magicbyte.convert(twelve, twelve / "out", choice=choice),
    ]
    for call in calls:
        with pytest.raises(TypeError, match="choice: expected a PartitionChoice, not "):
            call()


@pytest.mark.parametrize(("name", "method"), [("engine", "map"), ("progress", "step")])
@pytest.mark.parametrize("value", ["spark", 3, object()])
def test_engines_and_progress_have_methods(twelve: Path, name: str, method: str, value: Any) -> None:
    with pytest.raises(TypeError, match=f"{name}: expected an object with the method {method}, not "):
        magicbyte.verify(twelve, **{name: value})


@pytest.mark.parametrize("sources", [[], (), iter([])])
def test_no_source(sources: Any) -> None:
    for call in (Log, magicbyte.scan, magicbyte.verify, magicbyte.stats):
        with pytest.raises(RefusedError, match="no source is given: expected a path or a sequence of paths"):
            call(sources)


def test_consumers(twelve: Path) -> None:
    log = Log(twelve)
    stream = log.to_arrow(["partition", "offset"])
    counted = 48 * BATCH
    assert duckdb.sql("select count(*), max(partition) from log").fetchall() == [(counted, 11)]
    assert duckdb.sql("select count(distinct partition) from stream").fetchall() == [(12,)]
    assert pa.table(stream).num_rows == counted
    assert pl.DataFrame(stream).height == counted
    assert isinstance(pl.from_arrow(stream), pl.Series)
    frame: pd.DataFrame = pa.table(stream).to_pandas()
    assert frame.groupby("partition").size().to_dict() == dict.fromkeys(range(12), 4 * BATCH)
    requested = pa.schema([("offset", pa.int64()), ("topic", pa.string())])
    assert pa.RecordBatchReader.from_stream(log, requested).read_all().column_names == ["offset", "topic"]


def test_memory_is_that_of_one_batch(twelve: Path) -> None:
    before = pa.total_allocated_bytes()
    for batch in pa.RecordBatchReader.from_stream(Log(twelve)):
        assert batch.num_rows <= 4 * BATCH
        assert pa.total_allocated_bytes() - before < 1 << 20


def test_streams_are_read_by_several_threads(twelve: Path) -> None:
    log, counts = Log(twelve), []

    def read() -> None:
        counts.append(pa.table(log.to_arrow(["offset"], threads=2)).num_rows)

    threads = [threading.Thread(target=read) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert counts == [48 * BATCH] * 6


def test_pickled_streams_read_the_same(twelve: Path) -> None:
    stream = Log(twelve).to_arrow(["partition", "offset"], end_offset=5000, threads=2)
    assert pa.table(pickle.loads(pickle.dumps(stream))) == pa.table(stream)


def test_chained_streams_have_the_same_columns(twelve: Path) -> None:
    one, other = (magicbyte.read_batches(b"").to_arrow([name]) for name in ("offset", "value"))
    with pytest.raises(ValueError, match="no streams"):
        _core.chain_streams([])
    with pytest.raises(ValueError, match="different columns"):
        _core.chain_streams([one, other])


def test_a_stream_outlives_its_log(twelve: Path) -> None:
    log = PartitionLog(twelve / "orders-3")
    stream, records = log.to_arrow(["offset"]), log.records()
    log.close()
    assert pa.table(stream).num_rows == len(list(records)) == 4 * BATCH
    for read in (log.to_arrow, log.records, log.batches, log.verify, lambda: pa.table(log)):
        with pytest.raises(ValueError, match="is closed"):
            read()


def test_two_readers_of_a_stream_have_sums_of_their_own(tmp_path: Path) -> None:
    """They share what the stream shows, and both lower it at a batch that does not decode."""
    directory = write_partition(tmp_path, "orders-0", 40)
    path = next(directory.glob("*.log"))
    first, *others = magicbyte.read_batches(path.read_bytes())
    path.write_bytes(first.to_bytes() + b"".join(without_a_record(batch) for batch in others))
    (opened,) = PartitionLog(directory, mode="PERMISSIVE").to_arrow(["offset"]).partitions
    stream = opened.decoded(["offset"], PartitionLog(directory).to_arrow(["offset"], threads=2)._options)
    # Each has read batches ahead when the other begins.
    one, other = iter(stream), iter(stream)
    assert [next(reader).num_rows for reader in (one, other)] == [BATCH, BATCH]
    for reader in (one, other):
        assert list(reader) == []
        counts = stream.counts
        assert (counts.batches, counts.good_bytes, counts.rows) == (1, first.size_in_bytes, BATCH)
        assert counts.quarantined_bytes == path.stat().st_size - first.size_in_bytes


def test_batches_of_a_stream_are_objects() -> None:
    stream = magicbyte.read_batches((SAMPLES / "clicks-0" / f"{0:020}.log").read_bytes()).to_arrow(["offset"])
    batches = iter(stream)
    assert pa.Table.from_batches([pa.record_batch(batch) for batch in batches]) == pa.table(stream)
    assert next(batches, None) is None
    assert stream.fields == [("offset", "Int64")]


def test_streams_in_notebooks(twelve: Path) -> None:
    stream = Log(twelve).to_arrow(["partition", "value"])
    assert "<td>partition</td><td>Int32</td>" in stream._repr_html_()
    assert "orders-0, orders-1, orders-2 and 9 more" in repr(stream)
    assert "Read so far" not in stream._repr_html_()
    pa.table(stream)
    assert "Read so far" in stream._repr_html_()
