"""`backup` into a store, here fsspec's local file system as `local://`: as into a directory, when killed."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, cast

import magicbyte
import pytest
from conftest import Cli
from magicbyte.errors import RefusedError
from magicbyte.jobs.backing_up import stored_tree
from magicbyte.jobs.find.choice import PartitionChoice
from magicbyte.jobs.publish import heartbeat
from magicbyte.live import open_cluster
from magicbyte.storage.stored_directory import StoredDirectory
from test_backup import BATCHES, OTHER_ID, batch, cluster, content, findings, write_log

pytest.importorskip("fsspec")
EVERYTHING = PartitionChoice(exclude=("__magicbyte_problems",))
COMPACTED = [BATCHES[0], BATCHES[4], BATCHES[5]]
DIVERGED = [*BATCHES[:3], batch(3, b"another", epoch=7), batch(4, b"and another", epoch=7)]


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(heartbeat, "SILENCE_SECONDS", 0.2)
    monkeypatch.setattr(heartbeat, "BEAT_SECONDS", 0.05)
    (tmp_path / "temporary").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "temporary"))
    monkeypatch.setattr("tempfile.tempdir", None)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "cluster"


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "backup"


def backup(out: Path, root: Path, **options: Any) -> Any:
    with cluster(root) as url:
        return magicbyte.backup(url, f"local://{out}", choice=EVERYTHING, **options)


def is_proved(out: Path) -> bool:
    """True if it is as its manifest says, which is the certificate; read from the store."""
    report = magicbyte.verify(f"local://{out}", certificate=f"local://{out}/backup.json")
    assert report["certificate"] is not None
    return report["certificate"]["equal"]


def test_every_command_reads_it(cli: Cli, root: Path, out: Path, tmp_path: Path) -> None:
    """It has the files of one in a directory, and no other."""
    write_log(root, BATCHES)
    write_log(root, BATCHES[:2], OTHER_ID, "payments-0")
    with cluster(root) as url:
        for target in (tmp_path / "local", f"local://{out}"):
            report = cli.json("backup", url, target, "--exclude", "__magicbyte_problems")
            assert report["findings"] == []
        verified = cli.json("verify", "--against", url.removeprefix("kafka://"), f"local://{out}")
        assert verified["cluster"]["equal"]
    for path in sorted((tmp_path / "local").rglob("*.log")):
        assert (out / path.relative_to(tmp_path / "local")).read_bytes() == path.read_bytes()
    names = {str(path.relative_to(out)) for path in out.rglob("*") if path.is_file()}
    local = {
        str(path.relative_to(tmp_path / "local"))
        for path in (tmp_path / "local").rglob("*")
        if path.is_file()
    }
    assert names == local - {".lock"}
    assert is_proved(out)
    assert cli.json("verify", f"local://{out}")["total"]["rows"] == len(BATCHES) + 2
    lines = cli("records", f"local://{out}/orders-0").splitlines()
    assert [json.loads(line)["offset"] for line in lines] == list(range(len(BATCHES)))


def test_each_run_begins_a_segment(root: Path, out: Path) -> None:
    """Objects that are there are neither read nor written again."""
    for number, copied in ((2, 2), (2, 0), (4, 2), (6, 2)):
        write_log(root, BATCHES[:number])
        before = {path: path.stat().st_mtime_ns for path in out.rglob("*.log")}
        report = backup(out, root)
        assert (report["copied_records"], report["findings"]) == (copied, [])
        assert {path: path.stat().st_mtime_ns for path in before} == before
    assert [path.name for path in sorted((out / "orders-0").glob("*.log"))] == [
        f"{offset:020}.log" for offset in (0, 2, 4)
    ]
    assert content(out / "orders-0") == b"".join(BATCHES)
    (partition,) = report["partitions"]
    assert (partition["records"], partition["next_offset"]) == (6, 6)
    assert is_proved(out)


def test_segments_are_uploaded_while_the_run_goes_on(
    root: Path, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those that grow, too, when there is much of them."""
    monkeypatch.setattr(stored_tree, "_GROWING_BYTES", 1)
    write_log(root, BATCHES)
    report = backup(out, root, segment_bytes=150)
    assert report["partitions"][0]["size"] == sum(map(len, BATCHES))
    assert content(out / "orders-0") == b"".join(BATCHES)
    assert is_proved(out)


def test_an_empty_partition(root: Path, out: Path) -> None:
    write_log(root, [])
    backup(out, root)
    assert (out / "orders-0" / f"{0:020}.log").read_bytes() == b""
    write_log(root, BATCHES)
    backup(out, root)
    assert content(out / "orders-0") == b"".join(BATCHES)
    assert is_proved(out)


def test_ids_of_producers_are_remembered(root: Path, out: Path) -> None:
    """Of segments that are not read again."""
    write_log(root, BATCHES[:4], name="__transaction_state-0")
    backup(out, root)
    manifest = json.loads((out / "backup.json").read_text())
    (out / "backup.json").write_text(json.dumps({**manifest, "max_producer_id": 77}))
    assert backup(out, root)["max_producer_id"] == 77


def test_rot_is_found(root: Path, out: Path) -> None:
    write_log(root, BATCHES)
    backup(out, root)
    segment = next((out / "orders-0").glob("*.log"))
    data = bytearray(segment.read_bytes())
    data[-1] ^= 1
    segment.write_bytes(data)
    assert not is_proved(out)
    assert backup(out, root)["findings"] == []
    assert not is_proved(out)


@pytest.mark.parametrize("segment", [0, 1, 5])
def test_files_that_are_missing_are_copied_again(root: Path, out: Path, segment: int) -> None:
    write_log(root, BATCHES)
    backup(out, root, segment_bytes=1)
    (out / "orders-0" / f"{segment:020}.log").unlink()
    report = backup(out, root, segment_bytes=1)
    assert findings(report) == [("incomplete", None, None)]
    assert content(out / "orders-0") == b"".join(BATCHES)
    assert is_proved(out)


def test_outputs_that_are_refused(root: Path, out: Path) -> None:
    write_log(root, BATCHES)
    out.mkdir()
    (out / "notes.txt").write_text("mine")
    with pytest.raises(RefusedError, match="not a backup"):
        backup(out, root)
    with cluster(root) as url, pytest.raises(RefusedError, match="web server"):
        magicbyte.backup(url, "http://127.0.0.1:1/backup", choice=EVERYTHING)


class Killed(BaseException):
    """A process that is killed says nothing, and does nothing any more."""


@contextmanager
def killed_at(monkeypatch: pytest.MonkeyPatch, request: int) -> Iterator[None]:
    """Kills the run at its nth request that writes, and all that it still tries to write."""
    count = [0]

    def counted(name: str) -> Callable[..., Any]:
        original = getattr(StoredDirectory, name)

        def call(*arguments: Any) -> Any:
            count[0] += 1
            if count[0] >= request:
                raise Killed
            return original(*arguments)

        return call

    with monkeypatch.context() as patched:
        for name in ("put", "put_file", "copy", "delete", "create", "update"):
            patched.setattr(StoredDirectory, name, counted(name))
        patched.setattr(heartbeat, "BEAT_SECONDS", 3600)
        yield


def _more(root: Path) -> list[bytes]:
    write_log(root, BATCHES)
    return BATCHES


def _again(root: Path) -> list[bytes]:
    write_log(root, [batch(0, b"other")], OTHER_ID)
    return [batch(0, b"other")]


def _diverged(root: Path) -> list[bytes]:
    write_log(root, DIVERGED)
    return DIVERGED


def _compacted(root: Path) -> list[bytes]:
    write_log(root, COMPACTED)
    return COMPACTED


CHANGES: list[tuple[Callable[[Path], list[bytes]], dict[str, Any]]] = [
    (_more, {}),
    (_again, {}),
    (_diverged, {}),
    (_compacted, {"full": True}),
    (_more, {"as_of": 4000}),
]


@pytest.mark.parametrize(("change", "options"), CHANGES, ids=["more", "again", "diverged", "full", "as of"])
def test_a_killed_run_is_continued(
    root: Path,
    out: Path,
    monkeypatch: pytest.MonkeyPatch,
    change: Callable[[Path], list[bytes]],
    options: dict[str, Any],
) -> None:
    """At each request that writes: no batch is lost, and the next run ends what was begun."""
    write_log(root, BATCHES[:4])
    backup(out, root, segment_bytes=150)
    expected = change(root)
    if "as_of" in options:
        expected = expected[:4]
    saved = out.with_name("saved")
    shutil.copytree(out, saved)
    request, is_whole = 0, False
    while not is_whole:
        request += 1
        shutil.rmtree(out)
        shutil.copytree(saved, out)
        with killed_at(monkeypatch, request), suppress(Killed):
            backup(out, root, segment_bytes=150, **options)
            is_whole = True
        backup(out, root, segment_bytes=150, **options)
        assert content(out / "orders-0") == b"".join(expected), request
        assert is_proved(out), request
        if not options.get("full"):
            logs = [content(directory) for directory in out.iterdir() if directory.is_dir()]
            assert all(any(one in log for log in logs) for one in (*BATCHES[:4], *expected)), request
        assert not [*out.glob("*-future"), *out.glob("*-delete")]
        assert backup(out, root)["findings"] == []
    assert request > 5


def test_a_killed_first_run_is_continued(root: Path, out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The store has a manifest before anything else: without one, what is there would be no backup."""
    write_log(root, BATCHES)
    request, is_whole = 0, False
    while not is_whole:
        request += 1
        shutil.rmtree(out, ignore_errors=True)
        with killed_at(monkeypatch, request), suppress(Killed):
            backup(out, root, segment_bytes=150)
            is_whole = True
        assert backup(out, root, segment_bytes=150)["findings"] == [], request
        assert content(out / "orders-0") == b"".join(BATCHES), request
        assert is_proved(out), request
    assert request > 5


def test_a_topic_that_is_not_shown_for_a_while(root: Path, out: Path) -> None:
    write_log(root, BATCHES[:4])
    write_log(root, BATCHES[:1], OTHER_ID, "payments-0")
    backup(out, root)
    shutil.rmtree(root / "orders-0")
    assert findings(backup(out, root)) == [("deleted", None, None)]
    (aside,) = out.glob("orders-0.*-stray")
    assert content(aside) == b"".join(BATCHES[:4])
    assert not (out / "orders-0").exists()
    write_log(root, BATCHES)
    report = backup(out, root)
    assert report["copied_records"] == 2
    assert content(out / "orders-0") == b"".join(BATCHES)
    assert not list(out.glob("*-stray"))
    assert is_proved(out)


class OvertakenCluster:
    """A cluster whose retention overtakes the copy of `orders` when half of `payments` is copied."""

    def __init__(self, cluster: Any) -> None:
        self._cluster = cluster
        self._calls = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._cluster, name)

    def offsets(self, places: Any, level: str) -> Any:
        bounds = self._cluster.offsets(places, level)
        return [(3, end) for _, end in bounds] if self._calls else bounds

    def copy_batches(self, ranges: Any, segment_bytes: int) -> str:
        self._calls += 1
        if self._calls > 1:
            return cast(str, self._cluster.copy_batches(ranges, segment_bytes))
        orders, payments = ranges
        half = (*payments[:3], 2, *payments[4:])
        nothing = (*orders[:3], orders[2], *orders[4:])
        copied = json.loads(self._cluster.copy_batches([half, nothing], segment_bytes))
        (one,) = (one for one in copied if one["topic"] == "orders")
        one["stopped"] = {"error": "OFFSET_OUT_OF_RANGE", "message": "out of range"}
        return json.dumps(copied)


def test_a_manifest_in_the_middle_of_a_run(root: Path, out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What has been uploaded with it does not grow any more, as an object cannot."""
    write_log(root, BATCHES)
    write_log(root, BATCHES, OTHER_ID, "payments-0")
    monkeypatch.setattr(
        "magicbyte.jobs.backup.open_cluster",
        lambda *arguments: OvertakenCluster(open_cluster(*arguments)),
    )
    backup(out, root)
    assert content(out / "orders-0") == b"".join(BATCHES[3:])
    assert content(out / "payments-0") == b"".join(BATCHES)
    assert is_proved(out)
