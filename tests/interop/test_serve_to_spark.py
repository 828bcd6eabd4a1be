"""Spark's own Kafka source reads partition directories through `magicbyte serve`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import magicbyte
import pytest
from consumers import Read, by_log
from magicbyte.jobs.serve import Server
from py4j.protocol import Py4JJavaError
from pyspark.sql import functions as sql

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.interop

# The source fails at timestamps that microseconds cannot hold, whoever serves them.
HAS_LARGE_TIMESTAMPS = "v2_timestamps"


@pytest.fixture(scope="module")
def server(kafka: Path) -> Iterator[Server]:
    with magicbyte.serve(kafka) as server:
        yield server


def of_topics(spark: SparkSession, server: Server, how: str, topics: list[str], **options: str) -> DataFrame:
    asked = json.dumps({topic: [0] for topic in topics}) if how == "assign" else ",".join(topics)
    options |= {"kafka.bootstrap.servers": server.bootstrap_servers, how: asked, "includeHeaders": "true"}
    return spark.read.format("kafka").options(**options).load()


@pytest.mark.parametrize("isolation", ["read_uncommitted", "read_committed"])
@pytest.mark.parametrize("how", ["assign", "subscribe"])
def test_records(spark: SparkSession, server: Server, kafka: Path, isolation: str, how: str) -> None:
    topics = [path.name for path in sorted(kafka.iterdir()) if path.name != HAS_LARGE_TIMESTAMPS]
    settings = {"kafka.isolation.level": isolation, "kafka.fetch.max.wait.ms": "50"}
    rows = of_topics(spark, server, how, topics, **settings).select(
        "topic", "offset", sql.unix_millis("timestamp"), "key", "value", "headers"
    )
    found: Read = {topic: [] for topic in topics}
    for topic, offset, timestamp, key, value, headers in rows.collect():
        named = [(name, None if of is None else bytes(of)) for name, of in headers or []]
        key, value = (None if of is None else bytes(of) for of in (key, value))
        found[topic].append((offset, timestamp, key, value, named))
    for topic, records in found.items():
        assert records == by_log(kafka / topic, isolation), topic


def test_large_timestamps(spark: SparkSession, server: Server) -> None:
    of_it = of_topics(spark, server, "assign", [HAS_LARGE_TIMESTAMPS])
    with pytest.raises(Py4JJavaError, match="long overflow"):
        of_it.count()
