"""Spark on a running cluster: count, and sum of a field of the values, against Spark's Kafka source.

    python benches/python/spark_live.py [--records 4000000] [--turns 5]

The values are Avro after an id, as for `spark_typed.py`. One of our ways is the query of the peer with
another format and nothing else; one asks for the values alone; one has the values decoded by the source; and
one with a schema of only the field that is asked for, failing at a bad value as `from_avro` does. CPU time is
that of Spark and its Python workers, without the broker's.
"""

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import broker
import kafka_source
import machine
import report
import sets
import spark_report
import spark_typed
from figures import only_ratio
from pyspark.sql import functions as sql
from spark_ways import Way, measure_in_turn

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

PEER = "Kafka source, from_avro"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=4_000_000)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--output", type=Path, default=sets.PROJECT / "docs" / "benchmarks.md")
    arguments = parser.parse_args()
    run = report.now()
    spark_typed.prepare(arguments.records)
    settings = {"spark.driver.memory": "6g"}
    with broker.running(spark_typed.BROKER) as node, kafka_source.session(**settings) as session:
        frames = frames_of(session, node.bootstrap_servers)
        found = {name: answer(make()) for name, make in frames.items()}
        if len({*found.values()}) != 1 or found[PEER][0] != arguments.records:
            raise RuntimeError(f"{arguments.records} records, but rows and sums are {found}")
        ways = [Way(name, lambda make=make: drain(make())) for name, make in frames.items()]
        used = measure_in_turn(ways, node, arguments.turns, warm_up=spark_typed.WARM_UP_TURNS)
    figures = []
    for name in (name for name in used if name != PEER):
        pairs = list(zip(used[name], used[PEER], strict=True))
        for clock, shown in spark_report.CLOCKS.items():
            compared = spark_report.comparison(pairs, clock)
            print(f"{name}, {shown}: {compared} of the {PEER}")
            work = f"running cluster, {shown}"
            figures.append(only_ratio(spark_report.PART, work, name, PEER, compared))
    facts = [machine.cpu(), f"`spark_live.py`, warm, {arguments.records:,} records of 5 fields, zstd"]
    report.publish(arguments.output, run, figures, facts)


def frames_of(session: "SparkSession", servers: str) -> dict[str, Callable[[], "DataFrame"]]:
    """The same question to the same topic, in several ways."""
    from pyspark.sql.avro.functions import from_avro

    def live(**options: str) -> "DataFrame":
        named = {"kafka.bootstrap.servers": servers, "subscribe": spark_typed.NAME, **options}
        return session.read.format("magicbyte").options(**named).load()

    def decoded(records: "DataFrame") -> "DataFrame":
        stripped = sql.expr(f"substring(value, {spark_typed.FRAME + 1})")
        return records.select(from_avro(stripped, spark_typed.SCHEMA).alias("value"))

    typed = {"valueFormat": "avro", "schemaRegistry": str(spark_typed.REGISTRY)}
    schema = json.loads(spark_typed.SCHEMA)
    only_id = {**schema, "fields": [field for field in schema["fields"] if field["name"] == "id"]}
    one_field = {**typed, "readerSchema": json.dumps(only_id), "columns": "value", "mode": "FAILFAST"}
    return {
        PEER: lambda: decoded(kafka_source.read(session, servers, spark_typed.NAME)),
        "another format": lambda: decoded(live()),
        "the values alone": lambda: decoded(live(columns="value")),
        "typed values": lambda: live(**typed, columns="value,_error"),
        "one typed field": lambda: live(**one_field),
    }


def drain(frame: "DataFrame") -> None:
    answer(frame)


def answer(frame: "DataFrame") -> tuple[int, int]:
    """The number of rows, and the sum of the ids."""
    row = frame.select(sql.count("*"), sql.sum("value.id")).first()
    assert row is not None
    return row[0], row[1]


if __name__ == "__main__":
    main()
