"""Typed keys and values in a job: the driver makes their decoders, which go to the tasks."""

from __future__ import annotations

from collections.abc import Sequence, Set

import pyarrow as pa

from magicbyte.enums import Framing
from magicbyte.errors import RefusedError
from magicbyte.jobs.schemas import open_registry
from magicbyte.options.typed import Column, TypedColumns
from magicbyte.schema.decoding import SCHEMA_TYPES, ColumnDecoder, bare_schema, latest_of_topic
from magicbyte.schema.http_registry import HttpRegistry
from magicbyte.schema.registry import Registry, Schema, SchemaNotFoundError

__all__ = ["column_decoders", "refuse_names"]


def column_decoders(typed: TypedColumns, topics: Set[str]) -> tuple[ColumnDecoder, ...]:
    """The decoders for a table with these topics; the options break no rule of `broken_rule`.

    A live registry is read into memory, since tasks may have no network.

    Raises:
        RefusedError: if a topic has no schema, or the topics have different ones.
        InvalidSchemaError: if the reader's schema cannot be used.

    """
    registry: Registry | None = None
    if typed and typed.schema_registry is not None:
        _, registry = open_registry([typed.schema_registry], http=typed.http)
    if isinstance(registry, HttpRegistry):
        registry = registry.snapshot()
    return tuple(_decoder(typed, column, registry, sorted(topics)) for column in typed.formats)


def _decoder(
    typed: TypedColumns, column: Column, registry: Registry | None, topics: Sequence[str]
) -> ColumnDecoder:
    is_key, payload, framing = column == "key", typed.formats[column], typed.framing_of(column)
    text = typed.reader_of(column)
    reader = None if text is None else Schema(SCHEMA_TYPES[payload], text)
    given = None
    if registry is not None:
        given = _bare_schema(registry, topics, framing, is_key=is_key)
        reader = reader or _latest(registry, topics, is_key=is_key)
    return ColumnDecoder(
        registry,
        reader,
        payload,
        messages=typed.messages_of(column),
        is_key=is_key,
        framing=framing,
        windows=typed.key_windows if is_key else "none",
        given=given,
        validate=payload == "json" and typed.validation,
        integers=typed.json_integers,
    )


def _bare_schema(
    registry: Registry, topics: Sequence[str], framing: Framing, *, is_key: bool
) -> Schema | None:
    """The schema that wrote the rows that name none; None if the registry does not say it of all topics.

    Where the framing is `none`, it writes all rows: the topics have to have one, or none of them has any.
    """
    found: set[Schema | None] = set()
    for topic in topics:
        try:
            found.add(bare_schema(registry, topic, is_key=is_key, framing=framing))
        except SchemaNotFoundError:
            found.add(None)
    if framing == "none" and any(found):
        return _latest(registry, topics, is_key=is_key)
    return found.pop() if len(found) == 1 else None


def _latest(registry: Registry, topics: Sequence[str], *, is_key: bool) -> Schema:
    """The latest schema of each of the topics."""
    if not topics:
        raise RefusedError("no topic is chosen whose schema would say the types: give the reader's schema")
    found: dict[str, Schema] = {}
    for topic in topics:
        try:
            found[topic] = latest_of_topic(registry, topic, is_key=is_key)
        except SchemaNotFoundError as error:
            raise RefusedError(f"{error}: choose a topic that has a schema, or give one") from None
    first = topics[0]
    for topic, schema in found.items():
        if schema != found[first]:
            raise RefusedError(f"{first} and {topic} have different schemas, a table has one: choose a topic")
    return found[first]


def refuse_names(schema: pa.Schema) -> None:
    """Raises RefusedError for fields whose names differ only in case: Spark reads no file with them."""
    pending: list[tuple[str, pa.DataType]] = [(field.name, field.type) for field in schema]
    while pending:
        path, of = pending.pop()
        fields = [of.field(index) for index in range(of.num_fields)] if pa.types.is_nested(of) else []
        known: dict[str, str] = {}
        for field in fields:
            other = known.setdefault(field.name.lower(), field.name)
            if other != field.name:
                raise RefusedError(
                    f"{path} has the fields {other} and {field.name}, and Spark reads no file with both:"
                    " give a reader's schema with one of them"
                )
            pending.append((f"{path}.{field.name}", field.type))
