"""Offsets that a job could not read: tables remember them, report them, and fill them."""

from __future__ import annotations

import json
from pathlib import Path
from uuid import UUID

import pytest
from conftest import Cli
from lakes import FORMATS, Lake
from lineages import NAME, diverges, expected, records, repair, values, write
from magicbyte import RecordsBuilder
from magicbyte.errors import JobError, RefusedError
from magicbyte.options.typed import TypedColumns
from magicbyte.schema.avro_fingerprint import fingerprint
from test_lake_stream import Looks, commits, nothing
from typed_logs import TypedLog, record


@pytest.fixture(params=FORMATS)
def lake(request: pytest.FixtureRequest, tmp_path: Path) -> Lake:
    return Lake.at(request.param, tmp_path / "lake")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "logs"


def hidden(root: Path, segment: int) -> Path:
    """Moves a segment away; returns where it was."""
    path = root / NAME / f"{segment:020d}.log"
    path.rename(root.parent / path.name)
    return path


def test_a_hole_is_remembered_and_filled(lake: Lake, root: Path) -> None:
    for base in (0, 100, 200):
        write(root, records(base, base + 100), segment=base)
    path = hidden(root, 100)
    first = lake.ingest(root)
    assert first["commit"]["partitions"][0]["holes"] == [[100, 200]]
    (root.parent / path.name).rename(path)
    for _ in range(2):
        report = lake.ingest(root)
        (problem,) = report["commit"]["problems"]
        assert (problem["kind"], problem["first_lost_offset"], problem["last_lost_offset"]) == (
            "hole",
            100,
            199,
        )
        assert report["total"]["problems"] == 1
    write(root, records(300, 310), segment=300)
    assert [one["kind"] for one in lake.ingest(root)["commit"]["problems"]] == ["hole"]
    (repaired,) = repair(lake, root)["commit"]["repaired"]
    assert (repaired["start_offset"], repaired["end_offset"], repaired["rows"]) == (100, 200, 100)
    assert values(lake) == expected("v", 0, 310)
    report = lake.ingest(root)
    assert (report["commit"]["problems"], report["total"]["problems"]) == ([], 0)


def test_a_stream_says_that_there_are_holes(lake: Lake, root: Path) -> None:
    for base in (0, 100, 200):
        write(root, records(base, base + 100), segment=base)
    path = hidden(root, 100)
    lake.ingest(root)
    (root.parent / path.name).rename(path)
    (report,) = commits(lake, root, Looks(nothing, nothing))
    assert report["commit"]["job"] is None
    assert [one["kind"] for one in report["commit"]["problems"]] == ["hole"]


def test_a_hole_that_cannot_be_filled_stays(lake: Lake, root: Path) -> None:
    for base in (0, 100, 200):
        write(root, records(base, base + 100), segment=base)
    hidden(root, 100)
    lake.ingest(root)
    report = lake.ingest(root, repair=True)["commit"]
    assert (report["job"], [one["kind"] for one in report["problems"]]) == (None, ["hole"])
    # A part of it is back.
    write(root, records(100, 150), segment=100)
    lake.ingest(root, repair=True)
    (problem,) = [one for one in lake.ingest(root)["commit"]["problems"] if one["kind"] == "hole"]
    assert (problem["first_lost_offset"], problem["last_lost_offset"]) == (150, 199)
    # Retention has removed the rest: that is acknowledged.
    for segment in (0, 100):
        (root / NAME / f"{segment:020d}.log").unlink()
    (problem,) = lake.ingest(root)["commit"]["problems"]
    assert "the log begins at 200 by now, so they are lost" in problem["message"]
    lake.ingest(root, repair=True)
    assert lake.ingest(root)["commit"]["problems"] == []


def test_damage_is_a_hole_until_it_is_repaired(lake: Lake, root: Path) -> None:
    good = [records(at, at + 10) for at in range(0, 50, 10)]
    damaged = bytearray(good[2])
    damaged[-1] ^= 1
    write(root, good[0], good[1], bytes(damaged), *good[3:])
    lake.ingest(root)
    assert values(lake) == [*expected("v", 0, 20), *expected("v", 30, 50)]
    assert "hole" in {one["kind"] for one in lake.ingest(root)["commit"]["problems"]}
    write(root, *good)
    repair(lake, root)
    assert values(lake) == expected("v", 0, 50)


def test_a_first_segment_that_cannot_be_read(lake: Lake, root: Path) -> None:
    write(root, records(0, 100))
    write(root, records(100, 200), segment=100)
    path = hidden(root, 0)
    path.symlink_to(path)
    lake.ingest(root)
    path.unlink()
    (root.parent / path.name).rename(path)
    assert [one["kind"] for one in lake.ingest(root)["commit"]["problems"]] == ["hole"]
    repair(lake, root)
    assert values(lake) == expected("v", 0, 200)


def test_fail_on_missing_adds_nothing(lake: Lake, root: Path, cli: Cli) -> None:
    for base in (0, 100, 200):
        write(root, records(base, base + 100), segment=base)
    path = hidden(root, 100)
    place = ["ingest", "--format", lake.format, *lake.options, "--fail-on-missing"]
    cli(*place, root, lake.name, code=3)
    assert "nothing is committed, since records of orders-0 are missing" in cli.error
    assert lake.read().num_rows == 0
    (root.parent / path.name).rename(path)
    cli(*place, root, lake.name)
    assert values(lake) == expected("v", 0, 300)


def test_a_hole_and_a_rewritten_end(lake: Lake, root: Path) -> None:
    for base in (0, 100, 200):
        write(root, records(base, base + 100), segment=base)
    hidden(root, 100)
    lake.ingest(root)
    write(root, records(100, 150), records(150, 200, "new"), segment=100)
    write(root, records(200, 250), records(250, 320, "new", epoch=1), segment=200)
    assert diverges(lake, root).offset == 250
    assert len(repair(lake, root)["commit"]["repaired"]) == 2
    assert values(lake)[140:160] == [*expected("v", 140, 150), *expected("new", 150, 160)]


GLUE = "b7b4a7f0-9c96-4e4a-a687-fb5de9ef0c63"
OLD, NEW = record("o", n=("string", None)), record("o", n=("string", None), more=("string", ""))


def grown(tmp_path: Path) -> tuple[TypedLog, dict[str, str]]:
    """A log whose values have two schemas in turn, and a registry that has lost the second one."""
    log = TypedLog(tmp_path, partitions=2)
    for schema in (OLD, NEW, OLD, NEW):
        log.append(schema, [{"n": f"v {at}", "more": "x"} for at in range(20)])
    registered = json.loads(log.registry.read_text())
    log.registry.write_text(json.dumps({"1": registered["1"], "orders-value": registered["1"]}))
    return log, registered


def test_rows_of_an_unknown_schema_are_holes(lake: Lake, tmp_path: Path) -> None:
    log, registered = grown(tmp_path)
    report = lake.ingest(log.root, typed=log.typed)
    assert report["total"]["invalid_values"] == 80
    assert [one["holes"] for one in report["commit"]["partitions"]] == [[[20, 40], [60, 80]]] * 2
    report = lake.ingest(log.root, typed=log.typed)
    assert [one["kind"] for one in report["commit"]["problems"]] == ["hole"] * 4
    assert "unknown schema" in report["commit"]["problems"][0]["message"]
    assert lake.ingest(log.root, typed=log.typed, repair=True)["commit"]["job"] is None
    log.registry.write_text(json.dumps(registered))
    for one in repair(lake, log.root, typed=log.typed)["commit"]["repaired"]:
        assert one["removed_rows"] == one["rows"]
    assert lake.ingest(log.root, typed=log.typed)["commit"]["problems"] == []
    table = lake.read()
    assert (table.num_rows, table.column("value").null_count, table.column("_error").null_count) == (
        160,
        0,
        160,
    )


def test_rows_that_name_unknown_schemas_otherwise_are_holes(lake: Lake, tmp_path: Path) -> None:
    """What AWS Glue framed, and single objects."""
    new = json.dumps(NEW)
    values = [
        b"\0\0\0\0\1\x02a",
        b"\3\0" + UUID(GLUE).bytes + b"\x02b\x02x",
        b"\xc3\x01" + fingerprint(new)[::-1] + b"\x02c\x02x",
        b"text",
        b"\0\0\0\0\1\x02d",
    ]
    builder = RecordsBuilder()
    for offset, value in enumerate(values):
        builder.append(offset, 1, None, value)
    logs = tmp_path / "logs"
    write(logs, builder.build())
    (tmp_path / "1.avsc").write_text(json.dumps(OLD))
    (tmp_path / "2.avsc").write_text(new)
    registry = tmp_path / "registry.json"
    files = {"1": "1.avsc", "orders-value": "1.avsc"}
    registry.write_text(json.dumps(files))
    typed = TypedColumns(schema_registry=str(registry), value_format="avro")
    report = lake.ingest(logs, typed=typed)
    assert report["total"]["invalid_values"] == 3
    assert [one["holes"] for one in report["commit"]["partitions"]] == [[[1, 3]]]
    # A single object is found by its schema, whatever else names that.
    registry.write_text(json.dumps({**files, GLUE: "2.avsc"}))
    (repaired,) = repair(lake, logs, typed=typed)["commit"]["repaired"]
    assert repaired["removed_rows"] == repaired["rows"]
    table = lake.read().sort_by("offset")
    shown = [row and row["n"] for row in table.column("value").to_pylist()]
    assert shown == ["a", "b", "c", None, "d"]
    assert set(lake.compare(logs).values()) == {"equal"}
    registry.write_text(json.dumps(files))
    other = Lake.at(lake.format, tmp_path / "other")
    with pytest.raises(JobError, match=r"records of orders-0 are missing .* offsets 1 to 2"):
        other.ingest(logs, typed=typed, fail_on_missing=True)


def test_a_schema_of_two_that_are_unknown_is_found(lake: Lake, tmp_path: Path) -> None:
    log, registered = grown(tmp_path)
    third = record("o", n=("string", None), last=("string", ""))
    log.append(third, [{"n": "v", "last": "x"}] * 20)
    registered = json.loads(log.registry.read_text())
    log.registry.write_text(json.dumps({"1": registered["1"], "orders-value": registered["1"]}))
    lake.ingest(log.root, typed=log.typed)
    log.registry.write_text(
        json.dumps({one: registered[one] for one in ("1", "2")} | {"orders-value": registered["1"]})
    )
    lake.ingest(log.root, typed=log.typed, repair=True)
    (found, _) = lake.ingest(log.root, typed=log.typed)["commit"]["problems"]
    assert (found["first_lost_offset"], found["last_lost_offset"]) == (80, 99)
    assert lake.read().column("value").null_count == 40
    assert set(lake.compare(log.root).values()) == {"equal"}


def test_fail_on_missing_adds_no_row_of_an_unknown_schema(lake: Lake, tmp_path: Path) -> None:
    log, _ = grown(tmp_path)
    with pytest.raises(JobError, match=r"records of orders-0 are missing .* offsets 20 to 39"):
        lake.ingest(log.root, typed=log.typed, fail_on_missing=True)
    assert lake.read().num_rows == 0


def test_plain_tables_are_not_repaired(root: Path, tmp_path: Path) -> None:
    import magicbyte

    write(root, records(0, 1))
    with pytest.raises(RefusedError, match="only Delta and Iceberg"):
        magicbyte.ingest(root, tmp_path / "out", repair=True)
