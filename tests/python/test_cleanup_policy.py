"""`compact` compacts the topics that Kafka would compact, and no others."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import magicbyte
import pytest
from conftest import KAFKA, Cli

NOW = 1_800_000_000_000


def partition(path: Path, *keys: bytes | None) -> Path:
    path.mkdir(parents=True)
    for offset, key in enumerate(keys):
        builder = magicbyte.RecordsBuilder()
        builder.append(offset=offset, timestamp=NOW, key=key, value=b"x")
        (path / f"{offset:020}.log").write_bytes(builder.build())
    return path


def metadata(path: Path, *values: bytes) -> None:
    path.mkdir(parents=True)
    builder = magicbyte.RecordsBuilder()
    for offset, value in enumerate(values):
        builder.append(offset=offset, timestamp=NOW, key=None, value=value)
    (path / f"{0:020}.log").write_bytes(builder.build())


def compact_bytes(text: str) -> bytes:
    return bytes([len(text) + 1]) + text.encode()


def topic(name: str, number: int) -> bytes:
    return b"\1\2\0" + compact_bytes(name) + bytes([number] * 16) + b"\0"


def partition_record(number: int) -> bytes:
    """Partition 0 of the topic with this id, on broker 0."""
    replicas = b"\2" + bytes(4)
    return b"\1\3\0" + bytes(4) + bytes([number] * 16) + replicas * 2 + b"\1\1" + bytes(12) + b"\0"


def config(name: str, key: str, value: str, kind: int = 2) -> bytes:
    return b"\1\4\0" + bytes([kind]) + b"".join(map(compact_bytes, (name, key, value))) + b"\0"


def test_policies_of_the_cluster(tmp_path: Path, cli: Cli) -> None:
    source, out = tmp_path / "in", tmp_path / "out"
    for name in ("both-0", "deleted-0", "other-0"):
        partition(source / name, b"a", b"a", b"a")
    metadata(
        source / "__cluster_metadata-0",
        topic("both", 1),
        topic("deleted", 2),
        topic("other", 3),
        config("both", "cleanup.policy", "compact,delete"),
        config("both", "segment.bytes", "1"),
        config("other", "cleanup.policy", "delete"),
        config("", "log.cleanup.policy", "delete", kind=4),
    )
    report = cli.json("compact", "--all", source, out)
    assert [one["topic"] for one in report["written"]] == ["both"]
    assert report["counts"]["superseded"] == 2
    # Not merged: the topic's segment.bytes.
    assert report["written"][0]["segments"] == 3
    assert {one["topic"]: one["reason"] for one in report["left_out"]} == {
        "__cluster_metadata": "Kafka replaces this log by snapshots, it is never compacted",
        "deleted": "cleanup.policy=delete (broker)",
        "other": "cleanup.policy=delete (topic)",
    }
    assert not (out / "other-0").exists()
    assert "other-0 is left out: cleanup.policy=delete (topic)" in cli("compact", source, tmp_path / "again")
    merged = cli.json("compact", "--all", "--segment-bytes", "1MiB", source, tmp_path / "merged")
    assert merged["written"][0]["segments"] == 1
    everything = cli.json("compact", "--all", "--all-topics", source, tmp_path / "everything")
    assert len(everything["written"]) == 3
    assert [one["topic"] for one in everything["left_out"]] == ["__cluster_metadata"]


@pytest.fixture
def unset(tmp_path: Path) -> Path:
    """A topic without a policy of its own, and one with."""
    source = tmp_path / "in"
    for name in ("unset-0", "own-0"):
        partition(source / name, b"a", b"a", b"a")
    records = topic("unset", 1), partition_record(1), topic("own", 2), partition_record(2)
    metadata(source / "__cluster_metadata-0", *records, config("own", "cleanup.policy", "delete"))
    return source


def policies(cli: Cli, source: Path, *options: object) -> dict[str, tuple[str | None, str | None]]:
    topics = cli.json("topics", *options, source)["topics"]
    return {one["topic"]: (one["cleanup_policy"], one["policy_from"]) for one in topics}


def test_the_brokers_default_is_no_fact(unset: Path, cli: Cli, tmp_path: Path) -> None:
    assert policies(cli, unset) == {"unset": (None, "default"), "own": ("delete", "topic")}
    assert "unknown (broker default; Kafka's is delete)" in cli("topics", unset)
    cli("compact", "--topic", "unset", unset, tmp_path / "out", code=2)
    assert "--server-properties" in cli.error


@pytest.mark.parametrize(
    ("text", "policy"),
    [
        ("log.cleanup.policy=compact", "compact"),
        ("# log.cleanup.policy=compact\nnode.id=1", "delete"),
        ("log.cleanup.policy : compact,\\\n  delete\nssl.key.password=secret", "compact,delete"),
        ("", "delete"),
    ],
)
def test_server_properties_have_the_default(
    unset: Path, cli: Cli, tmp_path: Path, text: str, policy: str
) -> None:
    file = tmp_path / "server.properties"
    file.write_text(text)
    given = ("--server-properties", file)
    assert policies(cli, unset, *given) == {
        "unset": (policy, "server.properties"),
        "own": ("delete", "topic"),
    }
    if "compact" in policy:
        report = cli.json("compact", "--all", *given, unset, tmp_path / "out")
        assert [one["topic"] for one in report["written"]] == ["unset"]
        assert "secret" not in json.dumps(report)


def test_dynamic_configs_come_before_server_properties(cli: Cli, tmp_path: Path) -> None:
    source, file = tmp_path / "in", tmp_path / "server.properties"
    dynamic = config("", "log.cleanup.policy", "delete", kind=4)
    metadata(source / "__cluster_metadata-0", topic("unset", 1), partition_record(1), dynamic)
    file.write_text("log.cleanup.policy=compact")
    assert policies(cli, source, "--server-properties", file) == {"unset": ("delete", "broker")}


def test_server_properties_say_nothing_of_a_topic_that_may_have_its_own(cli: Cli, tmp_path: Path) -> None:
    """Without the cluster's metadata, as with ZooKeeper."""
    partition(tmp_path / "in" / "orders-0", b"a")
    file = tmp_path / "server.properties"
    file.write_text("log.cleanup.policy=compact")
    assert policies(cli, tmp_path / "in", "--server-properties", file) == {"orders": (None, None)}


def test_server_properties_that_cannot_be_read(unset: Path, cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "server.properties"
    cli("topics", "--server-properties", file, unset, code=2)
    file.write_text("log.cleanup.policy=\\u00")
    cli("topics", "--server-properties", file, unset, code=2)
    assert str(file) in cli.error


def test_records_without_a_key_are_not_dropped_unasked(tmp_path: Path, cli: Cli) -> None:
    source, out = tmp_path / "in", tmp_path / "out"
    partition(source / "keyed-0", b"a", b"a")
    partition(source / "plain-0", b"a", None, None)
    assert cli("compact", source, out, code=2) == ""
    assert "plain-0 (2 records)" in cli.error
    assert "keyed-0" not in cli.error
    assert "--topic-config" in cli.error
    assert not out.exists()
    assert [path.name for path in tmp_path.iterdir()] == ["in"]
    report = cli.json("compact", "--all", "--all-topics", source, out)
    assert report["counts"]["keyless"] == 2
    file = tmp_path / "topics.json"
    file.write_text(json.dumps({"plain": {"cleanup.policy": "delete"}}))
    report = cli.json("compact", "--topic-config", file, source, tmp_path / "given")
    assert [one["topic"] for one in report["written"]] == ["keyed"]
    file.write_text(json.dumps({one: {"cleanup.policy": "delete"} for one in ("plain", "keyed")}))
    cli("compact", "--topic-config", file, source, tmp_path / "nothing", code=2)
    assert "nothing to compact: keyed-0: cleanup.policy=delete (file) and 1 more" in cli.error


@pytest.mark.parametrize("value", ["-1", "x", "9" * 5000])
def test_impossible_configs_are_refused(tmp_path: Path, cli: Cli, value: str) -> None:
    partition(tmp_path / "in" / "t-0", b"a")
    file = tmp_path / "topics.json"
    file.write_text(json.dumps({"t": {"cleanup.policy": "compact", "segment.bytes": value}}))
    cli("compact", "--topic-config", file, tmp_path / "in", tmp_path / "out", code=2)
    assert "t: segment.bytes=" in cli.error
    assert "expected a number from 1 to 2147483647" in cli.error


def test_offsets_are_always_compacted(tmp_path: Path, cli: Cli) -> None:
    shutil.copytree(KAFKA / "consumer_offsets_0", tmp_path / "in" / "__consumer_offsets-0")
    assert cli.json("compact", "--all", tmp_path / "in", tmp_path / "out")["counts"]["superseded"] > 0


@pytest.mark.parametrize("policy", ["", " ", "delete"])
def test_a_topic_that_keeps_everything_is_left_out(tmp_path: Path, cli: Cli, policy: str) -> None:
    source, out = tmp_path / "in", tmp_path / "out"
    partition(source / "orders-0", b"a", b"a", b"b")
    file = tmp_path / "topics.json"
    file.write_text(json.dumps({"orders": {"cleanup.policy": policy}}))
    cli("compact", "--topic-config", file, source, out, code=2)
    assert "nothing to compact: orders-0: cleanup.policy=" in cli.error
    assert not out.exists()


def test_an_empty_policy_comes_before_the_default_of_the_brokers(tmp_path: Path, cli: Cli) -> None:
    source, out = tmp_path / "in", tmp_path / "out"
    for name in ("keepall-0", "inherits-0"):
        partition(source / name, b"a", b"a", b"a")
    metadata(
        source / "__cluster_metadata-0",
        topic("keepall", 1),
        topic("inherits", 2),
        partition_record(1),
        partition_record(2),
        config("keepall", "cleanup.policy", ""),
        config("", "log.cleanup.policy", "compact", kind=4),
    )
    policies = {
        one["topic"]: (one["cleanup_policy"], one["policy_from"])
        for one in cli.json("topics", source)["topics"]
    }
    assert policies == {"keepall": ("", "topic"), "inherits": ("compact", "broker")}
    assert "(empty)" in cli("topics", source)
    report = cli.json("compact", "--all", source, out)
    assert [one["topic"] for one in report["written"]] == ["inherits"]
    assert {one["topic"]: one["reason"] for one in report["left_out"]}["keepall"] == (
        "cleanup.policy=(empty) (topic)"
    )


def test_a_default_that_only_the_brokers_know_is_unknown(tmp_path: Path, cli: Cli) -> None:
    source, out = tmp_path / "in", tmp_path / "out"
    partition(source / "orders-0", b"a", b"a", b"b")
    metadata(source / "__cluster_metadata-0", topic("orders", 1), partition_record(1))
    (orders,) = cli.json("topics", source)["topics"]
    assert (orders["cleanup_policy"], orders["policy_from"]) == (None, "default")
    assert "unknown" in cli("topics", source)
    cli("compact", "--topic", "orders", source, out, code=2)
    assert "orders-0: cleanup.policy is the brokers' default" in cli.error
    file = tmp_path / "topics.json"
    file.write_text(json.dumps({"orders": {"cleanup.policy": "compact"}}))
    assert cli.json("compact", "--topic-config", file, source, out)["written"]
