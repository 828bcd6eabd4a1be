"""compact and redact: what is kept, what is dropped, and that a killed or refused job leaves nothing."""

from __future__ import annotations

import doctest
import hashlib
import importlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import magicbyte
import pytest
from conftest import KAFKA, Cli
from magicbyte import RecordsBuilder, _core
from magicbyte.conversion import set_partition_leader_epoch
from magicbyte.errors import RefusedError
from magicbyte.jobs.clean import CleanReport
from magicbyte.jobs.compact import compact_partitions
from magicbyte.jobs.redact import redact_partitions
from magicbyte.jobs.run.engines import LocalEngine, SparkEngine
from magicbyte.options.compact import DAY_MS, CompactOptions
from magicbyte.options.redact import RedactOptions

NOW = 1_800_000_000_000
COMPACTED = [
    "consumer_offsets_0",
    "mixed_012",
    "schemas_topic",
    "transaction_state_0",
    "v0_compacted_codecs",
    "v1_compacted_codecs",
    "v2_compacted",
    "v2_compacted_txn",
    "v2_tombstones",
    "v2_txn",
]


def tree(path: Path) -> dict[str, str]:
    """Every file below a directory, with the digest of its bytes."""
    return {
        str(file.relative_to(path)): hashlib.sha256(file.read_bytes()).hexdigest()
        for file in sorted(path.rglob("*"))
        if file.is_file() and file.name != "reconciliation.json"
    }


def compacted(source: Path, out: Path, engine: Any = None, **options: Any) -> CleanReport:
    asked = CompactOptions(**{"now": NOW, "all": True, **options})
    return compact_partitions([str(source)], str(out), engine or LocalEngine(2), asked)


def redacted(source: Path, out: Path, engine: Any = None, **options: Any) -> CleanReport:
    return redact_partitions([str(source)], str(out), engine or LocalEngine(2), RedactOptions(**options))


def records(path: Path, isolation: Any = "read_committed") -> list[magicbyte.Record]:
    return list(magicbyte.PartitionLog(path).records(isolation_level=isolation))


def written(directory: Path, *segments: bytes) -> Path:
    """A partition of these segments; each is named by its first offset."""
    directory.mkdir(parents=True)
    for data in segments:
        first = next(iter(magicbyte.read_batches(data)))
        (directory / f"{first.base_offset:020}.log").write_bytes(data)
    return directory


def keyed(offset: int, *pairs: tuple[bytes | None, bytes | None], **options: Any) -> bytes:
    builder = RecordsBuilder(options.pop("magic", 2), options.pop("compression", 0), **options)
    for number, (key, value) in enumerate(pairs):
        builder.append(offset + number, NOW - DAY_MS + number, key, value)
    return builder.build()


# --- compact ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", COMPACTED)
def test_the_last_value_of_each_key_stays(name: str, tmp_path: Path) -> None:
    source = KAFKA / name
    report = compacted(source, tmp_path / "out")
    out = next(path for path in (tmp_path / "out").iterdir() if path.is_dir())
    assert report["balanced"]
    assert report["problems"] == []
    until = report["written"][0]["clean_until"]
    last: dict[bytes, bytes | None] = {}
    for record in records(source, "read_committed"):
        if record.key_bytes is not None:
            last[record.key_bytes] = record.value_bytes
    kept: dict[bytes, bytes | None] = {}
    for record in records(out):
        assert record.key_bytes is not None or record.offset >= until
        if record.key_bytes is not None:
            assert record.offset >= until or record.key_bytes not in kept
            kept[record.key_bytes] = record.value_bytes
    # An expired tombstone counts as absent.
    assert {k: v for k, v in kept.items() if v is not None} == {
        k: v for k, v in last.items() if v is not None
    }
    assert kept.keys() <= last.keys()
    before, after = magicbyte.PartitionLog(source), magicbyte.PartitionLog(out)
    assert max(b.last_offset for b in before.batches()) == max(b.last_offset for b in after.batches())


@pytest.mark.parametrize("name", ["v2_compacted_txn", "v2_tombstones", "mixed_012"])
def test_compacting_again_at_the_same_time_changes_nothing(name: str, tmp_path: Path) -> None:
    compacted(KAFKA / name, tmp_path / "one")
    # As with Kafka's cleaner, the second round sets the horizon of markers left without data.
    compacted(tmp_path / "one", tmp_path / "two")
    compacted(tmp_path / "two", tmp_path / "three")
    assert tree(tmp_path / "two") == tree(tmp_path / "three")


def test_any_engine_and_any_memory_give_the_same_bytes(tmp_path: Path) -> None:
    rng = random.Random(3)
    segments = []
    for base in range(0, 40_000, 10_000):
        pairs = [(b"%d" % rng.randrange(30_000) * rng.randrange(1, 9), b"v%d" % n) for n in range(10_000)]
        segments.append(b"".join(keyed(base + at, *pairs[at : at + 500]) for at in range(0, 10_000, 500)))
    source = written(tmp_path / "in" / "t-0", *segments)
    one = compacted(source, tmp_path / "one", LocalEngine(1), memory_bytes=1 << 30)
    # Each map has only one MiB: keys spill to files, and those are split again.
    compacted(source, tmp_path / "four", LocalEngine(4), memory_bytes=1)
    assert tree(tmp_path / "one") == tree(tmp_path / "four")
    last = {r.key_bytes: r.offset for r in records(source)}
    assert [r.offset for r in records(tmp_path / "one" / "t-0")] == sorted(last.values())
    assert one["counts"]["kept"] == len(last)
    assert one["counts"]["superseded"] == 40_000 - len(last)


@pytest.mark.spark
def test_on_spark(tmp_path: Path, spark: Any) -> None:
    source = tmp_path / "in"
    for name in ("v2_compacted_txn", "mixed_012", "v2_tombstones"):
        shutil.copytree(KAFKA / name, source / name)
    compacted(source, tmp_path / "local")
    compacted(source, tmp_path / "spark", SparkEngine(spark))
    assert tree(tmp_path / "local") == tree(tmp_path / "spark")
    redacted(source, tmp_path / "local-r", where="offset % 3 = 0")
    redacted(source, tmp_path / "spark-r", SparkEngine(spark), where="offset % 3 = 0")
    assert tree(tmp_path / "local-r") == tree(tmp_path / "spark-r")


@pytest.mark.spark
def test_fail_fast_on_spark(tmp_path: Path, spark: Any) -> None:
    bad = bytearray(keyed(0, (b"a", b"1")))
    bad[-1] ^= 1
    source = written(tmp_path / "in" / "t-0", bytes(bad), keyed(1, (b"a", b"2")))
    with pytest.raises(magicbyte.CorruptRecordError) as raised:
        magicbyte.compact(source, tmp_path / "out", all=True, mode="FAILFAST", engine=SparkEngine(spark))
    assert raised.value.position == 0
    assert os.listdir(tmp_path) == ["in"]


def test_the_last_segment_stays_unless_asked(tmp_path: Path) -> None:
    a, b = (b"k", b"1"), (b"k", b"2")
    source = written(tmp_path / "in" / "t-0", keyed(0, a, b), keyed(2, a, b))
    report = compacted(source, tmp_path / "broker", all=False)
    assert report["written"][0]["clean_until"] == 2
    assert [r.offset for r in records(tmp_path / "broker" / "t-0")] == [1, 2, 3]
    assert (tmp_path / "broker" / "cleaner-offset-checkpoint").read_text() == "0\n1\nt 0 2\n"
    compacted(source, tmp_path / "all")
    assert [r.offset for r in records(tmp_path / "all" / "t-0")] == [3]
    compacted(source, tmp_path / "until", until_offset=1)
    assert [r.offset for r in records(tmp_path / "until" / "t-0")] == [0, 1, 2, 3]


def test_tombstones_and_records_without_key(tmp_path: Path) -> None:
    source = written(
        tmp_path / "in" / "t-0",
        keyed(0, (b"a", b"1"), (b"b", b"1"), (None, b"x"), (b"a", None), (b"c", b"1")),
    )
    report = compacted(source, tmp_path / "one", delete_retention_ms=1000, all_topics=True)
    assert report["counts"]["keyless"] == 1
    (batch,) = magicbyte.PartitionLog(tmp_path / "one" / "t-0").batches()
    assert [r.offset for r in batch] == [1, 3, 4]
    assert batch.delete_horizon_ms == NOW + 1000
    later = compacted(tmp_path / "one", tmp_path / "two", now=NOW + 1000)
    assert later["counts"]["expired_tombstones"] == 1
    assert [r.offset for r in records(tmp_path / "two" / "t-0")] == [1, 4]


def test_a_larger_record_is_refused(tmp_path: Path) -> None:
    """`max.decompressed.message.bytes`: of the topic or the call, in any mode, for compressed batches."""
    pairs = [(b"a", b"v" * 500), (b"a", b"w" * 500)]
    source = written(tmp_path / "t-0", keyed(0, *pairs, compression=1), keyed(2, *pairs))
    configs = tmp_path / "configs.json"
    configs.write_text('{"t": {"max.decompressed.message.bytes": 400}}')
    for number, options in enumerate(({"topic_config": configs}, {"max_decompressed_message_bytes": 400})):
        for mode in ("PERMISSIVE", "FAILFAST"):
            out = tmp_path / f"{number}{mode}"
            with pytest.raises(magicbyte.Error, match=r"record size 5\d\d is over max\.decompressed.*400"):
                compacted(source, out, all_topics=True, mode=mode, **options)
            assert not out.exists()
    # The call counts more than the topic.
    compacted(
        source, tmp_path / "out", all_topics=True, topic_config=configs, max_decompressed_message_bytes=600
    )
    assert [record.offset for record in records(tmp_path / "out" / "t-0")] == [3]
    plain = written(tmp_path / "p" / "t-0", keyed(0, *pairs))
    compacted(plain, tmp_path / "plain", all_topics=True, topic_config=configs)


def test_old_tombstones_go_by_the_checkpoint(tmp_path: Path, cli: Cli) -> None:
    old = keyed(0, (b"a", None), (b"b", b"1"), magic=1)
    source = written(tmp_path / "in" / "t-0", old, keyed(2, (b"c", b"1")), keyed(3, (b"d", b"1")))
    for log, modified in zip(sorted(source.glob("*.log")), (NOW - 3 * DAY_MS, NOW, NOW), strict=True):
        os.utime(log, (modified / 1000, modified / 1000))
    checkpoint = tmp_path / "cleaner-offset-checkpoint"
    checkpoint.write_text("0\n1\nt 0 3\n")
    options = ["--engine", "local", "--all", "--now", NOW]
    cli("compact", *options, "--checkpoint", checkpoint, source, tmp_path / "with")
    cli("compact", *options, source, tmp_path / "without")
    assert [r.offset for r in records(tmp_path / "with" / "t-0")] == [1, 2, 3]
    assert [r.offset for r in records(tmp_path / "without" / "t-0")] == [0, 1, 2, 3]
    checkpoint.write_text("0\n2\nt 0 3\n")
    cli("compact", *options, "--checkpoint", checkpoint, source, tmp_path / "bad", code=2)
    assert not (tmp_path / "bad").exists()


def test_a_key_of_10_mb_and_one_like_it(tmp_path: Path) -> None:
    key = b"k" * (10 << 20)
    source = written(
        tmp_path / "in" / "t-0", keyed(0, (key, b"1"), (key + b"x", b"1")), keyed(2, (key, b"2"))
    )
    compacted(source, tmp_path / "out", memory_bytes=1)
    assert [(r.offset, r.value_bytes) for r in records(tmp_path / "out" / "t-0")] == [(1, b"1"), (2, b"2")]


def test_damage_is_quarantined_and_ignored(tmp_path: Path, cli: Cli) -> None:
    good, bad = keyed(0, (b"a", b"old"), (b"b", b"1")), bytearray(keyed(2, (b"a", b"new")))
    bad[-1] ^= 1
    source = written(tmp_path / "in" / "t-0", good + bytes(bad) + keyed(3, (b"c", b"1")))
    before = tree(source)
    report = cli.json("compact", "--engine", "local", "--all", source, tmp_path / "out", code=1)
    assert report["balanced"]
    assert [problem["kind"] for problem in report["problems"]] == ["crc_mismatch"]
    # The replacement is unreadable, so the old value is the last known one.
    found = records(tmp_path / "out" / "t-0")
    assert (found[0].offset, found[0].value_bytes) == (0, b"old")
    assert tree(source) == before


@pytest.mark.parametrize("command", ["compact", "redact"])
def test_modes(command: str, tmp_path: Path, cli: Cli) -> None:
    """FAILFAST raises the first bad batch's error and publishes nothing; PERMISSIVE counts it."""
    first, second = bytearray(keyed(1, (b"a", b"new"))), bytearray(keyed(3, (b"b", b"1")))
    first[-1] ^= 1
    second[16] = 7
    good = keyed(0, (b"a", b"old"))
    data = good + first + keyed(2, (b"c", b"1")) + second + keyed(4, (b"d", b"1"))
    source = written(tmp_path / "in" / "t-0", data)
    out, options = tmp_path / "out", ("--all",) if command == "compact" else ("--key", "c")
    run = getattr(magicbyte, command)
    selected: dict[str, Any] = {"all": True} if command == "compact" else {"keys": [b"c"]}
    with pytest.raises(magicbyte.CorruptRecordError, match=r"0{20}\.log.*CRC") as raised:
        run(source, out, mode="FAILFAST", **selected)
    assert (raised.value.kind, raised.value.position) == ("crc_mismatch", len(good))
    assert "CRC" in fails(cli, command, "--mode", "failfast", *options, source, out, code=3)
    assert sorted(os.listdir(tmp_path)) == ["in"]
    with pytest.raises(ValueError, match="mode: 'keep' is not one of PERMISSIVE, FAILFAST"):
        run(source, out, mode="keep", **selected)
    report = run(source, out, **selected)
    assert report["balanced"]
    assert [problem["kind"] for problem in report["problems"]] == ["crc_mismatch", "unsupported_magic"]
    again = cli.json(
        command, "--engine", "local", "--mode", "permissive", *options, source, tmp_path / "2", code=1
    )
    assert again["partitions"] == report["partitions"]
    assert tree(tmp_path / "2") == tree(out)


def test_fail_fast_without_damage_and_at_batches_that_cannot_be_rewritten(tmp_path: Path) -> None:
    source = written(tmp_path / "in" / "t-0", keyed(0, (b"a", b"1")))
    assert magicbyte.compact(source, tmp_path / "out", all=True, mode="FAILFAST")["balanced"]
    source = written(tmp_path / "unordered" / "t-0", unordered() + keyed(3, (b"a", b"2")))
    with pytest.raises(magicbyte.InvalidRecordError, match="offsets do not rise"):
        magicbyte.compact(source, tmp_path / "none", all=True, mode="FAILFAST")
    with pytest.raises(magicbyte.InvalidRecordError):
        magicbyte.redact(source, tmp_path / "none", keys=[b"x"], mode="FAILFAST")
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize("job", ["compact", "redact"])
def test_the_examples_of_the_api(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, job: str) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    found = doctest.testmod(importlib.import_module(f"magicbyte.jobs.{job}"))
    assert (found.failed, found.attempted > 8) == (0, True)


def unordered() -> bytes:
    """Offsets 0, 0 and 2."""
    batch = bytearray(keyed(0, (b"a", b"1"), (b"b", b"1"), (b"x", b"1")))
    # The second record's offset delta becomes 0.
    at = 61 + 1 + batch[61] // 2 + 1 + 2
    assert batch[at] == 2
    batch[at] = 0
    batch[17:21] = magicbyte.crc32c(bytes(batch[21:])).to_bytes(4, "big")
    return bytes(batch)


def test_offsets_that_do_not_rise_are_copied_and_reported(tmp_path: Path) -> None:
    """Kafka's cleaner stops for good at such a batch if it has to drop one of its records."""
    source = written(tmp_path / "in" / "t-0", unordered() + keyed(3, (b"a", b"2")))
    report = compacted(source, tmp_path / "out")
    assert report["balanced"]
    assert [problem["kind"] for problem in report["problems"]] == ["invalid_record"]
    assert [r.value_bytes for r in records(tmp_path / "out" / "t-0")] == [b"1", b"1", b"1", b"2"]


def test_a_wrapper_that_hides_earlier_offsets_is_copied_and_reported(tmp_path: Path) -> None:
    """Inner offsets in magic 0 are absolute, and only the last one is in the wrapper."""
    wrapper = keyed(1, (b"b", b"1"), (b"x", b"2"), (b"b", b"3"), magic=0, compression=2)
    source = written(
        tmp_path / "in" / "t-0", keyed(0, (b"a", b"1"), (b"a", b"2")) + wrapper + keyed(4, (b"b", b"4"))
    )
    report = compacted(source, tmp_path / "out")
    assert report["balanced"]
    assert [(one["kind"], one["start"]) for one in report["problems"]] == [("invalid_record", 79)]
    found = magicbyte.PartitionLog(tmp_path / "out" / "t-0", mode="PERMISSIVE").batches()
    assert [(batch.magic, batch.last_offset) for batch in found] == [(2, 1), (0, 3), (2, 4)]
    # Redaction would have to rewrite it, which is impossible.
    report = redacted(source, tmp_path / "redacted", keys=frozenset([b"x"]))
    assert report["balanced"]
    assert [one["kind"] for one in report["problems"]] == ["offset_out_of_order"]


def test_negative_offsets_are_quarantined(tmp_path: Path) -> None:
    """No segment can be named by them."""
    source = tmp_path / "in" / "t-0"
    source.mkdir(parents=True)
    negative = bytearray(keyed(0, (b"a", b"1")))
    negative[0] = 0x80
    (source / f"{0:020}.log").write_bytes(negative + keyed(5, (b"b", b"1")))
    (source / f"{7:020}.log").write_bytes(keyed(7, (b"c", b"1")))
    for out, report in (
        ("compacted", compacted(source, tmp_path / "compacted")),
        ("redacted", redacted(source, tmp_path / "redacted", keys=frozenset([b"b"]))),
    ):
        assert report["balanced"]
        assert [one["kind"] for one in report["problems"]] == ["missing_segment", "offset_out_of_order"]
        assert records(tmp_path / out / "t-0")[-1].offset == 7


def test_a_refused_job_leaves_nothing(tmp_path: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "file").touch()
    source = KAFKA / "v2_compacted"
    assert "not empty" in fails(cli, "compact", source, tmp_path / "there", code=2)
    assert "nothing is selected" in fails(cli, "redact", source, tmp_path / "out", code=2)
    assert "syntax" in fails(cli, "redact", "--where", "offset = = 1", source, tmp_path / "out", code=2)
    assert "a key is not valid hex" in fails(
        cli, "redact", "--key", "zz", "--key-format", "hex", source, tmp_path / "out", code=2
    )

    def full(*_arguments: object, **_options: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("magicbyte._core.finish_partition", full)
    assert "No space" in fails(cli, "compact", source, tmp_path / "out", code=3)
    assert sorted(os.listdir(tmp_path)) == ["there"]


def fails(cli: Cli, command: str, *arguments: object, code: int) -> str:
    cli(command, "--engine", "local", *arguments, code=code)
    return cli.error


def test_a_killed_job_started_again_gives_the_same_bytes(tmp_path: Path) -> None:
    source = tmp_path / "in"
    for name in ("v2_compacted_txn", "v0_compacted_codecs", "v2_large_batches", "v2_tombstones"):
        shutil.copytree(KAFKA / name, source / name)
    compacted(source, tmp_path / "whole")
    expected = tree(tmp_path / "whole")
    out = tmp_path / "out"
    command = [sys.executable, "-m", "magicbyte", "compact", "--engine", "local", "--all", "--now", str(NOW)]
    chance = random.Random(7)
    unfinished = 0
    for _ in range(12):
        job = subprocess.Popen([*command, str(source), str(out)], stdout=subprocess.DEVNULL)
        time.sleep(chance.uniform(0.1, 0.5))
        job.send_signal(signal.SIGKILL)
        job.wait()
        if out.exists():
            assert tree(out) == expected
            shutil.rmtree(out)
        else:
            unfinished += 1
    assert unfinished > 0
    subprocess.run([*command, str(source), str(out)], stdout=subprocess.DEVNULL, check=True)
    assert tree(out) == expected
    assert sorted(os.listdir(tmp_path)) == ["in", "out", "whole"]


# --- redact -------------------------------------------------------------------------------------

SECRET = b"bob-4711-secret"


def everything(directory: Path) -> bytes:
    """All bytes of all files, and of everything in them that can be decompressed."""
    found = b""
    for file in sorted(directory.rglob("*")):
        if not file.is_file():
            continue
        data = file.read_bytes()
        found += data
        if file.suffix == ".log":
            for batch in magicbyte.read_batches(data):
                found += b"".join((r.key_bytes or b"") + (r.value_bytes or b"") for r in batch)
                found += b"".join(k + (v or b"") for r in batch for k, v in r.headers_raw)
    return found


def secretive(directory: Path) -> Path:
    """Every magic and codec, an aborted transaction, and a secret record in each batch."""
    data, offset = b"", 0
    for magic, codecs in ((0, (0, 1, 2, 3)), (1, (0, 1, 2, 3)), (2, (0, 1, 2, 3, 4))):
        for codec in codecs:
            pairs = [(b"key-%d" % n, b"value") for n in range(5)]
            pairs[2] = (SECRET, SECRET)
            data += keyed(offset, *pairs, magic=magic, compression=codec)
            offset += 10
    producer = {"producer_id": 7, "producer_epoch": 1, "base_sequence": 0, "is_transactional": True}
    data += keyed(offset, (SECRET, SECRET), (b"other", b"1"), **producer)
    marker = RecordsBuilder(2, 0, **{**producer, "base_sequence": -1}, is_control=True)
    marker.append(offset + 2, NOW, b"\0\0\0\0", b"\0\0\0\0\0\0")
    data += marker.build()
    data += keyed(offset + 3, (b"quiet", b"1"), (b"quiet", b"2"))
    data += keyed(offset + 5, (SECRET, b"1"), compression=4, producer_id=8, producer_epoch=0, base_sequence=0)
    return written(directory / "t-0", data)


@pytest.mark.parametrize("way", ["--key", "--where"])
def test_redacted_bytes_are_nowhere(way: str, tmp_path: Path, cli: Cli) -> None:
    source = secretive(tmp_path / "in")
    assert SECRET in everything(source)
    asked = SECRET.decode() if way == "--key" else f"key = '{SECRET.decode()}'"
    report = cli.json("redact", "--engine", "local", way, asked, source, tmp_path / "out")
    assert report["balanced"]
    assert SECRET not in everything(tmp_path / "out")
    assert report["counts"]["redacted"] == 15
    (found,) = report["written"][0]["redacted"]
    assert found["records"] == 15
    assert found["ranges"][:3] == [[2, 2], [12, 12], [22, 22]]
    before = [r for r in records(source, "read_uncommitted") if r.key_bytes != SECRET]
    after = records(tmp_path / "out" / "t-0", "read_uncommitted")
    assert [(r.offset, r.key_bytes, r.value_bytes) for r in after] == [
        (r.offset, r.key_bytes, r.value_bytes) for r in before
    ]
    # Batches without such a record are copied byte for byte, but get a leader epoch if they have none;
    # producer 8's last sequence is kept.
    batches = list(magicbyte.PartitionLog(tmp_path / "out" / "t-0").batches())
    quiet = set_partition_leader_epoch(keyed(133, (b"quiet", b"1"), (b"quiet", b"2")), 0)
    assert quiet in {b.to_bytes() for b in batches}
    assert (batches[-1].record_count, batches[-1].producer_id, batches[-1].last_sequence) == (0, 8, 0)
    snapshot = max((tmp_path / "out" / "t-0").glob("*.snapshot")).read_bytes()
    entries = _core.producer_snapshot(snapshot)
    assert {entry.producer_id for entry in entries} == {7, 8}


def test_redacted_to_tombstones(tmp_path: Path) -> None:
    source = written(tmp_path / "in" / "t-0", keyed(0, (b"a", SECRET), (b"b", b"1"), compression=4))
    report = redacted(source, tmp_path / "out", where=f"value = '{SECRET.decode()}'", tombstones=True)
    assert SECRET not in everything(tmp_path / "out")
    assert (report["counts"]["nulled"], report["counts"]["kept"]) == (1, 2)
    found = records(tmp_path / "out" / "t-0")
    assert [(r.offset, r.key_bytes, r.value_bytes) for r in found] == [(0, b"a", None), (1, b"b", b"1")]


def test_nothing_hides_after_a_batch_without_records(tmp_path: Path) -> None:
    """Readers ignore these bytes, but a copy would keep them."""
    hidden = bytearray(keyed(0, (b"a", SECRET)))
    hidden[57:61] = bytes(4)
    hidden[17:21] = magicbyte.crc32c(bytes(hidden[21:])).to_bytes(4, "big")
    source = written(tmp_path / "in" / "t-0", bytes(hidden) + keyed(1, (b"b", b"1")))
    redacted(source, tmp_path / "out", keys=frozenset([b"x"]))
    assert SECRET not in everything(tmp_path / "out")


def test_a_batch_that_cannot_be_rewritten_is_dropped(tmp_path: Path) -> None:
    source = written(tmp_path / "in" / "t-0", unordered() + keyed(3, (b"c", b"2")))
    report = redacted(source, tmp_path / "out", keys=frozenset([b"x"]))
    assert report["balanced"]
    assert report["total"]["quarantined_bytes"] == len(unordered())
    assert [r.key_bytes for r in records(tmp_path / "out" / "t-0")] == [b"c"]
    report = redacted(source, tmp_path / "other", keys=frozenset([b"c"]))
    assert [r.key_bytes for r in records(tmp_path / "other" / "t-0")] == [b"a", b"b", b"x"]


EXPRESSIONS = {
    "offset = 3": [3],
    "key = 'text'": [0],
    "keyBytes = X'FF00'": [1],
    "key IS NULL": [2],
    "value LIKE '%bob%'": [0],
    "value LIKE '%BOB%'": [],
    "value ILIKE '%BOB%'": [0],
    "TRY(value ->> '$.user.id') = '4711'": [2],
    "header(headers, 'tenant') = 'y'": [3],
    "headers::VARCHAR LIKE '%tenant%'": [3],
    "timestampMillis = -1": [3],
    "timestamp IS NULL": [3],
    "offset IN (0, 2) -- both": [0, 2],
    "value GLOB '*[A]lice*'": [4],
    "value LIKE '%50!%%' ESCAPE '!'": [4],
    "value NOT LIKE '%o%'": [1],
    "key = 'k' AND TRY(substring(value, 6) ->> '$.name') = 'Alice 50%'": [4],
    "NULL": [],
}


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_expressions(expression: str, tmp_path: Path) -> None:
    builder = RecordsBuilder(2)
    builder.append(0, NOW, b"text", b"from bob@example.com")
    builder.append(1, NOW, b"\xff\x00", b"\xff")
    builder.append(2, NOW, None, b'{"user": {"id": 4711}, "o": 1}')
    builder.append(3, -1, b"k", None, [("tenant", b"x"), ("tenant", b"y"), ("odd", b"\xff"), ("none", None)])
    # After the schema's id.
    builder.append(4, NOW, b"k", b'\0\0\0\0\1{"name": "Alice 50%", "to": "x"}')
    source = written(tmp_path / "in" / "t-0", builder.build())
    redacted(source, tmp_path / "out", where=expression)
    kept = {r.offset for r in records(tmp_path / "out" / "t-0")}
    assert sorted({0, 1, 2, 3, 4} - kept) == EXPRESSIONS[expression]


def test_an_expression_that_is_refused_leaves_no_output(tmp_path: Path) -> None:
    source = written(tmp_path / "in" / "t-0", keyed(0, (b"a", b"1")))
    with pytest.raises(RefusedError, match="where: a subquery is not allowed"):
        redacted(source, tmp_path / "out", where="1 IN (SELECT 1)")
    assert not (tmp_path / "out").exists()


def test_keys_from_a_file(tmp_path: Path, cli: Cli) -> None:
    source = written(tmp_path / "in" / "t-0", keyed(0, (b"a", b"1"), (b"\xff", b"1"), (b"c", b"1")))
    keys = tmp_path / "keys"
    keys.write_text("YQ==\n/w==\n")
    printed = cli(
        "redact", "--engine", "local", "--key-file", keys, "--key-format", "base64", source, tmp_path / "out"
    )
    assert "00000000000000000000.log redacted: 2 records, offsets 0-1" in printed
    assert [r.key_bytes for r in records(tmp_path / "out" / "t-0")] == [b"c"]
    report = json.loads((tmp_path / "out" / "reconciliation.json").read_text())
    assert report["options"] == {"keys": 2, "where": False, "offsets": 0, "tombstones": False}


def test_redaction_keeps_transactions(tmp_path: Path) -> None:
    source = KAFKA / "v2_txn"
    redacted(source, tmp_path / "out", where="offset % 2 = 0")
    for isolation in ("read_committed", "read_uncommitted"):
        kept = [r.offset for r in records(source, isolation) if r.offset % 2]
        assert [r.offset for r in records(tmp_path / "out" / "v2_txn-0", isolation)] == kept
