"""The recording proxy before a read-only broker, or before something that does not speak Kafka's protocol."""

from __future__ import annotations

import signal
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import magicbyte
import pytest
from magicbyte.jobs.failure import RefusedError
from magicbyte.jobs.redirect import Redirect
from magicbyte.jobs.serve import parse_address
from magicbyte.jobs.wire_recorder import WireRecorder
from magicbyte.message import decode_response, encode_request, encode_response
from magicbyte.wire import Exchanges

SAMPLES = Path(__file__).parents[2] / "samples"
ANY = ("127.0.0.1", 0)


@pytest.fixture
def broker() -> Iterator[tuple[str, int]]:
    with magicbyte.serve(SAMPLES, committed_offsets=False) as server:
        yield parse_address(server.bootstrap_servers)


def text(address: tuple[str, int]) -> str:
    return f"{address[0]}:{address[1]}"


def sized(frame: bytes) -> bytes:
    return struct.pack(">i", len(frame)) + frame


def request(api: str, version: int, body: dict[str, Any]) -> bytes:
    return sized(encode_request(api, version, body, header={"correlationId": 7, "clientId": "me"}))


def answer(connection: socket.socket) -> bytes:
    (size,) = struct.unpack(">i", connection.recv(4, socket.MSG_WAITALL))
    return connection.recv(size, socket.MSG_WAITALL)


def ask(address: tuple[str, int], api: str, version: int, body: dict[str, Any]) -> dict[str, Any]:
    with socket.create_connection(address, 60) as connection:
        connection.sendall(request(api, version, body))
        return decode_response(answer(connection), api, version).body


@pytest.mark.parametrize(
    ("api", "version", "body", "where"),
    [
        ("Metadata", 1, {"topics": []}, "brokers"),
        ("Metadata", 13, {"topics": None}, "brokers"),
        ("FindCoordinator", 0, {"key": "g"}, None),
        ("FindCoordinator", 6, {"keyType": 0, "coordinatorKeys": ["g", "h"]}, "coordinators"),
        ("DescribeCluster", 2, {}, "brokers"),
    ],
)
def test_clients_stay_on_the_proxy(
    broker: tuple[str, int], tmp_path: Path, api: str, version: int, body: dict[str, Any], where: str | None
) -> None:
    with WireRecorder(str(tmp_path / "out"), ANY, broker) as recorder:
        found = ask(recorder.address, api, version, body)
        direct = ask(broker, api, version, body)
    for one, other in zip(found[where], direct[where], strict=True) if where else [(found, direct)]:
        assert (one.pop("host"), one.pop("port")) == recorder.address
        assert (other.pop("host"), other.pop("port")) == broker
    assert found == direct
    # The capture has the broker's own answer.
    (exchange,) = Exchanges([tmp_path / "out"])
    assert (exchange.client_id, exchange.api, exchange.server) == ("me", api, text(broker))
    assert exchange.response is not None
    brokers = exchange.response.body[where] if where else [exchange.response.body]
    assert {(one["host"], one["port"]) for one in brokers} == {broker}


def test_other_brokers_get_ports_of_their_own(broker: tuple[str, int], tmp_path: Path) -> None:
    """A name for the same broker counts as another one."""
    address = text(("localhost", broker[1]))
    with (
        magicbyte.serve(SAMPLES, advertised_listener=address, committed_offsets=False) as server,
        WireRecorder(str(tmp_path / "out"), ANY, parse_address(server.bootstrap_servers)) as recorder,
    ):
        (found,) = ask(recorder.address, "Metadata", 12, {"topics": []})["brokers"]
        assert found["port"] not in (recorder.address[1], broker[1])
        (again,) = ask(recorder.address, "Metadata", 12, {"topics": []})["brokers"]
        assert again == found
        (other,) = ask(("127.0.0.1", found["port"]), "Metadata", 12, {"topics": []})["brokers"]
    # That one has no advertised address, and so the one that it was reached at.
    assert other["port"] != broker[1]
    assert {one.server for one in Exchanges([tmp_path / "out"])} == {
        server.bootstrap_servers,
        text(broker),
    }


@pytest.fixture
def echo() -> Iterator[tuple[str, int]]:
    """Sends back what it gets."""
    listener = socket.create_server(ANY)

    def serve() -> None:
        while True:
            try:
                one, _ = listener.accept()
            except OSError:
                return
            with one:
                while data := one.recv(1 << 16):
                    one.sendall(data)

    thread = threading.Thread(target=serve)
    thread.start()
    yield listener.getsockname()
    listener.shutdown(socket.SHUT_RDWR)
    listener.close()
    thread.join()


@pytest.mark.parametrize(
    "sent",
    [
        b"\x16\x03\x01\x02\x00" + bytes(range(256)) * 2000,
        b"GET / HTTP/1.1\r\n\r\n",
        b"\xff" * 100,
        b"\0\0\0\0" * 50,
        sized(struct.pack(">hhi", 3, 12, 7)) + b"\x7f",
        sized(struct.pack(">hhi", 3, 12, 0x0003000C)) * 3,
        b"\0\0\0",
    ],
)
def test_what_is_not_kafka_passes(echo: tuple[str, int], tmp_path: Path, sent: bytes) -> None:
    with WireRecorder(str(tmp_path / "out"), ANY, echo) as recorder:
        with socket.create_connection(recorder.address, 5) as connection:
            connection.sendall(sent)
            connection.shutdown(socket.SHUT_WR)
            got = b""
            while data := connection.recv(1 << 16):
                got += data
        assert got == sent
    exchanges = Exchanges([tmp_path / "out"])
    assert all(one.client is not None for one in exchanges)
    assert (exchanges.summary.connections, exchanges.summary.lost_bytes) == (1, 0)


def test_responses_in_pieces_of_any_size() -> None:
    body = {"brokers": [{"nodeId": 1, "host": "far", "port": 9092}], "topics": []}
    response = sized(encode_response("Metadata", 12, body, header={"correlationId": 7}))
    other = sized(struct.pack(">i", 8) + b"x" * 100)
    asked = request("Metadata", 12, {"topics": []})
    expected = None
    for size in (1, 2, 3, 5, 8, 13, 1000):
        redirect = Redirect(lambda host, port: ("near", port + 1))
        for start in range(0, len(asked), size):
            redirect.request(asked[start : start + size])
        stream = other + response + other + response
        got = b"".join(
            redirect.response(stream[start : start + size]) for start in range(0, len(stream), size)
        )
        expected = expected or got
        assert got == expected
    assert expected is not None
    changed = expected[len(other) : -len(other) - len(response)]
    (broker,) = decode_response(changed[4:], "Metadata", 12).body["brokers"]
    assert (broker["host"], broker["port"]) == ("near", 9093)
    # The second one was not asked for.
    assert expected.endswith(other + response)


MOVED: list[tuple[str, int, dict[str, Any]]] = [
    ("Produce", 10, {"responses": [{"name": "t", "partitionResponses": [{"index": 0, "errorCode": 6}]}]}),
    ("Produce", 13, {"responses": [{"topicId": "A" * 22, "partitionResponses": [{"errorCode": 6}]}]}),
    ("Fetch", 16, {"responses": [{"partitions": [{"errorCode": 6, "records": b"x" * 1000}]}]}),
    ("Fetch", 17, {"responses": []}),
    ("ShareFetch", 1, {"responses": []}),
    ("ShareAcknowledge", 1, {"responses": []}),
]


def redirected(api: str, version: int, body: dict[str, Any]) -> tuple[bytes, bytes]:
    """A response, and what the client gets."""
    frame = encode_response(api, version, body, header={"correlationId": 7})
    redirect = Redirect(lambda host, port: ("near", port + 1))
    redirect.request(request(api, version, {}))
    changed = redirect.response(sized(frame))
    assert changed[:4] == struct.pack(">i", len(changed) - 4)
    return frame, changed[4:]


@pytest.mark.parametrize(("api", "version", "body"), MOVED)
def test_leaders_that_have_moved(api: str, version: int, body: dict[str, Any]) -> None:
    """A response with an error names the broker to ask instead (KIP-951)."""
    nodes = [{"nodeId": 2, "host": "far", "port": 9092, "rack": "r"}, {"nodeId": 3, "host": "f", "port": 1}]
    frame, changed = redirected(api, version, body | {"nodeEndpoints": nodes})
    expected = decode_response(frame, api, version).body
    for node in expected["nodeEndpoints"]:
        node["host"], node["port"] = "near", node["port"] + 1
    assert decode_response(changed, api, version).body == expected
    # Without such an error, it is the broker's.
    frame, changed = redirected(api, version, body)
    assert changed == frame


@pytest.mark.parametrize(("api", "version"), [("Produce", 9), ("Fetch", 15), ("Fetch", 4)])
def test_versions_that_name_no_leaders(api: str, version: int) -> None:
    frame, changed = redirected(api, version, {"responses": []})
    assert changed == frame


def test_requests_that_get_no_response() -> None:
    """As with acks=0."""
    redirect = Redirect(lambda host, port: ("near", port + 1))
    for number in range(3000):
        redirect.request(sized(struct.pack(">hhih", 0, 12, number, -1) + bytes(7)))
    header = {"correlationId": 3000, "clientId": "me"}
    redirect.request(sized(encode_request("Metadata", 12, {"topics": []}, header=header)))
    body = {"brokers": [{"nodeId": 1, "host": "far", "port": 9092}], "topics": []}
    frame = encode_response("Metadata", 12, body, header={"correlationId": 3000})
    (broker,) = decode_response(redirect.response(sized(frame))[4:], "Metadata", 12).body["brokers"]
    assert (broker["host"], broker["port"]) == ("near", 9093)


def test_limits(broker: tuple[str, int], tmp_path: Path) -> None:
    with WireRecorder(str(tmp_path / "small"), ANY, broker, max_bytes=300, max_connections=1) as recorder:
        with socket.create_connection(recorder.address, 5) as first:
            for _ in range(3):
                first.sendall(request("Metadata", 12, {"topics": None}))
                answer(first)
            with socket.create_connection(recorder.address, 5) as second:
                assert second.recv(1) == b""
        assert recorder.summary.problem is not None
        assert "is not allowed more" in recorder.summary.problem
    assert (tmp_path / "small").stat().st_size <= 300
    assert [one.api for one in Exchanges([tmp_path / "small"])] == ["Metadata"]
    with pytest.raises(RefusedError, match="exists"):
        WireRecorder(str(tmp_path / "small"), ANY, broker)


def test_a_broker_that_is_not_there(tmp_path: Path) -> None:
    with socket.create_server(ANY) as nobody:
        address = nobody.getsockname()
    with WireRecorder(str(tmp_path / "out"), ANY, address) as recorder:
        with socket.create_connection(recorder.address, 5) as connection:
            assert connection.recv(1) == b""
        (problem,) = recorder.problems
        assert "refused" in problem


def test_the_command_ends_cleanly(broker: tuple[str, int], tmp_path: Path) -> None:
    out = tmp_path / "out.pcap"
    command = [sys.executable, "-m", "magicbyte", "wire", "record", "--listen", "127.0.0.1:0"]
    with subprocess.Popen(
        [*command, "--upstream", text(broker), str(out)], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        address = parse_address(line.split(" at ")[1].split()[0])
        with socket.create_connection(address, 60) as connection:
            connection.sendall(request("Metadata", 12, {"topics": None}))
            answer(connection)
            process.send_signal(signal.SIGINT)
            assert process.wait(60) == 0
        assert process.stdout.readline() == f"1 connections, {out.stat().st_size:,} bytes\n"
    (one,) = Exchanges([out])
    assert one.response is not None


@pytest.mark.parametrize(
    ("host", "port"), [("broker..example", 9092), ("a\0b", 9092), ("x" * 300, 9092), ("127.0.0.1", 70_000)]
)
def test_brokers_that_there_cannot_be(tmp_path: Path, host: str, port: int) -> None:
    """Connections to them end, and do not count any more."""
    with WireRecorder(str(tmp_path / "out"), ANY, (host, port), max_connections=2) as recorder:
        for _ in range(5):
            with socket.create_connection(recorder.address, 10) as connection:
                assert connection.recv(1) == b""
        assert len(recorder.problems) == 5
        assert all(problem.startswith(f"{host}:{port}: ") for problem in recorder.problems)
