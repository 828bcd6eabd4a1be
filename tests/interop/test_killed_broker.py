"""The whole directory of a killed broker, intact and then damaged, goes through every command."""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import magicbyte
import pytest
from kafka_broker import CLUSTER, Broker
from magicbyte import Compression
from magicbyte.cli import main
from magicbyte.log_dir import read_offset_checkpoint
from raw_client import RawClient

pytestmark = pytest.mark.interop

HIGH_WATERMARKS = "replication-offset-checkpoint"
SMALL = "internal.segment.bytes=16384 segment.index.bytes=65536 retention.ms=-1"
POLICIES = {
    "compacted": f"cleanup.policy=compact min.cleanable.dirty.ratio=1.0 {SMALL}",
    "deleted": f"cleanup.policy=delete {SMALL}",
    "both": f"cleanup.policy=compact,delete min.cleanable.dirty.ratio=1.0 {SMALL}",
    "transactions": f"cleanup.policy=delete {SMALL}",
}
BATCHES, RECORDS = 40, 25
"""For each topic without transactions."""


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of a broker after kill -9, which tests must not modify."""
    node = Broker(
        tmp_path_factory.mktemp("killed"),
        topics=1,
        settings="replica.high.watermark.checkpoint.interval.ms=200",
    )
    node.start()
    try:
        node.create_topics(POLICIES)
        client = RawClient(node.port)
        deadline = time.monotonic() + 60
        while any(client.fetch(name, 0, 1, committed=False)["code"] for name in POLICIES):
            assert time.monotonic() < deadline, "the topics have no leader"
        for name in POLICIES.keys() - {"transactions"}:
            for number in range(BATCHES):
                assert client.produce(name, batch(name, number))["code"] == 0
        client.close()
        node.transact("transactions")
        checkpoint = node.logs / HIGH_WATERMARKS
        while any(read_offset_checkpoint(checkpoint).get((name, 0), 0) < least(name) for name in POLICIES):
            assert time.monotonic() < deadline, "the broker writes no checkpoint"
            time.sleep(0.1)
    finally:
        node.kill()
    return node.logs


def batch(topic: str, number: int) -> bytes:
    codec = list(Compression)[number % 5]
    builder = magicbyte.RecordsBuilder(compression=codec)
    for index in range(RECORDS):
        key = None if topic == "deleted" and index % 5 == 0 else f"key{index}".encode()
        builder.append(index, round(time.time() * 1000), key, os.urandom(100))
    return builder.build()


def least(topic: str) -> int:
    return 1 if topic == "transactions" else BATCHES * RECORDS


@pytest.fixture
def logs(killed: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(killed, tmp_path / "logs"))


Run = Callable[..., str]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    def command(*arguments: object, codes: tuple[int, ...] = (0, 1)) -> str:
        code = main([str(argument) for argument in arguments])
        out, error = capsys.readouterr()
        assert code in codes, (arguments, code, error)
        assert "Traceback" not in out + error, error
        return str(out)

    return command


def every_command(run: Run, logs: Path, out: Path) -> None:
    """Runs all commands; their output must have no damage."""
    for command in ("verify", "stats", "explain", "records", "dump"):
        assert run(command, logs)
    assert run("verify", "--indexes", logs)
    assert run("dump", "--bytes", "--max-records", 1, logs)
    files = [path for path in logs.rglob("*") if path.suffix in (".index", ".timeindex", ".snapshot")]
    assert run("dump", "--json", *files)
    assert run("topics", logs)
    assert run("stats", "--fields", logs)
    assert run("advise", "--windows", 4, "--window-bytes", "64k", logs)
    run("rescue", logs, out / "saved")
    run("ingest", logs, out / "tables")
    for name, options in {
        "recover": [],
        "convert": ["--compression", "zstd"],
        "compact": ["--all-topics"],
        "redact": ["--key", "key3"],
    }.items():
        run(name, *options, logs, out / name)
        report = json.loads(run("verify", "--json", out / name))
        # A cleaned log keeps its segments' names, so lost segments stay missing.
        assert {one["kind"] for one in report["problems"]} <= {"missing_segment"}, name


def verified(run: Run, logs: Path, code: int) -> dict[str, Any]:
    report: dict[str, Any] = json.loads(run("verify", "--json", logs, codes=(code,)))
    assert report["balanced"]
    return report


def test_an_intact_directory(run: Run, logs: Path, tmp_path: Path) -> None:
    report = verified(run, logs, 0)
    (log_dir,) = report["log_dirs"]
    marks = read_offset_checkpoint(logs / HIGH_WATERMARKS)
    assert log_dir["broker_id"] == 1
    assert log_dir["cluster_id"] == CLUSTER
    assert not log_dir["clean_shutdown"]
    assert {(one["topic"], one["partition"]) for one in log_dir["partitions"]} >= marks.keys()
    assert log_dir["offsets"] == log_dir["offsets_held"] == sum(marks.values())
    ends = {(one["topic"], one["partition"]): one["next_offset"] for one in log_dir["partitions"]}
    assert all(ends[name] >= mark for name, mark in marks.items() if mark)
    before = {path: path.stat().st_mtime_ns for path in logs.rglob("*")}
    every_command(run, logs, tmp_path)
    assert {path: path.stat().st_mtime_ns for path in logs.rglob("*")} == before


def test_a_damaged_directory(run: Run, logs: Path, tmp_path: Path) -> None:
    marks = read_offset_checkpoint(logs / HIGH_WATERMARKS)

    def segments(topic: str) -> list[Path]:
        found = sorted((logs / f"{topic}-0").glob("*.log"))
        assert len(found) > 3, topic
        return found

    lost = 0
    # A first segment without its sidecars, and a last one with all of its files.
    first, second = segments("compacted")[:2]
    first.unlink()
    lost += int(second.stem) - int(first.stem)
    last = segments("deleted")[-1]
    for path in last.parent.glob(f"{last.stem}.*"):
        path.unlink()
    lost += marks["deleted", 0] - int(last.stem)
    # A compressed segment in the middle.
    segment, following = segments("both")[1:3]
    segment.rename(f"{segment}.zst")
    lost += int(following.stem) - int(segment.stem)
    # A segment that cannot be read.
    unreadable, after = segments("both")[-2:]
    unreadable.unlink()
    os.mkfifo(unreadable)
    lost += int(after.stem) - int(unreadable.stem)
    # A missing partition, and directories that are not part of the log.
    shutil.rmtree(logs / "transactions-0")
    lost += marks["transactions", 0]
    for state in ("future", "stray", "delete"):
        shutil.copytree(logs / "deleted-0", logs / f"deleted-0.0f3e5c-{state}")

    report = verified(run, logs, 1)
    (log_dir,) = report["log_dirs"]
    assert log_dir["missing_partitions"] == 1
    assert log_dir["offsets"] == sum(marks.values())
    assert log_dir["offsets_held"] == sum(marks.values()) - lost
    kinds = {(one["topic"], one["kind"]) for one in report["problems"]}
    assert kinds >= {
        ("compacted", "missing_segment"),
        ("deleted", "checkpoint_beyond_log"),
        ("both", "missing_segment"),
        ("both", "file_unreadable"),
        ("transactions", "partition_missing"),
        ("transactions", "checkpoint_beyond_log"),
    }
    assert sorted(one["state"] for one in report["skipped"]) == ["deleted", "future", "stray"]
    every_command(run, logs, tmp_path)
