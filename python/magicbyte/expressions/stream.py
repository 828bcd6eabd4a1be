"""A stream of records with only those that an expression selects."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa

from magicbyte._core import ArrowStream
from magicbyte.expressions.record_filter import RecordFilter

__all__ = ["SelectedRecords", "columns_of"]


def columns_of(stream: object) -> list[str]:
    """The columns of anything that exports an Arrow stream."""
    names: list[str] = pa.schema(stream).names
    return names


class SelectedRecords:
    """The selected records of a stream over a log, as a stream with the methods of `ArrowStream`.

    Args:
        stream: has the columns `columns`, and those that the expression needs.
        columns: the columns that consumers get, in their order.
        where: the expression.
        place: the partition, for errors.

    """

    def __init__(self, stream: ArrowStream, columns: Sequence[str], where: RecordFilter, place: str) -> None:
        self._stream = stream
        self._columns = list(columns)
        self._where = where
        self._place = place
        whole = pa.schema(stream)
        self._schema = pa.schema([whole.field(name) for name in self._columns], whole.metadata)

    def __arrow_c_schema__(self) -> object:
        return self._schema.__arrow_c_schema__()

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """A stream from the beginning; it ends with an error if the expression fails for a record."""
        reader = pa.RecordBatchReader.from_batches(self._schema, self._selected())
        return reader.__arrow_c_stream__(requested_schema)

    def _selected(self) -> Iterator[pa.RecordBatch]:
        for batch in pa.RecordBatchReader.from_stream(self._stream):
            chosen = batch.filter(self._where.mask(batch, self._place))
            if chosen.num_rows:
                yield chosen.select(self._columns)

    def problems(self) -> str:
        """As `ArrowStream.problems`."""
        return self._stream.problems()

    def problems_left_out(self) -> int:
        """As `ArrowStream.problems_left_out`."""
        return self._stream.problems_left_out()

    @property
    def end_offset(self) -> int | None:
        """As `ArrowStream.end_offset`."""
        return self._stream.end_offset
