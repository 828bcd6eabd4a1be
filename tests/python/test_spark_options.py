"""The options of the data source, without Spark's machinery."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark")

from magicbyte.jobs.columns import KAFKA_COLUMNS
from magicbyte.spark.offsets import Edge
from magicbyte.spark.options import OptionError, Options, Topics, parse_options
from magicbyte.spark.paths import expand_paths
from magicbyte.spark.schema import columns_of, spark_schema_of


def parse(**given: Any) -> Options:
    return parse_options({"path": "/logs", **given})


def test_defaults() -> None:
    options = parse()
    assert options.table == "records"
    assert options.shape.columns == (
        "key",
        "value",
        "topic",
        "partition",
        "offset",
        "timestamp",
        "timestampType",
    )
    assert (options.starting, options.ending) == (Edge("startingOffsets"), Edge("endingOffsets"))
    assert options.isolation_level == "read_uncommitted"
    assert options.mode == "PERMISSIVE"
    assert options.topics.take("any", 7)


def test_names_are_case_insensitive() -> None:
    options = parse_options({"PATH": "/logs", "INCLUDEHEADERS": "TRUE", "Mode": "failfast"})
    assert options.shape.columns is not None
    assert options.shape.columns[-1] == "headers"
    assert options.mode == "FAILFAST"


def test_options_of_a_kafka_job_do_no_harm() -> None:
    options = parse(**{"kafka.bootstrap.servers": "b:9092", "failOnDataLoss": "false", "groupIdPrefix": "x"})
    assert options.isolation_level == "read_uncommitted"
    assert parse(**{"kafka.isolation.level": "read_committed"}).isolation_level == "read_committed"


def test_text() -> None:
    shape = parse(keyAs="STRING", valueAs="json", includeHeaders="true").shape
    assert (shape.key_as, shape.value_as) == ("string", "json")
    assert shape.columns is not None
    assert shape.columns[-3:] == ("headers", "invalidKey", "invalidValue")
    types = {field.name: field.dataType.simpleString() for field in spark_schema_of(shape)}
    assert (types["key"], types["value"]) == ("string", "string")
    assert (types["invalidKey"], types["invalidValue"]) == ("binary", "binary")
    assert parse(valueAs="string").shape.columns == (*KAFKA_COLUMNS, "invalidValue")
    assert parse(valueAs="string", table="batches").shape.columns is None


def test_text_that_would_become_null_without_a_trace() -> None:
    chosen = {"keyAs": "string", "columns": "offset,key"}
    schema = spark_schema_of(parse(**chosen).shape)
    with pytest.raises(OptionError, match="select the column invalidKey too"):
        columns_of(parse(**chosen), schema)
    assert columns_of(parse(**chosen, mode="FAILFAST"), schema) == ("offset", "key")
    both = parse(keyAs="string", columns="invalidKey,offset,key")
    assert columns_of(both, spark_schema_of(both.shape)) == ("invalidKey", "offset", "key")
    with pytest.raises(OptionError, match="no column invalidValue"):
        spark_schema_of(parse(keyAs="string", columns="invalidValue").shape)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"startingOffset": "earliest"}, "did you mean startingOffsets"),
        ({"bananas": "3"}, "unknown option bananas. Known are: path,"),
        ({"table": "record"}, "table must be one of"),
        ({"mode": "DROPMALFORMED"}, "mode must be one of"),
        ({"isolationLevel": "committed"}, "isolationLevel must be"),
        ({"keyAs": "utf-8"}, "keyAs must be one of binary, string, json"),
        ({"includeHeaders": "yes"}, "includeHeaders must be"),
        ({"minPartitions": "0"}, "minPartitions must be"),
        ({"subscribe": "a", "assign": '{"a":[0]}'}, "only one of"),
        ({"subscribePattern": "("}, "not a regular expression"),
        ({"assign": "[1]"}, "assign must look like"),
        ({"startingOffsets": "latest"}, "cannot be latest"),
        ({"startingOffsets": '{"t":{"0":-1}}'}, "cannot be latest"),
        ({"endingOffsets": "earliest"}, "cannot be earliest"),
        ({"endingOffsets": '{"t":{"0":-2}}'}, "cannot be earliest"),
        ({"startingOffsets": "17"}, "must look like"),
        ({"startingTimestamp": "yesterday"}, "milliseconds"),
        ({"startingOffsetsByTimestampStrategy": "first"}, "error or latest"),
    ],
)
def test_wrong_options(given: dict[str, str], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        parse(**given)


def test_path_is_needed() -> None:
    with pytest.raises(OptionError, match="path is missing"):
        parse_options({})
    assert parse_options({"paths": '["/a","/b"]'}).paths == ("/a", "/b")


def test_precedence() -> None:
    offsets = {"startingOffsets": '{"t":{"0":5}}'}
    by_timestamp = {"startingOffsetsByTimestamp": '{"t":{"0":1000}}'}
    timestamp = {"startingTimestamp": "2000"}
    assert parse(**offsets).starting.offsets == {("t", 0): 5}
    assert parse(**offsets, **by_timestamp).starting.timestamps == {("t", 0): 1000}
    assert parse(**offsets, **by_timestamp, **timestamp).starting.timestamp == 2000


@pytest.mark.parametrize(
    ("given", "taken"),
    [
        ({"subscribe": "a, b"}, {("a", 0), ("a", 1), ("b", 0)}),
        ({"subscribePattern": "a|bc?"}, {("a", 0), ("a", 1), ("b", 0), ("bc", 0)}),
        ({"assign": '{"a":[1],"bc":[0]}'}, {("a", 1), ("bc", 0)}),
    ],
)
def test_topics(given: dict[str, str], taken: set[tuple[str, int]]) -> None:
    topics: Topics = parse(**given).topics
    there = [("a", 0), ("a", 1), ("b", 0), ("bc", 0), ("abc", 0)]
    assert {place for place in there if topics.take(*place)} == taken


def test_paths(tmp_path: Path) -> None:
    for name in ("a-0", "a-1", "b,c-0"):
        (tmp_path / name).mkdir()
    a0, a1, bc = (str(tmp_path / name) for name in ("a-0", "a-1", "b,c-0"))
    assert expand_paths([f"{a0},{a1}"]) == [a0, a1]
    assert expand_paths([f"{tmp_path}/a-*"]) == [a0, a1]
    assert expand_paths([bc]) == [bc]
    assert expand_paths([f"file://{a0}", f"file:{a1}"]) == [a0, a1]
    with pytest.raises(FileNotFoundError, match="no such directory"):
        expand_paths([f"{tmp_path}/z-*"])
    assert expand_paths(["s3a://bucket/logs,s3://b/x"]) == ["s3a://bucket/logs", "s3://b/x"]
    assert expand_paths(["s3://bucket/a,b"]) == ["s3://bucket/a,b"]
