"""Directories of brokers: what is missing, what their own files say, and which partitions are read."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from conftest import KAFKA, Cli
from magicbyte import PartitionLog, RecordsBuilder
from magicbyte.errors import Error, RefusedError
from magicbyte.jobs.find.choice import PartitionChoice
from magicbyte.jobs.find.partitions import find_inputs, list_partitions
from magicbyte.log_dir import format_offset_checkpoint

FIRST, SECOND = "00000000000000000000", "00000000000000000232"
RECORDS = 273
"""The records of `mixed_012`: 232 in its first segment."""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """The directory of a broker that was killed: one partition of two segments, and one with one."""
    root = tmp_path / "kafka-logs"
    shutil.copytree(
        KAFKA / "mixed_012", root / "orders-0", ignore=shutil.ignore_patterns("rebuilt", "*.json*")
    )
    shutil.copytree(KAFKA / "v2_none", root / "events-3", ignore=shutil.ignore_patterns("rebuilt", "*.json*"))
    (root / "meta.properties").write_text("#\nnode.id=7\nversion=1\ncluster.id=abc\ndirectory.id=def\n")
    for directory in ("orders-0", "events-3"):
        metadata = f"version: 0\ntopic_id: {'A' * 22}"
        (root / directory / "partition.metadata").write_text(metadata)
    write_checkpoint(root, "replication-offset-checkpoint", {("orders", 0): RECORDS})
    return root


def write_checkpoint(root: Path, name: str, offsets: dict[tuple[str, int], int]) -> None:
    (root / name).write_text(format_offset_checkpoint(offsets))


def problems(report: dict[str, Any], kind: str) -> list[dict[str, Any]]:
    return [one for one in report["problems"] if one["kind"] == kind]


def lost(problem: dict[str, Any]) -> tuple[int | None, int | None]:
    return problem["first_lost_offset"], problem["last_lost_offset"]


def lost_offsets(report: dict[str, Any]) -> int:
    """The number of offsets that the problems name, each once."""
    offsets: set[tuple[str, int, int]] = set()
    for one in report["problems"]:
        first, last = lost(one)
        if first is not None and last is not None:
            offsets |= {(one["topic"], one["partition"], offset) for offset in range(first, last + 1)}
    return len(offsets)


# --- missing segments ----------------------------------------------------------------------------


def test_a_complete_directory_has_no_problems(cli: Cli, root: Path) -> None:
    report = cli.json("verify", root)
    (log_dir,) = report["log_dirs"]
    assert (log_dir["broker_id"], log_dir["cluster_id"], log_dir["directory_id"]) == (7, "abc", "def")
    assert log_dir["clean_shutdown"] is False
    assert (log_dir["offsets"], log_dir["offsets_held"]) == (RECORDS, RECORDS)
    assert log_dir["partitions"] == [
        {
            "topic": "orders",
            "partition": 0,
            "checkpoints": {"log_start_offset": None, "recovery_point": None, "high_watermark": RECORDS},
            "next_offset": RECORDS,
        }
    ]


def test_a_missing_first_segment_is_named_by_its_index(cli: Cli, root: Path) -> None:
    (root / "orders-0" / f"{FIRST}.log").unlink()
    report = cli.json("verify", root, code=1)
    (missing,) = problems(report, "missing_segment")
    assert (missing["segment"], *lost(missing)) == (f"{FIRST}.log", 0, 231)
    assert f"{FIRST}.timeindex is there" in missing["message"]
    (log_dir,) = report["log_dirs"]
    assert (log_dir["offsets"], log_dir["offsets_held"]) == (RECORDS, RECORDS - 232)


def test_a_checkpoint_names_a_topic_that_no_path_can_have(cli: Cli, root: Path) -> None:
    write_checkpoint(root, "recovery-point-offset-checkpoint", {("or\0ders", 0): 7})
    (missing,) = problems(cli.json("verify", root, code=1), "partition_missing")
    assert missing["topic"] == "or\0ders"


def test_a_missing_last_segment_is_named_by_its_index(cli: Cli, root: Path) -> None:
    (root / "orders-0" / f"{SECOND}.log").unlink()
    report = cli.json("verify", root, code=1)
    (missing,) = problems(report, "missing_segment")
    assert (missing["segment"], *lost(missing)) == (f"{SECOND}.log", 232, None)
    (beyond,) = problems(report, "checkpoint_beyond_log")
    assert lost(beyond) == (232, RECORDS - 1)
    assert "replication-offset-checkpoint" in beyond["message"]
    assert report["balanced"] is True


def test_all_files_of_the_last_segment_are_gone(cli: Cli, root: Path) -> None:
    for path in (root / "orders-0").glob(f"{SECOND}.*"):
        path.unlink()
    report = cli.json("verify", root, code=1)
    assert problems(report, "missing_segment") == []
    assert lost(*problems(report, "checkpoint_beyond_log")) == (232, RECORDS - 1)
    write_checkpoint(root, "recovery-point-offset-checkpoint", {("orders", 0): RECORDS + 5})
    (beyond,) = problems(cli.json("verify", root, code=1), "checkpoint_beyond_log")
    assert lost(beyond) == (232, RECORDS + 4)
    assert "recovery-point-offset-checkpoint" in beyond["message"]


def test_all_files_of_the_first_segment_are_gone(cli: Cli, root: Path) -> None:
    for path in (root / "orders-0").glob(f"{FIRST}.*"):
        path.unlink()
    (root / "orders-0" / "leader-epoch-checkpoint").write_text("0\n1\n0 0\n")
    (epochs,) = problems(cli.json("verify", root / "orders-0", code=1), "missing_segment")
    assert (epochs["segment"], *lost(epochs)) == ("leader-epoch-checkpoint", 0, 231)
    # A log that begins later according to its epochs, too, was trimmed by its retention time.
    (root / "orders-0" / "leader-epoch-checkpoint").write_text("0\n1\n0 232\n")
    assert problems(cli.json("verify", root), "missing_segment") == []


def config_record(topic: str, name: str, value: str) -> bytes:
    texts = (bytes([len(text) + 1]) + text.encode() for text in (topic, name, value))
    return b"\1\4\0\2" + b"".join(texts) + b"\0"


@pytest.mark.parametrize(
    ("configs", "is_problem"),
    [
        (None, False),
        ({}, False),
        ({"retention.ms": "-1"}, True),
        ({"retention.ms": "-1", "retention.bytes": "1000"}, False),
        ({"cleanup.policy": "compact"}, True),
        ({"cleanup.policy": "compact,delete"}, False),
    ],
)
def test_what_retention_deleted_after_the_last_checkpoint(
    cli: Cli, root: Path, configs: dict[str, str] | None, is_problem: bool
) -> None:
    for path in (root / "orders-0").glob(f"{FIRST}.*"):
        path.unlink()
    (root / "orders-0" / "leader-epoch-checkpoint").unlink()
    write_checkpoint(root, "log-start-offset-checkpoint", {("orders", 0): 100})
    if configs is not None:
        records = [config_record("orders", *one) for one in configs.items()]
        write_metadata(root, topic_record("orders", 1), partition_record(1, 0, [7]), *records)
    report = cli.json("verify", root, code=int(is_problem))
    (log_dir,) = report["log_dirs"]
    ranges = [lost(one) for one in problems(report, "missing_segment")]
    assert ranges == ([(100, 231)] if is_problem else [])
    assert log_dir["offsets"] == RECORDS - (100 if is_problem else 232)
    assert ["orders-0 begins at 232" in note for note in log_dir["notes"]] == [True] * (not is_problem)
    assert ("orders-0 begins at 232" in cli("verify", root, code=None)) is not is_problem


def test_a_topic_that_checkpoints_name_after_its_deletion(cli: Cli, root: Path) -> None:
    write_checkpoint(root, "replication-offset-checkpoint", {("gone", 4): 1, ("orders", 0): RECORDS})
    topics = [topic_record("orders", 1), topic_record("events", 2)]
    write_metadata(root, *topics)
    report = cli.json("verify", root)
    assert report["log_dirs"][0]["notes"] == ["the topic gone is deleted: checkpoints still name it"]
    shutil.rmtree(root / "__cluster_metadata-0")
    write_metadata(root, *topics, topic_record("gone", 3))
    assert missing_of(cli.json("verify", root, code=1)) == ["gone-4"]
    # Metadata that does not know a topic whose directory is there is not whole.
    shutil.rmtree(root / "__cluster_metadata-0")
    write_metadata(root, topics[0])
    assert missing_of(cli.json("verify", root, code=1)) == ["gone-4"]


def test_a_segment_that_a_broker_was_deleting_is_not_missing(cli: Cli, root: Path) -> None:
    segment = root / "orders-0" / f"{FIRST}.log"
    segment.rename(segment.with_name(f"{FIRST}.log.deleted"))
    (root / "orders-0" / "leader-epoch-checkpoint").unlink()
    assert problems(cli.json("verify", root, code=None), "missing_segment") == []


@pytest.mark.parametrize("left", [f"{FIRST}.index", "partition.metadata", "leader-epoch-checkpoint"])
def test_a_directory_without_segments(cli: Cli, root: Path, left: str) -> None:
    bare = root / "bare-1"
    bare.mkdir()
    content = {"partition.metadata": "version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAQ\n"}
    (bare / left).write_text(content.get(left, ""))
    report = cli.json("verify", root, code=1)
    (missing,) = problems(report, "missing_segment")
    assert (missing["topic"], missing["partition"]) == ("bare", 1)
    assert left in missing["message"]
    assert [one["topic"] for one in report["partitions"]] == ["bare", "events", "orders"]


@pytest.mark.parametrize("ending", ["lz4", "xz"])
def test_compressed_segments_of_other_tools(cli: Cli, root: Path, ending: str, tmp_path: Path) -> None:
    for path in (root / "orders-0").glob("*.log"):
        path.rename(f"{path}.{ending}")
    report = cli.json("verify", root, code=1)
    first, second = problems(report, "missing_segment")
    assert (lost(first), lost(second)) == ((0, 231), (232, None))
    assert f"only {FIRST}.log.{ending} is there: decompress it" in first["message"]
    orders = next(one for one in report["partitions"] if one["topic"] == "orders")
    reasons = {one["file"]: one["reason"] for one in orders["ignored"]}
    assert reasons[f"{FIRST}.log.{ending}"] == "compressed"
    cli("ingest", root, tmp_path / "tables", code=1)
    assert cli("records", root / "orders-0", code=1) == ""
    assert "decompress it" in cli.error


def test_reading_to_the_end_fails_fast_at_a_missing_segment(root: Path) -> None:
    (root / "orders-0" / f"{SECOND}.log").unlink()
    with pytest.raises(Error, match=f"{SECOND}.log"):
        list(PartitionLog(root / "orders-0").records())
    log = PartitionLog(root / "orders-0")
    assert len(list(log.records(end_offset=232))) == 232
    assert len(list(PartitionLog(root / "orders-0", mode="PERMISSIVE").records())) == 232


# --- the broker's own files ----------------------------------------------------------------------


def test_a_partition_that_only_the_checkpoints_name(cli: Cli, root: Path, tmp_path: Path) -> None:
    write_checkpoint(root, "replication-offset-checkpoint", {("orders", 0): RECORDS, ("gone", 4): 48_933})
    report = cli.json("verify", root, code=1)
    (missing,) = problems(report, "partition_missing")
    assert (missing["topic"], missing["partition"]) == ("gone", 4)
    assert lost(*problems(report, "checkpoint_beyond_log")) == (0, 48_932)
    (log_dir,) = report["log_dirs"]
    assert log_dir["missing_partitions"] == 1
    assert (log_dir["offsets"], log_dir["offsets_held"]) == (RECORDS + 48_933, RECORDS)
    text = cli("verify", root, code=1)
    assert "broker 7 of cluster abc, which did not stop in order" in text
    assert "name 2 partitions with 49,206 offsets; this copy has 273 of them" in text
    assert "1 partition without a directory" in text
    # Nothing else about it: it is not among the chosen partitions.
    assert problems(cli.json("verify", "--topic", "orders", root), "partition_missing") == []

    report = cli.json("ingest", root, tmp_path / "tables", code=1)
    assert report["log_dirs"] == [log_dir]
    kinds = [one["kind"] for one in cli_problems(tmp_path / "tables")]
    assert sorted(kinds) == ["checkpoint_beyond_log", "partition_missing"]


def cli_problems(tables: Path) -> list[dict[str, Any]]:
    import pyarrow.parquet as pq

    return pq.read_table(tables / "problems").to_pylist()


def cut(path: Path, size: int) -> None:
    path.write_bytes(path.read_bytes()[:size])


def flip(path: Path, position: int) -> None:
    data = bytearray(path.read_bytes())
    data[position] ^= 1
    path.write_bytes(data)


@pytest.mark.parametrize(
    "damage",
    [
        ["flip first"],
        ["flip second"],
        ["cut second"],
        ["cut first"],
        ["no first"],
        ["no second"],
        ["no first", "flip second"],
        ["no first", "cut second"],
        ["cut first", "no second"],
        ["flip first", "cut first", "flip second", "cut second"],
        ["no directory"],
        ["log start", "no first"],
        ["log start", "flip second", "no directory events"],
    ],
    ids=" and ".join,
)
def test_lost_offsets_are_those_of_all_problems(cli: Cli, root: Path, damage: list[str]) -> None:
    """The sum that is printed is the union of the problems' ranges, so none is left out or counts twice."""
    write_checkpoint(root, "replication-offset-checkpoint", {("orders", 0): RECORDS, ("events", 3): 30})
    logs = {"first": root / "orders-0" / f"{FIRST}.log", "second": root / "orders-0" / f"{SECOND}.log"}
    for word, _, what in (one.partition(" ") for one in damage):
        if word == "log":
            write_checkpoint(root, "log-start-offset-checkpoint", {("orders", 0): 100})
        elif what.startswith("directory"):
            shutil.rmtree(root / ("events-3" if what.endswith("events") else "orders-0"))
        elif word == "no":
            logs[what].unlink()
        elif word == "cut":
            cut(logs[what], logs[what].stat().st_size - 20)
        else:
            flip(logs[what], 90)
    report = cli.json("verify", root, code=1)
    assert report["total"]["lost_offsets"] == lost_offsets(report) > 0
    by_partition = sum(one["lost_offsets"] for one in report["partitions"])
    assert by_partition == report["total"]["lost_offsets"]
    (log_dir,) = report["log_dirs"]
    assert 0 <= log_dir["offsets_held"] <= log_dir["offsets"]


def test_damage_counts_against_the_offsets_that_are_held(cli: Cli, root: Path) -> None:
    segment = root / "orders-0" / f"{SECOND}.log"
    data = bytearray(segment.read_bytes())
    data[90] ^= 1
    segment.write_bytes(data)
    report = cli.json("verify", root, code=1)
    (log_dir,) = report["log_dirs"]
    held = RECORDS - report["total"]["lost_offsets"]
    assert held < RECORDS
    assert log_dir["offsets_held"] == held


def test_a_broker_that_stopped_in_order(cli: Cli, root: Path) -> None:
    (root / ".kafka_cleanshutdown").write_text('{"version":0,"brokerEpoch":12}')
    assert cli.json("verify", root)["log_dirs"][0]["clean_shutdown"] is True
    assert "which stopped in order" in cli("verify", root)


def test_a_broken_checkpoint_is_a_problem_of_its_own(cli: Cli, root: Path) -> None:
    (root / "replication-offset-checkpoint").write_text("0\n2\norders 0 273\n")
    report = cli.json("verify", root, code=1)
    (problem,) = report["log_dirs"][0]["problems"]
    assert "replication-offset-checkpoint" in problem
    assert "2 entries are announced" in problem
    assert report["total"]["problems"] == 0
    assert problem in cli("verify", root, code=1)


# --- what the cluster's metadata assigns ---------------------------------------------------------

UNASSIGNED = bytes(15) + b"\1"


def uuid(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def compact_array(items: Sequence[bytes]) -> bytes:
    return bytes([len(items) + 1]) + b"".join(items)


def int32(number: int) -> bytes:
    return number.to_bytes(4, "big", signed=True)


def topic_record(name: str, number: int) -> bytes:
    return b"\1\2\0" + bytes([len(name) + 1]) + name.encode() + bytes([number] * 16) + b"\0"


def partition_record(
    topic: int, partition: int, replicas: Sequence[int], directories: Sequence[bytes] = ()
) -> bytes:
    nodes = compact_array([int32(one) for one in replicas])
    numbers = int32(replicas[0]) + int32(0) + int32(0)  # leader, leader epoch, partition epoch
    body = int32(partition) + bytes([topic] * 16) + nodes + nodes + b"\1\1" + numbers
    if not directories:
        return b"\1\3\0" + body + b"\0"
    return b"\1\3\1" + body + compact_array(directories) + b"\0"


def log_dirs_record(broker: int, directories: Sequence[bytes]) -> bytes:
    """A BrokerRegistrationChangeRecord of version 2, with the directories in its tagged field 2."""
    ids = compact_array(directories)
    return b"\1\x11\2" + int32(broker) + bytes(8) + b"\1\2" + bytes([len(ids)]) + ids


def write_metadata(root: Path, *values: bytes) -> None:
    builder = RecordsBuilder()
    for offset, value in enumerate(values):
        builder.append(offset, 1000, None, value)
    (root / "__cluster_metadata-0").mkdir(parents=True)
    (root / "__cluster_metadata-0" / f"{FIRST}.log").write_bytes(builder.build())


def write_meta_properties(root: Path, node: int, directory: bytes, cluster: str = "abc") -> None:
    root.mkdir(exist_ok=True)
    (root / "meta.properties").write_text(
        f"version=1\nnode.id={node}\ncluster.id={cluster}\ndirectory.id={uuid(directory)}\n"
    )


def missing_of(report: dict[str, Any]) -> list[str]:
    return sorted(f"{one['topic']}-{one['partition']}" for one in problems(report, "partition_missing"))


def test_partitions_that_only_the_metadata_names(cli: Cli, root: Path, tmp_path: Path) -> None:
    write_metadata(
        root,
        topic_record("orders", 1),
        partition_record(1, 0, [7, 8]),
        partition_record(1, 1, [8, 7]),
        partition_record(1, 2, [8, 9]),  # on other brokers
        topic_record("deleted", 2),
        partition_record(2, 0, [7]),
        b"\1\x09\0" + bytes([2] * 16) + b"\0",
    )
    report = cli.json("verify", root, code=1)
    assert missing_of(report) == ["orders-1"]
    (missing,) = problems(report, "partition_missing")
    assert missing["message"] == (
        "__cluster_metadata assigns the partition to this broker (7), but there is no directory"
        f" {root}/orders-1"
    )
    (log_dir,) = report["log_dirs"]
    assert (log_dir["missing_partitions"], log_dir["partitions_elsewhere"]) == (1, 0)
    assert "1 partition without a directory" in cli("verify", root, code=1)
    assert cli.json("ingest", root, tmp_path / "out", code=1)["log_dirs"] == [log_dir]
    kinds = [one["kind"] for one in cli_problems(tmp_path / "out")]
    assert kinds == ["partition_missing"]
    # A partition of the broker is not missing if it is being moved between disks, or not chosen.
    assert missing_of(cli.json("verify", "--topic", "events", root)) == []
    shutil.copytree(root / "orders-0", root / "orders-1.0123-future")
    assert missing_of(cli.json("verify", root)) == []


def test_the_directories_of_a_broker_are_taken_together(cli: Cli, tmp_path: Path) -> None:
    one, two, three = (bytes([number] * 16) for number in (65, 66, 67))
    disks = [tmp_path / name for name in ("disk1", "disk2")]
    for disk, directory in zip(disks, (one, two), strict=True):
        write_meta_properties(disk, 7, directory)
    for disk, name in ((disks[0], "t-0"), (disks[1], "t-1")):
        shutil.copytree(KAFKA / "v2_none", disk / name, ignore=shutil.ignore_patterns("rebuilt", "*.json*"))
    write_metadata(
        disks[0],
        topic_record("t", 1),
        log_dirs_record(7, [one, two]),
        partition_record(1, 0, [7, 8], [one, three]),
        partition_record(1, 1, [8, 7], [three, two]),
        partition_record(1, 2, [8, 7], [three, two]),
        partition_record(1, 3, [7], [UNASSIGNED]),
    )
    report = cli.json("verify", *disks, code=1)
    assert missing_of(report) == ["t-2", "t-3"]
    paths = {one["path"] for one in report["partitions"] if not one["segments"]}
    assert paths == {str(disks[1] / "t-2"), str(disks[0] / "t-3")}
    # With one disk alone, what is on the other is not missing, but it is not forgotten either.
    (log_dir,) = cli.json("verify", "--one-disk", disks[0])["log_dirs"]
    assert (log_dir["missing_partitions"], log_dir["partitions_elsewhere"]) == (0, 3)
    assert log_dir["problems"] == []
    text = cli("verify", "--one-disk", disks[0])
    assert "3 partitions of this broker may be in other directories, which are not among SRC" in text
    # Its registration names the directory that is not there: a disk that is lost, or not given.
    (problem,) = cli.json("verify", disks[0], code=1)["log_dirs"][0]["problems"]
    assert problem == (
        f"broker 7 has 2 directories (__cluster_metadata), and {uuid(two)} is not among the sources, "
        "with 2 partitions (t-1, t-2); --one-disk leaves it out"
    )
    assert problem in cli("verify", disks[0], code=1)
    assert problem in cli("ingest", disks[0], tmp_path / "tables", code=1)
    # The metadata of another node of the cluster serves as well, that of another cluster does not.
    other = tmp_path / "other"
    write_meta_properties(other, 8, three)
    (disks[0] / "__cluster_metadata-0").rename(other / "__cluster_metadata-0")
    found = cli.json("verify", *disks, other, code=1)["log_dirs"]
    by_path = {one["path"]: one for one in found}
    assert [by_path[str(path)]["missing_partitions"] for path in (*disks, other)] == [1, 1, 3]
    write_meta_properties(other, 8, three, cluster="xyz")
    report = cli.json("verify", *disks, other, code=1)
    found = {one["path"]: one["missing_partitions"] for one in report["log_dirs"]}
    assert found == {str(disks[0]): 0, str(disks[1]): 0, str(other): 3}


def test_broken_metadata_is_a_problem_of_the_directory(cli: Cli, root: Path) -> None:
    write_metadata(root, topic_record("orders", 1), b"\1\3\0cut", partition_record(1, 5, [7]))
    report = cli.json("verify", root, code=1)
    assert missing_of(report) == ["orders-5"]
    (problem,) = report["log_dirs"][0]["problems"]
    assert "__cluster_metadata-0: offset 1" in problem


# --- states --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ending", "state"), [("future", "future"), ("stray", "stray"), ("delete", "deleted")]
)
def test_directories_that_are_not_the_log(
    cli: Cli, root: Path, ending: str, state: str, tmp_path: Path
) -> None:
    other = root / f"orders-0.0123456789abcdef-{ending}"
    shutil.copytree(root / "orders-0", other)
    size = sum(path.stat().st_size for path in other.glob("*.log"))
    for report in (
        cli.json("verify", root),
        cli.json("stats", root),
        cli.json("ingest", root, tmp_path / "t"),
    ):
        (skipped,) = report["skipped"]
        assert skipped == {
            "path": str(other),
            "topic": "orders",
            "partition": 0,
            "state": state,
            "segments": 2,
            "size": size,
        }
        assert len(report["partitions"]) == 2
    assert f"not read: {other} ({size:,} bytes): {state}; --include-{state} reads it" in cli("verify", root)
    report = cli.json("verify", f"--include-{state}", root)
    assert report["skipped"] == []
    assert [one["path"] for one in report["partitions"] if one["topic"] == "orders"] == [
        str(root / "orders-0"),
        str(other),
    ]
    # As a source itself it is read.
    assert len(cli.json("verify", other)["partitions"]) == 1
    # A log that has only such a directory is not missing.
    shutil.rmtree(root / "orders-0")
    assert cli.json("verify", root)["log_dirs"][0]["missing_partitions"] == 0


def test_copies_on_two_disks(cli: Cli, root: Path, tmp_path: Path) -> None:
    other = tmp_path / "disk2"
    shutil.copytree(root, other)
    report = cli.json("verify", root, other)
    orders = [one["path"] for one in report["partitions"] if one["topic"] == "orders"]
    assert orders == sorted([str(root / "orders-0"), str(other / "orders-0")])
    for command in ("verify", "stats"):
        lines = cli(command, root, other).splitlines()
        assert [line.split()[0] for line in lines if line.startswith("/") and "orders-0 " in line] == orders
    out = tmp_path / "out"
    for command in ("ingest", "convert", "recover", "compact"):
        cli(command, root, other, out, "--engine", "spark", code=2)
        assert "there are 2 copies of" in cli.error
        assert "--prefer" in cli.error
        assert not out.exists()
    report = cli.json("convert", "--prefer", other, root, other, out)
    assert {one["path"] for one in report["partitions"]} == {str(other / "orders-0"), str(other / "events-3")}
    assert [one["state"] for one in report["skipped"]] == ["current", "current"]


# --- choosing ------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", ["verify", "records", "stats", "ingest"])
@pytest.mark.parametrize(
    ("options", "there"),
    [
        (["--topic", "orders"], "orders-0"),
        (["--topic", "e*"], "events-3"),
        ([], "events-3, orders-0"),
        (["--exclude", "orders"], "events-3"),
        (["--topic", "nope"], "partitions of events, orders"),
    ],
)
def test_partitions_that_are_not_there(
    cli: Cli, root: Path, tmp_path: Path, command: str, options: list[str], there: str
) -> None:
    out = [tmp_path / "out"] * (command == "ingest")
    cli(command, *options, "--partition", "99", root, *out, code=2)
    assert cli.error == f"magicbyte: no partition is chosen; there are {there}\n"


def test_many_partitions_are_counted(cli: Cli, root: Path) -> None:
    for number in range(12, 0, -1):
        shutil.copytree(root / "orders-0", root / f"orders-{number}")
    cli("stats", "--topic", "orders", "--partition", "99", root, code=2)
    named = ", ".join(f"orders-{number}" for number in range(10))
    assert cli.error == f"magicbyte: no partition is chosen; there are {named} and 3 more\n"


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["--topic", "orders"], ["orders-0"]),
        (["--topic", "o*", "--topic", "events"], ["events-3", "orders-0"]),
        (["--exclude", "*s"], []),
        (["--exclude-internal"], ["events-3", "orders-0"]),
        (["--partition", "1-3"], ["events-3"]),
        (["--partition", "3", "--partition", "7,0"], ["__consumer_offsets-0", "events-3", "orders-0"]),
        (["--topic", "orders", "--partition", "0"], ["orders-0"]),
    ],
)
def test_choosing_partitions(cli: Cli, root: Path, options: list[str], expected: list[str]) -> None:
    shutil.copytree(root / "events-3", root / "__consumer_offsets-0")
    if not expected:
        cli("verify", *options, root, code=2)
        assert (
            "no partition is chosen; there are partitions of __consumer_offsets, events, orders" in cli.error
        )
        return
    report = cli.json("verify", *options, root)
    assert [f"{one['topic']}-{one['partition']}" for one in report["partitions"]] == expected
    stats = cli.json("stats", *options, root)
    assert [f"{one['topic']}-{one['partition']}" for one in stats["partitions"]] == expected


@pytest.mark.parametrize(
    "command",
    [["records"], ["dump"], ["dump", "--bytes"], ["verify", "--indexes"], ["explain"]],
    ids=" ".join,
)
def test_every_command_chooses(cli: Cli, root: Path, command: list[str]) -> None:
    shutil.copytree(root / "events-3", root / "orders-1")
    chosen = cli(*command, "--topic", "events", root, code=None)
    everything = cli(*command, root, code=None)
    assert len(chosen) < len(everything)
    assert "events" in chosen
    assert "orders" in everything
    assert "orders" not in chosen


def test_only_directories_that_are_not_the_log(cli: Cli, root: Path, tmp_path: Path) -> None:
    (root / "orders-0").rename(root / "orders-0.01-delete")
    for command in (["verify"], ["ingest"], ["convert"], ["compact", "--all-topics"]):
        out = [] if command == ["verify"] else [tmp_path / "out"]
        cli(*command, "--topic", "orders", root, *out, code=2)
        assert "--include-deleted reads it" in cli.error
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("value", ["x", "3-1", "-1", "1,,2", "0-99999999"])
def test_partitions_are_numbers(cli: Cli, root: Path, value: str) -> None:
    cli("verify", "--partition", value, root, code=2)
    assert "is not a list of partitions, such as 7, or 0,3, or 0-15" in cli.error


def test_a_segment_file_is_a_source_everywhere(cli: Cli, root: Path, tmp_path: Path) -> None:
    segment = root / "orders-0" / f"{SECOND}.log"
    for command in ("verify", "stats"):
        assert len(cli.json(command, segment)["partitions"]) == 1
    cli("explain", segment)
    for command in ("ingest", "convert", "compact", "recover", "rescue"):
        out = tmp_path / command
        cli(command, segment, out)
        assert out.is_dir()
    report = cli.json("verify", tmp_path / "convert")
    assert report["total"]["rows"] == RECORDS - 232
    cli("verify", segment.with_suffix(".index"), code=2)
    assert "does not have the name of a segment" in cli.error


def test_several_sources_for_jobs_that_write(cli: Cli, root: Path, tmp_path: Path) -> None:
    sources = [root / "orders-0", root / "events-3"]
    for command in ("ingest", "convert", "compact", "recover", "rescue"):
        out = tmp_path / command
        cli(command, *sources, out, code=None)
        assert cli.code in (0, 1)
        assert out.is_dir()
    report = cli.json("recover", "--dry-run", *sources)
    assert len(report["partitions"]) == 2
    cli("recover", tmp_path / "none", sources[0], tmp_path / "out", code=2)
    assert "does not exist" in cli.error


# --- files that cannot be read -------------------------------------------------------------------


@pytest.mark.skipif(os.name != "posix" or os.geteuid() != 0, reason="another user is needed")
def test_an_unreadable_file_costs_only_itself(root: Path) -> None:
    (root / "orders-0" / f"{FIRST}.log").chmod(0)
    for path in (root, *root.parents):
        if Path(tempfile.gettempdir()) in path.parents:
            path.chmod(0o755)
    program = """
import os, sys
from magicbyte.cli import main
# Everything is imported before the other user may not read it.
main(["verify", "--json", sys.argv[1] + "/events-3"])
print(end="\\f")
os.setegid(65534)
os.seteuid(65534)
sys.exit(main(["verify", "--json", sys.argv[1]]))
"""
    done = subprocess.run(
        [sys.executable, "-c", program, str(root)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1, done.stderr
    report = json.loads(done.stdout.partition("\f")[2])
    (problem,) = problems(report, "file_unreadable")
    assert problem["segment"] == f"{FIRST}.log"
    assert report["balanced"] is True
    assert report["total"]["quarantined_bytes"] == (root / "orders-0" / f"{FIRST}.log").stat().st_size
    assert report["total"]["rows"] > RECORDS - 232


def test_a_file_that_vanishes_costs_only_itself(root: Path) -> None:
    from magicbyte.jobs.run.engines import LocalEngine
    from magicbyte.jobs.run.plan import plan_partitions

    listings = list_partitions([str(root)], PartitionChoice(topics=("orders",)))
    (root / "orders-0" / f"{FIRST}.log").unlink()
    (planned,) = plan_partitions(listings, LocalEngine(1))
    assert planned.plan["next_offset"] == RECORDS


def test_nothing_is_chosen(root: Path) -> None:
    with pytest.raises(RefusedError, match="no partition is chosen"):
        find_inputs([str(root)], PartitionChoice(topics=("orders",), exclude=("*",)))
