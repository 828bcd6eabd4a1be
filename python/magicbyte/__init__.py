"""Kafka's record format at hardware speed, for those who need the bytes rather than a client.

>>> import magicbyte
>>> magicbyte.crc32c(b"123456789")
3808858755
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

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
from magicbyte.columns import Columns
from magicbyte.convert import convert_batches
from magicbyte.enums import Compression, DamageMode, IsolationLevel, TimestampType
from magicbyte.errors import (
    CorruptRecordError,
    Error,
    InvalidRecordError,
    LimitExceededError,
    UnsupportedCompressionError,
    UnsupportedMagicError,
)
from magicbyte.log import LogArrowStream, LogBatches, LogRecords, PartitionLog, Reconciliation

if TYPE_CHECKING:
    from magicbyte.jobs.compact import compact
    from magicbyte.jobs.redact import redact

__all__ = [
    "DEFAULT_MAX_DECOMPRESSED_BYTES",
    "ArrowStream",
    "Batches",
    "Columns",
    "Compression",
    "CorruptRecordError",
    "DamageMode",
    "Error",
    "InternalError",
    "InvalidRecordError",
    "IsolationLevel",
    "LegacyBatch",
    "LimitExceededError",
    "LogArrowStream",
    "LogBatches",
    "LogRecords",
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


def __getattr__(name: str) -> Any:
    # Jobs are imported when they are first used: most programs that import this package run none.
    if name == "compact":
        from magicbyte.jobs.compact import compact

        return compact
    if name == "redact":
        from magicbyte.jobs.redact import redact

        return redact
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
