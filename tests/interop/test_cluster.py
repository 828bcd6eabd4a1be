"""What `cluster` says about the disks of a cluster, compared with what Kafka's own tools said while it ran."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import magicbyte
import pytest
from broker_versions import Node
from click.testing import CliRunner
from cluster import NODES, TRANSACTIONS, Cluster, until
from kafka_broker import BROKERS, CLUSTER, Client, java
from kafka_versions import NEWEST
from magicbyte.cli.app import app

if not BROKERS.is_dir():
    pytest.skip("the jars of a broker are not there", allow_module_level=True)

pytestmark = pytest.mark.interop

SETTINGS = f"""{TRANSACTIONS}authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer
super.users=User:ANONYMOUS
share.coordinator.state.topic.replication.factor=3
share.coordinator.state.topic.min.isr=1
share.coordinator.state.topic.num.partitions=1
"""
POSITIONS = {"orders": 7, "payments": 3}


@dataclass
class Disks:
    """The copied disks of a cluster, and what Kafka's tools said before it was killed."""

    roots: list[Path]
    said: dict[str, list[str]]
    live: Any
    """The report on the disks of the running brokers."""
    csv: str
    """The positions, as `offsets --csv` prints them."""
    reset: dict[tuple[str, str, int], tuple[int, int]]
    """The positions and lags of groups that were deleted and made again from that file."""


def configure(cluster: Cluster) -> None:
    """One of each kind of setting."""

    def alter(kind: str, name: list[str], *change: str) -> None:
        cluster.run("kafka-configs", "--alter", "--entity-type", kind, *name, *change)

    alter("topics", ["--entity-name", "orders"], "--add-config", "max.message.bytes=2000000")
    alter("topics", ["--entity-name", "payments"], "--add-config", "min.insync.replicas=3")
    alter("brokers", ["--entity-default"], "--add-config", "log.cleaner.threads=2")
    alter("brokers", ["--entity-name", "1"], "--add-config", "log.cleaner.backoff.ms=14000")
    alter("groups", ["--entity-name", "sharing"], "--add-config", "share.auto.offset.reset=earliest")
    alter("client-metrics", ["--entity-name", "all"], "--add-config", "interval.ms=30000")
    alter("users", ["--entity-name", "ann"], "--add-config", "SCRAM-SHA-512=[password=s3cret-of-ann]")
    alter("users", ["--entity-name", "bob"], "--add-config", "SCRAM-SHA-256=[password=s3cret-of-bob]")
    alter("users", ["--entity-name", "ann"], "--add-config", "producer_byte_rate=4096")
    alter("clients", ["--entity-default"], "--add-config", "request_percentage=150")
    acl = ["--add", "--allow-principal", "User:ann"]
    cluster.run(
        "kafka-acls",
        *acl,
        "--operation",
        "Read",
        "--topic",
        "ord",
        "--resource-pattern-type",
        "prefixed",
    )
    cluster.run(
        "kafka-acls",
        "--add",
        "--deny-principal",
        "User:bob",
        "--operation",
        "All",
        "--group",
        "billing",
    )


def remove(cluster: Cluster) -> None:
    """Removes a topic and a user, which every broker knows by now."""
    cluster.run("kafka-topics", "--delete", "--topic", "gone")
    bob = ("--entity-type", "users", "--entity-name", "bob")
    cluster.run("kafka-configs", "--alter", *bob, "--delete-config", "SCRAM-SHA-256")


def consume(cluster: Cluster) -> None:
    """Groups of three kinds. Each has read a part of what there is."""
    client = Client(cluster.bootstrap)
    try:
        for topic in POSITIONS:
            client.ask("transact", topic)
    finally:
        client.close()
    for topic, position in POSITIONS.items():
        reset = ("--reset-offsets", "--to-offset", str(position), "--execute", "--topic", f"{topic}:0")
        cluster.run("kafka-consumer-groups", "--group", "billing, inc.", *reset)
    limits = ("--max-messages", "5", "--timeout-ms", "60000")
    cluster.run(
        "kafka-console-consumer",
        *("--topic", "orders", "--group", "audit", "--from-beginning", *limits),
        *("--command-property", "group.protocol=consumer"),
    )
    cluster.run("kafka-console-share-consumer", "--topic", "orders", "--group", "sharing", *limits)


@pytest.fixture(scope="module")
def disks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Disks]:
    """A cluster of three nodes with two disks each is used, asked, killed, and its disks are copied."""
    cluster = Cluster(tmp_path_factory.mktemp("cluster"), disks=2, settings=SETTINGS)
    try:
        for node in NODES:
            cluster.start(node)
        cluster.wait()
        for topic in (*POSITIONS, "gone"):
            cluster.run(
                "kafka-topics",
                "--create",
                "--topic",
                topic,
                "--partitions",
                "4",
                "--replication-factor",
                "3",
            )
        configure(cluster)
        consume(cluster)
        remove(cluster)
        live = magicbyte.cluster(disks_of(cluster))
        csv, reset = moved(cluster)
        # With one broker dead, there are replicas out of sync, and eligible leaders among them.
        cluster.kill(3)
        until(lambda: not any(map(in_sync, described(cluster))), "broker 3 stays in sync")
        until(lambda: has_groups(cluster), "a group has no coordinator")
        yield Disks(*snapshot(cluster, tmp_path_factory.mktemp("disks")), live, csv, reset)
    finally:
        cluster.close()


def disks_of(cluster: Cluster) -> list[Path]:
    return [log_dir for node in NODES for log_dir in cluster.log_dirs(node)]


def moved(cluster: Cluster) -> tuple[str, dict[tuple[str, str, int], tuple[int, int]]]:
    """Deletes the groups, and gives them their positions from the disks."""
    done = CliRunner().invoke(app, ["offsets", "--csv", *map(str, disks_of(cluster))], standalone_mode=False)
    assert done.exception is None
    file = cluster.root / "positions.csv"
    file.write_text(done.stdout)
    groups = [word for group in ("audit", "billing, inc.") for word in ("--group", group)]
    cluster.run("kafka-consumer-groups", "--delete", *groups)
    cluster.run("kafka-consumer-groups", "--reset-offsets", *groups, "--from-file", str(file), "--execute")
    return done.stdout, positions_of(cluster.run("kafka-consumer-groups", "--describe", *groups))


def has_groups(cluster: Cluster) -> bool:
    """True once the coordinators have loaded the groups: Kafka's tool says nothing about the others."""
    lines = cluster.run("kafka-consumer-groups", "--describe", "--all-groups")
    return {"audit", "billing, inc."} <= {group for group, _, _ in positions_of(lines)}


def in_sync(line: str) -> bool:
    """True if a line of kafka-topics is a partition with broker 3 in its ISR."""
    return re.search(r"Isr: [\d,]*3", line) is not None


def described(cluster: Cluster) -> list[str]:
    return cluster.run("kafka-topics", "--describe")


def snapshot(cluster: Cluster, root: Path) -> tuple[list[Path], dict[str, list[str]]]:
    """What the tools say, and then the disks."""
    groups = ("--describe", "--all-groups")
    said = {
        "topics": described(cluster),
        "acls": cluster.run("kafka-acls", "--list"),
        "quorum": cluster.run("kafka-metadata-quorum", "describe", "--status"),
        "groups": cluster.run("kafka-consumer-groups", *groups),
        "shares": cluster.run("kafka-share-groups", *groups, "--offsets"),
    }
    for kind in ("topics", "brokers", "groups", "client-metrics", "users", "clients"):
        said[f"{kind} configs"] = cluster.run("kafka-configs", "--describe", "--entity-type", kind)
    for node in NODES:
        cluster.kill(node)
    roots = []
    for node in NODES:
        for number, log_dir in enumerate(cluster.log_dirs(node), 1):
            roots.append(root / f"b{node}-d{number}")
            shutil.copytree(log_dir, roots[-1])
    return roots, said


@pytest.fixture(scope="module")
def report(disks: Disks) -> Any:
    return magicbyte.cluster(disks.roots)


def test_nothing_is_wrong(report: Any) -> None:
    assert report["problems"] == []
    assert report["cluster_id"] == CLUSTER
    assert [one["node_id"] for one in report["metadata"]][-1] == 3  # which was dead for longest


def test_topics(disks: Disks, report: Any) -> None:
    said = {}
    for line in disks.said["topics"]:
        if found := re.search(r"Topic: (\S+)\tTopicId: (\S+)", line):
            said[found[1]] = found[2]
    assert {one["topic"]: one["topic_id"] for one in report["topics"]} == said
    assert "gone" not in said
    assert {Path(one["path"]).name.partition("-")[0] for one in report["unassigned"]} <= {"gone"}


def test_partitions(disks: Disks, report: Any) -> None:
    said = {}
    for line in disks.said["topics"]:
        words = [word.partition(": ")[::2] for word in line.split("\t") if ": " in word]
        if (fields := {name.strip(): value.strip() for name, value in words}).get("Partition"):
            said[fields["Topic"], int(fields["Partition"])] = tuple(
                fields[name] for name in ("Leader", "Replicas", "Isr", "Elr", "LastKnownElr")
            )
    names = ("replicas", "isr", "elr", "last_known_elr")
    found = {
        (topic["topic"], one["partition"]): (
            str(one["leader"]),
            *(",".join(map(str, one[name])) for name in names),
        )
        for topic in report["topics"]
        for one in topic["partitions"]
    }
    assert found == said
    assert said["payments", 0][3] == "3"
    for topic in report["topics"]:
        for one in topic["partitions"]:
            assert sorted(copy["broker_id"] for copy in one["copies"]) == list(NODES)


CONFIG = re.compile(r"  (\S+?)=(.*) sensitive=(?:true|false) synonyms=\{(\w+):")


def configs_of(lines: list[str], *, defaults: str = "Default configs") -> dict[str, dict[str, str]]:
    """The dynamic configs that kafka-configs lists, by resource; not those that others' defaults imply."""
    found: dict[str, dict[str, str]] = {}
    name = ""
    for line in lines:
        if header := re.fullmatch(r"Dynamic configs for \S+ (.+) are:", line):
            name = header[1]
        elif line.startswith(defaults):
            name = ""
        elif (config := CONFIG.match(line)) and (config[3].startswith("DYNAMIC")):
            found.setdefault(name, {})[config[1]] = config[2]
    return found


def test_configs(disks: Disks, report: Any) -> None:
    settings = report["settings"]
    topics = {one["topic"]: one["configs"] for one in report["topics"] if one["configs"]}
    # The tool also shows what comes from the brokers.
    said = configs_of(disks.said["topics configs"])
    assert topics == {
        name: {config: value for config, value in configs.items() if config in topics.get(name, {})}
        for name, configs in said.items()
        if name in topics
    }
    assert topics["orders"] == {"max.message.bytes": "2000000"}
    assert settings["broker_configs"] == configs_of(disks.said["brokers configs"])
    assert settings["group_configs"] == configs_of(disks.said["groups configs"])
    assert settings["client_metrics_configs"] == configs_of(disks.said["client-metrics configs"])
    assert settings["client_metrics_configs"] == {"all": {"interval.ms": "30000"}}


def test_users_and_quotas(disks: Disks, report: Any) -> None:
    settings = report["settings"]
    assert settings["scram_users"] == [{"name": "ann", "mechanism": "SCRAM-SHA-512", "iterations": 4096}]
    assert any("SCRAM-SHA-512=iterations=4096" in line for line in disks.said["users configs"])
    assert {tuple(one["entity"].items()): one["values"] for one in settings["quotas"]} == {
        (("user", "ann"),): {"producer_byte_rate": 4096.0},
        (("client-id", None),): {"request_percentage": 150.0},
    }
    text = json.dumps(report)
    assert "s3cret" not in text
    assert '"salt"' not in text


def test_acls(disks: Disks, report: Any) -> None:
    said: list[tuple[str, ...]] = []
    resource: tuple[str, ...] = ()
    for line in disks.said["acls"]:
        if header := re.search(r"resourceType=(\w+), name=(.*), patternType=(\w+)\)", line):
            resource = header.groups()
        elif entry := re.search(r"principal=(.*), host=(.*), operation=(\w+), permissionType=(\w+)\)", line):
            said.append((*resource, *entry.groups()))
    assert [tuple(acl.values()) for acl in report["settings"]["acls"]] == sorted(said)
    assert len(said) == 2


def test_quorum(disks: Disks, report: Any) -> None:
    said = dict(re.findall(r"(\w+): +(.*)", "\n".join(disks.said["quorum"])))
    quorum = report["quorum"]
    assert (str(quorum["leader"]), str(quorum["leader_epoch"])) == (said["LeaderId"], said["LeaderEpoch"])
    voters = {one["id"]: one["endpoints"] for one in json.loads(said["CurrentVoters"])}
    assert {one["controller_id"]: one["endpoints"] for one in quorum["controllers"]} == voters
    assert all(one["is_voter"] for one in quorum["controllers"])
    assert report["metadata_end_offset"] >= int(said["HighWatermark"])


def test_groups(disks: Disks, report: Any) -> None:
    said = positions_of(disks.said["groups"])
    shares = [line.rsplit(maxsplit=4) for line in disks.said["shares"] if line.startswith("sharing")]
    said |= {
        (name, topic, int(number)): (int(start), int(lag))
        for name, topic, number, start, lag in shares
        if start != "-"
    }
    assert ("sharing", "orders", 0) in said
    found = {
        (group["group"], one["topic"], one["partition"]): (one["offset"], one["lag"])
        for group in report["groups"]
        for one in group["positions"]
    }
    assert found == said


def test_kinds_of_groups(disks: Disks) -> None:
    types = {group["group"]: group["type"] for group in disks.live["groups"]}
    assert types == {"billing, inc.": "classic", "audit": "consumer", "sharing": "share"}


def positions_of(lines: list[str]) -> dict[tuple[str, str, int], tuple[int, int]]:
    """Offset and lag by group, topic and partition, as kafka-consumer-groups --describe shows them."""
    rows = [line.rsplit(maxsplit=8) for line in lines if line.strip() and not line.startswith("GROUP")]
    return {(row[0], row[1], int(row[2])): (int(row[3]), int(row[5])) for row in rows}


def test_transactions(report: Any) -> None:
    (transaction,) = report["transactions"]
    assert transaction["state"] == "Ongoing"
    (opened,) = report["open_transactions"]
    assert opened["transactional_id"] == transaction["transactional_id"]
    assert not opened["hanging"]
    assert f"{opened['topic']}-{opened['partition']}" in transaction["partitions"]


def test_disks(disks: Disks, report: Any) -> None:
    for broker in report["brokers"]:
        assert len(broker["disks"]) == 2
        assert all(one["registered"] and one["partitions"] == one["assigned"] for one in broker["disks"])
        assert broker["fenced"] is (broker["broker_id"] == 3)
    part = magicbyte.cluster(disks.roots[:1])
    missing = [(one["broker_id"], disk["path"]) for one in part["brokers"] for disk in one["disks"]]
    assert [path is None for _, path in missing] == [False, True, True, True, True, True]
    assert any("is not among the sources" in problem for problem in part["problems"])
    assert {one["topic"] for one in part["topics"]} == {one["topic"] for one in report["topics"]}


def test_running_brokers(disks: Disks) -> None:
    assert disks.live["problems"] == []
    assert [one["group"] for one in disks.live["groups"]] == ["audit", "billing, inc.", "sharing"]


def test_positions_are_given_to_kafkas_tool(disks: Disks) -> None:
    """The groups are deleted, and get their positions again from the file."""
    assert '"billing, inc.",orders,0,7' in disks.csv.splitlines()
    assert disks.reset == positions_of(disks.said["groups"])


def test_a_quorum_whose_voters_are_in_the_log(tmp_path: Path) -> None:
    """As the node is formatted, before its first start."""
    properties = tmp_path / "server.properties"
    properties.write_text(
        f"""process.roles=broker,controller
node.id=5
controller.quorum.bootstrap.servers=127.0.0.1:19555
listeners=PLAINTEXT://127.0.0.1:19554,CONTROLLER://127.0.0.1:19555
controller.listener.names=CONTROLLER
log.dirs={tmp_path / "logs"}
"""
    )
    command = java("kafka.tools.StorageTool", "format", "--standalone", "-t", CLUSTER, "-c", str(properties))
    subprocess.run(command, check=True, capture_output=True)
    report = magicbyte.cluster(tmp_path / "logs")
    (controller,) = report["quorum"]["controllers"]
    directory = re.search(r"directory.id=(\S+)", (tmp_path / "logs" / "meta.properties").read_text())
    assert directory is not None
    assert (controller["controller_id"], controller["directory_id"]) == (5, directory[1])
    assert controller["endpoints"] == ["CONTROLLER://127.0.0.1:19555"]
    assert report["quorum"]["kraft_version"] == 1
    assert report["problems"] == []


def test_the_first_metadata_records(tmp_path: Path) -> None:
    """Since Kafka 4.4 a node is formatted with a snapshot (KIP-1170). The log, which begins at 0, does not repeat it."""
    node = Node(tmp_path, NEWEST)
    try:
        clients = Client(node.bootstrap)
        clients.ask("create", "orders")
        clients.close()
    finally:
        node.close()
    logs = tmp_path / "logs"
    first = logs / "__cluster_metadata-0" / f"{0:020}-{0:010}.checkpoint"
    assert first.is_file()
    report = magicbyte.cluster(logs)
    assert report["problems"] == []
    assert report["settings"]["features"]["metadata.version"] >= 33
    assert "orders" in {one["topic"] for one in magicbyte.topics(logs)["topics"]}
    first.chmod(0o600)
    first.write_bytes(first.read_bytes()[:-20])
    problems = magicbyte.cluster(logs)["problems"]
    assert any("the snapshot is not whole" in problem for problem in problems)
