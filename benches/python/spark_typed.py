"""Typed values on Spark: what decoding them adds to `ingest`, and Spark's Kafka source with `from_avro`.

    python benches/python/spark_typed.py [--records 4000000] [--turns 5]

All ways read one topic of a real broker, whose values are Avro after an id. Spark's side strips the id and
decodes with the newest schema, as a job without a registry does; ours looks each id up. Ready Arrow batches
of the same rows are the ceiling of a data source in Python.
"""

import argparse
import json
import os
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import broker
import kafka_source
import machine
import pyarrow as pa
import ready_arrow
import report
import schemas
import sets
import spark_report
from broker import Broker
from figures import only_ratio
from kafka_topic import PARTITIONS
from magicbyte.jobs.find.partitions import list_partitions
from magicbyte.jobs.ingest import ingest
from magicbyte.jobs.run.columns import KAFKA_COLUMNS
from magicbyte.jobs.run.engines import LocalEngine, SparkEngine
from magicbyte.jobs.run.plan import plan_partitions, tasks_of
from magicbyte.jobs.run.reading import ReadOptions, Rows, read_chunk
from magicbyte.jobs.typed import column_decoders
from magicbyte.options.ingest import IngestOptions
from magicbyte.options.typed import TypedColumns
from magicbyte.schema import encode
from pyspark.sql import functions as sql
from spark_ways import Way, measure_in_turn

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

WARM_UP_TURNS = 2
NAME = "typed"
DIRECTORY = sets.DATA / "spark-typed"
BROKER = DIRECTORY / "broker"
LOG = DIRECTORY / "log"
SCHEMA = json.dumps(schemas.AVRO)
REGISTRY = DIRECTORY / "schemas"
FRAME = 5


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=4_000_000)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--output", type=Path, default=sets.PROJECT / "docs" / "benchmarks.md")
    arguments = parser.parse_args()
    run = report.now()
    # Spark's workers import ready_arrow.
    here = str(Path(__file__).parent)
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [here, os.environ.get("PYTHONPATH")]))
    prepare(arguments.records)
    with (
        tempfile.TemporaryDirectory(dir=sets.DATA) as scratch,
        broker.running(BROKER) as node,
        kafka_source.session(**{"spark.driver.memory": "6g"}) as session,
    ):
        ways = Ways(session, node, arguments.records, Path(scratch))
        ways.check()
        used = measure_in_turn(ways.all, node, arguments.turns, warm_up=WARM_UP_TURNS)
    figures = []
    for work, peer, ours, theirs in (
        ("ingest of Avro", "untyped ingest", "typed ingest", "untyped ingest"),
        ("source of Avro", "Kafka source, from_avro", "typed source", "from_avro"),
        ("source of Avro", "ready Arrow batches", "typed source", "ready Arrow batches"),
        ("ready Arrow batches", "Kafka source, from_avro", "ready Arrow batches", "from_avro"),
    ):
        pairs = list(zip(used[ours], used[theirs], strict=True))
        for clock, name in spark_report.CLOCKS.items():
            compared = spark_report.comparison(pairs, clock)
            print(f"{work}, {name}: {compared} of {peer}")
            figures.append(only_ratio(spark_report.PART, f"{work}, {name}", "5 fields", peer, compared))
    facts = [machine.cpu(), f"`spark_typed.py`, warm, {arguments.records:,} records of 5 fields, zstd"]
    report.publish(arguments.output, run, figures, facts)


def prepare(records: int) -> None:
    """Produces the topic through a broker, unless it is there with this number of records."""
    from confluent_kafka import Producer

    done = DIRECTORY / f"{records}.done"
    if done.exists():
        return
    shutil.rmtree(DIRECTORY, ignore_errors=True)
    rows = schemas.orders()
    values = encode(pa.array(rows), SCHEMA, schema_id=1).to_pylist()
    with broker.running(BROKER) as node:
        producer = Producer(
            {
                "bootstrap.servers": node.bootstrap_servers,
                "compression.type": "zstd",
                "linger.ms": 100,
                "queue.buffering.max.messages": 200_000,
            }
        )
        _create(node.bootstrap_servers)
        for number in range(records):
            producer.produce(NAME, values[number % len(values)], partition=number % PARTITIONS)
            if number % 50_000 == 0:
                producer.flush()
        producer.flush()
    for partition in range(PARTITIONS):
        shutil.copytree(BROKER / "logs" / f"{NAME}-{partition}", LOG / f"{NAME}-{partition}")
    REGISTRY.mkdir()
    for name in ("1", f"{NAME}-value"):
        (REGISTRY / f"{name}.avsc").write_text(SCHEMA)
    done.touch()


def _create(servers: str) -> None:
    from confluent_kafka.admin import AdminClient, NewTopic

    admin = AdminClient({"bootstrap.servers": servers})
    admin.create_topics([NewTopic(NAME, PARTITIONS, 1)])[NAME].result()


@dataclass(frozen=True)
class Ways:
    """All ways of one session."""

    session: "SparkSession"
    node: Broker
    records: int
    scratch: Path

    @property
    def all(self) -> list[Way]:
        return [
            Way("untyped ingest", lambda: self._ingest(IngestOptions(overwrite=True))),
            Way("typed ingest", lambda: self._ingest(IngestOptions(overwrite=True, typed=self._typed))),
            Way("from_avro", lambda: _noop(self._from_avro()), reads_broker=True),
            Way("typed source", lambda: _noop(self._source())),
            Way("ready Arrow batches", lambda: _noop(self._ready())),
        ]

    @property
    def _typed(self) -> TypedColumns:
        return TypedColumns(schema_registry=str(REGISTRY), value_format="avro")

    def check(self) -> None:
        """Checks that all ways have the same values."""
        self._ingest(IngestOptions(overwrite=True, typed=self._typed))
        written = self.session.read.parquet(str(self.scratch / "ingest" / "records"))
        sums = {
            name: _sums(frame)
            for name, frame in (
                ("from_avro", self._from_avro()),
                ("source", self._source()),
                ("ingest", written),
            )
        }
        if len(set(sums.values())) != 1 or sums["source"][0] != self.records:
            raise RuntimeError(f"{self.records} records, but rows and sums are {sums}")

    def _ingest(self, options: IngestOptions) -> None:
        found = ingest([str(LOG)], str(self.scratch / "ingest"), SparkEngine(self.session), options)
        if not found["balanced"] or found["total"]["rows"] != self.records:
            raise RuntimeError(f"ingest: {found['total']}")

    def _source(self) -> "DataFrame":
        options = {"valueFormat": "avro", "schemaRegistry": str(REGISTRY)}
        return self.session.read.format("magicbyte").options(**options).load(str(LOG))

    def _from_avro(self) -> "DataFrame":
        from pyspark.sql.avro.functions import from_avro

        records = kafka_source.read(self.session, self.node.bootstrap_servers, NAME)
        stripped = sql.expr(f"substring(value, {FRAME + 1})")
        return records.withColumn("value", from_avro(stripped, SCHEMA))

    def _ready(self) -> "DataFrame":
        """The first batch of the source, repeated in as many tasks."""
        engine = LocalEngine()
        tasks = tasks_of(plan_partitions(list_partitions([str(LOG)]), engine), engine.parallelism)
        file = self.scratch / "ready.arrow"
        if not file.exists():
            options = ReadOptions((*KAFKA_COLUMNS, "headers"), typed=column_decoders(self._typed, {NAME}))
            rows = next(read_chunk(tasks[0].chunks[0], options))
            assert isinstance(rows, Rows)
            batch = rows.batch.drop_columns("headers")
            with pa.ipc.new_file(file, batch.schema) as out:
                out.write_batch(batch)
        return ready_arrow.of_data_source(self.session, ready_arrow.Ready(file, self.records, len(tasks)))


def _noop(records: "DataFrame") -> None:
    records.write.format("noop").mode("overwrite").save()


def _sums(records: "DataFrame") -> tuple[int, int, int]:
    """The number of rows, those with a note, and the sum of the ids."""
    row = records.select(
        sql.count("*"), sql.count("value.note"), sql.sum(sql.col("value.id").cast("decimal(38,0)"))
    ).first()
    assert row is not None
    return row[0], row[1], int(row[2])


if __name__ == "__main__":
    main()
