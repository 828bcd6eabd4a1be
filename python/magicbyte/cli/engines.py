"""Where a job's tasks run: the options of every command that runs a job, and the engine they choose."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar, cast

import click

if TYPE_CHECKING:
    from magicbyte.jobs.engines import Engine

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
        """Opens the engine; Spark's UI shows `title`.

        Raises:
            UsageError: an option of the other engine was given.
            JobError: Spark does not start.

        """
        if self.name == "local":
            if self.master or self.conf:
                raise click.UsageError("--master and --conf need --engine spark")
            from magicbyte.jobs.engines import LocalEngine

            yield LocalEngine(self.threads)
            return
        if self.threads:
            raise click.UsageError("--threads needs --engine local; Spark takes --master 'local[N]'")
        from magicbyte.cli.session import spark_session
        from magicbyte.jobs.engines import SparkEngine

        with spark_session(title, self.master, self.conf) as session:
            yield SparkEngine(session)


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
            help="With --engine spark: a setting of Spark; may be repeated.",
        ),
        click.option(
            "--master",
            show_default="local[*]",
            metavar="URL",
            help="With --engine spark: local[N], spark://..., yarn, k8s://...",
        ),
        click.option(
            "--threads",
            type=click.IntRange(min=1),
            show_default="one per core",
            metavar="N",
            help="With --engine local: how many threads.",
        ),
        click.option(
            "--engine",
            type=click.Choice(["local", "spark"]),
            default="local",
            show_default=True,
            help="Where the tasks run: in threads of this process, or on Spark, embedded or a cluster's.",
        ),
    ):
        decorated = option(decorated)
    return cast(F, decorated)
