"""The fields of a batch and where they are: used by `magicbyte dump --bytes`."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Self, final

from typing_extensions import Buffer

@final
@dataclass(frozen=True, init=False)
class BatchField:
    """One field of a batch."""

    is_decompressed: bool
    """True if it is in the decompressed payload."""
    start: int
    """Its position in the batch, or in the decompressed payload."""
    data: bytes
    """Its bytes."""
    name: str
    """Its name in Kafka, or `rest` for the bytes after the last field."""
    label: str
    """Its name, with the record and the header that it is in: `record 0: header 1 key`."""
    meaning: str
    """Its meaning in words. Text of the batch is in it as it is, with invisible characters."""
    record: int | None
    """The index of its record; None outside of records."""
    header: int | None
    """The index of its header in the record; None outside of headers."""
    number: int | None
    """Its value, if it is a number."""
    computed_crc: int | None
    """For `crc`, the checksum of the bytes that it covers."""

    def __new__(
        cls,
        is_decompressed: bool,
        start: int,
        data: bytes,
        name: str,
        label: str,
        meaning: str,
        record: int | None,
        header: int | None,
        number: int | None,
        computed_crc: int | None,
    ) -> Self: ...
    def __iter__(self) -> Iterator[Any]: ...
    def __replace__(self, **changes: Any) -> Self: ...

@final
class BatchLayout:
    """Iterates over the fields of one batch of any magic, in the order of their bytes.

    Raises Error after the last field before damage.
    """

    def __new__(cls, batch: Buffer, *, max_decompressed_bytes: int = ...) -> Self: ...
    def __iter__(self) -> Self: ...
    def __next__(self) -> BatchField: ...
    @property
    def payload(self) -> str:
        """What the decompressed bytes are, with their codec, once one of their fields has been returned."""
    @property
    def decompressed_size(self) -> int:
        """Size of the decompressed payload; 0 until one of its fields has been returned."""
