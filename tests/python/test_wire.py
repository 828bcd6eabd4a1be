"""Captures of real clients and a real broker, read whole and damaged."""

from __future__ import annotations

import json
import struct
import subprocess
import sys
from collections import Counter
from pathlib import Path

import magicbyte
import pyarrow.parquet as parquet
import pytest
from magicbyte.cli.app import run
from magicbyte.jobs.wire_extract import extract
from magicbyte.wire import Exchange, Exchanges

DATA = Path(__file__).parents[1] / "data" / "wire"
CAPTURE = DATA / "clients.pcap"


def read(path: Path) -> tuple[list[Exchange], Exchanges]:
    exchanges = Exchanges([path])
    return list(exchanges), exchanges


def test_every_message_of_the_clients_is_decoded() -> None:
    found, exchanges = read(CAPTURE)
    clients = Counter(one.client_id for one in found)
    assert {"consumer-null-1", "aio-producer", "aio-consumer", "kp-producer"} <= {*clients}
    for one in found:
        assert one.request is not None
        no_answer = one.api == "Produce" and one.request.body["acks"] == 0
        assert (one.response is None) == no_answer
        assert no_answer or one.latency is not None
    versions = {(one.api, one.api_version) for one in found}
    assert {("Fetch", 18), ("Fetch", 11), ("Produce", 13), ("Metadata", 13)} <= versions
    summary = exchanges.summary
    assert (summary.lost_bytes, summary.skipped_bytes, summary.problems) == (0, 0, [])
    assert {"orders", "given0"} <= {*exchanges.topic_ids.values()}


def test_topics_are_named_where_messages_have_ids() -> None:
    found, _ = read(CAPTURE)
    fetched = [one for one in found if one.api == "Fetch" and one.api_version == 18 and one.record_sets()]
    assert fetched
    for one in fetched:
        assert one.topics == ["orders"]
        assert [(got.topic, got.partition) for got in one.record_sets()] == [("orders", 0)]


@pytest.mark.parametrize("topic", ["given0", "orders"])
def test_extracted_partitions_are_the_brokers_segments(topic: str, tmp_path: Path) -> None:
    report = extract(Exchanges([CAPTURE]), tmp_path / "out", sources=[CAPTURE])
    assert report["problems"] == []
    assert report["duplicates"] > 0
    directory = tmp_path / "out" / f"{topic}-0"
    written = b"".join(path.read_bytes() for path in sorted(directory.glob("*.log")))
    assert written == (DATA / f"{topic}-0.log").read_bytes()
    assert magicbyte.verify(directory)["balanced"]


def test_what_was_only_produced_has_the_brokers_offsets(tmp_path: Path) -> None:
    report = extract(Exchanges([CAPTURE]), tmp_path / "out")
    (one,) = [one for one in report["written"] if one["topic"] == "given1"]
    assert (one["produced"], one["first_offset"], one["end_offset"]) == (one["batches"], 0, 20)
    values = [
        record.value_bytes for record in magicbyte.PartitionLog(tmp_path / "out" / "given1-0").records()
    ]
    assert values == [b"only produced %d" % number for number in range(20)]


def packets(data: bytes) -> list[bytes]:
    found, at = [], 24
    while at < len(data):
        end = at + 16 + int(struct.unpack_from("<I", data, at + 8)[0])
        found.append(data[at:end])
        at = end
    return found


def test_lost_packets_are_gaps_with_names(tmp_path: Path) -> None:
    data = CAPTURE.read_bytes()
    whole, _ = read(CAPTURE)
    frames = {one.request_frame for one in whole} | {one.response_frame for one in whole}
    for first in range(0, 24, 3):
        kept = [one for index, one in enumerate(packets(data)) if (index + first) % 24]
        damaged = tmp_path / f"{first}.pcap"
        damaged.write_bytes(data[:24] + b"".join(kept))
        found, exchanges = read(damaged)
        assert {one.request_frame for one in found} <= frames | {None}
        assert {one.response_frame for one in found} <= frames | {None}
        assert len(found) > len(whole) / 2
        report = extract(Exchanges([damaged]), tmp_path / f"out{first}")
        assert report["lost_bytes"] == exchanges.summary.lost_bytes > 0
        for one in report["written"]:
            assert magicbyte.verify(tmp_path / f"out{first}" / f"{one['topic']}-0")["balanced"]


def test_json_lines_have_every_exchange(capfd: pytest.CaptureFixture[str]) -> None:
    assert run(["wire", "--json", str(CAPTURE)]) == 0
    lines = [json.loads(line) for line in capfd.readouterr().out.splitlines()]
    found, _ = read(CAPTURE)
    assert [line["api"] for line in lines] == [one.api for one in found]
    fetch = next(one for one in lines if one["api"] == "Fetch" and one["api_version"] == 18)
    assert {"sessionId", "responses"} <= fetch["response"].keys()


def test_conversations_as_text(capfd: pytest.CaptureFixture[str]) -> None:
    assert run(["wire", str(CAPTURE)]) == 0
    out = capfd.readouterr().out.splitlines()
    assert len(out) == 1 + len(read(CAPTURE)[0])
    assert any("aio-consumer" in line and "Fetch" in line and "given0" in line for line in out)
    (line,) = {line.split()[-1] for line in out if "FindCoordinator" in line} - {"-"}
    assert line == "COORDINATOR_NOT_AVAILABLE"


def test_conversations_as_parquet(tmp_path: Path) -> None:
    target = tmp_path / "wire.parquet"
    assert run(["wire", "--parquet", str(target), str(CAPTURE)]) == 0
    found, _ = read(CAPTURE)
    rows = parquet.read_table(target).to_pylist()
    for name, attribute in (
        ("clientId", "client_id"),
        ("api", "api"),
        ("apiVersion", "api_version"),
        ("topics", "topics"),
        ("errors", "errors"),
    ):
        assert [row[name] for row in rows] == [getattr(one, attribute) for one in found], name
    for row, one in zip(rows, found, strict=True):
        if one.latency is not None:
            assert row["requestTime"] + row["latency"] == row["responseTime"]
        assert row["requestBytes"] == len(one.request_frame or b"")
        assert row["problem"] is None
    # It is not replaced, and nothing else is left.
    assert run(["wire", "--parquet", str(target), str(CAPTURE)]) == 2
    assert [path.name for path in tmp_path.iterdir()] == ["wire.parquet"]


def test_conversations_that_cannot_be_decoded(tmp_path: Path) -> None:
    name = struct.pack(">h", 1) + b"\xff"
    for path, frame in (("requests", struct.pack(">hhi", 3, 1, 7) + name + b"\x7f"), ("responses", b"")):
        (tmp_path / path).write_bytes(struct.pack(">i", len(frame)) + frame if frame else b"")
    streams = ["--requests", str(tmp_path / "requests"), "--responses", str(tmp_path / "responses")]
    assert run(["wire", "--parquet", str(tmp_path / "p"), *streams]) == 1
    (row,) = parquet.read_table(tmp_path / "p").to_pylist()
    assert (row["api"], row["topics"]) == ("Metadata", None)
    assert "MetadataRequest" in row["problem"]


def test_a_port_that_nobody_uses(capfd: pytest.CaptureFixture[str]) -> None:
    assert run(["wire", "--port", "1", str(CAPTURE)]) == 0
    assert capfd.readouterr().out == ""


def test_streams_of_a_connection(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    found, _ = read(CAPTURE)
    connection = Counter(one.connection for one in found).most_common(1)[0][0]
    of_it = [one for one in found if one.connection == connection]
    for name in ("request", "response"):
        frames = [
            getattr(one, f"{name}_frame") for one in sorted(of_it, key=lambda one: one.correlation_id or 0)
        ]
        sized = b"".join(struct.pack(">i", len(frame)) + frame for frame in frames if frame is not None)
        (tmp_path / name).write_bytes(sized)
    arguments = ["--requests", str(tmp_path / "request"), "--responses", str(tmp_path / "response")]
    assert run(["wire", "--json", *arguments]) == 0
    lines = [json.loads(line) for line in capfd.readouterr().out.splitlines()]
    assert Counter(line["correlation_id"] for line in lines) == Counter(one.correlation_id for one in of_it)
    assert all(line["response"] is not None for line in lines)


def test_tls_and_other_files(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    data = CAPTURE.read_bytes()
    syn, answer, first = packets(data)[:3]
    hello = first[:56] + b"\x16\x03\x01" + first[59:]
    (tmp_path / "tls.pcap").write_bytes(data[:24] + syn + answer + hello)
    assert run(["wire", str(tmp_path / "tls.pcap")]) == 1
    assert "1 connections are encrypted (TLS), and not read" in capfd.readouterr().err
    (tmp_path / "text").write_text("no capture")
    assert run(["wire", str(tmp_path / "text")]) == 3
    shown = capfd.readouterr()
    assert "neither a pcap nor a pcapng file" in shown.err
    assert shown.out == ""
    assert run(["wire"]) == 2
    assert run(["wire", "--requests", str(CAPTURE)]) == 2


def test_secrets_of_sasl_are_left_out(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    from magicbyte.message import encode_request

    frame = encode_request("SaslAuthenticate", 2, {"authBytes": b"\0me\0pass"}, header={"correlationId": 1})
    (tmp_path / "requests").write_bytes(struct.pack(">i", len(frame)) + frame)
    (tmp_path / "responses").write_bytes(b"")
    run(
        [
            "wire",
            "--json",
            "--requests",
            str(tmp_path / "requests"),
            "--responses",
            str(tmp_path / "responses"),
        ]
    )
    (line,) = map(json.loads, capfd.readouterr().out.splitlines())
    assert line["request"]["authBytes"] is None


def test_names_that_would_lead_elsewhere(tmp_path: Path) -> None:
    """A topic's name in a capture is not trusted with a path."""
    from magicbyte.message import encode_request, encode_response

    records = magicbyte.RecordsBuilder()
    records.append(0, 0, None, b"v")
    partitions = [{"partitionIndex": 0, "records": records.build()}]
    names = ["../elsewhere", "/tmp/x", "..", "a\0b", "", "x" * 250]
    body = {"responses": [{"topic": name, "partitions": partitions} for name in names]}
    for path, frame in (
        (tmp_path / "requests", encode_request("Fetch", 4, {"topics": []}, header={"correlationId": 1})),
        (tmp_path / "responses", encode_response("Fetch", 4, body, header={"correlationId": 1})),
    ):
        path.write_bytes(struct.pack(">i", len(frame)) + frame)
    exchanges = Exchanges.of_streams(tmp_path / "requests", tmp_path / "responses")
    report = extract(exchanges, tmp_path / "out")
    assert (report["written"], len(report["problems"])) == ([], len(names))
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["wire.json"]


def test_the_exit_code_of_a_pipe() -> None:
    command = [sys.executable, "-m", "magicbyte", "wire", "--json", str(CAPTURE)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.wait(60) == 0
