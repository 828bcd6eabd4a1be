"""`magicbyte serve` without a Kafka client: every version of every request, hostile bytes, the command."""

from __future__ import annotations

import json
import random
import shutil
import signal
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import magicbyte
import pytest
from conftest import KAFKA
from magicbyte import message
from magicbyte.errors import RefusedError
from magicbyte.jobs.serve import PROBLEMS_TOPIC, Server, parse_address

TOPIC = "v2_txn"
API_VERSIONS, FETCH, PRODUCE = 18, 1, 0


class Connection:
    """Requests and responses, one after another."""

    def __init__(self, server: Server) -> None:
        host, _, port = server.bootstrap_servers.rpartition(":")
        self.socket = socket.create_connection((host, int(port)), timeout=20)
        self._ids = 0

    def __enter__(self) -> Connection:
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()

    def send(self, frame: bytes) -> None:
        self.socket.sendall(struct.pack(">i", len(frame)) + frame)

    def receive(self) -> bytes:
        """A frame; none if the connection is closed."""
        data = b""
        while len(data) < 4 or len(data) < 4 + struct.unpack_from(">i", data)[0]:
            try:
                piece = self.socket.recv(1 << 20)
            except ConnectionResetError:
                return b""
            if not piece:
                return b""
            data += piece
        return data[4:]

    def ask(self, api: int, version: int, **body: Any) -> dict[str, Any]:
        self._ids += 1
        header = {"correlationId": self._ids, "clientId": "test"}
        self.send(message.encode_request(api, version, body, header=header))
        response = message.decode_response(self.receive(), api, version)
        assert response.header["correlationId"] == self._ids
        return response.body


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with magicbyte.serve(KAFKA, listen="127.0.0.1:0") as server:
        yield server


@pytest.fixture(scope="module")
def topic_id(server: Server) -> str:
    with Connection(server) as client:
        (topic,) = client.ask(3, 12, topics=[{"name": TOPIC}])["topics"]
        return topic["topicId"]


def request(api: int, version: int, topic_id: str) -> dict[str, Any]:
    """A request with content that this version can have."""
    by_id = {"topicId": topic_id}
    group = {"groupId": f"g{version}"}
    match api:
        case 0:
            named = by_id if version >= 13 else {"name": TOPIC}
            partitions = [{"index": 0, "records": b""}]
            return {"acks": 1, "topicData": [{**named, "partitionData": partitions}]}
        case 1:
            named = by_id if version >= 13 else {"topic": TOPIC}
            partitions = [{"partition": 0, "fetchOffset": 0, "partitionMaxBytes": 1 << 20}]
            return {"isolationLevel": 1, "topics": [{**named, "partitions": partitions}]}
        case 2:
            partitions = [{"partitionIndex": 0, "timestamp": -1}]
            return {"replicaId": -1, "topics": [{"name": TOPIC, "partitions": partitions}]}
        case 3:
            return {"topics": [{"name": TOPIC}, {"name": "nowhere"}]}
        case 8:
            named = by_id if version >= 10 else {"name": TOPIC}
            partitions = [{"partitionIndex": 0, "committedOffset": 5, "committedMetadata": "m"}]
            return {**group, "topics": [{**named, "partitions": partitions}]}
        case 9:
            named = by_id if version >= 10 else {"name": TOPIC}
            topics = [{**named, "partitionIndexes": [0]}]
            return {"groups": [{**group, "topics": topics}]} if version >= 8 else {**group, "topics": topics}
        case 10:
            return {"coordinatorKeys": ["g"]} if version >= 4 else {"key": "g"}
        case 11:
            protocols = [{"name": "range", "metadata": b"m"}]
            return {**group, "sessionTimeoutMs": 6000, "protocolType": "consumer", "protocols": protocols}
        case 13:
            return {**group, "members": [{"memberId": "m"}]} if version >= 3 else {**group, "memberId": "m"}
        case 12 | 14:
            return {**group, "memberId": "m", "generationId": 1}
        case 15:
            return {"groups": [*group.values(), "nowhere"]}
        case 23:
            return {"topics": [{"topic": TOPIC, "partitions": [{"partition": 0, "leaderEpoch": 0}]}]}
        case 32:
            return {"resources": [{"resourceType": 2, "resourceName": TOPIC, "configurationKeys": None}]}
        case 43:
            return {"topicPartitions": None, **({"electionType": 1} if version >= 1 else {})}
        case 45:
            partitions = [{"partitionIndex": 0, "replicas": [0]}]
            return {"topics": [{"name": TOPIC, "partitions": partitions}]}
        case 50:
            return {"users": [{"name": "ann"}]}
        case 55:
            return {"topics": [{"topicName": TOPIC, "partitions": [{"partitionIndex": 0}]}]}
        case 61:
            return {"topics": [{"name": TOPIC, "partitionIndexes": [0]}]}
        case 68:
            joining = {"rebalanceTimeoutMs": 60_000, "subscribedTopicNames": [TOPIC], "topicPartitions": []}
            return {"groupId": f"new{version}", "memberId": "m", **joining}
        case 69:
            return {"groupIds": ["new0", "nowhere"]}
        case 65:
            return {"transactionalIds": ["open", "nobody"]}
        case 66:
            more = {"durationFilter": 1} if version >= 1 else {}
            more |= {"transactionalIdPattern": ".*"} if version >= 2 else {}
            return {"stateFilters": ["Ongoing"], "producerIdFilters": [1], **more}
        case 77:
            return {"groupIds": ["nowhere"]}
        case 75:
            return {"topics": [{"name": TOPIC}]}
    return {}


def test_every_version_of_every_request(server: Server, topic_id: str) -> None:
    """What is offered is answered, in a form that can be decoded."""
    with Connection(server) as client:
        offered = client.ask(API_VERSIONS, 0)["apiKeys"]
        assert {one["apiKey"] for one in offered} >= {
            *range(4),
            *range(8, 15),
            18,
            23,
            29,
            32,
            35,
            43,
            45,
            46,
            48,
            50,
            55,
            60,
            61,
            65,
            66,
            68,
            69,
            75,
            77,
        }
        for one in offered:
            for version in range(one["minVersion"], one["maxVersion"] + 1):
                api = one["apiKey"]
                body = client.ask(api, version, **request(api, version, topic_id))
                refused = {29: 54, 55: 44}.get(api, 0)
                assert body.get("errorCode", 0) in (refused, 25, 79), (api, version, body)
                if api == FETCH:
                    (topic,) = body["responses"]
                    (partition,) = topic["partitions"]
                    assert (partition["errorCode"], len(partition["records"]) > 1000) == (0, True)
                    assert partition["abortedTransactions"]
                if api == PRODUCE:
                    (topic,) = body["responses"]
                    assert topic["partitionResponses"][0]["errorCode"] == 44
                if api == 43:
                    results = {one["topic"]: one["partitionResult"] for one in body["replicaElectionResults"]}
                    assert results[TOPIC][0]["errorCode"] == 44
                if api == 45:
                    assert body["responses"][0]["partitions"][0]["errorCode"] == 44
                if api == 50:
                    assert [(one["user"], one["errorCode"]) for one in body["results"]] == [("ann", 91)]
                if api == 68:
                    (topic,) = body["assignment"]["topicPartitions"]
                    assert topic == {"topicId": topic_id, "partitions": [0]}
                if api == 69:
                    new, nowhere = body["groups"]
                    assert (new["groupState"], new["assignorName"], len(new["members"])) == (
                        "Stable",
                        "uniform",
                        1,
                    )
                    assert nowhere["errorCode"] == 69
                if api == 9:
                    topics = body["groups"][0]["topics"] if version >= 8 else body["topics"]
                    # Committed by the request of the same version.
                    wanted = 5 if version >= 2 else -1
                    assert topics[0]["partitions"][0]["committedOffset"] == wanted


def test_an_unknown_version_of_api_versions(server: Server) -> None:
    """Clients of the future get an error in version 0, and the versions to choose from."""
    with Connection(server) as client:
        client.send(struct.pack(">hhih", API_VERSIONS, 99, 7, -1) + b"\0")
        body = message.decode_response(client.receive(), API_VERSIONS, 99).body
        assert (body["errorCode"], len(body["apiKeys"])) == (35, 32)


def test_fetch_is_what_the_files_have(server: Server) -> None:
    """All batches of a partition, in pieces of any size, are its segments."""
    files = b"".join(path.read_bytes() for path in sorted((KAFKA / "v2_none").glob("*.log")))
    for max_bytes in (1, 300, 5000, 1 << 20):
        offset, found = 0, b""
        with Connection(server) as client:
            while True:
                partition = {"partition": 0, "fetchOffset": offset, "partitionMaxBytes": max_bytes}
                topics = [{"topic": "v2_none", "partitions": [partition]}]
                body = client.ask(FETCH, 12, maxBytes=1 << 20, topics=topics)
                records = body["responses"][0]["partitions"][0]["records"]
                if not records:
                    break
                found += records
                offset = 1 + max(one.last_offset for one in magicbyte.read_batches(records))
        assert found == files


def test_offsets_out_of_range_and_unknown_places(server: Server) -> None:
    with Connection(server) as client:
        for topic, number, offset, wanted in [
            (TOPIC, 0, -5, 1),
            (TOPIC, 0, 1 << 60, 1),
            (TOPIC, 1, 0, 3),
            ("nowhere", 0, 0, 3),
            (PROBLEMS_TOPIC, 0, 5, 1),
        ]:
            partition = {"partition": number, "fetchOffset": offset, "partitionMaxBytes": 100}
            body = client.ask(FETCH, 12, topics=[{"topic": topic, "partitions": [partition]}])
            assert body["responses"][0]["partitions"][0]["errorCode"] == wanted


def test_requests_cut_at_every_byte(server: Server) -> None:
    frame = message.encode_request(
        3, 12, {"topics": [{"name": TOPIC}]}, header={"correlationId": 1, "clientId": "c"}
    )
    for size in range(len(frame)):
        with Connection(server) as client:
            client.send(frame[:size])
            assert client.receive() == b""
    # In pieces, it is whole.
    with Connection(server) as client:
        for byte in struct.pack(">i", len(frame)) + frame:
            client.socket.sendall(bytes([byte]))
        assert client.receive()


@pytest.mark.parametrize("size", [-1, -(2**31), 2**31 - 1, 100 << 20, (2 << 20) + 1])
def test_sizes_out_of_range(server: Server, size: int) -> None:
    with Connection(server) as client:
        client.socket.sendall(struct.pack(">i", size))
        assert client.receive() == b""


def test_unknown_requests(server: Server) -> None:
    for api, version in [(-1, 0), (4, 0), (68, 0), (999, 0), (FETCH, 3), (FETCH, 99), (3, -1), (3, 14)]:
        with Connection(server) as client:
            client.send(struct.pack(">hhih", api, version, 1, -1) + bytes(20))
            assert client.receive() == b""


def test_garbage_on_many_connections(server: Server) -> None:
    """The server goes on, and forgets them."""
    chance = random.Random(1)
    inputs = [chance.randbytes(chance.randrange(1, 200)) for _ in range(1000)]

    def send(garbage: bytes) -> None:
        with Connection(server) as client:
            data = struct.pack(">i", len(garbage)) + garbage if len(garbage) % 2 else garbage
            client.socket.sendall(data)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(send, inputs))
    with Connection(server) as client:
        assert client.ask(API_VERSIONS, 0)["errorCode"] == 0
    deadline = time.monotonic() + 60
    while server.connections:
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_a_slow_client_stalls_nobody(server: Server) -> None:
    with Connection(server) as slow, Connection(server) as waiting, Connection(server) as quick:
        slow.socket.sendall(b"\0\0\1\0half a request")
        partition = {"partition": 0, "fetchOffset": 346, "partitionMaxBytes": 100}
        frame = {"maxWaitMs": 30_000, "topics": [{"topic": "v2_none", "partitions": [partition]}]}
        waiting.send(message.encode_request(FETCH, 12, frame, header={"correlationId": 1, "clientId": ""}))
        begun = time.monotonic()
        assert quick.ask(3, 12, topics=None)["topics"]
        assert time.monotonic() - begun < 20


def test_too_many_connections(tmp_path: Path) -> None:
    from magicbyte.jobs.run.engines import LocalEngine
    from magicbyte.jobs.serve import serve
    from magicbyte.options.serve import ServeOptions

    shutil.copytree(KAFKA / "v2_none", tmp_path / "orders-0")
    options = ServeOptions(listen="127.0.0.1:0", max_connections=2, idle_ms=300)
    with (
        serve([str(tmp_path)], LocalEngine(), options) as server,
        Connection(server) as one,
        Connection(server) as two,
        Connection(server) as three,
    ):
        assert one.ask(API_VERSIONS, 0)
        assert two.ask(API_VERSIONS, 0)
        assert three.receive() == b""
        # The others are closed when they are idle.
        assert one.receive() == b""


def test_as_of_and_read_committed_only(tmp_path: Path) -> None:
    lines = [json.loads(line) for line in (KAFKA / "v2_none" / "expected.jsonl").read_text().splitlines()]
    time_of = sorted(line["timestamp"] for line in lines)[len(lines) // 2]
    with magicbyte.serve(KAFKA / "v2_none", as_of=time_of) as server, Connection(server) as client:
        partition = {"partition": 0, "fetchOffset": 0, "partitionMaxBytes": 1 << 20}
        body = client.ask(FETCH, 12, topics=[{"topic": "v2_none", "partitions": [partition]}])
        (found,) = body["responses"][0]["partitions"]
        batches = list(magicbyte.read_batches(found["records"]))
        assert 0 < found["highWatermark"] < len(lines)
        assert max(batch.max_timestamp for batch in batches) <= time_of
        assert batches[-1].last_offset + 1 == found["highWatermark"]
    with magicbyte.serve(KAFKA / TOPIC, read_committed_only=True) as server, Connection(server) as client:
        body = client.ask(FETCH, 12, topics=[{"topic": TOPIC, "partitions": [partition]}])
        (found,) = body["responses"][0]["partitions"]
        records = [one for batch in magicbyte.read_batches(found["records"]) for one in batch]
        offsets = [one.offset for one in records if one.control is None]
        committed = (KAFKA / TOPIC / "committed.jsonl").read_text().splitlines()
        assert offsets == [json.loads(line)["offset"] for line in committed]
        assert not found["abortedTransactions"]


def test_the_command_ends_cleanly(tmp_path: Path) -> None:
    shutil.copytree(KAFKA / "v2_none", tmp_path / "orders-0")
    before = sorted((path, path.stat().st_mtime_ns) for path in tmp_path.rglob("*"))
    command = [sys.executable, "-m", "magicbyte", "serve", "--listen", "127.0.0.1:0", "--json", str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        described = json.loads(process.stdout.readline())
        assert described["partitions"] == [{"topic": "orders", "partition": 0}]
        port = int(described["bootstrap_servers"].rpartition(":")[2])
        with socket.create_connection(("127.0.0.1", port), timeout=60):
            process.send_signal(signal.SIGINT)
            assert process.wait(60) == 130
        assert process.stderr is not None
        assert process.stderr.read() == "magicbyte: interrupted\n"
    assert sorted((path, path.stat().st_mtime_ns) for path in tmp_path.rglob("*")) == before


def test_addresses(tmp_path: Path) -> None:
    assert parse_address("archive:9092") == ("archive", 9092)
    assert parse_address("[::1]:0") == ("::1", 0)
    for wrong in ("9092", ":9092", "host:", "host:65536", "host:-1", "host:nine"):
        with pytest.raises(RefusedError, match="is not an address"):
            parse_address(wrong)
    with pytest.raises(RefusedError):
        magicbyte.serve(tmp_path)
    with pytest.raises(OSError, match=r"^cannot listen on nohost\.invalid:9092: "):
        magicbyte.serve(KAFKA / "v2_none", listen="nohost.invalid:9092")
    with magicbyte.serve(KAFKA / "v2_none") as server, pytest.raises(OSError, match="cannot listen"):
        magicbyte.serve(KAFKA / "v2_none", listen=server.bootstrap_servers)
    server.stop()
    with pytest.raises(ConnectionRefusedError):
        Connection(server)


def test_bytes_after_a_request_are_ignored(server: Server) -> None:
    """As a broker does: librdkafka's requests for all topics have three."""
    frame = message.encode_request(
        3, 13, {"topics": None}, header={"correlationId": 1, "clientId": "rdkafka"}
    )
    with Connection(server) as client:
        client.send(frame + b"\0\0\0")
        assert len(message.decode_response(client.receive(), 3, 13).body["topics"]) > 40


def test_fetch_sessions(server: Server, topic_id: str) -> None:
    """After the first answer, only what is new; positions are those of the session."""

    def partition(offset: int) -> dict[str, Any]:
        asked = {"partition": 0, "fetchOffset": offset, "partitionMaxBytes": 1 << 20}
        return {"topicId": topic_id, "partitions": [asked]}

    with Connection(server) as client:

        def fetch(session: int, epoch: int, *topics: dict[str, Any], **others: Any) -> dict[str, Any]:
            where = {"sessionId": session, "sessionEpoch": epoch}
            return client.ask(1, 13, maxWaitMs=0, minBytes=1, topics=list(topics), **where, **others)

        def told(answer: dict[str, Any]) -> list[int]:
            found = [one for topic in answer["responses"] for one in topic["partitions"]]
            return [len(one["records"] or b"") for one in found]

        first = fetch(0, 0, partition(0))
        session = first["sessionId"]
        assert session > 0
        assert told(first) != [0]
        end = first["responses"][0]["partitions"][0]["highWatermark"]
        assert told(fetch(session, 1)) == told(first), "not moved: the same records"
        assert told(fetch(session, 2, partition(end))) == []
        assert told(fetch(session, 3)) == []
        assert told(fetch(session, 4, partition(0))) == told(first)
        forgotten = [{"topicId": topic_id, "partitions": [0]}]
        assert told(fetch(session, 5, forgottenTopicsData=forgotten)) == []
        assert fetch(session, 5)["errorCode"] == 71
        assert fetch(session + 1, 1)["errorCode"] == 70
        assert fetch(session, -1, partition(0))["sessionId"] == 0
        assert fetch(session, 6)["errorCode"] == 70
