"""The flags of typed keys and values, of the commands that make columns or text of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar, cast

import click

from magicbyte.cli.flags import flag, flags
from magicbyte.cli.schema_source import http_settings, registry_config
from magicbyte.options.ingest import IngestOptions
from magicbyte.options.typed import Column, Registry, TypedColumns
from magicbyte.options.typed_rules import broken_rule, flag_of_rule

if TYPE_CHECKING:
    from magicbyte.cli.typed_text import TypedText
    from magicbyte.enums import PayloadType, SchemaFormat

__all__ = ["check_typed", "text_by_schemas", "typed_columns", "typed_text"]

F = TypeVar("F", bound=Callable[..., Any])


def typed_columns(command: F) -> F:
    """The flags of `TypedColumns` and `--registry-config`, for the options `given`."""

    @wraps(command)
    def with_typed(
        given: IngestOptions, typed: TypedColumns, registry_config: str | None, **others: Any
    ) -> Any:
        typed = replace(typed, http=http_settings(registry_config))
        check_typed(typed, typed.formats, given.payloads)
        return command(given=replace(given, typed=typed), **others)

    decorated: Callable[..., Any] = with_typed
    for option in (registry_config, flags(TypedColumns, "typed")):
        decorated = option(decorated)
    return cast(F, decorated)


def typed_text(command: F) -> F:
    """`--key-format`, `--value-format` and where the schemas are; the command gets `text`, or None."""

    @wraps(command)
    def with_text(
        key_format: SchemaFormat | None,
        value_format: SchemaFormat | None,
        registry: Registry,
        registry_config: str | None,
        **others: Any,
    ) -> Any:
        formats = TypedColumns(key_format=key_format, value_format=value_format).formats
        return command(text=text_by_schemas(registry, formats, registry_config), **others)

    decorated: Callable[..., Any] = with_text
    for option in (
        registry_config,
        flags(Registry, "registry"),
        flag(TypedColumns, "value_format", help="Print each value as JSON, by the schema that it names."),
        flag(TypedColumns, "key_format", help="Print each key as JSON, by the schema that it names."),
    ):
        decorated = option(decorated)
    return cast(F, decorated)


def text_by_schemas(
    registry: Registry, formats: Mapping[Column, SchemaFormat], registry_config: str | None
) -> TypedText | None:
    """The decoder to text of the columns with formats; None if there are none.

    Raises:
        UsageError: for options that contradict each other.

    """
    registry = replace(registry, http=http_settings(registry_config))
    check_typed(registry, formats)
    if len(registry.messages) > 1:
        raise click.UsageError(
            f"{flag_of_rule('messages')} can be repeated for typed columns only, not for text"
        )
    if not formats:
        return None
    from magicbyte.cli.typed_text import TypedText

    return TypedText.open(registry, formats)


def check_typed(
    options: Registry,
    formats: Mapping[Column, SchemaFormat],
    payloads: Mapping[Column, PayloadType] | None = None,
) -> None:
    """Raises UsageError for options that break a rule of `broken_rule`."""
    rule = broken_rule(options, formats, payloads, spelled=flag_of_rule)
    if rule is not None:
        raise click.UsageError(rule)
