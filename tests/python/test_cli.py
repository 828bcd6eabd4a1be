"""The command line: what it prints, and its exit codes."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import KAFKA, PARTITIONS, Cli
from digest import digest, expected, summary

DUMPS = KAFKA.parent / "dump"
TEXTS = sorted(path.stem for path in DUMPS.glob("*.txt") if "." not in path.stem)
SHA256 = dict(reversed(line.split()) for line in (DUMPS / "sha256sums").read_text().splitlines())


def damage(segment: Path) -> None:
    """Flips one bit in the middle."""
    data = bytearray(segment.read_bytes())
    data[len(data) // 2] ^= 1
    segment.write_bytes(data)


def damaged(name: str) -> int:
    """The exit code for a partition: a torn tail is a problem."""
    return 1 if name == "v2_torn_tail" else 0


@pytest.mark.parametrize("name", PARTITIONS)
def test_dump_jsonl(cli: Cli, name: str) -> None:
    lines = cli.lines(KAFKA / name, "--key-format", "hex", "--value-format", "hex", code=damaged(name))
    rows = [{**line, "timestampMillis": line["timestamp"]} for line in lines]
    assert digest(rows) == summary(KAFKA / name)["sha256"]


@pytest.mark.parametrize("name", PARTITIONS)
def test_dump_kafka(cli: Cli, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.chdir(KAFKA)
    output = cli("dump", name, code=damaged(name))
    if name in TEXTS:
        text = (DUMPS / f"{name}.txt").read_bytes().decode()
        assert output.split("\n") == text.split("\n")
    assert hashlib.sha256(output.encode()).hexdigest() == SHA256[name]


def test_dump_kafka_snapshot(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(KAFKA)
    output = cli("dump", "cluster_metadata/00000000000000001951-0000000005.checkpoint")
    assert output == (DUMPS / "cluster_metadata.checkpoint.txt").read_bytes().decode()


@pytest.mark.partitions("v2_none", "v2_txn")
def test_dump_of_a_tree(cli: Cli, source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(source.parent)
    output = cli("dump", "logs")
    assert "Dumping logs/v2_none/00000000000000000000.log\n" in output
    assert output.count("\n|") == 346 + 94
    assert len(cli.lines("logs")) == 346 + 78


def test_dump_ranges(cli: Cli) -> None:
    path = KAFKA / "v2_txn"
    offsets = [line["offset"] for line in expected(path) if not line["control"]]

    def dumped(*options: object) -> list[int]:
        return [line["offset"] for line in cli.lines(path, *options)]

    assert dumped() == offsets
    assert dumped("--start-offset", 10, "--end-offset", 20) == [o for o in offsets if 10 <= o < 20]
    assert dumped("--max-records", 3) == offsets[:3]
    assert dumped("--max-records", 0) == []
    late = [
        line["offset"]
        for line in expected(path)
        if not line["control"] and line["timestamp"] >= 1700000060000
    ]
    assert dumped("--start-timestamp", "2023-11-14T22:14:20") == late
    assert dumped("--start-timestamp", 1700000060000) == late
    assert dumped("--end-timestamp", "2023-11-14T22:14:20Z") == [o for o in offsets if o not in late]
    committed = [line["offset"] for line in expected(path, "committed.jsonl")]
    assert dumped("--isolation-level", "read_committed") == committed
    output = cli("dump", path, "--start-offset", 10, "--end-offset", 20)
    assert [int(line.split()[2]) for line in output.splitlines() if line.startswith("|")] == [
        line["offset"] for line in expected(path) if 10 <= line["offset"] < 20
    ]
    assert cli("dump", path, "--max-records", 2).count("\n|") == 2


def test_dump_batches(cli: Cli) -> None:
    path = KAFKA / "v2_txn"
    batches = expected(path, "batches.jsonl")
    lines = cli.lines(path, "--no-records")
    assert [(line["baseOffset"], line["crc"]) for line in lines] == [
        (batch["baseOffset"], batch["crc"]) for batch in batches
    ]
    output = cli("dump", path, "--no-records")
    assert output.count("baseOffset: ") == len(batches)
    assert "\n|" not in output


def test_dump_formats(cli: Cli) -> None:
    def values(form: str) -> list[str | None]:
        return [line["value"] for line in cli.lines(KAFKA / "v2_headers", "--value-format", form)]

    assert values("utf-8")[0] == "v"
    assert values("hex")[0] == "76"
    assert values("base64")[0] == "dg=="
    assert values("utf-8")[2] is None
    first = cli.lines(KAFKA / "v2_headers", "--max-records", 1)[0]
    assert first["headers"][0] == {"key": "a", "value": "1"}
    assert (first["topic"], first["partition"], first["timestampType"]) == ("v2_headers", 0, "CreateTime")
    assert (first["magic"], first["compression"], first["position"]) == (2, "none", 0)


def test_dump_one_file(cli: Cli, tmp_path: Path) -> None:
    path = KAFKA / "v2_none" / "00000000000000000000.log"
    part = len(cli.lines(path))
    assert 0 < part < 346
    assert cli("dump", path).count("\n|") == part
    renamed = tmp_path / "segment.bin"
    shutil.copyfile(path, renamed)
    assert cli("dump", renamed).count("\n|") == part
    cli("dump", renamed, "--format", "jsonl", code=2)
    assert "does not have the name of a segment" in cli.error


@pytest.mark.partitions("v2_none")
def test_dump_of_damage(cli: Cli, source: Path) -> None:
    damage(source / "v2_none" / "00000000000000000000.log")
    assert 0 < len(cli.lines(source, code=1)) < 346
    assert "00000000000000000000.log" in cli.error
    for options in ([], ["--no-records"]):
        assert cli("dump", source, *options, code=1).count("isvalid: false") == 1


def test_verify(cli: Cli) -> None:
    report = cli.json("verify", KAFKA, code=1)
    assert report["balanced"]
    assert report["total"]["announced"] == sum(summary(KAFKA / name)["records"] for name in PARTITIONS)
    output = cli("verify", KAFKA / "v2_txn", KAFKA / "v0_gzip")
    assert output.splitlines()[1].split()[:3] == ["v0_gzip-0", "1", "4,097"]
    assert "records  197 = 181 rows + 16 control" in output


@pytest.mark.partitions("v2_none")
def test_verify_finds_damage(cli: Cli, source: Path) -> None:
    damage(source / "v2_none" / "00000000000000000000.log")
    report = cli.json("verify", source, code=1)
    assert report["balanced"]
    assert report["total"]["quarantined_bytes"] > 0
    assert any("00000000000000000000.log" in str(row["segment"]) for row in report["problems"])
    assert "crc" in cli("verify", source, code=1).lower()


_GROUPS: dict[str, Callable[[dict[str, Any]], str]] = {
    "codecs": lambda batch: batch["codec"],
    "magics": lambda batch: str(batch["magic"]),
    "producers": lambda batch: str(batch["pid"]),
    "batch_sizes": lambda batch: str(next(1 << n for n in range(32) if batch["size"] <= 1 << n)),
}


def test_stats(cli: Cli) -> None:
    total = cli.json("stats", KAFKA / "mixed_012")["total"]
    assert (total["batches"], total["records"], total["size"]) == (64, 273, 17835)
    batches = expected(KAFKA / "mixed_012", "batches.jsonl")
    for name, of in _GROUPS.items():
        groups = total[name]
        assert {key: (one["batches"], one["records"], one["size"]) for key, one in groups.items()} == {
            key: (len(own), sum(one["count"] for one in own), sum(one["size"] for one in own))
            for key in map(of, batches)
            for own in [[one for one in batches if of(one) == key]]
        }
        assert sum(one["uncompressed_size"] for one in groups.values()) == total["uncompressed_size"]
    assert total["codecs"]["gzip"]["ratio"] > 1 > total["codecs"]["none"]["ratio"]
    assert list(total["batch_sizes"]) == sorted(total["batch_sizes"], key=int)
    assert total["uncompressed_size"] > total["size"]
    times = [line["timestamp"] for line in expected(KAFKA / "mixed_012") if line["timestamp"] != -1]
    assert (total["min_timestamp"], total["max_timestamp"]) == (min(times), max(times))
    tables = cli("stats", KAFKA / "mixed_012", KAFKA / "v2_txn").split("\n\n")
    assert [line.split()[0] for line in tables[0].splitlines()] == [
        "partition",
        "mixed_012-0",
        "v2_txn-0",
        "total",
    ]
    assert [table.split()[0] for table in tables[1:]] == ["codec", "magic", "producer", "batches"]
    assert {line.split()[0] for line in tables[3].splitlines()[1:]} == {"-1", "2", "3", "4"}


def test_ingest(cli: Cli, tmp_path: Path) -> None:
    out = tmp_path / "out"
    report = cli.json("ingest", KAFKA / "v2_txn", out, "--engine", "local")
    assert report == json.loads((out / "reconciliation.json").read_text())
    again = ("ingest", KAFKA / "v2_txn", out, "--engine", "local")
    cli(*again, code=2)
    assert "--overwrite" in cli.error
    assert f"{out}/records: 78 rows in 1 file," in cli(*again, "--overwrite")
    output = cli("ingest", KAFKA / "v2_timestamps", tmp_path / "times", "--engine", "local")
    assert "timestamps are null" in output


@pytest.mark.partitions("v2_none")
def test_ingest_of_damage(cli: Cli, source: Path, tmp_path: Path) -> None:
    damage(source / "v2_none" / "00000000000000000000.log")
    cli("ingest", source, tmp_path / "out", "--engine", "local", code=1)
    assert (tmp_path / "out" / "_SUCCESS").exists()


def test_java_missing(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pyspark")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    cli("ingest", KAFKA, tmp_path / "out", code=3)
    assert cli.error.startswith("magicbyte: Spark needs Java 17 or newer: install it (")
    assert cli.error.count("\n") == 1


def test_java_that_does_not_start(tmp_path: Path) -> None:
    java = tmp_path / "bin/java"
    java.parent.mkdir()
    java.write_text("#!/bin/sh\necho no room for the heap >&2\nexit 1\n")
    java.chmod(0o755)
    done = subprocess.run(
        [sys.executable, "-m", "magicbyte", "ingest", KAFKA / "v2_none", tmp_path / "out"],
        env={**os.environ, "JAVA_HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 3
    # Java's and Spark's own lines, then ours.
    assert done.stderr.startswith("no room for the heap\n")
    assert done.stderr.splitlines()[-1].startswith("magicbyte: Spark did not start: ")
    assert "Traceback" not in done.stderr


@pytest.mark.spark
def test_ingest_on_spark(tmp_path: Path) -> None:
    # A process of its own: it stops its session at the end, and would stop that of other tests.
    command = [sys.executable, "-m", "magicbyte", "ingest", KAFKA, tmp_path / "out", "--master", "local[2]"]
    settings = ["--conf", "spark.ui.enabled=false", "--conf", "spark.driver.bindAddress=127.0.0.1"]
    done = subprocess.run([*map(str, command), *settings], capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stderr
    assert "v2_txn-0" in done.stdout
    report = json.loads((tmp_path / "out" / "reconciliation.json").read_text())
    assert report["balanced"]
    assert (tmp_path / "out" / "_SUCCESS").exists()


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["no-such-command"],
        ["verify"],
        ["verify", "/no/such/directory"],
        ["dump", str(KAFKA / "v2_none"), "--start-timestamp", "yesterday"],
        ["dump", str(KAFKA / "v2_none"), "--isolation-level", "read_committed"],
        ["stats", str(KAFKA), "--max-decompressed-bytes", "many"],
        ["ingest", str(KAFKA), "out", "--engine", "local", "--master", "local[2]"],
        ["ingest", str(KAFKA), "out", "--threads", "2"],
    ],
)
def test_usage(cli: Cli, arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    cli(*arguments, code=2)
    assert list(tmp_path.iterdir()) == []


def test_nothing_to_read_is_usage(cli: Cli, tmp_path: Path) -> None:
    cli("verify", tmp_path, code=2)
    assert "no Kafka segments" in cli.error


def test_could_not_finish(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise OSError("disk on fire")

    monkeypatch.setattr("magicbyte.jobs.verify.plan_partitions", fail)
    cli("verify", KAFKA, code=3)
    assert cli.error == "magicbyte: disk on fire\n"


@pytest.mark.parametrize("command", [[], ["ingest"], ["verify"], ["dump"], ["stats"], ["completion"]])
def test_help_teaches(cli: Cli, command: list[str]) -> None:
    assert f"magicbyte {command[0] if command else 'ingest'} " in cli(*command, "--help")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion(cli: Cli, shell: str) -> None:
    assert "_MAGICBYTE_COMPLETE" in cli("completion", shell)


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("magicbyte ver", "verify"),
        ("magicbyte dump --dec", "--decode"),
        ("magicbyte dump --decode tr", "transactions"),
    ],
)
def test_bash_is_told_completions(cli: Cli, monkeypatch: pytest.MonkeyPatch, words: str, found: str) -> None:
    monkeypatch.setenv("_MAGICBYTE_COMPLETE", "bash_complete")
    monkeypatch.setenv("COMP_WORDS", words)
    monkeypatch.setenv("COMP_CWORD", str(words.count(" ")))
    assert cli(code=0) == f"plain,{found}\n"


def test_closed_pipe() -> None:
    command = (
        f"{sys.executable} -m magicbyte dump {KAFKA / 'v2_big_batch'} | head -1; echo ${{PIPESTATUS[0]}}"
    )
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=True)
    first, code = done.stdout.splitlines()
    assert first.startswith("Dumping")
    assert (code, done.stderr) == ("0", "")


@pytest.mark.parametrize(
    ("module", "command", "remedy"),
    [
        ("click", "--help", "pip install 'magicbyte[cli]'"),
        ("pyarrow", "verify", "pip install 'magicbyte[cli]'"),
        ("pyspark", "convert", "pip install 'magicbyte[spark]', or give --engine local"),
        ("pyspark", "explain", "pip install 'magicbyte[spark]', or give --engine local"),
    ],
)
def test_an_extra_is_missing(tmp_path: Path, module: str, command: str, remedy: str) -> None:
    (tmp_path / f"{module}.py").write_text(
        f"raise ModuleNotFoundError(\"No module named '{module}'\", name='{module}')"
    )
    path = os.pathsep.join([str(tmp_path), *sys.path])
    out = [tmp_path / "out"] if command == "convert" else []
    done = subprocess.run(
        [sys.executable, "-m", "magicbyte", command, KAFKA / "v2_none", *out],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert done.stderr == f"{module} is missing: {remedy}\n"
