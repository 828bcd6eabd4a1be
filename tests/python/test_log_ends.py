"""A written log ends where its source ends, also if the last offsets have no records: none is given twice."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import magicbyte
import pytest
from magicbyte import commands

RECORDS = range(480, 490)


def name(base_offset: int) -> str:
    return f"{base_offset:020}.log"


def batch(offsets: range) -> bytes:
    builder = magicbyte.RecordsBuilder(compression="lz4")
    for offset in offsets:
        builder.append(offset, key=b"k%d" % offset, value=b"v", timestamp=1_700_000_000_000)
    return bytes(builder.build())


LOGS: dict[str, tuple[dict[str, bytes], int, int]] = {
    # Files, and where the log starts and ends: as a broker finds it.
    "expired": ({name(5000): b""}, 5000, 5000),
    "an empty last segment": ({name(480): batch(RECORDS), name(500): b""}, 480, 500),
    "two empty ones": ({name(480): batch(RECORDS), name(500): b"", name(600): b""}, 480, 600),
    "an empty one that follows at once": ({name(480): batch(RECORDS), name(490): b""}, 480, 490),
    "nothing but damage at its end": ({name(480): batch(RECORDS), name(500): b"\xff" * 200}, 480, 500),
    "nothing but damage": ({name(700): b"\xff" * 200}, 700, 700),
    "exchanged names": ({name(0): batch(range(300, 310)), name(300): batch(range(100, 110))}, 100, 310),
    "an empty first segment": ({name(0): b"", name(480): batch(RECORDS)}, 0, 490),
    "whole": ({name(480): batch(RECORDS)}, 480, 490),
}
JOBS: dict[str, dict[str, Any]] = {
    "recover": {},
    "recover truncate": {"method": "truncate"},
    "convert": {},
    "convert to magic 1": {"magic": 1},
    "compact": {"all_topics": True},
}


@pytest.mark.parametrize("job", JOBS)
@pytest.mark.parametrize("log", LOGS)
def test_a_written_log_ends_where_its_source_ends(log: str, job: str, tmp_path: Path) -> None:
    files, start, end = LOGS[log]
    source = tmp_path / "source" / "t-0"
    source.mkdir(parents=True)
    for file, content in files.items():
        (source / file).write_bytes(content)
    getattr(commands, job.split(" ")[0])(source.parent, tmp_path / "out", **JOBS[job])
    written = {path.name: path.stat().st_size for path in (tmp_path / "out" / "t-0").glob("*.log")}
    assert min(written) == name(start)
    last = int(max(written)[:20])
    log = magicbyte.PartitionLog(tmp_path / "out" / "t-0", mode="PERMISSIVE")
    assert max([last, *(one.last_offset + 1 for one in log.batches())]) == end, written
    # Offsets that were in no file of the source are in none of the output.
    assert {one["kind"] for one in commands.verify(tmp_path / "out")["problems"]} <= {"missing_segment"}


@pytest.mark.parametrize("job", JOBS)
def test_all_records_are_deleted(job: str, tmp_path: Path) -> None:
    source = tmp_path / "source" / "t-0"
    source.mkdir(parents=True)
    (source / name(480)).write_bytes(batch(RECORDS))
    (source.parent / "log-start-offset-checkpoint").write_text("0\n1\nt 0 490\n")
    getattr(commands, job.split(" ")[0])(source.parent, tmp_path / "out", **JOBS[job])
    assert [path.name for path in (tmp_path / "out" / "t-0").glob("*.log")] == [name(490)]
    assert commands.verify(tmp_path / "out")["problems"] == []
