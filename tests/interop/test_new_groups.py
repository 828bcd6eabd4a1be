"""Consumers of the new group protocol (KIP-848) read through `magicbyte serve`, as through a real broker."""

from __future__ import annotations

import shutil
import struct
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import confluent_kafka
import magicbyte
import pytest
from broker_versions import Node
from confluent_kafka.admin import AdminClient, NewTopic
from consumers import (
    Record,
    by_confluent_rust,
    by_java,
    by_librdkafka,
    by_log,
    of_librdkafka,
    of_line,
)
from kafka_broker import BROKERS, JAVA, Tools, java
from kafka_versions import NEWEST
from magicbyte.jobs.serve import Server
from oracle import BUILT
from raw_client import RawClient, Reader

pytestmark = pytest.mark.interop

PARTITIONS = 6
SECONDS = 60


@pytest.fixture(scope="module")
def orders(kafka: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A topic of several partitions."""
    root = tmp_path_factory.mktemp("orders")
    for number, name in enumerate(("v2_none", "v2_gzip", "v2_lz4", "v2_zstd", "v2_snappy", "v2_headers")):
        shutil.copytree(kafka / name, root / f"orders-{number}")
        (root / f"orders-{number}" / "partition.metadata").unlink(missing_ok=True)
    return root


@pytest.fixture(scope="module")
def server(orders: Path) -> Iterator[Server]:
    with magicbyte.serve(orders) as server:
        yield server


@pytest.fixture(scope="module")
def wanted(orders: Path) -> dict[int, list[Record]]:
    """The records of each partition."""
    return {number: by_log(orders / f"orders-{number}", "read_uncommitted") for number in range(PARTITIONS)}


@pytest.mark.parametrize("version", ["4.3.1", "4.4.0"])
@pytest.mark.parametrize("how", ["classic", "consumer", "pattern"])
def test_java_members_join_and_leave(
    server: Server, wanted: dict[int, list[Record]], version: str, how: str
) -> None:
    """Three members read each record once, whatever the protocol is."""
    libraries = BUILT / f"lib-{version}"
    group, count = f"java-{version}-{how}", sum(map(len, wanted.values()))
    protocol = "classic" if how == "classic" else "consumer"
    pattern = [r"ord[e]rs|n\w+"] if how == "pattern" else []
    command = [
        *JAVA,
        "-cp",
        f"{BROKERS / NEWEST / 'classes.jar'}:{libraries}/*",
        "Members",
        server.bootstrap_servers,
        protocol,
    ]
    command += [group, "orders", str(PARTITIONS), str(count), *pattern]
    output = subprocess.run(command, check=True, capture_output=True, text=True, timeout=240).stdout
    lines = output.splitlines()
    assert lines[:5] == [*(f"members\t{members}" for members in (1, 2, 3, 2)), f"read\t{count}"]
    found: dict[int, list[Record]] = {}
    for line in lines[5:]:
        partition, _, record = line.partition("\t")
        found.setdefault(int(partition), []).append(of_line(record))
    assert found == wanted


@pytest.mark.parametrize("isolation", ["read_uncommitted", "read_committed"])
@pytest.mark.parametrize("client", ["librdkafka", "4.3.1", "4.4.0", "confluent-rust"])
def test_every_log_is_read_as_by_classic_consumers(kafka: Path, client: str, isolation: str) -> None:
    """All logs of real brokers, each as a topic."""
    wanted = {path.name: records for path in sorted(kafka.iterdir()) if (records := by_log(path, isolation))}
    group, count = f"{client}-{isolation}", sum(map(len, wanted.values()))
    with magicbyte.serve(kafka, to_magic_2=client == "confluent-rust") as archive:
        given = archive.bootstrap_servers, isolation, group
        if client == "librdkafka":
            found = by_librdkafka(*given, [*wanted], count, **{"group.protocol": "consumer"})
        elif client == "confluent-rust":
            found = by_confluent_rust(*given, [*wanted], count)
        else:
            lines = by_java(client, *given, wanted, properties=["group.protocol=consumer"])
            found = {topic: list(map(of_line, own)) for topic, own in lines.items()}
        assert found == wanted
        admin = AdminClient({"bootstrap.servers": archive.bootstrap_servers})
        groups = {one.group_id: one.type for one in admin.list_consumer_groups().result().valid}
    assert groups[group] == confluent_kafka.ConsumerGroupType.CONSUMER


def member_of(server: Server, group: str, **settings: Any) -> confluent_kafka.Consumer:
    return confluent_kafka.Consumer(
        {
            "bootstrap.servers": server.bootstrap_servers,
            "group.id": group,
            "group.protocol": "consumer",
            "auto.offset.reset": "earliest",
            "fetch.wait.max.ms": 50,
            "queued.min.messages": 1,
            **settings,
        }
    )


@pytest.mark.parametrize("topic", ["orders", "^ord.*"])
@pytest.mark.parametrize("assignor", ["uniform", "range"])
def test_librdkafka_members_join_and_leave(
    server: Server, wanted: dict[int, list[Record]], topic: str, assignor: str
) -> None:
    """Three members read each record once."""
    members: list[confluent_kafka.Consumer] = []
    found: dict[int, dict[int, Record]] = {}
    count, deadline = 0, time.monotonic() + 2 * SECONDS

    def poll() -> None:
        nonlocal count
        assert time.monotonic() < deadline, [len(one.assignment()) for one in members]
        for one in members:
            for message in one.consume(3, 0.05):
                assert message.error() is None, message.error()
                count += 1
                found.setdefault(message.partition(), {})[message.offset()] = of_librdkafka(message)

    def balance() -> None:
        share = PARTITIONS // len(members)
        while [len(one.assignment()) for one in members] != [share] * len(members):
            poll()

    group = f"librdkafka-{assignor}-{topic}"
    for _ in range(3):
        members.append(member_of(server, group, **{"group.remote.assignor": assignor}))
        members[-1].subscribe([topic])
        balance()
    members.pop(1).close()
    balance()
    while count < sum(map(len, wanted.values())):
        poll()
    for _ in range(20):
        poll()
    for one in members:
        one.close()
    in_order = {
        partition: [record for _, record in sorted(records.items())] for partition, records in found.items()
    }
    assert in_order == wanted
    assert count == sum(map(len, wanted.values())), "each once"
    # A group of the other protocol continues where this one stood.
    place = confluent_kafka.TopicPartition("orders", 2)
    after = member_of(server, group, **{"group.protocol": "classic"})
    (committed,) = after.committed([place], timeout=SECONDS)
    assert committed.offset == wanted[2][-1][0] + 1
    after.close()


def test_a_static_member_comes_back(server: Server) -> None:
    settings = {"group.instance.id": "one", "enable.auto.commit": False}
    first, other = (
        member_of(server, "static", **{**settings, "group.instance.id": instance})
        for instance in ("one", "two")
    )
    for one in (first, other):
        one.subscribe(["orders"])
    deadline = time.monotonic() + SECONDS
    while [len(one.assignment()) for one in (first, other)] != [3, 3]:
        assert time.monotonic() < deadline
        for one in (first, other):
            one.poll(0.05)
    before = sorted(place.partition for place in first.assignment())
    first.close()
    first = member_of(server, "static", **settings)
    first.subscribe(["orders"])
    while len(first.assignment()) != 3:
        assert time.monotonic() < deadline
        for one in (first, other):
            one.poll(0.05)
        assert len(other.assignment()) == 3
    assert sorted(place.partition for place in first.assignment()) == before
    for one in (first, other):
        one.close()


@pytest.fixture(scope="module")
def tools() -> Iterator[Tools]:
    found = Tools()
    yield found
    found.close()


def test_tools(server: Server, tools: Tools) -> None:
    """Kafka's own tools list and describe groups of both protocols."""
    members = [
        member_of(server, f"shown-{protocol}", **{"group.protocol": protocol})
        for protocol in ("classic", "consumer")
    ]
    for one in members:
        one.subscribe(["orders"])
        deadline = time.monotonic() + SECONDS
        while len(one.assignment()) != PARTITIONS:
            assert time.monotonic() < deadline
            one.poll(0.05)
    at = ("--bootstrap-server", server.bootstrap_servers)
    rows = [line.split() for line in tools.run("kafka-groups", *at, "--list")]
    kinds = {row[0]: row[1:] for row in rows}
    assert kinds["shown-classic"] == ["Classic", "consumer"]
    assert kinds["shown-consumer"] == ["Consumer", "consumer"]
    only = tools.run("kafka-groups", *at, "--list", "--group-type", "consumer")
    assert [line.split()[0] for line in only[1:] if line.startswith("shown")] == ["shown-consumer"]
    for group in ("shown-classic", "shown-consumer"):
        lines = tools.run("kafka-consumer-groups", *at, "--describe", "--group", group)
        shown = [line.split() for line in lines if line.startswith(group)]
        assert sorted(int(row[2]) for row in shown) == list(range(PARTITIONS)), lines
        lines = tools.run("kafka-consumer-groups", *at, "--describe", "--group", group, "--state")
        (state,) = (line.split() for line in lines if line.startswith(group))
        assert "Stable" in state, lines
        lines = tools.run(
            "kafka-consumer-groups", *at, "--describe", "--group", group, "--members", "--verbose"
        )
        assert any(line.startswith(group) for line in lines), lines
    lines = tools.run("kafka-consumer-groups", *at, "--describe", "--group", "nobody's")
    assert any("Group nobody's not found" in line for line in lines), lines
    for one in members:
        one.close()


def test_share_consumers_get_a_clear_error(server: Server) -> None:
    at = ("--bootstrap-server", server.bootstrap_servers)
    command = java("org.apache.kafka.tools.consumer.ConsoleShareConsumer", *at, "--topic", "orders")
    command += ["--group", "shared", "--timeout-ms", "6000"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=2 * SECONDS)
    assert "UnsupportedVersionException: The cluster does not support the share group protocol" in done.stderr
    assert "Processed a total of 0 messages" in done.stdout + done.stderr


def string(value: str | None) -> bytes:
    return b"\0" if value is None else bytes([len(value) + 1]) + value.encode()


Answer = tuple[int, int, list[int] | None]
"""The error, the epoch, and the partitions that the member may have, if it is told."""


class Member(RawClient):
    """A connection that sends heartbeats."""

    def beat(
        self,
        group: str,
        member: str,
        epoch: int,
        *,
        topic: str | None = None,
        pattern: str | None = None,
        instance: str | None = None,
        assignor: str | None = None,
        owned: list[int] | None = None,
        timeout: int = -1,
        topic_id: bytes = bytes(16),
    ) -> Answer:
        names = b"\0" if topic is None else b"\2" + string(topic)
        places = b"\0"
        if owned is not None:
            partitions = bytes([len(owned) + 1]) + b"".join(struct.pack(">i", one) for one in owned)
            places = b"\2" + topic_id + partitions + b"\0" if owned else b"\1"
        body = string(group) + string(member) + struct.pack(">i", epoch) + string(instance) + string(None)
        body += struct.pack(">i", timeout) + names + string(pattern) + string(assignor) + places + b"\0"
        while (answer := self._parse(self._ask((68, 1), body, flexible=True)))[0] in (14, 15, 16):
            time.sleep(0.2)  # A new broker is loading its groups.
        return answer

    def _parse(self, answer: Reader) -> Answer:
        _, error = answer.read("ih")
        for _ in range(2):
            # A message may be longer than one byte says.
            low = answer.read("B")
            size = low if low < 128 else low - 128 + (answer.read("B") << 7)
            answer.at += max(size - 1, 0)
        epoch, _ = answer.read("ii")
        if answer.read("b") < 0:
            return error, epoch, None
        partitions: list[int] = []
        for _ in range(answer.read("B") - 1):
            answer.at += 16
            partitions += [answer.read("i") for _ in range(answer.read("B") - 1)]
            answer.at += 1
        return error, epoch, sorted(partitions)


def play(port: int, topic_id: bytes) -> list[Answer]:
    """The answers to heartbeats, right and wrong ones."""
    client, answers = Member(port), []
    joining: dict[str, Any] = {"topic": "orders", "owned": [], "timeout": 60_000}

    def beat(member: str, epoch: int, group: str = "play", **more: Any) -> None:
        answers.append(client.beat(group, member, epoch, topic_id=topic_id, **more))

    for wrong in (
        {"owned": None},
        {"owned": [1]},
        {"timeout": -1},
        {"topic": None},
        {"assignor": "sticky"},
        {"pattern": "a("},
        {"pattern": "a)(b"},
        {"instance": ""},
    ):
        beat("a", 0, **{**joining, **wrong})
    beat("", 0, **joining)
    beat("a", 0, group="", **joining)
    beat("a", 1)
    beat("a", -1)
    beat("a", -2)
    beat("a", -3)
    beat("a", 0, **joining)
    beat("a", 2)
    beat("a", 3)
    beat("x", 2)
    beat("b", 0, **joining)
    beat("b", 3)
    beat("a", 2)
    beat("a", 2, owned=list(range(PARTITIONS)))
    kept = next(partitions for _, epoch, partitions in reversed(answers) if epoch == 2 and partitions)
    beat("a", 2, owned=kept)
    beat("b", 3)
    beat("a", 2, owned=kept)
    beat("a", 2, owned=list(range(PARTITIONS)))
    beat("c", 0, instance="one", **joining)
    beat("d", 0, instance="one", **joining)
    beat("b", 4, instance="one")
    beat("b", 4, instance="none")
    beat("c", -2, instance="one")
    beat("d", 0, instance="one", **joining)
    beat("c", 4, instance="one")
    beat("d", -1, instance="one")
    beat("b", -1)
    beat("b", -1)
    beat("a", -1)
    beat("a", 3)
    client.close()
    return answers


@pytest.fixture
def new(tmp_path: Path) -> Iterator[Node]:
    """A broker that makes assignments at once, not once a second."""
    node = Node(tmp_path, NEWEST, "group.consumer.assignment.interval.ms=0\n")
    yield node
    node.close()


def test_answers_are_those_of_a_broker(server: Server, new: Node) -> None:
    """A real broker gives the same members the same answers; which of the partitions one has is its own choice."""
    admin = AdminClient({"bootstrap.servers": new.bootstrap})
    for made in admin.create_topics([NewTopic("orders", PARTITIONS, 1)]).values():
        made.result(SECONDS)
    # Finds the coordinator, so that the broker makes the topic of offsets.
    finder = confluent_kafka.Consumer({"bootstrap.servers": new.bootstrap, "group.id": "finder"})
    finder.committed([confluent_kafka.TopicPartition("orders", 0)], timeout=SECONDS)
    finder.close()

    def answers(bootstrap: str) -> list[tuple[int, int, int | None]]:
        client = AdminClient({"bootstrap.servers": bootstrap})
        ((_, topic),) = client.describe_topics(confluent_kafka.TopicCollection(["orders"])).items()
        uuid = topic.result(SECONDS).topic_id
        high, low = uuid.get_most_significant_bits(), uuid.get_least_significant_bits()
        topic_id = struct.pack(">qq", high, low)
        found = play(int(bootstrap.split(":")[1]), topic_id)
        return [(error, epoch, partitions and len(partitions)) for error, epoch, partitions in found]

    assert answers(server.bootstrap_servers) == answers(new.bootstrap)
