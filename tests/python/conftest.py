"""Shared by all Python tests: the partitions written by real brokers, the command line, one Spark session."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import pytest
from magicbyte.cli import main

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

KAFKA = Path(__file__).parent.parent / "data" / "kafka"
# As in `interop/spark`: for what starts before the settings are read.
_JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
os.environ.setdefault("SPARK_CONF_DIR", str(Path(__file__).parent.parent / "interop" / "spark"))
os.environ.setdefault("SPARK_LAUNCHER_OPTS", _JAVA)
os.environ.setdefault("SPARK_DAEMON_JAVA_OPTS", _JAVA)
PARTITIONS = sorted(path.name for path in KAFKA.iterdir() if path.is_dir())


def pytest_configure(config: pytest.Config) -> None:
    """Declares the marker `partitions`, which the fixture `source` reads."""
    config.addinivalue_line("markers", "partitions(*names): the partitions to copy into `source`")


@pytest.fixture(scope="session")
def kafka() -> Path:
    """The directory of all partitions, which tests must not modify."""
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


def commands_of(group: click.Group) -> dict[str, click.Command]:
    """The commands of a group by name."""
    context = click.Context(group)
    found = ((name, group.get_command(context, name)) for name in group.list_commands(context))
    return {name: command for name, command in found if command is not None}


class Cli:
    """The command line, with captured output."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys
        self.error = ""
        self.code = 0

    def __call__(self, *arguments: object, code: int | None = 0) -> str:
        """Returns standard output. The exit code must be `code`, unless that is None."""
        self.code = main([str(argument) for argument in arguments])
        output, self.error = self._capsys.readouterr()
        assert code is None or self.code == code, self.error
        return output

    def json(self, *arguments: object, code: int = 0) -> Any:
        return json.loads(self(*arguments, "--json", code=code))

    def lines(self, command: str, *arguments: object, code: int | None = 0) -> list[dict[str, Any]]:
        """Runs a command that prints JSON lines."""
        output = self(command, *arguments, code=code)
        return [json.loads(line) for line in output.splitlines()]

    def records(self, *arguments: object, code: int = 0) -> list[dict[str, Any]]:
        return self.lines("records", *arguments, code=code)


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str]) -> Cli:
    """The command line."""
    return Cli(capsys)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests that use the session are of the stage that shares it."""
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.spark)


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """One embedded session for all tests; a failed task gets a second attempt."""
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    temporary = tmp_path_factory.mktemp("spark")
    session = (
        SparkSession.builder.master("local[2,2]")
        .appName("magicbyte tests")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.extraJavaOptions", f"-Djava.io.tmpdir={temporary}")
        .config("spark.local.dir", str(temporary))
        .config("spark.log.level", "ERROR")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.warehouse.dir", str(tmp_path_factory.mktemp("warehouse")))
        .getOrCreate()
    )
    yield session
    session.stop()
