"""Segments in tiered storage, alone and together with those that the broker still has."""

from __future__ import annotations

import base64
import json
import shutil
from pathlib import Path
from typing import Any

import magicbyte
import pytest
from conftest import Cli
from magicbyte import _core
from magicbyte.jobs.find.choice import PartitionChoice

TOPIC_ID = "R5ONT1_KRNm0plmgyh-N-w"
SEGMENT_IDS = ("9ReE-tebSsmSlbyz2x-Ljg", "ch3Yoc3RS-25Hxeplhn1AA", "-o6INKICTBmxlZSiTw7VtQ")
RECORDS = 300
"""In segments of 50."""


def metadata(topic_id: str) -> str:
    return f"version: 0\ntopic_id: {topic_id}"


class Tiers:
    """A partition: a broker has the offsets from `local_start` on, a store those before `remote_end`."""

    def __init__(self, root: Path, local_start: int, remote_end: int, topic_id: str = TOPIC_ID) -> None:
        self.logs, self.store = root / "kafka-logs", root / "store"
        self.local = self.logs / "orders-1"
        self.remote = self.store / f"orders-1-{topic_id}"
        self.remote.mkdir(parents=True)
        writer = _core.PartitionWriter(_core.begin_partition(self.local), 0, segment_bytes=1000)
        for start in range(0, RECORDS, 50):
            builder = magicbyte.RecordsBuilder(partition_leader_epoch=start // 100)
            for offset in range(start, start + 50):
                builder.append(offset, 1_700_000_000_000 + offset, b"key", b"%d" % offset)
            writer.append(builder.build())
        _core.finish_partition(self.local, writer.finish())
        (self.local / "partition.metadata").write_text(metadata(TOPIC_ID))
        for number, log in enumerate(sorted(self.local.glob("*.log"))):
            stem = f"{log.stem}-{SEGMENT_IDS[number % 3]}"
            for file in self.local.glob(f"{log.stem}.*"):
                if int(log.stem) < remote_end:
                    shutil.copy(file, self.remote / f"{stem}{file.suffix}")
                if int(log.stem) < local_start:
                    file.unlink()
            if int(log.stem) < remote_end:
                epochs = [f"{epoch} {epoch * 100}\n" for epoch in range(int(log.stem) // 100 + 1)]
                checkpoint = f"0\n{len(epochs)}\n{''.join(epochs)}"
                (self.remote / f"{stem}.leader_epoch_checkpoint").write_text(checkpoint)

    def total(self, cli: Cli, *arguments: Any, code: int = 0) -> dict[str, Any]:
        report = cli.json("verify", *arguments, self.logs, self.store, code=code)
        assert report["balanced"]
        total: dict[str, Any] = report["total"]
        return total


@pytest.mark.parametrize(("local_start", "remote_end"), [(200, 200), (200, 250), (50, 250), (250, 250)])
def test_both_are_one_partition(local_start: int, remote_end: int, tmp_path: Path, cli: Cli) -> None:
    tiers = Tiers(tmp_path, local_start, remote_end)
    report = cli.json("verify", tiers.logs, tiers.store)
    assert report["total"]["rows"] == RECORDS
    assert report["problems"] == []
    (log,) = magicbyte.Log([tiers.store, tiers.logs])
    assert (log.topic, log.partition, log.path) == ("orders", 1, str(tiers.local))
    assert [record.offset for record in log.records()] == list(range(RECORDS))
    assert [record.value for record in log.records(start_offset=190, end_offset=210)] == [
        b"%d" % offset for offset in range(190, 210)
    ]
    in_both = [one["file"] for one in log.ignored if one["reason"] == "overlapping"]
    assert len(in_both) == (remote_end - local_start) // 50
    assert log.offset_for_timestamp(1_700_000_000_010) == 10


def test_each_alone(tmp_path: Path, cli: Cli) -> None:
    tiers = Tiers(tmp_path, 200, 250)
    log = magicbyte.PartitionLog(tiers.remote)
    assert (log.topic, log.partition) == ("orders", 1)
    assert [record.offset for record in log.records()] == list(range(250))
    assert log.ignored == []
    assert cli.json("verify", tiers.store)["total"]["rows"] == 250
    assert cli.json("verify", tiers.local, code=1)["problems"][0]["kind"] == "missing_segment"
    one = magicbyte.PartitionLog(sorted(tiers.remote.glob("*.log"))[1])
    assert (one.topic, one.partition, next(record.offset for record in one.records())) == ("orders", 1, 50)


def test_the_local_part_is_gone(tmp_path: Path, cli: Cli) -> None:
    tiers = Tiers(tmp_path, 200, 250)
    shutil.rmtree(tiers.local)
    assert tiers.total(cli)["rows"] == 250


def test_a_gap_between_both_is_reported(tmp_path: Path, cli: Cli) -> None:
    tiers = Tiers(tmp_path, 250, 200)
    assert tiers.total(cli, code=1)["rows"] == 250
    (problem,) = cli.json("verify", tiers.logs, tiers.store, code=1)["problems"]
    assert problem["kind"] == "missing_segment"
    assert (problem["first_lost_offset"], problem["last_lost_offset"]) == (200, 249)


def test_the_first_remote_segments_are_gone(tmp_path: Path, cli: Cli) -> None:
    tiers = Tiers(tmp_path, 200, 200)
    for file in tiers.remote.glob(f"{0:020}-*"):
        file.unlink()
    assert tiers.total(cli, code=1)["rows"] == 250
    (problem,) = cli.json("verify", tiers.logs, tiers.store, code=1)["problems"]
    assert (problem["first_lost_offset"], problem["last_lost_offset"]) == (0, 49)
    assert "the first segment in tiered storage at 50" in problem["message"]


def test_damage_in_the_store_costs_only_itself(tmp_path: Path, cli: Cli) -> None:
    tiers = Tiers(tmp_path, 200, 200)
    segment = sorted(tiers.remote.glob("*.log"))[1]
    segment.write_bytes(segment.read_bytes()[:-1] + b"?")
    report = cli.json("verify", tiers.logs, tiers.store, code=1)
    assert report["total"]["rows"] == RECORDS - 50
    assert report["balanced"]
    assert {one["segment"] for one in report["problems"]} == {segment.name}


def test_another_topic_of_the_same_name(tmp_path: Path, cli: Cli) -> None:
    """It was deleted, and created again: their records have the same offsets."""
    tiers = Tiers(tmp_path, 200, 200, topic_id="AAAAAAAAAAAAAAAAAAAAAA")
    log = magicbyte.Log([tiers.logs, tiers.store])
    assert [(one.name, sum(1 for _ in one.records())) for one in log] == [
        ("orders-1", 100),
        ("orders-1", 200),
    ]
    cli("ingest", tiers.logs, tiers.store, tmp_path / "tables", code=2)
    assert "there are 2 copies of orders-1" in cli.error
    cli("ingest", "--prefer", tiers.store, tiers.logs, tiers.store, tmp_path / "tables")


def test_records_and_statistics_of_one_partition(tmp_path: Path, cli: Cli) -> None:
    tiers = Tiers(tmp_path, 200, 250)
    metadata_log(tiers.logs, update(SEGMENT_IDS[0], 1))
    sources = ("--topic", "orders", tiers.store, tiers.logs)
    offsets = [json.loads(line)["offset"] for line in cli("records", *sources).splitlines()]
    assert offsets == list(range(RECORDS))
    last = [json.loads(line)["offset"] for line in cli("records", "--tail", 2, *sources).splitlines()]
    assert last == [RECORDS - 2, RECORDS - 1]
    assert cli.json("stats", "--fields", *sources)["total"]["records"] == RECORDS


def test_jobs_write_one_partition(tmp_path: Path, cli: Cli) -> None:
    tiers = Tiers(tmp_path, 200, 250)
    sources = (tiers.logs, tiers.store)
    cli("convert", *sources, tmp_path / "out")
    assert [path.name for path in (tmp_path / "out").iterdir() if path.is_dir()] == ["orders-1"]
    assert cli.json("verify", tmp_path / "out")["total"]["rows"] == RECORDS
    cli("ingest", *sources, tmp_path / "tables")
    sums = json.loads((tmp_path / "tables/reconciliation.json").read_text())
    assert sums["total"]["rows"] == RECORDS
    # An output inside the store would be read as a part of it.
    cli("convert", *sources, tiers.remote / "out", code=2)


def uvarint(number: int) -> bytes:
    return bytes([number]) if number < 128 else bytes([number & 127 | 128]) + uvarint(number >> 7)


def uuid(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "==")


def partition(topic_id: str) -> bytes:
    return uvarint(7) + b"orders" + uuid(topic_id) + (1).to_bytes(4) + b"\0"


def update(segment: str, state: int) -> bytes:
    """A RemoteLogSegmentMetadataUpdateRecord, as Kafka writes it."""
    identity = partition(TOPIC_ID) + uuid(segment) + b"\0"
    return b"\1\1\0" + identity + (1).to_bytes(4) + (5).to_bytes(8) + b"\0" + bytes([state]) + b"\0"


def deletion(topic_id: str) -> bytes:
    """A RemotePartitionDeleteMetadataRecord."""
    return b"\1\2\0" + partition(topic_id) + (1).to_bytes(4) + (5).to_bytes(8) + b"\0\0"


def metadata_log(logs: Path, *values: bytes | None) -> None:
    directory = logs / "__remote_log_metadata-3"
    directory.mkdir(parents=True)
    builder = magicbyte.RecordsBuilder()
    for offset, value in enumerate(values):
        builder.append(offset, 1_700_000_000_000, None, value)
    (directory / f"{0:020}.log").write_bytes(builder.build())


@pytest.mark.parametrize(("state", "reason"), [(0, "unfinished"), (1, None), (2, "deleted"), (3, "deleted")])
def test_the_brokers_log_says_which_segments_are_read(state: int, reason: str | None, tmp_path: Path) -> None:
    tiers = Tiers(tmp_path, 100, 150)
    finished = [update(one, 1) for one in SEGMENT_IDS]
    metadata_log(tiers.logs, *finished, update(SEGMENT_IDS[1], state), b"\1\x7f\0", update(SEGMENT_IDS[0], 9))
    (log,) = magicbyte.Log([tiers.logs, tiers.store], PartitionChoice(topics=("orders",)), mode="PERMISSIVE")
    assert sum(1 for _ in log.records()) == (RECORDS if reason is None else RECORDS - 50)
    ignored = {one["file"]: one["reason"] for one in log.ignored}
    if reason is not None:
        assert ignored[f"{50:020}-{SEGMENT_IDS[1]}.log"] == reason


def test_a_compacted_log_of_the_broker(tmp_path: Path) -> None:
    """As KIP-1266 allows: the last record of a segment, and after its deletion one without a value."""
    tiers = Tiers(tmp_path, 100, 150)
    metadata_log(tiers.logs, None, update(SEGMENT_IDS[0], 1), update(SEGMENT_IDS[1], 3), None)
    (log,) = magicbyte.Log([tiers.logs, tiers.store], PartitionChoice(topics=("orders",)), mode="PERMISSIVE")
    assert sum(1 for _ in log.records()) == RECORDS - 50
    assert f"{50:020}-{SEGMENT_IDS[1]}.log" in {one["file"] for one in log.ignored}


def test_a_deleted_topic(tmp_path: Path) -> None:
    tiers = Tiers(tmp_path, 200, 200, topic_id="AAAAAAAAAAAAAAAAAAAAAA")
    metadata_log(tiers.logs, deletion("AAAAAAAAAAAAAAAAAAAAAA"))
    logs = magicbyte.Log([tiers.logs, tiers.store], PartitionChoice(topics=("orders",)))
    assert [sum(1 for _ in one.records()) for one in logs] == [100, 0]


def test_the_brokers_log_is_printed(tmp_path: Path, cli: Cli) -> None:
    metadata_log(tmp_path, update(SEGMENT_IDS[1], 3), deletion(TOPIC_ID))
    lines = cli("dump", tmp_path / "__remote_log_metadata-3").splitlines()
    assert '"type":"REMOTE_LOG_SEGMENT_METADATA_UPDATE_RECORD"' in lines[-2]
    assert f'"id":"{SEGMENT_IDS[1]}"' in lines[-2]
    assert '"remotePartitionDeleteState":0' in lines[-1]


def segment_metadata(segment: str, start: int, end: int, epochs: dict[int, int]) -> bytes:
    """A RemoteLogSegmentMetadataRecord of a copy that is finished."""
    identity = partition(TOPIC_ID) + uuid(segment) + b"\0"
    numbers = start.to_bytes(8) + end.to_bytes(8) + (1).to_bytes(4) + bytes(16)
    pairs = b"".join(epoch.to_bytes(4) + offset.to_bytes(8) + b"\0" for epoch, offset in epochs.items())
    return b"\1\0\0" + identity + numbers + uvarint(len(epochs) + 1) + pairs + bytes(4) + b"\0\1\0"


DIVERGED_ID = "--------------------_A"


class UncleanElection(Tiers):
    """The leader of epoch 0 had copied offsets 100 to 169. That of epoch 1 began at offset 100."""

    def __init__(self, root: Path, checkpoint: str | None = "0\n1\n0 0\n") -> None:
        super().__init__(root, 200, 250)
        self.log = self.remote / f"{100:020}-{DIVERGED_ID}.log"
        builder = magicbyte.RecordsBuilder()
        for offset in range(100, 170):
            builder.append(offset, 1_700_000_000_000, b"key", b"lost")
        self.log.write_bytes(builder.build())
        if checkpoint is not None:
            self.log.with_suffix(".leader_epoch_checkpoint").write_text(checkpoint)

    def check(self, *sources: Path, records: int = RECORDS) -> None:
        (log,) = magicbyte.Log(sources, PartitionChoice(topics=("orders",)))
        assert [record.value for record in log.records()] == [b"%d" % offset for offset in range(records)]
        assert [one["file"] for one in log.ignored if one["reason"] == "diverged"] == [self.log.name]


def test_epochs_beside_the_segments(tmp_path: Path) -> None:
    tiers = UncleanElection(tmp_path)
    tiers.check(tiers.logs, tiers.store)
    # The last leader copied the lineage with its last segment.
    tiers.check(tiers.store, records=250)


def test_epochs_in_the_brokers_log(tmp_path: Path) -> None:
    """Those are asked first: nothing else is there."""
    tiers = UncleanElection(tmp_path, checkpoint=None)
    metadata_log(tiers.logs, segment_metadata(DIVERGED_ID, 100, 169, {0: 100}))
    tiers.check(tiers.logs, tiers.store)


@pytest.mark.parametrize("checkpoint", [None, "0\n?", "0\n0\n"])
def test_a_segment_of_which_nothing_is_known(checkpoint: str | None, tmp_path: Path, cli: Cli) -> None:
    """Of two segments with the same offsets, the first one is read."""
    tiers = UncleanElection(tmp_path, checkpoint)
    report = cli.json("verify", "--topic", "orders", tiers.logs, tiers.store, code=1)
    assert report["total"]["rows"] == RECORDS
    assert "overlapping_segment" in {one["kind"] for one in report["problems"]}


def test_no_lineage(tmp_path: Path, cli: Cli) -> None:
    tiers = UncleanElection(tmp_path)
    (tiers.local / "leader-epoch-checkpoint").unlink()
    assert cli.json("verify", tiers.logs, tiers.store, code=1)["total"]["rows"] == RECORDS
