"""The schemas of the tables for Arrow and Spark. Decoded tables have the schemas of the core."""

from __future__ import annotations

import difflib
from dataclasses import replace
from typing import Literal, get_args, get_origin, get_type_hints

import pyarrow as pa
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from magicbyte.enums import fails_fast
from magicbyte.jobs.run.columns import INVALID_COLUMNS
from magicbyte.jobs.run.reading import table_schema
from magicbyte.model import ProducerHistory, TransactionHistory
from magicbyte.model.histories import Int32
from magicbyte.schema.decoding import TYPED_COLUMNS
from magicbyte.spark.given import OptionError
from magicbyte.spark.names import camel_case
from magicbyte.spark.options import Options, TableOptions
from magicbyte.spark.typed import Decoders

__all__ = [
    "PRODUCERS",
    "SEGMENTS",
    "TRANSACTIONS",
    "arrow_schema_of",
    "columns_of",
    "spark_schema_of",
]

SEGMENTS = pa.schema(
    [
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("segment", pa.string()),
        ("baseOffset", pa.int64()),
        ("size", pa.int64()),
        ("modified", pa.timestamp("us", tz="UTC")),
        ("firstOffset", pa.int64()),
        ("lastOffset", pa.int64()),
        ("batches", pa.int64()),
        ("maxTimestamp", pa.int64()),
        ("state", pa.string()),
    ]
)
"""One row per file of the log. `state` is `read`, or `ignored:` and the reason."""


def _history_schema(columns: type) -> pa.Schema:
    """The columns of a table whose rows are dictionaries of this type, with the names that tables have."""
    fields = [("topic", pa.string()), ("partition", pa.int32())]
    for name, annotation in get_type_hints(columns, include_extras=True).items():
        # A column that may be null has a type and None.
        nullable = type(None) in get_args(annotation)
        kind = next(one for one in get_args(annotation) if one is not type(None)) if nullable else annotation
        fields.append((camel_case(name), _ARROW_TYPES[str if get_origin(kind) is Literal else kind]))
    return pa.schema(fields)


_ARROW_TYPES = {int: pa.int64(), Int32: pa.int32(), bool: pa.bool_(), str: pa.string()}

PRODUCERS = _history_schema(ProducerHistory)
"""One row per producer and epoch; the columns are those of `magicbyte.model.ProducerHistory`."""

TRANSACTIONS = _history_schema(TransactionHistory)
"""One row per transaction, or per marker without data; the columns are those of
`magicbyte.model.TransactionHistory`."""

_DRIVER_TABLES = {"segments": SEGMENTS, "producers": PRODUCERS, "transactions": TRANSACTIONS}
"""Tables whose rows the driver makes from a scan of batch headers."""


def arrow_schema_of(shape: TableOptions, decoders: Decoders = ()) -> pa.Schema:
    """The Arrow schema of a table, or of some of its columns in the given order.

    `decoders` are those of its typed columns.
    """
    table = shape.table
    if table in _DRIVER_TABLES:
        whole = _DRIVER_TABLES[table]
    elif table == "records":
        whole = table_schema(table, key_as=shape.key_as, value_as=shape.value_as)
        for decoder in decoders:
            whole = decoder.replaced(whole)
    else:
        whole = table_schema(table)
    if shape.columns is None:
        return whole
    for name in shape.columns:
        if name not in whole.names:
            near = difflib.get_close_matches(name, whole.names, n=1)
            hint = f"; did you mean {near[0]}?" if near else "."
            raise OptionError(f"table {table} has no column {name}{hint} It has: {', '.join(whole.names)}")
    return pa.schema([whole.field(name) for name in shape.columns])


def spark_schema_of(shape: TableOptions, decoders: Decoders = ()) -> StructType:
    """The same schema for Spark, which the result of `load()` must match exactly."""
    return from_arrow_schema(arrow_schema_of(shape, decoders), prefer_timestamp_ntz=True)


def columns_of(options: Options, schema: StructType, decoders: Decoders = ()) -> tuple[str, ...]:
    """The columns that a schema selects, if the table has them with these types."""
    table, columns = options.table, tuple(schema.fieldNames())
    ours = spark_schema_of(replace(options.shape, columns=columns), decoders)
    _check_invalid_columns(options, columns)
    for requested, field in zip(schema.fields, ours.fields, strict=True):
        if requested.dataType != field.dataType or not requested.nullable:
            raise OptionError(
                f"column {requested.name} of table {table} is {field.dataType.simpleString()} and nullable, "
                f"not {requested.dataType.simpleString()}{'' if requested.nullable else ' NOT NULL'}"
            )
    return columns


def _check_invalid_columns(options: Options, columns: tuple[str, ...]) -> None:
    """Refuses to make text null without a trace: its bytes need a column, unless they are an error."""
    for name, payload in (("key", options.shape.key_as), ("value", options.shape.value_as)):
        invalid = INVALID_COLUMNS[name]
        if payload == "binary" or name not in columns or invalid in columns or fails_fast(options.mode):
            continue
        raise OptionError(
            f"{name}As={payload} makes each {name} that is not such text null: select the column {invalid}"
            " too, which has its bytes, or fail at the first one with mode=FAILFAST"
        )
    typed = options.shape.typed
    for name, schema_format in (("key", typed.key_format), ("value", typed.value_format)):
        _, error, invalid = TYPED_COLUMNS[name]
        if schema_format is None or name not in columns or {error, invalid} & {*columns}:
            continue
        if not fails_fast(options.mode):
            raise OptionError(
                f"{name}Format={schema_format} makes each {name} that cannot be decoded null: select the"
                f" column {error} or {invalid} too, or fail at the first one with mode=FAILFAST"
            )
