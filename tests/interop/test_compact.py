"""Compaction against Kafka's own cleaner: the same logs, clock and configuration, in several rounds."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import magicbyte
import pytest
from cleaner_logs import MINUTE, START, LogMaker
from kafka_broker import Broker, java
from kafka_versions import JUDGES
from magicbyte import Compression, RecordsBuilder, _core
from magicbyte.conversion import set_partition_leader_epoch
from magicbyte.jobs.compact import compact_partitions
from magicbyte.jobs.run.engines import LocalEngine
from magicbyte.log_dir import format_offset_checkpoint
from magicbyte.options.compact import DAY_MS, CompactOptions

pytestmark = pytest.mark.interop

INDEX_BYTES = 65536
KEPT = (".log", "leader-epoch-checkpoint")
EXACT = {0, 2}
"""None and snappy. With the other codecs, Kafka and we write different bytes for the same records."""


class Cleaning:
    """Kafka's cleaner as a process."""

    def __init__(self, version: str) -> None:
        self.limits_records = version >= "4.4"
        self._process = subprocess.Popen(
            java("Cleaning", version=version), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def clean(self, directory: Path, now: int, dirty: int | None, configs: dict[str, int]) -> list[int] | str:
        """First dirty and first uncleanable offset, the offset reached, rounds and times; or an exception."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        words = [directory, now, 4 << 20, DAY_MS, "-" if dirty is None else dirty]
        words += [f"{name}={value}" for name, value in configs.items()]
        self._process.stdin.write("\t".join(map(str, words)) + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline().strip()
        assert answer, "Kafka's cleaner ended"
        return answer if answer.startswith("!") else [int(word) for word in answer.split()]

    def close(self) -> None:
        self._process.kill()
        self._process.communicate()


@pytest.fixture(scope="module", params=JUDGES)
def kafkas(request: pytest.FixtureRequest) -> Iterator[Cleaning]:
    cleaning = Cleaning(request.param)
    yield cleaning
    cleaning.close()


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Path]:
    """A directory in memory, if possible, where thousands of small files are quick to write."""
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else tmp_path) as path:
        yield Path(path)


def batch_facts(batch: Any, epoch: int) -> object:
    """The bytes, or for codecs with varying output the header and the records, with this leader epoch."""
    data = batch.to_bytes() if batch.magic < 2 else set_partition_leader_epoch(batch.to_bytes(), epoch)
    if batch.compression in EXACT or batch.record_count == 0:
        return data
    records = [
        (r.offset, r.timestamp, r.key_bytes, r.value_bytes, r.headers_raw, r.attributes) for r in batch
    ]
    # Offset, leader epoch and magic; then everything from the attributes to the count.
    return data[:8], data[12:17], data[21:61], records


def segments(directory: Path) -> dict[str, list[object]]:
    """The batches of each segment.

    What Kafka's cleaner makes of magic 0 and 1 has no leader epoch. Ours has that of the batch before, or 0.
    """
    found: dict[str, list[object]] = {}
    for log in sorted(directory.glob("*.log")):
        epoch, batches = 0, found.setdefault(log.name, [])
        for batch in magicbyte.read_batches(log.read_bytes()):
            if batch.magic == 2 and batch.partition_leader_epoch >= 0:
                epoch = batch.partition_leader_epoch
            batches.append(batch_facts(batch, epoch))
    return found


def positions(directory: Path) -> dict[str, list[int]]:
    """The positions of the batches of each segment."""
    return {
        log.name: [batch.position for batch in magicbyte.read_batches(log.read_bytes())]
        for log in directory.glob("*.log")
    }


def sidecars(directory: Path) -> dict[str, bytes]:
    """All other files, except those that a broker leaves of replaced segments, and the topic id."""
    others = (".log", ".deleted", "partition.metadata")
    return {file.name: file.read_bytes() for file in directory.iterdir() if not file.name.endswith(others)}


def same_sidecars(ours: Path, theirs: Path) -> int:
    """Asserts that the sidecars are equal; returns the number of transaction indexes among them."""
    found, expected = sidecars(ours), sidecars(theirs)
    if positions(ours) != positions(theirs):
        # If compressed sizes differ, the indexes have other positions.
        found, expected = (
            {name: data for name, data in files.items() if not name.endswith("index")}
            | {name: data for name, data in files.items() if name.endswith(".txnindex")}
            for files in (found, expected)
        )
    assert found == expected
    return sum(bool(data) for name, data in found.items() if name.endswith(".txnindex"))


def sizes(directory: Path) -> list[int]:
    return [log.stat().st_size for log in sorted(directory.glob("*.log"))]


def grow(directory: Path, made: list[tuple[int, bytes, int]]) -> None:
    """Adds segments (base offset, bytes, modification time), and rebuilds all sidecars."""
    for file in directory.iterdir():
        if not file.name.endswith(KEPT):
            file.unlink()
    for base, data, modified in made:
        path = directory / f"{base:020}.log"
        path.write_bytes(data)
        os.utime(path, (modified / 1000, modified / 1000))
    _core.rebuild_sidecars(directory, index_interval_bytes=256)


def stages(seed: int) -> tuple[list[list[tuple[int, bytes, int]]], random.Random]:
    """Three stages of segments with a broker's names; transactions stay open across the first two."""
    rng = random.Random(seed)
    maker = LogMaker(rng, legacy=rng.random() < 0.4)
    found = []
    for stage in range(3):
        made = []
        for _ in range(rng.randrange(1, 6)):
            base = maker.offset
            (data,) = maker.stage(1, finish=False)
            made.append((base, data, maker.time))
        if stage == 2 or rng.random() < 0.5:
            base = maker.offset
            (data,) = maker.stage(1, finish=True)
            made.append((base, data, maker.time))
        # An empty segment that is not the last one has the base offset of the next.
        bases = [base for base, _, _ in made]
        made = [one for one, next_base in zip(made, [*bases[1:], -1], strict=True) if one[0] != next_base]
        found.append([one for one in made if one[1]])
        maker.time += rng.choice([MINUTE, DAY_MS // 2, DAY_MS])
    return found, rng


@pytest.mark.parametrize("block", range(3))
def test_rounds_of_compaction_match_kafkas_cleaner(block: int, kafkas: Cleaning, place: Path) -> None:
    changed = cleaned = refused = aborting = 0
    for seed in range(block * 100, block * 100 + 100):
        root = place / str(seed)
        ours, theirs = root / "ours-0" / "t-0", root / "theirs" / "t-0"
        ours.mkdir(parents=True)
        theirs.mkdir(parents=True)
        parts, rng = stages(seed)
        dirty: int | None = None
        our_dirty: int | None = None
        for number, made in enumerate(parts):
            grow(ours, made)
            grow(theirs, made)
            now = max([made[-1][2] if made else START, START]) + rng.choice(
                [1, MINUTE, DAY_MS // 2, 2 * DAY_MS]
            )
            segment_bytes = rng.choice([1 << 20, 3000, 1000])
            retention = rng.choice([0, 1, MINUTE, DAY_MS])
            lag = rng.choice([0, 0, 0, MINUTE, DAY_MS])
            before = segments(ours)
            same_sizes = sizes(ours) == sizes(theirs)
            configs = {
                "internal.segment.bytes": segment_bytes,
                "segment.index.bytes": INDEX_BYTES,
                "delete.retention.ms": retention,
                "min.compaction.lag.ms": lag,
                "index.interval.bytes": 256,
            }
            answer = kafkas.clean(theirs, now, dirty, configs)
            if isinstance(answer, str):
                # A keyless message of magic 0 or 1 at the end of the cleaned part stops Kafka's cleaner for
                # good.
                assert "Empty batches are only supported for magic v2" in answer, seed
                refused += 1
                break
            first, uncleanable, reached, *_ = answer
            options = CompactOptions(
                all_topics=True,
                now=now,
                delete_retention_ms=retention,
                min_compaction_lag_ms=lag,
                checkpoint=checkpoint_of(root, our_dirty),
                segment_bytes=segment_bytes,
                segment_index_bytes=INDEX_BYTES,
                index_interval_bytes=256,
            )
            out = root / f"ours-{number + 1}"
            report = compact_partitions([str(ours)], str(out), LocalEngine(1), options)
            assert report["balanced"], seed
            assert report["written"][0]["clean_until"] == uncleanable, (seed, number)
            if first < uncleanable:
                ours = out / "t-0"
                assert reached == uncleanable
                found, expected = segments(ours), segments(theirs)
                if not same_sizes:
                    # If compressed sizes differ, segments can be grouped differently.
                    found, expected = (
                        {"all": [*chain(*found.values())]},
                        {"all": [*chain(*expected.values())]},
                    )
                assert found == expected, (seed, number)
                if same_sizes:
                    aborting += same_sidecars(ours, theirs)
                changed += segments(ours) != before
                cleaned += 1
                dirty = our_dirty = uncleanable
            # Otherwise there is nothing new to clean, and a broker would not start.
        shutil.rmtree(root)
    assert refused < 5
    assert cleaned > 150
    assert changed > 100
    assert aborting > 50


def test_limited_records(kafkas: Cleaning, place: Path) -> None:
    """`max.decompressed.message.bytes` counts in compressed batches, and for Kafka 4.3 not at all."""
    for limit, codec, size in ((500, 1, 1000), (500, 1, 400), (500, 0, 1000), (2000, 1, 1000)):
        root = place / f"{limit}-{codec}-{size}"
        ours, theirs = root / "ours" / "t-0", root / "theirs" / "t-0"
        made = []
        for offset in range(0, 9, 3):
            builder = RecordsBuilder(2, Compression(codec))
            for number in range(3):
                builder.append(offset + number, START, b"key", b"v" * size)
            made.append((offset, builder.build(), START))
        for directory in (ours, theirs):
            directory.mkdir(parents=True)
            grow(directory, made)
        answer = kafkas.clean(theirs, START + DAY_MS, None, {"max.decompressed.message.bytes": limit})
        options = CompactOptions(all_topics=True, now=START + DAY_MS, max_decompressed_message_bytes=limit)
        try:
            compact_partitions([str(ours)], str(root / "out"), LocalEngine(1), options)
            refusal = None
        except magicbyte.Error as error:
            refusal = str(error)
        assert (refusal is not None) == (codec > 0 and size > limit)
        if refusal is not None:
            assert "max.decompressed.message.bytes" in refusal
        if kafkas.limits_records:
            assert isinstance(answer, str) == (refusal is not None), answer
        else:
            assert not isinstance(answer, str)


def last_values(lines: list[str]) -> dict[str, str]:
    """The last value of each key that a consumer got, without tombstones."""
    last = {line.split("\t")[3]: line.split("\t")[4] for line in lines}
    return {key: value for key, value in last.items() if value != "null"}


def test_a_broker_serves_the_compacted_log_and_its_producers_continue(broker: Broker, tmp_path: Path) -> None:
    broker.open({}, clean=True)
    topic = broker.topics[0]
    directory = broker.logs / f"{topic}-0"
    producing = subprocess.Popen(
        java("Producing", broker.bootstrap, topic), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        produce(producing, 40)
        before = last_values(broker.read(topic, "read_committed"))
        count = len(broker.read(topic))
        broker.stop()
        snapshot = producers_of(directory)
        report = compact_partitions(
            [str(directory)], str(tmp_path / "out"), LocalEngine(2), options_now(everything=True)
        )
        assert report["balanced"]
        assert report["counts"]["superseded"] > 60
        assert report["counts"]["aborted"] == 60
        out = tmp_path / "out" / directory.name
        assert producers_of(out) == snapshot
        for file in directory.iterdir():
            if file.name != "partition.metadata":
                file.unlink()
        shutil.copytree(out, directory, dirs_exist_ok=True)
        broker.start()
        assert last_values(broker.read(topic, "read_committed")) == before
        assert len(broker.read(topic)) < count
        produce(producing, 20)
        after = last_values(broker.read(topic, "read_committed"))
        assert after != before
        assert broker.complaints() == []
        broker.stop()
        ends = producers_of(directory)
        # The same producers: one continues with its sequence, the other with an epoch that each transaction
        # raises.
        (plain, *of_transactions), (continued, *later) = split(snapshot), split(ends)
        assert (continued[0], continued[1], continued[2]) == (plain[0], plain[1], plain[2] + 20)
        assert [pid for pid, *_ in later] == [pid for pid, *_ in of_transactions]
    finally:
        producing.kill()
        producing.communicate()


def produce(producing: subprocess.Popen[str], rounds: int) -> None:
    assert producing.stdin is not None
    assert producing.stdout is not None
    producing.stdin.write(f"{rounds}\n")
    producing.stdin.flush()
    answer = producing.stdout.readline().strip()
    assert answer == ".", answer


def checkpoint_of(directory: Path, dirty: int | None) -> Path | None:
    """A broker's `cleaner-offset-checkpoint` for the partition `t-0`, if it has one."""
    if dirty is None:
        return None
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / "cleaner-offset-checkpoint"
    path.write_text(format_offset_checkpoint({("t", 0): dirty}))
    return path


def options_now(*, everything: bool) -> CompactOptions:
    now = round(time.time() * 1000)
    return CompactOptions(now=now, all=everything, all_topics=True, index_interval_bytes=256)


def producers_of(directory: Path) -> list[tuple[int, int, int]]:
    """Id, epoch and last sequence of each producer in the last snapshot."""
    entries = _core.producer_snapshot(max(directory.glob("*.snapshot")).read_bytes())
    return sorted((of.producer_id, of.producer_epoch, of.last_sequence) for of in entries)


def split(producers: list[tuple[int, int, int]]) -> list[tuple[int, int, int]]:
    """The idempotent producer, whose epoch stays 0, comes first."""
    return sorted(producers, key=lambda one: one[1] > 0)


REAL = [
    "mixed_012",
    "v0_compacted_codecs",
    "v1_compacted_codecs",
    "v1_logappend",
    "v2_by_2_8",
    "v2_compacted",
    "v2_compacted_txn",
    "v2_epochs",
    "v2_headers",
    "v2_idempotent",
    "v2_logappend",
    "v2_mixed_codecs",
    "v2_nulls",
    "v2_seq_wrap",
    "v2_tombstones",
    "v2_txn",
]


def test_logs_of_real_brokers(kafkas: Cleaning, kafka: Path, place: Path) -> None:
    """Two rounds, the second after all tombstones have expired; an added batch is the active segment."""
    changed = 0
    for name in REAL:
        ours, theirs = place / name / "ours" / "t-0", place / name / "theirs" / "t-0"
        parts = []
        for log in sorted((kafka / name).glob("*.log")):
            parts.append((int(log.stem), log.read_bytes(), START))
        (*_, last) = (batch for _, data, _ in parts for batch in magicbyte.read_batches(data))
        dirty = None
        for number in range(2):
            end = last.last_offset + 1 + number
            # Without an epoch, it would get that of the batch before it.
            epoch = last.partition_leader_epoch if isinstance(last, magicbyte.RecordBatch) else 0
            builder = magicbyte.RecordsBuilder(2, partition_leader_epoch=max(0, epoch))
            builder.append(end, START, b"active", b"")
            active = builder.build()
            for directory in (ours, theirs):
                directory.mkdir(parents=True, exist_ok=True)
                grow(directory, [*parts, (end, active, START)])
            parts = []
            now = START + (2000 + number) * DAY_MS
            before = segments(ours)
            answer = kafkas.clean(theirs, now, dirty, {"segment.index.bytes": INDEX_BYTES})
            options = CompactOptions(
                all_topics=True,
                now=now,
                segment_index_bytes=INDEX_BYTES,
                checkpoint=checkpoint_of(place, dirty),
            )
            out = place / name / f"ours-{number}"
            report = compact_partitions([str(ours)], str(out), LocalEngine(1), options)
            assert report["balanced"]
            assert not isinstance(answer, str), (name, answer)
            assert report["written"][0]["clean_until"] == answer[1], name
            if answer[0] == answer[1]:
                break
            ours, dirty = out / "t-0", answer[1]
            found, expected = segments(ours), segments(theirs)
            assert [*chain(*found.values())] == [*chain(*expected.values())], (name, number)
            changed += found != before
    assert changed > 10
