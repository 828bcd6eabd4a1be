"""`magicbyte diff` of running clusters, which `magicbyte serve` plays: ranges, retention, cuts of backups."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import magicbyte
import pytest
from conftest import KAFKA, Cli
from magicbyte import _core
from magicbyte.errors import RefusedError
from magicbyte.jobs.find.choice import PartitionChoice
from replicas import batch, batches, replica

WHOLE = {0: batches(0, 20_000, step=100), 20_000: batches(20_000, 30_000, step=100)}
OWN = PartitionChoice(exclude=("__magicbyte*",))
TOPICS = ("v2_lz4", "v2_txn", "v1_gzip", "v2_compacted_txn", "mixed_012", "v0_none")
CHECKPOINT = "log-start-offset-checkpoint"


@contextmanager
def cluster(*sources: Path) -> Iterator[str]:
    with magicbyte.serve(sources, listen="127.0.0.1:0") as server:
        yield f"kafka://{server.bootstrap_servers}"


def diff(a: Path | str, b: Path | str, **options: Any) -> Any:
    return magicbyte.diff([a, b], choice=options.pop("choice", OWN), **options)


def start_at(root: Path, offset: int, name: str = "orders 0") -> Path:
    """What a broker notes when its log starts inside a segment."""
    (root / CHECKPOINT).write_text(f"0\n1\n{name} {offset}\n")
    return root


@pytest.mark.parametrize("level", [None, "read_uncommitted", "read_committed"])
def test_a_cluster_equals_its_files(tmp_path: Path, level: Any) -> None:
    for topic in TOPICS:
        shutil.copytree(KAFKA / topic, tmp_path / f"{topic}-0")
    with cluster(tmp_path) as url:
        for sides in ((url, tmp_path), (tmp_path, url), (url, url)):
            report = diff(*sides, isolation_level=level)
            assert report["equal"], sides
            assert [one["topic"] for one in report["partitions"]] == sorted(TOPICS)
            assert all(one["records_a"] == one["records_b"] for one in report["partitions"])
            assert report["isolation_level"] == (level or "read_uncommitted")
            assert report["a"]["read_bytes"] == report["a"]["size"] > 0
    counts = {one["topic"]: one["records_a"] for one in report["partitions"]}
    expected = len(
        list(magicbyte.PartitionLog(KAFKA / "v2_txn").records(isolation_level=level or "read_uncommitted"))
    )
    assert counts["v2_txn"] >= expected > 0


def test_differences_are_found_to_the_record(tmp_path: Path, cli: Cli) -> None:
    changed = [*WHOLE[0]]
    changed[50] = batch(5000, 100, value="w")
    del changed[120:122]
    right = {0: changed, 20_000: [*WHOLE[20_000], *batches(30_000, 30_500, step=100)]}
    a, b = replica(tmp_path / "a", WHOLE), replica(tmp_path / "b", right)
    expected = [
        (5000, 5099, "differs"),
        (12_000, 12_199, "only_in_a"),
        (30_000, 30_499, "only_in_b"),
    ]
    with cluster(a) as first, cluster(b) as second:
        for sides in ((first, b), (a, second), (first, second)):
            report = cli.json("diff", "--exclude", "__*", *sides, code=1)
            (partition,) = report["partitions"]
            assert partition["result"] == "differs"
            ranges = [
                (one["first_offset"], one["last_offset"], one["difference"]) for one in partition["ranges"]
            ]
            assert ranges == expected
        text = cli("diff", "--exclude", "__*", first, b, code=1)
    assert "orders-0: 800 records differ" in text
    assert "not compared: batches" in text


def test_each_range_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both sides, and what differs a second time; calls are bounded."""
    changed = [*WHOLE[0]]
    changed[50] = batch(5000, 100, value="w")
    a, b = replica(tmp_path / "a", WHOLE), replica(tmp_path / "b", {**WHOLE, 0: changed})
    asked: list[tuple[int, int, int]] = []

    class Counting:
        def __init__(self, *arguments: Any, **options: Any) -> None:
            self._reader = _core.ClusterReader(*arguments, **options)

        def __getattr__(self, name: str) -> Any:
            return getattr(self._reader, name)

        def digest(self, ranges: Sequence[tuple[str, int, int, int]], width: int, *others: Any) -> Any:
            asked.extend((start, end, width) for _, _, start, end in ranges)
            return self._reader.digest(ranges, width, *others)

    monkeypatch.setattr("magicbyte.live.ClusterReader", Counting)
    with cluster(a) as url:
        assert not diff(url, b)["equal"]
    assert asked == [(0, 30_000, 4096), (4096, 8192, 1)]


def test_partitions_of_one_side(tmp_path: Path, cli: Cli) -> None:
    a = replica(tmp_path / "a", WHOLE)
    replica(tmp_path / "a", {0: [batch(0)]}, name="orders-1")
    replica(tmp_path / "a", {0: [batch(0)]}, name="others-0")
    b = replica(tmp_path / "b", WHOLE)
    replica(tmp_path / "b", {0: [batch(0)]}, name="others-0")
    with cluster(a) as url:
        report = diff(url, b)
        assert {(one["topic"], one["partition"]): one["result"] for one in report["partitions"]} == {
            ("orders", 0): "equal",
            ("orders", 1): "only_in_a",
            ("others", 0): "equal",
        }
        assert "orders-1: only in A" in cli("diff", "--exclude", "__magic*", url, b, code=1)
        assert diff(f"{url}/orders/0", b / "orders-0")["equal"]
        assert diff(f"{url}/others", b / "others-0")["equal"]
        assert diff(url, b, choice=PartitionChoice(topics=("others",)))["equal"]
        with pytest.raises(RefusedError, match="the cluster has no none"):
            diff(f"{url}/none", b)


@pytest.mark.parametrize("start", [1, 150, 4096, 12_345, 20_000, 29_999])
def test_retention_on_the_cluster(tmp_path: Path, cli: Cli, start: int) -> None:
    """It says where its log starts: what the files still have before that is named, and no difference."""
    files = replica(tmp_path / "files", WHOLE)
    trimmed = start_at(replica(tmp_path / "trimmed", WHOLE), start)
    with cluster(trimmed) as url:
        report = diff(url, files)
        assert report["equal"]
        (one,) = report["partitions"]
        assert (one["result"], one["differing_records"], one["ranges"]) == ("equal", 0, [])
        expected = {"side": "a", "last_offset": start - 1, "records": start, "stated": True}
        assert one["removed"] == expected
        (one,) = diff(files, url)["partitions"]
        assert one["removed"] == {**expected, "side": "b"}
        text = cli("diff", "--exclude", "__*", files, url)
        assert f"orders-0: B starts at offset {start:,}: {start:,} record" in text
    (one,) = diff(files, trimmed)["partitions"]
    assert (one["result"], one["removed"]) == ("equal", {**expected, "side": "b"})


def test_everything_was_removed(tmp_path: Path) -> None:
    files = replica(tmp_path / "files", WHOLE)
    with cluster(start_at(replica(tmp_path / "trimmed", WHOLE), 30_000)) as url:
        report = diff(files, url)
    assert report["equal"]
    assert report["partitions"][0]["removed"]["records"] == 30_000


def test_retention_and_a_difference(tmp_path: Path) -> None:
    changed = [*WHOLE[0]]
    changed[60] = batch(6000, 100, value="w")
    files = replica(tmp_path / "files", {**WHOLE, 0: changed})
    for start, result in ((5000, "differs"), (6050, "differs"), (6100, "equal")):
        with cluster(start_at(replica(tmp_path / f"{start}", WHOLE), start)) as url:
            (one,) = diff(files, url)["partitions"]
        assert one["result"] == result
        assert one["removed"]["records"] == start
        assert one["differing_records"] == {5000: 100, 6050: 50, 6100: 0}[start]


def test_a_first_segment_is_no_proof(tmp_path: Path, cli: Cli) -> None:
    """Nothing says why the segments before it are missing."""
    files = replica(tmp_path / "files", WHOLE)
    later = replica(tmp_path / "later", {20_000: WHOLE[20_000]})
    report = diff(files, later)
    assert not report["equal"]
    (one,) = report["partitions"]
    assert (one["result"], one["differing_records"]) == ("starts_later", 0)
    assert one["removed"] == {"side": "b", "last_offset": 19_999, "records": 20_000, "stated": False}
    text = cli("diff", files, later, code=1)
    assert "orders-0: B starts at offset 20,000: 20,000 records" in text


def test_a_backup_is_equal_up_to_its_cut(tmp_path: Path, cli: Cli) -> None:
    root, out = replica(tmp_path / "cluster", WHOLE), tmp_path / "out"
    shutil.copytree(KAFKA / "v2_txn", root / "v2_txn-0")
    with cluster(root) as url:
        magicbyte.backup(url, out, choice=OWN)
        report = diff(url, out)
        assert report["equal"]
        assert "__cluster_metadata" in report["not_compared"]
        assert {one["topic"] for one in report["partitions"]} == {"orders", "v2_txn"}
    log = root / "orders-0" / f"{20_000:020}.log"
    log.write_bytes(log.read_bytes() + batch(30_000, 250))
    start_at(root, 4500)
    with cluster(root) as url:
        for sides in ((url, out), (out, url)):
            report = diff(*sides)
            assert report["equal"]
            one = report["partitions"][0]
            assert (one["end_offset"], one["records_after_end"]) == (30_000, 250)
            assert (one["removed"]["records"], one["removed"]["stated"]) == (4500, True)
        text = cli("diff", "--exclude", "__magicbyte*", url, out)
        assert "compared up to offset 30,000" in text
        assert "250 more records" in text
        # Without its manifest it is a copy like any other.
        (out / "backup.json").write_text('{"partitions": []}')
        one = diff(url, out)["partitions"][0]
        assert one["result"] == "differs"
        assert [(found["first_offset"], found["difference"]) for found in one["ranges"]] == [
            (30_000, "only_in_a")
        ]


def test_a_backup_that_lacks_records_differs(tmp_path: Path) -> None:
    root, out = replica(tmp_path / "cluster", WHOLE), tmp_path / "out"
    with cluster(root) as url:
        magicbyte.backup(url, out, choice=OWN)
        *_, log = sorted((out / "orders-0").glob("*.log"))
        data = log.read_bytes()
        last = [one.size_in_bytes for one in magicbyte.read_batches(data)][-1]
        log.write_bytes(data[:-last])
        (one,) = diff(url, out)["partitions"]
    assert one["result"] == "differs"
    assert one["ranges"][-1]["difference"] == "only_in_a"
    assert one["ranges"][-1]["last_offset"] == 29_999


def test_the_cache_is_for_files(tmp_path: Path) -> None:
    files, cache = replica(tmp_path / "files", WHOLE), tmp_path / "digests.json"
    with cluster(files) as url:
        first = diff(files, url, cache=cache)
        second = diff(files, url, cache=cache)
    assert first["equal"]
    assert second["equal"]
    assert second["a"]["read_bytes"] == 0
    assert second["b"]["read_bytes"] == first["b"]["read_bytes"] > 0


def test_levels_have_digests_of_their_own(tmp_path: Path) -> None:
    """A cache with aborted records is none of a reader that does not see them."""
    source, cache = tmp_path / "a", tmp_path / "digests.json"
    shutil.copytree(KAFKA / "v2_txn", source / "v2_txn-0")
    with cluster(source) as url:
        for level in ("read_uncommitted", "read_committed", "read_uncommitted"):
            report = diff(source, url, cache=cache, isolation_level=level)
            assert report["equal"]
            counts = {side: report["partitions"][0][f"records_{side}"] for side in "ab"}
            assert counts["a"] == counts["b"]


def test_the_connection(tmp_path: Path, cli: Cli) -> None:
    files = replica(tmp_path / "files", WHOLE)
    config = tmp_path / "client.properties"
    config.write_text("client.id=comparing\n")
    with cluster(files) as url:
        assert diff(url, files, command_config=config)["equal"]
        cli("diff", "--command-config", config, files, files, code=2)
        assert "properties for connections are given" in cli.error
    with pytest.raises(ConnectionError):
        diff(url, files)
