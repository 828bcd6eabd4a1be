"""The options for typed keys and values."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace
from functools import wraps
from typing import Any, BinaryIO, TypeVar, cast

import click

from magicbyte.cli.flags import flag, flags
from magicbyte.cli.schema_source import http_settings, registry_config
from magicbyte.options.ingest import IngestOptions
from magicbyte.options.typed import Registry, TypedColumns

__all__ = ["refuse_validation", "typed_columns", "typed_text"]

F = TypeVar("F", bound=Callable[..., Any])


def typed_columns(command: F) -> F:
    """The flags of `TypedColumns`, `--reader-schema` and `--registry-config`, for the options `given`."""

    @wraps(command)
    def with_typed(
        given: IngestOptions,
        typed: TypedColumns,
        reader_schema: BinaryIO | None,
        registry_config: str | None,
        **others: Any,
    ) -> Any:
        for name, payload, schema_format in (
            ("key", given.key_as, typed.key_format),
            ("value", given.value_as, typed.value_format),
        ):
            if schema_format is not None and payload != "binary":
                raise click.UsageError(f"--{name}-as and --{name}-format exclude each other")
        if typed and typed.schema_registry is None:
            raise click.UsageError("--key-format and --value-format need --schema-registry")
        if reader_schema is not None and typed.value_format is None:
            raise click.UsageError("--reader-schema is for --value-format")
        if typed.messages and typed.value_format != "protobuf":
            raise click.UsageError("--message is for --value-format protobuf")
        if typed.validate:
            refuse_validation((typed.key_format, typed.value_format))
        text = None
        if reader_schema is not None:
            try:
                text = reader_schema.read().decode()
            except UnicodeDecodeError as error:
                raise click.BadParameter(f"not UTF-8: {error}", param_hint="'--reader-schema'") from None
        typed = replace(typed, reader_schema=text, http=http_settings(registry_config))
        return command(given=replace(given, typed=typed), **others)

    decorated: Callable[..., Any] = with_typed
    for option in (
        click.option(
            "--reader-schema",
            metavar="FILE",
            type=click.File("rb"),
            help="The schema whose types values get, instead of the latest schema of the topic.",
        ),
        registry_config,
        flags(TypedColumns, "typed"),
    ):
        decorated = option(decorated)
    return cast(F, decorated)


def typed_text(command: F) -> F:
    """`--key-format`, `--value-format` and where the schemas are; the command gets `text`, or None."""

    @wraps(command)
    def with_text(
        key_format: Any, value_format: Any, registry: Registry, registry_config: str | None, **others: Any
    ) -> Any:
        text = None
        if registry.validate:
            refuse_validation((key_format, value_format))
        if key_format or value_format:
            from magicbyte.cli.typed_text import TypedText

            if registry.schema_registry is None:
                raise click.UsageError("--key-format and --value-format need --schema-registry")
            formats = {"key": key_format, "value": value_format}
            text = TypedText.open(
                registry.schema_registry, formats, http_settings(registry_config), validate=registry.validate
            )
        return command(text=text, **others)

    decorated: Callable[..., Any] = with_text
    for option in (
        registry_config,
        flags(Registry, "registry"),
        flag(TypedColumns, "value_format", help="Print each value as JSON, by the schema that it names."),
        flag(TypedColumns, "key_format", help="Print each key as JSON, by the schema that it names."),
    ):
        decorated = option(decorated)
    return cast(F, decorated)


def refuse_validation(formats: Collection[str | None]) -> None:
    """Raises UsageError if none of these formats is validated."""
    if "json" not in formats:
        raise click.UsageError("--validate is for --key-format json and --value-format json")
