"""Finding partition directories."""

from __future__ import annotations

from pathlib import Path

import pytest
from magicbyte import _core
from magicbyte.errors import RefusedError
from magicbyte.jobs.find.partitions import find_partitions, list_partitions, list_segment_file


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
