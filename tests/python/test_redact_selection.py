"""Which records redact selects: key files as editors write them, keys without a record, records by position,
and expressions that fail."""

from __future__ import annotations

import json
import pickle
import random
from pathlib import Path

import duckdb
import magicbyte
import pytest
from conftest import Cli
from magicbyte import RecordsBuilder, _core
from magicbyte.errors import JobError
from magicbyte.expressions import record_filter
from magicbyte.jobs import redact as job
from magicbyte.jobs.redact import redact_partitions
from magicbyte.jobs.run.engines import LocalEngine
from magicbyte.options.redact import RedactOptions
from wire import batch, record

NOW = 1_700_000_000_000
KEYS = [b"user-1", b"user-2", b"", b"user-3 ", b"m\xc3\xbcller"]


def partition(directory: Path, *data: bytes) -> Path:
    for number, one in enumerate(data):
        path = directory / "t-0" / f"{number * 1000:020}.log"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(one)
    return directory


def users(base: int = 0) -> bytes:
    builder = RecordsBuilder(2, 0)
    for offset, key in enumerate(KEYS):
        builder.append(base + offset, NOW, key, b"v")
    return builder.build()


def left(out: Path) -> list[bytes | None]:
    return [r.key_bytes for r in magicbyte.PartitionLog(out / "t-0").records()]


# --- key files ----------------------------------------------------------------------------------

BOM = b"\xef\xbb\xbf"


@pytest.mark.parametrize(
    ("content", "taken", "message"),
    [
        (b"user-1\nuser-2\n", {b"user-1", b"user-2"}, ""),
        (b"user-1\nuser-2", {b"user-1", b"user-2"}, ""),
        (BOM + b"user-1\r\nuser-2\r\n", {b"user-1", b"user-2"}, ""),
        (b"user-1\ruser-2\r", {b"user-1", b"user-2"}, ""),
        (b"user-1\n\n", {b"user-1"}, "line 2 is empty and ignored"),
        (b"user-1\n\r\n\n\nuser-2\n", {b"user-1", b"user-2"}, "3 lines (the first is 2) are empty"),
        (b"user-3 \n", {b"user-3 "}, "line 1 is used with the blanks"),
        (b"user-1\nuser-1\n", {b"user-1"}, ""),
        ("m\u00fcller\n".encode(), {"m\u00fcller".encode()}, ""),
    ],
)
def test_key_files(content: bytes, taken: set[bytes], message: str, tmp_path: Path, cli: Cli) -> None:
    source, file = partition(tmp_path / "in", users()), tmp_path / "keys.txt"
    file.write_bytes(content)
    cli("redact", "--engine", "local", "--key-file", file, source, tmp_path / "out")
    assert set(KEYS) - set(left(tmp_path / "out")) == taken
    assert (message in cli.error) if message else not cli.error


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("user-1\n".encode("utf-16"), "is in UTF-16"),
        ("user-1\n".encode("utf-32"), "is in UTF-32"),
        ("user-1\n".encode("utf-16-le"), "line 1: a zero byte"),
        (b"user-1\n\xff\xfeuser-2\n", "line 2: not UTF-8"),
        (b"", "has no key"),
        (BOM + b"\r\n", "has no key"),
    ],
)
def test_key_files_that_are_refused(content: bytes, message: str, tmp_path: Path, cli: Cli) -> None:
    source, file = partition(tmp_path / "in", users()), tmp_path / "keys.txt"
    file.write_bytes(content)
    cli("redact", "--engine", "local", "--key-file", file, "--where", "0", source, tmp_path / "out", code=2)
    assert message in cli.error
    assert "keys.txt" in cli.error
    assert "user" not in cli.error
    assert not (tmp_path / "out").exists()


def test_an_invalid_line_is_named(tmp_path: Path, cli: Cli) -> None:
    source, file = partition(tmp_path / "in", users()), tmp_path / "keys.txt"
    file.write_bytes(b"00ff\nuser-4711\n")
    arguments = ("redact", "--key-file", file, "--key-format", "hex", source, tmp_path / "out")
    cli(*arguments, code=2)
    assert "line 2: a key is not valid hex" in cli.error
    assert "4711" not in cli.error


def test_the_empty_key_is_asked_for_by_itself(tmp_path: Path, cli: Cli) -> None:
    source = partition(tmp_path / "in", users())
    cli("redact", "--engine", "local", "--key", "", source, tmp_path / "out")
    assert set(KEYS) - set(left(tmp_path / "out")) == {b""}


# --- keys without a record ----------------------------------------------------------------------


def test_keys_without_a_record_are_reported_by_position(tmp_path: Path, cli: Cli) -> None:
    source, file = partition(tmp_path / "in", users()), tmp_path / "keys.txt"
    file.write_bytes(b"user-2\n\nnobody-1\nnobody-2\nuser-2\nnobody-1\n")
    arguments = ("redact", "--engine", "local", "--key", "user-1", "--key", "nobody-3", "--key-file", file)
    report = cli.json(*arguments, source, tmp_path / "out", code=1)
    assert report["unmatched_keys"] == [[1, 1], [3, 4]]
    assert report["options"]["keys"] == 5
    assert "nobody" not in json.dumps(report)
    printed = cli(*arguments, source, tmp_path / "again", code=1)
    where = f"--key number 2, line 3 of {file}, line 4 of {file}"
    assert f"3 of the keys are in no record: {where}" in printed
    assert "nobody" not in printed + cli.error
    asked = [b"user-1", b"nobody", b"user-1", b"user-2"]
    found = magicbyte.redact(source, tmp_path / "third", keys=asked)
    assert found["unmatched_keys"] == [(1, 1)]
    cli(*arguments[:5], source, tmp_path / "fourth")


def test_many_keys(tmp_path: Path) -> None:
    """The matched keys are kept as one bit each; each is found whatever precedes it in the list."""
    builder = RecordsBuilder(2, 4)
    for offset in range(1000):
        builder.append(offset, NOW, b"customer-%08d" % (offset * 97), b"of customer-%08d" % offset)
    source = partition(tmp_path / "in", builder.build())
    keys = [b"customer-%08d" % number for number in range(0, 100_000, 2)]
    report = magicbyte.redact(source, tmp_path / "out", keys=keys)
    gone = [offset for offset in range(1000) if offset * 97 % 2 == 0]
    assert report["counts"]["redacted"] == len(gone)
    unmatched = {n for first, last in report["unmatched_keys"] for n in range(first, last + 1)}
    assert unmatched == set(range(len(keys))) - {offset * 97 // 2 for offset in gone}
    assert report["check"] is not None
    assert report["check"]["in_values"] == 0
    keys = [b"customer-%08d" % number for number in range(1, 100_000, 2)]
    report = magicbyte.redact(tmp_path / "out", tmp_path / "none", keys=[*keys, "customer-00000300"])
    assert report["counts"]["kept"] == 0


def test_the_options_do_not_show_the_keys() -> None:
    """They end up in logs, where a failed job is reported with its arguments."""
    with pytest.raises(TypeError, match="keys: expected a sequence of keys, not one key"):
        RedactOptions(keys="user-4711")
    asked = RedactOptions(keys=[b"user-4711"], where="key = 'user-4711'")
    assert "4711" not in repr(asked)
    assert "4711" not in repr(_core.KeySet([b"user-4711"]))


def test_tasks_get_the_keys_and_not_what_is_made_of_them(tmp_path: Path) -> None:
    """As on a cluster: a task has only what was pickled."""
    options = RedactOptions(keys=[b"user-4711"], where="offset = 1", offsets={("t", 0): [(1, 2)]})
    passes = job._Redact(options, job.selection_of(options))
    assert passes.key_set.find(b"a user-4711") == 2
    again = pickle.loads(pickle.dumps(passes))
    assert again.key_set.find(b"a user-4711") == 2
    assert again.selection.columns == ("offset",)
    assert again.selection.offsets == {("t", 0): [(1, 2)]}


# --- by position --------------------------------------------------------------------------------


def test_records_with_the_same_offset_are_told_apart(tmp_path: Path) -> None:
    one = batch([record(0, b"bob"), record(0, b"kim"), record(1, b"bob")], base_offset=0, last_offset_delta=1)
    two = batch([record(0, b"kim"), record(1, b"bob")], base_offset=2)
    source = partition(tmp_path / "in", one + two)
    for name, asked in (("key", {"keys": [b"bob"]}), ("where", {"where": "key = 'bob'"})):
        report = magicbyte.redact(source, tmp_path / name, **asked)  # type: ignore[arg-type]
        assert left(tmp_path / name) == [b"kim", b"kim"]
        assert (report["counts"]["redacted"], report["counts"]["kept"]) == (3, 2)


def test_places_in_large_batches_and_several_segments(tmp_path: Path) -> None:
    """Batches that the expression sees in pieces; with transactions and codecs."""
    rng = random.Random(5)
    segments, offset, expected = [], 0, []
    for number in range(3):
        data, offset = b"", number * 1000
        for codec in range(5):
            builder = RecordsBuilder(2, codec)
            for _ in range(60):
                name = b"k%d" % rng.randrange(4)
                builder.append(offset, NOW, name, rng.randbytes(100_000 if codec == 0 else 10))
                if name != b"k1":
                    expected.append((offset, name))
                offset += 1
            data += builder.build()
        segments.append(data)
    source = partition(tmp_path / "in", *segments)
    redact_partitions([str(source)], str(tmp_path / "out"), LocalEngine(2), RedactOptions(where="key = 'k1'"))
    found = magicbyte.PartitionLog(tmp_path / "out" / "t-0").records()
    assert [(r.offset, r.key_bytes) for r in found] == expected


# --- expressions that fail ----------------------------------------------------------------------


def test_a_record_for_which_the_expression_fails_is_named(tmp_path: Path, cli: Cli) -> None:
    source = partition(tmp_path / "in", users(), users(1000))
    where = "CASE WHEN offset >= 1003 THEN CAST(key AS INTEGER) = 1 END"
    cli("redact", "--engine", "local", "--where", where, source, tmp_path / "out", code=3)
    assert "where: t-0/00000000000000001000.log, the record with offset 1003: " in cli.error
    assert "Could not convert string ..." in cli.error
    assert "user" not in cli.error
    assert not (tmp_path / "out").exists()


def test_a_chunk_that_takes_too_long_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = partition(tmp_path / "in", users())
    where = job.record_filter("regexp_matches(value, 'v')")
    monkeypatch.setattr(job, "record_filter", lambda _expression: where)
    monkeypatch.setattr(record_filter, "SECONDS", 0.0)
    monkeypatch.setattr(where, "_evaluate", lambda _rows: interrupted())
    with pytest.raises(JobError, match=r"t-0/0{20}\.log, the records with offsets 0 to 4: took longer than"):
        magicbyte.redact(source, tmp_path / "out", where="unused")


def interrupted() -> None:
    raise duckdb.InterruptException("INTERRUPT Error: Interrupted!")


def test_a_large_value(tmp_path: Path) -> None:
    builder = RecordsBuilder(2, 4)
    builder.append(0, NOW, b"k", b"x" * (40 << 20))
    builder.append(1, NOW, b"k", b"small")
    source = partition(tmp_path / "in", builder.build())
    report = magicbyte.redact(
        source, tmp_path / "out", where="length(value) > 40000000 AND upper(value) LIKE 'X%'"
    )
    assert report["counts"]["redacted"] == 1


def test_larger_batches_than_an_expression_can_see_are_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A record that it has not seen must not be written, whatever the cap."""
    source = partition(tmp_path / "in", users())
    monkeypatch.setattr(job, "MAX_DECOMPRESSED_BYTES", 100)
    asked = {"max_decompressed_bytes": (1 << 32) - 1}
    report = magicbyte.redact(source, tmp_path / "where", where="0", **asked)
    assert (report["counts"]["kept"], report["problems"][0]["kind"]) == (0, "limit_exceeded")
    report = magicbyte.redact(source, tmp_path / "keys", keys=[b"x"], **asked)
    assert report["counts"]["kept"] == len(KEYS)


def test_a_record_before_its_segments_beginning_is_seen(tmp_path: Path) -> None:
    """A segment that repeats offsets is read from the end of the previous one; a delta can be lower."""
    one = batch([record(n, b"a%d" % n) for n in range(6)], base_offset=0)
    repeated = batch([record(n, b"a%d" % (n + 3)) for n in range(3)], base_offset=3)
    two = batch([record(-1, b"bob"), record(0, b"b"), record(1, b"c")], base_offset=6, last_offset_delta=1)
    three = batch([record(0, b"d"), record(1, b"bob"), record(2, b"e")], base_offset=8)
    path = partition(tmp_path / "in", one) / "t-0" / f"{3:020}.log"
    path.write_bytes(repeated + two + three)
    for name, asked in (("keys", {"keys": [b"bob"]}), ("where", {"where": "key = 'bob'"})):
        magicbyte.redact(tmp_path / "in", tmp_path / name, **asked)  # type: ignore[arg-type]
        found = magicbyte.PartitionLog(tmp_path / name / "t-0", mode="PERMISSIVE").records()
        keys = [r.key_bytes for r in found]
        assert b"bob" not in keys
        assert keys[-2:] == [b"d", b"e"]
