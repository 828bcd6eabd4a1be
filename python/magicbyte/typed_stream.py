"""A stream of records with typed keys or values."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Protocol

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


class RecordStream(Protocol):
    """A stream over a log, with the methods of `ArrowStream`."""

    def __arrow_c_schema__(self) -> object: ...
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...
    def problems(self) -> str: ...
    def problems_left_out(self) -> int: ...
    @property
    def end_offset(self) -> int | None: ...


class TypedRecords:
    """The records of a stream over a log with typed columns, as a stream with the methods of `ArrowStream`.

    Args:
        stream: has the columns `columns`, and `headers`, which may name the schemas.
        columns: the columns that consumers get, in their order; those of `typed` follow.
        typed: what makes columns typed.

    """

    def __init__(self, stream: RecordStream, columns: Sequence[str], typed: Sequence[TypedColumn]) -> None:
        import pyarrow as pa

        self._stream = stream
        self._typed = typed
        whole = pa.schema(stream)
        schema = pa.schema([whole.field(name) for name in columns], whole.metadata)
        for one in typed:
            schema = one.replaced(schema)
        self._schema = schema

    def __arrow_c_schema__(self) -> object:
        return self._schema.__arrow_c_schema__()

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """A stream from the beginning."""
        import pyarrow as pa

        reader = pa.RecordBatchReader.from_batches(self._schema, self._decoded())
        return reader.__arrow_c_stream__(requested_schema)

    def _decoded(self) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        for batch in pa.RecordBatchReader.from_stream(self._stream):
            for one in self._typed:
                batch, _ = one.replace(batch)
            yield batch.select(self._schema.names)

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
