"""Thousands of generated batches from Kafka's builder and from RecordsBuilder: equal bytes or records."""

from __future__ import annotations

import random
import struct
from collections.abc import Sequence
from typing import Any

import generate
import magicbyte
import pytest
from magicbyte import Compression, RecordsBuilder, TimestampType
from oracle import Builder, Oracle
from reading import FACTS, accepted

pytestmark = pytest.mark.interop

# The header fields that depend on the compressed size.
OF_THE_SIZE = {FACTS.index("sizeInBytes"), FACTS.index("crc")}
MARKERS = {"ABORT": 0, "COMMIT": 1}
TYPES = {"NoTimestampType": TimestampType.NO_TIMESTAMP_TYPE}


def content(text: str) -> bytes | None:
    return None if text == "~" else bytes.fromhex(text)


def given(number: str) -> int | None:
    return None if number == "-1" else int(number)


def build(line: str) -> bytes:
    """Builds the batch that a line requests from Kafka's builder."""
    verb, *words = line.split(" ")
    if verb == "marker":
        return marker(*words)
    magic, codec, level, stamp, base, append_time, pid, epoch, sequence, txn, leader_epoch, horizon = words[
        :12
    ]
    builder = RecordsBuilder(
        int(magic),
        Compression[codec.upper()],
        None if level == "-" else int(level),
        producer_id=int(pid),
        producer_epoch=int(epoch),
        base_sequence=int(sequence),
        is_transactional=txn == "true",
        is_control=verb == "control",
        partition_leader_epoch=int(leader_epoch),
        delete_horizon_ms=given(horizon),
        timestamp_type=TYPES.get(stamp),
        log_append_time=given(append_time),
        base_offset=int(base),
    )
    for record in words[12:]:
        offset, time, key, value, *headers = record.split(",")
        pairs: Any = list(zip(map(content, headers[::2]), map(content, headers[1::2]), strict=True))
        builder.append(int(offset), int(time), content(key), content(value), pairs)
    return builder.build()


def marker(
    kind: str, base: str, time: str, pid: str, epoch: str, leader_epoch: str, coordinator: str
) -> bytes:
    builder = RecordsBuilder(
        producer_id=int(pid),
        producer_epoch=int(epoch),
        is_transactional=True,
        is_control=True,
        partition_leader_epoch=int(leader_epoch),
    )
    builder.append(
        int(base), int(time), struct.pack(">hh", 0, MARKERS[kind]), struct.pack(">hi", 0, int(coordinator))
    )
    return builder.build()


def built_or_refused(line: str) -> bytes | str:
    try:
        return build(line)
    except (magicbyte.Error, ValueError) as error:
        return str(error)


def agree(lines: Sequence[str], builder: Builder, oracle: Oracle) -> tuple[int, int, int]:
    """The numbers of batches with Kafka's bytes, with Kafka's records but other bytes, and refused by both."""
    equal = refused = 0
    packed: list[tuple[str, bytes, bytes]] = []
    for line, answer in zip(lines, builder.ask(lines), strict=True):
        ours = built_or_refused(line)
        if isinstance(ours, str) and "is not allowed here" in ours and out_of_reach(line):
            # Kafka checks little of this, and writes batches that cannot be read.
            refused += 1
            continue
        if answer.startswith("error ") or isinstance(ours, str):
            assert answer.startswith("error "), f"only magicbyte refuses: {ours}\n{line[:2000]}"
            assert isinstance(ours, str), f"only Kafka refuses: {answer}\n{line[:2000]}"
            refused += 1
            continue
        kafkas = bytes.fromhex(answer)
        if line.startswith("marker") or line.split(" ")[2] in ("none", "snappy"):
            assert ours.hex() == kafkas.hex(), line[:2000]
            equal += 1
        else:
            packed.append((line, ours, kafkas))
    of_ours = oracle.read(ours for _, ours, _ in packed)
    of_kafkas = oracle.read(kafkas for _, _, kafkas in packed)
    for (line, data, _), mine, theirs in zip(packed, of_ours, of_kafkas, strict=True):
        assert accepted(mine), f"{mine['error'] or mine['batches']}\n{line[:2000]}"
        assert mine["framed"] == len(data)
        assert facts(mine) == facts(theirs), line[:2000]
    return equal, len(packed), refused


def out_of_reach(line: str) -> bool:
    """Whether the base offset is negative, or an offset is below it, or 2^31 or more above it."""
    words = line.split(" ")
    if words[0] != "build":
        return False
    base = int(words[5])
    return base < 0 or not all(0 <= int(record.split(",")[0]) - base < 1 << 31 for record in words[13:])


def facts(verdict: dict[str, Any]) -> list[Any]:
    """The header fields of each batch, without those that depend on the size, and its records."""
    return [
        ([fact for place, fact in enumerate(batch["header"]) if place not in OF_THE_SIZE], batch["records"])
        for batch in verdict["batches"]
    ]


def test_the_same_batches(builder: Builder, oracle: Oracle) -> None:
    rng = random.Random(11)
    equal, packed, refused = agree([generate.request(rng) for _ in range(2500)], builder, oracle)
    assert equal > 1000
    assert packed > 1000
    assert refused == 0


def test_control_batches(builder: Builder, oracle: Oracle) -> None:
    rng = random.Random(12)
    equal, packed, refused = agree([generate.control_request(rng) for _ in range(1500)], builder, oracle)
    assert equal > 700
    assert packed > 100
    assert refused > 100


def test_what_kafka_refuses(builder: Builder, oracle: Oracle) -> None:
    rng = random.Random(13)
    lines = [line for line in (generate.request(rng) for _ in range(4000)) if len(line) < 3000]
    equal, packed, refused = agree([generate.twisted(rng, line) for line in lines], builder, oracle)
    assert equal > 200
    assert packed > 200
    assert refused > 700
