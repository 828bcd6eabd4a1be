"""A stream of records with typed keys or values."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Protocol

from magicbyte.derived_stream import DerivedStream, RecordStream

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["TypedColumn", "TypedRecords"]


class TypedColumn(Protocol):
    """What makes a column typed: `magicbyte.schemas.decoding.ColumnDecoder`."""

    @property
    def column(self) -> str:
        """The column that it decodes."""

    def replace(self, batch: pa.RecordBatch) -> tuple[pa.RecordBatch, int]:
        """The batch with the typed column, and others at its end; and how many rows name no schema."""

    def replaced(self, schema: pa.Schema) -> pa.Schema:
        """The schema of what `replace` returns."""


class TypedRecords(DerivedStream):
    """The records of a stream over a log with typed columns, as a stream with the methods of `ArrowStream`.

    Args:
        stream: has the columns `columns`, and `headers`, which may name the schemas.
        columns: the columns that consumers get, in their order; those of `typed` follow.
        typed: what makes columns typed.

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
            for one in self._typed:
                batch, _ = one.replace(batch)
            yield batch.select(self._schema.names)
