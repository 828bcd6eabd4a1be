"""Both engines return the same answers, in order, and report what failed."""

from __future__ import annotations

import os
import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import sleep
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pyarrow.dataset as ds
import pytest
from magicbyte.errors import JobError
from magicbyte.jobs.ingest import ingest
from magicbyte.jobs.publish.table_files import Decoded, WriteOptions, decode_task
from magicbyte.jobs.run.engines import LocalEngine, SparkEngine
from magicbyte.jobs.run.plan import Task
from magicbyte.options.ingest import IngestOptions

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_local_order_and_progress() -> None:
    first_may_end = threading.Event()
    seen: list[int] = []

    class Progress:
        visible = True

        def step(self, name: str, size: int) -> Progress:
            assert (name, size) == ("names", 60)
            return self

        def __enter__(self) -> Progress:
            return self

        def __exit__(self, *exc: object) -> None:
            pass

        def done(self, total_bytes: int) -> None:
            seen.append(total_bytes)

    def work(number: int) -> int:
        # The first to start is the last to end, but the answers still come in order.
        if number == 1:
            first_may_end.wait(60)
        else:
            first_may_end.set()
        return -number

    answers = LocalEngine(2).map(work, [1, 2, 3], name="names", sizes=[10, 20, 30], progress=Progress())
    assert answers == [-1, -2, -3]
    assert seen[-1] == 60


def test_local_failure_ends_all() -> None:
    def work(number: int) -> int:
        if number == 0:
            raise OSError("disk on fire")
        return number

    with pytest.raises(OSError, match="on fire"):
        LocalEngine(1).map(work, list(range(100)), name="work", sizes=[1] * 100)


@pytest.mark.spark
def test_spark_order_and_names(spark: SparkSession) -> None:
    engine = SparkEngine(spark)
    assert engine.parallelism == 2

    def work(number: int) -> tuple[int, str | None]:
        from pyspark import TaskContext

        context = TaskContext.get()
        assert context is not None
        return number, context.getLocalProperty("spark.job.description")

    answers = engine.map(work, list(range(7)), name="magicbyte test: 7 tasks", sizes=[1] * 7)
    assert answers == [(number, "magicbyte test: 7 tasks") for number in range(7)]
    for key in ("spark.job.description", "spark.jobGroup.id", "callSite.short"):
        assert spark.sparkContext.getLocalProperty(key) is None
    assert engine.map(work, [], name="nothing", sizes=[]) == []


@pytest.mark.spark
def test_a_full_disk_is_one_line_of_spark_too(spark: SparkSession) -> None:
    def work(number: int) -> int:
        raise OSError(28, "No space left on device", "part.parquet")

    with pytest.raises(JobError, match=r"^\[Errno 28\] No space left on device: 'part.parquet'$"):
        SparkEngine(spark).map(work, [1, 2], name="full", sizes=[1, 1])


@pytest.mark.spark
def test_spark_shows_progress(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []
    monkeypatch.setattr(uuid, "uuid4", lambda: SimpleNamespace(hex="shown"))

    class Progress:
        visible = True

        @contextmanager
        def step(self, name: str, size: int) -> Iterator[Progress]:
            assert size == 600
            yield self

        def done(self, total_bytes: int) -> None:
            seen.append(total_bytes)

    name = "magicbyte decode: 6 tasks, 600 B"
    SparkEngine(spark).map(lambda _: sleep(0.5), range(6), name=name, sizes=[100] * 6, progress=Progress())
    assert seen == sorted(seen)
    assert any(0 < size < 600 for size in seen)
    # What Spark's UI lists.
    tracker = spark.sparkContext.statusTracker()
    (job,) = tracker.getJobIdsForGroup("magicbyte-shown")
    found = tracker.getJobInfo(job)
    assert found is not None
    stages = [tracker.getStageInfo(stage) for stage in found.stageIds]
    assert [stage.name for stage in stages if stage] == [name]


@pytest.mark.spark
@pytest.mark.parametrize("hard", [False, True])
@pytest.mark.partitions("v2_none", "v2_txn")
def test_a_retried_task_does_not_double_rows(
    spark: SparkSession, source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, hard: bool
) -> None:
    marker = tmp_path / "failed-once"

    def dies_once(task: Task, options: WriteOptions) -> Decoded:
        decoded = decode_task(task, options)
        if not marker.exists():
            marker.touch()
            if hard:
                os._exit(1)  # as a worker that runs out of memory does
            raise OSError("failed after it wrote its files")
        return decoded

    monkeypatch.setattr("magicbyte.jobs.publish.local_tables.LocalTables.decode", staticmethod(dies_once))
    out = tmp_path / "out"
    report = ingest([str(source)], str(out), SparkEngine(spark), IngestOptions())
    assert marker.exists()
    assert report["balanced"]
    table = ds.dataset(out / "records").to_table(["topic", "offset"])
    assert table.num_rows == report["total"]["rows"] == 346 + 78
    assert table.group_by(["topic", "offset"]).aggregate([]).num_rows == table.num_rows
