"""Thousands of generated and damaged batches: Kafka's classes and magicbyte agree."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import generate
import mutate
import pytest
from intended import INTENDED, intended
from oracle import Builder, Oracle
from reading import accepted, difference, read
from wire import V2, record

pytestmark = pytest.mark.interop


def agree(oracle: Oracle, inputs: list[bytes], least: int) -> Counter[str]:
    """Compares both on all inputs, with a minimum of accepted and of refused ones. Returns the intended differences."""
    met: Counter[str] = Counter()
    count = 0
    for data, kafka in zip(inputs, oracle.read(inputs), strict=True):
        count += accepted(kafka)
        found = difference(kafka, read(data))
        if found is None:
            continue
        name = intended(found)
        assert name is not None, f"{found.text}\n{data.hex()[:4000]}"
        met[name] += 1
    # Damage that Kafka always accepts, or always refuses, proves nothing.
    assert count >= least, count
    assert len(inputs) - count >= least, count
    return met


def test_built(oracle: Oracle, builder: Builder) -> None:
    rng = random.Random(1)
    inputs = builder.build([generate.request(rng) for _ in range(800)])
    assert {data[16] for data in inputs} == {0, 1, 2}
    for data, kafka in zip(inputs, oracle.read(inputs), strict=True):
        assert accepted(kafka), kafka["error"]
        assert kafka["framed"] == len(data)
        found = difference(kafka, read(data))
        assert found is None, f"{found}\n{data.hex()[:4000]}"


def test_damaged(oracle: Oracle, builder: Builder) -> None:
    rng = random.Random(2)
    built = builder.build([generate.request(rng) for _ in range(300)])
    small = [data for data in built if len(data) < 3000] + mutate.sample() * 20
    agree(oracle, [mutate.damaged(rng, rng.choice(small)) for _ in range(15_000)], least=2000)


@pytest.mark.parametrize("odd", [mutate.odd_batches, mutate.odd_wrappers, mutate.odd_payloads])
def test_odd(
    odd: Callable[[random.Random, Builder, int], list[bytes]], oracle: Oracle, builder: Builder
) -> None:
    agree(oracle, odd(random.Random(3), builder, 8000), least=500)


def test_intended_differences_are_documented() -> None:
    text = (Path(__file__).parents[2] / "docs" / "conformance.md").read_text()
    assert [name for name in INTENDED if f"`{name}`" not in text] == []


def test_intended_differences_match_only_their_cause(oracle: Oracle, builder: Builder) -> None:
    frame, other = (builder.compress("zstd", record(at)) for at in range(2))
    # Kafka's frames end with an empty raw block.
    assert frame.endswith(b"\1\0\0")
    inputs = [
        ("cut-later-zstd-frame", V2(frame + other[:1], attributes=4)),
        ("cut-later-zstd-frame", V2(frame + other[:9], attributes=4)),
        ("cut-later-zstd-frame", V2(frame + bytes.fromhex("5f2a4d18ff"), attributes=4)),
        ("empty-compressed-zstd-block", V2(frame[:-3] + b"\5\0\0", attributes=4)),
        ("empty-batch-keeps-its-codec", V2(b"\xff" * 40, 0, attributes=1)),
    ]
    verdicts = oracle.read(batch.bytes() for _, batch in inputs)
    for (name, batch), kafka in zip(inputs, verdicts, strict=True):
        found = difference(kafka, read(batch.bytes()))
        assert found is not None, name
        assert intended(found) == name
        # The same verdicts without the cause do not match.
        intact = frame if batch.count else builder.compress("gzip", b"")
        found.ours["bytes"] = replace(batch, payload=intact).bytes()
        assert intended(found) is None, name
