"""A real broker with tiered storage: its remote and local segments together are what its consumers read."""

from __future__ import annotations

import re
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import confluent_kafka
import magicbyte
import pytest
from aiven_segments import KEY_ID, Plugin, write_key
from kafka_broker import Broker, dump_log
from kafka_versions import TIERED
from magicbyte import commands
from magicbyte._core import leader_epoch_checkpoint
from magicbyte.enums import IsolationLevel
from magicbyte.internal_topics.decode import DECODERS
from magicbyte.internal_topics.remote_segments import RemoteSegmentsState, RemoteSegmentState
from reading import printed

pytestmark = pytest.mark.interop

RECORDS = 1500
SETTINGS = """remote.log.storage.system.enable=true
remote.log.storage.manager.class.name=org.apache.kafka.server.log.remote.storage.LocalTieredStorage
rsm.config.dir={store}
remote.log.metadata.manager.listener.name=PLAINTEXT
rlmm.config.remote.log.metadata.topic.replication.factor=1
rlmm.config.remote.log.metadata.topic.num.partitions=1
remote.log.manager.task.interval.ms=200
log.retention.check.interval.ms=200
log.initial.task.delay.ms=100
"""
TOPIC = (
    "remote.storage.enable=true local.retention.bytes=1 retention.ms=-1 retention.bytes=-1 "
    "internal.segment.bytes=16384 index.interval.bytes=256 file.delete.delay.ms=100"
)


def produce(bootstrap: str, records: range) -> None:
    """Transactions of 50 records, every third of which is aborted."""
    producer = confluent_kafka.Producer(
        {"bootstrap.servers": bootstrap, "transactional.id": "tiered", "compression.type": "lz4"}
    )
    repeated(producer.init_transactions)
    for start in records[::50]:
        producer.begin_transaction()
        for number in range(start, start + 50):
            producer.produce("tiered", key=b"%d" % (number % 7), value=b"%d " % number * 20, timestamp=number)
        repeated(producer.abort_transaction if start // 50 % 3 == 0 else producer.commit_transaction)


def repeated(call: Callable[[], None]) -> None:
    """Makes a call of a transaction until a broker that has just started is ready for it."""
    while True:
        try:
            return call()
        except confluent_kafka.KafkaException as error:
            if not error.args[0].retriable():
                raise


class Tiered:
    """A broker with tiered storage, killed, and what its consumers read before that."""

    def __init__(self, root: Path) -> None:
        self.store = root / "store"
        node = Broker(root / "broker", topics=1, settings=SETTINGS.format(store=self.store), version=TIERED)
        node.start()
        try:
            node.create_topics({"tiered": TOPIC})
            self.local = node.logs / "tiered-0"
            produce(node.bootstrap, range(RECORDS // 2))
            self._wait_for_copies()
            node.stop()  # begins another leader epoch
            node.start()
            produce(node.bootstrap, range(RECORDS // 2, RECORDS))
            self._wait_for_copies()
            self.read = {
                level: node.read("tiered", level) for level in ("read_uncommitted", "read_committed")
            }
            self.against = magicbyte.verify([self.store, self.local], against=node.bootstrap)["cluster"]
        finally:
            node.kill()
        (self.remote,) = self.store.glob("*/tiered-0-*")

    def _wait_for_copies(self) -> None:
        """Waits until only the active segment is not remote. A copy that is interrupted would stay, too."""
        deadline = time.monotonic() + 60
        while len(list(self.local.glob("*.log"))) > 1:
            assert time.monotonic() < deadline
            time.sleep(0.1)


@pytest.fixture(scope="module")
def tiered(tmp_path_factory: pytest.TempPathFactory) -> Tiered:
    return Tiered(tmp_path_factory.mktemp("tiered"))


def test_the_broker_sends_both_parts(tiered: Tiered) -> None:
    """Its answers about remote segments are those of another path in the broker (`DelayedRemoteFetch`)."""
    assert tiered.against is not None
    assert tiered.against["equal"], tiered.against
    for level in tiered.against["levels"]:
        (one,) = level["partitions"]
        # Control records count, too.
        assert (one["records_b"] or 0) > len(tiered.read[level["isolation_level"]]) > RECORDS // 2


@pytest.mark.parametrize("level", ["read_uncommitted", "read_committed"])
def test_both_parts_are_what_a_consumer_reads(tiered: Tiered, level: IsolationLevel) -> None:
    (log,) = magicbyte.Log([tiered.store, tiered.local]).partitions
    assert printed(log, level) == tiered.read[level]
    # The broker has deleted what is in both places.
    assert {Path(one["path"]).parent for one in log.segments} == {tiered.remote, tiered.local}
    assert log.segments[0]["path"].startswith(str(tiered.remote))
    report = magicbyte.verify([tiered.store, tiered.local], isolation_level=level)
    assert report["total"]["rows"] == len(tiered.read[level])
    assert report["balanced"]
    assert report["problems"] == []


@pytest.mark.parametrize("level", ["read_uncommitted", "read_committed"])
def test_the_remote_part_alone(tiered: Tiered, level: IsolationLevel) -> None:
    log = magicbyte.PartitionLog(tiered.remote)
    assert (log.topic, log.partition) == ("tiered", 0)
    found = printed(log, level)
    assert found == tiered.read[level][: len(found)]
    assert len(found) > 0.7 * len(tiered.read[level])


@pytest.mark.parametrize("level", ["read_uncommitted", "read_committed"])
@pytest.mark.parametrize(("compress", "key"), [(False, None), (True, None), (False, KEY_ID), (True, KEY_ID)])
def test_segments_as_the_plugin_of_aiven_writes_them(
    compress: bool, key: str | None, level: IsolationLevel, tiered: Tiered, tmp_path: Path
) -> None:
    """What the broker copied, transformed; the consumer's reading is the judge."""
    plugin = Plugin(tmp_path / "store", chunk_size=5000, compress=compress, key=key)
    magicbyte.add_encryption_key(write_key(tmp_path / "private.pem", KEY_ID), KEY_ID)
    topic_id = tiered.remote.name[-22:]
    for log in tiered.remote.glob("*.log"):
        for file in tiered.remote.glob(f"{log.stem}.*"):
            shutil.copy(file, tmp_path / f"{file.stem[:20]}{file.suffix}")
        copied = tmp_path / f"{log.stem[:20]}.log"
        epochs = dict(
            leader_epoch_checkpoint((tmp_path / f"{copied.stem}.leader_epoch_checkpoint").read_text())
        )
        plugin.upload(copied, ("tiered", 0), log.stem[-22:], epochs=epochs, topic_id=topic_id)
    (log_,) = magicbyte.Log([plugin.store, tiered.local]).partitions
    assert log_.segments[0]["path"].startswith(str(plugin.store))
    assert printed(log_, level) == tiered.read[level]
    report = magicbyte.verify([plugin.store, tiered.local], isolation_level=level)
    assert (report["total"]["rows"], report["problems"]) == (len(tiered.read[level]), [])
    (remote,) = magicbyte.Log([plugin.store]).partitions
    found = printed(remote, level)
    assert found == tiered.read[level][: len(found)]


def test_a_broker_serves_both_parts_as_one(tiered: Tiered, broker: Broker, tmp_path: Path) -> None:
    commands.convert([str(tiered.store), str(tiered.local)], str(tmp_path / "joined"))
    topic = broker.open({"joined": tmp_path / "joined" / "tiered-0"}, clean=False)["joined"]
    for level, lines in tiered.read.items():
        assert broker.read(topic, level) == lines


def test_the_log_of_remote_segments(tiered: Tiered) -> None:
    """Kafka's own decoder finds the same segments in the same states."""
    (log,) = tiered.local.parent.glob("__remote_log_metadata-0/*.log")
    kafka = re.findall(
        r"RemoteLogSegmentMetadata\w*\{.*? id=([\w-]+)\}.*? state=(\w+)",
        dump_log("--remote-log-metadata-decoder", files=[log]),
    )
    ours = []
    state = RemoteSegmentsState()
    for record in magicbyte.PartitionLog(log).records():
        state.replay(record.value_bytes)
        decoded = DECODERS["remote-log-metadata"](None, record.value_bytes).value["data"]
        name = RemoteSegmentState(decoded["remoteLogSegmentState"]).name
        ours.append((decoded["remoteLogSegmentId"]["id"], name))
    assert ours == kafka
    assert len(kafka) >= 6
    for segment in tiered.remote.glob("*.log"):
        found = state.state(tiered.remote.name[-22:], 0, segment.stem[-22:])
        assert found is RemoteSegmentState.COPY_SEGMENT_FINISHED
