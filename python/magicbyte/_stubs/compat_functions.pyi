"""The functions of the drop-ins: counts, varints, checksums, compression."""

from collections.abc import Callable
from typing import SupportsInt

from typing_extensions import Buffer

def counts(client: str) -> tuple[int, int, int, int]:
    """The batches read, records read, batches built and records built by a drop-in in this process.

    Raises ValueError for a `client` other than `aiokafka` and `kafka_python`.
    """

def aiokafka_crc32c(data: Buffer) -> int:
    """CRC-32C (Castagnoli) of `data`, computed in hardware."""

def kafka_python_crc32c(memview: Buffer) -> int:
    """CRC-32C (Castagnoli) of `memview`, computed in hardware."""

def aiokafka_decode_varint(buffer: Buffer, pos: int = 0) -> tuple[int, int]:
    """The zigzag varint (64-bit) at `pos`: its value and the position after it.

    Raises ValueError if it is longer than 10 bytes, IndexError if the buffer ends inside it.
    """

def kafka_python_decode_varint(buffer: Buffer, pos: int = 0) -> tuple[int, int]:
    """Like `aiokafka_decode_varint`, except for the text of the error."""

def aiokafka_encode_varint(value: SupportsInt, write: Callable[[int], object]) -> int:
    """Calls `write` with each byte of the zigzag varint of a 64-bit integer; returns the number of bytes."""

def kafka_python_encode_varint(value: int, write: Callable[[int], object]) -> int:
    """Like `aiokafka_encode_varint`, but for integers only."""

def aiokafka_size_of_varint(value: SupportsInt) -> int:
    """Size of the zigzag varint of a 64-bit integer: 1 to 10 bytes."""

def kafka_python_size_of_varint(value: int) -> int:
    """Like `aiokafka_size_of_varint`, but for integers only."""

def compress(compression: int | str, magic: int, payload: Buffer, level: int | None = None) -> bytes:
    """Compresses a payload as Kafka does in a batch of this `magic`; `magicbyte._core.decompress` reads it.

    The level is as in `RecordsBuilder`, None for Kafka's default. Raises UnsupportedCompressionError for an
    invalid level, for zstd below magic 2, and for a codec that Kafka does not know.
    """

def compress_snappy(payload: Buffer, chunk_size: int | None = None) -> bytes:
    """Compresses with snappy, in xerial chunks of this many bytes before compression or as one raw block.

    Raises ValueError for a chunk size outside 1 to 512 MiB.
    """
