"""Requests and responses against Kafka's generated classes: every API, every version.

Random messages, made by the table. Kafka's JSON converter reads each and its writer makes a frame: ours must be the
same. Kafka's reader and JSON converter then show what is in the frame: our reader must return the same.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from random import Random
from typing import Any

import pytest
from kafka_versions import BUILDS, NEWEST
from made_messages import definition, structure
from magicbyte.errors import Error
from magicbyte.message import apis, decode_request, decode_response, encode_request, encode_response
from oracle import Process

pytestmark = pytest.mark.interop

ROUNDS = 4
HEADER = {"correlationId": 7, "clientId": "client"}


@pytest.fixture(scope="module")
def newest() -> Iterator[Process]:
    process = Process("Messages", NEWEST, "messages")
    yield process
    process.close()


@pytest.fixture(scope="module")
def removed() -> Iterator[Process]:
    """Of what the newest version no longer has."""
    process = Process("Messages", BUILDS, "messages")
    yield process
    process.close()


def as_json(value: Any) -> Any:
    """As Kafka's converters write it."""
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, list):
        return [as_json(one) for one in value]
    if isinstance(value, dict):
        return {name: as_json(one) for name, one in value.items()}
    return value


def without_records(value: Any) -> Any:
    """As Kafka's converters write it: of a record set only whether there is one."""
    if isinstance(value, list):
        return [without_records(one) for one in value]
    if isinstance(value, dict):
        return {
            name: "" if name in ("records", "unalignedRecords") and one is not None else without_records(one)
            for name, one in value.items()
        }
    return value


def test_every_api_and_version(newest: Process, removed: Process) -> None:
    ranges = [
        {int(key): range(a, b + 1) for key, (a, b) in json.loads(p.ask(["apis"])[0]).items()}
        for p in (newest, removed)
    ]
    # Whatever either of them has, and nothing else.
    known = {api.key: {*range(api.min_version, api.max_version + 1)} for api in apis()}
    theirs = [{key: {*versions} for key, versions in one.items()} for one in ranges]
    both = {
        key: theirs[0].get(key, set()) | theirs[1].get(key, set())
        for key in theirs[0].keys() | theirs[1].keys()
    }
    assert known == {key: versions for key, versions in both.items() if versions}

    random = Random(1)
    work: tuple[list[Any], list[Any]] = ([], [])
    for key, versions in known.items():
        for version in versions:
            for kind in ("request", "response"):
                fields = definition(kind, key, version)["fields"]
                made = [structure(fields, version, random) for _ in range(ROUNDS)]
                side = work[0] if version in ranges[0].get(key, ()) else work[1]
                side.extend((kind, key, version, one) for one in made)
    assert len(work[0]) > 2000
    assert len(work[1]) > 300
    for process, cases in zip((newest, removed), work, strict=True):
        lines = [f"{kind} {key} {version} {json.dumps(as_json(body))}" for kind, key, version, body in cases]
        for case, answer in zip(cases, process.ask(lines), strict=True):
            check(*case, answer)


def check(kind: str, key: int, version: int, body: dict[str, Any], answer: str) -> None:
    frame_text, _, text = answer.partition(" ")
    assert frame_text != "error", (kind, key, version, body, answer)
    frame, expected = bytes.fromhex(frame_text), json.loads(text)
    if kind == "request":
        header = HEADER if (key, version) != (7, 0) else {"correlationId": 7}
        assert encode_request(key, version, body, header=header) == frame, (key, version, body)
        read = decode_request(frame)
        again = encode_request(key, version, read.body, header=read.header)
        assert (read.header["requestApiKey"], read.header["correlationId"]) == (key, 7)
    else:
        assert encode_response(key, version, body, header={"correlationId": 7}) == frame, (key, version, body)
        read = decode_response(frame, key, version)
        again = encode_response(key, version, read.body, header=read.header)
    assert (read.api_key, read.api_version) == (key, version)
    assert without_records(as_json(read.body)) == expected, (kind, key, version)
    assert again == frame


@pytest.mark.parametrize("count", [1_000_000, 1_000_001])
def test_arrays_are_as_long_as_kafka_reads_them(count: int, newest: Process) -> None:
    """DescribeProducers, with the indexes of partitions."""
    body = {"topics": [{"name": "t", "partitionIndexes": [0] * count}]}
    (answer,) = newest.ask([f"request 61 0 {json.dumps(body, separators=(',', ':'))}"])
    frame = encode_request(61, 0, body, header=HEADER)
    if answer.startswith("error"):
        assert count > 1_000_000
        assert "Tried to read a collection of size 1000001, which exceeds the maximum allowed size" in answer
        with pytest.raises(Error, match="1000001 elements: expected at most 1000000"):
            decode_request(frame)
    else:
        assert count == 1_000_000
        assert decode_request(frame).body == body
