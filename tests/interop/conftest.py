"""Fixtures for the tests against real Kafka: a broker and two Java processes, each started once."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from kafka_broker import Broker
from oracle import Builder, Oracle
from registry_server import Apicurio, newer_java


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """One broker for all tests, which open directories in it in turn."""
    node = Broker(tmp_path_factory.mktemp("broker"), topics=48)
    yield node
    node.kill()


@pytest.fixture(scope="session")
def kafka() -> Path:
    """The directory of the partitions that real brokers wrote."""
    return Path(__file__).parent.parent / "data" / "kafka"


@pytest.fixture(scope="session")
def oracle() -> Iterator[Oracle]:
    """Kafka's newest classes, for reading."""
    process = Oracle()
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
