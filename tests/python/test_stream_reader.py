"""The stream reader without Spark's machinery: offsets, growth, limits, losses, damage."""

from __future__ import annotations

import json
import logging
import os
import shutil
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import KAFKA
from digest import expected

pytest.importorskip("pyspark", minversion="4.2")

from magicbyte import _core
from magicbyte.errors import CorruptRecordError, JobError
from magicbyte.spark.given import OptionError
from magicbyte.spark.limits import limit_offsets
from magicbyte.spark.options import parse_options, parse_stream_options
from magicbyte.spark.stream import MagicbyteStreamReader
from pyspark.sql.streaming.datasource import ReadAllAvailable

Offsets = dict[str, dict[str, int]]
FIRST = f"{0:020d}.log"
COLUMNS = {
    "records": ("topic", "offset"),
    "batches": ("topic", "baseOffset"),
    "problems": ("kind", "start", "firstLostOffset", "lastLostOffset"),
}


class Stream:
    """Does what Spark's driver does with a reader; `at` is what its checkpoint would hold."""

    def __init__(self, path: Path, at: Offsets | None = None, **options: Any) -> None:
        given = {"path": path, "startingOffsets": "earliest", **options}
        given = {name: str(value) for name, value in given.items()}
        columns = COLUMNS[given.get("table", "records")]
        self.reader = MagicbyteStreamReader(parse_stream_options(given), columns)
        # The first micro-batch is empty: it makes Spark record where the stream starts.
        self.at = self.next(self.reader.initialOffset()) if at is None else at

    def next(self, start: Offsets) -> Offsets:
        """Where the next micro-batch ends."""
        limit = self.reader.getDefaultReadLimit()
        return json.loads(json.dumps(self.reader.latestOffset(start, limit)))

    def rows(self, start: Offsets, end: Offsets) -> list[tuple[Any, ...]]:
        """The executors' rows of a micro-batch."""
        batches = [one for part in self.reader.partitions(start, end) for one in self.reader.read(part)]
        return [tuple(row.values()) for batch in batches for row in batch.to_pylist()]

    def trigger(self) -> list[tuple[Any, ...]]:
        """The rows of the next micro-batch."""
        end = self.next(self.at)
        rows = self.rows(self.at, end) if end != self.at else []
        self.at = end
        return rows

    def drain(self) -> list[tuple[Any, ...]]:
        """The rows of all micro-batches until there is nothing new."""
        rows: list[tuple[Any, ...]] = []
        while self.next(self.at) != self.at:
            rows += self.trigger()
        return rows


def next_offsets(at: Offsets) -> Offsets:
    """The offset of a stream without the lineages of its partitions."""
    return {topic: partitions for topic, partitions in at.items() if topic != "/lineage"}


def numbers(rows: list[tuple[Any, ...]]) -> list[int]:
    """The offsets of rows, in their order."""
    return [row[1] for row in rows]


def data_offsets(name: str, view: str = "expected.jsonl") -> list[int]:
    return [line["offset"] for line in expected(KAFKA / name, view) if not line.get("control")]


def batches(name: str, segment: str = FIRST) -> list[dict[str, Any]]:
    return [line for line in expected(KAFKA / name, "batches.jsonl") if line["segment"] == segment]


def appended(name: str, partition: Path, step: int) -> Iterator[None]:
    """Writes a partition as a broker does, a few bytes at a time, rolling from segment to segment."""
    partition.mkdir(exist_ok=True)
    for source in sorted((KAFKA / name).glob("*.log")):
        data = source.read_bytes()
        (partition / source.with_suffix(".index").name).touch()  # the cleaner leaves empty segments with one
        with (partition / source.name).open("wb", buffering=0) as file:
            yield
            for start in range(0, len(data), step):
                file.write(data[start : start + step])
                yield


def copied(name: str, partition: Path) -> Path:
    """A partition with only its segments, which may be changed."""
    partition.mkdir(parents=True)
    for source in (KAFKA / name).glob("*.log"):
        (partition / source.name).write_bytes(source.read_bytes())
    return partition


def damage(segment: Path, position: int) -> None:
    data = bytearray(segment.read_bytes())
    data[position] ^= 1
    segment.write_bytes(data)


@pytest.mark.parametrize("name", ["v2_none", "v0_gzip", "mixed_012", "v2_compacted"])
def test_a_growing_log(tmp_path: Path, name: str) -> None:
    writer = appended(name, tmp_path / "t-0", 1499)
    next(writer)
    stream, seen = Stream(tmp_path, mode="FAILFAST"), []
    for _ in writer:
        seen += stream.trigger()
    assert numbers(seen) == data_offsets(name)


def test_a_batch_is_read_as_soon_as_it_is_whole(tmp_path: Path) -> None:
    first, second = batches("v2_none")[:2]
    writer = appended("v2_none", tmp_path / "t-0", 1)
    next(writer)
    stream = Stream(tmp_path, mode="FAILFAST")
    for written in range(1, second["position"] + second["size"]):
        next(writer)
        assert stream.trigger() == ([("t", 0)] if written == first["size"] else [])
    next(writer)
    assert numbers(stream.trigger()) == [1, 2, 3]


def test_a_preallocated_file(tmp_path: Path) -> None:
    segment = tmp_path / "t-0" / FIRST
    segment.parent.mkdir()
    data = (KAFKA / "v2_none" / FIRST).read_bytes()
    segment.write_bytes(bytes(len(data)))
    stream, seen, time = Stream(tmp_path, mode="FAILFAST"), [], 1_700_000_000
    for end in range(0, len(data) + 1499, 1499):
        with segment.open("r+b") as file:
            file.write(data[:end])
        time += 1
        os.utime(segment, (time, time))
        seen += stream.trigger()
    assert numbers(seen) == [offset for offset in data_offsets("v2_none") if offset < 104]


@pytest.mark.parametrize("name", ["v2_txn", "v2_compacted_txn"])
def test_committed_records_only(tmp_path: Path, name: str) -> None:
    writer = appended(name, tmp_path / "t-0", 60)
    next(writer)
    stream, seen = Stream(tmp_path, isolationLevel="read_committed"), []
    for _ in writer:
        seen += stream.trigger()
    assert numbers(seen) == data_offsets(name, "committed.jsonl")


def test_an_open_transaction_holds_the_stream_back(tmp_path: Path) -> None:
    partition = copied("v2_txn", tmp_path / "t-0")
    for later in sorted(partition.iterdir())[1:]:
        later.unlink()
    markers = (KAFKA / "v2_txn" / f"{7:020d}.log").read_bytes()
    stream = Stream(tmp_path, isolationLevel="read_committed")
    assert stream.next(stream.at) == stream.at
    assert next_offsets(stream.at) == {"t": {"0": 0}}
    (partition / f"{7:020d}.log").write_bytes(markers[:78])  # the first of two transactions ends
    stream.trigger()
    assert next_offsets(stream.at) == {"t": {"0": 3}}
    (partition / f"{7:020d}.log").write_bytes(markers[:156])
    stream.trigger()
    assert next_offsets(stream.at) == {"t": {"0": 9}}


def test_a_restart_goes_on(tmp_path: Path) -> None:
    copied("v2_txn", tmp_path / "t-0")
    for end in (0, 1, 50, 94):
        at = {"t": {"0": end}}
        before = Stream(tmp_path, {"t": {"0": 0}}).rows({"t": {"0": 0}}, at) if end else []
        assert numbers(before + Stream(tmp_path, at).drain()) == data_offsets("v2_txn")


def test_a_restart_in_the_first_batch(tmp_path: Path) -> None:
    writer = appended("v2_none", tmp_path / "t-0", 5000)
    next(writer), next(writer)
    first = Stream(tmp_path, startingOffsets="latest")
    assert first.at["t"]["0"] > 0
    next(writer), next(writer)
    # If killed before its first commit, the query asks for its start again, and gets a later one.
    second = Stream(tmp_path, first.at, startingOffsets="latest")
    later = second.reader.initialOffset()
    assert later["t"]["0"] > first.at["t"]["0"]
    assert second.rows(later, first.at) == []
    assert numbers(second.trigger()) == list(range(first.at["t"]["0"], later["t"]["0"]))


@pytest.mark.parametrize("limit", [1, 7, 100])
def test_max_offsets(tmp_path: Path, limit: int) -> None:
    copied("v2_none", tmp_path / "t-0")
    copied("v2_txn", tmp_path / "u-3")
    stream, seen = Stream(tmp_path, maxOffsetsPerTrigger=limit), []
    while stream.next(stream.at) != stream.at:
        rows = stream.trigger()
        assert len(rows) <= limit + 1  # at least one offset of each partition
        seen += rows
    assert [offset for topic, offset in seen if topic == "t"] == data_offsets("v2_none")
    assert [offset for topic, offset in seen if topic == "u"] == data_offsets("v2_txn")


def test_limit_offsets_is_fair() -> None:
    begin, end = {("a", 0): 0, ("b", 0): 100, ("c", 0): 5}, {("a", 0): 900, ("b", 0): 199, ("c", 0): 6}
    assert limit_offsets(begin, end, 1000) == end
    assert limit_offsets(begin, end, 100) == {("a", 0): 90, ("b", 0): 109, ("c", 0): 6}


def test_max_bytes(tmp_path: Path) -> None:
    batch = (KAFKA / "v2_none" / FIRST).read_bytes()[143 : 143 + 459]
    (tmp_path / "t-0").mkdir()
    with (tmp_path / "t-0" / FIRST).open("wb") as file:
        for number in range(40_000):  # base offset and leader epoch are not under the checksum
            file.write(struct.pack(">q", 3 * number) + batch[8:])
    stream, sizes = Stream(tmp_path, maxBytesPerTrigger=5 << 20), []
    while stream.next(stream.at) != stream.at:
        sizes.append(len(stream.trigger()))
    assert sum(sizes) == 3 * 40_000
    assert len(sizes) == 3
    latest = Stream(tmp_path).reader.latestOffset({}, ReadAllAvailable())
    assert next_offsets(latest) == {"t": {"0": 120_000}}


def test_min_offsets(tmp_path: Path) -> None:
    writer = appended("v2_none", tmp_path / "t-0", 1000)
    next(writer)
    stream = Stream(tmp_path, minOffsetsPerTrigger=30)
    next(writer)
    assert 0 < len(stream.trigger()) < 30  # as in Spark's Kafka source, the first does not wait
    while not (rows := stream.trigger()):
        next(writer)
    assert len(rows) >= 30
    impatient = Stream(tmp_path, minOffsetsPerTrigger=1000, maxTriggerDelay="0s")
    assert impatient.trigger()
    for _ in range(10):
        next(writer)
    assert impatient.trigger()


def test_available_now(tmp_path: Path) -> None:
    copied("v2_txn", tmp_path / "t-0")
    stream = Stream(tmp_path, maxOffsetsPerTrigger=40, minOffsetsPerTrigger=40)
    stream.reader.prepareForTriggerAvailableNow()
    copied("v2_txn", tmp_path / "t-1")
    assert numbers(stream.drain()) == data_offsets("v2_txn")
    assert stream.at["t"]["0"] == 94
    assert stream.at["t"].get("1", 0) == 0


def test_partitions_that_come_later(tmp_path: Path) -> None:
    stream = Stream(tmp_path, startingOffsets="latest", subscribe="t")
    assert stream.at == {}
    copied("v2_txn", tmp_path / "t-1")
    copied("v2_txn", tmp_path / "other-0")
    assert numbers(stream.drain()) == data_offsets("v2_txn")
    (copied("v2_txn", tmp_path / "t-2") / FIRST).unlink()
    with pytest.raises(JobError, match=r"t-2: offsets 0 to 6 cannot be read: the log begins later"):
        stream.trigger()


@pytest.fixture
def retained(tmp_path: Path) -> Path:
    """A partition whose first segment was deleted before the stream reached it."""
    (copied("v2_none", tmp_path / "t-0") / FIRST).unlink()
    return tmp_path


def test_retention_was_faster(retained: Path, caplog: pytest.LogCaptureFixture) -> None:
    at = {"t": {"0": 17}}
    with pytest.raises(JobError, match=r"t-0: offsets 17 to 103 cannot be read.*failOnDataLoss=false"):
        Stream(retained, at).trigger()
    with pytest.raises(JobError, match=r"offsets 17 to 103"):
        Stream(retained).rows(at, {"t": {"0": 346}})
    with caplog.at_level(logging.WARNING):
        rows = Stream(retained, at, failOnDataLoss="false").drain()
    assert numbers(rows) == list(range(104, 346))
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    problems = Stream(retained, at, failOnDataLoss="false", table="problems").drain()
    assert problems == [("data_loss", None, 17, 103)]


def test_a_log_that_went_back(tmp_path: Path) -> None:
    copied("v2_none", tmp_path / "t-0")
    at = {"t": {"0": 400}}
    with pytest.raises(JobError, match=r"offsets 346 to 399 cannot be read: the log ends earlier"):
        Stream(tmp_path, at).trigger()
    stream = Stream(tmp_path, at, failOnDataLoss="false")
    assert stream.trigger() == []
    assert stream.at == at


def test_a_partition_that_went_away(tmp_path: Path) -> None:
    copied("v2_none", tmp_path / "t-0")
    copied("v2_txn", tmp_path / "t-1")
    stream = Stream(tmp_path)
    shutil.rmtree(tmp_path / "t-1")
    with pytest.raises(JobError, match="t-1: offsets from 0 on cannot be read: the partition is gone"):
        stream.trigger()
    stream = Stream(tmp_path, {"t": {"0": 300, "1": 50}}, failOnDataLoss="false")
    assert numbers(stream.trigger()) == list(range(300, 346))
    assert next_offsets(stream.at) == {"t": {"0": 346, "1": 50}}


def test_a_segment_missing_in_the_middle(tmp_path: Path) -> None:
    (copied("v2_none", tmp_path / "t-0") / f"{104:020d}.log").unlink()
    with pytest.raises(JobError, match=r"t-0: offsets 104 to 243 cannot be read"):
        Stream(tmp_path).trigger()
    kept = [*range(104), *range(244, 346)]
    assert numbers(Stream(tmp_path, failOnDataLoss="false").drain()) == kept
    lost = Stream(tmp_path, failOnDataLoss="false", table="problems", maxOffsetsPerTrigger=200).drain()
    assert lost == [("data_loss", None, 104, 199), ("data_loss", None, 200, 243)]


@pytest.mark.parametrize("limit", [None, 1, 2, 5, 50])
def test_damage_is_reported_exactly_once(tmp_path: Path, limit: int | None) -> None:
    segment = copied("v2_txn", tmp_path / "t-0") / f"{7:020d}.log"
    lines = batches("v2_txn", segment.name)
    bad = [lines[2], lines[6], lines[7], lines[-1]]
    for line in bad:
        damage(segment, line["position"] + 100)
    options = {} if limit is None else {"maxOffsetsPerTrigger": limit}
    lost = {offset for line in bad for offset in range(line["baseOffset"], line["lastOffset"] + 1)}
    assert numbers(Stream(tmp_path, **options).drain()) == [
        offset for offset in data_offsets("v2_txn") if offset not in lost
    ]
    problems = Stream(tmp_path, table="problems", **options).drain()
    places = [line["position"] for line in (lines[2], lines[6], lines[-1])]
    assert [(kind, start) for kind, start, _, _ in problems] == [("crc_mismatch", at) for at in places]
    assert lost == {n for _, _, first, last in problems for n in range(first, last + 1)}
    with pytest.raises(CorruptRecordError, match="CRC mismatch"):
        Stream(tmp_path, mode="FAILFAST", **options).drain()


def test_damage_at_the_end_waits_for_a_batch_after_it(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    data = bytearray((KAFKA / "v2_none" / FIRST).read_bytes())
    _, two, three = batches("v2_none")[:3]
    data[two["position"] + 100] ^= 1
    segment = tmp_path / "t-0" / FIRST
    segment.parent.mkdir()
    segment.write_bytes(data[: three["position"]])
    stream = Stream(tmp_path)
    assert numbers(stream.drain()) == [0]
    segment.write_bytes(data[: three["position"] + three["size"]])
    with caplog.at_level(logging.WARNING):
        rows = stream.drain()
    assert numbers(rows) == list(range(three["baseOffset"], three["lastOffset"] + 1))
    (record,) = caplog.records
    assert record.message.startswith(f"t-0, {FIRST}: 1 problems; the first: CRC mismatch")


def test_a_file_that_goes_between_planning_and_reading(tmp_path: Path) -> None:
    partition = copied("v2_none", tmp_path / "t-0")
    start, end = {"t": {"0": 0}}, {"t": {"0": 346}}
    for fail in ("true", "false"):
        stream = Stream(tmp_path, start, failOnDataLoss=fail)
        parts = stream.reader.partitions(start, end)
        (partition / f"{104:020d}.log").unlink(missing_ok=True)
        if fail == "true":
            with pytest.raises(JobError, match=r"t-0, .*104\.log: offsets from 104 on: .*deleted"):
                [list(stream.reader.read(part)) for part in parts]
            shutil.copy(KAFKA / "v2_none" / f"{104:020d}.log", partition)
        else:
            rows = [batch for part in parts for batch in stream.reader.read(part)]
            assert sum(batch.num_rows for batch in rows) == 346 - 140


def test_table_batches(tmp_path: Path) -> None:
    copied("v2_none", tmp_path / "t-0")
    stream = Stream(tmp_path, table="batches", maxOffsetsPerTrigger=30)
    lines = expected(KAFKA / "v2_none", "batches.jsonl")
    assert set(numbers(stream.drain())) == {line["baseOffset"] for line in lines}


def test_where_a_stream_starts(tmp_path: Path) -> None:
    copied("v2_none", tmp_path / "t-0")
    time = expected(KAFKA / "v2_none")[40]["timestamp"]

    def start(**options: Any) -> int:
        return Stream(tmp_path, **options).at["t"]["0"]

    assert start() == 0
    assert start(startingOffsets="latest") == 346
    assert start(startingOffsets='{"t":{"0":123}}') == 123
    assert start(startingOffsets='{"t":{"0":-1}}') == 346
    assert start(startingTimestamp=time) <= 40
    given = {"path": str(tmp_path)}
    reader = MagicbyteStreamReader(parse_stream_options(given), ("offset",))
    assert next_offsets(reader.initialOffset()) == {"t": {"0": 346}}
    with pytest.raises(ValueError, match="must name exactly the partitions"):
        start(startingOffsets='{"u":{"0":123}}')


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("endingOffsets", "latest", "endingOffsets is only for batch queries"),
        ("filterPushdown", "true", "filterPushdown is only for batch queries"),
        ("table", "segments", "cannot be streamed"),
        ("maxOffsetsPerTrigger", "0", "maxOffsetsPerTrigger: 0 is not at least 1"),
        ("maxTriggerDelay", "soon", "maxTriggerDelay: 'soon' is not a duration"),
        ("failOnDataLoss", "maybe", "failOnDataLoss: 'maybe' is not one of true, false"),
    ],
)
def test_refused_options(option: str, value: str, message: str) -> None:
    with pytest.raises(OptionError, match=message):
        parse_stream_options({"path": "/logs", option: value})


def test_least_and_most_offsets() -> None:
    """The least are no more than the most; a batch query ignores both."""
    given = {"path": "/logs", "minOffsetsPerTrigger": "11", "maxOffsetsPerTrigger": "10"}
    with pytest.raises(OptionError, match="minOffsetsPerTrigger is 11, above maxOffsetsPerTrigger, 10"):
        parse_stream_options(given)
    assert parse_stream_options({**given, "minOffsetsPerTrigger": "10"}).min_offsets == 10
    parse_options(given)


def test_only_changed_segments_are_surveyed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    partition = copied("v2_none", tmp_path / "t-0")
    for segment in partition.iterdir():
        os.utime(segment, (1_700_000_000, 1_700_000_000))
    surveyed: list[str] = []

    def survey(segment: str, survey_segment: Any = _core.survey_segment) -> str:
        surveyed.append(json.loads(segment)["file"])
        return survey_segment(segment)

    monkeypatch.setattr(_core, "survey_segment", survey)
    stream = Stream(tmp_path)
    assert len(surveyed) == 3
    stream.drain()
    assert len(surveyed) == 3
    last = partition / f"{244:020d}.log"
    os.utime(last, (1_700_000_001, 1_700_000_001))
    stream.drain()
    assert surveyed[3:] == [last.name]
