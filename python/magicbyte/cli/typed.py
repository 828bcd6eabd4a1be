"""The options for typed keys and values."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast

import click

from magicbyte.cli.schema_source import http_settings, registry_config

__all__ = ["typed_columns"]

F = TypeVar("F", bound=Callable[..., Any])


def typed_columns(command: F) -> F:
    """`--key-format`, `--value-format` and what belongs to them; the command gets `typed`."""

    @wraps(command)
    def with_typed(
        key_format: Any,
        value_format: Any,
        schema_registry: str | None,
        reader_schema: Any,
        messages: tuple[str, ...],
        registry_config: str | None,
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
        if messages and value_format != "protobuf":
            raise click.UsageError("--message is for --value-format protobuf")
        text = None
        if reader_schema is not None:
            try:
                text = reader_schema.read().decode()
            except UnicodeDecodeError as error:
                raise click.BadParameter(f"not UTF-8: {error}", param_hint="'--reader-schema'") from None
        typed = TypedColumns(
            schema_registry, key_format, value_format, text, messages, http_settings(registry_config)
        )
        return command(typed=typed, **others)

    decorated: Callable[..., Any] = with_typed
    for option in (
        click.option(
            "--message",
            "messages",
            multiple=True,
            metavar="NAME",
            help="The Protobuf message that values are, with its package; by default the first one of the"
            " schema. May be repeated: each is a field then.",
        ),
        click.option(
            "--reader-schema",
            metavar="FILE",
            type=click.File("rb"),
            help="The schema whose types values get, instead of the latest one of the topic.",
        ),
        registry_config,
        click.option(
            "--schema-registry",
            metavar="SRC",
            help="Where the schemas are: the directory of the topic _schemas or one above it, a directory of"
            " files, or the address of a live registry.",
        ),
        *(
            click.option(
                f"--{name}-format",
                type=click.Choice(["avro", "protobuf", "json"]),
                help=f"Decode the column {name} by the schemas that its bytes or headers name.",
            )
            for name in ("value", "key")
        ),
    ):
        decorated = option(decorated)
    return cast(F, decorated)
