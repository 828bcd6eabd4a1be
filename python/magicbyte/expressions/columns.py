"""The columns that an expression sees, made from an Arrow batch of the table `records`."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

__all__ = ["COLUMNS", "columns_for", "empty_rows", "record_columns"]

_PIECE = 1024
"""Rows that are converted one by one if one of them is not UTF-8."""
_EARLIEST, _LATEST = -9_223_372_022_400_000, 9_223_372_036_854_774
"""The times (ms) that DuckDB's TIMESTAMP can hold: 290309 BC to 294247 AD."""
_NO_TIMESTAMP = -1

_TEXT_HEADERS = pa.list_(pa.field("element", pa.struct([("key", pa.string()), ("value", pa.string())])))


class _Column(NamedTuple):
    """A column of an expression."""

    type: pa.DataType
    source: str
    """The column of `records` that it is made from."""


COLUMNS = {
    "offset": _Column(pa.int64(), "offset"),
    "timestamp": _Column(pa.timestamp("us"), "timestampMillis"),
    "timestampMillis": _Column(pa.int64(), "timestampMillis"),
    "key": _Column(pa.string(), "key"),
    "value": _Column(pa.string(), "value"),
    "keyBytes": _Column(pa.binary(), "key"),
    "valueBytes": _Column(pa.binary(), "value"),
    "headers": _Column(_TEXT_HEADERS, "headers"),
    "topic": _Column(pa.string(), "topic"),
    "partition": _Column(pa.int32(), "partition"),
}
"""Each column of an expression. `timestamp` is UTC, and NULL if there is none or DuckDB cannot hold it;
`timestampMillis` is -1 for none. `key` and `value` have U+FFFD for bytes that are not UTF-8, and so have the
values of headers."""


def record_columns(names: Collection[str]) -> tuple[str, ...]:
    """The columns of `records` that these columns of an expression are made from, and `offset` for errors."""
    return tuple(dict.fromkeys(["offset", *(COLUMNS[name].source for name in names)]))


def columns_for(batch: pa.RecordBatch, names: Collection[str]) -> pa.RecordBatch:
    """These columns of an expression for each record of the batch; valid UTF-8 is not copied.

    Keys and values may be bytes, or text with what is not text in `invalidKey` and `invalidValue`.
    """
    return pa.RecordBatch.from_arrays([_column(batch, name) for name in names], names=list(names))


def empty_rows(names: Collection[str]) -> pa.RecordBatch:
    """These columns without any record."""
    fields = pa.schema([(name, COLUMNS[name].type) for name in names])
    return pa.RecordBatch.from_pylist([], fields)


def _column(batch: pa.RecordBatch, name: str) -> pa.Array:
    source = COLUMNS[name].source
    if name == "timestamp":
        return _times(batch.column(source))
    if source in ("key", "value"):
        payload = _payload(batch, source)
        return payload.cast(pa.binary()) if name.endswith("Bytes") else _as_text(payload, pa.string())
    if name == "headers":
        return _as_text(batch.column(source), _TEXT_HEADERS)
    return batch.column(source)


def _payload(batch: pa.RecordBatch, name: str) -> pa.Array:
    """Keys or values, as text or as bytes: as bytes if some of them are not text."""
    column, invalid = batch.column(name), f"invalid{name.title()}"
    if invalid not in batch.schema.names or batch.column(invalid).null_count == batch.num_rows:
        return column
    return pc.coalesce(column.cast(pa.binary()), batch.column(invalid))


def _times(millis: pa.Array) -> pa.Array:
    valid = pc.and_(pc.greater_equal(millis, _EARLIEST), pc.less_equal(millis, _LATEST))
    valid = pc.and_(valid, pc.not_equal(millis, _NO_TIMESTAMP))
    return pc.if_else(valid, millis, None).cast(pa.timestamp("ms")).cast(pa.timestamp("us"))


def _as_text(column: pa.Array, text: pa.DataType) -> pa.Array:
    try:
        return column.cast(text)
    except pa.ArrowInvalid:
        if len(column) > _PIECE:
            pieces = [column.slice(start, _PIECE) for start in range(0, len(column), _PIECE)]
            return pa.concat_arrays([_as_text(piece, text) for piece in pieces])
        return pa.array([_replaced(value) for value in column.to_pylist()], text)


def _replaced(value: object) -> object:
    """A payload, or the headers of a record, with U+FFFD for what is not UTF-8."""
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    if isinstance(value, list):
        return [{"key": one["key"], "value": _replaced(one["value"])} for one in value]
    return value
