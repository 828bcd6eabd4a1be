"""What all Python tests share: the partitions written by real brokers, and one Spark session."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

KAFKA = Path(__file__).parent.parent / "data" / "kafka"
PARTITIONS = sorted(path.name for path in KAFKA.iterdir() if path.is_dir())


def pytest_configure(config: pytest.Config) -> None:
    """Declares the marker of the fixture `source`."""
    config.addinivalue_line("markers", "partitions(*names): the partitions that `source` is a copy of")


@pytest.fixture(scope="session")
def kafka() -> Path:
    """The directory of all partitions; tests must not write there."""
    return KAFKA


@pytest.fixture
def source(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    """A private copy of the partitions that the test names by `@pytest.mark.partitions(...)`."""
    marker = request.node.get_closest_marker("partitions")
    directory = tmp_path / "logs"
    for name in marker.args:
        shutil.copytree(KAFKA / name, directory / name)
    for path in directory.rglob("*"):
        path.chmod(0o755 if path.is_dir() else 0o644)
    return directory


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """One embedded session for all tests; a failed task gets a second attempt."""
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    session = (
        SparkSession.builder.master("local[2,2]")
        .appName("magicbyte tests")
        .config("spark.ui.enabled", "false")
        .config("spark.log.level", "ERROR")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.warehouse.dir", str(tmp_path_factory.mktemp("warehouse")))
        .getOrCreate()
    )
    yield session
    session.stop()
