"""`spark.read.format("magicbyte")`, which Spark finds without registration."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from conftest import KAFKA, PARTITIONS
from digest import digest, expected, summary
from magicbyte import RecordsBuilder

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row, SparkSession

pytestmark = pytest.mark.spark

KAFKA_SCHEMA = """
    key binary, value binary, topic string, partition int, offset bigint, timestamp timestamp,
    timestampType int
"""


def read(spark: SparkSession, path: Path, **options: Any) -> DataFrame:
    """Reads with the given options."""
    return spark.read.format("magicbyte").options(**options).load(str(path))


def offsets(frame: DataFrame) -> list[int]:
    """The offsets of a frame, sorted."""
    return sorted(row.offset for row in frame.select("offset").collect())


@pytest.fixture(scope="module")
def everything(spark: SparkSession) -> dict[str, list[Row]]:
    """All records of all partitions by topic, from one read that many tasks share."""
    frame = read(spark, KAFKA, includeHeaders=True, includeBatchMetadata=True, minPartitions=8)
    assert frame.rdd.getNumPartitions() >= 6
    rows: dict[str, list[Row]] = defaultdict(list)
    for row in frame.collect():
        rows[row.topic].append(row)
    return rows


@pytest.mark.parametrize("name", PARTITIONS)
def test_digest(everything: dict[str, list[Row]], name: str) -> None:
    rows = sorted(everything[name], key=lambda row: row.offset)
    assert digest(row.asDict(recursive=True) for row in rows) == summary(KAFKA / name)["sha256"]


def test_schema_is_that_of_sparks_kafka_source(spark: SparkSession) -> None:
    from pyspark.sql.types import StructType

    frame = read(spark, KAFKA / "v2_none")
    assert frame.schema == StructType.fromDDL(KAFKA_SCHEMA)
    frame = read(spark, KAFKA / "v2_none", includeHeaders="true")
    headers = "headers array<struct<key:string,value:binary>>"
    assert frame.schema == StructType.fromDDL(f"{KAFKA_SCHEMA}, {headers}")
    assert frame.where("headers is not null").count() == 0


@pytest.mark.parametrize("name", ["v2_txn", "v2_compacted_txn", "v2_tombstones"])
def test_committed_view(spark: SparkSession, name: str) -> None:
    frame = read(spark, KAFKA / name, isolationLevel="read_committed")
    assert offsets(frame) == [line["offset"] for line in expected(KAFKA / name, "committed.jsonl")]


def test_offsets(spark: SparkSession) -> None:
    path = KAFKA / "v2_none"
    given = {"startingOffsets": '{"v2_none":{"0":100}}', "endingOffsets": '{"v2_none":{"0":200}}'}
    assert offsets(read(spark, path, **given)) == list(range(100, 200))
    given = {"startingOffsets": '{"v2_none":{"0":-2}}', "endingOffsets": '{"v2_none":{"0":-1}}'}
    assert offsets(read(spark, path, **given)) == list(range(346))
    with pytest.raises(Exception, match="must name exactly the partitions"):
        read(spark, KAFKA, subscribe="v2_none,v2_txn", **given).count()


def test_timestamps(spark: SparkSession) -> None:
    # Control records are excluded: a marker counts as a record here, as it does for a broker.
    path = KAFKA / "v2_none"
    lines = expected(path)
    time = lines[40]["timestamp"]
    first = next(line["offset"] for line in lines if line["timestamp"] >= time)
    before = [line["offset"] for line in lines if line["offset"] < first]
    after = [line["offset"] for line in lines if line["offset"] >= first]
    assert offsets(read(spark, path, startingTimestamp=time)) == after
    assert offsets(read(spark, path, endingTimestamp=time)) == before
    by_timestamp = f'{{"v2_none":{{"0":{time}}}}}'
    assert offsets(read(spark, path, startingOffsetsByTimestamp=by_timestamp)) == after
    assert offsets(read(spark, path, endingOffsetsByTimestamp=by_timestamp)) == before
    late = {"startingTimestamp": 1 << 50}
    with pytest.raises(Exception, match="has no record at or after"):
        read(spark, path, **late).count()
    assert offsets(read(spark, path, startingOffsetsByTimestampStrategy="latest", **late)) == []


def test_topics(spark: SparkSession) -> None:
    def topics(**options: Any) -> set[str]:
        return {row.topic for row in read(spark, KAFKA, **options).select("topic").distinct().collect()}

    assert topics(subscribe="v2_none,v0_gzip") == {"v2_none", "v0_gzip"}
    assert topics(subscribePattern="v0_.*zip") == {"v0_gzip"}
    assert topics(assign='{"v2_none":[0]}') == {"v2_none"}
    with pytest.raises(Exception, match="not found below path: nope"):
        topics(subscribe="nope")


def test_tables(spark: SparkSession) -> None:
    path = KAFKA / "v2_txn"
    batches = read(spark, path, table="batches").orderBy("baseOffset").collect()
    lines = expected(path, "batches.jsonl")
    assert [(row.baseOffset, row.position, row.crc) for row in batches] == [
        (line["baseOffset"], line["position"], line["crc"]) for line in lines
    ]
    segments = read(spark, path, table="segments").orderBy("baseOffset").where("state = 'read'").collect()
    assert [row.segment for row in segments] == sorted(file.name for file in path.glob("*.log"))
    assert [row.size for row in segments] == [(path / row.segment).stat().st_size for row in segments]
    assert sum(row.batches for row in segments) == len(lines)
    torn = read(spark, KAFKA / "v2_torn_tail", table="problems").where("start is not null").collect()
    assert all(row.segment == "00000000000000000070.log" for row in torn)


@pytest.mark.partitions("v2_none")
def test_modes(spark: SparkSession, source: Path) -> None:
    segment = source / "v2_none" / "00000000000000000000.log"
    data = bytearray(segment.read_bytes())
    data[len(data) // 2] ^= 1
    segment.write_bytes(data)
    assert 0 < read(spark, source).count() < 346
    problems = read(spark, source, table="problems").where("start is not null").collect()
    assert [row.segment for row in problems] == [segment.name]
    with pytest.raises(Exception, match=r"(?i)crc"):
        read(spark, source, mode="FAILFAST").count()


def test_projection(spark: SparkSession) -> None:
    path = str(KAFKA / "v2_none")

    def project(schema: str) -> DataFrame:
        return spark.read.format("magicbyte").schema(schema).load(path)

    frame = project("offset bigint, value binary, magic int")
    assert frame.columns == ["offset", "value", "magic"]
    assert frame.count() == 346
    frame = read(spark, KAFKA / "v2_none", columns="timestampMillis, offset")
    assert frame.columns == ["timestampMillis", "offset"]
    with pytest.raises(Exception, match="did you mean offset"):
        project("ofset bigint").count()
    with pytest.raises(Exception, match="column offset of table records is bigint"):
        project("offset int").count()


def test_unknown_option(spark: SparkSession) -> None:
    with pytest.raises(Exception, match="did you mean startingOffsets"):
        read(spark, KAFKA, startingOffset="earliest")


def test_several_paths(spark: SparkSession) -> None:
    one, two = str(KAFKA / "v2_none"), str(KAFKA / "v2_txn")
    assert spark.read.format("magicbyte").load(f"{one},{two}").count() == 346 + 78
    assert spark.read.format("magicbyte").option("path", str(KAFKA / "v2_none*")).load().count() == 346


def test_sql(spark: SparkSession) -> None:
    spark.sql(f"CREATE TEMPORARY VIEW logs USING magicbyte OPTIONS (path '{KAFKA / 'v2_none'}')")
    assert spark.sql("SELECT max(offset) FROM logs").collect()[0][0] == 345
    # Spark's catalog keeps a table's columns, but not its options.
    path = KAFKA / "v2_none"
    spark.sql(f"CREATE TABLE kept USING magicbyte OPTIONS (path '{path}', columns 'value,offset')")
    try:
        found = spark.sql(f"SELECT * FROM kept WITH ('path' = '{path}', 'startingTimestamp' = '0')")
        assert found.columns == ["value", "offset"]
        assert found.join(spark.table("logs"), ["offset", "value"]).count() == 346
        with pytest.raises(Exception, match="catalog does not keep the options of a table"):
            spark.table("kept").count()
    finally:
        spark.sql("DROP TABLE kept")


def test_headers_are_optional(spark: SparkSession) -> None:
    # Spark takes seconds instead of milliseconds to pass null lists back to Python,
    # so there is no such column by default; an expression can replace nulls with empty lists.
    from pyspark.sql.functions import array, coalesce

    path = KAFKA / "v2_tombstones"
    assert "headers" not in read(spark, path).columns
    asked = read(spark, path, includeHeaders=True, includeBatchMetadata=True)
    assert asked.where("headers is null").count() > 0
    frame = asked.withColumn("headers", coalesce("headers", array()))
    assert frame.schema["headers"].dataType == asked.schema["headers"].dataType
    rows = frame.mapInArrow(lambda batches: batches, frame.schema).orderBy("offset").collect()
    assert all(row.headers is not None for row in rows)
    assert digest(row.asDict(recursive=True) for row in rows) == summary(path)["sha256"]


def test_pushdown(spark: SparkSession) -> None:
    def load() -> DataFrame:
        return read(spark, KAFKA, filterPushdown="true", minPartitions=48)

    def filtered(condition: str) -> list[int]:
        return offsets(load().where(condition))

    conf = "spark.sql.python.filterPushdown.enabled"
    spark.conf.set(conf, "true")
    try:
        some = "topic = 'v2_none' and offset >= 100 and offset < 120"
        assert load().where(some).rdd.getNumPartitions() < load().rdd.getNumPartitions()
        assert filtered(some) == list(range(100, 120))
        assert filtered("topic in ('v2_none', 'v2_txn') and offset = 5") == [5, 5]
        assert filtered("topic = 'v2_none' and offset in (3, 7) and partition = 0") == [3, 7]
        assert filtered("topic = 'v2_txn' and not (offset > 3)") == [0, 1, 2, 3]
        recent = "timestamp >= timestamp'2023-11-14 22:14:20'"
        plain = read(spark, KAFKA, subscribe="v2_txn").where(recent)
        assert 0 < plain.count() < 78
        assert filtered(f"topic = 'v2_txn' and {recent}") == offsets(plain)
    finally:
        spark.conf.unset(conf)


def test_output_of_ingest_is_readable(spark: SparkSession, tmp_path: Path) -> None:
    from magicbyte.jobs.ingest import ingest
    from magicbyte.jobs.run.engines import SparkEngine
    from magicbyte.options.ingest import IngestOptions

    out = tmp_path / "out"
    options = IngestOptions(include_batch_metadata=True)
    report = ingest([str(KAFKA)], str(out), SparkEngine(spark), options)
    assert report["balanced"]
    records = spark.read.parquet(str(out / "records"))
    rows = sorted(records.where("topic = 'v2_timestamps'").collect(), key=lambda row: row.offset)
    sha256 = digest(row.asDict(recursive=True) for row in rows)
    assert sha256 == summary(KAFKA / "v2_timestamps")["sha256"]
    assert records.count() == report["total"]["rows"]
    without = records.where("timestamp is null")
    assert without.where("timestampMillis = -1").count() == records.where("timestampMillis = -1").count() > 0
    assert without.where("timestampMillis <> -1").count() == report["total"]["null_timestamps"] > 0
    assert spark.read.parquet(str(out / "batches")).count() == report["total"]["good_batches"]
    assert spark.read.parquet(str(out / "problems")).count() == report["tables"]["problems"]["rows"]


def test_keys_and_values_as_text(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "t-0").mkdir()
    builder = RecordsBuilder()
    for offset, value in enumerate((b'{"n": 41}', b"\xff", None, b"1")):
        builder.append(offset, 1000, b"k%d" % offset, value)
    (tmp_path / "t-0" / f"{0:020d}.log").write_bytes(builder.build())
    frame = read(spark, tmp_path, keyAs="string", valueAs="json")
    assert dict(frame.dtypes)["value"] == "string"
    rows = frame.orderBy("offset").collect()
    assert [row.key for row in rows] == ["k0", "k1", "k2", "k3"]
    assert [row.value for row in rows] == ['{"n": 41}', None, None, "1"]
    assert [row.invalidValue for row in rows] == [None, b"\xff", None, None]
    assert frame.selectExpr("sum(get_json_object(value, '$.n'))").first()[0] == 41
    failing = read(spark, tmp_path, valueAs="string", mode="FAILFAST", columns="value")
    with pytest.raises(Exception, match="offset 1: the value is not UTF-8"):
        failing.collect()
