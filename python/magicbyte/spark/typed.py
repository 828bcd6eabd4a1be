"""Typed keys and values: their decoders, which the driver makes, and which go to the tasks."""

from __future__ import annotations

import pyarrow as pa

from magicbyte.jobs.failure import RefusedError
from magicbyte.jobs.partitions import list_partitions
from magicbyte.jobs.typed import column_decoders
from magicbyte.schemas.decoding import TYPED_COLUMNS, ColumnDecoder
from magicbyte.spark.options import OptionError, Options
from magicbyte.spark.paths import expand_paths

__all__ = ["Decoders", "decoders_for", "decoders_of", "refuse_unreadable"]

Decoders = tuple[ColumnDecoder, ...]


def decoders_for(options: Options) -> Decoders:
    """The decoders for a read. A registry is read into memory, since tasks may have no network.

    Raises:
        OptionError: if a topic has no schema, or the topics have different ones.
        InvalidSchemaError: if the reader's schema cannot be used.

    """
    typed = options.shape.typed
    if not typed:
        return ()
    paths = expand_paths(options.paths)
    options.mount(paths)
    listings = list_partitions(paths, distinct=True)
    topics = {one["topic"] for one in listings if options.topics.take(one["topic"], one["partition"])}
    try:
        decoders = column_decoders(typed, topics)
    except RefusedError as error:
        raise OptionError(str(error)) from None
    for decoder in decoders:
        refuse_unreadable(decoder)
    return decoders


def decoders_of(columns: tuple[str, ...], decoders: Decoders) -> Decoders:
    """Those that make one of these columns."""
    return tuple(one for one in decoders if not {one.column, *TYPED_COLUMNS[one.column]}.isdisjoint(columns))


def refuse_unreadable(decoder: ColumnDecoder) -> None:
    """Raises OptionError if Spark has no such type: a decimal of more than 38 digits."""
    pending = list(decoder.schema)
    while pending:
        field = pending.pop()
        if pa.types.is_decimal256(field.type):
            raise OptionError(
                f"the reader's schema has {field.name}, {field.type}: Spark has up to 38 digits"
            )
        if pa.types.is_map(field.type):
            pending += [field.type.key_field, field.type.item_field]
        elif pa.types.is_list(field.type):
            pending.append(field.type.value_field)
        elif pa.types.is_struct(field.type):
            pending += list(field.type)
