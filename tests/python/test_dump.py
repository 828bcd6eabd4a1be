"""`magicbyte dump`: the text of Kafka's own tool for segments, sidecars and internal topics."""

from __future__ import annotations

import json
import random
import shutil
import struct
import zlib
from pathlib import Path
from typing import Any

import pytest
from conftest import KAFKA, PARTITIONS, Cli
from digest import expected
from kafka_dumps import DUMPS, LOG, SHA256, SIDECARS, damaged, lines_of, same
from magicbyte.cli.internal_records import compact_json, decoder_for
from magicbyte.errors import Error
from magicbyte.internal_topics.decode import DELETED

# --- segments -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", PARTITIONS)
def test_partitions(cli: Cli, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.chdir(KAFKA)
    same(cli("dump", name, code=damaged(name)), name)


def test_a_metadata_snapshot(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(KAFKA)
    output = cli("dump", "cluster_metadata/00000000000000001951-0000000005.checkpoint")
    assert output == (DUMPS / "cluster_metadata.checkpoint.txt").read_bytes().decode()


@pytest.mark.partitions("v2_none", "v2_txn")
def test_a_tree(cli: Cli, source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(source.parent)
    output = cli("dump", "logs")
    assert "Dumping logs/v2_none/00000000000000000000.log\n" in output
    assert output.count("\n|") == 346 + 94
    assert len(cli.records("logs")) == 346 + 78


def test_ranges(cli: Cli) -> None:
    path = KAFKA / "v2_txn"
    output = cli("dump", path, "--start-offset", 10, "--end-offset", 20)
    assert [int(line.split()[2]) for line in output.splitlines() if line.startswith("|")] == [
        line["offset"] for line in expected(path) if 10 <= line["offset"] < 20
    ]
    assert cli("dump", path, "--max-records", 2).count("\n|") == 2


def test_batches(cli: Cli) -> None:
    path = KAFKA / "v2_txn"
    output = cli("dump", path, "--no-records")
    assert output.count("baseOffset: ") == len(expected(path, "batches.jsonl"))
    assert "\n|" not in output


def test_one_file_of_any_name(cli: Cli, tmp_path: Path) -> None:
    path = KAFKA / "v2_none" / LOG
    count = cli("dump", path).count("\n|")
    assert 0 < count < 346
    renamed = tmp_path / "segment.bin"
    shutil.copyfile(path, renamed)
    assert cli("dump", renamed).count("\n|") == count


@pytest.mark.partitions("v2_none")
def test_damage(cli: Cli, source: Path) -> None:
    segment = source / "v2_none" / LOG
    data = bytearray(segment.read_bytes())
    data[len(data) // 2] ^= 1
    segment.write_bytes(data)
    for options in ([], ["--no-records"]):
        assert cli("dump", source, *options, code=1).count("isvalid: false") == 1


def test_checksums_of_messages_in_wrappers(cli: Cli) -> None:
    """The CRC of each message inside a wrapper, even if only some of the messages are printed."""
    lines = [line for line in cli("dump", KAFKA / "v1_gzip").splitlines() if line.startswith("|")]
    for line, record in zip(lines, expected(KAFKA / "v1_gzip"), strict=True):
        parts = b"".join(
            struct.pack(">i", -1) if part is None else struct.pack(">i", len(part) // 2) + bytes.fromhex(part)
            for part in (record["key"], record["value"])
        )
        message = struct.pack(">bbq", 1, 0, record["timestamp"]) + parts
        assert f"isValid: true crc: {zlib.crc32(message)}" in line
    asked = cli("dump", KAFKA / "v1_gzip", "--start-offset", 50, "--end-offset", 60).splitlines()
    assert [line for line in asked if line.startswith("|")] == lines[50:60]


# --- sidecars -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [name for name in PARTITIONS if f"{name}.sidecars" in SHA256])
def test_sidecars(cli: Cli, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.chdir(KAFKA)
    files = sorted(str(path) for path in Path(name).iterdir() if path.suffix in SIDECARS)
    same(cli("dump", *files), f"{name}.sidecars")


def test_checkpoints(cli: Cli) -> None:
    path = KAFKA / "v2_epochs"
    output = cli("dump", path / "leader-epoch-checkpoint", path / "partition.metadata")
    checkpoint = (path / "leader-epoch-checkpoint").read_text().splitlines()[2:]
    entries = ["epoch: {} startOffset: {}".format(*line.split()) for line in checkpoint]
    assert len(entries) > 1
    assert output.splitlines()[1:-2] == entries
    topic_id = (path / "partition.metadata").read_text().split()[-1]
    assert output.splitlines()[-1] == f"version: 0 topicId: {topic_id}"


@pytest.mark.parametrize("suffix", SIDECARS)
def test_broken_sidecars_are_named(cli: Cli, tmp_path: Path, suffix: str) -> None:
    data = (KAFKA / "v2_txn" / f"00000000000000000090{suffix}").read_bytes()
    broken = tmp_path / f"00000000000000000090{suffix}"
    broken.write_bytes(data[:-1] + b"\1\1")
    cli("dump", broken, code=1)
    assert str(broken) in cli.error
    cli("dump", "--json", broken, code=1)
    assert str(broken) in cli.error


# --- internal topics ----------------------------------------------------------------------------

INTERNAL = {
    "consumer_offsets_0": ("offsets", "__consumer_offsets-0"),
    "transaction_state_0": ("transactions", "__transaction_state-0"),
    "cluster_metadata": ("metadata", "__cluster_metadata-0"),
}


@pytest.mark.parametrize("name", INTERNAL)
def test_decode(cli: Cli, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.chdir(KAFKA)
    same(cli("dump", f"{name}/{LOG}", "--decode", INTERNAL[name][0]), f"{name}.decoded")


def test_decode_checkpoint(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(KAFKA)
    checkpoint = "cluster_metadata/00000000000000001951-0000000005.checkpoint"
    same(cli("dump", checkpoint, "--decode", "metadata"), "cluster_metadata.checkpoint.decoded")


@pytest.mark.parametrize("name", INTERNAL)
def test_decode_by_the_topic(cli: Cli, tmp_path: Path, name: str) -> None:
    decoder, topic = INTERNAL[name]
    shutil.copytree(KAFKA / name, tmp_path / topic)
    asked = cli("dump", KAFKA / name, "--decode", decoder).splitlines()[1:]
    assert cli("dump", tmp_path / topic).splitlines()[1:] == asked
    assert cli("dump", tmp_path / topic, "--decode", "none").splitlines()[1:] != asked
    assert all(line["recordType"] for line in cli.records(tmp_path / topic))


MESSAGES = lines_of("messages.jsonl")
KEYS = {
    (one["topic"], one["type"]): bytes.fromhex(one["hex"]) for one in MESSAGES if one["part"] == "key"
} | {("transactions", 0): b"\0\1t"}


def int16(n: int) -> bytes:
    return n.to_bytes(2, "big")


def decoded(line: dict[str, Any], data: bytes) -> Any:
    """The message's JSON, read in a record of its topic."""
    decode = decoder_for(line["topic"], "", secrets=True)
    assert decode is not None
    if line["topic"] in ("metadata", "remote-log-metadata"):
        found = decode(None, bytes([1, line["type"], line["version"]]) + data)
        assert isinstance(found.value, dict)
        return found.value["data"]
    if line["part"] == "key":
        found = decode(int16(line["type"]) + data, None)
        assert found.key is not None
        assert (found.key["type"], found.value) == (str(line["type"]), DELETED)
        return found.key["data"]
    found = decode(int16(line["type"]) + KEYS[line["topic"], line["type"]], int16(line["version"]) + data)
    assert isinstance(found.value, dict)
    assert found.value["version"] == str(line["version"])
    return found.value["data"]


@pytest.mark.parametrize("line", MESSAGES, ids=lambda line: f"{line['topic']}-{line['type']}")
def test_messages(line: dict[str, Any]) -> None:
    data = bytes.fromhex(line["hex"])
    assert json.dumps(decoded(line, data)) == json.dumps(line["json"])
    for size in range(len(data)):
        with pytest.raises(Error) as raised:
            decoded(line, data[:size])
        assert raised.value.position is not None


def test_json_as_kafka_prints_it() -> None:
    assert compact_json({"a": '\x1f\\u001f\n"\u00e9'}) == '{"a":"\\u001F\\\\u001f\\n\\"\u00e9"}'


def test_decode_reports_what_it_cannot_read(cli: Cli, tmp_path: Path) -> None:
    """Records of another topic: unknown types as Kafka names them, broken ones as problems."""
    output = cli("dump", KAFKA / "v2_headers", "--decode", "metadata", code=1)
    assert "key: Error at offset 0, skipping. " in output
    assert "payload: 76" in output
    assert "offset 0" in cli.error
    lines = cli.records(KAFKA / "consumer_offsets_0", "--decode", "transactions", "--max-records", 1)
    assert lines[0]["recordType"] == "5"


def test_numbers_that_json_lacks() -> None:
    for number, text in ((float("nan"), "NaN"), (float("-inf"), "-Infinity"), (float("inf"), "Infinity")):
        quota = b"\1\2k" + struct.pack(">d?", number, False) + b"\0"
        assert decoded({"topic": "metadata", "type": 14, "version": 0}, quota)["value"] == text


# --- hostile bytes: every command that prints files ---------------------------------------------

HOSTILE = ["v0_gzip", "v1_logappend", "v2_txn", "v2_lz4", "consumer_offsets_0", "cluster_metadata"]
DUMP_OPTIONS: list[list[str]] = [[], ["--decode", "offsets"], ["--decode", "metadata"]]


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_bytes_end_in_a_message(cli: Cli, tmp_path: Path, name: str, seed: int) -> None:
    chance = random.Random(f"{name} {seed}")
    directory = tmp_path / "topic-0"
    shutil.copytree(KAFKA / name, directory)
    files = [path for path in directory.iterdir() if path.suffix in (*SIDECARS, ".log", ".checkpoint")]
    for path in files:
        path.chmod(0o644)
        data = bytearray(path.read_bytes())
        for _ in range(min(len(data), 6)):
            data[chance.randrange(len(data))] = chance.choice([0, 1, 0x7F, 0x80, 0xFF])
        path.write_bytes(data[: chance.choice([len(data), len(data) // 2 + 1])])
    segments = [path for path in files if path.suffix == ".log"]
    for arguments in (
        *(["dump", directory, *files, *options] for options in DUMP_OPTIONS),
        ["records", directory],
        ["records", directory, "--batches"],
        ["dump", "--json", *(path for path in files if path.suffix in SIDECARS)],
        ["dump", "--bytes", directory, *segments],
        ["verify", "--indexes", directory],
    ):
        cli(*arguments, code=None)
        assert cli.code in (0, 1)
        assert "Traceback" not in cli.error
