"""The choice of an Iceberg catalog: options of the commands that know tables."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import Any, TypeVar, cast

import click

__all__ = ["CatalogChoice", "options"]

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True)
class CatalogChoice:
    """The values of `--catalog` and `--catalog-property`."""

    name: str | None
    properties: dict[str, str]

    def check(self, *, needed: bool) -> None:
        """Raises `UsageError` if there is no catalog although it is needed, or the other way round."""
        if needed and self.name is None:
            raise click.UsageError("--format iceberg needs --catalog")
        if not needed and (self.name is not None or self.properties):
            raise click.UsageError("--catalog is for Iceberg tables")


def options(command: F) -> F:
    """`--catalog` and `--catalog-property`; the command gets one `CatalogChoice` as `catalog`."""

    @wraps(command)
    def with_choice(catalog: str | None, catalog_property: tuple[str, ...], **others: Any) -> Any:
        properties = {}
        for text in catalog_property:
            key, equals, value = text.partition("=")
            if not key or not equals:
                raise click.UsageError("--catalog-property: expected KEY=VALUE")
            properties[key] = value
        return command(catalog=CatalogChoice(catalog, properties), **others)

    decorated: Callable[..., Any] = with_choice
    for option in (
        click.option(
            "--catalog-property",
            multiple=True,
            metavar="KEY=VALUE",
            help="A property of the catalog, such as uri=...; may be repeated.",
        ),
        click.option(
            "--catalog",
            metavar="NAME",
            help="The catalog of an Iceberg table, as in pyiceberg's configuration.",
        ),
    ):
        decorated = option(decorated)
    return cast(F, decorated)
