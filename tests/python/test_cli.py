"""The command line: what it prints, and its exit codes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import pyarrow as pa
import pytest
from conftest import KAFKA, PARTITIONS, Cli, commands_of
from digest import expected, summary
from magicbyte.cli.app import app


@pytest.mark.parametrize(
    "arguments",
    [
        *(f"{command} --html OUT SRC" for command in ("explain", "advise", "cluster", "verify")),
        "audit --misrouted --offsets-out OUT SRC",
        "wire --parquet OUT SRC",
    ],
)
def test_a_file_to_write_is_checked_first(cli: Cli, tmp_path: Path, arguments: str) -> None:
    (tmp_path / "file").touch()
    directory = tmp_path / "directory"
    directory.mkdir()
    for out, why in {
        tmp_path / "none" / "x": f"{tmp_path / 'none'} does not exist",
        tmp_path / "file" / "x": f"{tmp_path / 'file'} is not a directory",
        directory: f"'{directory}' is a directory",
        "": "the path is empty: expected a file",
    }.items():
        # The source has no segment: it is not looked at.
        places = {"OUT": out, "SRC": tmp_path / "file"}
        cli(*(places.get(one, one) for one in arguments.split()), code=2)
        assert why in cli.error
    assert [one.name for one in directory.iterdir()] == []


def damage(segment: Path) -> None:
    """Flips one bit in the middle."""
    data = bytearray(segment.read_bytes())
    data[len(data) // 2] ^= 1
    segment.write_bytes(data)


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


@pytest.mark.parametrize("order", [("--by", "topic"), ("--sort", "bytes"), ("--top", "3")])
def test_stats_of_fields_have_another_table(cli: Cli, order: tuple[str, str]) -> None:
    cli("stats", "--fields", *order, KAFKA / "mixed_012", code=2)
    assert "--fields" in cli.error
    cli("stats", *order, KAFKA / "mixed_012")
    cli.json("stats", "--fields", KAFKA / "mixed_012")


def test_ingest(cli: Cli, tmp_path: Path) -> None:
    out = tmp_path / "out"
    report = cli.json("ingest", KAFKA / "v2_txn", out)
    assert report == json.loads((out / "reconciliation.json").read_text())
    again = ("ingest", KAFKA / "v2_txn", out)
    cli(*again, code=2)
    assert "--overwrite" in cli.error
    assert f"{out}/records: 78 rows in 1 file," in cli(*again, "--overwrite")
    output = cli("ingest", KAFKA / "v2_timestamps", tmp_path / "times")
    assert "timestamps are null" in output


@pytest.mark.partitions("v2_none")
def test_ingest_of_damage(cli: Cli, source: Path, tmp_path: Path) -> None:
    damage(source / "v2_none" / "00000000000000000000.log")
    cli("ingest", source, tmp_path / "out", code=1)
    assert (tmp_path / "out" / "_SUCCESS").exists()


def test_missing_java(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pyspark")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    cli("ingest", "--engine", "spark", KAFKA, tmp_path / "out", code=3)
    assert cli.error.startswith("magicbyte: Spark needs Java 17 or newer: install it (")
    assert cli.error.count("\n") == 1


def test_java_that_does_not_start(tmp_path: Path) -> None:
    java = tmp_path / "bin/java"
    java.parent.mkdir()
    java.write_text("#!/bin/sh\necho no room for the heap >&2\nexit 1\n")
    java.chmod(0o755)
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "magicbyte",
            "ingest",
            "--engine",
            "spark",
            KAFKA / "v2_none",
            tmp_path / "out",
        ],
        env={**os.environ, "JAVA_HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 3
    # The lines of Java and Spark come first, then ours.
    assert done.stderr.startswith("no room for the heap\n")
    assert done.stderr.splitlines()[-1].startswith("magicbyte: Spark did not start: ")
    assert "Traceback" not in done.stderr


COMMANDS_ON_SPARK = """
import contextlib, json, sys
from pathlib import Path
from magicbyte.cli import main

directory = Path(sys.argv[1])
for name, arguments in json.loads(sys.argv[2]).items():
    with (directory / f"{name}.output").open("w") as output, contextlib.redirect_stdout(output):
        code = main([*arguments, "--engine", "spark"])
    (directory / f"{name}.code").write_text(str(code))
"""


@pytest.fixture(scope="module")
def on_spark(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Outputs and exit codes of some commands.

    They run in a separate process, with one JVM: each command stops its Spark session at the end, which other
    tests share.
    """
    directory = tmp_path_factory.mktemp("on-spark")
    ingest = ["ingest", str(KAFKA), str(directory / "out"), "--top", "0", "--master", "local[2]"]
    ingest += ["--conf", "spark.ui.enabled=false", "--conf", "spark.driver.bindAddress=127.0.0.1"]
    commands = {"ingest": ingest}
    for name in ("verify", "stats"):
        commands[name] = [name, "--json", "--master", "local[1]", str(KAFKA / "v2_txn")]
    command = [sys.executable, "-c", COMMANDS_ON_SPARK, str(directory), json.dumps(commands)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return directory


@pytest.mark.spark
def test_ingest_on_spark(on_spark: Path) -> None:
    assert (on_spark / "ingest.code").read_text() == "1"
    assert "\nv2_txn " in (on_spark / "ingest.output").read_text()
    report = json.loads((on_spark / "out" / "reconciliation.json").read_text())
    assert report["balanced"]
    assert (on_spark / "out" / "_SUCCESS").exists()


@pytest.mark.spark
@pytest.mark.parametrize("command", ["verify", "stats"])
def test_engines_give_the_same_report(cli: Cli, on_spark: Path, command: str) -> None:
    report = cli.json(command, "--threads", 1, KAFKA / "v2_txn")
    assert (on_spark / f"{command}.code").read_text() == "0"
    assert json.loads((on_spark / f"{command}.output").read_text()) == report


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["no-such-command"],
        ["verify"],
        ["verify", "/no/such/directory"],
        ["dump", str(KAFKA / "v2_none"), "--start-timestamp", "yesterday"],
        ["dump", str(KAFKA / "v2_none"), "--isolation-level", "read_committed"],
        ["dump", str(KAFKA / "v2_none"), "--json"],
        ["records", str(KAFKA / "v2_none"), "--no-records"],
        ["records", str(KAFKA / "v2_none"), "--value-format", "utf-16"],
        ["dump", "--json", str(KAFKA / "v2_none" / "expected.jsonl")],
        ["dump", "--bytes", str(KAFKA / "v2_none"), "--start-timestamp", "1"],
        ["rescue", str(KAFKA / "v2_none"), "/no/such/directory", "out"],
        ["recover", str(KAFKA), "--mode", "truncate"],
        ["stats", str(KAFKA), "--max-decompressed-bytes", "many"],
        ["ingest", str(KAFKA), "out", "--engine", "local", "--master", "local[2]"],
        ["verify", str(KAFKA), "--engine", "local", "--conf", "spark.ui.enabled=false"],
        ["verify", str(KAFKA), "--master", "local[2]", "--threads", "2"],
        ["stats", str(KAFKA), "--engine", "spark", "--threads", "2"],
        ["ingest", str(KAFKA), "out", "--engine", "spark", "--threads", "2"],
    ],
)
def test_usage_errors(
    cli: Cli, arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    cli(*arguments, code=2)
    assert list(tmp_path.iterdir()) == []


def test_nothing_to_read_is_a_usage_error(cli: Cli, tmp_path: Path) -> None:
    cli("verify", tmp_path, code=2)
    assert "no Kafka segments" in cli.error


def test_failure_exit_code(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise OSError("disk on fire")

    monkeypatch.setattr("magicbyte.jobs.verify.decode_partitions", fail)
    cli("verify", KAFKA, code=3)
    assert cli.error == "magicbyte: disk on fire\n"


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (MemoryError(), "magicbyte: the memory is exhausted"),
        (
            pa.ArrowMemoryError("malloc of size 64 failed"),
            "the memory is exhausted: malloc of size 64 failed",
        ),
        (
            RuntimeError("can't start new thread"),
            "can't start new thread: the system allows this user no more",
        ),
        (PermissionError(13, "Permission denied", "/logs"), "[Errno 13] Permission denied: '/logs'"),
        (
            BlockingIOError(11, "Resource temporarily unavailable"),
            "[Errno 11] Resource temporarily unavailable",
        ),
    ],
    ids=lambda one: type(one).__name__ if isinstance(one, Exception) else "",
)
def test_what_the_system_refuses_is_one_line(
    error: Exception, line: str, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: Any, **__: Any) -> None:
        raise error

    monkeypatch.setattr("magicbyte.jobs.verify.find_inputs", fails)
    cli("verify", KAFKA / "v2_none", code=3)
    assert line in cli.error
    assert cli.error.count("\n") == 1


def test_an_error_after_an_interrupt_is_the_interrupt(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    """As when Spark's connection is closed while the job gives up."""

    def fail(*_: object, **__: object) -> None:
        try:
            raise KeyboardInterrupt
        finally:
            raise RuntimeError("the connection is closed")

    monkeypatch.setattr("magicbyte.jobs.verify.decode_partitions", fail)
    cli("verify", KAFKA, code=130)
    assert cli.error == "magicbyte: interrupted\n"


COMMANDS = commands_of(app)


@pytest.mark.parametrize("command", sorted(COMMANDS))
def test_help_has_examples(cli: Cli, command: str) -> None:
    assert f"\n  magicbyte {command} " in cli(command, "--help")


def test_help_lists_the_commands(cli: Cli) -> None:
    output = cli("--help")
    assert "\n  magicbyte ingest " in output
    sections = output.partition("\nRead:\n")[2].splitlines()
    listed = [line.split()[0] for line in sections if line.startswith("  ") and line[2] != " "]
    assert sorted(listed) == sorted(COMMANDS)


def options_of(command: str) -> dict[str, click.Option]:
    return {one.opts[0]: one for one in COMMANDS[command].params if isinstance(one, click.Option)}


ENGINE_OPTIONS = {"--engine", "--threads", "--master", "--conf"}
# Options whose help and type depend on the command.
SPECIFIC = {
    "--as-of",
    "--follow",
    "--format",
    "--html",
    "--isolation-level",
    "--json",
    "--key",
    "--key-format",
    "--magic",
    "--now",
    "--out",
    "--segment-bytes",
    "--topic-id",
    "--value-format",
    "--where",
}


@pytest.mark.parametrize("command", sorted(COMMANDS))
def test_an_option_is_the_same_in_every_command(command: str) -> None:
    """Same type, default and help; and a command has all the engine options or none of them."""
    options = options_of(command)
    for other in map(options_of, COMMANDS):
        for name in options.keys() & other.keys() - SPECIFIC:
            assert options[name].to_info_dict() == other[name].to_info_dict()
    assert options.keys() & ENGINE_OPTIONS in (set(), ENGINE_OPTIONS)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion(cli: Cli, shell: str) -> None:
    assert "_MAGICBYTE_COMPLETE" in cli("completion", shell)


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("magicbyte ver", "verify"),
        ("magicbyte dump --dec", "--decode"),
        ("magicbyte verify --ind", "--indexes"),
        ("magicbyte dump --decode tr", "transactions"),
    ],
)
def test_bash_completions(cli: Cli, monkeypatch: pytest.MonkeyPatch, words: str, found: str) -> None:
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
        ("pyarrow", "stats", "pip install 'magicbyte[arrow]'"),
        ("pyspark", "convert", "pip install 'magicbyte[spark]', or leave out --engine spark"),
        ("pyspark", "explain", "pip install 'magicbyte[spark]', or leave out --engine spark"),
    ],
)
def test_missing_extra(tmp_path: Path, module: str, command: str, remedy: str) -> None:
    (tmp_path / f"{module}.py").write_text(
        f"raise ModuleNotFoundError(\"No module named '{module}'\", name='{module}')"
    )
    path = os.pathsep.join([str(tmp_path), *sys.path])
    options = ["--engine", "spark"] if module == "pyspark" else []
    out = [tmp_path / "out"] if command == "convert" else []
    done = subprocess.run(
        [sys.executable, "-m", "magicbyte", command, *options, KAFKA / "v2_none", *out],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert done.stderr == f"{module} is missing: {remedy}\n"
