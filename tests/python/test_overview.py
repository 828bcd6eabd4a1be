"""The table of what a job has read: rows, order, and how it looks on a terminal."""

from __future__ import annotations

import os
import pty
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import KAFKA, Cli
from magicbyte import RecordsBuilder

SAMPLES = "samples"


def table_of(text: str) -> list[list[str]]:
    """The rows of the table up to the empty line, split at runs of spaces."""
    lines = text.split("\n\n")[0].splitlines()
    return [re.split(r" {2,}", line.strip()) for line in lines if not line.startswith("...")]


def names_of(text: str) -> list[str]:
    return [row[0] for row in table_of(text)[1:-1]]


def test_partitions_or_topics(cli: Cli, tmp_path: Path) -> None:
    for partition in range(25):
        directory = tmp_path / f"t{partition % 2}-{partition}"
        directory.mkdir()
        builder = RecordsBuilder()
        builder.append_many([(at, 0, b"k", b"v") for at in range(partition + 1)])
        (directory / f"{0:020}.log").write_bytes(builder.build())
    topics = cli("verify", tmp_path)
    assert table_of(topics)[0][:2] == ["topic", "partitions"]
    assert [row[:2] for row in table_of(topics)[1:]] == [["t0", "13"], ["t1", "12"], ["total", "25"]]
    partitions = cli("verify", tmp_path, "--by", "partition", "--sort", "records", "--top", 3)
    assert names_of(partitions) == ["t0-24", "t1-23", "t0-22"]
    assert "... and 22 more partitions (--top 0 prints all)" in partitions
    assert len(names_of(cli("verify", tmp_path, "--by", "partition", "--top", 0))) == 25
    # The totals are those of all partitions, whichever are shown.
    assert table_of(partitions)[-1] == ["total", *table_of(topics)[-1][2:]]
    by_name = names_of(cli("verify", tmp_path, "--by", "partition", "--sort", "name", "--top", 0))
    assert by_name[:2] == ["t0-0", "t0-2"]
    sizes = cli("verify", tmp_path, "--by", "topic", "--sort", "bytes")
    assert names_of(sizes) == ["t0", "t1"]


def test_problems_come_first(cli: Cli) -> None:
    text = cli("verify", SAMPLES, KAFKA / "v2_torn_tail", code=1)
    assert names_of(text)[0] == "v2_torn_tail-0"
    assert names_of(text)[1:] == sorted(names_of(text)[1:])


@pytest.mark.parametrize("command", ["verify", "ingest", "convert", "recover", "compact", "redact"])
def test_every_job_has_the_options(cli: Cli, command: str, tmp_path: Path) -> None:
    needs = {"redact": ["--key", "none"], "compact": ["--all-topics"]}.get(command, [])
    out = [] if command == "verify" else [tmp_path / "out"]
    text = cli(command, SAMPLES, *out, *needs, "--by", "topic", "--sort", "name", "--top", 1, code=None)
    assert names_of(text) == ["archive"]


def on_a_terminal(*arguments: str, columns: int) -> list[str]:
    """What a command prints on a terminal of this width, without colours."""
    leader, follower = pty.openpty()
    environment = {**os.environ, "COLUMNS": str(columns), "TERM": "xterm"}
    command = [sys.executable, "-m", "magicbyte", *arguments]
    with subprocess.Popen(
        command, stdout=follower, stderr=subprocess.DEVNULL, env=environment, text=True
    ) as job:
        os.close(follower)
        found = b""
        while True:
            try:
                part = os.read(leader, 1 << 16)
            except OSError:
                break
            if not part:
                break
            found += part
        job.wait()
    os.close(leader)
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", found.decode()).replace("\r", "").splitlines()


@pytest.mark.parametrize("columns", [60, 80, 160])
def test_a_terminal_is_never_too_narrow(columns: int) -> None:
    lines = on_a_terminal("verify", SAMPLES, str(KAFKA / "v2_torn_tail"), columns=columns)
    at = next(number for number, line in enumerate(lines) if "partition" in line)
    table = lines[at : at + 10]
    assert all(len(line) <= columns for line in table)
    assert table[2].split()[:2] == ["v2_torn_tail-0", "119"]
    assert [line.split()[0] for line in table[2:10]][-1] == "total"
    assert any(line.startswith("time ") and "/s" in line for line in lines)
    assert lines[-1].startswith("next: magicbyte explain samples ")
    assert ("tail" in table[0]) == (columns == 160)


def test_a_pipe_gets_no_suggestions(cli: Cli) -> None:
    text = cli("verify", SAMPLES)
    assert "next:" not in text
    assert "time  " not in text
    assert "\x1b" not in text


def test_ignored_files_are_named(cli: Cli, tmp_path: Path) -> None:
    directory = Path(shutil.copytree(Path(SAMPLES) / "orders-0", tmp_path / "orders-0"))
    for name in ("notes.txt", f"{9:020}.log.deleted", f"{5:020}.log.swap", f"{42:020}.log.bak"):
        (directory / name).write_bytes(b"x")
    text = cli("verify", tmp_path, code=1)
    assert f"ignored: 1 deleted file: {directory}/{9:020}.log.deleted" in text
    assert f"ignored: 2 foreign files: {directory}/{42:020}.log.bak, ..." in text
    # Those that may hold records are problems.
    problems = cli.json("verify", tmp_path, code=1)["problems"]
    assert {(one["kind"], one["segment"]) for one in problems} == {
        ("unfinished_swap", f"{5:020}.log.swap"),
        ("unknown_log_file", f"{42:020}.log.bak"),
    }
    (directory / f"{42:020}.log.bak").unlink()
    (directory / f"{5:020}.log.swap").unlink()
    assert "ignored: 1 foreign file: " in cli("verify", tmp_path)


def test_statistics_by_topic(cli: Cli, tmp_path: Path) -> None:
    for name in ("a-0", "a-1", "b-0"):
        shutil.copytree(KAFKA / "v2_txn", tmp_path / name)
    report = cli.json("stats", tmp_path)
    (a, b) = report["topics"]
    assert (a["topic"], a["partitions"], b["topic"], b["partitions"]) == ("a", 2, "b", 1)
    for name in ("size", "records", "batches", "control_records", "uncompressed_size", "segments"):
        assert a[name] == 2 * b[name] > 0
        assert a[name] + b[name] == report["total"][name]
    assert a["codecs"]["none"]["batches"] == 2 * b["codecs"]["none"]["batches"]
    text = cli("stats", tmp_path, "--by", "topic", "--sort", "bytes", "--top", 1)
    assert [row[0] for row in table_of(text)] == ["topic", "a", "total"]
    assert "... and 1 more topics (--top 0 prints all)" in text
    lines = on_a_terminal("stats", str(tmp_path), columns=80)
    at = next(number for number, line in enumerate(lines) if line.startswith("partition"))
    assert all(len(line) <= 80 for line in lines[at : at + 5])
    assert lines[at + 5].startswith("more on a wider terminal, or in a pipe: codecs, ")
