"""`backup` into one that is not as it was left: no run removes the only copy, or certifies what is none."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import combinations
from pathlib import Path
from typing import Any

import magicbyte
import pytest
from conftest import Cli
from magicbyte.errors import RefusedError
from magicbyte.jobs.backing_up.kept_log import deleted_name, future_name
from magicbyte.jobs.find.choice import PartitionChoice
from magicbyte.jobs.publish import heartbeat
from magicbyte.storage.stored_directory import StoredDirectory
from test_backup import (
    BATCHES,
    ID,
    NO_PROBLEMS,
    OTHER_ID,
    Transactions,
    backup,
    batch,
    cluster,
    content,
    findings,
    is_proved,
    write_log,
)

MORE = [*BATCHES, batch(6, b"seventh", epoch=3), batch(7, b"eighth", epoch=3)]
HELD = range(len(BATCHES))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "cluster"


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "backup"


@pytest.fixture(params=["local", "store"])
def target(request: pytest.FixtureRequest, out: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The backup as a directory and as a store."""
    if request.param == "local":
        return str(out)
    pytest.importorskip("fsspec")
    monkeypatch.setattr(heartbeat, "SILENCE_SECONDS", 0.2)
    return f"local://{out}"


def segments(out: Path) -> list[Path]:
    return sorted((out / "orders-0").glob("*.log"))


def offsets(directory: Path) -> list[int]:
    """The offsets of all batches, whether their CRCs hold or not."""
    return [one.base_offset for one in magicbyte.read_batches(content(directory))]


def flip(log: Path) -> None:
    data = bytearray(log.read_bytes())
    data[-1] ^= 1
    log.write_bytes(data)


def cut(log: Path) -> None:
    os.truncate(log, log.stat().st_size - 7)


def everywhere(out: Path) -> bytes:
    """All bytes of the backup, in their place or aside."""
    return b"".join(content(one) for one in sorted(out.iterdir()) if one.is_dir())


def check_after_loss(report: Any, out: Path, missing: set[int], start: int) -> None:
    """One of six segments with a batch each is missing per offset; the cluster has `start` to 7."""
    lost = {one for one in missing if one < start} | set(range(len(HELD), start))
    kept = set(range(len(MORE))) - lost
    assert offsets(out / "orders-0") == sorted(kept)
    (partition,) = report["partitions"]
    named = {one for first, last in partition["lost"] for one in range(first, last + 1)}
    assert named == lost
    found = {
        one for what, first, last in findings(report) if what == "lost" for one in range(first, last + 1)
    }
    assert found == lost
    assert ("incomplete" in {what for what, *_ in findings(report)}) == bool(missing)
    sums = partition["batches"], partition["records"], partition["first_offset"], partition["next_offset"]
    assert sums == (len(kept), len(kept), min(kept), len(MORE))
    epochs = {epoch for epoch, _ in partition["leader_epochs"]}
    assert epochs >= {number // 2 for number in kept}
    assert all(BATCHES[one] in everywhere(out) for one in HELD if one not in missing)
    assert is_proved(out)


@pytest.mark.parametrize("start", [0, 1, 3, 5, 6, 7])
@pytest.mark.parametrize("is_stored", [False, True], ids=["local", "store"])
def test_missing_segments(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, start: int, is_stored: bool
) -> None:
    """At the start, in the middle, at the end, several, all: the cluster has all, some or none of them."""
    if is_stored:
        pytest.importorskip("fsspec")
        monkeypatch.setattr(heartbeat, "SILENCE_SECONDS", 0.2)
    saved, out = tmp_path / "saved", tmp_path / "backup"
    scheme = "local://" if is_stored else ""
    write_log(root, BATCHES)
    with cluster(root) as url:
        magicbyte.backup(url, f"{scheme}{saved}", choice=NO_PROBLEMS, segment_bytes=1)
    write_log(root, MORE[start:])
    with cluster(root) as url:
        for missing in (*combinations(HELD, 1), (0, 1), (1, 4), (2, 3), (0, 5), (1, 2, 4), tuple(HELD)):
            shutil.rmtree(out, ignore_errors=True)
            shutil.copytree(saved, out)
            for one in missing:
                segments(out)[0].with_name(f"{one:020}.log").unlink()
            report = magicbyte.backup(url, f"{scheme}{out}", choice=NO_PROBLEMS, segment_bytes=1)
            check_after_loss(report, out, set(missing), start)
        again = magicbyte.backup(url, f"{scheme}{out}", choice=NO_PROBLEMS)
        assert again["findings"] == []
        assert again["partitions"][0]["lost"] == report["partitions"][0]["lost"]


@pytest.mark.parametrize("start", [0, 3, 6])
def test_short_segments(root: Path, out: Path, start: int) -> None:
    """Their whole batches stay, and so do the batches after the cut."""
    write_log(root, BATCHES)
    backup(out, root, segment_bytes=160)
    assert [int(one.stem) for one in segments(out)] == [0, 2, 4]
    write_log(root, MORE[start:])
    cut(segments(out)[1])
    report = backup(out, root, segment_bytes=160)
    check_after_loss(report, out, {3}, start)
    assert backup(out, root)["findings"] == []


def test_rot_beside_a_missing_segment_is_not_certified(root: Path, out: Path, target: str) -> None:
    """The log is read for its sums; a batch that has rotted is no reason to cut off what follows."""
    write_log(root, BATCHES)
    with cluster(root) as url:
        magicbyte.backup(url, target, choice=NO_PROBLEMS, segment_bytes=1)
    write_log(root, MORE[5:])
    flip(segments(out)[0])
    segments(out)[2].unlink()
    with cluster(root) as url:
        for expected in ([("incomplete", None, None), ("lost", 2, 2)], []):
            report = magicbyte.backup(url, target, choice=NO_PROBLEMS)
            assert findings(report) == expected
            assert offsets(out / "orders-0") == [0, 1, 3, 4, 5, 6, 7]
            assert report["partitions"][0]["records"] == 7
            assert not is_proved(out)


def test_what_follows_is_kept_aside_when_it_is_copied_again(root: Path, out: Path) -> None:
    """The cluster may have compacted it since."""
    write_log(root, BATCHES)
    backup(out, root, segment_bytes=1)
    write_log(root, [BATCHES[0], BATCHES[5]])
    segments(out)[1].unlink()
    report = backup(out, root, segment_bytes=1)
    assert findings(report) == [("incomplete", None, None)]
    assert offsets(out / "orders-0") == [0, 5]
    (aside,) = out.glob("*-stray")
    assert (offsets(aside), report["findings"][0]["aside"]) == ([2, 3, 4, 5], aside.name)
    assert "from offset 1 on; what was there is kept in" in report["findings"][0]["message"]
    assert is_proved(out)


def test_a_missing_directory_whose_offsets_are_gone(root: Path, out: Path) -> None:
    """They are lost in the backup, too."""
    write_log(root, BATCHES)
    backup(out, root)
    write_log(root, MORE[7:])
    shutil.rmtree(out / "orders-0")
    report = backup(out, root)
    assert findings(report) == [("incomplete", None, None), ("lost", 0, 6)]
    assert backup(out, root)["partitions"][0]["lost"] == [(0, 6)]


def test_offsets_that_an_empty_partition_has_lost(root: Path, out: Path) -> None:
    """An earlier run has seen where it ends."""
    write_log(root, [])
    backup(out, root)
    write_log(root, MORE[5:])
    report = backup(out, root)
    assert findings(report) == [("lost", 0, 4)]
    assert offsets(out / "orders-0") == [5, 6, 7]
    assert backup(out, root)["findings"] == []


@pytest.mark.parametrize("start", [0, 3, 5])
def test_rot_in_what_a_killed_run_has_written(root: Path, out: Path, start: int) -> None:
    """Nothing counts it yet; what can be read of the rest is kept, even if the cluster still has it."""
    write_log(root, [])
    backup(out, root)
    manifest = (out / "backup.json").read_bytes()
    write_log(root, BATCHES)
    backup(out, root, segment_bytes=1)
    (out / "backup.json").write_bytes(manifest)
    flip(segments(out)[2])
    write_log(root, MORE[start:])
    report = backup(out, root, segment_bytes=1)
    lost = {2} if start == 3 else {2} if start == 5 else set()
    assert offsets(out / "orders-0") == sorted(set(range(8)) - lost)
    assert [found for found in findings(report) if found[0] == "lost"] == [("lost", 2, 2)] * bool(lost)
    assert len(list(out.glob("*-stray"))) == 1
    assert all(one in everywhere(out) for number, one in enumerate(BATCHES) if number != 2)
    assert is_proved(out)
    assert backup(out, root)["findings"] == []


def append_garbage(log: Path) -> None:
    with log.open("ab") as file:
        file.write(b"\7" * 100)


def append_batch(log: Path) -> None:
    with log.open("ab") as file:
        file.write(BATCHES[0])


@pytest.mark.parametrize("damage", [append_garbage, append_batch])
@pytest.mark.parametrize("number", [0, 3])
@pytest.mark.parametrize("is_more", [False, True], ids=["nothing new", "more"])
def test_a_closed_segment_that_grows(
    cli: Cli, root: Path, out: Path, damage: Callable[[Path], None], number: int, is_more: bool
) -> None:
    """It is named by every run, and no certificate has it, until it is as it was."""
    write_log(root, BATCHES)
    backup(out, root, segment_bytes=1)
    segment = segments(out)[number]
    former = segment.read_bytes()
    damage(segment)
    for count in (7, 8):
        write_log(root, MORE[:count] if is_more else BATCHES)
        with cluster(root) as url:
            report = cli.json("backup", url, out, "--exclude", "__magicbyte_problems", code=1)
        assert findings(report) == [("changed", None, None)]
        assert segment.name in report["findings"][0]["message"]
        assert not is_proved(out)
    segment.write_bytes(former)
    assert backup(out, root)["findings"] == []
    assert is_proved(out)


def test_an_object_that_grows(root: Path, out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a closed segment: also while other segments are uploaded."""
    pytest.importorskip("fsspec")
    monkeypatch.setattr(heartbeat, "SILENCE_SECONDS", 0.2)
    write_log(root, BATCHES)
    with cluster(root) as url:
        magicbyte.backup(url, f"local://{out}", choice=NO_PROBLEMS, segment_bytes=1)
    append_garbage(segments(out)[2])
    for count in (6, 7, 8):
        write_log(root, MORE[:count])
        with cluster(root) as url:
            report = magicbyte.backup(url, f"local://{out}", choice=NO_PROBLEMS, segment_bytes=1)
        assert findings(report) == [("changed", None, None)]
        assert not is_proved(out)


@pytest.mark.parametrize("start", [0, 2, 4])
def test_a_gap_behind_what_is_no_batch(root: Path, out: Path, start: int) -> None:
    """The log ends there; what follows is kept aside, and offsets that the cluster has not are lost."""
    write_log(root, BATCHES)
    backup(out, root, segment_bytes=160)
    segments(out)[0].write_bytes(BATCHES[0] + bytes(len(BATCHES[1])))
    segments(out)[2].unlink()
    write_log(root, MORE[start:])
    report = backup(out, root)
    lost = [("lost", 1, start - 1)] if start else []
    assert findings(report) == [("incomplete", None, None), *lost, ("changed", None, None)]
    assert offsets(out / "orders-0") == [0, *range(max(start, 1), 8)]
    assert all(one in everywhere(out) for one in (BATCHES[0], *BATCHES[2:4]))
    assert not is_proved(out)


def test_a_changed_segment_that_is_put_right(root: Path, out: Path) -> None:
    """It is no finding any more when the bytes are again those that were copied."""
    write_log(root, BATCHES[:2])
    backup(out, root)
    flip(segments(out)[0])
    for number in (3, 4):
        write_log(root, BATCHES[:number])
        assert findings(backup(out, root)) == [("changed", None, None)]
    data = bytearray(segments(out)[0].read_bytes())
    data[len(BATCHES[0]) + len(BATCHES[1]) - 1] ^= 1
    segments(out)[0].write_bytes(data)
    assert backup(out, root)["findings"] == []
    assert is_proved(out)
    assert content(out / "orders-0") == b"".join(BATCHES[:4])


def test_a_segment_that_no_run_has_written(root: Path, out: Path) -> None:
    """It lies among those of the log: it is moved aside, not certified."""
    write_log(root, BATCHES)
    backup(out, root, segment_bytes=160)
    (out / "orders-0" / f"{1:020}.log").write_bytes(BATCHES[1])
    report = backup(out, root)
    assert findings(report) == [("changed", None, None)]
    assert offsets(out / str(report["findings"][0]["aside"])) == [1]
    assert content(out / "orders-0") == b"".join(BATCHES)
    assert is_proved(out)


def test_partitions_that_are_not_chosen_stay_as_the_manifest_has_them(root: Path, out: Path) -> None:
    """What is missing there is still known to the next run that looks, and so is what no run has counted."""
    write_log(root, BATCHES[:4])
    write_log(root, BATCHES[:1], OTHER_ID, "payments-0")
    backup(out, root, segment_bytes=1)
    manifest = (out / "backup.json").read_bytes()
    write_log(root, BATCHES)
    backup(out, root, segment_bytes=1 << 20)
    (out / "backup.json").write_bytes(manifest)
    segments(out)[1].unlink()
    payments = PartitionChoice(topics=("payments",))
    assert backup(out, root, choice=payments)["findings"] == []
    assert not is_proved(out)
    write_log(root, MORE[3:])
    report = backup(out, root)
    assert findings(report) == [("incomplete", None, None), ("lost", 1, 1)]
    assert offsets(out / "orders-0") == [0, 2, 3, 4, 5, 6, 7]
    assert (report["partitions"][0]["batches"], report["partitions"][0]["records"]) == (7, 7)
    assert is_proved(out)


@pytest.mark.parametrize("cleaned", [BATCHES[4:], MORE[5:], MORE[6:]])
def test_a_full_copy_keeps_what_the_cluster_has_deleted(root: Path, out: Path, cleaned: list[bytes]) -> None:
    """It begins where the log of the cluster starts: what was before is named, and moved aside."""
    write_log(root, BATCHES)
    backup(out, root, segment_bytes=160)
    write_log(root, cleaned)
    report = backup(out, root, full=True)
    start = len(MORE) - len(cleaned) if cleaned[-1] is MORE[-1] else 4
    assert findings(report) == [("replaced", 0, start - 1)]
    aside = out / str(report["findings"][0]["aside"])
    assert set(offsets(aside)) >= set(range(min(start, 6)))
    assert content(out / "orders-0") == b"".join(cleaned)
    assert sorted(one.name for one in out.iterdir() if one.is_dir()) == sorted(["orders-0", aside.name])
    assert is_proved(out)
    assert backup(out, root, full=True)["findings"] == []


@pytest.mark.parametrize("full", [False, True])
def test_only_the_log_that_was_to_be_removed_is_there(root: Path, out: Path, full: bool) -> None:
    """It goes back to its place."""
    write_log(root, BATCHES)
    backup(out, root)
    (out / "orders-0").rename(out / deleted_name("orders-0", ID))
    write_log(root, BATCHES[3:])
    report = backup(out, root, full=full)
    assert findings(report) == [("replaced", 0, 2)] * full
    assert all(one in everywhere(out) for one in BATCHES)
    assert not list(out.glob("*-delete"))
    assert is_proved(out)


@pytest.mark.parametrize("full", [False, True])
def test_only_a_full_copy_that_is_not_whole_is_there(root: Path, out: Path, full: bool) -> None:
    write_log(root, BATCHES)
    backup(out, root)
    (out / "orders-0").rename(out / future_name("orders-0", ID))
    write_log(root, BATCHES[3:])
    report = backup(out, root, full=full)
    assert findings(report) == [("incomplete", None, None), ("lost", 0, 2)]
    assert all(one in everywhere(out) for one in BATCHES)
    assert not list(out.glob("*-future"))
    assert is_proved(out)


def _link_segment(out: Path, elsewhere: Path) -> Path:
    segment = segments(out)[0]
    segment.rename(elsewhere)
    segment.symlink_to(elsewhere)
    return segment


def _link_metadata(out: Path, elsewhere: Path) -> Path:
    path = out / "orders-0" / "partition.metadata"
    path.rename(elsewhere)
    path.symlink_to(elsewhere)
    return path


def _file_as_directory(out: Path, _elsewhere: Path) -> Path:
    shutil.rmtree(out / "orders-0")
    (out / "orders-0").write_text("mine")
    return out / "orders-0"


def _directory_as_segment(out: Path, _elsewhere: Path) -> Path:
    segment = segments(out)[0]
    segment.unlink()
    segment.mkdir()
    return segment


def _fifo_as_segment(out: Path, _elsewhere: Path) -> Path:
    segment = segments(out)[0]
    segment.unlink()
    os.mkfifo(segment)
    return segment


def _file_as_full_copy(out: Path, _elsewhere: Path) -> Path:
    path = out / future_name("orders-0", ID)
    path.write_text("mine")
    return path


def _link_full_copy(out: Path, elsewhere: Path) -> Path:
    path = out / future_name("orders-0", ID)
    elsewhere.mkdir()
    path.symlink_to(elsewhere)
    return path


def _directory_as_lock(out: Path, _elsewhere: Path) -> Path:
    (out / ".lock").unlink()
    (out / ".lock").mkdir()
    return out / ".lock"


def _link_manifest(out: Path, elsewhere: Path) -> Path:
    path = (out / "backup.json").rename(elsewhere)
    (out / "backup.json").symlink_to(path)
    return out / "backup.json"


OBSTACLES = [
    (_directory_as_lock, "a directory"),
    (_link_manifest, "a symbolic link"),
    (_link_segment, "a symbolic link"),
    (_link_metadata, "a symbolic link"),
    (_file_as_directory, "a file"),
    (_directory_as_segment, "a directory"),
    (_fifo_as_segment, "a special file"),
    (_file_as_full_copy, "a file"),
    (_link_full_copy, "a symbolic link"),
]


@pytest.mark.parametrize(("obstacle", "what"), OBSTACLES)
def test_what_is_no_file_of_the_backup(
    cli: Cli, root: Path, out: Path, tmp_path: Path, obstacle: Callable[[Path, Path], Path], what: str
) -> None:
    """Links are not followed out of the backup; the message names the path."""
    write_log(root, BATCHES)
    backup(out, root)
    elsewhere = tmp_path / "elsewhere"
    path = obstacle(out, elsewhere)
    before = elsewhere.read_bytes() if elsewhere.is_file() else b""
    write_log(root, MORE)
    with cluster(root) as url:
        cli("backup", url, out, code=2)
        assert f"{path} is {what}" in cli.error
        if path.parent == out:
            cli("backup", url, out, "--full", code=2)
            assert f"{path} is {what}" in cli.error
    assert (elsewhere.read_bytes() if elsewhere.is_file() else b"") == before


def test_an_empty_volume(cli: Cli, root: Path, tmp_path: Path) -> None:
    """Each has a directory for what a check of the file system finds."""
    out = tmp_path / "volume"
    (out / "lost+found").mkdir(parents=True)
    (out / "lost+found" / "#12").write_text("found")
    write_log(root, BATCHES)
    for number in (3, 6):
        write_log(root, BATCHES[:number])
        report = backup(out, root)
        assert (report["findings"], report["partitions"][0]["records"]) == ([], number)
        assert is_proved(out)
    assert magicbyte.verify(out)["problems"] == []
    assert cli.json("verify", out)["total"]["rows"] == 6
    assert (out / "lost+found" / "#12").read_text() == "found"
    (tmp_path / "other" / "lost+found").mkdir(parents=True)
    (tmp_path / "other" / "notes").write_text("mine")
    with pytest.raises(RefusedError, match="not empty, and not a backup"):
        backup(tmp_path / "other", root)


class Killed(BaseException):
    """A process that is killed does nothing any more."""


@contextmanager
def killed_at(monkeypatch: pytest.MonkeyPatch, place: Any, names: Sequence[str], call: int) -> Iterator[None]:
    """Kills a run at its nth call of one of these functions, and at all later ones."""
    count = [0]

    def counted(name: str) -> Callable[..., Any]:
        original = getattr(place, name)

        def function(*arguments: Any, **options: Any) -> Any:
            count[0] += 1
            if count[0] >= call:
                raise Killed
            return original(*arguments, **options)

        return function

    with monkeypatch.context() as patched:
        for name in names:
            patched.setattr(place, name, counted(name))
        yield


TREES: dict[str, tuple[str, Any, Sequence[str]]] = {
    "local": ("", os, ("rename", "replace", "unlink", "makedirs")),
    "store": ("local://", StoredDirectory, ("put", "put_file", "copy", "delete", "create", "update")),
}


@pytest.mark.parametrize("full", [False, True], ids=["missing", "full"])
@pytest.mark.parametrize("tree", TREES)
def test_a_run_that_is_killed_removes_no_only_copy(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tree: str, full: bool
) -> None:
    """While it moves aside what follows a gap, or what the cluster has deleted: at each call that writes."""
    scheme, place, names = TREES[tree]
    if scheme:
        pytest.importorskip("fsspec")
        monkeypatch.setattr(heartbeat, "SILENCE_SECONDS", 0.01)
    saved, out = tmp_path / "saved", tmp_path / "backup"
    write_log(root, BATCHES)
    with cluster(root) as url:
        magicbyte.backup(url, f"{scheme}{saved}", choice=NO_PROBLEMS, segment_bytes=1)
    if not full:
        for gap in (1, 4):
            segments(saved)[0].with_name(f"{gap:020}.log").unlink()
    cleaned = [MORE[3], *MORE[6:]]
    write_log(root, cleaned)
    older = BATCHES[:3] if full else [one for number, one in enumerate(BATCHES) if number not in (1, 4)]
    call, is_whole = 0, False
    with cluster(root) as url:
        while not is_whole:
            call += 1
            shutil.rmtree(out, ignore_errors=True)
            shutil.copytree(saved, out)
            with killed_at(monkeypatch, place, names, call), suppress(Killed):
                magicbyte.backup(url, f"{scheme}{out}", choice=NO_PROBLEMS, full=full)
                is_whole = True
            assert all(one in everywhere(out) for one in older), call
            magicbyte.backup(url, f"{scheme}{out}", choice=NO_PROBLEMS, full=full)
            assert all(one in everywhere(out) for one in older), call
            assert content(out / "orders-0").endswith(b"".join(cleaned[1:])), call
            assert is_proved(out), call
            assert not [*out.glob("*-future"), *out.glob("*-delete")]
            assert magicbyte.backup(url, f"{scheme}{out}", choice=NO_PROBLEMS)["findings"] == []
    assert call > 5


@pytest.mark.parametrize("segment_bytes", [1, 1 << 20])
def test_a_damaged_batch_before_one_that_is_cut_off(root: Path, out: Path, segment_bytes: int) -> None:
    """It stays, and what follows it, too: after the cut of a time, and after a divergence."""
    transactions = Transactions()
    for producer_id in (-1, -1, 7):
        transactions.append(producer_id)
    records = transactions.partition.fetch(0, max_bytes=1 << 20).records
    batches = [
        records[one.position : one.position + one.size_in_bytes] for one in magicbyte.read_batches(records)
    ]
    write_log(root, batches)
    backup(out, root, as_of=1000, segment_bytes=segment_bytes)
    flip(segments(out)[0])
    # The digest of a segment that does not grow is compared by verify alone.
    changed = [("changed", None, None)] if segment_bytes > 1 else []
    report = backup(out, root, as_of=3000, segment_bytes=segment_bytes)
    assert (report["partitions"][0]["records"], findings(report)) == (2, changed)
    assert offsets(out / "orders-0") == [0, 1]
    assert not list(out.glob("*-stray"))
    backup(out, root, segment_bytes=segment_bytes)
    write_log(root, [*batches[:2], batch(2, b"another", epoch=7)])
    report = backup(out, root, segment_bytes=segment_bytes)
    assert findings(report) == [("diverged", 2, 2), *changed]
    assert offsets(out / "orders-0") == [0, 1, 2]
    assert content(out / "orders-0").endswith(batch(2, b"another", epoch=7))
    assert (report["partitions"][0]["batches"], report["partitions"][0]["records"]) == (3, 3)
    assert not is_proved(out)


def test_a_segment_that_is_cut_twice(root: Path, out: Path) -> None:
    """What is left of it has not changed."""
    write_log(root, BATCHES)
    backup(out, root)
    write_log(root, [batch(0, b"first", epoch=0), batch(1, b"other", epoch=5), batch(2, b"other", epoch=6)])
    report = backup(out, root)
    assert [found for found, *_ in findings(report)] == ["diverged", "diverged"][: len(report["findings"])]
    assert is_proved(out)
    assert backup(out, root)["findings"] == []


def test_rot_in_a_segment_that_is_cut(root: Path, out: Path, target: str) -> None:
    """With what was cut off it, it is not what was copied: no run certifies the rest."""
    write_log(root, BATCHES)
    with cluster(root) as url:
        magicbyte.backup(url, target, choice=NO_PROBLEMS)
    data = bytearray(segments(out)[0].read_bytes())
    data[len(BATCHES[0]) - 1] ^= 1
    segments(out)[0].write_bytes(data)
    other = [*BATCHES[:3], batch(3, b"another", epoch=7)]
    for number, expected in ((4, ["diverged", "changed"]), (4, ["changed"]), (5, ["changed"])):
        write_log(root, [*other, batch(4, b"more", epoch=7)][:number])
        with cluster(root) as url:
            report = magicbyte.backup(url, target, choice=NO_PROBLEMS)
        assert [found for found, *_ in findings(report)] == expected
        assert offsets(out / "orders-0") == list(range(number))
        assert not is_proved(out)
    with cluster(root) as url:
        assert magicbyte.backup(url, target, choice=NO_PROBLEMS, full=True)["findings"] == []
    assert is_proved(out)
