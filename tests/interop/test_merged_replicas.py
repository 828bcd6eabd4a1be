"""The damaged replicas of a dead cluster are merged, and the cluster serves the result."""

from __future__ import annotations

import os
import random
import re
import shutil
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import magicbyte
import pytest
from cluster import NODES, SECONDS, Cluster, until
from kafka_broker import BROKERS, Client, digest
from magicbyte import RecordsBuilder, commands
from raw_client import RawClient

if not BROKERS.is_dir():
    pytest.skip("the jars of a broker are not there", allow_module_level=True)

pytestmark = pytest.mark.interop

CONFIGS = ("internal.segment.bytes=16384", "segment.index.bytes=65536", "unclean.leader.election.enable=true")
"""Small segments, and leaders that may lack the last batches: Kafka takes killed brokers out of the ISR."""
TOPICS = ("orders", "branches")
LOST, SETTLED = 30, 20
"""Batches of the last leader that nobody has replicated, and those of the next leader."""


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    nodes = Cluster(tmp_path / "cluster")
    try:
        yield nodes
    finally:
        nodes.close()


def batch(number: int, word: str = "v") -> bytes:
    builder = RecordsBuilder(compression=("none", "zstd", "lz4", "gzip")[number % 4])
    for index in range(10):
        key = b"%s %d %d" % (word.encode(), number, index)
        builder.append(index, round(time.time() * 1000), key, os.urandom(60))
    return builder.build()


def produce(client: RawClient, topic: str, count: int, word: str, acks: int = -1) -> None:
    deadline = time.monotonic() + SECONDS
    for number in range(count):
        while client.produce(topic, batch(number, word), acks=acks)["code"]:
            assert time.monotonic() < deadline, f"{topic} has no leader"
            time.sleep(0.2)


def leader_port(cluster: Cluster, nodes: tuple[int, ...], topic: str) -> int:
    """The port of the node that leads."""
    deadline = time.monotonic() + SECONDS
    while time.monotonic() < deadline:
        for node in nodes:
            with suppress(OSError):  # it has not started yet
                client = RawClient(cluster.ports[node])
                code, *_ = client.list_offset(topic, -1, committed=False)
                client.close()
                if not code:
                    return cluster.ports[node]
        time.sleep(0.2)
    raise AssertionError(f"{topic} has no leader")


def read(cluster: Cluster, nodes: tuple[int, ...]) -> dict[str, str]:
    client = Client(",".join(f"127.0.0.1:{cluster.ports[node]}" for node in nodes))
    try:
        return {topic: digest(client.ask("read", topic, "read_uncommitted")) for topic in TOPICS}
    finally:
        client.close()


def test_a_dead_cluster_serves_its_merged_replicas(cluster: Cluster, tmp_path: Path) -> None:
    for node in NODES:
        cluster.start(node)
    cluster.wait()
    for topic in TOPICS:
        cluster.create(topic, "1:2:3", *CONFIGS)
    client = RawClient(leader_port(cluster, (1,), "orders"))
    for topic in TOPICS:
        produce(client, topic, 100, "common")
    in_sync(cluster)
    # The quorum is lost, and the leader goes on alone: nobody will have its last batches.
    cluster.kill(2)
    cluster.kill(3)
    produce(client, "branches", LOST, "lost", acks=1)
    client.close()
    cluster.kill(1)
    for node in (2, 3):
        cluster.start(node)
    client = RawClient(leader_port(cluster, (2, 3), "branches"))
    produce(client, "branches", SETTLED, "settled")
    client.close()
    expected = read(cluster, (2, 3))
    for node in (2, 3):
        cluster.kill(node)

    copies = [Path(shutil.copytree(cluster.logs(node), tmp_path / f"b{node}")) for node in NODES]
    for number, copy in enumerate(copies):
        for topic in TOPICS:
            damage(copy / f"{topic}-0", number)
    report = commands.merge(copies, out=tmp_path / "merged", choice=magicbyte.PartitionChoice(topics=TOPICS))
    assert report["balanced"]
    by_topic = {one["topic"]: one for one in report["partitions"]}
    assert all(len(one["copies"]) == 3 and one["lost"] == [] for one in by_topic.values())
    assert by_topic["orders"]["left_out"] == []
    assert {(one["path"], one["reason"], one["batches"]) for one in by_topic["branches"]["left_out"]} == {
        (str(tmp_path / "b1" / "branches-0"), "diverged", LOST)
    }
    for node in NODES:
        for topic in TOPICS:
            shutil.rmtree(cluster.logs(node) / f"{topic}-0")
            shutil.copytree(tmp_path / "merged" / f"{topic}-0", cluster.logs(node) / f"{topic}-0")
        cluster.start(node)
    cluster.wait()
    for topic in TOPICS:
        leader_port(cluster, NODES, topic)
    assert read(cluster, NODES) == expected
    in_sync(cluster)
    complaints = re.compile("treat it as a stray log|Skipping batch|conflicting entries|marked as failed")
    assert [complaints.findall(cluster.output(node)) for node in NODES] == [[], [], []]


def in_sync(cluster: Cluster) -> None:
    """Waits until all replicas are in sync."""
    until(lambda: all(cluster.isr(topic) == {*NODES} for topic in TOPICS), "replicas are not in sync")


def damage(partition: Path, number: int) -> None:
    """Damages every third batch of the common ones but the last, another third in each copy, and removes the
    files beside one copy's segments.
    """
    chance = random.Random(number)
    seen = 0
    for log in sorted(partition.glob("*.log")):
        data = bytearray(log.read_bytes())
        for one in magicbyte.read_batches(bytes(data), allow_partial=True):
            if seen % 3 == number and seen < 95:
                for at in chance.sample(range(one.position + 61, one.position + one.size_in_bytes), 2):
                    data[at] ^= 1 << chance.randrange(8)
            seen += 1
        log.write_bytes(data)
    if number == 2:
        for path in partition.iterdir():
            if path.suffix != ".log":
                path.unlink()
