"""The Spark session of a command."""

from __future__ import annotations

import logging
import os
import shutil
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from magicbyte.errors import JobError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["spark_session"]


@contextmanager
def spark_session(name: str, master: str | None, conf: Sequence[str]) -> Iterator[SparkSession]:
    """Opens a session and stops it at the end.

    Raises:
        JobError: Java is missing, or Spark does not start.
        BadParameter: a setting is not KEY=VALUE.

    """
    from pyspark.sql import SparkSession

    # py4j logs the tracebacks of an interrupt, which the command reports in one line.
    logging.getLogger().addFilter(_is_not_of_py4j)
    logging.getLogger("py4j").setLevel(logging.CRITICAL)
    # spark-submit has started the JVM and chosen a master.
    submitted = "PYSPARK_GATEWAY_PORT" in os.environ
    if not submitted and not _java():
        raise JobError(
            "Spark needs Java 17 or newer: install it (apt install openjdk-17-jre-headless) or set JAVA_HOME;"
            " --engine local needs neither"
        )
    # Spark would start its workers with the first python3 on the PATH.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.appName(name)
    if master or not submitted:
        builder = builder.master(master or "local[*]")
    settings = {"spark.ui.showConsoleProgress": "false"}
    if not submitted:
        log4j = Path(__file__).with_name("log4j2.properties").as_uri()
        # Python's workers do the work, the JVM only schedules it: its second compiler would take cores
        # from them and make the command slower.
        java_options = f"-Dlog4j2.configurationFile={log4j} -XX:TieredStopAtLevel=1"
        settings["spark.driver.extraJavaOptions"] = java_options
    for setting in conf:
        key, equals, value = setting.partition("=")
        if not equals:
            raise click.BadParameter(f"{setting!r} is not KEY=VALUE", param_hint="--conf")
        settings[key] = value
    for key, value in settings.items():
        builder = builder.config(key, value)
    interrupted = False
    try:
        with _interrupts() as interrupts:
            session = builder.getOrCreate()
        interrupted = bool(interrupts)
    except Exception as error:
        # An error of PySpark, py4j or the system; the JVM has printed more on standard error.
        reason = " ".join(str(error).partition("\n\tat ")[0].split())
        raise JobError(f"Spark did not start: {reason}") from None
    try:
        if interrupted:
            raise KeyboardInterrupt
        yield session
    except KeyboardInterrupt:
        # Spark would log an error for each task that is cut off now.
        session.sparkContext.setLogLevel("OFF")
        raise
    finally:
        session.stop()


@contextmanager
def _interrupts() -> Iterator[list[int]]:
    """Collects interrupts instead of raising them, which would leave a starting JVM running."""
    found: list[int] = []
    if threading.current_thread() is not threading.main_thread():
        yield found
        return
    before = signal.signal(signal.SIGINT, lambda number, _: found.append(number))
    try:
        yield found
    finally:
        # Not PySpark's own handler, which would call the JVM from wherever this thread is.
        signal.signal(signal.SIGINT, before)


def _is_not_of_py4j(record: logging.LogRecord) -> bool:
    return "while sending command" not in record.getMessage()


def _java() -> bool:
    home = os.environ.get("JAVA_HOME")
    return (
        bool(home and os.path.exists(os.path.join(home, "bin", "java"))) or shutil.which("java") is not None
    )
