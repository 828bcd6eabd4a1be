"""A stream whose batches are made from the batches of another stream."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["DerivedStream", "RecordStream"]


class RecordStream(Protocol):
    """A stream over a log; its batches have Arrow's PyCapsule interface."""

    def __arrow_c_schema__(self) -> object: ...
    def __iter__(self) -> Iterator[Any]: ...
    @property
    def fields(self) -> list[tuple[str, str]]:
        """The names and Arrow types of the columns."""


class DerivedStream(ABC):
    """A stream of batches that are made of another stream's batches."""

    def __init__(self, stream: RecordStream, schema: pa.Schema) -> None:
        self._stream = stream
        self._schema = schema

    @abstractmethod
    def __iter__(self) -> Iterator[pa.RecordBatch]:
        """The batches, from the beginning."""

    @property
    def fields(self) -> list[tuple[str, str]]:
        """The names and Arrow types of the columns."""
        return [(field.name, str(field.type)) for field in self._schema]

    def __arrow_c_schema__(self) -> object:
        return self._schema.__arrow_c_schema__()
