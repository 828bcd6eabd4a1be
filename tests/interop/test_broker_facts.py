"""Claims about brokers in docs/errata.md, checked with the broker's own classes."""

from __future__ import annotations

import gzip
import subprocess

import magicbyte
import pytest
from kafka_broker import java
from kafka_versions import JUDGES
from magicbyte import RecordsBuilder
from wire import V2, record

pytestmark = pytest.mark.interop


@pytest.fixture(scope="module", params=JUDGES)
def facts(request: pytest.FixtureRequest) -> dict[str, str]:
    builder = RecordsBuilder(1)
    builder.append_many([(0, 1000, b"a", b"v"), (1, 1000, b"b", b"v")])
    old = builder.build()
    damaged = V2(b"not gzip", base_offset=0, attributes=1, max_timestamp=1000).bytes()
    (batch,) = magicbyte.read_batches(damaged)
    assert batch.is_valid
    command = java("Facts", old.hex(), damaged.hex(), version=request.param)
    lines = subprocess.run(command, text=True, check=True, stdout=subprocess.PIPE).stdout.splitlines()
    return dict(line.split(" ", 1) for line in lines)


def test_offset_in_requests(facts: dict[str, str]) -> None:
    assert facts["requestHoldsTheBatches"] == "true"


def test_conversion(facts: dict[str, str]) -> None:
    assert facts["downConverts"] == "false"
    assert facts["cleanedMagics"] == "[2]"


def test_size_limit(facts: dict[str, str]) -> None:
    limit = int(facts["maxMessageBytes"])
    assert limit == 1_048_588
    # A batch that a broker accepts can contain a record above the limit.
    large = record(value=b"\0" * (limit + 1))
    stored = V2(gzip.compress(large), attributes=1).bytes()
    assert len(large) > limit > len(stored)
    (batch,) = magicbyte.read_batches(stored)
    assert [len(one.value_bytes or b"") for one in batch] == [limit + 1]


def test_compression_types(facts: dict[str, str]) -> None:
    names = facts["compressionTypes"].split(",")
    assert "uncompressed" in names
    assert "none" not in names


def test_control_types(facts: dict[str, str]) -> None:
    numbered = [
        "ABORT",
        "COMMIT",
        "LEADER_CHANGE",
        "SNAPSHOT_HEADER",
        "SNAPSHOT_FOOTER",
        "KRAFT_VERSION",
        "KRAFT_VOTERS",
    ]
    assert facts["controlTypes"].strip("[]").split(", ") == [*numbered, "UNKNOWN"]


def test_duplicates(facts: dict[str, str]) -> None:
    assert facts["batchesKeptOfAProducer"] == "5"


def test_request_headers(facts: dict[str, str]) -> None:
    # From version 2 of the request's header and 1 of the response's, tagged fields follow.
    assert facts["produce9RequestHeader"] == "2"
    assert facts["produce9ResponseHeader"] == "1"
    assert facts["apiVersions3ResponseHeader"] == "0"


def test_brokers_decompress(facts: dict[str, str]) -> None:
    assert facts["appendOfDamagedGzip"].endswith("Not in GZIP format")
