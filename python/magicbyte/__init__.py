"""Kafka's record format at hardware speed, for those who need the bytes rather than a client.

>>> import magicbyte
>>> builder = magicbyte.RecordsBuilder(compression="zstd")
>>> builder.append(0, 1_700_000_000_000, key="user-7", value="hello", headers={"tenant": "a"})
>>> (batch,) = magicbyte.read_batches(builder.build())
>>> len(batch), batch[0].value_bytes
(1, b'hello')

`PartitionLog` reads a partition's directory, `Log` a directory of partitions; the functions of
`magicbyte.commands` do what the commands do.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from magicbyte import commands
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
from magicbyte.conversion import convert_batches
from magicbyte.enums import Compression, DamageMode, IsolationLevel, TimestampType
from magicbyte.errors import (
    AppendError,
    CorruptRecordError,
    Error,
    InvalidRecordError,
    JobError,
    LimitExceededError,
    NeedMoreBytesError,
    RecordError,
    RefusedError,
    UnsupportedCompressionError,
    UnsupportedMagicError,
    UnsupportedVersionError,
)
from magicbyte.log import LogBatches, LogRecords, PartitionLog, Reconciliation
from magicbyte.notebook import add_tables
from magicbyte.read_accounts import ReadAccount
from magicbyte.table import LogArrowStream

if TYPE_CHECKING:
    from magicbyte.commands import (
        advise,
        audit,
        backup,
        cluster,
        compact,
        convert,
        dead_letters,
        diff,
        explain,
        field_costs,
        find,
        ingest,
        merge,
        offsets,
        recover,
        redact,
        rescue,
        restore,
        schemas,
        serve,
        stats,
        topics,
        verify,
    )
    from magicbyte.following import ingest_stream
    from magicbyte.jobs.find.choice import PartitionChoice
    from magicbyte.logs import Log
    from magicbyte.options.typed import TypedColumns
    from magicbyte.scanning import scan
    from magicbyte.schema.http_client import HttpSettings
    from magicbyte.storage.encryption_keys import add_encryption_key
    from magicbyte.storage.mounts import mount_storage

__all__ = [
    "DEFAULT_MAX_DECOMPRESSED_BYTES",
    "AppendError",
    "ArrowStream",
    "Batches",
    "Columns",
    "Compression",
    "CorruptRecordError",
    "DamageMode",
    "Error",
    "HttpSettings",
    "InternalError",
    "InvalidRecordError",
    "IsolationLevel",
    "JobError",
    "LegacyBatch",
    "LimitExceededError",
    "Log",
    "LogArrowStream",
    "LogBatches",
    "LogRecords",
    "NeedMoreBytesError",
    "PartitionChoice",
    "PartitionLog",
    "ReadAccount",
    "Reconciliation",
    "Record",
    "RecordBatch",
    "RecordError",
    "RecordsBuilder",
    "RefusedError",
    "TimestampType",
    "TypedColumns",
    "UnsupportedCompressionError",
    "UnsupportedMagicError",
    "UnsupportedVersionError",
    "__version__",
    "add_encryption_key",
    "advise",
    "audit",
    "backup",
    "cluster",
    "compact",
    "convert",
    "convert_batches",
    "crc32c",
    "dead_letters",
    "decode_varint",
    "diff",
    "encode_varint",
    "explain",
    "field_costs",
    "find",
    "ingest",
    "ingest_stream",
    "merge",
    "mount_storage",
    "offsets",
    "read_batches",
    "recover",
    "redact",
    "rescue",
    "restore",
    "scan",
    "schemas",
    "serve",
    "stats",
    "topics",
    "verify",
]


add_tables()

# Imported when they are first used: most programs that import this package run no job.
_LAZY = {
    "HttpSettings": "magicbyte.schema.http_client",
    "Log": "magicbyte.logs",
    "PartitionChoice": "magicbyte.jobs.find.choice",
    "TypedColumns": "magicbyte.options.typed",
    "add_encryption_key": "magicbyte.storage.encryption_keys",
    "ingest_stream": "magicbyte.following",
    "mount_storage": "magicbyte.storage.mounts",
    "scan": "magicbyte.scanning",
    **dict.fromkeys(commands.__all__, "magicbyte.commands"),
}


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        from importlib import import_module

        found = getattr(import_module(_LAZY[name]), name)
        globals()[name] = found
        return found
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return list(__all__)
