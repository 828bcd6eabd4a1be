"""Every name in a partition's directory is in one list; whatever cannot be read is reported as a problem."""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import KAFKA, Cli
from magicbyte import PartitionLog, _core
from magicbyte.damage import rescue
from magicbyte.errors import CorruptRecordError, RefusedError
from magicbyte.jobs.find.partitions import list_partitions
from magicbyte.state import leader_epochs_of
from unprivileged import run_unprivileged

pytestmark = pytest.mark.partitions("v2_none")

FIRST, MIDDLE, LAST = (f"{offset:020d}.log" for offset in (0, 104, 244))
CHECKPOINT = "leader-epoch-checkpoint"
Make = Callable[[Path], object]


def dangling(path: Path) -> None:
    path.symlink_to("/nowhere/at/all")


def loop(path: Path) -> None:
    path.symlink_to(path.name)


def unix_socket(path: Path) -> None:
    # The path of a socket must be short.
    here = os.getcwd()
    os.chdir(path.parent)
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(path.name)
    os.chdir(here)


def device(path: Path) -> None:
    path.symlink_to("/dev/zero")


KINDS: dict[str, tuple[Make, str]] = {
    "dangling": (dangling, "it is a symbolic link that leads nowhere"),
    "loop": (loop, "symbolic link"),
    "fifo": (os.mkfifo, "it is a FIFO, not a regular file"),
    "socket": (unix_socket, "it is a socket, not a regular file"),
    "directory": (Path.mkdir, "it is a directory, not a regular file"),
    "device": (device, "it is a device, not a regular file"),
}


@pytest.fixture(params=KINDS)
def unusual(request: pytest.FixtureRequest, source: Path) -> tuple[Path, str]:
    """A partition whose middle segment is not a regular file, and what it is instead."""
    make, what = KINDS[request.param]
    partition = source / "v2_none"
    (partition / MIDDLE).unlink()
    make(partition / MIDDLE)
    return partition, what


def names_of(listing: Any) -> list[str]:
    return sorted(one["file"] for name in ("segments", "sidecars", "ignored") for one in listing[name])


def problems_of(found: Any) -> list[tuple[str, str | None]]:
    return sorted((one["kind"], one["segment"]) for one in found["problems"])


def read_to_the_end(log: PartitionLog, isolation_level: Any) -> tuple[list[int], CorruptRecordError]:
    """The offsets before the error, and the error."""
    seen = []
    try:
        for record in log.records(isolation_level=isolation_level):
            seen.append(record.offset)
    except CorruptRecordError as error:
        return seen, error
    raise AssertionError("the log was read as if it were whole")


def test_verify_names_it(unusual: tuple[Path, str], cli: Cli) -> None:
    partition, what = unusual
    (listing,) = list_partitions([str(partition)])
    assert names_of(listing) == sorted(os.listdir(partition))
    assert {"file": MIDDLE, "size": 0, "reason": "unreadable"} in listing["ignored"]

    found = cli.json("verify", partition, code=1)
    assert problems_of(found) == [("file_unreadable", MIDDLE), ("missing_segment", LAST)]
    assert what in found["problems"][0]["message"]
    assert found["balanced"]
    assert found["total"]["problems"] == 2
    assert found["total"]["rows"] == 346 - 140
    assert f"{MIDDLE}: cannot be read: " in cli("verify", partition, code=1)


def test_every_command_reports_it(unusual: tuple[Path, str], cli: Cli, tmp_path: Path) -> None:
    partition, what = unusual
    cli("explain", "--engine", "local", partition, code=1)
    for command in ("stats", "rescue", "dump"):
        cli(command, partition, code=1)
    assert what in cli("rescue", partition, code=1)
    for command in (["records"], ["dump", "--bytes"], ["dump"]):
        cli(*command, partition, code=1)
        assert what in cli.error
    assert what in cli("verify", "--indexes", partition, code=1)
    for number, command in enumerate(("ingest", "convert", "compact", "recover")):
        found = cli.json(command, "--engine", "local", partition, tmp_path / f"out{number}", code=1)
        assert found["total"]["problems"] == 2
    for command in (["compact"], ["redact", "--key", "nobody"]):
        arguments = ["--engine", "local", "--mode", "FAILFAST", partition, tmp_path / "none"]
        cli(*command, *arguments, code=3)
        assert what in cli.error


def test_given_by_its_name(unusual: tuple[Path, str], cli: Cli) -> None:
    partition, _ = unusual
    if (partition / MIDDLE).is_dir() or not (partition / MIDDLE).exists():
        return  # a directory of partitions; refused by click
    for command in (["dump"], ["records"], ["dump", "--bytes"]):
        assert cli(*command, partition / MIDDLE, partition / FIRST, code=1)
        assert str(partition / MIDDLE) in cli.error
    with pytest.raises(OSError, match="not a regular file"):
        PartitionLog(partition / MIDDLE)


@pytest.mark.parametrize("isolation_level", ["read_uncommitted", "read_committed"])
def test_a_log_raises_where_it_is_reached(unusual: tuple[Path, str], isolation_level: Any) -> None:
    partition, what = unusual
    log = PartitionLog(partition)
    seen, error = read_to_the_end(log, isolation_level)
    assert what in str(error)
    assert error.kind == "file_unreadable"
    assert seen == list(range(104))
    with pytest.raises(CorruptRecordError, match=what):
        list(log.batches(isolation_level=isolation_level))
    # Files that were not asked for may be missing.
    for start, end in ((0, 104), (244, None), (300, 320)):
        read = log.records(start, None, isolation_level, end_offset=end)
        assert [record.offset for record in read] == list(range(start, end or 346))
    log = PartitionLog(partition, mode="PERMISSIVE")
    records = log.records(isolation_level=isolation_level)
    assert [record.offset for record in records] == [*range(104), *range(244, 346)]
    assert ("file_unreadable", MIDDLE) in problems_of({"problems": records.problems})
    assert log.verify(isolation_level).sums["problems"] == 2
    with pytest.raises(OSError, match=what):
        leader_epochs_of(partition)


@pytest.mark.parametrize("name", [FIRST, LAST])
def test_at_either_end_of_a_log(source: Path, cli: Cli, name: str) -> None:
    """A missing file at an end leaves no hole between two segments that would reveal it."""
    partition = source / "v2_none"
    (partition / name).unlink()
    os.mkfifo(partition / name)
    assert problems_of(cli.json("verify", partition, code=1)) == [("file_unreadable", name)]
    with pytest.raises(CorruptRecordError, match="FIFO"):
        list(PartitionLog(partition).records())


def test_the_only_segment(source: Path, cli: Cli) -> None:
    """A directory is a partition because of its names, whatever kind of file they belong to."""
    partition = source / "v2_none"
    for path in partition.glob("*.log"):
        path.unlink()
        path.mkdir()
    found = cli.json("verify", source, code=1)
    assert problems_of(found) == [("file_unreadable", name) for name in (FIRST, MIDDLE, LAST)]


def test_other_names_are_ignored_with_a_reason(source: Path, cli: Cli) -> None:
    partition = source / "v2_none"
    (partition / "subdirectory").mkdir()
    os.mkfifo(partition / "pipe")
    (partition / f"{MIDDLE}.deleted").mkdir()
    Path(os.fsdecode(os.fsencode(partition) + b"/not-\xff-utf8")).touch()
    (listing,) = list_partitions([str(partition)])
    reasons = {one["file"]: one["reason"] for one in listing["ignored"] if one["reason"] != "foreign"}
    assert reasons == {
        "rebuilt": "directory",
        "subdirectory": "directory",
        "pipe": "special",
        f"{MIDDLE}.deleted": "directory",
    }
    assert {"file": r"not-\xff-utf8", "size": 0, "reason": "foreign"} in listing["ignored"]
    cli("verify", partition)
    dangling(partition / "nobody-knows")
    assert problems_of(cli.json("verify", partition, code=1)) == [("file_unreadable", "nobody-knows")]


@pytest.mark.partitions("v2_none", "v2_txn")
def test_directories_that_cannot_be_looked_into(source: Path, tmp_path: Path, cli: Cli) -> None:
    (source / "v2_txn").rename(source / "gone-3")
    dangling(source / "linked-1")
    loop(source / "round-2")
    found = cli.json("verify", source, code=1)
    places = {(one["topic"], one["partition"]): one["message"] for one in found["problems"]}
    assert sorted(places) == [("linked", 1), ("round", 2)]
    assert places["linked", 1] == (
        f"{source}/linked-1 cannot be listed: it is a symbolic link that leads nowhere"
    )
    assert {one["kind"] for one in found["problems"]} == {"directory_unreadable"}
    assert found["total"]["rows"] > 346
    for command in ("ingest", "convert", "compact"):
        report = cli.json(command, "--engine", "local", source, tmp_path / command, code=1)
        assert report["total"]["problems"] == 2
    cli("explain", "--engine", "local", source, code=1)
    for command in ("stats", "rescue", "dump"):
        cli(command, source, code=1)
    # The same partition on another disk is read, and the link is still a problem.
    (source / "disk2").mkdir()
    (source / "gone-3").rename(source / "disk2" / "linked-1")
    report = cli.json("convert", "--engine", "local", source, tmp_path / "merged", code=1)
    assert (report["total"]["problems"], len(report["partitions"])) == (2, 3)


def test_permissions(source: Path, tmp_path: Path) -> None:
    def verified(*, code: int) -> Any:
        done = run_unprivileged("-m", "magicbyte", "verify", "--json", source)
        assert done.returncode == code, done.stderr
        return json.loads(done.stdout)

    partition = source / "v2_none"
    shutil.rmtree(partition / "rebuilt")
    size = (partition / MIDDLE).stat().st_size
    (partition / MIDDLE).chmod(0)
    (partition / f"{104:020d}.index").unlink()
    (partition / f"{0:020d}.index").chmod(0)
    (partition / CHECKPOINT).chmod(0)
    (source / "closed-7").mkdir(mode=0)
    found = verified(code=1)
    assert problems_of(found) == [
        ("directory_unreadable", None),
        ("file_unreadable", f"{0:020d}.index"),
        ("file_unreadable", MIDDLE),
        ("file_unreadable", CHECKPOINT),
    ]
    assert found["balanced"]
    assert found["total"]["quarantined_bytes"] == size
    assert found["total"]["rows"] == 346 - 140
    (lost,) = [one for one in found["problems"] if one["segment"] == MIDDLE]
    assert (lost["first_lost_offset"], lost["last_lost_offset"]) == (104, 243)
    assert "Permission denied" in lost["message"]
    out = tmp_path / "out"
    done = run_unprivileged("-m", "magicbyte", "compact", "--engine", "local", source, out)
    assert done.returncode == 1, done.stderr
    # An empty file shows nothing about its content, but being unreadable is a problem.
    (partition / MIDDLE).chmod(0o644)
    (partition / MIDDLE).write_bytes(b"")
    (partition / MIDDLE).chmod(0)
    assert ("file_unreadable", MIDDLE) in problems_of(verified(code=1))
    partition.chmod(0o444)
    try:
        found = verified(code=1)
        (one,) = [one for one in found["partitions"] if one["topic"] == "v2_none"]
        assert {one["segment"] for one in found["problems"]} >= {FIRST, MIDDLE, LAST}
        assert {name["file"] for name in one["ignored"]} == set(os.listdir(partition))
    finally:
        partition.chmod(0o755)
    done = run_unprivileged("-m", "magicbyte", "verify", source / "closed-7")
    assert done.returncode == 2
    assert "is not readable" in done.stderr


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        *((CHECKPOINT, kind) for kind in (*KINDS, "huge")),
        *((f"{0:020d}.index", kind) for kind in ("fifo", "device", "huge")),
        ("partition.metadata", "fifo"),
        (f"{104:020d}.snapshot", "directory"),
    ],
)
def test_sidecars(source: Path, cli: Cli, tmp_path: Path, name: str, kind: str) -> None:
    partition = source / "v2_none"
    path = partition / name
    path.unlink(missing_ok=True)
    if kind == "huge":
        with path.open("wb") as file:
            file.truncate((64 << 20) + 1)
    else:
        KINDS[kind][0](path)
    found = cli.json("verify", partition, code=1)
    reported = "limit_exceeded" if kind == "huge" else "file_unreadable"
    assert problems_of(found) == [(reported, name)]
    assert found["total"]["rows"] == 346
    cli("compact", "--engine", "local", partition, tmp_path / "compacted", code=1)
    leader_epochs_of(partition)
    _core.rebuild_sidecars(str(partition), dry_run=True)
    assert [record.offset for record in PartitionLog(partition).records(300)] == list(range(300, 346))
    if path.exists() and not path.is_dir():
        for command in (["dump"], ["dump", "--json"]):
            printed = cli(*command, path, partition / f"{104:020d}.index", code=1)
            assert str(path) in cli.error
            assert "104" in printed


def test_checkpoints_of_the_cleaner_are_sidecars(source: Path, cli: Cli, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    cli(
        "compact", "--engine", "local", "--checkpoint", tmp_path / "pipe",
        source, tmp_path / "out", code=None,
    )  # fmt: skip
    assert cli.code in (2, 3)
    assert "a FIFO, not a regular file" in cli.error


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", None),
        ("0\n", None),
        ("0\n0\n", None),
        ("1\n0\n", "unknown version"),
        ("0\n2\n0 0\n", "count"),
        ("0\n1\nnonsense\n", "not an epoch and an offset"),
        ("\udcff\udcfe", "unknown version"),
    ],
)
def test_checkpoints_are_read(source: Path, cli: Cli, text: str, problem: str | None) -> None:
    """As a broker reads them: an empty file has no epochs."""
    (source / "v2_none" / CHECKPOINT).write_bytes(os.fsencode(text))
    found = cli.json("verify", source, code=0 if problem is None else 1)
    assert problems_of(found) == ([] if problem is None else [("invalid_sidecar", CHECKPOINT)])
    assert problem is None or problem in found["problems"][0]["message"]
    assert found["total"]["rows"] == 346


def test_paths_that_are_not_utf8(source: Path, cli: Cli, tmp_path: Path) -> None:
    """Plans travel as JSON: such a path is refused by name, or becomes a problem if it was only found."""
    raw = Path(os.fsdecode(os.fsencode(source) + b"/t\xff-0"))
    (source / "v2_none").rename(source / "fine-0")
    raw.mkdir()
    (raw / FIRST).write_bytes((KAFKA / "v2_none" / FIRST).read_bytes())
    found = cli.json("verify", source, code=1)
    (problem,) = found["problems"]
    assert (problem["kind"], problem["topic"]) == ("directory_unreadable", r"t\xff")
    assert r"t\xff-0 cannot be listed: the path is not UTF-8" in problem["message"]
    assert found["total"]["rows"] == 346
    with pytest.raises(RefusedError, match="the path is not UTF-8"):
        list_partitions([str(raw)])
    with pytest.raises(OSError, match="the path is not UTF-8"):
        PartitionLog(raw)
    with pytest.raises(OSError, match="the path is not UTF-8"):
        list(rescue(raw))
    for command in (["verify"], ["dump"], ["explain", "--engine", "local"], ["stats"], ["rescue"]):
        cli(*command, raw, code=2)
        assert "the path is not UTF-8" in cli.error
    cli("dump", raw / FIRST, code=2)
    out = Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff"))
    for command in ("ingest", "convert", "compact"):
        cli(command, "--engine", "local", source / "fine-0", out, code=2)
        assert "the path is not UTF-8" in cli.error
    assert not out.exists()
    # A link to it is a workaround.
    raw.rename(source.parent / raw.name)
    (source / "link-0").symlink_to(source.parent / raw.name)
    assert cli.json("verify", source)["total"]["rows"] == 346 + 104


@pytest.mark.parametrize("isolation_level", ["read_uncommitted", "read_committed"])
def test_a_log_raises_for_a_missing_segment(source: Path, isolation_level: Any) -> None:
    partition = source / "v2_none"
    (partition / MIDDLE).unlink()
    log = PartitionLog(partition)
    seen, error = read_to_the_end(log, isolation_level)
    assert "offsets 104..=243" in str(error)
    assert error.kind == "missing_segment"
    assert seen == list(range(104))
    for start, end in ((50, 110), (150, 160), (150, 250), (243, 244)):
        with pytest.raises(CorruptRecordError, match=re.escape("offsets 104..=243")):
            list(log.records(start, None, isolation_level, end_offset=end))
    for start, end in ((0, 104), (244, 346)):
        read = log.records(start, None, isolation_level, end_offset=end)
        assert [record.offset for record in read] == list(range(start, end))
    records = PartitionLog(partition, mode="PERMISSIVE").records(isolation_level=isolation_level)
    assert [record.offset for record in records] == [*range(104), *range(244, 346)]
    assert problems_of({"problems": records.problems}) == [("missing_segment", MIDDLE)]


@pytest.mark.parametrize("name", ["v2_compacted", "v1_compacted_codecs", "v2_tombstones", "v2_trimmed"])
def test_compacted_logs_lack_offsets_and_no_segment(name: str) -> None:
    list(PartitionLog(KAFKA / name).records())


def test_spark(source: Path) -> None:
    pytest.importorskip("pyspark", minversion="4.2")
    from magicbyte.spark.options import parse_options
    from magicbyte.spark.reader import MagicbyteReader

    partition = source / "v2_none"
    (partition / LAST).unlink()
    os.mkfifo(partition / LAST)
    dangling(source / "linked-1")

    def rows(table: str, column: str, **options: str) -> list[Any]:
        given = {"path": str(source), "table": table, **options}
        reader = MagicbyteReader(parse_options(given), (column,))
        batches = [batch for part in reader.partitions() for batch in reader.read(part)]
        return [value for batch in batches for value in batch[column].to_pylist()]

    assert rows("records", "offset") == list(range(244))
    assert sorted(rows("problems", "kind")) == ["directory_unreadable", "file_unreadable"]
    assert "ignored:unreadable" in rows("segments", "state")
    with pytest.raises(CorruptRecordError, match="cannot be"):
        rows("records", "offset", mode="FAILFAST")


def test_streams(source: Path, caplog: pytest.LogCaptureFixture) -> None:
    pytest.importorskip("pyspark", minversion="4.2")
    from magicbyte.errors import JobError
    from magicbyte.spark.options import parse_stream_options
    from magicbyte.spark.stream import MagicbyteStreamReader

    def reader(**options: str) -> MagicbyteStreamReader:
        given = {"path": str(source), "startingOffsets": "earliest", **options}
        return MagicbyteStreamReader(parse_stream_options(given), ("offset",))

    assert reader().initialOffset()["v2_none"] == {"0": 0}
    os.mkfifo(source / "v2_none" / f"{346:020d}.log")
    with pytest.raises(JobError, match=r"FIFO.*failOnDataLoss"):
        reader().initialOffset()
    assert reader(failOnDataLoss="false").initialOffset()["v2_none"] == {"0": 0}
    assert "FIFO" in caplog.text
    (source / "v2_none" / f"{346:020d}.log").unlink()
    dangling(source / "linked-1")
    with pytest.raises(JobError, match="leads nowhere"):
        reader().initialOffset()
