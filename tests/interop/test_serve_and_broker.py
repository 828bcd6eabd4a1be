"""A real broker opens the same directories: its clients get what those of `magicbyte serve` get."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import magicbyte
import pytest
from captures import bootstrap_of, decoded
from consumers import AS_SEEN, BY_NAME, JAVA_VERSIONS, by_java, by_log, of_line
from kafka_broker import Broker, Client, Tools
from kafka_versions import NEWEST
from magicbyte.jobs.serve import PROBLEMS_TOPIC, Server, parse_address
from wire_recorder import WireRecorder

pytestmark = pytest.mark.interop

# A broker takes the time of an empty segment's file for its largest timestamp, searches there, and finds nothing.
HAVE_EMPTY_SEGMENTS = {"v2_compacted_txn"}
LARGEST = 2**63 - 1
# Their ids are those of v2_torn_tail and __cluster_metadata.
HAVE_IDS_OF_OTHERS = {"v2_unclean", "cluster_metadata"}
# Their leader epochs are beyond the broker's own: kafka-python takes that for a truncation, and reads them again.
HAVE_LATER_EPOCHS = {"v2_epochs", "v2_epochs_log"}


@pytest.fixture(scope="module")
def topics(broker: Broker, kafka: Path) -> Iterator[dict[str, str]]:
    """Every partition of the fixtures, opened by the broker after a crash; its topic for each name."""
    yield broker.open({path.name: path for path in sorted(kafka.iterdir())}, clean=False)
    broker.kill()


@pytest.fixture(scope="module")
def server(kafka: Path) -> Iterator[Server]:
    with magicbyte.serve(kafka) as server:
        yield server


@pytest.mark.parametrize("isolation", ["read_uncommitted", "read_committed"])
def test_records(broker: Broker, topics: dict[str, str], server: Server, isolation: str) -> None:
    found = by_java(NEWEST, server.bootstrap_servers, isolation, None, topics)
    wanted = by_java(NEWEST, broker.bootstrap, isolation, None, topics.values())
    for name, topic in topics.items():
        assert found.get(name) == wanted.get(topic), name
    assert sum(map(len, found.values())) > 5000


@pytest.mark.parametrize("client", [*JAVA_VERSIONS, *BY_NAME])
def test_a_capture_of_a_client_of_the_broker(
    broker: Broker, topics: dict[str, str], kafka: Path, tmp_path: Path, client: str
) -> None:
    """Each client gets the records of our own reader, and what passed is decoded."""
    capture = tmp_path / "client.pcap"
    names = {name for name in topics if name.startswith("v2")}
    if client == "kafka-python":
        names -= HAVE_LATER_EPOCHS
    wanted = {topics[name]: by_log(kafka / name, "read_committed") for name in sorted(names)}
    with WireRecorder(str(capture), ("127.0.0.1", 0), parse_address(broker.bootstrap)) as recorder:
        address, count = bootstrap_of(recorder), sum(map(len, wanted.values()))
        if client in JAVA_VERSIONS:
            lines = by_java(client, address, "read_committed", None, wanted)
            found = {topic: list(map(of_line, lines.get(topic, []))) for topic in wanted}
        else:
            found = BY_NAME[client](address, "read_committed", None, list(wanted), count)
    as_seen = AS_SEEN.get(client, lambda record: record)
    for topic, records in wanted.items():
        assert found.get(topic, []) == list(map(as_seen, records)), topic
    assert {"ApiVersions", "Metadata", "Fetch"} <= {one.api for one in decoded(capture)}


def test_offsets_for_times(broker: Broker, topics: dict[str, str], server: Server, kafka: Path) -> None:
    client = Client(server.bootstrap_servers)
    for name, topic in topics.items():
        if name in HAVE_EMPTY_SEGMENTS:
            assert any(log.stat().st_size == 0 for log in (kafka / name).glob("*.log"))
            continue
        lines = map(json.loads, (kafka / name / "expected.jsonl").read_text().splitlines())
        times = sorted({line["timestamp"] for line in lines if 0 <= line["timestamp"] < LARGEST})
        some = times[:: max(1, len(times) // 8)]
        asked = sorted({0, *(at + more for at in some for more in (0, 1))})
        answers = client.offsets_for_times(name, asked)
        assert answers == broker.offsets_for_times(topic, asked), name
    client.close()


def test_producers(broker: Broker, topics: dict[str, str], server: Server) -> None:
    """Producers and their open transactions. The broker has forgotten those that were last active days ago."""
    client = Client(server.bootstrap_servers)
    count = 0
    for name, topic in topics.items():
        found = {
            one[0]: one for one in (tuple(map(int, line.split())) for line in client.ask("producers", name))
        }
        wanted = {one[0]: one for one in broker.producers(topic)}
        assert {producer: found[producer] for producer in wanted} == wanted, name
        assert {producer for producer, one in found.items() if one[-1] >= 0} == {
            producer for producer, one in wanted.items() if one[-1] >= 0
        }, name
        count += len(wanted)
    client.close()
    assert count > 0


@pytest.fixture(scope="module")
def tools() -> Iterator[Tools]:
    found = Tools()
    yield found
    found.close()


def test_kafka_get_offsets(broker: Broker, topics: dict[str, str], server: Server, tools: Tools) -> None:
    for time in ("earliest", "latest", "max-timestamp"):
        found, wanted = (
            dict(
                line.split(":0:")
                for line in tools.run("kafka-get-offsets", "--bootstrap-server", at, "--time", time)
            )
            for at in (server.bootstrap_servers, broker.bootstrap)
        )
        assert len(found) > 40
        for name, topic in topics.items():
            if time != "max-timestamp" or name not in HAVE_EMPTY_SEGMENTS:
                assert found.get(name) == wanted.get(topic), (time, name)


@pytest.mark.parametrize(
    ("name", "isolation", "start"),
    [
        ("v0_none", "read_uncommitted", ["--partition", "0", "--offset", "earliest"]),
        ("v2_txn", "read_uncommitted", ["--partition", "0", "--offset", "earliest"]),
        ("v2_txn", "read_committed", ["--partition", "0", "--offset", "earliest"]),
        ("v2_headers", "read_committed", ["--from-beginning"]),
    ],
)
def test_kafka_console_consumer(
    broker: Broker,
    topics: dict[str, str],
    server: Server,
    tools: Tools,
    kafka: Path,
    name: str,
    isolation: str,
    start: list[str],
) -> None:
    log = magicbyte.PartitionLog(kafka / name)
    count = sum(one.control is None for one in log.records(isolation_level=isolation))  # type: ignore[arg-type]
    options = [*start, "--max-messages", str(count), "--isolation-level", isolation]
    for shown in ("timestamp", "offset", "partition", "headers", "key"):
        options += ["--formatter-property", f"print.{shown}=true"]
    found, wanted = (
        tools.run("kafka-console-consumer", "--bootstrap-server", at, "--topic", topic, *options)
        for at, topic in ((server.bootstrap_servers, name), (broker.bootstrap, topics[name]))
    )
    assert found == wanted
    assert sum(line.startswith(("CreateTime:", "NO_TIMESTAMP")) for line in found) == count


def test_kafka_topics(server: Server, tools: Tools, kafka: Path) -> None:
    lines = tools.run("kafka-topics", "--bootstrap-server", server.bootstrap_servers, "--describe")
    described = [dict(part.split(": ", 1) for part in line.split("\t")) for line in lines if line[0] != "\t"]
    assert {one["PartitionCount"] for one in described} == {"1"}
    found = {one["Topic"]: one["TopicId"] for one in described}
    assert found.keys() == {PROBLEMS_TOPIC, *(path.name for path in kafka.iterdir())}
    files = [
        path for path in kafka.glob("*/partition.metadata") if path.parent.name not in HAVE_IDS_OF_OTHERS
    ]
    assert len(files) > 20
    for path in files:
        assert path.read_text().split()[-1] == found[path.parent.name]
    assert len(set(found.values())) == len(found)


def test_kafka_consumer_groups(tools: Tools, kafka: Path, tmp_path: Path) -> None:
    """The groups of the archived cluster."""
    shutil.copytree(kafka / "consumer_offsets_0", tmp_path / "__consumer_offsets-0")
    archived = magicbyte.offsets(tmp_path)["offsets"]
    groups = {one["group"] for one in archived}
    for topic, partition in {(one["topic"], one["partition"]) for one in archived}:
        shutil.copytree(kafka / "v2_none", tmp_path / f"{topic}-{partition}")
    with magicbyte.serve(tmp_path) as server:
        where = ["kafka-consumer-groups", "--bootstrap-server", server.bootstrap_servers]
        assert groups <= set(tools.run(*where, "--list"))
        lines = [line.split() for line in tools.run(*where, "--describe", "--all-groups") if line]
    rows = [line for line in lines if line[0] in groups and line[2].isdigit()]
    end = str(max(one.offset for one in magicbyte.PartitionLog(kafka / "v2_none").records()) + 1)
    wanted = [
        [one["group"], one["topic"], str(one["partition"]), str(one["offset"]), end] for one in archived
    ]
    assert sorted(row[:5] for row in rows) == sorted(wanted)
