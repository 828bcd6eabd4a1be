"""`magicbyte diff`: the partitions and records in which two logs differ."""

from __future__ import annotations

import json
import os
import shutil
import tarfile
from pathlib import Path

import magicbyte
import pytest
from conftest import KAFKA, Cli
from magicbyte import RefusedError
from replicas import batch, batches, copy, flip, replica

WHOLE = {0: batches(0, 20_000, step=100), 20_000: batches(20_000, 30_000, step=100)}


def pair(root: Path, right: dict[int, list[bytes]]) -> list[Path]:
    return [replica(root / "a", WHOLE), replica(root / "b", right)]


def test_equal_logs(tmp_path: Path, cli: Cli) -> None:
    sources = pair(tmp_path, WHOLE)
    report = cli.json("diff", *sources)
    assert report["equal"]
    (partition,) = report["partitions"]
    assert partition["result"] == "equal"
    assert partition["records_a"] == partition["records_b"] == 30_000
    assert cli("diff", *sources).startswith("1 of 1 partition equal;")


@pytest.mark.parametrize("name", ["v2_txn", "v2_none", "v1_gzip", "v0_none", "v2_headers", "v2_nulls"])
def test_a_log_equals_its_conversion(tmp_path: Path, name: str) -> None:
    source = copy(KAFKA / name, tmp_path / "a" / f"{name}-0")
    magicbyte.convert(source, tmp_path / "b", compression="zstd")
    assert magicbyte.diff([tmp_path / "a", tmp_path / "b"])["equal"]


def test_differences_are_found_to_the_record(tmp_path: Path, cli: Cli) -> None:
    changed = [*WHOLE[0]]
    changed[50] = batch(5000, 100, value="w")
    del changed[120:122]
    right = {0: changed, 20_000: [*WHOLE[20_000], *batches(30_000, 30_500, step=100)]}
    report = cli.json("diff", *pair(tmp_path, right), code=1)
    (partition,) = report["partitions"]
    assert partition["result"] == "differs"
    found = [(one["first_offset"], one["last_offset"], one["difference"]) for one in partition["ranges"]]
    assert found == [
        (5000, 5099, "differs"),
        (12_000, 12_199, "only_in_a"),
        (30_000, 30_499, "only_in_b"),
    ]
    assert partition["differing_records"] == 800
    text = cli("diff", tmp_path / "a", tmp_path / "b", code=1)
    assert "orders-0: 800 records differ" in text
    assert "offsets 12,000..=12,199: 200 records only in A" in text


def test_each_part_of_a_record_counts(tmp_path: Path) -> None:
    def record(**parts: object) -> bytes:
        given = {"timestamp": 1, "key": b"k", "value": b"v", "headers": [("h", b"x")], **parts}
        builder = magicbyte.RecordsBuilder()
        builder.append(0, given["timestamp"], given["key"], given["value"], given["headers"])  # type: ignore[arg-type]
        return builder.build()

    replica(tmp_path / "a", {0: [record()]})
    others = [
        {"timestamp": 2},
        {"key": None},
        {"key": b""},
        {"value": None},
        {"value": b"w"},
        {"headers": []},
        {"headers": [("h", None)]},
        {"headers": [("h", b"x"), ("h", b"x")]},
    ]
    for number, parts in enumerate(others):
        other = replica(tmp_path / f"b{number}", {0: [record(**parts)]})
        report = magicbyte.diff([tmp_path / "a", other])
        assert not report["equal"], parts
        assert report["partitions"][0]["differing_records"] == 1


def test_control_records_count(tmp_path: Path) -> None:
    source = copy(KAFKA / "v2_txn", tmp_path / "a" / "t-0")
    log, marker = next(
        (log, one)
        for log in sorted(source.glob("*.log"))
        for one in magicbyte.read_batches(log.read_bytes())
        if one.is_control
    )
    data = log.read_bytes()
    other = copy(source, tmp_path / "b" / "t-0")
    end = marker.position + marker.size_in_bytes
    (other / log.name).write_bytes(data[: marker.position] + data[end:])
    report = magicbyte.diff([tmp_path / "a", tmp_path / "b"])
    assert not report["equal"]
    (found,) = report["partitions"][0]["ranges"]
    assert (found["first_offset"], found["difference"]) == (marker.base_offset, "only_in_a")


def test_partitions_of_one_side(tmp_path: Path, cli: Cli) -> None:
    sources = pair(tmp_path, WHOLE)
    replica(sources[0], {0: batches(0, 100)}, name="left-0")
    replica(sources[1], {0: batches(0, 100)}, name="right-0")
    report = cli.json("diff", *sources, code=1)
    found = {one["topic"]: one["result"] for one in report["partitions"]}
    assert found == {"left": "only_in_a", "orders": "equal", "right": "only_in_b"}
    assert not report["equal"]


def test_one_partition_on_each_side_may_have_any_name(tmp_path: Path) -> None:
    replica(tmp_path / "a", {0: batches(0, 100)}, name="orders-0")
    replica(tmp_path / "b", {0: batches(0, 100)}, name="restored-7")
    assert magicbyte.diff([tmp_path / "a", tmp_path / "b"])["equal"]


def test_damage_is_a_difference_and_a_problem(tmp_path: Path, cli: Cli) -> None:
    sources = pair(tmp_path, WHOLE)
    flip(sources[1], [3])
    report = cli.json("diff", *sources, code=1)
    (found,) = report["partitions"][0]["ranges"]
    assert (found["first_offset"], found["last_offset"], found["difference"]) == (300, 399, "only_in_a")
    assert [one["kind"] for one in report["problems"]] == ["crc_mismatch"]
    flip(sources[0], [3])
    for _ in range(2):  # the second run has the problems from the cache
        report = cli.json("diff", "--cache", tmp_path / "digests.json", *sources, code=1)
        assert report["equal"]  # but nobody knows what is in the damage
        assert [one["kind"] for one in report["problems"]] == ["crc_mismatch"] * 2
    assert report["a"]["read_bytes"] == 0


def test_the_second_run_reads_only_what_is_new(tmp_path: Path, cli: Cli) -> None:
    sources = pair(tmp_path, WHOLE)
    cache = tmp_path / "digests.json"
    first = cli.json("diff", "--cache", cache, *sources)
    assert first["a"]["read_bytes"] == first["a"]["size"] > 0
    again = cli.json("diff", "--cache", cache, *sources)
    assert again["a"]["read_bytes"] == again["b"]["read_bytes"] == 0
    assert again["partitions"] == first["partitions"]
    log = sources[0] / "orders-0" / f"{20_000:020}.log"
    size = log.stat().st_size
    with log.open("ab") as file:
        file.write(batch(30_000, 100))
    grown = cli.json("diff", "--cache", cache, *sources, code=1)
    assert size < grown["a"]["read_bytes"] <= log.stat().st_size
    assert grown["b"]["read_bytes"] == 0
    (found,) = grown["partitions"][0]["ranges"]
    assert (found["first_offset"], found["last_offset"], found["difference"]) == (30_000, 30_099, "only_in_a")
    # A file of the same name and size that is another one.
    log.unlink()
    log.write_bytes(b"".join([*batches(20_000, 30_000, step=100, value="w"), batch(30_000, 100)]))
    replaced = cli.json("diff", "--cache", cache, *sources, code=1)
    assert replaced["partitions"][0]["differing_records"] == 10_100


def test_chunks_of_a_segment_that_grew_are_read_once(tmp_path: Path) -> None:
    data = [batch(first, 1000, value="x" * 500) for first in range(0, 20_000, 1000)]
    sources = [replica(tmp_path / name, {0: data}) for name in ("a", "b")]
    cache = tmp_path / "digests.json"
    assert magicbyte.diff(sources, cache=cache)["a"]["read_bytes"] > 10 << 20
    for source in sources:
        with (source / "orders-0" / f"{0:020}.log").open("ab") as file:
            file.write(batch(20_000, 1000))
    report = magicbyte.diff(sources, cache=cache)
    assert report["equal"]
    assert 0 < report["a"]["read_bytes"] < 5 << 20


@pytest.mark.parametrize("content", ["", "{", "[]", '{"format": "magicbyte-diff-1", "segments": {"x": 1}}'])
def test_a_broken_cache_counts_as_empty(tmp_path: Path, content: str) -> None:
    sources = pair(tmp_path, WHOLE)
    cache = tmp_path / "digests.json"
    cache.write_text(content)
    assert magicbyte.diff(sources, cache=cache)["a"]["read_bytes"] > 0
    assert json.loads(cache.read_text())["segments"]
    assert magicbyte.diff(sources, cache=cache)["a"]["read_bytes"] == 0


def test_a_cache_that_is_no_file(tmp_path: Path) -> None:
    sources = pair(tmp_path, WHOLE)
    os.mkfifo(tmp_path / "pipe")
    for cache in (tmp_path, tmp_path / "pipe"):
        with pytest.raises(RefusedError, match="is not a regular file"):
            magicbyte.diff(sources, cache=cache)


def test_an_archive(tmp_path: Path, cli: Cli) -> None:
    sources = pair(tmp_path, WHOLE)
    with tarfile.open(tmp_path / "b.tar", "w") as archive:
        archive.add(sources[1], "b")
    assert cli.json("diff", sources[0], tmp_path / "b.tar")["equal"]


def test_usage(tmp_path: Path, cli: Cli) -> None:
    sources = pair(tmp_path, WHOLE)
    cli("diff", sources[0], code=2)
    cli("diff", sources[0], tmp_path / "none", code=2)
    with pytest.raises(RefusedError, match="two sources are compared, not 1"):
        magicbyte.diff(sources[0])
    shutil.copytree(sources[0] / "orders-0", sources[0] / "again" / "orders-0")
    cli("diff", *sources, code=2)
    assert "there twice" in cli.error
    cli("diff", "--prefer", sources[0] / "again", *sources)


def test_many_ranges_are_counted(tmp_path: Path) -> None:
    replica(tmp_path / "a", {0: [batch(offset, 1) for offset in range(5000)]})
    replica(tmp_path / "b", {0: [batch(offset, 1, value="vw"[offset % 2]) for offset in range(5000)]})
    report = magicbyte.diff([tmp_path / "a", tmp_path / "b"])
    (partition,) = report["partitions"]
    assert partition["differing_records"] == 2500
    assert (len(partition["ranges"]), partition["ranges_left_out"]) == (1000, 1500)


def test_adjacent_differences_are_one_range(tmp_path: Path) -> None:
    """Also where records are compared in several steps; records between two ranges keep them apart."""
    end = 200_000
    replica(tmp_path / "a", {0: batches(0, end, step=1000)})
    changed = batches(0, end, step=1000)
    changed[1:180] = batches(1000, 180_000, step=1000, value="w")
    changed[190] = batch(190_000, 1000, value="w")
    replica(tmp_path / "b", {0: changed})
    (partition,) = magicbyte.diff([tmp_path / "a", tmp_path / "b"])["partitions"]
    found = [(one["first_offset"], one["last_offset"], one["records"]) for one in partition["ranges"]]
    assert found == [(1000, 179_999, 179_000), (190_000, 190_999, 1000)]
