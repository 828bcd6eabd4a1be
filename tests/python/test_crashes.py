"""A job whose process is killed: its output is complete or absent, and the next run completes it."""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import forked
import pyarrow.dataset as ds
import pytest
from conftest import KAFKA
from digest import digest, summary
from magicbyte.jobs.ingest import ingest
from magicbyte.jobs.run.engines import Engine, LocalEngine
from magicbyte.options.ingest import IngestOptions
from writers import ROUNDS, WRITERS, content_of, is_published, make_source, outcome, start

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TOPICS = ("v2_txn", "v0_gzip")
pytestmark = pytest.mark.partitions(*TOPICS)
OPTIONS = IngestOptions(include_batch_metadata=True, overwrite=True)
ENVIRONMENT = {**os.environ, "PYSPARK_PYTHON": sys.executable, "PYTHONPATH": os.pathsep.join(sys.path)}


# Kills itself before the n-th rename. Only renames publish anything, so between two of them lies
# every state that a reader could find.
def killed_job(source: str, out: str, deadly: int, engine: Engine | None = None) -> None:
    rename, calls = os.rename, 0

    def counted(*args: Any) -> None:
        nonlocal calls
        calls += 1
        if calls == deadly:
            os.kill(os.getpid(), signal.SIGKILL)
        rename(*args)

    os.rename = counted  # type: ignore[assignment]
    ingest([source], out, engine or LocalEngine(2), OPTIONS)


forked.load(__name__)
SPARK_JOB = """
import sys
from magicbyte.jobs.run.engines import SparkEngine
from pyspark.sql import SparkSession
from test_crashes import killed_job

builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
killed_job(sys.argv[1], sys.argv[2], 1, SparkEngine(builder.getOrCreate()))
"""


def is_exact(out: Path) -> bool:
    """Whether an output holds what Kafka read, without duplicates."""
    return are_exact(ds.dataset(out / "records").to_table().to_pylist())


def are_exact(rows: Iterable[Mapping[str, Any]]) -> bool:
    ordered = sorted(rows, key=lambda row: (row["topic"], row["offset"]))
    by_topic = {topic: [row for row in ordered if row["topic"] == topic] for topic in TOPICS}
    return all(digest(rows) == summary(KAFKA / topic)["sha256"] for topic, rows in by_topic.items())


@pytest.mark.parametrize("replaces", [False, True])
def test_killed_at_each_step_of_the_commit(source: Path, tmp_path: Path, *, replaces: bool) -> None:
    out = tmp_path / "out"
    for deadly in range(1, 100):
        if replaces:
            ingest([str(source / "v2_txn")], str(out), LocalEngine(2), OPTIONS)
        job = forked.start(killed_job, str(source), str(out), deadly)
        job.join()
        if job.exitcode == 0:
            break
        assert job.exitcode == -signal.SIGKILL
        if is_published(out):
            assert replaces, "published before the last step"
            topics = ds.dataset(out / "records").to_table(["topic"]).column("topic").unique().to_pylist()
            assert topics == ["v2_txn"], "the old output should be complete"
    assert deadly > (8 if replaces else 4)
    assert is_published(out)
    assert is_exact(out)
    assert not (out / "_temporary").exists()


@pytest.mark.spark
def test_a_spark_driver_killed_between_write_and_commit(source: Path, tmp_path: Path) -> None:
    out, script = tmp_path / "out", tmp_path / "job.py"
    script.write_text(SPARK_JOB)
    command = [sys.executable, script, source, out]
    process = subprocess.Popen(command, env=ENVIRONMENT, stderr=subprocess.DEVNULL, start_new_session=True)
    assert process.wait() == -signal.SIGKILL
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)  # the JVM, if it is still running
    assert {path.name for path in out.iterdir()} == {"_temporary"}
    assert list(out.rglob("*.parquet")), "the tasks should have written their files"
    ingest([str(source)], str(out), LocalEngine(2), OPTIONS)
    assert is_exact(out)
    assert not (out / "_temporary").exists()


def test_killed_at_random(source: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    command = ["ingest", "--engine", "local", "--include-batch-metadata", "--overwrite", source, out]
    for _ in range(2):  # the first begins later
        started = time.monotonic()
        forked.start_command(command).join()
        whole = time.monotonic() - started
    seed = random.randrange(1 << 30)
    dice = random.Random(seed)
    for _ in range(8):
        process = forked.start_command(command)
        time.sleep(dice.uniform(0, whole))
        process.kill()
        process.join()
        # The output is complete either way: the previous one or the new one.
        assert not is_published(out) or is_exact(out), seed
    last = forked.start_command(command)
    last.join()
    assert last.exitcode == 0
    assert is_published(out)
    assert is_exact(out)


@pytest.mark.parametrize("is_there", [False, True], ids=["new", "there"])
@pytest.mark.parametrize("name", WRITERS)
def test_every_writer_killed_at_random(name: str, tmp_path: Path, *, is_there: bool) -> None:
    source = make_source(tmp_path / "in", ("v2_none", "v1_gzip", "v0_gzip"), ("a", "b", ".c"))
    expected = outcome(name, source, tmp_path)
    (area := tmp_path / "area").mkdir()
    out, errors = area / "out", tmp_path / "errors"
    started = time.monotonic()
    outcome(name, source, tmp_path)
    whole = time.monotonic() - started
    dice = random.Random(18)
    for number in range(10 * ROUNDS):
        if is_there:
            out.mkdir(exist_ok=True)
        process = start(name, source, out, errors)
        time.sleep(dice.uniform(0, whole))
        process.kill()
        process.join()
        if is_published(out):
            assert content_of(out, with_workspace=True) == expected, number
        elif not is_there and not name.startswith("ingest"):
            assert not out.exists(), number
        if dice.random() < 0.5:
            continue  # killed again before it could clean up
        again = start(name, source, out, errors)
        again.join()
        refused = again.exitcode == 2 and "not empty" in errors.read_text()
        assert again.exitcode == 1 or refused, (number, errors.read_text())
        assert content_of(out) == expected, number
        assert {path.name for path in area.iterdir()} == {"out"}, number
        shutil.rmtree(out)


def run_stream(spark: SparkSession, source: str, out: str) -> None:
    reader = spark.readStream.format("magicbyte").option("startingOffsets", "earliest")
    reader = reader.options(includeHeaders="true", includeBatchMetadata="true", maxOffsetsPerTrigger="40")
    writer = reader.load(source).writeStream.format("parquet")
    writer = writer.option("checkpointLocation", out + ".checkpoint").trigger(availableNow=True)
    writer.start(out).awaitTermination()


STREAM = """
import sys
from pyspark.sql import SparkSession
from test_crashes import run_stream

builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
run_stream(builder.getOrCreate(), *sys.argv[1:])
"""


@pytest.mark.spark
def test_a_stream_killed_at_random(spark: SparkSession, source: Path, tmp_path: Path) -> None:
    out, script = tmp_path / "out", tmp_path / "stream.py"
    script.write_text(STREAM)
    planned = tmp_path / "out.checkpoint" / "offsets"
    seed = random.randrange(1 << 30)
    dice = random.Random(seed)
    for micro_batches in (1, 3):
        process = subprocess.Popen(
            [sys.executable, script, source, out],
            env=ENVIRONMENT,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        while len(list(planned.glob("[0-9]*"))) < micro_batches:
            assert process.poll() is None
            time.sleep(0.02)
        time.sleep(dice.uniform(0, 1.5))
        os.killpg(process.pid, signal.SIGKILL)  # and its JVM
        process.wait()
    run_stream(spark, str(source), str(out))
    # Spark reads the files that its sink committed, not leftovers of killed micro-batches.
    assert are_exact(row.asDict(recursive=True) for row in spark.read.parquet(str(out)).collect()), seed
