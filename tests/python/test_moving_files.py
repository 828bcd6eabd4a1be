"""Segments that are appended to, rolled, cleaned or deleted between listing, planning and reading."""

from __future__ import annotations

import json
import logging
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow.dataset as ds
import pytest
from conftest import KAFKA, Cli
from magicbyte import PartitionLog, _core
from magicbyte.errors import CorruptRecordError
from magicbyte.jobs import explain as explain_job
from magicbyte.jobs import indexes, rewrite
from magicbyte.jobs.find import partitions
from magicbyte.jobs.ingest import IngestReport, ingest
from magicbyte.jobs.run import decode_partitions as job
from magicbyte.jobs.run.engines import LocalEngine
from magicbyte.jobs.stats import statistics
from magicbyte.jobs.verify import VerifyReport, verify
from magicbyte.options.ingest import IngestOptions
from magicbyte.options.read import VerifyOptions

pytestmark = pytest.mark.partitions("v2_none", "v2_gzip")
FIRST, MIDDLE, LAST = (f"{offset:020d}.log" for offset in (0, 104, 244))

Change = Callable[[Path], None]


def append(partition: Path) -> None:
    with (partition / LAST).open("ab") as file:
        file.write((partition / MIDDLE).read_bytes())


def roll(partition: Path) -> None:
    (partition / f"{346:020d}.log").write_bytes((partition / MIDDLE).read_bytes())


def delete(partition: Path) -> None:
    delete_segment(partition, MIDDLE)


def retain(partition: Path) -> None:
    delete_segment(partition, FIRST)


def delete_segment(partition: Path, name: str) -> None:
    for path in partition.glob(name.replace(".log", ".*")):
        path.rename(f"{path}.deleted")


def remove_all(partition: Path) -> None:
    shutil.rmtree(partition)


def delete_topic(partition: Path) -> None:
    partition.rename(partition.with_name(f"{partition.name}.{'0' * 32}-delete"))


def batches_of(data: bytes) -> Iterator[bytes]:
    while data:
        size = 12 + int.from_bytes(data[8:12])
        yield data[:size]
        data = data[size:]


def replace(path: Path, data: bytes) -> None:
    """Replaces a file as Kafka's cleaner does: another one of the same name, with the time of the old one."""
    times = path.stat()
    swap = path.with_name(f"{path.name}.swap")
    swap.write_bytes(data)
    os.utime(swap, ns=(times.st_atime_ns, times.st_mtime_ns))
    swap.rename(path)


def clean(partition: Path) -> None:
    """Leaves out the first half of the middle segment."""
    batches = list(batches_of((partition / MIDDLE).read_bytes()))
    replace(partition / MIDDLE, b"".join(batches[len(batches) // 2 :]))
    (partition / MIDDLE.replace("log", "index")).unlink(missing_ok=True)


def merge(partition: Path) -> None:
    """Joins the first two segments."""
    replace(partition / FIRST, (partition / FIRST).read_bytes() + (partition / MIDDLE).read_bytes())
    delete_segment(partition, MIDDLE)


def offsets_after(change: Change) -> list[int]:
    everything = list(range(346))
    if change is clean:
        batches = list(batches_of((KAFKA / "v2_none" / MIDDLE).read_bytes()))
        begin = int.from_bytes(batches[len(batches) // 2][:8])
        return [*range(104), *range(begin, 346)]
    return {
        delete: [*range(104), *range(244, 346)],
        retain: everything[104:],
        remove_all: [],
        delete_topic: [],
    }.get(change, everything)


@pytest.fixture(params=["plan_partitions", "tasks_of"], ids=["before the survey", "before decoding"])
def during(
    request: pytest.FixtureRequest, source: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., Any]:
    """Runs a job during which something happens to the partition, once."""
    step = getattr(job, request.param)

    def run(change: Change, function: Callable[[], Any]) -> Any:
        def changed(*args: Any, **options: Any) -> Any:
            monkeypatch.setattr(job, request.param, step)
            change(source / "v2_none")
            return step(*args, **options)

        monkeypatch.setattr(job, request.param, changed)
        return function()

    return run


def read_offsets(out: Path) -> list[int]:
    table = ds.dataset(out / "records", partitioning="hive").to_table(["offset", "topic"])
    rows = zip(table["topic"].to_pylist(), table["offset"].to_pylist(), strict=True)
    return sorted(offset for topic, offset in rows if topic == "v2_none")


def options_of(report: VerifyReport | IngestReport) -> dict[str, Any]:
    (one,) = [one for one in report["partitions"] if one["topic"] == "v2_none"]
    return dict(one)


@pytest.mark.parametrize("change", [append, roll])
def test_what_comes_later_is_not_read(
    during: Callable[..., Any], change: Change, source: Path, tmp_path: Path
) -> None:
    report: IngestReport = during(
        change, lambda: ingest([str(source)], str(tmp_path / "out"), LocalEngine(2), IngestOptions())
    )
    assert report["balanced"]
    size = sum(path.stat().st_size for path in (KAFKA / "v2_none").glob("*.log"))
    assert options_of(report)["size"] == size
    assert report["total"]["problems"] == 0
    assert read_offsets(tmp_path / "out") == list(range(346))


@pytest.mark.parametrize("change", [retain, clean, merge, remove_all, delete_topic])
def test_what_a_broker_does_is_no_damage(
    during: Callable[..., Any], change: Change, source: Path, tmp_path: Path
) -> None:
    report: IngestReport = during(
        change, lambda: ingest([str(source)], str(tmp_path / "out"), LocalEngine(2), IngestOptions())
    )
    assert report["balanced"]
    assert report["total"]["problems"] == 0
    assert report["total"]["quarantined_bytes"] == 0
    expected = offsets_after(change)
    assert read_offsets(tmp_path / "out") == expected
    assert options_of(report)["rows"] == len(expected)
    # The other partition, whose chunks shared tasks with this one's, is counted once.
    assert report["total"]["rows"] == len(expected) + rows_of("v2_gzip")


def rows_of(name: str) -> int:
    return sum(1 for _ in PartitionLog(KAFKA / name).records())


@pytest.mark.parametrize("change", [retain, clean, merge, remove_all])
def test_jobs_that_write_nothing(during: Callable[..., Any], change: Change, source: Path) -> None:
    def both() -> tuple[VerifyReport, Any]:
        report = verify([str(source)], LocalEngine(2), VerifyOptions(max_decompressed_bytes=1 << 20))
        return report, statistics([str(source)], LocalEngine(2), max_decompressed_bytes=1 << 20)

    report, stats = during(change, both)
    assert report["balanced"]
    assert (report["total"]["problems"], report["problems"]) == (0, [])
    assert (
        report["total"]["rows"]
        == stats["total"]["records"]
        == len(offsets_after(change)) + rows_of("v2_gzip")
    )


def test_a_hole_in_the_middle_is_a_problem(during: Callable[..., Any], source: Path, tmp_path: Path) -> None:
    report: IngestReport = during(
        delete, lambda: ingest([str(source)], str(tmp_path / "out"), LocalEngine(2), IngestOptions())
    )
    assert report["balanced"]
    (problem,) = ds.dataset(tmp_path / "out" / "problems").to_table().to_pylist()
    assert (problem["kind"], problem["segment"]) == ("missing_segment", LAST)
    assert (problem["firstLostOffset"], problem["lastLostOffset"]) == (104, 243)
    assert read_offsets(tmp_path / "out") == offsets_after(delete)


@pytest.mark.parametrize("change", [retain, clean, merge, remove_all])
def test_a_table_gets_what_is_there(
    during: Callable[..., Any], change: Change, source: Path, tmp_path: Path, cli: Cli
) -> None:
    pytest.importorskip("deltalake")
    table = tmp_path / "table"
    report = during(change, lambda: cli.json("ingest", "--format", "delta", source, table))
    assert report["balanced"]
    assert report["commit"]["problems"] == []
    assert report["total"]["rows"] == len(offsets_after(change)) + rows_of("v2_gzip")
    # One that goes on later finds nothing new.
    assert cli.json("ingest", "--format", "delta", source, table)["commit"]["partitions"] == []


def test_what_a_table_misses_is_named(
    during: Callable[..., Any], source: Path, tmp_path: Path, cli: Cli
) -> None:
    """Retention is faster than the job: the table ends before the log begins."""
    pytest.importorskip("deltalake")
    table = tmp_path / "table"
    partition, whole = source / "v2_none", tmp_path / "whole"
    partition.rename(whole)
    partition.mkdir()
    (partition / FIRST).write_bytes(next(batches_of((whole / FIRST).read_bytes())))
    cli("ingest", "--format", "delta", source, table)
    shutil.rmtree(partition)
    whole.rename(partition)
    report = during(retain, lambda: cli.json("ingest", "--format", "delta", source, table, code=1))
    (problem,) = report["commit"]["problems"]
    assert (problem["kind"], problem["last_lost_offset"]) == ("data_loss", 103)
    assert report["total"]["rows"] == 346 - 104


def test_a_log_that_never_holds_still(source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After some attempts there is a clear problem, and the account holds."""
    step, looks = job.tasks_of, 0
    again = job.tasks_of_chunks

    def replaced(*args: Any, **options: Any) -> Any:
        nonlocal looks
        looks += 1
        path = source / "v2_none" / MIDDLE
        data = path.read_bytes()
        replace(path, data)
        os.utime(path, (looks, looks))
        return (step if looks == 1 else again)(*args, **options)

    monkeypatch.setattr(job, "tasks_of", replaced)
    monkeypatch.setattr(job, "tasks_of_chunks", replaced)
    report = verify([str(source)], LocalEngine(1), VerifyOptions(max_decompressed_bytes=1 << 20))
    assert 2 < looks < 20
    assert report["balanced"]
    (problem,) = report["problems"]
    assert (problem["kind"], problem["segment"]) == ("file_unreadable", MIDDLE)
    assert "it has changed since it was listed" in problem["message"]


def test_a_torn_batch_is_one_that_a_broker_writes_or_damage(during: Callable[..., Any], source: Path) -> None:
    path = source / "v2_none" / LAST
    data = path.read_bytes()
    path.write_bytes(data[:-10])
    path.with_suffix(".index").unlink()

    def run() -> VerifyReport:
        return verify([str(source)], LocalEngine(2), VerifyOptions(max_decompressed_bytes=1 << 20))

    def finish(_: Path) -> None:
        path.write_bytes(data)

    # The broker was killed: nothing has changed since.
    report = run()
    assert [one["kind"] for one in report["problems"]] == ["partial_batch"]
    report = during(finish, run)
    assert report["problems"] == []
    assert report["total"]["rows"] == 346 + rows_of("v2_gzip")


@pytest.mark.parametrize("change", [retain, clean, merge, remove_all, delete_topic])
def test_recover(
    change: Change, source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cli: Cli
) -> None:
    step = rewrite._cut

    def changed(*args: Any) -> Any:
        monkeypatch.setattr(rewrite, "_cut", step)
        change(source / "v2_none")
        return step(*args)

    monkeypatch.setattr(rewrite, "_cut", changed)
    report = cli.json("recover", source, tmp_path / "out")
    assert report["balanced"]
    assert report["total"]["problems"] == 0
    expected = offsets_after(change)
    if expected:
        records = PartitionLog(tmp_path / "out" / "v2_none-0").records()
        assert [record.offset for record in records] == expected
    else:
        assert not (tmp_path / "out" / "v2_none-0").exists()
        assert not list((tmp_path / "out").glob(".*v2_none*"))


@pytest.mark.parametrize("change", [append, retain, clean, merge, remove_all, delete_topic])
def test_explain(change: Change, source: Path, monkeypatch: pytest.MonkeyPatch, cli: Cli) -> None:
    step = explain_job._segment_histories

    def changed(segments: Any) -> Any:
        monkeypatch.setattr(explain_job, "_segment_histories", step)
        change(source / "v2_none")
        return step(segments)

    monkeypatch.setattr(explain_job, "_segment_histories", changed)
    cli("explain", source)


@pytest.mark.parametrize("change", [remove_all, delete_topic])
def test_a_partition_that_is_deleted_after_it_was_found(
    change: Change, source: Path, monkeypatch: pytest.MonkeyPatch, cli: Cli, caplog: pytest.LogCaptureFixture
) -> None:
    step = partitions._list_all

    def changed(*args: Any) -> Any:
        if (source / "v2_none").exists():
            change(source / "v2_none")
        return step(*args)

    monkeypatch.setattr(partitions, "_list_all", changed)
    with caplog.at_level(logging.WARNING, "magicbyte.jobs"):
        report = cli.json("verify", source)
    assert [one["topic"] for one in report["partitions"]] == ["v2_gzip"]
    assert [one.getMessage() for one in caplog.records] == [
        f"{source}/v2_none is not read: it was deleted after it was found"
    ]


@pytest.mark.parametrize("isolation_level", ["read_uncommitted", "read_committed"])
@pytest.mark.parametrize("change", [append, roll, retain, clean, merge])
@pytest.mark.parametrize("already_read", [1, 104])
def test_a_log_that_changes_while_it_is_read(
    change: Change, isolation_level: Any, already_read: int, source: Path
) -> None:
    log = PartitionLog(source / "v2_none", mode="PERMISSIVE")
    records = log.records(isolation_level=isolation_level)
    offsets = [next(records).offset for _ in range(already_read)]
    change(source / "v2_none")
    offsets += [record.offset for record in records]
    assert records.problems == []
    expected = offsets_after(change)
    # What had been opened is read to its end.
    assert offsets == [*range(104), *(offset for offset in expected if offset >= 104)]


def test_an_index_that_is_read_after_the_log_has_grown(source: Path) -> None:
    partition = source / "v2_none"
    index = partition / LAST.replace("log", "index")
    listing = json.loads(_core.list_partition(str(partition)))
    position = listing["segments"][-1]["size"]
    entry = (102).to_bytes(4) + position.to_bytes(4)
    old = index.read_bytes()
    index.write_bytes(old.rstrip(b"\0") + b"\0" * (-len(old.rstrip(b"\0")) % 8) + entry)

    def kinds() -> list[str]:
        survey = json.loads(_core.survey_segment(json.dumps(listing["segments"][-1])))
        return [one["kind"] for one in survey["problems"]]

    assert kinds() == ["index_beyond_log"]
    append(partition)
    assert kinds() == []


@pytest.mark.parametrize("change", [append, delete, clean, merge, remove_all])
def test_check_indexes(change: Change, source: Path, monkeypatch: pytest.MonkeyPatch, cli: Cli) -> None:
    step = indexes.read_sidecar

    def changed(path: str) -> Any:
        monkeypatch.setattr(indexes, "read_sidecar", step)
        found = step(path)
        change(source / "v2_none")
        return found

    shutil.rmtree(source / "v2_gzip")
    monkeypatch.setattr(indexes, "read_sidecar", changed)
    report = cli.json("verify", "--indexes", source, code=None)
    assert report["indexes"]["mismatches"] == []


def test_an_index_without_its_log(source: Path, cli: Cli) -> None:
    (source / "v2_none" / MIDDLE).unlink()
    report = cli.json("verify", "--indexes", source / "v2_none", code=1)
    assert {one["kind"] for one in report["indexes"]["mismatches"]} == {"no_log"}


def test_fail_fast(source: Path) -> None:
    pytest.importorskip("pyspark")
    from magicbyte.spark.options import parse_options
    from magicbyte.spark.reader import MagicbyteReader

    options = {"path": str(source / "v2_none"), "mode": "FAILFAST"}
    reader = MagicbyteReader(parse_options(options), ("offset",))
    parts = reader.partitions()
    append(source / "v2_none")
    assert sum(batch.num_rows for part in parts for batch in reader.read(part)) == 346
    delete(source / "v2_none")
    with pytest.raises(CorruptRecordError, match=f"{MIDDLE}: the file was deleted after it was listed"):
        [batch for part in parts for batch in reader.read(part)]
