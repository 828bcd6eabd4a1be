"""Outputs that are put into a cluster of three brokers: served as they are, and taken by followers."""

from __future__ import annotations

import json
import re
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from cluster import NODES, SECONDS, Cluster
from kafka_broker import BROKERS, Client, digest
from magicbyte import RecordsBuilder, commands
from magicbyte.log_dir import LOG_START_OFFSET_CHECKPOINT, format_offset_checkpoint, read_offset_checkpoint

if not BROKERS.is_dir():
    pytest.skip("the jars of a broker are not there", allow_module_level=True)

pytestmark = pytest.mark.interop


def batch(*offsets: int, epoch: int) -> bytes:
    builder = RecordsBuilder(partition_leader_epoch=epoch)
    for offset in offsets:
        builder.append(offset, 1_700_000_000_000 + offset, b"k%d" % offset, b"v%d" % offset)
    return builder.build()


EPOCHS = {"orders": 4, "compacted": -1, "redacted": -1}
"""The leader epochs of what is recovered, and none in what is cleaned."""
START = 5


def sources(root: Path, kafka: Path) -> dict[str, Path]:
    """By topic: messages of magic 1, and logs that start within a batch."""
    old = root / "old" / "old-0"
    shutil.copytree(kafka / "v1_gzip", old, ignore=shutil.ignore_patterns("rebuilt", "*.json*"))
    for name, epoch in EPOCHS.items():
        directory = root / name / f"{name}-0"
        directory.mkdir(parents=True)
        data = batch(0, 1, epoch=epoch) + batch(*range(2, 10), epoch=epoch) + batch(10, epoch=-1)
        (directory / f"{0:020}.log").write_bytes(data)
        (root / name / LOG_START_OFFSET_CHECKPOINT).write_text(format_offset_checkpoint({(name, 0): START}))
    return {name: root / name for name in ("old", *EPOCHS)}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    nodes = Cluster(tmp_path_factory.mktemp("cluster"))
    try:
        for node in NODES:
            nodes.start(node)
        nodes.wait()
        yield nodes
    finally:
        nodes.close()


def test_followers_take_what_is_written(cluster: Cluster, tmp_path: Path, kafka: Path) -> None:
    given = sources(tmp_path, kafka)
    ids = {topic: cluster.create(topic) for topic in given}
    cluster.kill(1)
    out = {topic: tmp_path / f"{topic}-out" for topic in given}
    commands.convert(given["old"], out["old"], topic_ids={"": ids["old"]})
    commands.recover(given["orders"], out["orders"], leader_epoch=0, topic_ids={"": ids["orders"]})
    commands.compact(given["compacted"], out["compacted"], all=True, topic_ids={"": ids["compacted"]})
    commands.redact(given["redacted"], out["redacted"], keys=[b"k7"], topic_ids={"": ids["redacted"]})
    starts: dict[tuple[str, int], int] = {}
    for topic, directory in out.items():
        shutil.rmtree(cluster.logs(1) / f"{topic}-0")
        shutil.copytree(directory / f"{topic}-0", cluster.logs(1) / f"{topic}-0")
        if (checkpoint := directory / LOG_START_OFFSET_CHECKPOINT).exists():
            starts |= read_offset_checkpoint(checkpoint)
    assert starts == {(topic, 0): START for topic in EPOCHS}
    (cluster.logs(1) / LOG_START_OFFSET_CHECKPOINT).write_text(format_offset_checkpoint(starts))
    cluster.start(1)
    cluster.wait()
    cluster.add_replicas(list(given))
    deadline = time.monotonic() + SECONDS
    waiting = set(given)
    while waiting:
        assert time.monotonic() < deadline, f"{waiting} have not three in-sync replicas"
        waiting = {topic for topic in waiting if cluster.isr(topic) != {*NODES}}
    client = Client(cluster.bootstrap)
    try:
        read = {topic: client.ask("read", topic, "read_uncommitted") for topic in given}
    finally:
        client.close()
    known = json.loads((kafka / "v1_gzip" / "summary.json").read_text())
    assert digest(read["old"]) == known["sha256"]
    assert {topic: len(read[topic]) for topic in EPOCHS} == {"orders": 6, "compacted": 6, "redacted": 5}
    complaints = re.compile("treat it as a stray log|Skipping batch|conflicting entries|marked as failed")
    for node in NODES:
        assert complaints.findall(cluster.output(node)) == []
        # The copy of each follower is that of the leader.
        for topic in given:
            assert segments(cluster.logs(node) / f"{topic}-0") == segments(out[topic] / f"{topic}-0")


def segments(directory: Path) -> bytes:
    return b"".join(path.read_bytes() for path in sorted(directory.glob("*.log")))
