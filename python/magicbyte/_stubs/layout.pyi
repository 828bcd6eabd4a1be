"""The fields of a batch and where they are: used by `magicbyte dump --bytes`."""

from typing import Self, final

from typing_extensions import Buffer

@final
class BatchLayoutCore:
    """Iterates over the fields of one batch of any magic, in the order of their bytes.

    A field is (in the decompressed payload, position, bytes, name, record, header, number, computed CRC).
    `record` and `header` are indexes, None outside of records and headers; `number` is None for fields that
    are not numbers; `name` is Kafka's, or `rest` for the bytes after the last field. Raises Error after the
    last field before damage.
    """

    def __new__(cls, batch: Buffer, *, max_decompressed_bytes: int = ...) -> Self: ...
    def __iter__(self) -> Self: ...
    def __next__(self) -> tuple[bool, int, bytes, str, int | None, int | None, int | None, int | None]: ...
    @property
    def decompressed_size(self) -> int:
        """Size of the decompressed payload; 0 until one of its fields has been returned."""
