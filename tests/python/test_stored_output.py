"""Outputs in a store, here fsspec's local file system as `local://`: whole or absent, whoever is killed."""

from __future__ import annotations

import json
import os
import shutil
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from conftest import Cli
from killed_writer import kill_everywhere, run_killed
from magicbyte.errors import JobError, RefusedError
from magicbyte.jobs.publish import heartbeat
from magicbyte.jobs.publish.stored_job import StoredJob
from magicbyte.jobs.publish.stored_uploads import JobRecord
from magicbyte.jobs.publish.workspace import check_apart
from magicbyte.storage.stored_directory import StoredDirectory

pytest.importorskip("fsspec")
TOPICS = ("v2_txn", "v0_gzip")
COMMANDS: dict[str, tuple[str, ...]] = {
    "convert": ("convert", "--engine", "local"),
    "recover": ("recover", "--engine", "local"),
    "compact": ("compact", "--engine", "local", "--all", "--all-topics", "--now", "2026-01-01"),
    "redact": ("redact", "--engine", "local", "--key", "nobody"),
    "rescue": ("rescue",),
}


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(heartbeat, "SILENCE_SECONDS", 0.3)
    monkeypatch.setattr(heartbeat, "BEAT_SECONDS", 0.05)
    (tmp_path / "temporary").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "temporary"))
    monkeypatch.setattr("tempfile.tempdir", None)


def content_of(out: Path) -> dict[str, Any]:
    """The files by name; of reports what they say."""
    return {
        str(path.relative_to(out)): json.loads(path.read_bytes())
        if path.suffix == ".json"
        else path.read_bytes()
        for path in sorted(out.rglob("*"))
        if path.is_file()
    }


def leftovers(temporary: Path) -> list[Path]:
    return [path for path in temporary.rglob("*") if path.is_file()]


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.partitions("v2_txn", "v0_gzip", "v2_torn_tail", "v2_big_batch")
def test_the_output_is_that_of_a_directory(command: str, source: Path, tmp_path: Path, cli: Cli) -> None:
    log = max((source / "v2_txn").glob("*.log"))
    log.write_bytes(log.read_bytes()[:-3] + b"xyz")
    cli(*COMMANDS[command], source, tmp_path / "here", code=1)
    cli(*COMMANDS[command], source, f"local://{tmp_path}/there", code=1)
    there = content_of(tmp_path / "there")
    assert there == content_of(tmp_path / "here")
    assert len(there) > 1
    assert leftovers(tmp_path / "temporary") == []
    cli(*COMMANDS[command], source, f"local://{tmp_path}/there", code=2)
    assert "is not empty" in cli.error
    assert content_of(tmp_path / "there") == there


@pytest.mark.parametrize("command", ["convert", "rescue"])
@pytest.mark.partitions("v2_txn", "v2_torn_tail")
def test_killed_at_each_request(command: str, source: Path, tmp_path: Path, cli: Cli) -> None:
    log = max((source / "v2_txn").glob("*.log"))
    log.write_bytes(log.read_bytes()[:-3] + b"xyz")
    cli(*COMMANDS[command], source, tmp_path / "alone", code=1)
    alone, out = content_of(tmp_path / "alone"), tmp_path / "out"
    marker = "rescue.json" if command == "rescue" else "reconciliation.json"
    states = set()

    def check() -> None:
        state = (out / marker).exists(), (out / ".magicbyte-unfinished" / "job.json").exists()
        states.add(state)
        if state[0]:
            found = content_of(out)
            found.pop(".magicbyte-unfinished/job.json", None)
            assert found == alone
        elif out.exists():
            cli("verify", f"local://{out}", code=2)
            assert "no Kafka segments" in cli.error

    count = kill_everywhere(lambda: [*COMMANDS[command], source, f"local://{out}"], check)
    assert count > 6
    assert states >= {(False, True), (True, True), (True, False)}
    assert content_of(out) == alone
    assert leftovers(tmp_path / "temporary") == []


@pytest.mark.partitions("v2_txn")
def test_two_jobs_at_once(source: Path, tmp_path: Path, cli: Cli) -> None:
    output = StoredDirectory(f"local://{tmp_path}/out")
    job = StoredJob(output)
    with pytest.raises(RefusedError, match="another job is writing"):
        StoredJob(output)
    cli("convert", source, output.path, code=2)
    assert "another job is writing" in cli.error
    job.announce(["v2_txn-0"], "reconciliation.json")
    output.put("v2_txn-0/x", b"x")
    job.close()
    assert output.files() == {}
    cli("convert", source, output.path)


def test_a_job_that_was_taken_for_dead(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    output = StoredDirectory(f"local://{tmp_path}/out")
    monkeypatch.setattr(heartbeat, "BEAT_SECONDS", 1000)
    slow = StoredJob(output)
    slow.announce(["a-0"], "reconciliation.json")
    output.put("a-0/x", b"of the slow one")
    output.put("b-0/x", b"of nobody")
    other = StoredJob(output)
    assert output.files().keys() == {".magicbyte-unfinished/job.json", "b-0/x"}
    other.announce(["a-0"], "reconciliation.json")
    output.put("a-0/x", b"of the other one")
    with pytest.raises(JobError, match="nothing is published"):
        slow.confirm()
    slow.close()
    assert output.read("a-0/x") == b"of the other one"
    output.put("reconciliation.json", b"{}")
    other.close()
    assert output.files().keys() == {"a-0/x", "b-0/x", "reconciliation.json"}


@pytest.mark.parametrize(
    "content",
    [
        b" ",
        b"{}",
        b"null",
        b'{"job": "0123456789ab", "names": ["../b"], "marker": null, "killed": []}',
        b'{"job": "0123456789ab", "names": [".."], "marker": null, "killed": []}',
        b'{"job": "0123456789ab", "names": [""], "marker": null, "killed": []}',
        b'{"job": "x", "names": [], "marker": null, "killed": []}',
    ],
)
def test_a_false_record(content: bytes, tmp_path: Path) -> None:
    output = StoredDirectory(f"local://{tmp_path}/out")
    output.put(".magicbyte-unfinished/job.json", content)
    output.put("a-0/x", b"x")
    with pytest.raises(RefusedError, match=r"job\.json is not from a job"):
        StoredJob(output)
    assert len(output.files()) == 2


def test_what_a_record_covers() -> None:
    record = JobRecord("0123456789ab", ("a-0", "a.json"), "m")
    for name in ("a-0/x", "a-0/raw/x", "a.json", "records/part-0123456789ab-00000.parquet"):
        assert record.covers(name)
    for name in ("a-01/x", "b-0/a-0", "a.json2", "records/part-1123456789ab-00000.parquet"):
        assert not record.covers(name)


def test_overlaps() -> None:
    for out, source in (
        ("s3://b/x", "s3://b/x/"),
        ("s3://b/x/y", "s3://b/x"),
        ("s3a://b/x", "s3://b/x/y"),
        ("s3://b", "s3://b/x"),
        ("s3://b//x/../y", "s3://b/y"),
    ):
        with pytest.raises(RefusedError, match="overlap"):
            check_apart(out, ["/tmp", source])
    check_apart("s3://b/x", ["s3://b/xy", "s3://c/x", "gs://b/x", "/b/x"])
    check_apart(os.curdir, ["s3://b/x"])
    with pytest.raises(RefusedError, match="overlap"):
        check_apart("/tmp/x", ["file:///tmp"])


def test_where_nothing_can_be_written(source_of_one: Path, cli: Cli) -> None:
    cli("convert", source_of_one, "http://127.0.0.1:9/x", code=2)
    assert "web server" in cli.error
    cli("convert", source_of_one, "unheard-of://x/y", code=2)
    cli("convert", source_of_one, "s3://b/x?secret=hunter2", code=2)
    assert "hunter2" not in cli.error
    cli("convert", "--storage-option", "region=x", source_of_one, "out", code=2)
    assert "SRC or OUT" in cli.error


@pytest.fixture
def source_of_one(kafka: Path, tmp_path: Path) -> Path:
    shutil.copytree(kafka / "v2_txn", tmp_path / "one" / "v2_txn-0")
    return tmp_path / "one"


def test_an_upload_that_vanishes(
    source_of_one: Path, tmp_path: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody removes a file between its upload and the commit."""
    uploaded = StoredDirectory.put_file

    def put_and_lose(self: StoredDirectory, name: str, source: str) -> None:
        uploaded(self, name, source)
        if name.endswith(".log"):
            self.delete([name])

    monkeypatch.setattr(StoredDirectory, "put_file", put_and_lose)
    cli("convert", source_of_one, f"local://{tmp_path}/out", code=3)
    assert "is gone: nothing is published" in cli.error
    assert not any((tmp_path / "out").rglob("*"))


def test_files_of_one_directory_come_and_go(tmp_path: Path) -> None:
    """Whoever removes the last file removes the directory, in which others are about to write."""
    output = StoredDirectory(f"local://{tmp_path}/out")
    (tmp_path / "source").write_bytes(b"abc")

    def come_and_go(thread: int) -> None:
        for turn in range(200):
            name = f"a/b/{thread}-{turn}"
            if turn % 2:
                output.put(name, b"abc")
            else:
                output.put_file(name, str(tmp_path / "source"))
            assert output.read(name) == b"abc"
            output.delete([name])

    with ThreadPoolExecutor(3) as pool:
        list(pool.map(come_and_go, range(3)))
    assert output.files() == {}


def test_the_next_job_waits_for_the_end(source_of_one: Path, tmp_path: Path, cli: Cli) -> None:
    """A job that ends while it is watched lets the next one in."""
    output = StoredDirectory(f"local://{tmp_path}/out")
    job = StoredJob(output)
    job._heartbeat._stop.set()  # no beats: as if between two of them
    threading.Timer(0.1, job.close).start()
    cli("convert", source_of_one, output.path)
    time.sleep(0.2)
    assert (tmp_path / "out" / "reconciliation.json").exists()


def test_a_killed_job_is_named(source_of_one: Path, tmp_path: Path) -> None:
    out = f"local://{tmp_path}/out"
    assert run_killed("after", 5, "convert", source_of_one, out).returncode == -9
    done = run_killed("never", 0, "convert", source_of_one, out)
    assert done.returncode == 0
    assert "another job is at work there, or was killed" in done.stderr
