"""Captures of clients at work with a real broker: every message is decoded, and the batches are the broker's."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import aiokafka
import magicbyte
import pytest
from consumers import BY_NAME, JAVA_VERSIONS, by_java
from kafka import KafkaConsumer
from kafka_broker import Broker
from magicbyte.jobs.record_sets import extract
from magicbyte.jobs.serve import parse_address
from magicbyte.jobs.wire_recorder import WireRecorder
from magicbyte.wire import Exchange, Exchanges

pytestmark = pytest.mark.interop


class RecordedBroker(Broker):
    """A broker whose clients reach it through a recorder, once it has one."""

    recorder: WireRecorder | None = None

    @property
    def bootstrap(self) -> str:
        return super().bootstrap if self.recorder is None else bootstrap_of(self.recorder)


def bootstrap_of(recorder: WireRecorder) -> str:
    host, port = recorder.address
    return f"{host}:{port}"


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
    reading = Exchanges([capture])
    found = list(reading)
    assert reading.summary.problems == []
    assert (reading.summary.lost_bytes, reading.summary.skipped_bytes) == (0, 0)
    return found


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
            # aiokafka and kafka-python refuse LZ4 in old message sets.
            topics = [topic for topic in topics if client == "librdkafka" or "v2" in topic]
            logs = [magicbyte.PartitionLog(kafka / topic, mode="PERMISSIVE") for topic in topics]
            count = sum(one.control is None for log in logs for one in log.records())
            BY_NAME[client](address, "read_uncommitted", "recorded", topics, count)
    exchanges = Exchanges([capture])
    found = list(exchanges)
    left: set[int] = set()
    assert (exchanges.summary.problems, exchanges.summary.lost_bytes) == ([], 0)
    assert {"ApiVersions", "Metadata", "Fetch", "JoinGroup", "SyncGroup"} <= {one.api for one in found}
    for one in found:
        assert one.request is not None
        # A client may leave before it is answered.
        assert one.response is None or one.connection not in left
        if one.response is None:
            left.add(one.connection)
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


@pytest.mark.skipif(shutil.which("tshark") is None, reason="tshark is not installed")
def test_tshark_finds_the_same_requests(recorded: tuple[Path, Path], exchanges: list[Exchange]) -> None:
    """Where it can: it has no names for newer versions, but the heads of all requests."""
    capture, _ = recorded
    port = port_of(exchanges)
    fields = ["kafka.request_key", "kafka.api_version", "kafka.correlation_id"]
    command = [
        "tshark",
        "-r",
        str(capture),
        "-d",
        f"tcp.port=={port},kafka",
        "-Y",
        "kafka.request_key",
        "-T",
        "fields",
    ]
    shown = subprocess.run(
        [*command, *(word for one in fields for word in ("-e", one))],
        capture_output=True,
        text=True,
        check=True,
    )
    theirs = []
    for line in shown.stdout.splitlines():
        keys, *others = (column.split(",") for column in line.split("\t"))
        theirs += [tuple(map(int, one)) for one in zip(keys, *others, strict=False)]
    ours = {(one.api_key, one.api_version, one.correlation_id) for one in exchanges}
    assert len(theirs) > 50
    assert {*theirs} <= ours


def port_of(exchanges: list[Exchange]) -> int:
    (port,) = {int((one.server or "").rpartition(":")[2]) for one in exchanges}
    return port
