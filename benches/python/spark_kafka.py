"""magicbyte on Spark against Spark's own Kafka source, with a real broker on the same cores.

Writes its section of docs/benchmarks.md. `--turns` counts warm turns in one session, `--cold-turns` runs of
whole commands.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import broker
import kafka_source
import kafka_topic
import report
import sets
import spark_report
from broker import Broker
from kafka_topic import Topic
from processes import Used
from spark_ways import Way, Ways, measure_in_turn

HERE = Path(__file__).parent
WARM_UP_TURNS = 2


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=6_000_000)
    parser.add_argument("--turns", type=int, default=7)
    parser.add_argument("--cold-turns", type=int, default=3)
    parser.add_argument("--output", type=Path, default=sets.PROJECT / "docs" / "benchmarks.md")
    arguments = parser.parse_args()
    run = report.now()
    # Spark's workers import ready_arrow.
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(HERE), os.environ.get("PYTHONPATH")]))
    topic = kafka_topic.prepare(arguments.records)
    with tempfile.TemporaryDirectory(dir=sets.DATA) as name, broker.running(kafka_topic.BROKER) as node:
        scratch = Path(name)
        cold = measure_cold(node, scratch, arguments.cold_turns)
        warm = measure_warm(node, topic, scratch, arguments.turns)
    spark_report.write(arguments.output, run, topic, warm, cold)
    print(f"wrote {arguments.output}")


def measure_warm(node: Broker, topic: Topic, scratch: Path, turns: int) -> dict[str, list[Used]]:
    with kafka_source.session(**{"spark.driver.memory": "6g"}) as session:
        ways = Ways(session, node, topic, scratch)
        ways.check()
        return measure_in_turn(ways.all, node, turns, warm_up=WARM_UP_TURNS)


def measure_cold(node: Broker, scratch: Path, turns: int) -> dict[str, list[Used]]:
    """Whole commands, from start to end."""
    out = scratch / "cold"
    kafka = [sys.executable, str(HERE / "kafka_source.py"), node.bootstrap_servers, kafka_topic.NAME]
    magicbyte = [str(Path(sys.executable).with_name("magicbyte")), "ingest", "--engine", "spark"]
    magicbyte.append(str(kafka_topic.LOG))

    def run(command: list[str]) -> None:
        shutil.rmtree(out, ignore_errors=True)
        subprocess.run([*command, str(out)], stdout=subprocess.DEVNULL, check=True)

    ways = [
        Way("Kafka source to Parquet", lambda: run(kafka), reads_broker=True),
        Way("magicbyte ingest", lambda: run(magicbyte)),
    ]
    return measure_in_turn(ways, node, turns)


if __name__ == "__main__":
    main()
