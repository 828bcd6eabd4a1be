"""The peer: Spark's own Kafka source, tuned. As a program it is the peer of `magicbyte ingest`:

python benches/python/kafka_source.py BOOTSTRAP_SERVERS TOPIC OUT
"""

import os
import sys
from typing import TYPE_CHECKING

import broker
from magicbyte.cli.session import spark_session
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


def settings() -> list[str]:
    """What a session needs: the connector, and Parquet's own timestamps, which are the faster ones."""
    broker.copy_jars("connector-pom.xml", JARS)
    jars = ",".join(map(os.fspath, sorted(JARS.glob("*.jar"))))
    return [f"spark.jars={jars}", "spark.sql.parquet.outputTimestampType=TIMESTAMP_MICROS"]


def read(session: "SparkSession", bootstrap_servers: str, topic: str) -> "DataFrame":
    """The whole topic: seven columns."""
    options = {"kafka.bootstrap.servers": bootstrap_servers, "subscribe": topic, **TUNED}
    return session.read.format("kafka").options(**options).load()


def write_parquet(records: "DataFrame", out: str) -> None:
    records.write.mode("overwrite").parquet(out)


if __name__ == "__main__":
    with spark_session("kafka to parquet", None, settings()) as own_session:
        write_parquet(read(own_session, *sys.argv[1:3]), sys.argv[3])
