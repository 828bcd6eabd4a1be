"""`backup` of a cluster whose log is not the one that was copied: another history, or rot on a leader's disk.

No run mixes two histories, and none removes batches that the cluster does not have any more.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import magicbyte
import pytest
from conftest import KAFKA, Cli
from live_proxy import lying
from magicbyte.broker import PartitionSimulator
from magicbyte.errors import RefusedError
from magicbyte.jobs.publish import heartbeat
from test_backup import (
    BATCHES,
    ID,
    NO_PROBLEMS,
    OTHER_ID,
    TOPICS,
    backup,
    batch,
    cluster,
    content,
    findings,
    is_proved,
    write_log,
)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "cluster"


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "backup"


def everywhere(out: Path) -> bytes:
    """The bytes of all segments below the backup, of logs that are set aside, too."""
    return b"".join(path.read_bytes() for path in sorted(out.rglob("*.log")))


def log_of(epoch: int, numbers: Sequence[int], value: bytes = b"new", magic: int = 2) -> list[bytes]:
    if magic == 2:
        return [batch(number, value + b"%d" % number, epoch=epoch) for number in numbers]
    made = []
    for number in numbers:
        builder = magicbyte.RecordsBuilder(base_offset=number, magic=magic)
        builder.append(number, 1000 * number, b"key", value + b"%d" % number)
        made.append(builder.build())
    return made


def lied_to(root: Path, out: Path, changes: dict[bytes, bytes], **options: Any) -> Any:
    """A backup of a cluster whose leader has these bytes on its disk."""
    with (
        magicbyte.serve([root], listen="127.0.0.1:0") as server,
        lying(server.bootstrap_servers, changes) as address,
    ):
        return magicbyte.backup(f"kafka://{address}", out, choice=NO_PROBLEMS, **options)


# A full copy


@pytest.mark.parametrize("stays", [0, 2, 3, 5])
def test_a_full_copy_of_another_history_keeps_the_former(root: Path, out: Path, stays: int) -> None:
    write_log(root, BATCHES)
    backup(out, root)
    write_log(root, [*BATCHES[:stays], batch(stays, b"new", epoch=9)])
    report = backup(out, root, full=True)
    assert findings(report) == [("diverged", stays, 5)]
    assert all(one in everywhere(out) for one in BATCHES)
    assert content(out / "orders-0") == b"".join([*BATCHES[:stays], batch(stays, b"new", epoch=9)])
    assert is_proved(out)
    assert backup(out, root, full=True)["findings"] == []


def test_a_full_copy_that_would_end_earlier(root: Path, out: Path) -> None:
    write_log(root, BATCHES)
    backup(out, root)
    with pytest.raises(RefusedError, match="orders-0: the backup already goes on to offset 6"):
        backup(out, root, full=True, as_of=3000)
    assert content(out / "orders-0") == b"".join(BATCHES)


def test_a_full_copy_with_new_damage_does_not_replace(root: Path, out: Path) -> None:
    write_log(root, BATCHES)
    backup(out, root)
    report = lied_to(root, out, {b"third": b"thXrd"}, full=True)
    assert findings(report) == [("damaged", 2, 2), ("stopped", None, None)]
    assert content(out / "orders-0") == b"".join(BATCHES)
    assert backup(out, root, full=True)["findings"] == []
    assert content(out / "orders-0") == b"".join(BATCHES)
    assert is_proved(out)


def test_a_full_copy_with_the_same_damage_replaces(root: Path, out: Path) -> None:
    rotten = {b"third": b"thXrd"}
    write_log(root, BATCHES)
    lied_to(root, out, rotten)
    write_log(root, [*BATCHES[:1], *BATCHES[2:]])  # compaction
    assert findings(lied_to(root, out, rotten, full=True)) == [("damaged", 1, 2), ("stopped", None, None)]
    write_log(root, BATCHES)
    assert findings(lied_to(root, out, rotten, full=True)) == [("damaged", 2, 2)]
    assert b"thXrd" in content(out / "orders-0")


# Another history


@pytest.mark.parametrize(("epoch", "magic"), [(0, 2), (-1, 2), (-1, 1), (-1, 0)])
def test_a_cluster_that_came_back_from_an_older_copy(root: Path, out: Path, epoch: int, magic: int) -> None:
    """Its log ends before that of the backup, and goes on with other records."""
    former = BATCHES if epoch >= 0 else log_of(epoch, range(6), b"old", magic)
    write_log(root, former)
    assert backup(out, root)["findings"] == []
    write_log(root, log_of(epoch, range(3), magic=magic))
    first = 2 if epoch >= 0 else 3  # the epoch that both know ends there
    assert findings(backup(out, root)) == [("diverged", first, 5), ("diverged", 0, first - 1)]
    write_log(root, log_of(epoch, range(9), magic=magic))
    report = backup(out, root)
    assert (report["findings"], report["partitions"][0]["next_offset"]) == ([], 9)
    assert all(one in everywhere(out) for one in former)
    assert is_proved(out)


def test_an_epoch_that_the_leader_does_not_know(root: Path, out: Path) -> None:
    """It had another leader after the last common epoch, as `KAFKA-6361` describes."""
    write_log(root, [batch(0, b"a", epoch=1), batch(1, b"b", epoch=3), batch(2, b"c", epoch=3)])
    backup(out, root)
    write_log(root, [batch(0, b"a", epoch=1), *log_of(4, range(1, 8))])
    assert findings(backup(out, root)) == [("diverged", 1, 2)]
    assert content(out / "orders-0") == b"".join([batch(0, b"a", epoch=1), *log_of(4, range(1, 8))])


def test_a_topic_of_the_same_name_without_the_file_of_its_id(root: Path, out: Path) -> None:
    write_log(root, BATCHES[:3])
    backup(out, root)
    (out / "orders-0" / "partition.metadata").unlink()
    write_log(root, log_of(1, range(8)), topic_id=OTHER_ID)
    assert findings(backup(out, root)) == [("recreated", None, None)]
    assert content(out / "orders-0") == b"".join(log_of(1, range(8)))
    assert b"".join(BATCHES[:3]) in everywhere(out)


def test_the_file_of_an_id_is_written_again(root: Path, out: Path) -> None:
    write_log(root, BATCHES[:3])
    backup(out, root)
    (out / "orders-0" / "partition.metadata").unlink()
    assert backup(out, root)["findings"] == []
    assert ID in (out / "orders-0" / "partition.metadata").read_text()


def test_batches_of_a_killed_run_that_the_cluster_does_not_have(root: Path, out: Path) -> None:
    write_log(root, BATCHES[:2])
    backup(out, root)
    manifest = (out / "backup.json").read_bytes()
    write_log(root, BATCHES)
    backup(out, root, segment_bytes=1)
    (out / "backup.json").write_bytes(manifest)
    third = out / "orders-0" / f"{3:020}.log"
    third.write_bytes(third.read_bytes()[:-1] + b"X")
    write_log(root, [*BATCHES[:2], batch(2, b"new", epoch=9)])
    report = backup(out, root)
    assert findings(report) == [("incomplete", None, None), ("diverged", 2, 2)]
    assert all(BATCHES[number] in everywhere(out) for number in (0, 1, 2, 4, 5))


# A topic that is hidden


def test_a_topic_that_is_shown_again_has_lost_what_it_had_lost(root: Path, out: Path) -> None:
    write_log(root, BATCHES[:2])
    backup(out, root)
    write_log(root, BATCHES[4:])
    assert findings(backup(out, root)) == [("lost", 2, 3)]
    (root / "orders-0").rename(root / "hidden")
    write_log(root, BATCHES, name="other-0", topic_id=OTHER_ID)
    assert findings(backup(out, root)) == [("deleted", None, None)]
    assert findings(backup(out, root)) == []
    (root / "hidden").rename(root / "orders-0")
    report = backup(out, root)
    (partition,) = (one for one in report["partitions"] if one["topic"] == "orders")
    assert (partition["lost"], partition["records"]) == ([(2, 3)], 4)
    assert is_proved(out)


def test_a_run_that_was_killed_after_it_has_set_a_log_aside(root: Path, out: Path) -> None:
    write_log(root, BATCHES[:2])
    backup(out, root)
    write_log(root, BATCHES[4:])
    backup(out, root)
    manifest = (out / "backup.json").read_bytes()
    (root / "orders-0").rename(root / "hidden")
    write_log(root, BATCHES, name="other-0", topic_id=OTHER_ID)
    for _ in range(2):
        (found,) = backup(out, root)["findings"]
        assert (out / found["aside"]).is_dir()
        (out / "backup.json").write_bytes(manifest)
    backup(out, root)
    (root / "hidden").rename(root / "orders-0")
    (partition,) = (one for one in backup(out, root)["partitions"] if one["topic"] == "orders")
    assert partition["lost"] == [(2, 3)]


def test_a_log_that_is_set_aside_for_the_second_time(root: Path, out: Path) -> None:
    write_log(root, BATCHES, name="other-0", topic_id=OTHER_ID)
    for _ in range(2):
        write_log(root, BATCHES)
        backup(out, root)
        copied = {path.name: path.read_bytes() for path in (out / "orders-0").iterdir()}
        (root / "orders-0").rename(root / "hidden")
        (report,) = backup(out, root)["findings"]
        assert (out / report["aside"]).is_dir()
        (root / "hidden").rename(root / "orders-0")
        # Somebody puts a copy back.
        (out / "orders-0").mkdir()
        for name, data in copied.items():
            (out / "orders-0" / name).write_bytes(data)
    assert len(list(out.glob("*-stray"))) == 2


def test_no_place_is_named_if_nothing_is_set_aside(root: Path, out: Path) -> None:
    write_log(root, BATCHES)
    write_log(root, BATCHES, name="other-0", topic_id=OTHER_ID)
    backup(out, root)
    for directory in (root, out):
        (directory / "orders-0").rename(directory.parent / f"{directory.name}-orders")
    (found,) = backup(out, root)["findings"]
    assert (found["found"], found["aside"]) == ("deleted", None)


# Another history under the same epochs


SAME_EPOCHS = [BATCHES[0], *(batch(number, b"new%d" % number, epoch=number // 2) for number in range(1, 9))]


@pytest.fixture(params=["local", "store"])
def target(request: pytest.FixtureRequest, out: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The backup as a directory and as a store."""
    if request.param == "local":
        return str(out)
    pytest.importorskip("fsspec")
    monkeypatch.setattr(heartbeat, "SILENCE_SECONDS", 0.2)
    return f"local://{out}"


@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize("segment_bytes", [64, 1 << 30])
@pytest.mark.parametrize("end", [6, 9])
def test_the_same_epochs_for_other_records(
    root: Path, out: Path, target: str, full: bool, segment_bytes: int, end: int
) -> None:
    """The cluster came back from an older copy, metadata included, and its log is as long again."""
    write_log(root, BATCHES)
    backup(target, root, segment_bytes=segment_bytes)
    write_log(root, SAME_EPOCHS[:end])
    report = backup(target, root, full=full, segment_bytes=segment_bytes)
    assert findings(report) == [("diverged", 0, 5)]
    (found,) = report["findings"]
    assert "another record at offset 5, under the same epoch" in found["message"]
    aside = out / found["aside"]
    assert content(aside) == b"".join(BATCHES)
    assert content(out / "orders-0") == b"".join(SAME_EPOCHS[:end])
    assert report["partitions"][0]["records"] == end
    assert is_proved(out)
    assert backup(target, root, full=full)["findings"] == []
    assert content(aside) == b"".join(BATCHES)


@pytest.mark.parametrize("magic", [0, 1, 2])
def test_other_records_without_epochs(root: Path, out: Path, magic: int) -> None:
    write_log(root, log_of(-1, range(6), b"old", magic))
    assert backup(out, root)["findings"] == []
    write_log(root, log_of(-1, range(9), magic=magic))
    assert findings(backup(out, root)) == [("diverged", 0, 5)]
    assert content(out / "orders-0") == b"".join(log_of(-1, range(9), magic=magic))


def test_a_marker_is_a_last_record(root: Path, out: Path) -> None:
    """The transaction was committed, and after the return of an older copy, aborted."""
    ends = []
    for committed in (True, False):
        partition = PartitionSimulator(clock=0)
        builder = magicbyte.RecordsBuilder(
            producer_id=7, producer_epoch=0, base_sequence=0, is_transactional=True
        )
        builder.append(0, 0, b"key", b"value")
        partition.append(builder.build())
        partition.end_transaction(7, 0, committed=committed)
        ends.append(partition.fetch(0, max_bytes=1 << 20).records)
    write_log(root, ends[:1])
    assert backup(out, root)["partitions"][0]["last_record"]["offset"] == 1
    write_log(root, ends[1:])
    assert findings(backup(out, root)) == [("diverged", 0, 1)]


@pytest.mark.parametrize("kept", [[0, 1, 2, 3, 4], [0, 1, 2], [4], []])
def test_a_last_record_that_was_compacted(root: Path, out: Path, kept: list[int]) -> None:
    write_log(root, BATCHES)
    backup(out, root)
    more = log_of(2, [6, 7])
    write_log(root, [*(BATCHES[number] for number in kept), *more])
    assert backup(out, root)["findings"] == []
    assert content(out / "orders-0") == b"".join([*BATCHES, *more])


def test_a_last_record_that_retention_has_deleted(root: Path, out: Path) -> None:
    write_log(root, BATCHES)
    backup(out, root)
    write_log(root, log_of(2, [8, 9]))
    assert findings(backup(out, root)) == [("lost", 6, 7)]
    assert backup(out, root)["partitions"][0]["last_record"]["offset"] == 9


def test_batches_of_other_borders_are_the_same_records(root: Path, out: Path) -> None:
    """Each record has its own digest, as `diff` compares them."""
    builder = magicbyte.RecordsBuilder(compression="zstd", partition_leader_epoch=3)
    for number in range(4):
        builder.append(number, number, b"key", b"%d" % number)
    whole = builder.build()
    write_log(root, [batch(number, b"%d" % number, epoch=3, timestamp=number) for number in range(4)])
    assert backup(out, root)["findings"] == []
    write_log(root, [whole, batch(4, b"4", epoch=3)])
    assert backup(out, root)["findings"] == []


def test_rot_at_the_last_record_is_no_other_history(root: Path, out: Path) -> None:
    write_log(root, BATCHES)
    backup(out, root)
    write_log(root, [*BATCHES, *log_of(2, [6])])
    assert findings(lied_to(root, out, {b"sixth": b"siXth"})) == []
    assert content(out / "orders-0") == b"".join([*BATCHES, *log_of(2, [6])])


def test_a_leader_that_lies_about_one_last_record_stops_one_partition(root: Path, out: Path) -> None:
    sent = [log_of(0, range(6), b"value-%d-" % topic) for topic in range(3)]
    more = [log_of(0, range(6, 8), b"value-%d-" % topic) for topic in range(3)]
    for batches in (sent, [one + other for one, other in zip(sent, more, strict=True)]):
        for topic, one in enumerate(batches):
            write_log(root, one, name=f"topic{topic}-0", topic_id=f"{ID[:-2]}{'ABC'[topic]}Q")
        if batches is sent:
            backup(out, root)
    rotten = sent[1][5]
    report = lied_to(root, out, {rotten: (900).to_bytes(8, "big") + rotten[8:]})
    assert {one["topic"] for one in report["findings"]} <= {"topic1"}
    copied = {one["topic"]: one["records"] for one in report["partitions"]}
    assert (copied["topic0"], copied["topic2"]) == (8, 8)


def test_a_log_that_was_cut_knows_its_last_record(root: Path, out: Path) -> None:
    write_log(root, BATCHES)
    backup(out, root)
    write_log(root, BATCHES[:4])
    assert findings(backup(out, root)) == [("diverged", 4, 5)]
    write_log(root, [*SAME_EPOCHS[:4], batch(4, b"new", epoch=1)])
    assert findings(backup(out, root)) == [("diverged", 0, 3)]
    assert content(out / "orders-0") == b"".join([*SAME_EPOCHS[:4], batch(4, b"new", epoch=1)])


def test_a_killed_run_knows_its_last_record(root: Path, out: Path) -> None:
    """Its batches are in no manifest yet."""
    write_log(root, BATCHES[:2])
    backup(out, root)
    log = out / "orders-0" / f"{0:020}.log"
    log.write_bytes(b"".join(BATCHES))
    write_log(root, SAME_EPOCHS)
    assert findings(backup(out, root)) == [("diverged", 0, 5)]
    assert content(out / "orders-0") == b"".join(SAME_EPOCHS)


def test_a_manifest_of_an_earlier_version_has_no_last_record(root: Path, out: Path) -> None:
    write_log(root, BATCHES)
    backup(out, root)
    manifest = json.loads((out / "backup.json").read_text())
    del manifest["partitions"][0]["last_record"]
    (out / "backup.json").write_text(json.dumps(manifest))
    write_log(root, [*BATCHES, *log_of(2, [6])])
    report = backup(out, root)
    assert (report["findings"], report["partitions"][0]["last_record"]["offset"]) == ([], 6)


# Rot on a leader's disk that no checksum covers, or that changes where a batch ends


@pytest.mark.parametrize("epoch", [0, -1])
def test_the_end_of_a_last_batch(root: Path, out: Path, epoch: int) -> None:
    sent = log_of(epoch, range(9))
    write_log(root, sent[:6])
    header = sent[5][:57]
    report = lied_to(root, out, {header: header[:23] + (900).to_bytes(4, "big") + header[27:]})
    assert findings(report) == [("stopped", None, None)]
    assert "offset 905 is not allowed here: expected 0 to 5" in report["findings"][0]["message"]
    write_log(root, sent)
    report = backup(out, root)
    assert (report["findings"], report["partitions"][0]["next_offset"]) == ([], 9)
    assert content(out / "orders-0") == b"".join(sent)


def test_a_backup_with_a_wrong_end_is_mended(root: Path, out: Path) -> None:
    """Earlier versions have appended such a batch."""
    sent = log_of(3, range(9))
    write_log(root, sent[:6])
    backup(out, root)
    log = out / "orders-0" / f"{0:020}.log"
    rotten = sent[5][:23] + (900).to_bytes(4, "big") + sent[5][27:]
    log.write_bytes(b"".join(sent[:5]) + rotten)
    manifest = json.loads((out / "backup.json").read_text())
    damage = {"first_offset": 5, "last_offset": 905, "message": "CRC"}
    manifest["partitions"][0] |= {"next_offset": 906, "damaged": [damage]}
    (out / "backup.json").write_text(json.dumps(manifest))
    write_log(root, sent)
    backup(out, root)
    assert backup(out, root)["partitions"][0]["records"] == 9
    assert content(out / "orders-0") == b"".join(sent)


@pytest.mark.parametrize(("base", "found"), [(1, 1), (900, 900)])
@pytest.mark.parametrize("number", [3, 5])
def test_a_wrong_base_offset_stops_one_partition(
    cli: Cli, root: Path, out: Path, base: int, found: int, number: int
) -> None:
    sent = [log_of(0, range(6), b"value-%d-" % topic) for topic in range(4)]
    for topic, batches in enumerate(sent):
        write_log(root, batches, name=f"topic{topic}-0", topic_id=f"{ID[:-2]}{'ABCD'[topic]}Q")
    rotten = sent[2][number]
    changes = {rotten: base.to_bytes(8, "big") + rotten[8:]}
    report = lied_to(root, out, changes)
    (one,) = report["findings"]
    assert (one["topic"], one["found"]) == ("topic2", "stopped")
    assert f"offset {found} " in one["message"]
    copied = {one["topic"]: one["records"] for one in report["partitions"]}
    assert [copied[f"topic{topic}"] for topic in (0, 1, 3)] == [6, 6, 6]
    with cluster(root) as url, lying(url.removeprefix("kafka://"), changes) as address:
        cli("verify", f"kafka://{address}/topic2", code=3)
        assert "topic2-0: the records at offset" in cli.error


# A manifest with numbers that no run writes


@pytest.mark.parametrize(
    "change",
    [
        {"next_offset": -7},
        {"next_offset": 1 << 63},
        {"leader_epochs": [[1 << 40, 0]]},
        {"leader_epochs": [[-1, 0]]},
        {"lost": [[-1, 5]]},
        {"active_segment": -1},
        {"partition": 1 << 31},
        {"max_producer_id": 1 << 70},
        {"last_record": {"offset": -1, "digest": ""}},
        {"last_record": {"offset": 1}},
        {"open_transactions": [{"producer_id": 1 << 64, "first_offset": 0, "is_overlapped": False}]},
    ],
    ids=str,
)
def test_numbers_out_of_range(cli: Cli, root: Path, out: Path, change: dict[str, Any]) -> None:
    write_log(root, BATCHES)
    backup(out, root)
    manifest = json.loads((out / "backup.json").read_text())
    manifest["partitions"][0] |= change
    (out / "backup.json").write_text(json.dumps(manifest))
    with cluster(root) as url:
        cli("backup", url, out, code=2)
    assert f"{out / 'backup.json'} is not the manifest of a backup" in cli.error


def test_the_digest_of_a_record_is_that_of_diff() -> None:
    with cluster(*(KAFKA / name for name in TOPICS)) as url:
        reader = magicbyte._core.ClusterReader(url.removeprefix("kafka://"))
        places = reader.partitions()
        bounds = dict(zip(places, reader.offsets(places, "read_uncommitted"), strict=True))
        ranges = [(*place, *bounds[place]) for place in places]
        digests = {one[:2]: one[3] for one in reader.digest(ranges, 1, "read_uncommitted", 1 << 20)}
        for place in places:
            expected = {offset: f"{digest:032x}" for offset, _, digest in digests[place]}
            for offset in range(*bounds[place]):
                assert reader.digest_records([(*place, offset)]) == [expected.get(offset)]
        last = [(*place, end - 1) for place, (_, end) in bounds.items()]
        found = reader.digest_records(last)
        assert sum(one is not None for one in found) >= len(places) - 1


def test_the_start_of_a_compacted_log(root: Path, out: Path) -> None:
    """The cleaner has removed its first batches, and the log still begins where it did."""
    write_log(root, BATCHES[3:])
    (root / "orders-0" / f"{3:020}.log").rename(root / "orders-0" / f"{0:020}.log")
    for full in (False, True):
        assert backup(out, root, full=full)["findings"] == []
        assert [path.name for path in (out / "orders-0").glob("*.log")] == [f"{0:020}.log"]
        assert magicbyte.verify(out / "orders-0")["problems"] == []
