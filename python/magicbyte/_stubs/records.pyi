"""The records of a batch."""

from typing import Any, Self, final

from magicbyte.enums import TimestampType
from typing_extensions import Buffer

@final
class RecordIterator:
    """Iterates over the records of one batch."""

    def __iter__(self) -> Self: ...
    def __next__(self) -> Record: ...
    def __length_hint__(self) -> int: ...

@final
class Record:
    """One record. Views keep its whole batch alive and never change; `*_bytes` are copies.

    Records can be compared, hashed and pickled; a pickled record is a copy without its batch.
    """

    @property
    def offset(self) -> int:
        """Absolute offset in the partition."""
    @property
    def timestamp(self) -> int:
        """Milliseconds since 1970; -1 for none."""
    @property
    def timestamp_type(self) -> TimestampType:
        """The clock that set the timestamp."""
    @property
    def key(self) -> memoryview | None:
        """The key as a read-only view; None for null."""
    @property
    def value(self) -> memoryview | None:
        """The value as a read-only view; None for null."""
    @property
    def key_bytes(self) -> bytes | None:
        """A copy of the key: faster than a view for small keys."""
    @property
    def value_bytes(self) -> bytes | None:
        """A copy of the value: faster than a view for small values."""
    @property
    def headers(self) -> list[tuple[str, memoryview | None]]:
        """The headers in order, including duplicates; key bytes that are not UTF-8 as surrogate escapes."""
    @property
    def headers_raw(self) -> list[tuple[bytes, bytes | None]]:
        """The headers in order as copied bytes."""
    def last_header(self, key: str | Buffer, /) -> tuple[str, memoryview | None] | None:
        """The last header with this key, as in `headers`; None if there is none (Java's `lastHeader`).

        A str is compared as UTF-8, with surrogate escapes for bytes that are not.
        """
    def headers_for(self, key: str | Buffer, /) -> list[tuple[str, memoryview | None]]:
        """The headers with this key in order (Java's `Headers.headers(key)`)."""
    @property
    def sequence(self) -> int | None:
        """The producer's sequence number, -1 for none; None in magic 0 and 1."""
    @property
    def attributes(self) -> int:
        """The record's own attributes byte, 0 to 255."""
    def _repr_html_(self) -> str:
        """A table of the fields for notebooks; long keys and values are cut."""
    def to_dict(self) -> dict[str, Any]:
        """The fields by name, except `control`; key, value and headers are copies (`bytes`)."""
    def __eq__(self, other: object, /) -> bool:
        """True if the content is the same, wherever it is stored (Kafka's `DefaultRecord.equals`)."""
    def __hash__(self) -> int: ...
    @property
    def control(self) -> dict[str, Any] | None:
        """For a record of a control batch, its `type` and payload. Raises Error if it is malformed."""

def unpickle_record(
    numbers: tuple[int, int, int, int, int],
    content: tuple[bytes | None, bytes | None, bytes, int],
    kind: tuple[bool, bool],
) -> Record:
    """Creates the record that `pickle` has read. Raises ValueError for any other arguments."""
