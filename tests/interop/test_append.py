"""Thousands of appends, valid and damaged: Kafka's UnifiedLog and magicbyte return and store the same."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import magicbyte
import mutate
import pytest
from append_oracle import AppendOracle, Case, OldValidator, config, difference, produced, where
from intended_appends import INTENDED_APPENDS, intended_append
from kafka_versions import JUDGES, NEWEST
from magicbyte.broker import AppendError, check_produce_request
from oracle import Builder

pytestmark = pytest.mark.interop


@pytest.fixture(scope="module", params=JUDGES)
def log(request: pytest.FixtureRequest) -> Iterator[AppendOracle]:
    process = AppendOracle(request.param)
    yield process
    process.close()


def agree(log: AppendOracle, cases: list[Case], least: int) -> Counter[str]:
    """Compares both on all cases, with a minimum of stored and of refused ones. Returns how often each verdict occurs."""
    asked = [request for case in cases for request in case.requests()]
    met: Counter[str] = Counter()
    for case, kafka in zip(cases, log.answers(asked)[1::2], strict=True):
        ours = case.ours()
        met[str(kafka["error"])] += 1
        # The checks after those of records (producers and segments) have their own tests.
        if kafka.get("isLaterCheck"):
            continue
        found = difference(kafka, ours)
        if found is not None:
            name = intended_append(kafka, ours, case)
            assert name is not None, f"{found}\n{case}\n{kafka}\n{ours}"
            met[name] += 1
    assert met["None"] >= least, met
    assert len(cases) - met["None"] >= least, met
    return met


def test_produced(log: AppendOracle) -> None:
    rng = random.Random(1)
    met = agree(log, [where(rng, produced(rng)) for _ in range(3000)], least=1000)
    named = {
        "INVALID_RECORD", "INVALID_TIMESTAMP", "MESSAGE_TOO_LARGE", "RECORD_LIST_TOO_LARGE",
        "UNSUPPORTED_FOR_MESSAGE_FORMAT", "UNKNOWN_SERVER_ERROR",
    }  # fmt: skip
    assert named <= set(met), met


def test_limited_records(builder: Builder) -> None:
    """With `max.decompressed.message.bytes`, which topics have since Kafka 4.4; older brokers ignore it."""
    rng = random.Random(6)
    wrapped = [data for data in mutate.odd_wrappers(rng, builder, 500) if len(data) < 3000]
    inputs = [*(produced(rng) for _ in range(1500)), *wrapped]
    cases = [
        where(
            rng, data, replace(config(rng), max_decompressed_message_bytes=rng.choice([1, 14, 25, 40, 110]))
        )
        for data in inputs
    ]
    newest = AppendOracle(NEWEST)
    met = agree(newest, cases, least=300)
    refused = [case for case in cases if "max.decompressed.message.bytes" in str(case.ours().get("text"))]
    assert len(refused) > 300, met
    # The default is no limit.
    free = [
        replace(case, config=replace(case.config, max_decompressed_message_bytes=2**31 - 9))
        for case in refused
    ]
    assert agree(newest, free, least=30)["None"] > 100
    newest.close()


def test_damaged(log: AppendOracle) -> None:
    rng = random.Random(2)
    valid = [data for data in (produced(rng) for _ in range(300)) if len(data) < 3000]
    cases = [where(rng, mutate.damaged(rng, rng.choice(valid))) for _ in range(1500)]
    assert agree(log, cases, least=300)["CORRUPT_MESSAGE"] > 100


@pytest.mark.parametrize("odd", [mutate.odd_batches, mutate.odd_wrappers, mutate.odd_payloads])
def test_odd(
    odd: Callable[[random.Random, Builder, int], list[bytes]], log: AppendOracle, builder: Builder
) -> None:
    rng = random.Random(3)
    # A producer's batch begins at offset 0.
    inputs = [
        bytes(8) + data[8:] if len(data) > 16 and data[16] == 2 else data for data in odd(rng, builder, 1200)
    ]
    agree(log, [where(rng, data) for data in inputs], least=70)


def test_old_formats() -> None:
    """Topics of magic 0 and 1, which the newest Kafka no longer has."""
    rng = random.Random(5)
    old = OldValidator()
    cases = []
    while len(cases) < 1500:
        case = where(rng, produced(rng), replace(config(rng), message_format=rng.choice([0, 1])))
        if case.origin.name in ("CLIENT", "COORDINATOR") and only_the_validator_decides(case):
            cases.append(case)
    met: Counter[str] = Counter()
    for case, kafka in zip(cases, old.verdicts(cases), strict=True):
        ours = case.ours()
        found = difference(kafka, ours)
        assert found is None or intended_append(kafka, ours, case), f"{found}\n{case}\n{kafka}\n{ours}"
        met[str(kafka["error"])] += 1
    old.close()
    assert met["None"] > 300, met
    assert len(cases) - met["None"] > 300, met


def only_the_validator_decides(case: Case) -> bool:
    """Whether the checks before and after the validator pass."""
    batches = magicbyte.read_batches(case.records, allow_partial=True)
    sizes = [batch.size_in_bytes for batch in batches if batch.magic < 2 or batch.base_offset == 0]
    limits = (case.config.max_message_bytes, case.config.segment_bytes)
    return sum(sizes) == len(case.records) and limits == (1_048_588, 1 << 30)


def test_produce_requests(log: AppendOracle) -> None:
    rng = random.Random(4)
    inputs = [
        (rng.choice([b"", produced(rng), produced(rng)]), rng.choice([3, 6, 7, 12])) for _ in range(300)
    ]
    requests = [
        request | {"produceVersion": version} for data, version in inputs for request in Case(data).requests()
    ]
    answers = log.answers(requests)[1::2]
    refused = 0
    for (data, version), kafka in zip(inputs, answers, strict=True):
        try:
            check_produce_request(data, version)
            ours = None
        except AppendError as error:
            ours = error.code
        if ours is None and kafka["error"]:
            # The request is valid, but the log refused it.
            assert Case(data).ours()["error"] is not None or kafka["isLaterCheck"]
        else:
            assert ours == kafka["error"], (version, kafka, data.hex())
        refused += ours is not None
    assert 50 < refused < 250


def test_intended_differences_are_documented() -> None:
    text = (Path(__file__).parents[2] / "docs" / "conformance.md").read_text()
    assert [name for name in INTENDED_APPENDS if f"`{name}`" not in text] == []
