"""Outputs have what a broker reads beside segments: topic IDs, and leader epochs that followers take."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import magicbyte
import pytest
from conftest import KAFKA, Cli
from magicbyte import PartitionLog, RecordsBuilder, _core
from test_cleanup_policy import metadata, partition_record, topic

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ID, OTHER = "AAAAAAAAAAAAAAAAAAAAAw", "BBBBBBBBBBBBBBBBBBBBBA"
OF_CLUSTER = "AQEBAQEBAQEBAQEBAQEBAQ"
"""The ID of topic 1 in the metadata of these tests."""
COMMANDS = {"recover": [], "convert": [], "redact": ["--where", "offset > 99"], "compact": ["--all"]}


def batch(base: int, epoch: int = -1) -> bytes:
    builder = RecordsBuilder(partition_leader_epoch=epoch)
    builder.append(base, 1_700_000_000_000, b"k%d" % base, b"v")
    return builder.build()


def write(directory: Path, topic_id: str | None = None) -> Path:
    directory.mkdir(parents=True)
    (directory / f"{0:020}.log").write_bytes(batch(0) + batch(1, 3) + batch(2))
    if topic_id is not None:
        (directory / "partition.metadata").write_text(f"version: 0\ntopic_id: {topic_id}")
    return directory


def id_in(directory: Path) -> str | None:
    file = directory / "partition.metadata"
    return file.read_text().partition("topic_id: ")[2] if file.exists() else None


@pytest.mark.parametrize("command", COMMANDS)
def test_the_id_of_the_source_is_carried(cli: Cli, tmp_path: Path, command: str) -> None:
    source, out = tmp_path / "logs", tmp_path / "out"
    write(source / "orders-0", ID)
    write(source / "orders-1")
    write(source / "other-0")
    text = cli(command, *COMMANDS[command], source, out)
    assert (id_in(out / "orders-0"), id_in(out / "orders-1"), id_in(out / "other-0")) == (ID, ID, None)
    assert "no partition.metadata, since the topic's id is unknown: other-0." in text
    report = json.loads((out / "reconciliation.json").read_text())
    assert {(one["topic"], one["topic_id"]) for one in report["written"]} == {("orders", ID), ("other", None)}


@pytest.mark.parametrize("command", COMMANDS)
def test_an_id_for_another_cluster_comes_first(cli: Cli, tmp_path: Path, command: str) -> None:
    source = tmp_path / "logs"
    write(source / "orders-0", ID)
    for given in (OTHER, f"orders={OTHER}"):
        out = tmp_path / f"out-{len(given)}"
        text = cli(command, *COMMANDS[command], "--topic-id", given, source, out)
        assert id_in(out / "orders-0") == OTHER
        assert "partition.metadata" not in text
    write(source / "other-0", ID)
    cli(command, *COMMANDS[command], "--topic-id", OTHER, source, tmp_path / "two", code=2)
    assert "2 topics: give TOPIC=ID for each" in cli.error
    for wrong in ("=" + OTHER, "orders=", "orders=x", "x"):
        cli(command, "--topic-id", wrong, source, tmp_path / "wrong", code=2)
    cli(command, *COMMANDS[command], "--topic-id", f"nope={OTHER}", source, tmp_path / "wrong", code=2)
    assert "an ID is given for the topic nope; there are orders, other" in cli.error
    assert not (tmp_path / "wrong").exists()
    # One that is there, but not chosen.
    chosen = ("--exclude", "orders", "--topic-id", f"orders={OTHER}")
    cli(command, *COMMANDS[command], *chosen, source, tmp_path / "chosen")


def test_the_id_is_known_to_the_cluster(cli: Cli, tmp_path: Path) -> None:
    source, out = tmp_path / "logs", tmp_path / "out"
    write(source / "orders-0")
    metadata(source / "__cluster_metadata-0", topic("orders", 1), partition_record(1))
    cli("recover", "--topic", "orders", source, out)
    assert id_in(out / "orders-0") == OF_CLUSTER


def test_verify_names_partitions_that_a_broker_sets_aside(cli: Cli, tmp_path: Path) -> None:
    write(tmp_path / "orders-0", ID)
    write(tmp_path / "orders-1")
    (tmp_path / "meta.properties").write_text("node.id=7\nversion=1\ncluster.id=abc\n")
    report = cli.json("verify", tmp_path, code=1)
    (problem,) = report["problems"]
    assert (problem["kind"], problem["partition"]) == ("topic_id_missing", 1)
    assert "stray" in problem["message"]
    # The log itself is whole.
    assert len(cli.records(tmp_path)) == 6
    # A broker with ZooKeeper writes the file itself.
    (tmp_path / "meta.properties").write_text("broker.id=7\nversion=0\ncluster.id=abc\n")
    assert cli.json("verify", tmp_path)["problems"] == []


# --- leader epochs -------------------------------------------------------------------------------


def epochs(directory: Path) -> list[int]:
    return [one.partition_leader_epoch for one in PartitionLog(directory).batches()]


@pytest.mark.parametrize("command", COMMANDS)
def test_no_batch_is_written_without_an_epoch(cli: Cli, tmp_path: Path, command: str) -> None:
    source, out = tmp_path / "logs", tmp_path / "out"
    write(source / "orders-0", ID)
    cli(command, *COMMANDS[command], source, out)
    assert epochs(out / "orders-0") == [0, 3, 3]


@pytest.mark.parametrize("name", ["v0_none", "v1_gzip", "mixed_012"])
def test_converted_messages_get_epoch_0(cli: Cli, tmp_path: Path, name: str) -> None:
    source, out = tmp_path / "logs", tmp_path / "out"
    shutil.copytree(KAFKA / name, source / "old-0", ignore=shutil.ignore_patterns("rebuilt", "*.json*"))
    for path in source.rglob("*"):
        path.chmod(0o755 if path.is_dir() else 0o644)
    cli("convert", source, out)
    found = epochs(out / "old-0")
    assert min(found) >= 0
    assert found == sorted(found)
    assert (out / "old-0" / "leader-epoch-checkpoint").read_text().splitlines()[2] == "0 0"


def test_epoch_minus_1_is_refused(cli: Cli, tmp_path: Path) -> None:
    source = tmp_path / "logs"
    write(source / "orders-0", ID)
    for command in ("recover", "convert"):
        cli(command, "--leader-epoch", -1, source, tmp_path / "out", code=2)
        cli(command, "--leader-epoch", 0, source, tmp_path / command)
        assert epochs(tmp_path / command / "orders-0") == [0, 0, 0]
    with pytest.raises(ValueError, match="leader_epoch: -1 is not in the range from 0"):
        magicbyte.commands.convert(source, tmp_path / "out", leader_epoch=-1)


def test_a_partition_writer_gives_batches_an_epoch_and_a_builder_none(tmp_path: Path) -> None:
    target = tmp_path / "orders-0"
    writer = _core.PartitionWriter(_core.begin_partition(target))
    writer.append(batch(0) + batch(1, 3) + batch(2))
    _core.finish_partition(target, writer.finish())
    assert epochs(target) == [0, 3, 3]
    (built,) = magicbyte.read_batches(batch(0))
    assert built.partition_leader_epoch == -1


def test_the_spark_writer(spark: SparkSession, tmp_path: Path) -> None:
    rows = spark.createDataFrame(
        [("orders", 0, offset, b"v") for offset in (7, 8)],
        "topic string, partition int, offset long, value binary",
    ).coalesce(1)
    out = tmp_path / "out"
    writer = rows.write.format("magicbyte").mode("append")
    writer.option("topicIds", json.dumps({"orders": ID})).save(str(out))
    assert id_in(out / "orders-0") == ID
    assert set(epochs(out / "orders-0")) == {0}
    with pytest.raises(Exception, match=r"topicIds: .* does not look like"):
        writer.option("topicIds", '{"orders": "x"}').save(str(tmp_path / "refused"))
