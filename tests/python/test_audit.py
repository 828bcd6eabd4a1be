"""`audit` finds batches that a producer put into another topic, and nothing else."""

from __future__ import annotations

import json
import shutil
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from time import process_time
from typing import Any

import fsspec
import magicbyte
import pyarrow as pa
import pytest
from magicbyte import Compression, PartitionLog, RecordsBuilder, RefusedError, TimestampType, _core
from magicbyte.broker import AppendConfig
from magicbyte.jobs import audit as job
from magicbyte.jobs.auditing.copies import find_copies
from magicbyte.jobs.find.offset_ranges import offsets_in, parse_offsets
from magicbyte.schema.directory import INDEX, files_of
from magicbyte.schema.registry import Schema, StoredRegistry, SubjectVersion
from misrouted_logs import START, Cluster, Producer, Topic, many_producers, many_topics, places

APPEND_TIME = TimestampType.LOG_APPEND_TIME
ORDERS = "orders"


def orders(**config: Any) -> Topic:
    return Topic(ORDERS, lambda number: b'{"order":%d}' % number, AppendConfig(**config))


def clicks(**config: Any) -> Topic:
    return Topic("clicks", lambda number: b"click %d" % number, AppendConfig(**config))


def test_planted_batches_are_found_among_many(tmp_path: Path) -> None:
    cluster = Cluster(many_topics(), many_producers()).produce(100_000, misrouted=100)
    report = magicbyte.audit(cluster.write(tmp_path))
    found = places(report)
    assert found.keys() == cluster.planted.keys()
    assert len(found) == 100
    assert report["batches"] == 100_100
    for place, one in found.items():
        assert one["strength"] in ("proven", "likely")
        of = one["belongs_to"]
        original = (of["topic"], of["partition"], of["first_offset"], of["last_offset"])
        assert original == cluster.planted[place]
    assert report["sharing"] == []
    assert report["problems"] == []


@pytest.mark.parametrize("seed", range(5))
def test_unrelated_topics_have_no_finding(seed: int, tmp_path: Path) -> None:
    cluster = Cluster(many_topics(), many_producers(), seed).produce(5_000)
    report = magicbyte.audit(cluster.write(tmp_path))
    assert report["misrouted_count"] == 0
    assert report["sharing"] == []


CONFIGS: dict[str, dict[str, Any]] = {
    "as it is": {},
    "append time": {"message_timestamp_type": APPEND_TIME},
    "recompressed": {"compression": Compression.GZIP},
    "decompressed": {"compression": Compression.NONE},
    "both": {"compression": Compression.ZSTD, "message_timestamp_type": APPEND_TIME},
}
EVIDENCE = {
    "as it is": "same_crc",
    "append time": "log_append_time",
    "recompressed": "recompressed",
    "decompressed": "recompressed",
    "both": "same_sequence",
}


@pytest.mark.parametrize("compression", ["none", "snappy"])
@pytest.mark.parametrize("config", CONFIGS)
def test_each_way_that_a_broker_stores_a_batch(config: str, compression: str, tmp_path: Path) -> None:
    cluster = Cluster([orders(), clicks(**CONFIGS[config])], [Producer(7, compression), Producer(8)])
    cluster.produce(300, misrouted=5, producer=cluster.producers[0], topic=cluster.topics[0])
    cluster.produce(300, topic=cluster.topics[1])
    report = magicbyte.audit(cluster.write(tmp_path))
    found = places(report, "proven")
    assert found.keys() == cluster.planted.keys()
    assert report["misrouted_count"] == 5
    unchanged = compression == "none" and config == "decompressed"
    evidence = "same_crc" if unchanged else EVIDENCE[config]
    assert {tuple(one["evidence"]) for one in found.values()} == {(evidence, "out_of_sequence")}
    assert {one["producer_id"] for one in found.values()} == {7}


@pytest.mark.parametrize("config", CONFIGS)
def test_batches_without_a_producer_id_are_judged_by_their_neighbours(config: str, tmp_path: Path) -> None:
    cluster = Cluster([orders(), clicks(**CONFIGS[config])], [Producer(compression="lz4")])
    cluster.produce(400, misrouted=5)
    report = magicbyte.audit(cluster.write(tmp_path))
    found = places(report, "likely")
    assert found.keys() == cluster.planted.keys()
    assert report["misrouted_count"] == 5
    assert all(one["evidence"][-1] == "unlike_topic" for one in found.values())


def test_equal_topics_leave_open_which_is_the_wrong_one(tmp_path: Path) -> None:
    topics = [Topic(name, lambda number: b"value %d" % number) for name in ("a", "b")]
    cluster = Cluster(topics, [Producer()]).produce(200, misrouted=1)
    out = tmp_path / "found.json"
    report = magicbyte.audit(cluster.write(tmp_path / "logs"), offsets_out=out)
    ((place, original),) = cluster.planted.items()
    assert places(report, "possible").keys() == {place, original}
    assert parse_offsets(out.read_text()) == {}  # nothing that may be right is removed


def test_a_batch_that_is_only_in_the_wrong_topic_fills_a_gap(tmp_path: Path) -> None:
    cluster = Cluster([orders(), clicks()], [Producer(7), Producer(8)])
    cluster.produce(200, topic=cluster.topics[1], producer=cluster.producers[1])
    cluster.produce(
        200, misrouted=1, loses_original=True, topic=cluster.topics[0], producer=cluster.producers[0]
    )
    (found,) = places(magicbyte.audit(cluster.write(tmp_path)), "likely").values()
    ((place, original),) = cluster.planted.items()
    assert place == (found["topic"], found["partition"], found["first_offset"], found["last_offset"])
    assert found["evidence"] == ["fills_gap"]
    gap = found["belongs_to"]
    assert (gap["topic"], gap["partition"]) == original[:2]
    assert gap["last_offset"] == gap["first_offset"] + 1
    assert gap["path"] is None


def test_sequences_that_no_producer_writes_take_no_time(tmp_path: Path) -> None:
    topics = [orders(), clicks()]
    builder = RecordsBuilder(producer_id=7, producer_epoch=0, base_sequence=9)
    builder.append(0, START, b"k", b"v")
    batch = bytearray(builder.build())
    for number in range(6_000):
        # Three sequences, so that all are before, in and after a gap.
        struct.pack_into(">q", batch, 27, START + number)
        struct.pack_into(">i", batch, 53, 9 + number % 3)
        struct.pack_into(">I", batch, 17, magicbyte.crc32c(batch[21:]))
        topics[number % 2].append(number // 2 % 2, bytes(batch), START)
    assert magicbyte.audit(Cluster(topics, []).write(tmp_path))["misrouted_count"] == 0


def copy_into(target: Topic, source: Topic, share: int) -> None:
    """Produces every nth batch of a topic to another one, too, as a producer that writes all to both does."""
    for log in source.logs:
        for number, batch in enumerate(magicbyte.read_batches(bytes(log))):
            if number % share == 0:
                target.append(0, bytes(8) + batch.to_bytes()[8:], START)


def sequence(batches: int) -> list[bytes]:
    """Batches of one producer, one after the other."""
    found = []
    for first in range(0, 3 * batches, 3):
        builder = RecordsBuilder(producer_id=7, producer_epoch=0, base_sequence=first)
        for offset in range(first, first + 3):
            builder.append(offset, START + offset, b"k", b'{"order":%d}' % offset)
        found.append(bytes(builder.build()))
    return found


def write_segments(root: Path, topic: str, segments: dict[int, list[bytes]]) -> None:
    directory = root / f"{topic}-0"
    directory.mkdir(parents=True)
    for base_offset, batches in segments.items():
        (directory / f"{base_offset:020}.log").write_bytes(b"".join(batches))


def test_sequences_go_on_in_the_next_segment(tmp_path: Path) -> None:
    """A producer that writes all to two topics, one of which has a segment for each batch."""
    batches, logs = sequence(6), tmp_path / "logs"
    write_segments(logs, "a", {3 * number: [batch] for number, batch in enumerate(batches)})
    write_segments(logs, "b", {0: batches})
    report = magicbyte.audit(logs, offsets_out=tmp_path / "found.json")
    assert report["by_strength"] == {"proven": 0, "likely": 0, "possible": 12}
    assert parse_offsets((tmp_path / "found.json").read_text()) == {}


@pytest.mark.parametrize("left", [1, 2, 5])
def test_retention_has_deleted_what_was_before(left: int, tmp_path: Path) -> None:
    """The same, where the batches before the first one may have been deleted."""
    batches, logs = sequence(200), tmp_path / "logs"
    write_segments(logs, "a", {3 * (200 - left): batches[-left:]})
    write_segments(logs, "b", {0: batches})
    report = magicbyte.audit(logs, offsets_out=tmp_path / "found.json")
    assert report["by_strength"] == {"proven": 0, "likely": 0, "possible": 2 * left}
    assert parse_offsets((tmp_path / "found.json").read_text()) == {}


def test_a_producers_only_batch_after_the_start_of_a_log_is_likely(tmp_path: Path) -> None:
    """Its earlier ones may have been deleted; those of a producer that has some there were not."""
    batches = sequence(200)
    builder = RecordsBuilder(producer_id=8, producer_epoch=0, base_sequence=5)
    builder.append(600, START, b"k", b"click")
    first = bytes(builder.build())
    misplaced = (603).to_bytes(8, "big") + batches[50][8:]
    write_segments(tmp_path / "one", "a", {600: [first, misplaced]})
    write_segments(tmp_path / "one", "b", {0: batches})
    (one,) = places(magicbyte.audit(tmp_path / "one")).values()
    assert (one["strength"], one["evidence"]) == ("likely", ["same_crc", "out_of_sequence"])
    own = (603).to_bytes(8, "big") + batches[9][8:]
    misplaced = (606).to_bytes(8, "big") + batches[50][8:]
    write_segments(tmp_path / "two", "a", {600: [first, own, misplaced]})
    write_segments(tmp_path / "two", "b", {0: batches})
    found = places(magicbyte.audit(tmp_path / "two"))
    strengths = {place: one["strength"] for place, one in found.items()}
    assert strengths == {("a", 0, 603, 605): "likely", ("a", 0, 606, 608): "proven"}


def reproduced(target: Topic, source: Topic, share: int, *, producer_id: int, keeps_times: bool) -> None:
    """Produces every nth batch of a topic again, as consumers of retries and mirrors do."""
    builder = RecordsBuilder(
        producer_id=producer_id,
        producer_epoch=0 if producer_id >= 0 else -1,
        base_sequence=0 if producer_id >= 0 else -1,
    )
    for log in source.logs:
        for number, batch in enumerate(magicbyte.read_batches(bytes(log))):
            if number % share == 0:
                for index, record in enumerate(batch):
                    time = record.timestamp if keeps_times else START + number
                    builder.append(index, time, record.key_bytes, record.value_bytes)
                target.append(0, builder.build(), START)


@pytest.mark.parametrize("share", [1, 2, 9])
@pytest.mark.parametrize("mirror", ["bytes", "times", "anew", "idempotent"])
def test_topics_that_share_data_are_reported_as_such(mirror: str, share: int, tmp_path: Path) -> None:
    source, mirrored = orders(), Topic("orders-retry", lambda number: b"", partitions=1)
    cluster = Cluster([source], [Producer(), Producer(5)]).produce(400)
    if mirror == "bytes":
        copy_into(mirrored, source, share)
    else:
        times = mirror != "anew"
        producer_id = 99 if mirror == "idempotent" else -1
        reproduced(mirrored, source, share, producer_id=producer_id, keeps_times=times)
    cluster.topics.append(mirrored)
    report = magicbyte.audit(cluster.write(tmp_path))
    assert report["misrouted_count"] == 0
    shared = {tuple(one["topics"]): one["batches"] for one in report["sharing"]}
    # Whoever produces records anew, writes other batches.
    assert shared.keys() <= {(ORDERS, "orders-retry")}
    assert bool(shared) == (mirror in ("bytes", "times"))


def test_a_batch_of_a_mirrored_topic_is_found_in_a_third(tmp_path: Path) -> None:
    source, mirrored = orders(), Topic("orders-mirror", lambda number: b"", partitions=1)
    cluster = Cluster([source, clicks()], [Producer(7), Producer(8)])
    cluster.produce(300, misrouted=4, topic=source, producer=cluster.producers[0], into=cluster.topics[1])
    cluster.produce(300, topic=cluster.topics[1], producer=cluster.producers[1])
    copy_into(mirrored, source, 1)
    cluster.topics.append(mirrored)
    report = magicbyte.audit(cluster.write(tmp_path))
    assert places(report, "proven").keys() == cluster.planted.keys()
    assert report["misrouted_count"] == 4
    assert [one["topics"] for one in report["sharing"]] == [(ORDERS, "orders-mirror")]


def test_records_that_recur_are_no_copies(tmp_path: Path) -> None:
    beats = [
        Topic(
            name,
            lambda number: b"ping",
            AppendConfig(message_timestamp_type=APPEND_TIME, compression=Compression.LZ4),
        )
        for name in ("a", "b")
    ]
    builder = RecordsBuilder()
    for number in range(400):
        builder.append(0, START, None, b"ping")
        beats[number % 2].append(0, builder.build(), START + number * 10)
    report = magicbyte.audit(Cluster(beats, []).write(tmp_path))
    assert report["misrouted_count"] == 0


@pytest.fixture
def planted(tmp_path: Path) -> tuple[Path, Cluster]:
    cluster = Cluster([orders(), clicks(**CONFIGS["both"])], [Producer(7), Producer(8, "lz4")])
    cluster.produce(400, misrouted=6)
    return cluster.write(tmp_path / "logs"), cluster


def test_what_was_found_can_be_redacted(
    planted: tuple[Path, Cluster], tmp_path: Path, cli: Callable[..., Any]
) -> None:
    logs, cluster = planted
    found, out = tmp_path / "found.json", tmp_path / "out"
    cli("audit", "--misrouted", "--offsets-out", found, logs, code=1)
    cli("redact", "--offsets", found, logs, out)
    assert cli("audit", "--misrouted", out, code=0).endswith("none is misrouted\n")
    for topic in cluster.topics:
        for partition in range(topic.partitions):
            before = {record.offset for record in PartitionLog(logs / f"{topic.name}-{partition}").records()}
            after = {record.offset for record in PartitionLog(out / f"{topic.name}-{partition}").records()}
            own = [place for place in cluster.planted if place[:2] == (topic.name, partition)]
            assert before - after == {
                offset for _, _, first, last in own for offset in range(first, last + 1)
            }


def test_the_preview_counts_what_is_redacted(
    planted: tuple[Path, Cluster], tmp_path: Path, cli: Callable[..., Any]
) -> None:
    logs, cluster = planted
    found = tmp_path / "found.json"
    magicbyte.audit(logs, offsets_out=found)
    preview = json.loads(cli("redact", "--json", "--dry-run", "--offsets", found, logs))
    assert preview["redacted"] == sum(last - first + 1 for _, _, first, last in cluster.planted)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        '{"version": 2, "partitions": []}',
        '{"version": 1, "partitions": [{"topic": 1, "partition": 0, "ranges": []}]}',
        '{"version": 1, "partitions": [{"topic": "a", "partition": 0, "ranges": [[1]]}]}',
        '{"version": 1, "partitions": [{"topic": "a", "partition": 0, "ranges": [[2, 1]]}]}',
        '{"version": 1, "partitions": [{"topic": "a", "partition": 0, "ranges": [[-1, 1]]}]}',
        '{"version": 1, "partitions": [{"topic": "a", "partition": 0, "ranges": [[0, 1e400]]}]}',
        '{"version": 1, "partitions": [{"topic": "a", "partition": 0.5, "ranges": [[0, 1]]}]}',
        "[" * 100_000,
    ],
)
def test_files_that_are_no_offsets_are_refused(
    text: str, planted: tuple[Path, Cluster], tmp_path: Path, cli: Callable[..., Any]
) -> None:
    with pytest.raises(RefusedError):
        parse_offsets(text)
    (tmp_path / "bad.json").write_text(text)
    cli("redact", "--offsets", tmp_path / "bad.json", planted[0], tmp_path / "out", code=2)


def test_offsets_of_partitions_that_are_not_read_are_refused(
    planted: tuple[Path, Cluster], tmp_path: Path
) -> None:
    with pytest.raises(RefusedError, match="offsets of payments-3, which is not among the partitions read"):
        magicbyte.redact(planted[0], tmp_path / "out", offsets={("payments", 3): [(0, 1)]})
    with pytest.raises(RefusedError, match="nothing is selected"):
        magicbyte.redact(planted[0], tmp_path / "out")


@pytest.mark.parametrize("count", [0, 1, 64, 65, 5_000])
def test_many_ranges_take_one_pass(count: int) -> None:
    ranges = [(3 * number, 3 * number + 1) for number in range(count)]
    offsets = pa.array([7, 0, *range(60_000), 2, 1 << 40], pa.int64())
    begun = process_time()
    found = offsets_in(offsets, ranges).to_pylist()
    assert process_time() - begun < 2
    assert found == [offset < 3 * count and offset % 3 < 2 for offset in offsets.to_pylist()]


def test_overlapping_ranges_are_redacted_once(planted: tuple[Path, Cluster], tmp_path: Path) -> None:
    ranges = [(5, 9), (0, 2), (7, 12), (3, 3), (1 << 40, 1 << 41)]
    report = magicbyte.redact(planted[0], tmp_path / "out", offsets={(ORDERS, 0): ranges})
    (partition,) = [one for one in report["written"] if (one["topic"], one["partition"]) == (ORDERS, 0)]
    assert partition["redacted"][0]["ranges"] == [[0, 3], [5, 12]]
    assert report["options"]["offsets"] == 3


def test_the_table_and_the_exit_codes(
    planted: tuple[Path, Cluster], tmp_path: Path, cli: Callable[..., Any]
) -> None:
    logs, cluster = planted
    text = cli("audit", "--misrouted", logs, code=1)
    for topic, partition, first, last in cluster.planted:
        assert any(
            line.split()[:3] == [f"{topic}-{partition}", str(first), str(last)] for line in text.splitlines()
        )
    assert "406 batches in 4 partitions of 2 topics: 6 misrouted" in text
    document = json.loads(cli("audit", "--misrouted", "--json", logs, code=1))
    assert document == json.loads(json.dumps(magicbyte.audit(logs)))
    shutil.rmtree(logs / "clicks-0")
    shutil.rmtree(logs / "clicks-1")
    assert "none is misrouted" in cli("audit", "--misrouted", "--topic", ORDERS, "--partition", "0", logs)
    cli("audit", logs, code=2)
    cli("audit", "--misrouted", tmp_path / "none", code=2)


def test_copies_of_a_partition_need_a_choice(planted: tuple[Path, Cluster], tmp_path: Path) -> None:
    logs, cluster = planted
    shutil.copytree(logs, tmp_path / "broker2")
    with pytest.raises(RefusedError):
        magicbyte.audit([logs, tmp_path / "broker2"])
    choice = magicbyte.PartitionChoice(prefer=(str(logs),))
    report = magicbyte.audit([logs, tmp_path / "broker2"], choice=choice)
    assert places(report).keys() == cluster.planted.keys()


def test_topics_in_several_directories(planted: tuple[Path, Cluster], tmp_path: Path) -> None:
    logs, cluster = planted
    other = tmp_path / "disk2"
    other.mkdir()
    shutil.move(logs / "clicks-0", other / "clicks-0")
    assert places(magicbyte.audit([logs, other])).keys() == cluster.planted.keys()


def test_damage_is_a_problem_and_hides_nothing_else(planted: tuple[Path, Cluster]) -> None:
    logs, cluster = planted
    path = logs / "orders-0" / f"{0:020}.log"
    data = bytearray(path.read_bytes())
    data[200:230] = b"\xff" * 30
    path.write_bytes(bytes(data))
    report = magicbyte.audit(logs)
    assert places(report).keys() == cluster.planted.keys()


def test_batches_before_the_start_of_the_log_are_not_audited(planted: tuple[Path, Cluster]) -> None:
    logs, cluster = planted
    ends = {
        (topic.name, partition): end for topic in cluster.topics for partition, end in enumerate(topic.ends)
    }
    lines = [f"{topic} {partition} {end // 2}" for (topic, partition), end in ends.items()]
    (logs / "log-start-offset-checkpoint").write_text("\n".join(["0", str(len(lines)), *lines, ""]))
    found = places(magicbyte.audit(logs))
    left = {place for place in cluster.planted if place[3] >= ends[place[:2]] // 2}
    assert found.keys() <= left
    for place, original in cluster.planted.items():
        if place in left and original[3] >= ends[original[:2]] // 2:
            assert place in found


def test_headers_of_batches_are_those_of_the_batches(planted: tuple[Path, Cluster]) -> None:
    listing = json.loads(_core.list_partition(str(planted[0] / "orders-1")))
    (segment,) = map(json.dumps, listing["segments"])
    headers = _core.BatchHeaders(segment)
    assert headers.survey() is None
    rows = [row for batch in headers for row in pa.record_batch(batch).to_pylist()]
    assert headers.survey() == _core.survey_segment(segment)
    batches = list(magicbyte.read_batches((planted[0] / "orders-1" / f"{0:020}.log").read_bytes()))
    assert len(rows) == len(batches) > 50
    last: dict[int, tuple[int, int]] = {}
    for row, batch in zip(rows, batches, strict=True):
        assert (row["position"], row["size"], row["crc"]) == (batch.position, batch.size_in_bytes, batch.crc)
        assert (row["baseOffset"], row["lastOffset"]) == (batch.base_offset, batch.last_offset)
        assert (row["producerId"], row["baseSequence"]) == (batch.producer_id, batch.base_sequence)
        assert row["nextSequence"] == batch.last_sequence + 1
        follows = last.get(batch.producer_id, (0, -1))[1] == batch.base_sequence
        assert row["follows"] == follows
        last[batch.producer_id] = (row["position"], row["nextSequence"])
    followed = [row["followed"] for row in rows if row["producerId"] == 7]
    follows = [row["follows"] for row in rows if row["producerId"] == 7]
    assert followed == [*follows[1:], False]


def test_digests_are_of_the_contents_alone(tmp_path: Path) -> None:
    records = [(n, START + n, b"k", b"v%d" % n) for n in range(3)]
    variants = [RecordsBuilder(), RecordsBuilder(compression="zstd"), RecordsBuilder(log_append_time=5)]
    variants.append(RecordsBuilder(producer_id=3, producer_epoch=0, base_sequence=9))
    data, positions = b"", []
    for number, builder in enumerate(variants):
        for offset, time, key, value in records:
            builder.append(number * 3 + offset, time, key, value)
        positions.append(len(data))
        data += builder.build()
    other = RecordsBuilder()
    other.append(12, START, b"k", b"v0v1v2")
    positions.append(len(data))
    data += other.build()
    (tmp_path / "t-0").mkdir()
    (tmp_path / "t-0" / f"{0:020}.log").write_bytes(data)
    (segment,) = map(json.dumps, json.loads(_core.list_partition(str(tmp_path / "t-0")))["segments"])
    *same, different = _core.digest_contents(segment, positions)
    assert len(set(same)) == 1
    assert different not in same
    assert None not in same
    assert _core.digest_contents(segment, [1, len(data), 1 << 60]) == [None, None, None]
    assert _core.digest_contents(segment, positions[1:2], max_decompressed_bytes=1) == [None]
    (tmp_path / "t-0" / f"{0:020}.log").unlink()
    assert _core.digest_contents(segment, positions[:1]) == [None]


@pytest.mark.parametrize("framing", ["value", "header"])
def test_schema_ids_of_another_topic(framing: str, tmp_path: Path) -> None:
    """Without a copy and without a producer id, only the id tells."""

    def topic(name: str, schema: int) -> Topic:
        prefix = b"\0" + schema.to_bytes(4, "big")
        if framing == "header":
            return Topic(name, lambda number: b"%d" % number, headers={"__value_schema_id": prefix})
        return Topic(name, lambda number: prefix + b"%d" % number)

    cluster = Cluster([topic("a", 7), topic("b", 8)], [Producer()])
    cluster.produce(2_000, misrouted=3, loses_original=True)
    logs = cluster.write(tmp_path)
    assert magicbyte.audit(logs)["misrouted_count"] == 0
    found = places(magicbyte.audit(logs, schema_ids=True), "possible")
    assert found.keys() == cluster.planted.keys()
    assert {tuple(one["evidence"]) for one in found.values()} == {("schema_of_other_topic",)}
    assert {one["belongs_to"] for one in found.values()} == {None}


def registered(directory: Path, names: dict[str, int], aliases: dict[str, str]) -> str:
    """A directory of a registry with these subjects, each with one version, and the ids of their schemas."""
    registry = StoredRegistry()
    for subject, number in names.items():
        schema = Schema("AVRO", json.dumps({"type": "fixed", "name": f"f{number}", "size": number}))
        registry.put(SubjectVersion(subject, 1, number, schema))
    registry.aliases.update(aliases)
    index, files = files_of(registry)
    directory.mkdir()
    for name, text in {INDEX: json.dumps(index), **files}.items():
        (directory / name).write_text(text)
    return str(directory)


OWN = {"a-value": 7, "b-value": 8}


@pytest.mark.parametrize(
    ("names", "aliases", "strength"),
    [
        (OWN, {}, "likely"),
        ({f":.cluster:{name}": number for name, number in OWN.items()}, {}, "likely"),
        ({"a-com.acme.Order": 7, "a-value": 9, "b-value": 8}, {}, "likely"),
        # Both topics have both schemas, by a version, a strategy or an alias.
        ({**OWN, "a-com.acme.Order": 8, "b-com.acme.Order": 7}, {}, "possible"),
        (
            {"a-value": 9, "b-value": 10, "c-value": 7, "d-value": 8},
            {"a-x": "d-value", "b-x": "c-value"},
            "possible",
        ),
        # The names of subjects are those of records, or the topics have none.
        ({"com.acme.Order": 7, "com.acme.Click": 8}, {}, "possible"),
        ({"c-value": 7, "d-value": 8}, {}, "possible"),
        ({"a-key": 7, "b-key": 8, "a-value": 9, "b-value": 10}, {}, "possible"),
        ({"a-value": 9, "b-value": 10}, {}, "possible"),
    ],
)
def test_schemas_of_subjects_of_other_topics(
    names: dict[str, int], aliases: dict[str, str], strength: str, tmp_path: Path
) -> None:
    topics = [
        Topic(name, lambda number, id=id: b"\0" + id.to_bytes(4, "big") + b"%d" % number)  # type: ignore[misc]
        for name, id in (("a", 7), ("b", 8))
    ]
    cluster = Cluster(topics, [Producer()])
    cluster.produce(2_000, misrouted=3, loses_original=True)
    logs, registry = cluster.write(tmp_path / "logs"), registered(tmp_path / "registry", names, aliases)
    report = magicbyte.audit(logs, schema_registry=registry)
    assert places(report, strength).keys() == cluster.planted.keys()
    assert report["misrouted_count"] == len(cluster.planted)


@pytest.mark.parametrize("share", [5, 50])
def test_a_topic_that_keeps_values_of_others_is_not_listed(share: int, tmp_path: Path) -> None:
    """It has a tenth of them or more, such as a topic for retries that also has a schema of its own."""
    own = Topic("retries", lambda number: b"\0\0\0\0" + (b"\7" if number % 100 < share else b"\x09"))
    cluster = Cluster([own], [Producer()]).produce(400)
    registry = registered(tmp_path / "registry", {"a-value": 7, "retries-value": 9}, {})
    report = magicbyte.audit(cluster.write(tmp_path / "logs"), schema_registry=registry)
    assert bool(report["misrouted_count"]) == (share < 10)


def test_settings_of_no_registry_are_refused(tmp_path: Path, cli: Any) -> None:
    logs = Cluster([orders()], [Producer()]).produce(2).write(tmp_path / "logs")
    settings = tmp_path / "registry.properties"
    settings.write_text("basic.auth.user.info=a:b\n")
    cli("audit", "--misrouted", "--registry-config", settings, logs, code=2)
    assert "--registry-config needs --schema-registry" in cli.error
    cli("audit", "--misrouted", "--schema-registry", logs, logs, code=2)
    assert "no partition of _schemas" in cli.error


ROOT = Path(__file__).parents[2]
MEASURED = """
import resource, sys, magicbyte
def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
magicbyte.audit(sys.argv[3])
before = peak()
report = magicbyte.audit(sys.argv[1], memory_limit=64 << 20, threads=2, temp_directory=sys.argv[2])
print(report["batches"], report["misrouted_count"], peak() - before)
"""


def test_memory_is_bounded(tmp_path: Path) -> None:
    """1,000,000 headers take 70 MiB, and their hash tables as much: without a limit 123 MiB are added."""
    builder = RecordsBuilder(producer_id=1, producer_epoch=0, base_sequence=0)
    builder.append(0, START, b"k", b"v")
    batch, topics, each = bytearray(builder.build()), 20, 50_000
    for topic in range(topics):
        log = bytearray()
        for number in range(each):
            struct.pack_into(">q", batch, 0, number)
            struct.pack_into(">qq", batch, 27, START + number, START + number)
            struct.pack_into(">qhi", batch, 43, 1000 + topic, 0, number)
            struct.pack_into(">I", batch, 17, magicbyte.crc32c(batch[21:]))
            log += batch
        (tmp_path / "logs" / f"t{topic}-0").mkdir(parents=True)
        (tmp_path / "logs" / f"t{topic}-0" / f"{0:020}.log").write_bytes(log)
    (tmp_path / "temporary").mkdir()
    paths = (tmp_path / "logs", tmp_path / "temporary", ROOT / "samples")
    command = [sys.executable, "-c", MEASURED, *map(str, paths)]
    batches, misrouted, growth = map(int, subprocess.check_output(command, text=True).split())
    assert (batches, misrouted) == (topics * each, 0)
    assert growth < 96
    assert list((tmp_path / "temporary").iterdir()) == []


def test_bad_options_are_refused(planted: tuple[Path, Cluster], tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="memory_limit"):
        magicbyte.audit(planted[0], memory_limit=1)
    with pytest.raises(RefusedError, match="no such"):
        magicbyte.audit(planted[0], temp_directory=str(tmp_path / "none"))
    with pytest.raises(RefusedError, match="none does not exist"):
        magicbyte.audit(planted[0], offsets_out=tmp_path / "none" / "found.json")


def test_logs_in_a_store(planted: tuple[Path, Cluster]) -> None:
    logs, cluster = planted
    memory = fsspec.filesystem("memory")
    for file in logs.rglob("*.log"):
        memory.pipe_file(f"/audit/{file.parent.name}/{file.name}", file.read_bytes())
    try:
        assert places(magicbyte.audit("memory://audit")).keys() == cluster.planted.keys()
    finally:
        memory.rm("/audit", recursive=True)


@pytest.mark.parametrize("change", ["removed", "emptied", "overwritten"])
def test_files_that_change_after_the_scan_lose_their_findings(
    change: str, planted: tuple[Path, Cluster], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A broker deletes segments whenever it likes."""
    logs, cluster = planted
    path = logs / "orders-0" / f"{0:020}.log"

    def after_a_change(*arguments: Any) -> int:
        if change == "removed":
            path.unlink()
        else:
            path.write_bytes(b"" if change == "emptied" else bytes(path.stat().st_size))
        return find_copies(*arguments)

    monkeypatch.setattr(job, "find_copies", after_a_change)
    report = magicbyte.audit(logs)
    found = places(report)
    gone = ("orders", 0)
    left = {place for place, of in cluster.planted.items() if gone not in (place[:2], of[:2])}
    assert found.keys() == left != cluster.planted.keys()
    assert {(one["kind"], one["segment"]) for one in report["problems"]} == {("not_compared", path.name)}


@pytest.mark.parametrize("cause", ["damage", "limit"])
def test_batches_that_cannot_be_compared_are_problems(
    cause: str, planted: tuple[Path, Cluster], cli: Callable[..., Any]
) -> None:
    """Nothing says then that none is misrouted."""
    logs, cluster = planted
    options = ["--max-decompressed-bytes", "10"] if cause == "limit" else []
    for topic, partition, first, _ in cluster.planted if cause == "damage" else ():
        path = logs / f"{topic}-{partition}" / f"{0:020}.log"
        data, position = bytearray(path.read_bytes()), 0
        for batch in magicbyte.read_batches(bytes(data)):
            position += batch.size_in_bytes
            if batch.base_offset == first:
                data[position - 1] ^= 1
        path.write_bytes(data)
    cli("audit", "--misrouted", *options, logs, code=1)
    report = json.loads(cli("audit", "--misrouted", *options, "--json", logs, code=1))
    found = [one for one in report["problems"] if one["kind"] == "not_compared"]
    named = {(one["topic"], one["partition"], one["base_offset"]) for one in found}
    assert named >= {place[:3] for place in cluster.planted}
    assert report["misrouted_count"] == 0


def test_records_that_do_not_decode_are_problems_of_the_search_for_schemas(
    planted: tuple[Path, Cluster],
) -> None:
    """Their schemas are unknown. Headers alone do not show it."""
    logs, _ = planted
    path = logs / "orders-0" / f"{0:020}.log"
    path.write_bytes(path.read_bytes()[:-1] + b"\xee")
    assert "crc_mismatch" not in [one["kind"] for one in magicbyte.audit(logs)["problems"]]
    (found,) = (
        one for one in magicbyte.audit(logs, schema_ids=True)["problems"] if one["kind"] == "crc_mismatch"
    )
    assert (found["topic"], found["partition"], found["segment"]) == ("orders", 0, path.name)
