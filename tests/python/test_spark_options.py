"""The options of the data source, without Spark's machinery."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest

pytest.importorskip("pyspark")

from magicbyte.jobs.run.columns import KAFKA_COLUMNS
from magicbyte.spark.declared import WriteOptions
from magicbyte.spark.given import Given, OptionError
from magicbyte.spark.offsets import Edge
from magicbyte.spark.options import (
    BATCH_OPTIONS,
    QUERY_OPTIONS,
    STREAM_OPTIONS,
    TRIGGER_OPTIONS,
    Options,
    Topics,
    parse_options,
    parse_stream_options,
)
from magicbyte.spark.paths import absolute_paths, expand_paths
from magicbyte.spark.schema import columns_of, spark_schema_of
from magicbyte.spark.session_zone import instants, session_zone, with_session_zone
from magicbyte.spark.writer import WRITE_OPTIONS


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
        ({"table": "record"}, "table: 'record' is not one of records, batches"),
        ({"mode": "DROPMALFORMED"}, "mode: 'DROPMALFORMED' is not one of"),
        ({"isolationLevel": "committed"}, "isolationLevel: 'committed' is not"),
        ({"keyAs": "utf-8"}, "keyAs: 'utf-8' is not one of binary, string, json"),
        ({"includeHeaders": "yes"}, "includeHeaders: 'yes' is not one of true, false"),
        ({"minPartitions": "0"}, "minPartitions: 0 is not at least 1"),
        ({"minPartitions": "many"}, "minPartitions: 'many' is not a whole number"),
        ({"maxRecordsPerPartition": "-1"}, "maxRecordsPerPartition: -1 is not at least 1"),
        ({"maxDecompressedBytes": "0"}, "maxDecompressedBytes: 0 is less than 1 bytes"),
        ({"maxDecompressedBytes": "2g"}, "maxDecompressedBytes must be at most"),
        ({"subscribe": "a", "assign": '{"a":[0]}'}, "only one of"),
        ({"subscribe": ","}, "subscribe: ',' is an empty list"),
        ({"columns": " , "}, "columns: ' , ' is an empty list"),
        ({"subscribePattern": "("}, "not a regular expression"),
        ({"subscribePattern": " "}, "subscribePattern: the pattern is blank"),
        ({"subscribePattern": "o-[a-z&&[^q]]+"}, r"has \[ or && in a set of characters"),
        ({"subscribePattern": "[[a-c]x]"}, r"has \[ or && in a set of characters"),
        ({"subscribePattern": r"\[a|[a-z[0-9]]"}, r"has \[ or && in a set of characters"),
        ({"assign": "[1]"}, "assign: .* does not look like"),
        ({"assign": '{"a":"12"}'}, "assign: .* does not look like"),
        ({"assign": '{"a":[0.7,true]}'}, "assign: .* does not look like"),
        ({"assign": '{"a":[1e999]}'}, "assign: .* does not look like"),
        ({"assign": '{"a":[-1]}'}, "assign: .* does not look like"),
        ({"startingOffsets": "latest"}, "cannot be latest"),
        ({"startingOffsets": '{"t":{"0":-1}}'}, "cannot be latest"),
        ({"endingOffsets": "earliest"}, "cannot be earliest"),
        ({"endingOffsets": '{"t":{"0":-2}}'}, "cannot be earliest"),
        ({"startingOffsets": "17"}, "must look like"),
        ({"startingOffsets": '{"t":{"0":true}}'}, "must look like"),
        ({"startingOffsets": '{"t":{"0":"5"}}'}, "must look like"),
        ({"startingOffsets": '{"t":{"0":5.7}}'}, "must look like"),
        ({"endingOffsets": '{"t":{"0":1e999}}'}, "must look like"),
        ({"endingOffsets": '{"t":{"0":null}}'}, "must look like"),
        ({"startingOffsetsByTimestamp": '{"t":{"0":false}}'}, "must look like"),
        ({"startingOffsets": '{"t":{"0":-3}}'}, "startingOffsets: offsets are not below -2"),
        ({"endingOffsets": '{"t":{"0":4,"1":-3}}'}, "endingOffsets: offsets are not below -2"),
        ({"startingTimestamp": "yesterday"}, "milliseconds"),
        (
            {"startingOffsetsByTimestampStrategy": "first"},
            "startingOffsetsByTimestampStrategy: 'first' is not one of error, latest",
        ),
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
    assert parse(startingOffsets='{"t":{"0":5.0}}').starting.offsets == {("t", 0): 5}
    assert parse(**offsets, **by_timestamp).starting.timestamps == {("t", 0): 1000}
    assert parse(**offsets, **by_timestamp, **timestamp).starting.timestamp == 2000


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("20us", 2e-5),
        ("20", 0.02),
        ("500ms", 0.5),
        ("30s", 30),
        ("2m", 120),
        ("2min", 120),
        ("1h", 3600),
        ("1d", 86400),
    ],
)
def test_durations(text: str, seconds: float) -> None:
    """The units are those of Spark."""
    stream = parse_stream_options({"path": "/logs", "maxTriggerDelay": text})
    assert stream.max_delay_seconds == pytest.approx(seconds)


@pytest.mark.parametrize(
    ("given", "taken"),
    [
        ({"subscribe": "a, b"}, {("a", 0), ("a", 1), ("b", 0)}),
        ({"subscribe": ",b,, "}, {("b", 0)}),
        ({"subscribePattern": "^(a|bc?)$"}, {("a", 0), ("a", 1), ("b", 0), ("bc", 0)}),
        # As in Spark's source, a part of a name is enough.
        ({"subscribePattern": "bc"}, {("bc", 0), ("abc", 0)}),
        ({"subscribePattern": " ^a "}, {("a", 0), ("a", 1), ("abc", 0)}),
        ({"subscribePattern": r"^[\[&b]"}, {("b", 0), ("bc", 0)}),
        ({"subscribePattern": r"\[|^[]b]c&?"}, {("bc", 0)}),
        ({"assign": '{"a":[1],"bc":[0]}'}, {("a", 1), ("bc", 0)}),
    ],
)
def test_topics(given: dict[str, str], taken: set[tuple[str, int]]) -> None:
    topics: Topics = parse(**given).topics
    there = [("a", 0), ("a", 1), ("b", 0), ("bc", 0), ("abc", 0)]
    assert {place for place in there if topics.take(*place)} == taken


def test_paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def expanded(*paths: str) -> list[str]:
        return expand_paths(absolute_paths(paths))

    for name in ("a-0", "a-1", "b,c-0", "[d]/a-0"):
        (tmp_path / name).mkdir(parents=True)
    a0, a1, bc = (str(tmp_path / name) for name in ("a-0", "a-1", "b,c-0"))
    assert expanded(f"{a0},{a1}") == [a0, a1]
    assert expanded(f"{tmp_path}/a-*") == [a0, a1]
    assert expanded(bc) == [bc]
    assert expanded(f"file://{a0}", f"file:{a1}") == [a0, a1]
    with pytest.raises(FileNotFoundError, match="no such directory"):
        expanded(f"{tmp_path}/z-*")
    assert expanded("s3a://bucket/logs,s3://b/x") == ["s3a://bucket/logs", "s3://b/x"]
    assert expanded("s3://bucket/a,b") == ["s3://bucket/a,b"]
    # Relative paths are those of the driver, whatever directory an executor runs in.
    monkeypatch.chdir(tmp_path)
    options = parse_options({"path": "a-*,./a-0", "paths": '["b,c-0", "s3://b/x"]'})
    monkeypatch.chdir("/")
    assert expand_paths(options.paths) == [a0, a1, a0, bc, "s3://b/x"]
    monkeypatch.chdir(tmp_path / "[d]")
    assert expanded("a-*") == [str(tmp_path / "[d]/a-0")]
    with pytest.raises(OptionError, match=r"path s3:/bucket/logs: expected s3://"):
        parse_options({"path": "s3:/bucket/logs"})


def test_the_guide_lists_every_option() -> None:
    guide = (Path(__file__).parents[2] / "docs" / "guide" / "spark.md").read_text()
    _, _, table = guide.partition("| option | where | default | |\n|---|---|---|---|\n")
    documented: dict[str, set[str]] = {}
    for line in table.splitlines():
        if not line.startswith("|"):
            break
        names, where, _ = line.strip("| ").split(" | ", 2)
        for name in re.findall(r"`([^`]+)`", names):
            assert name not in documented
            documented[name] = set(where.split(", "))
    prefixed = ("storage.KEY", "kafka.bootstrap.servers", "kafka.*")
    in_code: dict[str, set[str]] = {name: {"batch", "stream"} for name in prefixed}
    for options, where in (
        (QUERY_OPTIONS, {"batch", "stream"}),
        (BATCH_OPTIONS, {"batch"}),
        (TRIGGER_OPTIONS, {"stream"}),
        (STREAM_OPTIONS, {"stream"}),
        (WRITE_OPTIONS, {"write"}),
    ):
        for name in options:
            in_code.setdefault(name, set()).update(where)
    assert documented == in_code


ZONES = ("America/New_York", "UTC", "Europe/Berlin", "Australia/Lord_Howe", "Asia/Kolkata")


@pytest.mark.parametrize("zone", ZONES)
def test_times_without_a_zone(zone: str) -> None:
    times = [
        datetime(2024, 1, 1),
        datetime(2024, 3, 10, 2, 30),  # there is no such time in New York
        datetime(2024, 3, 31, 2, 0),  # nor this one in Berlin
        datetime(2024, 10, 6, 2, 15, 0, 1),  # nor this one on Lord Howe Island
        datetime(2024, 11, 3, 1, 30),  # New York has it twice
        datetime(2024, 10, 27, 2, 59, 59, 999_999),
        datetime(1, 2, 3),
        None,
    ]
    # Python's rules for times that are skipped or repeated are Java's.
    expected = [time and time.replace(tzinfo=ZoneInfo(zone)).astimezone(UTC) for time in times]
    assert instants(pa.array(times, pa.timestamp("us")), zone).to_pylist() == expected


@pytest.mark.parametrize(
    ("zone", "hours"),
    [("Z", 0), ("GMT", 0), ("+02:00", 2), ("-08:00", -8), ("UTC+3", 3), ("GMT-0100", -1), ("+5", 5)],
)
def test_zones_that_are_offsets(zone: str, hours: int) -> None:
    (instant,) = instants(pa.array([datetime(2024, 1, 2)], pa.timestamp("us")), zone).to_pylist()
    assert (datetime(2024, 1, 2, tzinfo=UTC) - instant).total_seconds() == 3600 * hours


def test_the_sessions_zone(monkeypatch: pytest.MonkeyPatch) -> None:
    # Without a session, as without the setting, it is the machine's.
    monkeypatch.setenv("TZ", "Asia/Kolkata")
    assert session_zone() == "Asia/Kolkata"
    rows = pa.record_batch({"timestamp": pa.array([0], pa.timestamp("us")), "value": [b"v"]})
    assert with_session_zone(rows).column("timestamp").cast(pa.int64()).to_pylist() == [-19_800_000_000]
    for other in (pa.array([7]), pa.array([7], pa.timestamp("us", "America/New_York"))):
        rows = pa.record_batch({"timestamp": other})
        assert with_session_zone(rows) is rows
    with pytest.raises(ValueError, match="'Mars/X' is not a time zone that this machine knows"):
        instants(rows.column(0), "Mars/X")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"batchBytes": "0"}, "batchBytes: 0 is less than 1 bytes"),
        ({"batchBytes": "large"}, "batchBytes: 'large' is not a size"),
        ({"segmentBytes": "2g"}, "segmentBytes: 2g is more than 2,147,483,647 bytes"),
        ({"level": "best"}, "level: 'best' is not a whole number"),
        (
            {"compression": "xz"},
            "compression: 'xz' is not one of none, gzip, snappy, lz4, zstd",
        ),
        ({"topicIds": '{"t": "no id"}'}, "topicIds: .* does not look like"),
        ({"topicIds": "[" * 100_000}, "topicIds: .* does not look like"),
        ({"topics": "t"}, "unknown option topics; did you mean topic"),
    ],
)
def test_wrong_options_of_the_writer(given: dict[str, str], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        Given(given, WRITE_OPTIONS).read(WriteOptions)


def test_options_of_the_writer() -> None:
    topic_id = "AAAAAAAAAAAAAAAAAAAAAQ"
    given = {"BATCHBYTES": "64k", "compression": "uncompressed", "topicIds": f'{{"t": "{topic_id}"}}'}
    options = Given(given, WRITE_OPTIONS).read(WriteOptions)
    assert (options.batch_bytes, options.compression, options.topic_ids) == (64 << 10, 0, {"t": topic_id})
    defaults = Given({"kafka.bootstrap.servers": "b:9092"}, WRITE_OPTIONS).read(WriteOptions)
    assert (defaults.segment_bytes, defaults.level, defaults.topic_ids) == (1 << 30, None, {})
