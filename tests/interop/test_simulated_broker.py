"""The same requests to a real broker and to the simulator get the same answers and the same bytes."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from typing import Any

import magicbyte
import pytest
from append_oracle import NOW, produced, topic
from kafka_broker import Broker
from magicbyte import Compression, TimestampType
from magicbyte.broker import AppendConfig, AppendError, PartitionSimulator
from raw_client import RawClient
from test_simulator import Play

pytestmark = pytest.mark.interop

CONFIGS = {
    "plain": AppendConfig(),
    "snappy": AppendConfig(compression=Compression.SNAPPY),
    "uncompressed": AppendConfig(compression=Compression.NONE),
    "times": AppendConfig(message_timestamp_type=TimestampType.LOG_APPEND_TIME),
    "bounds": AppendConfig(message_timestamp_before_max_ms=10 * 365 * 86_400_000, max_message_bytes=400),
    "compacted": AppendConfig(compacted=True),
    "transactions": AppendConfig(),
}


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RawClient]:
    # There is no coordinator that could be asked about transactions.
    settings = "transaction.partition.verification.enable=false"
    node = Broker(tmp_path_factory.mktemp("simulated"), topics=1, settings=settings)
    node.start()
    raw = None
    try:
        node.create_topics({name: topic_words(config) for name, config in CONFIGS.items()})
        raw = RawClient(node.port)
        deadline = time.monotonic() + 60
        while any(raw.fetch(name, 0, 1, committed=False)["code"] for name in CONFIGS):
            assert time.monotonic() < deadline, "the topics have no leader"
        yield raw
    finally:
        if raw is not None:
            raw.close()
        node.kill()


def topic_words(config: AppendConfig) -> str:
    # One segment that does not roll or expire, whatever the timestamps are.
    words = topic(config) | {"retention.ms": "-1", "segment.ms": str(2**63 - 1)}
    del words["internal.segment.bytes"]
    return " ".join(f"{name}={value}" for name, value in words.items())


class Both:
    """A topic of the broker and its simulated twin."""

    def __init__(self, client: RawClient, name: str) -> None:
        self.client = client
        self.name = name
        self.twin = PartitionSimulator(CONFIGS[name], clock=time.time_ns() // 1_000_000)
        self.stored = 0
        self.refused = 0

    def produce(self, records: bytes) -> None:
        transactional = any(batch.is_transactional for batch in batches_of(records))
        broker = self.client.produce(self.name, records, "raw" if transactional else None)
        if self.twin.config.message_timestamp_type and broker["time"] >= 0:
            # The broker's clock decides.
            self.twin.clock = broker["time"]
        answer, error = attempt(lambda: self.twin.append(records))
        if error is not None:
            self.refused += 1
            # Where the broker's checks leak an untyped exception, the simulator has a clear error.
            assert broker["code"] in (error.error_code, -1), (broker, str(error))
            assert broker["record_errors"] == [one.batch_index for one in error.record_errors]
            return
        self.stored += 1
        assert broker["code"] == 0, (broker, answer)
        ours = (answer.base_offset, answer.log_append_time, answer.log_start_offset)
        assert (broker["base_offset"], broker["time"], broker["start"]) == ours

    def end(self, producer_id: int, epoch: int, coordinator_epoch: int, *, committed: bool) -> None:
        code = self.client.end_transaction(
            self.name, producer_id, epoch, committed=committed, coordinator_epoch=coordinator_epoch
        )
        _, error = attempt(
            lambda: self.twin.end_transaction(
                producer_id, epoch, committed, coordinator_epoch=coordinator_epoch
            )
        )
        assert code == (error.error_code if error else 0)

    def fetch(self, offset: int, max_bytes: int, *, committed: bool) -> None:
        broker = self.client.fetch(self.name, offset, max_bytes, committed=committed)
        level = "read_committed" if committed else "read_uncommitted"
        fetched, error = attempt(lambda: self.twin.fetch(offset, max_bytes, isolation_level=level))  # type: ignore[arg-type]
        if error is not None:
            assert broker["code"] == error.error_code
            return
        theirs = broker.pop("records")
        place = (offset, max_bytes, committed, broker, len(theirs), fetched)
        assert len(theirs) == len(fetched.records), place
        assert same_records(theirs, fetched.records), place
        assert broker == {
            "code": 0,
            "high_watermark": fetched.high_watermark,
            "stable": fetched.last_stable_offset,
            "start": fetched.log_start_offset,
            "aborted": [[one.producer_id, one.first_offset] for one in fetched.aborted_transactions],
        }

    def list(self, timestamp: int, *, committed: bool) -> None:
        code, *broker = self.client.list_offset(self.name, timestamp, committed=committed)
        names: dict[int, Any] = {-1: "latest", -2: "earliest"}
        level = "read_committed" if committed else "read_uncommitted"
        listed = self.twin.list_offsets(names.get(timestamp, timestamp), isolation_level=level)  # type: ignore[arg-type]
        found = list(listed or (-1, -1, -1))
        if found[0] > NOW + 10_000_000_000:
            # The timestamp of a marker is the coordinator's.
            found[0] = broker[0]
        assert (code, broker) == (0, found)

    def delete(self, offset: int) -> None:
        code, low_watermark = self.client.delete_records(self.name, offset)
        start, error = attempt(lambda: self.twin.delete_records(offset))
        assert (code, low_watermark) == ((error.error_code, -1) if error else (0, start))

    def compare_all(self, rng: random.Random) -> None:
        end = self.twin.log_end_offset
        for offset in (0, end // 3, end - 1, end, end + 1):
            for committed in (False, True):
                self.fetch(offset, rng.choice([1, 500, 1 << 20]), committed=committed)
        for timestamp in (-1, -2, 0, NOW - 90_000, NOW - 500, NOW, NOW + 1):
            for committed in (False, True):
                self.list(timestamp, committed=committed)


def same_records(theirs: bytes, ours: bytes) -> bool:
    """Whether the bytes are equal, except for the timestamps of markers, which the coordinator sets."""
    at = 0
    for its, mine in zip(batches_of(theirs), batches_of(ours), strict=True):
        if mine.is_control:
            facts = [
                (b.base_offset, b.producer_id, b.producer_epoch, b.partition_leader_epoch, b.to_bytes()[57:])
                for b in (its, mine)
            ]
            if facts[0] != facts[1]:
                return False
        elif its.to_bytes() != mine.to_bytes():
            return False
        at += mine.size_in_bytes
    # In a truncated last batch, the bytes before the checksum.
    return len(theirs) == len(ours) and theirs[at : at + 17] == ours[at : at + 17]


def batches_of(records: bytes) -> list[Any]:
    try:
        return list(magicbyte.read_batches(records, allow_partial=True))
    except magicbyte.Error:
        return []


def attempt(act: Callable[[], Any]) -> tuple[Any, AppendError | None]:
    """The answer, or the refusal."""
    try:
        return act(), None
    except AppendError as error:
        return None, error


@pytest.mark.parametrize("name", [name for name in CONFIGS if name != "transactions"])
def test_produced(client: RawClient, name: str) -> None:
    rng = random.Random(name)
    both = Both(client, name)
    for _ in range(250):
        both.produce(produced(rng))
    assert both.stored > 20
    assert both.refused > 20
    both.compare_all(rng)


def test_transactions(client: RawClient) -> None:
    rng = random.Random(7)
    both = Both(client, "transactions")
    producers = Play(rng)
    for step in range(400):
        kind = rng.randrange(20)
        if kind < 12:
            both.produce(producers.payload())
        elif kind < 16:
            coordinator_epoch = rng.choice([5] * 9 + [4, 6])
            epoch = rng.choice([0, 0, 0, 1, 2])
            both.end(rng.choice([2, 3]), epoch, coordinator_epoch, committed=rng.random() < 0.4)
        elif kind < 19:
            offset = int(rng.random() * 1.05 * both.twin.log_end_offset)
            both.fetch(offset, rng.choice([1, 100, 1500, 1 << 20]), committed=rng.random() < 0.6)
        elif step > 300:
            both.delete(int(rng.random() * both.twin.log_end_offset * 0.5))
    assert both.stored > 50
    assert both.refused > 20
    both.compare_all(rng)
