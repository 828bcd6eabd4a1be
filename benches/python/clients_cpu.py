"""The CPU time of whole clients for each record: the example client, librdkafka, aiokafka and kafka-python.

Records of 112 bytes (a key of 11, a value of 101) are produced idempotently to one partition of a real
broker, in batches of up to 256 KiB, and then consumed, with each key and value taken. Each client runs in a
process of its own, whose CPU time (user and system, all threads, without the start) counts; not the broker's.
Writes the tables of docs/embedding.md and docs/dropins.md:

    .venv/bin/python benches/python/clients_cpu.py [--turns 3] [--records 400000]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
sys.path.append(str(ROOT / "examples"))

from asyncio_client import Client, Consumer, Producer  # noqa: E402
from asyncio_client.connection import VERSIONS  # noqa: E402

VERSIONS["CreateTopics"] = (4, 7)
VERSIONS["DeleteTopics"] = (4, 5)
CODECS = ("none", "lz4", "zstd")
BATCH_SIZE = 256 << 10
MANY = 2000
KEYS = [b"user-%06d" % number for number in range(1000)]
VALUES = [
    (
        b'{"id":%d,"name":"some name %d","amount":%d,"ok":true,"note":"' % (number, number * 7, number * 13)
    ).ljust(99, b"x")
    + b'"}'
    for number in range(1000)
]
PAIRS = list(zip(KEYS, VALUES, strict=True))
# kafka-python takes ten times as long, and so gets a part of the records.
FEWER = {"kafka-python": 8, "kafka-python, drop-in": 8}


class Stopwatch:
    """Microseconds of this process's CPU time for each record."""

    def __init__(self, count: int) -> None:
        self._count = count
        self.results: dict[str, float] = {}

    def start(self) -> None:
        self._since = self._now()

    def stop(self, work: str) -> None:
        self.results[work] = 1e6 * (self._now() - self._since) / self._count

    @staticmethod
    def _now() -> float:
        usage = resource.getrusage(resource.RUSAGE_SELF)
        return usage.ru_utime + usage.ru_stime


async def example(
    bootstrap: str, topic: str, codec: str, count: int, watch: Stopwatch, *, many: bool
) -> None:
    async with Client(bootstrap) as client:
        async with Producer(client, compression=codec, batch_size=BATCH_SIZE) as producer:
            watch.start()
            if many:
                now = time.time_ns() // 1_000_000
                for _ in range(count // MANY):
                    await producer.send_batch(
                        topic, 0, [(None, now, key, value) for key, value in PAIRS * (MANY // 1000)]
                    )
            else:
                for _ in range(count // 1000):
                    for key, value in PAIRS:
                        await producer.send(topic, 0, value, key)
            await producer.flush()
            watch.stop("produce")
        consumer = Consumer(client, {(topic, 0): 0})
        found = size = 0
        watch.start()
        while found < count:
            for fetched in await consumer.poll():
                for record in fetched.records:
                    found += 1
                    size += len(record.key_bytes or b"") + len(record.value_bytes or b"")
        watch.stop("consume")
        assert size == count * 112, size


async def aiokafka(bootstrap: str, topic: str, codec: str, count: int, watch: Stopwatch) -> None:
    from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition

    compression = None if codec == "none" else codec
    options = {"compression_type": compression, "max_batch_size": BATCH_SIZE, "linger_ms": 5}
    async with AIOKafkaProducer(bootstrap_servers=bootstrap, enable_idempotence=True, **options) as producer:
        watch.start()
        for _ in range(count // 1000):
            for key, value in PAIRS:
                await producer.send(topic, value, key, partition=0)
        await producer.flush()
        watch.stop("produce")
    consumer = AIOKafkaConsumer(
        bootstrap_servers=bootstrap, auto_offset_reset="earliest", enable_auto_commit=False
    )
    async with consumer:
        consumer.assign([TopicPartition(topic, 0)])
        found = size = 0
        watch.start()
        while found < count:
            for records in (await consumer.getmany(timeout_ms=1000)).values():
                for record in records:
                    found += 1
                    size += len(record.key) + len(record.value)
        watch.stop("consume")
        assert size == count * 112, size


async def kafka_python(bootstrap: str, topic: str, codec: str, count: int, watch: Stopwatch) -> None:
    from kafka import KafkaConsumer, KafkaProducer, TopicPartition

    compression = None if codec == "none" else codec
    producer = KafkaProducer(
        bootstrap_servers=bootstrap, compression_type=compression, batch_size=BATCH_SIZE, linger_ms=5
    )
    watch.start()
    for _ in range(count // 1000):
        for key, value in PAIRS:
            producer.send(topic, value, key, partition=0)
    producer.flush()
    watch.stop("produce")
    producer.close()
    consumer = KafkaConsumer(
        bootstrap_servers=bootstrap, auto_offset_reset="earliest", enable_auto_commit=False
    )
    consumer.assign([TopicPartition(topic, 0)])
    found = size = 0
    watch.start()
    while found < count:
        for records in consumer.poll(1000, max_records=5000).values():
            for record in records:
                found += 1
                size += len(record.key) + len(record.value)
    watch.stop("consume")
    assert size == count * 112, size
    consumer.close()


async def librdkafka(bootstrap: str, topic: str, codec: str, count: int, watch: Stopwatch) -> None:
    from confluent_kafka import Consumer, Producer, TopicPartition

    settings = {
        "bootstrap.servers": bootstrap,
        "compression.type": codec,
        "batch.size": BATCH_SIZE,
        "linger.ms": 5,
    }
    producer = Producer({**settings, "enable.idempotence": True, "queue.buffering.max.messages": 200_000})
    watch.start()
    for _ in range(count // 1000):
        for key, value in PAIRS:
            while True:
                try:
                    producer.produce(topic, value, key, partition=0)
                    break
                except BufferError:
                    producer.poll(0.05)
    producer.flush()
    watch.stop("produce")
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": topic, "enable.auto.commit": False})
    consumer.assign([TopicPartition(topic, 0, 0)])
    found = size = 0
    watch.start()
    while found < count:
        for message in consumer.consume(5000, 1.0):
            found += 1
            size += len(message.key() or b"") + len(message.value() or b"")
    watch.stop("consume")
    assert size == count * 112, size
    consumer.close()


Run = Callable[[str, str, str, int, Stopwatch], Coroutine[Any, Any, None]]
CLIENTS: dict[str, Run] = {
    "the example client, `send`": lambda *given: example(*given, many=False),
    "the example client, `send_batch`": lambda *given: example(*given, many=True),
    "confluent-kafka": librdkafka,
    "aiokafka": aiokafka,
    "aiokafka, drop-in": aiokafka,
    "kafka-python": kafka_python,
    "kafka-python, drop-in": kafka_python,
}


def measure_one(bootstrap: str, client: str, codec: str, count: int) -> dict[str, float]:
    """In a process of its own: the microseconds for each record."""
    if client == "aiokafka, drop-in":
        from magicbyte.compat import aiokafka as dropin

        dropin.install()
    elif client == "kafka-python, drop-in":
        from magicbyte.compat import kafka_python as dropin  # type: ignore[no-redef]

        dropin.install()
    topic = f"clients-{time.time_ns()}"
    watch = Stopwatch(count)

    async def administer(api: str, body: dict[str, Any]) -> None:
        async with Client(bootstrap) as client:
            await (await client.coordinator(None)).send(api, body)

    wanted = {"name": topic, "numPartitions": 1, "replicationFactor": 1, "assignments": [], "configs": []}
    asyncio.run(administer("CreateTopics", {"topics": [wanted], "timeoutMs": 10_000}))
    time.sleep(0.5)
    asyncio.run(CLIENTS[client](bootstrap, topic, codec, count, watch))
    asyncio.run(administer("DeleteTopics", {"topicNames": [topic], "timeoutMs": 10_000}))
    return watch.results


def measure_all(bootstrap: str, turns: int, count: int) -> dict[tuple[str, str, str], list[float]]:
    """The clients take turns, so that all of them have the machine's good and bad moments."""
    found: dict[tuple[str, str, str], list[float]] = {}
    for turn in range(turns):
        for codec in CODECS:
            for client in CLIENTS:
                records = count // FEWER.get(client, 1) // MANY * MANY
                command = [sys.executable, __file__, "--one", bootstrap, client, codec, str(records)]
                run = subprocess.run(command, check=True, capture_output=True, text=True)
                for work, cost in json.loads(run.stdout.splitlines()[-1]).items():
                    found.setdefault((client, work, codec), []).append(cost)
            print(f"turn {turn + 1}, {codec}", file=sys.stderr, flush=True)
    return found


def table(found: dict[tuple[str, str, str], list[float]]) -> list[str]:
    heads = [f"{work} {codec}" for work in ("produce", "consume") for codec in CODECS]
    lines = [f"| client | {' | '.join(heads)} |", "|---|" + "---:|" * len(heads)]
    for client in CLIENTS:
        cells = [
            f"{statistics.median(found[client, work, codec]):.2f}"
            for work in ("produce", "consume")
            for codec in CODECS
        ]
        lines.append(f"| {client} | {' | '.join(cells)} |")
    return lines


def dropin_table(found: dict[tuple[str, str, str], list[float]]) -> list[str]:
    """The CPU time of whole clients divided by that with their drop-ins: medians of the turns' ratios."""
    heads = [f"{work} {codec}" for work in ("produce", "consume") for codec in CODECS]
    lines = [f"| client | {' | '.join(heads)} |", "|---|" + "---:|" * len(heads)]
    for client in ("aiokafka", "kafka-python"):
        cells = []
        for work in ("produce", "consume"):
            for codec in CODECS:
                pairs = zip(found[client, work, codec], found[f"{client}, drop-in", work, codec], strict=True)
                cells.append(f"{statistics.median(without / with_it for without, with_it in pairs):.2f}")
        lines.append(f"| {client} | {' | '.join(cells)} |")
    return lines


def write(page: Path, lines: list[str]) -> None:
    """Puts a table between the marks of a page."""
    before, rest = page.read_text().split("<!-- clients -->\n")
    after = rest[rest.index("<!-- /clients -->") :]
    page.write_text("\n".join([before + "<!-- clients -->", *lines, after]))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--records", type=int, default=400_000)
    parser.add_argument("--one", nargs=4)
    given = parser.parse_args()
    if given.one:
        bootstrap, client, codec, count = given.one
        print(json.dumps(measure_one(bootstrap, client, codec, int(count))))
        return
    import broker

    with tempfile.TemporaryDirectory() as directory, broker.running(Path(directory)) as node:
        print(f"load average {os.getloadavg()[0]:.1f}", file=sys.stderr)
        found = measure_all(node.bootstrap_servers, given.turns, given.records)
        print(f"load average {os.getloadavg()[0]:.1f}", file=sys.stderr)
    for lines, page in ((table(found), "embedding.md"), (dropin_table(found), "dropins.md")):
        print("\n".join(lines))
        write(ROOT / "docs" / page, lines)


if __name__ == "__main__":
    main()
