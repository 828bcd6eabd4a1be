"""Growth of a table's columns when the schemas of keys and values grow."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa

from magicbyte.errors import RefusedError

__all__ = ["fitted", "grown", "inner_types", "plain_schema", "refuse_types"]

_WIDER = (
    (pa.int8(), pa.int16(), pa.int32(), pa.int64()),
    (pa.float32(), pa.float64()),
)
"""Types of numbers: a wider type can replace a narrower one."""


def plain_schema(fields: Iterable[pa.Field]) -> pa.Schema:
    """Columns as all tables have them, so that equal ones compare as equal: everything may be null, and there
    are neither large offsets, nor metadata, nor names of items.
    """
    return pa.schema([(field.name, _plain(field.type)) for field in fields])


def _plain(data_type: pa.DataType) -> pa.DataType:
    if pa.types.is_large_string(data_type):
        return pa.string()
    if pa.types.is_large_binary(data_type):
        return pa.binary()
    if pa.types.is_large_list(data_type) or pa.types.is_list(data_type):
        return pa.list_(_plain(data_type.value_type))
    if pa.types.is_map(data_type):
        return pa.map_(_plain(data_type.key_type), _plain(data_type.item_type))
    if pa.types.is_struct(data_type):
        return pa.struct(list(plain_schema(data_type)))
    return data_type


def inner_types(fields: Iterable[pa.Field]) -> Iterator[pa.DataType]:
    """The types of all columns and of their nested fields."""
    return (data_type for _, data_type in _paths("", fields))


def _paths(path: str, fields: Iterable[pa.Field]) -> Iterator[tuple[str, pa.DataType]]:
    for field in fields:
        here = f"{path}{field.name}"
        yield here, field.type
        # The fields of a list, a map or a struct.
        yield from _paths(f"{here}.", (field.type.field(at) for at in range(field.type.num_fields)))


def refuse_types(table: str, schema: pa.Schema) -> None:
    """Raises RefusedError for a column whose type neither Delta nor Iceberg has."""
    for path, data_type in _paths("", schema):
        if (
            pa.types.is_null(data_type)
            or pa.types.is_duration(data_type)
            or (pa.types.is_struct(data_type) and not data_type.num_fields)
        ):
            raise RefusedError(
                f"{table} cannot have the column {path}: neither Delta nor Iceberg has the type {data_type}"
            )


def grown(table: str, there: pa.Schema, wanted: pa.Schema, *, widens: bool) -> pa.Schema:
    """The `wanted` columns with the types that the table gets: with the fields that it has already, at any
    depth, and the wider one of two numbers.

    Args:
        table: its name, for errors.
        there: its columns, as `plain_schema` has them.
        wanted: the columns of new rows, as `plain_schema` has them.
        widens: whether the table can make a number wider.

    Raises:
        RefusedError: for a field that cannot be in both.

    """
    types = {field.name: field.type for field in there}
    return pa.schema(
        [
            (
                name,
                _merged(table, name, types[name], data_type, widens=widens) if name in types else data_type,
            )
            for name, data_type in zip(wanted.names, wanted.types, strict=True)
        ]
    )


def _merged(table: str, path: str, there: pa.DataType, wanted: pa.DataType, *, widens: bool) -> pa.DataType:
    if there == wanted:
        return there
    if pa.types.is_struct(there) and pa.types.is_struct(wanted):
        old, new = ({field.name: field.type for field in fields} for fields in (there, wanted))
        both = {
            name: _merged(table, f"{path}.{name}", old[name], new[name], widens=widens)
            for name in old
            if name in new
        }
        return pa.struct(list((old | new | both).items()))
    if pa.types.is_list(there) and pa.types.is_list(wanted):
        item = _merged(table, f"{path}.item", there.value_type, wanted.value_type, widens=widens)
        return pa.list_(item)
    if pa.types.is_map(there) and pa.types.is_map(wanted):
        # Readers look entries up by keys, whose type no table changes.
        key = _merged(table, f"{path}.key", there.key_type, wanted.key_type, widens=False)
        item = _merged(table, f"{path}.value", there.item_type, wanted.item_type, widens=widens)
        return pa.map_(key, item)
    wider = _wider(there, wanted)
    if wider is None or (wider != there and not widens):
        why = "" if wider is None else ", and the format cannot make it wider"
        raise RefusedError(
            f"{table} has the column {path} with another type: {there}, not {wanted}{why}: "
            "choose another table"
        )
    return wider


def _wider(one: pa.DataType, other: pa.DataType) -> pa.DataType | None:
    for numbers in _WIDER:
        if one in numbers and other in numbers:
            return max(one, other, key=numbers.index)
    if pa.types.is_decimal128(one) and pa.types.is_decimal128(other) and one.scale == other.scale:
        return max(one, other, key=lambda decimal: decimal.precision)
    return None


def fitted(rows: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Rows with the columns of a table: fields that they lack are null, and numbers may be wider."""
    columns = []
    for field in schema:
        column = rows.column(field.name)
        columns.append(column if column.type == field.type else column.cast(field.type))
    return pa.RecordBatch.from_arrays(columns, schema=schema)
