"""The ways that are timed in one warm Spark session, and the check that both sides deliver the same rows."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import kafka_source
import kafka_topic
import pyarrow as pa
import ready_arrow
from broker import Broker
from kafka_topic import Topic
from magicbyte import _core
from magicbyte.jobs.find.partitions import list_partitions
from magicbyte.jobs.ingest import ingest
from magicbyte.jobs.run.columns import KAFKA_COLUMNS
from magicbyte.jobs.run.engines import LocalEngine, SparkEngine
from magicbyte.jobs.run.plan import plan_partitions, tasks_of
from magicbyte.jobs.run.reading import ReadOptions, Rows, read_chunk
from magicbyte.options.ingest import IngestOptions
from processes import Family, Used, measure
from pyspark.sql import functions as sql

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True)
class Way:
    name: str
    run: Callable[[], None]
    reads_broker: bool = False

    def measure(self, broker: Broker) -> Used:
        """Measures this process and its descendants; the broker among them only if it is read from."""
        return measure(self.run, Family(os.getpid(), without=() if self.reads_broker else (broker.pid,)))


def measure_in_turn(ways: list[Way], broker: Broker, turns: int, warm_up: int = 0) -> dict[str, list[Used]]:
    used: dict[str, list[Used]] = {way.name: [] for way in ways}
    for turn in range(-warm_up, turns):
        for way in ways:
            took = way.measure(broker)
            figures = f"{took.wall:.2f} s, CPU {took.cpu:.2f} s, others {took.others:.2f} cores"
            print(f"turn {turn}: {way.name}: {figures}", flush=True)
            if turn >= 0:
                used[way.name].append(took)
    return used


class Ways:
    """All ways of one session; their output goes to `scratch`."""

    def __init__(self, session: "SparkSession", broker: Broker, topic: Topic, scratch: Path) -> None:
        self._session = session
        self._broker = broker
        self._topic = topic
        self._scratch = scratch
        self._ready = _ready_batch(scratch / "ready.arrow", topic)
        self.kafka_parquet = Way("Kafka source to Parquet", self._kafka_parquet, reads_broker=True)
        self.ingest = Way("magicbyte ingest", self._ingest)
        self.kafka_noop = Way("Kafka source", lambda: _noop(self._kafka()), reads_broker=True)
        self.noop = Way("magicbyte source", lambda: _noop(self._magicbyte()))
        self.ready_source = Way(
            "ready Arrow batches, data source",
            lambda: _noop(ready_arrow.of_data_source(session, self._ready)),
        )
        self.ready_map = Way(
            "ready Arrow batches, mapInArrow",
            lambda: _noop(ready_arrow.of_map_in_arrow(session, self._ready)),
        )

    @property
    def all(self) -> list[Way]:
        return [
            self.kafka_parquet,
            self.ingest,
            self.kafka_noop,
            self.noop,
            self.ready_source,
            self.ready_map,
        ]

    def check(self) -> None:
        """Checks that every way delivers all rows, and that both sides deliver the same."""
        self._kafka_parquet()
        self._ingest()
        parquet = self._session.read.parquet
        found = {
            "Kafka source": _fingerprint(self._kafka()),
            "magicbyte source": _fingerprint(self._magicbyte()),
            "Kafka source's Parquet": _fingerprint(parquet(str(self._scratch / "kafka"))),
            "ingest's Parquet": _fingerprint(parquet(str(self._scratch / "ingest" / "records"))),
        }
        if len(set(found.values())) != 1 or found["Kafka source"][0] != self._topic.records:
            raise RuntimeError(f"{self._topic.records} records, but rows and sums of hashes are {found}")
        for ready in (ready_arrow.of_data_source, ready_arrow.of_map_in_arrow):
            rows = ready(self._session, self._ready).count()
            if rows != self._topic.records:
                raise RuntimeError(f"{ready.__name__}: {rows} rows")

    def _kafka(self) -> "DataFrame":
        return kafka_source.read(self._session, self._broker.bootstrap_servers, kafka_topic.NAME)

    def _magicbyte(self) -> "DataFrame":
        return self._session.read.format("magicbyte").load(str(kafka_topic.LOG))

    def _kafka_parquet(self) -> None:
        kafka_source.write_parquet(self._kafka(), str(self._scratch / "kafka"))

    def _ingest(self) -> None:
        out, engine = str(self._scratch / "ingest"), SparkEngine(self._session)
        report = ingest([str(kafka_topic.LOG)], out, engine, IngestOptions(overwrite=True))
        if not report["balanced"] or report["total"]["rows"] != self._topic.records:
            raise RuntimeError(f"ingest: {report['total']}")


def _noop(records: "DataFrame") -> None:
    records.write.format("noop").mode("overwrite").save()


def _fingerprint(records: "DataFrame") -> tuple[int, int]:
    """The number of rows and the sum of their hashes, which does not depend on their order."""
    hashed = sql.xxhash64(*(sql.col(name) for name in KAFKA_COLUMNS)).cast("decimal(38,0)")
    row = records.select(sql.count("*"), sql.sum(hashed)).first()
    assert row is not None
    return row[0], int(row[1])


def _ready_batch(file: Path, topic: Topic) -> ready_arrow.Ready:
    """The topic's first Arrow batch, of the source's size, to be repeated in as many tasks."""
    engine = LocalEngine()
    tasks = tasks_of(plan_partitions(list_partitions([str(kafka_topic.LOG)]), engine), engine.parallelism)
    rows = next(read_chunk(tasks[0].chunks[0], ReadOptions(KAFKA_COLUMNS)))
    assert isinstance(rows, Rows)
    schema = pa.schema(_core.arrow_schema("records", KAFKA_COLUMNS))
    with pa.ipc.new_file(file, schema) as out:
        out.write_batch(rows.batch)
    return ready_arrow.Ready(file, topic.records, len(tasks))
