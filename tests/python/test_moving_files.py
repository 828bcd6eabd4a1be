"""Segments that are appended to, rolled or deleted between listing, planning and reading."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.dataset as ds
import pytest
from conftest import KAFKA
from magicbyte.errors import CorruptRecordError
from magicbyte.jobs import decode_partitions as job
from magicbyte.jobs.engines import LocalEngine
from magicbyte.jobs.ingest import IngestOptions, IngestReport, ingest

pytestmark = pytest.mark.partitions("v2_none")
MIDDLE, LAST = f"{104:020d}.log", f"{244:020d}.log"

Change = Callable[[Path], None]


def append(partition: Path) -> None:
    with (partition / LAST).open("ab") as file:
        file.write((partition / MIDDLE).read_bytes())


def roll(partition: Path) -> None:
    (partition / f"{346:020d}.log").write_bytes((partition / MIDDLE).read_bytes())


def delete(partition: Path) -> None:
    for path in partition.glob(MIDDLE.replace(".log", ".*")):
        path.rename(f"{path}.deleted")


def remove_all(partition: Path) -> None:
    shutil.rmtree(partition)


@pytest.fixture(params=["plan_partitions", "tasks_of"], ids=["before the survey", "before decoding"])
def ingested(
    request: pytest.FixtureRequest, source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[[Change], IngestReport]:
    """Runs an ingest during which something happens to the partition."""
    step = getattr(job, request.param)

    def run(change: Change) -> IngestReport:
        def changed(*args: Any, **options: Any) -> Any:
            change(source / "v2_none")
            return step(*args, **options)

        monkeypatch.setattr(job, request.param, changed)
        return ingest([str(source)], str(tmp_path / "out"), LocalEngine(2), IngestOptions())

    return run


@pytest.mark.parametrize("change", [append, roll])
def test_what_comes_later_is_not_read(
    ingested: Callable[[Change], IngestReport], change: Change, tmp_path: Path
) -> None:
    report = ingested(change)
    assert report["balanced"]
    assert report["total"]["size"] == sum(path.stat().st_size for path in (KAFKA / "v2_none").glob("*.log"))
    assert report["total"]["problems"] == 0
    offsets = ds.dataset(tmp_path / "out" / "records").to_table(["offset"])["offset"].to_pylist()
    assert sorted(offsets) == list(range(346))


@pytest.mark.parametrize("change", [delete, remove_all])
def test_what_goes_is_reported(
    ingested: Callable[[Change], IngestReport], change: Change, tmp_path: Path
) -> None:
    report = ingested(change)
    assert report["balanced"]
    gone = [MIDDLE] if change is delete else [f"{0:020d}.log", MIDDLE, LAST]
    sizes = sum((KAFKA / "v2_none" / name).stat().st_size for name in gone)
    assert report["total"]["quarantined_bytes"] == sizes
    problems = ds.dataset(tmp_path / "out" / "problems").to_table().to_pylist()
    assert sorted((row["kind"], row["segment"]) for row in problems) == [
        ("file_missing", name) for name in sorted(gone)
    ]
    assert report["total"]["rows"] == (346 - 140 if change is delete else 0)
    if change is delete:
        assert (problems[0]["firstLostOffset"], problems[0]["lastLostOffset"]) == (104, 243)


def test_fail_fast(source: Path) -> None:
    pytest.importorskip("pyspark")
    from magicbyte.spark.options import parse_options
    from magicbyte.spark.reader import MagicbyteReader

    reader = MagicbyteReader(parse_options({"path": str(source), "mode": "FAILFAST"}), ("offset",))
    parts = reader.partitions()
    append(source / "v2_none")
    assert sum(batch.num_rows for part in parts for batch in reader.read(part)) == 346
    delete(source / "v2_none")
    with pytest.raises(CorruptRecordError, match=f"{MIDDLE}: the file was deleted after it was listed"):
        [batch for part in parts for batch in reader.read(part)]
