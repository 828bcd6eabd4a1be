"""Tables written by separate executors, which are killed at random, and in the end the driver too."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from lakes import FORMATS, GrowingLog, Lake
from test_lake import GROWN, by_topic, of_kafka
from test_lake_crashes import only_files_of_commits
from writers import ROUNDS

pytestmark = pytest.mark.spark

EXECUTORS = 2
SECONDS = 300

# Prints a line when it has killed an executor, and one when the last job begins: the seconds of the shortest.
DRIVER = """
import os, random, signal, sys, threading, time
from pathlib import Path
from magicbyte.jobs.run.engines import SparkEngine
from pyspark.sql import SparkSession
from lakes import GrowingLog, Lake
from test_lake import GROWN

table_format, root, logs, begin, end, rounds, seed = sys.argv[1:]
begin, end, rounds, dice = float(begin), float(end), int(rounds), random.Random(int(seed))
lake = Lake.at(table_format, Path(root))
log = GrowingLog(Path(logs), GROWN)
builder = SparkSession.builder.master("local-cluster[2,1,1024]").config("spark.ui.enabled", "false")
# Killed executors are replaced, and their tasks repeated, however many there are.
builder = builder.config("spark.deploy.maxExecutorRetries", -1).config("spark.task.maxFailures", 100)
spark = builder.config("spark.executorEnv.PYTHONPATH", os.pathsep.join(sys.path)).getOrCreate()
application = spark.sparkContext.applicationId


def kill_one(after):
    time.sleep(after)
    of_job = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            arguments = path.read_bytes().split(b"\\0")
        except OSError:
            continue
        if b"org.apache.spark.executor.CoarseGrainedExecutorBackend" in arguments:
            if application.encode() in arguments:
                of_job.append(int(path.parent.name))
    if of_job:
        os.kill(dice.choice(of_job), signal.SIGKILL)
        print("killed", flush=True)


times = []
for number in range(-1, rounds):
    log.grow_to(begin + (end - begin) * (number + 1) / (rounds + 1))
    started = time.monotonic()
    if number >= 0:
        killer = threading.Thread(target=kill_one, args=(dice.uniform(0, times[0]),))
        killer.start()
    lake.ingest(log.root, include_batch_metadata=True, engine=SparkEngine(spark))
    times.append(time.monotonic() - started)
    if number >= 0:
        killer.join()

# In this job the driver is killed, or a moment after it.
log.grow_to(end)
print("last", min(times), flush=True)
lake.ingest(log.root, include_batch_metadata=True, engine=SparkEngine(spark))
time.sleep(600)
"""


def drive(lake: Lake, logs: Path, begin: float, end: float, seed: int) -> subprocess.Popen[str]:
    script = logs.parent / "driver.py"
    script.write_text(DRIVER)
    arguments = [lake.format, lake.root, logs, begin, end, EXECUTORS, seed]
    return subprocess.Popen(
        [sys.executable, str(script), *map(str, arguments)],
        env={**os.environ, "PYSPARK_PYTHON": sys.executable, "PYTHONPATH": os.pathsep.join(sys.path)},
        cwd=logs.parent,
        stdout=subprocess.PIPE,
        stderr=(logs.parent / "driver.log").open("a"),
        text=True,
    )


@pytest.mark.parametrize("table_format", FORMATS)
def test_killed_at_random(table_format: str, tmp_path: Path) -> None:
    lake, log = Lake.at(table_format, tmp_path / "lake"), GrowingLog(tmp_path / "logs", GROWN)
    dice = random.Random(seed := random.randrange(1 << 30))
    for number in range(ROUNDS):
        job = drive(lake, log.root, 0.05 + 0.95 * number / ROUNDS, 0.05 + 0.95 * (number + 1) / ROUNDS, seed)
        # A driver that hangs is ended, too.
        watch = threading.Timer(SECONDS, job.kill)
        watch.start()
        assert job.stdout is not None
        said = [job.stdout.readline() for _ in range(EXECUTORS + 1)]
        assert said[:-1] == ["killed\n"] * EXECUTORS, (tmp_path / "driver.log").read_text()[-4000:]
        whole = float(said[-1].removeprefix("last "))
        with pytest.raises(subprocess.TimeoutExpired):
            job.wait(dice.uniform(0, whole))
        watch.cancel()
        job.kill()
        job.communicate()
    log.grow_to(1)
    lake.ingest(log.root, include_batch_metadata=True)
    assert by_topic(lake.read()) == of_kafka(GROWN), seed
    assert set(lake.compare(log.root).values()) == {"equal"}, seed
    assert only_files_of_commits(lake), seed
