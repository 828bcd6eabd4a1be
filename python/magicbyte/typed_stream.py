"""A stream of records with typed keys or values."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol

from magicbyte.derived_stream import DerivedStream, RecordStream

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Nameless", "TypedColumn", "TypedRecords", "typed_pieces"]


class Nameless(NamedTuple):
    """The rows of a piece whose schemas were not found."""

    unframed: int = 0
    """The number of rows that name no schema."""
    absent: tuple[int, ...] = ()
    """The rows whose schema the registry does not have, in order."""

    def within(self, start: int, end: int) -> Nameless:
        """Those of the rows from `start` to `end` (exclusive); the first rows account for all `unframed`."""
        absent = tuple(row - start for row in self.absent if start <= row < end)
        return Nameless(0 if start else self.unframed, absent)


class TypedColumn(Protocol):
    """A converter to a typed column, such as `magicbyte.schema.decoding.ColumnDecoder`."""

    @property
    def column(self) -> str:
        """The column that it decodes."""

    def replace(self, batch: pa.RecordBatch) -> Iterator[tuple[pa.RecordBatch, Nameless]]:
        """Pieces of the batch with the typed column, and other columns last."""

    def replaced(self, schema: pa.Schema) -> pa.Schema:
        """The schema of the pieces."""


def typed_pieces(
    batch: pa.RecordBatch, typed: Sequence[TypedColumn]
) -> Iterator[tuple[pa.RecordBatch, tuple[Nameless, ...]]]:
    """Pieces of a batch with all its typed columns, and of each column the rows without a schema."""
    if not typed:
        yield batch, ()
        return
    for piece, nameless in typed[0].replace(batch):
        start = 0
        for smaller, others in typed_pieces(piece, typed[1:]):
            end = start + smaller.num_rows
            yield smaller, (nameless.within(start, end), *others)
            start = end


class TypedRecords(DerivedStream):
    """The records of a stream over a log, with typed columns.

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

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        for batch in map(pa.record_batch, self._stream):
            for piece, _ in typed_pieces(batch, self._typed):
                yield piece.select(self._schema.names)
