"""Fixtures for the tests against real Kafka: a broker and two Java processes, each started once."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import obstore
import pytest
from broker_versions import Node
from kafka_broker import Broker
from kafka_versions import JUDGES, NEWEST, OLD, OLDEST
from oracle import BUILT, Builder, Oracle
from registry_server import Apicurio, newer_java
from s3_server import BUCKET, client, free_ports, put_directory, s3_server

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

os.environ.setdefault("SPARK_CONF_DIR", str(Path(__file__).parent / "spark"))


@pytest.fixture(scope="session", params=[NEWEST])
def broker(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """One broker for all tests, which open directories in it in turn. A module that names other versions, with
    `pytest.mark.parametrize("broker", JUDGES, indirect=True)`, gets one of each."""
    node = Broker(tmp_path_factory.mktemp("broker"), topics=48, version=request.param)
    yield node
    node.kill()


@pytest.fixture(scope="session")
def new(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    """A broker of the newest version, for clients."""
    node = Node(tmp_path_factory.mktemp("new"), NEWEST)
    yield node
    node.close()


@pytest.fixture(scope="session")
def old(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    """A broker of an old version, for clients."""
    node = Node(tmp_path_factory.mktemp("old"), OLD)
    yield node
    node.close()


@pytest.fixture(scope="session")
def oldest(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    """A broker of the oldest version that is read."""
    node = Node(tmp_path_factory.mktemp("oldest"), OLDEST)
    yield node
    node.close()


@pytest.fixture(scope="session")
def kafka() -> Path:
    """The directory of the partitions that real brokers wrote."""
    return Path(__file__).parent.parent / "data" / "kafka"


@pytest.fixture(scope="session", params=JUDGES)
def oracle(request: pytest.FixtureRequest) -> Iterator[Oracle]:
    """Kafka's classes, for reading."""
    process = Oracle(request.param)
    yield process
    process.close()


@pytest.fixture(scope="session")
def builder() -> Iterator[Builder]:
    """Kafka 3.9's classes, which build all magics."""
    process = Builder()
    yield process
    process.close()


@pytest.fixture(scope="session")
def apicurio(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Apicurio]:
    """One registry for all tests, which use subjects of their own."""
    if (java := newer_java()) is None:
        pytest.skip("Apicurio needs Java 21 or newer")
    server = Apicurio(tmp_path_factory.mktemp("apicurio"), java)
    yield server
    server.kill()


@pytest.fixture(scope="session")
def catalog_port() -> int:
    """The port of the S3 server's Iceberg REST catalog."""
    return free_ports(1)[0]


@pytest.fixture(scope="session")
def s3(tmp_path_factory: pytest.TempPathFactory, catalog_port: int) -> Iterator[str]:
    """The endpoint of an S3 server."""
    with s3_server(tmp_path_factory.mktemp("seaweed"), catalog_port) as endpoint:
        yield endpoint


@pytest.fixture(scope="session")
def logs(s3: str, kafka: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The URL of all partitions of real brokers; `all.tar` in the same bucket is an archive of them."""
    put_directory(s3, kafka, "logs")
    archive = shutil.make_archive(str(tmp_path_factory.mktemp("tar") / "all"), "tar", kafka)
    obstore.put(client(s3), "all.tar", Path(archive).read_bytes())
    return f"s3://{BUCKET}/logs"


@pytest.fixture(scope="session")
def spark_events(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory where the session logs its events: plans, tasks and errors."""
    return tmp_path_factory.mktemp("events")


@pytest.fixture(scope="session")
def spark(spark_events: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """One embedded session for all tests."""
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    temporary = tmp_path_factory.mktemp("spark")
    session = (
        SparkSession.builder.master("local[2]")
        .appName("magicbyte interop")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.extraJavaOptions", f"-Djava.io.tmpdir={temporary}")
        .config("spark.local.dir", str(temporary))
        .config("spark.log.level", "ERROR")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.eventLog.enabled", "true")
        .config("spark.eventLog.dir", spark_events.as_uri())
        .config("spark.eventLog.compress", "false")
        .config("spark.jars", ",".join(map(str, sorted((BUILT / "lib-spark").glob("*.jar")))))
        .getOrCreate()
    )
    yield session
    session.stop()
