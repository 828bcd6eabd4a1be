r"""Keys and values that name their schemas, as typed Arrow columns.

>>> import magicbyte.schema.decoding as decoding
>>> rows = decoding.decode([b"\0\0\0\0\x07\x06abc", None, b"?"], registry={7: '"string"'})
>>> rows.field("value").to_pylist()
['abc', None, None]
>>> rows.field("_error")[2].as_py()
'not framed: begins with 0x3f, expected 0x00 and an id of 4 bytes'

Without a registry, all of them are read by one schema.

>>> decoding.decode([b"\x06abc"], None, reader_schema='"string"').field("value").to_pylist()
['abc']
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypedDict, Unpack
from uuid import UUID

from magicbyte import _core
from magicbyte.enums import Framing, JsonIntegers, SchemaFormat, Validation, Windows
from magicbyte.errors import Error
from magicbyte.schema.avro_fingerprint import fingerprint
from magicbyte.schema.invalid_schema import InvalidSchemaError
from magicbyte.schema.registry import (
    DEFAULT_CONTEXT,
    Registry,
    Schema,
    SchemaNotFoundError,
    SchemaReferenceError,
    StoredRegistry,
)
from magicbyte.schema.subject_names import subject_name
from magicbyte.typed_stream import Nameless

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = [
    "MAX_DECODED_BYTES",
    "SCHEMA_TYPES",
    "TYPED_COLUMNS",
    "ColumnDecoder",
    "ColumnOptions",
    "InvalidSchemaError",
    "PayloadOptions",
    "bare_schema",
    "decode",
    "latest_of_topic",
    "references_of",
    "window_columns",
]

SCHEMA_TYPES: dict[SchemaFormat, str] = {"avro": "AVRO", "protobuf": "PROTOBUF", "json": "JSON"}
"""The registry's name of each format."""
TYPED_COLUMNS = {
    "key": ("_key_schema_id", "_key_error", "invalidKey"),
    "value": ("_schema_id", "_error", "invalidValue"),
}
"""The columns that come with a typed column: the id, why a row could not be decoded, and its bytes."""
_WINDOW_COLUMNS = ("_key_window_start", "_key_window_end")

MAX_DECODED_BYTES = 512 << 20
"""The default limit, in bytes, for the columns that `decode` makes."""
_MAX_ROWS = 1 << 16
"""The number of rows that are examined before the first of them are decoded."""


class PayloadOptions(TypedDict, total=False):
    """Keywords of `ColumnDecoder` and `decode`."""

    messages: Sequence[str]
    """Of Protobuf, the full names of the messages that the column has; of several, each is a field of the
    struct.

    By default the first one of the reader's schema, or for `decode` without one, those that values with the
    highest id are."""
    framing: Framing
    """How rows name their schemas, by default `auto`; docs/schemas.md lists the framings."""
    validate: Validation
    """Of JSON, whether a row that its own schema does not allow is a bad one; by default False.

    A row that names no schema is validated by the reader's. The keyword `format` counts only with
    `formats`."""
    integers: JsonIntegers
    """Of JSON, the type of columns of integers, by default `int64`."""


class ColumnOptions(PayloadOptions, total=False):
    """Keywords of `ColumnDecoder`."""

    is_key: bool
    """Decode the column `key`; by default False."""
    windows: Windows
    """The windows after keys: `time`, `session` and `store` add columns with their times.

    `auto`, the default, takes them off in text, from rows that cannot be read otherwise."""
    given: Schema | None
    """The schema of rows that name none, and of AWS Glue's and single objects with unknown names.

    By default the reader's, if there is no registry or `framing` is `none`."""
    context: str
    """The context of the registry that ids and the reader's references are looked up in."""


_DEFAULTS = ColumnOptions(
    messages=(),
    framing="auto",
    validate=False,
    integers="int64",
    is_key=False,
    windows="auto",
    given=None,
    context=DEFAULT_CONTEXT,
)


class ColumnDecoder:
    """Decodes the column `value` (or `key`) of Arrow batches, whatever schema each row was written with.

    The registry is queried once for each new id. A row that cannot be decoded costs only itself: it is null,
    says why in `_error`, and has its bytes in `invalidValue`. Pickles with its registry.
    """

    def __init__(
        self,
        registry: Registry | None,
        reader: Schema | None,
        format: SchemaFormat = "avro",
        **options: Unpack[ColumnOptions],
    ) -> None:
        """Prepares for the types of one schema.

        Args:
            registry: where the rows' schemas are; None if the given schema is that of all rows.
            reader: the schema whose types the column gets; None for JSON text by each row's own schema.
            format: the format of the payloads.
            options: see `ColumnOptions`.

        Raises:
            InvalidSchemaError: if the reader's schema cannot be used.
            SchemaReferenceError: if one of its references leads nowhere.
            ValueError: if `validate` is set for a format other than JSON.

        """
        if unknown := options.keys() - _DEFAULTS.keys():
            raise TypeError(f"unexpected keywords: {', '.join(sorted(unknown))}")
        self._options: ColumnOptions = {**_DEFAULTS, **options}
        self._options["messages"] = tuple(self._options["messages"])
        if self._options["validate"] and format != "json":
            raise ValueError(f"validate is for the format json: {format} has no rules besides its types")
        self._arguments = (registry, reader, format)
        self._registry = StoredRegistry() if registry is None else registry
        self._context, self._is_key = self._options["context"], self._options["is_key"]
        self._format, self._type = format, SCHEMA_TYPES[format]
        used = [] if reader is None else self._references_of(reader, "the reader's schema")
        self._core = _core_decoder(format, reader, used, self._options)
        names_none = registry is None or self._options["framing"] == "none"
        given = self._options["given"] or (reader if names_none else None)
        if given is not None:
            self._give(given, is_sole=registry is None)
        elif names_none and format != "json":
            raise InvalidSchemaError("without a registry or a framing, the schema has to be given")

    def _references_of(self, schema: Schema, role: str) -> list[tuple[str, str]]:
        """The schemas that a schema of the decoder's format uses."""
        if schema.schema_type != self._type:
            raise InvalidSchemaError(f"{role} is {schema.schema_type}, expected {self._type}")
        return references_of(self._registry, schema, self._context)

    def _give(self, given: Schema, *, is_sole: bool) -> None:
        messages, registry = self._options["messages"], self._registry
        # Then no row can name one of its schemas by an id.
        no_ids = isinstance(registry, StoredRegistry) and not registry.schemas
        used = self._references_of(given, "the schema that is given")
        message = messages[0] if messages else None
        self._core.give(given.text, used, message=message, is_sole=is_sole, no_ids=no_ids)
        if is_sole and self._format == "avro":
            try:
                self._core.add_writer(fingerprint(given.text, used), given.text, used)
            except Error as error:
                raise InvalidSchemaError(f"the schema that is given: {error}") from None

    @property
    def registry(self) -> Registry:
        """The registry with the schemas of rows."""
        return self._registry

    def with_registry(self, registry: Registry) -> ColumnDecoder:
        """A decoder to the same types that queries another registry."""
        return _again(registry, *self._arguments[1:], self._options)

    @property
    def column(self) -> str:
        """The column that it decodes, `key` or `value`."""
        return "key" if self._is_key else "value"

    @property
    def error_column(self) -> str:
        """The column that says why a row could not be decoded."""
        return TYPED_COLUMNS[self.column][1]

    def __reduce__(self) -> tuple[Any, ...]:
        return _again, (*self._arguments, self._options)

    @property
    def schema(self) -> pa.Schema:
        """The columns that `decode` returns: `value`, `_schema_id`, `_error`, `invalidValue`, all nullable.

        For keys: `key`, `_key_schema_id`, `_key_error`, `invalidKey`, and `window_columns`.
        """
        import pyarrow as pa

        return pa.schema(self._core.schema)

    def decode(self, batch: pa.RecordBatch, *, max_bytes: int = MAX_DECODED_BYTES) -> pa.RecordBatch:
        """Decodes a batch, which has the column and maybe `headers`; its other columns are ignored.

        Args:
            batch: the rows.
            max_bytes: the limit for the columns: a few bytes may be a row of any width.

        Raises:
            RegistryError: if a live registry does not answer.
            Error: if the column is not binary.
            ValueError: if the columns would have more than `max_bytes`; `replace` makes several batches.

        """
        import pyarrow as pa

        pieces, size = [], 0
        for piece, _ in self._pieces(batch):
            pieces.append(piece)
            size += piece.nbytes
            if size > max_bytes:
                raise ValueError(
                    f"the columns of {batch.num_rows} rows take more than max_bytes={max_bytes}: decode"
                    " fewer rows at once"
                )
        if not pieces:
            return pa.RecordBatch.from_pylist([], self.schema)
        return pieces[0] if len(pieces) == 1 else pa.concat_batches(pieces)

    def _pieces(self, batch: pa.RecordBatch) -> Iterator[tuple[pa.RecordBatch, Nameless]]:
        """The decoded rows of a batch: as many at a time as fit into memory."""
        import pyarrow as pa

        start = 0
        while start < batch.num_rows:
            rest = batch.slice(start, _MAX_ROWS)
            while isinstance(decoded := self._core.decode(rest), list):
                for name in decoded:
                    self._add(name)
            rows, unframed, absent = decoded
            piece = pa.record_batch(rows)
            start += piece.num_rows
            yield piece, Nameless(unframed, tuple(absent))

    def _add(self, name: int | bytes) -> None:
        try:
            schema = _named(self._registry, name, self._context)
            if schema.schema_type != self._type:
                self._core.refuse(name, f"its schema is {schema.schema_type}, expected {self._type}")
                return
            used = references_of(self._registry, schema, self._context)
            self._core.add_writer(name, schema.text, used)
        except (SchemaNotFoundError, SchemaReferenceError) as error:
            self._core.absent(name, str(error))

    def replace(self, batch: pa.RecordBatch) -> Iterator[tuple[pa.RecordBatch, Nameless]]:
        """The batch with the typed column in place of the binary one, and the other columns at its end.

        It comes in pieces, cut where the typed column has 64 MiB. Raises RegistryError and Error as `decode`.
        """
        start = 0
        for decoded, nameless in self._pieces(batch):
            name, *others = decoded.schema.names
            piece = batch.slice(start, decoded.num_rows)
            start += decoded.num_rows
            at = batch.schema.get_field_index(name)
            piece = piece.set_column(at, decoded.schema.field(name), decoded.column(name))
            for other in others:
                piece = piece.append_column(decoded.schema.field(other), decoded.column(other))
            yield piece, nameless

    def replaced(self, schema: pa.Schema) -> pa.Schema:
        """The schema of the batches that `replace` makes of one with this schema."""
        name, *others = self.schema.names
        schema = schema.set(schema.get_field_index(name), self.schema.field(name))
        for other in others:
            schema = schema.append(self.schema.field(other))
        return schema


def _again(
    registry: Registry | None, reader: Schema | None, format: SchemaFormat, options: ColumnOptions
) -> ColumnDecoder:
    return ColumnDecoder(registry, reader, format, **options)


def _core_decoder(
    format: SchemaFormat,
    reader: Schema | None,
    references: Sequence[tuple[str, str]],
    options: ColumnOptions,
) -> _core.SchemaDecoder:
    """The core's decoder with the keywords `options` of `ColumnDecoder`. Raises InvalidSchemaError."""
    windows, validate = options["windows"], options["validate"]
    try:
        return _core.SchemaDecoder(
            format,
            None if reader is None else reader.text,
            references,
            messages=options["messages"],
            is_key=options["is_key"],
            framing=options["framing"],
            windows="none" if windows == "auto" and reader is not None else windows,
            json_rules=(bool(validate), validate == "formats", options["integers"]),
        )
    except ValueError as error:
        raise InvalidSchemaError(f"the reader's schema: {error}") from None


def window_columns(windows: Windows) -> tuple[str, ...]:
    """The columns that come with keys that have these windows."""
    starts = _WINDOW_COLUMNS[:1]
    return {"time": starts, "store": starts, "session": _WINDOW_COLUMNS}.get(windows, ())


def bare_schema(
    registry: Registry, topic: str, *, is_key: bool = False, framing: Framing = "auto"
) -> Schema | None:
    """The schema that wrote a topic's values or keys that name none; None if the registry does not say it.

    It is the latest one of the topic if files give that no id, so that no row can name it, or if the framing
    is `none`. With that framing, SchemaNotFoundError is raised if the topic has no schema.
    """
    if framing == "none":
        return latest_of_topic(registry, topic, is_key=is_key)
    if not isinstance(registry, StoredRegistry):
        return None
    try:
        version = registry.latest(subject_name("TopicNameStrategy", topic, is_key=is_key))
    except SchemaNotFoundError:
        return None
    return version.schema if version.id is None else None


def latest_of_topic(registry: Registry, topic: str, *, is_key: bool = False) -> Schema:
    """The latest schema of a topic's values or keys, by the topic's subject. Raises SchemaNotFoundError."""
    return registry.latest(subject_name("TopicNameStrategy", topic, is_key=is_key)).schema


def decode(
    values: pa.Array | pa.ChunkedArray | Sequence[bytes | None],
    registry: Registry | Mapping[int | str, str] | None,
    format: SchemaFormat = "avro",
    reader_schema: Schema | str | None = None,
    *,
    as_text: bool = False,
    max_bytes: int = MAX_DECODED_BYTES,
    **options: Unpack[PayloadOptions],
) -> pa.StructArray:
    """Decodes keys or values to typed columns.

    Args:
        values: payloads, framed or not: binary or text in any layout of Arrow, or a list of bytes.
        registry: where their schemas are: `magicbyte.jobs.schemas.open_registry` opens one; or texts by id,
            or by the UUIDs of AWS Glue. None if `reader_schema` is the schema of all values.
        format: the format of the payloads.
        reader_schema: the schema whose types the values get. By default that of the highest id among them,
            which is the newest. With the framing `none`, it is the schema of all values.
        as_text: make each value JSON text, by its own schema.
        max_bytes: the limit for the columns.
        options: see `PayloadOptions`.

    Returns:
        One struct per value, with the fields `value` (null if it cannot be decoded), `_schema_id` (null
        without an id), `_error` and `invalidValue` (the bytes of a value with an error). A JSON value need
        not name a schema.

    Raises:
        InvalidSchemaError: if the reader's schema cannot be used.
        RegistryError: if a live registry does not answer.
        Error: if the values are not binary.
        ValueError: if the columns would have more than `max_bytes`, or `validate` is set for another format
            than JSON.

    """
    import pyarrow as pa

    if not isinstance(values, pa.Array | pa.ChunkedArray):
        values = pa.array(values, pa.binary())
    if isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks() if values.num_chunks != 1 else values.chunk(0)
    batch = pa.record_batch({"value": values})
    known = registry if isinstance(registry, Registry | None) else _registry_of(registry, format)
    if isinstance(reader_schema, str):
        reader_schema = Schema(SCHEMA_TYPES[format], reader_schema)
    framing = options.get("framing", _DEFAULTS["framing"])
    if reader_schema is None and not as_text and known is not None:
        newest = _newest(batch, known, format, framing)
        if newest is not None:
            name, reader_schema = newest
            if format == "protobuf" and not options.get("messages"):
                options["messages"] = _messages(batch, known, name, reader_schema, framing)
    given = reader_schema if known is None or framing == "none" else None
    decoder = ColumnDecoder(known, None if as_text else reader_schema, format, given=given, **options)
    return decoder.decode(batch, max_bytes=max_bytes).to_struct_array()


def _named(registry: Registry, name: int | bytes, context: str = DEFAULT_CONTEXT) -> Schema:
    """The schema with this id, UUID of 16 bytes or fingerprint of 8 bytes. Raises SchemaNotFoundError."""
    if isinstance(name, int):
        return registry.by_id(name, context)
    return registry.by_guid(str(UUID(bytes=name))) if len(name) == 16 else registry.by_fingerprint(name)


def _registry_of(texts: Mapping[int | str, str], format: SchemaFormat) -> Registry:
    registry = StoredRegistry()
    for name, text in texts.items():
        schema = Schema(SCHEMA_TYPES[format], text)
        if isinstance(name, str):
            registry.put_uuid(name, schema)
        else:
            registry.put_schema(name, schema)
    return registry


def references_of(registry: Registry, schema: Schema, context: str) -> list[tuple[str, str]]:
    """The schemas that a schema uses, as name and text. A registry takes the first of several with one name.

    Raises SchemaReferenceError.
    """
    found: dict[str, str] = {}
    for name, used in registry.resolve(schema, context):
        found.setdefault(name, used.text)
    return list(found.items())


def _newest(
    batch: pa.RecordBatch, registry: Registry, format: SchemaFormat, framing: Framing
) -> tuple[int | bytes, Schema] | None:
    """The schema of the highest id in a batch that the registry knows; for other names, of the first one."""
    names = _core.SchemaDecoder(format, None, framing=framing).new_ids(batch)
    ids: list[int | bytes] = sorted((name for name in names if isinstance(name, int)), reverse=True)
    for name in ids + [name for name in names if isinstance(name, bytes)]:
        try:
            schema = _named(registry, name)
        except SchemaNotFoundError:
            continue
        if schema.schema_type == SCHEMA_TYPES[format]:
            return name, schema
    return None


def _messages(
    batch: pa.RecordBatch, registry: Registry, name: int | bytes, schema: Schema, framing: Framing
) -> list[str]:
    """The message types of values with this name of a schema."""
    decoder = _core.SchemaDecoder("protobuf", None, framing=framing)
    decoder.add_writer(name, schema.text, references_of(registry, schema, DEFAULT_CONTEXT))
    return decoder.messages(batch)
