"""`magicbyte dump` of everything but plain records: sidecars, internal topics, indexes, bytes."""

from __future__ import annotations

import hashlib
import json
import random
import re
import shutil
import struct
import zlib
from itertools import takewhile
from pathlib import Path
from typing import Any

import pytest
from conftest import KAFKA, PARTITIONS, Cli
from digest import expected
from magicbyte import _core
from magicbyte.cli.decode import compact_json
from magicbyte.cli.trace import Span, trace_batch
from magicbyte.errors import Error
from magicbyte.internal_topics.metadata import METADATA
from magicbyte.internal_topics.offsets import OFFSETS
from magicbyte.internal_topics.reader import Reader, read_message
from magicbyte.internal_topics.schema import Field, Message
from magicbyte.internal_topics.transactions import TRANSACTIONS

DUMPS = KAFKA.parent / "dump"
SHA256 = dict(reversed(line.split()) for line in (DUMPS / "sha256sums").read_text().splitlines())
LOG = "00000000000000000000.log"
SIDECARS = (".index", ".timeindex", ".txnindex", ".snapshot")


def lines_of(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (DUMPS / name).read_text(encoding="utf-8").splitlines()]


def same(output: str, name: str) -> None:
    """Compares with what Kafka printed."""
    text = DUMPS / f"{name}.txt"
    if text.exists():
        assert output.split("\n") == text.read_bytes().decode().split("\n")
    assert hashlib.sha256(output.encode()).hexdigest() == SHA256[name]


# --- sidecars -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [name for name in PARTITIONS if f"{name}.sidecars" in SHA256])
def test_sidecars(cli: Cli, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.chdir(KAFKA)
    files = sorted(str(path) for path in Path(name).iterdir() if path.suffix in SIDECARS)
    same(cli("dump", *files), f"{name}.sidecars")


def test_sidecars_jsonl(cli: Cli) -> None:
    path = KAFKA / "v2_txn" / "00000000000000000007.index"
    known = {line["file"]: line["entries"] for line in expected(KAFKA / "v2_txn", "sidecars.jsonl")}
    found = [[line["offset"], line["position"]] for line in cli.lines(path)]
    assert found == known[path.name]


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
    cli("dump", broken, "--json", code=1)
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
    assert all(line["recordType"] for line in cli.lines(tmp_path / topic))


@pytest.mark.parametrize(
    "line", lines_of("messages.jsonl"), ids=lambda line: f"{line['topic']}-{line['type']}"
)
def test_messages(line: dict[str, Any]) -> None:
    pairs = OFFSETS if line["topic"] == "offsets" else TRANSACTIONS
    key_or_value = pairs.get(line["type"], (None, None))[line["part"] == "value"]
    message = METADATA[line["type"]] if line["topic"] == "metadata" else key_or_value
    assert message is not None
    data = bytes.fromhex(line["hex"])
    reader = Reader(data)
    found = read_message(reader, message, line["version"])
    assert json.dumps(found) == json.dumps(line["json"])
    assert reader.remaining == 0
    for size in range(len(data)):
        with pytest.raises(Error):
            read_message(Reader(data[:size]), message, line["version"])


def test_json_as_kafka_prints_it() -> None:
    assert compact_json({"a": '\x1f\\u001f\n"\u00e9'}) == '{"a":"\\u001F\\\\u001f\\n\\"\u00e9"}'


def test_decode_says_what_it_cannot_read(cli: Cli, tmp_path: Path) -> None:
    """Records of another topic: unknown types as Kafka names them, broken ones as problems."""
    output = cli("dump", KAFKA / "v2_headers", "--decode", "metadata", code=1)
    assert "key: Error at offset 0, skipping. " in output
    assert "payload: 76" in output
    assert "offset 0" in cli.error
    lines = cli.lines(KAFKA / "consumer_offsets_0", "--decode", "transactions", "--max-records", 1)
    assert lines[0]["recordType"] == "5"


def test_numbers_that_json_lacks() -> None:
    message = Message("Example", (Field("a", "float64"), Field("b", "float64")))
    found = read_message(Reader(struct.pack(">dd", float("nan"), float("-inf"))), message, 0)
    assert found == {"a": "NaN", "b": "-Infinity"}


# --- indexes ------------------------------------------------------------------------------------


def reported(line: dict[str, Any]) -> list[Any]:
    """A mismatch as DumpLogSegments has it: file, kind, what the index says, what else was found."""
    kind = line["kind"]
    index = line["offset"] if "offset_" in kind else line["timestamp"]
    found = int(line["expected"][2:]) if kind == "timestamp_out_of_order" else line["found"]
    return [Path(line["file"]).name, kind, index, -1 if found == "no batch from there on" else found]


@pytest.mark.parametrize("case", lines_of("mismatches.jsonl"), ids=lambda case: case["partition"])
def test_verify_index_as_kafka(cli: Cli, tmp_path: Path, case: dict[str, Any]) -> None:
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
    output = cli("dump", *files, "--verify-index", "--json", code=None)
    lines = [json.loads(line) for line in output.splitlines()]
    found = [reported(line) for line in lines if line["kind"] != "malformed"]
    assert sorted(found) == case["mismatches"]
    assert cli.code == (1 if lines else 0)
    text = cli("dump", *files, "--verify-index", code=cli.code).splitlines()
    assert text[len(lines) :] == [f"{len(files)} indexes compared, {len(lines)} differences"]


def test_verify_index_of_directories(cli: Cli) -> None:
    output = cli("dump", KAFKA / "v2_txn", KAFKA / "v2_compacted_txn", "--verify-index")
    assert output == "25 indexes compared, 0 differences\n"


def test_verify_index_of_a_torn_segment(cli: Cli) -> None:
    """The index leads to a batch that is cut: Kafka's tool ends in an exception there."""
    output = cli("dump", KAFKA / "v2_torn_tail", "--verify-index", "--json", code=1)
    (line,) = map(json.loads, output.splitlines())
    assert (line["offset"], line["position"], line["found"]) == (125, 4070, "no batch begins there")


@pytest.mark.partitions("v2_txn")
def test_verify_transaction_index(cli: Cli, source: Path) -> None:
    index = source / "v2_txn" / "00000000000000000007.txnindex"
    entries = [index.read_bytes()[at : at + 34] for at in range(0, index.stat().st_size, 34)]
    wrong = bytearray(entries[1])
    wrong[25] ^= 0x40
    index.write_bytes(b"".join([entries[0], wrong, *entries[3:]]))
    lines = [json.loads(line) for line in cli("dump", index, "--verify-index", "--json", code=1).splitlines()]
    assert [(line["kind"], line["producerId"], line["lastOffset"]) for line in lines] == [
        ("no_abort_marker", 3, 25 ^ 0x40),
        ("not_indexed", 2, 43),
        ("not_indexed", 3, 25),
    ]


# --- bytes --------------------------------------------------------------------------------------


def hello_world() -> bytes:
    """Two records without keys, uncompressed, no producer id, outside of any broker."""
    records = b"".join(
        bytes([11 << 1, 0, 0, delta << 1, 1, 5 << 1]) + value + b"\0"
        for delta, value in enumerate((b"hello", b"world"))
    )
    time = 1_714_000_000_000
    covered = struct.pack(">hiqqqhii", 0, 1, time, time, -1, -1, -1, 2) + records
    crc = _core.crc32c(covered)
    return struct.pack(">qiibI", 0, 9 + len(covered), -1, 2, crc) + covered


def test_annotate_example(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / LOG
    path.write_bytes(hello_world())
    output = cli("dump", path, "--annotate")
    assert output.replace(str(tmp_path), "logs") == (DUMPS / "annotated.txt").read_text()
    assert path.stat().st_size == 85
    rows = {line[35:61].strip(): line for line in output.splitlines()}
    assert "00 00 00 49" in rows["batchLength"]
    assert "00 00 01 8f 12 5c 74 00" in rows["baseTimestamp"]
    assert "1714000000000: 2024-04-24T23:06:40.000Z" in rows["baseTimestamp"]
    assert rows["record 0: length"].split()[1] == "16"


@pytest.mark.parametrize("name", PARTITIONS)
def test_traces_hold_every_byte_and_value(name: str) -> None:
    values = []
    for batch in expected(KAFKA / name, "batches.jsonl"):
        stored = (KAFKA / name / batch["segment"]).read_bytes()
        stored = stored[batch["position"] : batch["position"] + batch["size"]]
        parts = list(trace_batch(stored, 1 << 30))
        outer = list(takewhile(lambda part: isinstance(part, Span), parts))
        assert b"".join(span.data for span in outer) == stored
        inner = outer if len(outer) == len(parts) else parts[len(outer) + 1 :]
        values += [span.data for span in inner if re.fullmatch(r"((record|message) \d+: )?value", span.name)]
    known = [record["value"] for record in expected(KAFKA / name) if record["value"] is not None]
    assert len(values) == len(known)
    for value, text in zip(values, known, strict=True):
        assert text == value.hex() or text["len"] == len(value)


def test_annotate_one_batch(cli: Cli) -> None:
    path = KAFKA / "v1_gzip"
    batches = expected(path, "batches.jsonl")
    output = cli("dump", path, "--annotate", "--offset", batches[2]["baseOffset"])
    assert output.splitlines()[0].endswith(
        f"batch at byte {batches[2]['position']}, {batches[2]['size']} bytes"
    )
    assert output.count(": batch at byte ") == 1
    assert "the wrapper's value, decompressed from gzip" in output
    assert cli("dump", path, "--annotate", "--limit", 3).count(": batch at byte ") == 3


def test_annotate_shows_what_is_wrong(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / LOG
    data = bytearray(hello_world())
    data[61] += 2
    path.write_bytes(data)
    output = cli("dump", path, "--annotate", code=1)
    assert "wrong, the bytes have 0x" in output
    assert 'record 0: value             "hello"' in output
    assert output.splitlines()[-2].startswith("error: record 0: ends at byte 73, by its length at 74")


# --- hostile bytes ------------------------------------------------------------------------------

HOSTILE = ["v0_gzip", "v1_logappend", "v2_txn", "v2_lz4", "consumer_offsets_0", "cluster_metadata"]
WAYS = [[], ["--json"], ["--annotate"], ["--verify-index"], ["--decode", "offsets"], ["--decode", "metadata"]]


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
    for way in WAYS:
        targets: list[Path] = [directory] if way == ["--json"] else [directory, *files]
        cli("dump", *targets, *way, code=None)
        assert cli.code in (0, 1)
        assert "Traceback" not in cli.error


def test_checksums_of_messages_in_wrappers(cli: Cli) -> None:
    """The CRC of each message inside a wrapper, whichever of them are asked for."""
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
