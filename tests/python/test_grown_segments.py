"""Surveys of growing segments continue where the last one ended, and a table reads what is new."""

from __future__ import annotations

import json
import os
import sys
import threading
from pathlib import Path
from typing import Any

import magicbyte
import pytest
from conftest import KAFKA
from magicbyte import _core
from magicbyte.jobs.find.partitions import list_directory
from magicbyte.jobs.run.engines import LocalEngine
from magicbyte.jobs.run.kept_surveys import KeptSurveys

SEGMENTS = [
    path
    for path in sorted(KAFKA.glob("*/*.log"))
    if path.stat().st_size > 0 and "torn" not in str(path) and "large" not in str(path)
]


def ends_of(data: bytes) -> list[int]:
    """Where the batches end."""
    ends, position = [], 0
    while position < len(data):
        position += 12 + int.from_bytes(data[position + 8 : position + 12])
        ends.append(position)
    return ends


def survey(path: Path, before: str | None = None) -> str:
    (segment,) = [one for one in list_directory(str(path.parent))["segments"] if one["file"] == path.name]
    return _core.survey_segment(json.dumps(segment), before)


def content(text: str) -> dict[str, Any]:
    """A survey without what depends on where it began: all else is equal."""
    return {**json.loads(text), "borders": None, "transactional": None, "continues": None}


@pytest.mark.parametrize("segment", SEGMENTS, ids=lambda path: f"{path.parent.name}/{path.stem.lstrip('0')}")
def test_a_grown_segment(segment: Path, tmp_path: Path) -> None:
    data = segment.read_bytes()
    ends = ends_of(data)
    path = tmp_path / "t-0" / segment.name
    path.parent.mkdir()
    for end in {ends[0], ends[len(ends) // 3], ends[len(ends) // 2], ends[-1]}:
        path.unlink(missing_ok=True)
        path.write_bytes(data[:end])
        before = survey(path)
        with path.open("ab") as file:
            file.write(data[end:])
        grown, whole = survey(path, before), survey(path)
        assert content(grown) == content(whole)
        assert json.loads(grown)["continues"] == json.loads(before)["last_batch"]
        # Each producer is named after each border.
        assert {one[1] for one in json.loads(whole)["transactional"]} == {
            one[1] for one in json.loads(grown)["transactional"]
        }
        # In many steps, there are no more borders than in two.
        text = before
        for step in [one for one in ends if one > end][:9]:
            path.write_bytes(data[:step])
            text = survey(path, text)
        assert len(json.loads(text)["borders"]) <= 1


@pytest.mark.parametrize("how", ["rewritten", "shorter", "replaced", "damaged", "torn"])
def test_a_segment_that_has_not_only_grown(how: str, tmp_path: Path) -> None:
    path = tmp_path / "t-0" / f"{0:020d}.log"
    path.parent.mkdir()

    def batch(offset: int, value: bytes) -> bytes:
        builder = magicbyte.RecordsBuilder()
        builder.append(offset, 1000 + offset, b"k", value)
        return builder.build()

    data = b"".join(batch(offset, b"old") for offset in range(10))
    path.write_bytes(data)
    before = survey(path)
    new = b"".join(batch(offset, b"new" * 9) for offset in range(9, 20))
    if how == "rewritten":  # a follower that truncated and fetched again, into the same file
        path.write_bytes(data[: ends_of(data)[8]] + new)
    elif how == "shorter":
        path.write_bytes(data[: ends_of(data)[4]])
    elif how == "replaced":
        other = path.with_name("other")
        other.write_bytes(batch(0, b"another") + data[ends_of(data)[0] :] + new[ends_of(new)[0] :])
        other.rename(path)
    else:
        more = bytearray(data + new[ends_of(new)[0] :])
        if how == "damaged":
            more[len(data) + 30] ^= 1
        path.write_bytes(more if how == "damaged" else more[:-5])
    assert {**json.loads(survey(path, before)), "continues": None} == json.loads(survey(path))


def test_surveys_that_are_kept(tmp_path: Path) -> None:
    kept = KeptSurveys()
    path = tmp_path / "t-0" / f"{0:020d}.log"
    path.parent.mkdir()
    for offset in range(20):
        builder = magicbyte.RecordsBuilder()
        builder.append(offset, 1000 + offset, b"k", b"v")
        with path.open("ab") as file:
            file.write(builder.build())
        listing = list_directory(str(path.parent))
        ((text,),) = kept.survey([listing], LocalEngine(1))
        assert content(text) == content(survey(path))


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize("isolation_level", ["read_uncommitted", "read_committed"])
def test_a_stream_reads_what_is_new(tmp_path: Path, isolation_level: Any) -> None:
    pytest.importorskip("deltalake")
    path = tmp_path / "logs" / "t-0" / f"{0:020d}.log"
    path.parent.mkdir(parents=True)
    offset, value = 0, os.urandom(16_000)

    def write(batches: int, records: int) -> None:
        nonlocal offset
        with path.open("ab") as file:
            for _ in range(batches):
                builder = magicbyte.RecordsBuilder()
                for _ in range(records):
                    builder.append(offset, 1_700_000_000_000 + offset, b"k", value if records > 1 else b"v")
                    offset += 1
                file.write(builder.build())

    def read_bytes() -> int:
        return int(Path("/proc/self/io").read_text().split()[1])

    write(120, 25)
    assert path.stat().st_size > 45 << 20
    stop = threading.Event()
    reports = magicbyte.ingest_stream(
        tmp_path / "logs",
        tmp_path / "table",
        interval=0.01,
        isolation_level=isolation_level,
        engine=LocalEngine(1),
        stop=stop,
    )
    assert next(reports)["total"]["rows"] == 3000
    before = read_bytes()
    for _ in range(4):
        write(15, 1)
        report = next(reports)
        assert (report["balanced"], report["total"]["rows"], report["total"]["problems"]) == (True, 15, 0)
    assert read_bytes() - before < 4 << 20
    stop.set()
    verified = magicbyte.verify(tmp_path / "logs", table=tmp_path / "table")
    assert verified["table"] is not None
    assert verified["table"]["equal"]
