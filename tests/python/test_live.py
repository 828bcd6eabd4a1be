"""A running cluster as a source: `magicbyte serve` plays it here."""

from __future__ import annotations

import json
import os
import pickle
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import magicbyte
import polars as pl
import pyarrow as pa
import pytest
from conftest import KAFKA, PARTITIONS, Cli
from live_proxy import lying
from magicbyte import Log, PartitionLog
from magicbyte.enums import IsolationLevel
from magicbyte.errors import CorruptRecordError, RefusedError
from magicbyte.jobs.find.choice import PartitionChoice
from magicbyte.storage.location import ClusterUrl, cluster_of

LEVELS: tuple[IsolationLevel, ...] = ("read_uncommitted", "read_committed")
COLUMNS = [
    "topic", "partition", "offset", "timestamp", "timestampType", "key", "value", "headers", "magic",
    "compression", "producerId", "producerEpoch", "sequence", "isTransactional", "leaderEpoch",
]  # fmt: skip
FETCH, LIST_OFFSETS = 1, 2
SERVED = PartitionChoice(exclude=("__magicbyte*",))


@pytest.fixture(scope="module")
def served() -> Iterator[str]:
    """The address of a cluster with all partitions that real brokers wrote."""
    with magicbyte.serve([KAFKA], listen="127.0.0.1:0") as server:
        yield server.bootstrap_servers


@pytest.fixture(scope="module")
def live(served: str) -> Log:
    return Log(f"kafka://{served}", SERVED)


@pytest.fixture(scope="module")
def files() -> dict[str, PartitionLog]:
    """The partitions by their names."""
    return {log.name: log for log in Log(KAFKA)}


def test_every_partition_is_there(live: Log, files: dict[str, PartitionLog]) -> None:
    assert {log.name for log in live} == {*files}
    assert len(files) >= len(PARTITIONS)


@pytest.mark.parametrize("level", LEVELS)
def test_rows_are_those_of_the_directory(
    live: Log, files: dict[str, PartitionLog], level: IsolationLevel
) -> None:
    for log in live:
        options: Any = {"isolation_level": level}
        expected = pa.table(files[log.name].to_arrow(COLUMNS, **options))
        stream = log.to_arrow(COLUMNS, **options)
        assert pa.table(stream).equals(expected), log.name
        (account,) = stream.accounts
        assert account.rows == expected.num_rows
        assert account.good_bytes == account.size, "every byte was fetched for a batch"
        threads = log.to_arrow(COLUMNS, threads=3, **options)
        assert pa.table(threads).equals(expected), log.name
        views = pa.table(log.to_arrow(["offset", "value"], views=True, **options))
        assert views.cast(pa.schema([("offset", pa.int64()), ("value", pa.binary())])).equals(
            expected.select(["offset", "value"]).cast(
                pa.schema([("offset", pa.int64()), ("value", pa.binary())])
            )
        )


@pytest.mark.parametrize("level", LEVELS)
def test_batches_and_records_are_those_of_the_directory(
    live: Log, files: dict[str, PartitionLog], level: IsolationLevel
) -> None:
    for log in live:
        of_files, options = files[log.name], {"isolation_level": level}
        batches = [batch.to_bytes() for batch in log.batches(**options)]
        assert batches == [batch.to_bytes() for batch in of_files.batches(**options)], log.name
        assert list(map(row, log.records(**options))) == list(map(row, of_files.records(**options))), log.name
        account, expected = log.verify(level), of_files.verify(level)
        assert account.balanced
        for name in ("rows", "control", "aborted"):
            assert getattr(account, name) == getattr(expected, name), (log.name, name)


def row(record: magicbyte.Record) -> tuple[Any, ...]:
    return record.offset, record.timestamp, record.key_bytes, record.value_bytes, tuple(record.headers)


@pytest.mark.parametrize(
    "name", ["v2_lz4-0", "v1_gzip-0", "v2_txn-0", "v2_compacted_txn-0", "v2_big_batch-0"]
)
def test_ranges(live: Log, files: dict[str, PartitionLog], name: str) -> None:
    """Offsets inside batches, times, the last records; a range outside of the log is empty."""
    topic = name.removesuffix("-0")
    log, of_files = live.partition(topic), files[name]
    rows = pa.table(of_files.to_arrow(["offset", "timestamp"]))
    offsets, times = rows["offset"].to_pylist(), rows["timestamp"].cast(pa.int64()).to_pylist()
    middle, time = offsets[len(offsets) // 2], times[len(times) // 3]
    for given in (
        {"start_offset": middle},
        {"end_offset": middle},
        {"start_offset": middle, "end_offset": middle + 1},
        {"start_offset": middle + 1, "end_offset": middle},
        {"start_offset": 1 << 40},
        {"start_offset": -5, "end_offset": 3},
        {"start_timestamp": time},
        {"end_timestamp": time},
        {"start_timestamp": 1 << 50},
        {"last": 0},
        {"last": 1},
        {"last": 7},
        {"last": len(offsets)},
        {"last": 1 << 40},
        {"last": 3, "end_offset": middle},
        {"last": 3, "isolation_level": "read_committed"},
    ):
        options: Any = given
        expected = pa.table(of_files.to_arrow(["offset", "value"], **options))
        assert pa.table(log.to_arrow(["offset", "value"], **options)).equals(expected), given
    for moment in (0, time, time + 1, 1 << 50):
        assert log.offset_for_timestamp(moment) == of_files.offset_for_timestamp(moment)


def test_frames(live: Log, served: str) -> None:
    """Polars passes columns, partitions, ranges and `head` on."""
    frame = magicbyte.scan(live)
    whole = pl.DataFrame(Log(KAFKA))
    chosen = (pl.col.topic == "v2_lz4") & (pl.col.offset >= 300)
    expected = whole.filter(chosen).select("offset", "value")
    assert frame.filter(chosen).select("offset", "value").collect().equals(expected)
    assert magicbyte.scan(f"kafka://{served}/v2_lz4").head(3).collect().height == 3
    stream = live.to_arrow(["topic", "partition", "offset"])
    magicbyte.scan(stream).filter(topic="v2_lz4").collect()
    assert {account.topic for account in stream.accounts} == {"v2_lz4"}, "the others were not fetched"


def test_several_reads_at_the_same_time(live: Log, files: dict[str, PartitionLog]) -> None:
    """More than wait for the next read, taken in turn; some are left in the middle."""
    names = ["v2_lz4", "v2_zstd", "v2_none", "v1_gzip", "v2_txn", "v2_snappy"]
    reads = [iter(live.partition(name).records()) for name in names]
    first = [[next(read).offset for _ in range(3)] for read in reads for _ in range(2)]
    assert first[0] == [0, 1, 2]
    rest = [[record.offset for record in read] for read in reads[:3]]
    for name, offsets in zip(names, rest, strict=False):
        assert offsets == [record.offset for record in files[f"{name}-0"].records()][6:]
    del reads


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no processes are forked there")
def test_forked_processes_connect_anew(served: str) -> None:
    """Two processes with one connection would get each other's answers."""
    log = PartitionLog(f"kafka://{served}/v2_lz4/0")
    begun = iter(log.records())
    next(begun)
    child = os.fork()
    if child == 0:
        status = 1
        try:
            offsets = [record.offset for record in log.records()]
            with pytest.raises(OSError, match="forked"):
                list(begun)
            status = 0 if offsets == list(range(346)) else 2
        finally:
            os._exit(status)
    offsets = [record.offset for record in log.records()]
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert offsets == list(range(346))


def test_a_log_of_files_and_clusters(served: str) -> None:
    log = Log([KAFKA / "v2_lz4", f"kafka://{served}/v2_zstd"])
    assert [one.name for one in log] == ["v2_lz4-0", "v2_zstd-0"]
    assert {account.topic for account in _read(log).accounts} == {"v2_lz4", "v2_zstd"}


@pytest.mark.parametrize(
    "given",
    [
        {}, {"isolation_level": "read_committed"}, {"threads": 3}, {"start_offset": 100}, {"end_offset": 7},
        {"start_offset": 1 << 40}, {"start_timestamp": 1700000010000}, {"end_timestamp": 1700000010000},
        {"last": 3}, {"where": '"offset" % 50 = 0'},
    ],
)  # fmt: skip
def test_a_whole_log_is_read_in_order(served: str, tmp_path: Path, given: dict[str, Any]) -> None:
    """Partition after partition, each as if it were read alone; twice, and from files in between."""
    shutil.copytree(KAFKA / "v2_lz4", tmp_path / "v2_lz4_files")
    log = Log([f"kafka://{served}", tmp_path], SERVED)
    columns = ["topic", "partition", "offset", "value"]
    stream = log.to_arrow(columns, **given)
    expected = pa.concat_tables([pa.table(one.to_arrow(columns, **given)) for one in log])
    for _ in range(2):
        assert pa.table(stream).equals(expected)
        rows = [(account.topic, account.rows) for account in stream.accounts]
        assert len(rows) == len(log)
        assert sum(count for _, count in rows) >= expected.num_rows


def test_a_partition_of_a_cluster_and_its_files_are_copies(cli: Cli, served: str) -> None:
    sources = [f"kafka://{served}", KAFKA / "v2_lz4"]
    with pytest.raises(RefusedError, match="there are 2 copies of v2_lz4-0"):
        Log(sources).to_arrow()
    cli("records", *sources, code=2)
    assert "there are 2 copies of v2_lz4-0" in cli.error
    cli("records", *sources, "--topic", "v2_lz4", "--prefer", KAFKA)
    assert len(cli.records(*sources, "--topic", "v2_lz4", "--prefer", KAFKA)) == 346


def test_a_partition_that_is_named_twice_is_one(cli: Cli, served: str) -> None:
    topic = f"kafka://{served}/v2_lz4"
    several = [topic, f"{topic}/0", topic]
    assert len(Log(several)) == 1
    assert pa.table(Log(several).to_arrow(["offset"])).num_rows == 346
    assert magicbyte.verify(several)["total"]["rows"] == 346
    assert magicbyte.stats(several)["total"]["records"] == magicbyte.stats(topic)["total"]["records"]
    assert cli("records", *several, "-f", "%o\n").split() == [str(offset) for offset in range(346)]


def test_a_log_is_fetched_by_few_requests(served: str) -> None:
    """Offsets of all partitions at once, and many small partitions in one answer."""
    asked: Counter[int] = Counter()
    with lying(served, {}, asked) as address:
        log = Log(f"kafka://{address}", SERVED)
        table = pa.table(log.to_arrow(["offset"]))
    assert table.num_rows == pa.table(Log(f"kafka://{served}", SERVED).to_arrow(["offset"])).num_rows
    assert asked[LIST_OFFSETS] == 2
    assert asked[FETCH] < len(log) // 2


def test_a_read_of_a_log_that_is_left(served: str) -> None:
    """In a partition, and between two: the fetch ends with the stream, which may be read again."""
    log = Log(f"kafka://{served}", SERVED)
    whole = pa.table(log.to_arrow(["topic", "offset"]))
    for count in (1, 2, 5):
        stream = log.to_arrow(["topic", "offset"])
        reader = pa.RecordBatchReader.from_stream(stream)
        begun = pa.Table.from_batches([reader.read_next_batch() for _ in range(count)])
        assert begun.equals(whole.slice(0, begun.num_rows))
        del reader
        assert pa.table(stream).equals(whole)
        reader = pa.RecordBatchReader.from_stream(stream)
        reader.read_next_batch()
        del reader, stream
    deadline = time.monotonic() + 20
    while any(name == "magicbyte-fetch" for name in _threads()):
        assert time.monotonic() < deadline, "a fetching thread is left"
        time.sleep(0.05)


def _threads() -> list[str]:
    """The names of this process's threads, where the system tells them."""
    tasks = Path("/proc/self/task")
    names = []
    for task in tasks.iterdir() if tasks.exists() else ():
        try:
            names.append((task / "comm").read_text().strip())
        except OSError:
            continue
    return names


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no processes are forked there")
def test_a_forked_process_reads_a_log(served: str) -> None:
    """A stream that was begun ends with an error there; a new one is whole."""
    log = Log(f"kafka://{served}", SERVED)
    stream = log.to_arrow(["offset"])
    expected = pa.table(stream).num_rows
    begun = pa.RecordBatchReader.from_stream(stream)
    begun.read_next_batch()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            with pytest.raises((OSError, pa.ArrowInvalid), match="forked"):
                begun.read_all()
            status = 0 if pa.table(log.to_arrow(["offset"])).num_rows == expected else 2
        finally:
            os._exit(status)
    begun.read_all()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def _read(log: Log) -> Any:
    stream = log.to_arrow(["offset"])
    pa.table(stream)
    return stream


def test_a_partition(served: str) -> None:
    url = f"kafka://{served}/v2_lz4/0"
    log = PartitionLog(url)
    assert (log.path, log.topic, log.partition, log.segments, log.size) == (url, "v2_lz4", 0, [], 0)
    assert repr(log) == f"<PartitionLog {url}>"
    with pytest.raises(TypeError, match="cannot be pickled"):
        pickle.dumps(log.to_arrow())
    with pytest.raises(RefusedError, match="`magicbyte backup`"):
        list(log.rescue())


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("kafka://a", ClusterUrl("kafka", "a:9092", None, None)),
        ("kafka://a:1,b,[::1]:2/", ClusterUrl("kafka", "a:1,b:9092,[::1]:2", None, None)),
        ("KAFKAS://a:1/orders", ClusterUrl("kafkas", "a:1", "orders", None)),
        ("kafka://a:1/orders/7/", ClusterUrl("kafka", "a:1", "orders", 7)),
        ("s3://bucket/orders", None),
        ("kafka/orders", None),
    ],
)
def test_urls(url: str, expected: ClusterUrl | None) -> None:
    assert cluster_of(url) == expected


@pytest.mark.parametrize(
    "url",
    [
        "kafka://", "kafka:///orders", "kafka://a/orders/x", "kafka://a/orders/-1", "kafka://a/orders/0/1",
        "kafka://a?x=1", "kafka://user:hunter2@a/orders", "kafka://a/orders/99999999999",
    ],
)  # fmt: skip
def test_urls_that_are_refused(url: str) -> None:
    with pytest.raises(RefusedError) as raised:
        cluster_of(url)
    assert "hunter2" not in str(raised.value)


def test_what_is_not_there(served: str, tmp_path: Path) -> None:
    """Each at once: a client would wait a minute for a topic."""
    begun = time.monotonic()
    cases: list[tuple[Callable[[], Any], type[Exception], str]] = [
        (lambda: PartitionLog(f"kafka://{served}/nope/0"), RefusedError, "has no nope-0"),
        (lambda: PartitionLog(f"kafka://{served}/v2_lz4/7"), RefusedError, "has no v2_lz4-7"),
        (lambda: PartitionLog(f"kafka://{served}/v2_lz4"), ValueError, "is not a partition"),
        (lambda: Log(f"kafka://{served}/nope"), RefusedError, "has no nope"),
        (
            lambda: Log(f"kafka://{served}", PartitionChoice(topics=("nope",))),
            RefusedError,
            "no partition is chosen",
        ),
        (lambda: Log(KAFKA, command_config="x"), RefusedError, "and no running cluster"),
        (lambda: PartitionLog(KAFKA / "v2_lz4", command_config="x"), RefusedError, "for a running cluster"),
        (lambda: Log(f"kafka://{served}", command_config=tmp_path / "no"), RefusedError, "No such file"),
        (lambda: magicbyte.scan(Log(KAFKA), command_config="x"), ValueError, "is open already"),
    ]
    for call, error, message in cases:
        with pytest.raises(error, match=message):
            call()
    assert time.monotonic() - begun < 30


# --- Hostile answers --------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def damaged(served: str) -> Iterator[str]:
    """The cluster, whose third batch of v2_lz4 has another byte."""
    data = _batches()[2]
    with lying(served, {data: data[:-1] + bytes([data[-1] ^ 1])}) as address:
        yield address


def _batches() -> list[bytes]:
    return [batch.to_bytes() for batch in PartitionLog(KAFKA / "v2_lz4").batches()]


def test_damage_is_an_error(damaged: str) -> None:
    log = PartitionLog(f"kafka://{damaged}/v2_lz4/0")
    for read in (lambda: pa.table(log.to_arrow()), lambda: list(log.records()), lambda: list(log.batches())):
        with pytest.raises((CorruptRecordError, pa.ArrowInvalid, OSError), match=r"CRC|crc") as raised:
            read()
        assert f"kafka://{damaged}/v2_lz4/0" in str(raised.value)


def test_damage_is_left_out(damaged: str, cli: Cli) -> None:
    """The problem has the offsets, and everything is accounted for."""
    batches = list(PartitionLog(KAFKA / "v2_lz4").batches())
    first, last = batches[2].base_offset, batches[2].last_offset
    log = PartitionLog(f"kafka://{damaged}/v2_lz4/0", mode="PERMISSIVE")
    stream = log.to_arrow(["offset"])
    offsets = pa.table(stream)["offset"].to_pylist()
    assert offsets == [*range(first), *range(last + 1, 346)]
    (problem,) = stream.problems
    assert (problem["topic"], problem["partition"], problem["kind"]) == ("v2_lz4", 0, "crc_mismatch")
    assert (problem["first_lost_offset"], problem["last_lost_offset"]) == (first, last)
    (account,) = stream.accounts
    assert account.good_bytes + account.quarantined_bytes == account.size
    assert account.quarantined_bytes == len(batches[2].to_bytes())
    assert [record.offset for record in log.records()] == offsets

    url = f"kafka://{damaged}/v2_lz4"
    report = cli.json("verify", url, code=1)
    assert report["balanced"]
    assert report["total"]["lost_offsets"] == last + 1 - first
    assert [one["kind"] for one in report["problems"]] == ["crc_mismatch"]
    printed = cli("records", url, code=1)
    assert [json.loads(line)["offset"] for line in printed.splitlines()] == offsets
    assert f"v2_lz4-0, offsets {first} to {last}" in cli.error


@pytest.mark.parametrize("size", [0, 1, 60, (1 << 31) - 1, (1 << 32) - 1])
def test_lengths_that_are_wrong(served: str, size: int) -> None:
    """Where the next batch begins is unknown, so the read ends with an error, whatever the mode."""
    data = _batches()[2]
    with lying(served, {data[:20]: data[:8] + size.to_bytes(4, "big") + data[12:20]}) as address:
        log = PartitionLog(f"kafka://{address}/v2_lz4/0", mode="PERMISSIVE")
        with pytest.raises((OSError, pa.ArrowInvalid), match="v2_lz4"):
            list(log.records())


def test_offsets_that_go_back(served: str) -> None:
    """No record is delivered twice."""
    data = _batches()[2]
    change = {data[:20]: bytes(8) + data[8:20]}
    with lying(served, change) as address, pytest.raises(CorruptRecordError, match="offset 0 does not fit"):
        list(PartitionLog(f"kafka://{address}/v2_lz4/0").records())


def test_a_broker_that_is_gone() -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{closed.getsockname()[1]}"
        with pytest.raises(ConnectionError, match=address):
            PartitionLog(f"kafka://{address}/orders/0")


@pytest.mark.skipif(sys.platform == "win32", reason="Ctrl-C is another signal there")
@pytest.mark.parametrize(
    ("opened", "read"),
    [
        ("PartitionLog(sys.argv[1] + '/0')", "next(iter(log.records()))"),
        ("Log(sys.argv[1])", "pyarrow.table(log)"),
    ],
)
def test_ctrl_c_ends_the_wait(served: str, opened: str, read: str) -> None:
    """For an answer that is shorter than it says."""
    program = (
        f"import sys, magicbyte, pyarrow\nlog = magicbyte.{opened}\nprint('ready', flush=True)\n{read}\n"
    )
    with lying(served, {_batches()[0]: b""}) as address:
        command = [sys.executable, "-c", program, f"kafka://{address}/v2_lz4"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == b"ready\n"
            time.sleep(0.5)
            process.send_signal(signal.SIGINT)
            _, error = process.communicate(timeout=20)
    assert b"KeyboardInterrupt" in error


# --- Commands ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "arguments",
    [
        [], ["--tail", "3"], ["--max-records", "5"], ["--start-offset", "200", "--end-offset", "203"],
        ["--start-timestamp", "1700000010000"], ["-f", "%o %k: %s\n"], ["--format", "csv"],
        ["--key", "key-5"], ["--grep", "a[0-9]"], ["--where", "\"offset\" % 50 = 0"],
        ["--key", "key-5", "--tail", "2"],
        ["--isolation-level", "read_committed"],
    ],
)  # fmt: skip
@pytest.mark.parametrize("topic", ["v2_lz4", "v2_txn"])
def test_records(cli: Cli, served: str, topic: str, arguments: list[str]) -> None:
    printed = cli("records", f"kafka://{served}/{topic}", *arguments)
    expected = cli("records", KAFKA / topic, *arguments)
    if "-f" in arguments or "--format" in arguments:
        strip = (lambda line: line.rsplit(",", 2)[0]) if "--format" in arguments else str
        assert list(map(strip, printed.splitlines())) == list(map(strip, expected.splitlines()))
    else:
        assert list(map(_without_place, printed.splitlines())) == list(
            map(_without_place, expected.splitlines())
        )


def _without_place(line: str) -> dict[str, Any]:
    fields = json.loads(line)
    return {name: value for name, value in fields.items() if name not in ("segment", "position")}


def test_batches_as_lines(cli: Cli, served: str) -> None:
    printed = cli("records", "--batches", f"kafka://{served}/v2_txn")
    expected = cli("records", "--batches", KAFKA / "v2_txn")
    assert list(map(_without_place, printed.splitlines())) == list(map(_without_place, expected.splitlines()))


def test_verify(cli: Cli, served: str) -> None:
    report = cli.json("verify", f"kafka://{served}", "--exclude", "__magicbyte*")
    expected = {one["topic"]: one for one in cli.json("verify", KAFKA, code=1)["partitions"]}
    assert {one["topic"] for one in report["partitions"]} == {*expected}
    for one in report["partitions"]:
        for name in (
            "rows",
            "control",
            "aborted",
            "announced",
            "first_offset",
            "last_offset",
            "missing_offsets",
        ):
            assert one[name] == expected[one["topic"]][name], (one["topic"], name)
        assert one["good_bytes"] == one["size"]
    text = cli("verify", f"kafka://{served}/v2_lz4", "--isolation-level", "read_committed")
    assert "346 rows" in text


def test_stats(cli: Cli, served: str) -> None:
    report = cli.json("stats", f"kafka://{served}", "--exclude", "__magicbyte*")
    expected = cli.json("stats", KAFKA, code=1)
    for name in (
        "batches",
        "records",
        "control_records",
        "codecs",
        "magics",
        "min_timestamp",
        "max_timestamp",
    ):
        assert report["total"][name] == expected["total"][name], name
    assert len(report["topics"]) == len(expected["topics"])


@pytest.mark.parametrize(
    "arguments",
    [
        ["explain"], ["compact", "out"],
        ["dump"], ["convert", "out"], ["serve"], ["audit", "--misrouted"], ["find"], ["rescue"], ["advise"],
        ["stats", "--fields"], ["merge", "--out", "out"], ["cluster"],
        ["restore", "--dry-run"], ["recover", "out"],
        ["schemas", "list"], ["schemas", "lint"], ["schemas", "copy", "out"],
    ],
)  # fmt: skip
def test_other_commands_say_what_reads_it(
    cli: Cli, served: str, arguments: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "logs").mkdir()
    command, *rest = arguments
    words = [command, rest.pop(0)] if command == "schemas" else [command]
    cli(*words, f"kafka://{served}", *rest, code=2)
    assert "a running cluster is read by records, stats, verify and ingest" in cli.error, cli.error


def test_options_that_do_not_go_together(cli: Cli, served: str) -> None:
    url = f"kafka://{served}/v2_lz4"
    cli("verify", "--indexes", url, code=2)
    assert "verified by itself" in cli.error
    cli("records", "--follow", KAFKA / "v2_lz4", code=2)
    assert "--follow goes on with a running cluster" in cli.error
    cli("records", "--follow", "--end-offset", "5", url, code=2)
    cli("records", "--command-config", KAFKA / "v2_lz4" / f"{0:020}.log", KAFKA / "v2_lz4", code=2)
    assert "properties for connections are given" in cli.error


def test_follow_ends_with_enough_records(cli: Cli, served: str) -> None:
    printed = cli("records", "--follow", "--max-records", "2", f"kafka://{served}/v2_lz4", "-f", "%o\n")
    assert printed.split() == ["0", "1"]
