"""`magicbyte dump --json` and `magicbyte verify --indexes`: the files beside segments."""

from __future__ import annotations

import re
import shutil
import struct
import tarfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import magicbyte
import pytest
from conftest import KAFKA, Cli
from digest import expected
from kafka_dumps import LOG, lines_of
from magicbyte.jobs.run.engines import SparkEngine

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_entries(cli: Cli) -> None:
    path = KAFKA / "v2_txn" / "00000000000000000007.index"
    known = {line["file"]: line["entries"] for line in expected(KAFKA / "v2_txn", "sidecars.jsonl")}
    found = [[line["offset"], line["position"]] for line in cli.lines("dump", "--json", path)]
    assert found == known[path.name]


def test_checkpoints(cli: Cli) -> None:
    path = KAFKA / "v2_epochs"
    lines = cli.lines("dump", "--json", path / "leader-epoch-checkpoint", path / "partition.metadata")
    epochs = [line.split() for line in (path / "leader-epoch-checkpoint").read_text().splitlines()[2:]]
    assert lines[:-1] == [
        {"file": "leader-epoch-checkpoint", "epoch": int(epoch), "startOffset": int(offset)}
        for epoch, offset in epochs
    ]
    topic_id = (path / "partition.metadata").read_text().split()[-1]
    assert lines[-1] == {"file": "partition.metadata", "version": 0, "topicId": topic_id}


def test_a_forged_delta_of_offsets_is_printed_as_it_is_stored(cli: Cli, tmp_path: Path) -> None:
    entry = struct.pack(">qhiqiqiq", 7, 0, 0, 2**63 - 1, -(2**31), 99, -1, -1)
    content = struct.pack(">i", 1) + entry
    path = tmp_path / "00000000000000000000.snapshot"
    path.write_bytes(struct.pack(">hI", 1, magicbyte.crc32c(content)) + content)
    (line,) = cli.lines("dump", "--json", path)
    assert (line["lastOffset"], line["offsetDelta"]) == (2**63 - 1, -(2**31))


@pytest.mark.parametrize("name", [LOG, "expected.jsonl"])
def test_other_files_are_refused(cli: Cli, name: str) -> None:
    path = KAFKA / "v2_txn" / name
    index = KAFKA / "v2_txn" / "00000000000000000007.index"
    assert cli("dump", "--json", index, path, code=2) == ""
    assert f"{path} is not an index, a snapshot or a checkpoint" in cli.error


def test_json_goes_with_no_other_option(cli: Cli) -> None:
    index = KAFKA / "v2_txn" / "00000000000000000007.index"
    for options in (["--bytes"], ["--no-records"], ["--max-records", "1"], ["--start-offset", "1"]):
        assert cli("dump", "--json", *options, index, code=2) == ""
        assert "--json goes with no other option" in cli.error


@pytest.mark.parametrize("command", [["records"], ["dump", "--bytes"]], ids=" ".join)
def test_commands_for_segments_refuse_sidecars(cli: Cli, command: list[str]) -> None:
    index = KAFKA / "v2_txn" / "00000000000000000007.index"
    assert cli(*command, KAFKA / "v2_txn" / LOG, index, code=2) == ""
    assert f"{index} is not a segment" in cli.error
    assert "magicbyte dump" in cli.error


# --- verify --indexes ---------------------------------------------------------------------------


def mismatches(cli: Cli, *sources: Path) -> list[dict[str, Any]]:
    report = cli.json("verify", "--indexes", *sources, code=None)
    assert report["indexes"]["mismatches_left_out"] == 0
    assert cli.code == (1 if report["indexes"]["mismatches"] or report["total"]["problems"] else 0)
    found: list[dict[str, Any]] = report["indexes"]["mismatches"]
    return found


def reported(line: dict[str, Any]) -> list[Any]:
    """A mismatch in the words of DumpLogSegments: file, kind, index value, value found."""
    kind = line["kind"]
    index = line["offset"] if "offset_" in kind else line["timestamp"]
    found = int(line["expected"][2:]) if kind == "timestamp_out_of_order" else line["found"]
    return [Path(line["file"]).name, kind, index, -1 if found == "no batch from there on" else found]


@pytest.mark.parametrize("case", lines_of("mismatches.jsonl"), ids=lambda case: case["partition"])
def test_differences_are_those_of_kafka(cli: Cli, tmp_path: Path, case: dict[str, Any]) -> None:
    directory = tmp_path / case["partition"]
    shutil.copytree(KAFKA / case["partition"], directory)
    for file, position, data in case["damage"]:
        index = directory / file
        index.chmod(0o644)
        damaged = bytearray(index.read_bytes())
        damaged[position : position + len(data) // 2] = bytes.fromhex(data)
        index.write_bytes(damaged)
    files = {str(directory / file) for file in case["files"]}
    if not files:
        return
    lines = [line for line in mismatches(cli, directory) if line["file"] in files]
    found = [reported(line) for line in lines if line["kind"] != "malformed"]
    assert sorted(found) == case["mismatches"]
    text = cli("verify", "--indexes", directory, code=cli.code)
    for line in lines:
        assert f"{line['file']}: kind: {line['kind']} " in text


def test_directories(cli: Cli) -> None:
    output = cli("verify", "--indexes", KAFKA / "v2_txn", KAFKA / "v2_compacted_txn")
    assert "\n25 indexes compared, 0 differences\n" in output


def test_a_file_of_the_log(cli: Cli) -> None:
    output = cli("verify", "--indexes", KAFKA / "v2_txn" / LOG, code=None)
    assert re.search(r"^[1-9] index(es)? compared, 0 differences$", output, re.MULTILINE)


def test_an_archive(cli: Cli, tmp_path: Path) -> None:
    partition = tmp_path / "t-0"
    shutil.copytree(KAFKA / "v2_txn", partition)
    index = partition / "00000000000000000007.index"
    index.chmod(0o644)
    index.write_bytes(index.read_bytes()[:-1] + b"\x01")
    local = mismatches(cli, partition)
    assert local
    with tarfile.open(tmp_path / "logs.tar", "w") as archive:
        archive.add(partition, "t-0")
    stored = mismatches(cli, tmp_path / "logs.tar")
    assert [{**one, "file": Path(one["file"]).name} for one in stored] == [
        {**one, "file": Path(one["file"]).name} for one in local
    ]


def test_many_differences_are_counted(tmp_path: Path) -> None:
    partition = tmp_path / "t-0"
    shutil.copytree(KAFKA / "v2_none", partition)
    index = partition / "00000000000000000000.index"
    index.chmod(0o644)
    index.write_bytes(b"".join(struct.pack(">ii", number, number) for number in range(1, 3001)))
    report = magicbyte.verify(partition, indexes=True)["indexes"]
    assert report is not None
    assert len(report["mismatches"]) == 1000
    assert report["mismatches_left_out"] >= 2000


@pytest.mark.spark
def test_the_same_on_spark(spark: SparkSession) -> None:
    damaged = [KAFKA / "v2_torn_tail", KAFKA / "v2_txn"]
    on_spark = magicbyte.verify(damaged, indexes=True, engine=SparkEngine(spark))["indexes"]
    assert on_spark == magicbyte.verify(damaged, indexes=True)["indexes"]


def test_a_torn_segment(cli: Cli) -> None:
    """The index points to a truncated batch, for which Kafka's tool throws an exception."""
    (line,) = mismatches(cli, KAFKA / "v2_torn_tail")
    assert (line["offset"], line["position"], line["found"]) == (125, 4070, "no batch begins there")


@pytest.mark.partitions("v2_txn")
def test_a_transaction_index(cli: Cli, source: Path) -> None:
    index = source / "v2_txn" / "00000000000000000007.txnindex"
    entries = [index.read_bytes()[at : at + 34] for at in range(0, index.stat().st_size, 34)]
    wrong = bytearray(entries[1])
    wrong[25] ^= 0x40
    index.write_bytes(b"".join([entries[0], wrong, *entries[3:]]))
    lines = [line for line in mismatches(cli, index.parent) if line["file"] == str(index)]
    assert [(line["kind"], line["producer_id"], line["last_offset"]) for line in lines] == [
        ("no_abort_marker", 3, 25 ^ 0x40),
        ("not_indexed", 2, 43),
        ("not_indexed", 3, 25),
    ]
