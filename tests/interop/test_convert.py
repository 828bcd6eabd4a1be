"""Partitions that were converted, recovered or compressed anew: a real broker serves the same records."""

from __future__ import annotations

import json
from pathlib import Path

import magicbyte
import pytest
from kafka_broker import Broker
from magicbyte.jobs.engines import LocalEngine
from magicbyte.jobs.recover import recover
from magicbyte.jobs.rewrite import RewriteOptions, rewrite

pytestmark = pytest.mark.interop

LEGACY = [
    "mixed_012",
    "v0_compacted_codecs",
    "v0_gzip",
    "v0_lz4",
    "v0_none",
    "v0_snappy",
    "v1_by_2_8",
    "v1_compacted_codecs",
    "v1_gzip",
    "v1_logappend",
    "v1_lz4",
    "v1_none",
    "v1_snappy",
]
NEW = ["v2_compacted", "v2_compacted_txn", "v2_headers", "v2_mixed_codecs", "v2_tombstones", "v2_txn"]
TYPES = ["CreateTime", "LogAppendTime"]


def lines_of(path: Path, isolation_level: str) -> list[str]:
    """A partition's records as the broker's client prints them; magic 0 has no time of either type."""

    def text(data: bytes | None) -> str:
        return "null" if data is None else data.hex()

    log = magicbyte.PartitionLog(path)
    return [
        f"{r.offset}\t{r.timestamp}\t{TYPES[max(r.timestamp_type, 0)]}\t{text(r.key_bytes)}\t{text(r.value_bytes)}\t"
        + "".join(f"{key.hex()}={text(value)};" for key, value in r.headers_raw)
        for r in log.records(isolation_level=isolation_level)  # type: ignore[arg-type]
    ]


def written(kafka: Path, out: Path, names: list[str], options: RewriteOptions) -> dict[str, Path]:
    for name in names:
        report = rewrite([str(kafka / name)], str(out / name), LocalEngine(2), options)
        assert report["balanced"]
    return {name: out / name / f"{name}-0" for name in names}


def serve(broker: Broker, originals: dict[str, Path], topics: dict[str, str]) -> None:
    """Consumers get exactly the original records, and `offsetsForTimes` the original answers."""
    for name, topic in topics.items():
        for isolation_level in ("read_uncommitted", "read_committed"):
            assert broker.read(topic, isolation_level) == lines_of(originals[name], isolation_level), name
        records = magicbyte.PartitionLog(originals[name]).records()
        times = [(record.timestamp, record.offset) for record in records if record.timestamp >= 0]
        some = times[:: max(1, len(times) // 6)]
        asked = sorted({time + more for time, _ in some for more in (0, 1) if time < 2**63 - 1})
        for time, answer in zip(asked, broker.offsets_for_times(topic, asked), strict=True):
            first = next(((offset, at) for at, offset in times if at >= time), None)
            assert answer == first, f"{name} at {time}"


@pytest.mark.parametrize("clean", [False, True], ids=["after a crash", "after a clean stop"])
@pytest.mark.parametrize(
    "options",
    [
        RewriteOptions(magic=2, index_interval_bytes=256),
        RewriteOptions(
            magic=2, compression=4, level=7, rebatch=8000, segment_bytes=16000, index_interval_bytes=256
        ),
    ],
    ids=["one to one", "zstd, packed, small segments"],
)
def test_old_logs(broker: Broker, kafka: Path, tmp_path: Path, options: RewriteOptions, clean: bool) -> None:
    originals = {name: kafka / name for name in LEGACY}
    topics = broker.open(written(kafka, tmp_path, LEGACY, options), clean=clean)
    serve(broker, originals, topics)
    assert broker.complaints() == []


@pytest.mark.parametrize("clean", [False, True], ids=["after a crash", "after a clean stop"])
def test_compressed_anew(broker: Broker, kafka: Path, tmp_path: Path, clean: bool) -> None:
    options = RewriteOptions(compression=3, segment_bytes=8000, index_interval_bytes=256)
    topics = broker.open(written(kafka, tmp_path, NEW, options), clean=clean)
    serve(broker, {name: kafka / name for name in NEW}, topics)
    assert broker.complaints() == []


@pytest.mark.parametrize("clean", [False, True], ids=["after a crash", "after a clean stop"])
@pytest.mark.parametrize("mode", ["keep", "truncate"])
def test_recovered(broker: Broker, kafka: Path, tmp_path: Path, mode: str, clean: bool) -> None:
    """A flipped bit in the middle of each: all that is good is served, or all before it."""
    damaged, repaired = {}, {}
    for name in ("v2_txn", "v2_none", "v1_none", "v2_mixed_codecs"):
        source = tmp_path / "in" / name
        source.mkdir(parents=True)
        for log in sorted((kafka / name).glob("*.log")):
            (source / log.name).write_bytes(log.read_bytes())
        victim = sorted(source.glob("*.log"))[0]
        data = bytearray(victim.read_bytes())
        batches = list(magicbyte.read_batches(bytes(data)))
        middle = batches[len(batches) // 2]
        data[middle.position + middle.size_in_bytes - 2] ^= 0x20
        victim.write_bytes(data)
        out = tmp_path / "out" / name
        options = RewriteOptions(index_interval_bytes=256)
        report = recover([str(source)], str(out), LocalEngine(2), options, mode)  # type: ignore[arg-type]
        assert report["balanced"]
        assert report["total"]["quarantined_bytes"] >= middle.size_in_bytes
        damaged[name], repaired[name] = source, out / f"{name}-0"
    topics = broker.open(repaired, clean=clean)
    # What the broker serves is what we read of the repaired log, which is what was good.
    serve(broker, repaired, topics)
    assert broker.complaints() == []
    for name, source in damaged.items():
        good = list(magicbyte.PartitionLog(source, skip_damage=True).records())
        read = broker.read(topics[name])
        assert len(read) == len(good) if mode == "keep" else 0 < len(read) < len(good)


def test_magic_1_is_served_as_stored(broker: Broker, kafka: Path, tmp_path: Path) -> None:
    """Down-converted: a 4.x broker still reads it."""
    names = ["v2_gzip", "v2_none", "v2_timestamps"]
    options = RewriteOptions(magic=1, index_interval_bytes=256)
    topics = broker.open(written(kafka, tmp_path, names, options), clean=False)
    serve(broker, {name: tmp_path / name / f"{name}-0" for name in names}, topics)
    for name, topic in topics.items():
        original = [line.rsplit("\t", 1)[0] for line in lines_of(kafka / name, "read_uncommitted")]
        assert [line.rsplit("\t", 1)[0] for line in broker.read(topic)] == original
    assert broker.complaints() == []


def test_the_report_is_beside_the_partitions(kafka: Path, tmp_path: Path) -> None:
    written(kafka, tmp_path, ["v1_gzip"], RewriteOptions(magic=2))
    report = json.loads((tmp_path / "v1_gzip" / "reconciliation.json").read_text())
    assert report["written"][0]["records"] == report["total"]["rows"] == 108
