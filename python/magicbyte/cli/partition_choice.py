"""The input of a command: the arguments SRC..., and the options that choose partitions in them."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast

import click

from magicbyte.cli.flags import flags
from magicbyte.cli.piped import saved
from magicbyte.jobs.find.choice import PartitionChoice
from magicbyte.options.declare import declared

__all__ = [
    "choice",
    "local_out_option",
    "local_out_or_dry_run",
    "local_sources",
    "local_sources_or_clusters",
    "of_cluster",
    "out",
    "out_option",
    "sources",
    "sources_and_out",
    "sources_or_clusters",
    "two_sources",
]

F = TypeVar("F", bound=Callable[..., Any])

_dry_run = click.option(
    "--dry-run", is_flag=True, help="Write nothing, not even with --out: all arguments are SRC."
)


def local_sources(command: F) -> F:
    """The arguments `SRC...`: directories and segment files of the local file system."""
    return click.argument("sources", metavar="SRC...", nargs=-1, required=True, type=_LocalPath(exists=True))(
        _encryption_keys(command)
    )


def local_sources_or_clusters(command: F) -> F:
    """Like `local_sources`, for a command that also describes running clusters."""
    type_ = _LocalPath(exists=True, or_cluster=True)
    return click.argument("sources", metavar="SRC...", nargs=-1, required=True, type=type_)(
        _encryption_keys(command)
    )


def _encryption_keys(command: F) -> F:
    """The option `--encryption-key`."""

    @wraps(command)
    def with_keys(encryption_keys: tuple[str, ...], **others: Any) -> Any:
        from magicbyte.storage.encryption_keys import add_keys, named_key

        try:
            add_keys(map(named_key, encryption_keys))
        except (OSError, ValueError) as error:
            raise click.UsageError(f"--encryption-key: {error}") from None
        return command(**others)

    return cast(
        F,
        click.option(
            "--encryption-key",
            "encryption_keys",
            multiple=True,
            metavar="[ID=]FILE",
            help="The RSA private key (PEM) of encrypted segments in tiered storage, with the ID that Aiven's"
            " plugin gives it; may be repeated.",
        )(with_keys),
    )


def sources(command: F) -> F:
    """The arguments `SRC...`, which may be URLs, and `--storage-option`, also for `OUT` if there is one."""
    return _sources(_with_stores(command))


def sources_or_clusters(command: F) -> F:
    """Like `sources`, for a command that also reads running clusters."""
    return _sources(_with_stores(command, reads_clusters=True))


def _sources(command: F) -> F:
    return click.argument("sources", metavar="SRC...", nargs=-1, required=True, type=_Source())(
        _encryption_keys(command)
    )


def two_sources(command: F) -> F:
    """The arguments `A` and `B`, which may be URLs, running clusters or the identifiers of tables in a
    catalog, and `--storage-option`; the command gets `sources`.
    """
    inner = _encryption_keys(_with_stores(command, reads_clusters=True))

    @wraps(inner)
    def with_both(first: str, second: str, **others: Any) -> Any:
        return inner(sources=(first, second), **others)

    decorated: Callable[..., Any] = with_both
    for name, metavar in (("second", "B"), ("first", "A")):
        decorated = click.argument(name, metavar=metavar, type=_Source(or_identifier=True))(decorated)
    return cast(F, decorated)


def out(command: F) -> F:
    """The argument `OUT`, which may be a URL, and `--storage-option`, for a command with local sources."""
    return click.argument("out", metavar="OUT", type=click.Path())(_with_stores(command))


def out_option(command: F) -> F:
    """The options `--out`, which may be a URL, `--dry-run` and `--storage-option`, for a command with local
    sources; the command gets `out`, or None.
    """
    return _out_option(_with_stores(command), "Write into this directory or URL, which is new or empty.")


def local_out_option(command: F) -> F:
    """Like `out_option`, for a command that only writes to a local directory."""
    return _out_option(command, "Write into this directory, which is new or empty.")


def local_out_or_dry_run(command: F) -> F:
    """The options `--out` and `--dry-run`, for a command that changes its sources without the former."""
    help = "Write into this directory, which is new or empty."
    return click.option("--out", metavar="OUT", type=click.Path(), help=help)(_dry_run(command))


def _out_option(inner: F, help: str) -> F:
    @wraps(inner)
    def with_out(out: str | None, dry_run: bool, **others: Any) -> Any:
        return inner(out=None if dry_run else out, **others)

    decorated: Callable[..., Any] = _dry_run(with_out)
    return cast(F, click.option("--out", metavar="OUT", type=click.Path(), help=help)(decorated))


def _with_stores(command: F, *, reads_clusters: bool = False) -> F:
    """Adds `--storage-option`, and mounts the stores of the URLs in `sources`, `out` and `table`."""

    @wraps(command)
    def with_mounts(storage_options: tuple[tuple[str, str], ...], **arguments: Any) -> Any:
        from magicbyte.storage.location import cluster_of
        from magicbyte.storage.mounts import mount
        from magicbyte.storage.paths import is_url

        others = [name for name in ("out", "table") if name in arguments]
        urls = [*arguments.get("sources", ()), *(arguments[name] for name in others if arguments[name])]
        urls = [url for url in urls if is_url(url) and not (reads_clusters and cluster_of(url))]
        if storage_options and not urls:
            of = " or ".join([*["a SRC"] * ("sources" in arguments), *map(str.upper, others)])
            raise click.UsageError(
                f"--storage-option needs {of} that is a URL, such as s3://bucket/kafka-logs"
            )
        try:
            mount(urls, dict(storage_options))
        except ValueError as error:
            raise click.UsageError(str(error)) from None
        return command(**arguments)

    decorated: Callable[..., Any] = with_mounts
    option = click.option(
        "--storage-option",
        "storage_options",
        type=_KeyValue(),
        multiple=True,
        metavar="KEY=VALUE",
        help="For URLs: an option of the store, such as region=eu-west-1; may be repeated."
        " Without any, credentials come from the environment.",
    )
    return cast(F, option(decorated))


class _LocalPath(click.Path):
    """A path that is not a URL, or a running cluster if the command describes it."""

    def __init__(self, *, exists: bool = False, or_cluster: bool = False) -> None:
        super().__init__(exists=exists)
        self._or_cluster = or_cluster

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """See `click.ParamType.convert`."""
        from magicbyte.storage.location import cluster_of, refuse_cluster
        from magicbyte.storage.paths import is_url

        if self._or_cluster and cluster_of(value) is not None:
            return value
        refuse_cluster(value)
        if is_url(value):
            command = f"`{ctx.command.name}`" if ctx is not None else "this command"
            self.fail(f"{command} reads local paths only; copy the log first, or part of it", param, ctx)
        return super().convert(saved(value), param, ctx)


class _Source(click.Path):
    """A path or a URL. For a path inside an archive, the archive has to exist. What does not exist may be the
    identifier of a table in a catalog, as the job decides.
    """

    def __init__(self, *, or_identifier: bool = False) -> None:
        super().__init__()
        self._or_identifier = or_identifier

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """See `click.ParamType.convert`."""
        from magicbyte.storage.paths import is_stored, local_path

        value = saved(local_path(value))
        if is_stored(value) and not os.path.lexists(value):
            return value
        return click.Path(exists=not self._or_identifier).convert(value, param, ctx)


class _KeyValue(click.ParamType):  # type: ignore[type-arg]  # generic only since click 8.4
    """`KEY=VALUE`."""

    name = "option"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, str]:
        """See `click.ParamType.convert`."""
        if isinstance(value, tuple):
            return value
        key, equals, rest = str(value).partition("=")
        if not key or not equals:
            # The value may be a secret.
            self.fail("expected KEY=VALUE", param, ctx)
        return key, rest


def sources_and_out(command: F) -> F:
    """The arguments `SRC... [OUT]`, `--dry-run` and `--storage-option`; the command gets `sources`, and `out`
    or None.
    """
    inner = _with_stores(command)

    @wraps(inner)
    def with_paths(paths: tuple[str, ...], dry_run: bool, **others: Any) -> Any:
        writes = len(paths) > 1 and not dry_run
        sources, out = (paths[:-1], paths[-1]) if writes else (paths, None)
        context = click.get_current_context(silent=True)
        sources = tuple(_LocalPath().convert(source, None, context) for source in sources)
        for source in sources:
            if not os.path.lexists(source):
                raise click.BadParameter(f"{source!r} does not exist", param_hint="SRC")
        return inner(sources=sources, out=out, **others)

    decorated: Callable[..., Any] = _encryption_keys(with_paths)
    for option in (
        _dry_run,
        click.argument("paths", metavar="SRC... [OUT]", nargs=-1, required=True, type=click.Path()),
    ):
        decorated = option(decorated)
    return cast(F, decorated)


def choice(*, prefer: bool = False, assigned: bool = False) -> Callable[[F], F]:
    """The flags of a `PartitionChoice`, which the command gets as `choice`.

    `prefer` adds `--prefer`, for a command that takes only one copy of a partition; `assigned` adds
    `--one-disk`, for a command that reports what a broker should have.
    """
    without = {name for name, wanted in (("prefer", prefer), ("one_disk", assigned)) if not wanted}
    return flags(PartitionChoice, "choice", without=without)


def of_cluster() -> Callable[[F], F]:
    """The flags of a `PartitionChoice` for a running cluster, which has no directories."""
    of_directories = {declaration.name for declaration in declared(PartitionChoice)} - {
        "topics",
        "exclude",
        "exclude_internal",
        "partitions",
    }
    return flags(PartitionChoice, "choice", without=of_directories)
