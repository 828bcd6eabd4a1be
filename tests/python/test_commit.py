"""The commit protocol: what is published, what is refused, what a failure leaves behind."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pyarrow.dataset as ds
import pytest
from magicbyte.errors import JobError, RefusedError
from magicbyte.jobs.find.partitions import list_partitions
from magicbyte.jobs.ingest import ingest
from magicbyte.jobs.publish.local_tables import LocalTables
from magicbyte.jobs.publish.table_files import Decoded, WriteOptions, decode_task
from magicbyte.jobs.run.engines import LocalEngine
from magicbyte.jobs.run.plan import Task, plan_partitions, tasks_of
from magicbyte.jobs.run.reading import ReadOptions, table_schema
from magicbyte.options.ingest import IngestOptions

REPORT = {"magicbyte": "test"}
pytestmark = pytest.mark.partitions("v2_txn", "v0_gzip")


def visible(out: Path) -> list[str]:
    """The data files that Spark or pyarrow would read."""
    files = (path.relative_to(out) for path in out.rglob("*.parquet"))
    return sorted(str(path) for path in files if not any(part.startswith("_") for part in path.parts))


def decode(source: Path, output: LocalTables) -> list[Decoded]:
    options = WriteOptions(ReadOptions(("key", "value", "offset"), True), output.staging)
    plans = plan_partitions(list_partitions([str(source)]), LocalEngine(1))
    return [decode_task(task, options) for task in tasks_of(plans, 1)]


def test_only_named_files_are_published(source: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    with LocalTables(str(out), [str(source)]) as output:
        decode(source, output)  # an attempt whose result never arrived
        files = [file for one in decode(source, output) for file in one.files]
        assert visible(out) == []
        output.add(files)
        output.add_empty_tables({"problems": table_schema("problems")})
        assert visible(out) == []
        output.commit(REPORT)
    assert sum(path.startswith("records/") for path in visible(out)) == 2
    assert sum(path.startswith("problems/") for path in visible(out)) == 1
    names = {path.name for path in out.iterdir()}
    assert names == {"records", "batches", "problems", "reconciliation.json", "_SUCCESS"}


DEAD_JOB = """
import os, sys
from magicbyte.jobs.publish.local_tables import LocalTables

output = LocalTables(sys.argv[1], [])
open(os.path.join(output.staging, "part.parquet"), "wb").close()
os._exit(0)
"""


@pytest.mark.parametrize("overwrite", [False, True])
def test_a_dead_job_leaves_no_table(source: Path, tmp_path: Path, *, overwrite: bool) -> None:
    out = tmp_path / "out"
    subprocess.run([sys.executable, "-c", DEAD_JOB, out], check=True)
    assert visible(out) == []
    assert {path.name for path in out.iterdir()} == {"_temporary"}
    # Its leftovers are ours, and nothing of value is lost.
    ingest([str(source)], str(out), LocalEngine(1), IngestOptions(overwrite=overwrite))
    assert (out / "_SUCCESS").exists()
    assert not (out / "_temporary").exists()


def test_a_living_job_has_its_output_for_itself(source: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    with LocalTables(str(out), [str(source)]) as output:
        files = [file for one in decode(source, output) for file in one.files]
        output.add(files)
        for overwrite in (False, True):
            with pytest.raises(RefusedError, match="another job is writing"):
                LocalTables(str(out), [str(source)], overwrite=overwrite)
        output.add_empty_tables({"problems": table_schema("problems")})
        output.commit(REPORT)
    assert (out / "_SUCCESS").exists()
    assert sorted(path.name for path in out.rglob("part-0*")) == sorted(file.name for file in files)


@pytest.mark.parametrize("harm", ["gone", "changed"])
def test_only_what_is_there_is_published(source: Path, tmp_path: Path, harm: str) -> None:
    out = tmp_path / "out"
    with LocalTables(str(out), [str(source)]) as output:
        output.add([file for one in decode(source, output) for file in one.files])
        output.add_empty_tables({"problems": table_schema("problems")})
        file = next(out.rglob("records/**/*.parquet"))
        if harm == "gone":
            file.unlink()
        else:
            file.write_bytes(b"short")
        with pytest.raises(JobError, match="nothing is published"):
            output.commit(REPORT)
    assert not out.exists()


def test_a_failed_job_cleans_up(source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(task: Task, options: WriteOptions) -> Decoded:
        decode_task(task, options)
        raise OSError("disk full")

    monkeypatch.setattr(LocalTables, "decode", staticmethod(fail))
    out = tmp_path / "out"
    with pytest.raises(OSError, match="disk full"):
        ingest([str(source)], str(out), LocalEngine(2), IngestOptions())
    assert not out.exists()
    out.mkdir()
    with pytest.raises(OSError, match="disk full"):
        ingest([str(source)], str(out), LocalEngine(2), IngestOptions())
    assert list(out.iterdir()) == []


def test_a_failed_overwrite_keeps_the_old_output(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    ingest([str(source)], str(out), LocalEngine(1), IngestOptions())
    before = visible(out)

    def fail(output: LocalTables, report: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(LocalTables, "commit", fail)
    with pytest.raises(OSError, match="disk full"):
        ingest([str(source)], str(out), LocalEngine(1), IngestOptions(overwrite=True))
    assert visible(out) == before
    assert (out / "_SUCCESS").exists()
    assert not (out / "_temporary").exists()


def test_overwrite_replaces_everything(source: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    ingest([str(source)], str(out), LocalEngine(1), IngestOptions())
    ingest([str(source / "v2_txn")], str(out), LocalEngine(1), IngestOptions(overwrite=True))
    topics = {row["topic"] for row in ds.dataset(out / "records").to_table(["topic"]).to_pylist()}
    assert topics == {"v2_txn"}
    assert (out / "_SUCCESS").exists()


def test_refusals(source: Path, tmp_path: Path) -> None:
    def refused(out: Path, match: str, *, overwrite: bool = True) -> None:
        before = sorted(tmp_path.rglob("*"))
        with pytest.raises(RefusedError, match=match):
            LocalTables(str(out), [str(source)], overwrite=overwrite)
        assert sorted(tmp_path.rglob("*")) == before

    foreign = tmp_path / "foreign"
    foreign.mkdir()
    (foreign / "thesis.txt").write_text("years of work")
    refused(foreign, "not empty", overwrite=False)
    refused(foreign, "not an output of magicbyte")
    (foreign / "thesis.txt").rename(foreign / "records")
    refused(foreign, "not an output of magicbyte")
    refused(source, "overlap")
    refused(source / "v2_txn" / "out", "overlap")
    refused(tmp_path, "overlap")
    (tmp_path / "link").symlink_to(source)
    refused(tmp_path / "link", "overlap")
    ours = tmp_path / "ours"
    ingest([str(source)], str(ours), LocalEngine(1), IngestOptions())
    for place in (ours / "notes.txt", ours / "records" / "notes.txt", ours / "problems" / "x" / "notes.txt"):
        place.parent.mkdir(exist_ok=True)
        place.write_text("mine")
        refused(ours, "notes.txt")
        place.unlink()
    (ours / "reconciliation.json").write_text("{}")
    refused(ours, "is not ours")
    file = tmp_path / "file"
    file.write_text("")
    refused(file, "not a directory")
