"""Kafka's own tools, against a broker that is then killed, and against `magicbyte serve` over its disks: they say the
same of its groups and transactions. Requests that a read-only broker refuses end with a sentence."""

from __future__ import annotations

import json
import re
import socket
import struct
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import confluent_kafka
import magicbyte
import pytest
from broker_versions import Node
from cluster import until
from confluent_kafka.admin import AdminClient, NewTopic
from kafka_broker import Tools, java
from kafka_versions import JUDGES, NEWEST
from magicbyte import message
from magicbyte.jobs.serve import Server
from raw_client import RawClient

pytestmark = pytest.mark.interop

SECONDS = 120
SETTINGS = """
group.initial.rebalance.delay.ms=0
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
share.coordinator.state.topic.num.partitions=1
transaction.partition.verification.enable=false
"""
LISTED = ("classic", "consumer", "share", "streams")
STREAMS_HEARTBEAT = 88
HANGING = 424_242
"""A producer whose transaction no coordinator knows."""
POSITIONS = {"billing": 6, "audit": 5, "by-hand": 3}
"""The positions of groups in the first partition of `orders`."""
QUESTIONS: dict[str, tuple[str, ...]] = {
    "groups": ("kafka-groups", "--list"),
    **{f"{one} groups": ("kafka-groups", "--list", "--group-type", one) for one in LISTED},
    "states": ("kafka-consumer-groups", "--describe", "--all-groups", "--state"),
    "epochs": ("kafka-consumer-groups", "--describe", "--all-groups", "--state", "--verbose"),
    "offsets": ("kafka-consumer-groups", "--describe", "--all-groups"),
    "members": ("kafka-consumer-groups", "--describe", "--all-groups", "--members", "--verbose"),
    "empty": ("kafka-consumer-groups", "--list", "--state", "Empty", "--type"),
    "shares": ("kafka-share-groups", "--list"),
    "share states": ("kafka-share-groups", "--describe", "--all-groups", "--state", "--verbose"),
    "streams": ("kafka-streams-groups", "--list"),
    "transactions": ("kafka-transactions", "list"),
    "ongoing for long": ("kafka-transactions", "list", "--duration-filter", "1"),
    "by pattern": ("kafka-transactions", "list", "--transactional-id-pattern", "[co].*e[nd]|.*bort.*"),
    **{
        f"transaction {one}": ("kafka-transactions", "describe", "--transactional-id", one)
        for one in ("open", "committed", "aborted", "initialized")
    },
    "producers": ("kafka-transactions", "describe-producers", "--topic", "orders", "--partition", "0"),
    "hanging": ("kafka-transactions", "find-hanging", "--topic", "orders"),
}
OF_THE_SERVER = {"Coordinator", "CoordinatorId", "TransactionDurationMs", "Duration(min)"}
"""Columns with the broker's number or the time of the question."""
COORDINATOR = re.compile(r"127\.0\.0\.1:\d+ +\(\d\)")


def rows(lines: list[str]) -> list[list[str]]:
    """A table without what tells the servers apart. The rows are sorted: tools print them in the order of a hash map."""
    if "\t" not in lines[0]:
        return sorted(COORDINATOR.sub("coordinator", line).split() for line in lines)
    header, *table = ([word.strip() for word in line.split("\t")] for line in lines)
    kept = [at for at, name in enumerate(header) if name not in OF_THE_SERVER]
    return sorted([row[at] for at in kept] for row in (header, *table))


@dataclass
class World:
    """A killed broker, and what the tools of each version said before."""

    node: Node
    said: dict[str, dict[str, list[str]]] = field(default_factory=dict)


def create(bootstrap: str) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    config = {"retention.ms": "-1", "max.message.bytes": "2000000"}
    for made in admin.create_topics([NewTopic("orders", 2, 1, config=config)]).values():
        made.result(SECONDS)


def transact(bootstrap: str) -> list[confluent_kafka.Producer]:
    """A transactional id in each state; the producers live on, so that nobody ends what is open."""
    producers = []
    for name in ("initialized", "committed", "aborted", "open"):
        producer = confluent_kafka.Producer(
            {
                "bootstrap.servers": bootstrap,
                "transactional.id": name,
                "transaction.timeout.ms": 900_000,
                "log_level": 0,
            }
        )
        producer.init_transactions(SECONDS)
        producers.append(producer)
        if name == "initialized":
            continue
        producer.begin_transaction()
        for number in range(6):
            producer.produce("orders", name.encode(), partition=number % 2)
        assert producer.flush(SECONDS) == 0
        if name == "committed":
            producer.commit_transaction(SECONDS)
        elif name == "aborted":
            producer.abort_transaction(SECONDS)
    return producers


def hang(port: int) -> None:
    """A transaction of 2023 without a coordinator."""
    builder = magicbyte.RecordsBuilder(
        is_transactional=True, producer_id=HANGING, producer_epoch=0, base_sequence=0
    )
    builder.append(0, 1_700_000_000_000, b"key", b"value")
    client = RawClient(port)
    assert client.produce("orders", builder.build(), "nobody")["code"] == 0
    client.close()


def consume(bootstrap: str) -> None:
    """Groups of consumers, of both protocols and of none. All members have left."""
    for group, position in POSITIONS.items():
        protocol = "consumer" if group == "audit" else "classic"
        consumer = confluent_kafka.Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": group,
                "group.protocol": protocol,
                "enable.auto.commit": False,
            }
        )
        place = confluent_kafka.TopicPartition("orders", 0, position)
        if group == "by-hand":
            consumer.assign([place])
        else:
            consumer.subscribe(["orders"])
            until(lambda: bool(consumer.poll(0.1)) or bool(consumer.assignment()), "no assignment")  # noqa: B023
        consumer.commit(offsets=[place], asynchronous=False)
        consumer.close()


def stream(port: int) -> None:
    """A group of a Streams application, whose member has left."""

    def beat(epoch: int, **more: Any) -> dict[str, Any]:
        body = {"groupId": "application", "memberId": "member", "memberEpoch": epoch, **more}
        frame = message.encode_request(STREAMS_HEARTBEAT, 0, body, header={"clientId": "test"})
        connection.sendall(struct.pack(">i", len(frame)) + frame)
        answer = b""
        while len(answer) < 4 or len(answer) < 4 + struct.unpack_from(">i", answer)[0]:
            piece = connection.recv(1 << 16)
            assert piece, "the broker closed the connection"
            answer += piece
        return message.decode_response(answer[4:], STREAMS_HEARTBEAT, 0).body

    subtopology = {"subtopologyId": "0", "sourceTopics": ["orders"]}
    joining = {
        "rebalanceTimeoutMs": 60_000,
        "processId": "process",
        "topology": {"epoch": 0, "subtopologies": [subtopology]},
        **{tasks: [] for tasks in ("activeTasks", "standbyTasks", "warmupTasks")},
        "clientTags": [],
    }
    with socket.create_connection(("127.0.0.1", port), timeout=30) as connection:
        until(lambda: beat(0, **joining)["errorCode"] == 0, "the streams group has no coordinator")
        assert beat(-1)["errorCode"] == 0


def share(tools: Tools, bootstrap: str) -> None:
    """A group of a share consumer, which has left."""
    at = ("--bootstrap-server", bootstrap)
    group = ("--entity-type", "groups", "--entity-name", "sharing")
    tools.run("kafka-configs", *at, "--alter", *group, "--add-config", "share.auto.offset.reset=earliest")
    limits = ("--max-messages", "5", "--timeout-ms", "60000")
    tools.run("kafka-console-share-consumer", *at, "--topic", "orders", "--group", "sharing", *limits)


def ask(tools: Tools, bootstrap: str, broker: int) -> dict[str, list[str]]:
    """The answers to all questions."""
    answers = {}
    for name, (tool, *words) in QUESTIONS.items():
        more = ["--broker-id", str(broker)] if name == "hanging" else []
        answers[name] = tools.run(tool, "--bootstrap-server", bootstrap, *words, *more)
    return answers


def is_settled(answers: dict[str, list[str]]) -> bool:
    """True once markers are written, members are gone, and the assignments are of the groups' last epochs."""
    described = [row for name in ("epochs", "share states") for row in rows(answers[name]) if row]
    states = [row for row in described if row[0] != "GROUP"]
    return not any("Prepare" in line for line in answers["transactions"]) and all(
        "Empty" in row and row[-3] == row[-2] for row in states
    )


@pytest.fixture(scope="module", params=JUDGES)
def tools(request: pytest.FixtureRequest) -> Iterator[tuple[str, Tools]]:
    found = Tools(request.param)
    yield request.param, found
    found.close()


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """A broker is used, asked and killed."""
    node = Node(tmp_path_factory.mktemp("killed"), NEWEST, SETTINGS)
    try:
        create(node.bootstrap)
        producers = transact(node.bootstrap)
        hang(node.port)
        consume(node.bootstrap)
        stream(node.port)
        found = World(node)
        for version in JUDGES:
            own = Tools(version)
            if version == NEWEST:
                share(own, node.bootstrap)

            def answered() -> bool:
                answers = found.said[version] = ask(own, node.bootstrap, 1)  # noqa: B023
                return is_settled(answers)

            until(answered, "members or markers are missing")
            own.close()
        node.kill()
        del producers
        yield found
    finally:
        node.close()


@pytest.fixture(scope="module")
def server(world: World) -> Iterator[Server]:
    with magicbyte.serve(world.node.logs) as server:
        assert server.problems == []
        yield server


@pytest.fixture(scope="module")
def answers(server: Server, tools: tuple[str, Tools]) -> tuple[str, dict[str, list[str]]]:
    version, own = tools
    return version, ask(own, server.bootstrap_servers, 0)


@pytest.mark.parametrize("question", QUESTIONS)
def test_the_tools_say_the_same(
    world: World, answers: tuple[str, dict[str, list[str]]], question: str
) -> None:
    version, found = answers
    assert rows(found[question]) == rows(world.said[version][question])


def test_what_they_say(world: World) -> None:
    """The broker had a group of each type, and a transaction in each state."""
    types = {row[0]: row[1] for row in rows(world.said[NEWEST]["groups"])}
    assert types == {
        "GROUP": "TYPE",
        "by-hand": "Classic",
        "billing": "Classic",
        "audit": "Consumer",
        "sharing": "Share",
        "application": "Streams",
    }
    states = {row[0]: row[-2] for row in rows(world.said[NEWEST]["transactions"])}
    assert states == {
        "TransactionalId": "TransactionState",
        "initialized": "Empty",
        "committed": "CompleteCommit",
        "aborted": "CompleteAbort",
        "open": "Ongoing",
    }
    assert str(HANGING) in world.said[NEWEST]["hanging"][1]


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
@pytest.mark.parametrize("group", ["billing", "audit"])
def test_archived_groups_continue(server: Server, group: str, protocol: str) -> None:
    """A member of either protocol gets the next record of the group, whatever protocol it had."""
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": server.bootstrap_servers,
            "group.id": group,
            "group.protocol": protocol,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "isolation.level": "read_uncommitted",
        }
    )
    consumer.subscribe(["orders"])
    offsets: list[int] = []

    def first() -> bool:
        found = consumer.poll(0.1)
        if found is not None and found.error() is None and found.partition() == 0:
            offsets.append(found.offset())
        return bool(offsets)

    until(first, "no record")
    consumer.close()
    assert offsets[0] == POSITIONS[group]


def end_of(version: str, server: Server, tool: str, *words: str) -> tuple[int, str]:
    """The exit status and the output of a tool that may fail."""
    at = ("--bootstrap-server", server.bootstrap_servers)
    command = java(Tools.class_of(tool, version), *at, *words, version=version)
    done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS)
    return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize("version", JUDGES)
@pytest.mark.parametrize(
    ("tool", "words", "sentence"),
    [
        (
            "kafka-leader-election",
            ("--election-type", "preferred", "--topic", "orders", "--partition", "0"),
            "for partition: orders-0: org.apache.kafka.common.errors.PolicyViolationException:"
            " magicbyte serve is read-only: it elects no leaders",
        ),
        (
            "kafka-leader-election",
            ("--election-type", "unclean", "--all-topic-partitions"),
            "for partition: orders-1: org.apache.kafka.common.errors.PolicyViolationException:"
            " magicbyte serve is read-only: it elects no leaders",
        ),
        (
            "kafka-reassign-partitions",
            ("--execute", "--reassignment-json-file", "{plan}"),
            "orders-0: magicbyte serve is read-only: it reassigns no partitions",
        ),
        (
            "kafka-metadata-quorum",
            ("describe", "--status"),
            "PolicyViolationException: magicbyte serve has no quorum; `magicbyte cluster` describes that",
        ),
        (
            "kafka-metadata-quorum",
            ("describe", "--replication"),
            "PolicyViolationException: magicbyte serve has no quorum; `magicbyte cluster` describes that",
        ),
        (
            "kafka-acls",
            ("--list",),
            "SecurityDisabledException: magicbyte serve has no authorizer; `magicbyte cluster` lists the ACLs",
        ),
        (
            "kafka-transactions",
            ("describe", "--transactional-id", "nobody"),
            "DescribeTransactions request for transactionalId `nobody` failed because the ID could not be found",
        ),
        (
            "kafka-transactions",
            ("list", "--transactional-id-pattern", "a("),
            "Failed to list transactions: ",
        ),
    ],
)
def test_refusals(
    server: Server, tmp_path: Path, version: str, tool: str, words: tuple[str, ...], sentence: str
) -> None:
    """A tool ends with a sentence. Some also print where they were; they do so for each error."""
    plan = tmp_path / "plan.json"
    partitions = [{"topic": "orders", "partition": 0, "replicas": [0]}]
    plan.write_text(json.dumps({"version": 1, "partitions": partitions}))
    status, output = end_of(version, server, tool, *(word.format(plan=plan) for word in words))
    assert (status, sentence in output) == (1, True), output


@pytest.mark.parametrize(
    ("tool", "words", "lines"),
    [
        ("kafka-reassign-partitions", ("--list",), ["No partition reassignments found."]),
        ("kafka-configs", ("--describe", "--entity-type", "users"), []),
        ("kafka-configs", ("--describe", "--entity-type", "users", "--entity-name", "ann"), []),
        ("kafka-configs", ("--describe", "--entity-type", "clients"), []),
        (
            "kafka-configs",
            ("--describe", "--entity-type", "topics", "--entity-name", "orders"),
            [
                "Dynamic configs for topic orders are:",
                "  max.message.bytes=2000000 sensitive=false synonyms={}",
                "  retention.ms=-1 sensitive=false synonyms={}",
            ],
        ),
        (
            "kafka-configs",
            ("--describe", "--entity-type", "brokers", "--entity-name", "0"),
            ["Dynamic configs for broker 0 are:"],
        ),
    ],
)
def test_answers_of_a_server(
    server: Server, tools: tuple[str, Tools], tool: str, words: tuple[str, ...], lines: list[str]
) -> None:
    """It has no quotas, users or reassignments of its own."""
    said = tools[1].run(tool, "--bootstrap-server", server.bootstrap_servers, *words)
    assert [line for line in said if line.strip()] == lines


def test_topics_and_endpoints(world: World, server: Server, tools: tuple[str, Tools]) -> None:
    at = ("--bootstrap-server", server.bootstrap_servers)
    described = "\n".join(tools[1].run("kafka-topics", *at, "--describe", "--topic", "orders"))
    topic_id = (world.node.logs / "orders-0" / "partition.metadata").read_text().split()[-1]
    assert f"TopicId: {topic_id}\tPartitionCount: 2\tReplicationFactor: 1" in described
    assert described.count("Leader: 0\tReplicas: 0\tIsr: 0\tElr: \tLastKnownElr:") == 2
    assert tools[1].run("kafka-topics", *at, "--describe", "--under-replicated-partitions") == []
    assert tools[1].run("kafka-cluster", "cluster-id", *at) == ["Cluster ID: magicbyte-serve"]
    (_, row) = tools[1].run("kafka-cluster", "list-endpoints", *at)
    assert row.split() == ["0", *server.bootstrap_servers.split(":"), "null", "unfenced", "broker"]
    (log_dir,) = (
        described
        for line in tools[1].run("kafka-log-dirs", *at, "--describe", "--topic-list", "orders")
        if line.startswith("{")
        for described in json.loads(line)["brokers"][0]["logDirs"]
    )
    assert {one["partition"]: one["size"] for one in log_dir["partitions"]} == {
        name: sum(log.stat().st_size for log in (world.node.logs / name).glob("*.log"))
        for name in ("orders-0", "orders-1")
    }
