"""convert and recover: every record is kept, sidecars are Kafka's, and a killed job leaves nothing."""

from __future__ import annotations

import hashlib
import json
import os
import random
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import forked
import magicbyte
import pytest
from conftest import KAFKA, PARTITIONS
from magicbyte.cli import app
from magicbyte.errors import RefusedError
from magicbyte.jobs.recover import recover
from magicbyte.jobs.rewrite import RewriteReport, rewrite
from magicbyte.jobs.run.engines import LocalEngine
from magicbyte.options.rewrite import ConvertOptions, RecoverOptions

LOG = "00000000000000000000.log"
Row = tuple[int, int, int, bytes | None, bytes | None, list[tuple[bytes, bytes | None]]]


def rows(path: Path, isolation_level: str = "read_uncommitted") -> list[Row]:
    """Every data record of a partition."""
    log = magicbyte.PartitionLog(path, mode="PERMISSIVE")
    return [
        (r.offset, r.timestamp, r.timestamp_type, r.key_bytes, r.value_bytes, r.headers_raw)
        for r in log.records(isolation_level=isolation_level)  # type: ignore[arg-type]
    ]


def tree(path: Path) -> dict[str, str]:
    """Every file below a directory, with the digest of its bytes."""
    return {
        str(file.relative_to(path)): hashlib.sha256(file.read_bytes()).hexdigest()
        for file in sorted(path.rglob("*"))
        if file.is_file() and file.name != "reconciliation.json"
    }


def convert(source: Path, out: Path, **options: object) -> RewriteReport:
    """Runs the job in threads."""
    return rewrite([str(source)], str(out), LocalEngine(2), ConvertOptions(**{"magic": None, **options}))  # type: ignore[arg-type]


def copied(name: str, directory: Path) -> Path:
    """A private copy of a partition."""
    target = directory / name
    shutil.copytree(KAFKA / name, target)
    for file in target.iterdir():
        file.chmod(0o644)
    return target


@pytest.mark.parametrize("name", PARTITIONS)
def test_every_record_stays(name: str, tmp_path: Path) -> None:
    before = tree(KAFKA / name)
    report = convert(KAFKA / name, tmp_path / "out", magic=2)
    assert report["balanced"]
    assert tree(KAFKA / name) == before, "the source should be unchanged"
    out = tmp_path / "out" / f"{name}-0"
    if not out.exists():
        assert rows(KAFKA / name) == []
        return
    assert all(batch.magic == 2 for batch in magicbyte.PartitionLog(out).batches())
    # Magic 0 has no timestamp type; its records become CreateTime without a timestamp.
    expected = [(*row[:2], max(row[2], 0), *row[3:]) for row in rows(KAFKA / name)]
    assert rows(out) == expected
    assert len(rows(out, "read_committed")) == len(rows(KAFKA / name, "read_committed"))
    assert report["written"][0]["records"] == report["total"]["announced"]
    assert magicbyte.PartitionLog(out).verify().balanced


@pytest.mark.parametrize("codec", [0, 1, 2, 3, 4])
@pytest.mark.parametrize("name", ["v1_gzip", "v2_txn", "v2_mixed_codecs", "mixed_012", "v2_headers"])
def test_another_codec_and_packed(name: str, codec: int, tmp_path: Path) -> None:
    report = convert(
        KAFKA / name, tmp_path / "out", magic=2, compression=codec, rebatch=True, batch_bytes=1 << 16
    )
    assert report["balanced"]
    out = tmp_path / "out" / f"{name}-0"
    assert {row[:2] + row[3:] for row in map(_hashable, rows(out))} == {
        row[:2] + row[3:] for row in map(_hashable, rows(KAFKA / name))
    }
    log = magicbyte.PartitionLog(out)
    codecs = {batch.compression for batch in log.batches() if batch.record_count and not batch.is_control}
    assert codecs <= {codec}


def _hashable(row: Row) -> tuple[object, ...]:
    return (*row[:5], tuple(row[5]))


def test_packing_makes_fewer_batches(tmp_path: Path) -> None:
    plain = convert(KAFKA / "v1_none", tmp_path / "plain", magic=2, compression=4)
    packed = convert(
        KAFKA / "v1_none", tmp_path / "packed", magic=2, compression=4, rebatch=True, batch_bytes=1 << 20
    )
    assert packed["written"][0]["batches"] < plain["written"][0]["batches"]
    assert packed["written"][0]["size"] < plain["written"][0]["size"]
    assert rows(tmp_path / "packed/v1_none-0") == rows(tmp_path / "plain/v1_none-0")


def test_down_conversion_counts_what_is_lost(tmp_path: Path) -> None:
    report = convert(KAFKA / "v2_headers", tmp_path / "out", magic=1, compression=1)
    assert report["balanced"]
    lost = report["written"][0]["losses"]
    assert lost["headers"] == sum(len(row[5]) for row in rows(KAFKA / "v2_headers"))
    out = rows(tmp_path / "out/v2_headers-0")
    assert [(*row[:5], []) for row in rows(KAFKA / "v2_headers")] == out


def test_small_segments_and_any_engine_give_the_same_bytes(tmp_path: Path) -> None:
    source = KAFKA / "v2_txn"
    options = ConvertOptions(magic=2, segment_bytes=2000)
    rewrite([str(source)], str(tmp_path / "one"), LocalEngine(1), options)
    report = rewrite([str(source)], str(tmp_path / "four"), LocalEngine(4), options)
    assert report["written"][0]["segments"] > 3
    assert tree(tmp_path / "one") == tree(tmp_path / "four")
    assert rows(tmp_path / "one/v2_txn-0", "read_committed") == rows(source, "read_committed")


def test_a_topic_id_is_written_if_known(tmp_path: Path) -> None:
    topic_id = "AAAAAAAAAAAAAAAAAAAAAQ"
    convert(KAFKA / "v2_none", tmp_path / "with", topic_ids={"v2_none": topic_id})
    metadata = (tmp_path / "with/v2_none-0/partition.metadata").read_text()
    assert metadata == f"version: 0\ntopic_id: {topic_id}"
    convert(KAFKA / "v1_none", tmp_path / "without")
    assert not (tmp_path / "without/v1_none-0/partition.metadata").exists()


def test_nothing_is_written_over(tmp_path: Path) -> None:
    convert(KAFKA / "v2_none", tmp_path / "out")
    before = tree(tmp_path)
    with pytest.raises(RefusedError, match="not empty"):
        convert(KAFKA / "v2_gzip", tmp_path / "out")
    with pytest.raises(RefusedError, match="overlap"):
        convert(tmp_path / "out", tmp_path / "out/below")
    with pytest.raises(magicbyte.Error, match=r"segment\.bytes"):
        convert(KAFKA / "v2_none", tmp_path / "tiny", segment_bytes=100)
    for options in ({"rebatch": True}, {"compression": 4}):
        with pytest.raises(ValueError, match="magic 2"):
            convert(KAFKA / "v2_none", tmp_path / "options", magic=1, **options)
    assert tree(tmp_path) == before
    assert sorted(os.listdir(tmp_path)) == ["out"]


def test_a_full_disk_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_arguments: object, **_options: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("magicbyte._core.finish_partition", full)
    with pytest.raises(OSError, match="No space"):
        convert(KAFKA / "v2_none", tmp_path / "out")
    assert os.listdir(tmp_path) == []


# --- recover ------------------------------------------------------------------------------------


@pytest.fixture
def damaged(tmp_path: Path) -> Path:
    """Three segments; the first has a flipped bit in its second batch, the last a torn tail."""
    source = copied("v2_txn", tmp_path / "in")
    logs = sorted(source.glob("*.log"))
    first = bytearray(logs[0].read_bytes())
    second = list(magicbyte.read_batches(bytes(first)))[1]
    first[second.position + second.size_in_bytes - 1] ^= 1
    logs[0].write_bytes(first)
    logs[-1].write_bytes(logs[-1].read_bytes()[:-5])
    return source


def test_recover_keeps_what_is_good(damaged: Path, tmp_path: Path) -> None:
    report = recover([str(damaged)], str(tmp_path / "out"), LocalEngine(2), RecoverOptions())
    assert report["balanced"]
    assert report["total"]["quarantined_bytes"] > 0
    assert rows(tmp_path / "out/v2_txn-0") == rows(damaged)
    original = {batch.to_bytes() for batch in magicbyte.PartitionLog(damaged, mode="PERMISSIVE").batches()}
    assert {b.to_bytes() for b in magicbyte.PartitionLog(tmp_path / "out/v2_txn-0").batches()} == original


def test_recover_truncates_as_a_broker(damaged: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    report = recover([str(damaged)], str(out), LocalEngine(2), RecoverOptions(method="truncate"))
    assert report["balanced"]
    first = next(magicbyte.read_batches(sorted(damaged.glob("*.log"))[0].read_bytes()))
    assert len(list(magicbyte.PartitionLog(out / "v2_txn-0").batches())) == 1
    assert report["total"]["good_bytes"] == first.size_in_bytes
    assert report["total"]["size"] == sum(log.stat().st_size for log in damaged.glob("*.log"))


@pytest.mark.parametrize(
    ("end", "kept"),
    [("torn", [0]), ("zeros", [0]), ("preallocated", [0]), ("all zeros", [0]), ("empty", [0, 20])],
)
def test_recover_truncates_at_the_end_of_a_middle_segment(tmp_path: Path, end: str, kept: list[int]) -> None:
    # As LogLoader.recoverLog does: where a byte is cut, all later segments are deleted.
    segments = {}
    for base in (0, 10, 20):
        batches = []
        for offset in range(base, base + 10):
            builder = magicbyte.RecordsBuilder()
            builder.append(offset, 1000 + offset, b"key", b"value")
            batches.append(builder.build())
        segments[base] = batches
    half = b"".join(segments[10][:5])
    middle = {
        "torn": half + segments[10][5][:-3],
        "zeros": half + bytes(len(half)),
        "preallocated": half + bytes(1 << 20),
        "all zeros": bytes(1000),
        "empty": b"",
    }[end]
    source = tmp_path / "in/topic-0"
    source.mkdir(parents=True)
    for base, batches in segments.items():
        data = middle if base == 10 else b"".join(batches)
        (source / f"{base:020}.log").write_bytes(data)
    report = recover([str(source)], str(tmp_path / "out"), LocalEngine(2), RecoverOptions(method="truncate"))
    assert report["balanced"]
    before = 5 if middle.startswith(half) else 0
    expected = [offset for base in kept for offset in range(base, base + 10)] + [*range(10, 10 + before)]
    assert [row[0] for row in rows(tmp_path / "out/topic-0")] == expected
    size = sum(log.stat().st_size for log in source.glob("*.log"))
    sums = report["total"]
    assert sums["size"] == size == sums["good_bytes"] + sums["quarantined_bytes"] + sums["tail_bytes"]
    left_out = [one for two in report["partitions"][0]["segments"] for one in two["quarantined"]]
    assert {one["reason"] for one in left_out} == (set() if end == "empty" else {"truncated"})


def test_recover_alone_writes_nothing(
    damaged: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = tree(tmp_path)
    assert app.run(["recover", "--engine", "local", str(damaged)]) == 1
    printed = capsys.readouterr().out
    assert "a broker would truncate v2_txn-0 at 00000000000000000000.log byte" in printed
    assert "nothing was written" in printed
    assert tree(tmp_path) == before
    assert app.run(["recover", "--engine", "local", "--json", str(damaged)]) == 1
    assert json.loads(capsys.readouterr().out)["cuts"][0]["topic"] == "v2_txn"


def test_commands(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["--engine", "local", "--compression", "zstd", "--level", "9", "--rebatch"]
    assert app.run(["convert", *arguments, str(KAFKA / "v0_gzip"), str(tmp_path / "out")]) == 0
    printed = capsys.readouterr().out
    assert "v0_gzip-0         1" in printed
    assert app.run(["convert", "--level", "9", str(KAFKA / "v0_gzip"), str(tmp_path / "x")]) == 2
    assert app.run(["convert", "--magic", "1", "--rebatch", str(KAFKA), str(tmp_path / "x")]) == 2
    assert app.run(["convert", *arguments, "--topic-id", "nonsense", str(KAFKA), str(tmp_path / "x")]) == 2
    capsys.readouterr()
    assert app.run(["recover", "--engine", "local", str(KAFKA / "v2_none"), str(tmp_path / "same")]) == 0
    logs = sorted((KAFKA / "v2_none").glob("*.log"))
    assert (tmp_path / "same/v2_none-0" / LOG).read_bytes() == b"".join(log.read_bytes() for log in logs)


# --- a job that is killed -----------------------------------------------------------------------


def killed_runs(source: Path, out: Path, attempts: int) -> Iterator[None]:
    """Starts the conversion again and again, and kills it after some time."""
    command = ["convert", "--engine", "local", "--compression", "zstd", "--segment-bytes", "128k"]
    chance = random.Random(7)
    for _ in range(attempts):
        job = forked.start_command([*command, source, out])
        time.sleep(chance.uniform(0, 0.4))
        job.kill()
        job.join()
        yield


def test_a_killed_job_started_again_gives_the_same_bytes(tmp_path: Path) -> None:
    source = tmp_path / "in"
    for name in ("v1_lz4_large", "v0_lz4_large", "v2_large_batches", "v2_txn", "v1_gzip"):
        copied(name, source)
    options = ConvertOptions(magic=2, compression=4, segment_bytes=128 << 10)
    rewrite([str(source)], str(tmp_path / "whole"), LocalEngine(2), options)
    expected = tree(tmp_path / "whole")
    out = tmp_path / "out"
    unfinished = 0
    for _ in killed_runs(source, out, 16):
        if out.exists():
            # It was complete before the kill, or there was no output.
            assert tree(out) == expected
            shutil.rmtree(out)
        else:
            unfinished += 1
    assert unfinished > 0
    rewrite([str(source)], str(out), LocalEngine(2), options)
    assert tree(out) == expected
    assert sorted(os.listdir(tmp_path)) == ["in", "out", "whole"]
