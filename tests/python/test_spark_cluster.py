"""A running cluster as Spark's source, without Spark's machinery: `magicbyte serve` plays the cluster."""

from __future__ import annotations

import json
import pickle
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from typing import Any

import magicbyte
import pyarrow as pa
import pytest
from conftest import KAFKA, PARTITIONS
from live_proxy import lying

pytest.importorskip("pyspark", minversion="4.2")

from magicbyte import PartitionLog
from magicbyte.errors import CorruptRecordError, JobError
from magicbyte.lake.ranges import OffsetRange
from magicbyte.spark import cluster_stream
from magicbyte.spark.cluster import ClusterWatch
from magicbyte.spark.cluster_reader import ClusterReader
from magicbyte.spark.cluster_stream import ClusterStreamReader
from magicbyte.spark.given import OptionError
from magicbyte.spark.offset_ranges import split_ranges
from magicbyte.spark.options import parse_options, parse_stream_options
from magicbyte.spark.reader import MagicbyteReader
from magicbyte.spark.schema import arrow_schema_of
from magicbyte.spark.source import MagicbyteDataSource
from pyspark.sql.streaming.datasource import ReadAllAvailable

LEVELS = ("read_uncommitted", "read_committed")
COLUMNS = ("key", "value", "topic", "partition", "offset", "timestamp", "timestampType", "headers")
# The end of the topic, and what retention has left of it.
TOPIC, END = "v2_none", 346
DELETED = "v2_delete_records"


@pytest.fixture(scope="module")
def servers() -> Iterator[str]:
    """The address of a cluster with all partitions that real brokers wrote."""
    with magicbyte.serve([KAFKA], listen="127.0.0.1:0") as server:
        yield server.bootstrap_servers


def given(servers: str, **options: Any) -> dict[str, str]:
    chosen = {"subscribe", "subscribePattern", "assign"} & options.keys()
    named = {"kafka.bootstrap.servers": servers} | ({} if chosen else {"subscribe": TOPIC}) | options
    return {name: str(value) for name, value in named.items()}


def batch_reader(
    servers: str, columns: tuple[str, ...] = ("topic", "offset"), **options: Any
) -> ClusterReader:
    parsed = parse_options(given(servers, **options))
    assert parsed.cluster is not None
    # Executors have a copy.
    return pickle.loads(pickle.dumps(ClusterReader(parsed.cluster, parsed, columns)))


def rows_of(reader: ClusterReader | ClusterStreamReader, parts: Any) -> list[tuple[Any, ...]]:
    batches = [batch for part in parts for batch in reader.read(pickle.loads(pickle.dumps(part)))]
    return [tuple(row.values()) for batch in batches for row in batch.to_pylist()]


def offsets(servers: str, **options: Any) -> list[int]:
    reader = batch_reader(servers, **options)
    return [offset for _, offset in rows_of(reader, reader.partitions())]


@pytest.mark.parametrize("level", LEVELS)
def test_rows_and_columns_are_those_of_the_directories(servers: str, level: str) -> None:
    names = ",".join(PARTITIONS)
    options = {"subscribe": names, "includeHeaders": "true", "kafka.isolation.level": level}
    reader = batch_reader(servers, COLUMNS, **options)
    parts = reader.partitions()
    assert len(parts) <= len(PARTITIONS)
    shape = parse_options(given(servers, **options)).shape
    schema = arrow_schema_of(shape)
    assert schema.names == list(COLUMNS)
    batches = [batch for part in parts for batch in reader.read(part)]
    assert {*map(str, (batch.schema for batch in batches))} == {str(schema)}
    found = pa.Table.from_batches(batches, schema)
    for name in PARTITIONS:
        log = PartitionLog(KAFKA / name)
        of_topic = found.filter(pa.compute.equal(found["topic"], name)).select(
            ["offset", "key", "value", "headers"]
        )
        expected = pa.table(log.to_arrow(["offset", "key", "value", "headers"], isolation_level=level))
        assert of_topic.cast(expected.schema).equals(expected), (name, level)


def test_offsets(servers: str) -> None:
    assert offsets(servers) == list(range(END))
    assert offsets(servers, startingOffsets="earliest", endingOffsets="latest") == list(range(END))
    some = {
        "startingOffsets": json.dumps({TOPIC: {"0": 20}}),
        "endingOffsets": json.dumps({TOPIC: {"0": 25}}),
    }
    assert offsets(servers, **some) == list(range(20, 25))
    special = {
        "startingOffsets": json.dumps({TOPIC: {"0": -2}}),
        "endingOffsets": json.dumps({TOPIC: {"0": -1}}),
    }
    assert offsets(servers, **special) == list(range(END))
    with pytest.raises(ValueError, match="must name exactly the partitions"):
        offsets(servers, startingOffsets=json.dumps({TOPIC: {"1": 20}}))
    with pytest.raises(ValueError, match="must name exactly the partitions"):
        offsets(servers, endingOffsets=json.dumps({TOPIC: {"0": 20, "1": 3}}))
    empty = {
        "startingOffsets": json.dumps({TOPIC: {"0": 25}}),
        "endingOffsets": json.dumps({TOPIC: {"0": 25}}),
    }
    assert offsets(servers, **empty) == []


@pytest.mark.parametrize(
    "given",
    [
        {"startingOffsets": 25, "endingOffsets": 20},
        {"startingOffsets": 400, "endingOffsets": 380},
        {"startingOffsets": 400},
        {"startingTimestamp": 1_700_000_010_000, "endingOffsets": 0},
        {"startingTimestamp": 1_700_000_010_000, "endingTimestamp": 0},
        {"startingOffsets": 100, "endingTimestamp": 0},
    ],
)
@pytest.mark.parametrize("kind", ["cluster", "files"])
def test_a_query_that_starts_after_its_end(servers: str, given: dict[str, int], kind: str) -> None:
    options = {
        name: json.dumps({TOPIC: {"0": value}}) if name.endswith("Offsets") else str(value)
        for name, value in given.items()
    }
    message = rf"{TOPIC}-0: the query starts at offset \d+, after its end, offset \d+"
    if kind == "cluster":
        for fail in ("true", "false"):
            with pytest.raises(ValueError, match=message):
                offsets(servers, failOnDataLoss=fail, **options)
        return
    reader = MagicbyteReader(parse_options({"path": str(KAFKA / TOPIC), **options}), ("offset",))
    if given.keys() == {"startingOffsets"}:
        with pytest.raises(JobError, match="offsets 346 to 399 cannot be read: the log ends earlier"):
            reader.partitions()
        return
    with pytest.raises(ValueError, match=message):
        reader.partitions()


def test_times_of_an_open_transaction(servers: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A start at a record that is not committed is no start after the end."""
    of_times = {1000: 85, 2000: None}
    monkeypatch.setattr(
        ClusterWatch,
        "offsets_for_times",
        lambda _, times: {partition: of_times[time] for partition, time in times.items()},
    )
    at = {"subscribe": "v2_txn", "startingTimestamp": 1000, "endingTimestamp": 2000}
    assert offsets(servers, **at)[0] == 85
    assert offsets(servers, isolationLevel="read_committed", **at) == []


def test_times(servers: str) -> None:
    log = PartitionLog(KAFKA / TOPIC)
    times = pa.table(log.to_arrow(["timestamp"]))["timestamp"].cast(pa.int64()).to_pylist()
    first = [offset for offset, time in enumerate(times) if time >= times[100]]
    assert offsets(servers, startingTimestamp=times[100]) == list(range(first[0], END))
    assert offsets(servers, endingTimestamp=times[100]) == list(range(first[0]))
    by_partition = json.dumps({TOPIC: {"0": times[100]}})
    assert offsets(servers, startingOffsetsByTimestamp=by_partition) == list(range(first[0], END))
    assert offsets(servers, endingOffsetsByTimestamp=by_partition) == list(range(first[0]))
    late = max(times) + 1
    with pytest.raises(ValueError, match=f"{TOPIC}-0 has no record at or after {late}"):
        offsets(servers, startingTimestamp=late)
    latest = {"startingOffsetsByTimestampStrategy": "latest"}
    assert offsets(servers, startingTimestamp=late, **latest) == []
    assert offsets(servers, endingTimestamp=late) == list(range(END))


def test_choices(servers: str) -> None:
    def topics(**options: Any) -> set[str]:
        reader = batch_reader(servers, **options)
        return {part.value.topic for part in reader.partitions()}

    assert topics(subscribe="v2_none,v2_txn") == {"v2_none", "v2_txn"}
    assert topics(subscribePattern="v2_(none|txn)") == {"v2_none", "v2_txn"}
    assert topics(assign='{"v2_none":[0]}') == {"v2_none"}
    # As in Spark's source, a pattern may match nothing; its own topics are not chosen by patterns.
    assert topics(subscribePattern="nothing.*") == set()
    assert not {name for name in topics(subscribePattern=".*") if name.startswith("__consumer")}
    with pytest.raises(ValueError, match=f"{servers}: the cluster has no absent, or does not show it"):
        topics(subscribe="v2_none,absent")
    with pytest.raises(ValueError, match="the cluster has no v2_none-7, or"):
        topics(assign='{"v2_none":[0,7]}')


@pytest.mark.parametrize(("option", "least"), [("minPartitions", 7), ("maxRecordsPerPartition", 7)])
def test_tasks(servers: str, option: str, least: int) -> None:
    reader = batch_reader(servers, **{option: 50 if option.startswith("max") else least})
    parts = reader.partitions()
    assert len(parts) == least
    assert [offset for _, offset in rows_of(reader, parts)] == list(range(END))


def test_ranges_are_divided_evenly() -> None:
    large, small, empty = OffsetRange("t", 0, 0, 90), OffsetRange("t", 1, 5, 15), OffsetRange("t", 2, 7, 7)
    assert split_ranges([large, small, empty], None, None) == [large, small]
    parts = split_ranges([large, small, empty], 10, None)
    assert [part.end - part.start for part in parts] == [10] * 10
    assert parts[0].start == 0
    assert all(one.end == following.start for one, following in pairwise(parts[:9]))
    assert len(split_ranges([OffsetRange("t", 0, 0, 3)], 10, None)) == 3
    assert [part.end - part.start for part in split_ranges([large], None, 40)] == [30, 30, 30]
    assert len(split_ranges([large], 5, 40)) == 5
    assert split_ranges([], 5, 40) == []
    with_huge = split_ranges([OffsetRange("t", 0, 0, 1 << 62)], 3, None)
    assert (with_huge[0].start, with_huge[-1].end, len(with_huge)) == (0, 1 << 62, 3)


def test_offsets_that_are_gone(servers: str, caplog: pytest.LogCaptureFixture) -> None:
    beyond = {"endingOffsets": json.dumps({TOPIC: {"0": 400}})}
    with pytest.raises(
        JobError, match=rf"{TOPIC}-0: offsets 346 to 399 cannot be read: the log ends earlier"
    ):
        offsets(servers, **beyond)
    assert offsets(servers, failOnDataLoss="false", **beyond) == list(range(END))
    assert "offsets 346 to 399" in caplog.text
    # The tasks notice what has gone since they were planned.
    for fail in ("true", "false"):
        reader = batch_reader(servers, failOnDataLoss=fail)
        (part,) = reader.partitions()
        part.value = part.value._replace(end=400)
        if fail == "true":
            with pytest.raises(JobError, match=r"offsets 346 to 399"):
                rows_of(reader, [part])
        else:
            assert [offset for _, offset in rows_of(reader, [part])] == list(range(END))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"kafka.auto.offset.reset": "latest"}, "kafka.auto.offset.reset .* startingOffsets"),
        ({"kafka.enable.auto.commit": "true"}, "commits nothing"),
        ({"kafka.value.deserializer": "x"}, "values are bytes"),
        ({"kafka.interceptor.classes": "x"}, "Java's classes"),
        ({"kafka.magicbyte.sasl.oauthbearer.token.command": "sh"}, "should start no programs"),
        ({"filterPushdown": "true"}, "filterPushdown has no meaning"),
        ({"maxBytesPerTrigger": "1"}, "maxBytesPerTrigger has no meaning"),
        ({"includeDeletedRecords": "true"}, "includeDeletedRecords has no meaning"),
        ({"encryptionKey": "/k"}, "encryptionKey"),
        ({"storage.region": "x"}, "storage. is for the stores"),
        ({"table": "segments"}, "table segments needs files"),
        ({"subscribe": ""}, "subscribe, subscribePattern or assign is missing"),
        ({"subscribe": " , "}, "subscribe: ' , ' is an empty list"),
        ({"subscribe": "a", "assign": '{"a":[0]}'}, "only one of subscribe and assign"),
        ({"kafka.bootstrap.servers": ""}, "or for a running cluster kafka.bootstrap.servers"),
        ({"kafka.bootstrap.servers": " ,"}, "or for a running cluster kafka.bootstrap.servers"),
        ({"kafka.isolation.level": "all"}, "isolationLevel: 'all' is not one of"),
        ({"bananas": "1"}, "unknown option bananas"),
    ],
)
def test_refused_options(options: dict[str, str], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        parse_options(given("127.0.0.1:1", **options))


def test_options_that_have_no_effect(servers: str, caplog: pytest.LogCaptureFixture) -> None:
    """A job that changes its format may keep what concerns the consumers of Spark's source."""
    kept = {
        "groupIdPrefix": "jobs",
        "kafka.group.id": "orders",
        "kafkaConsumer.pollTimeoutMs": "1",
        "fetchOffset.numRetries": "1",
        "FETCHOFFSET.RETRYINTERVALMS": "1",
    }
    assert offsets(servers, **kept) == list(range(END))
    assert "kafka.group.id has no effect: this source joins no consumer group" in caplog.text
    assert [record.getMessage().split(" ")[0].lower() for record in caplog.records] == [*map(str.lower, kept)]


def test_lists_as_kafka_and_spark_take_them(servers: str) -> None:
    assert offsets(f" PLAINTEXT://{servers} , ,", subscribe=f"{TOPIC},, ") == list(range(END))
    with pytest.raises(OSError, match="TLS"):
        offsets(f"kafkas://{servers}")


def test_a_path_keeps_the_cluster_out() -> None:
    assert parse_options(given("b:9092", path="/logs", **{"kafka.group.id": "g"})).cluster is None
    with pytest.raises(OptionError, match=r"path: a running cluster is named by kafka\.bootstrap\.servers"):
        parse_options({"path": "kafka://b:9092/orders"})


def test_secrets_are_in_no_text() -> None:
    secret = "hunter2"
    jaas = f'M required username="alice" password="{secret}";'
    options = {"kafka.sasl.jaas.config": jaas, "kafka.ssl.keystore.key": secret}
    parsed = parse_options(given("127.0.0.1:1", **options))
    assert parsed.cluster is not None
    assert parsed.cluster.properties["sasl.jaas.config"] == jaas
    assert secret not in repr(parsed)
    wrong = {**options, "kafka.security.protocol": "SASL_PLAINTEXT", "kafka.sasl.mechanism": "KERBEROS"}
    with pytest.raises(JobError, match=r"sasl\.mechanism: KERBEROS") as raised:
        batch_reader("127.0.0.1:1", **wrong).partitions()
    assert secret not in str(raised.value)
    wrong["kafka.sasl.mechanism"] = "PLAIN"
    wrong["kafka.sasl.jaas.config"] = jaas.replace("required", "")
    with pytest.raises(JobError) as raised:
        batch_reader("127.0.0.1:1", **wrong).partitions()
    assert secret not in str(raised.value)


def test_a_cluster_that_is_not_there() -> None:
    with pytest.raises(OSError, match=r"127\.0\.0\.1:1"):
        batch_reader("127.0.0.1:1", **{"kafka.request.timeout.ms": "1000"}).partitions()


def test_the_source_has_readers_of_both_kinds(servers: str) -> None:
    source = MagicbyteDataSource(given(servers))
    schema = source.schema()
    assert isinstance(source.reader(schema), ClusterReader)
    assert isinstance(source.streamReader(schema), ClusterStreamReader)


def test_tables(servers: str) -> None:
    reader = batch_reader(servers, ("topic", "baseOffset"), table="batches")
    bases = [base for _, base in rows_of(reader, reader.partitions())]
    assert bases == [batch.base_offset for batch in PartitionLog(KAFKA / TOPIC).batches()]
    reader = batch_reader(servers, ("kind",), table="problems")
    assert rows_of(reader, reader.partitions()) == []


@pytest.fixture(scope="module")
def damaged(servers: str) -> Iterator[tuple[str, range]]:
    """The address of a cluster whose third batch of v2_lz4 has another byte, and the offsets of that."""
    batch = list(PartitionLog(KAFKA / "v2_lz4").batches())[2]
    data = batch.to_bytes()
    with lying(servers, {data: data[:-1] + bytes([data[-1] ^ 1])}) as address:
        yield address, range(batch.base_offset, batch.last_offset + 1)


def test_damage_is_lost_offsets(damaged: tuple[str, range], caplog: pytest.LogCaptureFixture) -> None:
    """Consumers fail at it, so a query does, unless it may continue; `problems` has it either way."""
    address, lost = damaged
    message = rf"v2_lz4-0: offsets {lost[0]} to {lost[-1]} cannot be read: CRC mismatch"
    left = [offset for offset in range(END) if offset not in lost]
    for fails in (
        lambda: offsets(address, subscribe="v2_lz4"),
        Stream(address, subscribe="v2_lz4").drain,
    ):
        with pytest.raises(JobError, match=message):
            fails()
    with pytest.raises(CorruptRecordError, match="CRC mismatch"):
        offsets(address, subscribe="v2_lz4", mode="FAILFAST")
    assert offsets(address, subscribe="v2_lz4", failOnDataLoss="false") == left
    assert Stream(address, subscribe="v2_lz4", failOnDataLoss="false").drain() == left
    assert f"{lost[0]} to {lost[-1]}" in caplog.text
    reader = batch_reader(address, ("kind", "firstLostOffset"), subscribe="v2_lz4", table="problems")
    assert rows_of(reader, reader.partitions()) == [("crc_mismatch", lost[0])]


class Stream:
    """Does what Spark's driver does with a reader; `at` is what its checkpoint would hold."""

    def __init__(self, servers: str, at: Any = None, **options: Any) -> None:
        parsed = parse_stream_options(given(servers, **{"startingOffsets": "earliest", **options}))
        assert parsed.read.cluster is not None
        self.reader = ClusterStreamReader(parsed.read.cluster, parsed, ("topic", "offset"))
        self.at = self.next(self.reader.initialOffset()) if at is None else at

    def next(self, start: Any) -> Any:
        limit = self.reader.getDefaultReadLimit()
        return json.loads(json.dumps(self.reader.latestOffset(start, limit)))

    def trigger(self) -> list[int]:
        end = self.next(self.at)
        executor = pickle.loads(pickle.dumps(self.reader))
        parts = self.reader.partitions(self.at, end) if end != self.at else []
        self.at = end
        return [offset for _, offset in rows_of(executor, parts)]

    def drain(self) -> list[int]:
        rows: list[int] = []
        while self.next(self.at) != self.at:
            rows += self.trigger()
        return rows


def test_a_stream_has_the_offsets_of_sparks_source(servers: str) -> None:
    stream = Stream(servers)
    assert stream.at == {TOPIC: {"0": 0}}
    assert stream.trigger() == list(range(END))
    assert stream.at == {TOPIC: {"0": END}}
    assert stream.trigger() == []
    assert Stream(servers, {TOPIC: {"0": 340}}).drain() == list(range(340, END))
    assert Stream(servers, startingOffsets="latest").at == {TOPIC: {"0": END}}
    assert Stream(servers, startingOffsets=json.dumps({TOPIC: {"0": 9}})).drain() == list(range(9, END))
    with pytest.raises(ValueError, match="the cluster has no absent"):
        Stream(servers, subscribe="absent")


@pytest.mark.parametrize("limit", [1, 50, 345, 346, 1000])
def test_max_offsets(servers: str, limit: int) -> None:
    stream = Stream(servers, {TOPIC: {"0": END - 346}}, maxOffsetsPerTrigger=limit)
    rows = stream.trigger()
    assert rows == list(range(min(limit, END)))
    if limit > 1:
        assert rows + stream.drain() == list(range(END))


def test_min_offsets(servers: str) -> None:
    stream = Stream(servers, {TOPIC: {"0": 340}}, minOffsetsPerTrigger=10)
    stream.reader._last_trigger = float("inf")
    assert stream.next(stream.at) == stream.at
    assert stream.reader.latestOffset(stream.at, ReadAllAvailable()) == {TOPIC: {"0": END}}


def test_available_now(servers: str) -> None:
    stream = Stream(servers, {TOPIC: {"0": 0}}, maxOffsetsPerTrigger=200)
    stream.reader.prepareForTriggerAvailableNow()
    assert stream.reader.reportLatestOffset() is None
    assert stream.drain() == list(range(END))
    assert stream.reader.reportLatestOffset() == {TOPIC: {"0": END}}


@pytest.fixture
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """Streams do not wait before they look again."""
    monkeypatch.setattr(cluster_stream, "_RETRY_SECONDS", 0)


@pytest.mark.usefixtures("hurried")
def test_partitions_that_come_and_go(servers: str, caplog: pytest.LogCaptureFixture) -> None:
    both = {"subscribe": "v2_none,v2_txn"}
    stream = Stream(servers, {"v2_none": {"0": END}}, **both)
    assert len(stream.drain()) > 0
    assert stream.at["v2_txn"]["0"] > 0
    at = {TOPIC: {"0": END, "1": 5}}
    gone = f"{TOPIC}-1: offsets from 5 on cannot be read: the partition is gone"
    with pytest.raises(JobError, match=gone):
        Stream(servers, at).trigger()
    stream = Stream(servers, at, failOnDataLoss="false")
    assert stream.drain() == []
    assert gone in caplog.text
    # As in Spark's source, it is new when it comes back.
    assert stream.at == {TOPIC: {"0": END}}


@pytest.mark.usefixtures("hurried")
@pytest.mark.parametrize("options", [{}, {"minOffsetsPerTrigger": 10}, {"maxOffsetsPerTrigger": 10}], ids=str)
def test_a_log_that_went_back(
    servers: str, options: dict[str, int], caplog: pytest.LogCaptureFixture
) -> None:
    """A stream goes on at the end that the log has, as Spark's source does."""
    at = {TOPIC: {"0": 400}}
    with pytest.raises(JobError, match=r"offsets 346 to 399 cannot be read: the log ends earlier"):
        Stream(servers, at).trigger()
    stream = Stream(servers, at, failOnDataLoss="false", **options)
    stream.reader._last_trigger = float("inf")
    assert stream.trigger() == []
    assert stream.at == {TOPIC: {"0": END}}
    assert f"the log ended earlier. The stream goes on at offset {END}" in caplog.text
    # What became of the log in between does not change what a micro-batch has.
    assert stream.reader.partitions({TOPIC: {"0": 200}}, {TOPIC: {"0": 100}}) == []


@pytest.mark.usefixtures("hurried")
def test_what_a_stream_gives_up_is_a_problem(servers: str) -> None:
    stream = Stream(servers, table="problems", failOnDataLoss="false")
    columns = ("partition", "kind", "firstLostOffset", "lastLostOffset")
    reader = ClusterStreamReader(stream.reader._cluster, stream.reader._options, columns)
    parts = reader.partitions({TOPIC: {"0": 400, "1": 5}}, {TOPIC: {"0": END}})
    assert rows_of(reader, parts) == [(0, "data_loss", END, 399), (1, "data_loss", 5, None)]


@pytest.mark.usefixtures("hurried")
@pytest.mark.parametrize("what", ["shorter", "gone"])
def test_a_look_that_is_stale_for_a_moment(servers: str, what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A new leader may not know the end of its log at once; nothing is lost."""
    look, looks = ClusterWatch.look, 0

    def stale(watch: ClusterWatch) -> Any:
        nonlocal looks
        looks += 1
        logs = look(watch)
        if looks % 3:
            log = logs.pop((TOPIC, 0))
            if what == "shorter":
                lineage = replace(log.lineage, end_offset=100)
                logs[TOPIC, 0] = replace(log, end_offset=100, lineage=lineage)
        return logs

    monkeypatch.setattr(ClusterWatch, "look", stale)
    for fail in ("true", "false"):
        assert Stream(servers, {TOPIC: {"0": 300}}, failOnDataLoss=fail).trigger() == list(range(300, END))


def test_committed_records_of_a_stream(servers: str) -> None:
    options = {"subscribe": "v2_txn", "isolationLevel": "read_committed", "maxOffsetsPerTrigger": 7}
    expected = pa.table(PartitionLog(KAFKA / "v2_txn").to_arrow(["offset"], isolation_level="read_committed"))
    assert Stream(servers, **options).drain() == expected["offset"].to_pylist()
