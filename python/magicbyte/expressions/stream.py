"""A stream of records with only those that an expression selects."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa

from magicbyte._core import ArrowStream
from magicbyte.derived_stream import DerivedStream
from magicbyte.expressions.record_filter import RecordFilter

__all__ = ["SelectedRecords"]


class SelectedRecords(DerivedStream):
    """The selected records of a stream over a log.

    Args:
        stream: has the columns `columns`, and those that the expression needs.
        columns: the columns that consumers get, in their order.
        where: the expression.
        place: the partition, for errors.

    """

    def __init__(self, stream: ArrowStream, columns: Sequence[str], where: RecordFilter, place: str) -> None:
        self._columns = list(columns)
        self._where = where
        self._place = place
        whole = pa.schema(stream)
        schema = pa.schema([whole.field(name) for name in self._columns], whole.metadata)
        super().__init__(stream, schema)

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        for batch in map(pa.record_batch, self._stream):
            chosen = batch.filter(self._where.mask(batch, self._place))
            if chosen.num_rows:
                yield chosen.select(self._columns)
