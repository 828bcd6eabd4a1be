"""The rules of the options for typed keys and values: which of them need or exclude each other.

>>> from magicbyte.options.typed import TypedColumns
>>> from magicbyte.options.typed_rules import broken_rule
>>> given = TypedColumns(schema_registry="schemas/", value_format="avro", key_windows="time")
>>> broken_rule(given, given.formats)
'key_windows is for key_format avro, protobuf or json'
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple, get_args

from magicbyte.enums import PayloadType, SchemaFormat
from magicbyte.options.declare import defaults_of, flag_of
from magicbyte.options.ingest import IngestOptions
from magicbyte.options.typed import Column, Registry, TypedColumns

__all__ = ["asks_for_schemas", "broken_rule", "flag_of_rule"]


class _Use(NamedTuple):
    """An option has an effect if one of these columns has one of these formats."""

    columns: tuple[Column, ...]
    formats: tuple[SchemaFormat, ...] = get_args(SchemaFormat)


_USES: Mapping[str, _Use] = {
    "schema_registry": _Use(("key", "value")),
    "http": _Use(("key", "value")),
    "key_reader_schema": _Use(("key",)),
    "reader_schema": _Use(("value",)),
    "messages": _Use(("value",), ("protobuf",)),
    "key_framing": _Use(("key",)),
    "value_framing": _Use(("value",)),
    "key_windows": _Use(("key",)),
    "validate": _Use(("key", "value"), ("json",)),
    "validate_formats": _Use(("key", "value"), ("json",)),
    "json_integers": _Use(("key", "value"), ("json",)),
}
_READERS: Mapping[Column, str] = {"key": "key_reader_schema", "value": "reader_schema"}


def broken_rule(
    options: Registry,
    formats: Mapping[Column, SchemaFormat],
    payloads: Mapping[Column, PayloadType] | None = None,
    *,
    spelled: Callable[[str], str] = str,
) -> str | None:
    """The first rule that options break, as a message; None if they break none.

    Args:
        options: the options.
        formats: the formats of the columns that are decoded by schemas.
        payloads: the types `key_as` and `value_as` that columns get without schemas.
        spelled: the caller's name of an option by that of its field, such as `flag_of_rule`.

    """
    return next(_broken(options, formats, payloads or {}, spelled), None)


def flag_of_rule(name: str) -> str:
    """The flag of an option that a rule names."""
    return flag_of(IngestOptions if name in ("key_as", "value_as") else TypedColumns, name)


def asks_for_schemas(options: Registry, column: Column) -> bool:
    """True if a column has a source of schemas, or an option has no effect because it has none."""
    if options.has_schemas(column):
        return True
    uses = [_USES[name] for name in _given(options)]
    return any(column in use.columns and not any(map(options.has_schemas, use.columns)) for use in uses)


def _given(options: Registry) -> Iterator[str]:
    for name, default in defaults_of(type(options)):
        if name in _USES and getattr(options, name) != default:
            yield name


def _broken(
    options: Registry,
    formats: Mapping[Column, SchemaFormat],
    payloads: Mapping[Column, PayloadType],
    spelled: Callable[[str], str],
) -> Iterator[str]:
    for column in formats:
        if payloads.get(column, "binary") != "binary":
            yield f"{spelled(f'{column}_as')} and {spelled(f'{column}_format')} exclude each other"
    for name in _given(options):
        use = _USES[name]
        if not any(formats.get(column) in use.formats for column in use.columns):
            named = " or ".join(spelled(f"{column}_format") for column in use.columns)
            yield f"{spelled(name)} is for {named} {_alternatives(use.formats)}"
    for column in formats:
        if not options.has_schemas(column):
            sources = f"{spelled('schema_registry')} or {spelled(_READERS[column])}"
            yield f"{spelled(f'{column}_format')} needs {sources}"
    if options.http is not None and options.schema_registry is None:
        yield f"{spelled('http')} needs {spelled('schema_registry')}"


def _alternatives(words: tuple[str, ...]) -> str:
    *others, last = words
    return f"{', '.join(others)} or {last}" if others else last
