"""`ingest --follow`: tables of growing logs, killed, doubled, and met by what brokers do to files."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import duckdb
import forked
import magicbyte
import polars as pl
import pytest
from conftest import KAFKA, Cli
from digest import expected
from lakes import FORMATS, GrowingLog, Lake
from magicbyte.errors import JobError, RefusedError
from magicbyte.jobs.ingest import IngestReport
from magicbyte.jobs.run.engines import LocalEngine
from magicbyte.lake.divergence import DivergedError
from test_ingest_tables import FIRST
from test_lake import GROWN, append, by_topic, of_kafka, root  # noqa: F401 (a fixture)
from test_lake_crashes import only_files_of_commits
from writers import ROUNDS

_FAST = 0.02
WITH_METADATA = {"include_batch_metadata": True}


@pytest.fixture(params=FORMATS)
def lake(request: pytest.FixtureRequest, tmp_path: Path) -> Lake:
    return Lake.at(request.param, tmp_path / "lake")


class Enough(Exception):
    """The looks that a test wanted are over."""


class Looks(LocalEngine):
    """Ends a stream after some looks; before the tasks of each one, does something else."""

    def __init__(self, *before: Callable[[], Any]) -> None:
        super().__init__(2)
        self._before = list(before)
        self.surveyed = 0

    def map(self, function: Any, items: Sequence[Any], *, name: str, **options: Any) -> list[Any]:
        if "survey" in name:
            self.surveyed += sum(map(len, items))
        elif "ingest" not in name:
            pass  # comparing the table with the log
        elif not self._before:
            raise Enough
        else:
            self._before.pop(0)()
        return super().map(function, items, name=name, **options)


def nothing() -> None:
    pass


def stream(lake: Lake, source: Path, **options: Any) -> Iterator[IngestReport]:
    given = {"engine": LocalEngine(2), "interval": _FAST, **lake.place, **options}
    return magicbyte.ingest_stream(source, lake.name, format=lake.format, **given)


def commits(lake: Lake, source: Path, engine: Looks, **options: Any) -> list[IngestReport]:
    """The reports of a stream until its engine has enough."""
    found: list[IngestReport] = []
    with pytest.raises(Enough):
        found.extend(stream(lake, source, engine=engine, **options))
    return found


def command(lake: Lake, source: Path, *options: str) -> list[str]:
    """A command that follows."""
    place = ["--format", lake.format, *lake.options, "--engine", "local", "--include-batch-metadata"]
    return ["ingest", *place, "--follow", "--interval", str(_FAST), *options, str(source), lake.name]


def start(lake: Lake, source: Path, *options: str) -> BaseProcess:
    """Starts a process that follows."""
    output = source.parent / f"output-{uuid.uuid4()}"
    return forked.start_command(command(lake, source, *options), output)


def handles(status: str, number: int) -> bool:
    """Whether a process handles a signal, according to its status in `/proc`."""
    caught = next((line.split()[1] for line in status.splitlines() if line.startswith("SigCgt:")), "0")
    return bool(int(caught, 16) >> (number - 1) & 1) or process_has_ended(status)


def process_has_ended(status: str) -> bool:
    return any(line.startswith("State:") and "Z" in line.split() for line in status.splitlines())


def end(process: BaseProcess) -> None:
    """Ends a process as a service manager does."""
    # On a busy machine it may still be starting, and not handle the signal yet.
    status = Path(f"/proc/{process.pid}/status")
    wait_until(lambda: not status.exists() or handles(status.read_text(), signal.SIGTERM))
    process.terminate()
    process.join(60)
    assert process.exitcode == 0


def write(segment: Path, offset: int) -> None:
    """Writes one record."""
    builder = magicbyte.RecordsBuilder()
    builder.append(offset, 1000, b"k", b"v")
    segment.write_bytes(builder.build())


def rows_of(lake: Lake) -> int:
    try:
        return lake.read().num_rows
    except Exception:  # it is just being created
        return 0


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def data_records(partitions: Sequence[str]) -> int:
    return sum(not line.get("control") for name in partitions for line in expected(KAFKA / name))


def growing(log: GrowingLog, seed: int, pause: float = 0.2) -> threading.Thread:
    """Lets a log grow to its end, ten times, each time to anywhere in a batch."""
    shares = sorted(random.Random(seed).random() for _ in range(9))

    def grow() -> None:
        for share in (*shares, 1):
            log.grow_to(share)
            time.sleep(pause)

    return threading.Thread(target=grow)


def check_whole(lake: Lake, log: GrowingLog, seed: int) -> None:
    """Each record of the log is in the table once, whoever reads it."""
    assert by_topic(lake.read()) == of_kafka(GROWN), seed
    assert set(lake.compare(log.root).values()) == {"equal"}, seed
    assert only_files_of_commits(lake), seed
    scan = pl.scan_delta(lake.name) if lake.format == "delta" else pl.scan_iceberg(lake.iceberg())
    counted = scan.group_by("topic").agg(pl.len(), pl.col("offset").n_unique().alias("unique")).collect()
    by_polars = {name: (rows, unique) for name, rows, unique in counted.iter_rows()}
    with duckdb.connect() as database:
        files = database.read_parquet([str(path) for path in lake.files()])  # noqa: F841 (a view)
        counts = 'SELECT topic, count(*), count(DISTINCT "offset") FROM files GROUP BY topic'
        by_duckdb = {name: (rows, unique) for name, rows, unique in database.sql(counts).fetchall()}
    records = {name: data_records([name]) for name in GROWN}
    assert by_polars == by_duckdb == {name: (count, count) for name, count in records.items() if count}


# --- the log grows -------------------------------------------------------------------------------


def test_a_log_that_grows_while_it_is_followed(lake: Lake, tmp_path: Path) -> None:
    log = GrowingLog(tmp_path / "logs", GROWN)
    log.grow_to(0.01)
    writer, rows = growing(log, seed := random.randrange(1 << 30)), 0
    writer.start()
    for report in stream(lake, log.root, **WITH_METADATA):
        assert report["balanced"]
        assert report["commit"]["problems"] == [], "a tail that is being written is no problem"
        rows += report["tables"]["records"]["rows"]
        if rows == data_records(GROWN):
            break
    writer.join()
    check_whole(lake, log, seed)


@pytest.mark.parametrize("name", ["v2_txn", "v2_compacted_txn"])
def test_only_records_of_decided_transactions(tmp_path: Path, name: str) -> None:
    lake = Lake.at("delta", tmp_path / "lake")
    log = GrowingLog(tmp_path / "logs", [name])
    log.grow_to(0.01)
    wanted = [one["offset"] for one in expected(KAFKA / name, "committed.jsonl") if not one.get("control")]
    engine = Looks(*(lambda share=share: log.grow_to(share / 25) for share in range(1, 26)), nothing)
    found: list[int] = []

    def follow() -> None:
        nonlocal found
        for _ in stream(lake, log.root, engine=engine, **WITH_METADATA, isolation_level="read_committed"):
            found = sorted(lake.read().column("offset").to_pylist())
            assert found == wanted[: len(found)]

    with pytest.raises(Enough):
        follow()
    assert found == wanted


def test_nothing_new_commits_nothing_and_reads_nothing(lake: Lake, root: Path) -> None:  # noqa: F811
    engine = Looks(*[nothing] * 5, lambda: append(root, "orders-0", 5, 2), nothing, nothing)
    found = commits(lake, root, engine)
    assert [one["tables"]["records"]["rows"] for one in found] == [17, 2]
    assert lake.versions() == 2
    # Every segment once, and again the one that has grown.
    assert engine.surveyed == 4


# --- it ends -------------------------------------------------------------------------------------


def test_killed_at_random(lake: Lake, tmp_path: Path) -> None:
    log = GrowingLog(tmp_path / "logs", GROWN)
    log.grow_to(0.01)
    dice = random.Random(seed := random.randrange(1 << 30))
    writer = growing(log, seed, pause=0.3)
    writer.start()
    for _ in range(4 * ROUNDS):
        process = start(lake, log.root)
        time.sleep(dice.uniform(0.1, 1.5))
        process.kill()
        process.join()
    writer.join()
    commits(lake, log.root, Looks(nothing), **WITH_METADATA)
    check_whole(lake, log, seed)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signals_end_it_and_leave_nothing(tmp_path: Path, number: int, root: Path) -> None:  # noqa: F811
    lake = Lake.at("delta", tmp_path / "lake")
    words = [sys.executable, "-m", "magicbyte", *command(lake, root, "--json")]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert process.stdout is not None
    first = json.loads(process.stdout.readline())
    append(root, "orders-0", 5, 1)
    second = json.loads(process.stdout.readline())
    assert [one["tables"]["records"]["rows"] for one in (first, second)] == [17, 1]
    process.send_signal(number)
    assert process.communicate(timeout=60)[0] == ""
    assert process.returncode == 0
    assert only_files_of_commits(lake)


def test_a_signal_while_a_batch_is_written(lake: Lake, root: Path) -> None:  # noqa: F811
    def interrupt() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        list(stream(lake, root, engine=Looks(interrupt)))
    assert lake.versions() == 0
    assert only_files_of_commits(lake)


# --- others --------------------------------------------------------------------------------------


def test_two_streams_into_one_table(lake: Lake, tmp_path: Path) -> None:
    log = GrowingLog(tmp_path / "logs", GROWN)
    log.grow_to(0.01)
    first = start(lake, log.root)
    wait_until(lambda: rows_of(lake) > 0)
    second = start(lake, log.root)
    writer = growing(log, seed := random.randrange(1 << 30))
    writer.start()
    wait_until(lambda: rows_of(lake) == data_records(GROWN))
    writer.join()
    for process in (first, second):
        end(process)
    check_whole(lake, log, seed)


def test_another_job_adds_the_same_records(lake: Lake, root: Path) -> None:  # noqa: F811
    engine = Looks(
        nothing, lambda: append(root, "orders-0", 5, 3), lambda: lake.ingest(root), nothing, nothing
    )
    found = commits(lake, root, engine)
    assert [one["tables"]["records"]["rows"] for one in found] == [17]
    assert lake.read().num_rows == 20
    assert only_files_of_commits(lake)


def test_an_index_that_is_ahead(root: Path, tmp_path: Path) -> None:  # noqa: F811
    # A broker has appended a batch, and its entry, after the log was listed.
    index = (root / "orders-0" / FIRST).with_suffix(".index")
    index.write_bytes((9).to_bytes(4, "big") + (1 << 20).to_bytes(4, "big"))
    once, followed = (Lake.at("delta", tmp_path / name) for name in ("once", "followed"))
    assert [one["kind"] for one in once.ingest(root)["commit"]["problems"]] == ["index_beyond_log"]
    (report,) = commits(followed, root, Looks(nothing, nothing))
    assert report["commit"] is not None
    assert report["commit"]["problems"] == []


def test_a_segment_that_vanishes_for_a_moment(lake: Lake, root: Path) -> None:  # noqa: F811
    segment = root / "orders-0" / FIRST
    away = root.parent / "away"
    engine = Looks(lambda: segment.rename(away), lambda: away.rename(segment), nothing, nothing)
    commits(lake, root, engine)
    assert lake.read().num_rows == 17
    assert set(lake.compare(root).values()) == {"equal"}


def test_segments_that_are_deleted_once_they_are_in_the_table(lake: Lake, root: Path) -> None:  # noqa: F811
    partition = root / "orders-0"

    def roll() -> None:
        (partition / f"{5:020d}.log").touch()

    def delete() -> None:
        (partition / FIRST).unlink()
        write(partition / f"{5:020d}.log", 5)

    found = commits(lake, root, Looks(roll, delete, nothing, nothing))
    assert [one["tables"]["records"]["rows"] for one in found] == [17, 1]
    assert [one["commit"]["problems"] for one in found] == [[], []]


def test_segments_that_are_deleted_before_they_were_read(lake: Lake, root: Path) -> None:  # noqa: F811
    lake.ingest(root)
    (root / "orders-0" / FIRST).unlink()
    write(root / "orders-0" / f"{9:020d}.log", 9)
    says = r"orders-0 is not whole: the table ends before offset 5, and the log begins at 9.*without --follow"
    with pytest.raises(JobError, match=says):
        list(stream(lake, root))
    assert lake.versions() == 1
    append(root, "events-0", 3, 1)
    # As the message says: what is lost is named, and the stream goes on.
    report = lake.ingest(root)
    assert [one["kind"] for one in report["commit"]["problems"]] == ["data_loss"]
    (said,) = commits(lake, root, Looks(nothing))
    assert said["commit"]["job"] is None
    assert [one["kind"] for one in said["commit"]["problems"]] == ["hole"]


def test_a_log_that_is_truncated(lake: Lake, root: Path) -> None:  # noqa: F811
    def truncate() -> None:
        (root / "orders-0" / FIRST).write_bytes(b"")

    says = "orders-0: the log ends before offset 0.*They diverge at offset 0, the table ends before 5"
    with pytest.raises(DivergedError, match=says):
        list(stream(lake, root, engine=Looks(nothing, truncate, *[nothing] * 6)))
    assert lake.read().num_rows == 17


def test_a_segment_that_cannot_be_read(lake: Lake, root: Path) -> None:  # noqa: F811
    (root / "orders-0" / FIRST).unlink()
    (root / "orders-0" / FIRST).mkdir()
    with pytest.raises(JobError, match="nothing is added, since orders-0"):
        list(stream(lake, root))
    assert lake.versions() == 0


def test_usage(tmp_path: Path, root: Path, cli: Cli) -> None:  # noqa: F811
    out = str(tmp_path / "out")
    cli("ingest", "--follow", root, out, code=2)
    assert "need --format delta or iceberg" in cli.error
    cli("ingest", "--format", "delta", "--interval", "1", root, out, code=2)
    assert "--interval needs --follow" in cli.error
    with pytest.raises(RefusedError, match="delta or iceberg"):
        magicbyte.ingest_stream(root, out, format="parquet")
