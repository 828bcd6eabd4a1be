"""Comparisons that must not say "equal": what was not read, was left out, or changed meanwhile."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import magicbyte
import pytest
import test_backup as backups
from conftest import Cli
from magicbyte.enums import IsolationLevel
from magicbyte.jobs.comparing import files_side
from magicbyte.jobs.comparing.differences import compare_partition
from replicas import batch, batches, replica

PLAIN = [batch(0, 50), batch(50, 50)]
PLACE = ("orders", 0)


def transactional(first: int, records: int = 50, **options: Any) -> bytes:
    options = {"producer_id": 5, "producer_epoch": 0, "base_sequence": 0, **options}
    return batch(first, records, is_transactional=True, **options)


def only(report: Any) -> Any:
    (partition,) = report["partitions"]
    return partition


def ranges(partition: Any) -> list[tuple[int, int, str]]:
    return [(one["first_offset"], one["last_offset"], one["difference"]) for one in partition["ranges"]]


HANGING: list[tuple[list[bytes], int]] = [
    ([batch(0, 50), transactional(50)], 50),
    ([transactional(0), batch(50, 50)], 0),
    ([batch(0, 10), transactional(10, 10), batch(20, 80)], 10),
    ([batch(0, 99), transactional(99, 1)], 99),
]
"""Logs with the offsets of `PLAIN`, and the last stable offset of each: nothing ends their transactions."""


@pytest.mark.parametrize(("log", "stable"), HANGING)
def test_records_after_the_last_stable_offset(
    tmp_path: Path, cli: Cli, log: list[bytes], stable: int
) -> None:
    """A reader of committed records does not get them, also when a range is read the second time."""
    a, b = replica(tmp_path / "a", {0: PLAIN}), replica(tmp_path / "b", {0: log})
    for sides, difference in (((a, b), "only_in_a"), ((b, a), "only_in_b")):
        report = magicbyte.diff(sides, isolation_level="read_committed")
        assert not report["equal"]
        partition = only(report)
        assert partition["result"] == "differs"
        assert ranges(partition) == [(stable, 99, difference)]
        assert partition["unproven"] == []
    cli("diff", "--isolation-level", "read_committed", a, b, code=1)
    assert only(magicbyte.diff([a, b]))["result"] == "equal"
    assert only(magicbyte.diff([b, b], isolation_level="read_committed"))["result"] == "equal"


@pytest.mark.parametrize(("log", "stable"), HANGING)
def test_a_cluster_and_files_with_a_hanging_transaction(
    tmp_path: Path, cli: Cli, log: list[bytes], stable: int
) -> None:
    a, b = replica(tmp_path / "a", {0: PLAIN}), replica(tmp_path / "b", {0: log})
    for served, files, difference in ((a, b, "only_in_b"), (b, a, "only_in_a")):
        with magicbyte.serve(served, listen="127.0.0.1:0") as server:
            report = cli.json("verify", "--against", server.bootstrap_servers, files, code=3)["cluster"]
            found = magicbyte.diff(
                [files, f"kafka://{server.bootstrap_servers}/orders"], isolation_level="read_committed"
            )
        assert [level["equal"] for level in report["levels"]] == [True, False]
        assert not report["equal"]
        for partition in (only(report["levels"][1]), only(found)):
            assert ranges(partition) == [(stable, 99, difference)]


def test_a_transaction_that_hangs_in_several_ranges(tmp_path: Path) -> None:
    """Ranges before the last stable offset are equal, and each one after it is named."""
    whole = batches(0, 20_000, step=100)
    other = [*whole[:100], transactional(10_000, 100), *whole[101:]]
    a, b = replica(tmp_path / "a", {0: whole}), replica(tmp_path / "b", {0: other})
    partition = only(magicbyte.diff([a, b], isolation_level="read_committed"))
    assert (partition["records_a"], partition["records_b"]) == (20_000, 10_000)
    assert ranges(partition) == [(10_000, 19_999, "only_in_a")]


class Fickle:
    """A side whose records are others when they are read again."""

    def __init__(self, records: dict[int, int | None]) -> None:
        self.unread: set[tuple[str, int]] = set()
        self._records = records

    def records(self, place: tuple[str, int], ranges: Sequence[tuple[int, int]]) -> dict[int, int | None]:
        return self._records


@pytest.mark.parametrize(
    ("again", "result"),
    [
        ({}, "unproven"),
        ({0: 7}, "unproven"),
        ({0: 7, 1: 9}, "unproven"),
        ({0: 7, 1: None}, "unproven"),
        ({0: 7, 1: 8}, "unproven"),
    ],
)
def test_digests_that_differ_and_records_that_do_not(again: dict[int, int | None], result: str) -> None:
    """Whatever the second reading finds on both sides: digests have differed."""
    a, b = Fickle(again), Fickle(again)
    report = compare_partition((a, PLACE, {0: (2, 15)}), (b, PLACE, {0: (2, 16)}))
    assert (report["result"], report["ranges"]) == (result, [])
    assert set(report["unproven"]) <= {"changed", "no_timestamps"}


def test_files_that_change_while_they_are_compared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cli: Cli
) -> None:
    """As when someone puts the right files in place after their digests were made."""
    a = replica(tmp_path / "a", {0: PLAIN})
    b = replica(tmp_path / "b", {0: [PLAIN[0], batch(50, 50, value="w")]})
    log = b / "orders-0" / f"{0:020}.log"
    wrong, right = log.read_bytes(), b"".join(PLAIN)
    assert len(wrong) == len(right)
    read = files_side.FilesSide.records

    def mended(*arguments: Any) -> Any:
        with log.open("r+b") as file:
            file.write(right)
        return read(*arguments)

    monkeypatch.setattr(files_side.FilesSide, "records", mended)
    report = magicbyte.diff([a, b])
    assert not report["equal"]
    assert (only(report)["result"], only(report)["unproven"]) == ("unproven", ["changed"])
    log.write_bytes(wrong)
    assert "orders-0: records changed while they were compared" in cli("diff", a, b, code=1)


def backup_of(
    tmp_path: Path, records: list[bytes], *, first_offset: int = 0, next_offset: int, name: str = "b"
) -> Path:
    """A directory that a manifest makes a backup, with the offsets that it tells."""
    root, out = tmp_path / "cluster", tmp_path / "out"
    if not out.exists():
        backups.write_log(root, backups.BATCHES)
        backups.backup(out, root)
    manifest = json.loads((out / "backup.json").read_text())
    manifest["partitions"][0] |= {"first_offset": first_offset, "next_offset": next_offset}
    directory = replica(tmp_path / name, {0: records})
    (directory / "backup.json").write_text(json.dumps(manifest))
    return directory


FORGED = batches(0, 50, value="FORGED")


def test_a_cut_before_everything(tmp_path: Path, cli: Cli) -> None:
    """A run that was killed early leaves a manifest that vouches for nothing."""
    a, b = replica(tmp_path / "a", {0: batches(0, 50)}), backup_of(tmp_path, FORGED, next_offset=0)
    for sides in ((a, b), (b, a)):
        report = magicbyte.diff(sides)
        assert not report["equal"]
        partition = only(report)
        assert (partition["result"], partition["unproven"]) == ("unproven", ["nothing_in_common"])
        assert (partition["end_offset"], partition["records_after_end"]) == (0, 50)
    text = cli("diff", a, b, code=1)
    assert "orders-0: nothing was compared: one side ends before the other begins" in text
    assert "compared up to offset 0, the cut of a backup or table: 50 more records after it" in text
    assert "0 of 1 partition equal, 1 compared up to the cut of a backup or table;" in text


@pytest.mark.parametrize(("cut", "after"), [(10, 40), (11, 39), (49, 1), (50, 0)])
def test_other_records_after_the_cut_are_counted(tmp_path: Path, cli: Cli, cut: int, after: int) -> None:
    """Also if both sides have the same number of them."""
    log = [record for first in range(50) for record in [batch(first, 1)]]
    other = [*log[:cut], *(batch(first, 1, value="w") for first in range(cut, 50))]
    a, b = replica(tmp_path / "a", {0: log}), backup_of(tmp_path, other, next_offset=cut)
    partition = only(magicbyte.diff([a, b]))
    assert (partition["result"], partition["end_offset"]) == ("equal", cut)
    assert partition["records_after_end"] == after
    text = cli("diff", a, b)
    assert ("after it" in text) == (after > 0)
    assert "1 of 1 partition equal, 1 compared up to the cut of a backup or table;" in text


def test_whole_ranges_after_the_cut(tmp_path: Path) -> None:
    """They are counted without reading them again."""
    log = batches(0, 10_000, step=100)
    other = [*log[:50], *batches(5000, 10_000, step=100, value="w")]
    a, b = replica(tmp_path / "a", {0: log}), backup_of(tmp_path, other, next_offset=5000)
    partition = only(magicbyte.diff([a, b]))
    assert (partition["result"], partition["records_after_end"]) == ("equal", 5000)


def test_the_same_records_on_both_sides_of_a_cut(tmp_path: Path) -> None:
    """Digests prove them equal, whatever the manifest says."""
    a, b = replica(tmp_path / "a", {0: batches(0, 50)}), backup_of(tmp_path, batches(0, 50), next_offset=0)
    assert magicbyte.diff([a, b])["equal"]


def test_an_empty_backup_of_a_log(tmp_path: Path) -> None:
    """It has no records that could differ; what is not in it yet is counted."""
    a, b = replica(tmp_path / "a", {0: batches(0, 50)}), backup_of(tmp_path, [], next_offset=0)
    partition = only(magicbyte.diff([a, b]))
    assert (partition["result"], partition["records_after_end"]) == ("equal", 50)


def test_a_backup_that_ends_before_the_log_begins(tmp_path: Path) -> None:
    """Retention was faster than the next run: the two have nothing in common."""
    a = replica(tmp_path / "a", {100: batches(100, 150)})
    (a / "log-start-offset-checkpoint").write_text("0\n1\norders 0 100\n")
    b = backup_of(tmp_path, batches(0, 50), next_offset=50)
    partition = only(magicbyte.diff([a, b]))
    assert (partition["result"], partition["unproven"]) == ("unproven", ["nothing_in_common"])


def test_what_a_backup_keeps_after_retention_is_compared(tmp_path: Path, cli: Cli) -> None:
    """Its checkpoint says where the cluster's log starts; the manifest says what the backup keeps."""
    root, out = tmp_path / "cluster", tmp_path / "out"
    log = [backups.batch(number, b"v%d" % number, epoch=0) for number in range(12)]
    backups.write_log(root, log)
    backups.backup(out, root, segment_bytes=150)
    backups.write_log(root, log[8:])
    backups.backup(out, root, segment_bytes=150)
    assert json.loads((out / "backup.json").read_text())["partitions"][0]["log_start_offset"] == 8
    copy = tmp_path / "copy"
    shutil.copytree(out, copy)
    assert magicbyte.diff([out, copy])["equal"]
    for number, path in enumerate(sorted((copy / "orders-0").glob("*.log"))[:3]):
        first = 2 * number
        path.write_bytes(b"".join(backups.batch(n, b"FORGED", epoch=0) for n in (first, first + 1)))
    for sides in ((out, copy), (copy, out)):
        partition = only(magicbyte.diff(sides))
        assert (partition["result"], partition["removed"]) == ("differs", None)
        assert ranges(partition) == [(0, 5, "differs")]
    assert "offsets 0 to 5: 6 records not the same" in cli("diff", out, copy, code=1)
    for path in sorted((copy / "orders-0").glob("*.log"))[:3]:
        path.unlink()
    partition = only(magicbyte.diff([out, copy]))
    assert ranges(partition) == [(0, 5, "only_in_a")]
    # The cluster does not have them any more, and says so.
    with magicbyte.serve(root, listen="127.0.0.1:0") as server:
        partition = only(magicbyte.diff([f"kafka://{server.bootstrap_servers}/orders", out]))
        judged = magicbyte.verify(out, against=server.bootstrap_servers)["cluster"]
    assert judged is not None
    assert judged["equal"]  # a restored cluster begins there, too
    assert partition["result"] == "equal"
    assert partition["removed"] == {"side": "a", "last_offset": 7, "records": 8, "stated": True}


def test_deleted_records_in_both_logs(tmp_path: Path) -> None:
    """A segment stays until all of it is deleted, but what is before the start is no part of the log."""
    sides = [replica(tmp_path / "a", {0: batches(0, 50)}), replica(tmp_path / "b", {0: FORGED[:3]})]
    with (sides[1] / "orders-0" / f"{0:020}.log").open("ab") as file:
        file.write(b"".join(batches(30, 50)))
    for side in sides:
        (side / "log-start-offset-checkpoint").write_text("0\n1\norders 0 30\n")
    partition = only(magicbyte.diff(sides))
    assert (partition["result"], partition["removed"]) == ("equal", None)
    assert partition["records_a"] == partition["records_b"] == 20


def damaged(log: Path, how: str) -> None:
    data = log.read_bytes()
    log.write_bytes(
        {
            "crc": data[:100] + bytes([data[100] ^ 1]) + data[101:],
            "garbage": data + b"\x07" * 100,
            "last batch": data[:-5] + bytes([data[-5] ^ 1]) + data[-4:],
        }[how]
    )


@pytest.mark.parametrize("how", ["crc", "garbage", "last batch"])
@pytest.mark.parametrize("sides", ["a", "b", "ab"])
def test_damage_is_never_equal(tmp_path: Path, cli: Cli, how: str, sides: str) -> None:
    """Nobody knows what was there: also if both sides have the same damage."""
    roots = {side: replica(tmp_path / side, {0: batches(0, 50)}) for side in "ab"}
    for side in sides:
        damaged(roots[side] / "orders-0" / f"{0:020}.log", how)
    report = magicbyte.diff([*roots.values()])
    assert not report["equal"]
    partition = only(report)
    assert partition["unproven"] == ["unread"]
    is_equal = sides == "ab" or how == "garbage"
    assert partition["result"] == ("unproven" if is_equal else "differs")
    text = cli("diff", *roots.values(), code=1)
    assert "orders-0: nobody knows which records damaged bytes had" in text
    assert text.splitlines()[-1].startswith("0 of 1 partition equal;")


@pytest.mark.parametrize("level", ["read_uncommitted", "read_committed"])
def test_damage_on_a_cluster(tmp_path: Path, level: IsolationLevel) -> None:
    a = replica(tmp_path / "a", {0: batches(0, 50)})
    damaged(a / "orders-0" / f"{0:020}.log", "last batch")
    with magicbyte.serve(a, listen="127.0.0.1:0") as server:
        url = f"kafka://{server.bootstrap_servers}/orders"
        report = magicbyte.diff([url, url], isolation_level=level)
    assert report["equal"] == (not report["damaged"])
    assert only(report)["unproven"] == (["unread"] if report["damaged"] else [])


@pytest.mark.parametrize(("how", "differs"), [("garbage", False), ("crc", True)])
def test_damaged_files_and_a_cluster(tmp_path: Path, cli: Cli, how: str, differs: bool) -> None:
    """The cluster has the records that are damaged in the files, or nobody knows whether there were some."""
    a, b = replica(tmp_path / "a", {0: PLAIN}), replica(tmp_path / "b", {0: PLAIN})
    damaged(b / "orders-0" / f"{0:020}.log", how)
    with magicbyte.serve(a, listen="127.0.0.1:0") as server:
        command = ("verify", "--against", server.bootstrap_servers, b)
        cluster = cli.json(*command, code=3 if differs else 1)["cluster"]
        text = cli(*command, code=3 if differs else 1)
    assert (cluster["equal"], cluster["differs"]) == (False, differs)
    assert only(cluster["levels"][1])["unproven"] == ["unread"]
    assert "read_committed: 0 of 1 partition equal" in text
    assert "orders-0: nobody knows which records damaged bytes had" in text


def test_the_other_partitions_are_equal(tmp_path: Path, cli: Cli) -> None:
    for side in "ab":
        replica(tmp_path / side, {0: batches(0, 50)}, name="orders-1")
        replica(tmp_path / side, {0: batches(0, 50)})
        damaged(tmp_path / side / "orders-0" / f"{0:020}.log", "garbage")
    report = magicbyte.diff([tmp_path / "a", tmp_path / "b"])
    assert [one["result"] for one in report["partitions"]] == ["unproven", "equal"]
    assert "1 of 2 partitions equal;" in cli("diff", tmp_path / "a", tmp_path / "b", code=1)


@pytest.mark.parametrize("how", ["missing", "link"])
def test_what_cannot_be_read_is_never_equal(tmp_path: Path, cli: Cli, how: str) -> None:
    for side in "ab":
        replica(tmp_path / side, {0: batches(0, 50), 50: batches(50, 80), 80: batches(80, 90)})
        segment = tmp_path / side / "orders-0" / f"{50:020}.log"
        segment.unlink()
        if how == "link":
            segment.symlink_to("/nowhere")
    report = magicbyte.diff([tmp_path / "a", tmp_path / "b"])
    assert not report["equal"]
    assert [one["unproven"] for one in report["partitions"]][-1] == ["unread"]
    cli("diff", tmp_path / "a", tmp_path / "b", code=1)


@pytest.mark.parametrize("name", [f"{0:020}.index", "leader-epoch-checkpoint"])
def test_files_beside_segments_that_cannot_be_read(tmp_path: Path, name: str) -> None:
    """They have no records."""
    for side in "ab":
        replica(tmp_path / side, {0: batches(0, 50)})
        (tmp_path / side / "orders-0" / name).symlink_to("/nowhere")
    assert magicbyte.diff([tmp_path / "a", tmp_path / "b"])["equal"]


def test_problems_that_leave_nothing_unread(tmp_path: Path, cli: Cli) -> None:
    """They make the exit code 1, and all records were compared."""
    for side in "ab":
        replica(tmp_path / side, {0: batches(0, 50)})
        (tmp_path / side / "orders-0" / f"{0:020}.log.bak.log").write_bytes(b"x")
    report = magicbyte.diff([tmp_path / "a", tmp_path / "b"])
    assert report["problems"]
    assert report["equal"]
    cli("diff", tmp_path / "a", tmp_path / "b", code=1)
