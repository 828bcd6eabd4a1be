"""The CPU time and the memory of reading a running cluster, ours and other clients'.

Records of 112 bytes (those of `clients_cpu.py`) are produced to one partition of a real broker, and read from
its start to its end, with each key and value taken: as columns, or as records. Each reader runs in a process
of its own, whose CPU time (user and system, all threads, without the start) counts; not the broker's. Readers
take turns on the same topic, and each is compared with the others of its turn. Memory is what a process that
reads a `Log` of 1,000 partitions adds at its peak to what it had before it connected.
"""

from __future__ import annotations

import argparse
import asyncio
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import broker
import magicbyte
import pyarrow as pa
from bench import Bench
from figures import figure, only_ratio
from ratios import Comparison
from serving import peak_memory
from sets import PROJECT

sys.path.append(str(PROJECT / "examples"))

from asyncio_client import Client
from asyncio_client.connection import VERSIONS
from client_loops import (
    Job,
    aiokafka_consume,
    bytes_of,
    kafkarrow_consume,
    librdkafka_consume,
    send_batch,
)

TITLE = PART = "Live"
VERSIONS["CreateTopics"] = (4, 7)
CODECS = ("none", "zstd")
RECORDS = 2_000_000
PARTITIONS, RECORDS_OF_PARTITIONS = 1000, 4_000_000
MOST_MEMORY = 256 << 20
# The threads of a library that nobody uses spin when it is loaded.
QUIET = {"OPENBLAS_NUM_THREADS": "1"}


async def live_columns(job: Job) -> None:
    """Keys and values as Arrow columns, with offsets and timestamps."""
    size = 0
    job.start()
    log = magicbyte.PartitionLog(f"kafka://{job.bootstrap}/{job.topic}/0")
    for batch in pa.RecordBatchReader.from_stream(log.to_arrow(["offset", "timestamp", "key", "value"])):
        size += bytes_of(batch)
    job.stop_consuming(size)


async def live_records(job: Job) -> None:
    """One object for each record."""
    size = 0
    job.start()
    for record in magicbyte.PartitionLog(f"kafka://{job.bootstrap}/{job.topic}/0").records():
        size += len(record.key_bytes or b"") + len(record.value_bytes or b"")
    job.stop_consuming(size)


async def live_memory(job: Job) -> None:
    """All partitions as Arrow columns; the cost is the peak of what the process adds."""
    found, before = 0, peak_memory(os.getpid())
    log = magicbyte.Log(f"kafka://{job.bootstrap}/{job.topic}")
    for batch in pa.RecordBatchReader.from_stream(log.to_arrow(["offset", "timestamp", "key", "value"])):
        found += batch.num_rows
    assert found == job.count, found
    job.costs["consume"] = max(peak_memory(os.getpid()) - before, 1)


READERS: dict[str, Callable[[Job], Any]] = {
    "to Arrow": live_columns,
    "records": live_records,
    "librdkafka": librdkafka_consume,
    "aiokafka": aiokafka_consume,
    "kafkarrow": kafkarrow_consume,
    "memory": live_memory,
}
COMPARED = {"to Arrow": ("librdkafka", "kafkarrow"), "records": ("aiokafka", "librdkafka")}


def readers_of(codec: str) -> list[str]:
    """The readers that are compared. kafkarrow may be missing, and its librdkafka has no zstd."""
    has_kafkarrow = codec == "none" and importlib.util.find_spec("kafkarrow") is not None
    names = dict.fromkeys(name for ours, peers in COMPARED.items() for name in (ours, *peers))
    return [name for name in names if name != "kafkarrow" or has_kafkarrow]


async def create(job: Job, partitions: int) -> None:
    async with Client(job.bootstrap) as admin:
        wanted = {"name": job.topic, "numPartitions": partitions, "replicationFactor": 1}
        body = {"topics": [wanted], "timeoutMs": 60_000}
        await (await admin.coordinator(None)).send("CreateTopics", body)
    await asyncio.sleep(0.5)


async def produce(job: Job) -> None:
    await create(job, 1)
    await send_batch(job)


def produce_to_all(job: Job) -> None:
    """The records of a topic with many partitions, evenly."""
    from client_loops import PAIRS
    from confluent_kafka import Producer

    asyncio.run(create(job, PARTITIONS))
    producer = Producer({"bootstrap.servers": job.bootstrap, "linger.ms": 100})
    for number in range(job.count):
        key, value = PAIRS[number % len(PAIRS)]
        producer.produce(job.topic, value, key, partition=number // 100 % PARTITIONS)
        if number % 10_000 == 0:
            producer.flush()
    producer.flush()


def cost(reader: str, job: Job) -> float:
    """The cost that a process of its own measures: microseconds a record, or bytes."""
    given = [reader, job.bootstrap, job.topic, job.codec, str(job.count)]
    command = [sys.executable, __file__, *given]
    run = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env=os.environ | QUIET)
    return float(json.loads(run.stdout.splitlines()[-1]))


def measure(bench: Bench) -> None:
    with tempfile.TemporaryDirectory() as directory, broker.running(Path(directory)) as node:
        for codec in CODECS:
            with bench.guarded(f"{PART}, {codec}"):
                add(bench, Job(node.bootstrap_servers, f"live-{codec}-{time.time_ns()}", codec, RECORDS))
        with bench.guarded(f"{PART}, memory"):
            job = Job(node.bootstrap_servers, f"live-{PARTITIONS}", "none", RECORDS_OF_PARTITIONS)
            produce_to_all(job)
            allowed = [MOST_MEMORY / cost("memory", job) for _ in range(bench.turns)]
            compared = Comparison(allowed, [1.0] * len(allowed))
            bench.add(only_ratio(PART, "memory", f"{PARTITIONS} partitions", "256 MiB", compared))


def add(bench: Bench, job: Job) -> None:
    """The figures of a topic with one partition."""
    asyncio.run(produce(job))
    rates: dict[str, list[float]] = {}
    for _ in range(bench.turns):
        for reader in readers_of(job.codec):
            rates.setdefault(reader, []).append(1e6 / cost(reader, job))
    for ours, peers in COMPARED.items():
        for peer in peers:
            if peer in rates:
                compared = Comparison(rates[ours], rates[peer])
                bench.add(figure(PART, f"{ours}, CPU", job.codec, peer, compared))


def main() -> None:
    """One reader, in a process of its own; prints its cost."""
    parser = argparse.ArgumentParser()
    for name in ("reader", "bootstrap", "topic", "codec"):
        parser.add_argument(name)
    parser.add_argument("count", type=int)
    given = parser.parse_args()
    job = Job(given.bootstrap, given.topic, given.codec, given.count)
    asyncio.run(READERS[given.reader](job))
    print(json.dumps(job.costs["consume"]))


if __name__ == "__main__":
    main()
