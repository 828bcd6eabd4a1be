"""Kafka's record format at hardware speed: for people who need the bytes rather than a client.

>>> import magicbyte
>>> magicbyte.crc32c(b"123456789")
3808858755
"""

from magicbyte._core import (
    DEFAULT_MAX_DECOMPRESSED_BYTES,
    ArrowStream,
    Batches,
    InternalError,
    LegacyBatch,
    Record,
    RecordBatch,
    RecordsBuilder,
    __version__,
    crc32c,
    decode_varint,
    encode_varint,
    read_batches,
)
from magicbyte.cleaner import compact, redact
from magicbyte.columns import Columns
from magicbyte.convert import convert_batches
from magicbyte.enums import Compression, TimestampType
from magicbyte.errors import (
    CorruptRecordError,
    Error,
    InvalidRecordError,
    LimitExceededError,
    UnsupportedCompressionError,
    UnsupportedMagicError,
)
from magicbyte.log import PartitionLog, Reconciliation

__all__ = [
    "DEFAULT_MAX_DECOMPRESSED_BYTES",
    "ArrowStream",
    "Batches",
    "Columns",
    "Compression",
    "CorruptRecordError",
    "Error",
    "InternalError",
    "InvalidRecordError",
    "LegacyBatch",
    "LimitExceededError",
    "PartitionLog",
    "Reconciliation",
    "Record",
    "RecordBatch",
    "RecordsBuilder",
    "TimestampType",
    "UnsupportedCompressionError",
    "UnsupportedMagicError",
    "__version__",
    "compact",
    "convert_batches",
    "crc32c",
    "decode_varint",
    "encode_varint",
    "read_batches",
    "redact",
]
