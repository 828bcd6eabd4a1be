"""The main job on Spark against the same decode and Parquet writer in threads, warm and in turn.

    python benches/python/ingest.py [--turns 5] [--megabytes 1000]

With little data, starting Spark's tasks (most of a second) dominates.
"""

import argparse
import tempfile
import time
from pathlib import Path

import machine
import report
import sets
import spark_report
from figures import only_ratio
from magicbyte.cli.session import spark_session
from magicbyte.jobs.ingest import ingest
from magicbyte.jobs.run.engines import Engine, LocalEngine, SparkEngine
from magicbyte.options.ingest import IngestOptions
from ratios import Comparison


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--megabytes", type=int, default=1000)
    parser.add_argument("--output", type=Path, default=sets.PROJECT / "docs" / "benchmarks.md")
    arguments = parser.parse_args()
    run = report.now()
    sets.prepare()
    with (
        tempfile.TemporaryDirectory() as scratch,
        spark_session("magicbyte bench", "local[*]", ()) as session,
    ):
        source = sets.make_log(Path(scratch) / "log", arguments.megabytes << 20)
        size = sum(file.stat().st_size for file in source.rglob("*.log"))
        local: Engine = LocalEngine()
        spark: Engine = SparkEngine(session)
        out = Path(scratch) / "out"
        for engine in (local, spark):
            timed(source, out, engine)
        threads, tasks = [], []
        for turn in range(arguments.turns):
            threads.append(size / timed(source, out, local))
            tasks.append(size / timed(source, out, spark))
            print(f"turn {turn}: threads {threads[-1] / 1e6:.0f} MB/s, Spark {tasks[-1] / 1e6:.0f} MB/s")
    compared = Comparison(tasks, threads)
    print(f"Spark reaches {compared} of threads")
    megabytes = f"{arguments.megabytes} MB"
    ingested = only_ratio(spark_report.PART, "ingest", megabytes, "the same job in threads", compared)
    facts = [machine.cpu(), f"`ingest.py`, warm, {megabytes} of the S1 sets in four kinds of partitions"]
    report.publish(arguments.output, run, [ingested], facts)


def timed(source: Path, out: Path, engine: Engine) -> float:
    start = time.perf_counter()
    report = ingest([str(source)], str(out), engine, IngestOptions(overwrite=True))
    assert report["balanced"]
    return time.perf_counter() - start


if __name__ == "__main__":
    main()
