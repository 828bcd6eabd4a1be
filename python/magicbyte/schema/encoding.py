r"""Typed Arrow columns as keys and values that name their schema.

>>> import pyarrow as pa
>>> from magicbyte.schema import decode, encode
>>> values = encode(pa.array(["abc", None]), '"string"', schema_id=7)
>>> values.to_pylist()
[b'\x00\x00\x00\x00\x07\x06abc', None]
>>> decode(values, {7: '"string"'}).field("value").to_pylist()
['abc', None]
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal
from uuid import UUID

from magicbyte import _core
from magicbyte.enums import SchemaFormat
from magicbyte.errors import Error
from magicbyte.schema import framing
from magicbyte.schema.decoding import SCHEMA_TYPES, InvalidSchemaError, references_of
from magicbyte.schema.registry import DEFAULT_CONTEXT, Registry, Schema, StoredRegistry

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["ColumnEncoder", "EncodingError", "encode"]


class EncodingError(Error):
    """A column that cannot be encoded; the message names row and field."""

    def __init__(self, message: str, kind: str = "cannot_encode", *place: Any) -> None:
        super().__init__(message, kind, *place)


class ColumnEncoder:
    """Encodes columns by one schema. Threads may share it."""

    def __init__(
        self,
        schema: Schema | str,
        format: SchemaFormat = "avro",
        *,
        message: str | None = None,
        registry: Registry | None = None,
        context: str = DEFAULT_CONTEXT,
    ) -> None:
        """Prepares for one schema.

        Args:
            schema: the schema, or its text.
            format: the format of the payloads.
            message: of Protobuf, the full name of the message; by default the first one of the schema.
            registry: where the schemas are that it refers to.
            context: the context of the registry that they are looked up in.

        Raises:
            InvalidSchemaError: if the schema cannot be used: also if its values have no Arrow type.
            SchemaReferenceError: if one of its references leads nowhere.

        """
        if isinstance(schema, str):
            schema = Schema(SCHEMA_TYPES[format], schema)
        if schema.schema_type != SCHEMA_TYPES[format]:
            raise InvalidSchemaError(f"the schema is {schema.schema_type}, expected {SCHEMA_TYPES[format]}")
        used = references_of(registry or StoredRegistry(), schema, context)
        try:
            self._core = _core.SchemaEncoder(format, schema.text, used, message=message)
        except ValueError as error:
            raise InvalidSchemaError(f"the schema: {error}") from None

    @property
    def type(self) -> pa.DataType:
        """The type of the columns: the type that `decode` gives values of the schema."""
        import pyarrow as pa

        return pa.schema(self._core.schema).field(0).type

    def header(self, schema_id: int | str, *, id_bytes: Literal[4, 8] = 4) -> bytes:
        """The content of the schema header of records whose values are encoded without a schema id.

        Its name is `magicbyte.schema.framing.VALUE_SCHEMA_ID` or `KEY_SCHEMA_ID`. Raises as `framing.write`.
        """
        return framing.write(schema_id, self._core.message_indexes, id_bytes=id_bytes)

    def encode(
        self,
        column: pa.Array | pa.ChunkedArray | Sequence[Any],
        schema_id: int | str | None = None,
        *,
        id_bytes: Literal[4, 8] = 4,
    ) -> pa.Array:
        """Encodes a column; the arguments are those of the function `encode`."""
        import pyarrow as pa

        if not isinstance(column, pa.Array | pa.ChunkedArray):
            column = _column(column, self.type)
        if isinstance(column, pa.ChunkedArray):
            column = column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)
        if (plain := _plain(column.type)) != column.type:
            column = column.cast(plain)
        named = UUID(schema_id).bytes if isinstance(schema_id, str) else schema_id
        batch = pa.record_batch({"value": column})
        try:
            encoded = self._core.encode(batch, named, id_bytes=id_bytes)
        except ValueError as error:
            raise EncodingError(str(error)) from None
        return pa.record_batch(encoded).column(0)


def encode(
    column: pa.Array | pa.ChunkedArray | Sequence[Any],
    schema: Schema | str,
    format: SchemaFormat = "avro",
    *,
    schema_id: int | str | None = None,
    message: str | None = None,
    registry: Registry | None = None,
    id_bytes: Literal[4, 8] = 4,
) -> pa.Array:
    """Encodes a column to keys or values, as `decode` reads them.

    The types are those that `decode` makes of the schema (docs/schemas.md). Fields of structs are found by
    their names; one that is missing is null. Large, view and dictionary types are taken as the plain ones.

    Args:
        column: the values, or a list of Python objects.
        schema: the schema, or its text.
        format: the format of the payloads.
        schema_id: the id of the schema in its registry, or its GUID as the text of a UUID, which is put
            before each payload, with Protobuf's message indexes. None makes payloads alone: for records
            whose headers name the schema (`ColumnEncoder.header`).
        message: of Protobuf, the full name of the message; by default the first one of the schema.
        registry: where the schemas are that the schema refers to.
        id_bytes: 8 for what Apicurio before 3 reads.

    Returns:
        A binary array; null rows are null.

    Raises:
        EncodingError: if the column has another type, or a value cannot be written; the message names row,
            field, what was found and what was expected.
        InvalidSchemaError: if the schema cannot be used.
        SchemaReferenceError: if one of its references leads nowhere.
        Error: if the id does not fit, ValueError if the GUID is not a UUID.

    """
    encoder = ColumnEncoder(schema, format, message=message, registry=registry)
    return encoder.encode(column, schema_id, id_bytes=id_bytes)


def _column(values: Sequence[Any], of: pa.DataType) -> pa.Array:
    import pyarrow as pa

    try:
        return pa.array(values, of)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError, ValueError):
        for row, value in enumerate(values):
            try:
                pa.array([value], of)
            except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError, ValueError) as error:
                raise EncodingError(f"row {row}: {error}, expected {of}") from None
        raise


def _plain(of: pa.DataType) -> pa.DataType:
    """The type that `decode` would have for such values: one layout for each."""
    import pyarrow as pa
    from pyarrow import types

    if types.is_dictionary(of):
        return _plain(of.value_type)
    if types.is_large_string(of) or types.is_string_view(of):
        return pa.string()
    if types.is_large_binary(of) or types.is_binary_view(of) or types.is_fixed_size_binary(of):
        return pa.binary()
    if types.is_list(of) or types.is_large_list(of) or types.is_fixed_size_list(of):
        return pa.list_(of.value_field.with_type(_plain(of.value_type)))
    if types.is_map(of):
        key, item = of.key_field, of.item_field
        return pa.map_(key.with_type(_plain(key.type)), item.with_type(_plain(item.type)))
    if types.is_struct(of):
        return pa.struct([field.with_type(_plain(field.type)) for field in of])
    return of
