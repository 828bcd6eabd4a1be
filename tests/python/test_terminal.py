"""What commands print of names and bytes that others chose: to a terminal, a pipe, or a closed stream."""

from __future__ import annotations

import errno
import json
import os
import pty
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from conftest import KAFKA
from magicbyte import RecordsBuilder
from magicbyte.cli import main
from magicbyte.cli.terminal import json_line, plain

HOSTILE = "\x1b]0;owned\x07\nbaseOffset: 1 lastOffset: 1\r\t\x7f\u009b31m\u202egnp\u2066\u2028."
TOPIC = "topic\x1b[31m\nforged\u202e"


@pytest.fixture
def hostile(tmp_path: Path) -> Path:
    """A log whose names and fields hold terminal control sequences; its second batch is damaged."""
    directory = tmp_path / f"{TOPIC}-0"
    directory.mkdir()
    data = b""
    for offset in range(3):
        builder = RecordsBuilder()
        text = HOSTILE.encode()
        builder.append(offset, 1, text, text + b"\xff", headers=[(HOSTILE, text)])
        data += builder.build()
    damaged = bytearray(data)
    damaged[len(data) // 3 + 17] ^= 1  # its checksum
    (directory / f"{0:020}.log").write_bytes(damaged)
    (directory / f"stray\x1b[2J\n{0:020}.log").write_bytes(b"")
    return directory


def magicbyte(*arguments: object, **options: object) -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-m", "magicbyte", *map(str, arguments)]
    return subprocess.run(command, check=False, **options)  # type: ignore[call-overload, no-any-return]


def on_terminal(*arguments: object) -> str:
    """What a terminal receives from both streams, without colours."""
    master, slave = pty.openpty()
    environment = {**os.environ, "TERM": "dumb", "COLUMNS": "400"}
    command = [sys.executable, "-m", "magicbyte", *map(str, arguments)]
    with subprocess.Popen(command, stdout=slave, stderr=slave, stdin=slave, env=environment):
        os.close(slave)
        shown = b""
        while True:
            try:
                block = os.read(master, 65536)
            except OSError:  # the other end is closed
                break
            if not block:
                break
            shown += block
    os.close(master)
    return shown.decode()


@pytest.mark.parametrize(
    "arguments",
    [
        ["dump"],
        ["dump", "--no-records"],
        ["records"],
        ["records", "--batches"],
        ["records", "--value-format", "json"],
        ["records", "--format", "csv"],
        ["records", "-f", r"%t %k %s %R %h\n"],
        ["dump", "--bytes"],
        ["verify", "--indexes"],
        ["verify", "--indexes", "--json"],
        ["verify"],
        ["verify", "--json"],
        ["stats"],
        ["rescue"],
        ["explain"],
        ["recover"],
    ],
    ids=" ".join,
)
def test_nothing_acts_on_a_terminal(hostile: Path, arguments: list[str]) -> None:
    shown = on_terminal(*arguments, hostile)
    assert "Traceback" not in shown
    lines = shown.replace("\r\n", "\n").split("\n")
    assert [line for line in lines if not line.isprintable()] == []
    assert not any(line.startswith(("forged", "baseOffset: 1 lastOffset: 1\\r")) for line in lines)
    if arguments[0] == "records" and "--batches" not in arguments:
        assert len([line for line in lines if r"\u202egnp" in line]) == 2
    if arguments[0] == "records" and not {"-f", "csv"} & set(arguments):
        assert [type(json.loads(line)) for line in lines if line.startswith("{")] == [dict, dict]


@pytest.mark.parametrize("command", ["convert", "ingest", "compact"])
def test_nor_do_the_reports_of_jobs(hostile: Path, tmp_path: Path, command: str) -> None:
    shown = on_terminal(command, hostile, tmp_path / "out\x1b[31m\nforged")
    assert "Traceback" not in shown
    lines = shown.replace("\r\n", "\n").split("\n")
    assert any("out\\x1b[31m\\nforged" in line for line in lines)
    assert [line for line in lines if not line.isprintable()] == []


@pytest.mark.parametrize("command", ["dump", "records", "verify", "stats", "explain"])
def test_nor_do_messages_of_errors(tmp_path: Path, command: str) -> None:
    for name in ("gone\x1b[31m\nforged", "gone\x1b[31m\nforged.index"):
        done = magicbyte(command, tmp_path / name, capture_output=True)
        assert done.returncode == 2
        assert b"\x1b" not in done.stderr
        assert not any(line.startswith(b"forged") for line in done.stderr.splitlines())
    (tmp_path / "bad\x1b[31m\nforged.index").write_bytes(b"123")
    for printing in (["dump"], ["dump", "--json"]):
        done = magicbyte(*printing, *tmp_path.iterdir(), capture_output=True)
        assert done.returncode == 1
        assert done.stderr.count(b"\n") == 1
        assert b"\x1b" not in done.stderr


def test_a_pipe_gets_the_bytes(hostile: Path) -> None:
    (hostile / f"stray\x1b[2J\n{0:020}.log").unlink()
    done = magicbyte("dump", hostile.name, cwd=hostile.parent, capture_output=True)
    text = HOSTILE.encode()
    assert done.stdout.startswith(f"Dumping {hostile.name}/{0:020}.log\nLog starting offset: 0\n".encode())
    assert done.stdout.count(b" key: " + text + b" payload: " + text + "\ufffd\n".encode()) == 3
    assert done.stdout.count(b"headerKeys: [" + text + b"]") == 3


def test_a_pipe_gets_the_bytes_of_records(hostile: Path) -> None:
    (hostile / f"stray\x1b[2J\n{0:020}.log").unlink()
    done = magicbyte("records", hostile, "-f", r"%t %k %s %h;\n", capture_output=True)
    text = HOSTILE.encode()
    line = TOPIC.encode() + b" " + text + b" " + text + b"\xff " + text + b"=" + text + b";\n"
    assert done.stdout == line * 2


@pytest.mark.parametrize("encoding", ["utf-8", "ascii", "iso8859-1"])
def test_a_pipe_gets_utf_8_whatever_the_locale(hostile: Path, encoding: str) -> None:
    environment = {**os.environ, "PYTHONIOENCODING": encoding}
    done = magicbyte("dump", hostile, capture_output=True, env=environment)
    assert "\u202egnp" in done.stdout.decode()
    assert b"Traceback" not in done.stderr


def test_names_that_are_not_utf_8(tmp_path: Path) -> None:
    name = os.fsdecode(b"bad\xff.index")
    (tmp_path / name).write_bytes(bytes([0, 0, 0, 1, 0, 0, 0, 5]))
    done = magicbyte("dump", name, cwd=tmp_path, capture_output=True)
    assert (done.returncode, done.stdout) == (2, b"")
    assert done.stderr.endswith(
        b"bad\\xff.index: the path is not UTF-8: rename it, or reach it through a link\n"
    )


def test_plain() -> None:
    assert plain("orders-0 \u00fc \u6f22 \U0001f600") == "orders-0 \u00fc \u6f22 \U0001f600"
    assert plain("\x1b\n\r\t\x7f\x85\u202e\u2028\udcff") == r"\x1b\n\r\t\x7f\x85\u202e\u2028\udcff"


def test_json_line() -> None:
    everything = "".join(map(chr, [*range(0x3000), *range(0xDC00, 0xE100), *range(0xFE00, 0x10400)]))
    document = {everything: [everything, 1, None]}
    line = json_line(document)
    assert json.loads(line) == document
    assert line.isprintable()
    assert "\u00fc" in line


@pytest.mark.parametrize("command", ["dump", "records", "verify", "stats", "rescue"])
def test_standard_output_that_takes_nothing(command: str) -> None:
    with open("/dev/full", "w") as full:
        done = magicbyte(command, KAFKA / "v2_none", stdout=full, stderr=subprocess.PIPE)
    assert done.returncode == 3
    assert done.stderr.count(b"\n") == 1
    assert b"No space left on device" in done.stderr


@pytest.mark.parametrize("arguments", [["verify"], ["dump"], ["records"], ["explain"], ["--version"]])
def test_standard_output_is_closed(arguments: list[str]) -> None:
    line = f'"$0" -m magicbyte {" ".join(arguments)} "$1" >&-'
    done = subprocess.run(
        ["sh", "-c", line, sys.executable, KAFKA / "v2_none"], capture_output=True, check=False
    )
    assert done.returncode == 3
    assert done.stderr.startswith(b"magicbyte: standard output is closed")


def test_standard_error_is_closed(hostile: Path) -> None:
    line = '"$0" -m magicbyte records "$1" 2>&-'
    done = subprocess.run(["sh", "-c", line, sys.executable, hostile], capture_output=True, check=False)
    assert done.returncode == 1
    assert [json.loads(line)["offset"] for line in done.stdout.splitlines()] == [0, 2]


def test_an_unread_report_keeps_its_exit_code(hostile: Path) -> None:
    line = 'set -o pipefail; "$0" -m magicbyte verify "$1" | true'
    done = subprocess.run(["bash", "-c", line, sys.executable, hostile], capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (1, b"")


@pytest.mark.parametrize("arguments", ["--help", "records --help", "schemas list --help", "--version", "-h"])
def test_an_unread_help_is_no_failure(arguments: str) -> None:
    line = f'set -o pipefail; "$0" -m magicbyte {arguments} | true'
    done = subprocess.run(["bash", "-c", line, sys.executable], capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")


def test_a_connection_that_breaks_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise BrokenPipeError(errno.EPIPE, "Broken pipe", "kafka://broker:9092")

    monkeypatch.setattr("magicbyte.verify", broken)
    with monkeypatch.context() as patched, open(os.devnull, "w") as nowhere:
        patched.setattr(sys, "stdout", nowhere)
        assert main(["verify", str(KAFKA)]) == 3


def test_an_interrupt_is_not_a_success() -> None:
    command = [sys.executable, "-m", "magicbyte", "dump", *[str(KAFKA / "v2_large_batches")] * 50]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as job:
        assert job.stdout is not None
        # It is still running, blocked on a full pipe.
        assert job.stdout.readline().startswith(b"Dumping")
        job.send_signal(signal.SIGINT)
        _, error = job.communicate(timeout=60)
    assert (job.returncode, error) == (130, b"magicbyte: interrupted\n")


@pytest.mark.spark
def test_an_interrupt_on_spark_is_one_line(tmp_path: Path) -> None:
    """Whenever it comes: while Spark starts, or while tasks run."""
    builder = RecordsBuilder()
    builder.append_many([(at, 0, b"k", b"v" * 1000) for at in range(1000)])
    directory = tmp_path / "t-0"
    directory.mkdir()
    with (directory / f"{0:020}.log").open("wb") as log:
        for _ in range(200):
            log.write(builder.build())
            builder.append_many([(at, 0, b"k", b"v" * 1000) for at in range(1000)])
    command = [sys.executable, "-m", "magicbyte", "verify", "--engine", "spark", str(directory)]
    for seconds in (4, 7):
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as job:
            time.sleep(seconds)
            job.send_signal(signal.SIGINT)
            output, error = job.communicate(timeout=120)
        if "total " in output:
            continue  # A fast machine: it was done before.
        assert job.returncode == 130, error
        assert "magicbyte: interrupted" in error.splitlines()
        # Executors may still report tasks that were cut off.
        assert "java_gateway.py" not in error
        assert "this is a bug" not in error
