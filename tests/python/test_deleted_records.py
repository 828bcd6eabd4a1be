"""Records before a log's start (`DeleteRecords`): a broker returns none of them, and so does every reader."""

from __future__ import annotations

import json
import shutil
import tarfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import magicbyte
import pyarrow as pa
import pyarrow.dataset as ds
import pytest
from conftest import Cli
from magicbyte import Log, PartitionLog, RecordsBuilder
from magicbyte.jobs.find.choice import PartitionChoice
from magicbyte.log_dir import read_offset_checkpoint
from test_serve import Connection

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CHECKPOINT = "log-start-offset-checkpoint"
TIME = 1_700_000_000_000
EVERYTHING = PartitionChoice(include_deleted_records=True)


def batch(*offsets: int) -> bytes:
    builder = RecordsBuilder(partition_leader_epoch=0)
    for offset in offsets:
        builder.append(offset, TIME + offset, b"k%d" % offset, b"v%d" % offset)
    return builder.build()


def write(root: Path, name: str, **segments: bytes) -> Path:
    directory = root / name
    directory.mkdir(parents=True)
    for base, data in segments.items():
        (directory / f"{int(base[1:]):020}.log").write_bytes(data)
    return directory


def checkpoint(root: Path, *lines: str) -> None:
    (root / CHECKPOINT).write_text("".join(line + "\n" for line in ("0", str(len(lines)), *lines)))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """`t` starts within its first batch, `u` at its second segment, and of `w` everything was deleted."""
    root = tmp_path / "kafka-logs"
    write(root, "t-0", s0=batch(*range(10)) + batch(10))
    write(root, "u-0", s0=batch(0), s1=batch(1))
    write(root, "w-0", s0=batch(0, 1) + batch(2))
    checkpoint(root, "t 0 5", "u 0 1", "w 0 3")
    return root


LEFT = {("t", offset) for offset in range(5, 11)} | {("u", 1)}
ALL = {("t", offset) for offset in range(11)} | {("u", 0), ("u", 1)} | {("w", offset) for offset in range(3)}


def offsets(rows: list[dict[str, Any]]) -> set[tuple[str, int]]:
    return {(row["topic"], row["offset"]) for row in rows}


def account(report: dict[str, Any]) -> tuple[int, int]:
    """Rows and deleted records of a balanced report."""
    total = report["total"]
    assert report.get("balanced", total["balanced"])
    assert (
        total["rows"] + total["control"] + total["aborted"] + total["outside"] + total["deleted"]
        == (total["announced"])
    )
    sums = ("good_bytes", "deleted_bytes", "quarantined_bytes", "tail_bytes", "outside_bytes")
    assert sum(total[name] for name in sums) == total["size"]
    return total["rows"], total["deleted"]


def test_the_account_has_a_line_of_its_own(cli: Cli, root: Path) -> None:
    report = cli.json("verify", root)
    assert account(report) == (7, 9)
    assert report["total"]["deleted_bytes"] == len(batch(0)) + len(batch(0, 1)) + len(batch(2))
    starts = {one["topic"]: one["log_start_offset"] for one in report["partitions"]}
    assert starts == {"t": 5, "u": 1, "w": 3}
    assert "9 before the log's start, which a broker does not return" in cli("verify", root)
    assert account(cli.json("verify", "--include-deleted-records", root)) == (16, 0)
    assert "before the log's start" not in cli("verify", "--include-deleted-records", root)


def test_records_begin_at_the_start(cli: Cli, root: Path) -> None:
    assert offsets(cli.records(root)) == LEFT
    assert offsets(cli.records("--include-deleted-records", root)) == ALL
    assert offsets(cli.records("--start-offset", 0, root)) == LEFT
    assert offsets(cli.records("--start-timestamp", TIME, root)) == LEFT
    assert offsets(cli.records("--end-offset", 6, root)) == {("t", 5), ("u", 1)}
    assert offsets(cli.records("--tail", 100, root)) == LEFT
    assert offsets(cli.records("--tail", 2, root / "t-0")) == {("t", 9), ("t", 10)}
    assert offsets(cli.records("--tail", 100, "--include-deleted-records", root)) == ALL


def test_a_partition_or_a_segment_as_the_source(cli: Cli, root: Path) -> None:
    for source in (root / "t-0", root / "t-0" / f"{0:020}.log"):
        assert offsets(cli.records(source)) == {("t", offset) for offset in range(5, 11)}
        assert len(cli.records("--include-deleted-records", source)) == 11
    assert account(cli.json("verify", root / "t-0")) == (6, 5)
    assert cli.records(root / "w-0") == []


def test_the_library(root: Path) -> None:
    log = PartitionLog(root / "t-0")
    assert [one.offset for one in log.records()] == list(range(5, 11))
    assert [one.offset for one in log.records(start_offset=2)] == list(range(5, 11))
    assert [one.offset for one in log.records(start_offset=8)] == [8, 9, 10]
    assert log.offset_for_timestamp(TIME) == 5
    assert log.offset_for_timestamp(TIME + 7) == 7
    assert pa.table(log.to_arrow(["offset"])).column(0).to_pylist() == list(range(5, 11))
    committed = log.records(isolation_level="read_committed")
    assert [one.offset for one in committed] == list(range(5, 11))
    found = log.verify()
    assert (found.balanced, found.rows, found.deleted) == (True, 6, 5)
    everything = PartitionLog(root / "t-0", include_deleted_records=True)
    assert [one.offset for one in everything.records()] == list(range(11))
    assert everything.offset_for_timestamp(TIME) == 0
    assert {(one.topic, record.offset) for one in Log(root) for record in one.records()} == LEFT
    assert {(one.topic, record.offset) for one in Log(root, EVERYTHING) for record in one.records()} == ALL


def test_suspects_before_the_start_are_not_rescued(cli: Cli, root: Path, tmp_path: Path) -> None:
    segment = root / "t-0" / f"{0:020}.log"
    data = bytearray(segment.read_bytes())
    # Two flipped bits in the last value of the first batch, which no repair explains.
    end = len(batch(*range(10)))
    data[end - 2] ^= 3
    segment.write_bytes(data)
    (found,) = PartitionLog(root / "t-0").rescue()
    assert [one.offset for one in found.suspects] == list(range(5, 10))
    cli("rescue", root / "t-0", tmp_path / "out", code=1)
    report = json.loads((tmp_path / "out" / "rescue.json").read_text())
    assert report["suspects"] == 5
    cli("rescue", "--include-deleted-records", root / "t-0", tmp_path / "all", code=1)
    assert json.loads((tmp_path / "all" / "rescue.json").read_text())["suspects"] == 10


def test_histories_and_statistics(cli: Cli, root: Path) -> None:
    histories = {one["topic"]: one for one in cli.json("explain", root)["partitions"]}
    assert [(histories[name]["records"], histories[name]["deleted"]) for name in "tuw"] == [
        (11, 0),
        (1, 1),
        (0, 3),
    ]
    assert [histories[name]["first_offset"] for name in "tuw"] == [5, 1, 3]
    stats = cli.json("stats", root)
    assert sum(one["records"] for one in stats["partitions"]) < 16
    everything = cli.json("stats", "--include-deleted-records", root)
    assert sum(one["records"] for one in everything["partitions"]) == 16


def test_tables(cli: Cli, root: Path, tmp_path: Path) -> None:
    report = cli.json("ingest", root, tmp_path / "out")
    assert account(report) == (7, 9)
    assert offsets(ds.dataset(tmp_path / "out" / "records").to_table().to_pylist()) == LEFT
    report = cli.json("ingest", "--include-deleted-records", root, tmp_path / "all")
    assert account(report) == (16, 0)


def test_transactional_tables(cli: Cli, root: Path, tmp_path: Path) -> None:
    pytest.importorskip("deltalake")
    table = tmp_path / "table"
    report = cli.json("ingest", "--format", "delta", root, table)
    assert account(report) == (7, 9)
    again = cli.json("ingest", "--format", "delta", root, table)
    assert again["total"]["rows"] == 0
    assert cli.json("verify", "--table", table, root)["table"]["equal"]
    # Records of the table that are deleted later are older than the log.
    checkpoint(root, "t 0 8", "u 0 1", "w 0 3")
    assert cli.json("verify", "--table", table, root)["table"]["equal"]


@pytest.mark.parametrize("command", ["recover", "convert", "redact", "compact"])
def test_what_is_written_has_no_deleted_batch_and_the_checkpoint(
    cli: Cli, root: Path, tmp_path: Path, command: str
) -> None:
    out = tmp_path / "out"
    options = {"redact": ["--key", "k7"], "compact": ["--all"]}.get(command, [])
    report = cli.json(command, *options, root, out)
    assert report["balanced"]
    assert report["total"]["deleted"] == 4
    assert read_offset_checkpoint(out / CHECKPOINT)["t", 0] == 5
    assert {one["topic"]: one["log_start_offset"] for one in report["written"]}["t"] == 5
    left = LEFT - {("t", 7)} if command == "redact" else LEFT
    assert offsets(cli.records(out)) == left
    # Its batches are those that the source has, whole.
    assert ("u", 0) not in offsets(cli.records("--include-deleted-records", out))
    assert ("w", 0) not in offsets(cli.records("--include-deleted-records", out))
    # The log that has no record left goes on where it was.
    assert cli.json("verify", out)["total"]["problems"] == 0
    (empty,) = (out / "w-0").glob("*.log")
    assert empty.stat().st_size == 0
    shutil.rmtree(out)
    report = cli.json(command, *options, "--include-deleted-records", root, out)
    assert report["total"]["deleted"] == 0
    assert not (out / CHECKPOINT).exists()


def test_archives(cli: Cli, root: Path, tmp_path: Path) -> None:
    archive = tmp_path / "backup.tar"
    with tarfile.open(archive, "w") as tar:
        tar.add(root, "kafka-logs")
    assert offsets(cli.records(archive)) == LEFT
    assert offsets(cli.records(archive / "kafka-logs" / "t-0")) == {("t", offset) for offset in range(5, 11)}
    log = PartitionLog(archive / "kafka-logs" / "u-0")
    assert [one.offset for one in log.records()] == [1]


@pytest.mark.parametrize("start", [12, 2**62])
def test_a_start_beyond_the_log_is_a_problem(cli: Cli, root: Path, start: int) -> None:
    checkpoint(root, f"t 0 {start}")
    report = cli.json("verify", "--topic", "t", root, code=1)
    assert account(report) == (0, 11)
    (problem,) = report["problems"]
    assert problem["kind"] == "log_start_out_of_range"
    assert f"the log starts at {start}" in problem["message"]
    cli.json("verify", "--topic", "t", "--include-deleted-records", root)


@pytest.mark.parametrize(("start", "rows", "code"), [(-1, 11, 1), (-(2**63), 11, 1), (0, 11, 0), (11, 0, 0)])
def test_other_starts(cli: Cli, root: Path, start: int, rows: int, code: int) -> None:
    checkpoint(root, f"t 0 {start}")
    report = cli.json("verify", "--topic", "t", root, code=code)
    assert account(report) == (rows, 11 - rows)


@pytest.mark.parametrize("text", ["1\n0\n", "0\n2\nt 0 5\n", "garbage", "0\n1\nt 0\n"])
def test_a_checkpoint_that_cannot_be_read_says_nothing_and_is_a_problem(
    cli: Cli, root: Path, text: str
) -> None:
    (root / CHECKPOINT).write_text(text)
    for source in (root, root / "t-0"):
        report = cli.json("verify", source, code=1)
        assert account(report)[1] == 0
        found = json.dumps([report["problems"], report["log_dirs"]])
        assert CHECKPOINT in found
    log = PartitionLog(root / "t-0")
    assert [one.offset for one in log.records()] == list(range(11))


def test_other_directories_have_no_start(cli: Cli, root: Path) -> None:
    """A log that is about to be deleted, or was set aside, is not the one that the checkpoint speaks of."""
    stray = "t-0.0123456789abcdef0123456789abcdef-stray"
    (root / "t-0").rename(root / stray)
    checkpoint(root, "t 0 5")
    report = cli.json("verify", "--include-stray", "--topic", "t", root)
    assert sum(one["rows"] for one in report["partitions"]) == 11
    future = "t-0.0123456789abcdef0123456789abcdef-future"
    (root / stray).rename(root / future)
    report = cli.json("verify", "--include-future", "--topic", "t", root)
    assert sum(one["rows"] for one in report["partitions"]) == 6


def test_legacy_messages(cli: Cli, tmp_path: Path) -> None:
    builder = RecordsBuilder(magic=1, compression="gzip")
    for offset in range(6):
        builder.append(offset, TIME, b"k", b"v")
    root = tmp_path / "logs"
    write(root, "old-0", s0=builder.build())
    checkpoint(root, "old 0 4")
    assert account(cli.json("verify", root)) == (2, 4)
    assert [row["offset"] for row in cli.records(root)] == [4, 5]


def test_an_open_transaction_before_the_start(tmp_path: Path) -> None:
    builder = RecordsBuilder(producer_id=1, producer_epoch=0, base_sequence=0, is_transactional=True)
    builder.append(0, TIME, b"k", b"v")
    root = tmp_path / "logs"
    write(root, "t-0", s0=builder.build() + batch(1, 2, 3))
    checkpoint(root, "t 0 2")
    log = PartitionLog(root / "t-0")
    # As in `UnifiedLog`, what is unstable does not begin before the log.
    assert [one.offset for one in log.records(isolation_level="read_committed")] == []
    assert [one.offset for one in log.records()] == [2, 3]


def earliest_of(client: Connection, topic: str) -> int:
    asked = {"name": topic, "partitions": [{"partitionIndex": 0, "timestamp": -2}]}
    (answer,) = client.ask(2, 6, replicaId=-1, isolationLevel=0, topics=[asked])["topics"]
    return answer["partitions"][0]["offset"]


def fetched(client: Connection, topic: str, offset: int) -> tuple[int, int, list[int]]:
    """The error, the log start offset, and the base offsets of the batches."""
    partition = {"partition": 0, "fetchOffset": offset, "partitionMaxBytes": 1 << 20}
    answer = client.ask(
        1,
        12,
        maxWaitMs=0,
        minBytes=0,
        maxBytes=1 << 20,
        sessionEpoch=-1,
        topics=[{"topic": topic, "partitions": [partition]}],
    )
    (found,) = answer["responses"][0]["partitions"]
    batches = magicbyte.read_batches(found["records"] or b"")
    return found["errorCode"], found["logStartOffset"], [one.base_offset for one in batches]


def test_serve(root: Path) -> None:
    out_of_range = 1
    with magicbyte.serve(root, listen="127.0.0.1:0") as server, Connection(server) as client:
        assert [earliest_of(client, name) for name in "tuw"] == [5, 1, 3]
        assert fetched(client, "t", 5) == (0, 5, [0, 10])
        assert fetched(client, "t", 4)[0] == out_of_range
        assert fetched(client, "u", 1) == (0, 1, [1])
        assert fetched(client, "u", 0)[0] == out_of_range
        assert fetched(client, "w", 3) == (0, 3, [])
    with (
        magicbyte.serve(root, listen="127.0.0.1:0", choice=EVERYTHING) as server,
        Connection(server) as client,
    ):
        assert [earliest_of(client, name) for name in "tuw"] == [0, 0, 0]
        assert fetched(client, "t", 0) == (0, 0, [0, 10])


def test_serve_follows_the_start(root: Path) -> None:
    with (
        magicbyte.serve(root, listen="127.0.0.1:0", follow=True) as server,
        Connection(server) as client,
    ):
        assert earliest_of(client, "t") == 5
        checkpoint(root, "t 0 7")
        deadline = time.monotonic() + 30
        while earliest_of(client, "t") != 7:
            assert time.monotonic() < deadline
            time.sleep(0.05)


def test_spark(spark: SparkSession, root: Path, tmp_path: Path) -> None:
    def read(**options: str) -> set[tuple[str, int]]:
        rows = spark.read.format("magicbyte").options(**options).load(str(root)).collect()
        return {(row.topic, row.offset) for row in rows}

    assert read() == LEFT
    assert read(includeDeletedRecords="true") == ALL
    assert read(startingOffsets="earliest") == LEFT
    histories = spark.read.format("magicbyte").option("table", "segments").load(str(root)).collect()
    assert len(histories) == 4

    def stream(where: Path, **options: str) -> set[tuple[str, int]]:
        source = spark.readStream.format("magicbyte").option("startingOffsets", "earliest").options(**options)
        query = (
            source.load(str(root))
            .writeStream.format("parquet")
            .option("path", str(where / "out"))
            .option("checkpointLocation", str(where / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
        rows = spark.read.parquet(str(where / "out")).collect()
        return {(row.topic, row.offset) for row in rows}

    assert stream(tmp_path / "left") == LEFT
    assert stream(tmp_path / "all", includeDeletedRecords="true") == ALL
