"""Logs in archives, in compressed segments, on web servers and in fsspec's file systems."""

from __future__ import annotations

import gzip
import io
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import magicbyte
import pyarrow as pa
import pytest
from conftest import KAFKA, Cli
from magicbyte import Log, PartitionLog, mount_storage
from magicbyte.jobs.find.partitions import find_inputs
from magicbyte.storage.mounts import mounted
from magicbyte.storage.options import StorageOptions
from web_server import web_server

ORDERS = ("v2_txn", "v2_zstd", "v1_compacted_codecs", "v0_lz4_large", "v2_torn_tail", "consumer_offsets_0")


def sums(source: object) -> tuple[Any, list[Any]]:
    """What was read, without the places."""
    report = magicbyte.verify(str(source))
    counts = [
        {key: one[key] for key in one if key not in ("path", "segments", "ignored")}
        for one in report["partitions"]
    ]
    return report["total"], counts


def packed(directory: Path, ending: str) -> Path:
    """Compresses the segments in place."""
    for path in directory.rglob("*.log"):
        data = path.read_bytes()
        half = len(data) // 2
        # Several members, or frames, one after the other, are one file.
        parts = [gzip.compress(part) if ending == "gz" else zstd(part) for part in (data[:half], data[half:])]
        Path(f"{path}.{ending}").write_bytes(b"".join(parts))
        path.unlink()
    return directory


def zstd(data: bytes) -> bytes:
    return pa.compress(data, "zstd", asbytes=True)


@pytest.fixture(scope="module")
def logs(kafka: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("logs") / "logs"
    for name in ORDERS:
        shutil.copytree(kafka / name, directory / f"{name}-3")
    return directory


@pytest.mark.parametrize("ending", ["tar", "tar.gz", "tgz", "tar.zst"])
def test_archives(logs: Path, tmp_path: Path, ending: str, cli: Cli) -> None:
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w") as tar:
        tar.add(logs, arcname="./var/kafka-logs")
    data = raw.getvalue()
    path = tmp_path / f"backup.{ending}"
    path.write_bytes(gzip.compress(data, 1) if "g" in ending else zstd(data) if "zst" in ending else data)
    assert sums(path) == sums(logs)
    inside = f"{path}/var/kafka-logs/v2_txn-3"
    with PartitionLog(inside) as log, PartitionLog(logs / "v2_txn-3") as plain:
        assert (log.topic, log.partition) == ("v2_txn", 3)
        assert pa.table(log) == pa.table(plain)
        assert [one.offset for one in log.records(30)] == [one.offset for one in plain.records(30)]
    assert len(Log(path)) == len(ORDERS)
    assert cli("records", inside) == cli("records", logs / "v2_txn-3")
    name = "00000000000000000000"
    shown = cli("dump", f"{inside}/{name}.log", f"{inside}/{name}.index")
    plain_text = cli("dump", logs / f"v2_txn-3/{name}.log", logs / f"v2_txn-3/{name}.index")
    assert shown == plain_text.replace(str(logs / "v2_txn-3"), inside)
    cli("ingest", path, tmp_path / "tables", code=None)
    assert cli.code == 1  # the torn tail
    assert cli.json("explain", inside, code=None)["partitions"][0]["topic"] == "v2_txn"
    with pytest.raises(FileNotFoundError):
        PartitionLog(f"{path}/var/nothing-0")


def test_an_archive_of_one_partition(logs: Path, tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "v2_zstd-3.tar", "w") as tar:
        tar.add(logs / "v2_zstd-3", arcname=".")
    log = PartitionLog(tmp_path / "v2_zstd-3.tar")
    assert log.name == "v2_zstd-3"
    assert pa.table(log) == pa.table(PartitionLog(logs / "v2_zstd-3"))


def test_strange_archives(logs: Path, tmp_path: Path) -> None:
    data = (logs / "v2_zstd-3" / f"{0:020d}.log").read_bytes()
    with tarfile.open(tmp_path / "links.tar", "w") as tar:
        for number in (0, 500):
            member = tarfile.TarInfo(f"../../orders-0/{number:020d}.log")
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))
        link = tarfile.TarInfo(f"../../orders-0/{0:020d}.log")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        tar.addfile(link)  # the later one of a name counts
    report = magicbyte.verify(str(tmp_path / "links.tar"))
    assert any("a link inside an archive" in one["message"] for one in report["problems"])
    whole = (tmp_path / "links.tar").read_bytes()
    for size in (1, 511, 513, 700, len(data) // 2, len(data) + 600):
        cut = tmp_path / f"cut{size}.tar"
        cut.write_bytes(whole[:size])
        with pytest.raises((OSError, ValueError)):
            magicbyte.verify(str(cut))
    huge = tarfile.TarInfo("x")
    huge.type, huge.size = tarfile.XHDTYPE, 1 << 40
    (tmp_path / "huge.tar").write_bytes(huge.tobuf(tarfile.USTAR_FORMAT | tarfile.GNU_FORMAT) + bytes(4096))
    with pytest.raises(OSError, match="extended header"):
        magicbyte.verify(str(tmp_path / "huge.tar"))


@pytest.mark.parametrize("ending", ["zst", "gz"])
def test_compressed_segments(logs: Path, tmp_path: Path, ending: str, cli: Cli) -> None:
    copy = packed(shutil.copytree(logs, tmp_path / "copy"), ending)
    assert sums(copy) == sums(logs)
    with PartitionLog(copy / "v2_zstd-3") as log:
        assert log.segments[0]["file"].endswith(f".log.{ending}")
        assert pa.table(log) == pa.table(PartitionLog(logs / "v2_zstd-3"))
    # Beside the segment itself, it is a copy.
    first = next((copy / "v2_zstd-3").glob(f"*.{ending}"))
    shutil.copy(logs / "v2_zstd-3" / first.name.removesuffix(f".{ending}"), copy / "v2_zstd-3")
    (one,) = cli.json("verify", copy / "v2_zstd-3")["partitions"]
    assert {file["file"]: file["reason"] for file in one["ignored"]}[first.name] == "compressed"


@pytest.mark.parametrize("ending", ["zst", "gz"])
def test_damaged_compressed_segments(logs: Path, tmp_path: Path, ending: str, cli: Cli) -> None:
    copy = packed(shutil.copytree(logs / "v2_zstd-3", tmp_path / "v2_zstd-3"), ending)
    first = min(copy.glob(f"*.{ending}"))
    data = first.read_bytes()
    for wrong in (data[:-1], data[: len(data) // 3], b"no " + data, b""):
        first.write_bytes(wrong)
        report = cli.json("verify", copy, code=None)
        assert cli.code in (0, 1)
        problems = [one for one in report["problems"] if one["segment"] == first.name]
        assert problems or not wrong, wrong[:10]
        assert all(one["kind"] == "file_unreadable" for one in problems)


@pytest.fixture
def web(logs: Path) -> Iterator[Any]:
    with web_server(logs.parent) as server:
        yield server


def test_a_web_server(web: Any, logs: Path, cli: Cli) -> None:
    url = f"http://127.0.0.1:{web.server_port}/logs"
    assert sums(url) == sums(logs)
    with PartitionLog(f"{url}/v2_txn-3") as log:
        assert pa.table(log) == pa.table(PartitionLog(logs / "v2_txn-3"))
    assert cli("records", f"{url}/v2_txn-3") == cli("records", logs / "v2_txn-3")
    one = f"{url}/v2_zstd-3/{0:020d}.log"
    assert PartitionLog(one).topic == "v2_zstd"
    cli("verify", f"{url}/nothing", code=None)
    assert cli.code in (2, 3)
    assert "nothing" in cli.error


def test_a_web_server_without_ranges(web: Any, cli: Cli) -> None:
    web.ranges = False
    cli("verify", f"http://127.0.0.1:{web.server_port}/logs", code=3)
    assert "does not answer with ranges" in cli.error


def refusal(prepare: str, *command: str) -> str:
    """What the command line says, in one line, in a process that is prepared by a statement."""
    program = f"import sys; {prepare}; from magicbyte.cli import main; sys.exit(main())"
    done = subprocess.run([sys.executable, "-c", program, *command], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (2, "")
    (line,) = done.stderr.splitlines()
    assert line.startswith("magicbyte: ")
    return line


@pytest.mark.parametrize(
    ("missing", "url", "says"),
    [
        ("obstore", "s3://bucket", "s3:// needs obstore: pip install 'magicbyte[cloud]'"),
        ("fsspec", "sftp://host", "sftp:// needs fsspec: pip install 'magicbyte[cloud]'"),
        ("hdfs_native", "hdfs://host:9000", "hdfs://host:9000 needs the package hdfs-native"),
    ],
)
def test_a_package_that_is_missing(missing: str, url: str, says: str) -> None:
    for command in (["verify", f"{url}/logs"], ["convert", str(KAFKA), f"{url}/out"]):
        assert says in refusal(f"sys.modules[{missing!r}] = None", *command)


def test_a_host_that_does_not_answer(cli: Cli) -> None:
    cli("verify", "ftp://127.0.0.1:9/logs", code=3)
    assert "Connection refused" in cli.error


def test_fsspec(logs: Path, tmp_path: Path, cli: Cli) -> None:
    fsspec = pytest.importorskip("fsspec")
    system = fsspec.filesystem("memory")
    system.put(f"{logs}/", "/kafka", recursive=True)
    assert sums("memory://kafka") == sums(logs)
    system.put(f"{logs}/", "/kafka/again", recursive=True)
    log = PartitionLog("memory://kafka/again/v2_zstd-3")
    path = f"/kafka/again/v2_zstd-3/{0:020d}.log"
    system.pipe(path, system.cat(path) + b"more")
    with pytest.raises(magicbyte.Error, match="changed"):
        list(log.records())
    cli("ingest", "memory://kafka", "--prefer", logs, tmp_path / "none", code=2)
    system.rm("/kafka/again", recursive=True)
    cli("ingest", "memory://kafka", tmp_path / "tables", code=1)
    cli("verify", "unheard-of://kafka/logs", code=2)
    assert "unheard-of" in cli.error
    assert "Traceback" not in cli.error


def test_a_source_that_is_given_twice(logs: Path, tmp_path: Path) -> None:
    shutil.copytree(next(path.parent for path in logs.rglob("*.log")), tmp_path / "orders-0")
    (tmp_path / "meta.properties").write_text("version=1\nbroker.id=1\n")
    for source in (str(tmp_path), f"local://{tmp_path}"):
        inputs = find_inputs([source, f"{source}/"])
        assert (len(inputs.listings), len(inputs.log_dirs)) == (1, 1)


def test_what_is_refused(tmp_path: Path, cli: Cli) -> None:
    for command in (
        ["compact", "s3://b/x", tmp_path / "o"],
        ["recover", "s3://b/x"],
    ):
        cli(*command, code=2)
        assert "local paths only" in cli.error
    cli("verify", "--storage-option", "region=x", tmp_path, code=2)
    assert "needs a SRC or TABLE that is a URL" in cli.error
    cli("verify", "--storage-option", "hunter2", "s3://b/x", code=2)
    assert "hunter2" not in cli.error
    cli("verify", "sftp://bob:hunter2@host/logs", code=2)
    assert "hunter2" not in cli.error
    cli("verify", "https://host/logs?X-Amz-Signature=hunter2", code=2)
    assert "hunter2" not in cli.error
    cli("verify", "--storage-option", "nonsense=hunter22", "s3://b/x", code=2)
    assert "nonsense" in cli.error
    assert "hunter22" not in cli.error


def test_options_are_not_shown() -> None:
    options = StorageOptions({"secret_access_key": "hunter2", "region": "here"})
    mount_storage("memory://secrets", options)
    assert "hunter2" not in f"{options!r} {options} {mounted()!r}"
    assert options.redacted("key hunter2 in here") == "key *** in here"
