"""Finding partition directories."""

from __future__ import annotations

from pathlib import Path

import magicbyte
import pytest
from magicbyte import _core
from magicbyte.errors import RefusedError
from magicbyte.jobs.find.partitions import find_partitions, list_partitions, list_segment_file
from replicas import batches, offsets_of, replica


@pytest.mark.parametrize(
    ("name", "is_one"),
    [
        ("00000000000000000000.log", True),
        ("00000000000000000000.log.deleted", False),
        ("0000000000000000000.log", False),
        ("00000000000000000000.index", False),
        ("00000000000000000000-R5ONT1_KRNm0plmgyhNF5A.log", True),
    ],
)
def test_segment_file(name: str, is_one: bool) -> None:
    assert _core.is_segment_file(name) is is_one


@pytest.mark.partitions("v2_txn", "v0_gzip")
def test_found_at_and_below(source: Path) -> None:
    both = [str(source / "v0_gzip"), str(source / "v2_txn")]
    assert find_partitions([str(source)]) == both
    assert find_partitions(both[1:]) == both[1:]
    assert find_partitions([str(source), *both]) == both


@pytest.mark.partitions("v2_txn")
def test_links_are_followed_once(source: Path, tmp_path: Path) -> None:
    (source / "loop").symlink_to(source)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.symlink_to(source)
    assert find_partitions([str(elsewhere)]) == [str(elsewhere / "v2_txn")]


def named(*sources: Path) -> list[tuple[str, int]]:
    """The partitions that a job finds."""
    report = magicbyte.verify(sources)
    return [(one["topic"], one["partition"]) for one in report["partitions"]]


@pytest.mark.parametrize("target", ["volume", "clicks-7", "orders-1.0123456789abcdef0123456789abcdef-stray"])
def test_a_link_has_the_name_of_a_partition(tmp_path: Path, target: str) -> None:
    """A broker takes the name in its log directory, wherever the link leads to."""
    replica(tmp_path / "disk", {0: batches(0, 50)}, name=target)
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "orders-0").symlink_to(tmp_path / "disk" / target)
    assert named(tmp_path / "logs") == [("orders", 0)]
    assert named(tmp_path / "logs" / "orders-0") == [("orders", 0)]
    shorter = replica(tmp_path / "other", {0: batches(0, 30)})
    report = magicbyte.merge([tmp_path / "logs", shorter], out=tmp_path / "out")
    assert [(one["topic"], one["partition"]) for one in report["partitions"]] == [("orders", 0)]
    assert offsets_of(tmp_path / "out") == [*range(50)]


@pytest.mark.parametrize("link", ["latest", "orders-copy"])
def test_a_link_without_the_name_of_a_partition(tmp_path: Path, link: str) -> None:
    replica(tmp_path / "logs", {0: batches(0, 50)}, name="orders-3")
    (tmp_path / link).symlink_to(tmp_path / "logs" / "orders-3")
    assert named(tmp_path / link) == [("orders", 3)]


@pytest.mark.parametrize("path", [".", "../orders-3", "../orders-3/.", "./"])
def test_relative_paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str) -> None:
    replica(tmp_path, {0: batches(0, 50)}, name="orders-3")
    monkeypatch.chdir(tmp_path / "orders-3")
    assert named(Path(path)) == [("orders", 3)]
    with magicbyte.PartitionLog(path) as log:
        assert (log.topic, log.partition) == ("orders", 3)


def test_two_names_of_one_log(tmp_path: Path) -> None:
    """A broker opens two partitions: none of them is missing without a word."""
    replica(tmp_path, {0: batches(0, 50)})
    for link in ("orders-1", "latest"):
        (tmp_path / link).symlink_to("orders-0")
    (tmp_path / "orders-0" / "loop-1").symlink_to(tmp_path)
    assert named(tmp_path) == [("orders", 0), ("orders", 1)]
    (tmp_path / "orders-0" / "loop-1").unlink()
    assert named(*(tmp_path / name for name in ("orders-0", "orders-0", "latest"))) == [("orders", 0)]


def test_nothing_found(tmp_path: Path) -> None:
    with pytest.raises(RefusedError, match="no Kafka segments"):
        list_partitions([str(tmp_path)])
    with pytest.raises(RefusedError, match="does not exist"):
        list_partitions([str(tmp_path / "missing")])


@pytest.mark.partitions("v2_txn", "v0_gzip")
def test_topic_and_partition(source: Path) -> None:
    (source / "v2_txn").rename(source / "my-topic-12")
    places = [(one["topic"], one["partition"]) for one in list_partitions([str(source)])]
    assert places == [("my-topic", 12), ("v0_gzip", 0)]


@pytest.mark.partitions("v2_txn", "v0_gzip")
def test_copies_of_one_partition_are_refused(source: Path) -> None:
    for name, broker in (("v2_txn", "broker1"), ("v0_gzip", "broker2")):
        (source / broker).mkdir()
        (source / name).rename(source / broker / "t-0")
    assert len(list_partitions([str(source)])) == 2
    with pytest.raises(RefusedError, match="there are 2 copies of t-0"):
        list_partitions([str(source)], distinct=True)


@pytest.mark.partitions("v2_txn")
def test_single_file(source: Path) -> None:
    path = source / "v2_txn" / "00000000000000000007.log"
    listing = list_segment_file(str(path))
    (segment,) = listing["segments"]
    assert (listing["topic"], segment["base_offset"], segment["size"]) == ("v2_txn", 7, path.stat().st_size)
