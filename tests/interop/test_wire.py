"""Captures of clients at work with a real broker: every message is decoded, and the batches are the broker's."""

from __future__ import annotations

import asyncio
import json
import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import aiokafka
import magicbyte
import pytest
from captures import bootstrap_of, decoded
from consumers import BY_NAME, JAVA_VERSIONS, READS_OLD_LZ4, by_java
from kafka import KafkaConsumer
from kafka_broker import Broker
from magicbyte.jobs.serve import parse_address
from magicbyte.jobs.wire_extract import extract
from magicbyte.wire import Exchange, Exchanges
from wire_recorder import WireRecorder

pytestmark = pytest.mark.interop


class RecordedBroker(Broker):
    """A broker whose clients reach it through a recorder, once it has one."""

    recorder: WireRecorder | None = None

    @property
    def bootstrap(self) -> str:
        return super().bootstrap if self.recorder is None else bootstrap_of(self.recorder)


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, Path]]:
    """The capture, and the directory of the broker's logs."""
    root = tmp_path_factory.mktemp("wire")
    node = RecordedBroker(root / "broker", 1)
    node.recorder = WireRecorder(str(root / "clients.pcap"), ("127.0.0.1", 0), ("127.0.0.1", node.port))
    try:
        node.start()
        node.create_topics({"orders": "retention.ms=-1", "plain": "retention.ms=-1"})
        node.transact("orders")
        asyncio.run(produce_and_consume(node.bootstrap))
        for isolation_level in ("read_uncommitted", "read_committed"):
            node.read("orders", isolation_level)
        node.read("plain")
        consumer = KafkaConsumer(
            "plain",
            bootstrap_servers=node.bootstrap,
            auto_offset_reset="earliest",
            consumer_timeout_ms=1500,
            group_id=None,
        )
        assert sum(1 for _ in consumer) == 200
        consumer.close()
        node.stop()
        yield root / "clients.pcap", node.logs
    finally:
        node.kill()
        node.recorder.close()


async def produce_and_consume(bootstrap: str) -> None:
    for codec in (None, "gzip", "lz4", "zstd"):
        producer = aiokafka.AIOKafkaProducer(
            bootstrap_servers=bootstrap, compression_type=codec, client_id=f"producer-{codec}"
        )
        await producer.start()
        for number in range(50):
            await producer.send("plain", b"value %d" % number * 20, key=b"key")
        await producer.stop()
    consumer = aiokafka.AIOKafkaConsumer(
        "plain", bootstrap_servers=bootstrap, auto_offset_reset="earliest", client_id="consumer"
    )
    await consumer.start()
    count = 0
    while count < 200:
        count += sum(map(len, (await consumer.getmany(timeout_ms=5000)).values()))
    await consumer.stop()


@pytest.fixture(scope="module")
def exchanges(recorded: tuple[Path, Path]) -> list[Exchange]:
    capture, _ = recorded
    return decoded(capture)


def test_every_message_is_decoded(exchanges: list[Exchange]) -> None:
    assert len(exchanges) > 50
    for one in exchanges:
        assert one.request is not None
        # The broker ends while a fetch waits.
        assert one.response is not None or one.api == "Fetch"
    apis = {one.api for one in exchanges}
    assert {"ApiVersions", "Metadata", "Produce", "Fetch", "EndTxn", "InitProducerId", "CreateTopics"} <= apis


@pytest.mark.parametrize("topic", ["orders", "plain"])
def test_extracted_batches_are_those_of_the_segments(
    recorded: tuple[Path, Path], topic: str, tmp_path: Path
) -> None:
    capture, logs = recorded
    report = extract(Exchanges([capture]), tmp_path / "out")
    assert report["problems"] == []
    written, broker = (
        b"".join(path.read_bytes() for path in sorted(directory.glob("*.log")))
        for directory in (tmp_path / "out" / f"{topic}-0", logs / f"{topic}-0")
    )
    assert written == broker
    assert magicbyte.verify(tmp_path / "out")["balanced"]


@pytest.mark.parametrize("client", [*JAVA_VERSIONS, *BY_NAME])
def test_a_capture_of_a_client_of_serve(client: str, kafka: Path, tmp_path: Path) -> None:
    """Each client reads all partitions of real brokers; what passed is decoded, and is in the files."""
    capture = tmp_path / "clients.pcap"
    with (
        magicbyte.serve(kafka) as server,
        WireRecorder(str(capture), ("127.0.0.1", 0), parse_address(server.bootstrap_servers)) as recorder,
    ):
        address = bootstrap_of(recorder)
        topics = [topic for topic, _ in server.partitions]
        if client in JAVA_VERSIONS:
            by_java(client, address, "read_uncommitted", "recorded", topics)
        else:
            topics = [topic for topic in topics if client in READS_OLD_LZ4 or "v2" in topic]
            logs = [magicbyte.PartitionLog(kafka / topic, mode="PERMISSIVE") for topic in topics]
            count = sum(one.control is None for log in logs for one in log.records())
            BY_NAME[client](address, "read_uncommitted", "recorded", topics, count)
    apis = {one.api for one in decoded(capture)}
    assert {"ApiVersions", "Metadata", "Fetch", "JoinGroup", "SyncGroup"} <= apis
    report = extract(Exchanges([capture]), tmp_path / "out")
    assert report["problems"] == []
    written = {f"{one['topic']}-{one['partition']}" for one in report["written"]}
    assert written == {f"{topic}-0" for topic in topics if batches_of(kafka / topic)}
    for name in written:
        assert batches_of(tmp_path / "out" / name) == batches_of(kafka / name.removesuffix("-0")), name


def batches_of(directory: Path) -> bytes:
    """The batches of a partition, without what follows the last of them."""
    data = b"".join(path.read_bytes() for path in sorted(directory.glob("*.log")))
    return b"".join(batch.to_bytes() for batch in magicbyte.read_batches(data, allow_partial=True))


def test_tshark_finds_the_same_requests(recorded: tuple[Path, Path], exchanges: list[Exchange]) -> None:
    """Where it can: it has no names for newer versions, but the heads of all requests."""
    capture, _ = recorded
    fields = ["kafka.request_key", "kafka.api_version", "kafka.correlation_id"]
    theirs = []
    for line in tshark(capture, port_of(exchanges), "kafka.request_key", *fields):
        keys, *others = (column.split(",") for column in line.split("\t"))
        theirs += [tuple(map(int, one)) for one in zip(keys, *others, strict=False)]
    ours = {(one.api_key, one.api_version, one.correlation_id) for one in exchanges}
    assert len(theirs) > 50
    assert {*theirs} <= ours


def test_a_fetch_that_tshark_calls_malformed_prints_as_json(
    recorded: tuple[Path, Path], exchanges: list[Exchange]
) -> None:
    capture, _ = recorded
    port = port_of(exchanges)
    asked = f"_ws.malformed and tcp.dstport == {port}"
    packets = map(bytes.fromhex, tshark(capture, port, asked, "tcp.payload"))
    # Size, key, version and correlation id of the first request in each packet.
    malformed = {struct.unpack(">hhi", packet[4:12]) for packet in packets}
    printed = subprocess.run(
        [sys.executable, "-m", "magicbyte", "wire", "--json", str(capture)],
        check=True,
        capture_output=True,
        text=True,
    )
    rows = map(json.loads, printed.stdout.splitlines())
    found = {(row["api_key"], row["api_version"], row["correlation_id"]): row for row in rows}
    assert malformed <= found.keys()
    fetches = [found[head] for head in malformed if found[head]["api"] == "Fetch"]
    assert fetches
    for row in fetches:
        assert row["request"]["maxBytes"] > 0
        assert row["request"]["topics"] or row["request"]["sessionId"]


def tshark(capture: Path, port: int, shown: str, *fields: str) -> list[str]:
    """The fields of the packets that a filter of Wireshark shows; the protocol is told, not guessed."""
    command = ["tshark", "-r", str(capture), "-d", f"tcp.port=={port},kafka", "-Y", shown, "-T", "fields"]
    command += [word for one in fields for word in ("-e", one)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()


def port_of(exchanges: list[Exchange]) -> int:
    (port,) = {int((one.server or "").rpartition(":")[2]) for one in exchanges}
    return port
