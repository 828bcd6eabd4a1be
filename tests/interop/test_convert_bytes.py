"""Kafka's own classes read the same records from what magicbyte.conversion writes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from magicbyte import Compression, TimestampType
from magicbyte.conversion import Converter, convert_batches, set_max_timestamp, set_partition_leader_epoch
from oracle import Oracle
from reading import FACTS, accepted

pytestmark = pytest.mark.interop

LEGACY = ["mixed_012", "v0_gzip", "v0_none", "v1_gzip", "v1_logappend", "v1_lz4", "v1_none"]
NEW = ["v2_headers", "v2_mixed_codecs", "v2_none", "v2_txn"]
EPOCH = FACTS.index("partitionLeaderEpoch")


def data_of(kafka: Path, name: str) -> bytes:
    return b"".join(segment.read_bytes() for segment in sorted((kafka / name).glob("*.log")))


def conversions(kafka: Path) -> Iterator[tuple[str, bytes, bytes]]:
    """A description, and the bytes before and after."""
    for name in LEGACY:
        old = data_of(kafka, name)
        for codec in Compression:
            yield f"{name} up to {codec.name}", old, convert_batches(old, compression=codec).data
        yield f"{name} rebatched", old, Converter(Compression.ZSTD).rebatch(old, 16_000)
    for name in NEW:
        new = data_of(kafka, name)
        for codec in Compression:
            yield f"{name} in {codec.name}", new, Converter(codec).recompress(new)
        yield f"{name} split", new, Converter().split(new, 300)
        yield f"{name} epoch", new, set_partition_leader_epoch(new, 9)


def records(verdict: dict[str, Any]) -> list[Any]:
    return [record for batch in verdict["batches"] for record in batch["records"]]


def test_kafka_reads_the_same_records(kafka: Path, oracle: Oracle) -> None:
    done = list(conversions(kafka))
    verdicts = oracle.read(data for _, before, after in done for data in (before, after))
    for (what, _, after), before_read, after_read in zip(done, verdicts[::2], verdicts[1::2], strict=True):
        assert accepted(after_read), f"{what}: {after_read['error']}"
        assert after_read["framed"] == len(after), what
        expected, found = records(before_read), records(after_read)
        assert [plain(record) for record in found] == [plain(record) for record in expected], what
        if what.endswith("epoch"):
            assert {batch["header"][EPOCH] for batch in after_read["batches"]} == {9}


def plain(record: list[Any]) -> list[Any]:
    """A record whose timestamp type is at least CreateTime: magic 0 has none, magic 2 must have one."""
    return [*record[:2], max(record[2], TimestampType.CREATE_TIME), *record[3:]]


def test_append_time(kafka: Path, oracle: Oracle) -> None:
    """Stamped like a broker does it: Kafka gives every record that time, and accepts the CRCs."""
    stamped = set_max_timestamp(data_of(kafka, "v2_headers"), TimestampType.LOG_APPEND_TIME, 1234)
    (verdict,) = oracle.read([stamped])
    assert accepted(verdict)
    assert {tuple(record[1:3]) for record in records(verdict)} == {(1234, TimestampType.LOG_APPEND_TIME)}
