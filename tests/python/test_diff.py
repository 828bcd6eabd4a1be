"""`magicbyte diff`: the partitions and records in which two logs differ."""

from __future__ import annotations

import json
import os
import shutil
import tarfile
import time
from collections.abc import Callable
from pathlib import Path

import magicbyte
import pytest
from conftest import KAFKA, Cli
from magicbyte import RefusedError
from magicbyte.jobs.comparing import digest_cache, files_side
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


def test_equal_bytes_are_decoded_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Replicas have the same bytes; where one does not, its own records count."""
    monkeypatch.setattr(files_side, "_CHUNK_BYTES", 10_000)
    decoded: list[str] = []

    def digest_chunk(chunk: str, *arguments: object) -> object:
        decoded.append(json.loads(chunk)["path"])
        return digest(chunk, *arguments)

    digest = magicbyte._core.digest_chunk
    monkeypatch.setattr(magicbyte._core, "digest_chunk", digest_chunk)
    sources = pair(tmp_path, WHOLE)
    assert magicbyte.diff(sources, cache=tmp_path / "cache")["equal"]
    chunks = len(decoded)
    assert chunks > 1
    assert {Path(path).parts[-3] for path in decoded} == {"a"}
    decoded.clear()
    assert magicbyte.diff(sources, cache=tmp_path / "cache")["equal"]
    assert decoded == []
    flip(tmp_path / "b", [5])
    report = magicbyte.diff(sources)
    assert not report["equal"]
    assert "b" in [Path(path).parts[-3] for path in decoded]
    assert [one["kind"] for one in report["problems"]] == ["crc_mismatch"]


def test_the_same_damage_is_a_problem_of_both(tmp_path: Path) -> None:
    sources = pair(tmp_path, WHOLE)
    for source in sources:
        flip(source, [5])
    report = magicbyte.diff(sources)
    assert [one["kind"] for one in report["problems"]] == ["crc_mismatch"] * 2


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
    assert "offsets 12,000 to 12,199: 200 records only in A" in text


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
        assert report["partitions"][0]["result"] == "unproven"
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


Change = Callable[[Path], None]
OTHER = [*batches(20_000, 30_000, step=100, value="w"), batch(30_000, 100)]


def overwrite(log: Path, data: bytes) -> None:
    """Changes the bytes at the start of a file, as a program does that holds it open."""
    with log.open("r+b") as file:
        file.write(data)


def damage_and_grow(log: Path) -> None:
    data = bytearray(log.read_bytes())
    data[len(data) // 2] ^= 1
    overwrite(log, bytes(data) + batch(30_000, 100))


def truncate_and_grow(log: Path) -> None:
    os.truncate(log, 0)
    overwrite(log, b"".join(OTHER))


def replace(log: Path) -> None:
    other = log.with_name("other")
    other.write_bytes(b"".join(OTHER[:-1]))
    before = log.stat()
    os.utime(other, ns=(before.st_atime_ns, before.st_mtime_ns))
    other.replace(log)


def set_the_time_back(log: Path) -> None:
    before = log.stat()
    overwrite(log, b"".join(OTHER[:-1]))
    os.utime(log, ns=(before.st_atime_ns, before.st_mtime_ns))
    after = log.stat()
    assert (after.st_size, after.st_mtime_ns, after.st_ino) == (
        before.st_size,
        before.st_mtime_ns,
        before.st_ino,
    )


@pytest.mark.parametrize(
    "change",
    [
        lambda log: overwrite(log, b"".join(OTHER)),
        lambda log: overwrite(log, b"".join(OTHER[:-1])),
        lambda log: overwrite(log, OTHER[0]),
        lambda log: os.truncate(log, log.stat().st_size // 2),
        truncate_and_grow,
        damage_and_grow,
        replace,
        set_the_time_back,
    ],
)
@pytest.mark.parametrize("settled", [False, True])
def test_bytes_that_changed_are_not_taken_from_the_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: Change, settled: bool
) -> None:
    if settled:
        monkeypatch.setattr(digest_cache, "_SETTLED_NS", 0)
    sources = pair(tmp_path, WHOLE)
    cache = tmp_path / "digests.json"
    assert magicbyte.diff(sources, cache=cache)["equal"]
    time.sleep(0.02)
    change(sources[1] / "orders-0" / f"{20_000:020}.log")
    for _ in range(2):
        found = magicbyte.diff(sources, cache=cache)
        assert not found["equal"]
        assert found["a"]["read_bytes"] == 0
        expected = magicbyte.diff(sources)
        assert (found["partitions"], found["problems"]) == (expected["partitions"], expected["problems"])
    assert found["b"]["read_bytes"] == 0


def test_a_copy_with_the_same_bytes_is_not_read_again(tmp_path: Path) -> None:
    sources = pair(tmp_path, WHOLE)
    cache = tmp_path / "digests.json"
    magicbyte.diff(sources, cache=cache)
    log = sources[1] / "orders-0" / f"{0:020}.log"
    shutil.copyfile(log, tmp_path / "again")
    (tmp_path / "again").replace(log)
    report = magicbyte.diff(sources, cache=cache)
    assert report["equal"]
    assert report["b"]["read_bytes"] == 0


def test_an_unchanged_file_is_not_opened_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sources = pair(tmp_path, WHOLE)
    cache = tmp_path / "digests.json"
    for source in sources:
        for file in (source / "orders-0").iterdir():
            os.utime(file, (1, 1))
    magicbyte.diff(sources, cache=cache)
    before = json.loads(cache.read_text())["segments"]
    assert all(segment["identity"] is None for segment in before.values())  # changed less than 2 s ago
    monkeypatch.setattr(digest_cache, "_SETTLED_NS", 0)
    magicbyte.diff(sources, cache=cache)
    monkeypatch.setattr(files_side, "_hash_chunk", lambda chunk: pytest.fail("the file is as it was"))
    assert magicbyte.diff(sources, cache=cache)["b"]["read_bytes"] == 0


def test_other_limits_and_versions_have_other_digests(tmp_path: Path) -> None:
    zeros = [batch(first, 100, value="x" * 1000, compression="zstd") for first in (0, 100)]
    sources = [replica(tmp_path / name, {0: zeros}) for name in ("a", "b")]
    cache = tmp_path / "digests.json"
    small = magicbyte.diff(sources, cache=cache, max_decompressed_bytes=10_000)
    assert {one["kind"] for one in small["problems"]} == {"limit_exceeded"}
    assert not magicbyte.diff(sources, cache=cache)["problems"]
    document = json.loads(cache.read_text())
    assert magicbyte.diff(sources, cache=cache)["a"]["read_bytes"] == 0
    for changed in ({"magicbyte": "0.0.1"}, {"range_offsets": 1024}, {"format": "magicbyte-diff-1"}):
        cache.write_text(json.dumps({**document, **changed}))
        assert magicbyte.diff(sources, cache=cache)["a"]["read_bytes"] > 0


def test_a_record_keeps_its_digest(tmp_path: Path) -> None:
    """Another digest needs another `format` of the cache."""
    replica(tmp_path / "a", {0: [batch(0, 10)]})
    cache = tmp_path / "digests.json"
    magicbyte.diff([tmp_path / "a", tmp_path / "a"], cache=cache)
    document = json.loads(cache.read_text())
    (segment,) = document["segments"].values()
    (chunk,) = segment["chunks"].values()
    assert document["format"] == "magicbyte-diff-2"
    assert chunk["digests"] == [[0, 10, "0bcb08e837f0fcd493e1d3efded9e95e"]]


def test_differing_ranges_are_read_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One run of the engine on each side for 32 ranges, wherever they are."""
    end = 400_000
    replica(tmp_path / "a", {0: batches(0, end, step=1000)})
    changed = batches(0, end, step=1000)
    changed[::9] = [batch(first, 1000, value="w") for first in range(0, end, 9000)]
    replica(tmp_path / "b", {0: changed})
    runs = []
    read = files_side.FilesSide._read
    monkeypatch.setattr(files_side.FilesSide, "_read", lambda *a, **k: runs.append(a) or read(*a, **k))
    (partition,) = magicbyte.diff([tmp_path / "a", tmp_path / "b"])["partitions"]
    found = [(one["first_offset"], one["last_offset"], one["records"]) for one in partition["ranges"]]
    assert found == [(first, first + 999, 1000) for first in range(0, end, 9000)]
    assert len(runs) == 2 + 2 * 2


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


@pytest.mark.parametrize("content", ["", "{", '{"format": "magicbyte-diff-2", "segments": {"x": 1}}'])
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
    (tmp_path / "directory").mkdir()
    for cache in (tmp_path / "directory", tmp_path / "pipe"):
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
    assert "there are 2 copies of orders-0" in cli.error
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
