"""Keys and values as JSON text, by the schemas that they name: what `dump` and `records` print of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from magicbyte._core import Record
from magicbyte.enums import SchemaFormat
from magicbyte.jobs.schemas import open_registry
from magicbyte.schema.decoding import TYPED_COLUMNS, ColumnDecoder
from magicbyte.typed_stream import typed_pieces

if TYPE_CHECKING:
    from magicbyte.schema.http_client import HttpSettings

__all__ = ["TypedText"]

_HEADERS = pa.list_(pa.struct([pa.field("key", pa.binary()), pa.field("value", pa.binary())]))


@dataclass(frozen=True)
class TypedText:
    """Decodes keys, values or both to JSON, each by its own schema."""

    decoders: tuple[ColumnDecoder, ...]

    @classmethod
    def open(
        cls,
        registry: str,
        formats: Mapping[str, SchemaFormat | None],
        http: HttpSettings | None,
        *,
        validate: bool = False,
    ) -> TypedText:
        """With the formats of the columns `key` and `value`; those without one stay as they are.

        With `validate`, JSON that its own schema does not allow cannot be decoded.

        Raises as `open_registry`.
        """
        _, opened = open_registry([registry], http=http)
        return cls(
            tuple(
                ColumnDecoder(
                    opened,
                    None,
                    payload,
                    is_key=name == "key",
                    validate=validate and payload == "json",
                )
                for name, payload in formats.items()
                if payload is not None
            )
        )

    def replace(self, records: pa.RecordBatch, report: Callable[[str], None]) -> Iterator[pa.RecordBatch]:
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
            yield rows

    def of_record(self, record: Record, report: Callable[[str], None]) -> tuple[bytes | None, bytes | None]:
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
        (shown,) = self.replace(rows, report)
        return shown.column("key")[0].as_py(), shown.column("value")[0].as_py()
