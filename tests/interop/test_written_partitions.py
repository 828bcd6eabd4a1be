"""Partitions rewritten in small segments: a real broker serves them without complaint."""

from __future__ import annotations

import json
import shutil
import subprocess
import time
from pathlib import Path

import magicbyte
import pytest
from kafka_broker import SIDECARS, Broker, digest, dump_log
from magicbyte import _core

pytestmark = pytest.mark.interop

NAMES = [
    "mixed_012",
    "v0_compacted_codecs",
    "v0_none",
    "v1_compacted_codecs",
    "v1_logappend",
    "v1_none",
    "v2_compacted",
    "v2_compacted_txn",
    "v2_idempotent",
    "v2_logappend",
    "v2_mixed_codecs",
    "v2_none",
    "v2_seq_wrap",
    "v2_timestamps",
    "v2_tombstones",
    "v2_txn",
]
REBUILT = ["consumer_offsets_0", "v2_live", "v2_trimmed", "v2_txn", "v2_unclean"]


def json_lines(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def rewrite(source: Path, target: Path) -> None:
    """Rewrites a partition with segments little larger than the largest batch."""
    logs = sorted(source.glob("*.log"))
    batches = [batch for log in logs for batch in magicbyte.read_batches(log.read_bytes())]
    largest = max(batch.size_in_bytes for batch in batches)
    # A broker searches a segment without timestamps by its file's modification time, and finds nothing; so
    # segments of magic 0 only must not come before others.
    smallest = 16384 if source.name == "mixed_012" else 2000
    writer = _core.PartitionWriter(
        _core.begin_partition(target),
        int(logs[0].stem),
        segment_bytes=max(largest, smallest),
        index_interval_bytes=256,
    )
    for log in logs:
        writer.append(log.read_bytes())
    _core.finish_partition(target, writer.finish())


@pytest.fixture(scope="session")
def written(kafka: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    root = tmp_path_factory.mktemp("written")
    for name in NAMES:
        rewrite(kafka / name, root / f"{name}-0")
    return {name: root / f"{name}-0" for name in NAMES}


@pytest.fixture(scope="session")
def rebuilt(kafka: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Copies of a running and of a killed broker's partitions, with rebuilt sidecars."""
    root = tmp_path_factory.mktemp("rebuilt")
    for name in REBUILT:
        directory = root / f"{name}-0"
        directory.mkdir()
        for log in (kafka / name).glob("*.log"):
            (directory / log.name).write_bytes(log.read_bytes())
        _core.rebuild_sidecars(directory, index_interval_bytes=256)
    return {name: root / f"{name}-0" for name in REBUILT}


def serve(broker: Broker, kafka: Path, topics: dict[str, str]) -> None:
    """Consumers get the original records, and `offsetsForTimes` the original answers."""
    for name, topic in topics.items():
        summary = json.loads((kafka / name / "summary.json").read_text())
        lines = broker.read(topic)
        assert (len(lines), digest(lines)) == (summary["dataRecords"], summary["sha256"]), name
        committed = kafka / name / "committed.jsonl"
        offsets = [int(line.split("\t")[0]) for line in broker.read(topic, "read_committed")]
        expected = json_lines(kafka / name / "expected.jsonl")
        if committed.exists():
            assert offsets == [line["offset"] for line in json_lines(committed)], name
        else:
            assert offsets == [line["offset"] for line in expected if not line["control"]], name
        times = [(line["timestamp"], line["offset"]) for line in expected if line["timestamp"] != -1]
        some = times[:: max(1, len(times) // 8)]
        asked = sorted({at + more for at, _ in some for more in (0, 1) if 0 <= at < 2**63 - 1})
        found = broker.offsets_for_times(topic, asked)
        for asked_for, answer in zip(asked, found, strict=True):
            first = next(((offset, at) for at, offset in times if at >= asked_for), None)
            assert answer == first, f"{name} at {asked_for}"


def test_after_a_crash_the_broker_rebuilds_the_same_sidecars(
    broker: Broker, kafka: Path, written: dict[str, Path], tmp_path: Path
) -> None:
    a_day_ago = (int(time.time()) - 24 * 60 * 60) * 1000
    topics = broker.open(written, clean=False)
    serve(broker, kafka, topics)
    assert broker.complaints() == []
    broker.stop()
    for name, topic in topics.items():
        # Recovery drops producers that wrote nothing for a day.
        ours = shutil.copytree(written[name], tmp_path / name)
        _core.rebuild_sidecars(ours, index_interval_bytes=256, expired_until=a_day_ago)
        theirs = broker.sidecars(topic)
        for file, data in theirs.items():
            # A broker keeps an empty transaction index if there was one.
            if data or not file.endswith(".txnindex"):
                assert (ours / file).read_bytes() == data, f"{name}/{file}"
        sidecars = {file.name for file in ours.iterdir() if file.name.endswith(SIDECARS)}
        assert sidecars <= theirs.keys(), name


def test_after_a_clean_stop_the_broker_trusts_written_sidecars(
    broker: Broker, kafka: Path, written: dict[str, Path]
) -> None:
    trusts(broker, kafka, written)


def test_after_a_clean_stop_the_broker_trusts_rebuilt_sidecars(
    broker: Broker, kafka: Path, rebuilt: dict[str, Path]
) -> None:
    trusts(broker, kafka, rebuilt)


def trusts(broker: Broker, kafka: Path, written: dict[str, Path]) -> None:
    topics = broker.open(written, clean=True)
    serve(broker, kafka, topics)
    assert broker.complaints() == []
    broker.stop()
    for name, topic in topics.items():
        ours = {file.name: file.read_bytes() for file in written[name].iterdir()}
        for file, data in broker.sidecars(topic).items():
            assert ours[file] == data, f"{name}/{file}"


def test_kafkas_own_checks_of_the_sidecars(written: dict[str, Path]) -> None:
    indexes = [
        file
        for directory in written.values()
        for file in sorted(directory.iterdir())
        if file.suffix in (".index", ".timeindex")
    ]
    out = dump_log("--index-sanity-check", files=indexes)
    # An empty index has nothing to check.
    checked = [f"{file} passed sanity check" in out or f"{file} is empty" in out for file in indexes]
    assert sum(checked) == len(indexes) == out.count("Dumping"), out
    assert "mismatch" not in out.lower(), out
    verified = dump_log("--verify-index-only", files=indexes)
    assert "mismatch" not in verified.lower(), verified
    others = [
        file
        for directory in written.values()
        for file in directory.iterdir()
        if file.suffix in (".snapshot", ".txnindex")
    ]
    assert len(others) > 50
    dump_log(files=others)


def test_the_broker_reports_damage(broker: Broker, written: dict[str, Path], tmp_path: Path) -> None:
    """The tests above mean something: a broker reports a missing index, and a damaged batch after a crash."""
    shutil.copytree(written["v2_none"], tmp_path / "a")
    next((tmp_path / "a").glob("*.index")).unlink()
    broker.open({"v2_none": tmp_path / "a"}, clean=True)
    assert any("Could not find offset index" in line for line in broker.complaints())
    shutil.copytree(written["v2_none"], tmp_path / "b")
    log = max((tmp_path / "b").glob("*.log"))
    data = bytearray(log.read_bytes())
    data[-10] ^= 1
    log.write_bytes(data)
    broker.open({"v2_none": tmp_path / "b"}, clean=False)
    assert any("Found invalid messages" in line for line in broker.complaints()), broker.complaints()


def test_kafkas_own_checks_find_damage(written: dict[str, Path], tmp_path: Path) -> None:
    """The same check reports an index entry with a wrong position."""
    source = next(path for path in sorted(written["v2_none"].glob("*.index")) if path.stat().st_size)
    for file in (source, source.with_suffix(".log"), source.with_suffix(".timeindex")):
        (tmp_path / file.name).write_bytes(file.read_bytes())
    index = bytearray(source.read_bytes())
    index[7] ^= 1
    (tmp_path / source.name).write_bytes(index)
    try:
        out = dump_log("--verify-index-only", files=[tmp_path / source.name])
    except subprocess.CalledProcessError as error:
        out = error.stdout + error.stderr
    assert "Mismatches in" in out or "Exception" in out, out
