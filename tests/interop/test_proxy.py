"""The example proxy in front of a broker: every batch is checked and recompressed, and clients do not notice."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import magicbyte
import pytest
from asyncio_client import Client, Producer
from broker_versions import Node
from confluent_kafka import Producer as ConfluentProducer
from example_client import raw, read, run, topic, values
from kafka_broker import ROOT
from magicbyte.message import error_name

pytestmark = pytest.mark.interop

PROXY = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "ci" / "examples" / "proxy"


@pytest.fixture(scope="module")
def proxy(new: Node) -> Iterator[str]:
    """The address of a proxy."""
    with subprocess.Popen(
        [PROXY, "127.0.0.1:0", new.bootstrap], stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        yield process.stderr.readline().removeprefix("listening on ").strip()
        process.kill()


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_batches_become_zstd(proxy: str, codec: str) -> None:
    sent: list[bytes | None] = [b"value %d" % number for number in range(2000)]

    async def test() -> None:
        async with Client(proxy) as client:
            name = await topic(client)
            leader = await client.leader(name, 0)
            assert leader.name == proxy
            async with Producer(client, compression=codec, batch_size=2000) as producer:
                for value in sent:
                    await producer.send(name, 0, value)
            librdkafka = ConfluentProducer({"bootstrap.servers": proxy, "compression.type": codec})
            for value in sent:
                librdkafka.produce(name, value, partition=0)
            assert librdkafka.flush(20) == 0
            assert values(await read(client, name)) == sent * 2
            assert {batch.compression.name for batch in await raw(client, name)} == {"ZSTD"}

    run(test())


def test_transactions(proxy: str) -> None:
    async def test() -> None:
        async with Client(proxy) as client:
            name = await topic(client)
            async with Producer(client, transactional_id="through-the-proxy") as producer:
                for number in range(3):
                    async with producer.transaction():
                        await producer.send(name, 0, b"%d" % number)
            assert values(await read(client, name)) == [b"0", b"1", b"2"]

    run(test())


def test_bad_batches_are_refused(proxy: str, new: Node) -> None:
    """They do not reach the broker, and the connection goes on, in order."""
    builder = magicbyte.RecordsBuilder(compression="lz4")
    for number in range(100):
        builder.append(number, 0, value=b"value %d" % number)
    batch = builder.build()
    changed = bytearray(batch)
    changed[-20] ^= 1
    cases = {
        batch: None,
        bytes(changed): "CORRUPT_MESSAGE",
        batch * 2: "INVALID_RECORD",
        batch[:-1]: "INVALID_RECORD",
        b"": "INVALID_RECORD",
        bytes(200): "CORRUPT_MESSAGE",
    }

    async def test() -> None:
        async with Client(proxy) as client:
            name = await topic(client)
            leader = await client.leader(name, 0)

            def request(records: bytes) -> dict[str, Any]:
                data = {"name": name, "partitionData": [{"index": 0, "records": records}]}
                return {"acks": -1, "timeoutMs": 20_000, "topicData": [data]}

            for _ in range(2):
                futures = [leader.send("Produce", request(records)) for records in cases]
                for future, error in zip(futures, cases.values(), strict=True):
                    (answer,) = (await future)["responses"][0]["partitionResponses"]
                    assert error_name(answer["errorCode"]) == (error or "NONE"), answer
                    assert (answer["errorMessage"] is None) == (error is None)
            assert len(await read(client, name)) == 200

    run(test())
