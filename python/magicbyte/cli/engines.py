"""The place where a job's tasks run: the options of commands that run a job, and the chosen engine."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar, cast

import click

if TYPE_CHECKING:
    from magicbyte.jobs.run.engines import Engine

__all__ = ["EngineChoice", "options"]

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True)
class EngineChoice:
    """The values of `--engine`, `--master`, `--conf` and `--threads`."""

    name: str
    master: str | None
    conf: tuple[str, ...]
    threads: int | None

    @contextmanager
    def open(self, title: str) -> Iterator[Engine]:
        """Opens the engine; Spark's UI shows `title`. Spark starts when it is first used, so that what a job
        refuses is refused at once.

        Raises:
            UsageError: an option of the other engine was given.

        """
        wants_spark = bool(self.master or self.conf or "PYSPARK_GATEWAY_PORT" in os.environ)
        if self.name == "local" or (self.name == "auto" and not wants_spark):
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


def options(command: F) -> F:
    """`--engine`, `--threads`, `--master` and `--conf`; the command gets one `EngineChoice` as `engine`."""

    @wraps(command)
    def with_choice(
        engine: str, master: str | None, conf: tuple[str, ...], threads: int | None, **others: Any
    ) -> Any:
        return command(engine=EngineChoice(engine, master, conf, threads), **others)

    decorated: Callable[..., Any] = with_choice
    for option in (
        click.option(
            "--conf",
            multiple=True,
            metavar="KEY=VALUE",
            help="A setting of Spark; may be repeated.",
        ),
        click.option(
            "--master",
            show_default="local[*]",
            metavar="URL",
            help="Spark's master: local[N], spark://..., yarn, k8s://...",
        ),
        click.option(
            "--threads",
            type=click.IntRange(min=1),
            show_default="one per core",
            metavar="N",
            help="The number of threads, with --engine local.",
        ),
        click.option(
            "--engine",
            type=click.Choice(["auto", "local", "spark"]),
            default="auto",
            show_default=True,
            help="The place of the tasks: threads of this process, or Spark, embedded or on a cluster. auto"
            " is Spark with --master, --conf or spark-submit, else threads.",
        ),
    ):
        decorated = option(decorated)
    return cast(F, decorated)
