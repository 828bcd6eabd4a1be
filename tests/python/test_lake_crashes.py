"""Tables whose jobs are killed, run at the same time, or meet commits of others."""

from __future__ import annotations

import os
import random
import signal
import sys
import time
import uuid
from collections.abc import Callable, Sequence
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import forked
import pytest
from deltalake import DeltaTable
from lakes import FORMATS, GrowingLog, Lake
from magicbyte.cli import main
from magicbyte.errors import JobError
from magicbyte.jobs.find.choice import PartitionChoice
from magicbyte.jobs.run.engines import LocalEngine
from magicbyte.lake.job_files import LocalJobFiles
from magicbyte.lake.table import LakeFile
from test_lake import GROWN, append, by_topic, of_kafka, root  # noqa: F401 (a fixture)
from writers import ROUNDS

# It loads the libraries, which takes longer than a job.
forked.load(__name__)


def run(arguments: Sequence[str], output: Path, deadly: int = 0) -> None:
    """Runs a command, which kills itself before the call of this number that changes something on disk."""
    calls = 0

    def audit(event: str, values: tuple[Any, ...]) -> None:
        nonlocal calls
        is_change = event in ("os.rename", "os.remove", "os.mkdir", "os.rmdir", "sqlite3.connect")
        is_change |= event == "open" and values[2] & (os.O_WRONLY | os.O_RDWR) != 0
        if is_change and "lake" in str(values[0]):
            calls += 1
            if calls == deadly:
                os.kill(os.getpid(), signal.SIGKILL)

    with open(output, "w") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    if deadly:
        sys.addaudithook(audit)
    os._exit(main(list(arguments)))


def outputs(directory: Path) -> str:
    return "\n".join(path.read_text() for path in directory.glob("output-*"))


def start(lake: Lake, source: Path, deadly: int = 0, options: Sequence[str] = ()) -> BaseProcess:
    arguments = [*command(lake, source), *options]
    return forked.start(run, arguments, source.parent / f"output-{uuid.uuid4()}", deadly)


@pytest.fixture(params=FORMATS)
def lake(request: pytest.FixtureRequest, tmp_path: Path) -> Lake:
    return Lake.at(request.param, tmp_path / "lake")


def command(lake: Lake, source: Path) -> list[str]:
    options = ["--format", lake.format, *lake.options, "--engine", "local", "--include-batch-metadata"]
    return ["ingest", *options, str(source), lake.name]


def only_files_of_commits(lake: Lake) -> bool:
    """Whether the directory holds nothing but the files of the table."""
    found = {path for path in lake.data.rglob("*.parquet") if "_delta_log" not in path.parts}
    return found == lake.files() and not (lake.data / "_magicbyte").exists()


def test_killed_at_each_change(lake: Lake, tmp_path: Path) -> None:
    log = GrowingLog(tmp_path / "logs", GROWN)
    log.grow_to(0.5)
    # Iceberg has more of them: its metadata and the catalog are written from Python.
    for deadly in range(1, 300, 1 if lake.format == "delta" else 4):
        log.grow_to(0.5 + deadly / 600)
        job = start(lake, log.root, deadly)
        job.join()
        if job.exitcode != -signal.SIGKILL:
            break
    assert job.exitcode in (0, 1), outputs(tmp_path)
    assert deadly > 5
    log.grow_to(1)
    lake.ingest(log.root, include_batch_metadata=True)
    assert by_topic(lake.read()) == of_kafka(GROWN)
    assert set(lake.compare(log.root).values()) == {"equal"}
    assert only_files_of_commits(lake)


def test_killed_at_random(lake: Lake, tmp_path: Path) -> None:
    log = GrowingLog(tmp_path / "logs", GROWN)
    dice = random.Random(seed := random.randrange(1 << 30))
    rounds, whole = 8 * ROUNDS, 0.0
    for number in range(-1, rounds):
        log.grow_to(0.05 + 0.95 * (number + 1) / rounds)
        started = time.monotonic()
        job = start(lake, log.root)
        if number >= 0:
            time.sleep(dice.uniform(0, 1.1) * whole)
            job.kill()
        job.join()
        whole = max(whole, time.monotonic() - started)
    lake.ingest(log.root, include_batch_metadata=True)
    assert by_topic(lake.read()) == of_kafka(GROWN), seed
    assert set(lake.compare(log.root).values()) == {"equal"}, seed
    assert only_files_of_commits(lake), seed


class Interrupted(LocalEngine):
    """Runs something else once all files of a job are written, before it commits."""

    def __init__(self, meanwhile: Callable[[], Any]) -> None:
        super().__init__(2)
        self._meanwhile: list[Callable[[], Any]] = [meanwhile]

    def map(self, function: Any, items: Sequence[Any], *, name: str, **options: Any) -> list[Any]:
        results = super().map(function, items, name=name, **options)
        if "ingest" in name and self._meanwhile:
            self._meanwhile.pop()()
        return results


def test_of_two_jobs_with_the_same_records_one_wins(lake: Lake, root: Path) -> None:  # noqa: F811
    lake.ingest(root)
    append(root, "orders-0", 5, 3)
    append(root, "events-0", 3, 1)
    with pytest.raises(JobError, match=r"another job has changed (orders|events)-0 meanwhile"):
        lake.ingest(root, engine=Interrupted(lambda: lake.ingest(root)))
    assert lake.read().num_rows == 21
    assert set(lake.compare(root).values()) == {"equal"}
    assert only_files_of_commits(lake)


def test_the_first_jobs_of_a_table_at_the_same_time(lake: Lake, root: Path) -> None:  # noqa: F811
    with pytest.raises(JobError, match="meanwhile"):
        lake.ingest(root, engine=Interrupted(lambda: lake.ingest(root)))
    assert lake.read().num_rows == 17
    assert only_files_of_commits(lake)


def test_jobs_for_different_topics_both_commit(lake: Lake, root: Path) -> None:  # noqa: F811
    orders, events = (PartitionChoice(topics=(topic,)) for topic in ("orders", "events"))
    lake.ingest(root, choice=orders, engine=Interrupted(lambda: lake.ingest(root, choice=events)))
    assert lake.read().num_rows == 17
    assert set(lake.compare(root).values()) == {"equal"}
    assert only_files_of_commits(lake)


def test_processes_at_the_same_time(lake: Lake, tmp_path: Path) -> None:
    log = GrowingLog(tmp_path / "logs", GROWN)
    for share in (0.3, 0.6, 1):
        log.grow_to(share)
        jobs = [start(lake, log.root) for _ in range(3)]
        for job in jobs:
            job.join()
        codes = [job.exitcode for job in jobs]
        # 2 if the database of the catalog is locked when a job starts.
        assert set(codes) <= {0, 1, 2, 3}, outputs(tmp_path)
        assert {0, 1} & set(codes), outputs(tmp_path)
    assert "this is a bug" not in outputs(tmp_path)
    lake.ingest(log.root, include_batch_metadata=True)
    assert by_topic(lake.read()) == of_kafka(GROWN)
    assert only_files_of_commits(lake)


def test_files_of_a_killed_job_are_removed_and_named(lake: Lake, root: Path) -> None:  # noqa: F811
    lake.ingest(root)
    killed = LocalJobFiles(str(lake.data))
    Path(killed.path, "part-00000-orphan.parquet").write_bytes(b"half a file")
    running = LocalJobFiles(str(lake.data))
    Path(running.path, "part-00000-running.parquet").write_bytes(b"half a file")
    killed.close(keep=None)  # as the system does for a killed process
    report = lake.ingest(root)
    assert report["commit"]["orphans"] == [killed.name]
    assert not Path(killed.path).exists()
    assert Path(running.path).exists(), "that of a running job stays"
    running.close(keep=False)
    assert only_files_of_commits(lake)


def test_a_job_killed_after_its_commit_keeps_its_files(lake: Lake, root: Path) -> None:  # noqa: F811
    report = lake.ingest(root)
    lock = lake.data / "_magicbyte" / f"{report['commit']['job']}.lock"
    lock.parent.mkdir()
    lock.touch()
    append(root, "orders-0", 5, 1)
    assert lake.ingest(root)["commit"]["orphans"] == []
    assert lake.read().num_rows == 18
    assert only_files_of_commits(lake)


def test_a_file_that_is_gone_is_not_committed(lake: Lake, root: Path) -> None:  # noqa: F811
    def remove() -> None:
        next(path for path in lake.data.rglob("part-*.parquet")).unlink()

    with pytest.raises(JobError, match="is gone: nothing is committed"):
        lake.ingest(root, engine=Interrupted(remove))
    assert lake.read().num_rows == 0
    lake.ingest(root)
    assert set(lake.compare(root).values()) == {"equal"}


def test_files_have_to_be_there_when_they_are_committed(tmp_path: Path) -> None:
    files = LocalJobFiles(str(tmp_path))
    Path(files.path, "a.parquet").write_bytes(b"12345")
    Path(files.path, "failed.parquet").write_bytes(b"of another attempt")
    with pytest.raises(JobError, match="has 5 bytes"):
        files.complete([LakeFile(f"{files.name}/a.parquet", "t", None, 1, 6)])
    files.complete([LakeFile(f"{files.name}/a.parquet", "t", None, 1, 5)])
    assert os.listdir(files.path) == ["a.parquet"]
    files.close(keep=True)
    assert os.listdir(tmp_path) == [files.name]


# --- others change the table ---------------------------------------------------------------------


def test_delta_tables_can_be_optimized_and_vacuumed(tmp_path: Path, root: Path) -> None:  # noqa: F811
    lake = Lake.at("delta", tmp_path / "lake")
    for first in range(5, 8):
        lake.ingest(root)
        append(root, "orders-0", first, 1)
    table = DeltaTable(lake.name)
    table.optimize.compact()
    table.create_checkpoint()
    table.vacuum(retention_hours=0, dry_run=False, enforce_retention_duration=False)
    lake.ingest(root)
    assert lake.read().num_rows == 20
    assert set(lake.compare(root).values()) == {"equal"}


def test_an_iceberg_table_continues_when_its_snapshots_have_expired(tmp_path: Path, root: Path) -> None:  # noqa: F811
    lake = Lake.at("iceberg", tmp_path / "lake")
    lake.ingest(root, choice=PartitionChoice(topics=("events",)))
    lake.ingest(root)
    append(root, "orders-0", 5, 1)
    lake.ingest(root)
    table = lake.iceberg()
    first = table.snapshots()[0].snapshot_id
    table.maintenance.expire_snapshots().by_id(first).commit()
    append(root, "events-0", 3, 1)
    report = lake.ingest(root)
    assert [(one["topic"], one["start_offset"]) for one in report["commit"]["partitions"]] == [("events", 3)]
    assert lake.read().num_rows == 19
    assert set(lake.compare(root).values()) == {"equal"}
