"""magicbyte on Spark against Spark's own Kafka source, with a real broker on the same cores.

Writes its section of docs/benchmarks.md. `--turns` warm turns in one session, `--cold-turns` of
whole commands.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import broker
import kafka_source
import kafka_topic
import sets
import spark_report
from broker import Broker
from kafka_topic import Topic
from processes import Family
from spark_ways import Used, Ways

HERE = Path(__file__).parent
WARM_UP_TURNS = 2


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=6_000_000)
    parser.add_argument("--turns", type=int, default=7)
    parser.add_argument("--cold-turns", type=int, default=3)
    parser.add_argument("--output", type=Path, default=sets.PROJECT / "docs" / "benchmarks.md")
    arguments = parser.parse_args()
    # Spark's workers import ready_arrow.
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(HERE), os.environ.get("PYTHONPATH")]))
    topic = kafka_topic.prepare(arguments.records)
    with tempfile.TemporaryDirectory(dir=sets.DATA) as name, broker.running(kafka_topic.BROKER) as node:
        scratch = Path(name)
        cold = measure_cold(node, scratch, arguments.cold_turns)
        warm = measure_warm(node, topic, scratch, arguments.turns)
    spark_report.write(arguments.output, topic, warm, cold)
    print(f"wrote {arguments.output}")


def measure_warm(node: Broker, topic: Topic, scratch: Path, turns: int) -> dict[str, list[Used]]:
    with kafka_source.session(**{"spark.driver.memory": "6g"}) as session:
        ways = Ways(session, node, topic, scratch)
        ways.check()
        used: dict[str, list[Used]] = {way.name: [] for way in ways.all}
        for turn in range(-WARM_UP_TURNS, turns):
            for way in ways.all:
                took = way.measure(node)
                print(f"turn {turn}: {way.name}: {took.wall:.2f} s, CPU {took.cpu:.2f} s", flush=True)
                if turn >= 0:
                    used[way.name].append(took)
    return used


def measure_cold(node: Broker, scratch: Path, turns: int) -> dict[str, list[Used]]:
    """Whole commands, from their start to their end."""
    magicbyte = [str(Path(sys.executable).with_name("magicbyte")), "ingest", str(kafka_topic.LOG)]
    kafka = [sys.executable, str(HERE / "kafka_source.py"), node.bootstrap_servers, kafka_topic.NAME]
    commands = {"Kafka source to Parquet": kafka, "magicbyte ingest": magicbyte}
    used: dict[str, list[Used]] = {name: [] for name in commands}
    for turn in range(turns):
        for name, command in commands.items():
            out = scratch / "cold"
            took = measure_command([*command, str(out)], node if command is kafka else None)
            shutil.rmtree(out)
            used[name].append(took)
            print(f"cold {turn}: {name}: {took.wall:.2f} s, CPU {took.cpu:.2f} s", flush=True)
    return used


def measure_command(command: list[str], node: Broker | None) -> Used:
    brokers = [node.pid] if node else []
    cpu_start, start = Family(*brokers).cpu_seconds(), time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    family = Family(process.pid, *brokers)
    with family.watched():
        process.wait()
        wall = time.perf_counter() - start
    if process.returncode != 0:
        raise RuntimeError(f"{command}: exit code {process.returncode}")
    return Used(wall, family.cpu_seconds() - cpu_start)


if __name__ == "__main__":
    main()
