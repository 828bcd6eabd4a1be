"""Remote segments of Aiven's plugin are read as the segments that they were made of."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import confluent_kafka
import fsspec
import magicbyte
import pytest
from aiven_segments import KEY_ID, Plugin, write_key
from conftest import Cli
from cryptography.hazmat.primitives.serialization import PrivateFormat
from magicbyte import _core
from magicbyte.storage.encryption_keys import EncryptionKey, named_key

SEGMENT_IDS = ("9ReE-tebSsmSlbyz2x-Ljg", "ch3Yoc3RS-25Hxeplhn1AA", "-o6INKICTBmxlZSiTw7VtQ")
RECORDS = 600
ORDERS = ("orders", 1)

Change = Callable[[dict[str, Any]], None]


@pytest.fixture(scope="module")
def local(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A partition of six segments, each with batches of 10 records."""
    path = tmp_path_factory.mktemp("local") / "orders-1"
    writer = _core.PartitionWriter(
        _core.begin_partition(path), 0, segment_bytes=7000, index_interval_bytes=200
    )
    for start in range(0, RECORDS, 10):
        builder = magicbyte.RecordsBuilder()
        for offset in range(start, start + 10):
            builder.append(offset, 1_700_000_000_000 + offset, b"key", b"%d" % offset + os.urandom(50))
        writer.append(builder.build())
    _core.finish_partition(path, writer.finish())
    return path


@pytest.fixture(scope="module")
def key(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file of the key; it stays known to this process."""
    file = write_key(tmp_path_factory.mktemp("keys") / "private.pem", KEY_ID)
    magicbyte.add_encryption_key(file, KEY_ID)
    return file


def upload(plugin: Plugin, local: Path, change: Change = lambda _: None) -> list[Path]:
    logs = sorted(local.glob("*.log"))
    return [
        plugin.upload(log, ORDERS, SEGMENT_IDS[number % 3], change=change if number == 1 else lambda _: None)
        for number, log in enumerate(logs)
    ]


def values(log: Any) -> list[tuple[int, bytes | None]]:
    return [(record.offset, record.value_bytes) for record in log.records()]


KINDS = {
    "plain": {},
    "compressed": {"compress": True},
    "encrypted": {"key": KEY_ID},
    "both": {"compress": True, "key": KEY_ID},
    "tiny chunks": {"compress": True, "key": KEY_ID, "chunk_size": 7},
    "one chunk": {"compress": True, "key": KEY_ID, "chunk_size": 1 << 30},
}


@pytest.mark.parametrize("kind", KINDS)
def test_what_the_broker_had_is_read(kind: str, local: Path, key: Path, tmp_path: Path, cli: Cli) -> None:
    (first, *_) = upload(Plugin(tmp_path, **KINDS[kind]), local)  # type: ignore[arg-type]
    expected = magicbyte.PartitionLog(local)
    log = magicbyte.PartitionLog(first.parent)
    assert (log.topic, log.partition, log.ignored) == ("orders", 1, [])
    assert values(log) == values(expected)
    assert [one["size"] for one in log.segments] == [one["size"] for one in expected.segments]
    assert [record.offset for record in log.records(start_offset=333)] == list(range(333, RECORDS))
    assert log.offset_for_timestamp(1_700_000_000_400) == 400
    report = cli.json("verify", "--encryption-key", f"{KEY_ID}={key}", tmp_path)
    assert (report["total"]["rows"], report["problems"], report["balanced"]) == (RECORDS, [], True)
    ours, theirs = (cli.json("stats", path)["total"] for path in (local, tmp_path))
    assert ours == theirs
    one = magicbyte.PartitionLog(first)
    assert (one.topic, one.partition, len(values(one))) == ("orders", 1, expected.segments[1]["base_offset"])


@pytest.mark.parametrize("kind", ["plain", "both"])
def test_the_files_beside_a_segment(kind: str, local: Path, key: Path, tmp_path: Path, cli: Cli) -> None:
    logs = upload(Plugin(tmp_path, **KINDS[kind]), local)  # type: ignore[arg-type]
    for log, original in zip(logs, sorted(local.glob("*.log")), strict=True):
        for ending in (".index", ".timeindex", ".snapshot"):
            if original.with_suffix(ending).exists():
                assert (
                    _core.read_sidecar(log.with_suffix(ending)) == original.with_suffix(ending).read_bytes()
                )
        with pytest.raises(FileNotFoundError):
            _core.read_sidecar(log.with_suffix(".txnindex"))
    listing = json.loads(_core.list_partition(logs[0].parent))
    kinds = [one["kind"] for one in listing["sidecars"]]
    assert (
        kinds.count("index")
        == kinds.count("timeindex")
        == kinds.count("leader-epoch-checkpoint")
        == len(logs)
    )
    # A damaged index is a problem, and costs no record.
    indexes = logs[1].with_suffix(".indexes")
    indexes.write_bytes(b"?" * indexes.stat().st_size)
    report = cli.json("verify", tmp_path, code=1)
    assert report["total"]["rows"] == RECORDS
    messages = {one["message"] for one in report["problems"]}
    if kind == "both":
        assert any("bytes 0.." in one and "AES-GCM: the tag does not match" in one for one in messages), (
            messages
        )


def test_jobs(local: Path, key: Path, tmp_path: Path, cli: Cli) -> None:
    upload(Plugin(tmp_path / "store", compress=True, key=KEY_ID), local)
    given = ("--encryption-key", key)
    cli("convert", *given, tmp_path / "store", tmp_path / "out")
    (joined,) = (path for path in (tmp_path / "out").iterdir() if path.is_dir())
    assert values(magicbyte.PartitionLog(joined)) == values(magicbyte.PartitionLog(local))
    cli("ingest", *given, tmp_path / "store", tmp_path / "tables")
    assert json.loads((tmp_path / "tables/reconciliation.json").read_text())["total"]["rows"] == RECORDS
    secret = key.read_text().splitlines()[5]
    for file in (tmp_path / "tables").rglob("*"):
        assert file.is_dir() or secret.encode() not in file.read_bytes()
    lines = cli("records", *given, "--tail", 2, tmp_path / "store").splitlines()
    assert [json.loads(line)["offset"] for line in lines] == [RECORDS - 2, RECORDS - 1]


def test_both_parts_are_one_log(local: Path, key: Path, tmp_path: Path, cli: Cli) -> None:
    logs = tmp_path / "kafka-logs"
    shutil.copytree(local, logs / "orders-1")
    (logs / "orders-1" / "partition.metadata").write_text("version: 0\ntopic_id: R5ONT1_KRNm0plmgyh-N-w")
    upload(Plugin(tmp_path / "store", compress=True, key=KEY_ID), logs / "orders-1")
    for file in sorted((logs / "orders-1").glob("0*"))[:6]:
        file.unlink()
    report = cli.json("verify", logs, tmp_path / "store")
    assert (report["total"]["rows"], report["problems"]) == (RECORDS, [])
    (log,) = magicbyte.Log([logs, tmp_path / "store"])
    assert values(log) == values(magicbyte.PartitionLog(local))


@pytest.mark.parametrize(
    ("kind", "why"),
    [
        ("encrypted", "AES-GCM: the tag does not match"),
        ("both", "AES-GCM: the tag does not match"),
        ("compressed", "zstd: "),
    ],
)
def test_a_damaged_chunk_costs_only_its_batches(
    kind: str, why: str, local: Path, key: Path, tmp_path: Path, cli: Cli
) -> None:
    logs = upload(Plugin(tmp_path, **KINDS[kind]), local)  # type: ignore[arg-type]
    data = bytearray(logs[2].read_bytes())
    at = len(data) // 2
    data[at : at + 900] = bytes(byte ^ 0xFF for byte in data[at : at + 900])
    logs[2].write_bytes(data)
    report = cli.json("verify", tmp_path, code=1)
    # Chunks of 1000 bytes hold parts of at most three batches.
    assert RECORDS - 60 <= report["total"]["rows"] < RECORDS
    assert report["balanced"]
    problem = report["problems"][0]
    assert {one["kind"] for one in report["problems"]} == {"file_unreadable"}
    assert f"of {logs[2].name}, bytes " in problem["message"]
    assert "chunk " in problem["message"]
    assert why in problem["message"]
    lost = problem["last_lost_offset"] - problem["first_lost_offset"] + 1
    assert lost == RECORDS - report["total"]["rows"]
    with pytest.raises(magicbyte.Error, match="chunk"):
        list(magicbyte.PartitionLog(logs[0].parent).records())


@pytest.mark.parametrize("place", ["first", "last"])
def test_the_first_or_last_chunk_is_damaged(
    place: str, local: Path, key: Path, tmp_path: Path, cli: Cli
) -> None:
    """Zeros at the end are not taken for a preallocated file."""
    logs = upload(Plugin(tmp_path, key=KEY_ID), local)
    log = logs[0 if place == "first" else -1]
    data = bytearray(log.read_bytes())
    data[5 if place == "first" else -5] ^= 1
    log.write_bytes(data)
    report = cli.json("verify", tmp_path, code=1)
    assert RECORDS - 60 <= report["total"]["rows"] < RECORDS
    # Where the segment's end is lost, its index points past what is left.
    (problem,) = (one for one in report["problems"] if one["kind"] != "index_beyond_log")
    assert problem["kind"] == "file_unreadable"
    assert "AES-GCM" in problem["message"]


def test_an_object_that_was_cut(local: Path, key: Path, tmp_path: Path, cli: Cli) -> None:
    logs = upload(Plugin(tmp_path, key=KEY_ID), local)
    logs[1].write_bytes(logs[1].read_bytes()[:-3000])
    report = cli.json("verify", tmp_path, code=1)
    assert RECORDS - 60 <= report["total"]["rows"] < RECORDS
    assert "the object ends at byte" in report["problems"][-1]["message"]


def index(**fields: Any) -> Change:
    return lambda manifest: manifest["chunkIndex"].update(fields)


def part(**fields: Any) -> Change:
    return lambda manifest: manifest["segmentIndexes"]["offset"].update(fields)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (index(originalChunkSize=0), "originalChunkSize is 0, expected a positive number"),
        (index(originalFileSize=-1), "originalFileSize is -1, expected 0 or more"),
        (index(originalFileSize=2**31), "invalid value"),
        (index(transformedChunkSize=-1), "transformedChunkSize is -1, expected 0 or more"),
        (index(finalTransformedChunkSize=10), "and the object has"),
        (
            index(originalChunkSize=2**31 - 1, transformedChunkSize=2**31 - 1),
            "more than the limit of 67108864",
        ),
        (index(type="variable", transformedChunks="AAAA"), "does not begin with a zstd frame"),
        (index(type="other"), "unknown variant"),
        (part(position=-1), "bytes at -1, expected 0 or more"),
        (lambda manifest: manifest.update(version="2"), 'version is "2", expected "1"'),
        (lambda manifest: manifest.pop("segmentIndexes"), "missing field `segmentIndexes`"),
        (lambda manifest: manifest["encryption"].update(dataKey="x"), "dataKey is malformed"),
        (
            lambda manifest: manifest["encryption"].update(dataKey="key1:AAAA"),
            "none of those",
        ),
        (
            lambda manifest: manifest["encryption"].update(dataKey="key7:AAAA"),
            'with the key "key7"',
        ),
        (lambda manifest: manifest.pop("encryption"), "it is neither compressed nor encrypted"),
    ],
)
def test_a_false_manifest(change: Change, why: str, local: Path, key: Path, tmp_path: Path, cli: Cli) -> None:
    logs = upload(Plugin(tmp_path, key=KEY_ID), local, change)
    report = cli.json("verify", tmp_path, code=1)
    assert report["total"]["rows"] < RECORDS
    (problem,) = (one for one in report["problems"] if one["kind"] == "file_unreadable")
    assert problem["segment"] == logs[1].name
    assert logs[1].with_suffix(".rsm-manifest").name in problem["message"]
    assert why in problem["message"]


def test_index_parts_that_are_not_there(local: Path, key: Path, tmp_path: Path, cli: Cli) -> None:
    logs = upload(Plugin(tmp_path), local, part(position=2**31 - 1, size=2**31 - 1))
    report = cli.json("verify", tmp_path, code=1)
    assert report["total"]["rows"] == RECORDS
    assert {one["segment"] for one in report["problems"]} == {logs[1].with_suffix(".index").name}
    logs[1].with_suffix(".indexes").unlink()
    assert cli.json("verify", tmp_path, code=1)["total"]["rows"] == RECORDS


def test_segments_that_were_not_copied_to_their_end(local: Path, tmp_path: Path) -> None:
    logs = upload(Plugin(tmp_path, compress=True), local)
    logs[-1].with_suffix(".rsm-manifest").unlink()
    log = magicbyte.PartitionLog(logs[0].parent)
    assert {one["file"]: one["reason"] for one in log.ignored}[logs[-1].name] == "unfinished"
    assert len(values(log)) == int(logs[-1].name[:20])


def test_a_manifest_without_its_object(local: Path, tmp_path: Path, cli: Cli) -> None:
    logs = upload(Plugin(tmp_path, compress=True), local)
    logs[1].unlink()
    report = cli.json("verify", tmp_path, code=1)
    (problem,) = (one for one in report["problems"] if one["kind"] == "file_unreadable")
    assert (problem["segment"], "is missing" in problem["message"]) == (logs[1].name, True)


def test_keys(tmp_path: Path, local: Path, cli: Cli) -> None:
    """Several keys, by ID or without one; a wrong one is named, and none is shown."""
    key_id = "of-test-keys"
    logs = upload(Plugin(tmp_path / "store", key=key_id), local)
    report = cli.json("verify", tmp_path / "store", code=1)
    assert {one["kind"] for one in report["problems"]} == {"file_unreadable"}
    assert f'it is encrypted with the key "{key_id}"' in report["problems"][0]["message"]
    right = write_key(tmp_path / "right.pem", key_id, PrivateFormat.TraditionalOpenSSL)
    wrong = write_key(tmp_path / "wrong.pem", "another")
    command = ("verify", "--encryption-key")
    assert cli.json(*command, f"{key_id}={wrong}", tmp_path / "store", code=1)["total"]["rows"] == 0
    report = cli.json(*command, f"other={right}", tmp_path / "store", code=1)
    assert report["total"]["rows"] == 0
    assert cli.json(*command, f"{key_id}={right}", tmp_path / "store")["total"]["rows"] == RECORDS
    (tmp_path / "none.pem").write_text("-----BEGIN PRIVATE KEY-----\nMIIBsecret\n-----END PRIVATE KEY-----\n")
    cli(*command, tmp_path / "none.pem", logs[0], code=2)
    assert "expected an RSA private key in PEM, without a password" in cli.error
    assert "MIIBsecret" not in cli.error
    cli(*command, tmp_path / "gone.pem", logs[0], code=2)
    assert "gone.pem" in cli.error
    key = named_key(f"{key_id}={right}")
    assert repr(key) == f"<EncryptionKey {key_id}>"
    assert key == EncryptionKey(right.read_text(), key_id) != named_key(str(right))


@pytest.mark.parametrize("known", ["manifest", "nothing"])
def test_a_leader_that_lost_an_unclean_election(known: str, local: Path, tmp_path: Path, cli: Cli) -> None:
    """The leader of epoch 0 copied the second segment; that of epoch 1 had it otherwise."""
    plugin = Plugin(tmp_path, compress=True)
    logs = sorted(local.glob("*.log"))
    starts = [int(log.stem) for log in logs]
    epochs = {0: 0, 1: starts[1]}
    for number, (log, end) in enumerate(zip(logs, [*starts[1:], RECORDS], strict=True)):
        own = {0: 0} if number == 0 else {1: starts[number]}
        plugin.upload(log, ORDERS, SEGMENT_IDS[number % 3], epochs=own, checkpoint=epochs, end_offset=end - 1)
    lost = tmp_path / logs[1].name
    builder = magicbyte.RecordsBuilder()
    for offset in range(starts[1], starts[2]):
        builder.append(offset, 1_700_000_000_000, b"key", b"lost")
    lost.write_bytes(builder.build())

    def forget(manifest: dict[str, Any]) -> None:
        if known == "nothing":
            del manifest["remoteLogSegmentMetadata"]

    copied = {"epochs": {0: starts[1]}, "end_offset": starts[2] - 1, "checkpoint": {0: 0}}
    log = plugin.upload(lost, ORDERS, "--------------------_A", change=forget, **copied)  # type: ignore[arg-type]
    lost.unlink()
    report = cli.json("verify", tmp_path, code=0 if known == "manifest" else 1)
    assert report["total"]["rows"] == RECORDS
    (found,) = magicbyte.Log([tmp_path], mode="PERMISSIVE")
    ignored = {one["file"]: one["reason"] for one in found.ignored}
    assert (values(found) == values(magicbyte.PartitionLog(local))) == (known == "manifest")
    assert ignored.get(log.name) == ("diverged" if known == "manifest" else None)


def test_in_a_store(local: Path, key: Path, tmp_path: Path, cli: Cli) -> None:
    logs = upload(Plugin(tmp_path, compress=True, key=KEY_ID), local)
    system = fsspec.filesystem("memory")
    system.put(str(tmp_path), "/tiered", recursive=True)
    expected = values(magicbyte.PartitionLog(local))
    (log,) = magicbyte.Log(["memory://tiered"])
    assert values(log) == expected
    report = cli.json("verify", "memory://tiered")
    assert (report["total"]["rows"], report["problems"]) == (RECORDS, [])
    assert values(magicbyte.PartitionLog(log.path)) == expected
    system.rm_file(f"/{log.path.split('://')[1]}/{logs[1].name}")
    assert cli.json("verify", "memory://tiered", code=1)["total"]["rows"] < RECORDS


def test_a_consumer_reads_it(local: Path, key: Path, tmp_path: Path) -> None:
    plugin = Plugin(tmp_path, compress=True, key=KEY_ID)
    for number, log in enumerate(sorted(local.glob("*.log"))):
        plugin.upload(log, ("orders", 0), SEGMENT_IDS[number % 3])
    with magicbyte.serve(tmp_path, listen="127.0.0.1:0") as server:
        consumer = confluent_kafka.Consumer(
            {"bootstrap.servers": server.bootstrap_servers, "group.id": "g", "enable.auto.commit": False}
        )
        consumer.assign([confluent_kafka.TopicPartition("orders", 0, 0)])
        found: list[tuple[int, bytes]] = []
        while len(found) < RECORDS and (batch := consumer.consume(RECORDS, timeout=20)):
            found += [(one.offset(), one.value()) for one in batch]
        consumer.close()
    assert found == values(magicbyte.PartitionLog(local))


@pytest.mark.spark
def test_on_spark(spark: Any, local: Path, tmp_path: Path) -> None:
    """The driver reads the key's file; the tasks have the key, and no plan shows it."""
    upload(Plugin(tmp_path / "store", compress=True, key="of-spark"), local)
    key = write_key(tmp_path / "private.pem", "of-spark")
    reader = spark.read.format("magicbyte").option("encryptionKey", f"of-spark={key}")
    frame = reader.load(str(tmp_path / "store")).select("offset", "value").sort("offset")
    plan = frame._jdf.queryExecution().toString()
    found = [(row.offset, bytes(row.value)) for row in frame.collect()]
    assert found == values(magicbyte.PartitionLog(local))
    assert "PRIVATE KEY" not in plan
