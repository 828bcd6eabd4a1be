"""Checks that the drop-ins bring every codec to clients that have no package for any.

usage: dropins_alone.py CLIENT before|after -- CLIENT is aiokafka or kafka; it is imported before or after
`install()`. Needs an environment without the packages in ABSENT, or with their imports disabled.
"""

from __future__ import annotations

import asyncio
import importlib
import sys
from contextlib import suppress
from typing import Any

ABSENT = ("cramjam", "lz4", "lz4.frame", "lz4f", "lz4framed", "snappy", "xxhash", "zstandard")
CODECS = {"gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}
VALUE = b"value " * 50
# No broker listens there: nothing is sent.
NOWHERE = "127.0.0.1:1"


async def aiokafka_batch(codec: str) -> bytes:
    """A batch of two records, built by a producer with this codec."""
    from aiokafka import AIOKafkaProducer

    producer = AIOKafkaProducer(bootstrap_servers=NOWHERE, compression_type=codec)
    batch = producer.create_batch()
    for _ in range(2):
        batch.append(timestamp=1, key=b"key", value=VALUE)
    await producer.stop()
    return bytes(batch._build())


def kafka_batch(codec: str) -> bytes:
    """A batch of two records, built as by a producer with this codec."""
    from kafka import KafkaProducer
    from kafka.record import MemoryRecordsBuilder

    # With the version given, the constructor asks no broker for it.
    producer = KafkaProducer(bootstrap_servers=NOWHERE, compression_type=codec, api_version=(2, 6))
    producer.close(timeout=0)
    builder = MemoryRecordsBuilder(2, producer.config["compression_attrs"], 1 << 20)
    for _ in range(2):
        builder.append(1, b"key", VALUE)
    builder.close()
    return bytes(builder.buffer())


def read(client: str, data: bytes) -> list[tuple[bytes, bytes]]:
    """The keys and values, as the client's consumer reads them."""
    records = importlib.import_module(f"{client}.record.memory_records").MemoryRecords(data)
    found = []
    while records.has_next():
        found += [(record.key, record.value) for record in records.next_batch()]
    return found


def check_codecs(client: str) -> None:
    """Builds and reads a batch, and calls the codec's functions, for every codec."""
    functions = importlib.import_module(f"{client}.codec")
    for name, number in CODECS.items():
        data = asyncio.run(aiokafka_batch(name)) if client == "aiokafka" else kafka_batch(name)
        assert data[22] & 7 == number, (name, data)
        assert len(data) < 250, (name, data)
        assert read(client, data) == [(b"key", VALUE)] * 2, name
        assert getattr(functions, f"has_{name}")(), name
        encoded = getattr(functions, f"{name}_encode")(VALUE)
        assert getattr(functions, f"{name}_decode")(encoded) == VALUE, name
    if client == "kafka":
        assert functions.lz4_decode_old_kafka(functions.lz4_encode_old_kafka(VALUE)) == VALUE


def check_nothing(client: str) -> None:
    """Checks that the client itself has gzip only."""
    functions = importlib.import_module(f"{client}.codec")
    assert [name for name in CODECS if getattr(functions, f"has_{name}")()] == ["gzip"]
    where = "aiokafka.producer.producer" if client == "aiokafka" else "kafka.producer.kafka"
    module: Any = importlib.import_module(where)
    producer = module.AIOKafkaProducer if client == "aiokafka" else module.KafkaProducer
    assert [name for name in CODECS if producer._COMPRESSORS[name][0]()] == ["gzip"]


def main() -> None:
    """Runs the checks."""
    client, when = sys.argv[1:]
    for name in ABSENT:
        with suppress(ImportError):
            raise AssertionError(f"{importlib.import_module(name)} is there")
    if when == "before":
        check_nothing(client)
    dropin = "aiokafka" if client == "aiokafka" else "kafka_python"
    ours = importlib.import_module(f"magicbyte.compat.{dropin}")
    for _ in range(2):
        ours.install()
        check_codecs(client)
        ours.uninstall()
        check_nothing(client)


if __name__ == "__main__":
    main()
