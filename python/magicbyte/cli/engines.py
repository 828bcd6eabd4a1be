"""The choice of an engine on the command line."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from magicbyte.options.declare import Options, option
from magicbyte.options.values import Kind, Number, OneOf, Repeated

if TYPE_CHECKING:
    from magicbyte.jobs.run.engines import Engine

__all__ = ["EngineChoice"]


@dataclass(frozen=True, kw_only=True)
class EngineChoice(Options):
    """The place where a job's tasks run."""

    engine: str = option(
        "The place of the tasks: threads of this process, or Spark, embedded or on a cluster. auto is Spark"
        " with --master, --conf or spark-submit, else threads.",
        default="auto",
        kind=OneOf({name: name for name in ("auto", "local", "spark")}),
    )
    threads: int | None = option(
        "The number of threads, with --engine local.",
        default=None,
        default_text="one per core",
        kind=Number(1),
    )
    master: str | None = option(
        "Spark's master: local[N], spark://..., yarn, k8s://...",
        default=None,
        default_text="local[*]",
        kind=Kind("URL"),
    )
    conf: tuple[str, ...] = option("A setting of Spark.", default=(), kind=Repeated("KEY=VALUE"))

    @contextmanager
    def open(self, title: str) -> Iterator[Engine]:
        """Opens the engine; Spark's UI shows `title`. Spark starts when it is first used, so that what a job
        refuses is refused at once.

        Raises:
            UsageError: an option of the other engine was given.

        """
        wants_spark = bool(self.master or self.conf or "PYSPARK_GATEWAY_PORT" in os.environ)
        if self.engine == "local" or (self.engine == "auto" and not wants_spark):
            if self.master or self.conf:
                raise click.UsageError("--master and --conf need --engine spark")
            from magicbyte.jobs.run.engines import LocalEngine

            yield LocalEngine(self.threads)
            return
        if self.threads:
            raise click.UsageError("--threads needs --engine local; Spark takes --master 'local[N]'")
        from magicbyte.cli.session import spark_session
        from magicbyte.jobs.run.engines import SparkEngine

        with ExitStack() as stack:
            session = spark_session(title, self.master, self.conf)
            yield SparkEngine(lambda: stack.enter_context(session))
