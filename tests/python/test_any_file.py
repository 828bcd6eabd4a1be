"""Sources of any kind: one file of any name, a pipe, no log at all, a volume with hidden directories."""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
import shutil
import subprocess
import sys
import threading
import zipfile
from pathlib import Path

import magicbyte
import pytest
from conftest import KAFKA, Cli
from magicbyte.options.values import TIME

SEGMENT = KAFKA / "v2_none" / f"{0:020d}.log"
NAMES = (
    "copy.log", "segment.bin", "f0001", "#131001", f"{0:020d}.log.txt", f"{0:020d} (1).log",
    f"{0:020d}.log.bak",
    f"{0:020d}.log.deleted", f"{0:020d}.log.swap", f"{0:020d}.index", "leader-epoch-checkpoint", "-0.log",
)  # fmt: skip


def count() -> int:
    return sum(len(list(batch)) for batch in magicbyte.read_batches(SEGMENT.read_bytes()))


@pytest.mark.parametrize("name", NAMES)
def test_any_name(cli: Cli, tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    shutil.copyfile(SEGMENT, path)
    if name.endswith((".index", "checkpoint")):
        # The names of Kafka's other files are believed: their bytes are no batches.
        cli("records", path, code=2)
        return
    assert len(cli.records(path)) == count()
    assert cli.json("verify", path)["total"]["rows"] == count()
    cli("stats", path)


@pytest.mark.parametrize("partition", ["v0_none", "v1_gzip", "v2_zstd"])
def test_any_magic(cli: Cli, tmp_path: Path, partition: str) -> None:
    segment = sorted((KAFKA / partition).glob("*.log"))[0]
    shutil.copyfile(segment, tmp_path / "sent by mail")
    rows = [cli.records(path) for path in (tmp_path / "sent by mail", segment)]
    assert [row["offset"] for row in rows[0]] == [row["offset"] for row in rows[1]]


@pytest.mark.parametrize("content", [b"", b"x", bytes(100), b"not a log" * 100, b"\xff" * 5000])
def test_other_content(cli: Cli, tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "file"
    path.write_bytes(content)
    cli("verify", path, code=2)
    assert "nor begins with a batch" in cli.error
    for opened in (magicbyte.PartitionLog, magicbyte.Log):
        with pytest.raises(magicbyte.RefusedError, match=f"{path} .* nor begins with a batch"):
            opened(path)


@pytest.mark.parametrize("name", [f"{0:020d}.index", f"{0:020d}.timeindex", "leader-epoch-checkpoint"])
def test_sidecars_are_no_logs(name: str) -> None:
    with pytest.raises(magicbyte.RefusedError, match="nor begins with a batch"):
        magicbyte.PartitionLog(KAFKA / "v2_none" / name)


def test_an_archive_is_no_log(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "logs", "w") as archive:
        archive.write(SEGMENT)
    with pytest.raises(magicbyte.RefusedError, match="a zip archive"):
        magicbyte.PartitionLog(tmp_path / "logs")


def test_an_empty_segment_is_a_log(tmp_path: Path) -> None:
    (tmp_path / SEGMENT.name).touch()
    assert list(magicbyte.PartitionLog(tmp_path / SEGMENT.name).records()) == []


def run(source: str, stdin: bytes, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-m", "magicbyte", *(arguments or ["records"]), source]
    return subprocess.run(command, input=stdin, capture_output=True, timeout=120, check=False)


@pytest.mark.skipif(sys.platform == "win32", reason="reads pipes")
@pytest.mark.parametrize("source", ["-", "/dev/stdin", "/dev/fd/0"])
@pytest.mark.parametrize("ending", ["", ".gz"])
def test_standard_input(source: str, ending: str, tmp_path: Path) -> None:
    data = SEGMENT.read_bytes()
    done = run(source, gzip.compress(data) if ending else data)
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) == count()


@pytest.mark.skipif(sys.platform == "win32", reason="makes a FIFO")
def test_a_fifo(cli: Cli, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for command in ("records", "verify", "dump"):
        writer = threading.Thread(target=lambda: pipe.write_bytes(SEGMENT.read_bytes()))
        writer.start()
        assert cli(command, pipe)
        writer.join()


@pytest.mark.parametrize(
    ("stdin", "why"), [(b"", "begins with a batch"), (b"PK\x03\x04" + bytes(9), "zip archive")]
)
@pytest.mark.parametrize("source", ["-", "/dev/stdin"])
@pytest.mark.parametrize("command", ["records", "verify", "stats", "explain"])
def test_standard_input_without_a_segment(stdin: bytes, why: str, source: str, command: str) -> None:
    done = run(source, stdin, command)
    assert done.returncode == 2
    assert why in done.stderr.decode()
    assert done.stderr.decode().startswith(f"magicbyte: {source} ")


@pytest.mark.parametrize("arguments", [["dump"], ["verify", "--json"], ["explain"]])
def test_standard_input_is_named_as_it_is_given(arguments: list[str]) -> None:
    done = run("-", SEGMENT.read_bytes()[:-5], *arguments)
    assert "magicbyte-" not in (done.stdout + done.stderr).decode()
    assert {"dump": "Dumping -\n", "verify": '"-"', "explain": "stdin-0  -\n"}[arguments[0]] in (
        done.stdout.decode()
    )


def test_a_pipe_is_given_once(cli: Cli, tmp_path: Path) -> None:
    for command in (["records"], ["verify"], ["diff"]):
        done = run("-", SEGMENT.read_bytes(), *command, "-")
        assert done.returncode == 2
        assert "Error: - is given twice, but a pipe can be read only once\n" in done.stderr.decode()
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=lambda: pipe.write_bytes(SEGMENT.read_bytes()))
    writer.start()
    cli("verify", pipe, pipe, code=2)
    writer.join()
    assert f"{pipe} is given twice" in cli.error


def test_archives_that_are_not_read(cli: Cli, tmp_path: Path) -> None:
    data = SEGMENT.read_bytes()
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("t-0/00000000000000000000.log", data)
    (tmp_path / "a.tar.xz").write_bytes(lzma.compress(data))
    (tmp_path / "a.tar.bz2").write_bytes(bz2.compress(data))
    (tmp_path / "a.7z").write_bytes(b"7z\xbc\xaf\x27\x1c" + bytes(100))
    (tmp_path / "a.rar").write_bytes(b"Rar!\x1a\x07\x01\0" + bytes(100))
    (tmp_path / "a.lzo").write_bytes(b"\x89LZO\0\r\n\x1a\n" + bytes(100))
    for name, word in {
        "a.zip": "zip", "a.tar.xz": "xz", "a.tar.bz2": "bzip2", "a.7z": "7z", "a.rar": "rar", "a.lzo": "lzop",
    }.items():  # fmt: skip
        for command in ("verify", "records", "stats"):
            cli(command, tmp_path / name, code=2)
            message = cli.error.replace(str(tmp_path), "").replace(name, "")
            assert word in message, name
            assert "archive" in message, name


def test_files_of_other_products(cli: Cli, tmp_path: Path) -> None:
    redpanda = tmp_path / "a" / "0-1-v1.log"
    backup = tmp_path / "b" / "segment_partition_000_from_offset_0000000000_records"
    for path, product in ((redpanda, "Redpanda"), (backup, "kafka-backup")):
        path.parent.mkdir()
        path.write_bytes(bytes(100))
        for source in (path, path.parent):
            cli("verify", source, code=2)
            assert product in cli.error
            assert str(path) in cli.error


HIDDEN = (
    ".snapshot/hourly.0", ".zfs/snapshot/daily", ".Trash-1000/files", ".kafka-old", "lost+found", "@eaDir",
    "#snapshot/nightly", "System Volume Information",
)  # fmt: skip


@pytest.mark.parametrize("hidden", HIDDEN)
def test_copies_in_hidden_directories(cli: Cli, tmp_path: Path, hidden: str) -> None:
    logs = tmp_path / "logs"
    shutil.copytree(KAFKA / "v2_none", logs / "t-0")
    shutil.copytree(KAFKA / "v2_none", logs / hidden / "t-0")
    total = len(cli.records(logs / "t-0"))
    assert len(cli.records(logs)) == total
    cli("ingest", "--engine", "local", logs, tmp_path / "out")
    # Whoever names it means it.
    assert len(cli.records(logs / hidden)) == total
    archive = shutil.make_archive(str(tmp_path / "a"), "tar", logs)
    assert len(cli.records(archive)) == total


def test_a_topic_may_begin_with_a_dot(cli: Cli, tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    shutil.copytree(KAFKA / "v2_none", logs / ".orders-0")
    assert cli.json("verify", logs)["partitions"][0]["topic"] == ".orders"


@pytest.mark.parametrize(
    ("text", "millis"),
    [
        ("1714521600", 1_714_521_600_000),
        ("1714521600000", 1_714_521_600_000),
        ("2024-05-01", 1_714_521_600_000),
        ("999999999", 999_999_999),
        ("100000000000", 100_000_000_000),
        ("-1714521600", -1_714_521_600),
    ],
)
def test_times_in_seconds(text: str, millis: int) -> None:
    assert TIME.parse(text) == millis
