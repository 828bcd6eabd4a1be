"""The main job on separate executors, one of which is killed or slow."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow.dataset as ds
import pytest

pytestmark = [pytest.mark.spark, pytest.mark.partitions("v2_none", "v2_zstd", "v2_txn", "v1_none")]

JOB = """
import os, signal, sys, time
from functools import partial
from pathlib import Path
from pyspark import TaskContext
from pyspark.sql import SparkSession
import magicbyte.jobs.run.decode_partitions as steps
import magicbyte.jobs.ingest as job
from magicbyte.options.ingest import IngestOptions
from magicbyte.jobs.publish.local_tables import LocalTables
from magicbyte.jobs.publish.table_files import decode_task
from magicbyte.jobs.run.engines import SparkEngine

master, source, out, marker, happens = sys.argv[1:]


def disturbed(task, options):
    slow = happens == "slow" and task.number == 0
    attempt = TaskContext.get().attemptNumber()
    while slow and attempt > 0 and not os.path.exists(marker):
        time.sleep(0.1)  # until the first attempt has written its files
    decoded = decode_task(task, options)
    if slow:
        with open(marker, "a") as file:
            file.write(f"{attempt} ")
        if attempt == 0:
            time.sleep(120)
    if happens == "kill" and not os.path.exists(marker):
        Path(marker).touch()
        daemon = Path(f"/proc/{os.getppid()}/stat").read_text().rpartition(")")[2].split()
        os.kill(int(daemon[1]), signal.SIGKILL)
    return decoded


# As small as these partitions are, one task would do for all.
steps.tasks_of = partial(steps.tasks_of, tasks=6)
LocalTables.decode = staticmethod(disturbed)
builder = SparkSession.builder.master(master).config("spark.ui.enabled", "false")
builder = builder.config("spark.executorEnv.PYTHONPATH", os.pathsep.join(sys.path))
if happens == "slow":
    builder = builder.config("spark.driver.host", "127.0.0.1").config("spark.executor.memory", "512m")
    for setting in ("", ".interval 100ms", ".quantile 0.1", ".multiplier 1.1", ".minTaskRuntime 200ms"):
        name, _, value = setting.partition(" ")
        builder = builder.config(f"spark.speculation{name}", value or "true")
report = job.ingest([source], out, SparkEngine(builder.getOrCreate()), IngestOptions())
assert report["balanced"]
"""


# After the job, in the same session.
STREAM = """

def disturbed_batches(batches):
    if not os.path.exists(marker + ".stream"):
        Path(marker + ".stream").touch()
        daemon = Path(f"/proc/{os.getppid()}/stat").read_text().rpartition(")")[2].split()
        os.kill(int(daemon[1]), signal.SIGKILL)
    yield from batches


spark = builder.getOrCreate()
rows = spark.readStream.format("magicbyte").option("startingOffsets", "earliest").load(source)
rows = rows.mapInArrow(disturbed_batches, rows.schema).select("topic", "partition", "offset")
query = rows.writeStream.format("parquet").option("checkpointLocation", out + ".checkpoint")
query.trigger(availableNow=True).start(out + ".stream").awaitTermination()
written = spark.read.parquet(out + ".stream")
print(written.count(), written.distinct().count())
"""


def run(master: str, source: Path, tmp_path: Path, happens: str, script_text: str = JOB) -> tuple[str, str]:
    """Runs the job, whose output is `out`; returns what it prints and what the marker file holds."""
    script, out, marker = tmp_path / "job.py", tmp_path / "out", tmp_path / "marker"
    script.write_text(script_text)
    done = subprocess.run(
        [sys.executable, script, master, source, out, marker, happens],
        env={**os.environ, "PYSPARK_PYTHON": sys.executable, "PYTHONPATH": os.pathsep.join(sys.path)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout, marker.read_text()


def check(out: Path) -> None:
    """All rows are there once, and nothing of lost attempts is left."""
    total = json.loads((out / "reconciliation.json").read_text())["total"]
    table = ds.dataset(out / "records").to_table(["topic", "offset"])
    assert table.num_rows == total["rows"] == 346 + 346 + 78 + 108
    assert table.group_by(["topic", "offset"]).aggregate([]).num_rows == table.num_rows
    assert not (out / "_temporary").exists()


def test_a_job_and_a_stream_whose_executors_are_killed(source: Path, tmp_path: Path) -> None:
    printed, _ = run("local-cluster[2,1,1024]", source, tmp_path, "kill", JOB + STREAM)
    check(tmp_path / "out")
    assert (tmp_path / "marker.stream").exists()
    rows = str(346 + 346 + 78 + 108)
    assert printed.split() == [rows, rows]


@pytest.fixture
def two_hosts(tmp_path: Path) -> Iterator[str]:
    """A cluster whose workers have different addresses, as Spark speculates only on another host."""
    import pyspark

    home = Path(pyspark.__file__).parent
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    master = f"spark://127.0.0.1:{port}"
    deploy = "org.apache.spark.deploy"
    commands = [[f"{deploy}.master.Master", "--host", "127.0.0.1", "--port", str(port), "--webui-port", "0"]]
    for host in ("127.0.0.1", "127.0.0.2"):
        worker = [f"{deploy}.worker.Worker", "--host", host, "--webui-port", "0", "-c", "1", "-m", "512m"]
        commands.append([*worker, "-d", str(tmp_path / "work"), master])
    running = []
    try:
        for command in commands:
            log = (tmp_path / f"cluster-{len(running)}.log").open("w")
            spark = [str(home / "bin" / "spark-class"), *command]
            environment = {**os.environ, "SPARK_HOME": str(home)}
            running.append(subprocess.Popen(spark, env=environment, stdout=log, stderr=log, cwd=tmp_path))
            log.close()
        registered = tmp_path / "cluster-0.log"
        deadline = time.monotonic() + 120
        while registered.read_text().count("Registering worker") < 2:
            assert time.monotonic() < deadline, registered.read_text()
            time.sleep(0.2)
        yield master
    finally:
        for process in running:
            process.terminate()
        for process in running:
            process.wait()


def test_speculation(two_hosts: str, source: Path, tmp_path: Path) -> None:
    _, attempts = run(two_hosts, source, tmp_path, "slow")
    assert attempts.split() == ["0", "1"]
    check(tmp_path / "out")
