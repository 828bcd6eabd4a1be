"""The positions of share groups and streams groups, compared with those that a real broker has."""

from __future__ import annotations

import random
import re
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import magicbyte
import pytest
from broker_versions import Node
from kafka_broker import Tools, java
from kafka_versions import JUDGES, NEWEST
from magicbyte.internal_topics.share_groups import DELIVERY_STATES
from magicbyte.message import decode_response, encode_request
from raw_client import RawClient

pytestmark = pytest.mark.interop

SETTINGS = """share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
share.coordinator.state.topic.num.partitions=3
share.coordinator.snapshot.update.records.per.snapshot=7
group.initial.rebalance.delay.ms=0
"""
PARTITIONS = 3
RECORDS = 40
KEPT = ("--config", "retention.ms=-1")
"""The records are of 1970, and a broker deletes old ones half a minute after its start."""
REJECTED = 7
FAILED = "failed"
"""The dead-letter queue of a connector."""
SECONDS = 120
DEAD = "dlq.orders"
"""The dead-letter queue, which only the newest version has; the brokers choose the prefix."""


class Client:
    """A connection that sends the messages of brokers, too."""

    def __init__(self, port: int) -> None:
        self._raw = RawClient(port)
        self._last = 0

    def ask(self, api: str, version: int, body: dict[str, Any]) -> Any:
        self._last += 1
        frame = encode_request(api, version, body, header={"correlationId": self._last, "clientId": "test"})
        return decode_response(self._raw.exchange(frame), api, version).body  # type: ignore[call-overload]

    def ready(self, api: str, version: int, body: dict[str, Any]) -> Any:
        """The answer, once the coordinator is ready."""
        deadline = time.monotonic() + SECONDS
        while True:
            answer = self.ask(api, version, body)
            if not re.search(r"'errorCode': (3|14|15|16)\b", str(answer)):
                assert not re.search(r"'errorCode': [^0]", str(answer)), answer
                return answer
            assert time.monotonic() < deadline, answer
            time.sleep(0.1)

    def close(self) -> None:
        self._raw.close()


@dataclass
class Judge:
    """A killed broker's log directory, and what the broker had said."""

    version: str
    logs: Path
    offsets: dict[tuple[str, str, int], tuple[str, str, str]]
    """Leader epoch, start offset and lag by group, topic and partition, as `kafka-share-groups.sh` prints."""
    states: dict[int, tuple[Any, Any]]
    """The summary and the state of each partition of the group `written`."""
    types: dict[str, str] = field(default_factory=dict)


@pytest.fixture(scope="module", params=JUDGES)
def judge(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Judge]:
    """A broker is used by consumers of every kind, asked, and killed."""
    version = request.param
    node, tools = Node(tmp_path_factory.mktemp("share"), version, SETTINGS), Tools()
    client = Client(node.port)

    def run(name: str, *arguments: str) -> list[str]:
        return tools.run(name, "--bootstrap-server", node.bootstrap, *arguments)

    try:
        topic_id = prepare(run, client, version)
        consume(run)
        fail_in_connect(run, node.bootstrap, tmp_path_factory.mktemp("connect"), version)
        if version == NEWEST:
            # A broker writes them after it has answered the consumer.
            wait_for(run, DEAD, REJECTED)
        write_states(client, topic_id)
        join_streams(client)
        states = read_states(client, topic_id)
        said = offsets_of(run("kafka-share-groups", "--describe", "--all-groups", "--offsets", "--verbose"))
        types = {line.split()[0]: line.split()[1].lower() for line in run("kafka-groups", "--list")[1:]}
        client.close()
        node.kill()
        copy = tmp_path_factory.mktemp("copy") / "logs"
        shutil.copytree(node.logs, copy)
        yield Judge(version, copy, said, states, types)
    finally:
        tools.close()
        node.close()


def prepare(run: Callable[..., list[str]], client: Client, version: str) -> str:
    """Creates the topics and their records; returns the ID of `orders`."""
    for topic in ("orders", "unread"):
        run("kafka-topics", "--create", "--topic", topic, "--partitions", str(PARTITIONS), *KEPT)
    configs = "share.auto.offset.reset=earliest"
    if version == NEWEST:
        run("kafka-features", "upgrade", "--feature", "share.version=2")
        enable = "errors.deadletterqueue.group.enable=true"
        run("kafka-topics", "--create", "--topic", DEAD, "--config", enable)
        configs += f",errors.deadletterqueue.topic.name={DEAD},errors.deadletterqueue.copy.record.enable=true"
    run(
        "kafka-configs",
        "--alter",
        "--entity-type",
        "groups",
        "--entity-name",
        "sharing",
        "--add-config",
        configs,
    )
    for partition in range(PARTITIONS):
        builder = magicbyte.RecordsBuilder()
        for offset in range(RECORDS):
            builder.append(offset, 1, b"%d" % offset, b"value %d of %d" % (offset, partition))
        data = {"index": partition, "records": bytes(builder.build())}
        topics = [{"name": "orders", "partitionData": [data]}]
        client.ready("Produce", 9, {"acks": -1, "timeoutMs": 30000, "topicData": topics})
    described = run("kafka-topics", "--describe", "--topic", "orders")
    found = re.search(r"TopicId: (\S+)", "\n".join(described))
    assert found is not None
    return found[1]


def wait_for(run: Callable[..., list[str]], topic: str, records: int) -> None:
    """Waits for the records of a topic's partition 0."""
    deadline = time.monotonic() + SECONDS
    while int(run("kafka-get-offsets", "--topic", topic)[0].split(":")[2]) < records:
        assert time.monotonic() < deadline, f"{topic} has fewer than {records} records"
        time.sleep(0.1)


def fail_in_connect(run: Callable[..., list[str]], bootstrap: str, root: Path, version: str) -> None:
    """A sink connector whose converter takes none of the values."""
    run("kafka-topics", "--create", "--topic", FAILED, *KEPT)
    worker, sink = root / "worker.properties", root / "sink.properties"
    converter = "org.apache.kafka.connect.storage.StringConverter"
    worker.write_text(
        f"bootstrap.servers={bootstrap}\nkey.converter={converter}\nvalue.converter={converter}\n"
        f"offset.storage.file.filename={root / 'offsets'}\nlisteners=http://127.0.0.1:0\n"
        "plugin.discovery=only_scan\n"
    )
    sink.write_text(
        "name=sink\nconnector.class=Sink\ntopics=orders\n"
        "value.converter=org.apache.kafka.connect.json.JsonConverter\nerrors.tolerance=all\n"
        f"errors.deadletterqueue.topic.name={FAILED}\nerrors.deadletterqueue.topic.replication.factor=1\n"
        "errors.deadletterqueue.context.headers.enable=true\n"
    )
    standalone = ("org.apache.kafka.connect.cli.ConnectStandalone", str(worker), str(sink))
    command = java(*standalone, log_level="info", version=version)
    with (root / "output").open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT)
    try:
        wait_for(run, FAILED, PARTITIONS * RECORDS)
    except AssertionError:
        raise RuntimeError((root / "output").read_text()[-2000:]) from None
    finally:
        process.kill()
        process.wait(60)


def consume(run: Callable[..., list[str]]) -> None:
    """A share group acknowledges some records, rejects some, and releases some."""
    for number, how in ((50, []), (REJECTED, ["--reject"]), (5, ["--release"])):
        limits = ("--max-messages", str(number), "--timeout-ms", "30000")
        run("kafka-console-share-consumer", "--topic", "orders", "--group", "sharing", *limits, *how)
    describe = ("--describe", "--group", "idle", "--offsets")
    deadline = time.monotonic() + SECONDS
    while True:
        run("kafka-console-share-consumer", "--topic", "unread", "--group", "idle", "--timeout-ms", "2000")
        if any("unread" in line for line in run("kafka-share-groups", *describe)):
            break
        assert time.monotonic() < deadline, "the group has no partitions"


def write_states(client: Client, topic_id: str) -> None:
    """Writes random states as a partition's leader does: enough for snapshots, with updates after them."""
    chance = random.Random(1)

    def topics(**fields: Any) -> list[dict[str, Any]]:
        return [{"topicId": topic_id, "partitions": [fields]}]

    for partition in range(PARTITIONS):
        body = {"groupId": "written", "topics": topics(partition=partition, stateEpoch=2, startOffset=0)}
        client.ready("InitializeShareGroupState", 0, body)
        start = 0
        for _ in range(10 + 9 * partition):
            start += chance.randrange(3)
            batches = []
            for _ in range(chance.randrange(1, 4)):
                first = start + chance.randrange(30)
                batches.append(
                    {
                        "firstOffset": first,
                        "lastOffset": first + chance.randrange(6),
                        "deliveryState": chance.choice((0, 2, 4)),
                        "deliveryCount": chance.randrange(1, 4),
                    }
                )
            state = topics(
                partition=partition,
                stateEpoch=2,
                leaderEpoch=0,
                startOffset=start if chance.random() < 0.7 else -1,
                deliveryCompleteCount=chance.randrange(5),
                stateBatches=batches,
            )
            client.ready("WriteShareGroupState", 1, {"groupId": "written", "topics": state})


def read_states(client: Client, topic_id: str) -> dict[int, tuple[Any, Any]]:
    """The broker's summary and state of each partition."""

    def ask(api: str, version: int, partition: int) -> Any:
        topics = [{"topicId": topic_id, "partitions": [{"partition": partition, "leaderEpoch": 0}]}]
        answer = client.ready(api, version, {"groupId": "written", "topics": topics})
        return answer["results"][0]["partitions"][0]

    return {
        partition: (ask("ReadShareGroupStateSummary", 1, partition), ask("ReadShareGroupState", 0, partition))
        for partition in range(PARTITIONS)
    }


def join_streams(client: Client) -> None:
    """A member of a streams group joins and commits, as Kafka Streams does."""
    heartbeat = {
        "groupId": "streaming",
        "memberId": "member-1",
        "memberEpoch": 0,
        "rebalanceTimeoutMs": 60000,
        "processId": "process-1",
        "activeTasks": [],
        "standbyTasks": [],
        "warmupTasks": [],
        "topology": {"epoch": 1, "subtopologies": [{"subtopologyId": "0", "sourceTopics": ["orders"]}]},
    }
    epoch = client.ready("StreamsGroupHeartbeat", 0, heartbeat)["memberEpoch"]
    partitions = [{"partitionIndex": 1, "committedOffset": 12, "committedMetadata": ""}]
    body = {
        "groupId": "streaming",
        "generationIdOrMemberEpoch": epoch,
        "memberId": "member-1",
        "topics": [{"name": "orders", "partitions": partitions}],
    }
    client.ready("OffsetCommit", 9, body)


def offsets_of(lines: list[str]) -> dict[tuple[str, str, int], tuple[str, str, str]]:
    rows = [line.split() for line in lines if line.strip() and not line.startswith("GROUP")]
    return {(row[0], row[1], int(row[2])): (row[3], row[4], row[5]) for row in rows if len(row) == 6}


@pytest.fixture(scope="module")
def report(judge: Judge) -> Any:
    return magicbyte.offsets(judge.logs)


def shown(value: int | None) -> str:
    return "-" if value is None else str(value)


def test_nothing_is_wrong(report: Any) -> None:
    assert report["problems"] == []
    assert {row["state_log"] for row in report["share_offsets"]} == {"whole"}
    assert [row for row in report["share_offsets"] if row["out_of_range"] or row["lost_ahead"]] == []


def test_offsets_are_those_of_kafka_share_groups(judge: Judge, report: Any) -> None:
    assert {place[:2] for place in judge.offsets} == {("sharing", "orders"), ("idle", "unread")}
    found = {
        (row["group"], row["topic"], row["partition"]): tuple(
            shown(row[name]) for name in ("leader_epoch", "start_offset", "lag")
        )
        for row in report["share_offsets"]
        if row["group"] != "written"
    }
    # The tool shows nothing of a partition that has not been read.
    found = {at: ("-", *row[1:]) if row[1] == "-" else row for at, row in found.items()}
    assert found == judge.offsets


def test_states_are_those_of_the_coordinator(judge: Judge, report: Any) -> None:
    """The batches that a leader reads when it begins to lead."""
    ids = {name: number for number, name in DELIVERY_STATES.items()}
    rows = {row["partition"]: row for row in report["share_offsets"] if row["group"] == "written"}
    assert rows.keys() == judge.states.keys()
    for partition, (summary, state) in judge.states.items():
        row = rows[partition]
        assert (row["start_offset"], row["leader_epoch"]) == (summary["startOffset"], summary["leaderEpoch"])
        assert row["state_epoch"] == summary["stateEpoch"] == state["stateEpoch"] == 2
        assert row["delivery_complete_count"] == summary["deliveryCompleteCount"]
        batches = [{**one, "delivery_state": ids[one["delivery_state"]]} for one in row["state_batches"]]
        assert each_offset(batches, "{0}_offset", "delivery_{0}") == each_offset(
            state["stateBatches"], "{0}Offset", "delivery{0}"
        )
        assert len(batches) > 1


def each_offset(batches: list[dict[str, Any]], offset: str, delivery: str) -> dict[int, tuple[int, int]]:
    """State and count of each offset: until 4.4, a broker could keep neighbours apart that are equal."""
    names = [delivery.format(one) for one in (("state", "count") if "_" in delivery else ("State", "Count"))]
    return {
        number: (batch[names[0]], batch[names[1]])
        for batch in batches
        for number in range(batch[offset.format("first")], batch[offset.format("last")] + 1)
    }


def test_types_of_groups(judge: Judge, report: Any) -> None:
    types = {group["group"]: group["type"] for group in report["groups"]}
    assert types == judge.types
    assert types["streaming"] == "streams"
    (committed,) = (row for row in report["offsets"] if row["group"] == "streaming")
    assert (committed["topic"], committed["partition"], committed["offset"]) == ("orders", 1, 12)
    assert committed["lag"] == RECORDS - 12


def test_the_cluster_has_the_same_positions(judge: Judge, report: Any) -> None:
    cluster = magicbyte.cluster(judge.logs)
    assert cluster["problems"] == []
    found = {
        (group["group"], one["topic"], one["partition"]): (one["offset"], one["lag"], one["share_state"])
        for group in cluster["groups"]
        for one in group["positions"]
        if one["share_state"] is not None
    }
    rows = [row for row in report["share_offsets"] if row["start_offset"] is not None]
    assert {place: value[:2] for place, value in found.items()} == {
        (row["group"], row["topic"], row["partition"]): (row["start_offset"], row["lag"]) for row in rows
    }
    for row in rows:
        state = found[row["group"], row["topic"], row["partition"]][2]
        assert state == {name: row[name] for name in state}


def dead_letters_of(judge: Judge, queue: str) -> Any:
    return magicbyte.dead_letters(judge.logs, choice=magicbyte.PartitionChoice(topics=(queue,)))


def test_dead_letters_of_a_connector(judge: Judge) -> None:
    report = dead_letters_of(judge, FAILED)
    assert report["counts"]["found"] == sum(report["counts"].values()) == PARTITIONS * RECORDS
    assert report["different"] == 0
    for one in report["dead_letters"]:
        assert (one["connector"], one["stage"], one["group"]) == ("sink", "VALUE_CONVERTER", None)
        assert "JsonConverter" in one["message"] or "Converting byte[]" in one["message"]
    places = {(one["source"]["partition"], one["source"]["offset"]) for one in report["dead_letters"]}
    assert places == {(partition, offset) for partition in range(PARTITIONS) for offset in range(RECORDS)}


def test_dead_letters_are_of_their_source_records(judge: Judge) -> None:
    if judge.version != NEWEST:
        pytest.skip("share groups have no dead-letter queues")
    report = dead_letters_of(judge, DEAD)
    assert report["counts"]["found"] == sum(report["counts"].values()) >= REJECTED
    for one in report["dead_letters"]:
        assert (one["topic"], one["group"]) == (DEAD, "sharing")
        assert (one["delivery_count"] > 0, one["message"]) == (True, "Offset rejected by client.")
        source = one["source"]
        assert (source["topic"], source["key"], source["value"]) == ("orders", "equal", "equal")


def test_damage_is_named(judge: Judge, report: Any, tmp_path: Path) -> None:
    """Each of the other partitions gives what it gave, and the damaged one names the positions it has."""
    rows = report["share_offsets"]
    at = next(row["state_partition"] for row in rows if row["start_offset"] is not None)
    damaged = tmp_path / "logs"
    shutil.copytree(judge.logs, damaged)
    (segment,) = (damaged / f"__share_group_state-{at}").glob("*.log")
    data = bytearray(segment.read_bytes())
    data[100:] = bytes(len(data) - 100)
    segment.write_bytes(data)
    again = magicbyte.offsets(damaged)
    assert {place(row): row["state_log"] for row in again["share_offsets"] if row["group"] != "written"} == {
        place(row): "damaged" if row["state_partition"] == at else "whole"
        for row in rows
        if row["group"] != "written"
    }
    whole = {place(row): row for row in rows if row["state_partition"] != at}
    assert {place(row): row for row in again["share_offsets"] if row["state_partition"] != at} == whole
    (named,) = (one for one in again["problems"] if one.startswith(f"__share_group_state-{at} is damaged"))
    for row in rows:
        if row["state_partition"] == at and row["group"] != "written":
            assert f"{row['group']}: {row['topic']}-{row['partition']}" in named
    # The same, if the directory is gone.
    shutil.rmtree(damaged / f"__share_group_state-{at}")
    gone = magicbyte.offsets(damaged)["share_offsets"]
    assert {row["state_partition"] for row in gone if row["state_log"] == "absent"} == {at}


def place(row: Any) -> tuple[str, str, int]:
    return row["group"], row["topic"], row["partition"]
