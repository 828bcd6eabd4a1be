"""The arguments `SRC...` of `magicbyte schemas`, and the options that say how to read them."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar, cast

import click

from magicbyte.cli.flags import flag, flags
from magicbyte.jobs.find.choice import PartitionChoice
from magicbyte.options.read import SchemasOptions

if TYPE_CHECKING:
    from magicbyte.jobs.schemas import SchemasReport
    from magicbyte.schema.http_client import HttpSettings
    from magicbyte.schema.registry import Registry

__all__ = ["SchemaSource", "http_settings", "registry_config", "schema_source"]

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True)
class SchemaSource:
    """The source of a command's schemas."""

    sources: tuple[str, ...]
    how: dict[str, Any]
    """The keywords of `open_registry`."""

    def open(self) -> Registry:
        """Opens the registry, of any kind."""
        from magicbyte.jobs.schemas import open_registry

        return open_registry(self.sources, **self.how)[1]

    def report(self, out: str | None = None) -> SchemasReport:
        """A report on the schemas; with `out`, they are also written there as files."""
        from magicbyte.jobs.schemas import schemas

        return schemas(self.sources, out, **self.how)


def registry_config(command: F) -> F:
    """`--registry-config`; `http_settings` reads the file."""
    return click.option(
        "--registry-config",
        metavar="FILE",
        type=click.Path(exists=True, dir_okay=False),
        help="For an address: a properties file with basic.auth.user.info, bearer.auth.token or"
        " ssl.ca.location, as Confluent's clients have it.",
    )(command)


def http_settings(registry_config: str | None) -> HttpSettings | None:
    """The settings for a live registry from `--registry-config`."""
    from magicbyte.schema.http_client import read_settings

    return None if registry_config is None else read_settings(registry_config)


def schema_source(command: F) -> F:
    """The arguments `SRC...` and their options; the command gets them as `source`."""

    @wraps(command)
    def with_source(
        sources: tuple[str, ...],
        prefer: tuple[str, ...],
        given: SchemasOptions,
        registry_config: str | None,
        **others: Any,
    ) -> Any:
        from magicbyte.schema.http_registry import is_registry_url
        from magicbyte.storage.location import refuse_cluster

        for source in sources:
            refuse_cluster(source)
            if not is_registry_url(source) and not os.path.exists(source):
                raise click.BadParameter(f"Path {source!r} does not exist.", param_hint="'SRC...'")
        how = {
            **vars(given),
            "choice": PartitionChoice(prefer=prefer),
            "http": http_settings(registry_config),
        }
        return command(source=SchemaSource(sources, how), **others)

    decorated: Callable[..., Any] = with_source
    for option in (
        registry_config,
        flags(SchemasOptions, "given"),
        flag(PartitionChoice, "prefer"),
        click.argument("sources", metavar="SRC...", nargs=-1, required=True, type=click.Path()),
    ):
        decorated = option(decorated)
    return cast(F, decorated)
