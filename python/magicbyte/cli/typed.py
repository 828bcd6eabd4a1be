"""The options for typed keys and values."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast

import click

__all__ = ["typed_columns"]

F = TypeVar("F", bound=Callable[..., Any])


def typed_columns(command: F) -> F:
    """`--key-format`, `--value-format`, `--schema-registry`, `--reader-schema`; the command gets `typed`."""

    @wraps(command)
    def with_typed(
        key_format: Any,
        value_format: Any,
        schema_registry: str | None,
        reader_schema: Any,
        **others: Any,
    ) -> Any:
        from magicbyte.jobs.typed import TypedColumns

        for name, payload in (("key", key_format), ("value", value_format)):
            if payload is not None and others.get(f"{name}_as", "binary") != "binary":
                raise click.UsageError(f"--{name}-as and --{name}-format exclude each other")
        if (key_format or value_format) and schema_registry is None:
            raise click.UsageError("--key-format and --value-format need --schema-registry")
        if reader_schema is not None and value_format is None:
            raise click.UsageError("--reader-schema is for --value-format")
        text = None
        if reader_schema is not None:
            try:
                text = reader_schema.read().decode()
            except UnicodeDecodeError as error:
                raise click.BadParameter(f"not UTF-8: {error}", param_hint="'--reader-schema'") from None
        return command(typed=TypedColumns(schema_registry, key_format, value_format, text), **others)

    decorated: Callable[..., Any] = with_typed
    for option in (
        click.option(
            "--reader-schema",
            metavar="FILE",
            type=click.File("rb"),
            help="The schema whose types values get, instead of the latest one of the topic.",
        ),
        click.option(
            "--schema-registry",
            metavar="SRC",
            help="Where the schemas are: the directory of the topic _schemas or one above it, a directory of"
            " files, or the address of a live registry.",
        ),
        *(
            click.option(
                f"--{name}-format",
                type=click.Choice(["avro"]),
                help=f"Decode the column {name} by the schemas that its bytes or headers name.",
            )
            for name in ("value", "key")
        ),
    ):
        decorated = option(decorated)
    return cast(F, decorated)
