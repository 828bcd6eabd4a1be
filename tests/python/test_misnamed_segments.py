"""Segments whose names say something else than their contents: contents are believed, names are reported.

After a restore or an fsck, files have each other's names. A broker refuses such a directory.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import Cli
from magicbyte import PartitionLog, RecordsBuilder, _core
from magicbyte.errors import Error

SEGMENTS = 4
RECORDS = 30
"""Of each segment, in batches of ten."""
ALL = list(range(SEGMENTS * RECORDS))


def name(offset: int) -> str:
    return f"{offset:020d}.log"


def batch(offset: int, count: int = 10) -> bytes:
    builder = RecordsBuilder(base_offset=offset, partition_leader_epoch=0)
    for number in range(count):
        at = offset + number
        builder.append(at, 1_700_000_000_000 + at, b"k%d" % at, b"v")
    return bytes(builder.build())


@pytest.fixture
def partition(tmp_path: Path) -> Path:
    """Four segments of thirty records, with their indexes."""
    directory = tmp_path / "logs" / "t-0"
    directory.mkdir(parents=True)
    for first in range(0, len(ALL), RECORDS):
        data = b"".join(batch(first + at) for at in range(0, RECORDS, 10))
        (directory / name(first)).write_bytes(data)
    _core.rebuild_sidecars(str(directory))
    return directory


def exchange(a: int, b: int) -> Callable[[Path], None]:
    def change(partition: Path) -> None:
        one, other = partition / name(a), partition / name(b)
        content = one.read_bytes()
        one.write_bytes(other.read_bytes())
        other.write_bytes(content)

    return change


def rename(old: int, new: int) -> Callable[[Path], None]:
    return lambda partition: partition.joinpath(name(old)).rename(partition / name(new))


def copy(old: int, new: int) -> Callable[[Path], None]:
    return lambda partition: shutil.copy(partition / name(old), partition / name(new)) and None


def together(*changes: Callable[[Path], None]) -> Callable[[Path], None]:
    def change(partition: Path) -> None:
        for one in changes:
            one(partition)

    return change


def without_sidecars(partition: Path) -> None:
    for path in partition.iterdir():
        if path.suffix != ".log":
            path.unlink()


CHANGES: dict[str, tuple[Callable[[Path], None], set[str]]] = {
    "neighbours": (exchange(30, 60), {name(30), name(60)}),
    "first and last": (exchange(0, 90), {name(0), name(90)}),
    "three in a circle": (together(exchange(0, 30), exchange(30, 60)), {name(0), name(30), name(60)}),
    "higher than all": (rename(30, 1000), {name(1000)}),
    "higher, the first": (rename(0, 1000), {name(1000)}),
    "higher, the last": (rename(90, 1000), {name(1000)}),
    "lower": (rename(60, 5), {name(5)}),
    "lower, the last": (rename(90, 5), {name(5)}),
    "lower than all": (together(rename(0, 2), rename(90, 0)), {name(0), name(2)}),
    "between the others": (rename(30, 95), {name(95)}),
    "within its own offsets": (rename(30, 40), {name(40)}),
    "within its own first batch": (rename(30, 35), {name(35)}),
    "within its own last batch": (rename(90, 115), {name(115)}),
    "a copy": (copy(30, 1000), set()),
    "a copy within its own offsets": (copy(30, 40), set()),
    "a copy before": (copy(60, 7), set()),
}


@pytest.fixture(params=[False, True], ids=["sidecars", "only logs"])
def changed(partition: Path, request: pytest.FixtureRequest) -> Path:
    if request.param:
        without_sidecars(partition)
    return partition


def offsets(rows: list[dict[str, Any]]) -> list[int]:
    return [row["offset"] for row in rows]


@pytest.mark.parametrize("change", CHANGES)
def test_every_record_is_read_once(changed: Path, cli: Cli, tmp_path: Path, change: str) -> None:
    alter, misnamed = CHANGES[change]
    alter(changed)
    assert offsets(cli.records(changed, code=None)) == ALL
    found = cli.json("verify", changed, code=1 if (misnamed or "copy" in change) else 0)
    assert found["total"]["rows"] == len(ALL)
    assert found["balanced"]
    kinds = {(one["kind"], one["segment"]) for one in found["problems"]}
    assert {segment for kind, segment in kinds if kind == "wrong_base_offset"} == misnamed
    assert not {kind for kind, _ in kinds} & {"missing_segment", "offset_out_of_order"}
    assert [record.offset for record in PartitionLog(changed).records()] == ALL
    assert [
        record.offset for record in PartitionLog(changed).records(isolation_level="read_committed")
    ] == ALL


@pytest.mark.parametrize("change", CHANGES)
def test_any_part_of_it(changed: Path, cli: Cli, change: str) -> None:
    CHANGES[change][0](changed)
    for start in (0, 1, 29, 30, 45, 60, 89, 90, 101, 119, 120):
        assert [record.offset for record in PartitionLog(changed).records(start)] == ALL[start:], start
        read = cli.records("--start-offset", start, "--end-offset", start + 31, changed, code=None)
        assert offsets(read) == ALL[start : start + 31], start
        if start < len(ALL):
            log = PartitionLog(changed)
            assert log.offset_for_timestamp(1_700_000_000_000 + start) == start


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("command", ["recover", "convert"])
def test_outputs_have_right_names(changed: Path, cli: Cli, tmp_path: Path, change: str, command: str) -> None:
    CHANGES[change][0](changed)
    out = tmp_path / "out"
    cli(command, "--engine", "local", "--segment-bytes", "2k", changed.parent, out, code=None)
    assert offsets(cli.records(out)) == ALL
    found = cli.json("verify", out)
    assert found["problems"] == []


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("since", [0, 30, 75, 90])
def test_a_table_gets_every_record(
    partition: Path, cli: Cli, tmp_path: Path, change: str, since: int
) -> None:
    """The second run begins where the first ended; names must not hide what is after it."""
    pytest.importorskip("deltalake")
    from deltalake import DeltaTable

    out = tmp_path / "table"
    away = tmp_path / "away"
    away.mkdir()
    without_sidecars(partition)
    if since:
        for path in sorted(partition.iterdir()):
            if int(path.stem) >= since:
                path.rename(away / path.name)
        cli("ingest", "--engine", "local", "--format", "delta", partition.parent, out)
        for path in away.iterdir():
            path.rename(partition / path.name)
    CHANGES[change][0](partition)
    cli("ingest", "--engine", "local", "--format", "delta", partition.parent, out, code=None)
    rows = DeltaTable(str(out / "records") if (out / "records").exists() else str(out)).to_pyarrow_table()
    assert sorted(rows["offset"].to_pylist()) == ALL


def test_a_wrong_offset_in_the_last_batch_does_not_hide_the_next_segments(partition: Path, cli: Cli) -> None:
    """No CRC covers the base offset: one flipped bit must not cost more than its batch."""
    path = partition / name(30)
    data = bytearray(path.read_bytes())
    last = len(data) - len(batch(50))
    for byte, bit in ((7, 6), (6, 3), (4, 0), (3, 1), (0, 2)):
        damaged = bytearray(data)
        damaged[last + byte] ^= 1 << bit
        path.write_bytes(damaged)
        found = cli.json("verify", partition, code=1)
        assert found["total"]["rows"] == len(ALL) - 10, (byte, bit)
        assert {one["kind"] for one in found["problems"]} >= {"offset_out_of_order"}


def test_sidecars_are_not_rebuilt_under_wrong_names(partition: Path) -> None:
    exchange(30, 60)(partition)
    with pytest.raises(Error, match=name(60)):
        _core.rebuild_sidecars(str(partition))
