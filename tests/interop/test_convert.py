"""Converted, recovered or recompressed partitions: a real broker serves the same records."""

from __future__ import annotations

from pathlib import Path

import magicbyte
import pyarrow as pa
import pytest
from kafka_broker import Broker
from magicbyte.jobs.recover import recover
from magicbyte.jobs.rewrite import rewrite
from magicbyte.jobs.run.engines import LocalEngine
from magicbyte.jobs.write_rows import RowsOptions, commit_rows, staging_in, write_rows
from magicbyte.options.rewrite import ConvertOptions, RecoverOptions, RecoveryMethod
from reading import printed

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
NEW = ["v2_compacted", "v2_compacted_txn", "v2_epochs", "v2_headers", "v2_mixed_codecs", "v2_txn"]
ROWS = ["v2_gzip", "v2_headers", "v2_none"]
OLD_AGAIN = ["v2_gzip", "v2_none", "v2_timestamps"]
DAMAGED = ["v1_none", "v2_mixed_codecs", "v2_none", "v2_txn"]

ONE_TO_ONE = ConvertOptions(magic=2, index_interval_bytes=256)
REBATCHED = ConvertOptions(
    magic=2,
    compression=4,
    level=7,
    rebatch=True,
    batch_bytes=8000,
    segment_bytes=16000,
    index_interval_bytes=256,
)
OTHER_CODEC = ConvertOptions(
    magic=None, compression=3, leader_epoch=0, segment_bytes=8000, index_interval_bytes=256
)
DOWN = ConvertOptions(magic=1, index_interval_bytes=256)


def lines_of(path: Path, isolation_level: str) -> list[str]:
    return printed(magicbyte.PartitionLog(path), isolation_level)


def without_headers(lines: list[str]) -> list[str]:
    return [line.rsplit("\t", 1)[0] for line in lines]


class Case:
    """A partition for the broker, and the partition whose records it must serve."""

    def __init__(self, written: Path, original: Path) -> None:
        self.written = written
        self.original = original


@pytest.fixture(scope="module")
def cases(kafka: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Case]:
    """The output of all these jobs."""
    root = tmp_path_factory.mktemp("converted")
    jobs = {"to 2": (LEGACY, ONE_TO_ONE), "rebatched": (LEGACY, REBATCHED), "lz4": (NEW, OTHER_CODEC)}
    found: dict[str, Case] = {}
    for title, (names, options) in jobs.items():
        for name in names:
            out = root / title.replace(" ", "-") / name
            assert rewrite([str(kafka / name)], str(out), LocalEngine(2), options)["balanced"]
            found[f"{name} {title}"] = Case(out / f"{name}-0", kafka / name)
    for name in OLD_AGAIN:
        out = root / "down" / name
        assert rewrite([str(kafka / name)], str(out), LocalEngine(2), DOWN)["balanced"]
        # The broker must serve the down-converted log; another test compares that with the original.
        found[f"{name} to 1"] = Case(out / f"{name}-0", out / f"{name}-0")
    for name in ROWS:
        out = root / "rows" / name
        staging = staging_in(str(out))
        data = b"".join(log.read_bytes() for log in sorted((kafka / name).glob("*.log")))
        rows = pa.table(magicbyte.read_batches(data)).select(
            ["offset", "timestamp", "key", "value", "headers"]
        )
        options = RowsOptions(topic=name, compression=4, batch_bytes=3000, segment_bytes=9000)
        commit_rows(str(out), staging, write_rows(rows.to_batches(), staging, options))
        found[f"{name} from rows"] = Case(out / f"{name}-0", kafka / name)
    methods: list[RecoveryMethod] = ["keep", "truncate"]
    for name in DAMAGED:
        source = damaged(kafka / name, root / "damaged" / name)
        for method in methods:
            out = root / method / name
            recovery = RecoverOptions(method=method, index_interval_bytes=256)
            report = recover([str(source)], str(out), LocalEngine(2), recovery)
            assert report["balanced"]
            assert report["total"]["quarantined_bytes"] > 0
            found[f"{name} {method}"] = Case(out / f"{name}-0", out / f"{name}-0")
    return found


def damaged(source: Path, copy: Path) -> Path:
    """A copy of the segments with a flipped bit in the middle of the first one."""
    copy.mkdir(parents=True)
    for log in source.glob("*.log"):
        (copy / log.name).write_bytes(log.read_bytes())
    victim = min(copy.glob("*.log"))
    data = bytearray(victim.read_bytes())
    batches = list(magicbyte.read_batches(bytes(data)))
    middle = batches[len(batches) // 2]
    data[middle.position + middle.size_in_bytes - 2] ^= 0x20
    victim.write_bytes(data)
    return copy


@pytest.mark.parametrize("clean", [False, True], ids=["after a crash", "after a clean stop"])
def test_the_broker_serves_the_same_records(broker: Broker, cases: dict[str, Case], clean: bool) -> None:
    topics = broker.open({name: case.written for name, case in cases.items()}, clean=clean)
    assert broker.complaints() == []
    for name, topic in topics.items():
        original = cases[name].original
        for isolation_level in ("read_uncommitted", "read_committed"):
            assert broker.read(topic, isolation_level) == lines_of(original, isolation_level), name
        # Kafka's search by time also finds markers.
        records = [record for batch in magicbyte.PartitionLog(original).batches() for record in batch]
        times = [(record.timestamp, record.offset) for record in records if record.timestamp >= 0]
        some = times[:: max(1, len(times) // 4)]
        asked = sorted({time + more for time, _ in some for more in (0, 1) if time < 2**63 - 1})
        for time, answer in zip(asked, broker.offsets_for_times(topic, asked), strict=True):
            first = next(((offset, at) for at, offset in times if at >= time), None)
            assert answer == first, f"{name} at {time}"
    assert broker.complaints() == []


def test_down_converted_records_are_the_originals(kafka: Path, cases: dict[str, Case]) -> None:
    for name in OLD_AGAIN:
        written = lines_of(cases[f"{name} to 1"].written, "read_uncommitted")
        assert without_headers(written) == without_headers(lines_of(kafka / name, "read_uncommitted"))


def test_recovery_keeps_intact_records(kafka: Path, cases: dict[str, Case]) -> None:
    for name in DAMAGED:
        original = lines_of(kafka / name, "read_uncommitted")
        kept = lines_of(cases[f"{name} keep"].written, "read_uncommitted")
        cut = lines_of(cases[f"{name} truncate"].written, "read_uncommitted")
        assert 0 < len(cut) < len(kept) < len(original)
        assert cut == original[: len(cut)]
        assert set(kept) < set(original)
