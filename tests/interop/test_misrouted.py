"""A real broker and batches that are sent to another topic than their own, which `audit` finds.

The batches are planted: the race in the client that misroutes them (KAFKA-19012) needs an expired batch whose
request is still being written, and cannot be had in bounded time.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

import magicbyte
import pytest
from kafka_broker import Broker
from magicbyte import RecordsBuilder
from raw_client import RawClient

pytestmark = pytest.mark.interop

FOREIGN = {
    "plain": "retention.ms=-1",
    "times": "retention.ms=-1 message.timestamp.type=LogAppendTime",
    "zstd": "retention.ms=-1 compression.type=zstd",
    "uncompressed": "retention.ms=-1 compression.type=uncompressed",
    "both": "retention.ms=-1 compression.type=lz4 message.timestamp.type=LogAppendTime",
}
OWN, OTHER, ANONYMOUS = 7, 8, -1
OUT_OF_ORDER_SEQUENCE_NUMBER = 45


class Sender:
    """A producer of partition 0 of a topic."""

    def __init__(self, client: RawClient, topic: str, producer_id: int, value: bytes) -> None:
        self._client, self.topic, self._id, self._value = client, topic, producer_id, value
        self._sequence = 0

    def batch(self, count: int = 3) -> bytes:
        """The next batch."""
        idempotent = self._id >= 0
        builder = RecordsBuilder(
            compression="snappy",
            producer_id=self._id,
            producer_epoch=0 if idempotent else -1,
            base_sequence=self._sequence if idempotent else -1,
        )
        now = time.time_ns() // 1_000_000
        for index in range(count):
            builder.append(index, now + index, b"key", self._value % (self._sequence + index))
        self._sequence += count
        return builder.build()

    def send(self, batch: bytes, topic: str | None = None) -> int:
        """Sends a batch, to another topic if one is given; returns its first offset."""
        answer = self._client.produce(topic or self.topic, batch)
        assert answer["code"] == 0, answer
        return int(answer["base_offset"])


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    node = Broker(tmp_path_factory.mktemp("misrouted"), topics=1)
    node.start()
    try:
        node.create_topics({"orders": "retention.ms=-1", **FOREIGN})
        yield node
    finally:
        node.kill()


@pytest.fixture(scope="module")
def client(broker: Broker) -> Iterator[RawClient]:
    raw = RawClient(broker.port)
    deadline = time.monotonic() + 60
    while any(raw.fetch(name, 0, 1, committed=False)["code"] for name in ("orders", *FOREIGN)):
        assert time.monotonic() < deadline, "the topics have no leader"
    yield raw
    raw.close()


def test_misrouted_batches_are_found_in_a_brokers_live_log(broker: Broker, client: RawClient) -> None:
    planted = {}
    anonymous = Sender(client, "orders", ANONYMOUS, b'{"order": %d}')
    known = Sender(client, "orders", OWN, b'{"order": %d}')
    others = [Sender(client, name, OTHER, b"%d is a click") for name in FOREIGN]
    for number in range(40):
        for sender in (anonymous, known, *others):
            batch = sender.batch()
            if sender not in others and number in (10, 20):
                # The broker takes the batch of a producer that it does not know in this partition.
                wrong = {10: list(FOREIGN), 20: list(FOREIGN) if sender is anonymous else []}[number]
                places = [(name, sender.send(batch, name)) for name in wrong]
                original = sender.send(batch)
                planted.update(dict.fromkeys(places, original))
            else:
                sender.send(batch)
    assert len(planted) == 15
    report = magicbyte.audit(broker.logs)
    found = {(one["topic"], one["first_offset"]): one for one in report["misrouted"]}
    assert found.keys() == planted.keys()
    for place, original in planted.items():
        one = found[place]
        assert one["strength"] == ("likely" if one["producer_id"] < 0 else "proven")
        # A batch that went into several topics is a copy of each.
        assert one["belongs_to"]["topic"] == "orders"
        assert one["belongs_to"]["first_offset"] == original


def test_a_known_producers_batch_is_refused(client: RawClient) -> None:
    """So most misrouted batches of idempotent producers never are in a log."""
    one, other = (Sender(client, name, 9, b"%d") for name in ("orders", "plain"))
    one.send(one.batch(2))
    other.send(other.batch(3))
    answer = client.produce("plain", one.batch(2))
    assert answer["code"] == OUT_OF_ORDER_SEQUENCE_NUMBER
