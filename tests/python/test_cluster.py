"""The main job on executors of their own (Spark's `local-cluster`), one of which is killed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pyarrow.dataset as ds
import pytest

pytestmark = pytest.mark.spark

JOB = """
import os, signal, sys
from pathlib import Path
from pyspark.sql import SparkSession
import magicbyte.jobs.ingest as job
from magicbyte.jobs.decode import decode_task
from magicbyte.jobs.engines import SparkEngine

source, out, marker = sys.argv[1:]


def kills_its_executor_once(task, options):
    decoded = decode_task(task, options)
    if not os.path.exists(marker):
        open(marker, "w").close()
        daemon = Path(f"/proc/{os.getppid()}/stat").read_text().rpartition(")")[2].split()
        os.kill(int(daemon[1]), signal.SIGKILL)
    return decoded


job.decode_task = kills_its_executor_once
builder = SparkSession.builder.master("local-cluster[2,1,1024]").config("spark.ui.enabled", "false")
session = builder.config("spark.executorEnv.PYTHONPATH", os.pathsep.join(sys.path)).getOrCreate()
report = job.ingest([source], out, SparkEngine(session), job.IngestOptions())
session.stop()
assert report["balanced"]
"""


@pytest.mark.partitions("v2_none", "v2_zstd", "v2_txn", "v1_none")
def test_a_killed_executor(source: Path, tmp_path: Path) -> None:
    script = tmp_path / "job.py"
    script.write_text(JOB)
    out, marker = tmp_path / "out", tmp_path / "killed"
    done = subprocess.run(
        [sys.executable, script, source, out, marker],
        env={**os.environ, "PYSPARK_PYTHON": sys.executable, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert marker.exists()
    total = json.loads((out / "reconciliation.json").read_text())["total"]
    table = ds.dataset(out / "records", partitioning="hive").to_table(["topic", "offset"])
    assert table.num_rows == total["rows"] == 346 + 346 + 78 + 108
    assert table.group_by(["topic", "offset"]).aggregate([]).num_rows == table.num_rows
