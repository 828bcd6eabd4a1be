"""`df.write.format("magicbyte")`: tables back into partitions."""

from __future__ import annotations

import os
from pathlib import Path

import magicbyte
import pytest
from conftest import KAFKA
from digest import digest, summary
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


@pytest.mark.parametrize("name", ["v2_headers", "v2_mixed_codecs", "v1_gzip", "v0_gzip"])
def test_a_table_goes_back_into_a_partition(spark: SparkSession, tmp_path: Path, name: str) -> None:
    read = (
        spark.read.format("magicbyte")
        .option("path", str(KAFKA / name))
        .option("includeHeaders", "true")
        .load()
    )
    rows = read.select("topic", "partition", "offset", "timestamp", "key", "value", "headers")
    ordered = rows.repartitionByRange(3, "offset").sortWithinPartitions("offset")
    out = tmp_path / "out"
    ordered.write.format("magicbyte").option("compression", "zstd").mode("append").save(str(out))
    assert sorted(os.listdir(out))[-1] == f"{name}-0"
    again = (
        spark.read.format("magicbyte")
        .option("path", str(out))
        .option("includeHeaders", "true")
        .option("includeBatchMetadata", "true")
        .load()
        .orderBy("offset")
    )
    original = summary(KAFKA / name)
    collected = [row.asDict(recursive=True) for row in again.collect()]
    assert len(collected) == original["dataRecords"]
    if name.startswith("v2"):
        assert digest(collected) == original["sha256"]
    if name == "v0_gzip":  # no timestamps
        assert {(row["timestamp"], row["timestampMillis"]) for row in collected} == {(None, -1)}
    assert magicbyte.PartitionLog(out / f"{name}-0").verify().balanced


def test_rows_without_offsets(spark: SparkSession, tmp_path: Path) -> None:
    frame = spark.range(100).selectExpr("cast(id as string) as value", "'t' as topic")
    out = tmp_path / "out"
    frame.coalesce(1).write.format("magicbyte").mode("append").save(str(out))
    records = list(magicbyte.PartitionLog(out / "t-0").records())
    assert [(r.offset, r.value_bytes) for r in records] == [(i, b"%d" % i) for i in range(100)]
    assert all(r.timestamp > 1_700_000_000_000 for r in records)


def test_what_cannot_be_written_leaves_nothing(spark: SparkSession, tmp_path: Path) -> None:
    out = tmp_path / "out"
    frame = spark.range(100).selectExpr("cast(id as string) as value", "'t' as topic")
    with pytest.raises(PySparkException, match="repartition by topic and partition"):
        frame.repartition(2).write.format("magicbyte").mode("append").save(str(out))
    assert os.listdir(out) == []
    with pytest.raises(PySparkException, match="is not part of a record"):
        frame.withColumn("extra", frame.value).write.format("magicbyte").mode("append").save(str(out))
    with pytest.raises(PySparkException, match="did you mean compression"):
        frame.write.format("magicbyte").option("compresion", "gzip").mode("append").save(str(out))
    bad = spark.createDataFrame([(5, "a"), (4, "b")], "offset bigint, value string").coalesce(1)
    with pytest.raises(PySparkException, match="row 1 of the partition"):
        bad.write.format("magicbyte").option("topic", "t").mode("append").save(str(out))
    assert os.listdir(out) == []


@pytest.mark.parametrize("zone", ["America/New_York", "+02:00"])
def test_times_without_a_zone(spark: SparkSession, tmp_path: Path, zone: str) -> None:
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", zone)
    try:
        frame = spark.range(1).selectExpr(
            "'t' as topic", "'v' as value", "timestamp_ntz'2024-03-10 02:30:00.123' as timestamp"
        )
        cast = frame.selectExpr("unix_millis(cast(timestamp as timestamp)) as millis").first()
        frame.coalesce(1).write.format("magicbyte").mode("append").save(str(tmp_path / "out"))
    finally:
        spark.conf.set("spark.sql.session.timeZone", before or "UTC")
    (record,) = magicbyte.PartitionLog(tmp_path / "out" / "t-0").records()
    assert cast is not None
    assert record.timestamp == cast.millis
