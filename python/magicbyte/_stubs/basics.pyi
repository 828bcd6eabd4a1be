"""Constants, checksums and varints."""

from typing import Final

from typing_extensions import Buffer

__version__: Final[str]
DEFAULT_MAX_DECOMPRESSED_BYTES: Final[int]
"""The default limit for the decompressed size of one batch: 256 MiB."""
MAX_COLUMN_PAYLOAD: Final[int]
"""The maximum limit for batches that are read as columns: 1 GiB, as Arrow counts bytes in 32 bits."""
LISTED: Final[int]
"""The maximum number of findings of a kind that a report lists: 1000. It counts all of them."""

class InternalError(RuntimeError):
    """A bug in magicbyte: its Rust code panicked. Please report it with its message.

    The objects involved remain usable, except that a stream of Arrow batches has ended. Not a
    `magicbyte.Error`, as it implies nothing about the bytes that were read.
    """

def crc32c(data: Buffer, value: int = 0) -> int:
    """CRC-32C (Castagnoli) of `data`, computed in hardware, continuing the checksum `value`."""

def encode_varint(n: int) -> bytes:
    """The zigzag varint of a 64-bit integer: 1 to 10 bytes. Raises OverflowError beyond 64 bits."""

def decode_varint(data: Buffer, position: int = 0) -> tuple[int, int]:
    """The zigzag varint (64-bit) at `position`: its value and the position after it.

    Raises InvalidRecordError if the data ends inside it or it is longer than 10 bytes.
    """

def decompress(
    compression: int | str, magic: int, payload: Buffer, *, max_decompressed_bytes: int = ...
) -> bytes:
    """Decompresses a batch's payload with the codec of this number, as Kafka does for this `magic`."""
