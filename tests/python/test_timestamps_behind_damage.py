"""A read from a timestamp on has the rows and the damage that reading everything has: it passes nothing over.

A log of three segments is damaged in one place, and read from timestamps before, in and behind that place
through every door.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from pathlib import Path

import magicbyte
import polars as pl
import pyarrow as pa
import pytest
from conftest import Cli
from magicbyte import Log, PartitionLog, _core
from magicbyte.errors import Error

BATCH, BATCHES, SEGMENTS = 10, 10, 3
PER_SEGMENT = BATCH * BATCHES
END = SEGMENTS * PER_SEGMENT
FIRST_TIME = 1_700_000_000_000

Damage = Callable[[Path, list[Path]], object]


def build(directory: Path, magic: int, *, indexed: bool = False) -> list[Path]:
    """Segments of ten batches of ten records each, a millisecond apart; the paths of their files."""
    directory.mkdir()
    files = []
    for base in range(0, END, PER_SEGMENT):
        data, offsets, times = b"", b"", b""
        for first in range(base, base + PER_SEGMENT, BATCH):
            builder = magicbyte.RecordsBuilder(magic, magicbyte.Compression.GZIP)
            for offset in range(first, first + BATCH):
                builder.append(offset, FIRST_TIME + offset, b"key", b"value of %d" % offset)
            if first > base:
                offsets += struct.pack(">ii", first - base + (BATCH - 1 if magic < 2 else 0), len(data))
            data += builder.build()
            times += struct.pack(">qi", FIRST_TIME + first + BATCH - 1, first + BATCH - 1 - base)
        files.append(directory / f"{base:020}.log")
        files[-1].write_bytes(data)
        if indexed:
            files[-1].with_suffix(".index").write_bytes(offsets)
            files[-1].with_suffix(".timeindex").write_bytes(times)
    return files


def positions(data: bytes) -> list[int]:
    """Where the batches begin."""
    found, position = [], 0
    while position < len(data):
        found.append(position)
        position += 12 + struct.unpack_from(">i", data, position + 8)[0]
    return found


def overwritten(segment: int, batch: int, place: int, new: bytes) -> Damage:
    """Bytes of a batch are replaced."""

    def damage(directory: Path, files: list[Path]) -> None:
        data = bytearray(files[segment].read_bytes())
        start = positions(bytes(data))[batch] + place
        data[start : start + len(new)] = new
        files[segment].write_bytes(data)

    return damage


def emptied(segment: int, batch: int) -> Damage:
    """Zeros from a batch on to the segment's end."""

    def damage(directory: Path, files: list[Path]) -> None:
        data = files[segment].read_bytes()
        start = positions(data)[batch]
        files[segment].write_bytes(data[:start] + bytes(len(data) - start))

    return damage


def cut(segment: int, batch: int) -> Damage:
    def damage(directory: Path, files: list[Path]) -> None:
        data = files[segment].read_bytes()
        files[segment].write_bytes(data[: positions(data)[batch] + 20])

    return damage


def unreadable(segment: int) -> Damage:
    def damage(directory: Path, files: list[Path]) -> None:
        files[segment].unlink()
        files[segment].mkdir()

    return damage


def misnamed(directory: Path, files: list[Path]) -> None:
    """The names of the first two segments are exchanged, and a batch of the one is damaged."""
    overwritten(1, 3, 8, b"\xff")(directory, files)
    files[0].rename(directory / "kept")
    files[1].rename(files[0])
    (directory / "kept").rename(files[1])


DAMAGES: dict[str, Damage] = {
    "size": overwritten(0, 3, 8, b"\xff\xff\xff\xff"),
    "size of the first batch": overwritten(1, 0, 8, b"\x7f"),
    "size of the last batch": overwritten(1, 9, 8, b"\x7f"),
    "size of the last batch of all": overwritten(2, 9, 8, b"\x00\x01"),
    "magic": overwritten(1, 4, 16, b"\x09"),
    "base offset": overwritten(1, 4, 0, bytes(8)),
    "bytes of the middle": overwritten(1, 4, 50, b"\xaa\x55\xaa"),
    "whole header": overwritten(0, 0, 0, bytes(30)),
    "zeros": emptied(1, 5),
    "only zeros": emptied(1, 0),
    "cut": cut(1, 5),
    "no batch is left": cut(0, 0),
    "missing": lambda directory, files: files[1].unlink(),
    "unreadable": unreadable(1),
    "unreadable first": unreadable(0),
    "unreadable last": unreadable(2),
    "misnamed": misnamed,
}
TIMES = [
    FIRST_TIME + offset for offset in (-5, 0, 25, 35, 45, 95, 99, 105, 125, 145, 155, 195, 215, 295, 299, 400)
]


@pytest.fixture(params=[2, 1], ids=["magic 2", "magic 1"])
def magic(request: pytest.FixtureRequest) -> int:
    return int(request.param)


@pytest.fixture(params=DAMAGES.values(), ids=DAMAGES.keys())
def damaged(request: pytest.FixtureRequest, tmp_path: Path, magic: int) -> Path:
    directory = tmp_path / "orders-0"
    request.param(directory, build(directory, magic))
    return directory


def offsets_of(log: PartitionLog, start_timestamp: int | None = None) -> list[int]:
    table = pa.table(log.to_arrow(["offset"], start_timestamp=start_timestamp))
    return table.column(0).to_pylist()


def readable(directory: Path) -> list[int]:
    return offsets_of(PartitionLog(directory, mode="PERMISSIVE"))


def test_columns_and_records_have_what_is_readable(damaged: Path) -> None:
    everything = readable(damaged)
    assert 0 < len(everything) < END
    for time in TIMES:
        late = [offset for offset in everything if offset + FIRST_TIME >= time]
        with PartitionLog(damaged, mode="PERMISSIVE") as log:
            assert offsets_of(log, time) == late, time
            records = [r.offset for r in log.records(start_timestamp=time) if r.timestamp >= time]
            assert records == late, time
            assert log.offset_for_timestamp(time) == (late[0] if late else None), time


def test_damage_that_may_hide_late_records_is_an_error(damaged: Path) -> None:
    lost = sorted(set(range(END)) - set(readable(damaged)))
    for time in TIMES:
        if FIRST_TIME + lost[-1] >= time:
            with PartitionLog(damaged) as log, pytest.raises(pa.ArrowInvalid):
                offsets_of(log, time)
            with PartitionLog(damaged) as log, pytest.raises(Error):
                list(log.records(start_timestamp=time))


def test_a_scan_and_the_command_line_have_what_is_readable(damaged: Path, cli: Cli) -> None:
    everything = readable(damaged)
    for time in (TIMES[3], TIMES[8], TIMES[10], TIMES[-1]):
        late = [offset for offset in everything if offset + FIRST_TIME >= time]
        frame = magicbyte.scan(Log(damaged, mode="PERMISSIVE").to_arrow())
        stamp = pl.col.timestamp >= pl.from_epoch(pl.lit(time), "ms").dt.replace_time_zone("UTC")
        assert frame.filter(stamp).collect()["offset"].to_list() == late, time
        shown = cli("records", damaged, "--start-timestamp", time, "-f", "%o\\n", code=None)
        assert [int(line) for line in shown.split()] == late, time


def test_a_maximum_timestamp_counts_only_with_its_crc(tmp_path: Path) -> None:
    directory = tmp_path / "orders-0"
    overwritten(0, 3, 35, struct.pack(">q", 5))(directory, build(directory, 2))
    with PartitionLog(directory) as log, pytest.raises(Error, match="crc"):
        list(log.records(start_timestamp=FIRST_TIME + 35))
    with PartitionLog(directory, check_crcs=False) as log:
        assert [r.offset for r in log.records(start_timestamp=FIRST_TIME + 290)] == list(range(290, END))


def test_a_sound_log_starts_at_the_record(tmp_path: Path, magic: int) -> None:
    for indexed in (False, True):
        directory = tmp_path / f"orders-{indexed:d}"
        build(directory, magic, indexed=indexed)
        with PartitionLog(directory) as log:
            for time in TIMES:
                first = next((r.offset for r in log.records(start_timestamp=time)), None)
                assert first == (None if time >= FIRST_TIME + END else max(0, time - FIRST_TIME))


def test_a_time_index_shows_that_damage_is_older(tmp_path: Path, magic: int) -> None:
    directory = tmp_path / "orders-0"
    overwritten(0, 3, 50, b"\xaa")(directory, build(directory, magic, indexed=True))
    with PartitionLog(directory) as log:
        assert [r.offset for r in log.records(start_timestamp=FIRST_TIME + 80)] == list(range(80, END))
        with pytest.raises(Error):
            list(log.records(start_timestamp=FIRST_TIME + 35))


def test_offsets_that_were_compacted_away_hide_nothing(tmp_path: Path) -> None:
    directory = tmp_path / "orders-0"
    files = build(directory, 2)
    for file in files[:2]:
        data = file.read_bytes()
        # Batches are left out in the middle and at the end, as by a cleaner.
        kept = positions(data)
        file.write_bytes(data[: kept[3]] + data[kept[4] : kept[8]])
    with PartitionLog(directory) as log:
        assert [r.offset for r in log.records(start_timestamp=FIRST_TIME + 190)] == list(range(200, END))


def test_a_plan_starts_where_damage_may_hide_a_record(damaged: Path) -> None:
    listing = _core.list_partition(str(damaged))
    surveys = [_core.survey_segment(json.dumps(s)) for s in json.loads(listing)["segments"]]
    plan = _core.plan_partition(listing, surveys)
    lost = sorted(set(range(END)) - set(readable(damaged)))
    for time in TIMES:
        if FIRST_TIME + lost[-1] >= time:
            start = _core.start_for_timestamp(plan, time)
            assert start is not None
            assert start <= max(lost[0], time - FIRST_TIME)
