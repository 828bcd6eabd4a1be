"""Where jobs write: any legal topic name, any empty directory, but never over other files."""

from __future__ import annotations

import errno
import json
import logging
import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import magicbyte
import pyarrow.dataset as ds
import pytest
from conftest import KAFKA, Cli
from magicbyte.errors import JobError, RefusedError
from magicbyte.jobs.publish.local_partitions import LocalPartitions
from magicbyte.jobs.publish.local_tables import LocalTables
from magicbyte.jobs.rewrite import rewrite
from magicbyte.jobs.run.engines import LocalEngine
from magicbyte.options.rewrite import ConvertOptions

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FIRST = f"{0:020d}.log"
WRITERS = (
    ("convert",),
    ("recover",),
    ("compact", "--until-offset", "0"),
    ("redact", "--where", "key = 'nobody'"),
)
writers = pytest.mark.parametrize("writer", WRITERS, ids=lambda writer: writer[0])
LONGEST = "t" * 249


def copied(partition: str, directory: Path) -> Path:
    """A copy that may be changed."""
    shutil.copytree(KAFKA / partition, directory)
    for path in (directory, *directory.iterdir()):
        path.chmod(0o755 if path.is_dir() else 0o644)
    return directory


def rows(log: Path) -> int:
    return sum(1 for _ in magicbyte.PartitionLog(log).records())


def names(directory: Path) -> set[str]:
    return {path.name for path in directory.iterdir()}


# --- names of topics ----------------------------------------------------------------------------

TOPICS = (
    ".orders",
    "..x",
    "_SUCCESS",
    "_temporary",
    "reconciliation.json",
    ".out.magicbyte-unfinished",
    LONGEST,
)


@writers
def test_every_legal_topic_is_published(writer: tuple[str, ...], tmp_path: Path, cli: Cli) -> None:
    for topic in TOPICS:
        copied("v2_none", tmp_path / "in" / f"{topic}-0")
    command, *options = writer
    report = cli.json(command, "--engine", "local", *options, tmp_path / "in", tmp_path / "out")
    assert report["balanced"]
    written = {path.name for path in (tmp_path / "out").iterdir() if path.is_dir()}
    assert written == {f"{topic}-0" for topic in TOPICS}
    assert {rows(tmp_path / "out" / name) for name in written} == {rows(KAFKA / "v2_none")}


@pytest.fixture
def tables(tmp_path: Path, cli: Cli) -> tuple[Path, dict[str, int]]:
    """Parquet of topics whose names a reader could misinterpret, and their rows."""
    topics = (*TOPICS, "__HIVE_DEFAULT_PARTITION__", "007")
    for topic in topics:
        copied("v2_none", tmp_path / "in" / f"{topic}-0")
    assert cli.json("ingest", "--engine", "local", tmp_path / "in", tmp_path / "out")["balanced"]
    return tmp_path / "out" / "records", dict.fromkeys(topics, rows(KAFKA / "v2_none"))


def test_every_legal_topic_comes_back_from_parquet(tables: tuple[Path, dict[str, int]]) -> None:
    records, expected = tables
    table = ds.dataset(records).to_table()
    counts = table.group_by("topic").aggregate([([], "count_all")]).to_pylist()
    assert {row["topic"]: row["count_all"] for row in counts} == expected


@pytest.mark.spark
def test_every_legal_topic_comes_back_in_spark(
    spark: SparkSession, tables: tuple[Path, dict[str, int]]
) -> None:
    records, expected = tables
    counts = spark.read.parquet(str(records)).groupBy("topic").count().collect()
    assert {row["topic"]: row["count"] for row in counts} == expected


# --- the directory OUT --------------------------------------------------------------------------


@writers
@pytest.mark.parametrize("kind", ["empty", "link", "volume"])
def test_a_directory_that_is_there_is_filled(
    writer: tuple[str, ...], kind: str, tmp_path: Path, cli: Cli
) -> None:
    out = real = tmp_path / "real"
    out.mkdir()
    if kind == "link":
        out = tmp_path / "link"
        out.symlink_to(real)
    elif kind == "volume":
        (out / "lost+found").mkdir()
    before = out.stat().st_ino, names(tmp_path)
    command, *options = writer
    cli(command, "--engine", "local", *options, KAFKA / "v2_none", out)
    assert (out.stat().st_ino, names(tmp_path)) == before
    assert names(real) - {"lost+found", "cleaner-offset-checkpoint"} == {"v2_none-0", "reconciliation.json"}
    assert rows(real / "v2_none-0") == rows(KAFKA / "v2_none")


def test_a_mount_point_is_filled(tmp_path: Path, cli: Cli) -> None:
    (volume := tmp_path / "volume").mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=16m", "tmpfs", volume], check=False, capture_output=True
    )
    if mounted.returncode != 0:
        pytest.skip("nobody may mount here")
    try:
        cli("convert", "--engine", "local", KAFKA / "v2_none", volume)
        assert names(volume) == {"v2_none-0", "reconciliation.json"}
        shutil.rmtree(volume / "v2_none-0")
        (volume / "reconciliation.json").unlink()
        # One that is not empty is left unchanged.
        with open(volume / "ballast", "wb") as ballast:
            os.posix_fallocate(ballast.fileno(), 0, shutil.disk_usage(volume).free - (64 << 10))
        (volume / "out").mkdir()
        cli("convert", "--engine", "local", KAFKA / "v2_large_batches", volume / "out", code=3)
        assert cli.error.count("\n") == 1
        assert "No space left" in cli.error
        assert names(volume / "out") == set()
        cli("ingest", "--engine", "local", KAFKA / "v2_large_batches", volume / "out", code=3)
        assert cli.error.count("\n") == 1
        assert "No space left" in cli.error
        assert f"{volume}/" in cli.error
        assert ".parquet" in cli.error
        assert names(volume / "out") == set()
    finally:
        subprocess.run(["umount", volume], check=True)


def test_what_is_no_empty_directory_is_refused(tmp_path: Path) -> None:
    def refused(out: Path, match: str, source: Path = KAFKA / "v2_none") -> None:
        before = sorted(tmp_path.rglob("*"))
        with pytest.raises(RefusedError, match=match):
            rewrite([str(source)], str(out), LocalEngine(1), ConvertOptions(magic=None))
        assert sorted(tmp_path.rglob("*")) == before

    (tmp_path / "file").touch()
    refused(tmp_path / "file", "not a directory")
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere")
    refused(tmp_path / "dangling", "not a directory")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / ".hidden").touch()
    refused(tmp_path / "full", "not empty")
    # OUT inside a partition that SRC reaches by a link, and SRC itself given as a link.
    copied("v2_none", tmp_path / "logs" / "a-0")
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a-0").symlink_to(tmp_path / "logs" / "a-0")
    refused(tmp_path / "logs" / "a-0" / "out", "overlap", tmp_path / "in")
    (tmp_path / "link").symlink_to(tmp_path / "logs")
    refused(tmp_path / "logs" / "out", "overlap", tmp_path / "link")


@pytest.mark.parametrize(
    "arguments",
    [
        *(f"{command} SRC OUT" for command in ("convert", "ingest", "recover", "rescue", "find")),
        "ingest --format delta SRC OUT",
        "compact --all-topics SRC OUT",
        "redact --key k SRC OUT",
        "merge SRC --out OUT",
        "find --out OUT SRC",
        "schemas copy SCHEMAS OUT",
        "wire --extract OUT CAPTURE",
        "backup kafka://127.0.0.1:1 OUT",
        "records OUT",
        "verify SRC OUT",
        "serve OUT",
    ],
)
def test_an_empty_path_is_not_the_working_directory(
    arguments: str, tmp_path: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    schemas = tmp_path / "schemas"
    schemas.mkdir()
    (schemas / "a-value.avsc").write_text('"string"')
    capture = next((KAFKA.parent / "wire").glob("*.pcap*"))
    places = {"OUT": "", "SRC": KAFKA / "v2_none", "SCHEMAS": schemas, "CAPTURE": capture}
    cli(*(places.get(argument, argument) for argument in arguments.split()), code=2)
    assert cli.error == "magicbyte: a path is empty: expected a file, a directory or a URL\n"
    assert names(tmp_path / "here") == set()


@pytest.mark.parametrize("out", ["", b""])
def test_an_empty_path_of_a_caller(out: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(RefusedError, match="empty"):
        magicbyte.convert(KAFKA / "v2_none", out)
    for read in (magicbyte.PartitionLog, magicbyte.Log, magicbyte.verify, magicbyte.scan):
        with pytest.raises(RefusedError, match="empty"):
            read(out)
    assert names(tmp_path) == set()


@pytest.mark.parametrize("command", ["convert", "ingest"])
def test_a_name_that_is_not_utf8_is_refused(command: str, tmp_path: Path, cli: Cli) -> None:
    out = os.path.join(tmp_path, os.fsdecode(b"out-\xff"))
    cli(command, "--engine", "local", KAFKA / "v2_none", out, code=2)
    assert "is not UTF-8" in cli.error
    assert names(tmp_path) == set()


# --- other jobs ---------------------------------------------------------------------------------


def test_a_second_job_is_refused_while_the_first_is_alive(tmp_path: Path) -> None:
    for out in (tmp_path / "new", tmp_path / "there"):
        if out.name == "there":
            out.mkdir()
        with LocalPartitions(str(out), []) as output:
            with pytest.raises(RefusedError, match="another job is writing"):
                LocalPartitions(str(out), [])
            with pytest.raises(RefusedError, match=r"another job is writing|not empty"):
                LocalTables(str(out), [])
            output.commit({})
        assert names(out) == {"reconciliation.json"}
    with LocalTables(str(tmp_path / "tables"), []), pytest.raises(RefusedError, match="not empty"):
        LocalPartitions(str(tmp_path / "tables"), [])
    assert names(tmp_path) == {"new", "there"}


def test_a_file_system_without_locks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def flock(*_arguments: object) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr("fcntl.flock", flock)
    out = tmp_path / "out"
    with LocalPartitions(str(out), []) as output:
        with pytest.raises(RefusedError, match=r"without locks.* remove .*\.out\.magicbyte-unfinished"):
            LocalPartitions(str(out), [])
        output.commit({})
    assert names(tmp_path) == {"out"}


def test_only_what_was_counted_is_published(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    commit = LocalPartitions.commit

    def harmed(output: LocalPartitions, *arguments: Any, **options: Any) -> None:
        # As another machine could do that shares the file system but not its locks.
        next(tmp_path.glob(".out.magicbyte-unfinished/*/0.v2_none-0/*.log")).unlink()
        commit(output, *arguments, **options)

    monkeypatch.setattr(LocalPartitions, "commit", harmed)
    with pytest.raises(JobError, match=r"v2_none-0: [0-9,]+ bytes .* nothing is published"):
        rewrite([str(KAFKA / "v2_none")], str(tmp_path / "out"), LocalEngine(1), ConvertOptions(magic=None))
    assert names(tmp_path) == set()


def test_an_output_that_came_into_being_meanwhile_stays(tmp_path: Path) -> None:
    new, there = tmp_path / "new", tmp_path / "there"
    there.mkdir()
    with LocalPartitions(str(new), []) as output:
        new.mkdir()
        (new / "theirs").touch()
        with pytest.raises(JobError, match="was created"):
            output.commit({})
    with LocalPartitions(str(there), []) as output:
        (there / "reconciliation.json").write_text("theirs")
        with pytest.raises(JobError, match="was created"):
            output.commit({}, {"another": "file"})
    assert names(new) == {"theirs"}
    assert names(there) == {"reconciliation.json"}
    assert (there / "reconciliation.json").read_text() == "theirs"


# --- leftovers ----------------------------------------------------------------------------------


@writers
def test_a_source_that_is_named_as_the_workspace(writer: tuple[str, ...], tmp_path: Path, cli: Cli) -> None:
    source = tmp_path / ".out.magicbyte-unfinished"
    copied("v2_none", source / "orders-0")
    before = sorted(source.rglob("*"))
    command, *options = writer
    cli(command, "--engine", "local", *options, source, tmp_path / "out", code=2)
    assert "overlap" in cli.error
    # It is not removed for another source's sake, either.
    cli(command, "--engine", "local", *options, KAFKA / "v2_none", tmp_path / "out", code=2)
    assert "orders-0 in it is not from a job" in cli.error
    assert sorted(source.rglob("*")) == before
    assert names(tmp_path) == {source.name}


@pytest.mark.parametrize("is_there", [False, True])
def test_what_a_killed_job_left_may_be_a_source(tmp_path: Path, cli: Cli, *, is_there: bool) -> None:
    left = tmp_path / ".out.magicbyte-unfinished"
    copied("v2_none", left / "magicbyte-0123456789ab" / "0.orders-0")
    (left / "lock").touch()
    if is_there:
        (tmp_path / "out").mkdir()
    cli("convert", "--engine", "local", left, tmp_path / "out", code=2)
    assert "overlap" in cli.error
    cli("convert", "--engine", "local", left, tmp_path / "elsewhere")
    assert rows(tmp_path / "elsewhere" / "0.orders-0") == rows(KAFKA / "v2_none")
    assert (left / "magicbyte-0123456789ab" / "0.orders-0").exists()


def test_leftovers_below_a_source_are_named_and_not_read(
    tmp_path: Path, cli: Cli, caplog: pytest.LogCaptureFixture
) -> None:
    copied("v2_none", tmp_path / "orders-0")
    left = tmp_path / ".out.magicbyte-unfinished"
    copied("v2_none", left / "magicbyte-0123456789ab" / "0" / "attempt-0123456789ab")
    with caplog.at_level(logging.WARNING, "magicbyte.jobs"):
        report = cli.json("verify", tmp_path)
    assert [one["topic"] for one in report["partitions"]] == ["orders"]
    assert f"{left} is not read" in caplog.text
    # A topic may have such a name.
    copied("v2_none", tmp_path / ".out.magicbyte-unfinished-7")
    assert [one["partition"] for one in cli.json("verify", tmp_path)["partitions"]] == [7, 0]


KILLED_JOB = """
import os, sys
from magicbyte.jobs.publish.local_partitions import LocalPartitions

output = LocalPartitions(sys.argv[1], [])
rename, calls = os.rename, int(sys.argv[2])

def counted(*arguments):
    global calls
    calls -= 1
    if calls < 0:
        os._exit(7)
    rename(*arguments)

os.rename = counted
output.commit({}, {"one": "1", "two": "2"})
os._exit(0)
"""


@pytest.mark.parametrize("is_there", [False, True])
def test_what_a_killed_job_left_is_taken_back(tmp_path: Path, *, is_there: bool) -> None:
    out = tmp_path / "out"
    for calls in range(10):
        if is_there:
            out.mkdir()
        killed = subprocess.run([sys.executable, "-c", KILLED_JOB, out, str(calls)], check=False)
        is_whole = (out / "reconciliation.json").exists()
        assert is_whole == (killed.returncode == 0)
        if is_whole:
            # The job died before it could clean up: the next one does, and refuses what is there.
            with pytest.raises(RefusedError, match="not empty"):
                LocalPartitions(str(out), [])
            assert names(tmp_path) == {"out"}
            assert names(out) == {"one", "two", "reconciliation.json"}
            break
        with LocalPartitions(str(out), []) as output:
            output.commit({"second": True})
        assert names(tmp_path) == {"out"}
        assert names(out) == {"reconciliation.json"}
        assert json.loads((out / "reconciliation.json").read_text()) == {"second": True}
        shutil.rmtree(out)
    assert calls == (3 if is_there else 1)


def test_a_forged_journal_moves_nothing(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("theirs")
    (out := tmp_path / "out").mkdir()
    job = out / ".magicbyte-unfinished" / "magicbyte-0123456789ab"
    (job / "whole").mkdir(parents=True)
    (job / "replaced").mkdir()
    (job / "whole" / "mark").touch()
    (job / "publishing").write_text(json.dumps(["../victim", "mark"]))
    with LocalPartitions(str(out), []) as output:
        output.commit({})
    assert victim.read_text() == "theirs"
    assert names(out) == {"reconciliation.json"}


class Killed(BaseException):
    """Ends a job so suddenly that it cleans nothing up."""


def killed_while_publishing(out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A job with two partitions is killed once it has moved both, and before the mark."""
    out.mkdir(exist_ok=True)
    rename = os.rename

    def until_the_mark(source: str, target: str) -> None:
        if source.endswith("whole/reconciliation.json"):
            raise Killed
        rename(source, target)

    with monkeypatch.context() as patch:
        patch.setattr("os.rename", until_the_mark)
        output = LocalPartitions(str(out), [])
        for partition in range(2):
            target = Path(output.target({"topic": "orders", "partition": partition}))
            target.mkdir()
            (target / FIRST).write_bytes(b"ours")
        with pytest.raises(Killed):
            output.commit({})
    assert names(out) == {".magicbyte-unfinished", "orders-0", "orders-1"}
    output._workspace._release()


@pytest.mark.parametrize("theirs", ["directory", "same names", "file", "link", "more", "nothing"])
def test_what_others_put_where_a_killed_job_had_published(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, theirs: str
) -> None:
    killed_while_publishing(out := tmp_path / "out", monkeypatch)
    place = out / "orders-0"
    if theirs != "more":
        shutil.rmtree(place)
    if theirs == "link":
        place.symlink_to(tmp_path)
    elif theirs == "file":
        place.write_bytes(b"theirs")
    elif theirs != "nothing":
        place.mkdir(exist_ok=True)
        (place / (FIRST if theirs == "same names" else "theirs")).write_bytes(b"theirs")
    before = sorted(out.rglob("*"))
    if theirs != "nothing":
        for _ in range(2):
            with pytest.raises(RefusedError, match="orders-0 is not what a job that was killed had left"):
                LocalPartitions(str(out), [])
            assert sorted(out.rglob("*")) == before
        place.rename(tmp_path / "moved away")
    with LocalPartitions(str(out), []) as output:
        output.commit({})
    assert names(out) == {"reconciliation.json"}


def test_a_journal_of_an_earlier_version_proves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    killed_while_publishing(out := tmp_path / "out", monkeypatch)
    (journal,) = out.glob(".magicbyte-unfinished/*/publishing")
    journal.write_text(json.dumps([name for name, _ in json.loads(journal.read_text())]))
    with pytest.raises(RefusedError, match="move it away"):
        LocalPartitions(str(out), [])
    assert (out / "orders-0" / FIRST).read_bytes() == b"ours"


def test_a_file_system_that_cannot_sync_directories(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fsync = os.fsync

    def files_only(descriptor: int) -> None:
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, "Invalid argument")
        fsync(descriptor)

    monkeypatch.setattr("os.fsync", files_only)
    with LocalPartitions(str(tmp_path / "out"), []) as output:
        output.commit({})
    assert names(tmp_path) == {"out"}
