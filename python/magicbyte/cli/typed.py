"""The options for typed keys and values."""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import wraps
from typing import Any, TypeVar, cast

import click

from magicbyte.cli.schema_source import http_settings, registry_config

__all__ = ["refuse_validation", "schema_registry", "typed_columns", "typed_text", "validate_option"]

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
        validate: bool,
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
        if validate:
            refuse_validation((key_format, value_format))
        text = None
        if reader_schema is not None:
            try:
                text = reader_schema.read().decode()
            except UnicodeDecodeError as error:
                raise click.BadParameter(f"not UTF-8: {error}", param_hint="'--reader-schema'") from None
        typed = TypedColumns(
            schema_registry,
            key_format,
            value_format,
            text,
            messages,
            http_settings(registry_config),
            validate,
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
            help="The schema whose types values get, instead of the latest schema of the topic.",
        ),
        validate_option,
        schema_registry,
        *_formats("Decode the column {} by the schemas that its bytes or headers name."),
    ):
        decorated = option(decorated)
    return cast(F, decorated)


def typed_text(command: F) -> F:
    """`--key-format`, `--value-format` and where the schemas are; the command gets `text`, or None."""

    @wraps(command)
    def with_text(
        key_format: Any,
        value_format: Any,
        schema_registry: str | None,
        registry_config: str | None,
        validate: bool,
        **others: Any,
    ) -> Any:
        text = None
        if validate:
            refuse_validation((key_format, value_format))
        if key_format or value_format:
            from magicbyte.cli.typed_text import TypedText

            if schema_registry is None:
                raise click.UsageError("--key-format and --value-format need --schema-registry")
            formats = {"key": key_format, "value": value_format}
            text = TypedText.open(schema_registry, formats, http_settings(registry_config), validate=validate)
        return command(text=text, **others)

    decorated: Callable[..., Any] = with_text
    for option in (
        validate_option,
        schema_registry,
        *_formats("Print each {} as JSON, by the schema that it names."),
    ):
        decorated = option(decorated)
    return cast(F, decorated)


def schema_registry(command: F) -> F:
    """`--schema-registry` and `--registry-config`"""
    return click.option(
        "--schema-registry",
        metavar="SRC",
        help="The source of the schemas: the directory of the topic _schemas or one above it, a directory of"
        " files, or the address of a live registry.",
    )(registry_config(command))


def validate_option(command: F) -> F:
    """`--validate`; a command refuses it with `refuse_validation`"""
    return click.option(
        "--validate",
        is_flag=True,
        help="Treat a JSON key or value that its own JSON Schema does not allow as invalid.",
    )(command)


def refuse_validation(formats: Collection[str | None]) -> None:
    """Raises UsageError if none of these formats is validated."""
    if "json" not in formats:
        raise click.UsageError("--validate is for --key-format json and --value-format json")


def _formats(help_text: str) -> list[Callable[[F], F]]:
    return [
        click.option(
            f"--{name}-format",
            type=click.Choice(["avro", "protobuf", "json"]),
            help=help_text.format(name),
        )
        for name in ("value", "key")
    ]
