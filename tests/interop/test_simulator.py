"""Thousands of steps of producers, consumers and leaders: Kafka's UnifiedLog and the simulator agree."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from append_oracle import NOW, AppendOracle, topic
from kafka_versions import JUDGES, NEWEST
from magicbyte import Compression, RecordsBuilder, TimestampType
from magicbyte.broker import AppendConfig, AppendError, AppendOrigin, PartitionSimulator
from magicbyte.state import ProducerStateEntry

pytestmark = pytest.mark.interop


@pytest.fixture(scope="module", params=JUDGES)
def log(request: pytest.FixtureRequest) -> Iterator[AppendOracle]:
    process = AppendOracle(request.param)
    yield process
    process.close()


class Play:
    """One partition's history: the requests to Kafka, and the same actions on the simulator."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        # Only codecs whose output is the same in all encoders.
        config = AppendConfig(
            compression=rng.choice([None, None, Compression.NONE, Compression.SNAPPY]),
            message_timestamp_type=TimestampType(rng.choice([0, 0, 1])),
        )
        self.partition = PartitionSimulator(config, clock=NOW)
        self.epoch = 0
        self.steps: list[tuple[dict[str, Any], Callable[[], dict[str, Any]]]] = []
        self._ask({"op": "open", "offset": 0, "config": topic(config)}, dict)
        self._ask({"op": "elect", "epoch": 0}, dict)
        # The next sequence for each producer id and epoch.
        self.sequences: dict[tuple[int, int], int] = {}
        self.sent: list[bytes] = []
        # The markers sent so far; a retry repeats one, with its transaction version.
        self.ends: list[dict[str, Any]] = []

    def _ask(self, request: dict[str, Any], act: Callable[[], dict[str, Any]]) -> None:
        self.steps.append((request, act))

    def _append(self, records: bytes, origin: AppendOrigin, version: int = 0) -> dict[str, Any]:
        return {
            "op": "append",
            "records": records.hex(),
            "origin": origin.name,
            "epoch": self.epoch,
            "now": NOW,
            "magic": 2,
            "transactionVersion": version,
        }

    def payload(self) -> bytes:
        """A producer's batch, or a retry of one."""
        rng = self.rng
        if self.sent and rng.random() < 0.2:
            # A retry of the last batch, or of one that is too old to be recognized.
            return self.sent[-min(len(self.sent), rng.choice([1, 1, 2, 4, 7, 9]))]
        records = self._batch(rng.choice([-1, 1, 2, 3]))
        self.sent.append(records)
        return records

    def produce(self) -> None:
        records = self.payload()
        self._ask(
            self._append(records, AppendOrigin.CLIENT),
            lambda: answered(lambda: self.partition.append(records, produce_version=None)),
        )

    def _batch(self, pid: int) -> bytes:
        rng = self.rng
        count = rng.choice([1, 2, 5])
        epoch = rng.choice([0, 0, 0, 0, 1, 2]) if pid == 3 else 0
        known = self.sequences.get((pid, epoch), rng.choice([0, 2**31 - 3]) if pid == 2 else 0)
        sequence = (known + rng.choice([0] * 15 + [1, 5])) % 2**31
        self.sequences[pid, epoch] = (sequence + count) % 2**31
        producer = (
            {"producer_id": pid, "producer_epoch": epoch, "base_sequence": sequence} if pid >= 0 else {}
        )
        transactional = pid >= 0 and rng.random() < (0.9 if pid > 1 else 0.05)
        codec = rng.choice([Compression.NONE, Compression.SNAPPY])
        builder = RecordsBuilder(2, codec, is_transactional=transactional, **producer)
        for offset in range(count):
            value = rng.randbytes(rng.choice([5, 5, 700]))
            builder.append(offset, NOW - rng.choice([0, 1, 1000, 90_000]), b"k", value)
        return builder.build()

    def end(self) -> None:
        rng = self.rng
        end = {
            "producer_id": rng.choice([2, 3]),
            "producer_epoch": rng.choice([0, 0, 0, 1, 2]),
            "committed": rng.random() < 0.4,
            "coordinator_epoch": rng.choice([5] * 9 + [4, 6]),
            "transaction_version": rng.choice([0, 1, 2]),
        }
        if self.ends and rng.random() < 0.2:
            end = self.ends[-1]
        self.ends.append(end)
        builder = RecordsBuilder(
            2, producer_id=end["producer_id"], producer_epoch=end["producer_epoch"], is_transactional=True,
            is_control=True,
        )  # fmt: skip
        key = b"\0\0\0" + bytes([end["committed"]])
        builder.append(0, NOW, key, b"\0\0" + end["coordinator_epoch"].to_bytes(4))
        request = self._append(builder.build(), AppendOrigin.COORDINATOR, end["transaction_version"])
        self._ask(request, lambda: answered(lambda: self.partition.end_transaction(**end)))

    def fetch(self) -> None:
        rng = self.rng
        where, size, committed = rng.random() * 1.05, rng.choice([0, 100, 1500, 1 << 20]), rng.random() < 0.6
        request: dict[str, Any] = {"op": "read", "where": where, "maxBytes": size, "committed": committed}

        def act() -> dict[str, Any]:
            level = "read_committed" if committed else "read_uncommitted"
            fetched = self.partition.fetch(request["offset"], size, isolation_level=level)
            aborted = [[one.producer_id, one.first_offset] for one in fetched.aborted_transactions]
            return {"bytes": fetched.records.hex(), "aborted": aborted}

        self._ask(request, lambda: answered(act))

    def list(self) -> None:
        time = self.rng.choice([-2, -3, 0, NOW - 90_000, NOW - 500, NOW, NOW + 1])
        self._ask({"op": "list", "timestamp": time}, lambda: answered(lambda: listed(self.partition, time)))

    def delete(self) -> None:
        request: dict[str, Any] = {"op": "delete", "where": self.rng.random() * 0.7}
        self._ask(request, lambda: answered(lambda: self.partition.delete_records(request["offset"])))

    def truncate(self) -> None:
        request: dict[str, Any] = {"op": "truncate", "where": self.rng.choice([0.5, 0.9, 1.0])}
        self._ask(request, lambda: answered(lambda: self.partition.truncate(request["offset"])))

    def elect(self) -> None:
        self.epoch += 1
        self._ask({"op": "elect", "epoch": self.epoch}, lambda: answered(self.partition.elect_leader))


def listed(partition: PartitionSimulator, time: int) -> dict[str, Any]:
    """A lookup by time, or by one of Kafka's special timestamps."""
    names = {-2: "earliest", -3: "max_timestamp"}
    found = partition.list_offsets(names.get(time, time))  # type: ignore[arg-type]
    return {"found": list(found) if found else []}


def answered(act: Callable[[], Any]) -> dict[str, Any]:
    """The answer in the form of the oracle's."""
    try:
        answer = act()
    except AppendError as error:
        return {"error": error.code}
    if hasattr(answer, "base_offset"):
        return {
            "error": None,
            "firstOffset": answer.base_offset,
            "lastOffset": answer.last_offset,
            "logAppendTime": answer.log_append_time,
        }
    return answer if isinstance(answer, dict) else {}


def known(producer: ProducerStateEntry) -> list[int]:
    """A producer as `DescribeProducers` returns it."""
    start = producer.current_txn_first_offset
    numbers = (producer.last_sequence, producer.last_timestamp, producer.coordinator_epoch)
    return [producer.producer_id, producer.producer_epoch, *numbers, -1 if start is None else start]


def play(log: AppendOracle, make: Callable[[Play], None], seed: int, steps: int) -> Counter[str]:
    """Plays all steps, comparing each answer and the ends of the log. Returns how often each answer occurred."""
    rng = random.Random(seed)
    one = Play(rng)
    for _ in range(steps):
        make(one)
    met: Counter[str] = Counter()
    for request, act in one.steps:
        if "where" in request:
            # An offset in the current log, or a little past its end.
            request["offset"] = int(request.pop("where") * one.partition.log_end_offset)
        (kafka,) = log.answers([request])
        ours = act()
        met[str(ours.get("error"))] += 1
        met["duplicate"] += "lastOffset" in ours and ours["lastOffset"] + 1 < kafka["end"]
        met["aborted"] += bool(ours.get("aborted"))
        for name, value in ours.items():
            assert kafka.get(name) == value, (seed, name, request, kafka, ours)
        ends = {"start": one.partition.log_start_offset, "end": one.partition.log_end_offset}
        ends["stable"] = one.partition.last_stable_offset
        assert {name: kafka[name] for name in ends} == ends, (seed, request, kafka, ends)
        producers = sorted(map(known, one.partition.producers))
        assert kafka["producers"] == producers, (seed, request, kafka, producers)
    return met


def test_producers_and_transactions(log: AppendOracle) -> None:
    def make(one: Play) -> None:
        kinds = [Play.produce] * 10 + [Play.end] * 4 + [Play.fetch] * 4 + [Play.list, Play.elect]
        one.rng.choice(kinds)(one)

    met: Counter[str] = Counter()
    for seed in range(25):
        met += play(log, make, seed, 120)
    assert met["None"] > 1000
    assert met["duplicate"] > 30
    assert met["aborted"] > 30
    for name in ("OUT_OF_ORDER_SEQUENCE_NUMBER", "INVALID_PRODUCER_EPOCH", "TRANSACTION_COORDINATOR_FENCED",
                 "INVALID_TXN_STATE", "OFFSET_OUT_OF_RANGE"):  # fmt: skip
        assert met[name] > 10, met


def test_deletion(log: AppendOracle) -> None:
    def make(one: Play) -> None:
        kinds = [Play.produce] * 8 + [Play.end] * 3 + [Play.fetch] * 4 + [Play.list, Play.list, Play.delete]
        one.rng.choice(kinds)(one)

    for seed in range(10):
        play(log, make, seed, 100)


def test_truncation(log: AppendOracle) -> None:
    """After each truncation, Kafka restarts from the snapshot of the previous one, which has fewer batches."""

    def make(one: Play) -> None:
        if len(one.steps) in (30, 60, 80):
            one.truncate()
        kinds = [Play.produce] * 8 + [Play.end] * 3 + [Play.fetch] * 4 + [Play.list]
        one.rng.choice(kinds)(one)

    for seed in range(10):
        play(log, make, seed, 100)


def test_truncation_after_deletion(log: AppendOracle) -> None:
    """The snapshot contains producers whose batches are before the log start offset."""

    def make(one: Play) -> None:
        if len(one.steps) in (20, 34):
            one.truncate()
        if len(one.steps) == 30:
            one.delete()
        kinds = [Play.produce] * 8 + [Play.end] * 3 + [Play.fetch] * 4 + [Play.list] * 2 + [Play.elect]
        one.rng.choice(kinds)(one)

    for seed in range(20):
        play(log, make, seed, 50)


def test_records_without_a_timestamp(log: AppendOracle) -> None:
    def produce(one: Play) -> None:
        builder = RecordsBuilder()
        for offset in range(2):
            builder.append(offset, one.rng.choice([-1, -1, -1, 0, NOW]), b"k", b"v")
        records = builder.build()
        one._ask(
            one._append(records, AppendOrigin.CLIENT),
            lambda: answered(lambda: one.partition.append(records, produce_version=None)),
        )

    def make(one: Play) -> None:
        one.rng.choice([produce, Play.list])(one)

    for seed in range(20):
        play(log, make, seed, 8)


def test_lookups_with_limited_records() -> None:
    """A record that was sent uncompressed is over the limit once the broker has compressed it (since Kafka 4.4)."""
    config = AppendConfig(compression=Compression.SNAPPY, max_decompressed_message_bytes=300)
    partition = PartitionSimulator(config, clock=NOW)
    log = AppendOracle(NEWEST)
    log.answers([{"op": "open", "offset": 0, "config": topic(config)}, {"op": "elect", "epoch": 0}])
    for time, size in ((NOW - 30, 10), (NOW - 20, 700), (NOW - 10, 10)):
        builder = RecordsBuilder()
        builder.append(0, time, b"k", b"v" * size)
        builder.append(1, time + 5, b"k", b"v")
        records = builder.build()
        append = {"op": "append", "records": records.hex(), "origin": "CLIENT", "epoch": 0, "now": NOW}
        (kafka,) = log.answers([append | {"magic": 2, "transactionVersion": 0}])
        assert kafka["error"] is None
        partition.append(records, produce_version=None)
    met: Counter[str] = Counter()
    for timestamp in (NOW - 40, NOW - 25, NOW - 20, NOW - 15, NOW - 10, NOW - 5, NOW, -3):
        (kafka,) = log.answers([{"op": "list", "timestamp": timestamp}])
        ours = answered(lambda timestamp=timestamp: listed(partition, timestamp))
        assert {name: kafka.get(name) for name in ours} == ours, (timestamp, kafka, ours)
        met[str(ours.get("error"))] += 1
    log.close()
    assert met["INVALID_RECORD"] == 2, met
