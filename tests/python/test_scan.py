"""`magicbyte.scan`: a Polars LazyFrame has the rows of the whole log, and reads only what a query needs."""

from __future__ import annotations

import copy
import gc
import pickle
import random
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Collection, Iterator
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import duckdb
import magicbyte
import polars as pl
import pytest
from magicbyte import Log, PartitionLog
from magicbyte.errors import CorruptRecordError, RefusedError
from magicbyte.predicates import Predicate
from magicbyte.table import LogArrowStream
from magicbyte.table_options import EVERYTHING, Ranges
from test_log_tables import BATCH, BROKERS, SAMPLES, flip_bit, twelve, write_partition

__all__ = ["twelve"]

ROUNDS = 150
NEW_YEAR = pl.lit(datetime(2020, 1, 1, tzinfo=UTC))
AFTER_NEW_YEAR = pl.lit(datetime(2020, 1, 1, 0, 0, 0, 1, tzinfo=UTC))


def whole(source: Any = SAMPLES) -> pl.DataFrame:
    return pl.DataFrame(Log(source))


Query = Callable[[pl.LazyFrame], pl.LazyFrame]


def read_by(stream: LogArrowStream, query: Query) -> tuple[pl.DataFrame, list[magicbyte.ReadAccount]]:
    """The result of a query over a frame of such a stream, and the accounts of what the query has read."""
    fresh = copy.copy(stream)
    return query(magicbyte.scan(fresh)).collect(), fresh.accounts


def conditions(random: random.Random, frame: pl.DataFrame) -> pl.Expr:
    """A random condition on one column."""
    offset, time = random.choice(frame["offset"]), random.choice(frame["timestamp"])
    topics = random.choices([*frame["topic"].unique(), "none"], k=2)
    time = datetime(2020, 1, 1, tzinfo=UTC) if time is None else time
    compared = random.choice(["__lt__", "__le__", "__gt__", "__ge__", "__eq__", "__ne__"])
    closed: Any = random.choice(["both", "left", "right", "none"])
    return random.choice(
        [
            getattr(pl.col.offset, compared)(offset),
            getattr(pl.col.timestamp, compared)(time),
            getattr(pl.lit(offset), compared)(pl.col.offset),
            getattr(pl.col.offset + 3, compared)(offset),
            getattr(pl.col.offset.cast(pl.Float64), compared)(offset - 0.5),
            pl.col.offset.is_between(offset - 20, offset, closed=closed),
            pl.col.timestamp.is_between(time, pl.lit(time).dt.offset_by("1d"), closed=closed),
            pl.col.offset.is_in([offset, offset + 1, 3]),
            pl.col.topic.is_in(topics),
            topics[0] == pl.col.topic,
            pl.col.topic.str.starts_with(topics[1][:2]),
            pl.col("partition") >= random.choice([0, 1]),
            pl.col.timestamp.is_null(),
            pl.col.timestamp.is_not_null(),
            pl.col("key").is_null(),
            pl.col("value").bin.size() > random.choice([0, 10, 100]),
            pl.lit(random.choice([True, False])),
            pl.when(pl.col.offset > offset).then(pl.col.topic == topics[0]).otherwise(True),
            pl.col.timestamp.dt.timestamp("ms") > 1_600_000_000_000,
        ]
    )


def predicate(random: random.Random, frame: pl.DataFrame, depth: int = 3) -> pl.Expr:
    if depth == 0 or random.random() < 0.2:
        return conditions(random, frame)
    kind = random.choice(["and", "or", "not", "and"])
    one = predicate(random, frame, depth - 1)
    if kind == "not":
        return ~one
    other = predicate(random, frame, depth - 1)
    return one & other if kind == "and" else one | other


def selecting(expression: pl.Expr, columns: list[str]) -> Query:
    return lambda frame: frame.filter(expression).select(columns)


@pytest.mark.parametrize("source", [SAMPLES, BROKERS], ids=["samples", "brokers"])
def test_filters_select_the_rows_of_the_whole_log(source: Any) -> None:
    everything, stream, pushed = whole(source), Log(source).to_arrow(), 0
    size = sum(account.size for account in read_by(stream, lambda frame: frame)[1])
    for seed in range(ROUNDS):
        rng = random.Random(seed)
        expression = predicate(rng, everything)
        columns = rng.sample(everything.columns, rng.randint(1, 8))
        result, accounts = read_by(stream, selecting(expression, columns))
        assert result.equals(everything.filter(expression).select(columns)), f"{seed}: {expression}"
        pushed += sum(account.good_bytes for account in accounts) < size
    assert pushed > ROUNDS // 5


@pytest.mark.parametrize(
    ("expression", "ranges"),
    [
        (pl.col.offset > 5, Ranges(start_offset=6)),
        (pl.col.offset >= 5, Ranges(start_offset=5)),
        (pl.col.offset < 5, Ranges(end_offset=5)),
        (pl.col.offset <= 5, Ranges(end_offset=6)),
        (pl.col.offset == 5, Ranges(5, 6)),
        (pl.lit(5) > pl.col.offset, Ranges(end_offset=5)),
        (pl.col.offset.is_between(3, 7, closed="none"), Ranges(4, 7)),
        ((pl.col.offset > 5) & (pl.col.offset < 9), Ranges(6, 9)),
        ((pl.col.offset > 5) & (pl.col.offset < 3), None),
        ((pl.col.offset == 5) | (pl.col.offset == 9), Ranges(5, 10)),
        ((pl.col.offset == 5) | (pl.col("key").is_null()), EVERYTHING),
        ((pl.col.offset == 5) & (pl.col("key").is_null()), Ranges(5, 6)),
        ((pl.col.topic == "a") & (pl.col.offset == 5), Ranges(5, 6)),
        ((pl.col.topic == "b") & (pl.col.offset == 5), None),
        (((pl.col.topic == "b") & (pl.col.offset == 5)) | (pl.col.offset == 7), Ranges(7, 8)),
        (pl.col.topic.is_in(["b", "c"]), None),
        (pl.col("partition") == 3, EVERYTHING),
        ((pl.col("partition") + 0 == 4) & pl.col.topic.str.starts_with("a"), None),
        (pl.col.offset > 2**63 - 1, None),
        (pl.col.offset <= 2**63 - 1, EVERYTHING),
        (pl.col.offset != 5, EVERYTHING),
        (pl.col.offset > 5.5, EVERYTHING),
        (pl.col.offset > pl.lit(None, dtype=pl.Int64), EVERYTHING),
        (pl.col.timestamp >= NEW_YEAR.cast(pl.Datetime("ms", "UTC")), Ranges(None, None, 1577836800000)),
        (pl.col.timestamp >= NEW_YEAR.cast(pl.Datetime("us", "UTC")), EVERYTHING),
        (pl.col.timestamp.dt.cast_time_unit("us") >= NEW_YEAR, Ranges(None, None, 1577836800000)),
        (pl.col.timestamp.dt.cast_time_unit("us") < AFTER_NEW_YEAR, Ranges(None, None, None, 1577836800001)),
        (pl.col.timestamp.dt.cast_time_unit("us") > AFTER_NEW_YEAR, Ranges(None, None, 1577836800001)),
        (pl.col.timestamp.dt.cast_time_unit("ns") > NEW_YEAR.dt.cast_time_unit("ns"), EVERYTHING),
        (pl.col("timestampMillis") == 7, Ranges(None, None, 7, 8)),
        (pl.col.offset.is_in([5, 9, 3]), Ranges(3, 10)),
        (pl.col.offset.is_in(pl.Series([5, None])), Ranges(5, 6)),
        (pl.col.offset.is_in([]), EVERYTHING),
        (pl.when(pl.col.topic.is_null()).then(None).otherwise(pl.col.topic == "b"), None),
        (pl.when(pl.col.offset > 5).then(pl.col.offset < 9).otherwise(False), Ranges(end_offset=9)),
        (pl.lit(False), None),
        (pl.lit(True), EVERYTHING),
        (pl.col.offset > pl.lit("5"), EVERYTHING),
        (pl.col.offset > pl.col("partition"), EVERYTHING),
        (pl.col.offset > pl.col.offset.max() - 5, EVERYTHING),
        (pl.col("topic").shuffle() == "b", EVERYTHING),
        ((pl.col.topic == "b").any(), EVERYTHING),
    ],
    ids=str,
)  # fmt: skip
def test_ranges_of_a_predicate(expression: pl.Expr, ranges: Ranges | None) -> None:
    assert Predicate(expression).ranges("a", 3) == ranges


def test_a_predicate_of_any_depth() -> None:
    deep = pl.col.offset == 0
    for offset in range(1, 400):
        deep = deep | (pl.col.offset == offset * 2)
    assert Predicate(deep).ranges("a", 0) in (EVERYTHING, Ranges(0, 799))
    assert magicbyte.scan(SAMPLES / "clicks-0").filter(deep).collect().height == 137


def test_partitions_are_chosen(twelve: Path) -> None:
    stream = Log(twelve).to_arrow()
    rows, accounts = read_by(stream, lambda frame: frame.filter(pl.col("partition").is_in([3, 7])))
    assert [account.partition for account in accounts] == [3, 7]
    assert rows["partition"].unique().to_list() == [3, 7]
    rows, accounts = read_by(stream, lambda frame: frame.filter(pl.col.topic == "payments"))
    assert (rows.height, accounts) == (0, [])
    assert rows.schema == magicbyte.scan(stream).collect_schema()


def test_ranges_of_offsets_read_only_their_batches(tmp_path: Path) -> None:
    stream = PartitionLog(write_partition(tmp_path, "orders-0", 200)).to_arrow()
    ninety_nine = datetime.fromtimestamp(99, UTC)
    rows, (account,) = read_by(stream, lambda frame: frame.filter(pl.col.offset.is_between(100, 149)))
    assert (rows.height, account.rows) == (50, 50)
    assert account.good_bytes < account.size / 50
    rows, (account,) = read_by(stream, lambda frame: frame.filter(pl.col.timestamp >= ninety_nine))
    assert (rows.height, account.rows) == (100, 100)
    rows, (account,) = read_by(stream, lambda frame: frame.filter(date(1970, 1, 2) < pl.col.timestamp))
    assert (rows.height, account.batches) == (0, 0)


def test_head_ends_the_read(twelve: Path) -> None:
    stream = Log(twelve).to_arrow()
    rows, accounts = read_by(stream, lambda frame: frame.head(5))
    assert (rows.height, len(accounts)) == (5, 1)
    rows, accounts = read_by(stream, lambda frame: frame.head(201))
    assert (rows["partition"].to_list()[-1], len(accounts)) == (1, 2)
    rows, accounts = read_by(stream, lambda frame: frame.head(0))
    assert (rows.height, accounts) == (0, [])


def test_only_wanted_columns_are_decoded(tmp_path: Path) -> None:
    """A batch that does not decode is damage only for those who decode it: its header counts the records."""
    directory = write_partition(tmp_path, "orders-0", 3)
    path = next(directory.glob("*.log"))
    first, second, third = (batch.to_bytes() for batch in magicbyte.read_batches(path.read_bytes()))
    broken = bytearray(second)
    broken[-20] ^= 1
    broken[17:21] = magicbyte.crc32c(bytes(broken[21:])).to_bytes(4, "big")
    path.write_bytes(first + broken + third)
    frame = magicbyte.scan(directory)
    assert frame.select(pl.len()).collect().item() == 3 * BATCH
    assert frame.select("topic").collect().height == 3 * BATCH
    with pytest.raises(magicbyte.Error):
        frame.select("offset").collect()


@pytest.mark.parametrize("count", [1, 7, 60, 10**6])
def test_last_records_are_the_tail(twelve: Path, count: int) -> None:
    last = Log(twelve).to_arrow(last=count)
    frame = magicbyte.scan(twelve)
    assert magicbyte.scan(last).tail(count).collect().equals(frame.tail(count).collect())
    within = magicbyte.scan(last).filter(pl.col.offset % 2 == 0, pl.col("partition") == 3).collect()
    assert within.height == sum(1 for offset in list(range(3000, 3200))[-count:] if offset % 2 == 0)


def test_damage_raises_our_error(twelve: Path) -> None:
    flip_bit(twelve / "orders-5", 100)
    frame = magicbyte.scan(twelve)
    for engine in ("in-memory", "streaming"):
        with pytest.raises(CorruptRecordError, match="orders-5") as caught:
            frame.collect(engine=engine)
        assert (caught.value.kind, caught.value.base_offset) == ("crc_mismatch", 5000)
    assert frame.filter(pl.col("partition") == 4).collect().height == 4 * BATCH


def test_what_is_left_out_is_in_the_account(twelve: Path) -> None:
    for partition in (2, 5):
        flip_bit(twelve / f"orders-{partition}", 100)
    log = Log(twelve, mode="PERMISSIVE")
    with pytest.raises(ValueError, match="PERMISSIVE mode: expected its stream"):
        magicbyte.scan(log)
    stream = log.to_arrow()
    frame = magicbyte.scan(stream)
    by_partition = [frame.filter(pl.col("partition") == number) for number in (2, 5)]
    assert [rows.height for rows in pl.collect_all(by_partition)] == [3 * BATCH, 3 * BATCH]
    assert sorted(problem["partition"] for problem in stream.problems) == [2, 5]
    (second, fifth) = stream.accounts
    frame.collect()
    assert len(stream.problems) == 2
    assert stream.problems_left_out == 0
    assert [account.partition for account in stream.accounts] == list(range(12))
    for before, after in ((second, stream.accounts[2]), (fifth, stream.accounts[5])):
        assert after[2:9] == tuple(2 * number for number in before[2:9])
        assert after.problems == before.problems
    for account in stream.accounts:
        read = account.good_bytes + account.quarantined_bytes + account.tail_bytes
        assert read + account.outside_bytes == account.size


def test_problems_of_copies_of_a_log(twelve: Path, tmp_path: Path) -> None:
    """The same damage in two copies of a partition is two problems."""
    flip_bit(twelve / "orders-5", 100)
    shutil.copytree(twelve / "orders-5", tmp_path / "copy" / "orders-5")
    # Directories are refused; files that the caller names are read.
    first, second = (next((top / "orders-5").glob("*.log")) for top in (twelve, tmp_path / "copy"))
    stream = Log([first, second], mode="PERMISSIVE").to_arrow()
    for _ in range(2):
        assert magicbyte.scan(stream).collect().height == 6 * BATCH
        assert len(stream.problems) == 2


def test_problems_that_are_left_out_are_counted_once(tmp_path: Path) -> None:
    directory = write_partition(tmp_path, "orders-0", 2500)
    path = next(directory.glob("*.log"))
    data = bytearray(path.read_bytes())
    for batch in list(magicbyte.read_batches(bytes(data)))[::2]:
        data[batch.position + 70] ^= 1
    path.write_bytes(data)
    stream = PartitionLog(directory, mode="PERMISSIVE").to_arrow()
    frame = magicbyte.scan(stream)
    for _ in range(3):
        frame.collect()
        assert (len(stream.problems), stream.problems_left_out) == (1000, 250)
    stream = PartitionLog(directory, mode="PERMISSIVE").to_arrow()
    frame, half = magicbyte.scan(stream), 1250 * BATCH
    for condition in (pl.col.offset < half, pl.col.offset >= half, pl.col.offset < half):
        frame.filter(condition).collect()
    assert (len(stream.problems), stream.problems_left_out) == (1000, 250)


def test_the_end_of_the_last_read(twelve: Path) -> None:
    stream = PartitionLog(twelve / "orders-3").to_arrow()
    frame = magicbyte.scan(stream)
    assert stream.end_offset is None
    for end in (3050, 3100, 3020):
        frame.filter(pl.col.offset < end).collect()
        assert stream.end_offset == end
    frame.collect()
    assert stream.end_offset is None
    several = Log(twelve).to_arrow(end_offset=50)
    magicbyte.scan(several).collect()
    assert several.end_offset is None
    assert {account.end_offset for account in several.accounts} == {50}


def test_memory_of_many_reads(twelve: Path) -> None:
    stream = Log(twelve).to_arrow()
    frame = magicbyte.scan(stream).select("offset")
    for _ in range(20):
        assert frame.collect().height == 48 * BATCH
        assert frame.head(1).collect().height == 1
    gc.collect()
    kept = [read for reads in stream._reads for read in reads._reads.values()]
    assert len(kept) <= 3 * 12
    assert all(isinstance(read, magicbyte.ReadAccount) for read in kept)
    # `head` has read the first partition only, as far as its first Arrow batch.
    assert sum(account.rows for account in stream.accounts) == 20 * (48 + 4) * BATCH


def test_streams_without_columns(twelve: Path) -> None:
    """Polars would count no rows of them."""
    for source in (Log(twelve), PartitionLog(twelve / "orders-3")):
        with pytest.raises(ValueError, match="stream without columns: expected one column or more"):
            magicbyte.scan(source.to_arrow([]))
    assert magicbyte.scan(twelve).select(pl.len()).collect().item() == 48 * BATCH
    assert magicbyte.scan(twelve).select([]).collect().shape == (0, 0)
    assert magicbyte.scan(twelve).select(pl.lit(1)).collect().shape == (1, 1)


def test_a_stream_gives_its_columns_and_options() -> None:
    stream = Log(SAMPLES).to_arrow(["offset", "segment"], end_offset=50, where="offset % 2 = 0", threads=2)
    frame = magicbyte.scan(stream)
    assert frame.collect_schema().names() == ["offset", "segment"]
    everything = pl.DataFrame(stream)
    assert frame.collect().equals(everything)
    assert (
        frame.filter(pl.col.offset > 20).select("segment").collect().height
        == everything.filter(pl.col.offset > 20).height
    )


def test_views_and_committed_records() -> None:
    for options in ({"views": True}, {"isolation_level": "read_committed"}):
        stream = Log(BROKERS).to_arrow(**options)  # type: ignore[arg-type]
        assert magicbyte.scan(stream).collect().equals(pl.DataFrame(stream))


@pytest.mark.parametrize(
    "source", [SAMPLES / "clicks-0", PartitionLog(SAMPLES / "clicks-0")], ids=["path", "log"]
)
def test_a_partition_has_the_columns_of_a_directory(source: Any) -> None:
    assert magicbyte.scan(source).collect().equals(whole(SAMPLES / "clicks-0"))


def test_queries_of_polars() -> None:
    frame, everything = magicbyte.scan(SAMPLES), whole()
    sizes = pl.col("value").bin.size().sum()
    assert (
        frame.group_by("topic")
        .agg(pl.len(), sizes)
        .sort("topic")
        .collect()
        .equals(everything.group_by("topic").agg(pl.len(), sizes).sort("topic"))
    )
    assert frame.slice(100, 7).collect().equals(everything.slice(100, 7))
    assert (
        frame.filter(pl.col.offset > 3).head(9).collect().equals(everything.filter(pl.col.offset > 3).head(9))
    )
    assert (
        frame.rename({"offset": "o"}).filter(pl.col("o") > 300).collect().height
        == (everything["offset"] > 300).sum()
    )
    both = frame.join(frame.filter(pl.col.offset == 5), on="topic").collect()
    expected = everything.join(everything.filter(pl.col.offset == 5), on="topic")
    assert both.sort("topic", "offset").equals(expected.sort("topic", "offset"))
    sql = pl.SQLContext(log=frame).execute(
        "select count(*) from log where \"offset\" >= 100 and topic = 'clicks'"
    )
    assert sql.collect().item() == 173


@pytest.mark.parametrize(
    ("condition", "partitions", "records"),
    [
        ('"offset" >= 5100', range(5, 12), 1300),
        ('"offset" BETWEEN 5010 AND 5019', [5], 10),
        ('"offset" IN (5010, 5012)', [5], 3),
        ("partition = 7", [7], 200),
        ("topic = 'payments'", [], 0),
        ("topic IN ('orders', 'payments') AND partition IN (1, 2)", [1, 2], 400),
        ("\"timestamp\" >= TIMESTAMPTZ '1970-01-01 00:01:51+00'", [11], 100),
        ("\"timestamp\" < TIMESTAMPTZ '1970-01-01 00:00:00.005+00'", [0], 1),
        ('key IS NULL OR "offset" = 3', range(12), 2400),
    ],
)
def test_duckdb_pushes_its_conditions_into_a_frame(
    twelve: Path, condition: str, partitions: Collection[int], records: int
) -> None:
    def rows(frame: object) -> list[Any]:
        # DuckDB finds the frame by its name.
        assert frame is not None
        return duckdb.sql(f'select partition, "offset" from frame where {condition} order by all').fetchall()

    stream = Log(twelve).to_arrow()
    result = rows(magicbyte.scan(stream))
    read = [account for account in stream.accounts if account.rows]
    assert result == rows(pl.DataFrame(Log(twelve)))
    assert [account.partition for account in read] == list(partitions)
    assert sum(account.rows for account in read) == records


def test_frames_are_collected_by_several_threads(twelve: Path) -> None:
    frame, results = magicbyte.scan(Log(twelve).to_arrow(threads=2)), []

    def collect() -> None:
        results.append(frame.filter(pl.col.offset > 3000).collect().height)

    threads = [threading.Thread(target=collect) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [magicbyte.scan(twelve).filter(pl.col.offset > 3000).collect().height] * 4


def test_pickled_frames(twelve: Path) -> None:
    frame = magicbyte.scan(twelve).filter(pl.col.offset > 5000)
    assert pickle.loads(pickle.dumps(frame)).collect().equals(frame.collect())


def test_abandoned_reads(twelve: Path) -> None:
    stream = Log(twelve).to_arrow(threads=2)
    batches: Iterator[Any] = stream.read(["offset"], lambda topic, partition: EVERYTHING)
    assert next(batches).num_rows == 4 * BATCH
    del batches
    assert magicbyte.scan(stream).select(pl.len()).collect().item() == 48 * BATCH


def test_sources_that_are_not_there(tmp_path: Path) -> None:
    for source in (tmp_path, tmp_path / "no"):
        with pytest.raises(RefusedError):
            magicbyte.scan(source)


def test_scan_needs_polars_and_no_pyarrow() -> None:
    program = """
import sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name == sys.argv[1]:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Missing())
import magicbyte
print(magicbyte.scan("samples").collect().height)
"""
    done = [
        subprocess.run(
            [sys.executable, "-c", program, missing],
            capture_output=True,
            text=True,
            check=False,
            cwd=SAMPLES.parent,
        )
        for missing in ("pyarrow", "polars")
    ]
    assert (done[0].stdout, done[0].stderr) == ("984\n", "")
    assert done[1].stderr.endswith("scan: polars is missing: pip install 'magicbyte[polars]'\n")
