"""Tables written by separate executors, which are killed at random, and in the end the driver too."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from pathlib import Path

import pytest
from lakes import FORMATS, GrowingLog, Lake
from test_lake import GROWN, by_topic, of_kafka
from test_lake_crashes import only_files_of_commits
from writers import ROUNDS

pytestmark = pytest.mark.spark

EXECUTORS = 2 * ROUNDS
DRIVERS = ROUNDS
SECONDS = 300 * ROUNDS

# Prints a line when a job begins, and one when it has ended, with the seconds that it took.
DRIVER = """
import os, random, signal, sys, threading, time
from pathlib import Path
from magicbyte.jobs.engines import SparkEngine
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


whole = 0.0
for number in range(-1, rounds):
    log.grow_to(begin + (end - begin) * (number + 1) / rounds)
    print("begins", flush=True)
    started = time.monotonic()
    killer = threading.Thread(target=kill_one, args=(dice.uniform(0, whole),))
    if number >= 0:
        killer.start()
    lake.ingest(log.root, batch_metadata=True, engine=SparkEngine(spark))
    if number >= 0:
        killer.join()
    else:
        whole = time.monotonic() - started
    print("ended", whole, flush=True)
"""


def drive(lake: Lake, logs: Path, begin: float, end: float, rounds: int, seed: int) -> subprocess.Popen[str]:
    script = logs.parent / "driver.py"
    script.write_text(DRIVER)
    arguments = [lake.format, lake.root, logs, begin, end, rounds, seed]
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
    job = drive(lake, log.root, 0.05, 0.7, EXECUTORS, seed)
    said, _ = job.communicate(timeout=SECONDS)
    assert job.returncode == 0, (tmp_path / "driver.log").read_text()[-4000:]
    assert said.count("killed") == EXECUTORS
    whole = float(said.split()[-1])
    for number in range(DRIVERS):
        at = 0.7 + 0.3 * number / DRIVERS
        job = drive(lake, log.root, at, at + 0.3 / DRIVERS, 1, seed)
        assert job.stdout is not None
        assert job.stdout.readline() == "begins\n"
        with pytest.raises(subprocess.TimeoutExpired):
            job.wait(dice.uniform(0, whole))
        job.kill()
        job.communicate()
    log.grow_to(1)
    lake.ingest(log.root, batch_metadata=True)
    assert by_topic(lake.read()) == of_kafka(GROWN), seed
    assert set(lake.compare(log.root).values()) == {"equal"}, seed
    assert only_files_of_commits(lake), seed
