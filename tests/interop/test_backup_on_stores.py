"""`backup` of a real cluster into a real S3 server (SeaweedFS): killed and resumed, and read from there."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import magicbyte
import obstore
import pytest
from broker_versions import Node
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from kafka_versions import NEWEST
from s3_server import BUCKET, OPTIONS, client

pytestmark = pytest.mark.interop
_QUICK = (
    "import sys; from magicbyte.jobs.publish import heartbeat;"
    "heartbeat.SILENCE_SECONDS, heartbeat.BEAT_SECONDS = 0.5, 0.1;"
    "from magicbyte.cli import main; sys.exit(main(sys.argv[1:]))"
)
"""A run that sees soon that another one was killed."""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    node = Node(tmp_path_factory.mktemp("cluster"), NEWEST)
    try:
        admin = AdminClient({"bootstrap.servers": node.bootstrap})
        for topic, partitions in (("orders", 3), ("again", 1)):
            admin.create_topics([NewTopic(topic, partitions, 1)])[topic].result(60)
        yield node
    finally:
        node.close()


@pytest.fixture
def prefix() -> str:
    return f"backup-{uuid.uuid4().hex[:8]}"


def produce(node: Node, topic: str, count: int) -> None:
    producer = Producer({"bootstrap.servers": node.bootstrap, "batch.size": 2000, "compression.type": "zstd"})
    generator = random.Random(count)
    for number in range(count):
        producer.produce(topic, generator.randbytes(200), b"key %d" % number)
        producer.poll(0)
        if not number % 1000:
            producer.flush(60)
    producer.flush(60)


def command(node: Node, endpoint: str, prefix: str, *options: str) -> list[str]:
    storage = [f"--storage-option={key}={value}" for key, value in {**OPTIONS, "endpoint": endpoint}.items()]
    to = [f"kafka://{node.bootstrap}", f"s3://{BUCKET}/{prefix}", "--segment-bytes", "64k"]
    return [sys.executable, "-c", _QUICK, "backup", *to, *storage, *options]


def backup(node: Node, endpoint: str, prefix: str, *options: str, code: int = 0) -> Any:
    line = [*command(node, endpoint, prefix, *options), "--json"]
    done = subprocess.run(line, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == code, done.stderr + done.stdout[-2000:]
    return json.loads(done.stdout)


def objects(endpoint: str, prefix: str) -> dict[str, Any]:
    store = client(endpoint)
    return {
        one["path"].removeprefix(f"{prefix}/"): one for page in obstore.list(store, prefix) for one in page
    }


def is_proved(endpoint: str, prefix: str) -> bool:
    url = f"s3://{BUCKET}/{prefix}"
    magicbyte.mount_storage(url, {**OPTIONS, "endpoint": endpoint})
    report = magicbyte.verify(url, certificate=f"{url}/backup.json")
    assert report["certificate"] is not None
    return report["certificate"]["equal"]


def is_equal(node: Node, endpoint: str, prefix: str) -> bool:
    magicbyte.mount_storage(f"s3://{BUCKET}", {**OPTIONS, "endpoint": endpoint})
    report = magicbyte.verify(f"s3://{BUCKET}/{prefix}", against=node.bootstrap)
    assert report["cluster"] is not None
    return report["cluster"]["equal"] and not report["problems"]


def test_killed_and_resumed(cluster: Node, s3: str, prefix: str, tmp_path: Path) -> None:
    """Runs that are killed at any time are continued; a second one adds what is new, and restore reads it."""
    produce(cluster, "orders", 6000)
    generator, killed = random.Random(11), 0
    began = time.monotonic()
    backup(cluster, s3, f"{prefix}-whole")
    whole = time.monotonic() - began
    for _ in range(6):
        process = subprocess.Popen(
            command(cluster, s3, prefix), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        time.sleep(whole * generator.uniform(0.3, 0.9))
        process.send_signal(signal.SIGKILL)
        killed += process.wait() == -signal.SIGKILL
    assert killed > 0
    assert backup(cluster, s3, prefix)["findings"] == []
    assert is_proved(s3, prefix)
    assert is_equal(cluster, s3, prefix)
    before = {name: one["e_tag"] for name, one in objects(s3, prefix).items() if name.endswith(".log")}
    assert len(before) > 6
    again = backup(cluster, s3, prefix)
    assert (again["copied_bytes"], again["findings"]) == (0, [])
    produce(cluster, "orders", 500)
    report = backup(cluster, s3, prefix)
    assert report["copied_records"] == 500
    now = {name: one["e_tag"] for name, one in objects(s3, prefix).items()}
    assert {name: now[name] for name in before} == before
    assert is_proved(s3, prefix)
    assert is_equal(cluster, s3, prefix)
    assert not [name for name in now if name.startswith(".magicbyte")]
    plan = magicbyte.restore(f"s3://{BUCKET}/{prefix}", out=tmp_path / "restored")
    assert {one["status"] for one in plan["partitions"]} == {"online"}


def test_logs_that_move(cluster: Node, s3: str, prefix: str) -> None:
    """A topic that was created again is copied in the store; a full copy takes the place of the old one."""
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    produce(cluster, "again", 300)
    only = ("--topic", "again")
    assert backup(cluster, s3, prefix, *only)["copied_records"] == 300
    produce(cluster, "again", 100)
    backup(cluster, s3, prefix, *only)
    assert len([name for name in objects(s3, prefix) if name.startswith("again-0/") and ".log" in name]) > 1
    report = backup(cluster, s3, prefix, *only, "--full")
    assert report["copied_records"] == 400
    assert is_proved(s3, prefix)
    admin.delete_topics(["again"])["again"].result(60)
    time.sleep(1)
    admin.create_topics([NewTopic("again", 1, 1)])["again"].result(60)
    time.sleep(1)
    produce(cluster, "again", 50)
    report = backup(cluster, s3, prefix, *only, code=1)
    assert [one["found"] for one in report["findings"]] == ["recreated"]
    assert is_proved(s3, prefix)
    (aside,) = {name.partition("/")[0] for name in objects(s3, prefix) if "-stray/" in name}
    magicbyte.mount_storage(f"s3://{BUCKET}", {**OPTIONS, "endpoint": s3})
    assert magicbyte.PartitionLog(f"s3://{BUCKET}/{prefix}/{aside}").verify().rows == 400
    assert magicbyte.PartitionLog(f"s3://{BUCKET}/{prefix}/again-0").verify().rows == 50
