"""A stream of records with typed keys or values."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Protocol

from magicbyte.derived_stream import DerivedStream, RecordStream

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["TypedColumn", "TypedRecords", "typed_pieces"]


class TypedColumn(Protocol):
    """A converter to a typed column, such as `magicbyte.schema.decoding.ColumnDecoder`."""

    @property
    def column(self) -> str:
        """The column that it decodes."""

    def replace(self, batch: pa.RecordBatch) -> Iterator[tuple[pa.RecordBatch, int]]:
        """Pieces of the batch with the typed column, other columns last, and the number of unframed rows."""

    def replaced(self, schema: pa.Schema) -> pa.Schema:
        """The schema of the pieces."""


def typed_pieces(
    batch: pa.RecordBatch, typed: Sequence[TypedColumn]
) -> Iterator[tuple[pa.RecordBatch, tuple[int, ...]]]:
    """Pieces of a batch with all its typed columns; for each column, a count of rows that name no schema."""
    if not typed:
        yield batch, ()
        return
    for piece, unframed in typed[0].replace(batch):
        for smaller, others in typed_pieces(piece, typed[1:]):
            yield smaller, (unframed, *others)
            # The first of the smaller pieces accounts for these rows.
            unframed = 0


class TypedRecords(DerivedStream):
    """The records of a stream over a log with typed columns, as a stream with the methods of `ArrowStream`.

    Args:
        stream: has the columns `columns`, and `headers`, which may name the schemas.
        columns: the columns that consumers get, in their order; the columns of `typed` follow.
        typed: the converters to typed columns.

    """

    def __init__(self, stream: RecordStream, columns: Sequence[str], typed: Sequence[TypedColumn]) -> None:
        import pyarrow as pa

        self._typed = typed
        whole = pa.schema(stream)
        schema = pa.schema([whole.field(name) for name in columns], whole.metadata)
        for one in typed:
            schema = one.replaced(schema)
        super().__init__(stream, schema)

    def _batches(self) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        for batch in pa.RecordBatchReader.from_stream(self._stream):
            for piece, _ in typed_pieces(batch, self._typed):
                yield piece.select(self._schema.names)
