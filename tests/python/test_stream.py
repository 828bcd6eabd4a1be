"""`spark.readStream.format("magicbyte")` on a live session: triggers, checkpoints, problems."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from conftest import KAFKA
from digest import digest, summary
from test_stream_lineage import AFTER, BEFORE, write

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming import StreamingQuery

pytestmark = pytest.mark.spark
pytest.importorskip("pyspark", minversion="4.2")

Start = Callable[..., "StreamingQuery"]


@pytest.fixture
def start(spark: SparkSession, tmp_path: Path) -> Start:
    """Starts a stream from `logs` to `out` with its predecessor's checkpoint."""

    def start(**options: Any) -> StreamingQuery:
        trigger = options.pop("trigger", {"availableNow": True})
        reader = spark.readStream.format("magicbyte").option("startingOffsets", "earliest")
        reader = reader.options(includeHeaders="true", includeBatchMetadata="true", **options)
        writer = reader.load(str(tmp_path / "logs")).writeStream.format("parquet").trigger(**trigger)
        writer = writer.option("checkpointLocation", str(tmp_path / "checkpoint"))
        return writer.start(str(tmp_path / "out"))

    return start


def digest_of(spark: SparkSession, out: Path, topic: str) -> str:
    rows = spark.read.parquet(str(out)).where(f"topic = '{topic}'").collect()
    return digest(row.asDict(recursive=True) for row in sorted(rows, key=lambda row: row.offset))


@pytest.mark.partitions("v2_tombstones")
def test_runs_follow_one_another(spark: SparkSession, source: Path, tmp_path: Path, start: Start) -> None:
    query = start(maxOffsetsPerTrigger=50)
    query.awaitTermination()
    ends = [json.loads(one.sources[0].endOffset)["v2_tombstones"]["0"] for one in query.recentProgress]
    rows = [one.numInputRows for one in query.recentProgress]
    assert max(rows) <= 50 < sum(rows)
    assert ends == sorted(ends)
    shutil.copytree(KAFKA / "v2_txn", source / "v2_txn")
    start().awaitTermination()
    start().awaitTermination()
    for topic in ("v2_tombstones", "v2_txn"):
        assert digest_of(spark, tmp_path / "out", topic) == summary(KAFKA / topic)["sha256"]


@pytest.mark.partitions("v2_none")
def test_a_running_stream_follows_a_growing_log(
    spark: SparkSession, source: Path, tmp_path: Path, start: Start
) -> None:
    segments = sorted((source / "v2_none").glob("*.log"))
    contents = [segment.read_bytes() for segment in segments]
    for segment in segments:
        segment.unlink()
    segments[0].touch()
    query = start(trigger={"processingTime": "100 milliseconds"}, mode="FAILFAST")
    try:
        for segment, data in zip(segments, contents, strict=True):
            with segment.open("ab", buffering=0) as file:
                for at in range(0, len(data), 2500):
                    file.write(data[at : at + 2500])
                    time.sleep(0.2)
        query.processAllAvailable()
    finally:
        query.stop()
    assert sum(one.numInputRows for one in query.recentProgress) == 346
    assert digest_of(spark, tmp_path / "out", "v2_none") == summary(KAFKA / "v2_none")["sha256"]


@pytest.mark.partitions("v2_none")
def test_losses_and_damage(spark: SparkSession, source: Path, tmp_path: Path, start: Start) -> None:
    (source / "v2_none" / f"{0:020d}.log").unlink()
    segment = source / "v2_none" / f"{104:020d}.log"
    data = bytearray(segment.read_bytes())
    data[100] ^= 1
    segment.write_bytes(data)
    at = {"startingOffsets": '{"v2_none":{"0":17}}'}
    with pytest.raises(Exception, match=r"offsets 17 to 103 cannot be read"):
        start(**at).awaitTermination()
    with pytest.raises(Exception, match="CRC mismatch"):
        start(**at, failOnDataLoss=False, mode="FAILFAST").awaitTermination()
    start(**at, failOnDataLoss=False).awaitTermination()
    read = spark.read.parquet(str(tmp_path / "out"))
    assert sorted(row.offset for row in read.collect()) == list(range(164, 346))
    problems = spark.readStream.format("magicbyte").options(table="problems", failOnDataLoss="false", **at)
    sink = problems.load(str(source)).writeStream.format("memory").queryName("problems")
    sink.trigger(availableNow=True).start().awaitTermination()
    rows = spark.table("problems").orderBy("firstLostOffset").collect()
    assert [(row.kind, row.firstLostOffset, row.lastLostOffset) for row in rows] == [
        ("data_loss", 17, 103),
        ("crc_mismatch", 104, 163),
    ]


def test_a_failover_between_two_runs(spark: SparkSession, tmp_path: Path, start: Start) -> None:
    write(tmp_path / "logs" / "t-0", *BEFORE)
    start().awaitTermination()
    write(tmp_path / "logs" / "t-0", *AFTER)
    with pytest.raises(Exception, match=r"t-0: offsets before 150 were read.*it diverges at offset 110"):
        start().awaitTermination()
    query = start(failOnDataLoss=False)
    query.awaitTermination()
    assert sum(one.numInputRows for one in query.recentProgress) == 80
    rows = spark.read.parquet(str(tmp_path / "out")).where("value = X'31'").collect()
    assert sorted(row.offset for row in rows) == list(range(110, 190))
    start().awaitTermination()
