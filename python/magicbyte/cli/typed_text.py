"""Keys and values as JSON text, by the schemas that they name: what `dump` and `records` print of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from magicbyte._core import Record
from magicbyte.enums import SchemaFormat
from magicbyte.jobs.schemas import open_registry
from magicbyte.options.typed import Column
from magicbyte.options.typed import Registry as RegistryOptions
from magicbyte.schema.decoding import (
    SCHEMA_TYPES,
    TYPED_COLUMNS,
    ColumnDecoder,
    InvalidSchemaError,
    bare_schema,
    window_columns,
)
from magicbyte.schema.registry import Registry, Schema, SchemaNotFoundError, SchemaReferenceError
from magicbyte.typed_stream import typed_pieces

__all__ = ["RecordText", "TextOfTopic", "TextPiece", "TypedText"]

_HEADERS = pa.list_(pa.struct([pa.field("key", pa.binary()), pa.field("value", pa.binary())]))


class TextPiece(NamedTuple):
    """Rows whose keys or values are text."""

    rows: pa.RecordBatch
    """The rows with the columns that they had before."""
    windows: Mapping[str, pa.Array]
    """The times of the windows of keys, in milliseconds since 1970, by the names `TypedText.windows`."""


class RecordText(NamedTuple):
    """A record whose key or value is text."""

    key: bytes | None
    value: bytes | None
    windows: Mapping[str, int | None]
    """The times of the key's window, as in `TextPiece`."""


@dataclass(frozen=True)
class TypedText:
    """Decodes keys, values or both to JSON, each by its own schema."""

    _registry: Registry | None
    _options: RegistryOptions
    _formats: Mapping[Column, SchemaFormat]
    _by_topic: dict[str, TextOfTopic] = field(default_factory=dict)

    @classmethod
    def open(cls, options: RegistryOptions, formats: Mapping[Column, SchemaFormat]) -> TypedText:
        """With the formats of the columns that are decoded; the options break no rule of `broken_rule`.

        Raises as `open_registry`.
        """
        registry = None
        if options.schema_registry is not None:
            _, registry = open_registry([options.schema_registry], http=options.http)
        return cls(registry, options, formats)

    @property
    def windows(self) -> tuple[str, ...]:
        """The names of the times of windows, if keys have windows."""
        columns = window_columns(self._options.key_windows) if "key" in self._formats else ()
        return tuple(name.removeprefix("_") for name in columns)

    def of_topic(self, topic: str, report: Callable[[str], None]) -> TextOfTopic:
        """For the records of a topic, where the registry may give a schema to keys and values that name none.

        If it gives none where all need one, or one that cannot be used, this is reported once, and the keys
        or values stay as they are.

        Raises:
            InvalidSchemaError: if there is no registry, and the reader's schema cannot be used.

        """
        if topic not in self._by_topic:
            decoders = []
            for column in self._formats:
                try:
                    decoders.append(self._decoder(topic, column))
                except (SchemaNotFoundError, SchemaReferenceError, InvalidSchemaError) as error:
                    if self._registry is None:
                        raise
                    report(f"{topic}: the {column}s are not decoded: {error}")
            self._by_topic[topic] = TextOfTopic(tuple(decoders), self.windows)
        return self._by_topic[topic]

    def _decoder(self, topic: str, column: Column) -> ColumnDecoder:
        options, payload, is_key = self._options, self._formats[column], column == "key"
        return ColumnDecoder(
            self._registry,
            None,
            payload,
            messages=options.messages_of(column),
            is_key=is_key,
            framing=options.framing_of(column),
            windows=options.key_windows if is_key else "auto",
            given=self._given(topic, column),
            validate=payload == "json" and options.validation,
        )

    def _given(self, topic: str, column: Column) -> Schema | None:
        """The schema of keys or values that name none: the registry's, or else the reader's."""
        text = self._options.reader_of(column)
        reader = None if text is None else Schema(SCHEMA_TYPES[self._formats[column]], text)
        if self._registry is None:
            return reader
        framing = self._options.framing_of(column)
        try:
            return bare_schema(self._registry, topic, is_key=column == "key", framing=framing) or reader
        except SchemaNotFoundError:
            if reader is None:
                raise
            return reader


@dataclass(frozen=True)
class TextOfTopic:
    """Decodes the keys, values or both of a topic to JSON."""

    decoders: tuple[ColumnDecoder, ...]
    windows: tuple[str, ...]
    """The names of the times of windows; they are null if keys are not decoded."""

    def replace(self, records: pa.RecordBatch, report: Callable[[str], None]) -> Iterator[TextPiece]:
        """Rows with text in the place of the bytes, in pieces that have room in memory.

        What cannot be decoded is reported, and stays.
        """
        for piece, _ in typed_pieces(records, self.decoders):
            rows = piece.select(records.schema.names)
            for decoder in self.decoders:
                _, error_column, invalid_column = TYPED_COLUMNS[decoder.column]
                errors = piece.column(error_column)
                for row in pc.indices_nonzero(errors.is_valid()).to_pylist():
                    place = piece.column("offset")[row]
                    report(f"record at offset {place}: the {decoder.column}: {errors[row]}")
                text = piece.column(decoder.column).cast(pa.binary())
                shown = pc.coalesce(text, piece.column(invalid_column))
                at = rows.schema.get_field_index(decoder.column)
                rows = rows.set_column(at, pa.field(decoder.column, pa.binary()), shown)
            yield TextPiece(rows, {name: _millis(piece, f"_{name}") for name in self.windows})

    def of_record(self, record: Record, report: Callable[[str], None]) -> RecordText:
        """The key and value of one record; what cannot be decoded is reported, and stays."""
        headers = [{"key": key, "value": value} for key, value in record.headers_raw]
        rows = pa.record_batch(
            {
                "offset": pa.array([record.offset]),
                "key": pa.array([record.key_bytes], pa.binary()),
                "value": pa.array([record.value_bytes], pa.binary()),
                "headers": pa.array([headers], _HEADERS),
            }
        )
        (piece,) = self.replace(rows, report)
        key, value = (piece.rows.column(name)[0].as_py() for name in ("key", "value"))
        return RecordText(key, value, {name: times[0].as_py() for name, times in piece.windows.items()})


def _millis(piece: pa.RecordBatch, name: str) -> pa.Array:
    """A column of times in milliseconds since 1970; nulls if there is no such column."""
    if name not in piece.schema.names:
        return pa.nulls(piece.num_rows, pa.int64())
    return piece.column(name).cast(pa.timestamp("ms", "UTC")).cast(pa.int64())
