"""`magicbyte sidecars` and `magicbyte check-indexes`: the files beside segments."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from conftest import KAFKA, Cli
from digest import expected
from kafka_dumps import LOG, lines_of


def test_entries(cli: Cli) -> None:
    path = KAFKA / "v2_txn" / "00000000000000000007.index"
    known = {line["file"]: line["entries"] for line in expected(KAFKA / "v2_txn", "sidecars.jsonl")}
    found = [[line["offset"], line["position"]] for line in cli.lines("sidecars", path)]
    assert found == known[path.name]


def test_checkpoints(cli: Cli) -> None:
    path = KAFKA / "v2_epochs"
    lines = cli.lines("sidecars", path / "leader-epoch-checkpoint", path / "partition.metadata")
    epochs = [line.split() for line in (path / "leader-epoch-checkpoint").read_text().splitlines()[2:]]
    assert lines[:-1] == [
        {"file": "leader-epoch-checkpoint", "epoch": int(epoch), "startOffset": int(offset)}
        for epoch, offset in epochs
    ]
    topic_id = (path / "partition.metadata").read_text().split()[-1]
    assert lines[-1] == {"file": "partition.metadata", "version": 0, "topicId": topic_id}


@pytest.mark.parametrize("name", [LOG, "expected.jsonl"])
def test_other_files_are_refused(cli: Cli, name: str) -> None:
    path = KAFKA / "v2_txn" / name
    index = KAFKA / "v2_txn" / "00000000000000000007.index"
    assert cli("sidecars", index, path, code=2) == ""
    assert f"{path} is not an index, a snapshot or a checkpoint" in cli.error


@pytest.mark.parametrize("command", ["records", "annotate"])
def test_commands_for_segments_refuse_sidecars(cli: Cli, command: str) -> None:
    index = KAFKA / "v2_txn" / "00000000000000000007.index"
    assert cli(command, KAFKA / "v2_txn" / LOG, index, code=2) == ""
    assert f"{index} is not a segment" in cli.error
    assert "magicbyte sidecars" in cli.error


# --- check-indexes ------------------------------------------------------------------------------


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
    files = [directory / file for file in case["files"]]
    if not files:
        return
    output = cli("check-indexes", *files, "--json", code=None)
    lines = [json.loads(line) for line in output.splitlines()]
    found = [reported(line) for line in lines if line["kind"] != "malformed"]
    assert sorted(found) == case["mismatches"]
    assert cli.code == (1 if lines else 0)
    text = cli("check-indexes", *files, code=cli.code).splitlines()
    assert text[len(lines) :] == [f"{len(files)} indexes compared, {len(lines)} differences"]


def test_directories(cli: Cli) -> None:
    output = cli("check-indexes", KAFKA / "v2_txn", KAFKA / "v2_compacted_txn")
    assert output == "25 indexes compared, 0 differences\n"


def test_a_torn_segment(cli: Cli) -> None:
    """The index points to a truncated batch, for which Kafka's tool throws an exception."""
    (line,) = cli.lines("check-indexes", KAFKA / "v2_torn_tail", "--json", code=1)
    assert (line["offset"], line["position"], line["found"]) == (125, 4070, "no batch begins there")


@pytest.mark.partitions("v2_txn")
def test_a_transaction_index(cli: Cli, source: Path) -> None:
    index = source / "v2_txn" / "00000000000000000007.txnindex"
    entries = [index.read_bytes()[at : at + 34] for at in range(0, index.stat().st_size, 34)]
    wrong = bytearray(entries[1])
    wrong[25] ^= 0x40
    index.write_bytes(b"".join([entries[0], wrong, *entries[3:]]))
    lines = cli.lines("check-indexes", index, "--json", code=1)
    assert [(line["kind"], line["producer_id"], line["last_offset"]) for line in lines] == [
        ("no_abort_marker", 3, 25 ^ 0x40),
        ("not_indexed", 2, 43),
        ("not_indexed", 3, 25),
    ]
