"""`diff` with real clusters: logs, backups and tables on the other side, and what retention has removed."""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path
from typing import Any

import magicbyte
import pytest
from broker_versions import Node, fresh
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from kafka_broker import Broker
from magicbyte import _core
from magicbyte.jobs.find.choice import PartitionChoice
from test_against import FIXTURES, copied, produce

pytestmark = pytest.mark.interop

FORMATS = ("parquet", "delta")


def diff(a: Path | str, b: Path | str, topic: str, **options: Any) -> Any:
    return magicbyte.diff([a, b], choice=PartitionChoice(topics=(topic,)), **options)


def transactions(bootstrap: str, topic: str) -> None:
    """A committed and an aborted transaction in each partition."""
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": f"of {topic}"})
    producer.init_transactions(60)
    for end in (producer.commit_transaction, producer.abort_transaction):
        producer.begin_transaction()
        for number in range(90):
            producer.produce(
                topic, b"in a transaction", partition=number % 3, headers={"number": b"%d" % number}
            )
        end(60)
    # A coordinator writes the last markers after it has answered.
    reader, places = _core.ClusterReader(bootstrap), [(topic, number) for number in range(3)]
    deadline = time.monotonic() + 60
    while reader.offsets(places, "read_committed") != reader.offsets(places, "read_uncommitted"):
        assert time.monotonic() < deadline
        time.sleep(0.1)


def delete_before(bootstrap: str, topic: str, partition: int, offset: int) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    place = TopicPartition(topic, partition, offset)
    admin.delete_records([place])[place].result(60)


def test_fixtures_in_a_real_broker(broker: Broker, kafka: Path, tmp_path: Path) -> None:
    """Every partition equals its files at both levels, and its Parquet table."""
    named = broker.open({name: kafka / name for name in FIXTURES}, clean=True)
    logs = tmp_path / "logs"
    for name, topic in named.items():
        shutil.copytree(kafka / name, logs / f"{topic}-0")
    chosen = PartitionChoice(topics=tuple(named.values()))
    url = f"kafka://{broker.bootstrap}"
    names = {topic: name for name, topic in named.items()}
    for level in ("read_uncommitted", "read_committed"):
        out = tmp_path / level
        magicbyte.ingest(logs, out, isolation_level=level, include_batch_metadata=True)
        for other in (logs, out):
            report = magicbyte.diff([other, url], choice=chosen, isolation_level=level)
            differing = [
                (names[one["topic"]], one) for one in report["partitions"] if one["result"] != "equal"
            ]
            assert not differing, (level, other)
            assert report["equal"]
            assert len(report["partitions"]) == len(FIXTURES)


@pytest.mark.parametrize("version", ["oldest", "old", "new"])
def test_logs_backups_and_tables(request: pytest.FixtureRequest, version: str, tmp_path: Path) -> None:
    """Equal up to the cut; what is produced after that is counted, and what is deleted is named."""
    node: Node = request.getfixturevalue(version)
    topic, url = fresh(f"compared-{version}"), f"kafka://{node.bootstrap}"
    produce(node.bootstrap, topic, (b"value %d" % number for number in range(30_000)), "lz4")
    if version != "oldest":
        transactions(node.bootstrap, topic)
    logs = copied(node, topic, tmp_path / "logs")
    choice = PartitionChoice(topics=(topic,))
    saved = tmp_path / "saved"
    magicbyte.backup(url, saved, choice=choice)
    tables = {name: tmp_path / name for name in FORMATS}
    for name, out in tables.items():
        magicbyte.ingest(logs, out, format=name, isolation_level="read_committed")
    for other in (logs, saved, url, *tables.values()):
        report = diff(url, other, topic)
        assert report["equal"], report
        assert {one["records_after_end"] for one in report["partitions"]} == {0}
        assert {one["partition"] for one in report["partitions"]} == {0, 1, 2}
    assert report["isolation_level"] == "read_committed"

    producer = Producer({"bootstrap.servers": node.bootstrap})
    for number in range(7):
        producer.produce(topic, b"later %d" % number, partition=1)
    assert producer.flush(60) == 0
    report = diff(url, logs, topic)
    assert not report["equal"]
    assert [(one["result"], one["differing_records"]) for one in report["partitions"]] == [
        ("equal", 0),
        ("differs", 7),
        ("equal", 0),
    ]
    for other in (saved, *tables.values()):
        report = diff(other, url, topic)
        assert report["equal"], report
        assert [one["records_after_end"] for one in report["partitions"]] == [0, 7, 0]

    if version == "oldest":
        return  # it cannot delete records
    delete_before(node.bootstrap, topic, 2, 5001)
    for other in (saved, *tables.values()):
        report = diff(other, url, topic)
        assert report["equal"], report
        expected = {"side": "b", "last_offset": 5000, "records": 5001, "stated": True}
        assert [one["removed"] for one in report["partitions"]] == [None, None, expected]
        assert {one["differing_records"] for one in report["partitions"]} == {0}
    # A second run of the backup keeps what the cluster has deleted.
    magicbyte.backup(url, saved, choice=choice)
    report = diff(url, saved, topic)
    assert report["equal"], report


def test_a_changed_backup_differs(new: Node, tmp_path: Path) -> None:
    topic, url = "changed", f"kafka://{new.bootstrap}"
    produce(new.bootstrap, topic, (b"value %d" % number for number in range(9000)))
    saved = tmp_path / "saved"
    magicbyte.backup(url, saved, choice=PartitionChoice(topics=(topic,)))
    log = max((saved / f"{topic}-1").glob("*.log"))
    batches = [batch.to_bytes() for batch in magicbyte.read_batches(log.read_bytes())]
    lost = next(iter(magicbyte.read_batches(batches[1])))
    log.write_bytes(batches[0] + b"".join(batches[2:]))
    report = diff(url, saved, topic)
    assert not report["equal"]
    (one,) = [one for one in report["partitions"] if one["result"] != "equal"]
    ranges = [(found["first_offset"], found["last_offset"], found["difference"]) for found in one["ranges"]]
    assert ranges == [(lost.base_offset, lost.last_offset, "only_in_a")]


def test_two_clusters(new: Node, old: Node) -> None:
    """The same records at the same offsets, in other batches and codecs; one of them goes on."""
    from confluent_kafka.admin import NewTopic

    for node, codec in ((new, "zstd"), (old, "none")):
        admin = AdminClient({"bootstrap.servers": node.bootstrap})
        admin.create_topics([NewTopic("both", 1, 1)])["both"].result(60)
        producer = Producer({"bootstrap.servers": node.bootstrap, "compression.type": codec})
        for number in range(5000):
            producer.produce("both", b"value %d" % number, timestamp=1_700_000_000_000 + number)
        assert producer.flush(60) == 0
    urls = [f"kafka://{node.bootstrap}/both" for node in (new, old)]
    report = magicbyte.diff(urls)
    assert report["equal"], report
    assert report["partitions"][0]["records_a"] == 5000
    producer = Producer({"bootstrap.servers": old.bootstrap})
    producer.produce("both", b"one more")
    producer.flush(60)
    (one,) = magicbyte.diff(urls)["partitions"]
    assert [(found["first_offset"], found["difference"]) for found in one["ranges"]] == [(5000, "only_in_b")]


def test_memory_is_bounded(new: Node) -> None:
    """The bytes of a topic are never kept."""
    resource = pytest.importorskip("resource")
    noise = [os.urandom(100_000) for _ in range(8)]
    produce(new.bootstrap, "large", (noise[number % 8] for number in range(1500)))
    url = f"kafka://{new.bootstrap}/large"
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    report = magicbyte.diff([url, url])
    assert report["equal"]
    assert report["a"]["size"] > 140_000_000
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100_000  # KiB
