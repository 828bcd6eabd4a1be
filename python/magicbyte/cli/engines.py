"""Where a job's tasks run: the options, and the engine they choose."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from magicbyte.jobs.engines import Engine

__all__ = ["chosen", "options"]

F = TypeVar("F", bound=Callable[..., Any])


def options(command: F) -> F:
    """`--engine`, `--master`, `--conf`"""
    for option in (
        click.option(
            "--conf", multiple=True, metavar="KEY=VALUE", help="A Spark setting; may be given again."
        ),
        click.option(
            "--master",
            show_default="local[*]",
            metavar="URL",
            help="Spark's master: local[N], spark://..., yarn, k8s://...",
        ),
        click.option(
            "--engine",
            type=click.Choice(["spark", "local"]),
            default="spark",
            show_default=True,
            help="Where the tasks run: on Spark, or in threads of this process without a JVM.",
        ),
    ):
        command = option(command)
    return command


@contextmanager
def chosen(
    title: str, name: str, master: str | None, conf: tuple[str, ...], threads: int | None
) -> Iterator[Engine]:
    """The engine that the options name; Spark's UI shows `title`."""
    if name == "local":
        if master or conf:
            raise click.UsageError("--master and --conf belong to --engine spark")
        from magicbyte.jobs.engines import LocalEngine

        yield LocalEngine(threads)
        return
    if threads:
        raise click.UsageError("--threads belongs to --engine local; Spark takes --master 'local[N]'")
    from magicbyte.cli.session import spark_session
    from magicbyte.jobs.engines import SparkEngine

    with spark_session(title, master, conf) as session:
        yield SparkEngine(session)
