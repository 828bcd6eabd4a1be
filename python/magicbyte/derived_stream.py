"""A stream whose batches are made from the batches of another stream."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["DerivedStream", "RecordStream"]


class RecordStream(Protocol):
    """A stream over a log, with the methods of `ArrowStream`."""

    def __arrow_c_schema__(self) -> object: ...
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...

    def problems(self) -> str:
        """The problems so far, as JSON: see `ArrowStream.problems`."""

    def problems_left_out(self) -> int:
        """The number of further problems: see `ArrowStream.problems_left_out`."""

    @property
    def end_offset(self) -> int | None:
        """The end of the stream (exclusive): see `ArrowStream.end_offset`."""


class DerivedStream(ABC):
    """A stream with the methods of `ArrowStream`; problems and end are those of the stream that it reads."""

    def __init__(self, stream: RecordStream, schema: pa.Schema) -> None:
        self._stream = stream
        self._schema = schema

    @abstractmethod
    def _batches(self) -> Iterator[pa.RecordBatch]:
        """The batches, from the beginning."""

    def __arrow_c_schema__(self) -> object:
        return self._schema.__arrow_c_schema__()

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """A stream from the beginning; a failure in a batch ends it with an error."""
        import pyarrow as pa

        return pa.RecordBatchReader.from_batches(self._schema, self._batches()).__arrow_c_stream__(
            requested_schema
        )

    def problems(self) -> str:
        """The problems so far, as JSON: see `ArrowStream.problems`."""
        return self._stream.problems()

    def problems_left_out(self) -> int:
        """The number of further problems: see `ArrowStream.problems_left_out`."""
        return self._stream.problems_left_out()

    @property
    def end_offset(self) -> int | None:
        """The end of the stream (exclusive): see `ArrowStream.end_offset`."""
        return self._stream.end_offset
