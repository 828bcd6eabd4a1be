"""Streams of logs whose records were replaced: failovers, and topics that were created again."""

from __future__ import annotations

import json
import logging
import shutil
from pathlib import Path
from typing import Any

import pytest
from magicbyte import RecordsBuilder

pytest.importorskip("pyspark", minversion="4.2")

from magicbyte.errors import JobError
from test_stream_reader import FIRST, Offsets, Stream, next_offsets, numbers

OLD, NEW = "e49HdDeaTmKdrrGZN_hIcg", "u1mzpqQaRLOROuWi4MCVBw"
BEFORE = ((0, 150, 0),)
AFTER = ((0, 110, 0), (110, 190, 1))
"""(first offset, end, leader epoch) of a real partition before and after a failover with acks=1."""


def write(partition: Path, *spans: tuple[int, int, int], topic_id: str | None = OLD) -> Path:
    """Replaces a partition's log with batches of 10 records; the leader's epoch is part of its header."""
    shutil.rmtree(partition, ignore_errors=True)
    partition.mkdir(parents=True)
    data = b""
    for first, end, epoch in spans:
        for base in range(first, end, 10):
            builder = RecordsBuilder(partition_leader_epoch=epoch)
            for offset in range(base, min(base + 10, end)):
                builder.append(offset, offset, b"k", b"%d" % epoch)
            data += builder.build()
    (partition / f"{spans[0][0] if spans else 0:020d}.log").write_bytes(data)
    if topic_id is not None:
        (partition / "partition.metadata").write_text(f"version: 0\ntopic_id: {topic_id}")
    return partition


def read_all(path: Path, **options: Any) -> Offsets:
    """The offset of a stream that has read everything."""
    stream = Stream(path, **options)
    stream.drain()
    return stream.at


def test_what_an_offset_keeps(tmp_path: Path) -> None:
    write(tmp_path / "t-0", (0, 50, 0), (50, 70, 3))
    write(tmp_path / "t-12", topic_id=None)
    stream = Stream(tmp_path, maxOffsetsPerTrigger=50)
    assert stream.at == {"t": {"0": 0, "12": 0}, "/lineage": {"t": {"0": {"topicId": OLD}}}}
    stream.trigger()
    known = {"topicId": OLD, "leaderEpoch": 0, "epochStart": 0}
    assert stream.at == {"t": {"0": 50, "12": 0}, "/lineage": {"t": {"0": known}}}
    stream.trigger()
    known = {"topicId": OLD, "leaderEpoch": 3, "epochStart": 50}
    assert stream.at == {"t": {"0": 70, "12": 0}, "/lineage": {"t": {"0": known}}}
    assert stream.next(stream.at) == stream.at
    # Retention leaves no record of the epoch, which is no new data.
    write(tmp_path / "t-0", topic_id=None)
    (tmp_path / "t-0" / FIRST).rename(tmp_path / "t-0" / f"{70:020d}.log")
    assert stream.next(stream.at) == stream.at
    assert Stream(tmp_path, stream.at).next(stream.at) == stream.at


def test_legacy_batches_have_no_epoch(tmp_path: Path) -> None:
    builder = RecordsBuilder(magic=1)
    builder.append(0, 0, b"k", b"v")
    (tmp_path / "t-0").mkdir()
    (tmp_path / "t-0" / FIRST).write_bytes(builder.build())
    assert read_all(tmp_path) == {"t": {"0": 1}}


FAILOVER = (
    r"t-0: offsets before 150 were read, the last ones of leader epoch 0, which began at offset 0, and the "
    r"log has epoch 0 up to offset 109, and then epoch 1: it diverges at offset 110 "
    r"\(failOnDataLoss=false continues at offset 110 of the log\)"
)


def test_a_failover(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    write(tmp_path / "t-0", *BEFORE)
    at = read_all(tmp_path)
    running, generous = Stream(tmp_path, at), Stream(tmp_path, at, failOnDataLoss="false")
    write(tmp_path / "t-0", *AFTER)
    for stream in (running, Stream(tmp_path, at)):
        with pytest.raises(JobError, match=FAILOVER):
            stream.trigger()
    with caplog.at_level(logging.WARNING):
        rows = generous.trigger()
    assert numbers(rows) == list(range(110, 190))
    assert [record.message.count("diverges at offset 110") for record in caplog.records] == [1]
    assert generous.drain() == []
    assert generous.at == read_all(tmp_path)
    problems = Stream(tmp_path, at, failOnDataLoss="false", table="problems").drain()
    assert problems == [("log_diverged", None, 110, 149)]


@pytest.mark.parametrize("end", [30, 100, 150])
@pytest.mark.parametrize("limit", [None, 7, 1000])
def test_a_topic_that_is_created_again(tmp_path: Path, end: int, limit: int | None) -> None:
    options: dict[str, Any] = {} if limit is None else {"maxOffsetsPerTrigger": limit}
    write(tmp_path / "t-0", (0, 100, 0))
    at = read_all(tmp_path)
    write(tmp_path / "t-0", (0, end, 0), topic_id=NEW)
    with pytest.raises(JobError, match=f"the topic {OLD}, .* the topic {NEW}: it diverges at offset 0"):
        Stream(tmp_path, at, **options).trigger()
    stream = Stream(tmp_path, at, failOnDataLoss="false", **options)
    assert numbers(stream.drain()) == list(range(end))
    assert stream.at == read_all(tmp_path)


def test_a_topic_that_is_created_again_and_has_lost_its_first_records(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    write(tmp_path / "t-0", (0, 100, 0))
    at = read_all(tmp_path)
    write(tmp_path / "t-0", (120, 150, 0), topic_id=NEW)
    with pytest.raises(JobError, match="it diverges at offset 0"):
        Stream(tmp_path, at).trigger()
    assert numbers(Stream(tmp_path, at, failOnDataLoss="false").drain()) == list(range(120, 150))
    assert "t-0: offsets 0 to 119 cannot be read: the log begins later" in caplog.text


def test_nothing_was_read_of_the_topic_before(tmp_path: Path) -> None:
    write(tmp_path / "t-0")
    at = read_all(tmp_path)
    write(tmp_path / "t-0", (0, 10, 0), topic_id=NEW)
    assert numbers(Stream(tmp_path, at).drain()) == list(range(10))


def test_a_checkpoint_without_lineages(tmp_path: Path) -> None:
    write(tmp_path / "t-0", *BEFORE)
    stream = Stream(tmp_path, {"t": {"0": 150}})
    assert stream.trigger() == []
    assert stream.at == read_all(tmp_path)
    stream = Stream(tmp_path, {"t": {"0": 120}})
    assert numbers(stream.drain()) == list(range(120, 150))
    write(tmp_path / "t-0", *AFTER)
    with pytest.raises(JobError, match="diverges at offset 110"):
        stream.trigger()


def test_a_micro_batch_that_was_planned_before_the_failover(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    write(tmp_path / "t-0", *BEFORE)
    stream = Stream(tmp_path, maxOffsetsPerTrigger=100)
    first = stream.next(stream.at)
    second = stream.next(first)
    assert next_offsets(second) == {"t": {"0": 150}}
    write(tmp_path / "t-0", *AFTER)
    # The query is started again, and its checkpoint has the offsets of a micro-batch without a commit.
    assert numbers(Stream(tmp_path, first).rows(stream.at, first)) == list(range(100))
    with pytest.raises(JobError, match=r"t-0: offsets before 150 were read.*diverges at offset 110"):
        Stream(tmp_path, second).rows(first, second)
    again = Stream(tmp_path, second, failOnDataLoss="false")
    with caplog.at_level(logging.WARNING):
        rows = again.rows(first, second)
    assert "diverges at offset 110" in caplog.text
    assert numbers(rows + again.drain()) == list(range(100, 190))
    rows = Stream(tmp_path, second, failOnDataLoss="false", table="problems").rows(first, second)
    assert rows == [("log_diverged", None, 110, 149)]


def test_a_micro_batch_that_was_planned_after_the_failover(tmp_path: Path) -> None:
    write(tmp_path / "t-0", *BEFORE)
    at = read_all(tmp_path)
    write(tmp_path / "t-0", *AFTER)
    end = Stream(tmp_path, at, failOnDataLoss="false", maxOffsetsPerTrigger=10).next(at)
    assert next_offsets(end) == {"t": {"0": 120}}
    for _ in range(2):
        again = Stream(tmp_path, end, failOnDataLoss="false")
        assert numbers(again.rows(at, end)) == list(range(110, 120))
    assert numbers(again.drain()) == list(range(120, 190))
    with pytest.raises(JobError, match="diverges at offset 110"):
        Stream(tmp_path, end).rows(at, end)


def test_several_failovers(tmp_path: Path) -> None:
    write(tmp_path / "t-0", *BEFORE)
    at = read_all(tmp_path)
    write(tmp_path / "t-0", (0, 110, 0), (110, 130, 1), (130, 200, 4))
    with pytest.raises(
        JobError, match=r"epoch 0 up to offset 109, and then epoch 1: it diverges at offset 110"
    ):
        Stream(tmp_path, at).trigger()
    # The lost leader's epoch is not in the log.
    write(tmp_path / "t-0", (0, 100, 0), (100, 150, 2))
    at = read_all(tmp_path)
    write(tmp_path / "t-0", (0, 120, 0), (120, 190, 3))
    with pytest.raises(
        JobError, match=r"epoch 0 up to offset 119, and then epoch 3: it diverges at offset 100"
    ):
        Stream(tmp_path, at).trigger()
    write(tmp_path / "t-0", (0, 120, 0))
    with pytest.raises(
        JobError, match=r"no epoch above 0 before its end at offset 120.*diverges at offset 100"
    ):
        Stream(tmp_path, at).trigger()


def test_a_leader_whose_records_were_all_compacted_away(tmp_path: Path) -> None:
    write(tmp_path / "t-0", (0, 100, 0), (100, 120, 2))
    at = read_all(tmp_path)
    write(tmp_path / "t-0", (0, 100, 0), (130, 150, 3))
    (tmp_path / "t-0" / "leader-epoch-checkpoint").write_text("0\n3\n0 0\n2 100\n3 130\n")
    assert numbers(Stream(tmp_path, at).drain()) == list(range(130, 150))


def test_only_the_partition_that_diverges_is_named(tmp_path: Path) -> None:
    for name in ("t-0", "t-1", "u-0"):
        write(tmp_path / name, *BEFORE)
    at = json.loads(json.dumps(read_all(tmp_path)))
    write(tmp_path / "t-0", (0, 160, 0))
    write(tmp_path / "t-1", *AFTER)
    with pytest.raises(JobError, match="magicbyte: t-1: "):
        Stream(tmp_path, at).trigger()
    rows = Stream(tmp_path, at, failOnDataLoss="false").drain()
    assert sorted(numbers(rows)) == sorted([*range(150, 160), *range(110, 190)])
