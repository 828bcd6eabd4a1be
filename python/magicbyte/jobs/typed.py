"""Typed keys and values in a job: the driver makes their decoders, which go to the tasks."""

from __future__ import annotations

from collections.abc import Set

import pyarrow as pa

from magicbyte.enums import SchemaFormat
from magicbyte.errors import RefusedError
from magicbyte.jobs.schemas import open_registry
from magicbyte.options.typed import TypedColumns
from magicbyte.schema.decoding import SCHEMA_TYPES, ColumnDecoder, given_of_topic, latest_of_topic
from magicbyte.schema.http_registry import HttpRegistry
from magicbyte.schema.registry import Registry, Schema, SchemaNotFoundError

__all__ = ["column_decoders", "refuse_names"]


def column_decoders(typed: TypedColumns, topics: Set[str]) -> tuple[ColumnDecoder, ...]:
    """The decoders for a table with these topics.

    A live registry is read into memory, since tasks may have no network.

    Raises:
        RefusedError: if a column has neither a registry nor a schema, or the topics have different ones.
        InvalidSchemaError: if the reader's schema cannot be used.

    """
    if not typed:
        return ()
    if typed.schema_registry is None and (typed.key_format is not None or typed.reader_schema is None):
        raise RefusedError(
            "typed keys need a schema registry: its topic, its address, or files; typed values need one, or"
            " the reader's schema"
        )
    if typed.validation and "json" not in (typed.key_format, typed.value_format):
        raise RefusedError("validate is for the format json: others have no rules besides their types")
    registry: Registry | None = None
    if typed.schema_registry is not None:
        _, registry = open_registry([typed.schema_registry], http=typed.http)
    if isinstance(registry, HttpRegistry):
        registry = registry.snapshot()
    decoders = []
    for is_key, payload in ((True, typed.key_format), (False, typed.value_format)):
        if payload is not None:
            reader, given = _reader(typed, payload, registry, sorted(topics), is_key=is_key)
            decoders.append(
                ColumnDecoder(
                    registry,
                    reader,
                    payload,
                    messages=() if is_key else typed.messages,
                    is_key=is_key,
                    framing=typed.key_framing if is_key else typed.value_framing,
                    windows=typed.key_windows if is_key else "none",
                    given=given,
                    validate=payload == "json" and typed.validation,
                    integers=typed.json_integers,
                )
            )
    return tuple(decoders)


def _reader(
    typed: TypedColumns, payload: SchemaFormat, registry: Registry | None, topics: list[str], *, is_key: bool
) -> tuple[Schema, Schema | None]:
    """The reader's schema, and that of rows that name none, if files give it to each topic."""
    if registry is None or (typed.reader_schema is not None and not is_key):
        return Schema(SCHEMA_TYPES[payload], typed.reader_schema or ""), None
    reader = _latest(registry, topics, is_key)
    is_given = all(given_of_topic(registry, topic, is_key=is_key) is not None for topic in topics)
    return reader, reader if is_given else None


def _latest(registry: Registry, topics: list[str], is_key: bool) -> Schema:
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
