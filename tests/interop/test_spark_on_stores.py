"""Spark on logs in a real S3 server: the data source, streams and jobs, none of which shows a secret."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import magicbyte
import obstore
import pytest
from magicbyte.jobs.ingest import ingest
from magicbyte.jobs.run.engines import LocalEngine, SparkEngine
from magicbyte.options.ingest import IngestOptions
from magicbyte.storage.mounts import mount_storage
from s3_server import BUCKET, KEY, OPTIONS, SECRET, client

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.interop
pytest.importorskip("pyspark", minversion="4.2")

SEGMENT = f"{0:020d}.log"
WRONG = "wrongsecretkey"


@pytest.fixture(scope="module")
def options(s3: str) -> dict[str, str]:
    return {f"storage.{name}": value for name, value in {**OPTIONS, "endpoint": s3}.items()}


def rows(frame: DataFrame) -> list[Any]:
    return sorted(frame.drop("timestamp").collect(), key=lambda row: (row.topic, row.partition, row.offset))


def test_the_data_source(spark: SparkSession, options: dict[str, str], logs: str, kafka: Path) -> None:
    reader = spark.read.format("magicbyte").options(includeHeaders="true", includeBatchMetadata="true")
    local = rows(reader.load(str(kafka)))
    assert len(local) > 10_000
    stored = reader.options(**options).load(logs)
    assert rows(stored) == local
    plans = stored._jdf.queryExecution()
    texts = plans.toString() + plans.optimizedPlan().toJSON() + plans.executedPlan().toJSON()
    assert "magicbyte" in texts
    assert SECRET not in texts
    assert KEY not in texts


def test_wrong_credentials(spark: SparkSession, options: dict[str, str], logs: str) -> None:
    reader = spark.read.format("magicbyte").options(**{**options, "storage.secret_access_key": WRONG})
    with pytest.raises(Exception, match="SignatureDoesNotMatch") as caught:
        reader.load(f"{logs}/v2_txn").count()
    assert WRONG not in str(caught.value)
    reader = spark.read.format("magicbyte").options(**options)
    assert reader.load(f"{logs}/v2_txn").count() == 78


def test_ingest(spark: SparkSession, s3: str, logs: str, kafka: Path, tmp_path: Path) -> None:
    mount_storage(logs, {**OPTIONS, "endpoint": s3})
    stored = ingest([logs], str(tmp_path / "stored"), SparkEngine(spark), IngestOptions())
    local = ingest([str(kafka)], str(tmp_path / "local"), LocalEngine(2), IngestOptions())
    assert sums(stored) == sums(local)
    written = b"".join(path.read_bytes() for path in (tmp_path / "stored").rglob("*") if path.is_file())
    assert logs.encode() in written
    assert SECRET.encode() not in written
    assert KEY.encode() not in written


@pytest.mark.parametrize("kind", ["parquet", "delta"])
def test_ingest_into_a_store(spark: SparkSession, kind: str, s3: str, logs: str, kafka: Path) -> None:
    """The tasks upload their files."""
    mount_storage(logs, {**OPTIONS, "endpoint": s3})
    out = f"s3://{BUCKET}/spark-{kind}"
    report = magicbyte.ingest(kafka / "v2_txn", out, format=kind, engine=SparkEngine(spark))
    assert report["balanced"]
    compared = magicbyte.verify(kafka / "v2_txn", table=out)["table"]
    assert compared is not None
    assert compared["equal"]


def sums(report: Any) -> tuple[Any, list[Any]]:
    left_out = ("path", "segments", "ignored")
    partitions = [{k: one[k] for k in one if k not in left_out} for one in report["partitions"]]
    return report["total"], partitions


def test_a_stream_over_objects_that_are_replaced(
    spark: SparkSession, options: dict[str, str], s3: str, kafka: Path, tmp_path: Path
) -> None:
    """A backup of a growing segment is a new object each time."""
    data = (kafka / "v2_none" / SEGMENT).read_bytes()
    store = client(s3)
    counts = []
    for end in (len(data) // 2, len(data)):
        obstore.put(store, f"grows/v2_none-0/{SEGMENT}", data[:end])
        reader = spark.readStream.format("magicbyte").options(**options, startingOffsets="earliest")
        writer = reader.load(f"s3://{BUCKET}/grows").writeStream.format("parquet")
        writer = writer.option("checkpointLocation", str(tmp_path / "checkpoint"))
        writer.trigger(availableNow=True).start(str(tmp_path / "out")).awaitTermination()
        counts.append(spark.read.parquet(str(tmp_path / "out")).count())
    alone = spark.read.format("magicbyte").options(**options).load(f"s3://{BUCKET}/grows").count()
    assert 0 < counts[0] < counts[1] == alone
    written = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    assert SECRET.encode() not in written


def test_what_spark_has_logged(spark: SparkSession, spark_events: Path) -> None:
    """Of all queries and jobs above: plans, tasks, failures."""
    logged = b"".join(path.read_bytes() for path in spark_events.rglob("*") if path.is_file())
    events = {json.loads(line)["Event"] for line in logged.splitlines() if line.startswith(b"{")}
    assert "SparkListenerTaskEnd" in events
    assert any(event.endswith("SparkListenerSQLExecutionStart") for event in events)
    for secret in (SECRET, WRONG):
        assert secret.encode() not in logged
