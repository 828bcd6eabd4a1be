"""`topics` and `offsets` of running clusters say what Kafka's own tools say of them at the same time."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import magicbyte
import pytest
from broker_versions import Node
from click.testing import CliRunner
from cluster import NODES, TRANSACTIONS, Cluster, until
from confluent_kafka import Consumer, TopicPartition
from kafka_broker import Client, Tools
from magicbyte.cli.app import app
from secure_broker import PASSWORD, SecureBroker
from test_against import produce
from test_share_offsets import Client as Connection
from test_share_offsets import join_streams

pytestmark = pytest.mark.interop

SETTINGS = f"""{TRANSACTIONS}share.coordinator.state.topic.replication.factor=3
share.coordinator.state.topic.min.isr=1
share.coordinator.state.topic.num.partitions=3
log.retention.hours=100
"""
TOPICS = ("orders", "payments")


@dataclass
class Asked:
    """A running cluster, of which one broker is dead, and what was said about it."""

    cluster: Cluster
    topics: Any
    offsets: Any

    def run(self, name: str, *arguments: str) -> list[str]:
        """The lines of a tool."""
        return self.cluster.tools.run(name, "--bootstrap-server", self.cluster.bootstrap, *arguments)


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Asked]:
    """Groups of all kinds, one of them with a member; configs of topics and brokers; a broker that is dead."""
    cluster = Cluster(tmp_path_factory.mktemp("cluster"), settings=SETTINGS)
    one = Asked(cluster, None, None)
    member: Consumer | None = None
    try:
        for node in NODES:
            cluster.start(node)
        cluster.wait()
        for topic in TOPICS:
            spread = ("--partitions", "4", "--replication-factor", "3")
            one.run("kafka-topics", "--create", "--topic", topic, *spread)
        one.run("kafka-topics", "--create", "--topic", "gone", "--partitions", "1")
        settle(one)
        member = consume(one)
        one.run("kafka-topics", "--delete", "--topic", "gone")
        # A coordinator that dies too early keeps them, and then kafka-consumer-groups fails.
        until(lambda: "gone" not in topics_with_positions(one), "positions of the deleted topic stay")
        everyone = names_of_groups(groups_of(one))
        cluster.kill(3)
        until(lambda: has_moved(one, everyone), "3 stays in sync, or its groups have no coordinator")
        one.topics = magicbyte.topics(f"kafka://{cluster.bootstrap}")
        one.offsets = groups_of(one)
        yield one
    finally:
        if member is not None:
            member.close()
        cluster.close()


def groups_of(asked: Asked) -> Any:
    return magicbyte.offsets(f"kafka://{asked.cluster.bootstrap}")


def names_of_groups(offsets: Any) -> set[str]:
    return {one["group"] for one in offsets["groups"]}


def has_moved(asked: Asked, everyone: set[str]) -> bool:
    """True if the dead broker is in sync nowhere and others have all groups; `offsets` says if they do not."""
    if any(re.search(r"Isr: [\d,]*3", line) for line in described(asked)):
        return False
    offsets = groups_of(asked)
    assert names_of_groups(offsets) == everyone or offsets["problems"]
    return not offsets["problems"]


def topics_with_positions(asked: Asked) -> set[str]:
    return {one["topic"] for one in groups_of(asked)["offsets"]}


def described(asked: Asked) -> list[str]:
    return asked.run("kafka-topics", "--describe")


def settle(asked: Asked) -> None:
    """Configs of every origin."""

    def alter(kind: str, *change: str) -> None:
        asked.run("kafka-configs", "--alter", "--entity-type", kind, *change)

    orders = "max.message.bytes=2000000,cleanup.policy=[compact,delete]"
    alter("topics", "--entity-name", "orders", "--add-config", orders)
    alter(
        "brokers", "--entity-default", "--add-config", "log.cleanup.policy=delete,log.retention.bytes=9999999"
    )
    earliest = "share.auto.offset.reset=earliest"
    alter("groups", "--entity-name", "sharing", "--add-config", earliest)


def consume(asked: Asked) -> Consumer:
    """Positions of groups; returns the only member that stays."""
    bootstrap = asked.cluster.bootstrap
    client = Client(bootstrap)
    for topic in (*TOPICS, "gone"):
        client.ask("transact", topic)
    client.close()
    reset = ("--reset-offsets", "--to-offset", "3", "--execute", "--topic", "payments:0", "--topic", "gone:0")
    asked.run("kafka-consumer-groups", "--group", "billing,inc.", *reset)
    limits = ("--max-messages", "2", "--timeout-ms", "60000")
    asked.run(
        "kafka-console-consumer",
        *("--topic", "orders", "--group", "audit", "--from-beginning", *limits),
        *("--command-property", "group.protocol=consumer"),
    )
    asked.run("kafka-console-share-consumer", "--topic", "orders", "--group", "sharing", *limits)
    connections = [Connection(asked.cluster.ports[node]) for node in NODES]
    coordinator = connections[0].ready(
        "FindCoordinator", 4, {"keyType": 0, "coordinatorKeys": ["streaming"]}
    )["coordinators"][0]["nodeId"]
    join_streams(connections[coordinator - 1])
    for connection in connections:
        connection.close()
    settings = {
        "bootstrap.servers": bootstrap,
        "group.id": "staying",
        "client.id": "me",
        "enable.auto.commit": False,
    }
    member = Consumer({**settings, "auto.offset.reset": "earliest"})
    member.subscribe(["payments"])
    until(lambda: member.poll(0.5) is not None, "nothing is consumed")
    place = TopicPartition("payments", 1, 2, metadata="noted", leader_epoch=0)
    member.commit(offsets=[place], asynchronous=False)
    return member


def fields_of(line: str) -> dict[str, str]:
    words = [word.partition(": ")[::2] for word in line.split("\t") if ": " in word]
    return {name.strip(): value.strip() for name, value in words}


def test_nothing_is_unknown(asked: Asked) -> None:
    assert asked.topics["problems"] == asked.offsets["problems"] == []
    assert asked.topics["cluster"] == f"kafka://{asked.cluster.bootstrap}"
    assert (asked.topics["cluster_metadata"], asked.offsets["pending"]) == (None, None)


def test_topics_are_those_of_kafka_topics(asked: Asked) -> None:
    said = {}
    for line in described(asked):
        fields = fields_of(line)
        if "TopicId" in fields:
            said[fields["Topic"]] = (
                fields["TopicId"],
                int(fields["PartitionCount"]),
                int(fields["ReplicationFactor"]),
            )
    found = {
        one["topic"]: (one["topic_id"], len(one["partitions"]), len(one["partitions"][0]["replicas"]))
        for one in asked.topics["topics"]
    }
    assert found == said
    assert {"orders", "payments", "__consumer_offsets", "__share_group_state"} <= set(said)


def test_partitions_are_those_of_kafka_topics(asked: Asked) -> None:
    said = {
        (fields["Topic"], int(fields["Partition"])): (
            fields["Leader"],
            fields["Replicas"],
            sorted(fields["Isr"]),
        )
        for line in described(asked)
        if "Partition" in (fields := fields_of(line))
    }
    found = {
        (topic["topic"], one["partition"]): (
            str(one["leader"]) if one["leader"] >= 0 else "none",
            ",".join(map(str, one["replicas"])),
            sorted(",".join(map(str, one["isr"]))),
        )
        for topic in asked.topics["topics"]
        for one in topic["partitions"]
    }
    assert found == said
    partitions = [one for topic in asked.topics["topics"] for one in topic["partitions"]]
    assert {one["here"] for one in partitions} == {None}
    assert max(one["leader_epoch"] for one in partitions) > 0, "leaders have changed"
    assert any(3 in one["replicas"] and 3 not in one["isr"] for one in partitions)


def configs_of(line: str) -> dict[str, str]:
    return dict(re.findall(r"([\w.]+)=([^\s=]*?)(?:,(?=[\w.]+=)| |$)", line))


def test_configs_are_those_of_kafka_configs(asked: Asked) -> None:
    for topic in asked.topics["topics"]:
        name = ("--entity-type", "topics", "--entity-name", topic["topic"])
        lines = asked.run("kafka-configs", "--describe", *name)
        said = dict(re.findall(r"^\s+([\w.]+)=(\S*) sensitive=false", "\n".join(lines), re.M))
        assert topic["configs"] == said, topic["topic"]
    by_name = {one["topic"]: one for one in asked.topics["topics"]}
    policies = {name: (one["cleanup_policy"], one["policy_from"]) for name, one in by_name.items()}
    assert policies["orders"] == ("compact,delete", "topic")
    assert policies["payments"] == ("delete", "broker")
    assert policies["__consumer_offsets"] == ("compact", "topic")


def rows_of(lines: list[str], columns: int) -> Iterator[list[str]]:
    """The rows of a table whose first column may have spaces."""
    for line in lines:
        words = line.split()
        if len(words) >= columns and not line.startswith(("GROUP", "Consumer", "Error", "Warning")):
            cut = len(words) - columns + 1
            yield [" ".join(words[:cut]), *words[cut:]]


def number(text: str) -> int | None:
    return None if text == "-" else int(text)


def test_positions_are_those_of_kafka_consumer_groups(asked: Asked) -> None:
    said = {}
    lines = asked.run("kafka-consumer-groups", "--describe", "--all-groups")
    for row in rows_of(lines, 9):
        group, topic, partition, *numbers = row[:6]
        if numbers[0] != "-":  # a partition of a member without a position
            said[group, topic, int(partition)] = tuple(map(number, numbers))
    types = {one["group"]: one["type"] for one in asked.offsets["groups"]}
    found = {
        (one["group"], one["topic"], one["partition"]): (one["offset"], one["log_end_offset"], one["lag"])
        for one in asked.offsets["offsets"]
        if types[one["group"]] in ("classic", "consumer")
    }
    assert found == said
    assert {group for group, _, _ in said} == {"billing,inc.", "audit", "staying"}
    (noted,) = [one for one in asked.offsets["offsets"] if one["metadata"]]
    assert (noted["group"], noted["partition"], noted["offset"]) == ("staying", 1, 2)
    # The client ends the text as C does.
    assert (noted["metadata"], noted["leader_epoch"]) == ("noted\0", 0)


def test_fields_that_only_disks_know_are_null(asked: Asked) -> None:
    for one in asked.offsets["offsets"]:
        assert (one["commit_timestamp"], one["expire_timestamp"], one["lost_ahead"]) == (None, None, None)
        assert one["out_of_range"] == (
            one["log_end_offset"] is not None and one["offset"] > one["log_end_offset"]
        )
    for one in asked.offsets["share_offsets"]:
        names = ("state_epoch", "state_batches", "delivery_complete_count", "lost_ahead", "state_log")
        assert {one[name] for name in names} == {None}


def test_logs_end_where_kafka_get_offsets_says(asked: Asked) -> None:
    places = ("--topic-partitions", ",".join(f"{topic}:0-4" for topic in TOPICS))
    names = {"log_start_offset": "earliest", "log_end_offset": "latest"}
    for name, time_ in names.items():
        lines = asked.run("kafka-get-offsets", *places, "--time", time_)
        said = {tuple(line.split(":")[:2]): int(line.split(":")[2]) for line in lines if line.count(":") == 2}
        for one in asked.offsets["offsets"]:
            assert one[name] == said[one["topic"], str(one["partition"])]
    assert any(one["last_stable_offset"] == one["log_end_offset"] for one in asked.offsets["offsets"])


def test_share_positions_are_those_of_kafka_share_groups(asked: Asked) -> None:
    lines = asked.run("kafka-share-groups", "--describe", "--all-groups", "--offsets", "--verbose")
    said = {(row[0], row[1], int(row[2])): tuple(map(number, row[3:6])) for row in rows_of(lines, 6)}
    found = {
        (one["group"], one["topic"], one["partition"]): (one["leader_epoch"], one["start_offset"], one["lag"])
        for one in asked.offsets["share_offsets"]
    }
    assert found == said
    assert {group for group, _, _ in said} == {"sharing"}
    ids = {one["topic"]: one["topic_id"] for one in asked.topics["topics"]}
    assert {one["topic_id"] for one in asked.offsets["share_offsets"]} == {ids["orders"]}


def test_streams_groups_are_those_of_kafka_streams_groups(asked: Asked) -> None:
    lines = asked.run("kafka-streams-groups", "--list", "--state")
    said = {row[0]: row[1] for row in map(str.split, lines) if row and row[0] == "streaming"}
    groups = {one["group"]: one["state"] for one in asked.offsets["groups"] if one["type"] == "streams"}
    assert groups == said
    found = {
        (one["group"], one["topic"], one["partition"]): one
        for one in asked.offsets["offsets"]
        if one["group"] == "streaming"
    }
    assert {key: one["offset"] for key, one in found.items()} == {("streaming", "orders", 1): 12}
    # The tool shows positions only while the group has members.
    reader = Consumer({"bootstrap.servers": asked.cluster.bootstrap, "group.id": "streaming"})
    (committed,) = reader.committed([TopicPartition("orders", 1)], timeout=60)
    reader.close()
    assert committed.offset == 12


def test_groups_are_those_of_kafka_groups(asked: Asked) -> None:
    lines = asked.run("kafka-groups", "--list")
    said = {row[0]: row[1].lower() for row in map(str.split, lines) if row and row[0] != "GROUP"}
    assert {one["group"]: one["type"] for one in asked.offsets["groups"]} == said
    assert {*said.values()} == {"classic", "consumer", "share", "streams"}


def test_states_are_those_of_the_tools(asked: Asked) -> None:
    lines = asked.run("kafka-consumer-groups", "--describe", "--all-groups", "--state", "--verbose")
    groups = {one["group"]: one for one in asked.offsets["groups"]}
    seen = set()
    for line in lines:
        for name, one in groups.items():
            if line.startswith(name):
                seen.add(name)
                assert one["state"] in line.split(), line
                assert line.split()[-1] == str(len(one["members"])), line
                if one["epoch"] is not None:
                    assert str(one["epoch"]) in line.split(), line
    assert seen == {"billing,inc.", "audit", "staying"}
    (member,) = groups["staying"]["members"].values()
    assert member["client_id"] == "me"
    assert groups["staying"]["state"] == "Stable"
    assert groups["streaming"]["epoch"] is not None


def test_choices(asked: Asked) -> None:
    url = f"kafka://{asked.cluster.bootstrap}"
    assert [one["topic"] for one in magicbyte.topics(f"{url}/orders")["topics"]] == ["orders"]
    (one,) = magicbyte.topics(f"{url}/orders/2")["topics"]
    assert [partition["partition"] for partition in one["partitions"]] == [2]
    report = magicbyte.offsets(url, group="bill*")
    assert [one["group"] for one in report["groups"]] == ["billing,inc."]
    assert {one["group"] for one in report["offsets"]} == {"billing,inc."}
    report = magicbyte.offsets(f"{url}/payments/1")
    assert {(one["topic"], one["partition"]) for one in report["offsets"]} == {("payments", 1)}


def test_commands(asked: Asked) -> None:
    """Tables, and the positions as kafka-consumer-groups reads them."""
    url = f"kafka://{asked.cluster.bootstrap}"
    done = CliRunner().invoke(app, ["topics", url], standalone_mode=False)
    assert done.exception is None
    assert re.search(r"orders +\S+ +4 +- +3 +compact,delete +topic", done.stdout), done.stdout
    assert "no __cluster_metadata" not in done.stdout
    done = CliRunner().invoke(app, ["offsets", url], standalone_mode=False)
    # The member of the streams group has committed an offset after the end of the log.
    assert (done.exception, done.return_value) == (None, 1)
    assert re.search(r"^streaming +orders +1 +12 .* yes ", done.stdout, re.M), done.stdout
    done = CliRunner().invoke(app, ["offsets", "--csv", "--group", "bill*", url], standalone_mode=False)
    assert '"billing,inc.",payments,0,3' in done.stdout.splitlines()


@pytest.mark.parametrize("version", ["oldest", "old"])
def test_brokers_of_old_versions(request: pytest.FixtureRequest, version: str) -> None:
    """Neither the oldest broker tells configs, nor any of them a group's type."""
    node: Node = request.getfixturevalue(version)
    topic = f"asked-{version}"
    produce(node.bootstrap, topic, (b"%d" % value for value in range(60)))
    settings = {"bootstrap.servers": node.bootstrap, "group.id": topic, "enable.auto.commit": False}
    consumer = Consumer(settings)
    places = [TopicPartition(topic, partition, 5 + partition) for partition in range(3)]
    consumer.commit(offsets=places, asynchronous=False)
    consumer.close()
    report = magicbyte.offsets(f"kafka://{node.bootstrap}", group=topic)
    assert report["problems"] == []
    assert [(one["partition"], one["offset"], one["lag"]) for one in report["offsets"]] == [
        (0, 5, 15),
        (1, 6, 14),
        (2, 7, 13),
    ]
    assert [(one["group"], one["type"], one["state"]) for one in report["groups"]] == [
        (topic, "classic", "Empty")
    ]
    topics = magicbyte.topics(f"kafka://{node.bootstrap}/{topic}")
    (one,) = topics["topics"]
    assert len(one["partitions"]) == 3
    assert {tuple(partition["isr"]) for partition in one["partitions"]} == {(1,)}
    if version == "old":
        assert (one["cleanup_policy"], topics["problems"]) == ("delete", [])
    else:
        assert one["cleanup_policy"] is None
        assert topics["problems"]


def test_a_user(tmp_path_factory: pytest.TempPathFactory) -> None:
    """`--command-config` of Kafka's tools; without it the broker does not answer."""
    secure = SecureBroker(tmp_path_factory.mktemp("secure") / "root")
    try:
        tools = Tools()
        tools.run(
            "kafka-topics", "--bootstrap-server", secure.broker.bootstrap, "--create", "--topic", "orders"
        )
        tools.close()
        commit_one(secure.broker.bootstrap)
        config = secure.properties("SASL_PLAINTEXT", mechanism="PLAIN")
        url = f"kafka://127.0.0.1:{secure.ports['SASL_PLAINTEXT']}"
        assert "orders" in {one["topic"] for one in magicbyte.topics(url, command_config=config)["topics"]}
        (one,) = magicbyte.offsets(url, command_config=config)["offsets"]
        assert (one["group"], one["offset"]) == ("audit", 0)
        given = ["--command-config", str(config), url]
        done = CliRunner().invoke(app, ["offsets", *given], standalone_mode=False)
        assert done.exception is None
        assert PASSWORD not in done.output
        wrong = secure.properties("SASL_PLAINTEXT", mechanism="PLAIN", password="wrong")
        with pytest.raises(PermissionError):
            magicbyte.offsets(url, command_config=wrong)
    finally:
        secure.broker.kill()


def commit_one(bootstrap: str) -> None:
    settings = {"bootstrap.servers": bootstrap, "group.id": "audit", "enable.auto.commit": False}
    consumer = Consumer(settings)
    consumer.commit(offsets=[TopicPartition("orders", 0, 0)], asynchronous=False)
    consumer.close()
