"""`magicbyte records`: data records as lines of each format, and batches as JSON lines."""

from __future__ import annotations

import csv
import io
import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import magicbyte
import pyarrow as pa
import pytest
from conftest import KAFKA, PARTITIONS, Cli
from digest import digest, expected, summary
from kafka_dumps import LOG, damaged
from magicbyte import Log, PartitionChoice, RecordsBuilder, RefusedError
from magicbyte.cli import record_reading
from magicbyte.jobs.run.reading import ReadOptions, Rows, read_chunk


@pytest.mark.parametrize("name", PARTITIONS)
def test_partitions(cli: Cli, name: str) -> None:
    lines = cli.records(KAFKA / name, "--key-format", "hex", "--value-format", "hex", code=damaged(name))
    rows = [{**line, "timestampMillis": line["timestamp"]} for line in lines]
    assert digest(rows) == summary(KAFKA / name)["sha256"]


def test_ranges(cli: Cli) -> None:
    path = KAFKA / "v2_txn"
    offsets = [line["offset"] for line in expected(path) if not line["control"]]

    def offsets_of(*options: object) -> list[int]:
        return [line["offset"] for line in cli.records(path, *options)]

    assert offsets_of() == offsets
    assert offsets_of("--start-offset", 10, "--end-offset", 20) == [o for o in offsets if 10 <= o < 20]
    assert offsets_of("--max-records", 3) == offsets[:3]
    assert offsets_of("--max-records", 0) == []
    late = [
        line["offset"]
        for line in expected(path)
        if not line["control"] and line["timestamp"] >= 1700000060000
    ]
    assert offsets_of("--start-timestamp", "2023-11-14T22:14:20") == late
    assert offsets_of("--start-timestamp", 1700000060000) == late
    assert offsets_of("--end-timestamp", "2023-11-14T22:14:20Z") == [o for o in offsets if o not in late]
    committed = [line["offset"] for line in expected(path, "committed.jsonl")]
    assert offsets_of("--isolation-level", "read_committed") == committed


def test_batches(cli: Cli) -> None:
    path = KAFKA / "v2_txn"
    batches = expected(path, "batches.jsonl")
    lines = cli.records(path, "--batches")
    assert [(line["baseOffset"], line["crc"]) for line in lines] == [
        (batch["baseOffset"], batch["crc"]) for batch in batches
    ]


def test_formats(cli: Cli) -> None:
    def values(form: str) -> list[str | None]:
        return [line["value"] for line in cli.records(KAFKA / "v2_headers", "--value-format", form)]

    assert values("utf-8")[0] == "v"
    assert values("hex")[0] == "76"
    assert values("base64")[0] == "dg=="
    assert values("utf-8")[2] is None
    first = cli.records(KAFKA / "v2_headers", "--max-records", 1)[0]
    assert first["headers"][0] == {"key": "a", "value": "1"}
    assert (first["topic"], first["partition"], first["timestampType"]) == ("v2_headers", 0, "CreateTime")
    assert (first["magic"], first["compression"], first["position"]) == (2, "none", 0)


def offsets(cli: Cli, *arguments: object) -> list[int]:
    return [int(line) for line in cli("records", *arguments, "-f", r"%o\n").splitlines()]


def test_keys_and_patterns(cli: Cli) -> None:
    path = KAFKA / "v2_headers"
    with_k = [line["offset"] for line in expected(path) if line["key"] == b"k".hex()]
    assert with_k[:2] == [0, 1]
    assert offsets(cli, path, "--key", "k") == with_k
    assert offsets(cli, path, "--key", "k", "--key", "many", "--max-records", 3) == [0, 1, 3]
    assert offsets(cli, path, "--key", "6b", "--key-format", "hex") == with_k
    assert offsets(cli, path, "--key", "aw==", "--key-format", "base64") == with_k
    assert [line["key"] for line in cli.records(path, "--key", "k", "--key-format", "json")] == [None] * len(
        with_k
    )
    assert offsets(cli, path, "--key", "") == []
    assert offsets(cli, path, "--grep", "^200 h[e]aders$") == [3, 9]
    assert offsets(cli, path, "--grep", "^many$") == [3, 9]
    assert offsets(cli, path, "--grep", "^many$", "--key", "k") == []
    assert offsets(cli, path, "--grep", "", "--max-records", 2) == [0, 1]
    cli("records", path, "--key", "6b6", "--key-format", "hex", code=2)
    assert "a key is not valid hex" in cli.error
    cli("records", path, "--grep", "(", code=2)
    assert "unclosed group" in cli.error


def test_tail(cli: Cli) -> None:
    path = KAFKA / "v2_txn"
    everything = offsets(cli, path)
    for count in (0, 1, 2, 100, len(everything), 100_000):
        assert (
            offsets(cli, path, "--tail", count) == everything[len(everything) - min(count, len(everything)) :]
        )
    assert offsets(cli, path, "--tail", 5, "--max-records", 2) == everything[-5:-3]
    ranged = [offset for offset in everything if 10 <= offset < 50]
    assert offsets(cli, path, "--tail", 7, "--start-offset", 10, "--end-offset", 50) == ranged[-7:]
    assert offsets(cli, path, "--tail", 1000, "--start-offset", 10, "--end-offset", 50) == ranged
    assert offsets(cli, path, "--tail", 3, "--start-offset", 10_000) == []
    early = offsets(cli, path, "--end-timestamp", 1700000060000)
    assert offsets(cli, path, "--tail", 3, "--end-timestamp", 1700000060000) == early[-3:]
    committed = offsets(cli, path, "--isolation-level", "read_committed")
    assert offsets(cli, path, "--tail", 4, "--isolation-level", "read_committed") == committed[-4:]
    both = cli("records", KAFKA / "v2_headers", KAFKA / "v2_txn", "--tail", 2, "-f", r"%t %o\n").splitlines()
    assert both[-2:] == [f"v2_txn {offset}" for offset in everything[-2:]]
    assert [line.split()[0] for line in both] == ["v2_headers"] * 2 + ["v2_txn"] * 2


def test_tail_of_selected_records_far_from_the_end(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Offsets with a gap, as after compaction; the records are looked for in ever longer ranges."""
    log = tmp_path / "orders-0"
    log.mkdir()
    with (log / LOG).open("wb") as file:
        for start in (*range(0, 24_000, 1000), 1 << 30):
            builder = RecordsBuilder()
            for offset in range(start, start + 1000):
                builder.append(offset, 1, b"rare" if offset % 10_000 == 7 else b"k", b"x" * 1000)
            file.write(builder.build())
    rare = [7, 10_007, 20_007]
    for count in range(1, 5):
        assert offsets(cli, log, "--tail", count, "--key", "rare") == rare[-count:]
    assert offsets(cli, log, "--tail", 1002)[:3] == [23_998, 23_999, 1 << 30]
    assert len(offsets(cli, log, "--tail", 25_000)) == 25_000
    # Only the end of the log is read.
    read: list[int] = []

    def counted(chunk: str, options: ReadOptions) -> Iterator[Rows | str]:
        for item in read_chunk(chunk, options):
            if isinstance(item, str):
                read.append(json.loads(item)["good_batches"])
            yield item

    monkeypatch.setattr(record_reading, "read_chunk", counted)
    assert offsets(cli, log, "--tail", 1) == [(1 << 30) + 999]
    assert 2 <= sum(read) < 14


@pytest.mark.partitions("v2_none")
def test_tail_reports_the_damage_it_meets_once(cli: Cli, source: Path) -> None:
    everything = offsets(cli, source)
    segment = sorted((source / "v2_none").glob("*.log"))[-1]
    data = bytearray(segment.read_bytes())
    data[-20] ^= 1
    segment.write_bytes(data)
    output = cli("records", source, "--tail", 1, "-f", "%o", code=1)
    assert int(output) in everything[:-1]
    assert cli.error.count("crc") == 1


def test_csv(cli: Cli) -> None:
    path = KAFKA / "v2_headers"
    text = cli("records", path, "--format", "csv", "--max-records", 2)
    rows = list(csv.DictReader(io.StringIO(text, newline="")))
    lines = cli.records(path, "--max-records", 2)
    assert [(int(row["offset"]), row["key"], json.loads(row["headers"])) for row in rows] == [
        (line["offset"], line["key"], line["headers"]) for line in lines
    ]
    names = cli("records", path, "--format", "csv", "--max-records", 0)
    assert names == text[: len(names)]
    assert names.count("\n") == 1


def test_templates(cli: Cli) -> None:
    path = KAFKA / "v2_headers"
    options = ("--max-records", 3)
    assert cli("records", path, "-f", r"%t[%p]:%o=%k,%s;", *options) == (
        "v2_headers[0]:0=k,v;v2_headers[0]:1=k,v;v2_headers[0]:2=,;"
    )
    assert cli("records", path, "-f", "%k%K ", "-Z", *options) == "k1 k1 NULL-1 "
    assert cli("records", path, "-f", "%k ", "--key-format", "hex", *options) == "6b 6b  "
    cli("records", path, "-f", "%q", code=2)
    assert "%q at byte 0" in cli.error


def test_values_as_json(cli: Cli, tmp_path: Path) -> None:
    log = tmp_path / "orders-0"
    log.mkdir()
    builder = RecordsBuilder()
    for offset, value in enumerate([b'{"customer": "bob"}', b"oops", None]):
        builder.append(offset, 1, b"7", value)
    (log / LOG).write_bytes(builder.build())
    lines = cli.records(log, "--key-format", "json", "--value-format", "json")
    assert [(line["key"], line["value"]) for line in lines] == [
        (7, {"customer": "bob"}),
        (7, None),
        (7, None),
    ]
    assert [line.get("invalidValue") for line in lines] == [None, "oops", None]


def test_internal_topics(cli: Cli) -> None:
    """JSON lines are decoded; the other formats have the bytes."""
    path = next(path for path in KAFKA.iterdir() if path.name.startswith("cluster_metadata"))
    options = ("--decode", "metadata", "--max-records", 3)
    decoded = cli.records(path, *options)
    assert all({"recordType", "value"} <= set(line) for line in decoded)
    assert cli.records(path, *options, "--value-format", "json") == decoded
    lines = cli.records(path, "--decode", "none", "--max-records", 3, "--value-format", "hex")
    shown = cli("records", path, "--max-records", 3, "-f", r"%s\n", "--value-format", "hex").splitlines()
    assert shown == [line["value"] for line in lines]


@pytest.mark.parametrize(
    "options",
    [
        ["--batches", "--key", "k"],
        ["--batches", "--grep", "k"],
        ["--batches", "--tail", "1"],
        ["--batches", "--format", "csv"],
        ["--batches", "-f", "%o"],
        ["-f", "%o", "--format", "csv"],
        ["-f", "%o", "--decode", "offsets"],
        ["--format", "csv", "--decode", "metadata"],
        ["-f", "%o", "--value-format", "json"],
        ["--tail", "-1"],
        ["-Z"],
        ["-Z", "--format", "csv"],
        ["-Z", "--batches"],
    ],
    ids=" ".join,
)
def test_options_that_exclude_each_other(cli: Cli, options: list[str]) -> None:
    assert cli("records", KAFKA / "v2_none", *options, code=2) == ""


def test_one_file(cli: Cli, tmp_path: Path) -> None:
    path = KAFKA / "v2_none" / "00000000000000000000.log"
    part = len(cli.records(path))
    assert 0 < part < 346
    renamed = tmp_path / "segment.bin"
    shutil.copyfile(path, renamed)
    assert len(cli.records(renamed)) == part


@pytest.mark.partitions("v2_none")
def test_damage(cli: Cli, source: Path) -> None:
    segment = source / "v2_none" / LOG
    data = bytearray(segment.read_bytes())
    data[len(data) // 2] ^= 1
    segment.write_bytes(data)
    assert 0 < len(cli.records(source, code=1)) < 346
    assert cli.error.startswith(f"magicbyte: v2_none-0/{LOG} at byte ")
    assert cli.error.endswith(" (field crc, batch at offset 44)\n")
    assert cli.error.count("byte ") == 1


@pytest.mark.parametrize("option", [[], ["--batches"], ["--tail", "3"]])
@pytest.mark.partitions("v2_none")
def test_a_torn_end_is_told_with_its_partition_and_byte(cli: Cli, source: Path, option: list[str]) -> None:
    segment = max((source / "v2_none").glob("*.log"))
    segment.write_bytes(segment.read_bytes()[:-5])
    cli("records", source, *option, code=1)
    place = rf"v2_none-0/{segment.name} at byte (\d+)"
    assert re.fullmatch(rf"magicbyte: {place}: the file ends inside a batch\n", cli.error), cli.error


@pytest.fixture
def copies(source: Path, tmp_path: Path) -> tuple[Path, Path]:
    """A directory of partitions, and a copy of it."""
    return source, Path(shutil.copytree(source, tmp_path / "copy"))


@pytest.mark.parametrize("option", [[], ["--batches"], ["--tail", "3"], ["--topic", "v2_*"]])
@pytest.mark.partitions("v2_none", "v2_lz4")
def test_copies_of_a_partition_are_refused(cli: Cli, copies: tuple[Path, Path], option: list[str]) -> None:
    assert cli("records", *copies, *option, code=2) == ""
    assert "there are 2 copies of v2_lz4-0, in" in cli.error
    for copy in copies:
        assert str(copy / "v2_lz4") in cli.error
    assert f"--prefer {copies[0]}, in Python PartitionChoice(prefer=['{copies[0]}'])" in cli.error
    preferred = cli("records", *copies, *option, "--prefer", copies[1])
    assert preferred == cli("records", copies[1], *option)


@pytest.mark.partitions("v2_none", "v2_lz4")
def test_what_is_no_copy_is_read(cli: Cli, copies: tuple[Path, Path]) -> None:
    source, copy = copies
    whole = cli("records", source)
    # A directory twice is one.
    assert cli("records", source, source) == whole
    assert cli("records", source, source / "v2_none") == whole
    # Files that the caller names are read as often as they are named.
    segments = sorted((source / "v2_none").glob("*.log"))
    assert cli("records", *segments) == cli("records", source / "v2_none")
    assert cli("records", segments[0], copy / "v2_none" / segments[0].name) == 2 * cli("records", segments[0])
    # A copy without segments, and one of another topic.
    for segment in (copy / "v2_lz4").glob("*.log"):
        segment.unlink()
    (copy / "v2_none").rename(copy / "v2_other")
    assert len(cli.records(source, copy)) == len(whole.splitlines()) + len(cli.records(copy / "v2_other"))


def test_the_newest_copy_of_an_internal_topic_is_read(cli: Cli, tmp_path: Path) -> None:
    for name, count in (("old", 3), ("new", 5)):
        directory = tmp_path / name / "__consumer_offsets-7"
        directory.mkdir(parents=True)
        builder = RecordsBuilder()
        for offset in range(count):
            builder.append(offset, 1, b"k", b"v")
        (directory / LOG).write_bytes(builder.build())
    assert len(cli.records(tmp_path, "--decode", "none")) == 5
    assert Log(tmp_path).to_arrow(["offset"]).__arrow_c_stream__() is not None


@pytest.mark.partitions("v2_none", "v2_lz4")
def test_copies_in_a_log(copies: tuple[Path, Path]) -> None:
    log = Log(copies)
    assert [partition.name for partition in log] == ["v2_lz4-0"] * 2 + ["v2_none-0"] * 2
    assert all(found.balanced for found in log.verify())
    for read in (log.to_arrow, lambda: magicbyte.scan(copies), lambda: pa.table(log)):
        with pytest.raises(RefusedError, match="there are 2 copies of v2_lz4-0"):
            read()
    chosen = Log(copies, PartitionChoice(prefer=(str(copies[1]),)))
    assert pa.table(chosen) == pa.table(Log(copies[1]))
    assert len(chosen) == 4


def test_tail_of_an_expression(cli: Cli) -> None:
    path = KAFKA / "v2_headers"
    where = ("--where", "key = 'many'")
    assert offsets(cli, path, *where) == [3, 9]
    assert offsets(cli, path, *where, "--tail", 1) == [9]
    assert offsets(cli, path, *where, "--tail", 2, "--grep", "200") == offsets(
        cli, path, *where, "--grep", "200"
    )
