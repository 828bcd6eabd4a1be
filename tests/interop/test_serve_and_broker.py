"""A real broker opens the same directories: its clients get what those of `magicbyte serve` get."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import magicbyte
import pytest
from consumers import by_java
from kafka_broker import Broker, Client
from magicbyte.jobs.serve import Server

pytestmark = pytest.mark.interop

# A broker takes the time of an empty segment's file for its largest timestamp, searches there, and finds nothing.
HAVE_EMPTY_SEGMENTS = {"v2_compacted_txn"}
LARGEST = 2**63 - 1


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
    found = by_java("4.4.0", server.bootstrap_servers, isolation, None, topics)
    wanted = by_java("4.4.0", broker.bootstrap, isolation, None, topics.values())
    for name, topic in topics.items():
        assert found.get(name) == wanted.get(topic), name
    assert sum(map(len, found.values())) > 5000


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
