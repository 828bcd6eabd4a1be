"""`topics` and `offsets` of a running cluster, which `magicbyte serve` plays here."""

from __future__ import annotations

import shutil
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import magicbyte
import pytest
from conftest import KAFKA, Cli
from live_proxy import lying
from magicbyte.errors import RefusedError
from magicbyte.jobs.find.choice import PartitionChoice

TOPICS = ("v2_lz4", "v2_txn", "v1_gzip")


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Some partitions of real brokers, with the positions of groups."""
    root = tmp_path_factory.mktemp("logs")
    for topic in TOPICS:
        shutil.copytree(KAFKA / topic, root / f"{topic}-0")
    for number in range(3):
        if (source := KAFKA / f"consumer_offsets_{number}").is_dir():
            shutil.copytree(source, root / f"__consumer_offsets-{number}")
    return root


@pytest.fixture(scope="module")
def served(logs: Path) -> Iterator[str]:
    """The URL of a cluster that has them."""
    with magicbyte.serve(logs, listen="127.0.0.1:0") as server:
        yield f"kafka://{server.bootstrap_servers}"


def test_topics(cli: Cli, logs: Path, served: str) -> None:
    report = cli.json("topics", served)
    assert (report["cluster"], report["cluster_metadata"], report["problems"]) == (served, None, [])
    by_name = {one["topic"]: one for one in report["topics"]}
    of_files = {one["topic"]: one for one in magicbyte.topics(logs)["topics"]}
    assert {*of_files} <= {*by_name}
    for name, expected in of_files.items():
        found = by_name[name]
        assert expected["topic_id"] in (None, found["topic_id"])
        partitions = [one["partition"] for one in expected["partitions"]]
        assert [one["partition"] for one in found["partitions"]] == partitions
        for one in found["partitions"]:
            assert one["leader"] in one["isr"]
            assert set(one["isr"]) <= set(one["replicas"])
            assert one["here"] is None


def test_the_table_of_topics(cli: Cli, served: str) -> None:
    header, *rows = [line.split() for line in cli("topics", "--topic", "v2_*", served).splitlines()]
    assert header[:3] == ["topic", "id", "partitions"]
    assert [row[0] for row in rows] == ["v2_lz4", "v2_txn"]
    assert {row[3] for row in rows} == {"-"}, "nobody knows what is here"


@pytest.mark.parametrize(
    ("path", "choice", "expected"),
    [
        ("", PartitionChoice(topics=("v2_*",)), ["v2_lz4", "v2_txn"]),
        ("/v2_lz4", PartitionChoice(), ["v2_lz4"]),
        ("/v2_lz4/0", PartitionChoice(), ["v2_lz4"]),
        ("", PartitionChoice(exclude=("__*", "v2_*")), ["v1_gzip"]),
        ("", PartitionChoice(exclude_internal=True, exclude=("__magicbyte*",)), sorted(TOPICS)),
    ],
)
def test_choices_of_topics(served: str, path: str, choice: PartitionChoice, expected: list[str]) -> None:
    assert [one["topic"] for one in magicbyte.topics(served + path, choice=choice)["topics"]] == expected


@pytest.mark.parametrize("path", ["/none", "/v2_lz4/1"])
def test_topics_that_are_not_there(served: str, path: str) -> None:
    with pytest.raises(RefusedError, match="the cluster has no"):
        magicbyte.topics(served + path)
    with pytest.raises(RefusedError, match="no partition is chosen"):
        magicbyte.topics(served, choice=PartitionChoice(topics=("none",)))


def test_offsets_are_those_of_the_files(cli: Cli, logs: Path, served: str) -> None:
    """But for what only the files have."""
    expected, found = magicbyte.offsets(logs), cli.json("offsets", served)
    assert found["problems"] == []
    assert found["pending"] is None
    assert len(found["offsets"]) == len(expected["offsets"]) > 0
    of_disks = {"commit_timestamp": None, "expire_timestamp": None, "lost_ahead": None}
    for one, other in zip(expected["offsets"], found["offsets"], strict=True):
        assert other == {**one, **of_disks}
    types = {one["group"]: one["type"] for one in expected["groups"]}
    listed = {one["group"]: one for one in found["groups"]}
    assert types.items() <= {group: one["type"] for group, one in listed.items()}.items()
    assert {one["state"] for one in listed.values()} == {"Empty"}
    assert {one["group"] for one in found["offsets"]} <= {*listed}


def test_the_lag_of_a_group(served: str) -> None:
    """A position in a log that is there, another in one that is not, and one after the end."""
    from confluent_kafka import Consumer, TopicPartition

    settings = {"bootstrap.servers": served.removeprefix("kafka://"), "group.id": "late"}
    consumer = Consumer({**settings, "enable.auto.commit": False})
    place = TopicPartition("v2_lz4", 0, 17)
    consumer.commit(offsets=[place], asynchronous=False)
    report = magicbyte.offsets(f"{served}/v2_lz4", group="late")
    (one,) = report["offsets"]
    assert (one["offset"], one["out_of_range"]) == (17, False)
    assert one["log_end_offset"] is not None
    assert one["lag"] == one["committed_lag"] == one["log_end_offset"] - 17
    (group,) = report["groups"]
    assert (group["group"], group["type"], group["state"]) == ("late", "classic", "Empty")
    place.offset = 1 << 40
    consumer.commit(offsets=[place], asynchronous=False)
    consumer.close()
    (one,) = magicbyte.offsets(served, group="late")["offsets"]
    assert one["out_of_range"]
    with pytest.raises(magicbyte.RefusedError, match="no group matches 'nope'"):
        magicbyte.offsets(served, group="nope")


def test_members(served: str) -> None:
    """A group with a member, and its state."""
    from confluent_kafka import Consumer

    settings = {"bootstrap.servers": served.removeprefix("kafka://"), "group.id": "busy", "client.id": "me"}
    consumer = Consumer(settings)
    consumer.subscribe(["v2_lz4"])
    deadline = time.monotonic() + 60
    while not consumer.assignment():
        consumer.poll(0.1)
        assert time.monotonic() < deadline
    (group,) = magicbyte.offsets(served, group="busy")["groups"]
    consumer.close()
    assert (group["state"], group["protocol_type"], group["protocol"]) == ("Stable", "consumer", "range")
    (member,) = group["members"].values()
    assert member["client_id"] == "me"
    assert member["client_host"]


def test_lines_for_kafka_consumer_groups(cli: Cli, logs: Path, served: str) -> None:
    assert cli("offsets", "--csv", "--exclude", "v2_lz4", served) == cli(
        "offsets", "--csv", "--exclude", "v2_lz4", logs
    )


def test_one_cluster_at_a_time(cli: Cli, logs: Path, served: str) -> None:
    for command in ("topics", "offsets"):
        cli(command, served, logs, code=2)
        assert "a running cluster is described by itself" in cli.error
        cli(command, "--command-config", logs / "none", logs, code=2)
    config = logs.parent / "topics.json"
    config.write_text("{}")
    cli("topics", "--topic-config", config, served, code=2)
    assert "a running cluster tells its configs" in cli.error


def test_properties_of_the_connection(cli: Cli, tmp_path: Path, served: str) -> None:
    config = tmp_path / "client.properties"
    config.write_text("client.id=describing\n")
    assert cli.json("topics", "--command-config", config, served)["topics"]
    config.write_text("security.protocol=NONE\n")
    cli("offsets", "--command-config", config, served, code=2)
    assert "security.protocol" in cli.error


def test_nobody_answers(cli: Cli) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{closed.getsockname()[1]}"
        for command in ("topics", "offsets"):
            cli(command, f"kafka://{address}", code=3)
            assert address in cli.error


@pytest.mark.parametrize(
    "changes",
    [
        {b"v2_lz4": b"../lz4"},
        {b"v2_lz4": b"\x1b[2Jaa"},
        {b"v2_lz4": b"v2_txn"},
        {b"v2_lz4": b"\xff\xff\xff\xff\xff\xff"},
    ],
)
def test_a_lying_cluster(served: str, changes: dict[bytes, bytes]) -> None:
    """Names that are none, twice the same, and text that is none."""
    with lying(served.removeprefix("kafka://"), changes) as address:
        for describe in (magicbyte.topics, magicbyte.offsets):
            report: Any = None
            try:
                report = describe(f"kafka://{address}")
                assert "../lz4" not in str(report)
            except (OSError, RefusedError) as error:
                report = str(error)
            assert "\x1b" not in str(report)
