"""`restore --in-place`: the disks of a dead cluster become those on which it starts, or are as they were."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import Any

import magicbyte
import pytest
from conftest import Cli
from dead_clusters import LOG, SETTINGS, TOPIC_CONFIG, World, commit, directory_id, only
from magicbyte import RefusedError
from magicbyte.jobs.find.metadata_log import fold_metadata
from magicbyte.jobs.find.partitions import list_directory
from metadata_records import batches as metadata_batches
from metadata_records import config, frame, partition, topic, write_log, write_meta
from replicas import batches, copy, flip, replica

METADATA = "__cluster_metadata-0"
ASIDE = ".{}.magicbyte-restore"
FUTURE = f"orders-0.{'0' * 32}-future"


def tree(root: Path) -> dict[str, bytes]:
    """All files, by relative path, and the empty directories."""
    return {
        str(path.relative_to(root)): path.read_bytes() if path.is_file() else b""
        for path in root.rglob("*")
        if path.is_file() or not any(path.iterdir())
    }


def disks(root: Path) -> dict[str, bytes]:
    """The files of log directories, without those beside them."""
    return {name: data for name, data in tree(root).items() if not name.startswith(".")}


@pytest.fixture
def world(tmp_path: Path) -> World:
    """One whole copy, one that lags behind, one with damage, a move between disks, and files that go."""
    made = World(tmp_path / "w", [topic("orders", 1), partition(1, 0, [1, 2, 3]), *SETTINGS])
    made.put(1, LOG)
    made.put(2, LOG[:15])
    made.put(3, LOG)
    flip(made.log_dirs[3], [4])
    made.put(3, LOG[:5], name=FUTURE)
    (made.log_dirs[1] / ".kafka_cleanshutdown").write_text('{"version":0,"brokerEpoch":5}')
    (made.log_dirs[2] / "bootstrap.checkpoint").write_bytes(b"old")
    (made.log_dirs[2] / "recovery-point-offset-checkpoint").write_text("0\n1\norders 0 150\n")
    (made.log_dirs[3] / "cleaner-offset-checkpoint").write_text("0\n7\n")
    return made


def restore(world: World, *nodes: int, **options: Any) -> Any:
    sources = [world.log_dirs[node] for node in nodes or world.log_dirs]
    return magicbyte.restore(sources, **{"in_place": True, **options})


def test_whole_copies_stay_and_others_are_moved_aside(world: World) -> None:
    before = tree(world.root)
    report = restore(world)
    assert report["balanced"]
    assert (only(report)["status"], only(report)["replicas"], only(report)["isr"]) == (
        "online",
        [1, 2, 3],
        [1],
    )
    assert only(report)["places"] == [str(world.log_dirs[1]), str(world.log_dirs[2])]
    after = disks(world.root)
    kept = {f"b{node}/{name}" for node in (1, 2) for name in (f"orders-0/{0:020}.log", "meta.properties")}
    kept |= {"b1/orders-0/partition.metadata", "b2/orders-0/partition.metadata"}
    kept |= {"b2/recovery-point-offset-checkpoint", "b3/meta.properties"}
    written = {f"b{node}/{METADATA}/{report['snapshot']}" for node in (1, 2, 3)}
    written |= {f"b{node}/orders-0/leader-epoch-checkpoint" for node in (1, 2)}
    assert after.keys() == kept | written
    assert {name: after[name] for name in kept} == {name: before[name] for name in kept}
    aside = {
        name.replace("/", "/old/", 1).replace("b", ".b", 1).replace("/old", ".magicbyte-restore/old", 1): data
        for name, data in before.items()
        if name not in kept
    }
    found = {name: data for name, data in tree(world.root).items() if "/old/" in name}
    assert found == aside


def test_the_report_has_every_file_that_is_not_as_it_was(world: World) -> None:
    before = disks(world.root)
    report = restore(world)
    after = disks(world.root)
    changed = {os.path.relpath(one["path"], world.root): one for one in report["changed"]}
    differing = {name for name in before.keys() | after.keys() if before.get(name) != after.get(name)}
    assert changed.keys() == differing
    for name, one in changed.items():
        assert (one["aside"] is None) == (name not in before)
        assert one["size_before"] == (len(before[name]) if name in before else None)
        assert one["size"] == (len(after[name]) if name in after else None)
        assert (one["sha256"] is None) == (name not in after)
        if one["aside"] is not None:
            assert Path(one["aside"]).read_bytes() == before[name]
    reasons = {name: one["reason"] for name, one in changed.items()}
    assert reasons[f"b3/orders-0/{0:020}.log"].startswith("it is damaged or has gaps")
    assert reasons[f"b3/{FUTURE}/{0:020}.log"] == "the restored node has no such log"
    assert reasons["b3/cleaner-offset-checkpoint"].startswith("a broker does not start with it")
    assert json.loads((world.root / ".b1.magicbyte-restore/reconciliation.json").read_text()) == json.loads(
        json.dumps(report)
    )


def test_the_metadata_is_that_of_a_restore_into_a_directory(world: World) -> None:
    out = world.restore()
    report = restore(world)
    assert report["snapshot"] == out["snapshot"]
    folded = fold_metadata([list_directory(str(world.log_dirs[1] / METADATA))])
    assert (folded.problems, folded.is_whole) == ([], True)
    (orders,) = folded.state.topics.values()
    found = orders.partitions[0]
    assert (found.leader, found.isr, found.directories) == (-1, [1], ["A" * 22] * 3)
    assert found.leader_epoch == 4
    assert [one.directory_id for one in folded.state.quorum.voters] == [
        directory_id(node) for node in (1, 2, 3)
    ]


def test_again_changes_nothing(world: World) -> None:
    report = restore(world)
    after = tree(world.root)
    assert restore(world) == json.loads(json.dumps(report))
    assert tree(world.root) == after


def test_a_dry_run_changes_nothing(world: World, cli: Cli) -> None:
    before = tree(world.root)
    report = restore(world, dry_run=True)
    assert tree(world.root) == before
    output = cli("restore", *world.log_dirs.values(), "--in-place", "--dry-run", code=1)
    assert output.count("moved aside: ") + output.count("new: ") == len(report["changed"])
    assert "nothing was changed: leave out --dry-run to restore" in output
    assert tree(world.root) == before


def test_the_command(world: World, cli: Cli) -> None:
    before = tree(world.root)
    output = cli("restore", *world.log_dirs.values(), "--in-place", code=1)  # a copy was damaged
    assert f"moved aside: {world.log_dirs[3]}/orders-0/{0:020}.log: it is damaged" in output
    assert "until a node has started, --undo takes it back" in output
    assert cli("restore", world.root, "--undo").strip() == "everything is as it was"
    assert tree(world.root) == before


@pytest.fixture(scope="module")
def killed() -> Iterator[Callable[..., bool]]:
    script = Path(__file__).with_name("killed_restores.py")
    server = subprocess.Popen(
        [sys.executable, script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert server.stdin is not None
    assert server.stdout is not None

    def run(root: Path, at: int, **keywords: Any) -> bool:
        """True if it was killed."""
        sources = [str(root / f"b{node}") for node in (1, 2, 3)]
        job = {"root": str(root), "at": at, "sources": sources, "keywords": keywords}
        print(json.dumps(job), file=server.stdin, flush=True)
        code = int(server.stdout.readline())
        assert code in (0, -signal.SIGKILL)
        return code != 0

    yield run
    server.communicate()


def no_sync(file: int) -> None:
    """What a process has written stays when it is killed."""


def test_killed_at_any_point_it_is_finished_or_taken_back(
    world: World, tmp_path: Path, killed: Callable[..., bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "fsync", no_sync)
    root, sources = world.root, [*world.log_dirs.values()]
    original, whole = tree(root), copy(root, tmp_path / "whole")
    restore(world)
    finished = disks(root)
    point, seen = 0, set()
    while killed(_copied(whole, root), point + 1, in_place=True):
        point += 1
        seen.add(_identities(root, original, finished))
        left = _copied(root, tmp_path / "left")
        magicbyte.restore(sources, in_place=True)
        assert disks(root) == finished, point
        _copied(left, root)
        _undo(sources)
        assert tree(root) == original, point
    assert disks(root) == finished
    assert point > 40
    assert seen == {0, 1, 2, 3}


def _identities(root: Path, original: dict[str, bytes], finished: dict[str, bytes]) -> int:
    """The number of `meta.properties` that are there: none while the log directories are neither."""
    now = disks(root)
    names = {name for name in now if name.endswith("meta.properties")}
    without = {name: data for name, data in now.items() if name not in names}
    for state in (original, finished):
        if without == {name: data for name, data in state.items() if not name.endswith("meta.properties")}:
            break
    else:
        assert not names
    return len(names)


def test_killed_while_it_is_taken_back(
    world: World, tmp_path: Path, killed: Callable[..., bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "fsync", no_sync)
    root, sources = world.root, [*world.log_dirs.values()]
    original = tree(root)
    restore(world)
    finished, done, point = disks(root), copy(root, tmp_path / "done"), 0
    while killed(_copied(done, root), point + 1, undo=True):
        point += 1
        left = _copied(root, tmp_path / "left")
        _undo(sources)
        assert tree(root) == original, point
        _copied(left, root)
        restore(world)
        assert disks(root) == finished, point
    assert tree(root) == original
    assert point > 20


def _copied(source: Path, target: Path) -> Path:
    shutil.rmtree(target, ignore_errors=True)
    return copy(source, target)


def _undo(sources: Sequence[Path]) -> None:
    # It says that nothing was restored if that is so.
    with suppress(RefusedError):
        magicbyte.restore(sources, undo=True)


def test_the_disk_of_a_running_broker_is_refused(world: World) -> None:
    lock = world.log_dirs[2] / ".lock"
    lock.touch()
    before = tree(world.root)
    holder = subprocess.Popen(
        [
            sys.executable,
            "-c",
            f"import fcntl, sys; f = open({str(lock)!r}, 'rb+'); fcntl.lockf(f, fcntl.LOCK_EX);"
            " print(flush=True); sys.stdin.read()",
        ],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert holder.stdout is not None
    holder.stdout.readline()
    for options in ({"in_place": True}, {"in_place": False, "undo": True}, {"dry_run": True}):
        with pytest.raises(RefusedError, match=r"b2 is in use: a broker has locked .*\.lock\. Stop it first"):
            restore(world, **options)
    assert tree(world.root) == before
    holder.communicate()
    restore(world)  # the file alone is what a broker leaves


def test_another_job_is_refused(world: World) -> None:
    directory = os.open(world.log_dirs[1], os.O_RDONLY)
    fcntl.flock(directory, fcntl.LOCK_EX)
    with pytest.raises(RefusedError, match="another job is restoring it"):
        restore(world)
    os.close(directory)


def test_what_only_a_merge_has_is_refused(world: World) -> None:
    flip(world.log_dirs[1], [6])
    before = tree(world.root)
    with pytest.raises(RefusedError, match="no copy of orders-0 has all records that are left: use --out"):
        restore(world)
    assert tree(world.root) == before


def test_a_log_that_lost_its_tail_is_refused(world: World) -> None:
    flip(world.log_dirs[1], [19])
    before = tree(world.root)
    with pytest.raises(RefusedError, match="no copy of orders-0"):
        restore(world, 1, voters=["1@h:9093"])
    assert tree(world.root) == before


def test_a_log_that_had_reached_farther_is_refused(world: World) -> None:
    (world.log_dirs[1] / "replication-offset-checkpoint").write_text("0\n1\norders 0 210\n")
    with pytest.raises(RefusedError, match="no copy of orders-0"):
        restore(world)


@pytest.mark.parametrize(("position", "is_refused"), [(200, False), (220, True)])
def test_a_log_that_a_group_has_read_farther_is_refused(
    tmp_path: Path, position: int, is_refused: bool
) -> None:
    """Its end has to be kept, so that no offset is given again: that takes a segment."""
    names = ("orders", "__consumer_offsets")
    records = [part for n, name in enumerate(names, 1) for part in (topic(name, n), partition(n, 0, [1]))]
    world = World(tmp_path, records)
    world.put(1, LOG)
    builder = magicbyte.RecordsBuilder(partition_leader_epoch=3)
    builder.append(0, 1, *commit("billing", position))
    world.put(1, [builder.build()], "__consumer_offsets-0", topic_id=directory_id(2))
    refused = pytest.raises(RefusedError, match="no copy of orders-0") if is_refused else nullcontext()
    with refused:
        restore(world, 1, voters=["1@h:9093"])


def test_segments_with_each_others_names_are_moved_aside(tmp_path: Path) -> None:
    """All records are there, but no broker starts on them."""
    world = World(tmp_path, [topic("orders", 1), partition(1, 0, [1, 2])])
    replica(world.log_dirs[1], {0: LOG[10:], 100: LOG[:10]})
    world.put(2, LOG)
    assert only(restore(world))["isr"] == [2]
    assert not (world.log_dirs[1] / "orders-0").exists()


def test_a_log_of_which_nothing_is_readable_is_moved_aside(world: World) -> None:
    flip(world.log_dirs[1], range(20))
    report = restore(world, 1, voters=["1@h:9093"])
    assert (only(report)["status"], only(report)["isr"]) == ("missing", [2, 3])
    assert not (world.log_dirs[1] / "orders-0").exists()


def test_a_disk_and_its_backup_are_refused(world: World) -> None:
    backup = copy(world.log_dirs[1], world.root / "backup")
    with pytest.raises(
        RefusedError, match=r"2 copies of directory .* of broker 1: .* use --out, which merges"
    ):
        magicbyte.restore([*world.log_dirs.values(), backup], in_place=True)


def test_a_partition_twice_on_a_node_is_refused(world: World) -> None:
    second = world.root / "second"
    write_meta(second, 1, directory_id(9))
    replica(second, {0: LOG[:3]})
    with pytest.raises(RefusedError, match="orders-0, are in several directories"):
        magicbyte.restore([*world.log_dirs.values(), second], in_place=True)


def test_a_copy_of_an_unknown_node_is_refused(world: World) -> None:
    unknown = replica(world.root / "unknown", {0: LOG})
    with pytest.raises(RefusedError, match="is in no log directory of a KRaft node"):
        magicbyte.restore([*world.log_dirs.values(), unknown], in_place=True)


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"until": 5}, "until needs directories"),
        ({"target": "127.0.0.1:9"}, "target needs directories"),
        ({"nodes": [1]}, "nodes needs directories"),
        ({"certify": True}, "certify needs directories"),
        ({"out": "x"}, "in_place and undo change the sources"),
        ({"in_place": False, "undo": True}, "nothing was restored in place"),
        ({"in_place": False, "undo": True, "out": "x"}, "in_place and undo change the sources"),
        ({"voters": ["4@h:9093"]}, "the quorum would have voters that are not restored"),
    ],
)
def test_refused_options(world: World, options: dict[str, Any], match: str) -> None:
    before = tree(world.root)
    with pytest.raises(RefusedError, match=match):
        restore(world, **options)
    assert tree(world.root) == before


def test_what_a_node_has_written_since_is_not_taken_back(world: World) -> None:
    restore(world)
    (world.log_dirs[1] / METADATA / "quorum-state").write_text("{}")
    after = tree(world.root)
    for options in ({"in_place": False, "undo": True}, {"in_place": True}):
        with pytest.raises(RefusedError, match="a node has started on it since"):
            restore(world, **options)
    assert tree(world.root) == after


def test_what_came_where_a_copy_was_is_not_overwritten(world: World) -> None:
    """Such as by a broker, or a person: neither that nor the copy is lost."""
    restore(world)
    copied = world.log_dirs[3] / "orders-0"
    copied.mkdir()
    before = tree(world.root)
    for options in ({}, {"in_place": False, "undo": True}):
        with pytest.raises(RefusedError, match=r"orders-0 is there again .*\.b3\.magicbyte-restore/old"):
            restore(world, **options)
    assert tree(world.root) == before
    copied.rmdir()
    magicbyte.restore([world.root], undo=True)


def test_an_aside_copy_that_is_gone_is_named(world: World) -> None:
    restore(world)
    shutil.rmtree(world.root / ASIDE.format("b3") / "old/orders-0")
    before = tree(world.root)
    with pytest.raises(RefusedError, match=r"b3/orders-0 is gone .* Aside there is nothing of it"):
        magicbyte.restore([world.root], undo=True)
    assert tree(world.root) == before


def half_restored(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Restores until one of the last renames is not possible."""
    rename = os.rename

    def failing(source: str, target: str) -> None:
        if source.endswith("b3/orders-0"):
            raise OSError(16, "Device or resource busy", source)
        rename(source, target)

    with monkeypatch.context() as patched:
        patched.setattr(os, "rename", failing)
        with pytest.raises(RefusedError, match=r"busy: .*the same command goes on; --undo takes all back"):
            restore(world)


def test_directories_that_are_formatted_in_between_are_refused(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    properties, whole = world.log_dirs[3] / "meta.properties", tree(world.root)
    half_restored(world, monkeypatch)
    assert not properties.exists()
    properties.write_text("version=1\ncluster.id=other\nnode.id=3\n")
    before = tree(world.root)
    for options in ({}, {"in_place": False, "undo": True}):
        with pytest.raises(RefusedError, match=r"b3/meta\.properties is there again"):
            restore(world, **options)
    assert tree(world.root) == before
    properties.unlink()
    magicbyte.restore([world.root], undo=True)
    assert tree(world.root) == whole


def test_a_node_that_started_before_the_journal_was_done_is_not_taken_back(world: World) -> None:
    """A job can be killed after a node's directories are ready, before it has said so."""
    restore(world)
    for node in (1, 2, 3):
        aside = world.root / ASIDE.format(f"b{node}")
        (aside / "restored.json").rename(aside / "journal.json")
    (world.log_dirs[1] / METADATA / "quorum-state").write_text("{}")
    before = tree(world.root)
    with pytest.raises(RefusedError, match="a node has started on it since"):
        magicbyte.restore([world.root], undo=True)
    assert tree(world.root) == before
    restore(world)


@pytest.mark.parametrize("node", [1, 2, 3])
def test_without_a_journal_nothing_aside_is_removed(world: World, node: int) -> None:
    restore(world)
    shutil.rmtree(world.root / ASIDE.format(f"b{node}"))
    before = tree(world.root)
    for options in ({}, {"in_place": False, "undo": True}):
        with pytest.raises(RefusedError, match="was moved aside by a restore whose journal is no longer"):
            restore(world, **options)
    assert tree(world.root) == before


def test_a_link_that_was_moved_aside_is_not_removed(world: World, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    (world.log_dirs[3] / "orders-0").rename(elsewhere)
    (world.log_dirs[3] / "orders-0").symlink_to(elsewhere)
    restore(world)
    old = world.root / ASIDE.format("b3") / "old"
    for name in (METADATA, FUTURE, "cleaner-offset-checkpoint"):
        (shutil.rmtree if (old / name).is_dir() else os.unlink)(old / name)
    (world.root / ASIDE.format("b3") / "restored.json").unlink()
    with pytest.raises(RefusedError, match=r"b3\.magicbyte-restore/old/orders-0 was moved aside"):
        restore(world, 3)
    assert (old / "orders-0").is_symlink()


def test_a_partition_on_another_disk_is_refused(world: World) -> None:
    with tempfile.TemporaryDirectory(dir="/dev/shm") as elsewhere:
        if os.stat(elsewhere).st_dev == os.stat(world.root).st_dev:
            pytest.skip("no other file system is here")
        shutil.move(world.log_dirs[1] / "orders-0", elsewhere)
        (world.log_dirs[1] / "orders-0").symlink_to(Path(elsewhere) / "orders-0")
        before = tree(world.root)
        with pytest.raises(RefusedError, match=r"b1/orders-0 is on another disk than .*: use --out"):
            restore(world)
        assert tree(world.root) == before


def test_a_partition_that_is_a_mount_point_is_refused(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    before = tree(world.root)
    monkeypatch.setattr(os.path, "ismount", lambda path: path.endswith("b3/orders-0"))
    with pytest.raises(RefusedError, match="b3/orders-0 is a mount point, which cannot be moved"):
        restore(world)
    assert tree(world.root) == before


@pytest.mark.parametrize("goes_on", [True, False])
def test_a_rename_that_fails_is_done_later_or_taken_back(
    world: World, monkeypatch: pytest.MonkeyPatch, goes_on: bool
) -> None:
    before = tree(world.root)
    half_restored(world, monkeypatch)
    assert not (world.log_dirs[1] / "meta.properties").exists()
    if goes_on:
        restore(world)
        assert (world.log_dirs[1] / "meta.properties").exists()
    magicbyte.restore([world.root], undo=True)
    assert tree(world.root) == before


@pytest.mark.parametrize(
    ("nodes", "options", "match"),
    [
        ((1,), {"voters": ["1@other:9093"]}, "with other options"),
        ((1,), {}, "with other options"),
        ((1, 2, 3), {"voters": ["1@h:9093"]}, "b2 was not among the log directories"),
    ],
)
def test_what_was_restored_otherwise_is_not_taken_for_it(
    world: World, nodes: tuple[int, ...], options: dict[str, Any], match: str
) -> None:
    restore(world, 1, voters=["1@h:9093"])
    before = tree(world.root)
    with pytest.raises(RefusedError, match=match):
        restore(world, *nodes, **options)
    restore(world, 1, voters=["1@h:9093"])
    assert tree(world.root) == before


def test_a_part_of_the_disks_is_not_taken_back(world: World) -> None:
    restore(world)
    after = tree(world.root)
    for options in ({"in_place": False, "undo": True}, {"in_place": True, "voters": ["1@h:9093"]}):
        with pytest.raises(RefusedError, match=r"also changed .*: give it, too"):
            restore(world, 1, **options)
    assert tree(world.root) == after


def test_a_disk_that_is_full_leaves_nothing(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    before = tree(world.root)

    def fail(path: str, text: str) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("magicbyte.jobs.restoring.aside.write_text", fail)
    with pytest.raises(OSError, match=r"No space left on device: .*/\.b1\.magicbyte-restore"):
        restore(world)
    assert tree(world.root) == before


def test_a_dry_run_reads_disks_that_are_read_only(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Such as those of evidence: nobody can hold a lock on them."""
    (world.log_dirs[1] / ".lock").touch()
    before, statvfs = tree(world.root), os.statvfs

    def read_only(path: str) -> Any:
        found = list(statvfs(path))
        found[8] |= os.ST_RDONLY
        return os.statvfs_result(found)

    def refused(*_: Any) -> None:
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr(os, "statvfs", read_only)
    monkeypatch.setattr(fcntl, "lockf", refused)
    assert restore(world, dry_run=True)["changed"]
    assert tree(world.root) == before


def test_a_mount_point_is_refused(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    before = tree(world.root)

    def link(source: str, target: str) -> None:
        raise OSError(18, "Invalid cross-device link")

    monkeypatch.setattr(os, "link", link)
    with pytest.raises(RefusedError, match="b1 is a mount point"):
        restore(world)
    assert tree(world.root) == before


def test_the_directory_of_a_lost_id_gets_it_again(world: World) -> None:
    (world.log_dirs[1] / "orders-0/partition.metadata").unlink()
    (world.log_dirs[1] / "orders-0/leader-epoch-checkpoint").write_text("0\n1\n1 5\n")
    restore(world)
    assert directory_id(1) in (world.log_dirs[1] / "orders-0/partition.metadata").read_text()
    assert (world.log_dirs[1] / "orders-0/leader-epoch-checkpoint").read_text() == "0\n2\n0 0\n3 100\n"


def test_files_that_are_right_are_not_touched(tmp_path: Path) -> None:
    world = World(tmp_path, [topic("orders", 1), partition(1, 0, [1])])
    # An epoch without a batch is one of a leader that wrote nothing.
    world.put(1, LOG, epochs=[(0, 0), (2, 100), (3, 100)])
    report = restore(world, 1, voters=["1@h:9093"])
    assert {Path(one["path"]).parent.name for one in report["changed"]} == {METADATA}


def test_an_epoch_after_that_of_the_next_leader_goes(tmp_path: Path) -> None:
    """A leader with an epoch before one of its cache would not give its own to followers."""
    world = World(tmp_path, [topic("orders", 1), partition(1, 0, [1])])
    directory = world.put(1, LOG, epochs=[(0, 0), (3, 100), (5, 200)])
    restore(world, 1, voters=["1@h:9093"])
    assert (directory / "leader-epoch-checkpoint").read_text() == "0\n2\n0 0\n3 100\n"


def test_a_copy_that_no_leader_continued_is_moved_aside(tmp_path: Path) -> None:
    world = World(tmp_path, [topic("orders", 1), partition(1, 0, [1, 2])])
    world.put(1, LOG)
    world.put(2, [*LOG[:10], *batches(100, 300, epoch=1, value="other")])
    report = restore(world)
    assert only(report)["isr"] == [1]
    assert not (world.log_dirs[2] / "orders-0").exists()
    (log,) = (one for one in report["changed"] if one["path"].endswith(f"orders-0/{0:020}.log"))
    assert log["reason"].startswith("it has batches that no leader had at last")


def test_a_copy_with_a_gap_is_moved_aside(tmp_path: Path) -> None:
    policy = config(TOPIC_CONFIG, "orders", "cleanup.policy", "delete")
    world = World(tmp_path, [topic("orders", 1), partition(1, 0, [1, 2]), policy])
    world.put(1, LOG)
    world.put(2, [*LOG[:5], *LOG[8:]])
    assert only(restore(world))["isr"] == [1]
    assert not (world.log_dirs[2] / "orders-0").exists()


def test_a_copy_whose_start_retention_removed_stays(tmp_path: Path) -> None:
    world = World(tmp_path, [topic("orders", 1), partition(1, 0, [1, 2])])
    world.put(1, LOG)
    replica(world.log_dirs[2], {50: LOG[5:]})
    (world.log_dirs[2] / "log-start-offset-checkpoint").write_text("0\n1\norders 0 50\n")
    assert only(restore(world))["isr"] == [1, 2]


def test_a_replica_that_was_being_added_is_moved_aside(tmp_path: Path) -> None:
    world = World(tmp_path, [topic("orders", 1), partition(1, 0, [1, 2], isr=[1], adding=[2])])
    world.put(1, LOG)
    world.put(2, LOG[:3])
    report = restore(world)
    assert (only(report)["replicas"], only(report)["cancelled"]) == ([1], [2])
    assert not (world.log_dirs[2] / "orders-0").exists()


def test_a_copy_that_was_not_in_sync_stays_offline_where_it_is(tmp_path: Path) -> None:
    world = World(tmp_path, [topic("orders", 1), partition(1, 0, [1, 2], isr=[2])])
    world.put(1, LOG)
    report = restore(world, 1, voters=["1@h:9093"])
    assert (only(report)["status"], only(report)["isr"]) == ("out_of_sync", [2])
    assert (world.log_dirs[1] / "orders-0").exists()


def test_the_disk_with_the_metadata_gets_the_snapshot(tmp_path: Path) -> None:
    world = World(tmp_path, [topic("orders", 1), partition(1, 0, [1])])
    write_meta(world.root / "a", 1, directory_id(7))
    replica(world.root / "a", {0: LOG})
    report = magicbyte.restore([world.root / "a", world.log_dirs[1]], in_place=True, voters=["1@h:9093"])
    assert [path.name for path in (world.log_dirs[1] / METADATA).iterdir()] == [report["snapshot"]]
    assert not (world.root / "a" / METADATA).exists()
    assert str(world.root / "a") in report["steps"][0]


def test_credentials_are_not_shown_to_others(world: World) -> None:
    restore(world)
    assert (world.root / ".b1.magicbyte-restore").stat().st_mode & 0o077 == 0


def test_hostile_metadata_in_place_is_refused_as_elsewhere(tmp_path: Path) -> None:
    world = World(tmp_path, [topic("orders", 1), partition(1, 0, [1, 2, 3])])
    for log_dir in world.log_dirs.values():
        write_log(log_dir, metadata_batches([frame(99, b"")]))
    with pytest.raises(RefusedError):
        restore(world)
    assert not list(world.root.glob(".*"))


# Damaged journals


def journal_beside(world: World, node: int) -> Path:
    return world.root / ASIDE.format(f"b{node}") / "restored.json"


DAMAGE: list[Callable[[bytes], bytes]] = [
    lambda data: data[:-40],
    lambda data: b"",
    lambda data: b"{}",
    lambda data: b"[]",
    lambda data: b"null",
    lambda data: b"[" * 100_000,
    lambda data: b"\xff" + data,
    lambda data: data.replace(b'"renames"', b'"renamed"'),
    lambda data: json.dumps({**json.loads(data), "renames": [["a"]]}).encode(),
    lambda data: json.dumps({**json.loads(data), "renames": [[1, 2]]}).encode(),
    lambda data: json.dumps({**json.loads(data), "log_dirs": [7]}).encode(),
    lambda data: json.dumps({**json.loads(data), "log_dirs": []}).encode(),
    lambda data: json.dumps({**json.loads(data), "digests": {"/elsewhere": {}}}).encode(),
    lambda data: json.dumps({**json.loads(data), "digests": []}).encode(),
]


@pytest.mark.parametrize("damage", DAMAGE)
@pytest.mark.parametrize("node", [1, 3])
def test_a_damaged_journal_is_read_from_the_others(
    world: World, node: int, damage: Callable[[bytes], bytes]
) -> None:
    before = tree(world.root)
    report = restore(world)
    path = journal_beside(world, node)
    path.write_bytes(damage(path.read_bytes()))
    after = tree(world.root)
    assert restore(world) == json.loads(json.dumps(report))
    assert tree(world.root) == after
    magicbyte.restore([world.root], undo=True)
    assert tree(world.root) == before


def test_a_half_restore_with_a_damaged_journal_is_finished(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = tree(world.root)
    half_restored(world, monkeypatch)
    (world.root / ASIDE.format("b2") / "journal.json").write_bytes(b"{")
    restore(world)
    assert (world.log_dirs[1] / "meta.properties").exists()
    magicbyte.restore([world.root], undo=True)
    assert tree(world.root) == before


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_journal_of_which_there_is_no_other_is_refused(
    world: World, damage: Callable[[bytes], bytes]
) -> None:
    restore(world, 1, voters=["1@h:9093"])
    path = journal_beside(world, 1)
    path.write_bytes(damage(path.read_bytes()))
    after = tree(world.root)
    for options in ({"voters": ["1@h:9093"]}, {"in_place": False, "undo": True}):
        with pytest.raises(RefusedError, match=r"b1\.magicbyte-restore/restored\.json is damaged: "):
            restore(world, 1, **options)
    assert tree(world.root) == after


def test_journals_that_contradict_each_other_tell_nothing(world: World) -> None:
    restore(world)
    journal_beside(world, 1).write_bytes(b"{")
    path = journal_beside(world, 2)
    text = json.loads(path.read_text())
    text["renames"].pop()
    path.write_text(json.dumps(text))
    with pytest.raises(RefusedError, match=r"b1.*is damaged"):
        restore(world)


@pytest.mark.parametrize(
    ("source", "target"),
    [
        ("/etc/passwd", "{aside}/old/passwd"),
        ("{log_dir}/../../elsewhere", "{aside}/old/../../elsewhere"),
        ("{log_dir}/orders-0", "/tmp/orders-0"),
        ("{log_dir}/orders-0", "{log_dir}/orders-1"),
        ("{log_dir}/orders-0", "{aside}/old/../orders-0"),
        ("{log_dir}/orders-0", "{aside}/old/orders-1"),
        ("{log_dir}", "{aside}/old/"),
        ("{log_dir}/", "{aside}/old/"),
        ("orders-0", "old/orders-0"),
        ("{other}/orders-0", "{aside}/old/orders-0"),
    ],
)
def test_a_journal_renames_nothing_elsewhere(world: World, source: str, target: str) -> None:
    restore(world, 1, voters=["1@h:9093"])
    path = journal_beside(world, 1)
    places = {"log_dir": world.log_dirs[1], "aside": path.parent, "other": world.log_dirs[2]}
    text = json.loads(path.read_text())
    text["renames"].append([source.format(**places), target.format(**places)])
    path.write_text(json.dumps(text))
    path.rename(path.with_name("journal.json"))
    before = tree(world.root)
    for options in ({"voters": ["1@h:9093"]}, {"in_place": False, "undo": True}):
        with pytest.raises(RefusedError, match=r"journal.json is damaged: .*is none of a restore"):
            restore(world, 1, **options)
    assert tree(world.root) == before


@pytest.mark.parametrize("data", [b"", b"{}", b"[]", b'{"options": 7}'])
def test_a_damaged_report_leaves_only_the_way_back(world: World, data: bytes) -> None:
    before = tree(world.root)
    restore(world)
    (world.root / ASIDE.format("b1") / "reconciliation.json").write_bytes(data)
    with pytest.raises(RefusedError, match=r"reconciliation.json is damaged .*--undo"):
        restore(world)
    magicbyte.restore([world.root], undo=True)
    assert tree(world.root) == before
