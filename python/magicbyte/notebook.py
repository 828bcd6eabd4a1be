"""Small tables of records and batches for notebooks, which show what `_repr_html_` of an object returns.

The compiled classes of batches and streams get the method from `add_tables`; that of records, whose class
cannot be changed, calls `record_html`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import Any

from magicbyte._core import ArrowStream, _Batch
from magicbyte.errors import Error
from magicbyte.html import table

__all__ = ["add_tables", "columns_html", "record_html", "shown"]

_RECORDS = 10
_HEADERS = 10
_CHARACTERS = 80
"""The longest content of a cell."""
_METHOD = "_repr_html_"
_RECORD = ("offset", "timestamp", "key", "value", "headers")


def shown(content: bytes | str | None) -> str:
    """A key, value or header as Python's literal: without control characters, and cut where it is long."""
    if content is None:
        return "None"
    text = ascii(content[:_CHARACTERS])
    left_out = len(content) - _CHARACTERS
    return text if left_out <= 0 else f"{text} and {left_out:,} more"


def record_html(record: Mapping[str, Any]) -> str:
    """A table of the fields of `Record.to_dict`."""
    headers: Sequence[tuple[str, bytes | None]] = record["headers"]
    cells = {"key": shown(record["key"]), "value": shown(record["value"])}
    rows = [(name, cells.get(name, record[name])) for name in record if name != "headers"]
    rows += [(f"header {shown(name)}", shown(value)) for name, value in headers[:_HEADERS]]
    return table("Record", ("field", "value"), rows, left_out=len(headers) - _HEADERS)


def columns_html(offsets: Sequence[int], *columns: Sequence[int] | Sequence[bytes | None]) -> str:
    """A table of the first records of `Columns`."""
    rows = (
        [shown(cell) if cell is None or isinstance(cell, bytes) else cell for cell in row]
        for row in zip(offsets, *columns, strict=True)
    )
    header = ("offset", "timestamp", "key", "value")
    count = len(offsets)
    return table(f"Columns of {count:,} records", header, islice(rows, _RECORDS), left_out=count - _RECORDS)


def _batch_html(batch: Any) -> str:
    """A table of the first records for notebooks, or the error if they do not decode."""
    rows: Iterable[Sequence[object]]
    try:
        records = iter(batch)
        rows = [
            (
                record.offset,
                record.timestamp,
                shown(record.key_bytes),
                shown(record.value_bytes),
                len(record.headers),
            )
            for record in islice(records, _RECORDS)
        ]
    except Error as error:
        return table(repr(batch), ("error",), [(error,)])
    return table(repr(batch), _RECORD, rows, left_out=records.__length_hint__())


def _stream_html(stream: ArrowStream) -> str:
    """A table of the columns for notebooks."""
    return table("ArrowStream", ("column", "Arrow type"), stream.fields)


def add_tables() -> None:
    """Gives the compiled classes of batches and streams their `_repr_html_`."""
    for kind, html in ((_Batch, _batch_html), (ArrowStream, _stream_html)):
        setattr(kind, _METHOD, html)
