"""The peer: Spark's own Kafka source, tuned. Run as a program, it is the peer of `magicbyte ingest`:

python benches/python/kafka_source.py BOOTSTRAP_SERVERS TOPIC OUT
"""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import broker
from sets import PROJECT

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

JARS = PROJECT / "target" / "bench-java" / "connector"
TUNED = {
    "kafka.max.poll.records": "10000",
    "kafka.max.partition.fetch.bytes": str(16 << 20),
    "kafka.fetch.max.bytes": str(64 << 20),
    "kafka.receive.buffer.bytes": str(4 << 20),
}


@contextmanager
def session(**settings: str) -> Iterator["SparkSession"]:
    """Spark's defaults with the connector, and Parquet's own timestamps, which are the faster ones."""
    from pyspark.sql import SparkSession

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    broker.copy_jars("connector-pom.xml", JARS)
    builder = SparkSession.builder.master("local[*]").config(
        map={
            "spark.jars": ",".join(map(os.fspath, sorted(JARS.glob("*.jar")))),
            "spark.log.level": "ERROR",
            "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
            "spark.ui.showConsoleProgress": "false",
            **settings,
        }
    )
    opened = builder.getOrCreate()
    try:
        yield opened
    finally:
        opened.stop()


def read(opened: "SparkSession", bootstrap_servers: str, topic: str) -> "DataFrame":
    """The whole topic, with the source's seven columns."""
    options = {"kafka.bootstrap.servers": bootstrap_servers, "subscribe": topic, **TUNED}
    return opened.read.format("kafka").options(**options).load()


def write_parquet(records: "DataFrame", out: str) -> None:
    records.write.mode("overwrite").parquet(out)


if __name__ == "__main__":
    with session() as own_session:
        write_parquet(read(own_session, *sys.argv[1:3]), sys.argv[3])
