"""The files of a broker's log directory: checkpoints, `meta.properties`, `.kafka_cleanshutdown`."""

from __future__ import annotations

import doctest
import time
from pathlib import Path

import pytest
from conftest import Cli
from magicbyte import Error, log_dir
from magicbyte.errors import LimitExceededError
from magicbyte.log_dir import (
    format_offset_checkpoint,
    parse_meta_properties,
    parse_offset_checkpoint,
    read_clean_shutdown,
    read_meta_properties,
    read_offset_checkpoint,
)


def test_docstrings() -> None:
    found = doctest.testmod(log_dir)
    assert found.attempted > 5
    assert found.failed == 0


# As brokers of 4.3 write them.
REPLICATION = """\
0
4
t-snappy 0 10440
__transaction_state 0 17
__consumer_offsets 1 1
a.b_c-d 12 9223372036854775807
"""
META = """\
#
#Sun Nov 22 23:07:46 UTC 2026
node.id=1
directory.id=bAlqScFU7Va66QKj_1BHwQ
version=1
cluster.id=bWFnaWNieXRlLXByb2JlMQ
"""


def test_offset_checkpoint(tmp_path: Path) -> None:
    path = tmp_path / "replication-offset-checkpoint"
    path.write_text(REPLICATION)
    offsets = read_offset_checkpoint(path)
    assert offsets == {
        ("t-snappy", 0): 10440,
        ("__transaction_state", 0): 17,
        ("__consumer_offsets", 1): 1,
        ("a.b_c-d", 12): (1 << 63) - 1,
    }
    assert format_offset_checkpoint(offsets) == REPLICATION


@pytest.mark.parametrize(
    ("text", "offsets"),
    [
        ("", {}),
        ("0", {}),
        ("0\n0\n", {}),
        ("0\n1\nt 0 5", {("t", 0): 5}),
        ("0\r\n1\r\nt 0 5\r\n", {("t", 0): 5}),
        ("0\n1\nt  \t0 +5 \n", {("t", 0): 5}),
        ("0\n2\nt 0 5\nt 0 6\n", {("t", 0): 6}),
    ],
)
def test_what_kafka_reads(text: str, offsets: dict[tuple[str, int], int]) -> None:
    assert parse_offset_checkpoint(text.encode()) == offsets


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"1\n0\n", "line 1: expected version 0, found '1'"),
        (b"0\nx\n", "line 2: expected the number of entries, found 'x'"),
        (b"0\n-1\n", "line 2: expected the number of entries, found '-1'"),
        (b"0\n2\nt 0 5\n", "line 2: 2 entries are announced, 1 lines follow"),
        (b"0\n1\nt 0 5\nu 0 5\n", "line 2: 1 entries are announced, 2 lines follow"),
        (b"0\n1\n\nt 0 5\n", "line 3: expected `topic partition offset`, found ''"),
        (b"0\n1\n t 0 5\n", "line 3: expected `topic partition offset`, found ' t 0 5'"),
        (b"0\n2\nt 0 5\nt 0 5_0\n", "line 4: expected `topic partition offset`, found 't 0 5_0'"),
        (b"0\n1\nt 0 5 6\n", "line 3: "),
        (b"0\n1\nt 2147483648 5\n", "line 3: "),
        (b"0\n1\nt 0 9223372036854775808\n", "line 3: "),
        (b"0\n1\nt 0 " + b"9" * 5000 + b"\n", "line 3: "),
        ("0\n1\nt 0 \u0665\n".encode(), "line 3: "),
        (b"0\n1\n\xff 0 5\n", "line 3: byte 0xff is not UTF-8"),
        (b"\0" * 40, "line 1: expected version 0"),
    ],
)
def test_malformed_checkpoints(tmp_path: Path, data: bytes, message: str) -> None:
    path = tmp_path / "recovery-point-offset-checkpoint"
    path.write_bytes(data)
    with pytest.raises(Error) as caught:
        read_offset_checkpoint(path)
    assert str(caught.value).startswith(f"{path}, {message}")
    assert len(str(caught.value)) < len(str(path)) + 200
    assert caught.value.kind == "invalid_sidecar"


def test_meta_properties(tmp_path: Path) -> None:
    path = tmp_path / "meta.properties"
    path.write_text(META)
    assert read_meta_properties(path) == {
        "node.id": "1",
        "directory.id": "bAlqScFU7Va66QKj_1BHwQ",
        "version": "1",
        "cluster.id": "bWFnaWNieXRlLXByb2JlMQ",
    }
    path.write_text("version=0\nbroker.id=3\n")
    assert read_meta_properties(path) == {"version": "0", "broker.id": "3"}


def test_properties_are_java_s() -> None:
    text = b"! no\\\n  a\\ b\\=c : \\\n   one \\\n \t two\\u0041\\t.\\q \nflag\nx==y\nx2 \\\\\nlatin=\xe9\n"
    assert parse_meta_properties(text) == {
        "a b=c": "one twoA\t.q ",
        "flag": "",
        "x": "=y",
        "x2": "\\",
        "latin": "é",
    }


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("version=2\n", "version: expected 0 or 1, found '2'"),
        ("version=1\ncluster.id=x\n", "node.id: missing"),
        ("version=1\nnode.id=1\n", "cluster.id: missing"),
        ("version=1\nnode.id=one\ncluster.id=x\n", "node.id: expected a number, found 'one'"),
        ("version=0\nbroker.id=\n", "broker.id: expected a number"),
        ("a=1\nb=\\u12\n", "line 2: expected four hex digits"),
        ("a=1\nb=\\u12 4\n", "line 2: expected four hex digits"),
    ],
)
def test_malformed_properties(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "meta.properties"
    path.write_text(text)
    with pytest.raises(Error) as caught:
        read_meta_properties(path)
    assert str(caught.value).startswith(f"{path}, {message}")


def test_long_properties_cost_little(tmp_path: Path) -> None:
    path = tmp_path / "meta.properties"
    started = time.process_time()
    for text in ("a\\\n" * 20_000, "\\" * 60_000, "a=" + "\\\\a" * 20_000):
        path.write_text(text)
        read_meta_properties(path)
    assert time.process_time() - started < 2
    path.write_text("a" * 70_000)
    with pytest.raises(LimitExceededError, match=r"70000 bytes exceed the limit of 65536"):
        read_meta_properties(path)


@pytest.mark.parametrize(
    ("text", "epoch"),
    [
        ("", None),
        ('{"version":0,"brokerEpoch":17}', 17),
        ('{"version":0,"brokerEpoch":-1,"more":[]}', -1),
    ],
)
def test_clean_shutdown(tmp_path: Path, text: str, epoch: int | None) -> None:
    path = tmp_path / ".kafka_cleanshutdown"
    path.write_text(text)
    assert read_clean_shutdown(path) == epoch


@pytest.mark.parametrize(
    "text", ["{}", "17", "[" * 60_000, '{"brokerEpoch":true}', '{"brokerEpoch":1e3}', "1" * 60_000, "\0"]
)
def test_malformed_clean_shutdown(tmp_path: Path, text: str) -> None:
    path = tmp_path / ".kafka_cleanshutdown"
    path.write_text(text)
    with pytest.raises(Error, match="expected nothing or"):
        read_clean_shutdown(path)


def test_missing_files_and_directories(tmp_path: Path) -> None:
    for read in (read_offset_checkpoint, read_meta_properties, read_clean_shutdown):
        with pytest.raises(FileNotFoundError):
            read(tmp_path / "none")
        with pytest.raises(OSError, match="regular"):
            read(tmp_path)


def test_the_commands_print_them(tmp_path: Path, cli: Cli) -> None:
    (tmp_path / "replication-offset-checkpoint").write_text(REPLICATION)
    (tmp_path / "meta.properties").write_text(META)
    (tmp_path / ".kafka_cleanshutdown").write_text('{"version":0,"brokerEpoch":17}')
    files = [
        tmp_path / name
        for name in ("replication-offset-checkpoint", "meta.properties", ".kafka_cleanshutdown")
    ]
    lines = cli.lines("dump", "--json", *files)
    assert lines[1] == {
        "file": "replication-offset-checkpoint",
        "topic": "__transaction_state",
        "partition": 0,
        "offset": 17,
    }
    assert lines[-2]["cluster.id"] == "bWFnaWNieXRlLXByb2JlMQ"
    assert lines[-1] == {"file": ".kafka_cleanshutdown", "brokerEpoch": 17}
    dumped = cli("dump", *files)
    assert "topic: t-snappy partition: 0 offset: 10440" in dumped
    assert "brokerEpoch: 17" in dumped
    files[0].write_text("0\n1\nt 0\n")
    cli("dump", "--json", files[0], code=1)
    assert f"{files[0]}: line 3: expected `topic partition offset`, found 't 0'" in cli.error
