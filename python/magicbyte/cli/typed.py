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

__all__ = ["need_schemas", "reader_schema", "refuse_validation", "typed_columns", "typed_text"]

F = TypeVar("F", bound=Callable[..., Any])


def reader_schema(command: F) -> F:
    """`--reader-schema`; the command gets the text, or None."""

    def text_of(_ctx: click.Context, param: click.Parameter, file: BinaryIO | None) -> str | None:
        try:
            return None if file is None else file.read().decode()
        except UnicodeDecodeError as error:
            raise click.BadParameter(f"not UTF-8: {error}", param=param) from None

    return click.option(
        "--reader-schema",
        metavar="FILE",
        type=click.File("rb"),
        callback=text_of,
        help="The schema of values. Without --schema-registry all are of this schema; otherwise, in tables,"
        " they get its types instead of those of the topic's latest schema.",
    )(command)


def typed_columns(command: F) -> F:
    """The flags of `TypedColumns`, `--reader-schema` and `--registry-config`, for the options `given`."""

    @wraps(command)
    def with_typed(
        given: IngestOptions,
        typed: TypedColumns,
        reader_schema: str | None,
        registry_config: str | None,
        **others: Any,
    ) -> Any:
        for name, payload, schema_format in (
            ("key", given.key_as, typed.key_format),
            ("value", given.value_as, typed.value_format),
        ):
            if schema_format is not None and payload != "binary":
                raise click.UsageError(f"--{name}-as and --{name}-format exclude each other")
        if typed:
            need_schemas(typed, reader_schema, typed.key_format)
        if reader_schema is not None and typed.value_format is None:
            raise click.UsageError("--reader-schema is for --value-format")
        if typed.messages and typed.value_format != "protobuf":
            raise click.UsageError("--message is for --value-format protobuf")
        if typed.validation:
            refuse_validation((typed.key_format, typed.value_format))
        typed = replace(typed, reader_schema=reader_schema, http=http_settings(registry_config))
        return command(given=replace(given, typed=typed), **others)

    decorated: Callable[..., Any] = with_typed
    for option in (reader_schema, registry_config, flags(TypedColumns, "typed")):
        decorated = option(decorated)
    return cast(F, decorated)


def typed_text(command: F) -> F:
    """`--key-format`, `--value-format` and where the schemas are; the command gets `text`, or None."""

    @wraps(command)
    def with_text(
        key_format: Any,
        value_format: Any,
        registry: Registry,
        reader_schema: str | None,
        registry_config: str | None,
        **others: Any,
    ) -> Any:
        text = None
        if registry.validation:
            refuse_validation((key_format, value_format))
        if reader_schema is not None and value_format is None:
            raise click.UsageError("--reader-schema is for --value-format")
        if key_format or value_format:
            from magicbyte.cli.typed_text import TypedText

            need_schemas(registry, reader_schema, key_format)
            formats = {"key": key_format, "value": value_format}
            text = TypedText.open(registry, formats, reader_schema, http_settings(registry_config))
        return command(text=text, **others)

    decorated: Callable[..., Any] = with_text
    for option in (
        reader_schema,
        registry_config,
        flags(Registry, "registry"),
        flag(TypedColumns, "value_format", help="Print each value as JSON, by the schema that it names."),
        flag(TypedColumns, "key_format", help="Print each key as JSON, by the schema that it names."),
    ):
        decorated = option(decorated)
    return cast(F, decorated)


def need_schemas(registry: Registry, reader_schema: str | None, key_format: str | None) -> None:
    """Raises UsageError if nothing says what the schemas of keys, or of values, are."""
    if registry.schema_registry is not None:
        return
    if key_format is not None:
        raise click.UsageError("--key-format needs --schema-registry")
    if reader_schema is None:
        raise click.UsageError("--value-format needs --schema-registry or --reader-schema")


def refuse_validation(formats: Collection[str | None]) -> None:
    """Raises UsageError if none of these formats is validated."""
    if "json" not in formats:
        raise click.UsageError("--validate is for --key-format json and --value-format json")
